"""Adding an edge, in an undirected graph in both directions; and which pairs of nodes may be joined.

*Applied*: the new columns are appended to those of the graph, with what the rules say that an added edge carries.
*Softened*: they are always there and carry 1 minus the edit's weight. *Recorded* as an `Addition`, and *told* as "with
the edge 3–17 added".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from butfor.boundary.arguments import as_items, check_whole
from butfor.edits.costs import check_cost
from butfor.edits.edge_edit import EdgeEdit, as_relation
from butfor.edits.telling import listed
from butfor.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from butfor.graph.edge_keys import EdgeKey, Relation
    from butfor.graph.graph import Graph
    from butfor.graph.neighbourhood import Neighbourhood

__all__ = ["Addition", "Additions", "Within", "carried"]


@dataclass(frozen=True, order=True)
class Addition(EdgeEdit):
    """An edge comes; in an undirected graph both directions of it.

    Attributes:
        source: the node that the edge leaves; in an undirected graph the smaller number of its two ends.
        target: the node that it leads to.
        relation: in a graph of several node types, its edge type; the ends are numbered within their types.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> space = butfor.EditSpace(delete=False, add=butfor.Within(hops=2))
        >>> butfor.explain(model, data, 597, space=space).edits
        (Addition(source=595, target=597, relation=None),)
    """

    kind: ClassVar[str] = "add"
    noun: ClassVar[str] = "addition"

    @classmethod
    def tell_all(cls, told: list[str]) -> str:
        """Several of them as a part of a sentence."""
        return f"with {listed('edge', told)} added"


@dataclass(frozen=True, eq=False)
class Additions:
    """The edges that edits add, as a person counts them.

    Attributes:
        ends: two positions in the neighbourhood for each edge, source first.
        edit: the edit that adds each.
        relation: the number of each edge's relation; 0 in a graph of one type.
    """

    ends: NDArray[np.int64]
    edit: NDArray[np.int64]
    relation: NDArray[np.int64]

    @classmethod
    def none(cls) -> Additions:
        """No edges."""
        return cls(np.empty((0, 2), np.int64), np.empty(0, np.int64), np.empty(0, np.int64))

    def records(self, graph: Graph, chosen: NDArray[np.bool_], ids: NDArray[np.int64]) -> list[Addition]:
        """What the chosen edits add; ``ids`` are the original ids of positions."""
        mine = chosen[self.edit]
        return Addition.of(graph, ids[self.ends[mine]], self.relation[mine])


@dataclass(frozen=True)
class Within:
    """All pairs of nodes near the target that have no edge yet, the nearest first.

    Attributes:
        hops: how far from the target a node may be; in a whole graph that is explained all nodes are near.
        most: the largest number of pairs; the result says so where that leaves some out.
        cost: what each addition costs.
        relations: in a graph of several node types, the edge types that new edges may be of; by default those of
            `EditSpace.relations`, or all. A pair is joined where its nodes are of the types of the relation.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> space = butfor.EditSpace(delete=False, add=butfor.Within(hops=2))
        >>> print(butfor.explain(model, data, 597, space=space))
        Node 597 is predicted 'motif' (0.85). It would be 'base' (0.69) with the edge 595–597 added.
    """

    hops: int = 1
    most: int = 500
    cost: float = 1.0
    relations: Collection[Relation] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_whole(self.hops, "hops")
        check_whole(self.most, "most")
        if self.hops < 1 or self.most < 1:
            raise InputError(f"{self} allows no pair; give at least 1 hop and 1 pair")
        check_cost(self.cost, "an added edge")
        if self.relations is not None:
            named = as_items(self.relations, "relations of added edges")
            object.__setattr__(self, "relations", tuple(as_relation(one) for one in named))

    def pairs(self, graph: Graph, near: Neighbourhood, relations: Collection[int]) -> tuple[dict[EdgeKey, float], str]:
        """The pairs around a target with their costs, and a note for the user."""
        close = np.flatnonzero(near.distance <= self.hops)
        close = close[np.lexsort([close, near.distance[close]])]
        found = [self._pairs_of(graph, near, close, relation) for relation in sorted(relations)]
        first, second, relation = np.concatenate(found, axis=1) if found else np.empty((3, 0), np.int64)
        hops, ids = near.distance[close], near.nodes[close]
        low, high = np.minimum(first, second), np.maximum(first, second)
        order = np.lexsort([first > second, relation, high, low, hops[first] + hops[second]])
        joins: dict[EdgeKey, float] = {}
        columns = (relation[order], ids[first[order]], ids[second[order]])
        for kind, source, target in zip(*(column.tolist() for column in columns), strict=True):
            key = graph.key(kind, source, target)
            if graph.has_edge(key):
                continue
            if len(joins) == self.most:
                return joins, f"Only the {self.most} nearest pairs could be joined."
            joins[key] = self.cost
        return joins, ""

    def _pairs_of(
        self, graph: Graph, near: Neighbourhood, close: NDArray[np.int64], relation: int
    ) -> NDArray[np.int64]:
        """The pairs that this relation may join: rows of sources, targets (positions in ``close``) and the relation."""
        ends = [np.arange(len(close))] * 2
        if graph.types is not None:
            kinds, (source, _, target) = graph.kinds(near.nodes[close]), graph.types.relations[relation]
            ends = [np.flatnonzero(kinds == graph.types.node_types.index(kind)) for kind in (source, target)]
        # Pairs with the nearest node of the other end come before all others, so this many nodes give enough pairs.
        known = [np.isin(near.edge_index, close[end[:1]]).any(axis=0).sum() for end in ends]
        first, second = ends[0][: self.most + known[1] + 2], ends[1][: self.most + known[0] + 2]
        first, second = (part.ravel() for part in np.meshgrid(first, second, indexing="ij"))
        wanted = first < second if graph.reverse[relation] == relation else first != second
        return np.stack([first[wanted], second[wanted], np.full(int(wanted.sum()), relation)])


def carried(carries: Mapping[str, Any], name: str, relation: Relation | None = None) -> Any:
    """What an added edge carries under this name: 1 where nothing was said."""
    value = carries.get(name, 1.0)
    return value.get(relation, 1.0) if isinstance(value, Mapping) else value
