"""How the nodes of a picture look, and what is written into them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from butfor.boundary.printable import printable
from butfor.plotting.style import plain_style, styles_of, styles_of_classes_of_a_type, styles_of_types
from butfor.predict.class_names import class_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from butfor.graph.graph import Graph
    from butfor.plotting.style import Style
    from butfor.result.context import PlotContext

__all__ = ["Appearance"]

CLASSES = "predicted class"


@dataclass(frozen=True, eq=False)
class Appearance:
    """The look of nodes by their kind: their predicted class, or their type where there are several and no class.

    In a graph of several node types the shape of a node is that of its type; its colour is that of its class where
    classes are predicted for nodes, else that of its type.
    """

    context: PlotContext

    @property
    def graph(self) -> Graph:
        """The whole graph."""
        return self.context.graph

    def kinds(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The kind of each of these nodes, as a number; -1 where there is one type and no class is predicted."""
        classes = self.context.classes_of(nodes)
        # Types come first, and the classes behind them.
        return (
            classes
            if self.graph.types is None
            else np.where(classes < 0, self.graph.kinds(nodes), self._types + classes)
        )

    @property
    def _types(self) -> int:
        return 0 if self.graph.types is None else len(self.graph.types.node_types)

    @cached_property
    def _predicted(self) -> int | None:
        """The number of the type whose classes are predicted; None if there are none."""
        example = self.context.example
        return None if example is None else int(self.graph.kinds(np.array([example]))[0])

    @property
    def shows_both(self) -> bool:
        """Whether types and classes are shown."""
        return self.graph.types is not None and self._predicted is not None

    def is_type(self, kind: int) -> bool:
        """Whether a kind is a type of nodes, and no class."""
        return 0 <= kind < self._types

    @property
    def title(self) -> str:
        """What the kinds are called as a whole; empty if there are none."""
        if self.graph.types is not None:
            return "node type"
        return CLASSES if self._predicted is not None else ""

    @property
    def second_title(self) -> str:
        """The title of the classes below the types; empty if only one of the two is shown."""
        return CLASSES if self.shows_both else ""

    def kind_name(self, kind: int) -> str:
        """The name of a kind."""
        if self.graph.types is not None and self.is_type(kind):
            return self.graph.types.node_types[kind]
        return class_name(self.context.class_names, kind - self._types)

    def styles(self, kinds: NDArray[np.int64]) -> dict[int, Style]:
        """The style of each of these kinds."""
        if self.graph.types is None:
            return styles_of(kinds, len(self.context.class_names))
        if self._predicted is None:
            return styles_of_types(kinds)
        classes = np.unique(kinds[kinds >= self._types]) - self._types
        looks = styles_of_classes_of_a_type(classes, self._predicted, len(self.context.class_names))
        return {
            **{int(kind): plain_style(int(kind)) for kind in np.unique(kinds[kinds < self._types])},
            **{self._types + label: style for label, style in looks.items()},
        }

    def type_styles(self, nodes: NDArray[np.int64]) -> list[tuple[str, Style]]:
        """The types of these nodes and how they look where classes have the colours."""
        assert self.graph.types is not None
        names = self.graph.types.node_types
        kinds = np.unique(self.graph.kinds(nodes)).tolist()
        return [(names[kind], plain_style(kind, blank=kind == self._predicted)) for kind in kinds]

    def label(self, node: int) -> str:
        """What is written into a node: its own id, or its number, within its type where there are several."""
        return printable(self.context.name_of(node))
