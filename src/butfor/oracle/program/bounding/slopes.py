"""Reductions in linear bounds: what a linear combination of a row's columns is at least, in a case.

The slopes of the columns are in row `SLOPE` of ``work``. What each free edit of the owner changes is added up in
`ALL_EFFECTS`, over all reductions that a bound is traced back to: the same edits are made in all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from butfor.oracle.program.bounding.capacity import capacity
from butfor.oracle.program.bounding.entries import (
    ends,
    entry_row,
    is_there,
    list_entries,
    list_rows,
    listed,
    usual_ends,
    wide_ends,
)
from butfor.oracle.program.bounding.reductions import all_may_change, increments
from butfor.oracle.program.bounding.rows import (
    BASE,
    EXTREME_HIGH,
    EXTREME_LOW,
    HIGH,
    LOW,
    SLOPE,
    USUAL_HIGH,
    USUAL_LOW,
)
from butfor.oracle.program.bounding.selection import largest
from butfor.oracle.program.bounding.tables import (
    ALL_EFFECTS,
    ARITY,
    BEGIN,
    CODE,
    EDIT_OF,
    END,
    ENTRY_AT,
    ENTRY_GIVEN,
    ENTRY_ROWS,
    ENTRY_SLOT,
    FALL,
    FALLEN,
    KIND,
    LOSS_COLUMN,
    LOSS_ENTRY,
    LOSS_FROM,
    LOSS_SLOT,
    LOST,
    MAYBE_COUNT,
    NUM_LOSSES,
    OUT,
    RISEN,
    ROW,
    SLOT,
    START,
    STEP,
    SURE_COUNT,
    TABLE,
    TOP_ENTRY,
    TOP_VALUE,
    UNIT_OWNER,
    WEIGHT,
    WIDTH,
    beginning,
    place,
)
from butfor.oracle.program.kernels.flat import AMAX, AMIN, EDGE, REDUCE, called, kernel

__all__ = ["MOST_TOP", "extremes_back", "list_losses", "sums_back"]

# Of the entries of a maximum, so many of the largest are told apart.
MOST_TOP = 8


@kernel
def _slot(t: Any, step: int, entry: int) -> int:
    """The slot of the edit that adds or deletes an entry."""
    return t[t[SLOT] + t[t[EDIT_OF] + t[t[TABLE] + place(t, step, EDGE) + entry]]]


# Sums.


@called
def sums_back(
    t: Any, f: Any, work: Any, step: int, row: int, o: int, width: int, owner: int, wide: bool, case: Any, most: int
) -> float:
    """The least of a linear combination of sums; ``most`` is Q. What the owner's edits change is left to be added."""
    total, falling = 0.0, 0
    at_once = most > 0 and all_may_change(t, case, most)
    for c in range(width):
        total += work[SLOPE, o + c] * beginning(t, f, work[BASE], step, row, c)
    for k in range(t[SURE_COUNT] + t[MAYBE_COUNT]):
        entry = listed(t, k)
        there = k < t[SURE_COUNT] or is_there(t, step, entry)
        usual = _combined(t, f, work, step, entry, o, width, owner, wide and not there, case.level)
        if not np.isfinite(usual):
            return -np.inf
        if k >= t[SURE_COUNT]:
            f[t[ALL_EFFECTS] + _slot(t, step, entry)] += -usual if there else usual
        if not there:
            continue
        total += usual
        if at_once:
            fall = usual - _combined(t, f, work, step, entry, o, width, owner, True, case.level)
            if not fall < np.inf:
                return -np.inf
            total -= max(fall, 0.0)
        elif most > 0:
            falls, before = f[t[FALL] + falling :], 0.0
            for level in range(1, case.level + 1):
                fall = usual - _combined(t, f, work, step, entry, o, width, owner, True, level)
                if not fall < np.inf:
                    return -np.inf
                before = max(before, fall)
                falls[level - 1] = before
            if before > 0.0:
                increments(falls, case.level)
                falling += case.level
    return total - largest(f[t[FALL] :], falling, most)


