"""One row of a sum, maximum or minimum over edges, in a case. The proof is at the head of the package."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from butfor.oracle.program.bounding.intervals import known, product
from butfor.oracle.program.bounding.rows import (
    BASE,
    BASE_HIGH,
    HIGH,
    HULL_HIGH,
    HULL_LOW,
    LOW,
    USUAL_HIGH,
    USUAL_LOW,
    read,
)
from butfor.oracle.program.bounding.selection import largest, rank, smallest_of_some
from butfor.oracle.program.bounding.tables import (
    ARITY,
    CHOSEN,
    CODE,
    COLUMN,
    EDIT_OF,
    EFFECT,
    FALL,
    INPUT,
    KEPT_FALLS,
    MAYBE,
    MAYBE_COUNT,
    OPEN_COUNT,
    OUT,
    PRESENT,
    SLOT,
    START,
    STATUS,
    STRIDE,
    SURE,
    SURE_COUNT,
    TABLE,
    WEIGHT,
    WIDTH,
    begin,
    place,
)
from butfor.oracle.program.kernels.flat import AMIN, ARRIVAL, ARRIVING, EDGE, SOURCE, VISIT, called, kernel

__all__ = [
    "FREE",
    "KEPT",
    "MADE",
    "Case",
    "ends",
    "extremes",
    "factor",
    "is_there",
    "keep_falls",
    "list_entries",
    "most_lost",
    "sums",
]

# The status of an edit. `KEPT` is an excluded one: what it would change is kept as it is.
FREE, MADE, KEPT = range(3)


class Case(NamedTuple):
    """Which of an owner's free edits are made; if not ``counted``, they are those marked in `CHOSEN`.

    Attributes:
        counted: whether only the number of edits is known, not which they are.
        least, most: the number of edits; both are the same unless the case is a range.
        level: the level at which hulls of other owners' rows are read.
        budget: how many free edits are made in all, at most.
    """

    counted: bool
    least: int
    most: int
    level: int
    budget: int


@kernel
def list_entries(t: Any, step: int, row: int, counted: bool) -> None:
    """List the entries of a row that are sure to be there in this case, and those that may be."""
    table, arriving, arrival = t[t[TABLE] :], place(t, step, ARRIVING), place(t, step, ARRIVAL)
    edges = place(t, step, EDGE)
    sure = maybe = 0
    for k in range(table[arriving + row], table[arriving + row + 1]):
        entry = table[arrival + k]
        column = table[edges + entry]
        there, edit = True, -1
        if column >= 0:
            there, edit = t[t[PRESENT] + column] != 0, t[t[EDIT_OF] + column]
        if edit >= 0:
            if t[t[STATUS] + edit] == FREE and counted:
                t[t[MAYBE] + maybe] = entry
                maybe += 1
                continue
            if t[t[STATUS] + edit] == MADE or (t[t[STATUS] + edit] == FREE and t[t[CHOSEN] + edit] != 0):
                there = not there
        if there:
            t[t[SURE] + sure] = entry
            sure += 1
    t[SURE_COUNT], t[MAYBE_COUNT] = sure, maybe


@kernel
def is_there(t: Any, step: int, entry: int) -> bool:
    """Whether an entry that an edit toggles is there before any edit."""
    return t[t[PRESENT] + t[t[TABLE] + place(t, step, EDGE) + entry]] != 0


@kernel
def ends(t: Any, work: Any, step: int, entry: int, c: int, owner: int, wide: bool, level: int) -> tuple[float, float]:
    """The interval of what an entry brings in a column."""
    a, table = t[t[INPUT] + 3 * step], t[t[TABLE] :]
    source = table[place(t, step, SOURCE) + entry]
    low, high = read(t, a, source, owner, wide, level)
    i = t[t[START] + a] + source * t[t[STRIDE] + a] + c
    if t[t[ARITY] + step] == 1:
        return work[low, i], work[high, i]
    first, last = factor(t, work, step, entry, c, owner, wide, level)
    return product(work[low, i], work[high, i], first, last)


@kernel
def factor(t: Any, work: Any, step: int, entry: int, c: int, owner: int, wide: bool, level: int) -> tuple[float, float]:
    """The interval of an entry's factor in a sum, or of its score in a softmax."""
    b, m = t[t[INPUT] + 3 * step + 1], t[t[COLUMN] + 3 * step + 1]
    low, high = read(t, b, entry, owner, wide, level)
    j = t[t[START] + b] + entry * t[t[STRIDE] + b] + (c if m < 0 else t[t[TABLE] + m + c])
    return work[low, j], work[high, j]


# Sums.


