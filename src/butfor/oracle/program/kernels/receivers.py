"""What an edit changes where edges lead: sums, maxima and minima at the receivers of entries that changed."""

from __future__ import annotations

from typing import Any

import numpy as np

from butfor.oracle.program.kernels.flat import (
    AMIN,
    ARRIVAL,
    ARRIVING,
    EDGE,
    RECEIVER,
    SECOND,
    SHARE,
    SOURCE,
    VISIT,
    inlined,
    kernel,
    natural,
)
from butfor.oracle.program.kernels.reductions import add_product, reduce_rows
from butfor.oracle.program.kernels.values import BLOCK
from butfor.oracle.program.kernels.vectors import copy_row

__all__ = ["receivers_of", "reduce_anew"]

# So few rows are added up again, whichever of them changed.
FEW = 8


@kernel
def receivers_of(flat: Any, state: Any, step: int, entries: Any, now: int) -> int:
    """Keep each entry once, if the target needs its receiver; note the receivers, and how many entries each has."""
    table, stamp, visited, changed, tally = flat.table, state.stamp, state.visited, state.changed, state.tally
    value = flat.out[step]
    first = flat.first[value]
    receivers, visits = flat.tables[step, RECEIVER], flat.tables[step, VISIT]
    kept = count = 0
    nowhere = len(changed) - 1
    for entry in entries:
        row, visit = table[natural(receivers + entry)], natural(visits + entry)
        at = natural(first + row)
        is_new = flat.needed[at] & (visited[visit] != now)
        is_first = is_new & (stamp[at] != now)
        # Written down in any case, which is quicker than to guess whether it is new.
        entries[natural(kept)] = entry
        changed[natural(first + count if is_first else nowhere)] = row
        kept += is_new
        count += is_first
        visited[visit] = now
        tally[at] = (0 if is_first else tally[at]) + is_new
        stamp[at] = now if is_new else stamp[at]
    state.counts[value] = count
    return kept


@kernel
def reduce_anew(flat: Any, state: Any, step: int, entries: Any, now: int) -> None:
    """What is at receivers now: where much changed, of all that leads there; elsewhere, of what was there before.

    All is as quick where most entries changed or there are few, and exact where nearly everything goes: a difference
    of large sums is rounding.
    """
    value = flat.out[step]
    first, width = flat.first[value], flat.width[value]
    rows, much, left = state.changed[first : first + state.counts[value]], 0, 0
    if flat.tables[step, SECOND] >= 0:
        _take_second(flat, state, step, entries, now)
    for k in range(len(rows)):
        row = rows[k]
        if state.tally[first + row] < 0:
            continue
        if _much_changed(flat, state, step, row):
            state.tally[first + row] = -1
            rows[k], rows[much] = rows[much], row
            much += 1
        else:
            o = flat.start[value] + row * width
            copy_row(state.fresh, o, state.base, o, width)
            left += 1
    reduce_rows(flat, state, step, rows[:much], now, state.fresh)
    if left and flat.code[step] <= SHARE:
        _add_differences(flat, state, step, entries, now)
    elif left:
        _extremes_anew(flat, state, step, rows[much:], entries, now)


@inlined
def _take_second(flat: Any, state: Any, step: int, entries: Any, now: int) -> None:
    """Rows that lose one of the entries that they had before any edit: what is left without it is known."""
    table, value, a, prefix = flat.table, flat.out[step], flat.inputs[step, 0], state.clock[1]
    first, width = flat.first[value], flat.width[value]
    sources, edges, receivers = flat.tables[step, SOURCE], flat.tables[step, EDGE], flat.tables[step, RECEIVER]
    for entry in entries:
        row, column, source = table[receivers + entry], table[edges + entry], table[sources + entry]
        if now == prefix:
            state.touched[first + row] = now
        elif state.tally[first + row] == 1 and state.touched[first + row] != prefix and state.present[column]:
            o, i = flat.start[value] + row * width, flat.start[a] + source * flat.stride[a]
            s = flat.tables[step, SECOND] + row * width
            mine, extreme, gone = state.fresh[o : o + width], state.base[o : o + width], state.base[i : i + width]
            second = state.second[s : s + width]
            for c in range(width):
                mine[c] = second[c] if gone[c] == extreme[c] else extreme[c]
            state.tally[first + row] = -1


@inlined
def _much_changed(flat: Any, state: Any, step: int, row: int) -> bool:
    """Whether so much of what leads to a row changed that all of it is looked at."""
    table, arriving = flat.table, flat.tables[step, ARRIVING]
    changed, entries = state.tally[flat.first[flat.out[step]] + row], table[arriving + row + 1] - table[arriving + row]
    much: bool
    if flat.code[step] <= SHARE:
        much = 2 * changed >= entries or (entries <= FEW and flat.arity[step] == 1)
    else:
        much = 8 * changed >= entries or _is_empty(flat, state, step, row)
    return much


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


@inlined
def _extremes_anew(flat: Any, state: Any, step: int, rows: Any, entries: Any, now: int) -> None:
    """Maxima or minima at receivers: an entry that comes or goes matters only in columns where it is the extreme.

    A column whose extreme is gone is looked for among all entries; until then it is marked by not being a number.
    """
    _mark_gone(flat, state, step, entries)
    _raise_extremes(flat, state, step, entries, now)
    first = flat.first[flat.out[step]]
    for row in rows:
        if state.tally[first + row] >= 0:
            _search_anew(flat, state, step, row, now)


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
        mine, extreme, brought = fresh[o : o + width], base[o : o + width], x[i : i + width]
        for c in range(width):
            reaches = (sign * brought[c] >= sign * extreme[c]) & (not sign * brought[c] <= sign * mine[c])
            mine[c] = brought[c] if reaches else mine[c]


@kernel
def _is_empty(flat: Any, state: Any, step: int, row: int) -> bool:
    """Whether nothing led to a row before."""
    table, arriving = flat.table, flat.tables[step, ARRIVING]
    for k in range(table[arriving + row], table[arriving + row + 1]):
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
    for start in range(o, o + width, BLOCK):
        end = min(start + BLOCK, o + width)
        mine, some = fresh[start:end], False
        for c in range(end - start):
            some |= mine[c] != mine[c]
        if some:
            for c in range(start, end):
                columns[marked] = c - o
                marked += fresh[c] != fresh[c]
    return marked
