"""Compiled forward and backward passes of a stack of GCN layers, for one target at a time.

A target's output needs only part of its neighbourhood: with L layers, layer l (counted from 0) is
needed at nodes within L - 1 - l hops, and the degrees within L hops. Nodes are therefore numbered by
their distance, so that "within d hops" is the prefix ``levels[d]``, and each layer computes a prefix.

Notation, for node v with incoming entries u → v of weight w, and loop weight ω:
    s(v)   = (ω(v) + Σ degree weights)^(-1/2)
    M_l    = H_(l-1) W_l                                    (M_0 = X W_0 is constant and given)
    A_l(v) = ω(v) s(v) M_l(v) + Σ w s(u) M_l(u)
    Z_l(v) = s(v) A_l(v) + b_l,   H_l = ReLU(Z_l) where the layer has one
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import njit

from butfor.oracle.gcn.layout import Incoming

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from butfor.oracle.gcn.layout import Batch
    from butfor.oracle.gcn.stack import Layers

__all__ = [
    "Activations",
    "Gradients",
    "activate",
    "allocate",
    "backward",
    "copy_rows",
    "forward",
    "head",
    "jit",
    "kernel",
    "scale_of",
    "step",
]

# Sums may be reordered so that they use vector instructions; nothing else is relaxed.
FAST = {"reassoc", "contract"}

# What only compiled code calls needs no wrapper for Python, which would take most of the time to compile.
BARE = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def jit(function: Callable[..., Any]) -> Any:
    """Compile what Python calls, keep the result on disk, and let other threads run meanwhile.

    Numba compiles it anew when its own file has changed, but not when a file has that it imports from: after a change
    here, delete `*.nbi` and `*.nbc` in ``__pycache__``.
    """
    return njit(cache=True, nogil=True, fastmath=FAST)(function)


def kernel(function: Callable[..., Any]) -> Any:
    """Compile what takes the time; it may allocate nothing and return no array.

    Numba counts the references to every array that is reached through a named tuple, even in the innermost loops, and
    that would take most of the time. Where nothing is allocated nothing need be counted: the caller holds the arrays.
    """
    return njit(nogil=True, fastmath=FAST, _nrt=False, **BARE)(function)


def step(function: Callable[..., Any]) -> Any:
    """Compile as if it were written where it is called: a name of its own costs no call."""
    return njit(inline="always")(function)


class Activations(NamedTuple):
    """What the layers compute in one receptive field; a layer only where the target sees it."""

    scale: NDArray[Any]  # (node): s
    product: NDArray[Any]  # (layer, node, channel): M; M_0 may be kept elsewhere
    total: NDArray[Any]  # (layer, node, channel): A
    hidden: NDArray[Any]  # (layer, node, channel): H


class SoftWeights(NamedTuple):
    """The weights of a relaxation: at 1 an edit is not made, at 0 it is."""

    messages: NDArray[Any]  # (edit): its weight in the messages,
    degrees: NDArray[Any]  # (edit): and in the degrees
    message_entries: NDArray[Any]  # (entry): what that makes of the entries' weights, in one field at a time
    degree_entries: NDArray[Any]  # (entry)


class Gradients(NamedTuple):
    """Those of Σ d_logits · logits with respect to what a relaxation varies."""

    messages: NDArray[Any]  # (edit): as in `SoftWeights`
    degrees: NDArray[Any]  # (edit)
    first: NDArray[Any]  # (node, channel): M_0; without rows where it is not wanted


class ActivationGradients(NamedTuple):
    """Those with respect to the activations of one receptive field."""

    scale: NDArray[Any]  # (node)
    product: NDArray[Any]  # (node, channel): of the present layer
    hidden: NDArray[Any]  # (layer, node, channel)


@step
def allocate(layers: Layers, nodes: int, like: NDArray[Any]) -> Activations:
    """Activations of so many nodes, of which nothing is known yet."""
    shape, dtype = (len(layers.relu), nodes, layers.biases.shape[1]), like.dtype
    return Activations(np.empty(nodes, dtype), np.empty(shape, dtype), np.empty(shape, dtype), np.empty(shape, dtype))


@step
def copy_rows(source: NDArray[Any], rows: int, width: int, target: NDArray[Any]) -> None:
    """Copy so many rows; to assign a slice would take as long to compile as a small kernel."""
    for v in range(rows):
        for j in range(width):
            target[v, j] = source[v, j]


@step
def scale_of(degree: Any) -> Any:
    """s of a node of this degree; as in PyG, 0 where it has none."""
    return 1 / np.sqrt(degree) if degree > 0 else 0.0


@step
def _scales(incoming: Incoming, nodes: int, weight: NDArray[Any], scale: NDArray[Any]) -> None:
    rows = incoming.rows
    for v in range(nodes):
        degree = incoming.loop[v]
        for e in range(rows[v], rows[v + 1]):
            degree += weight[e]
        scale[v] = scale_of(degree)


@step
def _multiply(layers: Layers, layer: int, nodes: int, hidden: NDArray[Any], product: NDArray[Any]) -> None:
    """M = H W, where H is that of the layer before; much of it is zero after a ReLU."""
    matrix, width = layers.matrices[layer], layers.widths[layer + 1]
    for u in range(nodes):
        row = product[u]
        row[:width] = 0.0
        for i in range(layers.widths[layer]):
            value = hidden[u, i]
            if value != 0.0:
                for j in range(width):
                    row[j] += value * matrix[i, j]


@step
def _aggregate(
    incoming: Incoming,
    layers: Layers,
    layer: int,
    nodes: int,
    weight: NDArray[Any],
    product: NDArray[Any],
    activations: Activations,
) -> None:
    """A and H of one layer, whose M is ``product``."""
    rows, sender, scale = incoming.rows, incoming.sender, activations.scale
    width, relu, bias = layers.widths[layer + 1], layers.relu[layer], layers.biases[layer]
    for v in range(nodes):
        total, hidden = activations.total[layer, v], activations.hidden[layer, v]
        own = incoming.loop[v] * scale[v]
        for j in range(width):
            total[j] = own * product[v, j]
        for e in range(rows[v], rows[v + 1]):
            if weight[e] != 0.0:
                u = sender[e]
                factor = weight[e] * scale[u]
                for j in range(width):
                    total[j] += factor * product[u, j]
        for j in range(width):
            z = scale[v] * total[j] + bias[j]
            hidden[j] = max(z, 0.0) if relu else z


@kernel
def activate(
    incoming: Incoming,
    layers: Layers,
    first: NDArray[Any],
    weight: NDArray[Any],
    degree_weight: NDArray[Any],
    activations: Activations,
) -> None:
    """The forward pass in one receptive field: ``first`` is M_0, and each entry has a weight and a degree weight."""
    levels, num_layers = incoming.levels, len(layers.relu)
    _scales(incoming, levels[num_layers], degree_weight, activations.scale)
    for layer in range(num_layers):
        product = first if layer == 0 else activations.product[layer]
        if layer > 0:
            _multiply(layers, layer, levels[num_layers - layer], activations.hidden[layer - 1], product)
        _aggregate(incoming, layers, layer, levels[num_layers - 1 - layer], weight, product, activations)


@step
def head(layers: Layers, hidden: NDArray[Any], logits: NDArray[Any]) -> None:
    """Logits of the target (node 0) from its last layer, or from all layers side by side."""
    num_layers, widths, matrix = len(layers.relu), layers.widths, layers.head
    for c in range(len(logits)):
        total = layers.head_bias[c]
        position = 0
        for layer in range(0 if layers.joined else num_layers - 1, num_layers):
            for j in range(widths[layer + 1]):
                total += matrix[c, position] * hidden[layer, 0, j]
                position += 1
        logits[c] = total


@step
def _incoming(batch: Batch, i: int) -> Incoming:
    """The entries of one field of the batch."""
    start, end = batch.nodes[i], batch.nodes[i + 1]
    return Incoming(batch.levels[i], batch.rows[start : end + 1], batch.sender, batch.loop[start:end])


@step
def _most_nodes(batch: Batch) -> int:
    """The size of the largest field."""
    most = 0
    for i in range(len(batch.levels)):
        most = max(most, batch.nodes[i + 1] - batch.nodes[i])
    return most


@step
def _soften(batch: Batch, weights: NDArray[Any], start: int, end: int, soft: NDArray[Any]) -> None:
    """What the entries from ``start`` to ``end`` weigh when their edits have these weights."""
    # Slices, because an index that might be negative would keep this from using vector instructions.
    edit, base, after, soft = batch.edit[start:end], batch.base[start:end], batch.after[start:end], soft[start:end]
    for e in range(len(soft)):
        soft[e] = base[e] if edit[e] < 0 else after[e] + (base[e] - after[e]) * weights[edit[e]]


@kernel
def _activate_field(batch: Batch, i: int, layers: Layers, soft: SoftWeights, activations: Activations) -> None:
    """The forward pass in one field of the batch under soft weights."""
    incoming, first = _incoming(batch, i), batch.first[batch.nodes[i] : batch.nodes[i + 1]]
    levels, rows = incoming.levels, incoming.rows
    # Of the nodes L hops away only the degrees are seen.
    _soften(batch, soft.messages, rows[0], rows[levels[-2]], soft.message_entries)
    _soften(batch, soft.degrees, rows[0], rows[levels[-1]], soft.degree_entries)
    activate(incoming, layers, first, soft.message_entries, soft.degree_entries, activations)


@jit
def forward(batch: Batch, layers: Layers, weights: NDArray[Any], degrees: NDArray[Any], logits: NDArray[Any]) -> None:
    """Logits of every target under soft weights."""
    soft = SoftWeights(weights, degrees, np.empty_like(batch.base), np.empty_like(batch.base))
    activations = allocate(layers, _most_nodes(batch), batch.first)
    for i in range(len(batch.levels)):
        _activate_field(batch, i, layers, soft, activations)
        head(layers, activations.hidden, logits[i])


@step
def _head_backward(layers: Layers, d_logits: NDArray[Any], d_hidden: NDArray[Any]) -> None:
    """The gradient of what the head reads of the target."""
    num_layers, position = len(layers.relu), 0
    for layer in range(0 if layers.joined else num_layers - 1, num_layers):
        for j in range(layers.widths[layer + 1]):
            for c in range(len(d_logits)):
                d_hidden[layer, 0, j] += layers.head[c, position] * d_logits[c]
            position += 1


@step
def _relu_backward(relu: bool, width: int, hidden: NDArray[Any], gradient: NDArray[Any]) -> bool:
    """Turn the gradient of one row of H into that of Z; whether any of it is left."""
    alive = False
    for j in range(width):
        if relu and hidden[j] <= 0.0:
            gradient[j] = 0.0
        alive |= gradient[j] != 0.0
    return alive


@step
def _loop_backward(
    v: int,
    width: int,
    own: Any,
    scale: Any,
    product: NDArray[Any],
    dz: NDArray[Any],
    back: ActivationGradients,
    want_product: bool,
) -> None:
    """What the self-loop of node ``v``, which sends ``own`` M to itself, adds to the gradients of s and M."""
    for j in range(width):
        back.scale[v] += 2 * own * product[v, j] * dz[j]
    if want_product:
        for j in range(width):
            back.product[v, j] += own * scale * dz[j]


@step
def _aggregate_backward(
    batch: Batch,
    incoming: Incoming,
    layers: Layers,
    layer: int,
    nodes: int,
    weight: NDArray[Any],
    product: NDArray[Any],
    activations: Activations,
    back: ActivationGradients,
    gradients: Gradients,
    want_degrees: bool,
    want_product: bool,
) -> None:
    """From the gradient of H of one layer those of its M, of s, and of the edits' weights in the messages."""
    rows, sender, base, after, edit = incoming.rows, incoming.sender, batch.base, batch.after, batch.edit
    width, relu, scale = layers.widths[layer + 1], layers.relu[layer], activations.scale
    d_scale, d_product, d_messages = back.scale, back.product, gradients.messages
    for v in range(nodes):
        dz = back.hidden[layer, v]
        if not _relu_backward(relu, width, activations.hidden[layer, v], dz):
            continue
        for e in range(rows[v], rows[v + 1]):
            u = sender[e]
            dot = product[u, 0] * dz[0]
            for j in range(1, width):
                dot += product[u, j] * dz[j]
            if edit[e] >= 0:
                d_messages[edit[e]] += (base[e] - after[e]) * scale[v] * scale[u] * dot
            if want_degrees:
                d_scale[v] += weight[e] * scale[u] * dot
                d_scale[u] += weight[e] * scale[v] * dot
            if want_product and weight[e] != 0.0:
                factor = weight[e] * scale[v] * scale[u]
                for j in range(width):
                    d_product[u, j] += factor * dz[j]
        _loop_backward(v, width, incoming.loop[v] * scale[v], scale[v], product, dz, back, want_product)