@called
def sums(t: Any, f: Any, work: Any, step: int, row: int, owner: int, wide: bool, case: Any, capacity: int) -> None:
    """A row of sums; ``capacity`` is Q, by `_capacity`."""
    low, high = (LOW, HIGH) if wide else (USUAL_LOW, USUAL_HIGH)
    value, a = t[t[OUT] + step], t[t[INPUT] + 3 * step]
    width = t[t[WIDTH] + value]
    o = t[t[START] + value] + row * width
    least, most = work[low, o : o + width], work[high, o : o + width]
    begin(t, f, work[BASE], step, row, least)
    begin(t, f, work[BASE], step, row, most)
    for k in range(t[SURE_COUNT] + t[MAYBE_COUNT]):
        entry = t[t[SURE] + k] if k < t[SURE_COUNT] else t[t[MAYBE] + k - t[SURE_COUNT]]
        if k >= t[SURE_COUNT] and not is_there(t, step, entry):
            continue
        if t[t[ARITY] + step] == 1:
            source = t[t[TABLE] + place(t, step, SOURCE) + entry]
            al, ah = read(t, a, source, owner, False, 0)
            i = t[t[START] + a] + source * t[t[STRIDE] + a]
            first, last = work[al, i : i + width], work[ah, i : i + width]
            for c in range(width):
                least[c] += first[c]
                most[c] += last[c]
        else:
            for c in range(width):
                x, y = ends(t, work, step, entry, c, owner, False, 0)
                least[c] += x
                most[c] += y
    for c in range(width):
        x, y = least[c], most[c]
        if wide and capacity > 0:
            x -= _most_change(t, f, work, step, c, owner, case, capacity, False)
            y += _most_change(t, f, work, step, c, owner, case, capacity, True)
        if t[MAYBE_COUNT] > 0:
            x, y = _with_toggled(t, f, work, step, c, owner, wide, case, x, y)
        finite = np.isfinite(x) and np.isfinite(y) and x <= y
        least[c], most[c] = (x, y) if finite else (-np.inf, np.inf)


@kernel
def _most_change(
    t: Any, f: Any, work: Any, step: int, c: int, owner: int, case: Any, capacity: int, upwards: bool
) -> float:
    """By how much all entries together can fall below their usual lower ends, or rise above their upper ends."""
    count, width = 0, t[t[WIDTH] + t[t[OUT] + step]]
    for k in range(t[SURE_COUNT] + t[MAYBE_COUNT]):
        entry = t[t[SURE] + k] if k < t[SURE_COUNT] else t[t[MAYBE] + k - t[SURE_COUNT]]
        kept = t[t[KEPT_FALLS] + place(t, step, VISIT) + entry]
        if kept >= 0:
            count += _kept_falls(t, f, kept + upwards * case.level * width + c, width, case.level, count)
            continue
        usual = ends(t, work, step, entry, c, owner, False, 0)
        falls = f[t[FALL] + count :]
        before = 0.0
        for level in range(1, case.level + 1):
            worst = ends(t, work, step, entry, c, owner, True, level)
            fall = worst[1] - usual[1] if upwards else usual[0] - worst[0]
            if not fall < np.inf:
                return np.inf
            before = max(before, fall)
            falls[level - 1] = before
        if before > 0.0:
            _increments(falls, case.level)
            count += case.level
    return largest(f[t[FALL] :], count, capacity)


@kernel
def _kept_falls(t: Any, f: Any, kept: int, width: int, levels: int, count: int) -> int:
    """Append the increments of an entry that were kept; return how many."""
    if f[kept] == 0.0:
        return 0
    for j in range(levels):
        f[t[FALL] + count + j] = f[kept + j * width]
    return levels


@called
def keep_falls(t: Any, f: Any, work: Any, step: int, row: int, levels: int) -> None:
    """Keep the increments of each entry's falls and rises, where these are the same in all cases of the owner."""
    a, width, table = t[t[INPUT] + 3 * step], t[t[WIDTH] + t[t[OUT] + step]], t[t[TABLE] :]
    arriving, arrival = place(t, step, ARRIVING), place(t, step, ARRIVAL)
    for k in range(table[arriving + row], table[arriving + row + 1]):
        entry = table[arrival + k]
        kept = t[t[KEPT_FALLS] + place(t, step, VISIT) + entry]
        if kept < 0:
            continue
        i = t[t[START] + a] + table[place(t, step, SOURCE) + entry] * t[t[STRIDE] + a]
        for upwards in range(2):
            for c in range(width):
                falls = f[t[FALL] :]
                before = 0.0
                for level in range(1, levels + 1):
                    fall = work[BASE, i + c] - work[HULL_LOW + level, i + c]
                    if upwards:
                        fall = work[HULL_HIGH + level, i + c] - work[BASE_HIGH, i + c]
                    before = max(before, fall) if fall < np.inf else np.inf
                    falls[level - 1] = before
                known_falls = before < np.inf
                if known_falls:
                    _increments(falls, levels)
                for level in range(levels):
                    # One edit may make an unknown entry fall without limit.
                    f[kept + (upwards * levels + level) * width + c] = falls[level] if known_falls else -np.inf


