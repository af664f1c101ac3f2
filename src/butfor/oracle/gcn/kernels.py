"""Compiled forward and backward passes of a stack of GCN layers, for one target at a time.

A target's output needs only part of its neighbourhood: with L layers, layer l (counted from 0) is
needed at nodes within L - 1 - l hops, and the degrees within L hops. Nodes are therefore numbered by
their distance, so that "within d hops" is the prefix ``levels[d]``, and each layer computes a prefix.

Notation, for node v with incoming edges u → v of weight w, and loop weight ω:
    s(v)   = (ω(v) + Σ degree weights)^(-1/2)
    M_l    = H_(l-1) W_l                                    (M_0 = X W_0 is constant and given)
    Z_l(v) = s(v) (ω(v) s(v) M_l(v) + Σ w s(u) M_l(u)) + b_l,   H_l = ReLU(Z_l) where the layer has one
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["backward", "forward", "head", "jit"]


def jit(function: Callable[..., Any]) -> Any:
    """Compile, keep the result on disk, and let other threads run meanwhile."""
    # Sums may be reordered so that they use vector instructions; nothing else is relaxed.
    return njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})(function)


@jit
def _entry(edit: Any, base: Any, after: Any, weights: Any) -> Any:
    return base if edit < 0 else after + (base - after) * weights[edit]


@jit
def _activations(
    levels: Any, rows: Any, sender: Any, edit: Any, base: Any, after: Any, loop: Any, first: Any, weights: Any,
    degrees: Any, stack: Any, scale: Any, m: Any, h: Any,
) -> None:  # fmt: skip
    """Fill ``scale``, ``m`` and ``h`` for one target; arrays are that target's own slices."""
    widths, relu, matrices, biases, _, _, _ = stack
    layers = len(relu)
    for v in range(levels[layers]):
        degree = loop[v]
        for e in range(rows[v], rows[v + 1]):
            degree += _entry(edit[e], base[e], after[e], degrees)
        scale[v] = 1 / np.sqrt(degree) if degree > 0 else 0.0
    for layer in range(layers):
        width, senders = widths[layer + 1], levels[layers - layer]
        product = first if layer == 0 else m[layer]
        if layer > 0:
            matrix = matrices[layer]
            for u in range(senders):
                row = product[u]
                row[:width] = 0.0
                for i in range(widths[layer]):
                    value = h[layer - 1, u, i]
                    if value != 0.0:
                        for j in range(width):
                            row[j] += value * matrix[i, j]
        for v in range(levels[layers - 1 - layer]):
            own = loop[v] * scale[v]
            out = h[layer, v]
            for j in range(width):
                out[j] = own * product[v, j]
            for e in range(rows[v], rows[v + 1]):
                weight = _entry(edit[e], base[e], after[e], weights)
                if weight != 0.0:
                    u = sender[e]
                    weight *= scale[u]
                    for j in range(width):
                        out[j] += weight * product[u, j]
            for j in range(width):
                z = scale[v] * out[j] + biases[layer, j]
                out[j] = max(z, 0.0) if relu[layer] else z


@jit
def head(stack: Any, h: Any, out: Any) -> None:
    """Scores of the target (node 0) from its last layer, or from all layers side by side."""
    widths, relu, _, _, joined, matrix, bias = stack
    layers = len(relu)
    for c in range(len(out)):
        total = bias[c]
        position = 0
        for layer in range(0 if joined else layers - 1, layers):
            for j in range(widths[layer + 1]):
                total += matrix[c, position] * h[layer, 0, j]
                position += 1
        out[c] = total


@jit
def _scratch(levels: Any, stack: Any, first: Any) -> Any:
    layers, nodes, width = len(stack[1]), levels[:, -1].max(), stack[0].max()
    m = np.zeros((layers, nodes, width), first.dtype)
    return np.zeros(nodes, first.dtype), m, np.zeros_like(m)


