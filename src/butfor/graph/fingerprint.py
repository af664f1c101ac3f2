"""Every fingerprint: short hashes that tell graphs, models and edit rules apart, over all that a model can read."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch_geometric.data import HeteroData

from butfor.errors import ModelError
from butfor.graph.fields import EDGE_FIELDS, edge_fields, node_fields
from butfor.graph.stored import stored_of
from butfor.graph.stores import LazyRows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray
    from torch_geometric.data import Data

__all__ = [
    "DIGITS",
    "add_tensors",
    "array_fingerprint",
    "graph_fingerprint",
    "model_fingerprint",
    "model_tensors",
    "tensors_fingerprint",
    "text_fingerprint",
]

# Hexadecimal digits of a fingerprint.
DIGITS = 16


def graph_fingerprint(data: Data | HeteroData) -> str:
    """A hash of everything that a model can read of this graph; labels, masks and names do not count.

    The folder of a graph on disk has it written down.
    """
    stored = stored_of(data)
    return tensors_fingerprint(data) if stored is None else stored.fingerprint


def tensors_fingerprint(data: Data | HeteroData) -> str:
    """The same, computed. Arrays on disk are read from one end to the other, and never held."""
    digest = hashlib.sha256(str(int(data.num_nodes or 0)).encode())
    tensors: dict[str, Tensor | LazyRows]
    if isinstance(data, HeteroData):
        stores = {**dict(data.node_items()), **dict(data.edge_items())}
        names = ("x", "edge_index", *EDGE_FIELDS, "batch")
        tensors = {f"{kind}{name}": one[name] for kind, one in stores.items() for name in names if name in one}
        for kind, one in data.node_items():
            tensors |= {f"{kind}{name}": value for name, value in sorted(node_fields(one).items())}
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
        for part in value.blocks() if isinstance(value, LazyRows) else (value,):
            digest.update(_bytes(part))
    return digest.hexdigest()[:DIGITS]


def model_fingerprint(model: nn.Module) -> str:
    """A hash that changes with the model's classes, settings, shapes or any weight; results carry it as ``model_id``.

    Args:
        model: any module.

    Raises:
        ModelError: a layer has no size yet.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> butfor.models.fingerprint(model) == butfor.explain(model, data, 597).model_id
        True
    """
    digest = hashlib.sha256()
    # A model that torch compiled is the one that it was made from.
    model = getattr(model, "_orig_mod", model)
    for name, module in model.named_modules():
        kind = type(module)
        # Such as the aggregation of a layer, which no weight shows.
        settings = sorted(
            (key, value)
            for key, value in vars(module).items()
            if key != "training" and not key.startswith("_") and isinstance(value, (bool, int, float, str))
        )
        digest.update(f"\0{name}\0{kind.__module__}.{kind.__qualname__}\0{settings}".encode())
    add_tensors(digest, dict(sorted(model_tensors(model).items())))
    return digest.hexdigest()[:DIGITS]


def model_tensors(model: nn.Module) -> dict[str, Tensor]:
    """The weights and buffers of a model, by name.

    Raises:
        ModelError: a layer has no size yet, or keeps something else than a tensor.
    """
    state = model.state_dict()
    for name, tensor in state.items():
        if not isinstance(tensor, Tensor):
            raise ModelError(f"{type(model).__name__} keeps a {type(tensor).__name__} as {name}, not a tensor")
        if is_lazy(tensor):
            raise ModelError(f"{name} of {type(model).__name__} has no size yet: run the model once on the graph")
    return state


def text_fingerprint(text: str) -> str:
    """A hash of what is written down completely as text, such as the rules of an edit space."""
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def array_fingerprint(*arrays: NDArray[Any]) -> str:
    """A hash of the numbers in some arrays."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:DIGITS]


def add_tensors(digest: hashlib._Hash, tensors: Mapping[str, Tensor]) -> None:
    """Let a hash depend on names, types, shapes and values of tensors."""
    for name, value in tensors.items():
        digest.update(f"\0{name}\0{value.dtype}\0{tuple(value.shape)}\0".encode())
        digest.update(_bytes(value))


def _bytes(value: Tensor) -> memoryview:
    """The bytes of a tensor; NumPy does not know all types that torch has."""
    flat = value.detach().cpu().reshape(-1)
    flat = flat if flat.stride() == (1,) else flat.clone()  # an expanded tensor of one number has stride 0
    return flat.view(torch.uint8).numpy().data
