"""The picture of a result: its neighbourhood, or a molecule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from butfor.boundary.printable import printable
from butfor.plotting.appearance import Appearance
from butfor.plotting.molecules.drawing import draw_molecule
from butfor.plotting.molecules.molecule import molecule_of
from butfor.plotting.picture import draw
from butfor.plotting.svg import inline_svg
from butfor.result.recovered import context_of

if TYPE_CHECKING:
    import os

    from matplotlib.figure import Figure
    from torch import nn
    from torch_geometric.data import Data, HeteroData

    from butfor.result.context import PlotContext
    from butfor.result.counterfactual import Counterfactual

__all__ = ["plot", "svg"]

# A notebook shows results without being asked for a picture, so one that would take seconds is not drawn there.
MOST_EDGES = 200_000


def plot(
    result: Counterfactual,
    data: Data | HeteroData | None = None,
    model: nn.Module | None = None,
    *,
    path: str | os.PathLike[str] | None = None,
    edge_labels: str | None = None,
) -> Figure:
    """Draw a result; see `Counterfactual.plot`.

    Raises:
        InputError: the result has lost its graph and none is given, another graph than the explained one is given, or
            the graph has no such edge attribute.
    """
    return _drawn(result, context_of(result, data, model, "plot"), path=path, edge_labels=edge_labels)


def svg(result: Counterfactual) -> str | None:
    """The picture of a result as a part of an HTML page that has its words already; None for large neighbourhoods.

    Raises:
        InputError: the result has lost its graph, or matplotlib is not installed.
    """
    context = context_of(result, None, None, "plot")
    if result.edges > MOST_EDGES:
        return None
    return inline_svg(_drawn(result, context, has_words=False), str(result))


def _drawn(
    result: Counterfactual,
    context: PlotContext,
    *,
    path: str | os.PathLike[str] | None = None,
    edge_labels: str | None = None,
    has_words: bool = True,
) -> Figure:
    is_plain = result.task == "graph" and not result.changes and edge_labels is None
    molecule = molecule_of(context.graph) if is_plain else None
    if molecule is None:
        return draw(result, Appearance(context), path=path, edge_labels=edge_labels, has_words=has_words)
    return draw_molecule(
        molecule.symbols,
        molecule.bonds,
        removed=result.removed_edges,
        added=result.added_edges,
        truth=molecule.truth,
        names=[printable(context.name_of(atom)) for atom in range(len(molecule.symbols))],
        title=str(result) if has_words else "",
        caption=f"{result.verdict} {result.note}".strip() if has_words else "",
        path=path,
    )
