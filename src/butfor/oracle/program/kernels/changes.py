"""What edits change: only rows that an edit changes, and that the target needs, are computed anew.

An edit toggles edge columns and sets features. What changes is followed step by step: a step is computed anew in rows
in which an input changed. Sums and matrix products are linear, so only the difference is added. `extend` makes the
edits of a prefix for good, tries each candidate, and undoes the prefix.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from butfor.oracle.program.kernels.flat import (
    BEGINS,
    CONCAT,
    ENTRY,
    GATHER,
    INPUTS,
    LINEAR,
    OF_EDGE,
    PICK,
    READER,
    READERS,
    REDUCE,
    SHARE,
    inlined,
    jit,
    kernel,
    natural,
)
from butfor.oracle.program.kernels.receivers import receivers_of, reduce_anew
from butfor.oracle.program.kernels.values import compute
from butfor.oracle.program.kernels.vectors import copy_row, rows_differ

__all__ = ["extend"]


@kernel
def _propagate_reduce(flat: Any, state: Any, step: int, columns: Any, now: int) -> None:
    """Receivers of rows that changed and of edges that came or went."""
    table, changed, counts = flat.table, state.changed, state.counts
    a, b = flat.inputs[step, 0], flat.inputs[step, 1]
    entries = state.entries
    count = 0
    if flat.first[a] >= 0:
        readers, reader = flat.tables[step, READERS], flat.tables[step, READER]
        for k in range(counts[a]):
            row = changed[natural(flat.first[a] + k)]
            for j in range(table[natural(readers + row)], table[natural(readers + row + 1)]):
                entries[natural(count)] = table[natural(reader + j)]
                count += 1
    if flat.arity[step] == 2 and flat.first[b] >= 0:
        for k in range(counts[b]):
            entries[count] = changed[flat.first[b] + k]
            count += 1
    of_edge, edge_entries = flat.tables[step, OF_EDGE], flat.tables[step, ENTRY]
    for column in columns:
        for j in range(table[of_edge + column], table[of_edge + column + 1]):
            entries[count] = table[edge_entries + j]
            count += 1
    kept = receivers_of(flat, state, step, entries[:count], now) if count else 0
    if kept:
        reduce_anew(flat, state, step, entries[:kept], now)
        if flat.code[step] > SHARE:
            _drop_unchanged(flat, state, flat.out[step])


@kernel
def _propagate_gather(flat: Any, state: Any, step: int, now: int) -> None:
    table, value, a = flat.table, flat.out[step], flat.inputs[step, 0]
    readers, reader = flat.tables[step, READERS], flat.tables[step, READER]
    for k in range(state.counts[a]):
        source = state.changed[flat.first[a] + k]
        i = flat.start[a] + source * flat.width[a]
        for j in range(table[readers + source], table[readers + source + 1]):
            _put(flat, state, value, table[reader + j], i, now)


@kernel
def _propagate_concat(flat: Any, state: Any, step: int, now: int) -> None:
    table = flat.table
    begins, inputs = flat.tables[step, BEGINS], flat.tables[step, INPUTS]
    for n in range(flat.arity[step]):
        a = table[inputs + n]
        if flat.first[a] < 0:
            continue
        for k in range(state.counts[a]):
            row = state.changed[flat.first[a] + k]
            _put(flat, state, flat.out[step], table[begins + n] + row, flat.start[a] + row * flat.width[a], now)


@kernel
def _put(flat: Any, state: Any, value: int, row: int, i: int, now: int) -> None:
    """A row that is a copy of one that changed."""
    first, width = flat.first[value], flat.width[value]
    if flat.needed[first + row]:
        o = flat.start[value] + row * width
        copy_row(state.fresh, o, state.fresh, i, width)
        state.stamp[first + row] = now
        state.changed[first + state.counts[value]] = row
        state.counts[value] += 1


@kernel
def _propagate_rows(flat: Any, state: Any, step: int, now: int) -> None:
    """Rows in which an input changed."""
    stamp, changed = state.stamp, state.changed
    value, arity = flat.out[step], flat.arity[step]
    first, count = flat.first[value], 0
    rows = changed[first:]
    for n in range(arity):
        a = flat.inputs[step, n]
        if flat.kind[step] == PICK:
            a = flat.table[flat.tables[step, INPUTS] + n]
        if flat.first[a] < 0:
            continue
        for k in range(state.counts[a]):
            row = changed[natural(flat.first[a] + k)]
            at = natural(first + row)
            if flat.needed[at] and stamp[at] != now:
                stamp[at] = now
                rows[natural(count)] = row
                count += 1
    state.counts[value] = count
    if count:
        compute(flat, state, step, rows[:count], now, state.fresh)
        if flat.kind[step] != LINEAR:  # a product hardly ever stays the same
            _drop_unchanged(flat, state, value)


@kernel
def _drop_unchanged(flat: Any, state: Any, value: int) -> None:
    """What came out the same has not changed."""
    first, width = flat.first[value], flat.width[value]
    rows, kept = state.changed[first : first + state.counts[value]], 0
    for k in range(len(rows)):
        row = rows[k]
        o = flat.start[value] + row * width
        if rows_differ(state.fresh, o, state.base, o, width):
            rows[natural(kept)] = row
            kept += 1
        else:
            state.stamp[first + row] = 0
    state.counts[value] = kept


@kernel
def _make(flat: Any, state: Any, edited: Any, edits: Any, columns: Any) -> int:
    """Compute what these edits change; the edge columns that they toggle are written down. Returns how many."""
    state.clock[0] += 1
    now = state.clock[0]
    count = 0
    for value in edited.editable:
        state.counts[value] = 0
    for edit in edits:
        if edit < 0:
            continue
        for k in range(edited.pointers[edit], edited.pointers[edit + 1]):
            columns[count] = edited.columns[k]
            state.toggled[edited.columns[k]] = now
            count += 1
        _set_features(flat, state, edited, edit, now)
    _propagate(flat, state, columns[:count], now)
    return count


@inlined
def _set_features(flat: Any, state: Any, edited: Any, edit: int, now: int) -> None:
    for k in range(edited.change_pointers[edit], edited.change_pointers[edit + 1]):
        x, row = edited.of[k], edited.rows[k]
        first, i = flat.first[x], flat.start[x] + row * flat.width[x]
        if state.stamp[first + row] != now:
            state.stamp[first + row] = now
            state.changed[first + state.counts[x]] = row
            state.counts[x] += 1
            copy_row(state.fresh, i, state.base, i, flat.width[x])
        state.fresh[i + edited.features[k]] = edited.values[k]


@inlined
def _reads_changes(flat: Any, state: Any, step: int) -> bool:
    """Whether an input of a step changed: most steps read nothing of a single edit."""
    changed: bool = state.counts[flat.inputs[step, 0]] > 0
    for n in range(1, flat.arity[step]):
        changed |= state.counts[flat.inputs[step, n]] > 0
    return changed


@inlined
def _propagate(flat: Any, state: Any, columns: Any, now: int) -> None:
    """Follow what changed from step to step."""
    for step in range(len(flat.kind)):
        kind, value = flat.kind[step], flat.out[step]
        state.counts[value] = 0
        if kind <= GATHER and kind != PICK and not _reads_changes(flat, state, step):
            continue
        if kind == REDUCE:
            _propagate_reduce(flat, state, step, columns, now)
        elif kind == GATHER:
            _propagate_gather(flat, state, step, now)
        elif kind == CONCAT:
            _propagate_concat(flat, state, step, now)
        else:
            _propagate_rows(flat, state, step, now)


@kernel
def _keep(flat: Any, state: Any, columns: Any) -> int:
    """Let all rows that were computed anew replace the old ones, which are saved. Returns how many."""
    saved = at = 0
    for value in range(len(flat.first)):
        if flat.first[value] < 0:
            continue
        width = flat.width[value]
        for k in range(state.counts[value]):
            row = state.changed[flat.first[value] + k]
            o = flat.start[value] + row * width
            copy_row(state.saved, at, state.base, o, width)
            copy_row(state.base, o, state.fresh, o, width)
            state.log[saved, 0], state.log[saved, 1] = value, row
            saved += 1
            at += width
    for column in columns:
        state.present[column] = not state.present[column]
    return saved


@kernel
def _undo(flat: Any, state: Any, columns: Any, saved: int) -> None:
    at = 0
    for k in range(saved):
        value, row = state.log[k, 0], state.log[k, 1]
        width = flat.width[value]
        o = flat.start[value] + row * width
        copy_row(state.base, o, state.saved, at, width)
        at += width
    for column in columns:
        state.present[column] = not state.present[column]


@jit
def extend(bound: Any, output: int, row: int, prefixes: Any, candidates: Any, pointers: Any, out: Any) -> None:
    """The output after prefix ``i`` and candidate ``j``, for j from pointers[i] to pointers[i + 1]."""
    flat, state, edited = bound.flat, bound.state, bound.edited
    made, tried = np.empty(len(state.present), np.int64), np.empty(len(state.present), np.int64)
    width, first = flat.width[output], flat.first[output]
    o = flat.start[output] + row * width
    for i in range(len(prefixes)):
        count = saved = 0
        # The prefix takes its turn before the first candidate: so all that follows is compiled in one place, and a call
        # with so many arrays, which costs more than most steps, is spared.
        for j in range(pointers[i] - 1, pointers[i + 1]):
            is_prefix = j < pointers[i]
            edits, columns = prefixes[i] if is_prefix else candidates[j : j + 1], made if is_prefix else tried
            if is_prefix:
                state.clock[1] = state.clock[0] + 1
            toggled = _make(flat, state, edited, edits, columns)
            if is_prefix:
                count, saved = toggled, _keep(flat, state, made[:toggled])
                continue
            anew = state.stamp[first + row] == state.clock[0]
            for c in range(width):
                out[j, c] = state.fresh[o + c] if anew else state.base[o + c]
        _undo(flat, state, made[:count], saved)
