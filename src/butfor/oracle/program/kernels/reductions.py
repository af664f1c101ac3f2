"""Sums, maxima and minima of all that leads to a row."""

from __future__ import annotations

from typing import Any

from butfor.oracle.program.kernels.flat import AMIN, ARRIVAL, ARRIVING, EDGE, SECOND, SHARE, SOURCE, kernel, natural
from butfor.oracle.program.kernels.values import begin
from butfor.oracle.program.kernels.vectors import add_rows, copy_row, fill_row, largest_of_rows, smallest_of_rows

__all__ = ["add_product", "find_second", "reduce_rows"]


@kernel
def reduce_rows(flat: Any, state: Any, step: int, rows: Any, now: int, out: Any) -> None:
    """All that leads to each row."""
    value, code, weighted = flat.out[step], flat.code[step], flat.arity[step] == 2
    width, values, places = flat.width[value], state.values, state.places
    for row in rows:
        o = flat.start[value] + row * width
        count = _messages(flat, state, step, row, now)
        if code <= SHARE or not count:
            start, s = begin(flat, state.base, step, row, out, o)
        else:
            start, s = values, places[0]
        if weighted:
            copy_row(out, o, start, s, width)
            _add_weighted(flat, state, step, out, o, count, now)
        elif code <= SHARE:
            add_rows(out, o, start, s, values, places, count, width)
        elif code == AMIN:
            smallest_of_rows(out, o, start, s, values, places, count, width)
        else:
            largest_of_rows(out, o, start, s, values, places, count, width)


@kernel
def _messages(flat: Any, state: Any, step: int, row: int, now: int) -> int:
    """Note the entries that lead to a row and are there, and where the message of each begins. Returns how many."""
    table, stamp, present, toggled = flat.table, state.stamp, state.present, state.toggled
    a, entries, places = flat.inputs[step, 0], state.arrivals, state.places
    arriving, arrival = flat.tables[step, ARRIVING], flat.tables[step, ARRIVAL]
    sources, edges = flat.tables[step, SOURCE], flat.tables[step, EDGE]
    first, start, stride, anew, count = flat.first[a], flat.start[a], flat.stride[a], len(state.values) // 2, 0
    for k in range(table[arriving + row], table[arriving + row + 1]):
        entry = table[natural(arrival + k)]
        column, source = table[natural(edges + entry)], table[natural(sources + entry)]
        there = column < 0 or present[natural(column)] != (toggled[natural(column)] == now)
        place = start + source * stride
        if first >= 0:
            place += anew * (stamp[natural(first + source)] == now)
        entries[natural(count)], places[natural(count)] = entry, place
        count += there
    return count


@kernel
def find_second(flat: Any, state: Any, step: int, rows: Any) -> None:
    """What each maximum or minimum would be if the entry that it is of were gone."""
    value, sign = flat.out[step], -1.0 if flat.code[step] == AMIN else 1.0
    width, values, best = flat.width[value], state.values, state.factors
    for row in rows:
        s = flat.tables[step, SECOND] + row * width
        count = _messages(flat, state, step, row, -1)
        mine, extreme = state.second[s : s + width], best[:width]
        fill_row(state.second, s, flat.parameters[step, 0], width)
        for k in range(count):
            i = state.places[k]
            brought = values[i : i + width]
            if k == 0:
                copy_row(best, 0, values, i, width)
                continue
            for c in range(width):
                larger = sign * brought[c] > sign * extreme[c]
                other = extreme[c] if larger else brought[c]
                mine[c] = other if (k == 1) | (sign * other > sign * mine[c]) else mine[c]
                extreme[c] = brought[c] if larger else extreme[c]


@kernel
def _add_weighted(flat: Any, state: Any, step: int, out: Any, o: int, count: int, now: int) -> None:
    """Messages times their factors."""
    b = flat.inputs[step, 1]
    first, width, m = flat.first[b], flat.width[flat.out[step]], flat.columns[step, 1]
    for k in range(count):
        entry = state.arrivals[k]
        y = state.fresh if first >= 0 and state.stamp[first + entry] == now else state.base
        j = flat.start[b] + entry * flat.stride[b]
        add_product(out, o, state.values, state.places[k], y, j, flat.table, m, 1.0, width)


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
