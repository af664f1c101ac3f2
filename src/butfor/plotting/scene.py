"""What a picture of a counterfactual needs besides it: the graph and the classes of its nodes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from torch_geometric.data import HeteroData

from butfor.errors import InputError
from butfor.graph.graph import Graph
from butfor.graph.node_names import OwnIds
from butfor.plotting.style import styles_of, styles_of_types
from butfor.predict.predictor import Predictor

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import nn
    from torch_geometric.data import Data

    from butfor.plotting.style import Style
    from butfor.result.counterfactual import Counterfactual

__all__ = ["Molecule", "Scene"]

Pair = tuple[int, int]


@dataclass(frozen=True)
class Molecule:
    """The element of each atom, the bonds with their kinds, and the bonds known to matter."""

    symbols: tuple[str, ...]
    bonds: tuple[tuple[int, int, str], ...]
    truth: tuple[Pair, ...]


@dataclass(frozen=True, eq=False)
class Scene:
    """A graph with the class predicted for each node; all results of a run share one.

    Attributes:
        graph: the whole graph.
        classes: the predicted class of each node on the intact graph; -1 where the model predicts none.
        names: what the classes are called.
    """

    graph: Graph
    classes: NDArray[np.int64]
    names: tuple[str, ...]

    @classmethod
    def of(cls, model: nn.Module, data: Data | HeteroData, result: Counterfactual) -> Scene:
        """The scene of a result that has lost it: the model is run on the graph once more.

        Raises:
            InputError: it is not the graph that the result is of.
        """
        graph = Graph.of(data, None if isinstance(data, HeteroData) else result.directed)
        # One of many graphs is easily mistaken for another, and most of them have an edge 0–1.
        if result.task == "graph" and graph.fingerprint() != result.graph_id:
            raise InputError(f"this is not {result.called} as it was explained; give plot() that graph")
        if result.task != "node" or result.before.value is not None:
            return cls(graph, np.full(graph.num_nodes, -1), ())
        return cls.of_predictor(Predictor.of(model, graph, node_type=result.node_type))

    @classmethod
    def of_predictor(cls, predictor: Predictor) -> Scene:
        """From scores that are known already."""
        graph = predictor.graph
        classes = np.full(graph.num_nodes, -1)
        if predictor.task == "node":
            first, last = predictor.span
            classes[first:last] = predictor.logits.argmax(1).cpu().numpy()
        return cls(graph, classes, _names(predictor))

    @property
    def num_classes(self) -> int:
        """How many classes the model knows."""
        return len(self.names)

    def class_name(self, label: int) -> str:
        """What a class is called."""
        return self.names[label] if 0 <= label < len(self.names) else "no class" if label < 0 else f"class {label}"

    # Nodes look as their kind: their type where there are several, else their predicted class.

    def kinds(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The number of the kind of each of these nodes; -1 where nothing is known of it."""
        if self.graph.types is None:
            return self.classes[nodes]
        return np.searchsorted(self.graph.types.node_starts, nodes, side="right") - 1

    @property
    def kind(self) -> str:
        """What kinds are; nothing where there are none."""
        if self.graph.types is not None:
            return "node type"
        return "predicted class" if (self.classes >= 0).any() else ""

    def kind_name(self, kind: int) -> str:
        """What a kind is called."""
        return self.class_name(kind) if self.graph.types is None else self.graph.types.node_types[kind]

    def styles(self, kinds: NDArray[np.int64]) -> dict[int, Style]:
        """How each of these kinds looks."""
        return styles_of(kinds, self.num_classes) if self.graph.types is None else styles_of_types(kinds)

    def number(self, node: int) -> str:
        """What is written into a node: its own id, or its number, within its type where there are several."""
        if self.graph.types is not None:
            return str(self.graph.types.local(node)[1])
        return str(node) if self._ids is None else self._ids[node]

    def called(self, node: int) -> str:
        """A node's number, with its type where there are several."""
        return self.number(node) if self.graph.types is None else " ".join(map(str, self.graph.types.local(node)))

    @cached_property
    def _ids(self) -> OwnIds | None:
        return OwnIds.of(self.graph.data)

    @property
    def molecule(self) -> Molecule | None:
        """The graph as a molecule, where its data say what the atoms are (see `butfor.datasets.load_mutagenicity`)."""
        data = self.graph.data
        if self.graph.types is not None or self.graph.directed:
            return None
        atoms = data.get("atoms")
        if not isinstance(atoms, (list, tuple)) or len(atoms) != self.graph.num_nodes:
            return None
        marks = data.get("edge_motif")
        marked = np.zeros(self.graph.edge_index.shape[1]) if marks is None else marks.flatten().cpu().numpy()
        bonds: dict[Pair, str] = {}
        truth: set[Pair] = set()
        for (u, v), kind, mark in zip(self.graph.edge_index.T.tolist(), self._bond_kinds(), marked, strict=True):
            if u != v:
                pair = min(u, v), max(u, v)
                bonds.setdefault(pair, kind)
                truth.update([pair] if mark else [])
        return Molecule(
            symbols=tuple(map(str, atoms)),
            bonds=tuple((*pair, kind) for pair, kind in bonds.items()),
            truth=tuple(sorted(truth)),
        )

    def _bond_kinds(self) -> list[str]:
        """The kind of each bond, where ``edge_attr`` has it one-hot and ``bond_names`` says what that means."""
        from butfor.plotting.molecules.sketch import KINDS

        data, count = self.graph.data, self.graph.edge_index.shape[1]
        attributes, names = data.get("edge_attr"), data.get("bond_names")
        if attributes is None or names is None or attributes.dim() != 2 or attributes.size(1) != len(names):
            return [""] * count
        known = [str(name) if str(name) in KINDS else "" for name in names]
        return [known[kind] for kind in attributes.argmax(dim=1).tolist()]


def _names(predictor: Predictor) -> tuple[str, ...]:
    """By ``data.class_names`` where there are any."""
    if predictor.threshold is not None:
        if predictor.task == "link":
            return "not linked", "linked"
        return f"at most {predictor.threshold:g}", f"above {predictor.threshold:g}"
    data = predictor.graph.data
    holder = data if predictor.node_type is None else data[predictor.node_type]
    given = holder.get("class_names")
    named = [] if given is None else list(map(str, given))
    return (*named, *(f"class {label}" for label in range(len(named), predictor.num_classes)))
