"""Graphs as tables of edges and nodes, in CSV and Parquet, and everything that can be wrong with them."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import pytest

from butfor.datasets import load_graph, save_graph
from butfor.errors import GraphError, InputError
from graphs import same_graph

if TYPE_CHECKING:
    from pathlib import Path

    from torch_geometric.data import Data


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


def test_tables_survive_npz(table, tmp_path: Path) -> None:
    data = table()
    save_graph(data, tmp_path / "graph.npz")
    assert same_graph(load_graph(tmp_path / "graph.npz"), data)


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
    with pytest.raises(InputError, match=r"pip install 'butfor\[tables\]'"):
        table()
