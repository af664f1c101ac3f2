"""Which nodes free edits hit, and how far their scales rise by it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from butfor.oracle.gcn.kernels import kernel, step
from butfor.oracle.gcn.margins.tables import hull
from butfor.oracle.gcn.selection import sort_falling

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from butfor.oracle.gcn.layout import ReceptiveField
    from butfor.oracle.gcn.margins.workspace import Workspace

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["ROUNDING", "count_hits", "fill_degrees", "fill_scales", "gather"]

# Room for the rounding of a degree, relative to it.
ROUNDING = 1e-12


@step
def _drops(field: ReceptiveField, u: int, edit: int, work: Workspace) -> bool:
    """Whether after this edit u sends nothing to the target."""
    left = work.entries_into[u]
    for e in field.edit_entries[field.edit_rows[edit] : field.edit_rows[edit + 1]]:
        if field.receiver[e] == 0 and field.incoming.sender[e] == u and work.weight[e] != 0.0:
            left -= 1
    return bool(left == 0)


@kernel
def gather(field: ReceptiveField, free: NDArray[np.bool_], v: int, with_messages: bool, work: Workspace) -> int:
    """The edits that hit node ``v`` and leave it a sender, and what each takes; returns how many there are."""
    weight, scale, first = work.weight, work.scale, field.first
    width, pairs = len(work.own), len(work.risk)
    count = 0
    work.dropper[v] = 0.0
    if with_messages:
        for j in range(width):
            work.total[j] = 0.0
            work.own[j] = field.incoming.loop[v] * first[v, j]
    for e in range(field.incoming.rows[v], field.incoming.rows[v + 1]):
        if weight[e] == 0.0:
            continue
        u = field.incoming.sender[e]
        factor = 0.0
        if with_messages:
            factor, row = weight[e] * scale[u], first[u]
            for j in range(width):
                work.total[j] += factor * row[j]
        edit = field.edit[e]
        if edit < 0 or not free[edit]:
            continue
        if work.edit_mark[edit] != v:
            if v > 0 and work.into[v] > 0.0 and work.hits[4, edit] > 0 and _drops(field, v, edit, work):
                work.dropper[v] += weight[e]
                continue
            work.edit_mark[edit] = v
            work.place[edit] = count
            work.weights[count] = 0.0
            if with_messages:
                for j in range(width):
                    work.bundles[count, j] = 0.0
                for p in range(pairs):
                    work.risks[count, p] = 0.0
            count += 1
        b = work.place[edit]
        work.weights[b] += weight[e]
        if with_messages:
            row = first[u]
            gone = work.bundles[b]
            for j in range(width):
                gone[j] += factor * row[j]
    return count


@step
def fill_degrees(field: ReceptiveField, work: Workspace) -> None:
    """The present degrees and scales, who sends to the target, and whom the target or a sender hears."""
    rows, loop = field.incoming.rows, field.incoming.loop
    for v in range(len(loop)):
        degree = float(loop[v])
        for e in range(rows[v], rows[v + 1]):
            degree += work.weight[e]
        work.degree[v] = degree
        work.scale[v] = 1 / np.sqrt(degree)
        work.into[v] = 0.0
        work.entries_into[v] = 0
        work.node_mark[v] = -1
        work.matters[v] = 0
    for e in range(rows[0], rows[1]):
        work.into[field.incoming.sender[e]] += work.weight[e]
        work.entries_into[field.incoming.sender[e]] += work.weight[e] != 0.0
    for u in range(field.incoming.levels[1]):
        if u == 0 or work.into[u] > 0.0:
            work.matters[u] = 1
            for e in range(rows[u], rows[u + 1]):
                if work.weight[e] != 0.0:
                    work.matters[field.incoming.sender[e]] = 1


@step
def count_hits(field: ReceptiveField, free: NDArray[np.bool_], work: Workspace) -> Any:
    """How many nodes each edit hits; returns how many edits hit the target, and how many do not."""
    hits, weight = work.hits, work.weight
    # Rows 0 and 1 of ``hits`` are those of edits at the target, all hits and hits on senders; 2 and 3 those of others.
    at_target = elsewhere = 0
    for edit in range(len(free)):
        hits[4, edit] = 0.0
        work.edit_mark[edit] = -1
        if not free[edit]:
            continue
        mine = field.edit_entries[field.edit_rows[edit] : field.edit_rows[edit + 1]]
        for e in mine:
            if weight[e] != 0.0 and field.receiver[e] == 0:
                hits[4, edit] = 1.0
        everyone = senders = 0
        for e in mine:
            v = field.receiver[e]
            if weight[e] != 0.0 and v > 0 and work.matters[v] > 0 and work.node_mark[v] != edit:
                work.node_mark[v] = edit
                everyone += 1
                if work.into[v] > 0.0 and not (hits[4, edit] > 0 and _drops(field, v, edit, work)):
                    senders += 1
        if hits[4, edit] > 0:
            hits[0, at_target], hits[1, at_target] = everyone, senders
            at_target += 1
        else:
            hits[2, elsewhere], hits[3, elsewhere] = everyone, senders
            elsewhere += 1
    for kind in range(2):
        sort_falling(hits[kind], work.unused, at_target)
        sort_falling(hits[2 + kind], work.unused, elsewhere)
    return at_target, elsewhere


@step
def _rises(v: int, loop: float, count: int, last: int, work: Workspace, rise: Floats) -> None:
    """How far the scale of a node rises at most that loses so many of the gathered bundles, into ``rise``."""
    weights = work.sorted_weights
    for b in range(count):
        weights[b] = work.weights[b]
    sort_falling(weights, work.unused, count)
    degree = work.degree[v] * (1 - ROUNDING)
    rise[0] = 0.0
    for b in range(last):
        degree -= weights[b]
        rise[b + 1] = 1 / np.sqrt(max(degree, loop)) - work.scale[v]


@step
def _add_pieces(rise: Floats, count: int, last: int, work: Workspace, end: int) -> Any:
    """The increments of the scale of a node as pieces; returns where they end."""
    equal = True
    for b in range(1, count):
        equal &= work.weights[b] == work.weights[0]
    if last > 0 and equal:
        # As d^(-1/2) is convex, the least concave function above it is a straight line.
        work.piece_slope[end], work.piece_count[end] = rise[last] / last, last
        return end + 1
    return hull(rise, last, work.piece_slope, work.piece_count, end)


@step
def _keeps_one(field: ReceptiveField, free: NDArray[np.bool_], y: int, work: Workspace) -> bool:
    """Whether a node that loses all that can be deleted at it is still heard by someone that the target hears."""
    for o in range(field.sent_rows[y], field.sent_rows[y + 1]):
        e = field.sent_entries[o]
        v = field.receiver[e]
        if work.weight[e] != 0.0 and (v == 0 or work.into[v] > 0.0):
            edit = field.edit[e]
            if edit < 0 or not free[edit] or work.edit_mark[edit] != y:
                return True
    return False


@kernel
def fill_scales(field: ReceptiveField, free: NDArray[np.bool_], more: int, at_target: int, work: Workspace) -> None:
    """How far the scale of every node rises, by how often it is hit."""
    loop, end = field.incoming.loop, 0
    for x in range(len(loop)):
        work.piece_rows[x] = end
        if work.matters[x] == 0:
            continue
        count = gather(field, free, x, False, work)
        sends = x == 0 or work.into[x] > 0.0
        if sends:
            last = min(count, more)
            work.last[x] = last
            _rises(x, float(loop[x]), count, last, work, work.rise[x])
            work.highest[x] = work.scale[x] + work.rise[x, last]
        if x == 0:
            for b in range(count):
                work.target_weights[b] = work.sorted_weights[b]
            for edit in range(len(free)):
                work.target_place[edit] = work.place[edit]
        if work.dropper[x] > 0.0:
            work.weights[count] = work.dropper[x]
            count += 1
        work.num_edits[x] = count
        work.loose[x] = 0.0
        for b in range(count):
            work.loose[x] += work.weights[b]
        last = min(count, more)
        _rises(x, float(loop[x]), count, last, work, work.values)
        work.top[x] = work.scale[x] + work.values[last]
        if x > 0 and (not sends or at_target > 0):
            if last > 0 and last == count and not _keeps_one(field, free, x, work):
                last -= 1
            end = _add_pieces(work.values, count, last, work, end)
    work.piece_rows[len(loop)] = end