@jit
def forward(pack: Any, stack: Any, weights: Any, degrees: Any, out: Any) -> None:
    """Scores of every target under soft weights."""
    nodes, levels, rows, sender, edit, base, after, loop, first = pack
    scale, m, h = _scratch(levels, stack, first)
    for p in range(len(levels)):
        a, b = nodes[p], nodes[p + 1]
        _activations(
            levels[p],
            rows[a : b + 1],
            sender,
            edit,
            base,
            after,
            loop[a:b],
            first[a:b],
            weights,
            degrees,
            stack,
            scale,
            m,
            h,
        )
        head(stack, h, out[p])


@jit
def backward(
    pack: Any,
    stack: Any,
    weights: Any,
    degrees: Any,
    d_out: Any,
    d_weights: Any,
    d_degrees: Any,
    want_degrees: bool,
    d_first: Any,
) -> None:
    """Add the gradients of Σ d_out · scores to ``d_weights`` and, where wanted, ``d_degrees``.

    Those with respect to M_0 go into ``d_first``, unless it has no rows.
    """
    nodes, levels, all_rows, sender, edit, base, after, all_loops, all_first = pack
    bottom = 0 if len(d_first) else 1  # the first layer whose M has a gradient
    widths, relu, matrices, _, joined, last, _ = stack
    layers = len(relu)
    scale, m, h = _scratch(levels, stack, all_first)
    d_scale, dm, dh = np.zeros_like(scale), np.zeros_like(m[0]), np.zeros_like(h)
    for p in range(len(levels)):
        if not np.any(d_out[p]):
            continue
        a, b = nodes[p], nodes[p + 1]
        level, rows, loop = levels[p], all_rows[a : b + 1], all_loops[a:b]
        _activations(level, rows, sender, edit, base, after, loop, all_first[a:b], weights, degrees, stack, scale, m, h)
        dh[:, : level[layers]] = 0.0
        d_scale[: level[layers]] = 0.0
        position = 0
        for layer in range(0 if joined else layers - 1, layers):
            for j in range(widths[layer + 1]):
                for c in range(d_out.shape[1]):
                    dh[layer, 0, j] += last[c, position] * d_out[p, c]
                position += 1
        for layer in range(layers - 1, -1, -1):
            width, senders = widths[layer + 1], level[layers - layer]
            product = all_first[a:b] if layer == 0 else m[layer]
            if layer >= bottom:
                dm[:senders] = 0.0
            for v in range(level[layers - 1 - layer]):
                alive = False
                for j in range(width):
                    if relu[layer] and h[layer, v, j] <= 0.0:
                        dh[layer, v, j] = 0.0
                    alive |= dh[layer, v, j] != 0.0
                if not alive:
                    continue
                dz = dh[layer, v]
                for e in range(rows[v], rows[v + 1]):
                    u = sender[e]
                    dot = product[u, 0] * dz[0]
                    for j in range(1, width):
                        dot += product[u, j] * dz[j]
                    weight = _entry(edit[e], base[e], after[e], weights)
                    if edit[e] >= 0:
                        d_weights[edit[e]] += (base[e] - after[e]) * scale[v] * scale[u] * dot
                    if want_degrees:
                        d_scale[v] += weight * scale[u] * dot
                        d_scale[u] += weight * scale[v] * dot
                    if layer >= bottom and weight != 0.0:
                        for j in range(width):
                            dm[u, j] += weight * scale[v] * scale[u] * dz[j]
                own = loop[v] * scale[v]
                for j in range(width):
                    d_scale[v] += 2 * own * product[v, j] * dz[j]
                if layer >= bottom:
                    for j in range(width):
                        dm[v, j] += own * scale[v] * dz[j]
            if layer == 0 and bottom == 0:
                d_first[a : a + senders, :width] = dm[:senders, :width]
            if layer > 0:
                matrix = matrices[layer]
                for u in range(senders):
                    for i in range(widths[layer]):
                        total = dh[layer - 1, u, i]
                        for j in range(width):
                            total += matrix[i, j] * dm[u, j]
                        dh[layer - 1, u, i] = total
        if want_degrees:
            for v in range(level[layers]):
                slope = -0.5 * scale[v] ** 3 * d_scale[v]
                for e in range(rows[v], rows[v + 1]):
                    if edit[e] >= 0:
                        d_degrees[edit[e]] += (base[e] - after[e]) * slope
