"""Adding an edge, in an undirected graph in both directions; and which pairs of nodes may be joined.

*Applied*: the new columns are appended to those of the graph, with what the rules say that an added edge carries.
*Softened*: they are always there and carry 1 minus the edit's weight. *Recorded* as an `Addition`, and *told* as "with
the edge 3–17 added".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from butfor.boundary.arguments import check_whole
from butfor.boundary.json_values import Misfit, shown, whole
from butfor.edits.costs import check_cost
from butfor.edits.telling import listed
from butfor.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from butfor.graph.edge_keys import Edge, EdgeKey
    from butfor.graph.graph import Graph
    from butfor.graph.neighbourhood import Neighbourhood

__all__ = ["Addition", "Additions", "Within"]


@dataclass(frozen=True, order=True)
class Addition:
    """An edge comes; in an undirected graph both directions of it."""

    source: int
    target: int

    kind: ClassVar[str] = "add"

    @property
    def plain(self) -> list[Any]:
        """Plain data for JSON."""
        return [self.kind, self.source, self.target]

    @classmethod
    def read(cls, values: Sequence[Any]) -> Addition:
        """From plain data, without the kind.

        Raises:
            Misfit: it is something else.
        """
        if len(values) != 2:
            raise Misfit(f"an addition has two ends, not {shown(list(values))}")
        source, target = (whole(end, f"a node in the addition {shown(list(values))}") for end in values)
        return cls(source, target)

    @property
    def nodes(self) -> tuple[int, ...]:
        """The nodes that it touches."""
        return self.source, self.target

    @property
    def edge(self) -> Edge:
        """The edge as a user names it."""
        return self.source, self.target

    def told(self, name: Callable[[int], str], arrow: str) -> str:
        """The edge in words, with names for nodes and an arrow that shows whether direction matters."""
        return f"{name(self.source)}{arrow}{name(self.target)}"

    @classmethod
    def tell_all(cls, told: list[str]) -> str:
        """Several of them as a part of a sentence."""
        return f"with {listed('edge', told)} added"


@dataclass(frozen=True, eq=False)
class Additions:
    """The edges that edits add: two positions in the neighbourhood for each, source first, and its edit."""

    ends: NDArray[np.int64]
    edit: NDArray[np.int64]

    @classmethod
    def none(cls) -> Additions:
        """No edges."""
        return cls(np.empty((0, 2), np.int64), np.empty(0, np.int64))

    def records(self, chosen: NDArray[np.bool_], ids: NDArray[np.int64]) -> list[Addition]:
        """What the chosen edits add; ``ids`` are the original ids of positions."""
        return [Addition(u, v) for u, v in ids[self.ends[chosen[self.edit]]].tolist()]


@dataclass(frozen=True)
class Within:
    """All pairs of nodes near the target that have no edge yet, the nearest first.

    Attributes:
        hops: how far from the target a node may be; in a whole graph that is explained all nodes are near.
        most: the largest number of pairs; the result says so where that leaves some out.
        cost: what each addition costs.
    """

    hops: int = 1
    most: int = 500
    cost: float = 1.0

    def __post_init__(self) -> None:
        check_whole(self.hops, "hops")
        check_whole(self.most, "most")
        if self.hops < 1 or self.most < 1:
            raise InputError(f"{self} allows no pair; give at least 1 hop and 1 pair")
        check_cost(self.cost, "an added edge")

    def pairs(self, graph: Graph, near: Neighbourhood) -> tuple[dict[EdgeKey, float], str]:
        """The pairs around a target with their costs, and a note for the user."""
        close = np.flatnonzero(near.distance <= self.hops)
        close = close[np.lexsort([close, near.distance[close]])]
        # A node's pair with the target comes before its pairs with others, so this many nodes give enough pairs.
        enough = close[: self.most + len(near.columns) + 2]
        first, second = np.triu_indices(len(enough), 1)
        order = np.lexsort([second, first, (near.distance[enough][first] + near.distance[enough][second])])
        ids = near.nodes[enough]
        joins: dict[EdgeKey, float] = {}
        for i, j in zip(ids[first[order]].tolist(), ids[second[order]].tolist(), strict=True):
            for edge in ((i, j), (j, i)) if graph.directed else ((i, j),):
                key = graph.edge_key(edge)
                if graph.has_edge(key):
                    continue
                if len(joins) == self.most:
                    return joins, f"Only the {self.most} nearest pairs could be joined."
                joins[key] = self.cost
        return joins, ""
