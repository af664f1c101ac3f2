"""Steps computed in full: all rows of a step, or those that are asked for.

Each step takes a list of rows, because a call with so many arrays costs more than most rows. Rows that were computed
anew ``now`` are read in `State.fresh`, all others in `State.base`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from butfor.oracle.program.kernels.flat import (
    BEGINS,
    COLUMN,
    FOLD,
    GATHER,
    GROUPS,
    INPUTS,
    LINEAR,
    MAP,
    MATRIX,
    PICK,
    SOURCE,
    WHICH,
    inlined,
    jit,
    kernel,
)
from butfor.oracle.program.kernels.functions import ADD, MUL, RELU, function
from butfor.oracle.program.kernels.vectors import (
    add_multiples,
    add_products,
    add_products_of_relus,
    add_row,
    copy_row,
    fill_row,
    multiply_row,
    relu_row,
)

__all__ = ["BLOCK", "WIDE", "begin", "compute", "copied", "needed_rows"]

# Rows that are wider than this have columns left out of products: it takes less to look for those that count.
WIDE = 64

# How many columns are looked at together.
BLOCK = 16


@kernel
def _map(flat: Any, state: Any, step: int, rows: Any, now: int, out: Any) -> None:
    code, arity = flat.code[step], flat.arity[step]
    plain = flat.columns[step, 0] < 0 and (flat.columns[step, 1] < 0 or arity < 2)
    if plain and code in (ADD, MUL, RELU):
        _map_often(flat, state, step, rows, now, out)
    elif arity < 3:
        _map_two(flat, state, step, rows, now, out)
    else:
        _map_three(flat, state, step, rows, now, out)


@inlined
def _map_often(flat: Any, state: Any, step: int, rows: Any, now: int, out: Any) -> None:
    """What models do most, where each column reads its own: in vector instructions."""
    base, fresh, stamp = state.base, state.fresh, state.stamp
    value, code, a, b = flat.out[step], flat.code[step], flat.inputs[step, 0], flat.inputs[step, 1]
    width, first_a, first_b = flat.width[value], flat.first[a], flat.first[b]
    for row in rows:
        o = flat.start[value] + row * width
        x = fresh if first_a >= 0 and stamp[first_a + row] == now else base
        y = fresh if first_b >= 0 and stamp[first_b + row] == now else base
        i, j = flat.start[a] + row * flat.stride[a], flat.start[b] + row * flat.stride[b]
        if code == RELU:
            relu_row(out, o, x, i, width)
        elif code == ADD:
            add_row(out, o, x, i, y, j, width)
        else:
            multiply_row(out, o, x, i, y, j, width)


@inlined
def _map_two(flat: Any, state: Any, step: int, rows: Any, now: int, out: Any) -> None:
    """Functions of one number, or of two."""
    base, fresh, stamp, table = state.base, state.fresh, state.stamp, flat.table
    value, arity, code = flat.out[step], flat.arity[step], flat.code[step]
    width, p, q = flat.width[value], flat.parameters[step, 0], flat.parameters[step, 1]
    a, b, m, n = flat.inputs[step, 0], flat.inputs[step, 1], flat.columns[step, 0], flat.columns[step, 1]
    first_a, first_b = flat.first[a], flat.first[b]
    for row in rows:
        o = flat.start[value] + row * width
        x = fresh if first_a >= 0 and stamp[first_a + row] == now else base
        y = fresh if first_b >= 0 and stamp[first_b + row] == now else base
        i, j = flat.start[a] + row * flat.stride[a], flat.start[b] + row * flat.stride[b]
        if arity == 1:
            for c in range(width):
                out[o + c] = function(code, x[i + (c if m < 0 else table[m + c])], 0.0, 0.0, p, q)
        else:
            for c in range(width):
                left, right = x[i + (c if m < 0 else table[m + c])], y[j + (c if n < 0 else table[n + c])]
                out[o + c] = function(code, left, right, 0.0, p, q)


@inlined
def _map_three(flat: Any, state: Any, step: int, rows: Any, now: int, out: Any) -> None:
    """Functions of three numbers."""
    base, fresh, stamp, table = state.base, state.fresh, state.stamp, flat.table
    value, code = flat.out[step], flat.code[step]
    width, p, q = flat.width[value], flat.parameters[step, 0], flat.parameters[step, 1]
    a, b, d = flat.inputs[step, 0], flat.inputs[step, 1], flat.inputs[step, 2]
    m, n, k = flat.columns[step, 0], flat.columns[step, 1], flat.columns[step, 2]
    first_a, first_b, first_d = flat.first[a], flat.first[b], flat.first[d]
    for row in rows:
        o = flat.start[value] + row * width
        x = fresh if first_a >= 0 and stamp[first_a + row] == now else base
        y = fresh if first_b >= 0 and stamp[first_b + row] == now else base
        z = fresh if first_d >= 0 and stamp[first_d + row] == now else base
        i, j = flat.start[a] + row * flat.stride[a], flat.start[b] + row * flat.stride[b]
        third = flat.start[d] + row * flat.stride[d]
        for c in range(width):
            left, right = x[i + (c if m < 0 else table[m + c])], y[j + (c if n < 0 else table[n + c])]
            out[o + c] = function(code, left, right, z[third + (c if k < 0 else table[k + c])], p, q)


@kernel
def _pick(flat: Any, state: Any, step: int, rows: Any, now: int, out: Any) -> None:
    base, fresh, stamp, table = state.base, state.fresh, state.stamp, flat.table
    value = flat.out[step]
    which, column, inputs = flat.tables[step, WHICH], flat.tables[step, COLUMN], flat.tables[step, INPUTS]
    for row in rows:
        o = flat.start[value] + row * flat.width[value]
        for c in range(flat.width[value]):
            a = table[inputs + table[which + c]]
            x = fresh if flat.first[a] >= 0 and stamp[flat.first[a] + row] == now else base
            out[o + c] = x[flat.start[a] + row * flat.stride[a] + table[column + c]]


@kernel
def begin(flat: Any, values: Any, step: int, row: int, out: Any, o: int) -> tuple[Any, int]:
    """What a matrix product or a reduction begins with: an array, and where in it; room for it is in ``out``."""
    d = flat.added[step]
    if d >= 0:
        return values, flat.start[d] + row * flat.stride[d]
    fill_row(out, o, flat.parameters[step, 0], flat.width[flat.out[step]])
    return out, o


@kernel
def _linear(flat: Any, state: Any, step: int, rows: Any, now: int, out: Any) -> None:
    """The product: of two rows at a time, or of those columns of a wide row that count.

    If the step has a code, of their ReLU.
    """
    if flat.width[flat.inputs[step, 0]] > WIDE:
        _multiply_columns(flat, state, step, rows, now, out)
        return
    value, a = flat.out[step], flat.inputs[step, 0]
    width, wide, m, count = flat.width[value], flat.width[a], flat.tables[step, MATRIX], len(rows)
    x = state.fresh if now >= 0 else state.base
    for k in range(0, count, 2):
        one, other = rows[k], rows[min(k + 1, count - 1)]
        o, p = flat.start[value] + one * width, flat.start[value] + other * width
        start, s = begin(flat, state.base, step, one, out, o)
        _, t = begin(flat, state.base, step, other, out, p)
        i, j = flat.start[a] + one * wide, flat.start[a] + other * wide
        if flat.code[step]:
            add_products_of_relus(out, o, p, start, s, t, x, i, j, flat.matrices, m, wide, width)
        else:
            add_products(out, o, p, start, s, t, x, i, j, flat.matrices, m, wide, width)


@kernel
def _multiply_columns(flat: Any, state: Any, step: int, rows: Any, now: int, out: Any) -> None:
    """The product: of a row that was computed anew only columns that changed, of others those that are not 0."""
    value, a, base, factors, columns = flat.out[step], flat.inputs[step, 0], state.base, state.factors, state.columns
    width, wide, m = flat.width[value], flat.width[a], flat.tables[step, MATRIX]
    for row in rows:
        o, i = flat.start[value] + row * width, flat.start[a] + row * wide
        if now >= 0:
            start, s, x, sign = base, o, state.fresh, -1.0
        else:
            start, s = begin(flat, base, step, row, out, o)
            x, sign = base, 0.0
        count = _differences(x[i : i + wide], base[i : i + wide], sign, factors, columns)
        add_multiples(out, o, start, s, flat.matrices, m, factors, columns, count, width)


@kernel
def _differences(x: Any, y: Any, sign: float, found: Any, columns: Any) -> int:
    """Write down x + sign * y where that is not 0, and the column of each. Returns how many.

    Few are: a block of columns is looked at closely only if one of them is.
    """
    count, width = 0, len(x)
    for start in range(0, width, BLOCK):
        end = min(start + BLOCK, width)
        left, right, some = x[start:end], y[start:end], False
        for c in range(end - start):
            some |= left[c] + sign * right[c] != 0.0
        if some:
            for c in range(start, end):
                difference = x[c] + sign * y[c]
                found[count], columns[count] = difference, c
                count += difference != 0.0
    return count


@kernel
def _fold(flat: Any, state: Any, step: int, rows: Any, now: int, out: Any) -> None:
    base, fresh, table = state.base, state.fresh, flat.table
    value, a, code = flat.out[step], flat.inputs[step, 0], flat.code[step]
    width, wide, groups = flat.width[value], flat.width[a], flat.tables[step, GROUPS]
    for row in rows:
        o, i = flat.start[value] + row * width, flat.start[a] + row * flat.stride[a]
        x = fresh if flat.first[a] >= 0 and state.stamp[flat.first[a] + row] == now else base
        for c in range(width):
            out[o + c] = 0.0 if code < 2 else -np.inf if code == 2 else np.inf if code == 3 else 1.0
        for c in range(wide):
            at = o + table[groups + c]
            if code < 2:
                out[at] += x[i + c]
            elif code == 2:
                out[at] = max(out[at], x[i + c])
            elif code == 3:
                out[at] = min(out[at], x[i + c])
            else:
                out[at] *= x[i + c]
        if code == 1:
            for c in range(width):
                out[o + c] *= width / wide


@kernel
def copied(flat: Any, step: int, row: int) -> tuple[int, int]:
    """The value that a row of a gathering or concatenation is copied from, and where it begins."""
    if flat.kind[step] == GATHER:
        a = flat.inputs[step, 0]
        return a, flat.start[a] + flat.table[flat.tables[step, SOURCE] + row] * flat.stride[a]
    begins, n = flat.tables[step, BEGINS], 0
    while row >= flat.table[begins + n + 1]:
        n += 1
    a = flat.table[flat.tables[step, INPUTS] + n]
    return a, flat.start[a] + (row - flat.table[begins + n]) * flat.stride[a]


@kernel
def _copy(flat: Any, state: Any, step: int, rows: Any, out: Any) -> None:
    """Rows of other values; only where all rows are computed, what changes is followed from the other side."""
    value = flat.out[step]
    width = flat.width[value]
    for row in rows:
        o = flat.start[value] + row * width
        _, i = copied(flat, step, row)
        copy_row(out, o, state.base, i, width)


@kernel
def compute(flat: Any, state: Any, step: int, rows: Any, now: int, out: Any) -> None:
    """Rows of a step that works row by row."""
    kind = flat.kind[step]
    if kind == MAP:
        _map(flat, state, step, rows, now, out)
    elif kind == PICK:
        _pick(flat, state, step, rows, now, out)
    elif kind == LINEAR:
        _linear(flat, state, step, rows, now, out)
    elif kind == FOLD:
        _fold(flat, state, step, rows, now, out)
    else:
        _copy(flat, state, step, rows, out)


@jit
def needed_rows(flat: Any, value: int) -> Any:
    """The rows of a value that the target needs."""
    first = flat.first[value]
    return np.flatnonzero(flat.needed[first : first + flat.rows[value]])
