"""One row of each kind of step except reductions, on intervals.

``work`` has a column for every number of the program, and these rows:

- `BASE`, `BASE_HIGH`: the lower and upper ends if no free edit is made; what no edit changes is only in `BASE`;
- `USUAL_LOW`, `USUAL_HIGH`: the ends in the case that is being computed, with rows of other owners as in the base;
- `LOW`, `HIGH`: the same with rows of other owners in their hulls (*wide*);
- behind each of `HULL_LOW` and `HULL_HIGH`, `LEVELS` rows: the hulls for levels 1, 2, 3 and so on, which hold for at
  most so many edits, and the last for any number;
- `SLOPE`, `EXTREME_LOW`, `EXTREME_HIGH`: of the linear bound that is being computed (`backwards.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from butfor.oracle.program.bounding.intervals import OUTWARDS, image, known, product
from butfor.oracle.program.bounding.tables import (
    ARITY,
    CODE,
    COLUMN,
    FIRST,
    INPUT,
    KIND,
    MATRIX,
    OUT,
    OWNER,
    PARAMETER,
    START,
    STRIDE,
    TABLE,
    WIDTH,
    begin,
    copied,
    place,
)
from butfor.oracle.program.kernels import flat
from butfor.oracle.program.kernels.flat import FOLD, LINEAR, MAP, PICK, called, kernel
from butfor.oracle.program.kernels.functions import ADD, RELU

__all__ = [
    "BASE", "BASE_HIGH", "EXTREME_HIGH", "EXTREME_LOW", "FALLS", "HIGH", "HULL_HIGH", "HULL_LOW", "LEVELS", "LOW",
    "MOST_TOLD_APART", "NUM_WORK", "SLOPE", "USUAL_HIGH", "USUAL_LOW", "read", "row",
]  # fmt: skip

# There are hulls for at most 1, 2, 3 and any number of edits.
LEVELS = 4

# For a larger budget, rows that depend on other owners have one hull for all levels: many edits leave little to tell
# apart.
MOST_TOLD_APART = 8

# How many increments of falls and rises are kept of each entry and column: for each level, one for each up to it.
FALLS = LEVELS * (LEVELS + 1)

BASE, BASE_HIGH, USUAL_LOW, USUAL_HIGH, LOW, HIGH = range(6)
HULL_LOW = HIGH
HULL_HIGH = HULL_LOW + LEVELS
SLOPE, EXTREME_LOW, EXTREME_HIGH = range(HULL_HIGH + LEVELS + 1, HULL_HIGH + LEVELS + 4)
NUM_WORK = EXTREME_HIGH + 1


@kernel
def read(t: Any, value: int, row: int, owner: int, wide: bool, level: int) -> tuple[int, int]:
    """The rows of ``work`` that have the lower and upper ends of a value's row, for an owner who reads it."""
    first = t[t[FIRST] + value]
    if first < 0:
        return BASE, BASE
    if t[t[OWNER] + first + row] == owner:
        return (LOW, HIGH) if wide else (USUAL_LOW, USUAL_HIGH)
    return (HULL_LOW + level, HULL_HIGH + level) if wide else (BASE, BASE_HIGH)


@called
def row(t: Any, f: Any, work: Any, step: int, row: int, owner: int, wide: bool, level: int, again: bool) -> None:
    """Compute one row of a step that is no reduction; ``again`` if `BASE` has it as it is without free edits."""
    kind = t[t[KIND] + step]
    if kind == MAP:
        _map(t, f, work, step, row, owner, wide, level)
    elif kind == LINEAR:
        if not (again and not wide and _linear_again(t, f, work, step, row, owner)):
            _linear(t, f, work, step, row, owner, wide, level)
    elif kind == PICK:
        _pick(t, work, step, row, owner, wide, level)
    elif kind == FOLD:
        _fold(t, work, step, row, owner, wide, level)
    else:
        _copy(t, work, step, row, owner, wide, level)


