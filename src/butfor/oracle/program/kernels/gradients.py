"""The derivatives of a program's output with respect to the weights of edge columns and to the features.

Steps are read backwards after `soft.forward`. ``slopes`` has the derivative of the output with respect to each number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from butfor.oracle.program.kernels.flat import (
    AMIN,
    ARRIVAL,
    ARRIVING,
    COLUMN,
    EDGE,
    FOLD,
    GROUPS,
    INPUTS,
    LINEAR,
    MAP,
    MATRIX,
    PICK,
    REDUCE,
    SHARE,
    SHIFT,
    WHICH,
    jit,
    kernel,
)
from butfor.oracle.program.kernels.functions import slopes as slopes_of
from butfor.oracle.program.kernels.soft import RANKS, arrivals_of, entry_of, ranked, room_for, weight_of
from butfor.oracle.program.kernels.values import copied

__all__ = ["backward"]


@kernel
def _finite(x: float) -> float:
    """What a model masks out afterwards, such as 0^-1/2, has no gradient, but 0·inf is not a number."""
    return x if np.isfinite(x) else 0.0


@kernel
def _map_back(flat: Any, values: Any, slopes: Any, step: int, row: int) -> None:
    value, code = flat.out[step], flat.code[step]
    o, p, q = flat.start[value] + row * flat.width[value], flat.parameters[step, 0], flat.parameters[step, 1]
    a, b, d = flat.inputs[step, 0], flat.inputs[step, 1], flat.inputs[step, 2]
    i, j = flat.start[a] + row * flat.stride[a], flat.start[b] + row * flat.stride[b]
    k = flat.start[d] + row * flat.stride[d]
    arity = flat.arity[step]
    m, n, third = flat.columns[step, 0], flat.columns[step, 1], flat.columns[step, 2]
    for c in range(flat.width[value]):
        slope = slopes[o + c]
        if slope == 0.0:
            continue
        ia = i + (c if m < 0 else flat.table[m + c])
        jb = j + (c if n < 0 else flat.table[n + c])
        kd = k + (c if third < 0 else flat.table[third + c])
        y = values[jb] if arity > 1 else 0.0
        dx, dy, dz = slopes_of(code, values[ia], y, p, q, values[o + c])
        if flat.first[a] >= 0:
            slopes[ia] += _finite(slope * dx)
        if arity > 1 and flat.first[b] >= 0:
            slopes[jb] += _finite(slope * dy)
        if arity > 2 and flat.first[d] >= 0:
            slopes[kd] += _finite(slope * dz)


@kernel
def _fold_back(flat: Any, values: Any, slopes: Any, step: int, row: int) -> None:
    value, a, code = flat.out[step], flat.inputs[step, 0], flat.code[step]
    o, i = flat.start[value] + row * flat.width[value], flat.start[a] + row * flat.stride[a]
    groups = flat.tables[step, GROUPS]
    share = flat.width[value] / flat.width[a] if code == 1 else 1.0
    for c in range(flat.width[a]):
        at = o + flat.table[groups + c]
        if code < 2:
            slopes[i + c] += share * slopes[at]
        elif code < 4:
            slopes[i + c] += slopes[at] if values[i + c] == values[at] else 0.0
        elif values[i + c] != 0.0:
            slopes[i + c] += slopes[at] * values[at] / values[i + c]


@kernel
def _linear_back(flat: Any, values: Any, slopes: Any, step: int, row: int) -> None:
    value, a = flat.out[step], flat.inputs[step, 0]
    if flat.first[a] < 0:
        return
    width, o = flat.width[value], flat.start[value] + row * flat.width[value]
    i, m = flat.start[a] + row * flat.stride[a], flat.tables[step, MATRIX]
    for r in range(flat.width[a]):
        if flat.code[step] and not values[i + r] > 0.0:
            continue
        total = 0.0
        for c in range(width):
            total += slopes[o + c] * flat.matrices[m + r * width + c]
        slopes[i + r] += total


@kernel
def _pick_back(flat: Any, slopes: Any, step: int, row: int) -> None:
    value, table = flat.out[step], flat.table
    width, o = flat.width[value], flat.start[value] + row * flat.width[value]
    which, column, inputs = flat.tables[step, WHICH], flat.tables[step, COLUMN], flat.tables[step, INPUTS]
    for c in range(width):
        a = table[inputs + table[which + c]]
        if flat.first[a] >= 0:
            slopes[flat.start[a] + row * flat.stride[a] + table[column + c]] += slopes[o + c]


@kernel
def _copy_back(flat: Any, slopes: Any, step: int, row: int) -> None:
    value = flat.out[step]
    width, o = flat.width[value], flat.start[value] + row * flat.width[value]
    a, i = copied(flat, step, row)
    if flat.first[a] >= 0:
        for c in range(width):
            slopes[i + c] += slopes[o + c]


@kernel
def _sum_back(flat: Any, values: Any, slopes: Any, weights: Any, d_weights: Any, step: int, row: int) -> None:
    value, a, b = flat.out[step], flat.inputs[step, 0], flat.inputs[step, 1]
    width, o = flat.width[value], flat.start[value] + row * flat.width[value]
    arriving, arrival, m = flat.tables[step, ARRIVING], flat.tables[step, ARRIVAL], flat.columns[step, 1]
    present, fading = 0.0, 0.0
    if flat.code[step] == SHARE:
        present, fading = _fading(flat, values, slopes, weights, step, row)
    scale = 1 / present if 0.0 < present < 1.0 else 1.0
    factors = flat.arity[step] == 2
    for k in range(flat.table[arriving + row], flat.table[arriving + row + 1]):
        entry = flat.table[arrival + k]
        column = flat.table[flat.tables[step, EDGE] + entry]
        weight = scale * weight_of(flat, step, entry, weights)
        i, j = entry_of(flat, step, entry)
        total = 0.0
        for c in range(width):
            slope = slopes[o + c]
            if slope == 0.0:
                continue
            at = j + (c if m < 0 else flat.table[m + c])
            factor = values[at] if factors else 1.0
            total += slope * values[i + c] * factor
            if flat.first[a] >= 0:
                slopes[i + c] += weight * slope * factor
            if factors and flat.first[b] >= 0:
                slopes[at] += weight * slope * values[i + c]
        if column >= 0:
            d_weights[1 if flat.parameters[step, 1] != 0.0 else 0, column] += _finite(scale * total - scale * fading)


@kernel
def _fading(flat: Any, values: Any, slopes: Any, weights: Any, step: int, row: int) -> tuple[float, float]:
    """The weight of all that leads to a row, and the derivative with respect to it where it is at most 1."""
    arriving, arrival = flat.tables[step, ARRIVING], flat.tables[step, ARRIVAL]
    width, o = flat.width[flat.out[step]], flat.start[flat.out[step]] + row * flat.width[flat.out[step]]
    present, fading = 0.0, 0.0
    for k in range(flat.table[arriving + row], flat.table[arriving + row + 1]):
        present += weight_of(flat, step, flat.table[arrival + k], weights)
    if present <= 1.0:
        for c in range(width):
            fading += slopes[o + c] * values[o + c]
    return present, fading


@kernel
def _max_back(
    flat: Any, values: Any, slopes: Any, weights: Any, d_weights: Any, step: int, row: int, room: Any
) -> None:
    """``after[r]`` is what the soft maximum would be of the entries from rank r on, ``chance[r]`` that these count."""
    best, after, chance, places, shares = room
    value, a, sign = flat.out[step], flat.inputs[step, 0], -1.0 if flat.code[step] == AMIN else 1.0
    o, d_mine = flat.start[value] + row * flat.width[value], d_weights[1 if flat.parameters[step, 1] != 0.0 else 0]
    start = flat.table[flat.tables[step, ARRIVING] + row]
    arrivals = arrivals_of(flat, weights, step, row, places, shares)
    for c in range(flat.width[value]):
        slope = slopes[o + c]
        if slope == 0.0:
            continue
        count = ranked(values, sign, c, room, arrivals)
        after[count], chance[0] = flat.parameters[step, 0], 1.0
        _look_after(values, c, room, count)
        for rank in range(count):
            i, kept = places[best[rank]], 1.0 if rank == RANKS - 1 else shares[best[rank]]
            column = _column(flat, step, start + best[rank])
            if flat.first[a] >= 0:
                slopes[i + c] += slope * chance[rank] * kept
            if column >= 0 and rank < RANKS - 1:
                d_mine[column] += slope * chance[rank] * (values[i + c] - after[rank + 1])
            chance[rank + 1] = chance[rank] * (1.0 - kept)
        # What entries that are not there would add, at the rank that they would have.
        for k in range(arrivals):
            if shares[k] != 0.0:
                continue
            message, rank = values[places[k] + c], 0
            while rank < count and sign * message <= sign * values[places[best[rank]] + c]:
                rank += 1
            column = _column(flat, step, start + k)
            if column >= 0 and rank < RANKS:
                d_mine[column] += slope * chance[rank] * (message - after[rank])


@kernel
def _look_after(values: Any, c: int, room: Any, count: int) -> None:
    """Fill ``after`` from the last rank on."""
    best, after, places, shares = room[0], room[1], room[3], room[4]
    for rank in range(count - 1, -1, -1):
        kept = 1.0 if rank == RANKS - 1 else shares[best[rank]]
        after[rank] = kept * values[places[best[rank]] + c] + (1 - kept) * after[rank + 1]


@kernel
def _column(flat: Any, step: int, arrival: int) -> int:
    """The edge column of something that arrives."""
    return int(flat.table[flat.tables[step, EDGE] + flat.table[flat.tables[step, ARRIVAL] + arrival]])


@kernel
def _matters(flat: Any, slopes: Any, value: int, row: int) -> bool:
    """Whether the target needs a row, and hears of it."""
    if flat.needed[flat.first[value] + row]:
        o = flat.start[value] + row * flat.width[value]
        for c in range(flat.width[value]):
            if slopes[o + c] != 0.0:
                return True
    return False


@kernel
def _rows_back(flat: Any, values: Any, slopes: Any, step: int) -> None:
    """A step that works row by row."""
    value, kind = flat.out[step], flat.kind[step]
    for row in range(flat.rows[value]):
        if not _matters(flat, slopes, value, row):
            continue
        if kind == MAP:
            _map_back(flat, values, slopes, step, row)
        elif kind == FOLD:
            _fold_back(flat, values, slopes, step, row)
        elif kind == LINEAR:
            _linear_back(flat, values, slopes, step, row)
        elif kind == PICK:
            _pick_back(flat, slopes, step, row)
        else:
            _copy_back(flat, slopes, step, row)


@kernel
def _reduce_back(flat: Any, values: Any, slopes: Any, weights: Any, d_weights: Any, step: int, room: Any) -> None:
    """A reduction; what a softmax subtracts makes no difference."""
    value, code = flat.out[step], flat.code[step]
    if code == SHIFT:
        return
    for row in range(flat.rows[value]):
        if not _matters(flat, slopes, value, row):
            continue
        if code <= SHARE:
            _sum_back(flat, values, slopes, weights, d_weights, step, row)
        else:
            _max_back(flat, values, slopes, weights, d_weights, step, row, room)


@jit
def backward(flat: Any, values: Any, slopes: Any, weights: Any, d_weights: Any) -> None:
    """Add the derivatives to ``d_weights`` and, for features, ``slopes``, which begins with those of the output."""
    room = room_for(flat)
    for step in range(len(flat.kind) - 1, -1, -1):
        if flat.kind[step] == REDUCE:
            _reduce_back(flat, values, slopes, weights, d_weights, step, room)
        else:
            _rows_back(flat, values, slopes, step)
