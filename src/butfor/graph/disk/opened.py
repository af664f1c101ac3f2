"""Opening a graph from its folder: nothing is read but `graph.json` and the first bytes of each array."""

from __future__ import annotations

import copy
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch_geometric.data import Data, HeteroData

from butfor.boundary.json_values import Misfit
from butfor.boundary.reading import reading
from butfor.errors import GraphError
from butfor.graph.csr import Incoming
from butfor.graph.disk.layout import HEADER, Array, Header, read_types
from butfor.graph.stored import KEY, Stored, attributes, stored_of
from butfor.graph.validate import check_name

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

    from butfor.graph.typed import Types

__all__ = ["DiskData", "DiskHeteroData", "open_graph"]


def open_graph(path: str | os.PathLike[str]) -> DiskData | DiskHeteroData:
    """Open a graph that `butfor convert` or `write_graph` wrote, without reading it.

    Args:
        path: the folder.

    Returns:
        A PyG ``Data`` (or ``HeteroData``) whose tensors are mapped from the files of the folder, to be given to
        `explain` and `prepare` like any other. Its tensors must not be written into: to change something, take a copy
        (``copy.copy(data)``, which is an ordinary ``Data``) and put other tensors there. It is pickled as its path.

    Raises:
        GraphError: there is no graph in the folder, or it is damaged.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> butfor.write_graph(data, "trees")
        >>> opened = butfor.open_graph("trees")
        >>> print(butfor.explain(model, opened, 597))
        Node 597 is predicted 'motif' (0.85). But for this 1 of its 14 edges it would be 'base' (0.54): 596–597.
    """
    folder = Path(path)
    with reading(folder):
        folder = folder.resolve()
    header = Header.read(folder)
    return attach(folder, header)


class _Opened:
    """What both kinds of graphs do when they are opened from a folder."""

    def __reduce__(self) -> Any:
        stored = stored_of(self)
        if stored is None:  # it was changed, and is no longer what the folder holds
            return copy.copy, (copy.copy(self),)
        return _reopened, (str(stored.path), stored.fingerprint)


class DiskData(_Opened, Data):  # type: ignore[misc]  # PyG has no types
    """A ``Data`` whose tensors are in the files of a folder; see `open_graph`."""

    def __copy__(self) -> Data:
        return Data.from_dict(self._store.to_dict())

    def __deepcopy__(self, memo: dict[int, Any]) -> Data:
        return self.__copy__().clone()


class DiskHeteroData(_Opened, HeteroData):  # type: ignore[misc]
    """A ``HeteroData`` whose tensors are in the files of a folder; see `open_graph`."""

    def __copy__(self) -> HeteroData:
        return HeteroData.from_dict(self.to_dict())

    def __deepcopy__(self, memo: dict[int, Any]) -> HeteroData:
        return self.__copy__().clone()


def _reopened(path: str, fingerprint: str) -> DiskData | DiskHeteroData:
    """Open a graph in another process, where it must be the one that was sent."""
    data = open_graph(path)
    found = data.__dict__[KEY].fingerprint
    if found != fingerprint:
        raise GraphError(f"{path} is no longer the graph that it was: {found} instead of {fingerprint}")
    return data


def attach(folder: Path, header: Header) -> DiskData | DiskHeteroData:
    """The graph in a folder, given what its `graph.json` says or will say.

    Raises:
        GraphError: an array is missing or another one.
    """
    arrays = {place: _mapped(folder / f"{place}.npy", array) for place, array in header.arrays.items()}
    try:
        types = None if header.types is None else read_types(header.types)
        _check_parts(header, types)
    except Misfit as problem:
        path = folder / HEADER
        raise GraphError(f"{path} does not describe a graph: {problem}; convert the graph again") from problem
    pointers, edge_index = arrays["pointers"], arrays["edge_index"]
    if pointers[0] != 0 or pointers[-1] != header.num_edges:
        raise GraphError(
            f"{folder / 'pointers.npy'} is damaged: it does not end with {header.num_edges}; convert again"
        )
    incoming = Incoming(pointers, arrays.get("columns"), arrays.get("senders", edge_index[0]))
    data = _one_type(folder, header, arrays) if types is None else _typed(folder, header, arrays, types)
    data.__dict__[KEY] = Stored(
        path=folder,
        fingerprint=header.fingerprint,
        directed=header.directed,
        reversible=header.reversible,
        edge_index=edge_index,
        incoming=incoming,
        types=types,
        held=attributes(data),
    )
    return data


