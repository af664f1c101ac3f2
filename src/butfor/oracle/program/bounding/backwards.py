"""Linear bounds: a number of a row that others read, traced back to the entries of its owner's reductions, in a case.

Intervals let each column of a sum lose those entries that matter most to it. A linear bound adds up what an entry
brings to all columns first, so that the same few entries are lost in all of them. The proof is at the head of the
package.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from butfor.oracle.program.bounding.capacity import capacity
from butfor.oracle.program.bounding.entries import list_entries
from butfor.oracle.program.bounding.rows import BASE, HIGH, LOW, SLOPE, USUAL_HIGH, USUAL_LOW, read
from butfor.oracle.program.bounding.selection import smallest_of_some
from butfor.oracle.program.bounding.slopes import extremes_back, list_losses, sums_back
from butfor.oracle.program.bounding.tables import (
    ALL_EFFECTS,
    ARITY,
    BEGIN,
    CODE,
    COLUMN,
    END,
    EXPORTED,
    INPUT,
    KIND,
    LOSS_FROM,
    MATRIX,
    MIDDLE,
    ONLY_LOWER,
    OPEN_COUNT,
    OUT,
    OUT_WIDTH,
    PARAMETER,
    ROW,
    START,
    STEP,
    STRIDE,
    TABLE,
    UNIT_OWNER,
    WIDTH,
    beginning,
    copied,
    place,
)
from butfor.oracle.program.kernels import flat
from butfor.oracle.program.kernels.flat import (
    AMIN,
    CONCAT,
    FOLD,
    GATHER,
    LINEAR,
    MAP,
    PICK,
    REDUCE,
    SHARE,
    called,
    kernel,
)
from butfor.oracle.program.kernels.functions import ADD, DIV, LEAKY_RELU, MUL, NEG, RELU, SUB

__all__ = ["tighten"]


@called
def tighten(t: Any, f: Any, work: Any, unit: int, case: Any, wide: bool) -> None:
    """Narrow the intervals of all rows of a unit that others read, after they were computed in a case."""
    low, high = (LOW, HIGH) if wide else (USUAL_LOW, USUAL_HIGH)
    list_losses(t, f, work, unit, case, wide)
    for at in range(t[t[MIDDLE] + unit], t[t[END] + unit]):
        if t[t[EXPORTED] + at] == 0:
            continue
        value = t[t[OUT] + t[t[STEP] + at]]
        o = t[t[START] + value] + t[t[ROW] + at] * t[t[WIDTH] + value]
        only_lower = t[t[ONLY_LOWER] + t[t[STEP] + at]] != 0
        for c in range(o, o + (t[OUT_WIDTH] if only_lower else t[t[WIDTH] + value])):
            x, y = work[low, c], work[high, c]
            if not (np.isfinite(x) and np.isfinite(y) and x < y):
                continue
            # What is no number compares with nothing. Where the ends meet, rounding may turn them.
            least = _least(t, f, work, unit, at, c, 1.0, case, wide)
            if x < least < np.inf:
                work[low, c] = x = min(least, y)
            most = y if only_lower else -_least(t, f, work, unit, at, c, -1.0, case, wide)
            if -np.inf < most < y:
                work[high, c] = max(most, x)


@called
def _least(t: Any, f: Any, work: Any, unit: int, last: int, number: int, sign: float, case: Any, wide: bool) -> float:
    """A lower bound of a number that row ``last`` of a unit holds, times a sign."""
    owner, slopes = t[t[UNIT_OWNER] + unit], work[SLOPE]
    begin = t[t[BEGIN] + unit]
    # All slopes are 0 before and after.
    slopes[number] = sign
    for k in range(t[OPEN_COUNT]):
        f[t[ALL_EFFECTS] + k] = 0.0
    total = 0.0
    for at in range(last, begin - 1, -1):
        value = t[t[OUT] + t[t[STEP] + at]]
        width = t[t[WIDTH] + value]
        o, some = t[t[START] + value] + t[t[ROW] + at] * width, False
        for c in range(o, o + width):
            some |= slopes[c] != 0.0
        if some:
            total += _back(t, f, work, at, begin, o, width, owner, case, wide)
            for c in range(o, o + width):
                slopes[c] = 0.0
    if case.counted:
        total += smallest_of_some(f[t[ALL_EFFECTS] :], t[OPEN_COUNT], case.least, case.most)
    return total


@called
def _back(
    t: Any, f: Any, work: Any, at: int, begin: int, o: int, width: int, owner: int, case: Any, wide: bool
) -> float:
    """Trace a row back to what it is computed from; returns what is known of it already."""
    step, row = t[t[STEP] + at], t[t[ROW] + at]
    kind, code = t[t[KIND] + step], t[t[CODE] + step]
    if kind == LINEAR:
        return _linear_back(t, f, work, step, row, o, width, owner, wide, case.level)
    if kind == MAP and code in (RELU, LEAKY_RELU, ADD, SUB, NEG, MUL, DIV):
        return _map_back(t, f, work, step, row, o, width, owner, wide, case.level)
    if kind == PICK:
        return _pick_back(t, work, step, row, o, width, owner, wide, case.level)
    if kind == FOLD and code < 2:
        return _fold_back(t, work, step, row, o, width, owner, wide, case.level)
    if kind in (GATHER, CONCAT):
        a, source = copied(t, step, row)
        i, total = t[t[START] + a] + source * t[t[STRIDE] + a], 0.0
        for c in range(width):
            total += _to(t, work, a, source, i + c, work[SLOPE, o + c], owner, wide, case.level)
        return total
    if kind == REDUCE and code <= SHARE:
        list_entries(t, step, row, case.counted)
        return sums_back(t, f, work, step, row, o, width, owner, wide, case, capacity(t, at, case) if wide else 0)
    if kind == REDUCE and code <= AMIN:
        arriving, losses = t[TABLE] + place(t, step, flat.ARRIVING) + row, t[LOSS_FROM] + at - begin
        entries, most = t[arriving + 1] - t[arriving], capacity(t, at, case) if wide else 0
        return extremes_back(t, f, work, step, t[losses], t[losses + 1], o, width, entries, most)
    low, high = (LOW, HIGH) if wide else (USUAL_LOW, USUAL_HIGH)
    total = 0.0
    for c in range(o, o + width):
        total += _end(work, low, high, c, work[SLOPE, c])
    return total


@kernel
def _end(work: Any, low: int, high: int, number: int, slope: float) -> float:
    """The least that a number times a slope can be, by its interval."""
    if slope == 0.0:
        return 0.0
    return slope * (work[low, number] if slope > 0.0 else work[high, number])


@kernel
def _to(
    t: Any, work: Any, value: int, row: int, number: int, slope: float, owner: int, wide: bool, level: int
) -> float:
    """Give a number that a row reads its slope; if it is another owner's, or single, return what its interval says."""
    low, high = read(t, value, row, owner, wide, level)
    if low == (LOW if wide else USUAL_LOW) and work[low, number] != work[high, number]:
        work[SLOPE, number] += slope
        return 0.0
    return _end(work, low, high, number, slope)


