"""A graph as CSR arrays, and the neighbourhood of a target in time proportional to its size."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch_geometric.data import HeteroData

from butfor.checks import is_whole
from butfor.edits.edits import Deletion
from butfor.errors import GraphError, InputError
from butfor.graph.fields import EDGE_FIELDS, edge_fields, fingerprint, node_fields
from butfor.graph.typed import Types
from butfor.graph.validate import validate

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray
    from torch import Tensor
    from torch_geometric.data import Data

    from butfor.edits.edits import Relation

__all__ = ["EDGE_FIELDS", "Flow", "Graph", "Link", "LinkKey", "Neighbourhood"]

Flow = Literal["source_to_target", "target_to_source"]

# An edge as a user writes it, and as the number of its relation (0 where there is one type) and two node ids.
Link = tuple[int, int] | tuple[tuple[str, str, str], int, int]
LinkKey = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """A relabelled subgraph around a target.

    Nodes are in the order of their original ids and edges in the order of their original columns, so
    that sums run in the same order as on the whole graph.

    Attributes:
        targets: the original ids of the nodes it serves: one node, the pair of a link, none for a whole graph.
        centres: their positions among ``nodes``.
        nodes: original node ids, ascending.
        edges: original edge columns, ascending.
        edge_index: the edges, relabelled to positions in ``nodes``.
        distance: hops from each node to the nearest target along the edges that carry messages; 0 everywhere
            where the target is the whole graph.
        hops: how far it reaches; None where it is the whole graph.
        flow: the direction that messages take.
    """

    targets: tuple[int, ...]
    centres: NDArray[np.int64]
    nodes: NDArray[np.int64]
    edges: NDArray[np.int64]
    edge_index: NDArray[np.int64]
    distance: NDArray[np.int64]
    hops: int | None
    flow: Flow = "source_to_target"

    def heard(self, edge_index: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these edges bring messages to nodes inside the rim: no others can matter to the target.

        The neighbourhood leaves out all edges from beyond into its outermost nodes. Those from inside matter no more.
        """
        if self.hops is None:
            return np.ones(edge_index.shape[1], dtype=bool)
        inside: NDArray[np.bool_] = self.distance[edge_index[1 if self.flow == "source_to_target" else 0]] < self.hops
        return inside

    @property
    def num_nodes(self) -> int:
        """How many nodes it has."""
        return len(self.nodes)

    @property
    def num_edges(self) -> int:
        """How many edge columns it has (both directions of an undirected edge count)."""
        return len(self.edges)


