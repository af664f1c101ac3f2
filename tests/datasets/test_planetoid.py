"""Folders of a Planetoid dataset, whose pickles are read without running anything."""

from __future__ import annotations

import collections
import pickle
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from bad_files import Asks, bomb, check_refused
from butfor.datasets import load_graph, load_graphs
from butfor.errors import GraphError
from graphs import same_graph

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.mark.published
def test_cora(shared: Path) -> None:
    folder = shared / "data" / "planetoid" / "Cora"
    data = load_graph(folder)
    assert (data.num_nodes, data.num_edges, data.x.size(1), int(data.y.max()) + 1) == (2708, 10556, 1433, 7)
    assert [int(data[f"{part}_mask"].sum()) for part in ("train", "val", "test")] == [140, 500, 1000]
    assert [entry.name for entry in folder.iterdir()] == ["raw"]
    assert same_graph(load_graph(folder / "raw"), data)


@pytest.mark.published
@pytest.mark.filterwarnings("ignore")  # of PyG's own reader
def test_cora_equals_pyg(shared: Path) -> None:
    from torch_geometric.io import read_planetoid_data

    folder = shared / "data" / "planetoid" / "Cora" / "raw"
    data, theirs = load_graph(folder), read_planetoid_data(str(folder), "cora")
    del data.name
    assert same_graph(data, theirs)


def write_planetoid(folder: Path, **changes: object) -> Path:
    """Seven nodes; test node 6 is missing from the test index, as some are in CiteSeer."""
    parts: dict[str, object] = {
        "x": np.eye(2, 3),
        "allx": np.eye(5, 3),
        "tx": np.array([[7, 7, 7], [5, 5, 5]]),
        "y": np.eye(2),
        "ally": np.array([[1, 0], [0, 1], [1, 0], [1, 0], [0, 1]]),
        "ty": np.array([[1, 0], [0, 1]]),
        "graph": collections.defaultdict(list, {0: [1, 1, 5], 1: [0], 5: [0, 5], 7: []}),
        "test.index": b"7\n5\n",
    }
    parts.update(changes)
    for part, value in parts.items():
        (folder / f"ind.tiny.{part}").write_bytes(value if isinstance(value, bytes) else pickle.dumps(value))
    return folder


def test_planetoid_with_gaps(tmp_path: Path) -> None:
    data = load_graph(write_planetoid(tmp_path))
    assert data.num_nodes == 8
    assert data.x[5:].tolist() == [[5] * 3, [0] * 3, [7] * 3]
    assert data.y.tolist() == [0, 1, 0, 0, 1, 1, 0, 0]
    assert data.test_mask.nonzero().flatten().tolist() == [5, 7]
    assert sorted(data.edge_index.t().tolist()) == [[0, 1], [0, 5], [1, 0], [5, 0]]


def test_planetoid_sparse_features(tmp_path: Path) -> None:
    import scipy.sparse as sp

    data = load_graph(write_planetoid(tmp_path, allx=sp.csr_matrix(np.eye(5, 3))))
    assert torch.equal(data.x[:5], torch.eye(5, 3))
    hostile = sp.csr_matrix(np.eye(5, 3))
    hostile.indices[:] = 10**6
    with pytest.raises(GraphError, match=r"ind\.tiny\.allx cannot be read"):
        load_graph(write_planetoid(tmp_path, allx=hostile))


