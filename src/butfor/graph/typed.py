"""Graphs of several node and edge types, numbered like one graph."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from butfor.boundary.arguments import is_whole
from butfor.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch_geometric.data import HeteroData

    from butfor.graph.edge_keys import Edge, EdgeKey, Relation

__all__ = ["Types"]


@dataclass(frozen=True, eq=False)
class Types:
    """Nodes are numbered type after type, and edge columns relation after relation.

    A relation that holds another one's edges turned round (as ``ToUndirected`` makes them) is its reverse, and a
    relation that is its own reverse is undirected: in both cases the two directions of an edge are one edge. Of a
    relation without edges only the name tells: ``rev_buys`` is the reverse of ``buys``.

    Attributes:
        node_types: the types of nodes.
        node_starts: the number of the first node of each type, and of all nodes.
        relations: the types of edges.
        edge_starts: the number of the first column of each relation, and of all.
        forward: for each relation the one it is the reverse of; itself if there is none.
        undirected: which relations are their own reverse.
    """

    node_types: tuple[str, ...]
    node_starts: NDArray[np.int64]
    relations: tuple[Relation, ...]
    edge_starts: NDArray[np.int64]
    forward: NDArray[np.int64]
    undirected: NDArray[np.bool_]

    @classmethod
    def of(cls, data: HeteroData) -> tuple[Types, NDArray[np.int64]]:
        """The types of a graph, and its edge index."""
        node_types, relations = tuple(data.node_types), tuple(data.edge_types)
        starts = np.concatenate([[0], np.cumsum([data[kind].num_nodes for kind in node_types], dtype=np.int64)])
        parts = []
        for relation in relations:
            source, _, target = relation
            shift = np.array([[starts[node_types.index(source)]], [starts[node_types.index(target)]]])
            parts.append(data[relation].edge_index.detach().cpu().numpy().astype(np.int64) + shift)
        edge_starts = np.concatenate([[0], np.cumsum([part.shape[1] for part in parts], dtype=np.int64)])
        forward = np.arange(len(relations))
        undirected = np.zeros(len(relations), dtype=bool)
        ways = [_keys(part, int(starts[-1])) for part in parts]
        for i, (there, back) in enumerate(ways):
            undirected[i] = len(there) > 0 and np.array_equal(there, back)
            if undirected[i]:
                continue
            # Each relation has one reverse; of several that fit, the one that is named so.
            free = [j for j in range(i) if not undirected[j] and (forward == j).sum() == 1 and forward[j] == j]
            turned = [j for j in free if (relations[j][2], relations[j][0]) == (relations[i][0], relations[i][2])]
            fits = [j for j in turned if np.array_equal(ways[j][0], back)]
            named = [j for j in fits if relations[i][1] == f"rev_{relations[j][1]}"]
            forward[i] = next(iter(named + (fits if len(there) else [])), i)
        edge_index = np.concatenate(parts, axis=1) if parts else np.empty((2, 0), dtype=np.int64)
        return cls(node_types, starts, relations, edge_starts, forward, undirected), edge_index

    @cached_property
    def reverse(self) -> NDArray[np.int64]:
        """For each relation the one that holds the other direction of its edges: itself if it is undirected, or -1."""
        numbers = np.arange(len(self.relations))
        reverse = np.where(self.undirected, numbers, -1)
        back = np.flatnonzero(self.forward != numbers)
        reverse[back], reverse[self.forward[back]] = self.forward[back], back
        return reverse

    def local(self, node: int | np.integer) -> tuple[str, int]:
        """The type of a node, and its number within it."""
        kind = int(np.searchsorted(self.node_starts, node, side="right")) - 1
        return self.node_types[kind], int(node - self.node_starts[kind])

    def relations_of(self, columns: NDArray[np.int64]) -> NDArray[np.int64]:
        """The number of the relation of each edge column; an edge that is added is column -1 - r of relation r."""
        return np.where(columns < 0, -1 - columns, np.searchsorted(self.edge_starts, columns, side="right") - 1)

    def number(self, kind: str, node: int) -> int:
        """A node's number in the whole graph.

        Raises:
            InputError: there is no such type or node.
        """
        if kind not in self.node_types:
            raise InputError(f"node type {kind!r} is not in this graph ({', '.join(self.node_types)})")
        first, last = self.node_starts[self.node_types.index(kind) :][:2]
        if not is_whole(node) or not 0 <= node < last - first:
            raise InputError(f"{kind} {node} is not in this graph (0 to {last - first - 1})")
        return int(first + node)

    def relation(self, relation: Relation) -> int:
        """The number of a relation; that of the forward one if it is a reverse.

        Raises:
            InputError: there is no such relation.
        """
        if relation not in self.relations:
            known = ", ".join(map(str, self.relations))
            raise InputError(f"relation {relation} is not in this graph ({known})")
        return int(self.forward[self.relations.index(relation)])

    def edge_key(self, edge: Edge) -> EdgeKey:
        """An edge as a key that does not depend on how it was written.

        Raises:
            InputError: its relation is missing, or it or a node is not in the graph.
        """
        if len(edge) != 3:
            raise InputError(f"{edge} names no relation; in this graph an edge is (relation, source, target)")
        name, source, target = edge
        relation = self.relation(name)
        u, v = self.number(name[0], source), self.number(name[2], target)
        if self.relations[relation] != tuple(name) or (self.undirected[relation] and u > v):
            u, v = v, u
        return relation, u, v

    def edges_of(
        self, edge_index: NDArray[np.int64], columns: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """For each edge column its edge: the two ends, in the order of the forward relation, and that relation."""
        kind = np.searchsorted(self.edge_starts, columns, side="right") - 1
        source, target = edge_index
        turned = (self.forward[kind] != kind) | (self.undirected[kind] & (source > target))
        return np.where(turned, target, source), np.where(turned, source, target), self.forward[kind]


def _keys(edge_index: NDArray[np.int64], size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The edges as sorted numbers, as they are and turned round."""
    source, target = edge_index
    return np.sort(source * size + target), np.sort(target * size + source)
