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

from typing import Any

import numpy as np

from butfor.oracle.gcn.kernels import jit

__all__ = ["influence"]

# Room for the rounding of a degree, relative to it.
ROUNDING = 1e-12

# Where more changes than this are possible at a node, all of them are assumed.
MANY = 16


@jit
def _push(worst: Any, value: Any) -> None:
    """Keep the largest values, the least of them first; an array of more than MANY keeps the sum of all."""
    if len(worst) > MANY:
        worst[0] += max(value, 0.0)
    elif value > worst[0]:
        k = 0
        while k + 1 < len(worst) and worst[k + 1] < value:
            worst[k] = worst[k + 1]
            k += 1
        worst[k] = value


@jit
def _least(scale_low: Any, scale_high: Any, value: Any) -> Any:
    """The least product of a scale, which is not negative, and a value."""
    return scale_low * value if value > 0 else scale_high * value


@jit
def _dot(low: Any, high: Any, other_low: Any, other_high: Any, width: Any) -> Any:
    """The interval of the dot product of two boxes."""
    least, most = 0.0, 0.0
    for j in range(width):
        a, b = low[j] * other_low[j], low[j] * other_high[j]
        c, d = high[j] * other_low[j], high[j] * other_high[j]
        least += min(min(a, b), min(c, d))
        most += max(max(a, b), max(c, d))
    return least, most


@jit
def _map(low: Any, high: Any, matrix: Any, rows: Any, row: Any) -> Any:
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


@jit
def _counts(frame: Any, free: Any) -> Any:
    """How many entries at one node an edit deletes at most, and how many in all."""
    sender, receiver, edit_rows, edit_entries = frame[2], frame[3], frame[9], frame[10]
    at_node, in_all = 1, 1
    for edit in range(len(free)):
        if free[edit]:
            mine = edit_entries[edit_rows[edit] : edit_rows[edit + 1]]
            in_all = max(in_all, len(mine))
            for e in mine:
                received, sent = 0, 0
                for f in mine:
                    received += receiver[f] == receiver[e]
                    sent += sender[f] == sender[e]
                at_node = max(at_node, received, sent)
    return at_node, in_all


@jit
def _boxes(
    frame: Any, stack: Any, weight: Any, loose: Any, low: Any, high: Any, absent: Any, changed: Any, m: Any, state: Any
) -> None:
    """Intervals of all M_l into ``m[0]`` and ``m[1]``, and of σ: 0, 1, or 2 where it is not known."""
    levels, rows, sender, _, loop, first = frame[:6]
    widths, relu, matrices, biases = stack[:4]
    layers = len(relu)
    h = np.zeros_like(m[:, 0])
    lost, moved = np.zeros(absent), np.zeros(changed)
    ends = np.zeros(2)
    for layer in range(layers):
        width = widths[layer + 1]
        transposed = matrices[layer].T
        for u in range(levels[layers - layer]):
            for j in range(width):
                if layer == 0:
                    m[0, 0, u, j] = first[u, j]
                    m[1, 0, u, j] = first[u, j]
                else:
                    m[0, layer, u, j], m[1, layer, u, j] = _map(h[0, u], h[1, u], transposed, widths[layer], j)
        for v in range(levels[layers - 1 - layer]):
            for j in range(width):
                for side in range(2):
                    # The lower end of A, and with all signs turned the upper one.
                    sign = 1.0 - 2 * side
                    value = loop[v] * sign * m[side, layer, v, j]
                    total = low[v] * value
                    lost[:] = 0.0
                    moved[:] = 0.0
                    _push(moved, -(high[v] - low[v]) * value)
                    for e in range(rows[v], rows[v + 1]):
                        u = sender[e]
                        value = weight[e] * sign * m[side, layer, u, j]
                        total += low[u] * value
                        _push(moved, -(high[u] - low[u]) * value)
                        if loose[e]:
                            _push(lost, low[u] * value)
                    total -= lost.sum() + moved.sum()
                    ends[side] = sign * _least(low[v], high[v], total) + biases[layer, j]
                state[layer, v, j] = 1
                if relu[layer] and ends[1] <= 0:
                    state[layer, v, j] = 0
                elif relu[layer] and ends[0] < 0:
                    state[layer, v, j] = 2
                for side in range(2):
                    h[side, v, j] = max(ends[side], 0.0) if relu[layer] else ends[side]


@jit
def _spread(
    frame: Any, width: Any, weight: Any, loose: Any, low: Any, high: Any, p: Any, u: Any, reach: Any, worst: Any, k: Any
) -> None:
    """The interval of Σ_{u→x} w s(x) λ(x) into ``k``."""
    receiver, loop, out_rows, out_entries = frame[3], frame[4], frame[7], frame[8]
    k[:] = 0.0
    worst[:] = 0.0
    for side in range(2):
        sign = 1.0 - 2 * side
        if u < reach:
            for j in range(width):
                k[side, j] += sign * loop[u] * _least(low[u], high[u], sign * p[side, u, j])
        for o in range(out_rows[u], out_rows[u + 1]):
            e = out_entries[o]
            x = receiver[e]
            if x >= reach:
                break
            if weight[e] != 0.0:
                for j in range(width):
                    value = weight[e] * _least(low[x], high[x], sign * p[side, x, j])
                    k[side, j] += sign * value
                    if loose[e]:
                        _push(worst[side, j], value)
        for j in range(width):
            k[side, j] -= sign * worst[side, j].sum()


