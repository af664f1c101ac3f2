"""Writing a graph that is in memory to a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch_geometric.data import HeteroData

from butfor.boundary.arguments import is_number
from butfor.errors import GraphError, InputError
from butfor.graph.csr import Incoming
from butfor.graph.disk.layout import Header, plain_types
from butfor.graph.disk.partial import PartialFolder
from butfor.graph.disk.writer import MEMORY, GraphWriter, with_fingerprint
from butfor.graph.typed import Types
from butfor.graph.validate import is_of_edges, validate

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from torch_geometric.data import Data

__all__ = ["write_graph"]

_DTYPES = (
    *(torch.float64, torch.float32, torch.float16, torch.bool),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8),
)


def write_graph(
    data: Data | HeteroData,
    folder: str | os.PathLike[str] | PartialFolder,
    *,
    directed: bool | None = None,
    undirected: bool = False,
    memory: int = MEMORY,
    force: bool = False,
    progress: bool = False,
) -> None:
    """Write a graph with all it has to a folder, from which `butfor.open_graph` opens it without reading it.

    Nodes keep their numbers. Edges are sorted: by relation, by the node that they lead to, by the node they come from.

    Args:
        data: the graph.
        folder: where to write it; it appears when all is written.
        directed: whether the graph is directed; by default this is found out.
        undirected: add the reverse of each edge that has none; not for graphs of several types.
        memory: how many bytes edges may take while they are sorted; by default 1 GiB.
        force: replace a graph that is there already.
        progress: show progress bars on standard error, where that is a terminal.

    Raises:
        InputError: there is something in that place already.
        GraphError: the graph is malformed, has something that no file can hold, or cannot be written.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> butfor.write_graph(data, "trees")
        >>> opened = butfor.open_graph("trees")
        >>> opened.num_nodes, opened.num_edges
        (871, 1950)
        >>> butfor.write_graph(data, "trees", force=True)  # a graph that is there already is only replaced on demand
    """
    validate(data)
    if isinstance(data, HeteroData):
        if undirected:
            raise InputError("in a graph of several types it is not known which relation holds the reverses: add them")
        _write_types(data, folder, force)
        return
    nodes, edges = int(data.num_nodes or 0), int(data.num_edges)
    parts = _sorted_out(data, nodes, edges)
    options: dict[str, Any] = {"undirected": undirected, "memory": memory, "force": force, "progress": progress}
    with GraphWriter(folder, nodes, **options) as writer:
        for name, array in parts["node"].items():
            writer.nodes(name, array)
        for name, array in parts["graph"].items():
            writer.other(name, array)
        source, target = parts["edge"].pop("edge_index")
        for part in _slices(edges):
            writer.edges(source[part], target[part], **{name: array[part] for name, array in parts["edge"].items()})
        writer.finish(directed, **parts["values"])


def _slices(edges: int) -> Iterator[slice]:
    size = 2**20
    for first in range(0, max(edges, 1), size):  # also a graph without edges says what they would carry
        yield slice(first, first + size)


def _sorted_out(data: Any, nodes: int, edges: int) -> dict[str, dict[str, Any]]:
    """What belongs to nodes, edges and the graph as arrays, and what is no array."""
    parts: dict[str, dict[str, Any]] = {"node": {}, "edge": {}, "graph": {}, "values": {}}
    for name in data.keys():  # noqa: SIM118 (a Data iterates over pairs)
        value = data[name]
        if value is None or name == "num_nodes":
            continue
        array = _as_array(name, value, nodes)
        if array is None:
            parts["values"][name] = _plain(name, value)
            continue
        parts[_owner(name, array, nodes, edges)][name] = array
    return parts


def _owner(name: str, array: NDArray[Any], nodes: int, edges: int) -> str:
    """Whether an array has a row for each node or edge; what has one for each edge is sorted with the edges."""
    rows = array.shape[0] if array.ndim else None
    if is_of_edges(name) or name == "edge_index":
        return "edge"
    if rows == nodes:
        return "node"
    # Lists of pairs, such as edge_label_index, are no rows of edges, however many there are.
    apart = "index" in name or name.startswith("edge_label") or name == "y"
    return "edge" if rows == edges and not apart else "graph"


def _as_array(name: str, value: Any, nodes: int) -> NDArray[Any] | None:
    """A tensor, or names of all nodes, as an array; None for anything else."""
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided or value.dtype not in _DTYPES:
            raise GraphError(f"attribute {name} is a tensor of {value.dtype}, which no .npy file holds: use .float()")
        return value.detach().cpu().resolve_neg().numpy()
    is_list = isinstance(value, (list, tuple, np.ndarray)) and len(value) == nodes
    if isinstance(value, np.ndarray) or (name == "node_ids" and is_list):
        array = np.asarray(value)
        if array.dtype.kind == "O" or array.dtype.kind not in "biufU":
            raise GraphError(f"attribute {name} has neither numbers nor text alone: no file can hold it")
        return array
    return None


def _plain(name: str, value: Any) -> Any:
    """A value that JSON can hold."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if is_number(value):
        return value.item() if hasattr(value, "item") else value
    if isinstance(value, (list, tuple)):
        return [_plain(name, one) for one in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _plain(name, one) for key, one in value.items()}
    raise GraphError(f"attribute {name} is a {type(value).__name__}, which no file can hold: remove it first")


