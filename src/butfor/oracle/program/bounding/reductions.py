"""One row of a sum over edges, in a case. The proof is at the head of the package."""

from __future__ import annotations

from typing import Any

import numpy as np

from butfor.oracle.program.bounding.entries import ends, entry_row, is_there, list_rows, listed, usual_ends, wide_ends
from butfor.oracle.program.bounding.rows import BASE, BASE_HIGH, FALLS, HIGH, LOW, USUAL_HIGH, USUAL_LOW
from butfor.oracle.program.bounding.selection import largest, smallest_of_some
from butfor.oracle.program.bounding.tables import (
    ARITY,
    EFFECT,
    ENTRY_AT,
    ENTRY_GIVEN,
    ENTRY_ROWS,
    ENTRY_SLOT,
    FALL,
    INPUT,
    KEPT_FALLS,
    MAYBE,
    MAYBE_COUNT,
    OPEN_COUNT,
    OUT,
    START,
    STRIDE,
    SURE_COUNT,
    TABLE,
    WIDTH,
    begin,
    place,
)
from butfor.oracle.program.kernels.flat import ARRIVAL, ARRIVING, SOURCE, VISIT, called, kernel

__all__ = ["all_may_change", "increments", "keep_falls", "sums"]


@called
def sums(t: Any, f: Any, work: Any, step: int, row: int, owner: int, wide: bool, case: Any, capacity: int) -> None:
    """A row of sums; ``capacity`` is Q, by `_capacity`."""
    low, high = (LOW, HIGH) if wide else (USUAL_LOW, USUAL_HIGH)
    value = t[t[OUT] + step]
    width = t[t[WIDTH] + value]
    o = t[t[START] + value] + row * width
    least, most = work[low, o : o + width], work[high, o : o + width]
    # Added entries are wide; all others are as usual, less what can change.
    again = wide
    for k in range(t[MAYBE_COUNT]):
        again &= is_there(t, step, t[t[MAYBE] + k])
    if again:
        for c in range(width):
            least[c], most[c] = work[USUAL_LOW, o + c], work[USUAL_HIGH, o + c]
    else:
        _usual_sums(t, f, work, step, row, owner, least, most)
    if t[MAYBE_COUNT] > 0 and not again:
        list_rows(t, step, owner, wide, case.level)
    apart = wide and capacity > 0 and not all_may_change(t, case, capacity)
    if wide and capacity > 0 and not apart:
        _change_all(t, f, work, step, owner, case.level, least, most)
    for c in range(width):
        x, y = least[c], most[c]
        if apart:
            x -= _most_change(t, f, work, step, c, owner, case, capacity, False)
            y += _most_change(t, f, work, step, c, owner, case, capacity, True)
        if t[MAYBE_COUNT] > 0 and not again:
            x, y = _with_toggled(t, f, work, step, c, owner, wide, case, x, y)
        finite = np.isfinite(x) and np.isfinite(y) and x <= y
        least[c], most[c] = (x, y) if finite else (-np.inf, np.inf)


@kernel
def all_may_change(t: Any, case: Any, capacity: int) -> bool:
    """Whether so many edits may be made that all entries may fall as far as they can: nothing has to be selected."""
    return capacity >= case.level * (t[SURE_COUNT] + t[MAYBE_COUNT])


@kernel
def _change_all(t: Any, f: Any, work: Any, step: int, owner: int, level: int, least: Any, most: Any) -> None:
    """Let all entries that are there fall, and rise, as far as they can; whole rows at a time, which is quicker."""
    width = len(least)
    for k in range(t[SURE_COUNT] + t[MAYBE_COUNT]):
        entry = listed(t, k)
        if k >= t[SURE_COUNT] and not is_there(t, step, entry):
            continue
        if t[t[ARITY] + step] != 1:
            for c in range(width):
                first, last = ends(t, f, work, step, entry, c, owner, False, 0)
                low, high = ends(t, f, work, step, entry, c, owner, True, level)
                least[c] -= _fall(first - low)
                most[c] += _fall(high - last)
            continue
        usual_low, usual_high = entry_row(t, f, work, step, entry, owner, False, 0, width)
        wide_low, wide_high = entry_row(t, f, work, step, entry, owner, True, level, width)
        for c in range(width):
            least[c] -= _fall(usual_low[c] - wide_low[c])
            most[c] += _fall(wide_high[c] - usual_high[c])


@kernel
def _fall(fall: float) -> float:
    """By how much an entry falls; without limit if that is no number."""
    if fall > 0.0:
        return fall
    return 0.0 if fall <= 0.0 else np.inf


@kernel
def _usual_sums(t: Any, f: Any, work: Any, step: int, row: int, owner: int, least: Any, most: Any) -> None:
    """The sums of what all entries usually bring that are there if no free edit of the owner is made."""
    width = len(least)
    begin(t, f, work[BASE], step, row, least)
    begin(t, f, work[BASE], step, row, most)
    for k in range(t[SURE_COUNT] + t[MAYBE_COUNT]):
        entry = listed(t, k)
        if k >= t[SURE_COUNT] and not is_there(t, step, entry):
            continue
        if t[t[ARITY] + step] == 1:
            first, last = entry_row(t, f, work, step, entry, owner, False, 0, width)
            for c in range(width):
                least[c] += first[c]
                most[c] += last[c]
        else:
            for c in range(width):
                x, y = ends(t, f, work, step, entry, c, owner, False, 0)
                least[c] += x
                most[c] += y


