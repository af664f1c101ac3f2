"""The description of a graph in a few plain values that fit into a JSON file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from butfor.graph.fingerprint import graph_fingerprint
from butfor.graph.validate import validate

if TYPE_CHECKING:
    import os

    from torch_geometric.data import Data

__all__ = ["describe"]


def describe(data: Data, path: str | os.PathLike[str] | None = None) -> dict[str, object]:
    """Return the graph's name, seed or path, its sizes, and its fingerprint, which results carry as ``graph_id``.

    Graphs with the same fingerprint get the same predictions. Labels and masks do not change it.

    Args:
        data: the graph.
        path: the file or folder that it was read from, if it was.

    Raises:
        GraphError: if the graph is malformed.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> described = butfor.datasets.describe(data)
        >>> described["name"], described["nodes"], described["edges"]
        ('tree-cycles', 871, 1950)
        >>> described["sha256"] == butfor.explain(model, data, 597).graph_id
        True
    """
    validate(data)
    info: dict[str, object] = {} if path is None else {"path": str(path)}
    info.update({key: data[key] for key in ("name", "seed", "class_names") if key in data})
    info.update(nodes=data.x.size(0), edges=data.edge_index.size(1), features=data.x.size(1))
    return {**info, "sha256": graph_fingerprint(data)}
