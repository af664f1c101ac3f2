"""Deleting an edge: all its copies and, in an undirected graph, both directions go together.

*Applied*: the columns of the edge are left out. *Softened*: they carry the edit's weight, 1 for an edge that is there
and 0 for one that is gone. *Recorded* as a `Deletion`, and *told* as "without the edge 3–17" beside other edits; a
result that only deletes has a sentence of its own (`Counterfactual.__str__`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from butfor.edits.edge_edit import EdgeEdit
from butfor.edits.telling import listed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from butfor.graph.graph import Graph

__all__ = ["Deletion", "Deletions"]


@dataclass(frozen=True, order=True)
class Deletion(EdgeEdit):
    """An edge goes: all copies of it and, in an undirected graph, both directions.

    Attributes:
        source: the node that the edge leaves; in an undirected graph the smaller number of its two ends.
        target: the node that it leads to.
        relation: in a graph of several node types, its edge type; the ends are numbered within their types.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> cf = butfor.explain(model, data, 605)
        >>> cf.edits
        (Deletion(source=602, target=603, relation=None), Deletion(source=605, target=606, relation=None))
        >>> cf.edits[0].edge
        (602, 603)
    """

    kind: ClassVar[str] = "delete"
    noun: ClassVar[str] = "deletion"

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
        return Deletion.of(graph, self.ends[mine] if ids is None else ids[self.ends[mine]], self.relation[mine])
