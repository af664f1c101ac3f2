"""How targets are named on a page: nodes by their own ids or numbers, links by two of them, graphs by numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from butfor.boundary.json_values import Misfit, items, shown, text, whole
from butfor.boundary.printable import printable
from butfor.errors import InputError
from butfor.graph.node_names import OwnIds
from butfor.problem.target import Pair

if TYPE_CHECKING:
    from collections.abc import Iterator

    from butfor.session import Session

__all__ = ["Naming"]

# Ids are looked through up to this many; of a larger graph, nodes are named by their numbers or whole ids.
LOOKED_THROUGH = 200_000


@dataclass(frozen=True, eq=False)
class Naming:
    """The targets of a session, or of several graphs.

    Attributes:
        session: the model and the graph.
        graphs: how many graphs there are, if each is a target.
    """

    session: Session
    graphs: int | None = None

    def read(self, plain: object) -> Any:
        """A target from plain data: a number, or text as somebody types it; of a link two of them.

        Raises:
            InputError: there is no such target.
        """
        try:
            if self.graphs is not None:
                given = plain.strip() if isinstance(plain, str) else plain
                if isinstance(given, str) and given.isdecimal():
                    given = int(given)
                return whole(given, "the number of a graph", 0, self.graphs - 1)
            if self._task == "graph":
                return None
            if self._task == "node":
                return self._node(plain, self._kinds[0])
            ends = plain.split("," if "," in plain else None) if isinstance(plain, str) else items(plain, "a link", 2)
            if len(ends) != 2:
                raise InputError(f"{shown(plain)} is no link; give its two nodes, such as 3, 17")
            return Pair(*(self._node(end, kind) for end, kind in zip(ends, self._kinds, strict=True)))
        except Misfit as problem:
            raise InputError(str(problem)) from problem

    def plain(self, target: Any) -> Any:
        """A target as plain data."""
        return list(target) if isinstance(target, tuple) else target

    def typed(self, target: Any) -> str:
        """A target as somebody types it, for `read`."""
        if self._task == "graph":
            return "" if target is None else str(target)
        ends = target if isinstance(target, tuple) else (target,)
        return ", ".join(self._label(node, kind) for node, kind in zip(ends, self._kinds, strict=True))

    def name(self, target: Any) -> str:
        """A target in words."""
        if self.graphs is not None or target is None:
            return "the graph" if target is None else f"graph {target}"
        if isinstance(target, tuple):
            ends = [
                f"{kind or ''} {self._label(node, kind)}".strip()
                for node, kind in zip(target, self._kinds, strict=True)
            ]
            return f"link {ends[0]}{' → ' if self.session.graph.directed else '–'}{ends[1]}"
        kind = self._kinds[0]
        return f"{kind or 'node'} {self._label(target, kind)}"

    def example(self) -> Any:
        """The target to begin with: a test node where the graph says which these are, else the first node."""
        if self._task == "graph":
            return 0 if self.graphs is not None else None
        if self._task == "link":
            return [0, self._count(self._kinds[1]) - 1]
        marked = self.session.graph.attribute("test_mask", self._kinds[0])
        nodes = np.flatnonzero(np.asarray(marked)) if getattr(marked, "ndim", 0) == 1 else np.empty(0)
        return int(nodes[0]) if len(nodes) else 0

    @property
    def told(self) -> str:
        """Which targets there are, in words."""
        if self.graphs is not None:
            return f"a graph from 0 to {self.graphs - 1}"
        if self._task == "graph":
            return "the graph"
        named = [f"{kind or 'node'} {self._span(kind)}" for kind in dict.fromkeys(self._kinds)]
        return f"a {' and a '.join(named)}" if self._task == "node" else f"two nodes: {' and '.join(named)}"

    def find(self, typed: str, most: int) -> list[dict[str, Any]]:
        """Nodes or graphs whose names contain what was typed; those that begin with it first."""
        typed = typed.strip()
        if self._task == "link" or not typed or (self._task == "graph" and self.graphs is None):
            return []
        first: list[Any] = []
        others: list[Any] = []
        for target, label in self._labels():
            if label.startswith(typed):
                first.append(target)
            elif typed.lower() in label.lower() and len(others) < most:
                others.append(target)
            if len(first) == most:
                break
        return [
            {"target": one, "typed": printable(self.typed(one)), "name": printable(self.name(one))}
            for one in [*first, *others][:most]
        ]

    def _labels(self) -> Iterator[tuple[int, str]]:
        if self.graphs is not None:
            return ((number, str(number)) for number in range(self.graphs))
        kind = self._kinds[0]
        count = min(self._count(kind), LOOKED_THROUGH)
        return ((node, self._label(node, kind)) for node in range(count))

    @property
    def _task(self) -> str:
        return self.session.predictor.task

    @property
    def _kinds(self) -> tuple[str | None, ...]:
        """The node types of the ends of a target; None in a graph of one type."""
        kinds = self.session.predictor.node_type
        if isinstance(kinds, tuple):
            return kinds
        return (kinds,) * (2 if self._task == "link" else 1)

    def _count(self, kind: str | None) -> int:
        graph = self.session.graph
        return graph.num_nodes if kind is None else int(graph.data[kind].num_nodes)

    def _ids(self, kind: str | None) -> OwnIds | None:
        data = self.session.graph.data
        return OwnIds.of(data if kind is None else data[kind])

    def _label(self, node: int, kind: str | None) -> str:
        ids = self._ids(kind)
        return str(node) if ids is None else ids[node]

    def _span(self, kind: str | None) -> str:
        last = self._count(kind) - 1
        return f"from {self._label(0, kind)} to {self._label(last, kind)}"

    def _node(self, plain: object, kind: str | None) -> int:
        """A node by its number, or by what was typed: its own id where nodes have ids, else its number."""
        count, ids = self._count(kind), self._ids(kind)
        if not isinstance(plain, str):
            return whole(plain, f"the {kind or 'node'}", 0, count - 1)
        typed = text(plain, "a node").strip()
        if ids is not None:
            for node in range(len(ids)):
                if ids[node] == typed:
                    return node
        elif typed.isdecimal() and int(typed) < count:
            return int(typed)
        raise InputError(f"{kind or 'node'} {shown(typed)} is not in this graph ({self._span(kind)})")
