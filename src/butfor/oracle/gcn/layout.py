"""A neighbourhood laid out as the kernels want it: nodes by distance, edges by receiver."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from butfor.edits.edits import Edits
    from butfor.oracle.gcn.oracle import GCNOracle

__all__ = ["Pack", "Place"]


@dataclass(frozen=True, eq=False)
class Place:
    """One neighbourhood as the kernels want it: nodes by distance, edges by receiver.

    Attributes:
        levels: how many nodes there are within 0, 1, ... L hops of the target.
        rows: where the edges into each node begin.
        sender: of each edge.
        edit: the edit that each edge belongs to, or -1.
        base: the weight of each edge; 0 for one that may be added.
        after: its weight after its edit.
        loop: the weight of each node's self-loop.
        first: the rows of X·W.
        num_edits: how many edits there are.
        change_rows, change_node, change_step: by edit, the rows of X·W that changed features move, and by how much.
    """

    levels: NDArray[np.int64]
    rows: NDArray[np.int64]
    sender: NDArray[np.int64]
    edit: NDArray[np.int64]
    base: NDArray[Any]
    after: NDArray[Any]
    loop: NDArray[Any]
    first: NDArray[Any]
    num_edits: int
    change_rows: NDArray[np.int64]
    change_node: NDArray[np.int64]
    change_step: NDArray[Any]

    @cached_property
    def parallel(self) -> int:
        """How many edges lead from one node to another at most."""
        receiver = np.repeat(np.arange(len(self.loop)), np.diff(self.rows))
        # Senders may lie one hop beyond the nodes that are kept.
        _, counts = np.unique(receiver * (self.sender.max(initial=0) + 1) + self.sender, return_counts=True)
        return int(counts.max(initial=1))

    @cached_property
    def frame(self) -> tuple[NDArray[Any], ...]:
        """What `gcn/extensions.py` reads: the same edges, also by sender and by edit."""
        receiver = np.repeat(np.arange(len(self.loop)), np.diff(self.rows))
        order = np.lexsort([receiver, self.sender])
        nodes = np.arange(len(self.loop) + 1)
        by_edit = np.argsort(self.edit, kind="stable")
        by_edit = by_edit[np.searchsorted(self.edit[by_edit], 0) :]
        return (
            self.levels,
            self.rows,
            self.sender,
            receiver,
            self.loop,
            self.first,
            self.base,
            np.searchsorted(self.sender[order], nodes),
            order,
            np.searchsorted(self.edit[by_edit], np.arange(self.num_edits + 1)),
            by_edit,
            self.after,
            self.change_rows,
            self.change_node,
            self.change_step,
        )

    @classmethod
    def of(cls, edits: Edits, oracle: GCNOracle) -> Place:
        """Lay out the neighbourhood of these edits."""
        near = edits.neighbourhood
        layers = len(oracle.stack.convolutions)
        order = np.argsort(near.distance, kind="stable")
        levels = np.searchsorted(near.distance[order], np.arange(layers + 1), side="right")
        position = np.empty_like(order)
        position[order] = np.arange(len(order))
        sender, receiver = position[edits.all_ends]
        weights = oracle.graph.edge_fields()["edge_weight"] if "edge_weight" in oracle.predictor.fields else None
        dtype = oracle._arrays[2].dtype
        known = near.num_columns
        carried = np.ones(len(sender), dtype)
        if weights is not None:
            carried[:known] = weights.view(-1)[near.columns].numpy()
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
        first = oracle._first(near.nodes[order[: levels[-1]]])
        rows = np.searchsorted(receiver[seen], np.arange(levels[-1] + 1))
        return cls(
            levels=levels,
            rows=rows,
            sender=sender[seen],
            edit=edit[seen],
            base=base[seen].astype(dtype, copy=False),
            after=after[seen].astype(dtype, copy=False),
            loop=loop,
            first=first,
            num_edits=len(edits),
            **_changes(edits, position, int(levels[-1]), oracle),
        )


def _changes(edits: Edits, position: NDArray[np.int64], count: int, oracle: GCNOracle) -> dict[str, NDArray[Any]]:
    """How changed features move the rows of X·W, by edit, of the first ``count`` positions."""
    what = edits.changes
    if not len(what.edit):
        none = np.zeros(0, dtype=np.int64)
        step = np.zeros((0, 1), dtype=oracle._arrays[2].dtype)
        return {"change_rows": np.zeros(len(edits) + 1, np.int64), "change_node": none, "change_step": step}
    near = np.flatnonzero(position[what.node] < count)
    moved = near[np.argsort(what.edit[near], kind="stable")]
    return {
        "change_rows": np.searchsorted(what.edit[moved], np.arange(len(edits) + 1)),
        "change_node": position[what.node[moved]],
        "change_step": oracle.moves(what.feature[moved], (what.after - what.before)[moved]),
    }


@dataclass(frozen=True, eq=False)
class Pack:
    """Several places laid one behind the other.

    Attributes:
        arrays: what the kernels read besides the rows of X·W.
        first: the rows of X·W.
        pointers: where the edits of each place begin.
        changes: the rows that changed features move, the edits they belong to, and by how much they move.
    """

    arrays: tuple[NDArray[Any], ...]
    first: NDArray[Any]
    pointers: NDArray[np.int64]
    changes: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]

    @classmethod
    def of(cls, places: Sequence[Place]) -> Pack:
        """Join the places, each with its own stretch of every array."""
        if len(places) == 1:
            (place,) = places
            nodes, levels = np.array([0, len(place.loop)]), place.levels[None]
            rest = (place.rows, place.sender, place.edit, place.base, place.after, place.loop)
            owner = np.repeat(np.arange(place.num_edits), np.diff(place.change_rows))
            changes = (place.change_node, owner, place.change_step)
            return cls((nodes, levels, *rest), place.first, np.array([0, place.num_edits]), changes)

        def starts(sizes: list[int]) -> NDArray[np.int64]:
            return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])

        nodes = starts([len(place.loop) for place in places])
        entries = starts([len(place.sender) for place in places])
        pointers = starts([place.num_edits for place in places])
        rows = [place.rows[:-1] + at for place, at in zip(places, entries, strict=False)]
        edit = [np.where(place.edit < 0, -1, place.edit + at) for place, at in zip(places, pointers, strict=False)]
        first = np.concatenate([place.first for place in places])
        arrays = (
            nodes,
            np.stack([place.levels for place in places]),
            np.concatenate([*rows, entries[-1:]]),
            np.concatenate([place.sender for place in places]),
            np.concatenate(edit),
            np.concatenate([place.base for place in places]),
            np.concatenate([place.after for place in places]),
            np.concatenate([place.loop for place in places]),
        )
        owners = [
            np.repeat(np.arange(place.num_edits) + at, np.diff(place.change_rows))
            for place, at in zip(places, pointers, strict=False)
        ]
        changes = (
            np.concatenate([place.change_node + at for place, at in zip(places, nodes, strict=False)]),
            np.concatenate(owners),
            np.concatenate(
                [place.change_step for place in places if len(place.change_step)] or [places[0].change_step]
            ),
        )
        return cls(arrays, first, pointers, changes)

    def moved(self, weights: NDArray[Any]) -> NDArray[Any]:
        """The rows of X·W where features are changed as far as the weights say."""
        node, edit, step = self.changes
        if not len(node):
            return self.first
        first = self.first.copy()
        np.add.at(first, node, (1 - weights[edit])[:, None] * step)
        return first
