"""What an edit changes where edges lead: sums, maxima and minima at the receivers of entries that changed."""

from __future__ import annotations

from typing import Any

import numpy as np

from butfor.oracle.program.kernels.flat import AMIN, ARRIVAL, ARRIVING, EDGE, RECEIVER, SOURCE, VISIT, inlined, kernel
from butfor.oracle.program.kernels.values import add_product, reduce_rows

__all__ = ["extreme_anew", "receivers_of", "sum_anew"]


@kernel
def receivers_of(flat: Any, state: Any, step: int, entries: Any, now: int) -> int:
    """Keep each entry once, if the target needs its receiver; note the receivers, and how many entries each has."""
    table, stamp, visited = flat.table, state.stamp, state.visited
    value = flat.out[step]
    first = flat.first[value]
    receivers, visits = flat.tables[step, RECEIVER], flat.tables[step, VISIT]
    kept = 0
    for entry in entries:
        row = table[receivers + entry]
        if not flat.needed[first + row] or visited[visits + entry] == now:
            continue
        visited[visits + entry] = now
        entries[kept] = entry
        kept += 1
        if stamp[first + row] != now:
            stamp[first + row] = now
            state.changed[first + state.counts[value]] = row
            state.counts[value] += 1
            state.tally[first + row] = 0
        state.tally[first + row] += 1
    return kept


@kernel
def sum_anew(flat: Any, state: Any, step: int, entries: Any, now: int) -> None:
    """Sums at receivers: the differences of entries that changed; all entries where most of them did.

    That is as quick, and exact where nearly everything goes: a difference of large sums is rounding.
    """
    base, fresh, table = state.base, state.fresh, flat.table
    value = flat.out[step]
    first, width = flat.first[value], flat.width[value]
    arriving = flat.tables[step, ARRIVING]
    rows = state.changed[first : first + state.counts[value]]
    for k in range(len(rows)):
        row = rows[k]
        if 2 * state.tally[first + row] >= table[arriving + row + 1] - table[arriving + row]:
            state.tally[first + row] = -1
            reduce_rows(flat, state, step, rows[k : k + 1], now, fresh)
        else:
            o = flat.start[value] + row * width
            for c in range(width):
                fresh[o + c] = base[o + c]
    _add_differences(flat, state, step, entries, now)


@kernel
def _add_differences(flat: Any, state: Any, step: int, entries: Any, now: int) -> None:
    base, fresh, stamp, table = state.base, state.fresh, state.stamp, flat.table
    value, a, b = flat.out[step], flat.inputs[step, 0], flat.inputs[step, 1]
    width, first, m = flat.width[value], flat.first[value], flat.columns[step, 1]
    sources, edges, receivers = flat.tables[step, SOURCE], flat.tables[step, EDGE], flat.tables[step, RECEIVER]
    first_a, first_b, factors = flat.first[a], flat.first[b], flat.arity[step] == 2
    for entry in entries:
        row = table[receivers + entry]
        if state.tally[first + row] < 0:
            continue
        o = flat.start[value] + row * width
        column, source = table[edges + entry], table[sources + entry]
        i = flat.start[a] + source * flat.stride[a]
        before = column < 0 or state.present[column]
        after = before != (column >= 0 and state.toggled[column] == now)
        x = fresh if first_a >= 0 and stamp[first_a + source] == now else base
        if factors:
            j = flat.start[b] + entry * flat.stride[b]
            y = fresh if first_b >= 0 and stamp[first_b + entry] == now else base
            if before:
                add_product(fresh, o, base, i, base, j, table, m, -1.0, width)
            if after:
                add_product(fresh, o, x, i, y, j, table, m, 1.0, width)
        else:
            _add_difference(fresh, o, x, base, i, before, after, width)


@inlined
def _add_difference(fresh: Any, o: int, x: Any, base: Any, i: int, before: bool, after: bool, width: int) -> None:
    """Add a row if it is there now, less what it was if it was there before."""
    if before and after:
        for c in range(width):
            fresh[o + c] += x[i + c] - base[i + c]
    elif after:
        for c in range(width):
            fresh[o + c] += x[i + c]
    elif before:
        for c in range(width):
            fresh[o + c] -= base[i + c]


@kernel
def extreme_anew(flat: Any, state: Any, step: int, entries: Any, now: int) -> None:
    """Maxima or minima at receivers: an entry that comes or goes matters only in columns where it is the extreme.

    A column whose extreme is gone is looked for among all entries; until then it is marked by not being a number.
    """
    first = flat.first[flat.out[step]]
    rows = state.changed[first : first + state.counts[flat.out[step]]]
    _mark_gone(flat, state, step, entries, rows)
    _raise_extremes(flat, state, step, entries, now)
    for k in range(len(rows)):
        _search_anew(flat, state, step, rows[k], now)


