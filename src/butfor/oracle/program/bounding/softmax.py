"""One row of a softmax, in a case: weighted means of entries, with exponentials of scores as weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from butfor.oracle.program.bounding.extremes import most_lost
from butfor.oracle.program.bounding.reductions import factor, is_there
from butfor.oracle.program.bounding.rows import BASE, HIGH, LOW, USUAL_HIGH, USUAL_LOW, read
from butfor.oracle.program.bounding.selection import largest, smallest_of_some
from butfor.oracle.program.bounding.tables import (
    COLUMN,
    EDIT_OF,
    EFFECT,
    FALL,
    INPUT,
    MAYBE,
    MAYBE_COUNT,
    OPEN_COUNT,
    OUT,
    SLOT,
    START,
    STRIDE,
    SURE,
    SURE_COUNT,
    TABLE,
    VALUE,
    WEIGHT,
    WIDTH,
    begin,
    place,
)
from butfor.oracle.program.kernels.flat import EDGE, SOURCE, called, kernel

__all__ = ["softmax"]

# How close a bound is to what can be confirmed, relative to the range that it is looked for in; and how often it is
# looked for at most.
CLOSE = 2.0**-24
MOST_STEPS = 24

# Sums smaller than this share of their summands do not count as positive: they may be what rounding left.
LOST_DIGITS = 1e-9


@called
def softmax(t: Any, f: Any, work: Any, step: int, row: int, owner: int, wide: bool, case: Any, capacity: int) -> None:
    """A row of weighted means; ``capacity`` is Q, by `_capacity`."""
    low, high = (LOW, HIGH) if wide else (USUAL_LOW, USUAL_HIGH)
    value = t[t[OUT] + step]
    width = t[t[WIDTH] + value]
    o = t[t[START] + value] + row * width
    begin(t, f, work[BASE], step, row, work[low, o : o + width])
    wide = wide and capacity > 0
    there = 0
    for k in range(t[MAYBE_COUNT]):
        there += is_there(t, step, t[t[MAYBE] + k])
    never_empty = t[SURE_COUNT] > 0 or there > most_lost(t, f, step, case)
    shared = -1
    for c in range(width):
        empty = work[low, o + c]
        column = c if t[t[COLUMN] + 3 * step + 1] < 0 else t[t[TABLE] + t[t[COLUMN] + 3 * step + 1] + c]
        if column != shared:
            finite = _weigh(t, f, work, step, c, owner, wide, case)
            shared = column
        x, y = -np.inf, np.inf
        if finite and t[SURE_COUNT] + t[MAYBE_COUNT] == 0:
            x = y = empty
        elif finite:
            x = _least_mean(t, f, work, step, c, owner, wide, case, capacity, False)
            y = -_least_mean(t, f, work, step, c, owner, wide, case, capacity, True)
            if not never_empty:
                x, y = min(x, empty), max(y, empty)
        if not (np.isfinite(x) and np.isfinite(y) and x <= y):
            x, y = -np.inf, np.inf
        work[low, o + c], work[high, o + c] = x, y


@kernel
def _entry(t: Any, k: int) -> int:
    """Entry number ``k``: first those that are sure to be there, then those that may be."""
    return t[t[SURE] + k] if k < t[SURE_COUNT] else t[t[MAYBE] + k - t[SURE_COUNT]]


@kernel
def _weigh(t: Any, f: Any, work: Any, step: int, c: int, owner: int, wide: bool, case: Any) -> bool:
    """Compute the ends of each weight, usual and wide, all divided by the largest; False if one is unknown."""
    shift, weights = -np.inf, f[t[WEIGHT] :]
    for k in range(t[SURE_COUNT] + t[MAYBE_COUNT]):
        usual = factor(t, work, step, _entry(t, k), c, owner, False, 0)
        worst = factor(t, work, step, _entry(t, k), c, owner, wide, case.level) if wide else usual
        weights[4 * k], weights[4 * k + 1] = usual
        weights[4 * k + 2], weights[4 * k + 3] = worst
        for n in range(4):
            if not np.isfinite(weights[4 * k + n]):
                return False
        shift = max(shift, max(usual[1], worst[1]))
    for k in range(4 * (t[SURE_COUNT] + t[MAYBE_COUNT])):
        weights[k] = np.exp(weights[k] - shift)
    return True


@kernel
def _brought(
    t: Any, work: Any, step: int, entry: int, c: int, owner: int, wide: bool, level: int, turned: bool
) -> float:
    """The lower end of what an entry brings; if ``turned``, the upper end with its sign turned."""
    a = t[t[INPUT] + 3 * step]
    source = t[t[TABLE] + place(t, step, SOURCE) + entry]
    low, high = read(t, a, source, owner, wide, level)
    i = t[t[START] + a] + source * t[t[STRIDE] + a] + c
    return -work[high, i] if turned else work[low, i]


@kernel
def _least_mean(
    t: Any, f: Any, work: Any, step: int, c: int, owner: int, wide: bool, case: Any, capacity: int,
    turned: bool,
) -> float:  # fmt: skip
    """A lower bound of a weighted mean, by bisection; if ``turned``, of the mean with its sign turned."""
    count = t[SURE_COUNT] + t[MAYBE_COUNT]
    least, most = np.inf, -np.inf
    total = weight = 0.0
    for k in range(count):
        usual = _brought(t, work, step, _entry(t, k), c, owner, False, 0, turned)
        worst = usual
        if wide:
            worst = min(worst, _brought(t, work, step, _entry(t, k), c, owner, True, case.level, turned))
        if not (np.isfinite(usual) and np.isfinite(worst)):
            return -np.inf
        f[t[VALUE] + 2 * k], f[t[VALUE] + 2 * k + 1] = usual, worst
        least, most = min(least, worst), max(most, usual)
        total += f[t[WEIGHT] + 4 * k] * usual
        weight += f[t[WEIGHT] + 4 * k]
    if t[MAYBE_COUNT] == 0 and not wide and _is_single(t, f, count) and weight > 0:
        return total / weight
    top = min(most, total / weight) if t[MAYBE_COUNT] == 0 and weight > 0 else most
    return _last_confirmed(t, f, step, wide, case, capacity, least, top)


@kernel
def _last_confirmed(
    t: Any, f: Any, step: int, wide: bool, case: Any, capacity: int, least: float, top: float
) -> float:  # fmt: skip
    """The largest bound from ``least``, which holds anyway, to ``top`` that is confirmed, by the Illinois method.

    By how much a bound is confirmed falls nearly along a line, so a few steps do what takes 24 halvings.
    """
    if not least < top:
        return least
    high = _surplus(t, f, step, wide, case, capacity, top)
    if high > 0.0:
        return top
    low, room, side = _surplus(t, f, step, wide, case, capacity, least), CLOSE * (top - least), 0
    for _ in range(MOST_STEPS):
        if not top - least > room:
            break
        share = low / (low - high) if low > 0.0 else 0.5
        middle = min(max(least + share * (top - least), least + 0.5 * room), top - 0.5 * room)
        surplus = _surplus(t, f, step, wide, case, capacity, middle)
        if surplus > 0.0:
            # Whichever end stays twice counts half, so that both move.
            least, low, high = middle, surplus, 0.5 * high if side == 1 else high
            side = 1
        else:
            top, high, low = middle, surplus, 0.5 * low if side == -1 else low
            side = -1
    return least


@kernel
def _is_single(t: Any, f: Any, count: int) -> bool:
    """Whether each weight is a single number."""
    single = True
    for k in range(count):
        single &= f[t[WEIGHT] + 4 * k] == f[t[WEIGHT] + 4 * k + 1]
    return single


@kernel
def _surplus(t: Any, f: Any, step: int, wide: bool, case: Any, capacity: int, bound: float) -> float:
    """Where this is positive, so is Σ w (m - bound) in the whole case, and the mean exceeds ``bound``."""
    total = size = 0.0
    falling = 0
    for k in range(t[OPEN_COUNT]):
        f[t[EFFECT] + k] = 0.0
    for k in range(t[SURE_COUNT] + t[MAYBE_COUNT]):
        above, worst = f[t[VALUE] + 2 * k] - bound, f[t[VALUE] + 2 * k + 1] - bound
        usual = (f[t[WEIGHT] + 4 * k] if above > 0 else f[t[WEIGHT] + 4 * k + 1]) * above
        lowest = usual
        if wide:
            lowest = min(usual, (f[t[WEIGHT] + 4 * k + 2] if worst > 0 else f[t[WEIGHT] + 4 * k + 3]) * worst)
        there = True
        if k >= t[SURE_COUNT]:
            entry = t[t[MAYBE] + k - t[SURE_COUNT]]
            there = is_there(t, step, entry)
            slot = t[t[SLOT] + t[t[EDIT_OF] + t[t[TABLE] + place(t, step, EDGE) + entry]]]
            f[t[EFFECT] + slot] += -usual if there else lowest
        size += abs(usual)
        if there:
            total += usual
            f[t[FALL] + falling] = lowest - usual
            falling += 1
    if wide:
        total -= largest(f[t[FALL] :], falling, capacity)
    if t[MAYBE_COUNT] > 0:
        total += smallest_of_some(f[t[EFFECT] :], t[OPEN_COUNT], case.least, case.most)
    return total - LOST_DIGITS * size