@called
def _combined(
    t: Any, f: Any, work: Any, step: int, entry: int, o: int, width: int, owner: int, wide: bool, level: int
) -> float:
    """The least of a linear combination of what an entry brings in all columns."""
    slopes, total = work[SLOPE, o : o + width], 0.0
    if t[t[ARITY] + step] == 1:
        first, last = entry_row(t, f, work, step, entry, owner, wide, level, width)
        for c in range(width):
            total += max(slopes[c], 0.0) * first[c] + min(slopes[c], 0.0) * last[c]
    else:
        for c in range(width):
            if slopes[c] != 0.0:
                x, y = ends(t, f, work, step, entry, c, owner, wide, level)
                total += slopes[c] * (x if slopes[c] > 0.0 else y)
    return total


# Maxima and minima. For a minimum all signs are turned.


@called
def list_losses(t: Any, f: Any, work: Any, unit: int, case: Any, wide: bool) -> None:
    """For each maximum of a unit: by how much it falls with each entry, and rises.

    What is listed of an entry and a column is a share of the fall if the entry is deleted, one if it only falls as far
    as it can, and by how much the column rises if the entry rises as far as it can. `EXTREME_LOW` and `EXTREME_HIGH`
    have the maximum without any of this.
    """
    count, begin, low, high = 0, t[t[BEGIN] + unit], LOW if wide else USUAL_LOW, HIGH if wide else USUAL_HIGH
    for at in range(begin, t[t[END] + unit]):
        t[t[LOSS_FROM] + at - begin] = count
        step, row = t[t[STEP] + at], t[t[ROW] + at]
        if t[t[KIND] + step] != REDUCE or not AMAX <= t[t[CODE] + step] <= AMIN:
            continue
        list_entries(t, step, row, case.counted)
        changing = wide and capacity(t, at, case) > 0
        list_rows(t, step, t[t[UNIT_OWNER] + unit], wide, case.level)
        width = t[t[WIDTH] + t[t[OUT] + step]]
        o = t[t[START] + t[t[OUT] + step]] + row * width
        for c in range(width):
            if work[low, o + c] == work[high, o + c]:
                # Nobody asks for it: a single number is not traced back.
                continue
            count = _list_column(t, f, work, step, row, o, c, width, wide, changing, count)
    t[t[LOSS_FROM] + t[t[END] + unit] - begin] = count


@called
def _list_column(
    t: Any, f: Any, work: Any, step: int, row: int, o: int, c: int, width: int, wide: bool, changing: bool, count: int
) -> int:
    """List the losses of a column behind ``count`` others; returns how many there are then."""
    turned, sure, entries = t[t[CODE] + step] == AMIN, t[SURE_COUNT], t[SURE_COUNT] + t[MAYBE_COUNT]
    floor, ceiling = work[LOW if wide else USUAL_LOW, o + c], work[HIGH if wide else USUAL_HIGH, o + c]
    if turned:
        floor, ceiling = -ceiling, -floor
    work[EXTREME_LOW, o + c], work[EXTREME_HIGH, o + c] = floor, ceiling
    if count + MOST_TOP + 1 + entries > t[NUM_LOSSES]:
        # There is no room: the interval says it all.
        return count
    kept, highest, most, top, others = 0, -np.inf, -np.inf, -1, -np.inf
    at, rows, given, slots = t[t[ENTRY_AT] :], t[t[ENTRY_ROWS] :], t[t[ENTRY_GIVEN] :], t[t[ENTRY_SLOT] :]
    rising = f[t[WEIGHT] :]
    for k in range(entries):
        before = usual_ends(work, at, rows, k, c)
        after = wide_ends(f, work, at, rows, given, k, c, width) if changing else before
        if turned:
            before, after = (-before[1], -before[0]), (-after[1], -after[0])
        if not (np.isfinite(before[0]) and np.isfinite(before[1]) and np.isfinite(after[0]) and np.isfinite(after[1])):
            return count
        rising[k] = max(before[1], after[1])
        most = max(most, rising[k])
        is_top = (k < sure or slots[k] >= 0) and before[1] > highest
        # What is left where the largest is deleted.
        others = max(others, (rising[top] if top >= 0 else -np.inf) if is_top else rising[k])
        top = k if is_top else top
        if k < sure or slots[k] >= 0:
            highest = max(highest, before[1])
            kept = _insert(t, f, kept, k, before[0], after[0])
    if kept == 0:
        return count
    if sure == 0:
        # All entries may be gone, and an empty row may have more than any of them.
        empty = beginning(t, f, work[BASE], step, row, c)
        empty = min(-empty if turned else empty, ceiling)
        highest, others = max(highest, empty), max(others, empty)
    work[EXTREME_LOW, o + c], work[EXTREME_HIGH, o + c] = f[t[TOP_VALUE]], highest
    for n in range(kept):
        k = t[t[TOP_ENTRY] + n]
        slot = -1 if k < sure else slots[k]
        lost, fallen = _shares(t, f, kept, n, floor)
        if lost > 0.0:
            count = _put(t, f, count, c, k, slot, lost, fallen, 0.0)
    if top >= sure and others < highest:
        count = _put(t, f, count, c, -1, slots[top], 0.0, 0.0, others - highest)
    if most > highest:
        for k in range(entries):
            rise = min(rising[k], ceiling) - highest
            if rise > 0.0:
                added = k >= sure and slots[k] < 0
                slot = -1 - slots[k] if added else -1
                count = _put(t, f, count, c, -1 if added else k, slot, 0.0, 0.0, rise)
    return count