@kernel
def _increments(falls: Any, levels: int) -> None:
    """Turn D(1), D(2), D(3), which never fall, into the increments of their concave hull, with their signs turned."""
    reached = 0.0
    for j in range(levels):
        step = 0.0
        for k in range(j, levels):
            step = max(step, (falls[k] - reached) / (k - j + 1))
        reached += step
        falls[j] = -step


@kernel
def _with_toggled(
    t: Any, f: Any, work: Any, step: int, c: int, owner: int, wide: bool, case: Any, x: float, y: float
) -> tuple[float, float]:
    """The ends of a sum, from those without free edits of the owner, in a case that is only a number of edits."""
    for upwards in (False, True):
        for k in range(t[OPEN_COUNT]):
            f[t[EFFECT] + k] = 0.0
        for k in range(t[MAYBE_COUNT]):
            entry = t[t[MAYBE] + k]
            there = is_there(t, step, entry)
            first, last = ends(t, work, step, entry, c, owner, wide and not there, case.level)
            slot = t[t[SLOT] + t[t[EDIT_OF] + t[t[TABLE] + place(t, step, EDGE) + entry]]]
            brought = last if upwards else first
            effect = -brought if there else brought
            # Only smallest effects are looked for, so for the upper end the signs are turned.
            f[t[EFFECT] + slot] += -effect if upwards else effect
            if np.isnan(f[t[EFFECT] + slot]):
                f[t[EFFECT] + slot] = -np.inf
        changed = smallest_of_some(f[t[EFFECT] :], t[OPEN_COUNT], case.least, case.most)
        if upwards:
            y -= changed
        else:
            x += changed
    return x, y


# Maxima and minima.


@called
def extremes(t: Any, f: Any, work: Any, step: int, row: int, owner: int, wide: bool, case: Any, capacity: int) -> None:
    """A row of maxima or minima; ``capacity`` is Q, by `_capacity`."""
    low, high = (LOW, HIGH) if wide else (USUAL_LOW, USUAL_HIGH)
    value = t[t[OUT] + step]
    width = t[t[WIDTH] + value]
    o = t[t[START] + value] + row * width
    again = t[MAYBE_COUNT] == 0 and not wide and case.most > 0
    if again and _extremes_again(t, work, step, row, owner):
        return
    begin(t, f, work[BASE], step, row, work[low, o : o + width])
    wide = wide and capacity > 0
    if t[MAYBE_COUNT] == 0 and not wide:
        _usual_extremes(t, work, step, o, owner, low, high)
        return
    lost = most_lost(t, f, step, case)
    turned = t[t[CODE] + step] == AMIN
    for c in range(width):
        empty = -work[low, o + c] if turned else work[low, o + c]
        x, y = _extreme(t, f, work, step, c, owner, wide, case, capacity, lost, empty, turned)
        work[low, o + c], work[high, o + c] = (-y, -x) if turned else (x, y)


@kernel
def _extremes_again(t: Any, work: Any, step: int, row: int, owner: int) -> bool:
    """The base, with only those columns computed again whose extreme is deleted or exceeded by an added entry.

    False where all have to be: base or case has no entry, numbers are not single, or an entry is the owner's own row.
    """
    a, value, table = t[t[INPUT] + 3 * step], t[t[OUT] + step], t[t[TABLE] :]
    width, turned = t[t[WIDTH] + value], t[t[CODE] + step] == AMIN
    o = t[t[START] + value] + row * width
    extreme, before = work[USUAL_LOW, o : o + width], work[BASE, o : o + width]
    single = True
    for c in range(width):
        single &= before[c] == work[BASE_HIGH, o + c] and np.isfinite(before[c])
        extreme[c] = before[c]
    arriving, arrival, some = place(t, step, ARRIVING), place(t, step, ARRIVAL), False
    for k in range(table[arriving + row], table[arriving + row + 1]):
        entry = table[arrival + k]
        column, source = table[place(t, step, EDGE) + entry], table[place(t, step, SOURCE) + entry]
        al, ah = read(t, a, source, owner, False, 0)
        if al == USUAL_LOW:
            return False
        edit = -1 if column < 0 else t[t[EDIT_OF] + column]
        there = column < 0 or t[t[PRESENT] + column] != 0
        if edit >= 0 and t[t[STATUS] + edit] == MADE:
            there = not there
        some |= there
        if edit < 0 or t[t[STATUS] + edit] != FREE or t[t[CHOSEN] + edit] == 0:
            continue
        i = t[t[START] + a] + source * t[t[STRIDE] + a]
        first, last = work[al, i : i + width], work[ah, i : i + width]
        for c in range(width):
            single &= first[c] == last[c] and np.isfinite(first[c])
            # The extreme is deleted, or a more extreme entry is added: this column is computed again.
            beyond = not there and (first[c] < before[c] if turned else first[c] > before[c])
            if first[c] == before[c] or beyond:
                extreme[c] = np.nan
    if not single or not some or t[SURE_COUNT] == 0:
        return False
    for c in range(width):
        if extreme[c] != extreme[c]:
            for k in range(t[SURE_COUNT]):
                x, y = ends(t, work, step, t[t[SURE] + k], c, owner, False, 0)
                if x != y or not np.isfinite(x):
                    return False
                if k == 0 or (x < extreme[c] if turned else x > extreme[c]):
                    extreme[c] = x
        work[USUAL_HIGH, o + c] = extreme[c]
    return True


