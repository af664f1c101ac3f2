"""Cora, CiteSeer and PubMed from the raw files of the Planetoid collection.

PyG reads these files too, but with plain `pickle`, which runs whatever a file tells it to, and it writes
beside them. Here only arrays, sparse matrices and lists can come out of a file, and nothing is written.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.utils import coalesce, remove_self_loops

from ..errors import GraphError
from .validate import validate

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

__all__ = ["read_planetoid"]

_VALIDATION_NODES = 500  # of the public split


class _Csr:
    """Stands in for scipy's matrix, whose compiled code would trust the index arrays of a damaged file."""

    data: Any
    indices: Any
    indptr: Any

    def dense(self) -> npt.NDArray[np.float32]:
        state = {name.lstrip("_"): value for name, value in vars(self).items()}
        rows, columns = state["shape"]
        out = np.zeros((rows, columns), dtype=np.float32)
        row = np.repeat(np.arange(rows), np.diff(state["indptr"]))
        np.add.at(out, (row, state["indices"]), state["data"])
        return out


def _dtype(spec: str, align: object = False, _copy: object = False) -> np.dtype[Any]:
    # Old pickles give the flags as 0 and 1, which numpy now warns of. Always a copy: pickle changes it.
    return np.dtype(spec, align=bool(align), copy=True)


_RECONSTRUCT = np.empty(0).__reduce__()[0]  # numpy.core.multiarray._reconstruct, wherever numpy keeps it
_HARMLESS: dict[tuple[str, str], object] = {
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): _dtype,
    ("numpy.core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy._core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("scipy.sparse.csr", "csr_matrix"): _Csr,
    ("scipy.sparse._csr", "csr_matrix"): _Csr,
    ("collections", "defaultdict"): defaultdict,
    ("__builtin__", "list"): list,
    ("builtins", "list"): list,
}


class _ArraysOnly(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> object:
        try:
            return _HARMLESS[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which is not an array") from None


def _read(folder: Path, prefix: str, part: str) -> Any:
    path = folder / f"ind.{prefix}.{part}"
    file: IO[bytes]
    try:
        with path.open("rb") as file:
            value = _ArraysOnly(file, encoding="latin1").load()
        if part == "graph":
            return {int(node): [int(other) for other in others] for node, others in value.items()}
        array = value.dense() if isinstance(value, _Csr) else np.asarray(value)
        if array.ndim != 2 or array.dtype.kind not in "biuf":
            raise ValueError(f"it holds {array.dtype} of shape {array.shape}, not a matrix of numbers")
        return torch.from_numpy(array.astype(np.float32))
    except FileNotFoundError:
        raise GraphError(f"{folder} has no file {path.name}, which a Planetoid folder needs") from None
    except Exception as problem:  # a damaged pickle can raise nearly anything
        raise GraphError(f"{path} cannot be read: {problem}") from problem


def read_planetoid(folder: Path, prefix: str) -> Data:
    """Return the graph of the raw files `ind.<prefix>.*`, with the public split as masks.

    Equals what PyG's `Planetoid` gives, node by node and edge by edge.

    Raises:
        GraphError: if a file is missing, damaged, asks to run code, or does not fit the others.
    """
    x, tx, allx, y, ty, ally = (_read(folder, prefix, part) for part in ("x", "tx", "allx", "y", "ty", "ally"))
    neighbours = _read(folder, prefix, "graph")
    path = folder / f"ind.{prefix}.test.index"
    try:
        test = torch.from_numpy(np.loadtxt(path, dtype=np.int64, ndmin=1))
    except (OSError, ValueError) as problem:
        raise GraphError(f"{path} cannot be read: {problem}") from problem
    first = len(allx)
    if len(test) == 0 or int(test.min()) != first or len(tx) != len(test) or len(ty) != len(test) or len(ally) != first:
        raise GraphError(
            f"the files ind.{prefix}.* in {folder} do not fit together: {first} nodes before the test nodes, "
            f"{len(ally)} labels for them, {len(tx)} and {len(ty)} rows for {len(test)} test nodes"
        )
    nodes = int(test.max()) + 1
    # CiteSeer leaves some test nodes out: they get zero features and class 0.
    features = torch.zeros(nodes, allx.size(1))
    labels = torch.zeros(nodes, ally.size(1))
    features[:first], labels[:first] = allx, ally
    features[test], labels[test] = tx, ty

    pairs = [(node, other) for node, others in neighbours.items() for other in others]
    edge_index = torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).t()
    edge_index, _ = remove_self_loops(edge_index)
    validate(Data(x=features, edge_index=edge_index))
    data = Data(
        x=features,
        edge_index=coalesce(edge_index, num_nodes=nodes, sort_by_row=False),
        y=labels.argmax(dim=1),
        train_mask=torch.arange(nodes) < len(y),
        val_mask=(torch.arange(nodes) >= len(y)) & (torch.arange(nodes) < len(y) + _VALIDATION_NODES),
        test_mask=torch.zeros(nodes, dtype=torch.bool).index_fill(0, test, True),
        name=prefix,
    )
    if len(x) != len(y):
        raise GraphError(f"ind.{prefix}.x in {folder} has {len(x)} rows, but ind.{prefix}.y has {len(y)}")
    return data
