"""Incremental evaluation of "these edits and one more" for a stack of GCN layers: only changed rows are computed.

The activations after a prefix of edits are computed once. Each further edit changes few rows per layer: a
deleted or added edge changes the degree, and so the scale s, of the node that receives it, and with it every
message that node sends; a changed feature moves that node's row of X·W. Layer by layer, only rows that receive
something changed are computed anew, and only those that the target can see.

Notation as in `gcn/kernels.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from butfor.oracle.gcn.kernels import activate, allocate, copy_rows, head, jit, kernel, scale_of, step

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from butfor.oracle.gcn.kernels import Activations
    from butfor.oracle.gcn.layout import ReceptiveField
    from butfor.oracle.gcn.stack import Layers

__all__ = ["extend"]


class Update(NamedTuple):
    """What one candidate changes of the activations after its prefix.

    Nothing is cleared from one candidate to the next. A value counts only where its stamp is the present one: the
    candidate's for what is the same in all layers, and ``stamp + layer`` for what belongs to a layer.
    """

    edited: NDArray[np.int64]  # (entry): the stamp, where the weight changes
    scale: NDArray[Any]  # (node): s
    scale_stamp: NDArray[np.int64]
    product: NDArray[Any]  # (node, channel): M of the present layer
    product_stamp: NDArray[np.int64]
    total: NDArray[Any]  # (node, channel): A of the present layer
    total_stamp: NDArray[np.int64]
    hidden: NDArray[Any]  # (channel): H of the present layer, one node at a time
    target: NDArray[Any]  # (layer, 0, channel): H of the target in all layers, which the head reads
    message: NDArray[Any]  # (channel): by how much s M of one sender changes
    rescaled: NDArray[np.int64]  # lists of nodes: whose s is new,
    moved: NDArray[np.int64]  # whose row of M of the present layer is,
    touched: NDArray[np.int64]  # whose row of A of the present layer is


@step
def _allocate_update(layers: Layers, nodes: int, base: NDArray[Any]) -> Update:
    wide, dtype = layers.biases.shape[1], base.dtype
    return Update(
        np.zeros(len(base), np.int64),
        np.empty(nodes, dtype),
        np.zeros(nodes, np.int64),
        np.empty((nodes, wide), dtype),
        np.zeros(nodes, np.int64),
        np.empty((nodes, wide), dtype),
        np.zeros(nodes, np.int64),
        np.empty(wide, dtype),
        np.empty((len(layers.relu), 1, wide), dtype),
        np.empty(wide, dtype),
        np.empty(nodes, np.int64),
        np.empty(nodes, np.int64),
        np.empty(nodes, np.int64),
    )


@step
def _make(field: ReceptiveField, prefix: NDArray[np.int64], weight: NDArray[Any], first: NDArray[Any]) -> None:
    """Make the edits of a prefix, which is padded with -1, in the entries' weights and in M_0."""
    for edit in prefix:
        if edit >= 0:
            for k in range(field.edit_rows[edit], field.edit_rows[edit + 1]):
                e = field.edit_entries[k]
                weight[e] = field.after[e]
            for k in range(field.change_rows[edit], field.change_rows[edit + 1]):
                x = field.change_node[k]
                for c in range(field.change_step.shape[1]):
                    first[x, c] += field.change_step[k, c]


@step
def _unmake(field: ReceptiveField, prefix: NDArray[np.int64], weight: NDArray[Any], first: NDArray[Any]) -> None:
    """Take back what `_make` made, without a trace of rounding."""
    for edit in prefix:
        if edit >= 0:
            for k in range(field.edit_rows[edit], field.edit_rows[edit + 1]):
                e = field.edit_entries[k]
                weight[e] = field.base[e]
            for k in range(field.change_rows[edit], field.change_rows[edit + 1]):
                x = field.change_node[k]
                for c in range(field.change_step.shape[1]):
                    first[x, c] = field.first[x, c]


@step
def _rescale(field: ReceptiveField, edit: int, weight: NDArray[Any], new: Update, stamp: int) -> int:
    """Mark the entries whose weight the edit changes, and rescale their receivers; returns how many those are."""
    rows, after = field.incoming.rows, field.after
    count = 0
    for k in range(field.edit_rows[edit], field.edit_rows[edit + 1]):
        e = field.edit_entries[k]
        if weight[e] != after[e]:
            new.edited[e] = stamp
            v = field.receiver[e]
            if new.scale_stamp[v] != stamp:
                new.scale_stamp[v] = stamp
                new.rescaled[count] = v
                count += 1
    for k in range(count):
        v = new.rescaled[k]
        degree = field.incoming.loop[v]
        for e in range(rows[v], rows[v + 1]):
            degree += after[e] if new.edited[e] == stamp else weight[e]
        new.scale[v] = scale_of(degree)
    return count


