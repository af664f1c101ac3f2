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
            mine, before = fresh[o : o + width], base[o : o + width]
            for c in range(width):
                mine[c] = before[c]
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
    mine, brought, gone = fresh[o : o + width], x[i : i + width], base[i : i + width]
    if before and after:
        for c in range(width):
            mine[c] += brought[c] - gone[c]
    elif after:
        for c in range(width):
            mine[c] += brought[c]
    elif before:
        for c in range(width):
            mine[c] -= gone[c]


@kernel
def extreme_anew(flat: Any, state: Any, step: int, entries: Any, now: int) -> None:
    """Maxima or minima at receivers: an entry that comes or goes matters only in columns where it is the extreme.

    A column whose extreme is gone is looked for among all entries; until then it is marked by not being a number. Where
    many entries changed, all are looked at, which is as quick.
    """
    first = flat.first[flat.out[step]]
    rows = state.changed[first : first + state.counts[flat.out[step]]]
    _begin_extremes(flat, state, step, rows, now)
    _mark_gone(flat, state, step, entries)
    _raise_extremes(flat, state, step, entries, now)
    for k in range(len(rows)):
        if state.tally[first + rows[k]] >= 0:
            _search_anew(flat, state, step, rows[k], now)


@inlined
def _begin_extremes(flat: Any, state: Any, step: int, rows: Any, now: int) -> None:
    """What was there before; where much changed, what is there now, and a tally of -1."""
    value = flat.out[step]
    first, width = flat.first[value], flat.width[value]
    for k in range(len(rows)):
        if _much_changed(flat, state, step, rows[k]):
            state.tally[first + rows[k]] = -1
            reduce_rows(flat, state, step, rows[k : k + 1], now, state.fresh)
        else:
            o = flat.start[value] + rows[k] * width
            mine, before = state.fresh[o : o + width], state.base[o : o + width]
            for c in range(width):
                mine[c] = before[c]


@inlined
def _mark_gone(flat: Any, state: Any, step: int, entries: Any) -> None:
    """Mark the columns in which an entry that changed was the extreme, unless nothing can fall short of that."""
    base, fresh, table = state.base, state.fresh, flat.table
    value, a = flat.out[step], flat.inputs[step, 0]
    first, width = flat.first[value], flat.width[value]
    sources, edges, receivers = flat.tables[step, SOURCE], flat.tables[step, EDGE], flat.tables[step, RECEIVER]
    limit = flat.parameters[step, 2]
    for entry in entries:
        row, column, source = table[receivers + entry], table[edges + entry], table[sources + entry]
        if state.tally[first + row] >= 0 and (column < 0 or state.present[column]):
            o, i = flat.start[value] + row * width, flat.start[a] + source * flat.stride[a]
            mine, extreme, gone = fresh[o : o + width], base[o : o + width], base[i : i + width]
            for c in range(width):
                mine[c] = np.nan if (gone[c] == extreme[c]) & (extreme[c] != limit) else mine[c]


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
def _much_changed(flat: Any, state: Any, step: int, row: int) -> bool:
    """Whether a quarter of the entries changed, or none was there before."""
    table, arriving = flat.table, flat.tables[step, ARRIVING]
    start, end = table[arriving + row], table[arriving + row + 1]
    if 4 * state.tally[flat.first[flat.out[step]] + row] >= end - start:
        return True
    for k in range(start, end):
        column = table[flat.tables[step, EDGE] + table[flat.tables[step, ARRIVAL] + k]]
        if column < 0 or state.present[column]:
            return False
    return True


@kernel
def _search_anew(flat: Any, state: Any, step: int, row: int, now: int) -> None:
    """The extremes of marked columns, among all entries that lead to a row.

    None of them goes beyond the old extreme, so the first that reaches it is enough.
    """
    fresh, base, table, value, a = state.fresh, state.base, flat.table, flat.out[step], flat.inputs[step, 0]
    width, sign, first_a = flat.width[value], -1.0 if flat.code[step] == AMIN else 1.0, flat.first[a]
    o, columns = flat.start[value] + row * width, state.columns
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
            if x[i + c] != base[o + c]:
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
