"""What a picture of a result needs besides it: the graph, and the classes of its nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from butfor.predict.class_names import class_names

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from butfor.graph.graph import Graph
    from butfor.predict.predictor import Predictor

__all__ = ["PlotContext"]


@dataclass(frozen=True, eq=False)
class PlotContext:
    """A graph with the class predicted for each node; all results of a session share one.

    Attributes:
        graph: the whole graph.
        classes: the predicted class of each node on the intact graph; -1 where the model predicts none, or only
            receptive fields are read.
        class_names: what the classes are called.
    """

    graph: Graph
    classes: NDArray[np.int64]
    class_names: tuple[str, ...]

    @classmethod
    def of(cls, predictor: Predictor) -> PlotContext:
        """From logits that are known already."""
        graph = predictor.graph
        classes = np.full(graph.num_nodes, -1)
        if predictor.task == "node" and predictor.scope == "whole-graph":
            first, last = predictor.node_range
            classes[first:last] = predictor.logits.argmax(1).cpu().numpy()
        return cls(graph, classes, class_names(predictor))