@step
def _change_features(field: ReceptiveField, edit: int, first: NDArray[Any], new: Update, stamp: int) -> int:
    """Move the rows of M_0 whose features the edit changes; returns how many those are."""
    width = field.change_step.shape[1]
    count = 0
    for k in range(field.change_rows[edit], field.change_rows[edit + 1]):
        x = field.change_node[k]
        if new.product_stamp[x] != stamp:
            new.product_stamp[x] = stamp
            for c in range(width):
                new.product[x, c] = first[x, c]
            new.moved[count] = x
            count += 1
        for c in range(width):
            new.product[x, c] += field.change_step[k, c]
    return count


@step
def _touch(x: int, width: int, total: NDArray[Any], new: Update, stamp: int, count: int) -> int:
    """Begin a new version of row ``x`` of A unless there is one; returns how many there are."""
    if new.total_stamp[x] != stamp:
        new.total_stamp[x] = stamp
        for c in range(width):
            new.total[x, c] = total[x, c]
        new.touched[count] = x
        count += 1
    return count


@step
def _change_of_message(
    u: int, width: int, scale: Any, product: NDArray[Any], new: Update, stamp: int, layer: int
) -> None:
    """By how much s M of sender ``u`` changes."""
    now = new.scale[u] if new.scale_stamp[u] == stamp else scale
    if new.product_stamp[u] == stamp + layer:
        for c in range(width):
            new.message[c] = now * new.product[u, c] - scale * product[u, c]
    else:
        for c in range(width):
            new.message[c] = (now - scale) * product[u, c]


@step
def _send(
    field: ReceptiveField, u: int, reach: int, width: int, weight: NDArray[Any], total: NDArray[Any], new: Update,
    stamp: int, layer: int, count: int,
) -> int:  # fmt: skip
    """Add to A what sender ``u`` now sends more or less, wherever it is received within reach."""
    if u < reach:
        count = _touch(u, width, total, new, stamp + layer, count)
        for c in range(width):
            new.total[u, c] += field.incoming.loop[u] * new.message[c]
    for o in range(field.sent_rows[u], field.sent_rows[u + 1]):
        e = field.sent_entries[o]
        x = field.receiver[e]
        if x >= reach:
            break  # the nearest receivers come first
        now = field.after[e] if new.edited[e] == stamp else weight[e]
        if now != 0.0:
            count = _touch(x, width, total, new, stamp + layer, count)
            for c in range(width):
                new.total[x, c] += now * new.message[c]
    return count


@step
def _send_all(
    field: ReceptiveField, layers: Layers, layer: int, weight: NDArray[Any], old: Activations, new: Update, stamp: int,
    num_rescaled: int, num_moved: int,
) -> int:  # fmt: skip
    """What changed senders now send, to all who still receive it; returns how many rows of A that touches."""
    levels, num_layers, width = field.incoming.levels, len(layers.relu), layers.widths[layer + 1]
    senders, reach = levels[num_layers - layer], levels[num_layers - 1 - layer]
    product, total = old.product[layer], old.total[layer]
    count = 0
    for k in range(num_moved + num_rescaled):
        u = new.moved[k] if k < num_moved else new.rescaled[k - num_moved]
        again = k >= num_moved and new.product_stamp[u] == stamp + layer
        if u < senders and not again:
            _change_of_message(u, width, old.scale[u], product, new, stamp, layer)
            count = _send(field, u, reach, width, weight, total, new, stamp, layer, count)
    return count


@step
def _switch_entries(
    field: ReceptiveField, layers: Layers, layer: int, edit: int, weight: NDArray[Any], old: Activations, new: Update,
    stamp: int, count: int,
) -> int:  # fmt: skip
    """What is not received any more, or from now on, as it was sent before; returns how many rows of A are touched."""
    width, reach = layers.widths[layer + 1], field.incoming.levels[len(layers.relu) - 1 - layer]
    for k in range(field.edit_rows[edit], field.edit_rows[edit + 1]):
        e = field.edit_entries[k]
        x, u = field.receiver[e], field.incoming.sender[e]
        if new.edited[e] == stamp and x < reach:
            count = _touch(x, width, old.total[layer], new, stamp + layer, count)
            factor = (field.after[e] - weight[e]) * old.scale[u]
            for c in range(width):
                new.total[x, c] += factor * old.product[layer, u, c]
    return count