@called
def _linear_back(
    t: Any, f: Any, work: Any, step: int, row: int, o: int, width: int, owner: int, wide: bool, level: int
) -> float:
    a, at = t[t[INPUT] + 3 * step], t[MATRIX] + place(t, step, flat.MATRIX)
    slopes, total = work[SLOPE, o : o + width], 0.0
    for c in range(width):
        total += slopes[c] * beginning(t, f, work[BASE], step, row, c)
    i = t[t[START] + a] + row * t[t[STRIDE] + a]
    for r in range(t[t[WIDTH] + a]):
        slope, matrix = 0.0, f[at + r * width : at + (r + 1) * width]
        for c in range(width):
            slope += slopes[c] * matrix[c]
        total += _to(t, work, a, row, i + r, slope, owner, wide, level)
    return total


@called
def _map_back(
    t: Any, f: Any, work: Any, step: int, row: int, o: int, width: int, owner: int, wide: bool, level: int
) -> float:
    low, high = (LOW, HIGH) if wide else (USUAL_LOW, USUAL_HIGH)
    code, arity, table, total = t[t[CODE] + step], t[t[ARITY] + step], t[t[TABLE] :], 0.0
    a, b = t[t[INPUT] + 3 * step], t[t[INPUT] + 3 * step + (arity > 1)]
    m, n = t[t[COLUMN] + 3 * step], t[t[COLUMN] + 3 * step + (arity > 1)]
    i, j = t[t[START] + a] + row * t[t[STRIDE] + a], t[t[START] + b] + row * t[t[STRIDE] + b]
    al, ah = read(t, a, row, owner, wide, level)
    bl, bh = read(t, b, row, owner, wide, level)
    for c in range(width):
        slope = work[SLOPE, o + c]
        if slope == 0.0:
            continue
        x, y = i + (c if m < 0 else table[m + c]), j + (c if n < 0 else table[n + c])
        first, second = slope, 0.0
        if code in (RELU, LEAKY_RELU):
            leak = 0.0 if code == RELU else f[t[PARAMETER] + 3 * step]
            first, constant = _line(work[al, x], work[ah, x], leak, slope)
            total += constant
        elif code == NEG:
            first = -slope
        elif code == ADD:
            second = slope
        elif code == SUB:
            second = -slope
        elif work[bl, y] == work[bh, y] and (code == MUL or work[bl, y] != 0.0):
            first = slope * work[bl, y] if code == MUL else slope / work[bl, y]
        elif code == MUL and work[al, x] == work[ah, x]:
            first, second = 0.0, slope * work[al, x]
        else:
            first = 0.0
            total += _end(work, low, high, o + c, slope)
        if first != 0.0:
            total += _to(t, work, a, row, x, first, owner, wide, level)
        if second != 0.0:
            total += _to(t, work, b, row, y, second, owner, wide, level)
    return total


