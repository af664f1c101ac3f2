"""What losses are kept in while they are followed."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = [
    "FIRST_PART", "GIVEN_UP", "LOOKED", "LOOKED_PER_NUMBER", "MOST_PARTS", "MOST_PATHS", "MOST_PENDING", "MOST_SHARED",
    "NUM_NUMBERS", "PARTS", "PATH", "PATHS", "PENDING", "RAISERS", "SHARED", "TIME", "Losses",
]  # fmt: skip

# Room for so many paths, so many losses that several paths begin with, so many rows of one path, and so many parts of
# losses. A walk that needs more is given up.
MOST_PATHS, MOST_SHARED, MOST_PENDING, MOST_PARTS = 16_384, 2_048, 64, 65_536

# So many numbers that the walk looks at take as long as one that an interval is computed of.
LOOKED_PER_NUMBER = 8

# What `Losses.numbers` holds: how many paths, shared losses, pending rows and parts of losses there are; whether the
# walk was given up; the path that is followed; how many numbers were looked at; how often intervals were looked at; the
# first part of this path, and how many edits bring something on it.
PATHS, SHARED, PENDING, PARTS, GIVEN_UP, PATH, LOOKED, TIME, FIRST_PART, RAISERS = range(10)
NUM_NUMBERS = 10


class Losses(NamedTuple):
    """Room for the walk.

    Attributes:
        turned, turned_sizes: all matrices, and their absolute values, with rows and columns exchanged.
        row, edit, parent: of each path, the row that it begins with, the edit that would end it (-1 for none), and the
            path that it came from.
        uncertain: whether an edit may end it.
        loss: the shared loss that it begins with.
        end: the part that is lost where it ends; -1 for none.
        part_path, part_edit, part_loss: the parts of all losses: on which path, by which edit, how much.
        most: how much can be lost on each path.
        shared_g, shared_a: shared losses.
        pending, pending_g, pending_a: rows of a path, and their losses; -1 for a row that is done.
        entry: the entries of a reduction that are there.
        entry_edit, entry_row: of each entry of a reduction the edit and the row that it brings; -1 for none.
        entry_g, entry_a: a loss for each entry.
        entry_loss: what its deletion costs.
        entry_part: which part that is; -1 for none.
        weighted_g, weighted_a: room for one loss.
        has_loss: whether it has a loss.
        ranked, values: room for the largest entries of a column.
        column: room for a number of each entry.
        change_at: for each row of a product with a maximum of fixed rows, where its changes begin.
        change: how such a row changes where one entry is deleted, for each entry.
        extras: for each such maximum, how many entries of ``extra`` it has, from twice `Plain.sorted_at` on.
        extra_entry, extra_column, extra: how much farther a column falls with an entry if others are deleted too.
        factors, columns: the numbers of a row that are not 0, and where they are.
        sloped: for each row, when the slopes of its numbers were found.
        fall, fall_half: the middle of these slopes where it is the fall that counts, and half of their difference; of
            a function of several numbers, in the last but one.
        rise, rise_half: likewise where it is the rise that counts, or in the last number.
        raisers: the edits that bring something on the path that is followed.
        brought, taken: for each edit, what it brings on this path, and takes off.
        looked: for each row, twice the time when it was found out whether it can change, and 1 more if it can.
        numbers: see above.
    """

    turned: Any
    turned_sizes: Any
    row: Any
    edit: Any
    parent: Any
    uncertain: Any
    loss: Any
    end: Any
    part_path: Any
    part_edit: Any
    part_loss: Any
    most: Any
    shared_g: Any
    shared_a: Any
    pending: Any
    pending_g: Any
    pending_a: Any
    entry: Any
    entry_edit: Any
    entry_row: Any
    entry_g: Any
    entry_a: Any
    entry_loss: Any
    entry_part: Any
    weighted_g: Any
    weighted_a: Any
    has_loss: Any
    ranked: Any
    values: Any
    column: Any
    change_at: Any
    change: Any
    extras: Any
    extra_entry: Any
    extra_column: Any
    extra: Any
    factors: Any
    columns: Any
    sloped: Any
    fall: Any
    fall_half: Any
    rise: Any
    rise_half: Any
    raisers: Any
    brought: Any
    taken: Any
    looked: Any
    numbers: Any