@kernel
def _map(t: Any, f: Any, work: Any, step: int, row: int, owner: int, wide: bool, level: int) -> None:
    low, high = (LOW, HIGH) if wide else (USUAL_LOW, USUAL_HIGH)
    value, code, arity = t[t[OUT] + step], t[t[CODE] + step], t[t[ARITY] + step]
    width, p, q = t[t[WIDTH] + value], f[t[PARAMETER] + 3 * step], f[t[PARAMETER] + 3 * step + 1]
    o = t[t[START] + value] + row * width
    a, b, d = t[t[INPUT] + 3 * step], t[t[INPUT] + 3 * step + 1], t[t[INPUT] + 3 * step + 2]
    al, ah = read(t, a, row, owner, wide, level)
    bl, bh = al, ah
    dl, dh = al, ah
    i = t[t[START] + a] + row * t[t[STRIDE] + a]
    j = k = i
    m = n = w = t[t[COLUMN] + 3 * step]
    if arity > 1:
        bl, bh = read(t, b, row, owner, wide, level)
        j, n = t[t[START] + b] + row * t[t[STRIDE] + b], t[t[COLUMN] + 3 * step + 1]
    if arity > 2:
        dl, dh = read(t, d, row, owner, wide, level)
        k, w = t[t[START] + d] + row * t[t[STRIDE] + d], t[t[COLUMN] + 3 * step + 2]
    table = t[t[TABLE] :]
    for c in range(width):
        x = i + (c if m < 0 else table[m + c])
        y = j + (c if n < 0 else table[n + c])
        z = k + (c if w < 0 else table[w + c])
        if code == RELU:
            first, last = work[al, x], work[ah, x]
            if first != -np.inf or last != np.inf:
                first, last = max(first, 0.0), max(last, 0.0)
        elif code == ADD:
            first, last = known(work[al, x] + work[bl, y], work[ah, x] + work[bh, y])
        else:
            first, last = image(
                code, work[al, x], work[ah, x], work[bl, y], work[bh, y], work[dl, z], work[dh, z], p, q, arity
            )
        work[low, o + c], work[high, o + c] = first, last


@kernel
def _linear(t: Any, f: Any, work: Any, step: int, row: int, owner: int, wide: bool, level: int) -> None:
    """The midpoints times the matrix, plus or minus half the widths times its absolute values."""
    low, high = (LOW, HIGH) if wide else (USUAL_LOW, USUAL_HIGH)
    value, a = t[t[OUT] + step], t[t[INPUT] + 3 * step]
    width, inner, at = t[t[WIDTH] + value], t[t[WIDTH] + a], t[MATRIX] + place(t, step, flat.MATRIX)
    al, ah = read(t, a, row, owner, wide, level)
    o, i = t[t[START] + value] + row * width, t[t[START] + a] + row * t[t[STRIDE] + a]
    first, last = work[al, i : i + inner], work[ah, i : i + inner]
    middle, half = work[low, o : o + width], work[high, o : o + width]
    begin(t, f, work[BASE], step, row, middle)
    for c in range(width):
        half[c] = 0.0
    finite = True
    for r in range(inner):
        finite &= np.isfinite(first[r]) and np.isfinite(last[r])
        x, radius = 0.5 * (first[r] + last[r]), 0.5 * (last[r] - first[r])
        matrix = f[at + r * width : at + (r + 1) * width]
        if x != 0.0:
            for c in range(width):
                middle[c] += x * matrix[c]
        if radius != 0.0:
            for c in range(width):
                half[c] += radius * abs(matrix[c])
    for c in range(width):
        x, radius = middle[c], (1.0 + OUTWARDS) * half[c]
        middle[c], half[c] = known(x - radius, x + radius) if finite else (-np.inf, np.inf)


