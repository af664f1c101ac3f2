"""One place that says whether a graph can be used, and if not, what is wrong with it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from butfor.boundary.json_values import shown
from butfor.errors import GraphError
from butfor.graph.stored import stored_of
from butfor.graph.stores import LazyRows

__all__ = ["check_name", "check_plain", "is_of_edges", "validate"]

# What torch can count and compare: not its newer unsigned numbers, nor what is packed.
_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
_NUMBERS = (*_INTEGERS, torch.float64, torch.float32, torch.float16, torch.bfloat16)

# What a Data has as attributes of its own and a graph may carry.
_OWN_PROPERTIES = ("batch", "edge_attr", "edge_index", "edge_weight", "pos", "time", "x", "y")


def check_name(path: object, name: object, what: str = "an attribute") -> None:
    """Refuse a name under which a Data cannot keep anything.

    Raises:
        GraphError: naming it.
    """
    is_name = isinstance(name, str) and name.isidentifier() and not name.startswith("_") and name != "self"
    if not is_name or (hasattr(Data, str(name)) and name not in (*_OWN_PROPERTIES, "num_nodes")):
        raise GraphError(f"{path} has {what} named {shown(name)}, which no graph can carry: rename it")


def validate(data: Data | HeteroData) -> None:
    """Refuse a graph that no method could work on; takes time linear in its arrays.

    A graph without edges is fine, one without nodes is not. `y` may have one row per node or one for the
    whole graph. What was opened from a folder was checked when that was written.

    Raises:
        GraphError: naming the first thing that is wrong.
    """
    if stored_of(data) is not None:
        return
    if isinstance(data, HeteroData):
        _validate_types(data)
        return
    if not isinstance(data, Data):
        raise GraphError(f"a graph must be a torch_geometric.data.Data or HeteroData, not a {type(data).__name__}")
    edge_index = _edge_index(data)
    nodes = _features(data).size(0)
    _check_range(edge_index, nodes)
    _check_store(data, nodes, edge_index.size(1))


def _check_store(data: Any, nodes: int, edges: int) -> None:
    """Refuse attributes of a graph, or of one of its types, that do not fit its nodes and edges."""
    for key in data.keys():  # noqa: SIM118 (a Data iterates over pairs)
        value = data[key]
        if isinstance(value, Tensor):
            _check_attribute(key, value, nodes, edges)
        elif value is not None and (key == "y" or key.endswith("_mask")):
            raise GraphError(f"{key} is a {type(value).__name__}, but must be a tensor of numbers")
        elif key == "class_names":
            _check_names(value)
        elif key in ("edge_attr", "edge_weight", "edge_type") and value is not None:
            raise GraphError(f"{key} is a {type(value).__name__}, but must be a tensor with a row for each edge")


def _check_names(value: Any) -> None:
    if value is not None and not isinstance(value, (list, tuple)):
        raise GraphError(f"class_names is a {type(value).__name__}, but must be a list of names")


def _validate_types(data: HeteroData) -> None:
    """The same for a graph of several node types, type by type."""
    if not data.node_types:
        raise GraphError("this graph is empty: it has no node types")
    _check_names(getattr(data, "class_names", None))
    for name in data.node_types:
        try:
            count = _features(data[name]).size(0)
            _check_store(data[name], count, count)
        except GraphError as error:
            raise GraphError(f"node type {name!r}: {error}") from None
    for relation in data.edge_types:
        source, _, target = relation
        try:
            unknown = [end for end in (source, target) if end not in data.node_types]
            if unknown:
                raise GraphError(f"node type {unknown[0]!r} is not in this graph")
            edge_index = _edge_index(data[relation])
            for row, (end, kind) in enumerate((("starts at", source), ("points to", target))):
                count = data[kind].x.size(0)
                outside = ((edge_index[row] < 0) | (edge_index[row] >= count)).nonzero()
                if len(outside):
                    edge = int(outside[0])
                    raise GraphError(
                        f"edge {edge} {end} {kind} {int(edge_index[row, edge])}, but there are {kind} 0 to {count - 1}"
                    )
            _check_store(data[relation], edge_index.size(1), edge_index.size(1))
        except GraphError as error:
            raise GraphError(f"relation {relation}: {error}") from None


def _edge_index(data: Any) -> Tensor:
    edge_index = data.edge_index if "edge_index" in data else None
    if not isinstance(edge_index, Tensor):
        hint = "give it a tensor of shape [2, edges]"
        if "adj_t" in data:
            hint = "it has adj_t; write row, col, _ = data.adj_t.t().coo(); data.edge_index = torch.stack([row, col])"
        raise GraphError(f"this graph has no edge_index: {hint}")
    check_plain("edge_index", edge_index)
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise GraphError(
            f"edge_index has shape {tuple(edge_index.shape)}, but must be [2, edges]: sources above targets"
        )
    if edge_index.dtype not in _INTEGERS:
        raise GraphError(f"edge_index is of dtype {edge_index.dtype}, but node numbers must be integers")
    return edge_index


def _features(data: Any) -> Tensor | LazyRows:
    x = data.x if "x" in data else None
    if not isinstance(x, (Tensor, LazyRows)):
        raise GraphError("this graph has no node features x: where there are none, use torch.ones(num_nodes, 1)")
    if isinstance(x, Tensor):
        check_plain("x", x)
    if x.dim() != 2:
        raise GraphError(f"x has shape {tuple(x.shape)}, but must be [nodes, features]")
    if x.size(0) == 0:
        raise GraphError("this graph is empty: it has no nodes")
    count: Any = data["num_nodes"] if "num_nodes" in data else x.size(0)
    is_one = isinstance(count, int) or (isinstance(count, Tensor) and count.numel() == 1 and count.dtype in _INTEGERS)
    if not is_one or int(count) != x.size(0):
        raise GraphError(f"x has {x.size(0)} rows, but the graph says it has {shown(count)} nodes")
    if x.dtype not in _NUMBERS:
        raise GraphError(f"x is of dtype {x.dtype}, but features must be floating or integers: use x.float()")
    if isinstance(x, Tensor):  # what is fetched from a store is looked at when it comes
        _check_finite("x", x, "node")
    return x


def check_plain(key: str, value: Tensor) -> None:
    """Refuse a tensor whose numbers are not simply there.

    Raises:
        GraphError: saying what it is instead.
    """
    if value.is_nested:
        raise GraphError(f"{key} is a nested tensor; use a plain one")
    if value.layout != torch.strided:
        raise GraphError(f"{key} is sparse; use {key}.to_dense()")
    if value.is_quantized:
        raise GraphError(f"{key} is quantized; use {key}.dequantize()")
    if value.is_meta:
        raise GraphError(f"{key} is on the meta device: it has a shape, but no numbers; load them first")


def _check_range(edge_index: Tensor, nodes: int) -> None:
    if edge_index.numel() == 0 or (int(edge_index.min()) >= 0 and int(edge_index.max()) < nodes):
        return
    outside = (edge_index < 0) | (edge_index >= nodes)
    edge = int(outside.any(dim=0).nonzero()[0])
    verb, row = ("starts at", 0) if bool(outside[0, edge]) else ("points to", 1)
    raise GraphError(f"edge {edge} {verb} node {int(edge_index[row, edge])}, but this graph has nodes 0 to {nodes - 1}")


def is_of_edges(key: str) -> bool:
    """Whether what has this name has a row for each edge."""
    named = key.startswith("edge_") and not key.startswith("edge_label") and key != "edge_index"
    return named or key.endswith("_edge_mask")


def _check_attribute(key: str, value: Tensor, nodes: int, edges: int) -> None:
    of_edges = is_of_edges(key)
    if of_edges or key in ("y", "node_motif", "batch") or key.endswith("_mask"):
        check_plain(key, value)
    rows = None if value.is_nested or not value.dim() else value.size(0)
    if key.endswith("_mask") and value.dtype != torch.bool:
        raise GraphError(f"{key} is of dtype {value.dtype}, but a mask must be boolean: use {key}.bool()")
    if of_edges:
        if rows != edges:
            raise GraphError(f"{key} has {_rows(rows)}, but this graph has {edges} edges")
        if value.dtype not in (*_NUMBERS, torch.bool):
            raise GraphError(f"{key} is of dtype {value.dtype}, but must be numbers: use {key}.float()")
        _check_finite(key, value, "edge")
    elif key == "node_motif" or key.endswith("_mask"):
        if rows != nodes:
            raise GraphError(f"{key} has {_rows(rows)}, but this graph has {nodes} nodes")
    elif key == "batch" and (rows != nodes or value.dim() != 1 or value.is_floating_point() or value.is_complex()):
        raise GraphError(f"batch must hold the number of a graph for each of the {nodes} nodes")
    elif key == "y" and rows not in (nodes, 1):
        raise GraphError(f"y has {_rows(rows)}, but this graph has {nodes} nodes (or give one for the whole graph)")


def _rows(rows: int | None) -> str:
    return "no rows (a single number)" if rows is None else f"{rows} row{'s' * (rows != 1)}"


def _check_finite(key: str, value: Tensor, what: str) -> None:
    # A finite sum means finite terms, and needs no second array; only a suspect is looked at one by one.
    if not value.is_floating_point() or bool(torch.isfinite(value.sum())):
        return
    bad = (~torch.isfinite(value)).nonzero()
    if len(bad):
        place = tuple(bad[0].tolist())
        where = f"{what} {place[0]}" + (f", column {place[1]}" if len(place) > 1 else "")
        raise GraphError(f"{key} of {where} is {value[place].item()}: {len(bad)} of its values are not finite")
