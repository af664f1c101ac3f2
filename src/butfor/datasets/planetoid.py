"""Cora, CiteSeer and PubMed from the raw files of the Planetoid collection.

PyG reads these files too, but with plain `pickle`, which runs whatever a file tells it to, and it writes
beside them. Here only arrays, sparse matrices and lists can come out of a file, and nothing is written.
"""

from __future__ import annotations

import io
import itertools
import operator
import pickle
import pickletools
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.utils import coalesce, remove_self_loops

from butfor.boundary.json_values import shown
from butfor.boundary.limits import array_bytes, check_size
from butfor.boundary.reading import read_bytes, reading
from butfor.errors import GraphError
from butfor.graph.validate import validate

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

__all__ = ["read_planetoid"]

_VALIDATION_NODES = 500  # of the public split


class _Csr:
    """Replaces scipy's matrix, whose compiled code would trust the index arrays of a damaged file."""

    def dense(self, path: Path) -> npt.NDArray[np.float32]:
        state = {str(name).lstrip("_"): value for name, value in vars(self).items()}
        with reading(path):
            rows, columns = (operator.index(side) for side in state["shape"])
            values, indices, pointers = (np.asarray(state[name]) for name in ("data", "indices", "indptr"))
            if (pointers.shape, indices.shape) != ((rows + 1,), values.shape) or columns < 0:
                raise ValueError("the parts of a sparse matrix do not fit together")
            counts: npt.NDArray[np.int64] = np.diff(pointers.astype(np.int64)).astype(np.int64)
            if (counts < 0).any() or counts.sum() != len(indices):
                raise ValueError("the rows of a sparse matrix do not fit its numbers")
        check_size(array_bytes((rows, columns)), f"the matrix of {path}")
        with reading(path):
            out = np.zeros((rows, columns), dtype=np.float32)
            np.add.at(out, (np.repeat(np.arange(rows), counts), indices), values)
        return out


def _dtype(spec: str, align: object = False, _copy: object = False) -> np.dtype[Any]:
    # Old pickles give the flags as 0 and 1, which numpy now warns about. Always a copy, because pickle changes it.
    return np.dtype(spec, align=bool(align), copy=True)


def _array(*_: object) -> npt.NDArray[Any]:
    # Empty, whatever size the pickle asks for: pickle sets shape and content afterwards.
    return np.empty(0)


_HARMLESS: dict[tuple[str, str], object] = {
    ("numpy", "ndarray"): "ndarray",
    ("numpy", "dtype"): _dtype,
    ("numpy.core.multiarray", "_reconstruct"): _array,
    ("numpy._core.multiarray", "_reconstruct"): _array,
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
    if not path.exists():
        raise GraphError(f"{folder} has no file {path.name}, which a Planetoid folder needs")
    content = read_bytes(path)
    with reading(path):
        _check_memo(content)
        value: Any = _ArraysOnly(io.BytesIO(content), encoding="latin1").load()
    if part == "graph":
        return _neighbours(path, value)
    array = value.dense(path) if isinstance(value, _Csr) else value
    if not isinstance(array, np.ndarray) or array.ndim != 2 or array.dtype.kind not in "biuf":
        raise GraphError(f"{path} cannot be read: it holds {shown(value)}, not a matrix of numbers")
    check_size(array_bytes(array.shape), f"the matrix of {path}")
    with np.errstate(over="ignore"):  # a number that is too large becomes infinite, which is refused later
        return torch.from_numpy(array.astype(np.float32))


def _check_memo(content: bytes) -> None:
    # Pickle allocates its memo up to the largest index in the file, so a huge index would take all memory.
    for code, argument, _ in pickletools.genops(content):
        if code.name in ("PUT", "BINPUT", "LONG_BINPUT") and int(argument or 0) > len(content):
            raise pickle.UnpicklingError(f"it remembers something under the number {argument}")


def _neighbours(path: Path, value: Any) -> dict[int, list[int]]:
    if not isinstance(value, dict) or not all(isinstance(others, list) for others in value.values()):
        raise GraphError(f"{path} cannot be read: it holds {shown(value)}, not a list of neighbours for each node")
    for node in itertools.chain(value, *value.values()):
        if type(node) is not int or not 0 <= node < 2**63:
            raise GraphError(f"{path} cannot be read: it names {shown(node)}, which is no node")
    return value


def read_planetoid(path: Path) -> Data:
    """Return the graph of the raw files `ind.<prefix>.*`, with the public split as masks; `path` is the `.graph` file.

    Equals what PyG's `Planetoid` gives, node by node and edge by edge.

    Raises:
        GraphError: if a file is missing, damaged, asks to run code, or does not fit the others.
    """
    folder, prefix = path.parent, path.name.removeprefix("ind.").removesuffix(".graph")
    x, tx, allx, y, ty, ally = (_read(folder, prefix, part) for part in ("x", "tx", "allx", "y", "ty", "ally"))
    neighbours = _read(folder, prefix, "graph")
    path = folder / f"ind.{prefix}.test.index"
    content = read_bytes(path)
    with reading(path):
        test = torch.from_numpy(np.array(content.split(), dtype=np.int64))
    first = len(allx)
    if len(test) == 0 or int(test.min()) != first or len(tx) != len(test) or len(ty) != len(test) or len(ally) != first:
        raise GraphError(
            f"the files ind.{prefix}.* in {folder} do not fit together: {first} nodes before the test nodes, "
            f"{len(ally)} labels for them, {len(tx)} and {len(ty)} rows for {len(test)} test nodes"
        )
    if allx.size(1) != tx.size(1) or ally.size(1) != ty.size(1) or not ally.size(1):
        raise GraphError(
            f"the files ind.{prefix}.* in {folder} do not fit together: {allx.size(1)} and {tx.size(1)} features, "
            f"{ally.size(1)} and {ty.size(1)} classes"
        )
    nodes = int(test.max()) + 1
    what = f"a graph of the {nodes} nodes that {path} counts"
    check_size(array_bytes((nodes, allx.size(1) + ally.size(1))), what)
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