@dataclass(frozen=True, eq=False)
class Graph:
    """A PyG graph with what finds a neighbourhood quickly: its edges grouped by the node they reach.

    The nodes of a ``HeteroData`` are numbered type after type, and so are its edges (`types` says which is which);
    it counts as directed, except that a relation and its reverse are one.

    What it makes of irregular input, on purpose:

    * *directed or undirected*: undirected when every edge has its reverse with the same weight and
      attributes; ``directed=`` overrides. In an undirected graph both directions are one edit.
    * *duplicate edges* stay (a model sums over them), and belong to one edit: to delete the edge
      between two nodes is to delete every copy of it.
    * *self-loops* stay and are never deleted: a node always keeps its own representation.
    * *isolated nodes* are targets like any other; they have no edit.
    * *edge weights and attributes* follow their edges into every neighbourhood and edited graph.
    """

    data: Data | HeteroData
    directed: bool
    edge_index: NDArray[np.int64]
    types: Types | None = None
    _pointers: dict[Flow, tuple[NDArray[np.int64], ...]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, data: Data | HeteroData, directed: bool | None = None) -> Graph:
        """Read a PyG ``Data`` or ``HeteroData``.

        Raises:
            GraphError: the data are malformed (see `butfor.graph.validate`).
        """
        validate(data)
        if isinstance(data, HeteroData):
            types, edge_index = Types.of(data)
            return cls(data, True, edge_index, types)
        edge_index = data.edge_index.detach().cpu().numpy().astype(np.int64, copy=False)
        if directed is None:
            directed = not _is_symmetric(data, edge_index)
        elif not directed and not _has_reverses(edge_index):
            raise GraphError(
                "directed=False was given, but some edges have no reverse; add the missing directions with "
                "torch_geometric.utils.to_undirected, or pass directed=True"
            )
        return cls(data, directed, edge_index)

    @cached_property
    def num_nodes(self) -> int:
        """How many nodes the graph has."""
        return int(self.data.num_nodes)

    @property
    def x(self) -> Tensor:
        """The node features of a graph of one type."""
        x = self.data.x
        assert isinstance(x, torch.Tensor)
        return x.detach()

    @property
    def device(self) -> torch.device:
        """Where its tensors are."""
        device: torch.device = next(iter(self.data.edge_stores)).edge_index.device
        return device

    def node_fields(self) -> dict[str, Tensor]:
        """What the nodes of a graph of one type have besides features and labels."""
        return node_fields(self.data)

    def edge_fields(self) -> dict[str, Tensor]:
        """What the edges of a graph of one type carry: weights, attributes, types."""
        return edge_fields(self.data)

    def check_node(self, node: int) -> int:
        """``node`` if it is in the graph.

        Raises:
            InputError: it is not.
        """
        if not is_whole(node) or not 0 <= node < self.num_nodes:
            raise InputError(f"node {node} is not in this graph (0 to {self.num_nodes - 1})")
        return int(node)

    def relation(self, relation: Relation) -> int:
        """The number of a relation, by its name; that of its reverse is the same.

        Raises:
            InputError: there is none.
        """
        if self.types is None:
            raise InputError(f"relations names {relation}, but this graph has one type of edges")
        return self.types.relation(relation)

    def link_key(self, link: Link) -> LinkKey:
        """An edge as a key that does not depend on how it was written.

        Raises:
            InputError: a node is not in the graph, or the type of the edge is missing or unknown.
        """
        if self.types is not None:
            return self.types.link_key(link)
        if len(link) != 2:
            raise InputError(f"{link} is no edge of this graph; give the pair of its nodes")
        source, target = self.check_node(link[0]), self.check_node(link[1])
        return (0, source, target) if self.directed else (0, min(source, target), max(source, target))

    def has_link(self, key: LinkKey) -> bool:
        """Whether there is such an edge."""
        return bool(self.columns_of(key))

    def columns_of(self, key: LinkKey) -> list[int]:
        """The edge columns that a link is made of: all its copies, both directions where they are one."""
        relation, u, v = key
        found: list[int] = []
        for source, target in ((u, v), (v, u)) if u != v else ((u, v),):
            columns, senders, _ = self.into(np.array([target]), "source_to_target")
            found += columns[senders == source].tolist()
            if self.directed and self.types is None:
                break
        if self.types is None or not found:
            return sorted(found)
        columns = np.array(sorted(found))
        first, second, kind = self.types.links(self.edge_index[:, columns], columns)
        same: list[int] = columns[(kind == relation) & (first == u) & (second == v)].tolist()
        return same

    def links(self, near: Neighbourhood) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64] | None]:
        """For each edge column of a neighbourhood its link: two positions, and its relation if there are several."""
        if self.types is not None:
            return self.types.links(near.edge_index, near.edges)
        first, second = near.edge_index if self.directed else np.sort(near.edge_index, axis=0)
        return first, second, None

    def deletion(self, source: int, target: int, relation: int) -> Deletion:
        """The deletion of a link, in the words of the user's graph."""
        if self.types is None:
            return Deletion(int(source), int(target))
        return Deletion(self.types.local(source)[1], self.types.local(target)[1], self.types.relations[relation])

    def neighbourhood(
        self,
        targets: int | Sequence[int],
        hops: int | None,
        flow: Flow = "source_to_target",
        joins: Collection[LinkKey] = (),
    ) -> Neighbourhood:
        """The subgraph on all nodes whose messages reach a target within ``hops``, or the whole graph.

        Costs time and memory in proportion to the edges of its nodes, whatever the size of the graph. Where
        edges may be added (``joins``), messages along them count too.

        Raises:
            InputError: a target is not in the graph.
        """
        wanted = (targets,) if isinstance(targets, int) else tuple(targets)
        if not wanted:
            return self._whole((), np.arange(self.num_nodes), np.zeros(self.num_nodes, dtype=np.int64))
        if joins:
            keys, distance = self._reach_joined(wanted, self.num_nodes if hops is None else hops, flow, joins)
            if hops is None:
                return self._whole(wanted, keys, distance)
            return self._induced([wanted], keys, distance, hops, flow)[0]
        return self.neighbourhoods([wanted], hops, flow)[0]

    def neighbourhoods(
        self,
        groups: Sequence[tuple[int, ...]],
        hops: int | None,
        flow: Flow = "source_to_target",
        most: int | None = None,
    ) -> list[Neighbourhood]:
        """The neighbourhood of each group of targets, all found together.

        Where ``most`` is given and so many edges would have to be looked at, those of the first few groups.

        Raises:
            InputError: a target is not in the graph.
        """
        for group in groups:
            for node in group:
                self.check_node(node)
        limit = most if len(groups) > 1 else None
        keys, distance = self._reach(groups, self.num_nodes if hops is None else hops, flow, limit)
        if limit is not None and self._counts(keys % self.num_nodes, flow).sum() > limit:
            return self.neighbourhoods(groups[: len(groups) // 2], hops, flow, most)
        if hops is None:
            owner = keys // self.num_nodes
            inside = [owner == number for number in range(len(groups))]
            pairs = zip(groups, inside, strict=True)
            return [self._whole(group, keys[mine] % self.num_nodes, distance[mine]) for group, mine in pairs]
        return self._induced(groups, keys, distance, hops, flow)

    def fingerprint(self) -> str:
        """A short hash of everything that a model can read of this graph."""
        return fingerprint(self.data)

    def _incoming(self, flow: Flow) -> tuple[NDArray[np.int64], ...]:
        """CSR: pointers, and the edge columns and senders grouped by the node that receives the message.

        Senders are kept beside the columns so that a node's edges are read in one stretch of memory.
        """
        if flow not in self._pointers:
            sender, receiver = self.edge_index if flow == "source_to_target" else self.edge_index[::-1]
            columns = np.argsort(receiver, kind="stable")
            counts = np.bincount(receiver, minlength=self.num_nodes)
            self._pointers[flow] = np.concatenate([[0], np.cumsum(counts)]), columns, sender[columns]
        return self._pointers[flow]

    def into(self, nodes: NDArray[np.int64], flow: Flow) -> tuple[NDArray[np.int64], ...]:
        """The edges that bring messages to ``nodes``: their columns, senders and receivers."""
        _, columns, senders = self._incoming(flow)
        at, counts = self._at(nodes, flow)
        return columns[at], senders[at], np.repeat(nodes, counts)

    def _at(self, nodes: NDArray[np.int64], flow: Flow) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where the CSR has the edges into ``nodes``, and how many there are into each."""
        counts = self._counts(nodes, flow)
        # Positions start_i, start_i + 1, ... for each node i, without a Python loop.
        at = np.repeat(self._incoming(flow)[0][nodes] - np.cumsum(counts) + counts, counts)
        at += np.arange(len(at))
        return at, counts

    def _counts(self, nodes: NDArray[np.int64], flow: Flow) -> NDArray[np.int64]:
        pointers = self._incoming(flow)[0]
        counts: NDArray[np.int64] = pointers[nodes + 1] - pointers[nodes]
        return counts

    def _reach(
        self, groups: Sequence[tuple[int, ...]], hops: int, flow: Flow, limit: int | None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """What is within ``hops`` of each group, and how far (breadth first); it stops beyond ``limit`` edges.

        A node ``v`` of group ``i`` is the number ``i * num_nodes + v``; these numbers are ascending.
        """
        pairs = [i * self.num_nodes + node for i, group in enumerate(groups) for node in group]
        keys = frontier = _distinct(np.array(pairs, dtype=np.int64))
        distance = np.zeros(len(keys), dtype=np.int64)
        senders = self._incoming(flow)[2]
        for hop in range(1, hops + 1):
            node = frontier % self.num_nodes
            if limit is not None and self._counts(node, flow).sum() > limit:
                break
            at, counts = self._at(node, flow)
            reached = _distinct(np.repeat(frontier - node, counts) + senders[at])
            frontier = reached[~_among(reached, keys)]
            if not len(frontier):
                break
            keys = np.concatenate([keys, frontier])
            distance = np.concatenate([distance, np.full(len(frontier), hop)])
            order = np.argsort(keys, kind="stable")
            keys, distance = keys[order], distance[order]
        return keys, distance

    def _reach_joined(
        self, targets: tuple[int, ...], hops: int, flow: Flow, joins: Collection[LinkKey]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """As `_reach` for one group, in the graph with all ``joins`` added."""
        into: dict[int, list[int]] = {}
        for _, u, v in joins:
            for source, target in ((u, v),) if self.directed else ((u, v), (v, u)):
                sender, receiver = (source, target) if flow == "source_to_target" else (target, source)
                into.setdefault(receiver, []).append(sender)
        distance = {self.check_node(node): 0 for node in targets}
        frontier = list(distance)
        for hop in range(1, hops + 1):
            _, senders, _ = self.into(np.array(frontier, dtype=np.int64), flow)
            reached = {*senders.tolist(), *(sender for node in frontier for sender in into.get(node, ()))}
            frontier = sorted(reached - distance.keys())
            if not frontier:
                break
            distance.update(dict.fromkeys(frontier, hop))
        nodes = np.array(sorted(distance), dtype=np.int64)
        return nodes, np.array([distance[node] for node in nodes.tolist()], dtype=np.int64)

    def _induced(
        self,
        groups: Sequence[tuple[int, ...]],
        keys: NDArray[np.int64],
        distance: NDArray[np.int64],
        hops: int,
        flow: Flow,
    ) -> list[Neighbourhood]:
        owner, nodes = np.divmod(keys, self.num_nodes)
        begins = np.searchsorted(owner, np.arange(len(groups) + 1))
        _, columns, senders = self._incoming(flow)
        at, counts = self._at(nodes, flow)
        receiver = np.repeat(np.arange(len(nodes)), counts)
        sender_key = senders[at] + np.repeat(owner * self.num_nodes, counts)
        inside = np.flatnonzero(_among(sender_key, keys))
        at, receiver, sender_key = at[inside], receiver[inside], sender_key[inside]
        owner = owner[receiver]
        order = np.argsort(owner * self.edge_index.shape[1] + columns[at])
        cuts = np.searchsorted(owner, np.arange(len(groups) + 1))
        edges = columns[at[order]]
        ends = np.stack([np.searchsorted(keys, sender_key[order]), receiver[order]])
        if flow == "target_to_source":
            ends = ends[::-1]
        near = []
        for i, group in enumerate(groups):
            first, last = begins[i], begins[i + 1]
            mine = nodes[first:last]
            near.append(
                Neighbourhood(
                    targets=group,
                    centres=np.searchsorted(mine, group),
                    nodes=mine,
                    edges=edges[cuts[i] : cuts[i + 1]],
                    edge_index=ends[:, cuts[i] : cuts[i + 1]] - first,
                    distance=distance[first:last],
                    hops=hops,
                    flow=flow,
                )
            )
        return near

    def _whole(self, targets: tuple[int, ...], reach: NDArray[np.int64], near: NDArray[np.int64]) -> Neighbourhood:
        distance = np.full(self.num_nodes, self.num_nodes, dtype=np.int64)
        distance[reach] = near
        return Neighbourhood(
            targets=targets,
            centres=np.array(targets, dtype=np.int64),
            nodes=np.arange(self.num_nodes),
            edges=np.arange(self.edge_index.shape[1]),
            edge_index=self.edge_index,
            distance=distance,
            hops=None,
        )


def _distinct(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The values in order, each once: `np.unique` without what it takes to prepare for more."""
    ascending = np.sort(values)
    distinct: NDArray[np.int64] = ascending[np.append(True, ascending[1:] != ascending[:-1])[: len(ascending)]]
    return distinct


def _among(values: NDArray[np.int64], ascending: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of the values are among ``ascending``."""
    position = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
    found: NDArray[np.bool_] = ascending[position] == values
    return found


def _has_reverses(edge_index: NDArray[np.int64], extra: NDArray[Any] | None = None) -> bool:
    """Whether the edges, with what they carry, are the same set after all are turned round."""
    source, target = edge_index
    if extra is None:
        size = int(edge_index.max(initial=0)) + 1
        return np.array_equal(np.unique(source * size + target), np.unique(target * size + source))
    keys = list(extra.T)
    forward, backward = np.lexsort([*keys, target, source]), np.lexsort([*keys, source, target])
    same = np.array_equal(source[forward], target[backward]) and np.array_equal(target[forward], source[backward])
    return same and np.array_equal(extra[forward], extra[backward])


def _is_symmetric(data: Data, edge_index: NDArray[np.int64]) -> bool:
    carried = [getattr(data, name, None) for name in EDGE_FIELDS]
    # As double: NumPy does not know all types that torch has.
    columns = [
        value.detach().cpu().reshape(edge_index.shape[1], -1).double().numpy() for value in carried if value is not None
    ]
    return _has_reverses(edge_index, np.concatenate(columns, axis=1) if columns else None)