@step
def _activate_row(layers: Layers, layer: int, x: int, old: Activations, new: Update, stamp: int) -> bool:
    """H of one touched row; whether it differs from what it was."""
    relu, hidden = layers.relu[layer], new.hidden
    scale = new.scale[x] if new.scale_stamp[x] == stamp else old.scale[x]
    differs = False
    for c in range(layers.widths[layer + 1]):
        z = scale * new.total[x, c] + layers.biases[layer, c]
        hidden[c] = max(z, 0.0) if relu else z
        differs |= hidden[c] != old.hidden[layer, x, c]
    return differs


@step
def _multiply_row(layers: Layers, layer: int, x: int, old: Activations, new: Update) -> None:
    """One row of M of this layer, from what changed in H of the layer before."""
    row, matrix, width = new.product[x], layers.matrices[layer], layers.widths[layer + 1]
    for c in range(width):
        row[c] = old.product[layer, x, c]
    for r in range(layers.widths[layer]):
        change = new.hidden[r] - old.hidden[layer - 1, x, r]
        if change != 0.0:
            for c in range(width):
                row[c] += change * matrix[r, c]


@step
def _activate_touched(layers: Layers, layer: int, old: Activations, new: Update, stamp: int, count: int) -> int:
    """H of all touched rows, and from it M of the next layer; returns how many rows of that are new."""
    width, target = layers.widths[layer + 1], new.target[layer, 0]
    if new.total_stamp[0] != stamp + layer:
        for c in range(width):
            target[c] = old.hidden[layer, 0, c]
    num_moved = 0
    for k in range(count):
        x = new.touched[k]
        differs = _activate_row(layers, layer, x, old, new, stamp)
        if x == 0:
            for c in range(width):
                target[c] = new.hidden[c]
        if differs and layer + 1 < len(layers.relu):
            _multiply_row(layers, layer + 1, x, old, new)
            new.product_stamp[x] = stamp + layer + 1
            new.moved[num_moved] = x
            num_moved += 1
    return num_moved


@step
def _update(
    field: ReceptiveField, layers: Layers, edit: int, weight: NDArray[Any], old: Activations, new: Update, stamp: int
) -> None:
    """What the target becomes when one more edit is made: ``new.target``."""
    num_rescaled = _rescale(field, edit, weight, new, stamp)
    num_moved = _change_features(field, edit, old.product[0], new, stamp)
    for layer in range(len(layers.relu)):
        count = _send_all(field, layers, layer, weight, old, new, stamp, num_rescaled, num_moved)
        count = _switch_entries(field, layers, layer, edit, weight, old, new, stamp, count)
        num_moved = _activate_touched(layers, layer, old, new, stamp, count)


@kernel
def _extend_prefix(
    field: ReceptiveField,
    layers: Layers,
    prefix: NDArray[np.int64],
    candidates: NDArray[np.int64],
    start: int,
    end: int,
    weight: NDArray[Any],
    old: Activations,
    new: Update,
    logits: NDArray[Any],
) -> None:
    """Logits after one prefix and each of the candidates from ``start`` to ``end``."""
    first = old.product[0]
    _make(field, prefix, weight, first)
    activate(field.incoming, layers, first, weight, weight, old)
    for j in range(start, end):
        if candidates[j] < 0:
            head(layers, old.hidden, logits[j])
        else:
            # Each candidate has stamps of its own, one for every layer, and none of them is 0.
            _update(field, layers, candidates[j], weight, old, new, 1 + j * len(layers.relu))
            head(layers, new.target, logits[j])
    _unmake(field, prefix, weight, first)


@jit
def extend(
    field: ReceptiveField,
    layers: Layers,
    prefixes: NDArray[np.int64],
    candidates: NDArray[np.int64],
    pointers: NDArray[np.int64],
    logits: NDArray[Any],
) -> None:
    """Logits after prefix ``i`` and candidate ``j``, for j from pointers[i] to pointers[i + 1], into ``logits[j]``.

    A candidate of -1 is none at all: the prefix alone.
    """
    nodes, weight = len(field.incoming.loop), field.base.copy()
    old, new = allocate(layers, nodes, weight), _allocate_update(layers, nodes, weight)
    copy_rows(field.first, nodes, layers.widths[1], old.product[0])
    for i in range(len(prefixes)):
        _extend_prefix(field, layers, prefixes[i], candidates, pointers[i], pointers[i + 1], weight, old, new, logits)
