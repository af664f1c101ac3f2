"""Changing a feature of a node; and which features may change to which values.

*Applied*: the entry of the feature matrix is set. *Softened*: it moves from the old value to the new one as the edit's
weight falls from 1 to 0. *Recorded* as a `Change`, and *told* as "with feature 2 of node 17 at 1 instead of 0".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import torch

from butfor.boundary.arguments import as_items, check_whole, is_finite, is_number
from butfor.boundary.json_values import Misfit, number, shown, text, whole
from butfor.edits.costs import check_cost, check_count
from butfor.edits.telling import shortened
from butfor.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from numpy.typing import NDArray

    from butfor.graph.graph import Graph
    from butfor.graph.neighbourhood import Neighbourhood

__all__ = ["Change", "Changes", "Features"]


@dataclass(frozen=True, order=True)
class Change:
    """A feature of a node has another value.

    Attributes:
        node: the node; in a graph of several node types, by its number within its type.
        feature: the column of ``x``.
        before: the value in the graph.
        after: the value that it is set to.
        node_type: in a graph of several node types, that of the node.

    Examples:
        >>> import butfor
        >>> from butfor.testing import random_problem
        >>> model, data = random_problem(seed=2)
        >>> space = butfor.EditSpace(delete=False, features=butfor.Features(values=[-3.0, 3.0], within=1))
        >>> (change,) = butfor.explain(model, data, 6, space=space).changes
        >>> print(f"feature {change.feature} of node {change.node}: {change.before:.2f} becomes {change.after:.2f}")
        feature 3 of node 6: 1.12 becomes -3.00
    """

    node: int
    feature: int
    before: float
    after: float
    node_type: str | None = None

    kind: ClassVar[str] = "change"

    @property
    def plain(self) -> list[Any]:
        """Plain data for JSON."""
        named = [] if self.node_type is None else [self.node_type]
        return [self.kind, self.node, self.feature, self.before, self.after, *named]

    @classmethod
    def read(cls, values: Sequence[Any]) -> Change:
        """From plain data, without the kind.

        Raises:
            Misfit: it is something else.
        """
        if len(values) not in (4, 5):
            raise Misfit(f"a change has a node, a feature and two values, not {shown(list(values))}")
        node, feature = (whole(end, f"a number in the change {shown(list(values))}") for end in values[:2])
        before, after = (number(value, f"a value in the change {shown(list(values))}") for value in values[2:4])
        return cls(node, feature, before, after, *(text(kind, "a node type") for kind in values[4:]))

    @property
    def nodes(self) -> tuple[int, ...]:
        """The nodes that it touches."""
        return (self.node,)

    @property
    def node_types(self) -> tuple[str | None, ...]:
        """The types of these nodes; None in a graph of one type."""
        return (self.node_type,)

    def told(self, name: Callable[[int, str | None], str], arrow: str) -> str:  # noqa: ARG002 (it has no direction)
        """The change in words, with a name for the node."""
        node = f"{self.node_type or 'node'} {name(self.node, self.node_type)}"
        return f"feature {self.feature} of {node} at {self.after:g} instead of {self.before:g}"

    @classmethod
    def tell_all(cls, told: list[str]) -> str:
        """Several of them as a part of a sentence."""
        return f"with {', '.join(shortened(told))}"


@dataclass(frozen=True, eq=False)
class Changes:
    """Features that edits set: the position of the node, the feature, its values, and the edit of each."""

    node: NDArray[np.int64]
    feature: NDArray[np.int64]
    before: NDArray[np.float64]
    after: NDArray[np.float64]
    edit: NDArray[np.int64]

    @classmethod
    def none(cls) -> Changes:
        """No changes."""
        nothing, values = np.empty(0, np.int64), np.empty(0)
        return cls(nothing, nothing, values, values, nothing)

    def records(self, graph: Graph, chosen: NDArray[np.bool_], ids: NDArray[np.int64]) -> list[Change]:
        """What the chosen edits change; ``ids`` are the original ids of positions."""
        mine, types = chosen[self.edit], graph.types
        parts = (ids[self.node[mine]], self.feature[mine], self.before[mine], self.after[mine])
        found = []
        for node, feature, before, after in zip(*(part.tolist() for part in parts), strict=True):
            kind, number = (None, node) if types is None else types.local(node)
            found.append(Change(number, feature, before, after, kind))
        return found

    def applied(
        self, chosen: NDArray[np.bool_], first_rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Which rows and features of a batch are set to which values.

        Copy ``i`` of the neighbourhood begins at row ``first_rows[i]`` and has the edits of row ``i`` of ``chosen``.
        """
        copy, number = np.nonzero(chosen[:, self.edit])
        return self.node[number] + first_rows[copy], self.feature[number], self.after[number]

    def softened(
        self, first_row: int, first_edit: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
        """Rows, features, how far each value moves as its weight falls from 1 to 0, and whose weight that is."""
        return self.node + first_row, self.feature, self.after - self.before, self.edit + first_edit

    @property
    def slots(self) -> NDArray[np.int64] | None:
        """A number for each change, the same for those that set the same feature; None if no two do."""
        if not len(self.edit):
            return None
        slots: NDArray[np.int64] = self.node * (self.feature.max() + 1) + self.feature
        return None if len(np.unique(slots)) == len(slots) else slots


@dataclass(frozen=True)
class Features:
    """Node features that may have another value; each value is one edit, and a feature has only one.

    Attributes:
        values: "flip" for features that are 0 or 1; or the values that a feature may be set to.
        between: instead of values, the two ends of a range, tried at ``steps`` values evenly spaced.
        columns: which features; by default all.
        nodes: of which nodes; by default those within ``within`` hops of the target.
        within: 0 for the target itself; of a whole graph all nodes count as the target.
        steps: into how many values a range is divided.
        cost: what each change costs.
        node_type: in a graph of several node types, the type that the rule is about, in which ``nodes`` and
            ``columns`` count; by default all types, each as far as it has these columns.

    Examples:
        >>> import butfor
        >>> from butfor.testing import random_problem
        >>> model, data = random_problem(seed=2)
        >>> features = butfor.Features(between=(-3, 3), steps=5, within=1)
        >>> space = butfor.EditSpace(delete=False, features=features)
        >>> print(butfor.explain(model, data, 6, space=space))
        Node 6 is predicted 'class 0' (0.53). It would be 'class 2' (0.56) with feature 3 of node 6 at -3
            instead of 1.12128.
    """

    values: Literal["flip"] | Sequence[float] = "flip"
    between: tuple[float, float] | None = None
    columns: Sequence[int] | None = None
    nodes: Collection[int] | None = None
    within: int = 0
    steps: int = 5
    cost: float = 1.0
    node_type: str | None = None

    def __post_init__(self) -> None:
        for name in ("columns", "nodes"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, as_items(value, f"{name} of features"))
            for one in getattr(self, name) or ():
                check_whole(one, f"one of the {name} of features")
        check_whole(self.within, "within", 0)
        check_whole(self.steps, "steps", 2)
        self._check_values()
        check_cost(self.cost, "a changed feature")
        if self.node_type is not None and not isinstance(self.node_type, str):
            raise InputError(f"node_type of features is {shown(self.node_type)}; give the name of a node type")

    def _check_values(self) -> None:
        """Refuse what a feature cannot be set to."""
        if self.values is None or (isinstance(self.values, str) and self.values != "flip"):
            raise InputError(f"feature values are {shown(self.values)}; give 'flip' or a list of numbers")
        if not isinstance(self.values, str):
            object.__setattr__(self, "values", as_items(self.values, "values of features"))
            if not all(map(is_finite, self.values)):
                raise InputError(f"a feature cannot be set to {shown(list(self.values))}; give finite numbers")
        if self.between is not None:
            self._check_range(self.between)
        if not all(map(is_finite, self._choices or ())):
            raise InputError(f"a feature cannot be set to {shown(self._choices)}; give finite numbers")

    def _check_range(self, between: object) -> None:
        if not isinstance(between, (list, tuple)) or len(between) != 2 or not all(map(is_number, between)):
            raise InputError(f"between is {shown(between)}; give two numbers, the ends of a range")
        if not between[0] < between[1]:
            raise InputError(f"a feature between {between[0]} and {between[1]} has no room; give low < high")
        check_count(int(self.steps), f"a range of {self.steps} steps")

    @property
    def _choices(self) -> list[float] | None:
        """The values to try; None to flip."""
        if self.between is not None:
            with np.errstate(over="ignore", invalid="ignore"):  # ends too far apart give values that are refused
                return [float(value) for value in np.linspace(*self.between, self.steps)]
        return None if isinstance(self.values, str) else [float(value) for value in self.values]

    def check(self, graph: Graph) -> None:
        """Refuse nodes and features that the graph does not have.

        Raises:
            InputError: naming the first of them.
        """
        if graph.types is None and self.node_type is not None:
            raise InputError(f"node_type of features is {self.node_type!r}, but this graph has one type of nodes")
        width = max(graph.features(kind).size(1) for kind in self._kinds(graph))
        for column in self.columns or ():
            if not 0 <= column < width:
                where = "this graph" if self.node_type is None else f"node type {self.node_type!r}"
                raise InputError(f"feature {column} is not in {where} (0 to {width - 1})")
        self._nodes(graph)

    def _kinds(self, graph: Graph) -> list[int]:
        """The numbers of the node types that the rule is about."""
        if graph.types is None:
            return [0]
        if self.node_type is None:
            return list(range(len(graph.types.node_types)))
        graph.types.number(self.node_type, 0)  # refuses what is no type
        return [graph.types.node_types.index(self.node_type)]

    def _nodes(self, graph: Graph) -> list[int] | None:
        """The nodes that are named, as the whole graph numbers them; None if none are."""
        if self.nodes is None:
            return None
        if graph.types is None:
            return [graph.check_node(node) for node in self.nodes]
        if self.node_type is None:
            known = " or ".join(map(repr, graph.types.node_types))
            raise InputError(f"nodes of features are counted within their type; say which: node_type={known}")
        return [graph.types.number(self.node_type, node) for node in self.nodes]

    @property
    def plain(self) -> tuple[object, ...]:
        """The rule in one way of writing it, however it was written."""
        columns = None if self.columns is None else sorted(set(self.columns))
        nodes = None if self.nodes is None else sorted(set(self.nodes))
        choices = None if self._choices is None else sorted(set(self._choices))
        named = () if self.node_type is None else (self.node_type,)
        return columns, nodes, choices, self.within, float(self.cost), *named

    def changes(
        self, graph: Graph, near: Neighbourhood, around: Neighbourhood
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        """What may change: positions of nodes, features, what they are and what they may be.

        Raises:
            InputError: a feature that is to be flipped is neither 0 nor 1.
        """
        named = self._nodes(graph)
        close = around.nodes[around.distance <= self.within] if named is None else np.array(named, dtype=np.int64)
        positions = np.flatnonzero(np.isin(near.nodes, close))
        kinds = graph.kinds(near.nodes[positions])
        found = [self._changes_of(graph, near, positions[kinds == kind], kind) for kind in self._kinds(graph)]
        node, feature, before, after = (np.concatenate(part) for part in zip(*found, strict=True))
        return node, feature, before, after

    def _changes_of(
        self, graph: Graph, near: Neighbourhood, positions: NDArray[np.int64], kind: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        """The same for nodes of one type."""
        x = graph.features(kind)
        columns = np.arange(x.size(1)) if self.columns is None else np.array(self.columns, dtype=np.int64)
        columns = columns[columns < x.size(1)]
        rows = torch.from_numpy(near.nodes[positions] - graph.node_starts[kind]).to(x.device)
        count = 1 if self._choices is None else len(self._choices)
        what = f"changing {len(columns)} features of {len(positions)} nodes to {count} values each"
        check_count(len(positions) * len(columns) * count, what)
        node, feature = (part.ravel() for part in np.meshgrid(positions, columns, indexing="ij"))
        before = x[rows].cpu().double().numpy()[:, columns].ravel()
        if self._choices is None:
            odd = np.flatnonzero((before != 0) & (before != 1))
            if len(odd):
                first = odd[0]
                name = graph.node_name(near.nodes[node[first]])
                raise InputError(
                    f"feature {feature[first]} of {name} is {before[first]:g}; only 0 and 1 can be flipped, so give "
                    "the values it may have: Features(values=[...])"
                )
            return node, feature, before, 1 - before
        if len(node) and not x.is_floating_point() and not all(value.is_integer() for value in self._choices):
            raise InputError(f"features of this graph are whole numbers and cannot be set to {self._choices}")
        node, feature, before = np.repeat(node, count), np.repeat(feature, count), np.repeat(before, count)
        after = np.resize(np.array(self._choices), len(before))
        # Setting a feature to what it is would be no edit; stored numbers are rounded to the graph's own kind.
        other = torch.from_numpy(after).to(x.dtype).double().numpy() != before
        return node[other], feature[other], before[other], after[other]
