"""What a graph is, in a few plain values that fit into a JSON file."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from .validate import validate

if TYPE_CHECKING:
    import os

    from torch_geometric.data import Data

__all__ = ["describe"]


def describe(data: Data, path: str | os.PathLike[str] | None = None) -> dict[str, object]:
    """Return name, seed or path, sizes, and a hash of all that a model sees of the graph.

    The hash covers the edges in their order, the features and the edge weights and attributes: two graphs
    with the same hash get the same predictions. Labels and masks do not count.

    Raises:
        GraphError: if the graph is malformed.
    """
    validate(data)
    digest = hashlib.sha256()
    for key in ("edge_index", "x", "edge_weight", "edge_attr"):
        if key in data:
            array = np.ascontiguousarray(data[key].detach().cpu().numpy())
            digest.update(f"\0{key}\0{array.dtype}\0{array.shape}\0".encode())
            digest.update(array.data)
    info: dict[str, object] = {} if path is None else {"path": str(path)}
    info.update({key: data[key] for key in ("name", "seed", "class_names") if key in data})
    info.update(nodes=data.x.size(0), edges=data.edge_index.size(1), features=data.x.size(1))
    return {**info, "sha256": digest.hexdigest()[:16]}
