"""What a picture of a counterfactual needs besides it: the graph and the classes of its nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from butfor.graph import Graph
from butfor.predictor import Predictor

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor, nn
    from torch_geometric.data import Data

__all__ = ["Scene"]


@dataclass(frozen=True, eq=False)
class Scene:
    """A graph with the class predicted for each node; all results of a run share one.

    Attributes:
        graph: the whole graph.
        classes: the predicted class of each node on the intact graph.
        num_classes: how many classes the model knows.
    """

    graph: Graph
    classes: NDArray[np.int64]
    num_classes: int

    @classmethod
    def of(cls, model: nn.Module, data: Data, directed: bool | None = None) -> Scene:
        """Run the model on the graph."""
        graph = Graph.of(data, directed)
        return cls.of_logits(graph, Predictor.of(model, graph).logits)

    @classmethod
    def of_logits(cls, graph: Graph, logits: Tensor) -> Scene:
        """From scores that are known already."""
        return cls(graph, logits.argmax(1).cpu().numpy(), logits.size(1))

    def class_name(self, label: int) -> str:
        """What a class is called: by ``data.class_names`` where there are any."""
        names = getattr(self.graph.data, "class_names", None)
        return str(names[label]) if names is not None and label < len(names) else f"class {label}"
