"""Steps computed in full: all rows of a step, or those that are asked for.

Each step takes a list of rows, because a call with so many arrays costs more than most rows. Rows that were computed
anew ``now`` are read in `State.fresh`, all others in `State.base`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from butfor.oracle.program.kernels.flat import (
    AMIN,
    ARRIVAL,
    ARRIVING,
    BEGINS,
    COLUMN,
    EDGE,
    FOLD,
    GATHER,
    GROUPS,
    INPUTS,
    LINEAR,
    MAP,
    MATRIX,
    PICK,
    REDUCE,
    SHARE,
    SOURCE,
    WHICH,
    inlined,
    jit,
    kernel,
)
from butfor.oracle.program.kernels.functions import ADD, MUL, RELU, function
from butfor.oracle.program.kernels.vectors import add_multiples

__all__ = ["add_product", "begin", "compute", "copied", "evaluate", "needed_rows", "reduce_rows"]


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
    """What models do most, where each column reads its own: loops so short that they use vector instructions."""
    base, fresh, stamp = state.base, state.fresh, state.stamp
    value, code, a, b = flat.out[step], flat.code[step], flat.inputs[step, 0], flat.inputs[step, 1]
    width, first_a, first_b = flat.width[value], flat.first[a], flat.first[b]
    for row in rows:
        o = flat.start[value] + row * width
        x = fresh if first_a >= 0 and stamp[first_a + row] == now else base
        y = fresh if first_b >= 0 and stamp[first_b + row] == now else base
        i, j = flat.start[a] + row * flat.stride[a], flat.start[b] + row * flat.stride[b]
        mine, left = out[o : o + width], x[i : i + width]
        if code == RELU:
            for c in range(width):
                mine[c] = max(left[c], 0.0)
            continue
        right = y[j : j + width]
        if code == ADD:
            for c in range(width):
                mine[c] = left[c] + right[c]
        else:
            for c in range(width):
                mine[c] = left[c] * right[c]


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
def begin(flat: Any, values: Any, step: int, row: int, out: Any) -> None:
    """What a matrix product or a reduction begins with."""
    if flat.added[step] < 0:
        for c in range(len(out)):
            out[c] = flat.parameters[step, 0]
        return
    d = flat.added[step]
    i = flat.start[d] + row * flat.stride[d]
    fixed = values[i : i + len(out)]
    for c in range(len(out)):
        out[c] = fixed[c]


@kernel
def _linear(flat: Any, state: Any, step: int, rows: Any, now: int, out: Any) -> None:
    """The product; of a row that was computed anew only the difference is multiplied."""
    base, fresh = state.base, state.fresh
    value, a = flat.out[step], flat.inputs[step, 0]
    width, wide, m = flat.width[value], flat.width[a], flat.tables[step, MATRIX]
    for row in rows:
        o, i = flat.start[value] + row * width, flat.start[a] + row * wide
        sums = out[o : o + width]
        if flat.first[a] >= 0 and state.stamp[flat.first[a] + row] == now:
            before = base[o : o + width]
            for c in range(width):
                sums[c] = before[c]
            count = _differences(fresh[i : i + wide], base[i : i + wide], -1.0, state.factors, state.columns)
        else:
            begin(flat, base, step, row, sums)
            count = _differences(base[i : i + wide], base[i : i + wide], 0.0, state.factors, state.columns)
        add_multiples(out, o, flat.matrices, m, state.factors, state.columns, count, width)


@kernel
def _differences(x: Any, y: Any, sign: float, found: Any, columns: Any) -> int:
    """Write down x + sign * y where that is not 0, and the column of each. Returns how many.

    Behind a ReLU many are: a column that is 0 before and after takes no part in a product. A branch for each would cost
    more than to write down what the next one overwrites.
    """
    count = 0
    for c in range(len(x)):
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
def reduce_rows(flat: Any, state: Any, step: int, rows: Any, now: int, out: Any) -> None:
    """All that leads to each row."""
    base, fresh, stamp, table = state.base, state.fresh, state.stamp, flat.table
    present, toggled = state.present, state.toggled
    value, a, b, code = flat.out[step], flat.inputs[step, 0], flat.inputs[step, 1], flat.code[step]
    width, m, factors = flat.width[value], flat.columns[step, 1], flat.arity[step] == 2
    arriving, arrival = flat.tables[step, ARRIVING], flat.tables[step, ARRIVAL]
    sources, edges = flat.tables[step, SOURCE], flat.tables[step, EDGE]
    first_a, first_b = flat.first[a], flat.first[b]
    for row in rows:
        o = flat.start[value] + row * width
        mine = out[o : o + width]
        begin(flat, base, step, row, mine)
        nothing = True
        for k in range(table[arriving + row], table[arriving + row + 1]):
            entry = table[arrival + k]
            column = table[edges + entry]
            if column >= 0 and present[column] == (toggled[column] == now):
                continue
            source = table[sources + entry]
            x = fresh if first_a >= 0 and stamp[first_a + source] == now else base
            i = flat.start[a] + source * flat.stride[a]
            if factors:
                y = fresh if first_b >= 0 and stamp[first_b + entry] == now else base
                add_product(out, o, x, i, y, flat.start[b] + entry * flat.stride[b], table, m, 1.0, width)
            elif code <= SHARE:
                brought = x[i : i + width]
                for c in range(width):
                    mine[c] += brought[c]
            else:
                _take_extremes(mine, x[i : i + width], code, nothing)
            nothing = False


@kernel
def _take_extremes(mine: Any, brought: Any, code: int, nothing: bool) -> None:
    """The larger or smaller of two rows, column by column; the second where there is nothing yet."""
    if nothing:
        for c in range(len(mine)):
            mine[c] = brought[c]
    elif code == AMIN:
        for c in range(len(mine)):
            mine[c] = brought[c] if brought[c] < mine[c] else mine[c]
    else:
        for c in range(len(mine)):
            mine[c] = brought[c] if brought[c] > mine[c] else mine[c]


@kernel
def add_product(out: Any, o: int, x: Any, i: int, y: Any, j: int, table: Any, m: int, sign: float, width: int) -> None:
    """Add the product of a row and its factors."""
    mine, brought = out[o : o + width], x[i : i + width]
    if m < 0:
        factors = y[j : j + width]
        for c in range(width):
            mine[c] += sign * brought[c] * factors[c]
    else:
        columns = table[m : m + width]
        for c in range(width):
            mine[c] += sign * brought[c] * y[j + columns[c]]


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
        for c in range(width):
            out[o + c] = state.base[i + c]


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
    elif kind != REDUCE:
        _copy(flat, state, step, rows, out)
    else:
        reduce_rows(flat, state, step, rows, now, out)


@jit
def needed_rows(flat: Any, value: int) -> Any:
    """The rows of a value that the target needs."""
    first = flat.first[value]
    return np.flatnonzero(flat.needed[first : first + flat.rows[value]])


@jit
def evaluate(flat: Any, state: Any) -> None:
    """All rows that the target needs, as the edges and features are."""
    for step in range(len(flat.kind)):
        compute(flat, state, step, needed_rows(flat, flat.out[step]), -1, state.base)
