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
An edit that deletes several entries into v takes at most the sum of their steps, by convexity again. And as the steps
of v add up to no more than the difference of its largest and least scale on F, from any set to any larger one the
margin falls by no more than Σ_v (that difference) max(0, −min B(v)) + Σ_{u→x} max(0, max P(u→x)): the total.
Sums over edges use that a graph of F lacks at most `absent` of the entries at a node, and has at most `changed`
scales that differ from the present ones: the present sum, less the worst so many changes.

U is the largest over the margins of all class pairs that the goal looks at. The margin of the goal is their least
(any other class) or their largest (a wanted one), and in both cases moves by no more than the one that moves most.
All is computed in float64; who compares with scores that were rounded must leave room for that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from butfor.oracle.gcn.kernels import copy_rows, jit, kernel, step

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from butfor.oracle.gcn.layout import ReceptiveField
    from butfor.oracle.gcn.stack import Layers

    Floats = NDArray[np.float64]

__all__ = ["influence"]

# Room for the rounding of a degree, relative to it.
ROUNDING = 1e-12

# Where more changes than this are possible at a node, all of them are assumed.
MANY = 16

# What is known of a ReLU on all graphs of F: that it is off, that it is on, or neither.
OFF, ON, UNKNOWN = 0, 1, 2


class Family(NamedTuple):
    """F, the graphs that lack ``removed`` and at most ``more`` of the free edits."""

    weight: Floats  # (entry): its weight in the graphs that have it; 0 if it is removed
    loose: NDArray[np.bool_]  # (entry): whether a free edit deletes it
    low: Floats  # (node): the least scale, that of the present degree
    high: Floats  # (node): the largest scale, that of the least degree
    least_degree: Floats  # (node)


class Boxes(NamedTuple):
    """Intervals that hold on all of F; end 0 is the lower one, end 1 the upper one."""

    m: Floats  # (end, layer, node, channel): M
    h: Floats  # (end, node, channel): H of one layer at a time
    state: NDArray[np.int8]  # (layer, node, channel): what is known of the ReLU


class Cotangents(NamedTuple):
    """What is known of the cotangents on the way from the target outwards, and of B and P so far."""

    p: Floats  # (end, node, channel): the interval of p of the present layer, and then of λ
    further: Floats  # (end, node, channel): the interval of p of the layer before
    dot: Floats  # (entry): the least D of the present layer
    b: Floats  # (node): the least B
    taken: Floats  # (entry): the largest P


class Scratch(NamedTuple):
    """Space to compute in."""

    lost: Floats  # the worst that absent entries do to a sum: as many as a graph of F lacks at one node at most
    moved: Floats  # the worst that changed scales do: as many as there are at the senders of a node at most
    worst: Floats  # (end, channel, ...): as `lost`, for all channels at once
    sums: Floats  # (end, channel)


@step
def _push(worst: Floats, value: float) -> None:
    """Keep the largest values, the least of them first; an array of more than MANY keeps the sum of all."""
    if len(worst) > MANY:
        worst[0] += max(value, 0.0)
    elif value > worst[0]:
        k = 0
        while k + 1 < len(worst) and worst[k + 1] < value:
            worst[k] = worst[k + 1]
            k += 1
        worst[k] = value


@step
def _least(scale_low: float, scale_high: float, value: float) -> Any:
    """The least product of a scale, which is not negative, and a value."""
    return scale_low * value if value > 0 else scale_high * value


@step
def _dot(low: Floats, high: Floats, other_low: Floats, other_high: Floats, width: int) -> Any:
    """The interval of the dot product of two boxes."""
    least, most = 0.0, 0.0
    for j in range(width):
        a, b = low[j] * other_low[j], low[j] * other_high[j]
        c, d = high[j] * other_low[j], high[j] * other_high[j]
        least += min(min(a, b), min(c, d))
        most += max(max(a, b), max(c, d))
    return least, most


@step
def _map(low: Floats, high: Floats, matrix: NDArray[Any], rows: int, row: int) -> Any:
    """The interval of one row of a matrix times a box."""
    least, most = 0.0, 0.0
    for j in range(rows):
        w = matrix[row, j]
        if w > 0:
            least += w * low[j]
            most += w * high[j]
        else:
            least += w * high[j]
            most += w * low[j]
    return least, most


@step
def _finite(values: Floats) -> bool:
    finite = True
    for value in values.flat:
        finite &= np.isfinite(value)
    return finite


@kernel
def _entries_per_edit(field: ReceptiveField, free: NDArray[np.bool_]) -> Any:
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
def _parallel(field: ReceptiveField) -> int:
    """How many entries lead from one node to another at most."""
    sender, receiver, order = field.incoming.sender, field.receiver, field.sent_entries
    most, run = 1, 1
    for k in range(1, len(order)):
        e, before = order[k], order[k - 1]
        run = run + 1 if sender[e] == sender[before] and receiver[e] == receiver[before] else 1
        most = max(most, run)
    return most


