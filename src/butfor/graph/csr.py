"""The edges into each node as CSR arrays: what is near a target is found in time proportional to its size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.sparse import csr_array

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

__all__ = ["Flow", "Incoming", "is_among"]

# The direction that messages take along an edge, in PyG's words.
Flow = Literal["source_to_target", "target_to_source"]


@dataclass(frozen=True, eq=False)
class Incoming:
    """Edges grouped by the node that receives their message.

    Attributes:
        pointers: the edges into node ``v`` stand at ``pointers[v]`` to ``pointers[v + 1]``.
        columns: the column of each edge in ``edge_index``; None if the edges of ``edge_index`` are in
            this order, and those into a node in that of their senders.
        senders: the node that each message comes from; beside the columns, so that a node's edges are read in one
            stretch of memory.
    """

    pointers: NDArray[np.int64]
    columns: NDArray[np.int64] | None
    senders: NDArray[np.int64]

    @classmethod
    def of(cls, edge_index: NDArray[np.int64], num_nodes: int, flow: Flow) -> Incoming:
        """Group the columns of an edge index."""
        sender, receiver = edge_index if flow == "source_to_target" else edge_index[::-1]
        edges = len(receiver)
        # A matrix with a row for each edge, turned round: SciPy counts instead of sorting, and keeps the order.
        kind = np.int32 if max(edges, num_nodes) < 2**31 else np.int64  # half the memory is half the time
        rows = np.ones(edges, np.int8), receiver.astype(kind), np.arange(edges + 1, dtype=kind)
        grouped = csr_array(rows, shape=(edges, num_nodes)).tocsc()
        columns = grouped.indices.astype(np.int64)
        return cls(grouped.indptr.astype(np.int64), columns, sender[columns])

    @property
    def num_nodes(self) -> int:
        """How many nodes the graph has."""
        return len(self.pointers) - 1

    def counts(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many edges lead into each of these nodes."""
        counts: NDArray[np.int64] = self.pointers[nodes + 1] - self.pointers[nodes]
        return counts

    def positions(self, nodes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where the edges into these nodes stand in ``columns`` and ``senders``, and how many each node has."""
        counts = self.counts(nodes)
        # Positions start_i, start_i + 1, ... for each node i, without a Python loop.
        at = np.repeat(self.pointers[nodes] - np.cumsum(counts) + counts, counts)
        at += np.arange(len(at))
        return at, counts

    def columns_at(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """The columns of the edges at these positions."""
        return positions if self.columns is None else self.columns[positions]

    def into(self, nodes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The edges into these nodes: their columns, senders and receivers."""
        at, counts = self.positions(nodes)
        return self.columns_at(at), self.senders[at], np.repeat(nodes, counts)

    def between(
        self, senders: NDArray[np.int64], receivers: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where the edges of these pairs stand, all copies of each, and the pair that each belongs to."""
        if self.columns is not None:
            # In no order: all edges into the receivers are looked at.
            at, counts = self.positions(receivers)
            pair = np.repeat(np.arange(len(receivers)), counts)
            mine = np.flatnonzero(self.senders[at] == senders[pair])
            return at[mine], pair[mine]
        first, last = self._bisect(senders, receivers), self._bisect(senders + 1, receivers)
        counts = last - first
        pair = np.repeat(np.arange(len(receivers)), counts)
        return np.arange(len(pair)) + np.repeat(first - np.cumsum(counts) + counts, counts), pair

    def _bisect(self, senders: NDArray[np.int64], receivers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where among the edges into each receiver, whose senders ascend, the first stands that is not below this."""
        low, high = self.pointers[receivers], self.pointers[receivers + 1]
        open_ = np.flatnonzero(low < high)
        while len(open_):
            middle = (low[open_] + high[open_]) // 2
            below = self.senders[middle] < senders[open_]
            low[open_[below]], high[open_[~below]] = middle[below] + 1, middle[~below]
            open_ = open_[low[open_] < high[open_]]
        found: NDArray[np.int64] = low
        return found

    def reach(
        self, groups: Sequence[tuple[int, ...]], hops: int, limit: int | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The nodes within ``hops`` of each group, breadth first, and their distances.

        Node ``v`` of group ``i`` is returned as the key ``i * num_nodes + v``; keys ascend. The search ends early when
        the next step would look at more than ``limit`` edges.
        """
        pairs = [i * self.num_nodes + node for i, group in enumerate(groups) for node in group]
        keys = frontier = _distinct(np.array(pairs, dtype=np.int64))
        distance = np.zeros(len(keys), dtype=np.int64)
        for hop in range(1, hops + 1):
            node = frontier % self.num_nodes
            if limit is not None and self.counts(node).sum() > limit:
                break
            at, counts = self.positions(node)
            reached = _distinct(np.repeat(frontier - node, counts) + self.senders[at])
            frontier = reached[~is_among(reached, keys)]
            if not len(frontier):
                break
            keys = np.concatenate([keys, frontier])
            distance = np.concatenate([distance, np.full(len(frontier), hop)])
            order = np.argsort(keys, kind="stable")
            keys, distance = keys[order], distance[order]
        return keys, distance

    def reach_with(
        self, extra: Mapping[int, Sequence[int]], targets: Sequence[int], hops: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """As `reach` for one group, in the graph with extra edges: the senders of each receiver that has any."""
        distance = dict.fromkeys(targets, 0)
        frontier = list(distance)
        for hop in range(1, hops + 1):
            _, senders, _ = self.into(np.array(frontier, dtype=np.int64))
            reached = {*senders.tolist(), *(sender for node in frontier for sender in extra.get(node, ()))}
            frontier = sorted(reached - distance.keys())
            if not frontier:
                break
            distance.update(dict.fromkeys(frontier, hop))
        nodes = np.array(sorted(distance), dtype=np.int64)
        return nodes, np.array([distance[node] for node in nodes.tolist()], dtype=np.int64)


def is_among(values: NDArray[np.int64], ascending: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of the values occur in an ascending array."""
    position = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
    found: NDArray[np.bool_] = ascending[position] == values
    return found


def _distinct(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The values in ascending order, each once; quicker than `np.unique`, which prepares for more."""
    ascending = np.sort(values)
    distinct: NDArray[np.int64] = ascending[np.append(True, ascending[1:] != ascending[:-1])[: len(ascending)]]
    return distinct