@kernel
def _insert(t: Any, f: Any, kept: int, k: int, usual: float, least: float) -> int:
    """Insert an entry into the list of the largest, the largest first; returns how many are in it."""
    entries, values = t[t[TOP_ENTRY] :], f[t[TOP_VALUE] :]
    if kept == MOST_TOP and not usual > values[2 * (kept - 1)]:
        return kept
    n = kept if kept < MOST_TOP else kept - 1
    while n > 0 and values[2 * (n - 1)] < usual:
        entries[n] = entries[n - 1]
        values[2 * n], values[2 * n + 1] = values[2 * n - 2], values[2 * n - 1]
        n -= 1
    entries[n], values[2 * n], values[2 * n + 1] = k, usual, least
    return min(kept + 1, MOST_TOP)


@kernel
def _shares(t: Any, f: Any, kept: int, n: int, floor: float) -> tuple[float, float]:
    """The share of an entry, the n-th of the largest, in the fall of a maximum to a floor: if it is gone, or falls."""
    values, lost, fallen = f[t[TOP_VALUE] :], 0.0, 0.0
    for j in range(n, kept):
        # From this value down to the next, all of the j + 1 largest have to be gone or fall.
        top = values[2 * j]
        bottom = max(floor, values[2 * j + 2]) if j + 1 < kept else floor
        if not top > bottom:
            continue
        lost += (top - bottom) / (j + 1)
        fallen += max(0.0, top - max(bottom, values[2 * n + 1])) / (j + 1)
    return lost, fallen


@kernel
def _put(t: Any, f: Any, count: int, c: int, k: int, slot: int, lost: float, fallen: float, rise: float) -> int:
    t[t[LOSS_COLUMN] + count], t[t[LOSS_ENTRY] + count], t[t[LOSS_SLOT] + count] = c, k, slot
    f[t[LOST] + count], f[t[FALLEN] + count], f[t[RISEN] + count] = lost, fallen, rise
    return count + 1


@called
def extremes_back(
    t: Any, f: Any, work: Any, step: int, first: int, last: int, o: int, width: int, entries: int, most: int
) -> float:
    """The least of a linear combination of maxima, whose losses are those from ``first`` to ``last``."""
    sign, total = -1.0 if t[t[CODE] + step] == AMIN else 1.0, 0.0
    for c in range(o, o + width):
        slope = sign * work[SLOPE, c]
        if slope != 0.0:
            total += slope * (work[EXTREME_LOW, c] if slope > 0.0 else work[EXTREME_HIGH, c])
    for k in range(entries):
        f[t[FALL] + k] = 0.0
    for n in range(first, last):
        slope, k, slot = sign * work[SLOPE, o + t[t[LOSS_COLUMN] + n]], t[t[LOSS_ENTRY] + n], t[t[LOSS_SLOT] + n]
        if slope > 0.0:
            if slot >= 0:
                f[t[ALL_EFFECTS] + slot] -= slope * f[t[LOST] + n]
            if k >= 0:
                f[t[FALL] + k] -= slope * f[t[FALLEN] + n]
        elif slope < 0.0:
            if k >= 0:
                f[t[FALL] + k] += slope * f[t[RISEN] + n]
            else:
                f[t[ALL_EFFECTS] + slot] += slope * f[t[RISEN] + n]
    return total - largest(f[t[FALL] :], entries, most)
