"""All graphs that lack some edits and at most so many of some others: which entries they have, and which scales."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from butfor.oracle.gcn.kernels import kernel, step
from butfor.oracle.gcn.selection import sum_of_largest, sum_of_largest_parts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from butfor.oracle.gcn.layout import ReceptiveField

    Floats = NDArray[np.float64]

__all__ = ["Family", "Scratch", "entries_per_edit", "fill_family", "parallel", "rise", "worst"]

# Room for the rounding of a degree, relative to it.
ROUNDING = 1e-12


class Family(NamedTuple):
    """F, the graphs that lack ``removed`` and at most ``more`` of the free edits."""

    weight: Floats  # (entry): its weight in the graphs that have it; 0 if it is removed
    loose: NDArray[np.bool_]  # (entry): whether a free edit deletes it
    degree: Floats  # (node): the present degree
    least_degree: Floats  # (node)
    low: Floats  # (node): the least scale, that of the present degree
    high: Floats  # (node): the largest scale, that of the least degree
    losses: NDArray[np.int64]  # (node): how many entries it loses at most
    unit: Floats  # (node): the weight of each of them, or 0 if they differ


class Scratch(NamedTuple):
    """Space to compute in."""

    absent: int  # how many entries a graph of F lacks at one node at most
    changed: int  # how many losses there are among the senders or the receivers of a node at most
    lost: Floats  # what absent entries do to a sum
    moved: Floats  # what risen scales do, by one loss
    parts: Floats  # and how many losses do so much
    unused: Floats
    scales: Floats  # the scale of a node by how many entries it has lost
    sums: Floats  # (end, channel)


@kernel
def entries_per_edit(field: ReceptiveField, free: NDArray[np.bool_]) -> Any:
    """How many entries at one node a free edit deletes at most, and how many in all."""
    sender, receiver = field.incoming.sender, field.receiver
    at_node, in_all = 1, 1
    for edit in range(len(free)):
        if free[edit]:
            mine = field.edit_entries[field.edit_rows[edit] : field.edit_rows[edit + 1]]
            in_all = max(in_all, len(mine))
            for e in mine:
                received, sent = 0, 0
                for f in mine:
                    received += receiver[f] == receiver[e]
                    sent += sender[f] == sender[e]
                at_node = max(at_node, received, sent)
    return at_node, in_all


@kernel
def parallel(field: ReceptiveField) -> int:
    """How many entries lead from one node to another at most."""
    sender, receiver, order = field.incoming.sender, field.receiver, field.sent_entries
    most, run = 1, 1
    for k in range(1, len(order)):
        e, before = order[k], order[k - 1]
        run = run + 1 if sender[e] == sender[before] and receiver[e] == receiver[before] else 1
        most = max(most, run)
    return most


@kernel
def fill_family(
    field: ReceptiveField, removed: NDArray[np.int64], free: NDArray[np.bool_], family: Family, scratch: Scratch
) -> None:
    """Which entries are there and which of them may go, and the scales that follow from it."""
    rows, loop, edit, lost = field.incoming.rows, field.incoming.loop, field.edit, scratch.lost
    weight, loose = family.weight, family.loose
    for gone in removed:
        for k in range(field.edit_rows[gone], field.edit_rows[gone + 1]):
            weight[field.edit_entries[k]] = 0.0
    for e in range(len(weight)):
        loose[e] = weight[e] != 0.0 and edit[e] >= 0 and free[edit[e]]
    for v in range(len(loop)):
        degree, count, equal = float(loop[v]), 0, True
        for e in range(rows[v], rows[v + 1]):
            degree += weight[e]
            if loose[e]:
                lost[count] = weight[e]
                equal &= lost[0] == weight[e]
                count += 1
        family.unit[v] = lost[0] if equal and count > 0 else 0.0
        family.losses[v] = min(count, scratch.absent)
        least = max(degree * (1 - ROUNDING) - sum_of_largest(lost, count, scratch.absent), float(loop[v]))
        family.degree[v], family.least_degree[v] = degree, least
        family.low[v], family.high[v] = 1 / np.sqrt(degree), 1 / np.sqrt(least)


@step
def rise(family: Family, u: int, value: float, count: int, scratch: Scratch) -> int:
    """Note what the scale of ``u`` does to a sum at most, if that is a loss; returns how many such notes there are."""
    loss = -(family.high[u] - family.low[u]) * value
    if loss > 0.0 and family.losses[u] > 0:
        # As d^(-1/2) is convex, i of n equal losses raise it by no more than i/n of the way.
        parts = family.losses[u] if family.unit[u] > 0.0 else 1
        scratch.moved[count], scratch.parts[count] = loss / parts, parts
        return count + 1
    return count


@step
def worst(num_lost: int, num_moved: int, scratch: Scratch) -> Any:
    """The most that absent entries and risen scales can take from a sum, by what was noted."""
    taken = sum_of_largest(scratch.lost, num_lost, scratch.absent)
    return taken + sum_of_largest_parts(scratch.moved, scratch.parts, num_moved, scratch.changed)
