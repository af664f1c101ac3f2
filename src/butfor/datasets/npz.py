"""Graphs as plain `.npz` arrays: a format that needs no pickle and loses nothing."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from torch_geometric.data import Data

from butfor.boundary.atomic import atomic_write
from butfor.boundary.json_values import shown
from butfor.boundary.limits import array_bytes, check_size
from butfor.boundary.reading import check_file, reading
from butfor.datasets.scratch import Memory
from butfor.errors import ButforError, GraphError, InputError
from butfor.graph.disk.opened import as_tensor
from butfor.graph.validate import check_name, validate

if TYPE_CHECKING:
    import os

    import numpy.typing as npt

__all__ = ["materialized", "read_arrays", "read_npz", "save_graph"]

Array: TypeAlias = "npt.NDArray[Any]"

# What numpy writes. Other decompressors may take much memory as soon as they are opened.
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def read_arrays(path: Path, error: type[ButforError] = GraphError, where: Memory | None = None) -> dict[str, Array]:
    """Return all arrays of an `.npz` file, in memory or elsewhere; nothing in it is ever unpickled.

    The sizes that the headers of all arrays claim are checked before the first array is read.

    Raises:
        error: if the file is truncated, not an `.npz`, holds pickled objects, or would take too much memory.
    """
    check_file(path, error)
    kind, where = "as .npz", where or Memory()
    with reading(path, error):
        file = path.open("rb")
    with file:
        start = file.read(6)
        if start == b"\x93NUMPY":
            raise error(f"{path} cannot be read {kind}: it is a single array (.npy)")
        if not start.startswith(b"PK"):
            raise error(f"{path} cannot be read {kind}: it is no zip archive; it may be empty or pickled")
        with reading(path, error, kind):
            archive = zipfile.ZipFile(file)
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            names = [info.filename for info in archive.infolist()]
        if len(members) != len(names):
            raise error(f"{path} cannot be read {kind}: it has two arrays of one name among {shown(names)}")
        claimed = 0
        for name, info in members.items():
            claimed += _claimed_bytes(path, error, archive, name, info)
            if where.limited:
                check_size(claimed, str(path), error)
        arrays: dict[str, Array] = {}
        for name, info in members.items():
            with reading(path, error, kind), archive.open(info) as member:
                arrays[name] = where.read(member)
        return arrays


def _claimed_bytes(
    path: Path, error: type[ButforError], archive: zipfile.ZipFile, name: str, info: zipfile.ZipInfo
) -> int:
    """Return the number of bytes that an array takes according to its header."""
    if info.compress_type not in _COMPRESSIONS:
        raise error(f"{path} cannot be read as .npz: {shown(name)} is compressed in a way that numpy does not write")
    with reading(path, error, "as .npz"), archive.open(info) as member:
        version = np.lib.format.read_magic(member)
        shape, _, dtype = _HEADERS[version](member)
        held = info.file_size - member.tell()
    if dtype.hasobject:
        raise error(
            f"{path} holds pickled Python objects, which could run code and are not read: "
            "save plain numeric arrays with numpy.savez"
        )
    if math.prod(shape) * dtype.itemsize > max(held, 0):
        raise error(
            f"{path} cannot be read as .npz: array {shown(name)} should be {dtype} of shape {shown(shape)}, "
            f"but there are only {max(held, 0)} bytes of it"
        )
    # Text becomes a list of Python strings, each of which takes more memory than its letters.
    return array_bytes(shape, dtype.itemsize + _STRING_BYTES * (dtype.kind == "U"))


_STRING_BYTES = 64
_HEADERS: dict[tuple[int, int], Any] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read_npz(path: Path, where: Memory | None = None) -> Data:
    """Return the graph whose arrays are `edge_index` and `x`, and whatever else describes it.

    `*_idx` arrays become masks (`test_idx` gives `test_mask`); integer features become floats; text and
    `node_ids` become lists, single values Python numbers. Everything else is kept under its name.

    Raises:
        GraphError: if the file cannot be read or an array does not fit.
    """
    where = where or Memory()
    arrays = read_arrays(path, where=where)
    for required in ("edge_index", "x"):
        if required not in arrays:
            raise GraphError(f"{path} has no array {required!r}, only {', '.join(sorted(arrays)) or 'nothing'}")
    nodes = len(arrays["x"]) if arrays["x"].ndim else 0
    fields: dict[str, Any] = {}
    for name, array in arrays.items():
        key = f"{name[:-4]}_mask" if name.endswith("_idx") else name
        if key in fields or (key != name and key in arrays):
            raise GraphError(f"{path} has both {key} and {name}: keep one of them")
        check_name(path, name, "an array")
        fields[key] = _field(path, name, array, nodes, where)
    data = Data(**fields)
    validate(data)
    return data


def _field(path: Path, name: str, array: Array, nodes: int, where: Memory) -> Any:
    kind = array.dtype.kind
    if kind not in "biufU" or (kind == "f" and array.dtype.itemsize > 8):
        raise GraphError(f"array {name} of {path} is of dtype {array.dtype}: only numbers and text can be used")
    if name.endswith("_idx"):
        return _mask(path, name, array, nodes)
    if kind == "u" and array.size and int(array.max()) >= 2**63:
        raise GraphError(f"array {name} of {path} holds {array.max()}, which is too large: use less than 2**63")
    if name.endswith("_mask") and kind in "iu" and np.isin(array, (0, 1)).all():
        array = array.astype(bool)
    elif name in ("x", "edge_weight", "edge_attr") and kind != "U":
        with np.errstate(over="ignore"):  # a number that is too large becomes infinite, which is refused later
            array = where.cast(array, np.float32)
    elif kind in "iu":
        array = where.cast(array, np.int64)
    if kind == "U" or name == "node_ids" or (array.ndim == 0 and not _has_rows(name)):
        with reading(path):  # numpy also accepts code points that are not valid text
            "".join(array.ravel().tolist() if kind == "U" else ()).encode()
            return array.tolist()
    return materialized(as_tensor(where.cast(array, array.dtype.newbyteorder("="))))


def materialized(value: torch.Tensor) -> torch.Tensor:
    """Return the tensor contiguous in memory, with expansion, conjugation and negation carried out."""
    value = value.detach().resolve_conj().resolve_neg()
    is_plain = value.is_contiguous() and 0 not in value.stride()
    return value if is_plain else value.clone(memory_format=torch.contiguous_format)


def _has_rows(name: str) -> bool:
    """Tell whether an array must have one row per node, edge or graph, so that a single number is wrong."""
    return name in ("x", "y", "node_motif") or name.startswith("edge_") or name.endswith("_mask")


def _mask(path: Path, name: str, index: Array, nodes: int) -> torch.Tensor:
    if index.ndim != 1 or (index.dtype.kind not in "iu" and index.size):
        raise GraphError(f"{name} of {path} must be a list of node numbers, not {index.dtype} of {index.shape}")
    outside = (index < 0) | (index >= nodes)
    if outside.any():
        there = f"this graph has nodes 0 to {nodes - 1}" if nodes else "this graph has no nodes"
        raise GraphError(f"{name} of {path} names node {index[outside][0]}, but {there}")
    mask = torch.zeros(nodes, dtype=torch.bool)
    mask[torch.from_numpy(index.astype(np.int64))] = True
    return mask


def save_graph(data: Data, path: str | os.PathLike[str]) -> None:
    """Write the graph with all its attributes as `.npz`; `load_graph` reads it back.

    The file is written completely or not at all: after a failure, an older file of that name is as it was.

    Args:
        data: the graph.
        path: the file to write; a file that exists is replaced.

    Raises:
        InputError: if the path does not end in `.npz`.
        GraphError: if the graph is malformed, has an attribute that is neither tensor, number, text nor
            list of these, or the file cannot be written.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> butfor.datasets.save_graph(data, "graph.npz")
        >>> butfor.datasets.load_graph("graph.npz").num_nodes
        871
    """
    path = Path(path)
    if path.suffix != ".npz":
        raise InputError(f"graphs are saved as .npz, so {path} must end in .npz")
    validate(data)
    arrays = {key: _array(key, data[key]) for key in data.keys() if data[key] is not None}  # noqa: SIM118
    save: Any = np.savez_compressed  # its type does not allow arrays as keywords
    try:
        with atomic_write(path) as file:
            save(file, **arrays)
    except OSError as problem:
        raise GraphError(f"cannot write {path}: {problem.strerror or problem}") from problem


_SAVED = (
    *(torch.float64, torch.float32, torch.float16, torch.bool),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8),
)


def _array(key: str, value: object) -> Array:
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided or value.dtype not in _SAVED:
            raise GraphError(f"attribute {key} is a tensor of {value.dtype}, which .npz cannot hold: use .float()")
        return value.detach().cpu().resolve_neg().numpy()
    array = np.asarray(value) if isinstance(value, (str, int, float, list, tuple, np.ndarray)) else None
    if array is None or array.dtype.kind not in "biufU":
        raise GraphError(f"attribute {key} is a {type(value).__name__}, which .npz cannot hold: remove it first")
    return array
