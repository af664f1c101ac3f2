"""One row of a softmax, in a case: weighted means of entries, with exponentials of scores as weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from butfor.oracle.program.bounding.entries import factor, list_rows, listed
from butfor.oracle.program.bounding.extremes import most_lost
from butfor.oracle.program.bounding.rows import BASE, HIGH, LOW, USUAL_HIGH, USUAL_LOW
from butfor.oracle.program.bounding.selection import largest, smallest_of_some
from butfor.oracle.program.bounding.tables import (
    COLUMN,
    EFFECT,
    ENTRY_AT,
    ENTRY_ROWS,
    ENTRY_SLOT,
    FALL,
    MAYBE_COUNT,
    OPEN_COUNT,
    OUT,
    START,
    SURE_COUNT,
    TABLE,
    VALUE,
    WEIGHT,
    WIDTH,
    begin,
)
from butfor.oracle.program.kernels.flat import called, kernel

__all__ = ["softmax"]

# How close a bound is to what can be confirmed, relative to the range that it is looked for in; and how often it is
# looked for at most.
CLOSE = 2.0**-24
MOST_STEPS = 24

# Sums smaller than this share of their summands do not count as positive: they may be what rounding left.
LOST_DIGITS = 1e-9

# What is known of the weights of a column: not all of them, their ends, or that each is a single number.
UNKNOWN, ENDS, SINGLE = range(3)


@called
def softmax(t: Any, f: Any, work: Any, step: int, row: int, owner: int, wide: bool, case: Any, capacity: int) -> None:
    """A row of weighted means; ``capacity`` is Q, by `_capacity`."""
    low, high = (LOW, HIGH) if wide else (USUAL_LOW, USUAL_HIGH)
    value = t[t[OUT] + step]
    width = t[t[WIDTH] + value]
    o = t[t[START] + value] + row * width
    begin(t, f, work[BASE], step, row, work[low, o : o + width])
    wide = wide and capacity > 0
    list_rows(t, step, owner, wide, case.level)
    there = 0
    for k in range(t[SURE_COUNT], t[SURE_COUNT] + t[MAYBE_COUNT]):
        there += t[t[ENTRY_SLOT] + k] >= 0
    never_empty = t[SURE_COUNT] > 0 or there > most_lost(t, f, step, case)
    shared, weights = -1, UNKNOWN
    for c in range(width):
        empty = work[low, o + c]
        column = c if t[t[COLUMN] + 3 * step + 1] < 0 else t[t[TABLE] + t[t[COLUMN] + 3 * step + 1] + c]
        if column != shared:
            weights = _weigh(t, f, work, step, c, owner, wide, case)
            shared = column
        x, y = -np.inf, np.inf
        if t[SURE_COUNT] + t[MAYBE_COUNT] == 0:
            x = y = empty
        elif weights != UNKNOWN:
            x = _least_mean(t, f, work, c, wide, case, capacity, weights, 0)
            y = -_least_mean(t, f, work, c, wide, case, capacity, weights, 1)
            if not never_empty:
                x, y = min(x, empty), max(y, empty)
        if not (np.isfinite(x) and np.isfinite(y) and x <= y):
            x, y = -np.inf, np.inf
        work[low, o + c], work[high, o + c] = x, y


@kernel
def _weigh(t: Any, f: Any, work: Any, step: int, c: int, owner: int, wide: bool, case: Any) -> int:
    """Compute the ends of each weight, usual and then wide, all divided by the largest; returns what is known."""
    shift, weights, count, single = -np.inf, f[t[WEIGHT] :], t[SURE_COUNT] + t[MAYBE_COUNT], True
    for k in range(count):
        usual = factor(t, work, step, listed(t, k), c, owner, False, 0)
        worst = factor(t, work, step, listed(t, k), c, owner, wide, case.level) if wide else usual
        weights[k], weights[count + k] = usual
        weights[2 * count + k], weights[3 * count + k] = worst
        for n in range(4):
            if not np.isfinite(weights[n * count + k]):
                return UNKNOWN
        single &= usual[0] == usual[1]
        shift = max(shift, max(usual[1], worst[1]))
    for k in range(4 * count):
        weights[k] = np.exp(weights[k] - shift)
    return SINGLE if single else ENDS


@kernel
def _least_mean(
    t: Any, f: Any, work: Any, c: int, wide: bool, case: Any, capacity: int, weights: int, turned: int
) -> float:
    """A lower bound of a weighted mean; if ``turned`` is 1, of the mean with its sign turned."""
    count, usuals = t[SURE_COUNT] + t[MAYBE_COUNT], f[t[VALUE] :]
    least, most, sign = np.inf, -np.inf, -1.0 if turned == 1 else 1.0
    total = weight = 0.0
    for k in range(count):
        at, rows = t[t[ENTRY_AT] + k] + c, t[ENTRY_ROWS] + 4 * k + turned
        usual = sign * work[t[rows], at]
        worst = min(usual, sign * work[t[rows + 2], at]) if wide else usual
        if not (np.isfinite(usual) and np.isfinite(worst)):
            return -np.inf
        usuals[k], usuals[count + k] = usual, worst
        least, most = min(least, worst), max(most, usual)
        total += f[t[WEIGHT] + k] * usual
        weight += f[t[WEIGHT] + k]
    if t[MAYBE_COUNT] == 0 and not wide and weights == SINGLE and weight > 0:
        return total / weight
    top = min(most, total / weight) if t[MAYBE_COUNT] == 0 and weight > 0 else most
    return _last_confirmed(t, f, wide, case, capacity, least, top)


@kernel
def _last_confirmed(t: Any, f: Any, wide: bool, case: Any, capacity: int, least: float, top: float) -> float:
    """The largest bound from ``least``, which holds anyway, to ``top`` that is confirmed, by the Illinois method.

    By how much a bound is confirmed falls nearly along a line, so a few steps do what takes 24 halvings.
    """
    if not least < top:
        return least
    high = _surplus(t, f, wide, case, capacity, top)
    if high > 0.0:
        return top
    low, room, side = _surplus(t, f, wide, case, capacity, least), CLOSE * (top - least), 0
    for _ in range(MOST_STEPS):
        if not top - least > room:
            break
        share = low / (low - high) if low > 0.0 else 0.5
        middle = min(max(least + share * (top - least), least + 0.5 * room), top - 0.5 * room)
        surplus = _surplus(t, f, wide, case, capacity, middle)
        if surplus > 0.0:
            # Whichever end stays twice counts half, so that both move.
            least, low, high = middle, surplus, 0.5 * high if side == 1 else high
            side = 1
        else:
            top, high, low = middle, surplus, 0.5 * low if side == -1 else low
            side = -1
    return least


@called
def _surplus(t: Any, f: Any, wide: bool, case: Any, capacity: int, bound: float) -> float:
    """Where this is positive, so is Σ w (m - bound) in the whole case, and the mean exceeds ``bound``."""
    sure, count = t[SURE_COUNT], t[SURE_COUNT] + t[MAYBE_COUNT]
    weights, values = f[t[WEIGHT] : t[WEIGHT] + 4 * count], f[t[VALUE] : t[VALUE] + 2 * count]
    effects, falls, slots = f[t[EFFECT] :], f[t[FALL] :], t[t[ENTRY_SLOT] :]
    total = size = 0.0
    falling = 0
    for k in range(t[OPEN_COUNT] if count > sure else 0):
        effects[k] = 0.0
    for k in range(count):
        above = values[k] - bound
        usual = (weights[k] if above > 0 else weights[count + k]) * above
        lowest = usual
        if wide:
            worst = values[count + k] - bound
            lowest = min(usual, (weights[2 * count + k] if worst > 0 else weights[3 * count + k]) * worst)
        size += abs(usual)
        slot = slots[k] if k >= sure else 0
        if slot < 0:
            effects[-1 - slot] += lowest
            continue
        total += usual
        if k >= sure:
            effects[slot] -= usual
        if wide:
            falls[falling] = lowest - usual
            falling += 1
    if wide:
        total -= largest(falls, falling, capacity)
    if count > sure:
        total += smallest_of_some(effects, t[OPEN_COUNT], case.least, case.most)
    return total - LOST_DIGITS * size