@jit
def influence(
    frame: Any, stack: Any, edit_of: Any, parallel: Any, removed: Any, free: Any, more: Any, pairs: Any, out: Any
) -> Any:
    """U of every free edit into ``out``; returns a bound on what all further edits can do together.

    Each row of ``pairs`` has a 1 and a −1 at two classes; ``parallel`` is how many edges lead from one node to
    another at most.
    """
    levels, rows, sender, receiver, loop, _, base, out_rows, out_entries, edit_rows, edit_entries = frame[:11]
    widths, relu, matrices, _, joined, head, _ = stack
    layers, wide, nodes = len(relu), widths.max(), levels[-1]
    weight = base.astype(np.float64)
    for edit in removed:
        for e in edit_entries[edit_rows[edit] : edit_rows[edit + 1]]:
            weight[e] = 0.0
    at_node, in_all = _counts(frame, free)
    absent, changed = min(more * at_node, MANY + 1), min(more * in_all * parallel, MANY + 1)
    loose = np.zeros(len(base), np.bool_)
    for e in range(len(base)):
        loose[e] = weight[e] != 0.0 and edit_of[e] >= 0 and free[edit_of[e]]
    lost = np.zeros(absent)
    # The scales lie between `low`, that of the present degree, and `high`, that of the least.
    low, high, least = np.zeros(nodes), np.zeros(nodes), np.zeros(nodes)
    for v in range(nodes):
        degree = float(loop[v])
        lost[:] = 0.0
        for e in range(rows[v], rows[v + 1]):
            degree += weight[e]
            if loose[e]:
                _push(lost, weight[e])
        least[v] = max(degree * (1 - ROUNDING) - lost.sum(), float(loop[v]))
        low[v], high[v] = 1 / np.sqrt(degree), 1 / np.sqrt(least[v])
    m = np.zeros((2, layers, nodes, wide))
    state = np.zeros((layers, nodes, wide), np.int8)
    _boxes(frame, stack, weight, loose, low, high, absent, changed, m, state)
    out[:] = np.inf
    if not (np.isfinite(m).all() and np.isfinite(high).all()):
        # Where numbers are too large to tell, anything may happen.
        return np.inf
    most_in_all = 0.0
    p, further = np.zeros((2, nodes, wide)), np.zeros((2, nodes, wide))
    k, worst = np.zeros((2, wide)), np.zeros((2, wide, absent))
    dot = np.zeros(len(base))
    for pair in range(len(pairs)):
        b, taken = np.zeros(nodes), np.zeros(len(base))
        p[:] = 0.0
        position = head.shape[1]
        for layer in range(layers - 1, -1, -1):
            width, reach = widths[layer + 1], levels[layers - 1 - layer]
            if joined or layer == layers - 1:
                position -= width
                for j in range(width):
                    for c in range(len(head)):
                        p[0, 0, j] += pairs[pair, c] * head[c, position + j]
                        p[1, 0, j] += pairs[pair, c] * head[c, position + j]
            for v in range(reach):
                for j in range(width):
                    if state[layer, v, j] != 1:
                        unknown = state[layer, v, j] == 2
                        p[0, v, j] = min(p[0, v, j], 0.0) if unknown else 0.0
                        p[1, v, j] = max(p[1, v, j], 0.0) if unknown else 0.0
                own, _ = _dot(p[0, v], p[1, v], m[0, layer, v], m[1, layer, v], width)
                # The self-loop counts twice: v receives from v, and v sends to v.
                b[v] += 2 * loop[v] * _least(low[v], high[v], own)
                lost[:] = 0.0
                for e in range(rows[v], rows[v + 1]):
                    if weight[e] != 0.0:
                        u = sender[e]
                        dot[e], most = _dot(p[0, v], p[1, v], m[0, layer, u], m[1, layer, u], width)
                        taken[e] -= weight[e] * _least(low[u] * low[v], high[u] * high[v], -most)
                        value = weight[e] * _least(low[u], high[u], dot[e])
                        b[v] += value
                        if loose[e]:
                            _push(lost, value)
                b[v] -= lost.sum()
            for u in range(levels[layers - layer]):
                lost[:] = 0.0
                for o in range(out_rows[u], out_rows[u + 1]):
                    e = out_entries[o]
                    x = receiver[e]
                    if x >= reach:
                        break
                    if weight[e] != 0.0:
                        value = weight[e] * _least(low[x], high[x], dot[e])
                        b[u] += value
                        if loose[e]:
                            _push(lost, value)
                b[u] -= lost.sum()
                if layer > 0:
                    _spread(frame, width, weight, loose, low, high, p, u, reach, worst, k)
                    for i in range(widths[layer]):
                        lower, upper = _map(k[0], k[1], matrices[layer], width, i)
                        further[0, u, i] = _least(low[u], high[u], lower)
                        further[1, u, i] = -_least(low[u], high[u], -upper)
            if not (np.isfinite(p).all() and np.isfinite(b).all() and np.isfinite(taken).all()):
                out[:] = np.inf
                return np.inf
            if layer > 0:
                p[:] = further
                further[:] = 0.0
        in_all_now = 0.0
        for v in range(nodes):
            in_all_now += (high[v] - low[v]) * max(-b[v], 0.0)
        for edit in range(len(free)):
            if free[edit]:
                total = 0.0
                for e in edit_entries[edit_rows[edit] : edit_rows[edit + 1]]:
                    if weight[e] != 0.0:
                        v = receiver[e]
                        total += (high[v] - 1 / np.sqrt(least[v] + weight[e])) * max(-b[v], 0.0)
                        total += max(taken[e], 0.0)
                        in_all_now += max(taken[e], 0.0)
                out[edit] = max(out[edit], total) if pair > 0 else total
        most_in_all = max(most_in_all, in_all_now)
    return most_in_all
