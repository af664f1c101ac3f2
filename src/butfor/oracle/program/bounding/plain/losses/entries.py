"""The entries of a reduction on a path, the paths that begin with them, and where losses are gathered."""

from __future__ import annotations

from typing import Any

import numpy as np

from butfor.oracle.program.bounding.plain.entries import FREE, KEPT, MADE
from butfor.oracle.program.bounding.plain.losses.room import (
    FIRST_PART,
    GIVEN_UP,
    MOST_PENDING,
    PARTS,
    PATH,
    PATHS,
    PENDING,
    RAISERS,
    SHARED,
    TIME,
)
from butfor.oracle.program.kernels import flat as tables
from butfor.oracle.program.kernels.flat import AMAX, AMIN, LINEAR, REDUCE, kernel
from butfor.oracle.program.kernels.vectors import add_multiples, rows_differ

__all__ = [
    "add_loss",
    "add_transposed",
    "begin_path",
    "begin_paths",
    "can_change",
    "is_extreme",
    "keep_loss",
    "lies_on_path",
    "list_entries",
    "number_of",
    "pending",
    "settle",
    "width_of",
]


@kernel
def width_of(p: Any, number: int) -> int:
    """How many numbers a row has."""
    return p.flat.width[p.flat.out[p.step_of[number]]]


@kernel
def number_of(p: Any, value: int, row: int) -> int:
    """The number of a row of a value; -1 where no edit changes it."""
    first = p.flat.first[value]
    return -1 if first < 0 else first + (row if p.flat.stride[value] > 0 else 0)


@kernel
def pending(p: Any, q: Any, number: int) -> int:
    """Where the loss of a row is gathered."""
    count = q.numbers[PENDING]
    for k in range(count):
        if q.pending[k] == number:
            return k
    if count == MOST_PENDING:
        q.numbers[GIVEN_UP] = 1
        return 0
    q.pending[count] = number
    q.numbers[PENDING] += 1
    for c in range(width_of(p, number)):
        q.pending_g[count, c] = q.pending_a[count, c] = 0.0
    return count


@kernel
def add_transposed(q: Any, matrix: int, inner: int, width: int, g: Any, a: Any, into_g: Any, into_a: Any) -> None:
    """Add the loss of the input of a matrix product."""
    _add_product(q, q.turned, matrix, inner, width, g, into_g)
    _add_product(q, q.turned_sizes, matrix, inner, width, a, into_a)


@kernel
def _add_product(q: Any, turned: Any, matrix: int, inner: int, width: int, numbers: Any, into: Any) -> None:
    factors, columns, count = q.factors, q.columns, 0
    for c in range(width):
        factors[count], columns[count] = numbers[c], c
        count += numbers[c] != 0.0
    add_multiples(into, 0, into, 0, turned, matrix, factors, columns, count, inner)


@kernel
def lies_on_path(q: Any, edit: int) -> bool:
    """Whether the path that is followed ends where an edit is made."""
    path = q.numbers[PATH]
    while path > 0:
        if q.edit[path] == edit:
            return True
        path = q.parent[path]
    return False


@kernel
def list_entries(p: Any, room: Any, q: Any, level: int, number: int, step: int) -> tuple[int, int]:
    """List the entries of a row that are there: status, edit, row, and where its numbers begin. How many, and may go.

    On this path, edits that would end it are not made.
    """
    flat = p.flat
    value, row = flat.inputs[step, 0], number - flat.first[flat.out[step]]
    arriving = flat.table[flat.tables[step, tables.ARRIVING] + row]
    count, free = 0, 0
    for k in range(flat.table[flat.tables[step, tables.ARRIVING] + row + 1] - arriving):
        entry = flat.table[flat.tables[step, tables.ARRIVAL] + arriving + k]
        column = flat.table[flat.tables[step, tables.EDGE] + entry]
        edit = p.edit_of[column]
        status = KEPT if edit < 0 else room.status[level, edit]
        if status == MADE or (edit < 0 and not p.present[column]):
            continue
        if status == FREE and lies_on_path(q, edit):
            status = KEPT
        other = flat.table[flat.tables[step, tables.SOURCE] + entry]
        room.entries[count], q.entry[count] = status, entry
        q.entry_edit[count], q.entry_part[count] = edit if status == FREE else -1, -1
        source = number_of(p, value, other)
        q.entry_row[count] = source
        room.places[count] = flat.start[value] + other * flat.stride[value] if source < 0 else p.at[source]
        free += status == FREE
        count += 1
    return count, free


@kernel
def can_change(p: Any, room: Any, q: Any, level: int, number: int) -> bool:
    """Whether edits can change a row."""
    known, time = q.looked[number], q.numbers[TIME]
    if known >> 1 == time:
        return (known & 1) == 1
    at = p.at[number]
    differs = rows_differ(room.low[level], at, room.high[level], at, width_of(p, number))
    q.looked[number] = 2 * time + differs
    return differs


