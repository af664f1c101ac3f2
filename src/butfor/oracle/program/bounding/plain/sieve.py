"""What Python sees of plain intervals, and of the search that asks for tighter bounds where these pay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from butfor.oracle.base import Sieved
from butfor.oracle.program.bounding.plain.entries import FREE, KEPT, MADE
from butfor.oracle.program.bounding.plain.room import room_for_intervals, room_for_losses
from butfor.oracle.program.bounding.plain.tables import plain_tables
from butfor.oracle.program.bounding.prepare import prepared
from butfor.oracle.program.bounding.sharing import Search, SharedSieve
from butfor.oracle.program.steps import Gather

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from butfor.oracle.program.bounding.plain.branches import Branches
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

# Hidden numbers are limited after so many evaluations, and for no longer than the search has taken by then.
LIMITED_AFTER = 2_000

# A plain bound costs about as much as so many numbers of a tighter one.
WORK_OF_TIGHT = 4


class PlainBounding:
    """Plain intervals of the program of a target, over families of graphs. Only one search at a time may use it."""

    def __init__(self, tables: Plain, differences: int, every: bool, num_edits: int) -> None:
        self.tables, self.differences, self.every, self.num_edits = tables, differences, every, num_edits
        self.budget_of = _budgets(num_edits)
        self.level_of = np.searchsorted(self.budget_of, np.arange(num_edits + 1))
        levels = len(self.budget_of)
        self.room = room_for_intervals(tables, levels, num_edits)
        steps = len(tables.flat.kind)
        self.begins = tables.flat.first[tables.flat.out]
        self.waiting, self.stamps = (np.zeros(len(tables.step_of), np.int64) for _ in range(2))
        self.counts, self.ready = np.zeros(steps, np.int64), np.zeros(levels, np.bool_)
        self.clock = 0
        self.losses = room_for_losses(tables)
        self.is_limited = False

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
        out = prepared(out, np.concatenate([pairs, np.eye(pairs.shape[1])]), scales=True)
        while isinstance(step := out.step, Gather):
            # The output is a copy of the target's row.
            out, row = step.inputs[0], int(step.source[row])
        tables = plain_tables(out, row, present, edit_of, num_edits)
        if tables is None or tables.size * len(_budgets(num_edits)) > MOST_NUMBERS:
            return None
        return cls(tables, len(pairs), every, num_edits)

    def again(self) -> PlainBounding:
        """The same tables and limits with room of their own, for another search at the same time."""
        other = PlainBounding(self.tables, self.differences, self.every, self.num_edits)
        other.room.least_of_all[:], other.room.most_of_all[:] = self.room.least_of_all, self.room.most_of_all
        other.is_limited = self.is_limited
        return other

    def unlimited(self) -> None:
        """Forget the limits of hidden numbers, which hold for one search alone."""
        if self.is_limited:
            self.room.least_of_all[:], self.room.most_of_all[:] = -np.inf, np.inf
            self.ready[:] = False
            self.is_limited = False

    def limit(self, order: NDArray[np.int64], size: int, most: int) -> int:
        """Limit hidden numbers for at most ``size`` of some edits; what it cost, in evaluations."""
        from butfor.oracle.program.bounding.plain.branches import SPENT

        branches = self.begin(order, np.zeros(len(order)), size)
        self.is_limited = True
        self.run(branches, size, np.inf, 0.0, NEVER, -most)
        return int(branches.numbers[SPENT])

    def least_margin(self, made: Sequence[int], free: NDArray[np.int64], most: int) -> float:
        """A lower bound of the margin after the edits in ``made`` and at most ``most`` of the free ones."""
        self.unlimited()
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
            budget_of=self.budget_of, ready=self.ready, waiting=self.waiting, counts=self.counts, stamps=self.stamps,
            begins=self.begins, tight=np.zeros((MOST_LEFT, NUM_KNOWN), np.int64), entered=np.full(size + 2, -1),
            losses=np.zeros((kept + 1, self.differences, self.num_edits)),
            known=np.zeros((kept + 1, self.differences), np.bool_), gaps=np.zeros((size + 2, self.differences)),
            price=np.zeros((size + 2, self.differences)), beyond=np.zeros((size + 2, self.differences)),
            open=np.ones((size + 2, self.differences), np.bool_), again=np.full(size + 2, -1),
            may=np.zeros(self.num_edits, np.int64), promise=np.zeros(self.num_edits), column=np.zeros(len(order)),
            prefixes=np.empty((MOST_PREFIXES, max(size - 1, 0)), np.int64),
            pointers=np.zeros(MOST_PREFIXES + 1, np.int64),
            candidates=np.empty(max(MOST_CANDIDATES, 2 * len(order) + 2), np.int64), numbers=numbers,
        )  # fmt: skip


def _budgets(most: int) -> NDArray[np.int64]:
    """The budgets that intervals are kept for: 0 to 4, then twice as much every other time, at last ``most``."""
    budgets = [0, 1, 2, 3, 4]
    while budgets[-1] < most:
        budgets.append(min(2 * budgets[-2], most) if budgets[-2] > 2 else 6)
    return np.array(budgets)


class PlainSieve(SharedSieve):
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
        plain.unlimited()
        if size > MOST_BY_PROMISE:
            nearest = np.argsort(plain.tables.hops[order], kind="stable")
            order, costs = order[nearest], costs[nearest]
        # Where it is known how much each edit takes off, tighter intervals prune little more.
        asks_from = NEVER if plain.tables.always_has_losses else asks_from
        search = _PlainSearch(plain, plain.begin(order, costs, size), tight, size, limit, needed, asks_from)
        super().__init__(search, MOST_NUMBERS // max(plain.tables.size * len(plain.budget_of), 1))


class _PlainSearch(Search):
    """One search; see `PlainSieve`."""

    def __init__(
        self,
        plain: PlainBounding,
        branches: Branches,
        tight: Callable[[], Bounding | None],
        size: int,
        limit: float,
        needed: float,
        asks_from: int,
    ) -> None:
        self._plain, self._branches, self._tight, self._asks_from = plain, branches, tight, asks_from
        self._size, self._limit, self._needed, self._spent = size, limit, needed, 0

    def run(self, most: int) -> None:
        """Search on; tighter bounds are asked for between two runs of the compiled code."""
        from butfor.oracle.program.bounding.plain.branches import ASKS, CANDIDATES, PREFIXES, SPENT

        numbers = self._branches.numbers
        numbers[[PREFIXES, CANDIDATES, SPENT]] = 0
        if self._worth_limiting:
            numbers[SPENT] = self._plain.limit(self._branches.order, self._size, max(self._spent, 1))
        while True:
            self._plain.run(self._branches, self._size, self._limit, self._needed, self._asks_from, most)
            if not numbers[ASKS]:
                break
            self._answer()
        self._spent += int(numbers[SPENT])

    @property
    def _worth_limiting(self) -> bool:
        few = 2 * self._size < len(self._branches.order)
        return few and self._spent >= LIMITED_AFTER and self._plain.tables.has_losses and not self._plain.is_limited

    def handed_over(self) -> Sieved:
        """A copy of it."""
        from butfor.oracle.program.bounding.plain.branches import CANDIDATES, DONE, PREFIXES, SPENT

        b, numbers = self._branches, self._branches.numbers
        prefixes, candidates = int(numbers[PREFIXES]), int(numbers[CANDIDATES])
        return Sieved(
            b.prefixes[:prefixes].copy(),
            b.candidates[:candidates].copy(),
            b.pointers[: prefixes + 1].copy(),
            int(numbers[SPENT]),
            bool(numbers[DONE]),
        )

    @property
    def first_to_exclude(self) -> int | None:
        """None also where tighter bounds may be asked for, which only one thread may use."""
        from butfor.oracle.program.bounding.plain.branches import BASE, DECIDED

        b, numbers = self._branches, self._branches.numbers
        decided = b.stack[numbers[BASE] : numbers[DECIDED]]
        made = np.flatnonzero(b.status[b.order[decided]] == MADE)
        return int(numbers[BASE] + made[0]) if len(made) and self._asks_from == NEVER else None

    def given_away(self) -> Search:
        """With bounds of its own, which share the tables."""
        from butfor.oracle.program.bounding.plain.branches import BASE, DECIDED, DEPTH, IS_NEW

        plain, theirs, place = self._plain.again(), self._branches, self.first_to_exclude
        assert place is not None
        mine = plain.begin(theirs.order, theirs.costs, self._size)
        # What is decided before is so in both, for good.
        before, edit = theirs.order[theirs.stack[:place]], theirs.order[theirs.stack[place]]
        mine.status[before], mine.status[edit] = theirs.status[before], KEPT
        mine.stack[: place + 1] = theirs.stack[: place + 1]
        depth = int((theirs.status[before] == MADE).sum())
        mine.picked[:depth] = theirs.picked[:depth]
        # Differences that cannot reach the goal in the branches above cannot do so here; all else is found out anew.
        mine.open[:depth] = theirs.open[:depth]
        mine.numbers[[DEPTH, DECIDED, BASE]] = depth, place + 1, place + 1
        mine.numbers[IS_NEW] = 0  # the set of what is made was handed over already
        theirs.numbers[BASE] = place + 1
        return _PlainSearch(plain, mine, self._tight, self._size, self._limit, self._needed, NEVER)

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
