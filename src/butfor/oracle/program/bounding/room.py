"""Room for what is kept of entries that read rows of other owners: falls, and hulls that hold if the entry is there."""

from __future__ import annotations

from mmap import mmap
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from butfor.oracle.program.bounding.rows import FALLS, LEVELS
from butfor.oracle.program.kernels.flat import AMIN, ARRIVAL, ARRIVING, EDGE, RECEIVER, REDUCE, SHARE, SOURCE, VISIT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from butfor.oracle.program.bounding.owners import Units
    from butfor.oracle.program.layout import Layout

__all__ = ["Room", "untouched"]

# How many numbers are kept at most: limits the memory.
MOST_KEPT = 16_000_000


def untouched(rows: int, columns: int) -> NDArray[np.float64]:
    """Room of which little will be touched: for so much, NumPy would ask for huge pages, which are filled as wholes."""
    return np.frombuffer(mmap(-1, max(8 * rows * columns, 1)))[: rows * columns].reshape(rows, columns)


class Room(NamedTuple):
    """Where something is kept of each entry of a reduction that reads a row of another owner; -1 for nowhere.

    Attributes:
        falls: by how much it can fall or rise, where this is the same in all cases: in sums, without a factor.
        falls_size, given_size: how many numbers are kept in all.
        given: hulls of its row that hold if the entry is there, where the row depends on the edit that deletes it.
        hull: where each of these hulls is.
        of_row: the place of its row among those that are computed.
        edit: the edit that deletes the entry.
    """

    falls: NDArray[np.int64]
    falls_size: int
    given: NDArray[np.int64]
    given_size: int
    hull: NDArray[np.int64]
    of_row: NDArray[np.int64]
    edit: NDArray[np.int64]

    @classmethod
    def of(cls, layout: Layout, units: Units) -> Room:
        """Room for a program; none where it would be too much."""
        flat, sizes = layout.flat, [0, 0]
        falls, given = (np.full(layout.num_entries + 1, -1) for _ in range(2))
        found = [np.zeros((3, 0), dtype=np.int64)]
        values = np.append(flat.out, units.features)
        place = np.full(len(units.owner), -1)
        place[flat.first[values[units.steps]] + units.rows] = np.arange(len(units.steps))
        owned = np.zeros((len(units.edits_from), len(units.owners_from)), dtype=bool)
        owned[np.repeat(np.arange(len(units.edits_from) - 1), np.diff(units.edits_from)), units.edits] = True
        for step in np.flatnonzero((flat.kind == REDUCE) & (flat.code <= AMIN) & (flat.arity == 1)):
            source, value, places = int(flat.inputs[step, 0]), int(flat.out[step]), flat.tables[step]
            if flat.first[source] < 0:
                continue
            count, width = int(flat.table[places[ARRIVING] + flat.rows[value]]), int(flat.width[value])
            entries = flat.table[places[ARRIVAL] : places[ARRIVAL] + count]
            rows = flat.first[source] + flat.table[places[SOURCE] + entries]
            receivers = units.owner[flat.first[value] + flat.table[places[RECEIVER] + entries]]
            across = (units.owner[rows] != receivers) & (receivers >= 0)
            if flat.code[step] <= SHARE:
                falls[places[VISIT] + entries[across]] = sizes[0] + FALLS * width * np.arange(across.sum())
                sizes[0] += FALLS * width * int(across.sum())
            column = flat.table[places[EDGE] + entries]
            edit = np.where(column >= 0, np.append(units.edit_of, -1)[column], -1)
            deletes = (edit >= 0) & np.append(units.present, False)[column]
            known = across & deletes & owned[units.owner[rows], edit] & (place[rows] >= 0)
            hulls = sizes[1] + 2 * LEVELS * width * np.arange(known.sum())
            given[places[VISIT] + entries[known]] = hulls
            sizes[1] += 2 * LEVELS * width * len(hulls)
            found.append(np.stack([hulls, place[rows[known]], edit[known]]))
        if sum(sizes) > MOST_KEPT:
            nowhere, nothing = np.full_like(falls, -1), np.zeros(0, dtype=np.int64)
            return cls(nowhere, 0, nowhere, 0, nothing, nothing, nothing)
        return cls(falls, sizes[0], given, sizes[1], *np.concatenate(found, axis=1))
