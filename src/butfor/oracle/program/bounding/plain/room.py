"""The arrays that plain bounds are computed in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from butfor.oracle.program.bounding.plain.entries import KEPT, MOST_TOPS, Room
from butfor.oracle.program.bounding.plain.losses.room import (
    MOST_PARTS,
    MOST_PATHS,
    MOST_PENDING,
    MOST_SHARED,
    NUM_NUMBERS,
    Losses,
)
from butfor.oracle.program.bounding.room import untouched
from butfor.oracle.program.kernels.flat import AMAX, AMIN, ARRIVING, LINEAR, MATRIX, REDUCE
from butfor.oracle.program.layout import room_for, rows_for

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from butfor.oracle.program.bounding.plain.tables import Plain

__all__ = ["room_for_intervals", "room_for_losses"]

# How many paths there is room for, for each row of a program, and how many parts of losses for each path.
PATHS_PER_ROW, PARTS_PER_PATH = 16, 16


def room_for_intervals(tables: Plain, levels: int, num_edits: int) -> Room:
    """Room for the intervals of all levels."""
    entries, wide = max(tables.most_entries, 1), tables.widest
    tops, shared = max(MOST_TOPS + 1, entries), (MOST_TOPS + 2) * wide
    return Room(
        low=untouched(levels, tables.size), high=untouched(levels, tables.size),
        least_of_all=np.full(tables.size, -np.inf), most_of_all=np.full(tables.size, np.inf),
        status=np.full((levels, num_edits), KEPT, np.int8),
        row_low=room_for(wide), row_high=room_for(wide), entries=np.empty(entries, np.int64),
        places=np.empty(entries, np.int64), column=np.empty(2 * entries), tops=np.empty((tops, wide)),
        bottoms=np.empty((tops, wide)), carried=room_for(wide), row=room_for(wide), least=room_for(wide),
        most=room_for(wide), slopes=room_for(wide), chords=room_for(wide), middle=room_for(2 * wide),
        radius=room_for(2 * wide), products=rows_for(2, wide), zeros=room_for(wide), factors=np.empty(shared),
        factors_of_sizes=np.empty(shared), columns=np.empty(shared, np.int64), falls=rows_for(entries, tables.mixed),
        rises=rows_for(entries, tables.mixed), ranked=np.empty(MOST_TOPS + 1, np.int64),
        values=np.empty(MOST_TOPS + 1), share=np.empty(shared), gain=np.empty(shared),
        share_entry=np.empty(shared, np.int64), share_column=np.empty(shared, np.int64),
        share_from=np.empty(entries + 2, np.int64),
    )  # fmt: skip


def room_for_losses(tables: Plain) -> Losses:
    """Room for what each edit takes off; none where that is not known."""
    some = int(tables.has_losses)
    rows, numbers, wide = some * len(tables.step_of), some * tables.size, some * _widest(tables)
    entries, edits = max(tables.most_entries, 1), len(tables.edit_from) - 1
    # A small program has few paths; room for those of a large one is limited.
    paths = min(some * MOST_PATHS, PATHS_PER_ROW * rows)
    shared, parts = min(some * MOST_SHARED, paths), min(some * MOST_PARTS, PARTS_PER_PATH * paths)
    kinds = tables.flat.kind == REDUCE
    of_rows = kinds & (tables.flat.code >= AMAX) & (tables.flat.code <= AMIN)
    own = entries if (tables.flat.first[tables.flat.inputs[of_rows, 0]] >= 0).any() else 1

    def turned(matrices: NDArray[np.float64]) -> NDArray[np.float64]:
        # Those of products with maxima of fixed rows are large, and not needed; what is not written takes no memory.
        result = room_for(some * len(matrices))
        for step in np.flatnonzero(tables.flat.kind == LINEAR)[: some * len(tables.flat.kind)]:
            value = tables.flat.inputs[step, 0]
            if _is_extreme_of_fixed_rows(tables, value):
                continue
            begin = tables.flat.tables[step, MATRIX]
            shape = tables.flat.width[value], tables.flat.width[tables.flat.out[step]]
            matrix = matrices[begin : begin + shape[0] * shape[1]]
            result[begin : begin + len(matrix)] = matrix.reshape(shape).T.ravel()
        return result

    sorted_ = some * 2 * len(tables.sorted)
    change_at, changes = _places_of_changes(tables) if some else (np.empty(0, np.int64), 0)
    return Losses(
        turned=turned(tables.flat.matrices), turned_sizes=turned(tables.sizes),
        row=np.empty(paths, np.int64), edit=np.empty(paths, np.int64), parent=np.empty(paths, np.int64),
        uncertain=np.empty(paths, np.bool_), loss=np.empty(paths, np.int64), end=np.empty(paths, np.int64),
        part_path=np.empty(parts, np.int64), part_edit=np.empty(parts, np.int64), part_loss=np.empty(parts),
        most=np.empty(paths), shared_g=rows_for(shared, wide),
        shared_a=rows_for(shared, wide), pending=np.empty(MOST_PENDING, np.int64),
        pending_g=rows_for(MOST_PENDING, wide), pending_a=rows_for(MOST_PENDING, wide),
        entry_edit=np.empty(entries, np.int64), entry_row=np.empty(entries, np.int64),
        entry_g=rows_for(own, wide), entry_a=rows_for(own, wide), entry_loss=np.empty(entries),
        entry_part=np.empty(entries, np.int64), entry=np.empty(entries, np.int64), weighted_g=room_for(wide),
        weighted_a=room_for(wide),
        has_loss=np.empty(entries, np.bool_), ranked=np.empty(MOST_TOPS + 1, np.int64),
        values=np.empty(MOST_TOPS + 1), column=np.empty(entries), change_at=change_at, change=np.empty(changes),
        extras=np.zeros(rows, np.int64), extra_entry=np.empty(sorted_, np.int64),
        extra_column=np.empty(sorted_, np.int64),
        extra=np.empty(sorted_), factors=np.empty(wide),
        columns=np.empty(wide, np.int64), sloped=np.zeros(rows, np.int64), fall=room_for(numbers),
        fall_half=room_for(numbers), rise=room_for(numbers), rise_half=room_for(numbers),
        raisers=np.empty(edits, np.int64), brought=np.zeros(edits), taken=np.zeros(edits),
        looked=np.zeros(rows, np.int64),
        numbers=np.zeros(NUM_NUMBERS, np.int64),
    )  # fmt: skip


def _widest(tables: Plain) -> int:
    """How many numbers the widest row has that a loss is followed to.

    A maximum of fixed rows, which may be wide, is none where only products read it.
    """
    flat, out = tables.flat, tables.flat.out[tables.step_of[tables.out]]
    followed = {int(out)}
    for step in range(len(flat.kind)):
        for value in flat.inputs[step, : flat.arity[step]]:
            changes = flat.first[value] >= 0
            if changes and not (flat.kind[step] == LINEAR and _is_extreme_of_fixed_rows(tables, value)):
                followed.add(int(value))
    return int(max(flat.width[value] for value in followed))


def _is_extreme_of_fixed_rows(tables: Plain, value: int) -> bool:
    """Whether a value is a maximum or minimum of rows that no edit changes."""
    flat = tables.flat
    if flat.first[value] < 0:
        return False
    step = tables.step_of[flat.first[value]]
    is_extreme = flat.kind[step] == REDUCE and AMAX <= flat.code[step] <= AMIN
    return bool(is_extreme and flat.first[flat.inputs[step, 0]] < 0)


def _places_of_changes(tables: Plain) -> tuple[NDArray[np.int64], int]:
    """Where the changes of each product with a maximum of fixed rows begin, and how many numbers there are in all."""
    flat, size = tables.flat, 0
    at = np.zeros(len(tables.step_of), np.int64)
    for step in np.flatnonzero(flat.kind == LINEAR):
        value, out = flat.inputs[step, 0], flat.out[step]
        if flat.first[value] < 0 or flat.stride[value] == 0:
            continue
        of = tables.step_of[flat.first[value]]
        for row in range(flat.rows[out]):
            if tables.at[flat.first[out] + row] >= 0 and tables.sorted_at[flat.first[value] + row] >= 0:
                at[flat.first[out] + row] = size
                arriving = flat.table[flat.tables[of, ARRIVING] + row :][:2]
                size += int(arriving[1] - arriving[0]) * int(flat.width[out])
    return at, size
