"""What deleted and added edges have in common as records: two ends and, where there are several types, a relation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from butfor.boundary.json_values import Misfit, items, shown, text, whole
from butfor.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from butfor.graph.edge_keys import Edge, Relation
    from butfor.graph.graph import Graph

__all__ = ["EdgeEdit", "as_relation"]

Kind = TypeVar("Kind", bound="EdgeEdit")


@dataclass(frozen=True, order=True)
class EdgeEdit:
    """An edge that goes or comes.

    In a graph of several node types the ends are numbered within their types, which ``relation`` names.
    """

    source: int
    target: int
    relation: Relation | None = None

    kind: ClassVar[str]
    noun: ClassVar[str]

    @classmethod
    def of(cls: type[Kind], graph: Graph, ends: NDArray[np.int64], relation: NDArray[np.int64]) -> list[Kind]:
        """Records of edges that are given by the numbers of their nodes and relations."""
        if graph.types is None:
            return [cls(u, v) for u, v in ends.tolist()]
        types = graph.types
        pairs = zip(ends.tolist(), relation.tolist(), strict=True)
        return [cls(types.local(u)[1], types.local(v)[1], types.relations[r]) for (u, v), r in pairs]

    @property
    def plain(self) -> list[Any]:
        """Plain data for JSON."""
        named = [] if self.relation is None else [list(self.relation)]
        return [self.kind, self.source, self.target, *named]

    @classmethod
    def read(cls: type[Kind], values: Sequence[Any]) -> Kind:
        """From plain data, without the kind.

        Raises:
            Misfit: it is something else.
        """
        article = "an" if cls.noun[0] in "aeiou" else "a"
        if len(values) not in (2, 3):
            raise Misfit(f"{article} {cls.noun} has two ends and perhaps a relation, not {shown(list(values))}")
        source, target = (whole(end, f"a node in the {cls.noun} {shown(list(values))}") for end in values[:2])
        if len(values) == 2:
            return cls(source, target)
        first, name, last = (text(part, "a relation") for part in items(values[2], "a relation", 3))
        return cls(source, target, (first, name, last))

    @property
    def nodes(self) -> tuple[int, ...]:
        """The nodes that it touches."""
        return self.source, self.target

    @property
    def node_types(self) -> tuple[str | None, ...]:
        """The types of these nodes; None in a graph of one type."""
        return (None, None) if self.relation is None else (self.relation[0], self.relation[2])

    @property
    def edge(self) -> Edge:
        """The edge as a user names it."""
        return (self.source, self.target) if self.relation is None else (self.relation, self.source, self.target)

    def told(self, name: Callable[[int, str | None], str], arrow: str) -> str:
        """The edge in words, with names for nodes and an arrow that shows whether direction matters."""
        source, target = (name(node, kind) for node, kind in zip(self.nodes, self.node_types, strict=True))
        if self.relation is None:
            return f"{source}{arrow}{target}"
        first, relation, last = self.relation
        return f"{first} {source} {arrow} {last} {target} ({relation})"


def as_relation(name: Any) -> Relation:
    """An edge type as a user writes it.

    Raises:
        InputError: it is none.
    """
    if isinstance(name, (list, tuple)) and len(name) == 3 and all(isinstance(part, str) for part in name):
        first, own, last = name
        return first, own, last
    raise InputError(
        f"{shown(name)} is no relation; give its source type, name and target type: ('user', 'pays', 'shop')"
    )
