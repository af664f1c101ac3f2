"""What reads what in a program, compiled: it is found out for every target, before anything is bounded.

Rows that can change are numbered through; the inputs of a row have lower numbers. A row *feeds* another if that reads
it, directly or not, and there is no reduction between them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from butfor.oracle.program.kernels.flat import (
    ARRIVAL,
    ARRIVING,
    BEGINS,
    CONCAT,
    EDGE,
    GATHER,
    INPUTS,
    LINEAR,
    PICK,
    REDUCE,
    SOURCE,
    grows,
    jit,
    kernel,
)

__all__ = [
    "IS_EXTREME", "IS_RELU", "MOST_OTHERS", "NUM_MIXES", "OTHERS", "REDUCED", "SUMMED", "deleted", "feeds", "readers",
]  # fmt: skip

# What is known of a matrix product that mixes the columns of a reduction; -1 for nothing. It is applied to a maximum or
# minimum; or to `SUMMED`, which is `REDUCED` plus others, or to the ReLU of it.
REDUCED, IS_EXTREME, SUMMED, IS_RELU, OTHERS = range(5)
MOST_OTHERS = 3
NUM_MIXES = OTHERS + MOST_OTHERS


@kernel
def _entries(flat: Any, step: int, row: int) -> tuple[int, int]:
    """Where the list of the entries of a row begins in the table, and how many these are."""
    arriving, arrival = flat.tables[step, ARRIVING], flat.tables[step, ARRIVAL]
    first = flat.table[arriving + row]
    return arrival + first, flat.table[arriving + row + 1] - first


@kernel
def _put(flat: Any, value: int, row: int, column: int, found: Any, columns: Any, count: int) -> int:
    """Note that a row is read, if it can change."""
    if flat.first[value] < 0:
        return count
    found[count], columns[count] = flat.first[value] + (row if flat.stride[value] > 0 else 0), column
    return count + 1


@kernel
def _read(flat: Any, step: int, row: int, found: Any, columns: Any) -> int:
    """List the rows that a row reads, and the edge column through which; -1 for none. Returns how many."""
    table, kind, count = flat.table, flat.kind[step], 0
    if kind == REDUCE:
        at, entries = _entries(flat, step, row)
        for k in range(at, at + entries):
            entry = table[k]
            source, column = table[flat.tables[step, SOURCE] + entry], table[flat.tables[step, EDGE] + entry]
            count = _put(flat, flat.inputs[step, 0], source, column, found, columns, count)
            if flat.arity[step] == 2:
                count = _put(flat, flat.inputs[step, 1], entry, column, found, columns, count)
        return count
    if kind == CONCAT:
        begins, n = flat.tables[step, BEGINS], 0
        while row >= table[begins + n + 1]:
            n += 1
        return _put(flat, table[flat.tables[step, INPUTS] + n], row - table[begins + n], -1, found, columns, 0)
    if kind == GATHER:
        return _put(flat, flat.inputs[step, 0], table[flat.tables[step, SOURCE] + row], -1, found, columns, 0)
    for n in range(flat.arity[step]):
        value = table[flat.tables[step, INPUTS] + n] if kind == PICK else flat.inputs[step, n]
        count = _put(flat, value, row, -1, found, columns, count)
    return count


@kernel
def _mixes_rows(flat: Any, mixes: Any, step: int) -> bool:
    return flat.kind[step] == LINEAR and mixes[step, REDUCED] >= 0


@kernel
def _mixed(flat: Any, mixes: Any, step_of: Any, step: int, row: int, found: Any, columns: Any, count: int) -> int:
    """Likewise what a row of a matrix product reads besides its input.

    An interval of the input may stay the same though a number changes that it was computed from.
    """
    reduced = mixes[step, REDUCED]
    of = step_of[flat.first[reduced] + row]
    at, entries = _entries(flat, of, row)
    for k in range(at, at + entries):
        source = flat.table[flat.tables[of, SOURCE] + flat.table[k]]
        count = _put(flat, flat.inputs[of, 0], source, -1, found, columns, count)
    for n in range(SUMMED, NUM_MIXES):
        if n != IS_RELU and mixes[step, n] >= 0:
            count = _put(flat, mixes[step, n], row, -1, found, columns, count)
    return count


@kernel
def _deleted(flat: Any, mixes: Any, step_of: Any, edit_of: Any, number: int, found: Any) -> int:
    """List the edits that delete an entry of a row, or of a reduction whose columns it mixes; some more than once."""
    step, count = step_of[number], 0
    row = number - flat.first[flat.out[step]]
    if flat.kind[step] != REDUCE:
        if not _mixes_rows(flat, mixes, step):
            return 0
        step = step_of[flat.first[mixes[step, REDUCED]] + row]
    at, entries = _entries(flat, step, row)
    for k in range(at, at + entries):
        found[count] = edit_of[flat.table[flat.tables[step, EDGE] + flat.table[k]]]
        count += found[count] >= 0
    return count


@grows
def _with_room(pairs: Any, count: int, more: int) -> Any:
    """The same pairs, with room for more."""
    if count + more <= len(pairs):
        return pairs
    larger = np.empty((2 * (count + more), pairs.shape[1]), np.int64)
    larger[:count] = pairs[:count]
    return larger


@jit
def readers(flat: Any, mixes: Any, step_of: Any, room: int) -> Any:
    """Pairs of a row that can change and a row that reads it, in the order of the latter."""
    found, columns, last = np.empty(room, np.int64), np.empty(room, np.int64), np.full(len(step_of), -1)
    pairs, size = np.empty((4 * len(step_of), 2), np.int64), 0
    for number in range(len(step_of)):
        if not flat.needed[number]:
            continue
        step = step_of[number]
        row = number - flat.first[flat.out[step]]
        count = _read(flat, step, row, found, columns)
        if _mixes_rows(flat, mixes, step):
            count = _mixed(flat, mixes, step_of, step, row, found, columns, count)
        pairs = _with_room(pairs, size, count)
        for k in range(count):
            if last[found[k]] != number:
                last[found[k]] = number
                pairs[size, 0], pairs[size, 1] = found[k], number
                size += 1
    return pairs[:size]


@jit
def deleted(flat: Any, mixes: Any, step_of: Any, edit_of: Any, num_edits: int, room: int) -> tuple[Any, Any]:
    """What edits delete: pairs of an edit and a row, and for each row how many entries one edit deletes at most.

    The row is that of a reduction which an entry is of, or one that mixes its columns.
    """
    found, last, times = np.empty(room, np.int64), np.full(num_edits, -1), np.zeros(num_edits, np.int64)
    pairs, size, at_once = np.empty((2 * len(step_of), 2), np.int64), 0, np.zeros(len(step_of), np.int64)
    for number in range(len(step_of)):
        count = _deleted(flat, mixes, step_of, edit_of, number, found) if flat.needed[number] else 0
        pairs = _with_room(pairs, size, count)
        for k in range(count):
            edit = found[k]
            if last[edit] != number:
                last[edit], times[edit] = number, 0
                pairs[size, 0], pairs[size, 1] = edit, number
                size += 1
            times[edit] += 1
            if flat.kind[step_of[number]] == REDUCE:
                at_once[number] = max(at_once[number], times[edit])
    return pairs[:size], at_once


@jit
def feeds(flat: Any, step_of: Any, edit_of: Any, out: int, room: int) -> tuple[Any, Any, Any]:
    """The rows of reductions that feed the row ``out``; those that feed each other; and how far each is from ``out``.

    The second has three columns: a row of a reduction, one that feeds an entry of it, and the edit that deletes this
    entry. The third counts the rows of reductions in between; those that do not lead there are as far as there are
    steps.
    """
    size, far = len(step_of), len(flat.kind)
    found, columns, seen, begin = (
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.full(size, -1),
        np.zeros(size + 1, np.int64),
    )
    fed, reads, count = np.empty((4 * size, 1), np.int64), np.empty((4 * size, 3), np.int64), 0
    for number in range(size):
        end = begin[number]
        begin[number + 1] = end
        if not flat.needed[number]:
            continue
        step = step_of[number]
        is_reduction = flat.kind[step] == REDUCE
        for k in range(_read(flat, step, number - flat.first[flat.out[step]], found, columns)):
            first, last = begin[found[k]], begin[found[k] + 1]
            reads, fed = _with_room(reads, count, last - first), _with_room(fed, end, last - first + 1)
            for j in range(first, last):
                other = fed[j, 0]
                if is_reduction:
                    reads[count, 0], reads[count, 1], reads[count, 2] = number, other, edit_of[columns[k]]
                    count += 1
                elif seen[other] != number:
                    seen[other], fed[end, 0] = number, other
                    end += 1
        if is_reduction:
            fed = _with_room(fed, end, 1)
            fed[end, 0] = number
            end += 1
        begin[number + 1] = end
    root, hops = fed[begin[out] : begin[out + 1], 0], np.full(size, far)
    hops[root] = 0
    for k in range(count - 1, -1, -1):
        # What feeds a row comes before it, so that this one is known.
        hops[reads[k, 1]] = min(hops[reads[k, 1]], hops[reads[k, 0]] + 1)
    return root, reads[:count], hops