def _mapped(path: Path, array: Array) -> NDArray[Any]:
    if not path.is_file():
        raise GraphError(f"{path} is missing: convert the graph again")
    with reading(path, kind="as .npy"):
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    if Array.of(found) != array:
        raise GraphError(f"{path} is {Array.of(found)}, but {HEADER} says {array}: convert the graph again")
    return np.asarray(found)


def _check_parts(header: Header, types: Types | None) -> None:
    """Refuse arrays that do not fit together."""
    nodes, edges = header.num_nodes, header.num_edges
    needed = {"edge_index": (2, edges), "pointers": (nodes + 1,)}
    groups = {"node": nodes, "edge": edges}
    if types is not None:
        needed |= {"columns": (edges,), "senders": (edges,)}
        counts = np.diff(types.edge_starts).tolist()
        groups = {f"node/{i}": n for i, n in enumerate(np.diff(types.node_starts).tolist())}
        groups |= {f"edge/{i}": n for i, n in enumerate(counts)}
        needed |= {f"edge/{i}/edge_index": (2, n) for i, n in enumerate(counts)}
        if (types.node_starts[-1], types.edge_starts[-1]) != (nodes, edges):
            raise Misfit(f"its types do not have {nodes} nodes and {edges} edges")
    for place, shape in needed.items():
        if header.arrays.get(place) != Array("<i8", shape):
            raise Misfit(f"{place} is {header.arrays.get(place, 'missing')}, but must be {Array('<i8', shape)}")
    for group, rows in groups.items():
        held = {place: array for place, array in header.arrays.items() if place.rpartition("/")[0] == group}
        x = held.get(f"{group}/x")
        if group.startswith("node") and (x is None or len(x.shape) != 2 or x.dtype[1] not in "iuf"):
            raise Misfit(f"{group}/x is {x or 'missing'}, but must be a row of numbers for each node")
        for place, array in held.items():
            if place not in needed and array.shape[:1] != (rows,):
                raise Misfit(f"{place} is {array}, but must have {rows} rows")


def _group(folder: Path, header: Header, arrays: dict[str, NDArray[Any]], *groups: str) -> dict[str, Any]:
    """What some groups of arrays and values hold, by name."""
    held: dict[str, Any] = {}
    for place, array in arrays.items():
        group, _, name = place.rpartition("/")
        if group in groups:
            check_name(folder, name, "an array")
            held[name] = array if array.dtype.kind == "U" else as_tensor(array)
    for group in groups:
        for name, value in header.values.get(group, {}).items():
            check_name(folder, name, "a value")
            held[name] = value
    return held


def _one_type(folder: Path, header: Header, arrays: dict[str, NDArray[Any]]) -> DiskData:
    held = _group(folder, header, arrays, "node", "edge", "graph")
    return DiskData(**{**held, "edge_index": as_tensor(arrays["edge_index"])})


def _typed(folder: Path, header: Header, arrays: dict[str, NDArray[Any]], types: Types) -> DiskHeteroData:
    data = DiskHeteroData()
    for name, value in _group(folder, header, arrays, "graph").items():
        setattr(data, name, value)
    for prefix, kinds in (("node", types.node_types), ("edge", types.relations)):
        for number, kind in enumerate(kinds):
            groups = f"{prefix}/{number}", f"graph/{prefix}/{number}"
            for name, value in _group(folder, header, arrays, *groups).items():
                data[kind][name] = value
    return data


def as_tensor(array: NDArray[Any]) -> torch.Tensor:
    """A tensor that shares the memory of an array, which may be mapped and read-only."""
    with warnings.catch_warnings():
        # Nothing writes into it: whatever a model gets is a copy.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array)
