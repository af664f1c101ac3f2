"""What may be added or changed around a target: edits that have to be listed before they can be made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch

from butfor.edits import Changes
from butfor.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from butfor.graph import Graph, LinkKey, Neighbourhood

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
        if self.hops < 1 or self.most < 1:
            raise InputError(f"{self} allows no pair; give at least 1 hop and 1 pair")
        check_cost(self.cost, "an added edge")

    def pairs(self, graph: Graph, near: Neighbourhood) -> tuple[dict[LinkKey, float], str]:
        """The pairs around a target with their costs, and what to tell the user of them."""
        close = np.flatnonzero(near.distance <= self.hops)
        close = close[np.lexsort([close, near.distance[close]])]
        # A node's pair with the target comes before its pairs with others, so so many nodes have enough pairs.
        enough = close[: self.most + len(near.edges) + 1]
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
        if isinstance(self.values, str) and self.values != "flip":
            raise InputError(f"feature values are {self.values!r}; give 'flip' or a list of numbers")
        if self.between is not None and not self.between[0] < self.between[1]:
            raise InputError(f"a feature between {self.between[0]} and {self.between[1]} has no room; give low < high")
        if self.steps < 2:
            raise InputError(f"steps is {self.steps}; a range has two ends at least")
        if not all(np.isfinite(value) for value in self._choices or ()):
            raise InputError(f"a feature cannot be set to {self._choices}; give finite numbers")
        check_cost(self.cost, "a changed feature")

    @property
    def _choices(self) -> list[float] | None:
        """The values to try; None to flip."""
        if self.between is not None:
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

    def changes(self, graph: Graph, near: Neighbourhood) -> Changes:
        """What may change around one target; edits are numbered from 0.

        Raises:
            InputError: a feature that is to be flipped is neither 0 nor 1.
        """
        inside = near.distance <= self.within if self.nodes is None else np.isin(near.nodes, list(self.nodes))
        positions = np.flatnonzero(inside)
        columns = np.arange(graph.x.size(1)) if self.columns is None else np.array(self.columns, dtype=np.int64)
        x = graph.x[torch.from_numpy(near.nodes[positions]).to(graph.x.device)].cpu().double().numpy()[:, columns]
        node, feature = (part.ravel() for part in np.meshgrid(positions, columns, indexing="ij"))
        before = x.ravel()
        if self._choices is None:
            odd = np.flatnonzero((before != 0) & (before != 1))
            if len(odd):
                first = odd[0]
                raise InputError(
                    f"feature {feature[first]} of node {near.nodes[node[first]]} is {before[first]:g}; only 0 and 1 "
                    "can be flipped, so give the values it may have: Features(values=[...])"
                )
            after = 1 - before
        else:
            count = len(self._choices)
            node, feature, before = np.repeat(node, count), np.repeat(feature, count), np.repeat(before, count)
            after = np.resize(np.array(self._choices), len(before))
            # Setting a feature to what it is would be no edit; stored numbers are rounded to the graph's own kind.
            kept = torch.from_numpy(after).to(graph.x.dtype).double().numpy() != before
            node, feature, before, after = node[kept], feature[kept], before[kept], after[kept]
        return Changes(node, feature, before, after, np.arange(len(node)))


def check_cost(cost: float, what: str) -> None:
    """Refuse a cost that is not positive.

    Raises:
        InputError: naming it.
    """
    if not (np.isfinite(cost) and cost > 0):
        raise InputError(f"the cost of {what} is {cost}; give a positive number")