@kernel
def _line(low: float, high: float, leak: float, slope: float) -> tuple[float, float]:
    """A line below ``slope`` times ReLU, or leaky ReLU, between two numbers: its own slope, and its value at 0."""
    if low >= 0.0:
        return slope, 0.0
    if high <= 0.0:
        return slope * leak, 0.0
    if not (np.isfinite(low) and np.isfinite(high) and 0.0 <= leak <= 1.0):
        return 0.0, -np.inf
    if slope > 0.0:
        # Both lines through 0 are below; the one that is closer on the longer side is taken.
        return (slope if high > -low else slope * leak), 0.0
    chord = (high - leak * low) / (high - low)
    return slope * chord, slope * (high - chord * high)


@called
def _pick_back(t: Any, work: Any, step: int, row: int, o: int, width: int, owner: int, wide: bool, level: int) -> float:
    which, column, inputs = place(t, step, flat.WHICH), place(t, step, flat.COLUMN), place(t, step, flat.INPUTS)
    table, total = t[t[TABLE] :], 0.0
    for c in range(width):
        a = table[inputs + table[which + c]]
        i = t[t[START] + a] + row * t[t[STRIDE] + a] + table[column + c]
        total += _to(t, work, a, row, i, work[SLOPE, o + c], owner, wide, level)
    return total


@called
def _fold_back(t: Any, work: Any, step: int, row: int, o: int, width: int, owner: int, wide: bool, level: int) -> float:
    a, groups, total = t[t[INPUT] + 3 * step], place(t, step, flat.GROUPS), 0.0
    inner = t[t[WIDTH] + a]
    share = width / inner if t[t[CODE] + step] == 1 else 1.0
    i = t[t[START] + a] + row * t[t[STRIDE] + a]
    for c in range(inner):
        slope = work[SLOPE, o + t[t[TABLE] + groups + c]] * share
        total += _to(t, work, a, row, i + c, slope, owner, wide, level)
    return total
