"""What a model can read of a graph, and the fingerprint over all of it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import torch
from torch_geometric.data import HeteroData

if TYPE_CHECKING:
    from torch import Tensor
    from torch_geometric.data import Data

__all__ = ["EDGE_FIELDS", "edge_fields", "fingerprint", "node_fields", "raw"]

EDGE_FIELDS = ("edge_weight", "edge_attr", "edge_type")

# What is known of nodes and not shown to a model; nor are masks, which say what people do with nodes.
_ANNOTATIONS = ("x", "y", "batch", "ptr", "edge_index", "node_motif", "node_ids")


def node_fields(data: Data) -> dict[str, Tensor]:
    """What the nodes of a graph of one type have besides features and labels: positions, say."""
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


def edge_fields(data: Data) -> dict[str, Tensor]:
    """What the edges of a graph of one type carry: weights, attributes, types."""
    found = {name: getattr(data, name, None) for name in EDGE_FIELDS}
    return {name: value.detach() for name, value in found.items() if value is not None}


def fingerprint(data: Data | HeteroData) -> str:
    """A short hash of everything that a model can read of this graph; labels, masks and names do not count."""
    digest = hashlib.sha256(str(int(data.num_nodes or 0)).encode())
    tensors: dict[str, Tensor]
    if isinstance(data, HeteroData):
        stores = {**dict(data.node_items()), **dict(data.edge_items())}
        names = ("x", "edge_index", *EDGE_FIELDS)
        tensors = {f"{kind}{name}": one[name] for kind, one in stores.items() for name in names if name in one}
    else:
        tensors = {
            "edge_index": data.edge_index,
            "x": data.x,
            **edge_fields(data),
            **dict(sorted(node_fields(data).items())),
        }
        if isinstance(data.get("batch"), torch.Tensor):
            tensors["batch"] = data.batch
    for name, value in tensors.items():
        digest.update(f"{name}{str(value.dtype).removeprefix('torch.')}{tuple(value.shape)}".encode())
        digest.update(raw(value))
    return digest.hexdigest()[:16]


def raw(value: Tensor) -> memoryview:
    """The bytes of a tensor, for a hash; NumPy does not know all types that torch has."""
    flat = value.detach().cpu().reshape(-1)
    flat = flat if flat.stride() == (1,) else flat.clone()  # an expanded tensor of one number has stride 0
    return flat.view(torch.uint8).numpy().data