@inlined
def _mark_gone(flat: Any, state: Any, step: int, entries: Any, rows: Any) -> None:
    """Mark the columns in which an entry that changed was the extreme, and all of rows that mostly changed."""
    base, fresh, table = state.base, state.fresh, flat.table
    value, a = flat.out[step], flat.inputs[step, 0]
    first, width = flat.first[value], flat.width[value]
    sources, edges, receivers = flat.tables[step, SOURCE], flat.tables[step, EDGE], flat.tables[step, RECEIVER]
    for k in range(len(rows)):
        o = flat.start[value] + rows[k] * width
        anew = _mostly_changed(flat, state, step, rows[k])
        if anew:
            state.tally[first + rows[k]] = -1
        for c in range(width):
            fresh[o + c] = np.nan if anew else base[o + c]
    for entry in entries:
        row, column, source = table[receivers + entry], table[edges + entry], table[sources + entry]
        if column < 0 or state.present[column]:
            o, i = flat.start[value] + row * width, flat.start[a] + source * flat.stride[a]
            for c in range(width):
                if base[i + c] == base[o + c]:
                    fresh[o + c] = np.nan


@inlined
def _raise_extremes(flat: Any, state: Any, step: int, entries: Any, now: int) -> None:
    """What reaches the old extreme is the new one, unless another goes further."""
    base, fresh, stamp, table = state.base, state.fresh, state.stamp, flat.table
    value, a, sign = flat.out[step], flat.inputs[step, 0], -1.0 if flat.code[step] == AMIN else 1.0
    first, width, first_a = flat.first[value], flat.width[value], flat.first[a]
    sources, edges, receivers = flat.tables[step, SOURCE], flat.tables[step, EDGE], flat.tables[step, RECEIVER]
    for entry in entries:
        row, column, source = table[receivers + entry], table[edges + entry], table[sources + entry]
        if state.tally[first + row] < 0 or (column >= 0 and state.present[column] == (state.toggled[column] == now)):
            continue
        o, i = flat.start[value] + row * width, flat.start[a] + source * flat.stride[a]
        x = fresh if first_a >= 0 and stamp[first_a + source] == now else base
        for c in range(width):
            if sign * x[i + c] >= sign * base[o + c] and not sign * x[i + c] <= sign * fresh[o + c]:
                fresh[o + c] = x[i + c]


@kernel
def _mostly_changed(flat: Any, state: Any, step: int, row: int) -> bool:
    """Whether half of the entries changed, or none was there before."""
    table, arriving = flat.table, flat.tables[step, ARRIVING]
    start, end = table[arriving + row], table[arriving + row + 1]
    if 2 * state.tally[flat.first[flat.out[step]] + row] >= end - start:
        return True
    for k in range(start, end):
        column = table[flat.tables[step, EDGE] + table[flat.tables[step, ARRIVAL] + k]]
        if column < 0 or state.present[column]:
            return False
    return True


@kernel
def _search_anew(flat: Any, state: Any, step: int, row: int, now: int) -> None:
    """The extremes of marked columns, among all entries that lead to a row.

    Unless the whole row is marked, none of them goes beyond the old extreme: the first that reaches it is enough.
    """
    fresh, base, table, value, a = state.fresh, state.base, flat.table, flat.out[step], flat.inputs[step, 0]
    width, sign, first_a = flat.width[value], -1.0 if flat.code[step] == AMIN else 1.0, flat.first[a]
    o, columns = flat.start[value] + row * width, state.columns
    bounded = state.tally[flat.first[value] + row] >= 0
    marked = _marked(fresh, o, width, columns)
    arriving, arrival = flat.tables[step, ARRIVING], flat.tables[step, ARRIVAL]
    for k in range(table[arriving + row], table[arriving + row + 1]):
        if not marked:
            break
        entry = table[arrival + k]
        column = table[flat.tables[step, EDGE] + entry]
        if column >= 0 and state.present[column] == (state.toggled[column] == now):
            continue
        source = table[flat.tables[step, SOURCE] + entry]
        x = fresh if first_a >= 0 and state.stamp[first_a + source] == now else base
        i = flat.start[a] + source * flat.stride[a]
        left = 0
        for n in range(marked):
            c = columns[n]
            if not sign * x[i + c] <= sign * fresh[o + c]:
                fresh[o + c] = x[i + c]
            if not (bounded and x[i + c] == base[o + c]):
                columns[left] = c
                left += 1
        marked = left
    for n in range(marked):
        if fresh[o + columns[n]] != fresh[o + columns[n]]:
            fresh[o + columns[n]] = flat.parameters[step, 0]


@inlined
def _marked(fresh: Any, o: int, width: int, columns: Any) -> int:
    """Write down the marked columns of a row. Returns how many."""
    marked = 0
    for c in range(width):
        if fresh[o + c] != fresh[o + c]:
            columns[marked] = c
            marked += 1
    return marked
