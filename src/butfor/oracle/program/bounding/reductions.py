"""One row of a sum over edges, in a case. The proof is at the head of the package."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from butfor.oracle.program.bounding.intervals import product
from butfor.oracle.program.bounding.rows import (
    BASE,
    BASE_HIGH,
    FALLS,
    HIGH,
    LOW,
    USUAL_HIGH,
    USUAL_LOW,
    read,
)
from butfor.oracle.program.bounding.selection import largest, smallest_of_some
from butfor.oracle.program.bounding.tables import (
    ARITY,
    CHOSEN,
    COLUMN,
    EDIT_OF,
    EFFECT,
    FALL,
    GIVEN,
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
    WIDTH,
    begin,
    place,
)
from butfor.oracle.program.kernels.flat import ARRIVAL, ARRIVING, EDGE, SOURCE, VISIT, called, kernel

__all__ = [
    "FREE",
    "KEPT",
    "MADE",
    "Case",
    "ends",
    "factor",
    "given_row",
    "increments",
    "is_there",
    "keep_falls",
    "list_entries",
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
def ends(
    t: Any, f: Any, work: Any, step: int, entry: int, c: int, owner: int, wide: bool, level: int
) -> tuple[float, float]:
    """The interval of what an entry brings in a column, if it is there."""
    a, table = t[t[INPUT] + 3 * step], t[t[TABLE] :]
    given = t[t[GIVEN] + place(t, step, VISIT) + entry]
    if wide and given >= 0:
        at, width = given_row(given, level, t[t[WIDTH] + a]) + c, t[t[WIDTH] + a]
        return f[at], f[at + width]
    source = table[place(t, step, SOURCE) + entry]
    low, high = read(t, a, source, owner, wide, level)
    i = t[t[START] + a] + source * t[t[STRIDE] + a] + c
    if t[t[ARITY] + step] == 1:
        return work[low, i], work[high, i]
    first, last = factor(t, work, step, entry, c, owner, wide, level)
    return product(work[low, i], work[high, i], first, last)


@kernel
def given_row(given: int, level: int, width: int) -> int:
    """Where the lower ends of a hull begin that holds if the entry is there; the upper ends are behind them."""
    return given + 2 * (level - 1) * width


@kernel
def factor(t: Any, work: Any, step: int, entry: int, c: int, owner: int, wide: bool, level: int) -> tuple[float, float]:
    """The interval of an entry's factor in a sum, or of its score in a softmax."""
    b, m = t[t[INPUT] + 3 * step + 1], t[t[COLUMN] + 3 * step + 1]
    low, high = read(t, b, entry, owner, wide, level)
    j = t[t[START] + b] + entry * t[t[STRIDE] + b] + (c if m < 0 else t[t[TABLE] + m + c])
    return work[low, j], work[high, j]


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
    for c in range(width):
        x, y = least[c], most[c]
        if wide and capacity > 0:
            x -= _most_change(t, f, work, step, c, owner, case, capacity, False)
            y += _most_change(t, f, work, step, c, owner, case, capacity, True)
        if t[MAYBE_COUNT] > 0 and not again:
            x, y = _with_toggled(t, f, work, step, c, owner, wide, case, x, y)
        finite = np.isfinite(x) and np.isfinite(y) and x <= y
        least[c], most[c] = (x, y) if finite else (-np.inf, np.inf)


@kernel
def _usual_sums(t: Any, f: Any, work: Any, step: int, row: int, owner: int, least: Any, most: Any) -> None:
    """The sums of what all entries usually bring that are there if no free edit of the owner is made."""
    a, width = t[t[INPUT] + 3 * step], len(least)
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
        entry = t[t[SURE] + k] if k < t[SURE_COUNT] else t[t[MAYBE] + k - t[SURE_COUNT]]
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
                    least, most = ends(t, f, work, step, entry, c, owner, True, level)
                    fall = most - work[BASE_HIGH, i + c] if upwards else work[BASE, i + c] - least
                    before = max(before, fall) if fall < np.inf else np.inf
                    falls[level - 1] = before
                known_falls = before < np.inf
                if known_falls:
                    increments(falls, levels)
                for level in range(levels):
                    # One edit may make an unknown entry fall without limit.
                    at = kept + (_falls_before(upwards == 1, levels) + level) * width + c
                    f[at] = falls[level] if known_falls else -np.inf


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
    for upwards in (False, True):
        for k in range(t[OPEN_COUNT]):
            f[t[EFFECT] + k] = 0.0
        for k in range(t[MAYBE_COUNT]):
            entry = t[t[MAYBE] + k]
            there = is_there(t, step, entry)
            first, last = ends(t, f, work, step, entry, c, owner, wide and not there, case.level)
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