@kernel
def _most_change(
    t: Any, f: Any, work: Any, step: int, c: int, owner: int, case: Any, capacity: int, upwards: bool
) -> float:
    """By how much all entries together can fall below their usual lower ends, or rise above their upper ends."""
    count, width = 0, t[t[WIDTH] + t[t[OUT] + step]]
    for k in range(t[SURE_COUNT] + t[MAYBE_COUNT]):
        entry = listed(t, k)
        kept = t[t[KEPT_FALLS] + place(t, step, VISIT) + entry]
        if kept >= 0:
            at = kept + _falls_before(upwards, case.level) * width + c
            count += _kept_falls(t, f, at, width, case.level, count)
            continue
        usual = ends(t, f, work, step, entry, c, owner, False, 0)
        falls = f[t[FALL] + count :]
        before = 0.0
        for level in range(1, case.level + 1):
            worst = ends(t, f, work, step, entry, c, owner, True, level)
            fall = worst[1] - usual[1] if upwards else usual[0] - worst[0]
            if not fall < np.inf:
                return np.inf
            before = max(before, fall)
            falls[level - 1] = before
        if before > 0.0:
            increments(falls, case.level)
            count += case.level
    return largest(f[t[FALL] :], count, capacity)


@kernel
def _falls_before(upwards: bool, levels: int) -> int:
    """How many increments of an entry are kept before those for so many levels: one, then two, and so on."""
    return upwards * (FALLS // 2) + levels * (levels - 1) // 2


@kernel
def _kept_falls(t: Any, f: Any, kept: int, width: int, levels: int, count: int) -> int:
    """Append the increments of an entry that were kept; return how many."""
    if f[kept] == 0.0:
        return 0
    for j in range(levels):
        f[t[FALL] + count + j] = f[kept + j * width]
    return levels


@called
def keep_falls(t: Any, f: Any, work: Any, step: int, row: int, owner: int, levels: int) -> None:
    """Keep the increments of each entry's falls and rises, where these are the same in all cases of the owner."""
    a, width, table = t[t[INPUT] + 3 * step], t[t[WIDTH] + t[t[OUT] + step]], t[t[TABLE] :]
    arriving, arrival = place(t, step, ARRIVING), place(t, step, ARRIVAL)
    falls = f[t[FALL] : t[FALL] + levels]
    for k in range(table[arriving + row], table[arriving + row + 1]):
        entry = table[arrival + k]
        kept = t[t[KEPT_FALLS] + place(t, step, VISIT) + entry]
        if kept < 0:
            continue
        i = t[t[START] + a] + table[place(t, step, SOURCE) + entry] * t[t[STRIDE] + a]
        down, up = kept + _falls_before(False, levels) * width, kept + _falls_before(True, levels) * width
        for level in range(1, levels + 1):
            least, most = entry_row(t, f, work, step, entry, owner, True, level, width)
            for c in range(width):
                f[down + (level - 1) * width + c] = _fall(work[BASE, i + c] - least[c])
                f[up + (level - 1) * width + c] = _fall(most[c] - work[BASE_HIGH, i + c])
        for first in (down, up):
            for c in range(first, first + width):
                before = 0.0
                for level in range(levels):
                    falls[level] = before = max(before, f[c + level * width])
                known_falls = before < np.inf
                if known_falls:
                    increments(falls, levels)
                for level in range(levels):
                    # One edit may make an unknown entry fall without limit.
                    f[c + level * width] = falls[level] if known_falls else -np.inf


@kernel
def increments(falls: Any, levels: int) -> None:
    """Turn D(1), D(2) and so on, which never fall, into the increments of their concave hull, with signs turned."""
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
    width, single = t[t[WIDTH] + t[t[OUT] + step]], t[t[ARITY] + step] == 1
    effects, sure, number = f[t[EFFECT] :], t[SURE_COUNT], t[OPEN_COUNT]
    at, rows, given, slots = t[t[ENTRY_AT] :], t[t[ENTRY_ROWS] :], t[t[ENTRY_GIVEN] :], t[t[ENTRY_SLOT] :]
    for upwards in (False, True):
        for k in range(number):
            effects[k] = 0.0
        for k in range(sure, sure + t[MAYBE_COUNT]):
            slot, there = slots[k], slots[k] >= 0
            if not single:
                first, last = ends(t, f, work, step, listed(t, k), c, owner, wide and not there, case.level)
            elif there or not wide:
                first, last = usual_ends(work, at, rows, k, c)
            else:
                first, last = wide_ends(f, work, at, rows, given, k, c, width)
            brought = last if upwards else first
            effect = -brought if there else brought
            # Only smallest effects are looked for, so for the upper end the signs are turned.
            slot = slot if there else -1 - slot
            effects[slot] += -effect if upwards else effect
            if np.isnan(effects[slot]):
                effects[slot] = -np.inf
        changed = smallest_of_some(effects, number, case.least, case.most)
        if upwards:
            y -= changed
        else:
            x += changed
    return x, y
