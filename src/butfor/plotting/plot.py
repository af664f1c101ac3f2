"""The picture of a result: its neighbourhood, or a molecule."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from torch_geometric.data import HeteroData

from butfor.errors import InputError
from butfor.graph.graph import Graph
from butfor.plotting.appearance import Appearance
from butfor.plotting.molecules.drawing import draw_molecule
from butfor.plotting.molecules.molecule import molecule_of
from butfor.plotting.picture import draw
from butfor.predict.predictor import Predictor
from butfor.result.context import PlotContext

if TYPE_CHECKING:
    import os

    from matplotlib.figure import Figure
    from torch import nn
    from torch_geometric.data import Data

    from butfor.result.counterfactual import Counterfactual

__all__ = ["context_of", "plot"]


def plot(
    result: Counterfactual,
    data: Data | HeteroData | None = None,
    model: nn.Module | None = None,
    *,
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """Draw a result; see `Counterfactual.plot`.

    Raises:
        InputError: the result has lost its graph and none is given, or another graph than the explained one is given.
    """
    context = result._context if data is None or model is None else context_of(result, model, data)
    if context is None:
        raise InputError(
            "this result was read from a file or unpickled, without its graph; "
            "give plot() the graph and the model: plot(data, model)"
        )
    molecule = molecule_of(context.graph) if result.task == "graph" and not result.changes else None
    if molecule is None:
        return draw(result, Appearance(context), path=path)
    return draw_molecule(
        molecule.symbols,
        molecule.bonds,
        removed=result.removed_edges,
        added=result.added_edges,
        truth=molecule.truth,
        title=str(result),
        caption=f"{result.verdict} {result.note}".strip(),
        path=path,
    )


def context_of(result: Counterfactual, model: nn.Module, data: Data | HeteroData) -> PlotContext:
    """The context that a result from a file has lost: the model is run on the graph once more."""
    graph = Graph.of(data, None if isinstance(data, HeteroData) else result.directed)
    # One of many graphs is easily mistaken for another, and most of them have an edge 0–1.
    if result.task == "graph" and graph.fingerprint() != result.graph_id:
        raise InputError(f"this is not {result.target_name} as it was explained; give plot() that graph")
    if result.task != "node" or result.before.value is not None:
        return PlotContext(graph, np.full(graph.num_nodes, -1), ())
    return PlotContext.of(Predictor.of(model, graph, node_type=result.node_type))
