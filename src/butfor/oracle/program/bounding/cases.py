"""All cases of a unit, and which units have to be computed again after the search has decided or freed an edit."""

from __future__ import annotations

from typing import Any

from butfor.oracle.program.bounding.backwards import tighten
from butfor.oracle.program.bounding.capacity import capacity
from butfor.oracle.program.bounding.entries import FREE, MADE, Case, given_row, list_entries
from butfor.oracle.program.bounding.extremes import extremes
from butfor.oracle.program.bounding.reductions import all_may_change, keep_falls, sums
from butfor.oracle.program.bounding.rows import (
    BASE,
    BASE_HIGH,
    HIGH,
    HULL_HIGH,
    HULL_LOW,
    LEVELS,
    LOW,
    MOST_TOLD_APART,
    USUAL_HIGH,
    USUAL_LOW,
    row,
)
from butfor.oracle.program.bounding.softmax import softmax
from butfor.oracle.program.bounding.tables import (
    BEGIN,
    BUDGET,
    CHANGE_AFTER,
    CHANGE_BEFORE,
    CHANGE_EDIT,
    CHANGE_FEATURE,
    CHANGE_FROM,
    CHOSEN,
    CLOCK,
    CODE,
    COMPUTED,
    DEPENDS,
    EDITS,
    EDITS_FROM,
    END,
    EXACT,
    EXPORTED,
    FALLS_KEPT,
    FEATURES,
    FIRST,
    GIVEN_AT,
    GIVEN_EDIT,
    GIVEN_FROM,
    KIND,
    MAYBE_COUNT,
    MIDDLE,
    NUM_UNITS,
    ONE_LEVEL,
    OPEN,
    OPEN_COUNT,
    OUT,
    OWNERS,
    OWNERS_FROM,
    READS,
    READS_FROM,
    ROW,
    SLOT,
    START,
    STATUS,
    STEP,
    SUBSET,
    SUBSETS,
    SURE_COUNT,
    TIGHTENED,
    TOUCHED,
    UNIT_OWNER,
    WIDTH,
    WORKED,
)
from butfor.oracle.program.kernels.flat import REDUCE, SHARE, SOFTMAX, called, inlined, kernel

__all__ = ["bound", "set_status"]

# At most so many subsets of an owner's edits are cases of their own; `SUBSETS` says how many for each unit. Beyond that
# a case is a number of edits: each number up to MOST_NUMBERS, then ranges that grow by an eighth.
MOST_SUBSETS = 64
MOST_NUMBERS = 16

# An entry of a softmax, which is bounded in several steps, takes as long as so many of a sum.
SOFTMAX_WORK = 5


@kernel
def set_status(t: Any, edit: int, status: int) -> None:
    """Change the status of an edit, and mark its owners as touched: what was computed for them is out of date."""
    t[t[STATUS] + edit] = status
    t[CLOCK] += 1
    for k in range(t[t[OWNERS_FROM] + edit], t[t[OWNERS_FROM] + edit + 1]):
        t[t[TOUCHED] + t[t[OWNERS] + k]] = t[CLOCK]


@inlined
def bound(t: Any, f: Any, work: Any, budget: int, largest: int) -> None:
    """Bring all hulls up to date, where at most ``budget`` free edits are made.

    Exact units are computed for ``largest``, the size of the whole search, so that they hold for every budget.
    """
    t[CLOCK] += 1
    for unit in range(t[NUM_UNITS]):
        if _is_out_of_date(t, unit, budget):
            _evaluate(t, f, work, unit, largest if t[t[EXACT] + unit] != 0 else budget)
            t[t[COMPUTED] + unit], t[t[BUDGET] + unit] = t[CLOCK], budget


@kernel
def _is_out_of_date(t: Any, unit: int, budget: int) -> bool:
    computed = t[t[COMPUTED] + unit]
    before = t[t[BUDGET] + unit]
    other_budget = before < budget or budget <= MOST_TOLD_APART < before
    other_budget |= before != budget and t[t[ONE_LEVEL] + unit] != 0
    if (other_budget and t[t[EXACT] + unit] == 0) or t[t[TOUCHED] + t[t[UNIT_OWNER] + unit]] > computed:
        return True
    for k in range(t[t[READS_FROM] + unit], t[t[READS_FROM] + unit + 1]):
        if t[t[COMPUTED] + t[t[READS] + k]] > computed:
            return True
    return False