@kernel
def begin_path(q: Any, number: int, entry: int, shared: int) -> None:
    """Put a path that begins with an entry of the reduction that the present one has come to."""
    numbers = q.numbers
    path = numbers[PATHS]
    if path == len(q.row):
        numbers[GIVEN_UP] = 1
        return
    numbers[PATHS] += 1
    q.row[path], q.edit[path], q.parent[path], q.loss[path] = number, q.entry_edit[entry], numbers[PATH], shared
    q.uncertain[path] = q.uncertain[numbers[PATH]] or q.entry_edit[entry] >= 0
    q.end[path] = q.entry_part[entry]


@kernel
def keep_loss(q: Any, width: int, g: Any, a: Any) -> int:
    """Keep a loss that paths begin with; its number."""
    shared = q.numbers[SHARED]
    if shared == len(q.shared_g):
        q.numbers[GIVEN_UP] = 1
        return 0
    q.numbers[SHARED] += 1
    for c in range(width):
        q.shared_g[shared, c], q.shared_a[shared, c] = g[c], a[c]
    return shared


@kernel
def _keep_loss_of_input(p: Any, q: Any, value: int, width: int, g: Any, a: Any) -> int:
    """Keep a loss of products with one matrix, as a loss of what is multiplied; its number, or -1 if they are none."""
    flat = p.flat
    step = p.step_of[flat.first[value]]
    before = flat.inputs[step, 0]
    if flat.kind[step] != LINEAR or flat.stride[value] == 0 or flat.stride[before] == 0 or is_extreme(p, before):
        return -1
    inner = flat.width[before]
    shared = keep_loss(q, 0, g, a)
    for r in range(inner):
        q.shared_g[shared, r] = q.shared_a[shared, r] = 0.0
    add_transposed(q, flat.tables[step, tables.MATRIX], inner, width, g, a, q.shared_g[shared], q.shared_a[shared])
    return shared


@kernel
def is_extreme(p: Any, value: int) -> bool:
    """Whether a value is a maximum or minimum over edges."""
    flat = p.flat
    step = p.step_of[flat.first[value]]
    return flat.kind[step] == REDUCE and AMAX <= flat.code[step] <= AMIN


@kernel
def add_loss(q: Any, losses: Any, entry: int, loss: float) -> None:
    """Add what the edit of an entry takes off on this path; or brings, if it is negative."""
    numbers, edit = q.numbers, q.entry_edit[entry]
    part = numbers[PARTS]
    if not np.isfinite(loss) or part == len(q.part_loss):
        numbers[GIVEN_UP] = 1
    elif loss > 0.0:
        losses[edit] += loss
        q.part_path[part], q.part_edit[part], q.part_loss[part] = numbers[PATH], edit, loss
        q.entry_part[entry] = part
        numbers[PARTS] += 1
    elif loss < 0.0:
        if q.brought[edit] == 0.0:
            q.raisers[numbers[RAISERS]] = edit
            numbers[RAISERS] += 1
        q.brought[edit] -= loss


@kernel
def settle(q: Any, losses: Any) -> None:
    """Take what edits bring on a path from what they take off on it.

    What is left of it counts only where nothing else can end the path.
    """
    numbers, is_certain = q.numbers, not q.uncertain[q.numbers[PATH]]
    if numbers[RAISERS] == 0:
        return
    for part in range(numbers[FIRST_PART], numbers[PARTS]):
        edit = q.part_edit[part]
        if q.brought[edit] > 0.0:
            q.taken[edit] += q.part_loss[part]
    for part in range(numbers[FIRST_PART], numbers[PARTS]):
        brought, taken = q.brought[q.part_edit[part]], q.taken[q.part_edit[part]]
        if brought > 0.0:
            q.part_loss[part] *= max(taken - brought, 0.0) / taken
    for n in range(numbers[RAISERS]):
        edit = q.raisers[n]
        losses[edit] -= q.brought[edit] if is_certain else min(q.brought[edit], q.taken[edit])
        q.brought[edit] = q.taken[edit] = 0.0
    numbers[RAISERS] = 0


@kernel
def begin_paths(p: Any, room: Any, q: Any, level: int, step: int, count: int, width: int, g: Any, a: Any) -> None:
    """Begin a path with each entry that can change, all with the same loss."""
    value = p.flat.inputs[step, 0]
    if p.flat.first[value] < 0:
        return
    shared, of_input = -1, False
    for k in range(count):
        number = q.entry_row[k]
        if not can_change(p, room, q, level, number):
            continue
        if shared < 0:
            shared = _keep_loss_of_input(p, q, value, width, g, a)
            of_input = shared >= 0
            if not of_input:
                shared = keep_loss(q, width, g, a)
        if of_input:
            number += p.flat.first[p.flat.inputs[p.step_of[number], 0]] - p.flat.first[value]
        begin_path(q, number, k, shared)
