"""One row of a maximum or minimum over edges, in a case. The proof is at the head of the package."""

from __future__ import annotations

from typing import Any

import numpy as np

from butfor.oracle.program.bounding.entries import FREE, MADE, ends, is_there, list_rows, usual_ends, wide_ends
from butfor.oracle.program.bounding.intervals import known
from butfor.oracle.program.bounding.rows import BASE, BASE_HIGH, HIGH, LOW, USUAL_HIGH, USUAL_LOW, read
from butfor.oracle.program.bounding.selection import rank
from butfor.oracle.program.bounding.tables import (
    CHOSEN,
    CODE,
    EDIT_OF,
    EFFECT,
    ENTRY_AT,
    ENTRY_GIVEN,
    ENTRY_ROWS,
    ENTRY_SLOT,
    FALL,
    INPUT,
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
from butfor.oracle.program.kernels.flat import AMIN, ARRIVAL, ARRIVING, EDGE, SOURCE, called, kernel

__all__ = ["extremes", "most_lost"]


@called
def extremes(t: Any, f: Any, work: Any, step: int, row: int, owner: int, wide: bool, case: Any, capacity: int) -> None:
    """A row of maxima or minima; ``capacity`` is Q, by `_capacity`."""
    low, high = (LOW, HIGH) if wide else (USUAL_LOW, USUAL_HIGH)
    value = t[t[OUT] + step]
    width = t[t[WIDTH] + value]
    o = t[t[START] + value] + row * width
    again = t[MAYBE_COUNT] == 0 and not wide and case.most > 0
    if again and _extremes_again(t, f, work, step, row, owner):
        return
    begin(t, f, work[BASE], step, row, work[low, o : o + width])
    wide = wide and capacity > 0
    if t[MAYBE_COUNT] == 0 and not wide:
        _usual_extremes(t, work, step, o, owner, low, high)
        return
    lost = most_lost(t, f, step, case)
    list_rows(t, step, owner, wide, case.level)
    turned = t[t[CODE] + step] == AMIN
    for c in range(width):
        empty = -work[low, o + c] if turned else work[low, o + c]
        x, y = _extreme(t, f, work, c, width, wide, capacity, lost, empty, turned)
        work[low, o + c], work[high, o + c] = (-y, -x) if turned else (x, y)


@kernel
def _extremes_again(t: Any, f: Any, work: Any, step: int, row: int, owner: int) -> bool:
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
                x, y = ends(t, f, work, step, t[t[SURE] + k], c, owner, False, 0)
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
    t: Any, f: Any, work: Any, c: int, width: int, wide: bool, capacity: int, lost: int, empty: float, turned: bool
) -> tuple[float, float]:
    """The ends of a maximum; if ``turned``, of a minimum, as the maximum of numbers with their signs turned."""
    sure, count = t[SURE_COUNT], 0
    certain, worst, highest = -np.inf, np.inf, -np.inf
    usual, wides = f[t[FALL] :], f[t[WEIGHT] :]
    at, rows, given, slots = t[t[ENTRY_AT] :], t[t[ENTRY_ROWS] :], t[t[ENTRY_GIVEN] :], t[t[ENTRY_SLOT] :]
    for k in range(sure + t[MAYBE_COUNT]):
        before = usual_ends(work, at, rows, k, c)
        after = wide_ends(f, work, at, rows, given, k, c, width) if wide else before
        if turned:
            before, after = (-before[1], -before[0]), (-after[1], -after[0])
        if not (np.isfinite(before[0]) and np.isfinite(after[0]) and np.isfinite(after[1]) and np.isfinite(before[1])):
            return -np.inf, np.inf
        highest, worst = max(highest, after[1]), min(worst, after[0])
        if k < sure:
            certain = max(certain, after[0])
        if k < sure or slots[k] >= 0:
            usual[count], wides[count] = -before[0], -after[0]
            count += 1
    if wide:
        # First among entries that are sure to be there, then among all, of which some may be deleted.
        certain = max(certain, -rank(usual, min(sure, count), capacity + 1))
        certain = max(certain, -rank(wides, count, lost + 1))
        certain = max(certain, -rank(usual, count, capacity + lost + 1))
    else:
        certain = max(certain, -rank(usual, count, lost + 1))
    if sure == 0 and count - lost <= 0:
        # All entries may be gone.
        certain, highest = min(worst, empty), max(highest, empty)
    return known(certain, highest)
