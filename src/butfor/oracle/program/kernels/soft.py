"""Compiled reading of a program as a smooth function of one weight per edge column, and of the features.

Every reduction over edges becomes a weighted one, which is the reduction itself where all weights are 1, and the
reduction without the edge where one is 0:

    sum      Σ w·m, hence degrees Σ w, and with them every normalisation and mean
    share    the sum below a softmax: Σ w·eˢ / min(Σ w, 1), so that a receiver fades as its last edge goes
    max      Σ_k w_k·m_k·Π_{j<k} (1 - w_j), with m sorted downwards: the maximum if w were chances to be kept

An edge that may be added is one of weight 0. Where all edges into a node are, the sum below a softmax is taken as the
mean of eˢ, which is its limit as their weights grow together.

The gradient (`gradients.py`) sees what deletion does: of a maximum the step to the next message, of a mean and a
softmax that the others gain, and that the last edge takes everything with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from butfor.oracle.program.kernels.flat import (
    AMIN,
    ARRIVAL,
    ARRIVING,
    EDGE,
    REDUCE,
    SHARE,
    SHIFT,
    SOURCE,
    SUM,
    jit,
    kernel,
)
from butfor.oracle.program.kernels.values import begin, compute, needed_rows
from butfor.oracle.program.kernels.vectors import copy_row

__all__ = ["RANKS", "arrivals_of", "entry_of", "forward", "ranked", "room_for", "weight_of"]

# How many of a receiver's largest messages a soft maximum looks at; the last of them counts in full.
RANKS = 4

# How far the attention of an edge that is not there may lie above all others: e to this is still a number.
FAR = 300.0


@kernel
def weight_of(flat: Any, step: int, entry: int, weights: Any) -> float:
    """The weight of an entry: the first row of weights, the second where degrees are counted."""
    column = flat.table[flat.tables[step, EDGE] + entry]
    if column < 0:
        return 1.0
    return float(weights[1 if flat.parameters[step, 1] != 0.0 else 0, column])


@kernel
def entry_of(flat: Any, step: int, entry: int) -> tuple[int, int]:
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
    start, s = begin(flat, values, step, row, values, o)
    copy_row(values, o, start, s, width)
    for k in range(flat.table[arriving + row], flat.table[arriving + row + 1]):
        entry = flat.table[arrival + k]
        weight = weight_of(flat, step, entry, weights)
        if weight == 0.0:
            continue
        present += weight
        i, j = entry_of(flat, step, entry)
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
        total += values[entry_of(flat, step, flat.table[arrival + k])[0] + c]
        count += 1
    return total / count if count else 1.0


@kernel
def arrivals_of(flat: Any, weights: Any, step: int, row: int, places: Any, shares: Any) -> int:
    """Where the messages that lead to a row begin, and their weights; how many there are."""
    arriving, arrival = flat.tables[step, ARRIVING], flat.tables[step, ARRIVAL]
    start, end = flat.table[arriving + row], flat.table[arriving + row + 1]
    for k in range(end - start):
        entry = flat.table[arrival + start + k]
        places[k], shares[k] = entry_of(flat, step, entry)[0], weight_of(flat, step, entry, weights)
    return int(end - start)


@kernel
def ranked(values: Any, sign: float, c: int, room: Any, arrivals: int) -> int:
    """The largest (for a minimum, smallest) messages of a column, the first ranks; how many there are."""
    best, places, shares = room[0], room[3], room[4]
    count, last = 0, -np.inf
    for k in range(arrivals):
        message, at = sign * values[places[k] + c], count
        if shares[k] == 0.0 or (count == RANKS and not message > last):
            continue
        while at > 0 and message > sign * values[places[best[at - 1]] + c]:
            if at < RANKS:
                best[at] = best[at - 1]
            at -= 1
        if at < RANKS:
            best[at] = k
            count = min(count + 1, RANKS)
        last = sign * values[places[best[count - 1]] + c]
    return count


@kernel
def _shift(flat: Any, values: Any, weights: Any, step: int, row: int, c: int) -> float:
    """What a softmax subtracts: the largest of what is there, or more where an edge that is not there would be inf."""
    arriving, arrival = flat.tables[step, ARRIVING], flat.tables[step, ARRIVAL]
    there, largest = -np.inf, -np.inf
    for k in range(flat.table[arriving + row], flat.table[arriving + row + 1]):
        entry = flat.table[arrival + k]
        message = values[entry_of(flat, step, entry)[0] + c]
        largest = max(largest, message)
        if weight_of(flat, step, entry, weights) != 0.0:
            there = max(there, message)
    if largest == -np.inf:
        return float(flat.parameters[step, 0])
    return largest if there == -np.inf else max(there, largest - FAR)


@kernel
def _soft_max(flat: Any, values: Any, weights: Any, step: int, row: int, room: Any) -> None:
    value, sign = flat.out[step], -1.0 if flat.code[step] == AMIN else 1.0
    o, best, places, shares = flat.start[value] + row * flat.width[value], room[0], room[3], room[4]
    if flat.code[step] == SHIFT:
        for c in range(flat.width[value]):
            values[o + c] = _shift(flat, values, weights, step, row, c)
        return
    arrivals = arrivals_of(flat, weights, step, row, places, shares)
    soft = False
    for k in range(arrivals):
        soft |= 0.0 < shares[k] < 1.0
    if not soft:
        _hard_max(values[o : o + flat.width[value]], values, sign, room, arrivals, flat.parameters[step, 0])
        return
    for c in range(flat.width[value]):
        total, chance = 0.0, 1.0
        for rank in range(ranked(values, sign, c, room, arrivals)):
            kept = 1.0 if rank == RANKS - 1 else shares[best[rank]]
            total += chance * kept * values[places[best[rank]] + c]
            chance *= 1.0 - kept
            if chance == 0.0:
                break
        values[o + c] = total + chance * flat.parameters[step, 0]


@kernel
def _hard_max(mine: Any, values: Any, sign: float, room: Any, arrivals: int, empty: float) -> None:
    """The maximum where each entry is there or not, row by row: wide features are read in order."""
    places, shares, nothing = room[3], room[4], True
    for c in range(len(mine)):
        mine[c] = empty
    for k in range(arrivals):
        if shares[k] != 1.0:
            continue
        brought = values[places[k] : places[k] + len(mine)]
        for c in range(len(mine)):
            mine[c] = brought[c] if nothing or sign * brought[c] > sign * mine[c] else mine[c]
        nothing = False


@kernel
def _most_arrivals(flat: Any) -> int:
    """How many entries the largest reduction has."""
    most = 1
    for step in range(len(flat.kind)):
        if flat.kind[step] == REDUCE:
            most = max(most, flat.table[flat.tables[step, ARRIVING] + flat.rows[flat.out[step]]])
    return most


@jit
def room_for(flat: Any) -> Any:
    """For the best entries of a row, what comes after them and how likely, and where messages are and their weights."""
    most = _most_arrivals(flat)
    return (
        np.empty(RANKS, np.int64), np.empty(RANKS + 1), np.empty(RANKS + 1), np.empty(most, np.int64), np.empty(most),
    )  # fmt: skip


@jit
def forward(flat: Any, state: Any, weights: Any) -> None:
    """All rows that the target needs, under soft weights (for messages, and for counting degrees)."""
    values = state.base
    room = room_for(flat)
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
