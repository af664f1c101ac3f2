"""Compiled reading of a program as a smooth function of one weight per edge column, and of the features.

Every reduction over edges becomes a weighted one, which is the reduction itself where all weights are 1, and the
reduction without the edge where one is 0:

    sum      Σ w·m, hence degrees Σ w, and with them every normalisation and mean
    share    the sum below a softmax: Σ w·eˢ / min(Σ w, 1), so that a receiver fades as its last edge goes
    max      Σ_k w_k·m_k·Π_{j<k} (1 - w_j), with m sorted downwards: the maximum if w were chances to be kept

An edge that may be added is one of weight 0. Where all edges into a node are, the sum below a softmax is taken as the
mean of eˢ, which is its limit as their weights grow together.

The gradient sees what deletion does: of a maximum the step to the next message, of a mean and a softmax that the others
gain, and that the last edge takes everything with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from butfor.oracle.program.kernels import (
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
    MINIMUM,
    PICK,
    REDUCE,
    SHARE,
    SHIFT,
    SOURCE,
    SUM,
    WHICH,
    compute,
    copied,
    jit,
    kernel,
    needed_rows,
)

__all__ = ["backward", "forward"]

# How many of a receiver's largest messages a soft maximum looks at; the last of them counts in full.
RANKS = 4

# How far the attention of an edge that is not there may lie above all others: e to this is still a number.
FAR = 300.0


@kernel
def _weight(flat: Any, step: int, entry: int, weights: Any) -> float:
    """The weight of an entry: the first row of weights, the second where degrees are counted."""
    column = flat.table[flat.tables[step, EDGE] + entry]
    if column < 0:
        return 1.0
    return float(weights[1 if flat.parameters[step, 1] != 0.0 else 0, column])


@kernel
def _entry(flat: Any, step: int, entry: int) -> tuple[int, int]:
    """Where an entry's message begins, and where its factors do."""
    a, b = flat.inputs[step, 0], flat.inputs[step, 1]
    i = flat.start[a] + flat.table[flat.tables[step, SOURCE] + entry] * flat.stride[a]
    return int(i), int(flat.start[b] + entry * flat.stride[b])


@kernel
def _soft_sum(flat: Any, values: Any, weights: Any, step: int, row: int) -> None:
    value = flat.out[step]
    width, o = flat.width[value], flat.start[value] + row * flat.width[value]
    arriving, arrival, m = flat.tables[step, ARRIVING], flat.tables[step, ARRIVAL], flat.columns[step, 1]
    present = 0.0
    for c in range(width):
        values[o + c] = 0.0
    for k in range(flat.table[arriving + row], flat.table[arriving + row + 1]):
        entry = flat.table[arrival + k]
        weight = _weight(flat, step, entry, weights)
        if weight == 0.0:
            continue
        present += weight
        i, j = _entry(flat, step, entry)
        if flat.arity[step] == 1:
            for c in range(width):
                values[o + c] += weight * values[i + c]
        else:
            for c in range(width):
                values[o + c] += weight * values[i + c] * values[j + (c if m < 0 else flat.table[m + c])]
    if flat.code[step] == SHARE and present < 1.0:
        for c in range(width):
            values[o + c] = values[o + c] / present if present > 0.0 else _mean(flat, values, step, row, c)


@kernel
def _mean(flat: Any, values: Any, step: int, row: int, c: int) -> float:
    """Of all that leads to a row, there or not; 1 where nothing does."""
    arriving, arrival = flat.tables[step, ARRIVING], flat.tables[step, ARRIVAL]
    total, count = 0.0, 0
    for k in range(flat.table[arriving + row], flat.table[arriving + row + 1]):
        total += values[_entry(flat, step, flat.table[arrival + k])[0] + c]
        count += 1
    return total / count if count else 1.0