@kernel
def _fill_family(
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
        degree = float(loop[v])
        lost[:] = 0.0
        for e in range(rows[v], rows[v + 1]):
            degree += weight[e]
            if loose[e]:
                _push(lost, weight[e])
        least = max(degree * (1 - ROUNDING) - lost.sum(), float(loop[v]))
        family.least_degree[v], family.low[v], family.high[v] = least, 1 / np.sqrt(degree), 1 / np.sqrt(least)


@step
def _least_total(
    field: ReceptiveField, family: Family, v: int, j: int, sign: float, m: Floats, scratch: Scratch
) -> Any:
    """The least of ``sign`` A(v) in channel ``j``, where ``m`` is the end of M that makes it least.

    That is the present sum, less the worst that absent entries and changed scales can do.
    """
    low, high, weight, lost, moved = family.low, family.high, family.weight, scratch.lost, scratch.moved
    value = field.incoming.loop[v] * sign * m[v, j]
    total = low[v] * value
    lost[:] = 0.0
    moved[:] = 0.0
    _push(moved, -(high[v] - low[v]) * value)
    for e in range(field.incoming.rows[v], field.incoming.rows[v + 1]):
        u = field.incoming.sender[e]
        value = weight[e] * sign * m[u, j]
        total += low[u] * value
        _push(moved, -(high[u] - low[u]) * value)
        if family.loose[e]:
            _push(lost, low[u] * value)
    return total - (lost.sum() + moved.sum())


@step
def _multiply(field: ReceptiveField, layers: Layers, layer: int, nodes: int, boxes: Boxes) -> None:
    """The intervals of M of one layer, from those of H of the layer before."""
    m, h, transposed = boxes.m, boxes.h, layers.matrices[layer].T
    for u in range(nodes):
        for j in range(layers.widths[layer + 1]):
            if layer == 0:
                m[0, 0, u, j] = field.first[u, j]
                m[1, 0, u, j] = field.first[u, j]
            else:
                m[0, layer, u, j], m[1, layer, u, j] = _map(h[0, u], h[1, u], transposed, layers.widths[layer], j)


@step
def _pass_relu(layer: int, v: int, j: int, boxes: Boxes) -> None:
    """From the interval of Z that of H, in place, and what it says of the ReLU."""
    h, state = boxes.h, boxes.state
    if h[1, v, j] <= 0:
        state[layer, v, j] = OFF
    elif h[0, v, j] < 0:
        state[layer, v, j] = UNKNOWN
    for end in range(2):
        h[end, v, j] = max(h[end, v, j], 0.0)


@kernel
def _forward(field: ReceptiveField, layers: Layers, family: Family, boxes: Boxes, scratch: Scratch) -> None:
    """The intervals of all M, and what is known of the ReLUs."""
    levels, num_layers = field.incoming.levels, len(layers.relu)
    for layer in range(num_layers):
        _multiply(field, layers, layer, levels[num_layers - layer], boxes)
        for v in range(levels[num_layers - 1 - layer]):
            low, high = family.low[v], family.high[v]
            for j in range(layers.widths[layer + 1]):
                for end in range(2):
                    sign = 1.0 - 2 * end  # the upper end is the lower one when all signs are turned
                    total = _least_total(field, family, v, j, sign, boxes.m[end, layer], scratch)
                    boxes.h[end, v, j] = sign * _least(low, high, total) + layers.biases[layer, j]
                boxes.state[layer, v, j] = ON
                if layers.relu[layer]:
                    _pass_relu(layer, v, j, boxes)


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
    lost: Floats,
) -> None:  # fmt: skip
    """Add to B(v) and to P what node ``v`` receives in one layer."""
    rows, sender, weight, low, high = field.incoming.rows, field.incoming.sender, family.weight, family.low, family.high
    p, dot, b, taken = cotangents.p, cotangents.dot, cotangents.b, cotangents.taken
    m_low, m_high = boxes.m[0, layer], boxes.m[1, layer]
    own, _ = _dot(p[0, v], p[1, v], m_low[v], m_high[v], width)
    # The self-loop counts twice: v receives from v, and v sends to v.
    b[v] += 2 * field.incoming.loop[v] * _least(low[v], high[v], own)
    lost[:] = 0.0
    for e in range(rows[v], rows[v + 1]):
        if weight[e] != 0.0:
            u = sender[e]
            dot[e], most = _dot(p[0, v], p[1, v], m_low[u], m_high[u], width)
            taken[e] -= weight[e] * _least(low[u] * low[v], high[u] * high[v], -most)
            value = weight[e] * _least(low[u], high[u], dot[e])
            b[v] += value
            if family.loose[e]:
                _push(lost, value)
    b[v] -= lost.sum()


