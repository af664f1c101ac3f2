"""How the nodes of a picture look, and what is written into them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from butfor.graph.node_names import OwnIds
from butfor.plotting.style import styles_of, styles_of_types
from butfor.predict.class_names import class_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from butfor.graph.graph import Graph
    from butfor.plotting.style import Style
    from butfor.result.context import PlotContext

__all__ = ["Appearance"]


@dataclass(frozen=True, eq=False)
class Appearance:
    """The look of nodes by their kind: their type if the graph has several node types, else their predicted class."""

    context: PlotContext

    @property
    def graph(self) -> Graph:
        """The whole graph."""
        return self.context.graph

    def kinds(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The kind of each of these nodes, as a number; -1 where no class is predicted."""
        if self.graph.types is None:
            return self.context.classes[nodes]
        return np.searchsorted(self.graph.types.node_starts, nodes, side="right") - 1

    @property
    def kind(self) -> str:
        """What the kinds are called as a whole; empty if there are none."""
        if self.graph.types is not None:
            return "node type"
        return "predicted class" if (self.context.classes >= 0).any() else ""

    def kind_name(self, kind: int) -> str:
        """The name of a kind."""
        types = self.graph.types
        return class_name(self.context.class_names, kind) if types is None else types.node_types[kind]

    def styles(self, kinds: NDArray[np.int64]) -> dict[int, Style]:
        """The style of each of these kinds."""
        if self.graph.types is None:
            return styles_of(kinds, len(self.context.class_names))
        return styles_of_types(kinds)

    def label(self, node: int) -> str:
        """What is written into a node: its own id, or its number, within its type where there are several."""
        if self.graph.types is not None:
            return str(self.graph.types.local(node)[1])
        return str(node) if self._ids is None else self._ids[node]

    def full_name(self, node: int) -> str:
        """A node's label, with its type where there are several."""
        return self.label(node) if self.graph.types is None else " ".join(map(str, self.graph.types.local(node)))

    @cached_property
    def _ids(self) -> OwnIds | None:
        return OwnIds.of(self.graph.data)
