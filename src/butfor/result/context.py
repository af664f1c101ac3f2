"""What a picture of a result needs besides it: the graph, and the classes and names of its nodes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch

from butfor.graph.node_names import OwnIds
from butfor.predict.batch import EditedBatch
from butfor.predict.class_names import class_names
from butfor.predict.preserved import preserved

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from butfor.graph.graph import Graph
    from butfor.predict.predictor import Predictor

__all__ = ["PlotContext"]


# Where only receptive fields are read, larger ones are not read for a picture.
MOST_EDGES = 20_000


@dataclass(frozen=True, eq=False)
class PlotContext:
    """A graph with the class predicted for each node; all results of a session share one.

    Attributes:
        graph: the whole graph.
        classes: the predicted class of each node on the intact graph; -1 where the model predicts none. None where they
            are not known in advance.
        class_names: what the classes are called.
        predictor: says the classes of single nodes, where only receptive fields are read.
    """

    graph: Graph
    classes: NDArray[np.int64] | None
    class_names: tuple[str, ...]
    predictor: Predictor | None = None

    @classmethod
    def of(cls, predictor: Predictor) -> PlotContext:
        """From logits that are known already, or may be asked for."""
        graph, names = predictor.graph, class_names(predictor)
        if predictor.scope == "receptive-field" and predictor.task == "node":
            return cls(graph, None, names, predictor)
        classes = np.full(graph.num_nodes, -1)
        if predictor.task == "node":
            first, last = predictor.node_range
            classes[first:last] = predictor.logits.argmax(1).cpu().numpy()
        return cls(graph, classes, names)

    def classes_of(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The predicted classes of these nodes; -1 where there is none, or too much would have to be read."""
        if self.classes is not None:
            return self.classes[nodes]
        assert self.predictor is not None
        return np.array([self._class_of(node) for node in nodes.tolist()], dtype=np.int64)

    def _class_of(self, node: int) -> int:
        predictor = self.predictor
        assert predictor is not None
        first, last = predictor.node_range
        flow, hops = predictor.flow or "source_to_target", predictor.reach
        if not first <= node < last or self.graph.size((node,), hops, flow, MOST_EDGES) > MOST_EDGES:
            return -1
        near = self.graph.neighbourhood(node, hops, flow, rim=False)
        with preserved(predictor.model), torch.no_grad():
            return int(predictor(EditedBatch.receptive_field(near))[0].argmax())

    @property
    def example(self) -> int | None:
        """A node whose class is predicted; None where none are."""
        if self.classes is None:
            assert self.predictor is not None
            return self.predictor.node_range[0]
        known = np.flatnonzero(self.classes >= 0)
        return int(known[0]) if len(known) else None

    def name_of(self, node: int) -> str:
        """What a node is called: its own id, or its number, within its type where there are several."""
        kind, number = (None, node) if self.graph.types is None else self.graph.types.local(node)
        ids = self._ids[kind]
        return str(number) if ids is None else ids[number]

    @cached_property
    def _ids(self) -> dict[str | None, OwnIds | None]:
        """The ids that nodes have of their own, by type."""
        if self.graph.types is None:
            return {None: OwnIds.of(self.graph.data)}
        return {kind: OwnIds.of(self.graph.data[kind]) for kind in self.graph.types.node_types}
