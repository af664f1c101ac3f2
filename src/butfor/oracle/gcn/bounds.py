"""How far at most one more deletion can move a stack of GCN layers, whatever else is deleted with it.

`influence` returns numbers U(e) such that margin(D + e) ≥ margin(D) − U(e) for *every* set D that holds the
edits ``removed`` and fewer than ``more`` of the ``free`` ones. A branch of a search may be cut where the margin
exceeds the sum of the largest U's that it may still use. This is a proof only if the U's are sound, so here is why.

**Setting.** Notation as in `gcn/kernels.py`. F is the family of all graphs that lack ``removed`` and at most ``more``
of the free edits. Let G' be in F, and G'' = G' − e as well; x' and x'' are the values of x in them, and Δx = x'' − x'.

**The difference, exactly.** From Δ(ab) = a''Δb + Δa·b', and because a ReLU moves by σ times what its argument
moves by, for some σ in [0, 1] (σ = 1 where the argument is never negative on F, 0 where it is never positive):
    ΔZ_l(x) = Δs(x) A'_l(x) + s''(x) (Σ_{u→x in G''} w Δ(s(u) M_l(u)) − Σ_{u→x deleted by e} w s'(u) M'_l(u))
    Δ(s(u) M_l(u)) = Δs(u) M'_l(u) + s''(u) W_lᵀ σ ΔZ_{l−1}(u)
where A_l(x) = Σ w s(u) M_l(u) and self-loops are edges that no edit deletes. A margin between two classes is linear
in the target's H_l, with coefficients q_l. Unrolled from the target outwards, with cotangents
    λ_l(x) = σ p_l(x),   p_l(u) = [u is the target] q_l + s''(u) W_{l+1} Σ_{u→x in G''} w s''(x) λ_{l+1}(x),
the margin's difference is a sum over the nodes v whose degree e changes and over the entries u→x that it deletes:
    Δmargin = Σ_v Δs(v) B(v) − Σ_{u→x} P(u→x),      with D_l(x, u) = λ_l(x) · M'_l(u) and
    B(v)    = Σ_l (Σ_{u→v in G'} w s'(u) D_l(v, u) + Σ_{v→x in G''} w s''(x) D_l(x, v)),
    P(u→x)  = Σ_l w s''(x) s'(u) D_l(x, u).

**The bound.** Every s, M, Z, λ above is a value on some graph of F (or, for σ and λ, between two of them), so
intervals that hold on all of F may stand for them. Deletions only lower degrees, so 0 ≤ Δs(v), and as d ↦ d^(−1/2) is
convex, Δs(v) is at most the step at the least degree v has on F. Hence
    U(e) = Σ_v step(v) max(0, −min B(v)) + Σ_{u→x} max(0, max P(u→x)).
An edit that deletes several entries into v takes at most the sum of their steps, by convexity again.

**The total.** Let s⁰ be the present scales. From any set to any larger one the margin falls by no more than
    Σ_v (s(v) after − s⁰(v)) max(0, −min B(v)) + Σ_{u→x deleted} max(0, max P(u→x)).
If v loses n entries at most, all of one weight, then i of them raise its scale by at most i/n of the largest rise, by
convexity; where weights differ, one may do it all. So each node is so many equal parts, and at most as many parts count
as entries are deleted in all: more times the most that an edit deletes. Of P the ``more`` edits with the most count.

**Sums over edges.** A graph of F lacks at most `absent` of the entries at a node, and the nodes at the other ends lose
at most `changed` entries in all: the sum is at least the present one, less the worst `absent` terms, less the worst
`changed` parts of what risen scales do, each node being parts as above (`family.worst`). In Z(v) = s(v) A(v) + b the
number of entries that v has lost decides both factors if they weigh the same, so the least over these numbers is taken.

U is the largest over the margins of all class pairs that the goal looks at. The margin of the goal is their least
(any other class) or their largest (a wanted one), and in both cases moves by no more than the one that moves most.
All is computed in float64; who compares with scores that were rounded must leave room for that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from butfor.oracle.gcn.family import Family, Scratch, entries_per_edit, fill_family, parallel, rise, worst
from butfor.oracle.gcn.intervals import ON, UNKNOWN, Boxes, dot, finite, forward, least, map_box
from butfor.oracle.gcn.kernels import copy_rows, jit, kernel, step
from butfor.oracle.gcn.selection import sum_of_largest, sum_of_largest_parts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from butfor.oracle.gcn.layout import ReceptiveField
    from butfor.oracle.gcn.stack import Layers

    Floats = NDArray[np.float64]

__all__ = ["influence"]


class Cotangents(NamedTuple):
    """What is known of the cotangents on the way from the target outwards, and of B and P so far."""

    p: Floats  # (end, node, channel): the interval of p of the present layer, and then of λ
    further: Floats  # (end, node, channel): the interval of p of the layer before
    dot: Floats  # (entry): the least D of the present layer
    b: Floats  # (node): the least B
    taken: Floats  # (entry): the largest P


@step
def _add_head(layers: Layers, layer: int, position: int, pair: Floats, p: Floats) -> None:
    """Add q, by which the margin of a pair of classes depends on H of the target, to p of the target."""
    for j in range(layers.widths[layer + 1]):
        for c in range(len(layers.head)):
            p[0, 0, j] += pair[c] * layers.head[c, position + j]
            p[1, 0, j] += pair[c] * layers.head[c, position + j]


@step
def _relu_backward(state: NDArray[np.int8], width: int, low: Floats, high: Floats) -> None:
    """From the interval of p that of λ = σ p, in place."""
    for j in range(width):
        if state[j] != ON:
            low[j] = min(low[j], 0.0) if state[j] == UNKNOWN else 0.0
            high[j] = max(high[j], 0.0) if state[j] == UNKNOWN else 0.0


@step
def _add_received(
    field: ReceptiveField, family: Family, layer: int, v: int, width: int, boxes: Boxes, cotangents: Cotangents,
    scratch: Scratch,
) -> None:  # fmt: skip
    """Add to B(v) and to P what node ``v`` receives in one layer."""
    rows, sender, weight, low, high = field.incoming.rows, field.incoming.sender, family.weight, family.low, family.high
    p, b, taken = cotangents.p, cotangents.b, cotangents.taken
    m_low, m_high = boxes.m[0, layer], boxes.m[1, layer]
    own, _ = dot(p[0, v], p[1, v], m_low[v], m_high[v], width)
    # The self-loop counts twice: v receives from v, and v sends to v.
    b[v] += 2 * field.incoming.loop[v] * least(low[v], high[v], own)
    num_lost, num_moved = 0, 0
    for e in range(rows[v], rows[v + 1]):
        if weight[e] != 0.0:
            u = sender[e]
            smallest, most = dot(p[0, v], p[1, v], m_low[u], m_high[u], width)
            cotangents.dot[e] = smallest
            taken[e] -= weight[e] * least(low[u] * low[v], high[u] * high[v], -most)
            value = weight[e] * smallest
            b[v] += low[u] * value
            num_moved = rise(family, u, value, num_moved, scratch)
            if family.loose[e] and value > 0.0:
                scratch.lost[num_lost] = low[u] * value
                num_lost += 1
    b[v] -= worst(num_lost, num_moved, scratch)


@step
def _add_sent(
    field: ReceptiveField, family: Family, u: int, reach: int, cotangents: Cotangents, scratch: Scratch
) -> None:
    """Add to B(u) what node ``u`` sends in one layer."""
    weight, low, b = family.weight, family.low, cotangents.b
    num_lost, num_moved = 0, 0
    for o in range(field.sent_rows[u], field.sent_rows[u + 1]):
        e = field.sent_entries[o]
        x = field.receiver[e]
        if x >= reach:
            break  # the nearest receivers come first
        if weight[e] != 0.0:
            value = weight[e] * cotangents.dot[e]
            b[u] += low[x] * value
            num_moved = rise(family, x, value, num_moved, scratch)
            if family.loose[e] and value > 0.0:
                scratch.lost[num_lost] = low[x] * value
                num_lost += 1
    b[u] -= worst(num_lost, num_moved, scratch)


@step
def _aggregate_backward(
    field: ReceptiveField, family: Family, u: int, reach: int, width: int, p: Floats, scratch: Scratch
) -> None:
    """The interval of Σ_{u→x} w s(x) λ(x) into ``scratch.sums``."""
    weight, low, lost = family.weight, family.low, scratch.lost
    for end in range(2):
        sign = 1.0 - 2 * end
        for j in range(width):
            total, num_lost, num_moved = 0.0, 0, 0
            if u < reach:
                total = field.incoming.loop[u] * least(low[u], family.high[u], sign * p[end, u, j])
            for o in range(field.sent_rows[u], field.sent_rows[u + 1]):
                e = field.sent_entries[o]
                x = field.receiver[e]
                if x >= reach:
                    break
                value = weight[e] * sign * p[end, x, j]
                if value != 0.0:
                    total += low[x] * value
                    num_moved = rise(family, x, value, num_moved, scratch)
                    if family.loose[e] and value > 0.0:
                        lost[num_lost] = low[x] * value
                        num_lost += 1
            scratch.sums[end, j] = sign * (total - worst(num_lost, num_moved, scratch))


@step
def _multiply_backward(layers: Layers, layer: int, u: int, family: Family, sums: Floats, further: Floats) -> None:
    """The interval of p(u) of the layer before, from that sum."""
    low, high = family.low[u], family.high[u]
    for i in range(layers.widths[layer]):
        lower, upper = map_box(sums[0], sums[1], layers.matrices[layer], layers.widths[layer + 1], i)
        further[0, u, i] = least(low, high, lower)
        further[1, u, i] = -least(low, high, -upper)


@step
def _backward_layer(
    field: ReceptiveField,
    layers: Layers,
    layer: int,
    family: Family,
    boxes: Boxes,
    cotangents: Cotangents,
    scratch: Scratch,
) -> None:
    """Add to B and P what one layer contributes, and go on to p of the layer before."""
    levels, width, num_layers = field.incoming.levels, layers.widths[layer + 1], len(layers.relu)
    senders, reach = levels[num_layers - layer], levels[num_layers - 1 - layer]
    p = cotangents.p
    for v in range(reach):
        _relu_backward(boxes.state[layer, v], width, p[0, v], p[1, v])
        _add_received(field, family, layer, v, width, boxes, cotangents, scratch)
    for u in range(senders):
        _add_sent(field, family, u, reach, cotangents, scratch)
        if layer > 0:
            _aggregate_backward(field, family, u, reach, width, p, scratch)
            _multiply_backward(layers, layer, u, family, scratch.sums, cotangents.further)


@kernel
def _backward(
    field: ReceptiveField,
    layers: Layers,
    family: Family,
    boxes: Boxes,
    pair: Floats,
    cotangents: Cotangents,
    scratch: Scratch,
) -> bool:
    """B and P for the margin of one pair of classes; whether all of it is finite."""
    num_layers, p, further = len(layers.relu), cotangents.p, cotangents.further
    p[:] = 0.0
    cotangents.b[:] = 0.0
    cotangents.taken[:] = 0.0
    position = layers.head.shape[1]
    for layer in range(num_layers - 1, -1, -1):
        if layers.joined or layer == num_layers - 1:
            position -= layers.widths[layer + 1]
            _add_head(layers, layer, position, pair, p)
        _backward_layer(field, layers, layer, family, boxes, cotangents, scratch)
        if not (finite(p) and finite(cotangents.b) and finite(cotangents.taken)):
            return False
        if layer > 0:
            for end in range(2):
                copy_rows(further[end], p.shape[1], p.shape[2], p[end])
            further[:] = 0.0
    return True


@kernel
def _raise_limits(
    field: ReceptiveField, free: NDArray[np.bool_], family: Family, cotangents: Cotangents, more: int, hits: int,
    scratch: Scratch, edits: Floats, limits: Floats,
) -> Any:  # fmt: skip
    """Raise U of every free edit to what it is for this margin; returns what all of them can do together."""
    high, least_degree, weight = family.high, family.least_degree, family.weight
    b, taken = cotangents.b, cotangents.taken
    count = 0
    for v in range(len(high)):
        count = rise(family, v, b[v], count, scratch)
    total = sum_of_largest_parts(scratch.moved, scratch.parts, count, hits)
    count = 0
    for edit in range(len(free)):
        if free[edit]:
            alone = gone = 0.0
            for e in field.edit_entries[field.edit_rows[edit] : field.edit_rows[edit + 1]]:
                if weight[e] != 0.0:
                    v = field.receiver[e]
                    alone += (high[v] - 1 / np.sqrt(least_degree[v] + weight[e])) * max(-b[v], 0.0)
                    gone += max(taken[e], 0.0)
            limits[edit] = max(limits[edit], alone + gone)
            edits[count] = gone
            count += 1
    return total + sum_of_largest(edits, count, more)


@jit
def influence(
    field: ReceptiveField,
    layers: Layers,
    removed: NDArray[np.int64],
    free: NDArray[np.bool_],
    more: int,
    pairs: Floats,
    limits: Floats,
) -> Any:
    """U of every free edit into ``limits``; returns a bound on what all further edits can do together.

    Each row of ``pairs`` has a 1 and a −1 at two classes.
    """
    nodes, entries, num_layers, wide = (
        len(field.incoming.loop),
        len(field.base),
        len(layers.relu),
        layers.biases.shape[1],
    )
    at_node, in_all = entries_per_edit(field, free)
    space = nodes + 1
    for v in range(nodes):
        received = field.incoming.rows[v + 1] - field.incoming.rows[v]
        space = max(space, max(received, field.sent_rows[v + 1] - field.sent_rows[v]) + 1)
    scratch = Scratch(
        more * at_node,
        more * in_all * parallel(field),
        np.zeros(space),
        np.zeros(space),
        np.zeros(space),
        np.zeros(space),
        np.zeros(space),
        np.zeros((2, wide)),
    )
    family = Family(
        field.base.astype(np.float64),
        np.zeros(entries, np.bool_),
        np.zeros(nodes),
        np.zeros(nodes),
        np.zeros(nodes),
        np.zeros(nodes),
        np.zeros(nodes, np.int64),
        np.zeros(nodes),
    )
    boxes = Boxes(
        np.zeros((2, num_layers, nodes, wide)),
        np.zeros((2, nodes, wide)),
        np.zeros((num_layers, nodes, wide), np.int8),
    )
    fill_family(field, removed, free, family, scratch)
    forward(field, layers, family, boxes, scratch)
    if not (finite(boxes.m) and finite(family.high)):
        # Where numbers are too large to tell, anything may happen.
        limits[:] = np.inf
        return np.inf
    cotangents = Cotangents(
        np.zeros((2, nodes, wide)), np.zeros((2, nodes, wide)), np.zeros(entries), np.zeros(nodes), np.zeros(entries)
    )
    edits = np.empty(len(free))
    limits[:] = 0.0
    total = 0.0
    for i in range(len(pairs)):
        if not _backward(field, layers, family, boxes, pairs[i], cotangents, scratch):
            limits[:] = np.inf
            return np.inf
        all_in_all = _raise_limits(field, free, family, cotangents, more, more * in_all, scratch, edits, limits)
        total = max(total, all_in_all)
    return total
