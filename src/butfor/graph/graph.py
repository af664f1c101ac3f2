"""A PyG graph made ready: its edges by name, and the neighbourhood of a target in time proportional to its size."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from torch_geometric.data import HeteroData

from butfor.boundary.arguments import is_whole
from butfor.errors import GraphError, InputError
from butfor.graph.csr import Incoming
from butfor.graph.fields import edge_fields, node_fields
from butfor.graph.fingerprint import graph_fingerprint
from butfor.graph.neighbourhood import Neighbourhood, induced
from butfor.graph.stored import stored_of
from butfor.graph.stores import from_stores, is_stores
from butfor.graph.symmetry import is_symmetric
from butfor.graph.typed import Types
from butfor.graph.validate import validate

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    import torch
    from numpy.typing import NDArray
    from torch import Tensor
    from torch_geometric.data import Data

    from butfor.graph.csr import Flow
    from butfor.graph.edge_keys import Edge, EdgeKey, Relation
    from butfor.graph.stored import Stored
    from butfor.graph.stores import Stores

__all__ = ["Graph"]

_NOT_UNDIRECTED = (
    "directed=False was given, but some edges have no reverse; add the missing directions with "
    "torch_geometric.utils.to_undirected, or pass directed=True"
)


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

    A graph that was opened from a folder (`butfor.open_graph`) stays there: ``path`` is the folder, its arrays are
    mapped into memory, and what is asked about some nodes reads what belongs to these. It is pickled as its path.
    """

    data: Data | HeteroData
    directed: bool
    edge_index: NDArray[np.int64]
    types: Types | None = None
    path: Path | None = None
    _by_flow: dict[Flow, Incoming] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, data: Data | HeteroData | Stores, directed: bool | None = None) -> Graph:
        """Read a PyG ``Data`` or ``HeteroData``, also one that was opened from a folder; or PyG's pair of stores.

        Raises:
            GraphError: the data are malformed (see `butfor.graph.validate`).
        """
        if is_stores(data):
            return cls.of(from_stores(data), directed)
        stored = stored_of(data)
        if stored is not None:
            return cls._of_stored(data, stored, directed)
        validate(data)
        assert not isinstance(data, tuple)  # which would have been refused
        if isinstance(data, HeteroData):
            types, edge_index = Types.of(data)
            return cls(data, True, edge_index, types)
        edge_index = data.edge_index.detach().cpu().numpy().astype(np.int64, copy=False)
        if directed:
            return cls(data, True, edge_index)
        incoming = Incoming.of(edge_index, int(data.num_nodes), "source_to_target")
        if directed is None:
            directed = not is_symmetric(incoming, _carried(data, edge_index.shape[1]))
        elif not is_symmetric(incoming):
            raise GraphError(_NOT_UNDIRECTED)
        return cls(data, directed, edge_index, _by_flow={"source_to_target": incoming})

    @classmethod
    def _of_stored(cls, data: Data | HeteroData, stored: Stored, directed: bool | None) -> Graph:
        if directed is False and stored.types is None and not stored.reversible:
            raise GraphError(_NOT_UNDIRECTED)
        if directed is None or stored.types is not None:
            directed = stored.directed
        index: dict[Flow, Incoming] = {"source_to_target": stored.incoming}
        return cls(data, directed, stored.edge_index, stored.types, stored.path, index)

    def __reduce__(self) -> tuple[Any, ...]:
        # What travels to another process: the data alone. The rest is made of them again there, which is quicker.
        return _made_again, (self.data, self.directed)

    @cached_property
    def num_nodes(self) -> int:
        """How many nodes the graph has."""
        return int(self.data.num_nodes)

    @property
    def x(self) -> Tensor:
        """The node features of a graph of one type; a `LazyRows` where they are in a store."""
        x: Tensor = self.data.x
        return x.detach()

    @property
    def device(self) -> torch.device:
        """Where its tensors are."""
        return self.features(0).device

    def attribute(self, name: str, node_type: str | None = None) -> Any:
        """What the graph, or one of its node types, has under this name; None where it has nothing."""
        if self.types is None:
            return self.data.get(name)
        return getattr(self.data, name, None) if node_type is None else self.data[node_type].get(name)

    def node_fields(self, kind: int = 0) -> dict[str, Tensor]:
        """What the nodes of a type, by its number, have besides features and labels."""
        return node_fields(self.data if self.types is None else self.data[self.types.node_types[kind]])

    def edge_fields(self, relation: int = 0) -> dict[str, Tensor]:
        """What the edges of a relation carry: weights, attributes, types."""
        return edge_fields(self.data if self.types is None else self.data[self.types.relations[relation]])

    def features(self, kind: int) -> Tensor:
        """The features of the nodes of a type, by its number; 0 in a graph of one type."""
        return self.x if self.types is None else self.data[self.types.node_types[kind]].x.detach()

    @property
    def numbers(self) -> int:
        """Roughly how many numbers a layer reads in a run on the whole graph: a row for each node and edge."""
        kinds = range(len(self.node_starts) - 1)
        rows: int = self.num_nodes + self.edge_index.shape[1]
        return rows * max(self.features(kind).size(1) for kind in kinds)

    @cached_property
    def extremes(self) -> dict[str, tuple[float, float]]:
        """The least and the greatest number among the features, and in each other field, of a graph of one type."""
        fields = {"x": self.x, **self.node_fields(), **self.edge_fields()}
        return {name: (float(one.min()), float(one.max())) for name, one in fields.items() if one.numel()}

    @property
    def node_starts(self) -> NDArray[np.int64]:
        """The number of the first node of each type, and of all nodes."""
        return np.array([0, self.num_nodes]) if self.types is None else self.types.node_starts

    def kinds(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The number of each node's type."""
        return np.searchsorted(self.node_starts, nodes, side="right") - 1

    def node_name(self, node: int) -> str:
        """What a node is called in a message: "node 3", "paper 3"."""
        return f"node {node}" if self.types is None else " ".join(map(str, self.types.local(node)))

    @cached_property
    def reverse(self) -> NDArray[np.int64]:
        """For each relation the one that holds the other direction of its edges; -1 where edges have but one."""
        return np.array([-1 if self.directed else 0]) if self.types is None else self.types.reverse

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

    def edge_key(self, edge: Edge) -> EdgeKey:
        """An edge as a key that does not depend on how it was written.

        Raises:
            InputError: a node is not in the graph, or the type of the edge is missing or unknown.
        """
        if self.types is not None:
            return self.types.edge_key(edge)
        if len(edge) != 2:
            raise InputError(f"{edge} is no edge of this graph; give the pair of its nodes")
        source, target = self.check_node(edge[0]), self.check_node(edge[1])
        return (0, source, target) if self.directed else (0, min(source, target), max(source, target))

    def edge_keys(self, edges: Sequence[Edge]) -> NDArray[np.int64]:
        """The keys of many edges, one row each.

        Raises:
            InputError: as `edge_key`, of the first that is not in the graph.
        """
        nodes = self.num_nodes
        if self.types is None and all(len(e) == 2 and 0 <= e[0] < nodes and 0 <= e[1] < nodes for e in edges):
            ends = np.array(edges, dtype=np.int64).reshape(-1, 2)
            ends = ends if self.directed else np.sort(ends, axis=1)
            return np.concatenate([np.zeros((len(ends), 1), dtype=np.int64), ends], axis=1)
        return np.array([self.edge_key(edge) for edge in edges], dtype=np.int64).reshape(-1, 3)

    def edge_numbers(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """Keys of edges as one number each: quicker to sort and to compare."""
        numbers: NDArray[np.int64] = (keys[:, 0] * self.num_nodes + keys[:, 1]) * self.num_nodes + keys[:, 2]
        return numbers

    def keys_of_columns(self, columns: NDArray[np.int64]) -> NDArray[np.int64]:
        """The key of the edge that each of these columns belongs to."""
        ends = self.edge_index[:, columns]
        if self.types is not None:
            first, second, relation = self.types.edges_of(ends, columns)
            return np.stack([relation, first, second], axis=1)
        first, second = ends if self.directed else np.sort(ends, axis=0)
        return np.stack([np.zeros_like(first), first, second], axis=1)

    def columns_of_all(self, keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The columns of many edges, and for each the row of its edge among the keys; of equal rows, the last."""
        if not len(keys):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        # Every column leads to an end of its edge.
        columns, _, _ = self.into(np.unique(keys[:, 1:]), "source_to_target")
        wanted = self.edge_numbers(keys)
        order = np.argsort(wanted, kind="stable")
        numbers = self.edge_numbers(self.keys_of_columns(columns))
        place = np.searchsorted(wanted[order], numbers, side="right") - 1
        which = order[place]
        found = np.flatnonzero((place >= 0) & (wanted[which] == numbers))
        return columns[found], which[found]

    def edge(self, key: EdgeKey) -> Edge:
        """The edge of a key as a user names it."""
        relation, source, target = key
        if self.types is None:
            return source, target
        return self.types.relations[relation], self.types.local(source)[1], self.types.local(target)[1]

    def key(self, relation: int, source: int, target: int) -> EdgeKey:
        """The key of an edge of a forward relation, given by the numbers of its nodes."""
        turned = self.reverse[relation] == relation and source > target
        return (relation, target, source) if turned else (relation, source, target)

    def both_ways(
        self, ends: NDArray[np.int64], relation: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Edges as columns, the other directions behind: the ends and relation of each column, and whose it is."""
        back = self.reverse[relation]
        turned = np.flatnonzero(back >= 0)
        return (
            np.concatenate([ends, ends[turned, ::-1]]),
            np.concatenate([relation, back[turned]]),
            np.concatenate([np.arange(len(ends)), turned]),
        )

    def has_edge(self, key: EdgeKey) -> bool:
        """Whether there is such an edge."""
        return bool(self.columns_of(key))

    def columns_of(self, key: EdgeKey) -> list[int]:
        """The edge columns that a edge is made of: all its copies, both directions where they are one."""
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
        first, second, kind = self.types.edges_of(self.edge_index[:, columns], columns)
        same: list[int] = columns[(kind == relation) & (first == u) & (second == v)].tolist()
        return same

    def edges_of(self, near: Neighbourhood) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64] | None]:
        """For each edge column of a neighbourhood its edge: two positions, and its relation if there are several."""
        if self.types is not None:
            return self.types.edges_of(near.edge_index, near.columns)
        first, second = near.edge_index if self.directed else np.sort(near.edge_index, axis=0)
        return first, second, None

    def neighbourhood(
        self,
        targets: int | Sequence[int],
        hops: int | None,
        flow: Flow = "source_to_target",
        joins: Collection[EdgeKey] = (),
        *,
        rim: bool = True,
    ) -> Neighbourhood:
        """The subgraph on all nodes whose messages reach a target within ``hops``, or the whole graph.

        Costs time and memory in proportion to the edges of its nodes, whatever the size of the graph. Where
        edges may be added (``joins``), messages along them count too. Without ``rim``, edges between outermost nodes,
        which bring the target no messages, are neither looked at nor part of it.

        Raises:
            InputError: a target is not in the graph.
        """
        nodes = (targets,) if isinstance(targets, int) else tuple(targets)
        if not nodes:
            return self._whole((), np.arange(self.num_nodes), np.zeros(self.num_nodes, dtype=np.int64))
        if not joins:
            return self.neighbourhoods([nodes], hops, flow, rim=rim)[0]
        for node in nodes:
            self.check_node(node)
        incoming = self._incoming(flow)
        extra = self._senders(joins, flow)
        keys, distance = incoming.reach_with(extra, nodes, self.num_nodes if hops is None else hops)
        if hops is None:
            return self._whole(nodes, keys, distance)
        return induced(incoming, [nodes], keys, distance, hops, flow, rim, self._both_ways)[0]

    def neighbourhoods(
        self,
        groups: Sequence[tuple[int, ...]],
        hops: int | None,
        flow: Flow = "source_to_target",
        most: int | None = None,
        *,
        rim: bool = True,
    ) -> list[Neighbourhood]:
        """The neighbourhood of each group of targets, all found together.

        If that would look at more than ``most`` edges, only those of the first few groups are returned, perhaps none.

        Raises:
            InputError: a target is not in the graph.
        """
        for group in groups:
            for node in group:
                self.check_node(node)
        incoming = self._incoming(flow)
        if not groups:
            return []
        keys, distance = incoming.reach(groups, self.num_nodes if hops is None else hops, most)
        if most is not None:
            inner = keys if hops is None else keys[distance < hops]
            if incoming.counts(inner % self.num_nodes).sum() > most:
                return self.neighbourhoods(groups[: len(groups) // 2], hops, flow, most, rim=rim)
        if hops is None:
            owner = keys // self.num_nodes
            inside = [owner == number for number in range(len(groups))]
            pairs = zip(groups, inside, strict=True)
            return [self._whole(group, keys[mine] % self.num_nodes, distance[mine]) for group, mine in pairs]
        return induced(incoming, groups, keys, distance, hops, flow, rim, self._both_ways)

    def degrees(self, nodes: NDArray[np.int64], flow: Flow = "source_to_target") -> NDArray[np.int64]:
        """How many edges bring messages to each of these nodes."""
        return self._incoming(flow).counts(nodes)

    def size(self, targets: tuple[int, ...], hops: int, flow: Flow, limit: int) -> int:
        """How many edges can bring messages to a target from within ``hops``: about what its neighbourhood costs.

        Beyond ``limit`` it is only counted until that is certain.

        Raises:
            InputError: a target is not in the graph.
        """
        for node in targets:
            self.check_node(node)
        incoming = self._incoming(flow)
        return int(incoming.counts(incoming.reach([targets], hops - 1, limit)[0]).sum())

    @property
    def _both_ways(self) -> bool:
        """Whether edges may go with their reverses."""
        return self.types is not None or not self.directed

    @property
    def num_edges(self) -> int:
        """How many edge columns there are (both directions of an undirected edge count)."""
        return int(self.edge_index.shape[1])

    def into(self, nodes: NDArray[np.int64], flow: Flow) -> tuple[NDArray[np.int64], ...]:
        """The edges that bring messages to these nodes: their columns, senders and receivers."""
        return self._incoming(flow).into(nodes)

    def fingerprint(self) -> str:
        """A short hash of everything that a model can read of this graph; of one on disk it is written there."""
        return graph_fingerprint(self.data)

    def _incoming(self, flow: Flow) -> Incoming:
        # A graph on disk is stored by receiver; the index by sender, for the rare models that pass messages against
        # the edges, is made here, in memory.
        if flow not in self._by_flow:
            self._by_flow[flow] = Incoming.of(self.edge_index, self.num_nodes, flow)
        return self._by_flow[flow]

    def _senders(self, joins: Collection[EdgeKey], flow: Flow) -> dict[int, list[int]]:
        """The nodes from which added edges would bring messages, by the node that receives them."""
        into: dict[int, list[int]] = {}
        keys = np.array(list(joins), dtype=np.int64)
        for source, target in self.both_ways(keys[:, 1:], keys[:, 0])[0].tolist():
            sender, receiver = (source, target) if flow == "source_to_target" else (target, source)
            into.setdefault(receiver, []).append(sender)
        return into

    def _whole(self, targets: tuple[int, ...], reached: NDArray[np.int64], hops: NDArray[np.int64]) -> Neighbourhood:
        # A node that no message comes from is further away than any other.
        distance = np.full(self.num_nodes, self.num_nodes, dtype=np.int64)
        distance[reached] = hops
        return Neighbourhood.whole(self.edge_index, self.num_nodes, targets, distance)


def _made_again(data: Data | HeteroData, directed: bool) -> Graph:
    """A graph of data that were validated already."""
    if stored_of(data) is not None:
        return Graph.of(data, directed)
    if isinstance(data, HeteroData):
        types, edge_index = Types.of(data)
        return Graph(data, True, edge_index, types)
    return Graph(data, directed, data.edge_index.detach().cpu().numpy().astype(np.int64, copy=False))


def _carried(data: Data, edges: int) -> NDArray[Any] | None:
    """What each edge carries, as one row of numbers; None if nothing."""
    # As double: NumPy does not know all types that torch has.
    fields = edge_fields(data).values() if edges else ()
    columns = [value.cpu().reshape(edges, -1).double().numpy() for value in fields]
    return np.concatenate(columns, axis=1) if columns else None
