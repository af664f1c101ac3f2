"""The neighbourhood of a target: the relabelled subgraph that a search works on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from butfor.graph.csr import is_among

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from butfor.graph.csr import Flow, Incoming

__all__ = ["Neighbourhood", "induced"]


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """A relabelled subgraph around a target.

    Nodes are in the order of their original ids and edges in the order of their original columns, so that sums run in
    the same order as on the whole graph.

    Attributes:
        targets: the original ids of the nodes it serves: one node, the pair of a link, none for a whole graph.
        target_rows: their positions among ``nodes``.
        nodes: original node ids, ascending.
        columns: original edge columns, ascending.
        edge_index: the edges, relabelled to positions in ``nodes``.
        distance: hops from each node to the nearest target along the edges that carry messages; 0 everywhere where the
            target is the whole graph.
        hops: how far it reaches; None where it is the whole graph.
        flow: the direction that messages take.
    """

    targets: tuple[int, ...]
    target_rows: NDArray[np.int64]
    nodes: NDArray[np.int64]
    columns: NDArray[np.int64]
    edge_index: NDArray[np.int64]
    distance: NDArray[np.int64]
    hops: int | None
    flow: Flow = "source_to_target"

    @classmethod
    def whole(
        cls, edge_index: NDArray[np.int64], num_nodes: int, targets: tuple[int, ...], distance: NDArray[np.int64]
    ) -> Neighbourhood:
        """The whole graph, seen from a target."""
        return cls(
            targets=targets,
            target_rows=np.array(targets, dtype=np.int64),
            nodes=np.arange(num_nodes),
            columns=np.arange(edge_index.shape[1]),
            edge_index=edge_index,
            distance=distance,
            hops=None,
        )

    def visible(self, edge_index: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these edges bring messages to nodes inside the outermost ring: no others can affect the target.

        Edges into the outermost nodes from outside are not part of the neighbourhood; those from inside have as little
        effect.
        """
        if self.hops is None:
            return np.ones(edge_index.shape[1], dtype=bool)
        receivers = edge_index[1 if self.flow == "source_to_target" else 0]
        inside: NDArray[np.bool_] = self.distance[receivers] < self.hops
        return inside

    def within_reach(self, kept: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which nodes lie inside the outermost ring if only these of its edges are there."""
        if self.hops is None:
            return np.ones(self.num_nodes, dtype=bool)
        along = self.edge_index[:, kept]
        sender, receiver = along if self.flow == "source_to_target" else along[::-1]
        inside = np.zeros(self.num_nodes, dtype=bool)
        inside[self.target_rows] = True
        for _ in range(1, self.hops):
            inside[sender[inside[receiver]]] = True
        return inside

    @property
    def num_nodes(self) -> int:
        """How many nodes it has."""
        return len(self.nodes)

    @property
    def num_columns(self) -> int:
        """How many edge columns it has (both directions of an undirected edge count)."""
        return len(self.columns)


def induced(
    incoming: Incoming,
    groups: Sequence[tuple[int, ...]],
    keys: NDArray[np.int64],
    distance: NDArray[np.int64],
    hops: int,
    flow: Flow,
    rim: bool,
    both_ways: bool,
) -> list[Neighbourhood]:
    """The subgraph induced by the nodes of each group, as `Incoming.reach` found them.

    Without ``rim``, only what can matter: the edges into nodes inside the outermost ring and, if edges go with their
    reverses (``both_ways``), these. Then edges into outermost nodes, which may be hubs, need not all be read.
    """
    owner, nodes = np.divmod(keys, incoming.num_nodes)
    begins = np.searchsorted(owner, np.arange(len(groups) + 1))
    listed = np.arange(len(nodes)) if rim else np.flatnonzero(distance < hops)
    at, counts = incoming.positions(nodes[listed])
    receiver = np.repeat(listed, counts)
    sender_key = incoming.senders[at] + owner[receiver] * incoming.num_nodes
    inside = np.flatnonzero(is_among(sender_key, keys))
    at, receiver, sender_key = at[inside], receiver[inside], sender_key[inside]
    sender = np.searchsorted(keys, sender_key)
    if not rim and both_ways:
        outer = np.flatnonzero(distance[sender] >= hops)
        back, which = incoming.between(nodes[receiver[outer]], nodes[sender[outer]])
        # Copies of an edge have the same reverses.
        back, once = np.unique(np.stack([sender[outer[which]], back]), axis=1, return_index=True)
        at, receiver, sender = (
            np.concatenate([at, back[1]]),
            np.concatenate([receiver, back[0]]),
            np.concatenate([sender, receiver[outer[which[once]]]]),
        )
    columns = incoming.columns_at(at)
    order = np.argsort(owner[receiver] * len(incoming.senders) + columns)
    cuts = np.searchsorted(owner[receiver[order]], np.arange(len(groups) + 1))
    columns = columns[order]
    ends = np.stack([sender[order], receiver[order]])
    if flow == "target_to_source":
        ends = ends[::-1]
    near = []
    for i, group in enumerate(groups):
        first, last = begins[i], begins[i + 1]
        mine = nodes[first:last]
        near.append(
            Neighbourhood(
                targets=group,
                target_rows=np.searchsorted(mine, group),
                nodes=mine,
                columns=columns[cuts[i] : cuts[i + 1]],
                edge_index=ends[:, cuts[i] : cuts[i + 1]] - first,
                distance=distance[first:last],
                hops=hops,
                flow=flow,
            )
        )
    return near
