"""What may be added or changed around a target: edits that have to be listed before they can be made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch

from butfor.checks import as_items, is_finite, is_number, is_whole
from butfor.errors import InputError
from butfor.files.limits import check_size

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from butfor.graph.graph import Graph, LinkKey, Neighbourhood

__all__ = ["Features", "Within", "check_cost"]


@dataclass(frozen=True)
class Within:
    """All pairs of nodes near the target that have no edge yet, the nearest first.

    Attributes:
        hops: how far from the target a node may be; of a whole graph all nodes are near.
        most: how many pairs at most; the result says so where that leaves some out.
        cost: what each addition costs.
    """

    hops: int = 1
    most: int = 500
    cost: float = 1.0

    def __post_init__(self) -> None:
        if not is_whole(self.hops) or not is_whole(self.most) or self.hops < 1 or self.most < 1:
            raise InputError(f"{self} allows no pair; give at least 1 hop and 1 pair, in whole numbers")
        check_cost(self.cost, "an added edge")

    def pairs(self, graph: Graph, near: Neighbourhood) -> tuple[dict[LinkKey, float], str]:
        """The pairs around a target with their costs, and what to tell the user of them."""
        close = np.flatnonzero(near.distance <= self.hops)
        close = close[np.lexsort([close, near.distance[close]])]
        # A node's pair with the target comes before its pairs with others, so so many nodes have enough pairs.
        enough = close[: self.most + len(near.edges) + 2]
        first, second = np.triu_indices(len(enough), 1)
        order = np.lexsort([second, first, (near.distance[enough][first] + near.distance[enough][second])])
        ids = near.nodes[enough]
        joins: dict[LinkKey, float] = {}
        left_out = 0
        for i, j in zip(ids[first[order]].tolist(), ids[second[order]].tolist(), strict=True):
            for link in ((i, j), (j, i)) if graph.directed else ((i, j),):
                key = graph.link_key(link)
                if graph.has_link(key):
                    continue
                if len(joins) == self.most:
                    left_out += 1
                    break
                joins[key] = self.cost
            if left_out:
                break
        note = f"Only the {self.most} nearest pairs could be joined." if left_out else ""
        return joins, note


@dataclass(frozen=True)
class Features:
    """Node features that may have another value; each value is one edit, and a feature has only one.

    Attributes:
        values: "flip" for features that are 0 or 1; or the values that a feature may be set to.
        between: instead of values, the two ends of a range, tried at ``steps`` values evenly spaced.
        columns: which features; all unless given.
        nodes: of which nodes; of those within ``within`` hops of the target unless given.
        within: 0 for the target itself; of a whole graph all nodes count as the target.
        steps: how finely a range is tried.
        cost: what each change costs.
    """

    values: Literal["flip"] | Sequence[float] = "flip"
    between: tuple[float, float] | None = None
    columns: Sequence[int] | None = None
    nodes: Collection[int] | None = None
    within: int = 0
    steps: int = 5
    cost: float = 1.0

    def __post_init__(self) -> None:
        if self.values is None or (isinstance(self.values, str) and self.values != "flip"):
            raise InputError(f"feature values are {self.values!r}; give 'flip' or a list of numbers")
        if self.between is not None and (
            not isinstance(self.between, (list, tuple))
            or len(self.between) != 2
            or not all(map(is_number, self.between))
        ):
            raise InputError(f"between is {self.between!r}; give the two ends of a range")
        if self.between is not None and not self.between[0] < self.between[1]:
            raise InputError(f"a feature between {self.between[0]} and {self.between[1]} has no room; give low < high")
        for name in ("columns", "nodes", "values"):
            value = getattr(self, name)
            if value is not None and not (name == "values" and isinstance(value, str)):
                object.__setattr__(self, name, as_items(value, f"{name} of features"))
        for name in ("columns", "nodes"):
            value = getattr(self, name)
            if value is not None and not all(map(is_whole, value)):
                raise InputError(f"{name} of features is {value!r}; give a list of whole numbers")
        if not is_whole(self.within) or self.within < 0:
            raise InputError(f"within is {self.within!r}; give a whole number of hops")
        if not is_whole(self.steps) or self.steps < 2:
            raise InputError(f"steps is {self.steps}; a range has two ends at least")
        if self.between is not None:
            _check_count(int(self.steps), f"a range of {self.steps} steps")
        if not isinstance(self.values, str) and not all(map(is_finite, self.values)):
            raise InputError(f"a feature cannot be set to {list(self.values)}; give finite numbers")
        if not all(map(is_finite, self._choices or ())):
            raise InputError(f"a feature cannot be set to {self._choices}; give finite numbers")
        check_cost(self.cost, "a changed feature")

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
        width = graph.x.size(1)
        for column in self.columns or ():
            if not 0 <= column < width:
                raise InputError(f"feature {column} is not in this graph (0 to {width - 1})")
        for node in self.nodes or ():
            graph.check_node(node)

    @property
    def plain(self) -> tuple[object, ...]:
        """The rule in one way of writing it, however it was written."""
        columns = None if self.columns is None else sorted(set(self.columns))
        nodes = None if self.nodes is None else sorted(set(self.nodes))
        choices = None if self._choices is None else sorted(set(self._choices))
        return columns, nodes, choices, self.within, float(self.cost)

    def changes(
        self, graph: Graph, near: Neighbourhood, around: Neighbourhood
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        """What may change: positions of nodes, features, what they are and what they may be.

        Raises:
            InputError: a feature that is to be flipped is neither 0 nor 1.
        """
        close = around.nodes[around.distance <= self.within] if self.nodes is None else np.array(list(self.nodes))
        positions = np.flatnonzero(np.isin(near.nodes, close))
        columns = np.arange(graph.x.size(1)) if self.columns is None else np.array(self.columns, dtype=np.int64)
        rows = torch.from_numpy(near.nodes[positions]).to(graph.x.device)
        count = 1 if self._choices is None else len(self._choices)
        what = f"changing {len(columns)} features of {len(positions)} nodes to {count} values each"
        _check_count(len(positions) * len(columns) * count, what)
        node, feature = (part.ravel() for part in np.meshgrid(positions, columns, indexing="ij"))
        before = graph.x[rows].cpu().double().numpy()[:, columns].ravel()
        if self._choices is None:
            odd = np.flatnonzero((before != 0) & (before != 1))
            if len(odd):
                first = odd[0]
                raise InputError(
                    f"feature {feature[first]} of node {near.nodes[node[first]]} is {before[first]:g}; only 0 and 1 "
                    "can be flipped, so give the values it may have: Features(values=[...])"
                )
            return node, feature, before, 1 - before
        if not graph.x.is_floating_point() and not all(value.is_integer() for value in self._choices):
            raise InputError(f"features of this graph are whole numbers and cannot be set to {self._choices}")
        node, feature, before = np.repeat(node, count), np.repeat(feature, count), np.repeat(before, count)
        after = np.resize(np.array(self._choices), len(before))
        # Setting a feature to what it is would be no edit; stored numbers are rounded to the graph's own kind.
        other = torch.from_numpy(after).to(graph.x.dtype).double().numpy() != before
        return node[other], feature[other], before[other], after[other]


# Roughly what an edit takes while a method searches, in bytes.
_EDIT = 1024


def _check_count(edits: int, what: str) -> None:
    check_size(edits * _EDIT, f"{what} makes {edits} edits, which", InputError)


def check_cost(cost: float, what: str) -> None:
    """Refuse a cost that is not positive.

    Raises:
        InputError: naming it.
    """
    if not (is_finite(cost) and cost > 0):
        raise InputError(f"the cost of {what} is {cost}; give a positive number")
