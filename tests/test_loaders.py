"""Reading graphs from disk: every format, and everything that can be wrong with a file."""

from __future__ import annotations

import collections
import os
import pickle
import re
import shutil
import stat
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from torch_geometric.data import Data, HeteroData

from butfor.datasets import load_graph, load_graphs, save_graph, tree_cycles
from butfor.errors import GraphError, InputError

if TYPE_CHECKING:
    from pathlib import Path


class Bomb:
    """Unpickling this makes a file: the proof that something ran."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> object:
        return (os.mkdir, (str(self.mark),))


def equal(one: Data, other: Data) -> bool:
    def same(a: object, b: object) -> bool:
        both_tensors = isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)
        return torch.equal(a, b) and a.dtype == b.dtype if both_tensors else a == b

    return sorted(one.keys()) == sorted(other.keys()) and all(same(one[k], other[k]) for k in one.keys())  # noqa: SIM118


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "graph.npz"


ARRAYS = {"edge_index": np.array([[0, 1, 2], [1, 0, 1]]), "x": np.arange(6).reshape(3, 2)}


# .npz ---------------------------------------------------------------------------------------------------


def test_npz_roundtrip_keeps_everything(path: Path) -> None:
    data = tree_cycles(4)
    data.edge_weight = torch.rand(data.num_edges)
    data.edge_attr = torch.rand(data.num_edges, 2)
    data.node_ids = [f"n{i}" for i in range(data.num_nodes)]
    data.nothing = None
    save_graph(data, path)
    del data.nothing
    assert equal(load_graph(path), data)
    assert [entry.name for entry in path.parent.iterdir()] == ["graph.npz"]
    data.node_ids = list(range(0, 2 * data.num_nodes, 2))
    save_graph(data, path)
    assert equal(load_graph(str(path)), data)


def test_npz_of_plain_arrays(path: Path) -> None:
    np.savez(
        path,
        **ARRAYS,
        y=np.array([0, 1, 1], dtype=np.uint8),
        test_idx=np.array([2, 0]),
        val_idx=np.array([]),
        train_mask=np.array([0, 1, 0]),
        class_names=np.array(["a", "b"]),
        edge_weight=np.array([1, 2, 3]),
        colour=np.array([5, 6, 7]),
    )
    data = load_graph(path)
    assert data.x.dtype == data.edge_weight.dtype == torch.float32
    assert data.edge_index.dtype == data.y.dtype == torch.int64
    assert data.test_mask.tolist() == [True, False, True]
    assert data.val_mask.tolist() == [False] * 3
    assert data.train_mask.tolist() == [False, True, False]
    assert data.class_names == ["a", "b"]
    assert data.colour.tolist() == [5, 6, 7]
    assert "test_idx" not in data


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": None}, "has no array 'x', only edge_index"),
        ({"x": np.ones((0, 2)), "edge_index": np.zeros((2, 0), int)}, "this graph is empty"),
        ({"x": np.array([[1, np.nan], [1, 1], [1, 1]])}, "x of node 0, column 1 is nan"),
        ({"x": np.array(["a", "b", "c"])}, "has no node features x"),
        ({"x": np.ones(3)}, r"x has shape \(3,\)"),
        ({"x": np.ones((3, 2), complex)}, "array x of .* is of dtype complex128"),
        (
            {"edge_index": np.array([[0, 1], [1, 3]])},
            "edge 1 points to node 3, but this graph has nodes 0 to 2",
        ),
        ({"edge_index": np.ones((3, 2))}, r"edge_index has shape \(3, 2\)"),
        ({"edge_index": np.array([[0.0], [1.0]])}, "edge_index is of dtype torch.float64"),
        ({"test_idx": np.array([0, 3])}, "test_idx of .* names node 3, but this graph has nodes 0 to 2"),
        ({"test_idx": np.array([0.5])}, "test_idx of .* must be a list of node numbers"),
        ({"test_idx": np.array([0]), "test_mask": np.zeros(3, bool)}, "has both test_mask and test_idx"),
        ({"test_mask": np.array([0, 1, 2])}, "test_mask is of dtype torch.int64"),
        ({"y": np.array([0, 1])}, "y has 2 rows, but this graph has 3 nodes"),
        ({"num_edges": np.array([3])}, "an array named 'num_edges', which no graph can carry"),
        ({"x": np.array([[object()]] * 3)}, "holds pickled Python objects"),
    ],
)
def test_bad_npz_arrays(path: Path, change: dict[str, object], message: str) -> None:
    arrays = {key: value for key, value in {**ARRAYS, **change}.items() if value is not None}
    np.savez(path, **arrays)
    with pytest.raises(GraphError, match=message):
        load_graph(path)


def test_npz_with_a_bomb_runs_nothing(path: Path, tmp_path: Path) -> None:
    np.savez(path, **ARRAYS, y=np.array([Bomb(tmp_path / "ran")], dtype=object))
    with pytest.raises(GraphError, match="could run code and are not read"):
        load_graph(path)
    path.write_bytes(pickle.dumps(Bomb(tmp_path / "ran")))
    with pytest.raises(GraphError, match="pickled"):
        load_graph(path)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_truncated_npz(path: Path, share: float) -> None:
    save_graph(tree_cycles(0), path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(GraphError, match=r"graph\.npz"):
        load_graph(path)


def test_npz_with_flipped_bits(path: Path) -> None:
    save_graph(tree_cycles(0), path)
    content = bytearray(path.read_bytes())
    content[200:260] = bytes(60)
    path.write_bytes(content)
    with pytest.raises(GraphError, match=r"cannot be read as \.npz"):
        load_graph(path)


def test_single_array_is_no_graph(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, np.ones(3))
    with pytest.raises(GraphError, match="a single array"):
        load_graph(path)


def test_save_refuses_and_leaves_the_old_file(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_graph(tree_cycles(0), path)
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"must end in \.npz"):
        save_graph(tree_cycles(0), tmp_path / "graph.csv")
    broken = tree_cycles(1)
    broken.notes = {"a": 1}
    with pytest.raises(GraphError, match="attribute notes is a dict"):
        save_graph(broken, path)
    broken.notes = [1, "a", None]
    with pytest.raises(GraphError, match="attribute notes is a list"):
        save_graph(broken, path)
    broken.x[0] = torch.nan
    with pytest.raises(GraphError, match="x of node 0"):
        save_graph(broken, path)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(GraphError, match=r"cannot write .*graph\.npz: No space left on device"):
        save_graph(tree_cycles(1), path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["graph.npz"]
    with pytest.raises(GraphError, match=r"cannot write .*: No such file or directory"):
        save_graph(tree_cycles(1), tmp_path / "missing" / "graph.npz")


def test_saved_file_has_ordinary_rights(path: Path) -> None:
    save_graph(tree_cycles(0), path)
    other = path.with_name("other")
    other.touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(other.stat().st_mode)


# .pt ----------------------------------------------------------------------------------------------------


def test_pt_roundtrip(tmp_path: Path) -> None:
    data = tree_cycles(2)
    torch.save(data, tmp_path / "graph.pt")
    assert equal(load_graph(tmp_path / "graph.pt"), data)
    torch.save([data, tree_cycles(3)], tmp_path / "two.pt")
    assert [graph.seed for graph in load_graphs(tmp_path / "two.pt")] == [2, 3]
    with pytest.raises(GraphError, match="holds 2 graphs: use load_graphs"):
        load_graph(tmp_path / "two.pt")


def test_pt_with_a_bomb_runs_nothing(tmp_path: Path) -> None:
    path, mark = tmp_path / "graph.pt", tmp_path / "ran"
    data = tree_cycles(0)
    data.extra = Bomb(mark)
    torch.save(data, path)
    with pytest.raises(GraphError, match=r"it asks for .*mkdir, which could run code, so it was not read"):
        load_graph(path)
    path.write_bytes(pickle.dumps(Bomb(mark)))
    with pytest.raises(GraphError, match=r"could run code|not written by torch.save"):
        load_graph(path)
    assert not mark.exists()


def test_pt_leaves_the_list_of_safe_classes_alone(tmp_path: Path) -> None:
    before = list(torch.serialization.get_safe_globals())
    torch.save(tree_cycles(0), tmp_path / "graph.pt")
    load_graph(tmp_path / "graph.pt")
    assert set(torch.serialization.get_safe_globals()) == set(before)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"x": torch.ones(2)}, "not a dict"),
        (torch.ones(2), "not a Tensor"),
        ([], "not a list"),
        (HeteroData(a={"x": torch.ones(2, 2)}), "several node types"),
        (Data(x=torch.ones(2, 2)), "has no edge_index"),
        (Data(x=torch.ones(2, 2), edge_index=torch.tensor([[0], [7]])), "edge 0 points to node 7"),
    ],
)
def test_pt_of_something_else(tmp_path: Path, content: object, message: str) -> None:
    torch.save(content, tmp_path / "graph.pt")
    with pytest.raises(GraphError, match=message):
        load_graph(tmp_path / "graph.pt")


@pytest.mark.parametrize("size", [0, 5, 3000])
def test_truncated_pt(tmp_path: Path, size: int) -> None:
    path = tmp_path / "graph.pt"
    torch.save(tree_cycles(0), path)
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(GraphError, match=r"graph\.pt is damaged or was not written by torch\.save"):
        load_graph(path)


# CSV and Parquet ----------------------------------------------------------------------------------------

NODES = "id,label,split,f1,f2,name\nann,cat,train,1,0.5,Ann A\nbob,dog,test,2,0,Bob B\ncid,cat,,3,-1,Cid C\n"
EDGES = "source,target,weight,kind\nann,bob,0.5,1\nbob,cid,2,0\n"


@pytest.fixture
def table(tmp_path: Path):
    def write(edges: str = EDGES, nodes: str = NODES, **options: object) -> Data:
        (tmp_path / "edges.csv").write_text(edges)
        (tmp_path / "nodes.csv").write_text(nodes)
        return load_graph(tmp_path / "edges.csv", nodes=tmp_path / "nodes.csv", **options)

    return write


def test_tables(table) -> None:
    data = table()
    assert data.node_ids == ["ann", "bob", "cid"]
    assert data.edge_index.tolist() == [[0, 1], [1, 2]]
    assert data.edge_weight.tolist() == [0.5, 2]
    assert data.edge_attr.tolist() == [[1], [0]]
    assert data.x.tolist() == [[1, 0.5], [2, 0], [3, -1]]
    assert data.y.tolist() == [0, 1, 0]
    assert data.class_names == ["cat", "dog"]
    assert data.train_mask.tolist() == [True, False, False]
    assert data.test_mask.tolist() == [False, True, False]


def test_undirected_table_gets_the_missing_directions(table) -> None:
    data = table(EDGES + "cid,bob,3,0\ncid,cid,4,1\n", undirected=True)
    assert data.edge_index.t().tolist() == [[0, 1], [1, 2], [2, 1], [2, 2], [1, 0]]
    assert data.edge_weight.tolist() == [0.5, 2, 3, 4, 0.5]
    assert data.edge_attr.flatten().tolist() == [1, 0, 0, 1, 1]


def test_integer_ids_and_masks(table) -> None:
    data = table("source,target\n70,5\n", "id,y,test_mask,f\n5,1,true,0\n-2,0,false,0\n70,1,true,1\n")
    assert data.edge_index.tolist() == [[2], [0]]
    assert data.node_ids == ["5", "-2", "70"]
    assert data.y.tolist() == [1, 0, 1]
    assert data.test_mask.tolist() == [True, False, True]
    assert "class_names" not in data
    data = table("source,target\n70,5\n", "id,f\n5,1\nx,0\n70,1\n")  # text in one file, integers in the other
    assert data.edge_index.tolist() == [[2], [0]]
    assert table("source,target\n", "id,f\n5,1\n").edge_index.shape == (2, 0)


def test_ids_are_text(table) -> None:
    long = "12345678901234567890"
    data = table(f"source,target\n{long},007\n007, 7\n", f"id,f\n{long},1\n007,1\n7,1\n")
    assert data.node_ids == [long, "007", "7"]
    assert data.edge_index.tolist() == [[0, 1], [1, 2]]
    data = table("source,target,id\n7,007,3\n", "id,source\nx,1\n007,2\n7,3\n")  # only ids are text
    assert data.edge_index.tolist() == [[2], [1]]
    assert data.edge_attr.tolist() == [[3]]
    assert data.x.flatten().tolist() == [1, 2, 3]


def test_tables_survive_npz(table, path: Path) -> None:
    data = table()
    save_graph(data, path)
    assert equal(load_graph(path), data)


def test_parquet(tmp_path: Path) -> None:
    pl = pytest.importorskip("polars")
    pl.DataFrame({"source": [1, 3], "target": [3, 2]}).write_parquet(tmp_path / "e.parquet")
    pl.DataFrame({"id": [1, 2, 3], "f": [0.5, 1, 2]}).write_parquet(tmp_path / "n.parquet")
    data = load_graph(tmp_path / "e.parquet", nodes=tmp_path / "n.parquet")
    assert data.edge_index.tolist() == [[0, 2], [2, 1]]
    assert data.node_ids == ["1", "2", "3"]
    pl.DataFrame({"id": ["1", "2", "3"], "f": [0.5, 1, 2]}).write_parquet(tmp_path / "t.parquet")
    assert load_graph(tmp_path / "e.parquet", nodes=tmp_path / "t.parquet").edge_index.tolist() == [[0, 2], [2, 1]]
    pl.DataFrame({"id": [1.0, 2.0, 3.0], "f": [0.5, 1, 2]}).write_parquet(tmp_path / "f.parquet")
    with pytest.raises(GraphError, match=r"column 'id' of .*f\.parquet has fractions"):
        load_graph(tmp_path / "e.parquet", nodes=tmp_path / "f.parquet")
    whole = (tmp_path / "e.parquet").read_bytes()
    (tmp_path / "e.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(GraphError, match=r"e\.parquet cannot be read as parquet"):
        load_graph(tmp_path / "e.parquet", nodes=tmp_path / "n.parquet")


@pytest.mark.parametrize(
    ("edges", "nodes", "message"),
    [
        ("from,to\na,b\n", NODES, r"edges\.csv has no column 'source', only from, to"),
        (EDGES, "node,f\na,1\n", r"nodes\.csv has no column 'id'"),
        (
            EDGES + "bob,dan,1,1\n",
            NODES,
            r"row 3 of .*edges\.csv has target 'dan', which is no id in .*nodes\.csv",
        ),
        (EDGES + "bob,,1,1\n", NODES, "row 3 of .* has no target"),
        (EDGES + "bob, ,1,1\n", NODES, "row 3 of .* has no target"),
        (EDGES, NODES + "ann,cat,,1,1,A\n", "has the id 'ann' more than once"),
        (EDGES, "id,f\n", "has no rows: the graph is empty"),
        ("", NODES, r"edges\.csv cannot be read as csv"),
        (EDGES, NODES.replace(",-1,", ",,"), "row 3 of .* has no value in column 'f2'"),
        (EDGES, NODES.replace(",-1,", ",NaN,"), "row 3 of .* has nan in column 'f2', not a finite number"),
        *(
            (EDGES, NODES.replace(",-1,", f",{word},"), f"row 3 of .* has '?{re.escape(word)}'? in column 'f2', not a")
            for word in ("nan", "NAN", "-nan", " nan ", "inf", "-inf", "+Inf", "Infinity", "-INFINITY", "NA")
        ),
        (EDGES, "id,f,g\nann,1,nan\nbob,1,nan\ncid,1,nan\n", "row 1 of .* has 'nan' in column 'g', not a number"),
        (EDGES.replace("2,0", "2,nan"), NODES, r"row 2 of .*edges\.csv has 'nan' in column 'kind', not a number"),
        (EDGES, "id,f,f\nann,1,1\nbob,1,1\ncid,1,1\n", "nodes.csv has the column 'f' more than once"),
        (EDGES.replace("kind", "weight"), NODES, "edges.csv has the column 'weight' more than once"),
        (EDGES, NODES.replace("f2", "test_mask").replace("-1", "1").replace("0.5", "1"), "has both test_mask and the"),
        (EDGES, "id,y,f\nann,1,1\nbob,nan,1\ncid,0,1\n", "row 2 of .* has 'nan' in column 'y', not a number"),
        (EDGES, NODES.replace(",-1,", ",1e400,"), "row 3 of .* has inf in column 'f2', not a finite number"),
        (EDGES, NODES.replace(",-1,", ",1e39,"), "row 3 of .* has 1e.39 in column 'f2', not a finite number"),
        (EDGES, NODES.replace(",test,", ",_test,"), "has the split '_test'"),
        (EDGES, "id,y,f\nann,18446744073709551615,1\nbob,1,1\ncid,1,1\n", "row 1 of .* too large a number"),
        (EDGES, NODES.replace(",-1,", ",oops,"), "row 3 of .* has 'oops' in column 'f2', not a number"),
        (EDGES, NODES.replace("cid,cat", "cid,"), "row 3 of .* has no label"),
        (EDGES, "id,label\nann,1\nbob,1\ncid,0\n", "has no numeric column for features"),
        (EDGES, "id,label,f\nann,0.5,1\nbob,1,1\ncid,0,1\n", "column 'label' of .* has fractions"),
        (EDGES, "id,label,y,f\nann,0,0,1\nbob,1,1,1\ncid,0,0,1\n", "has both label and y"),
        (EDGES, "id,a_mask,f\nann,0,1\nbob,1,1\ncid,2,1\n", "column 'a_mask' of .* is a mask"),
        (EDGES, NODES.replace(",test,", ",a test,"), "has the split 'a test'"),
        (EDGES.replace("0.5", "heavy"), NODES, "column 'weight' of .* must be numbers"),
        ("source,target\n0.5,1\n", "id,f\n1,1\n", r"integers or text, but column 'source' of .*edges\.csv"),
        ("source,target\n1,1\n", "id,f\n1,1\n2.0,1\n", r"integers or text, but column 'id' of .*nodes\.csv"),
    ],
)
def test_bad_tables(table, edges: str, nodes: str, message: str) -> None:
    with pytest.raises(GraphError, match=message) as problem:
        table(edges, nodes)
    assert ("cannot be read" in message) == ("cannot be read" in str(problem.value))


def test_a_name_that_is_spelled_like_no_number_is_a_name(table) -> None:
    assert table(nodes=NODES.replace("Ann A", "Nan")).x.size(1) == 2


def test_polars_is_optional(table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(GraphError, match=r"pip install 'butfor\[tables\]'"):
        table()


# Dispatch -----------------------------------------------------------------------------------------------


def test_paths_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(GraphError, match=r"there is no file or folder .*none\.npz"):
        load_graph(tmp_path / "none.npz")
    (tmp_path / "graph.txt").touch()
    with pytest.raises(GraphError, match=r"graph\.txt is of no known kind: expected \.npz"):
        load_graph(tmp_path / "graph.txt")
    with pytest.raises(GraphError, match=r"has no raw files of a Planetoid .* or a TUDataset"):
        load_graph(tmp_path)
    (tmp_path / "edges.csv").write_text(EDGES)
    with pytest.raises(InputError, match=r"edges\.csv needs its node table"):
        load_graph(tmp_path / "edges.csv")
    with pytest.raises(GraphError, match=r"there is no file .*nodes\.csv"):
        load_graph(tmp_path / "edges.csv", nodes=tmp_path / "nodes.csv")
    with pytest.raises(InputError, match="nodes= goes with an edge list"):
        load_graph(tmp_path / "graph.txt", nodes=tmp_path / "edges.csv")


# TUDataset ----------------------------------------------------------------------------------------------

TU = {
    "A": "1, 2\n2, 1\n2, 2\n1, 2\n4, 3\n3, 4\n",
    "graph_indicator": "1\n1\n2\n2\n",
    "graph_labels": "1\n-1\n",
    "node_labels": "6\n8\n6\n6\n",
    "node_attributes": "0.5\n1\n2\n3\n",
    "edge_labels": "0\n1\n0\n0\n1\n1\n",
    "edge_gt": "0\n0\n0\n1\n1\n0\n",
}


def write_tu(folder: Path, **changes: str | None) -> Path:
    for part, text in {**TU, **changes}.items():
        if text is not None:
            (folder / f"T_{part}.txt").write_text(text)
    return folder


def test_tu_folder(tmp_path: Path) -> None:
    first, second = load_graphs(write_tu(tmp_path))
    assert first.edge_index.tolist() == [[0, 1], [1, 0]]  # no self-loop, no edge twice
    assert first.edge_motif.tolist() == [True, False]
    assert first.edge_attr.tolist() == [[1, 0], [0, 1]]
    assert first.x.tolist() == [[0.5, 1, 0, 0], [1, 0, 0, 1]]
    assert (first.y.tolist(), second.y.tolist()) == ([1], [0])
    assert first.class_names == ["-1", "1"]
    assert second.edge_index.tolist() == [[0, 1], [1, 0]]
    assert second.edge_motif.tolist() == [False, True]
    with pytest.raises(GraphError, match="holds 2 graphs: use load_graphs"):
        load_graph(tmp_path)


def test_tu_folder_with_the_least(tmp_path: Path) -> None:
    changes = dict.fromkeys(TU)
    graphs = load_graphs(write_tu(tmp_path, **{**changes, "A": TU["A"], "graph_indicator": "1\n1\n1\n1\n"}))
    assert len(graphs) == 1
    assert sorted(graphs[0].keys()) == ["edge_index", "name", "x"]
    assert graphs[0].x.tolist() == [[1]] * 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"A": None}, r"has no file T_A\.txt"),
        (
            {"A": "1, 5\n", "edge_labels": None, "edge_gt": None},
            "edge 0 points to node 4, but .* nodes 0 to 3",
        ),
        (
            {"A": "1, 3\n", "edge_labels": None, "edge_gt": None},
            "line 1 of T_A.txt joins node 1 of graph 1 to node 3 of",
        ),
        ({"A": "1\n2\n"}, "must have two columns"),
        ({"A": "1, x\n"}, r"T_A\.txt cannot be read"),
        ({"graph_indicator": ""}, "is empty: there are no nodes"),
        ({"graph_indicator": "1\n1\n3\n3\n"}, "graph 2 of .* is empty"),
        ({"graph_indicator": "2\n2\n1\n1\n"}, "must count the graphs upwards from 1"),
        ({"graph_labels": "1\n"}, r"T_graph_labels\.txt in .* has 1 lines, but there must be 2"),
        ({"edge_gt": "1\n"}, r"T_edge_gt\.txt in .* has 1 lines, but there must be 6"),
        ({"node_attributes": "1\nnan\n1\n1\n"}, "x of node 1, column 0 is nan"),
    ],
)
def test_bad_tu_folders(tmp_path: Path, change: dict[str, str | None], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        load_graphs(write_tu(tmp_path, **change))


@pytest.mark.published
def test_mutagenicity(shared: Path) -> None:
    folder = shared / "data" / "tu" / "Mutagenicity"
    graphs = load_graphs(folder)
    assert len(graphs) == 4337
    assert sorted({int(graph.y) for graph in graphs}) == [0, 1]
    assert {graph.x.size(1) for graph in graphs} == {14}
    assert sum(graph.num_edges for graph in graphs) == 266894
    assert sum(int(graph.edge_motif.sum()) for graph in graphs) == 7352
    assert [entry.name for entry in folder.iterdir()] == ["raw"]
    from torch_geometric.io import read_tu_data

    whole, _, _ = read_tu_data(str(folder / "raw"), "Mutagenicity")
    for key, axis in (("x", 0), ("edge_index", 1), ("edge_attr", 0), ("y", 0)):
        assert torch.equal(torch.cat([graph[key] for graph in graphs], dim=axis), whole[key]), key


# Planetoid ----------------------------------------------------------------------------------------------


@pytest.mark.published
def test_cora(shared: Path) -> None:
    folder = shared / "data" / "planetoid" / "Cora"
    data = load_graph(folder)
    assert (data.num_nodes, data.num_edges, data.x.size(1), int(data.y.max()) + 1) == (2708, 10556, 1433, 7)
    assert [int(data[f"{part}_mask"].sum()) for part in ("train", "val", "test")] == [140, 500, 1000]
    assert [entry.name for entry in folder.iterdir()] == ["raw"]
    assert equal(load_graph(folder / "raw"), data)


@pytest.mark.published
@pytest.mark.filterwarnings("ignore")  # of PyG's own reader
def test_cora_equals_pyg(shared: Path) -> None:
    from torch_geometric.io import read_planetoid_data

    folder = shared / "data" / "planetoid" / "Cora" / "raw"
    data, theirs = load_graph(folder), read_planetoid_data(str(folder), "cora")
    del data.name
    assert equal(data, theirs)


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
    }
    parts.update(changes)
    for part, value in parts.items():
        (folder / f"ind.tiny.{part}").write_bytes(value if isinstance(value, bytes) else pickle.dumps(value))
    (folder / "ind.tiny.test.index").write_text("7\n5\n")
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
            load_graph(write_planetoid(tmp_path / part, **{part: Bomb(mark)}))
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


def test_incomplete_or_ambiguous_folders(tmp_path: Path) -> None:
    write_planetoid(tmp_path)
    (tmp_path / "ind.tiny.ty").unlink()
    with pytest.raises(GraphError, match=r"has no file ind\.tiny\.ty"):
        load_graph(tmp_path)
    shutil.copy(tmp_path / "ind.tiny.graph", tmp_path / "ind.other.graph")
    with pytest.raises(GraphError, match=r"holds more than one dataset: ind\.other\.graph, ind\.tiny\.graph"):
        load_graph(tmp_path)