@step
def _add_sent(field: ReceptiveField, family: Family, u: int, reach: int, cotangents: Cotangents, lost: Floats) -> None:
    """Add to B(u) what node ``u`` sends in one layer."""
    weight, b = family.weight, cotangents.b
    lost[:] = 0.0
    for o in range(field.sent_rows[u], field.sent_rows[u + 1]):
        e = field.sent_entries[o]
        x = field.receiver[e]
        if x >= reach:
            break  # the nearest receivers come first
        if weight[e] != 0.0:
            value = weight[e] * _least(family.low[x], family.high[x], cotangents.dot[e])
            b[u] += value
            if family.loose[e]:
                _push(lost, value)
    b[u] -= lost.sum()


@step
def _aggregate_backward(
    field: ReceptiveField, family: Family, u: int, reach: int, width: int, p: Floats, scratch: Scratch
) -> None:
    """The interval of Σ_{u→x} w s(x) λ(x) into ``scratch.sums``."""
    weight, low, high, sums, worst = family.weight, family.low, family.high, scratch.sums, scratch.worst
    sums[:] = 0.0
    worst[:] = 0.0
    for end in range(2):
        sign = 1.0 - 2 * end
        if u < reach:
            for j in range(width):
                sums[end, j] += sign * field.incoming.loop[u] * _least(low[u], high[u], sign * p[end, u, j])
        for o in range(field.sent_rows[u], field.sent_rows[u + 1]):
            e = field.sent_entries[o]
            x = field.receiver[e]
            if x >= reach:
                break
            if weight[e] != 0.0:
                for j in range(width):
                    value = weight[e] * _least(low[x], high[x], sign * p[end, x, j])
                    sums[end, j] += sign * value
                    if family.loose[e]:
                        _push(worst[end, j], value)
        for j in range(width):
            sums[end, j] -= sign * worst[end, j].sum()


@step
def _multiply_backward(layers: Layers, layer: int, u: int, family: Family, sums: Floats, further: Floats) -> None:
    """The interval of p(u) of the layer before, from that sum."""
    low, high = family.low[u], family.high[u]
    for i in range(layers.widths[layer]):
        lower, upper = _map(sums[0], sums[1], layers.matrices[layer], layers.widths[layer + 1], i)
        further[0, u, i] = _least(low, high, lower)
        further[1, u, i] = -_least(low, high, -upper)


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
        _add_received(field, family, layer, v, width, boxes, cotangents, scratch.lost)
    for u in range(senders):
        _add_sent(field, family, u, reach, cotangents, scratch.lost)
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
        if not (_finite(p) and _finite(cotangents.b) and _finite(cotangents.taken)):
            return False
        if layer > 0:
            for end in range(2):
                copy_rows(further[end], p.shape[1], p.shape[2], p[end])
            further[:] = 0.0
    return True


@kernel
def _raise_limits(
    field: ReceptiveField, free: NDArray[np.bool_], family: Family, cotangents: Cotangents, limits: Floats
) -> Any:
    """Raise U of every free edit to what it is for this margin; returns what all of them can do together."""
    high, least_degree, weight = family.high, family.least_degree, family.weight
    b, taken = cotangents.b, cotangents.taken
    total = 0.0
    for v in range(len(high)):
        total += (high[v] - family.low[v]) * max(-b[v], 0.0)
    for edit in range(len(free)):
        if free[edit]:
            alone = 0.0
            for e in field.edit_entries[field.edit_rows[edit] : field.edit_rows[edit + 1]]:
                if weight[e] != 0.0:
                    v = field.receiver[e]
                    alone += (high[v] - 1 / np.sqrt(least_degree[v] + weight[e])) * max(-b[v], 0.0)
                    alone += max(taken[e], 0.0)
                    total += max(taken[e], 0.0)
            limits[edit] = max(limits[edit], alone)
    return total


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
    at_node, in_all = _entries_per_edit(field, free)
    absent, changed = min(more * at_node, MANY + 1), min(more * in_all * _parallel(field), MANY + 1)
    scratch = Scratch(np.zeros(absent), np.zeros(changed), np.zeros((2, wide, absent)), np.zeros((2, wide)))
    family = Family(
        field.base.astype(np.float64), np.zeros(entries, np.bool_), np.zeros(nodes), np.zeros(nodes), np.zeros(nodes)
    )
    boxes = Boxes(
        np.zeros((2, num_layers, nodes, wide)),
        np.zeros((2, nodes, wide)),
        np.zeros((num_layers, nodes, wide), np.int8),
    )
    _fill_family(field, removed, free, family, scratch)
    _forward(field, layers, family, boxes, scratch)
    if not (_finite(boxes.m) and _finite(family.high)):
        # Where numbers are too large to tell, anything may happen.
        limits[:] = np.inf
        return np.inf
    cotangents = Cotangents(
        np.zeros((2, nodes, wide)), np.zeros((2, nodes, wide)), np.zeros(entries), np.zeros(nodes), np.zeros(entries)
    )
    limits[:] = 0.0
    total = 0.0
    for i in range(len(pairs)):
        if not _backward(field, layers, family, boxes, pairs[i], cotangents, scratch):
            limits[:] = np.inf
            return np.inf
        total = max(total, _raise_limits(field, free, family, cotangents, limits))
    return total