@kernel
def _arrivals(flat: Any, weights: Any, step: int, row: int, places: Any, shares: Any) -> int:
    """Where the messages that lead to a row begin, and their weights; how many there are."""
    arriving, arrival = flat.tables[step, ARRIVING], flat.tables[step, ARRIVAL]
    start, end = flat.table[arriving + row], flat.table[arriving + row + 1]
    for k in range(end - start):
        entry = flat.table[arrival + start + k]
        places[k], shares[k] = _entry(flat, step, entry)[0], _weight(flat, step, entry, weights)
    return int(end - start)


@kernel
def _ranked(values: Any, sign: float, c: int, room: Any, arrivals: int) -> int:
    """The largest (for a minimum, smallest) messages of a column, the first ranks; how many there are."""
    best, places, shares = room[0], room[3], room[4]
    count = 0
    for k in range(arrivals):
        if shares[k] == 0.0:
            continue
        message, at = sign * values[places[k] + c], count
        while at > 0 and message > sign * values[places[best[at - 1]] + c]:
            if at < RANKS:
                best[at] = best[at - 1]
            at -= 1
        if at < RANKS:
            best[at] = k
            count = min(count + 1, RANKS)
    return count


@kernel
def _shift(flat: Any, values: Any, weights: Any, step: int, row: int, c: int) -> float:
    """What a softmax subtracts: the largest of what is there, or more where an edge that is not there would be inf."""
    arriving, arrival = flat.tables[step, ARRIVING], flat.tables[step, ARRIVAL]
    there, largest = -np.inf, -np.inf
    for k in range(flat.table[arriving + row], flat.table[arriving + row + 1]):
        entry = flat.table[arrival + k]
        message = values[_entry(flat, step, entry)[0] + c]
        largest = max(largest, message)
        if _weight(flat, step, entry, weights) != 0.0:
            there = max(there, message)
    if largest == -np.inf:
        return float(flat.parameters[step, 0])
    return largest if there == -np.inf else max(there, largest - FAR)


@kernel
def _soft_max(flat: Any, values: Any, weights: Any, step: int, row: int, room: Any) -> None:
    value, sign = flat.out[step], -1.0 if flat.code[step] == MINIMUM else 1.0
    o, best, places, shares = flat.start[value] + row * flat.width[value], room[0], room[3], room[4]
    if flat.code[step] == SHIFT:
        for c in range(flat.width[value]):
            values[o + c] = _shift(flat, values, weights, step, row, c)
        return
    arrivals = _arrivals(flat, weights, step, row, places, shares)
    soft = False
    for k in range(arrivals):
        soft |= 0.0 < shares[k] < 1.0
    for c in range(flat.width[value]):
        total, chance = 0.0, 1.0
        if not soft:
            for k in range(arrivals):
                message = values[places[k] + c]
                if shares[k] == 1.0 and (chance == 1.0 or sign * message > sign * total):
                    total, chance = message, 0.0
            values[o + c] = total + chance * flat.parameters[step, 0]
            continue
        for rank in range(_ranked(values, sign, c, room, arrivals)):
            kept = 1.0 if rank == RANKS - 1 else shares[best[rank]]
            total += chance * kept * values[places[best[rank]] + c]
            chance *= 1.0 - kept
            if chance == 0.0:
                break
        values[o + c] = total + chance * flat.parameters[step, 0]


@kernel
def _most_arrivals(flat: Any) -> int:
    """How many entries the largest reduction has."""
    most = 1
    for step in range(len(flat.kind)):
        if flat.kind[step] == REDUCE:
            most = max(most, flat.table[flat.tables[step, ARRIVING] + flat.rows[flat.out[step]]])
    return most


@jit
def _room(flat: Any) -> Any:
    """For the best entries of a row, what comes after them and how likely, and where messages are and their weights."""
    most = _most_arrivals(flat)
    return (
        np.empty(RANKS, np.int64), np.empty(RANKS + 1), np.empty(RANKS + 1), np.empty(most, np.int64), np.empty(most),
    )  # fmt: skip


