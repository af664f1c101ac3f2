"""Deleting an edge: all its copies and, in an undirected graph, both directions go together.

*Applied*: the columns of the edge are left out. *Softened*: they carry the edit's weight, 1 for an edge that is there
and 0 for one that is gone. *Recorded* as a `Deletion`, and *told* as "without the edge 3–17" beside other edits; a
result that only deletes has a sentence of its own (`Counterfactual.__str__`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from butfor.boundary.json_values import Misfit, items, shown, text, whole
from butfor.edits.telling import listed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from butfor.graph.edge_keys import Edge, Relation
    from butfor.graph.graph import Graph

__all__ = ["Deletion", "Deletions"]


@dataclass(frozen=True, order=True)
class Deletion:
    """An edge goes: all copies of it and, in an undirected graph, both directions.

    In a graph of several node types the ends are numbered within their types, which ``relation`` names.
    """

    source: int
    target: int
    relation: Relation | None = None

    kind: ClassVar[str] = "delete"

    @property
    def plain(self) -> list[Any]:
        """Plain data for JSON."""
        named = [] if self.relation is None else [list(self.relation)]
        return [self.kind, self.source, self.target, *named]

    @classmethod
    def read(cls, values: Sequence[Any]) -> Deletion:
        """From plain data, without the kind.

        Raises:
            Misfit: it is something else.
        """
        if len(values) not in (2, 3):
            raise Misfit(f"a deletion has two ends and perhaps a relation, not {shown(list(values))}")
        source, target = (whole(end, f"a node in the deletion {shown(list(values))}") for end in values[:2])
        if len(values) == 2:
            return cls(source, target)
        first, name, last = (text(part, "a relation") for part in items(values[2], "a relation", 3))
        return cls(source, target, (first, name, last))

    @property
    def nodes(self) -> tuple[int, ...]:
        """The nodes that it touches."""
        return self.source, self.target

    @property
    def edge(self) -> Edge:
        """The edge as a user names it."""
        return (self.source, self.target) if self.relation is None else (self.relation, self.source, self.target)

    def told(self, name: Callable[[int], str], arrow: str) -> str:
        """The edge in words, with names for nodes and an arrow that shows whether direction matters."""
        if self.relation is None:
            return f"{name(self.source)}{arrow}{name(self.target)}"
        first, relation, last = self.relation
        return f"{first} {self.source} {arrow} {last} {self.target} ({relation})"

    @classmethod
    def tell_all(cls, told: list[str]) -> str:
        """Several of them as a part of a sentence."""
        return f"without {listed('edge', told)}"


@dataclass(frozen=True, eq=False)
class Deletions:
    """The edges that edits delete, as a person counts them: neither copies nor reverses.

    Attributes:
        ends: one row of two nodes for each edge, source first where that matters: positions in the neighbourhood, or
            original ids for edges outside of it.
        relation: the number of each edge's relation; 0 in a graph of one type.
        edit: the edit that deletes each.
    """

    ends: NDArray[np.int64]
    relation: NDArray[np.int64]
    edit: NDArray[np.int64]

    @classmethod
    def none(cls) -> Deletions:
        """No edges."""
        return cls(np.empty((0, 2), np.int64), np.empty(0, np.int64), np.empty(0, np.int64))

    def records(self, graph: Graph, chosen: NDArray[np.bool_], ids: NDArray[np.int64] | None) -> list[Deletion]:
        """What the chosen edits delete; ``ids`` are the original ids of positions, where ends are positions."""
        mine = chosen[self.edit]
        ends = self.ends[mine] if ids is None else ids[self.ends[mine]]
        if graph.types is None:
            return [Deletion(u, v) for u, v in ends.tolist()]
        types = graph.types
        pairs = zip(ends.tolist(), self.relation[mine].tolist(), strict=True)
        return [Deletion(types.local(u)[1], types.local(v)[1], types.relations[r]) for (u, v), r in pairs]