@kernel
def _usual_extremes(t: Any, work: Any, step: int, o: int, owner: int, low: int, high: int) -> None:
    """A row of extremes where all entries are sure to be there and as usual: whole rows at a time, which is quicker."""
    a, width, turned = t[t[INPUT] + 3 * step], t[t[WIDTH] + t[t[OUT] + step]], t[t[CODE] + step] == AMIN
    least, most = work[low, o : o + width], work[high, o : o + width]
    for c in range(width):
        most[c] = least[c]
    finite = True
    for k in range(t[SURE_COUNT]):
        source = t[t[TABLE] + place(t, step, SOURCE) + t[t[SURE] + k]]
        al, ah = read(t, a, source, owner, False, 0)
        i = t[t[START] + a] + source * t[t[STRIDE] + a]
        first, last = work[al, i : i + width], work[ah, i : i + width]
        for c in range(width):
            finite &= np.isfinite(first[c]) and np.isfinite(last[c])
        if k == 0:
            for c in range(width):
                least[c], most[c] = first[c], last[c]
        elif turned:
            for c in range(width):
                least[c], most[c] = min(least[c], first[c]), min(most[c], last[c])
        else:
            for c in range(width):
                least[c], most[c] = max(least[c], first[c]), max(most[c], last[c])
    if not finite:
        for c in range(width):
            least[c], most[c] = -np.inf, np.inf


@kernel
def most_lost(t: Any, f: Any, step: int, case: Any) -> int:
    """How many of the entries that are there before any edit can be deleted in a case, at most."""
    there = at_once = 0
    for k in range(t[OPEN_COUNT]):
        f[t[EFFECT] + k] = 0.0
    for k in range(t[MAYBE_COUNT]):
        if is_there(t, step, t[t[MAYBE] + k]):
            slot = t[t[SLOT] + t[t[EDIT_OF] + t[t[TABLE] + place(t, step, EDGE) + t[t[MAYBE] + k]]]]
            f[t[EFFECT] + slot] += 1.0
            there += 1
            at_once = max(at_once, int(f[t[EFFECT] + slot]))
    return min(there, at_once * case.most)


@kernel
def _extreme(
    t: Any, f: Any, work: Any, step: int, c: int, owner: int, wide: bool, case: Any, capacity: int,
    lost: int, empty: float, turned: bool,
) -> tuple[float, float]:  # fmt: skip
    """The ends of a maximum; if ``turned``, of a minimum, as the maximum of numbers with their signs turned."""
    sure, count = t[SURE_COUNT], 0
    certain, worst, highest = -np.inf, np.inf, -np.inf
    usual, wides = f[t[FALL] :], f[t[WEIGHT] :]
    for k in range(sure + t[MAYBE_COUNT]):
        entry = t[t[SURE] + k] if k < sure else t[t[MAYBE] + k - sure]
        there = k < sure or is_there(t, step, entry)
        before = ends(t, work, step, entry, c, owner, False, 0)
        after = ends(t, work, step, entry, c, owner, wide, case.level) if wide else before
        if turned:
            before, after = (-before[1], -before[0]), (-after[1], -after[0])
        if not (np.isfinite(before[0]) and np.isfinite(after[0]) and np.isfinite(after[1]) and np.isfinite(before[1])):
            return -np.inf, np.inf
        highest, worst = max(highest, after[1]), min(worst, after[0])
        if k < sure:
            certain = max(certain, after[0])
        if there:
            usual[count], wides[count] = -before[0], -after[0]
            count += 1
    changed = capacity if wide else 0
    # First among entries that are sure to be there, then among all, of which some may be deleted.
    certain = max(certain, -rank(usual, min(sure, count), changed + 1))
    certain = max(certain, -rank(wides, count, lost + 1))
    certain = max(certain, -rank(usual, count, changed + lost + 1))
    if sure == 0 and count - lost <= 0:
        # All entries may be gone.
        certain, highest = min(worst, empty), max(highest, empty)
    return known(certain, highest)
