"""What Python sees of plain intervals, and of the search that asks for tighter bounds where these pay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from butfor.oracle.base import Sieve, Sieved
from butfor.oracle.program.bounding.plain.entries import FREE, KEPT, MADE, MOST_TOPS, Room
from butfor.oracle.program.bounding.plain.tables import plain_tables
from butfor.oracle.program.bounding.prepare import prepared
from butfor.oracle.program.bounding.room import untouched
from butfor.oracle.program.kernels.flat import LINEAR, MATRIX
from butfor.oracle.program.layout import room_for, rows_for
from butfor.oracle.program.steps import Gather

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from butfor.oracle.program.bounding.plain.branches import Branches
    from butfor.oracle.program.bounding.plain.influence import Losses
    from butfor.oracle.program.bounding.plain.tables import Plain
    from butfor.oracle.program.bounding.sieve import Bounding
    from butfor.oracle.program.steps import Value

__all__ = ["PlainBounding", "PlainSieve"]

# How many prefixes and candidates are handed over at once.
MOST_PREFIXES = 1024
MOST_CANDIDATES = 16_384

# Where more edits may be made, those nearest to the target are decided first, since others are then often cut off.
MOST_BY_PROMISE = 8

# What is learnt of tighter bounds is kept apart for less than so many edits that are left.
MOST_LEFT = 64

# Numbers that intervals are kept of, for all budgets together: limits the memory.
MOST_NUMBERS = 40_000_000

# Losses are kept for so many numbers of made edits, and so many numbers in all.
MOST_KEPT, MOST_LOSSES = 64, 2_000_000

# Tighter bounds are made, which takes milliseconds, only after so many plain ones.
ASKS_FROM, NEVER = 256, 1 << 62

# A plain bound costs about as much as so many numbers of a tighter one.
WORK_OF_TIGHT = 4


class PlainBounding:
    """Plain intervals of the program of a target, over families of graphs. Only one search at a time may use it."""

    def __init__(self, tables: Plain, differences: int, every: bool, num_edits: int) -> None:
        self.tables, self.differences, self.every, self.num_edits = tables, differences, every, num_edits
        self.budget_of = _budgets(num_edits)
        self.level_of = np.searchsorted(self.budget_of, np.arange(num_edits + 1))
        levels, entries, wide = len(self.budget_of), max(tables.most_entries, 1), tables.widest
        tops, shared = max(MOST_TOPS + 1, entries), MOST_TOPS * wide
        self.room = Room(
            low=untouched(levels, tables.size), high=untouched(levels, tables.size),
            status=np.full((levels, num_edits), KEPT, np.int8),
            row_low=room_for(wide), row_high=room_for(wide), entries=np.empty(entries, np.int64),
            places=np.empty(entries, np.int64), column=np.empty(2 * entries), tops=np.empty((tops, wide)),
            bottoms=np.empty((tops, wide)), carried=room_for(wide), row=room_for(wide), least=room_for(wide),
            most=room_for(wide), slopes=room_for(wide), chords=room_for(wide), middle=room_for(2 * wide),
            radius=room_for(2 * wide), products=rows_for(2, wide), zeros=room_for(wide), factors=np.empty(shared),
            columns=np.empty(shared, np.int64), falls=rows_for(entries, tables.mixed),
            rises=rows_for(entries, tables.mixed), ranked=np.empty(MOST_TOPS + 2, np.int64),
            values=np.empty(MOST_TOPS + 1), shares=np.empty(MOST_TOPS + 1), share=np.empty(shared),
            share_entry=np.empty(shared, np.int64), share_column=np.empty(shared, np.int64),
            share_from=np.empty(entries + 2, np.int64),
        )  # fmt: skip
        steps = len(tables.flat.kind)
        self.begins = tables.flat.first[tables.flat.out]
        self.waiting, self.stamps = (np.zeros(len(tables.step_of), np.int64) for _ in range(2))
        self.counts, self.ready = np.zeros(steps, np.int64), np.zeros(levels, np.bool_)
        self.clock = 0
        self.losses = _room_for_losses(tables)

    @classmethod
    def of(
        cls,
        out: Value,
        row: int,
        pairs: NDArray[np.float64],
        every: bool,
        present: NDArray[np.bool_],
        edit_of: NDArray[np.int64],
        num_edits: int,
    ) -> PlainBounding | None:
        """For the same arguments as `Bounding`; None where plain intervals do not know what the program does."""
        out = prepared(out, np.concatenate([pairs, np.eye(pairs.shape[1])]), means=True)
        while isinstance(step := out.step, Gather):
            # The output is a copy of the target's row.
            out, row = step.inputs[0], int(step.source[row])
        tables = plain_tables(out, row, present, edit_of, num_edits)
        if tables is None or tables.size * len(_budgets(num_edits)) > MOST_NUMBERS:
            return None
        return cls(tables, len(pairs), every, num_edits)

    def least_margin(self, made: Sequence[int], free: NDArray[np.int64], most: int) -> float:
        """A lower bound of the margin after the edits in ``made`` and at most ``most`` of the free ones."""
        branches = self.begin(free, np.zeros(len(free)), 0)
        branches.status[np.asarray(made, dtype=np.int64)] = MADE
        self.ready[:] = False
        return self.run(branches, most, np.inf, 0.0, NEVER, 0)

    def run(self, branches: Branches, size: int, limit: float, needed: float, asks_from: int, most: int) -> float:
        """Search on, as `search` does."""
        from butfor.oracle.program.bounding.plain.search import search

        return float(
            search(
                self.tables, self.room, self.losses, branches, size, limit, needed, self.differences, self.every,
                asks_from, most,
            )
        )  # fmt: skip

    def begin(self, order: NDArray[np.int64], costs: NDArray[np.float64], size: int) -> Branches:
        """Free these edits, and exclude all others."""
        from butfor.oracle.program.bounding.plain.branches import (
            CLOCK,
            IS_NEW,
            NUM_KNOWN,
            NUM_NUMBERS,
            Branches,
        )

        status = np.full(self.num_edits, KEPT, np.int8)
        status[order] = FREE
        others = np.ones(self.num_edits, bool)
        others[order] = False
        self.ready &= (self.room.status[:, others] == KEPT).all(axis=1)
        numbers = np.zeros(NUM_NUMBERS, np.int64)
        self.clock += 1 << 40
        numbers[[CLOCK, IS_NEW]] = self.clock, 1
        rows = len(self.tables.step_of)
        kept = min(size, MOST_KEPT, MOST_LOSSES // max(self.differences * self.num_edits, 1))
        return Branches(
            order=order, costs=costs, cheapest=np.append(0.0, np.cumsum(np.sort(costs))[:size]), status=status,
            stack=np.zeros(len(order) + 1, np.int64), picked=np.zeros(size + 2, np.int64),
            live=np.zeros(rows, np.bool_), queue=np.zeros(rows, np.int64), level_of=self.level_of,
            budget_of=self.budget_of, ready=self.ready, waiting=self.waiting, counts=self.counts, stamps=self.stamps, begins=self.begins,
            tight=np.zeros((MOST_LEFT, NUM_KNOWN), np.int64), entered=np.full(size + 2, -1),
            losses=np.zeros((kept + 1, self.differences, self.num_edits)),
            known=np.zeros((kept + 1, self.differences), np.bool_), gaps=np.zeros((size + 2, self.differences)),
            open=np.ones((size + 2, self.differences), np.bool_), again=np.full(size + 2, -1),
            may=np.zeros(self.num_edits, np.int64), promise=np.zeros(self.num_edits), column=np.zeros(len(order)),
            prefixes=np.empty((MOST_PREFIXES, max(size - 1, 0)), np.int64),
            pointers=np.zeros(MOST_PREFIXES + 1, np.int64),
            candidates=np.empty(max(MOST_CANDIDATES, 2 * len(order) + 2), np.int64), numbers=numbers,
        )  # fmt: skip


def _room_for_losses(tables: Plain) -> Losses:
    from butfor.oracle.program.bounding.plain.influence import (
        MOST_PATHS,
        MOST_PENDING,
        MOST_SHARED,
        NUM_NUMBERS,
        Losses,
    )

    some = int(tables.has_losses)
    rows, numbers, wide = some * len(tables.step_of), some * tables.size, some * tables.widest
    entries, paths, shared = max(tables.most_entries, 1), some * MOST_PATHS, some * MOST_SHARED

    def turned(matrices: NDArray[np.float64]) -> NDArray[np.float64]:
        result = room_for(some * len(matrices))
        for step in np.flatnonzero(tables.flat.kind == LINEAR)[: some * len(tables.flat.kind)]:
            begin = tables.flat.tables[step, MATRIX]
            shape = tables.flat.width[tables.flat.inputs[step, 0]], tables.flat.width[tables.flat.out[step]]
            matrix = matrices[begin : begin + shape[0] * shape[1]]
            result[begin : begin + len(matrix)] = matrix.reshape(shape).T.ravel()
        return result

    return Losses(
        turned=turned(tables.flat.matrices), turned_sizes=turned(tables.sizes),
        row=np.empty(paths, np.int64), edit=np.empty(paths, np.int64), parent=np.empty(paths, np.int64),
        uncertain=np.empty(paths, np.bool_), loss=np.empty(paths, np.int64), shared_g=rows_for(shared, wide),
        shared_a=rows_for(shared, wide), pending=np.empty(MOST_PENDING, np.int64),
        pending_g=rows_for(MOST_PENDING, wide), pending_a=rows_for(MOST_PENDING, wide),
        entry_edit=np.empty(entries, np.int64), entry_row=np.empty(entries, np.int64),
        entry_g=rows_for(entries, wide), entry_a=rows_for(entries, wide), entry_loss=np.empty(entries),
        has_loss=np.empty(entries, np.bool_), ranked=np.empty(MOST_TOPS + 1, np.int64),
        values=np.empty(MOST_TOPS + 1), column=np.empty(entries), into_g=room_for(wide), into_a=room_for(wide), factors=np.empty(wide),
        columns=np.empty(wide, np.int64), sloped=np.zeros(rows, np.int64), now=room_for(numbers),
        middle=room_for(numbers), half=room_for(numbers), up=room_for(numbers), looked=np.zeros(rows, np.int64),
        numbers=np.zeros(NUM_NUMBERS, np.int64),
    )  # fmt: skip


def _budgets(most: int) -> NDArray[np.int64]:
    """The budgets that intervals are kept for: 0 to 4, then twice as much every other time, at last ``most``."""
    budgets = [0, 1, 2, 3, 4]
    while budgets[-1] < most:
        budgets.append(min(2 * budgets[-2], most) if budgets[-2] > 2 else 6)
    return np.array(budgets)


class PlainSieve(Sieve):
    """All sets of at most so many edits, except those that are proved not to reach the goal: see `ProgramSieve`.

    Args:
        plain: the bounds; nothing else may use them until the search is done.
        tight: makes tighter bounds, once they are asked for; what it returns is None where there are none.
        order, costs, size, limit, needed: as in `ProgramSieve`.
        asks_from: how many plain bounds come before the first tighter one.
    """

    def __init__(
        self,
        plain: PlainBounding,
        tight: Callable[[], Bounding | None],
        order: NDArray[np.int64],
        costs: NDArray[np.float64],
        size: int,
        limit: float,
        needed: float,
        asks_from: int = ASKS_FROM,
    ) -> None:
        # There are no larger sets, and none that could complete one.
        size = min(size, len(order))
        self._plain, self._tight, self._asks_from = plain, tight, asks_from
        self._size, self._limit, self._needed = size, limit, needed
        if size > MOST_BY_PROMISE:
            nearest = np.argsort(plain.tables.hops[order], kind="stable")
            order, costs = order[nearest], costs[nearest]
        self._branches = plain.begin(order, costs, size)

    def next(self, most: int) -> Sieved:
        """Search on until bounds have cost as much as ``most`` evaluations, enough was found, or all is done."""
        from butfor.oracle.program.bounding.plain.branches import ASKS, CANDIDATES, DONE, PREFIXES, SPENT

        b, numbers = self._branches, self._branches.numbers
        numbers[[PREFIXES, CANDIDATES, SPENT]] = 0
        while True:
            self._plain.run(b, self._size, self._limit, self._needed, self._asks_from, most)
            if not numbers[ASKS]:
                break
            self._answer()
        prefixes, candidates = int(numbers[PREFIXES]), int(numbers[CANDIDATES])
        return Sieved(
            b.prefixes[:prefixes].copy(),
            b.candidates[:candidates].copy(),
            b.pointers[: prefixes + 1].copy(),
            int(numbers[SPENT]),
            bool(numbers[DONE]),
        )

    def _answer(self) -> None:
        """Bound the branch that was asked about."""
        from butfor.oracle.program.bounding.plain.branches import (
            ANSWER,
            ASKED_COST,
            LEFT,
            NUMBERS_PER_EVALUATION,
            OPEN,
            PRUNED,
            SPENT,
        )

        numbers, bounding = self._branches.numbers, self._tight()
        if bounding is None:
            self._asks_from, numbers[ANSWER] = NEVER, OPEN
            return
        margin, work = bounding.margin(self._branches.status, int(numbers[LEFT]), self._size)
        numbers[ANSWER] = PRUNED if margin > self._needed else OPEN
        numbers[ASKED_COST] = WORK_OF_TIGHT * work
        numbers[SPENT] += 1 + work // NUMBERS_PER_EVALUATION
