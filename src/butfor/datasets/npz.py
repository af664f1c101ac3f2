"""Graphs as plain `.npz` arrays: the format that needs no pickle and loses nothing."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from torch_geometric.data import Data

from ..errors import GraphError, InputError
from .atomic import atomic_write
from .validate import validate

if TYPE_CHECKING:
    import os

    import numpy.typing as npt

__all__ = ["read_arrays", "read_npz", "save_graph"]

Array: TypeAlias = "npt.NDArray[Any]"

# What reading a damaged, truncated or pickled archive can raise.
_UNREADABLE = (ValueError, EOFError, KeyError, OSError, zipfile.BadZipFile, zlib.error, NotImplementedError)


def read_arrays(path: Path, error: type[Exception] = GraphError) -> dict[str, Array]:
    """Return all arrays of an `.npz` file; nothing in it is ever unpickled.

    Raises:
        error: if the file is truncated, not an `.npz`, or holds pickled objects.
    """
    try:
        with path.open("rb") as file:  # given a path, np.load leaves a damaged file open
            archive = np.load(file, allow_pickle=False)
            if isinstance(archive, np.ndarray):
                raise ValueError("a single array (.npy)")
            with archive:
                return {name: archive[name] for name in archive.files}
    except _UNREADABLE as problem:
        if "allow_pickle" in str(problem):
            raise error(
                f"{path} holds pickled Python objects, which could run code and are not read: "
                "save plain numeric arrays with numpy.savez"
            ) from problem
        raise error(f"{path} cannot be read as .npz: {problem}") from problem


def read_npz(path: Path) -> Data:
    """Return the graph whose arrays are `edge_index` and `x`, and whatever else describes it.

    `*_idx` arrays become masks (`test_idx` gives `test_mask`); integer features become floats; text and
    `node_ids` become lists, single values Python numbers. All else is kept under its name.

    Raises:
        GraphError: if the file cannot be read or an array does not fit.
    """
    arrays = read_arrays(path)
    for required in ("edge_index", "x"):
        if required not in arrays:
            raise GraphError(f"{path} has no array {required!r}, only {', '.join(sorted(arrays)) or 'nothing'}")
    nodes = len(arrays["x"]) if arrays["x"].ndim else 0
    fields: dict[str, Any] = {}
    for name, array in arrays.items():
        key = f"{name[:-4]}_mask" if name.endswith("_idx") else name
        if key in fields or (key != name and key in arrays):
            raise GraphError(f"{path} has both {key} and {name}: keep one of them")
        if not name.isidentifier() or (hasattr(Data, name) and name not in _OWN_PROPERTIES):
            raise GraphError(f"{path} has an array named {name!r}, which no graph can carry: rename it")
        fields[key] = _field(path, name, array, nodes)
    data = Data(**fields)
    validate(data)
    return data


_OWN_PROPERTIES = {"batch", "edge_attr", "edge_index", "edge_weight", "pos", "time", "x", "y"}


def _field(path: Path, name: str, array: Array, nodes: int) -> Any:
    if array.dtype.kind not in "biufU":
        raise GraphError(f"array {name} of {path} is of dtype {array.dtype}: only numbers and text can be used")
    if name.endswith("_idx"):
        return _mask(path, name, array, nodes)
    if name.endswith("_mask") and array.dtype.kind in "iu" and np.isin(array, (0, 1)).all():
        array = array.astype(bool)
    if name in ("x", "edge_weight", "edge_attr"):
        array = array.astype(np.float32) if array.dtype.kind in "biuf" else array
    elif array.dtype.kind in "iu":
        array = array.astype(np.int64)
    if array.ndim == 0:
        return array.item()
    if array.dtype.kind == "U" or name == "node_ids":
        return array.tolist()
    return torch.from_numpy(np.ascontiguousarray(array))


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

    The file appears whole or not at all: a failure leaves an older file of that name as it was.

    Raises:
        InputError: if the path does not end in `.npz`.
        GraphError: if the graph is malformed, has an attribute that is neither tensor, number, text nor
            list of these, or the file cannot be written.
    """
    path = Path(path)
    if path.suffix != ".npz":
        raise InputError(f"graphs are saved as .npz, so {path} must end in .npz")
    validate(data)
    arrays = {key: _array(key, data[key]) for key in data.keys() if data[key] is not None}  # noqa: SIM118
    save: Any = np.savez_compressed  # its keywords are arrays, which its type does not say
    try:
        with atomic_write(path) as file:
            save(file, **arrays)
    except OSError as problem:
        raise GraphError(f"cannot write {path}: {problem.strerror or problem}") from problem


def _array(key: str, value: object) -> Array:
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().numpy()
    array = np.asarray(value) if isinstance(value, (str, int, float, list, tuple, np.ndarray)) else None
    if array is None or array.dtype.kind not in "biufU":
        raise GraphError(f"attribute {key} is a {type(value).__name__}, which .npz cannot hold: remove it first")
    return array
