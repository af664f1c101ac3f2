"""What Python sees of the bounds and of the branch and bound search that uses them."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

import numpy as np

from butfor.oracle.base import Sieved
from butfor.oracle.program.bounding import tables
from butfor.oracle.program.bounding.owners import lists, units_of
from butfor.oracle.program.bounding.prepare import prepared
from butfor.oracle.program.bounding.room import Room, untouched
from butfor.oracle.program.bounding.rows import BASE, LEVELS, MOST_TOLD_APART, NUM_WORK, SLOPE
from butfor.oracle.program.bounding.sharing import Search, SharedSieve
from butfor.oracle.program.kernels.flat import AMAX, AMIN, ARRIVING, LINEAR, REDUCE
from butfor.oracle.program.steps import Gather, Map, Reduce, in_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from butfor.oracle.program.bounding.owners import Changes, Units
    from butfor.oracle.program.bounding.search import Found
    from butfor.oracle.program.layout import Layout
    from butfor.oracle.program.steps import Value

__all__ = ["Bounding", "ProgramSieve"]

# How many prefixes and candidates are handed over at once.
MOST_PREFIXES = 1024
MOST_CANDIDATES = 16_384

# How many subsets of an owner's edits are cases of their own where a row depends on other owners.
FEWER_SUBSETS = 16

# Numbers in all rows of a program, for all threads together: limits the memory.
MOST_NUMBERS = 2_000_000

# Losses of maxima that are listed at once, at most: limits the memory.
MOST_LOSSES = 2_000_000

# The status of an edit, as in `entries.py`; `KEPT` is an excluded one.
FREE, MADE, KEPT = range(3)


class Bounding:
    """Bounds on the program of a target over families of graphs. Only one search at a time may use it.

    Args:
        out: the program's scores.
        row: the row of the target.
        pairs: differences of scores, one a row.
        every: whether the margin is the least of these, so that every one must be positive for the goal not to be
            reached; else it is the largest.
        present: which edge columns are there before any edit.
        edit_of: the edit that toggles each column; -1 for none.
        num_edits: how many edits there are.
        changes: the features that edits set.

    Raises:
        TooLarge: too many entries depend on too many edits.
    """

    def __init__(
        self,
        out: Value,
        row: int,
        pairs: NDArray[np.float64],
        every: bool,
        present: NDArray[np.bool_],
        edit_of: NDArray[np.int64],
        num_edits: int,
        changes: Changes,
    ) -> None:
        # The scores are bounded beside their differences: the largest says how much room rounding needs.
        combined = np.concatenate([pairs, np.eye(pairs.shape[1])])
        out = prepared(out, combined)
        while isinstance(step := out.step, Gather):
            # The output is a copy of the target's row.
            out, row = step.inputs[0], int(step.source[row])
        layout, units = units_of(out, row, present, edit_of, num_edits, changes)
        self._size = -1  # of the sets that `margin` was last asked about
        self.every, self.hops = every, _hops(units, num_edits)
        self.work = untouched(NUM_WORK, len(layout.start))
        self.work[BASE], self.work[SLOPE] = layout.start, 0.0
        deletes = np.ones(num_edits, dtype=bool)
        deletes[edit_of[(edit_of >= 0) & ~present]] = False
        self.t, self.f = _packed(layout, units, deletes, changes, _only_lower(out))
        self.t[[tables.OUT_WIDTH, tables.NUM_SCORES]] = pairs.shape

    def again(self) -> Bounding:
        """The same with room of its own, for another search at the same time; nothing in it is up to date."""
        other = copy(self)
        other.t, other.f, other.work = self.t.copy(), self.f.copy(), untouched(*self.work.shape)
        other.work[BASE], other.work[SLOPE] = self.work[BASE], 0.0
        return other

    def least_margin(self, made: Sequence[int], free: NDArray[np.int64], most: int) -> float:
        """A lower bound of the margin after the edits in ``made`` and at most ``most`` of the free ones."""
        from butfor.oracle.program.bounding.search import search

        self._begin(free)
        self.t[tables.DEPTH] = 0
        self.t[self.t[tables.STATUS] + np.asarray(made, dtype=np.int64)] = MADE
        found = _room(0, 1)
        search(self.t, self.f, self.work, found, max(most, 1), np.inf, 0.0, self.every, 0)
        return float(found.margins[0])

    def margin(self, status: NDArray[np.int8], left: int, size: int) -> tuple[float, int]:
        """A lower bound of the margin of a branch with so many edits left, and how many numbers it took.

        Only what depends on edits whose status has changed since the last branch is computed again, as long as the
        whole search is for sets of the same size.
        """
        from butfor.oracle.program.bounding.search import search

        t = self.t
        if size != self._size:
            self._begin(np.empty(0, np.int64))
        # If this is interrupted, all is computed again.
        self._size = -1
        t[tables.DEPTH] = size - left
        known = t[t[tables.STATUS] : t[tables.STATUS] + t[tables.NUM_EDITS]]
        changed = np.flatnonzero(known != status)
        known[changed] = status[changed]
        t[tables.CLOCK] += 1
        owners_from = t[t[tables.OWNERS_FROM] :]
        for edit in changed.tolist():
            owners = t[t[tables.OWNERS] + owners_from[edit] : t[tables.OWNERS] + owners_from[edit + 1]]
            t[t[tables.TOUCHED] + owners] = t[tables.CLOCK]
        found = _room(0, 1)
        search(t, self.f, self.work, found, size, np.inf, 0.0, self.every, 0)
        self._size = size
        return float(found.margins[0]), int(t[tables.WORKED])

    def _begin(self, free: NDArray[np.int64]) -> None:
        """Free these edits, exclude all others, and mark everything as out of date."""
        self._size = -1
        t = self.t
        status, touched = t[tables.STATUS], t[tables.TOUCHED]
        t[status : status + t[tables.NUM_EDITS]] = KEPT
        t[status + np.asarray(free, dtype=np.int64)] = FREE
        t[tables.CLOCK] += 1
        t[touched : t[tables.COMPUTED]] = t[tables.CLOCK]


class ProgramSieve(SharedSieve):
    """All sets of at most so many edits, except those that are proved not to reach the goal.

    Where ``limit`` excludes edits, sets of fewer than ``size`` edits may be left out: search smaller sizes before.

    Args:
        bounding: the bounds; nothing else may use them until the search is done.
        order: the edits, the most promising first. They are decided in this order, but where many may be made, those
            nearest to the target come first: others are then often cut off, and it is known early what arrives there.
        costs: what each of these costs, in this order.
        size: how many edits a set has at most.
        limit: what a set costs at most.
        needed: sets with a larger margin do not reach the goal.
    """

    def __init__(
        self,
        bounding: Bounding,
        order: NDArray[np.int64],
        costs: NDArray[np.float64],
        size: int,
        limit: float,
        needed: float,
    ) -> None:
        bounding._begin(order)
        if size > MOST_TOLD_APART:
            nearest = np.argsort(bounding.hops[order], kind="stable")
            order, costs = order[nearest], costs[nearest]
        t, f = bounding.t, bounding.f
        t[tables.NUM_ORDER] = len(order)
        t[t[tables.ORDER] : t[tables.ORDER] + len(order)] = order
        t[[tables.DEPTH, tables.FLOOR, tables.IS_NEW, tables.DONE, t[tables.NEXT], t[tables.FREE_FROM]]] = 0
        f[t[tables.COST] : t[tables.COST] + len(order)] = costs
        f[t[tables.CHEAPEST] : t[tables.CHEAPEST] + size + 1] = np.append(0.0, np.cumsum(np.sort(costs))[:size])
        search = _ProgramSearch(bounding, size, limit, needed)
        super().__init__(search, MOST_NUMBERS // bounding.work.shape[1])


class _ProgramSearch(Search):
    """One search; see `ProgramSieve`."""

    def __init__(self, bounding: Bounding, size: int, limit: float, needed: float) -> None:
        self._bounding, self._size, self._limit, self._needed = bounding, size, limit, needed
        self._found = _room(max(size - 1, 0), max(MOST_CANDIDATES, 2 * int(bounding.t[tables.NUM_ORDER]) + 2))

    def run(self, most: int) -> None:
        """Search on."""
        from butfor.oracle.program.bounding.search import search

        one = self._bounding
        search(one.t, one.f, one.work, self._found, self._size, self._limit, self._needed, one.every, most)

    def handed_over(self) -> Sieved:
        """A copy of it."""
        from butfor.oracle.program.bounding.search import CANDIDATES, PREFIXES, SPENT

        found = self._found
        prefixes, candidates = int(found.numbers[PREFIXES]), int(found.numbers[CANDIDATES])
        return Sieved(
            found.prefixes[:prefixes].copy(),
            found.candidates[:candidates].copy(),
            found.pointers[: prefixes + 1].copy(),
            int(found.numbers[SPENT]),
            bool(self._bounding.t[tables.DONE]),
        )

    @property
    def first_to_exclude(self) -> int | None:
        """The edit that was made at the least depth which is still to be left."""
        t = self._bounding.t
        floor = int(t[tables.FLOOR])
        return int(t[t[tables.NEXT] + floor]) if t[tables.DEPTH] > floor else None

    def given_away(self) -> Search:
        """With room of its own, in which everything is computed anew."""
        mine = self._bounding.again()
        t, floor = mine.t, int(mine.t[tables.FLOOR])
        order = t[t[tables.ORDER] : t[tables.ORDER] + t[tables.NUM_ORDER]]
        mine._begin(order)
        free_from, next_ = t[t[tables.FREE_FROM] :], t[t[tables.NEXT] :]
        for depth in range(floor):
            t[t[tables.STATUS] + order[free_from[depth] : next_[depth]]] = KEPT
            t[t[tables.STATUS] + order[next_[depth]]] = MADE
        next_[floor] += 1
        t[t[tables.STATUS] + order[free_from[floor] : next_[floor]]] = KEPT
        t[[tables.DEPTH, tables.IS_NEW]] = floor, 0
        self._bounding.t[tables.FLOOR] = floor + 1
        return _ProgramSearch(mine, self._size, self._limit, self._needed)


def _hops(units: Units, num_edits: int) -> NDArray[np.int64]:
    """How far the nearest owner of each edit is from the target: by how many owners its rows are read in turn."""
    readers = np.repeat(np.arange(len(units.unit_owner)), np.diff(units.reads_from))
    steps = (units.unit_owner[readers] != units.unit_owner[units.reads]).astype(np.int64)
    far = len(units.unit_owner)
    of_unit = np.full(far, far)
    of_unit[units.last] = 0
    for _ in range(far):
        before = of_unit.copy()
        np.minimum.at(of_unit, units.reads, of_unit[readers] + steps)
        if np.array_equal(before, of_unit):
            break
    of_owner, of_edit = np.full(len(units.edits_from) - 1, far), np.full(num_edits, far)
    np.minimum.at(of_owner, units.unit_owner, of_unit)
    np.minimum.at(of_edit, np.repeat(np.arange(num_edits), np.diff(units.owners_from)), of_owner[units.owners])
    return of_edit


def _subsets(units: Units, most: int) -> NDArray[np.int64]:
    """How many subsets of its owner's edits are cases of each unit, at most.

    They tell most at the target, whose rows are computed once; those of others that are not exact take long.
    """
    subsets, unit = np.where(units.exact, most, FEWER_SUBSETS), units.last
    while True:
        subsets[unit] = most
        read = np.unique(units.reads[units.reads_from[unit] : units.reads_from[unit + 1]])
        if len(read) != 1:
            return subsets
        # What only the target reads is computed as often as the target's row.
        unit = int(read[0])


def _one_level(units: Units) -> NDArray[np.bool_]:
    """Whether only the search reads what a unit computes."""
    found = np.arange(len(units.unit_owner)) == units.last
    found[units.reads] = False
    return found


def _only_lower(out: Value) -> NDArray[np.bool_]:
    """For each step, whether the margin depends on nothing but the lower ends of the differences in its rows.

    Then linear bounds are computed for no others. (Factors and divisors are taken to be positive; where one is not, the
    bound holds and tells less.)
    """
    pairs, only = in_order(out), {id(out): True}
    for step, value in reversed(pairs):
        for number, one in enumerate(step.inputs):
            keeps_columns = isinstance(step, Gather) or (
                isinstance(step, Reduce) and step.code == "sum" and number == 0
            )
            if isinstance(step, Map) and step.columns[number] is None:
                keeps_columns = step.code == "add" or (step.code in ("mul", "div") and number == 0)
            keeps_columns &= one.width == out.width
            only[id(one)] = only.get(id(one), True) and keeps_columns and only[id(value)]
    return np.array([only[id(value)] for _, value in pairs])


def _tightened(layout: Layout, units: Units) -> NDArray[np.int64]:
    """Which cases of each unit get linear bounds: 0 for none, 1 for those that are numbers of edits, 2 for all.

    They tell something where a matrix mixes the columns of a reduction. Where it reads no rows of other owners, subsets
    have single numbers.
    """
    mixes = np.append(layout.flat.kind == LINEAR, np.zeros(len(units.features), dtype=bool))[units.steps]
    mixing, wide = (np.append(0, np.cumsum(one)) for one in (mixes, mixes & units.depends))
    return sum(((one[units.end] > one[units.begin]).astype(np.int64) for one in (mixing, wide)), np.zeros(1, np.int64))


def _losses(layout: Layout, units: Units, most_top: int) -> int:
    """Room for the losses of all maxima of one owner."""
    flat, total = layout.flat, np.zeros(len(units.steps))
    for step in np.flatnonzero((flat.kind == REDUCE) & (flat.code >= AMAX) & (flat.code <= AMIN)):
        mine = units.steps == step
        arriving = flat.table[flat.tables[step, ARRIVING] + units.rows[mine][:, None] + [0, 1]]
        total[mine] = (np.diff(arriving, axis=1)[:, 0] + most_top + 1) * flat.width[flat.out[step]]
    until = np.append(0, np.cumsum(total))
    return int(min((until[units.end] - until[units.begin]).max(initial=0), MOST_LOSSES))


def _room(length: int, candidates: int) -> Found:
    """Room for prefixes of so many edits, and for so many candidates."""
    from butfor.oracle.program.bounding.search import Found

    return Found(
        np.empty((MOST_PREFIXES, length), np.int64), np.zeros(MOST_PREFIXES + 1, np.int64),
        np.empty(candidates, np.int64), np.zeros(3, np.int64), np.zeros(1),
    )  # fmt: skip


def _packed(
    layout: Layout, units: Units, deletes: NDArray[np.bool_], changes: Changes, only_lower: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """All tables, and room for what is computed."""
    from butfor.oracle.program.bounding.capacity import MOST_CONES
    from butfor.oracle.program.bounding.cases import MOST_SUBSETS
    from butfor.oracle.program.bounding.slopes import MOST_TOP

    flat, pack = layout.flat, tables.Packer()
    room = Room.of(layout, units)
    given_from, given_at, given_edit = lists(room.of_row, len(units.steps), room.hull, room.edit)
    edits, entries, count = len(deletes), layout.num_entries + 1, len(units.unit_owner)
    owned = int(np.diff(units.edits_from).max(initial=0)) + 1
    losses = _losses(layout, units, MOST_TOP)
    for name, number in (
        (tables.NUM_UNITS, count), (tables.NUM_EDITS, edits), (tables.OUT_START, units.out),
        (tables.LAST_UNIT, units.last), (tables.NUM_LOSSES, losses),
    ):  # fmt: skip
        pack.number(name, int(number))
    for name, numbers in (
        (tables.START, flat.start), (tables.WIDTH, flat.width), (tables.STRIDE, flat.stride),
        (tables.FIRST, flat.first),
        (tables.KIND, np.append(flat.kind, np.full(len(units.features), tables.FEATURES))),
        (tables.OUT, np.append(flat.out, units.features)), (tables.INPUT, flat.inputs),
        (tables.ARITY, flat.arity), (tables.CODE, flat.code), (tables.COLUMN, flat.columns),
        (tables.ADDED, flat.added), (tables.PLACE, flat.tables), (tables.TABLE, flat.table),
        (tables.OWNER, units.owner), (tables.STEP, units.steps), (tables.ROW, units.rows),
        (tables.EXPORTED, units.exported), (tables.UNIT_OWNER, units.unit_owner), (tables.BEGIN, units.begin),
        (tables.MIDDLE, units.middle), (tables.END, units.end), (tables.EXACT, units.exact),
        (tables.READS_FROM, units.reads_from), (tables.READS, units.reads), (tables.READS_BY, units.reads_by),
        (tables.UNITS_FROM, units.units_from), (tables.UNITS, units.units_of),
        (tables.EDITS_FROM, units.edits_from), (tables.EDITS, units.edits),
        (tables.OWNERS_FROM, units.owners_from), (tables.OWNERS, units.owners),
        (tables.COUNT_FROM, units.count_from), (tables.COUNT_EDITS, units.count_edits),
        (tables.COUNTS, units.counts), (tables.EDIT_OF, units.edit_of), (tables.PRESENT, units.present),
        (tables.DELETES, deletes), (tables.KEPT_FALLS, room.falls), (tables.GIVEN, room.given),
        (tables.FALLS_KEPT, np.zeros(LEVELS * len(units.steps))), (tables.GIVEN_FROM, given_from),
        (tables.GIVEN_AT, given_at), (tables.GIVEN_EDIT, given_edit),
        (tables.DEPENDS, units.depends), (tables.SUBSETS, _subsets(units, MOST_SUBSETS)),
        (tables.CHANGE_FROM, units.change_from), (tables.CHANGE_EDIT, changes.edit[units.changes]),
        (tables.CHANGE_FEATURE, changes.feature[units.changes]), (tables.STATUS, np.full(edits, KEPT)),
        (tables.TOUCHED, np.zeros(len(units.edits_from) - 1)), (tables.COMPUTED, np.full(count, -1)),
        (tables.BUDGET, np.full(count, -1)), (tables.BINS, np.zeros(MOST_CONES)),
        (tables.OWN_BINS, np.zeros(MOST_CONES)), (tables.TIGHTENED, _tightened(layout, units)),
        (tables.ONE_LEVEL, _one_level(units)),
        (tables.ONLY_LOWER, np.append(only_lower, np.zeros(len(units.features), dtype=bool))),
        (tables.TOP_ENTRY, np.zeros(MOST_TOP)), (tables.LOSS_FROM, np.zeros(len(units.steps) + 1)),
        (tables.LOSS_COLUMN, np.zeros(losses)), (tables.LOSS_ENTRY, np.zeros(losses)),
        (tables.LOSS_SLOT, np.zeros(losses)), (tables.CHOSEN, np.zeros(edits)),
        (tables.SLOT, np.full(edits, -1)), (tables.OPEN, np.zeros(owned)), (tables.SURE, np.zeros(entries)),
        (tables.MAYBE, np.zeros(entries)), (tables.ENTRY_AT, np.zeros(entries)),
        (tables.ENTRY_ROWS, np.zeros(4 * entries)), (tables.ENTRY_GIVEN, np.zeros(entries)),
        (tables.ENTRY_SLOT, np.zeros(entries)), (tables.SUBSET, np.zeros(owned)), (tables.ORDER, np.zeros(edits)),
        (tables.PICKED, np.zeros(edits + 2)), (tables.FREE_FROM, np.zeros(edits + 2)),
        (tables.NEXT, np.zeros(edits + 2)), (tables.LIVE, np.full(count, -1)), (tables.QUEUE, np.zeros(count)),
    ):  # fmt: skip
        pack.whole(name, numbers)
    for name, floats in (
        (tables.PARAMETER, flat.parameters), (tables.MATRIX, flat.matrices), (tables.EFFECT, np.empty(owned)),
        (tables.FALL, np.empty(LEVELS * entries)), (tables.WEIGHT, np.empty(4 * entries)),
        (tables.VALUE, np.empty(2 * entries)), (tables.COST, np.empty(edits)),
        (tables.ROOM_FOR_FALLS, np.zeros(room.falls_size)), (tables.ROOM_FOR_GIVEN, np.zeros(room.given_size)),
        (tables.CHANGE_BEFORE, changes.before[units.changes]), (tables.CHANGE_AFTER, changes.after[units.changes]),
        (tables.CHEAPEST, np.empty(edits + 2)), (tables.ALL_EFFECTS, np.empty(owned)),
        (tables.TOP_VALUE, np.empty(2 * MOST_TOP)), (tables.LOST, np.empty(losses)),
        (tables.FALLEN, np.empty(losses)), (tables.RISEN, np.empty(losses)),
    ):  # fmt: skip
        pack.floats(name, floats)
    t, f = pack.packed()
    for name, begin, size in (
        (tables.KEPT_FALLS, tables.ROOM_FOR_FALLS, len(room.falls)),
        (tables.GIVEN, tables.ROOM_FOR_GIVEN, len(room.given)), (tables.GIVEN_AT, tables.ROOM_FOR_GIVEN, len(given_at)),
    ):  # fmt: skip
        places = t[t[name] : t[name] + size]
        places[places >= 0] += t[begin]
    return t, f
