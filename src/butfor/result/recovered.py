"""The graph of a result: the one it still has, or the one that is given again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from torch_geometric.data import HeteroData

from butfor.errors import InputError
from butfor.graph.graph import Graph
from butfor.predict.predictor import Predictor
from butfor.result.context import PlotContext

if TYPE_CHECKING:
    from torch import nn
    from torch_geometric.data import Data

    from butfor.result.counterfactual import Counterfactual

__all__ = ["context_of"]


def context_of(
    result: Counterfactual, data: Data | HeteroData | None, model: nn.Module | None, verb: str
) -> PlotContext:
    """The context of a result; where data and model are given, of these: the model is run on the graph once more.

    Raises:
        InputError: the result has lost its graph and none is given, or another graph than the explained one is given.
            The message says what to give to the method called ``verb``.
    """
    if data is None or model is None:
        if result._context is None:
            raise InputError(
                "this result was read from a file or unpickled, without its graph; "
                f"give {verb}() the graph and the model: {verb}(data, model)"
            )
        return result._context
    graph = Graph.of(data, None if isinstance(data, HeteroData) else result.directed)
    # One of many graphs is easily mistaken for another, and most of them have an edge 0–1.
    if result.task == "graph" and graph.fingerprint() != result.graph_id:
        raise InputError(f"this is not {result.target_name} as it was explained; give {verb}() that graph")
    if result.task != "node" or result.before.value is not None:
        return PlotContext(graph, np.full(graph.num_nodes, -1), ())
    return PlotContext.of(Predictor.of(model, graph, node_type=result.node_type))
