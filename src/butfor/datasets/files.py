"""A user's own graph from disk: one entry that looks at what the path is."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
from torch_geometric.data.storage import BaseStorage, EdgeStorage, GlobalStorage, NodeStorage

from butfor.datasets.npz import laid_out, read_npz
from butfor.datasets.planetoid import read_planetoid
from butfor.datasets.tables import read_tables
from butfor.datasets.tu import read_tu
from butfor.errors import GraphError, InputError
from butfor.files.json_values import shown
from butfor.files.limits import array_bytes, check_size
from butfor.files.reading import check_file, reading
from butfor.graph.validate import check_name, check_plain, is_of_edges, validate

if TYPE_CHECKING:
    import os

__all__ = ["load_graph", "load_graphs"]

_TABLES = (".csv", ".parquet")
_PARTS = [BaseStorage, DataEdgeAttr, DataTensorAttr, EdgeStorage, GlobalStorage, NodeStorage]
_KINDS = ".npz, .csv or .parquet (with nodes=), .pt, or a folder with Planetoid or TUDataset raw files"


def load_graph(
    path: str | os.PathLike[str], *, nodes: str | os.PathLike[str] | None = None, undirected: bool = False
) -> Data:
    """Return the one graph that a file or folder holds. Nothing is written, fetched or executed.

    | path | what is read |
    |---|---|
    | `.npz` | arrays `edge_index`, `x` and optional ones; see `butfor.datasets.npz` |
    | `.csv`, `.parquet` | an edge list, with the node table `nodes`; see `butfor.datasets.tables` |
    | `.pt` | a PyG `Data` written by `torch.save`, read with `weights_only=True` |
    | a folder | the raw files of a `Planetoid` or `TUDataset`, in it or in its folder `raw` |

    With `undirected`, each edge whose other direction is missing gets it, with the same attributes: for
    edge lists that name every edge once.

    Raises:
        InputError: if `nodes` is missing for an edge list, or given for anything else.
        GraphError: if the path is missing, of an unknown kind, damaged, unsafe or malformed.
    """
    graphs = load_graphs(path, nodes=nodes, undirected=undirected)
    if len(graphs) != 1:
        raise GraphError(f"{path} holds {len(graphs)} graphs: use load_graphs and choose one")
    return graphs[0]


def load_graphs(
    path: str | os.PathLike[str], *, nodes: str | os.PathLike[str] | None = None, undirected: bool = False
) -> list[Data]:
    """Return all graphs that a file or folder holds, such as the molecules of a TUDataset folder.

    Takes what `load_graph` takes; a `.pt` file may hold a list of `Data`.

    Raises:
        InputError, GraphError: as `load_graph`.
    """
    path = Path(path)
    with reading(path):
        there = path.exists()
    if not there:
        raise GraphError(f"there is no file or folder {path}")
    if nodes is not None and path.suffix not in _TABLES:
        raise InputError(f"nodes= goes with an edge list in .csv or .parquet, not with {path.name}")
    if path.is_dir():
        graphs = _read_folder(path)
    elif path.suffix == ".npz":
        graphs = [read_npz(path)]
    elif path.suffix == ".pt":
        graphs = _read_pt(path)
    elif path.suffix in _TABLES:
        if nodes is None:
            raise InputError(f"the edge list {path.name} needs its node table: load_graph(..., nodes='nodes.csv')")
        graphs = [read_tables(path, Path(nodes))]
    else:
        raise GraphError(f"{path.name} is of no known kind: expected {_KINDS}")
    if undirected:
        for graph in graphs:
            _add_missing_directions(graph)
    return graphs


def _read_folder(folder: Path) -> list[Data]:
    for place in (folder, folder / "raw"):
        for end, read in ((".graph", _planetoid), ("_graph_indicator.txt", read_tu)):
            start = "ind." if end == ".graph" else ""
            found = sorted(entry.name for entry in place.glob(f"{start}*{end}"))
            if len(found) > 1:
                raise GraphError(f"{place} holds more than one dataset: {', '.join(found)}; keep one per folder")
            if found:
                return read(place, found[0].removeprefix(start).removesuffix(end))
    raise GraphError(
        f"{folder} has no raw files of a Planetoid (ind.*.graph) or a TUDataset (*_graph_indicator.txt), "
        "neither in it nor in its folder raw"
    )


def _planetoid(folder: Path, prefix: str) -> list[Data]:
    return [read_planetoid(folder, prefix)]


def _read_pt(path: Path) -> list[Data]:
    check_file(path)
    _check_archive(path)
    try:
        # PyG declares Data safe to read, but not all that it is made of; nothing else is let through.
        with reading(path), torch.serialization.safe_globals(_PARTS):
            loaded: Any = torch.load(path, map_location="cpu", weights_only=True)
    except GraphError as problem:
        if asked := re.search(r"GLOBAL (\S+)|function (\S+)|class (\S+)", str(problem.__cause__)):
            raise GraphError(
                f"{path} holds more than tensors and a PyG Data: it asks for {asked[asked.lastindex or 0][:100]}, "
                "which could run code, so it was not read. Save the graph with save_graph(data, 'graph.npz')"
            ) from problem
        raise GraphError(f"{path} is damaged or was not written by torch.save") from problem
    graphs = loaded if isinstance(loaded, list) and loaded else [loaded]
    return [_rebuilt(path, graph) for graph in graphs]


def _check_archive(path: Path) -> None:
    """Refuse a file that would grow when it is read; torch.save compresses nothing."""
    with reading(path):
        if not zipfile.is_zipfile(path):
            return  # as torch.save wrote formerly: all numbers stand in the file
        with zipfile.ZipFile(path) as archive:
            claimed = sum(info.file_size for info in archive.infolist())
    check_size(claimed, str(path))


def _rebuilt(path: Path, graph: Any) -> Data:
    """The same graph made anew: what a file says about the inside of a Data is not relied on."""
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
            # A tensor may say that it is larger than what is stored of it.
            claimed += array_bytes(value.shape, value.element_size())
            check_size(claimed, str(path))
            fields[name] = laid_out(value)
        elif name == "y":
            raise GraphError(f"y of {path} is {shown(value)}, but must be a tensor")
    data = Data(**fields)
    validate(data)
    return data


def _add_missing_directions(data: Data) -> None:
    source, target = data.edge_index.long()
    nodes = data.x.size(0)
    lonely = ~torch.isin(target * nodes + source, source * nodes + target)
    for key in data.keys():  # noqa: SIM118 (a Data iterates over pairs)
        value = data[key]
        if is_of_edges(key) and isinstance(value, Tensor):
            data[key] = torch.cat([value, value[lonely]])
    data.edge_index = torch.cat([data.edge_index, data.edge_index.flip(0)[:, lonely]], dim=1)
