"""Graphs that `torch.save` wrote: a PyG `Data` or a list of them, read without running any code."""

from __future__ import annotations

import re
import zipfile
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
from torch_geometric.data.storage import BaseStorage, EdgeStorage, GlobalStorage, NodeStorage

from butfor.boundary.json_values import shown
from butfor.boundary.limits import array_bytes, check_size
from butfor.boundary.reading import check_file, reading
from butfor.datasets.npz import materialized
from butfor.errors import GraphError
from butfor.graph.validate import check_name, check_plain, validate

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["read_pt"]

# PyG declares Data safe to read, but not everything that a Data is made of. Nothing else is let through.
_PARTS_OF_A_DATA = [BaseStorage, DataEdgeAttr, DataTensorAttr, EdgeStorage, GlobalStorage, NodeStorage]


def read_pt(path: Path, *, mapped: bool = False) -> list[Data]:
    """Return the graphs of a `.pt` file, read with `weights_only=True`.

    If they are to be ``mapped``, numbers are read from the file when they are needed, so it must stay as it is.

    Raises:
        GraphError: if the file is damaged, asks to run code, or holds something else than homogeneous graphs.
    """
    check_file(path)
    # What older versions of torch wrote cannot be mapped.
    mapped = mapped and zipfile.is_zipfile(path)
    if not mapped:
        _check_archive(path)
    try:
        with reading(path), torch.serialization.safe_globals(_PARTS_OF_A_DATA):
            loaded: Any = torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    except GraphError as problem:
        if asked := re.search(r"GLOBAL (\S+)|function (\S+)|class (\S+)", str(problem.__cause__)):
            raise GraphError(
                f"{path} holds more than tensors and a PyG Data: it asks for {asked[asked.lastindex or 0][:100]}, "
                "which could run code, so it was not read. Save the graph with save_graph(data, 'graph.npz')"
            ) from problem
        raise GraphError(f"{path} is damaged or was not written by torch.save") from problem
    graphs = loaded if isinstance(loaded, list) and loaded else [loaded]
    return [_rebuilt(path, graph, mapped) for graph in graphs]


def _check_archive(path: Path) -> None:
    """Refuse a file that claims to grow when it is read: torch.save itself does not compress."""
    with reading(path):
        if not zipfile.is_zipfile(path):
            return  # the format of older versions of torch, in which nothing is compressed either
        with zipfile.ZipFile(path) as archive:
            claimed = sum(info.file_size for info in archive.infolist())
    check_size(claimed, str(path))


def _rebuilt(path: Path, graph: Any, mapped: bool) -> Data:
    """Build the graph anew from its attributes, because the internal state of a Data from a file cannot be trusted."""
    if isinstance(graph, HeteroData):
        raise GraphError(
            f"{path} holds a graph of several node types (HeteroData); only Python takes these: butfor.explain"
        )
    if not isinstance(graph, Data):
        validate(graph)
    with reading(path):
        fields: dict[str, Any] = {name: value for name, value in graph.to_dict().items() if value is not None}
    claimed = 0
    for name, value in fields.items():
        check_name(path, name)
        if isinstance(value, Tensor):
            check_plain(name, value)
            if not (mapped and value.is_contiguous()):
                # An expanded tensor is larger than what is stored of it.
                claimed += array_bytes(value.shape, value.element_size())
                check_size(claimed, str(path))
            fields[name] = materialized(value)
        elif name == "y":
            raise GraphError(f"y of {path} is {shown(value)}, but must be a tensor")
    data = Data(**fields)
    validate(data)
    return data
