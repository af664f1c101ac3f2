"""What a model can read of a graph besides features and edges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor
    from torch_geometric.data import Data
    from torch_geometric.data.storage import EdgeStorage, NodeStorage

__all__ = ["EDGE_FIELDS", "edge_fields", "node_fields"]

EDGE_FIELDS = ("edge_weight", "edge_attr", "edge_type")

# What is known of nodes and not shown to a model; nor are masks, which say what people do with nodes.
_ANNOTATIONS = ("x", "y", "batch", "ptr", "edge_index", "node_motif", "node_ids")


def node_fields(data: Data | NodeStorage) -> dict[str, Tensor]:
    """What the nodes of one type have besides features and labels: positions, say."""
    found = {name: data[name] for name in data.keys()}  # noqa: SIM118 (a Data iterates over pairs)
    return {
        name: value.detach()
        for name, value in found.items()
        if isinstance(value, torch.Tensor)
        and name not in _ANNOTATIONS
        and not name.startswith("edge_")
        and not (name.endswith("_mask") and value.dtype == torch.bool)
        and value.dim()
        and value.size(0) == data.num_nodes
    }


def edge_fields(data: Data | EdgeStorage) -> dict[str, Tensor]:
    """What the edges of one type carry: weights, attributes, types."""
    found = {name: data.get(name) for name in EDGE_FIELDS}
    return {name: value.detach() for name, value in found.items() if value is not None}