def _write_types(data: HeteroData, folder: str | os.PathLike[str] | PartialFolder, force: bool) -> None:
    """The same for several node types, whose edges are sorted in memory."""
    with folder if isinstance(folder, PartialFolder) else PartialFolder(folder, force=force) as partial:
        values: dict[str, dict[str, Any]] = {}
        ordered = HeteroData()
        for number, kind in enumerate(data.node_types):
            rows = data[kind].x.size(0)
            parts = _sorted_out(data[kind], rows, -1)
            ordered[kind].num_nodes = rows
            _put(partial, f"node/{number}", {**parts["node"], **parts["edge"]})
            _put(partial, f"graph/node/{number}", parts["graph"])
            values[f"node/{number}"] = parts["values"]
        for number, relation in enumerate(data.edge_types):
            count = data[relation].edge_index.size(1)
            parts = _sorted_out(data[relation], -1, count)
            source, target = edge_index = parts["edge"].pop("edge_index").astype(np.int64, copy=False)
            order = np.lexsort((source, target))
            sorted_edges = edge_index[:, order]
            partial.put(f"edge/{number}/edge_index", sorted_edges)
            _put(partial, f"edge/{number}", {name: array[order] for name, array in parts["edge"].items()})
            _put(partial, f"graph/edge/{number}", parts["graph"])
            ordered[relation].edge_index = torch.from_numpy(sorted_edges)
            values[f"edge/{number}"] = parts["values"]
        types, edge_index = Types.of(ordered)
        incoming = Incoming.of(edge_index, int(types.node_starts[-1]), "source_to_target")
        assert incoming.columns is not None
        index = {"pointers": incoming.pointers, "columns": incoming.columns, "senders": incoming.senders}
        for name, array in {"edge_index": edge_index, **index}.items():
            partial.put(name, array)
        parts = _sorted_out(data._global_store, -1, -1)
        _put(partial, "graph", {**parts["edge"], **parts["graph"]})
        values["graph"] = parts["values"]
        header = Header(
            num_nodes=int(types.node_starts[-1]),
            num_edges=edge_index.shape[1],
            directed=True,
            reversible=False,
            fingerprint="",
            arrays=partial.arrays,
            values=values,
            types=plain_types(types),
        )
        partial.commit(with_fingerprint(partial, header))


def _put(partial: PartialFolder, group: str, arrays: dict[str, NDArray[Any]]) -> None:
    for name, array in arrays.items():
        partial.put(f"{group}/{name}", array)