@jit
def forward(flat: Any, state: Any, weights: Any) -> None:
    """All rows that the target needs, under soft weights (for messages, and for counting degrees)."""
    values = state.base
    room = _room(flat)
    for step in range(len(flat.kind)):
        rows = needed_rows(flat, flat.out[step])
        if flat.kind[step] != REDUCE:
            compute(flat, state, step, rows, -1, values)
            continue
        for row in rows:
            if flat.code[step] == SUM or flat.code[step] == SHARE:
                _soft_sum(flat, values, weights, step, row)
            else:
                _soft_max(flat, values, weights, step, row, room)


# Backwards.


@kernel
def _slopes(code: int, x: float, y: float, p: float, q: float, out: float) -> tuple[float, float, float]:
    """The derivatives of a function of up to three numbers, by the order of `CODES`."""
    if code == 0:
        return 1.0, 1.0, 0.0
    if code == 1:
        return 1.0, -1.0, 0.0
    if code == 2:
        return y, x, 0.0
    if code == 3:
        return 1 / y, -x / (y * y), 0.0
    if code == 4:
        return (1.0, 0.0, 0.0) if x >= y else (0.0, 1.0, 0.0)
    if code == 5:
        return (1.0, 0.0, 0.0) if x <= y else (0.0, 1.0, 0.0)
    if code == 6:
        return y * x ** (y - 1), (out * float(np.log(x)) if x > 0 else 0.0), 0.0
    if code == 15:
        return (0.0, 1.0, 0.0) if x != 0 else (0.0, 0.0, 1.0)
    if code == 16:
        return (1.0 if x > 0 else 0.0), 0.0, 0.0
    if code == 17:
        return (1.0 if x > 0 else p), 0.0, 0.0
    if code == 18:
        return out, 0.0, 0.0
    if code == 19:
        return 1 / x, 0.0, 0.0
    if code == 20:
        return 1 / (1 + x), 0.0, 0.0
    if code == 21:
        return out + 1, 0.0, 0.0
    if code == 22:
        return 0.5 / out, 0.0, 0.0
    if code == 23:
        return -0.5 * out / x, 0.0, 0.0
    if code == 24:
        return -out * out, 0.0, 0.0
    if code == 25:
        return -1.0, 0.0, 0.0
    if code == 26:
        return float(np.sign(x)), 0.0, 0.0
    if code == 27:
        return out * (1 - out), 0.0, 0.0
    if code == 28:
        return 1 - out * out, 0.0, 0.0
    if code == 29:
        return 2 / np.sqrt(np.pi) * float(np.exp(-x * x)), 0.0, 0.0
    if code == 34:
        return float(np.cos(x)), 0.0, 0.0
    if code == 35:
        return -float(np.sin(x)), 0.0, 0.0
    if code == 37:
        # From below at the lower end: a count that is clamped there can only fall.
        return (1.0 if p < x < q else 0.0), 0.0, 0.0
    if code == 38:
        return 2 * x, 0.0, 0.0
    if code == 40:
        return y / (x * x + y * y), -x / (x * x + y * y), 0.0
    if code == 41:
        return 1.0, -float(np.floor(x / y)), 0.0
    return 0.0, 0.0, 0.0


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
        dx, dy, dz = _slopes(code, values[ia], y, p, q, values[o + c])
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
def _linear_back(flat: Any, slopes: Any, step: int, row: int) -> None:
    value, a = flat.out[step], flat.inputs[step, 0]
    width, o = flat.width[value], flat.start[value] + row * flat.width[value]
    i, m = flat.start[a] + row * flat.stride[a], flat.tables[step, MATRIX]
    for r in range(flat.width[a]):
        total = 0.0
        for c in range(width):
            total += slopes[o + c] * flat.matrices[m + r * width + c]
        slopes[i + r] += total