@kernel
def _linear_again(t: Any, f: Any, work: Any, step: int, row: int, owner: int) -> bool:
    """The base plus the matrix times what differs from the base; False unless all are single numbers."""
    value, a = t[t[OUT] + step], t[t[INPUT] + 3 * step]
    width, inner, at = t[t[WIDTH] + value], t[t[WIDTH] + a], t[MATRIX] + place(t, step, flat.MATRIX)
    o, i = t[t[START] + value] + row * width, t[t[START] + a] + row * t[t[STRIDE] + a]
    if t[t[FIRST] + a] < 0 or t[t[OWNER] + t[t[FIRST] + a] + row] != owner:
        return False
    for c in range(width):
        if not (work[BASE, o + c] == work[BASE_HIGH, o + c] and np.isfinite(work[BASE, o + c])):
            return False
    first, last = work[USUAL_LOW, i : i + inner], work[USUAL_HIGH, i : i + inner]
    before, single = work[BASE, i : i + inner], True
    for r in range(inner):
        single &= first[r] == last[r] and np.isfinite(first[r])
    if not single:
        return False
    sums = work[USUAL_LOW, o : o + width]
    for c in range(width):
        sums[c] = work[BASE, o + c]
    for r in range(inner):
        x = first[r] - before[r]
        if x != 0.0:
            matrix = f[at + r * width : at + (r + 1) * width]
            for c in range(width):
                sums[c] += x * matrix[c]
    for c in range(width):
        work[USUAL_HIGH, o + c] = sums[c]
    return True


@kernel
def _pick(t: Any, work: Any, step: int, row: int, owner: int, wide: bool, level: int) -> None:
    low, high = (LOW, HIGH) if wide else (USUAL_LOW, USUAL_HIGH)
    value, table = t[t[OUT] + step], t[t[TABLE] :]
    which, column, inputs = place(t, step, flat.WHICH), place(t, step, flat.COLUMN), place(t, step, flat.INPUTS)
    o = t[t[START] + value] + row * t[t[WIDTH] + value]
    for c in range(t[t[WIDTH] + value]):
        a = table[inputs + table[which + c]]
        al, ah = read(t, a, row, owner, wide, level)
        i = t[t[START] + a] + row * t[t[STRIDE] + a] + table[column + c]
        work[low, o + c], work[high, o + c] = work[al, i], work[ah, i]


@kernel
def _fold(t: Any, work: Any, step: int, row: int, owner: int, wide: bool, level: int) -> None:
    low, high = (LOW, HIGH) if wide else (USUAL_LOW, USUAL_HIGH)
    value, a, code = t[t[OUT] + step], t[t[INPUT] + 3 * step], t[t[CODE] + step]
    width, inner, groups = t[t[WIDTH] + value], t[t[WIDTH] + a], place(t, step, flat.GROUPS)
    al, ah = read(t, a, row, owner, wide, level)
    o, i = t[t[START] + value] + row * width, t[t[START] + a] + row * t[t[STRIDE] + a]
    empty = 0.0 if code < 2 else -np.inf if code == 2 else np.inf if code == 3 else 1.0
    for c in range(width):
        work[low, o + c] = work[high, o + c] = empty
    for c in range(inner):
        at = o + t[t[TABLE] + groups + c]
        first, last = work[al, i + c], work[ah, i + c]
        x, y = work[low, at], work[high, at]
        if not (np.isfinite(first) and np.isfinite(last)):
            first, last, x, y = np.nan, np.nan, np.nan, np.nan
        if code < 2:
            x, y = x + first, y + last
        elif code == 2:
            x, y = (first if first > x else x), (last if last > y else y)
        elif code == 3:
            x, y = (first if first < x else x), (last if last < y else y)
        else:
            x, y = product(x, y, first, last)
        work[low, at], work[high, at] = x, y
    for c in range(width):
        x, y = work[low, o + c], work[high, o + c]
        if code == 1:
            x, y = x * width / inner, y * width / inner
        work[low, o + c], work[high, o + c] = known(x, y)


@kernel
def _copy(t: Any, work: Any, step: int, row: int, owner: int, wide: bool, level: int) -> None:
    """Gathers and concatenations: the row is a row of another value."""
    low, high = (LOW, HIGH) if wide else (USUAL_LOW, USUAL_HIGH)
    value = t[t[OUT] + step]
    width = t[t[WIDTH] + value]
    o = t[t[START] + value] + row * width
    a, source = copied(t, step, row)
    i = t[t[START] + a] + source * t[t[STRIDE] + a]
    al, ah = read(t, a, source, owner, wide, level)
    for c in range(width):
        work[low, o + c], work[high, o + c] = work[al, i + c], work[ah, i + c]