def test_planetoid_with_a_bomb_runs_nothing(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    for part in ("graph", "allx"):
        (tmp_path / part).mkdir()
        with pytest.raises(GraphError, match=r"cannot be read: it asks for \w+\.mkdir, which is not an array"):
            load_graph(write_planetoid(tmp_path / part, **{part: bomb(mark)}))
    assert not mark.exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tx": np.ones((3, 3))}, "do not fit together: .* 3 and 2 rows for 2 test nodes"),
        ({"allx": pickle.dumps(np.ones((5, 3)))[:60]}, r"ind\.tiny\.allx cannot be read"),
        ({"ally": np.array([object()])}, r"ind\.tiny\.ally cannot be read"),
        ({"graph": {0: [99]}}, "edge 0 points to node 99"),
        ({"graph": [1, 2]}, r"ind\.tiny\.graph cannot be read"),
        ({"x": np.ones((3, 3))}, r"ind\.tiny\.x in .* has 3 rows, but ind\.tiny\.y has 2"),
    ],
)
def test_bad_planetoid_files(tmp_path: Path, change: dict[str, object], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        load_graph(write_planetoid(tmp_path, **change))


def sparse(**state: object) -> bytes:
    import scipy.sparse as sp

    matrix = sp.csr_matrix(np.eye(5, 3))
    for name, value in state.items():
        object.__setattr__(matrix, name, value)
    return pickle.dumps(matrix)


RECONSTRUCT: Any = np.empty(0).__reduce__()[0]


DAMAGED: dict[str, Callable[[], dict[str, object]]] = {
    "empty": lambda: {"allx": b""},
    "text": lambda: {"allx": b"hello"},
    "half": lambda: {"allx": pickle.dumps(np.eye(5, 3))[:-20]},
    "number": lambda: {"allx": 7},
    "dict": lambda: {"allx": {"a": 1}},
    "list": lambda: {"allx": [[1, 2], [3, 4]]},
    "vector": lambda: {"allx": np.ones(5)},
    "words": lambda: {"allx": np.array([["a"] * 3] * 5)},
    "void": lambda: {"allx": np.zeros((5, 3), "V8")},
    "structured": lambda: {"allx": np.zeros((5, 3), [("a", "<f8")])},
    "objects": lambda: {"allx": np.array([[None] * 3] * 5)},
    "complex": lambda: {"allx": np.ones((5, 3), complex)},
    "giant sparse": lambda: {"allx": sparse(_shape=(5, 10**12))},
    "sparse beyond 64 bits": lambda: {"allx": sparse(_shape=(5, 10**30))},
    "sparse of another height": lambda: {"allx": sparse(_shape=(10**12, 3))},
    "sparse without shape": lambda: {"allx": sparse(_shape=None)},
    "sparse of fractions": lambda: {"allx": sparse(_shape=(5.0, 3.0))},
    "sparse of negative width": lambda: {"allx": sparse(_shape=(5, -3))},
    "sparse with steps back": lambda: {"allx": sparse(indptr=np.array([0, 3, 1, 3, 3, 3]))},
    "sparse with many in a row": lambda: {"allx": sparse(indptr=np.array([0, 10**12, 0, 0, 0, 0]))},
    "sparse with wrong columns": lambda: {"allx": sparse(indices=np.array([0, 1, 10**9]))},
    "an array of a giant size": lambda: {"allx": Asks(RECONSTRUCT, np.ndarray, (10**11,), b"b")},
    "a giant array made by name": lambda: {"allx": Asks(np.ndarray, (10**6, 10**6))},
    "remembered far away": lambda: {"allx": b"\x80\x02]r\xff\xff\xff\x7f."},
    "deep": lambda: {"graph": b"\x80\x02" + b"]" * 20_000 + b"a" * 19_999 + b"."},
    "graph of lists": lambda: {"graph": [[1], [0]]},
    "graph of words": lambda: {"graph": {"a": [1]}},
    "graph of numbers": lambda: {"graph": {0: 1}},
    "graph of fractions": lambda: {"graph": {0: [1.5]}},
    "node beyond 64 bits": lambda: {"graph": {0: [2**70]}},
    "negative node": lambda: {"graph": {0: [-1]}},
    "giant test node": lambda: {"test.index": b"5\n999999999999\n"},
    "test node beyond 64 bits": lambda: {"test.index": b"5\n" + b"9" * 30},
    "test nodes are words": lambda: {"test.index": b"a\nb\n"},
    "no test nodes": lambda: {"test.index": b""},
    "other width": lambda: {"tx": np.ones((2, 4))},
    "other classes": lambda: {"ty": np.ones((2, 4))},
    "no classes": lambda: {"ty": np.ones((2, 0)), "ally": np.ones((5, 0))},
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_planetoid_files(tmp_path: Path, case: str) -> None:
    write_planetoid(tmp_path, **DAMAGED[case]())
    check_refused(lambda: load_graphs(tmp_path), GraphError, tmp_path, "")


def test_incomplete_or_ambiguous_folders(tmp_path: Path) -> None:
    write_planetoid(tmp_path)
    (tmp_path / "ind.tiny.ty").unlink()
    with pytest.raises(GraphError, match=r"has no file ind\.tiny\.ty"):
        load_graph(tmp_path)
    shutil.copy(tmp_path / "ind.tiny.graph", tmp_path / "ind.other.graph")
    with pytest.raises(GraphError, match=r"holds more than one dataset: ind\.other\.graph, ind\.tiny\.graph"):
        load_graph(tmp_path)