@inlined
def _evaluate(t: Any, f: Any, work: Any, unit: int, budget: int) -> None:
    """Compute all cases of a unit, and the hulls that others read."""
    owner = t[t[UNIT_OWNER] + unit]
    count = 0
    for k in range(t[t[EDITS_FROM] + owner], t[t[EDITS_FROM] + owner + 1]):
        if t[t[STATUS] + t[t[EDITS] + k]] == FREE:
            t[t[OPEN] + count] = t[t[EDITS] + k]
            t[t[SLOT] + t[t[EDITS] + k]] = count
            count += 1
    t[OPEN_COUNT] = count
    largest, numbers = min(count, budget), MOST_NUMBERS
    if not _counts(t, unit):
        numbers = LEVELS - 1 if budget <= MOST_TOLD_APART else 0
    most_subsets = t[t[SUBSETS] + unit]
    # With many edits to make, subsets say something only if there is one for all that may be made.
    few = budget <= MOST_TOLD_APART or (count < MOST_NUMBERS and 1 << count <= most_subsets)
    size, most, subsets, counted = 0, 0, 1, False
    while size <= largest:
        _compute(t, f, work, unit, counted, size, most, budget)
        if not counted and _next_subset(t, size, count):
            continue
        # Subsets one size larger, or only their number where there are too many.
        size = most + 1
        subsets += _choose(count, size)
        counted = counted or subsets > most_subsets or not few
        most = size
        if counted and size > numbers:
            most = min(size + size // 8, largest) if numbers == MOST_NUMBERS else largest
        if not counted and size <= largest:
            _first_subset(t, size)
    for k in range(count):
        t[t[SLOT] + t[t[OPEN] + k]] = -1


@inlined
def _compute(t: Any, f: Any, work: Any, unit: int, counted: bool, size: int, most: int, budget: int) -> None:
    """Compute a case with ``size`` to ``most`` edits, and widen the hulls of all levels that it belongs to."""
    _run(t, f, work, unit, Case(counted, size, most, 0, 0), False)
    if size == 0:
        _keep_base(t, work, unit)
    first = min(max(size, 1), LEVELS)
    tightened = t[t[TIGHTENED] + unit] + counted > 1
    if t[t[EXACT] + unit] != 0:
        if tightened:
            tighten(t, f, work, unit, Case(counted, size, most, 0, 0), False)
        for level in range(first, LEVELS + 1):
            _export(t, f, work, unit, USUAL_LOW, USUAL_HIGH, level, counted, size == 0)
        return
    if budget > MOST_TOLD_APART:
        case = Case(counted, size, most, LEVELS, budget)
        _run(t, f, work, unit, case, True)
        if tightened:
            tighten(t, f, work, unit, case, True)
        for level in range(1, LEVELS + 1):
            _export(t, f, work, unit, LOW, HIGH, level, counted, size == 0)
        return
    last = min(budget, LEVELS)
    for level in range(last if t[t[ONE_LEVEL] + unit] != 0 else first, last + 1):
        case = Case(counted, size, most, level, level if level < LEVELS else budget)
        _run(t, f, work, unit, case, True)
        if tightened:
            tighten(t, f, work, unit, case, True)
        _export(t, f, work, unit, LOW, HIGH, level, counted, size == 0)


@kernel
def _counts(t: Any, unit: int) -> bool:
    """Whether a unit counts entries, as for a mean, or weighs them: then it says much how many are gone.

    Not where an exact unit weighs them: with more edits the ends of a weighted mean only move apart, so that one case
    for many numbers of edits says what all of them do.
    """
    for at in range(t[t[BEGIN] + unit], t[t[END] + unit]):
        step = t[t[STEP] + at]
        if t[t[KIND] + step] == REDUCE:
            counts = t[t[CODE] + step] <= SHARE and t[t[WIDTH] + t[t[OUT] + step]] == 1
            if counts or (t[t[CODE] + step] == SOFTMAX and t[t[EXACT] + unit] == 0):
                return True
    return False


@kernel
def _choose(count: int, size: int) -> int:
    """How many subsets of a size there are; MOST_SUBSETS + 1 if more than MOST_SUBSETS."""
    number = 1
    for k in range(size):
        number = number * (count - k) // (k + 1)
        if number > MOST_SUBSETS:
            return MOST_SUBSETS + 1
    return number


@kernel
def _first_subset(t: Any, size: int) -> None:
    for k in range(size):
        t[t[SUBSET] + k] = k
        t[t[CHOSEN] + t[t[OPEN] + k]] = 1


@kernel
def _next_subset(t: Any, size: int, count: int) -> bool:
    """Choose the next subset of a size. After the last one, choose nothing and return False."""
    places = t[t[SUBSET] :]
    for k in range(size):
        t[t[CHOSEN] + t[t[OPEN] + places[k]]] = 0
    last = size - 1
    while last >= 0 and places[last] == count - size + last:
        last -= 1
    if last < 0:
        return False
    places[last] += 1
    for k in range(last + 1, size):
        places[k] = places[k - 1] + 1
    for k in range(size):
        t[t[CHOSEN] + t[t[OPEN] + places[k]]] = 1
    return True


@called
def _run(t: Any, f: Any, work: Any, unit: int, case: Any, wide: bool) -> None:
    """Compute all rows of a unit in a case, with rows of other owners as usual or wide."""
    owner = t[t[UNIT_OWNER] + unit]
    for at in range(t[t[BEGIN] + unit], t[t[END] + unit]):
        step, number = t[t[STEP] + at], t[t[ROW] + at]
        width = t[t[WIDTH] + t[t[OUT] + step]]
        if wide and t[t[DEPENDS] + at] == 0:
            _copy_usual(t, work, t[t[OUT] + step], number)
            t[WORKED] += width
            continue
        if t[t[KIND] + step] == FEATURES:
            _features(t, f, work, step, number, wide, case.counted)
            continue
        if t[t[KIND] + step] != REDUCE:
            t[WORKED] += width
            row(t, f, work, step, number, owner, wide, case.level, case.most > 0)
            continue
        list_entries(t, step, number, case.counted)
        entries = 1 + t[SURE_COUNT] + t[MAYBE_COUNT]
        t[WORKED] += width * entries * (SOFTMAX_WORK if t[t[CODE] + step] == SOFTMAX else 1)
        most = capacity(t, at, case) if wide else 0
        if t[t[CODE] + step] <= SHARE:
            kept = t[FALLS_KEPT] + LEVELS * at + case.level - 1
            if most > 0 and t[kept] != t[CLOCK] and not all_may_change(t, case, most):
                keep_falls(t, f, work, step, number, owner, case.level)
                t[kept] = t[CLOCK]
            sums(t, f, work, step, number, owner, wide, case, most)
        elif t[t[CODE] + step] == SOFTMAX:
            softmax(t, f, work, step, number, owner, wide, case, most)
        else:
            extremes(t, f, work, step, number, owner, wide, case, most)


@kernel
def _features(t: Any, f: Any, work: Any, step: int, number: int, wide: bool, counted: bool) -> None:
    """A row of features, some of which edits set; where it is open which edits are made, a hull of all values."""
    low, high = (LOW, HIGH) if wide else (USUAL_LOW, USUAL_HIGH)
    value = t[t[OUT] + step]
    o, place = t[t[START] + value] + number * t[t[WIDTH] + value], t[t[FIRST] + value] + number
    begin, end = t[t[CHANGE_FROM] + place], t[t[CHANGE_FROM] + place + 1]
    for c in range(o, o + t[t[WIDTH] + value]):
        work[low, c] = work[high, c] = work[BASE, c]
    for k in range(begin, end):
        at = o + t[t[CHANGE_FEATURE] + k]
        work[low, at] = work[high, at] = f[t[CHANGE_BEFORE] + k]
    for is_open in (False, True):
        for k in range(begin, end):
            at, edit, after = o + t[t[CHANGE_FEATURE] + k], t[t[CHANGE_EDIT] + k], f[t[CHANGE_AFTER] + k]
            free = t[t[STATUS] + edit] == FREE
            if is_open and free and counted:
                work[low, at], work[high, at] = min(work[low, at], after), max(work[high, at], after)
            elif not is_open and (t[t[STATUS] + edit] == MADE or (free and not counted and t[t[CHOSEN] + edit] != 0)):
                work[low, at] = work[high, at] = after


@kernel
def _keep_base(t: Any, work: Any, unit: int) -> None:
    """Keep the usual rows of the case in which no free edit is made as the base, for other owners and later cases."""
    for at in range(t[t[BEGIN] + unit], t[t[END] + unit]):
        value = t[t[OUT] + t[t[STEP] + at]]
        o = t[t[START] + value] + t[t[ROW] + at] * t[t[WIDTH] + value]
        for c in range(o, o + t[t[WIDTH] + value]):
            work[BASE, c], work[BASE_HIGH, c] = work[USUAL_LOW, c], work[USUAL_HIGH, c]


@kernel
def _copy_usual(t: Any, work: Any, value: int, number: int) -> None:
    """A row that depends on no other owner is wide as it is usually."""
    o = t[t[START] + value] + number * t[t[WIDTH] + value]
    for c in range(o, o + t[t[WIDTH] + value]):
        work[LOW, c], work[HIGH, c] = work[USUAL_LOW, c], work[USUAL_HIGH, c]


@kernel
def _export(
    t: Any, f: Any, work: Any, unit: int, low: int, high: int, level: int, counted: bool, is_first: bool
) -> None:
    """Widen the hulls of a level, which others read, by the case that was computed; the first case begins them."""
    for at in range(t[t[MIDDLE] + unit], t[t[END] + unit]):
        if t[t[EXPORTED] + at] == 0:
            continue
        value = t[t[OUT] + t[t[STEP] + at]]
        width = t[t[WIDTH] + value]
        o = t[t[START] + value] + t[t[ROW] + at] * width
        first, last = work[low, o : o + width], work[high, o : o + width]
        least, most = work[HULL_LOW + level, o : o + width], work[HULL_HIGH + level, o : o + width]
        _widen(least, most, first, last, is_first)
        for k in range(t[t[GIVEN_FROM] + at], t[t[GIVEN_FROM] + at + 1]):
            if counted or t[t[CHOSEN] + t[t[GIVEN_EDIT] + k]] == 0:
                i = given_row(t[t[GIVEN_AT] + k], level, width)
                _widen(f[i : i + width], f[i + width : i + 2 * width], first, last, is_first)


@kernel
def _widen(least: Any, most: Any, first: Any, last: Any, is_first: bool) -> None:
    if is_first:
        for c in range(len(least)):
            least[c], most[c] = first[c], last[c]
    else:
        for c in range(len(least)):
            least[c], most[c] = min(least[c], first[c]), max(most[c], last[c])
