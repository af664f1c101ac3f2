"""A neighbourhood as plain data for `static/drawing.js`: nodes with labels and kinds, lines between them, a legend."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from butfor.boundary.printable import printable
from butfor.plotting.molecules.coordinates import depict
from butfor.plotting.molecules.molecule import molecule_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from butfor.graph.graph import Graph
    from butfor.plotting.appearance import Appearance

__all__ = ["Legend", "scene_of"]


@dataclass
class Legend:
    """What the colours and shapes of a page mean; it grows with the nodes that are shown.

    Attributes:
        title: what the kinds of nodes are: predicted classes, or node types.
        kinds: the name, colour and shape of each kind; the name is empty where it is not to be told.
        types: where nodes have a type and a class, the name and shape of each type.
    """

    title: str = ""
    kinds: dict[int, tuple[str, str, str]] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)

    def add(self, appearance: Appearance, nodes: NDArray[np.int64]) -> list[int]:
        """The kinds of these nodes, which are in the legend from now on."""
        kinds = appearance.kinds(nodes)
        self.title = appearance.second_title or appearance.title
        for kind, (colour, shape, _) in appearance.styles(np.unique(kinds)).items():
            if kind not in self.kinds:
                # Types have a list of their own beside classes; where nothing is predicted, there is nothing to say.
                silent = not appearance.title or (appearance.shows_both and appearance.is_type(kind))
                self.kinds[kind] = ("" if silent else printable(appearance.kind_name(kind)), colour, shape)
        if appearance.shows_both:
            self.types |= {printable(name): shape for name, (_, shape, _) in appearance.type_styles(nodes)}
        found: list[int] = kinds.tolist()
        return found

    @property
    def plain(self) -> dict[str, Any]:
        """Plain data for JSON."""
        kinds = {str(kind): list(look) for kind, look in sorted(self.kinds.items())}
        return {"title": self.title, "kinds": kinds, "types": list(map(list, self.types.items()))}


def scene_of(
    appearance: Appearance,
    legend: Legend,
    nodes: NDArray[np.int64],
    ends: NDArray[np.int64],
    relation: NDArray[np.int64],
    arrows: NDArray[np.bool_],
    targets: NDArray[np.int64],
) -> dict[str, Any]:
    """A part of a graph as plain data.

    Args:
        appearance: how nodes look, and what they are called.
        legend: gets the kinds of nodes that are shown.
        nodes: the numbers of the nodes in the graph.
        ends: the two nodes of each line, as positions in ``nodes``.
        relation: the number of each line's relation; 0 in a graph of one type.
        arrows: which lines have a direction.
        targets: the positions of what is explained.
    """
    types = appearance.graph.types
    scene: dict[str, Any] = {
        "labels": [appearance.label(node) for node in nodes.tolist()],
        "kinds": legend.add(appearance, nodes),
        "targets": targets.tolist(),
        "ends": ends.ravel().tolist(),
    }
    if types is not None:
        scene["names"] = [f"{printable(types.local(node)[0])} {appearance.label(node)}" for node in nodes.tolist()]
        scene["relations"] = [printable(types.relations[number][1]) for number in relation.tolist()]
    if arrows.any():
        scene["arrows"] = arrows.astype(int).tolist()
    scene |= _as_molecule(appearance.graph, nodes, ends)
    return scene


def _as_molecule(graph: Graph, nodes: NDArray[np.int64], ends: NDArray[np.int64]) -> dict[str, Any]:
    """Elements instead of numbers, and positions as chemists draw them, if the whole graph is a molecule."""
    molecule = molecule_of(graph) if len(nodes) == graph.num_nodes else None
    if molecule is None:
        return {}
    bonds = {(first, second): kind for first, second, kind in molecule.bonds}
    points = depict(molecule.symbols, bonds).points
    kinds = [bonds.get((min(pair), max(pair)), "") for pair in ends.tolist()]
    return {
        "symbols": list(map(printable, molecule.symbols)),
        # The page counts downwards.
        "xy": np.round(points * [1, -1], 2).ravel().tolist(),
        "bonds": kinds,
    }