@step
def _multiply_backward(layers: Layers, layer: int, nodes: int, d_product: NDArray[Any], d_hidden: NDArray[Any]) -> None:
    """From the gradient of M of one layer that of H of the layer before."""
    matrix, width = layers.matrices[layer], layers.widths[layer + 1]
    for u in range(nodes):
        for i in range(layers.widths[layer]):
            total = d_hidden[u, i]
            for j in range(width):
                total += matrix[i, j] * d_product[u, j]
            d_hidden[u, i] = total


@step
def _scales_backward(
    batch: Batch,
    rows: NDArray[np.int64],
    nodes: int,
    scale: NDArray[Any],
    d_scale: NDArray[Any],
    d_degrees: NDArray[Any],
) -> None:
    """From the gradient of s those of the edits' weights in the degrees."""
    for v in range(nodes):
        slope = -0.5 * scale[v] ** 3 * d_scale[v]
        for e in range(rows[v], rows[v + 1]):
            if batch.edit[e] >= 0:
                d_degrees[batch.edit[e]] += (batch.base[e] - batch.after[e]) * slope


@kernel
def _backward_field(
    batch: Batch,
    i: int,
    layers: Layers,
    d_logits: NDArray[Any],
    weight: NDArray[Any],
    activations: Activations,
    back: ActivationGradients,
    gradients: Gradients,
    want_degrees: bool,
) -> None:
    """The backward pass in one field of the batch, after its forward pass."""
    start, end = batch.nodes[i], batch.nodes[i + 1]
    incoming, first, num_layers = _incoming(batch, i), batch.first[start:end], len(layers.relu)
    levels, nodes = incoming.levels, end - start
    back.scale[:nodes] = 0.0
    back.hidden[:, :nodes] = 0.0
    _head_backward(layers, d_logits, back.hidden)
    for layer in range(num_layers - 1, -1, -1):
        senders, receivers = levels[num_layers - layer], levels[num_layers - 1 - layer]
        product = first if layer == 0 else activations.product[layer]
        want_product = layer > 0 or len(gradients.first) > 0
        if want_product:
            back.product[:senders] = 0.0
        _aggregate_backward(
            batch, incoming, layers, layer, receivers, weight, product, activations, back, gradients, want_degrees,
            want_product,
        )  # fmt: skip
        if layer > 0:
            _multiply_backward(layers, layer, senders, back.product, back.hidden[layer - 1])
    if len(gradients.first):
        copy_rows(back.product, nodes, layers.widths[1], gradients.first[start:end])
    if want_degrees:
        _scales_backward(batch, incoming.rows, nodes, activations.scale, back.scale, gradients.degrees)


@jit
def backward(
    batch: Batch,
    layers: Layers,
    weights: NDArray[Any],
    degrees: NDArray[Any],
    d_logits: NDArray[Any],
    gradients: Gradients,
    want_degrees: bool,
) -> None:
    """Add to the gradients those of Σ d_logits · logits; to those of the degrees only where they are wanted."""
    soft = SoftWeights(weights, degrees, np.empty_like(batch.base), np.empty_like(batch.base))
    activations = allocate(layers, _most_nodes(batch), batch.first)
    back = ActivationGradients(
        np.empty_like(activations.scale), np.empty_like(activations.product[0]), np.empty_like(activations.hidden)
    )
    for i in range(len(batch.levels)):
        if np.any(d_logits[i]):
            _activate_field(batch, i, layers, soft, activations)
            _backward_field(
                batch, i, layers, d_logits[i], soft.message_entries, activations, back, gradients, want_degrees
            )
