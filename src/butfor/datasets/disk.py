"""Graphs on disk among the other formats: a folder with a `graph.json`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch_geometric.data import HeteroData

from butfor.errors import GraphError
from butfor.graph.disk.opened import open_graph

if TYPE_CHECKING:
    from pathlib import Path

    from torch_geometric.data import Data

__all__ = ["read_folder"]


def read_folder(marker: Path) -> Data:
    """Open the graph in whose folder this `graph.json` is.

    Raises:
        GraphError: it is damaged, or of several node types.
    """
    data = open_graph(marker.parent)
    if isinstance(data, HeteroData):
        raise GraphError(
            f"{marker.parent} holds a graph of several node types; only Python takes these: butfor.open_graph"
        )
    return data