@kernel
def _sum_back(flat: Any, values: Any, slopes: Any, weights: Any, d_weights: Any, step: int, row: int) -> None:
    value, a, b = flat.out[step], flat.inputs[step, 0], flat.inputs[step, 1]
    width, o = flat.width[value], flat.start[value] + row * flat.width[value]
    arriving, arrival, m = flat.tables[step, ARRIVING], flat.tables[step, ARRIVAL], flat.columns[step, 1]
    present, fading = 0.0, 0.0
    if flat.code[step] == SHARE:
        for k in range(flat.table[arriving + row], flat.table[arriving + row + 1]):
            present += _weight(flat, step, flat.table[arrival + k], weights)
        if present <= 1.0:
            for c in range(width):
                fading += slopes[o + c] * values[o + c]
    scale = 1 / present if 0.0 < present < 1.0 else 1.0
    factors = flat.arity[step] == 2
    for k in range(flat.table[arriving + row], flat.table[arriving + row + 1]):
        entry = flat.table[arrival + k]
        column = flat.table[flat.tables[step, EDGE] + entry]
        weight = scale * _weight(flat, step, entry, weights)
        i, j = _entry(flat, step, entry)
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
def _max_back(
    flat: Any, values: Any, slopes: Any, weights: Any, d_weights: Any, step: int, row: int, room: Any
) -> None:
    """``after[r]`` is what the soft maximum would be of the entries from rank r on, ``chance[r]`` that these count."""
    best, after, chance, places, shares = room
    value, a, sign = flat.out[step], flat.inputs[step, 0], -1.0 if flat.code[step] == MINIMUM else 1.0
    o, d_mine = flat.start[value] + row * flat.width[value], d_weights[1 if flat.parameters[step, 1] != 0.0 else 0]
    start = flat.table[flat.tables[step, ARRIVING] + row]
    arrivals = _arrivals(flat, weights, step, row, places, shares)
    for c in range(flat.width[value]):
        slope = slopes[o + c]
        if slope == 0.0:
            continue
        count = _ranked(values, sign, c, room, arrivals)
        after[count], chance[0] = flat.parameters[step, 0], 1.0
        for rank in range(count - 1, -1, -1):
            kept = 1.0 if rank == RANKS - 1 else shares[best[rank]]
            after[rank] = kept * values[places[best[rank]] + c] + (1 - kept) * after[rank + 1]
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
def _column(flat: Any, step: int, arrival: int) -> int:
    """The edge column of something that arrives."""
    return int(flat.table[flat.tables[step, EDGE] + flat.table[flat.tables[step, ARRIVAL] + arrival]])


@jit
def backward(flat: Any, values: Any, slopes: Any, weights: Any, d_weights: Any) -> None:
    """Add the derivatives to ``d_weights`` and, for features, ``slopes``, which begins with those of the output."""
    room = _room(flat)
    for step in range(len(flat.kind) - 1, -1, -1):
        value, kind = flat.out[step], flat.kind[step]
        width = flat.width[value]
        for row in range(flat.rows[value]):
            if not flat.needed[flat.first[value] + row]:
                continue
            o = flat.start[value] + row * width
            alive = False
            for c in range(width):
                alive |= slopes[o + c] != 0.0
            if not alive:
                continue
            if kind == MAP:
                _map_back(flat, values, slopes, step, row)
            elif kind == FOLD:
                _fold_back(flat, values, slopes, step, row)
            elif kind == LINEAR:
                if flat.first[flat.inputs[step, 0]] >= 0:
                    _linear_back(flat, slopes, step, row)
            elif kind == PICK:
                which, column, inputs = flat.tables[step, WHICH], flat.tables[step, COLUMN], flat.tables[step, INPUTS]
                for c in range(width):
                    a = flat.table[inputs + flat.table[which + c]]
                    if flat.first[a] >= 0:
                        slopes[flat.start[a] + row * flat.stride[a] + flat.table[column + c]] += slopes[o + c]
            elif kind != REDUCE:
                a, i = copied(flat, step, row)
                if flat.first[a] >= 0:
                    for c in range(width):
                        slopes[i + c] += slopes[o + c]
            elif flat.code[step] == SUM or flat.code[step] == SHARE:
                _sum_back(flat, values, slopes, weights, d_weights, step, row)
            elif flat.code[step] != SHIFT:
                _max_back(flat, values, slopes, weights, d_weights, step, row, room)
