"""The receptive field of a target as flat arrays: nodes by distance, edges by receiver, by sender and by edit.

An *entry* is an edge as the layers see it: from one sender to one receiver, with a weight. An undirected edge is two
entries, and an edge that may be added is an entry of weight 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from butfor.edits.edits import Edits
    from butfor.oracle.gcn.stack import FirstProduct

__all__ = ["Batch", "Incoming", "ReceptiveField"]


class Incoming(NamedTuple):
    """Who receives from whom in one receptive field."""

    levels: NDArray[np.int64]  # how many nodes there are within 0, 1, ... L hops of the target, which is node 0
    rows: NDArray[np.int64]  # the entries into node v are those from rows[v] to rows[v + 1]
    sender: NDArray[np.int64]  # of each entry; it may lie one hop beyond the nodes that are kept
    loop: NDArray[Any]  # the weight of each node's self-loop


class ReceptiveField(NamedTuple):
    """All that the target can see, and how each edit changes it."""

    incoming: Incoming  # the entries by receiver
    receiver: NDArray[np.int64]  # of each entry
    first: NDArray[Any]  # the rows of X·W, which the first layer aggregates
    base: NDArray[Any]  # the weight of each entry; 0 for an edge that may be added
    after: NDArray[Any]  # its weight after its edit; 0 for an edge that may be deleted
    edit: NDArray[np.int64]  # the edit that each entry belongs to, or -1
    sent_rows: NDArray[np.int64]  # the entries that node u sends are sent_entries[sent_rows[u] : sent_rows[u + 1]],
    sent_entries: NDArray[np.int64]  # the nearest receiver first
    edit_rows: NDArray[np.int64]  # the entries of edit i are edit_entries[edit_rows[i] : edit_rows[i + 1]]
    edit_entries: NDArray[np.int64]
    change_rows: NDArray[np.int64]  # the changed features of edit i are those from change_rows[i] to change_rows[i + 1]
    change_node: NDArray[np.int64]  # the node that each of them belongs to
    change_step: NDArray[Any]  # and how it moves that node's row of X·W

    @property
    def num_nodes(self) -> int:
        """How many nodes lie within L hops."""
        return len(self.incoming.loop)

    @property
    def num_edits(self) -> int:
        """How many edits there are, whether the target sees them or not."""
        return len(self.edit_rows) - 1

    @classmethod
    def of(cls, edits: Edits, num_layers: int, product: FirstProduct, edge_weights: Tensor | None) -> ReceptiveField:
        """Lay out the neighbourhood of these edits, as far as so many layers can see."""
        near = edits.neighbourhood
        order = np.argsort(near.distance, kind="stable")
        levels = np.searchsorted(near.distance[order], np.arange(num_layers + 1), side="right")
        position = np.empty_like(order)
        position[order] = np.arange(len(order))
        sender, receiver = position[edits.all_ends]
        dtype = product.dtype
        known = near.num_columns
        carried = np.ones(len(sender), dtype)
        if edge_weights is not None:
            carried[:known] = edge_weights.view(-1)[near.columns].numpy()
            carried[known:] = edits.carries.get("edge_weight", 1.0)
        base, after, edit = carried, np.zeros_like(carried), edits.edit_of
        if len(sender) > known:
            added = np.arange(len(sender)) >= known
            base, after = np.where(added, 0, carried), np.where(added, carried, 0)
            edit = np.concatenate([edit, np.resize(edits.added.edit, len(edits.new_ends))])
        loop = np.ones(levels[-1], dtype)
        own = (sender == receiver) & (receiver < levels[-1])
        loop[receiver[own]] = carried[own]
        # Edges into nodes further than L hops change nothing that the target can see.
        seen = np.flatnonzero((sender != receiver) & (receiver < levels[-1]))
        seen = seen[np.argsort(receiver[seen], kind="stable")]
        sender, receiver, edit = sender[seen], receiver[seen], edit[seen]
        nodes = np.arange(levels[-1] + 1)
        by_sender = np.lexsort([receiver, sender])
        by_edit = np.argsort(edit, kind="stable")
        by_edit = by_edit[np.searchsorted(edit[by_edit], 0) :]
        change_rows, change_node, change_step = _feature_changes(edits, position, int(levels[-1]), product)
        return cls(
            incoming=Incoming(levels, np.searchsorted(receiver, nodes), sender, loop),
            receiver=receiver,
            first=product.rows(near.nodes[order[: levels[-1]]]),
            base=base[seen].astype(dtype, copy=False),
            after=after[seen].astype(dtype, copy=False),
            edit=edit,
            sent_rows=np.searchsorted(sender[by_sender], nodes),
            sent_entries=by_sender,
            edit_rows=np.searchsorted(edit[by_edit], np.arange(len(edits) + 1)),
            edit_entries=by_edit,
            change_rows=change_rows,
            change_node=change_node,
            change_step=change_step,
        )


def _feature_changes(
    edits: Edits, position: NDArray[np.int64], count: int, product: FirstProduct
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]:
    """How changed features move the rows of X·W of the first ``count`` positions, by edit: rows, nodes, steps."""
    changes = edits.changes
    if not len(changes.edit):
        none = np.zeros(0, dtype=np.int64)
        return np.zeros(len(edits) + 1, np.int64), none, np.zeros((0, 1), dtype=product.dtype)
    near = np.flatnonzero(position[changes.node] < count)
    moved = near[np.argsort(changes.edit[near], kind="stable")]
    return (
        np.searchsorted(changes.edit[moved], np.arange(len(edits) + 1)),
        position[changes.node[moved]],
        product.steps(changes.feature[moved], (changes.after - changes.before)[moved]),
    )


class Batch(NamedTuple):
    """Several receptive fields, one behind the other in every array.

    Nodes and edits are numbered through the batch; levels and senders count within their field.
    """

    nodes: NDArray[np.int64]  # the nodes of field i are those from nodes[i] to nodes[i + 1]
    pointers: NDArray[np.int64]  # and its edits those from pointers[i] to pointers[i + 1]
    levels: NDArray[np.int64]  # (field, hops): as in `Incoming`
    rows: NDArray[np.int64]
    sender: NDArray[np.int64]
    loop: NDArray[Any]
    first: NDArray[Any]  # as in `ReceptiveField`
    base: NDArray[Any]
    after: NDArray[Any]
    edit: NDArray[np.int64]
    change_node: NDArray[np.int64]
    change_edit: NDArray[np.int64]  # the edit that each changed feature belongs to
    change_step: NDArray[Any]

    @classmethod
    def of(cls, fields: Sequence[ReceptiveField]) -> Batch:
        """Join the fields."""
        nodes = _starts([field.num_nodes for field in fields])
        entries = _starts([len(field.receiver) for field in fields])
        pointers = _starts([field.num_edits for field in fields])
        rows = [field.incoming.rows[:-1] + at for field, at in zip(fields, entries, strict=False)]
        edit = [np.where(field.edit < 0, -1, field.edit + at) for field, at in zip(fields, pointers, strict=False)]
        change_edit = [
            np.repeat(np.arange(field.num_edits) + at, np.diff(field.change_rows))
            for field, at in zip(fields, pointers, strict=False)
        ]
        change_node = [field.change_node + at for field, at in zip(fields, nodes, strict=False)]
        # Without changes the steps have another width, and could not be joined.
        steps = [field.change_step for field in fields if len(field.change_step)] or [fields[0].change_step]
        return cls(
            nodes=nodes,
            pointers=pointers,
            levels=np.stack([field.incoming.levels for field in fields]),
            rows=np.concatenate([*rows, entries[-1:]]),
            sender=np.concatenate([field.incoming.sender for field in fields]),
            loop=np.concatenate([field.incoming.loop for field in fields]),
            first=np.concatenate([field.first for field in fields]),
            base=np.concatenate([field.base for field in fields]),
            after=np.concatenate([field.after for field in fields]),
            edit=np.concatenate(edit),
            change_node=np.concatenate(change_node),
            change_edit=np.concatenate(change_edit),
            change_step=np.concatenate(steps),
        )

    def with_features(self, weights: NDArray[Any]) -> Batch:
        """The same batch, its features changed as far as the weights of the edits say."""
        if not len(self.change_node):
            return self
        first = self.first.copy()
        np.add.at(first, self.change_node, (1 - weights[self.change_edit])[:, None] * self.change_step)
        return self._replace(first=first)


def _starts(sizes: list[int]) -> NDArray[np.int64]:
    """Where each of so large parts begins, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
