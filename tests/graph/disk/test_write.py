"""A graph written to a folder is the same graph when it is opened."""

from __future__ import annotations

import copy
import json
import pickle
import shutil
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data, HeteroData

import butfor
from butfor.errors import GraphError, InputError
from butfor.graph.csr import Incoming
from butfor.graph.disk.partial import PartialFolder
from butfor.graph.fingerprint import tensors_fingerprint
from butfor.graph.graph import Graph
from butfor.graph.stored import stored_of
from butfor.graph.symmetry import is_symmetric
from disk_graphs import check_same

if TYPE_CHECKING:
    from pathlib import Path


def a_graph(**more: object) -> Data:
    fields = {
        "x": torch.rand(5, 3),
        "edge_index": torch.tensor([[4, 0, 0, 2, 1, 0], [0, 1, 1, 3, 0, 4]]),
        "edge_weight": torch.rand(6),
        "edge_attr": torch.rand(6, 2),
        "capacity": torch.arange(6),
        "pos": torch.rand(5, 2).double(),
        "y": torch.tensor([0, 1, 0, 1, 1]),
        "train_mask": torch.tensor([True, False, True, False, False]),
        "node_ids": ["a", "bb", "ccc", "d", "é"],
        "class_names": ["cat", "dog"],
        "edge_label_index": torch.tensor([[0, 1], [1, 2]]),
        "seed": 3,
        "scale": torch.tensor(2.5),
    }
    return Data(**{**fields, **more})


def a_typed_graph() -> HeteroData:
    data = HeteroData()
    data["user"].x, data["item"].x = torch.rand(4, 3), torch.rand(6, 2)
    data["user"].y = torch.tensor([0, 1, 1, 0])
    data["item"].node_ids = [30, 10, 50, 20, 40, 60]
    edges = torch.tensor([[3, 0, 1, 2, 2, 0], [5, 4, 4, 0, 1, 0]])
    data["user", "buys", "item"].edge_index = edges
    data["user", "buys", "item"].edge_attr = torch.rand(6, 2)
    data["user", "buys", "item"].edge_label_index = edges[:, :3]
    data["item", "rev_buys", "user"].edge_index = edges.flip(0)
    data["user", "knows", "user"].edge_index = torch.tensor([[0, 1, 2], [1, 0, 2]])
    data["item", "like", "item"].edge_index = torch.empty(2, 0, dtype=torch.long)
    data.class_names = ["no", "yes"]
    return data


def test_a_graph_with_everything(tmp_path: Path) -> None:
    data = a_graph()
    butfor.write_graph(data, tmp_path / "graph")
    opened = butfor.open_graph(tmp_path / "graph")
    assert isinstance(opened, Data)
    order = np.lexsort((data.edge_index[0], data.edge_index[1]))
    assert opened.capacity.tolist() == data.capacity[order].tolist()
    assert opened.edge_label_index.tolist() == data.edge_label_index.tolist()
    data.capacity = data.capacity[order]  # which is of edges by its length alone
    check_same(opened, data)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graph"]


def test_several_types(tmp_path: Path) -> None:
    data = a_typed_graph()
    butfor.write_graph(data, tmp_path / "graph")
    opened = butfor.open_graph(tmp_path / "graph")
    assert isinstance(opened, HeteroData)
    check_same(opened, data)
    found, wanted = Graph.of(opened).types, Graph.of(data).types
    assert found is not None
    assert wanted is not None
    assert found.relations == wanted.relations
    assert found.forward.tolist() == wanted.forward.tolist() == [0, 0, 2, 3]
    assert found.undirected.tolist() == wanted.undirected.tolist() == [False, False, True, False]


@pytest.mark.parametrize(
    "more",
    [
        {"edge_index": torch.empty(2, 0, dtype=torch.long), "edge_weight": torch.empty(0)},
        {"edge_index": torch.tensor([[0], [0]]), "y": torch.tensor([1])},
        {"edge_index": torch.tensor([[0, 1], [1, 0]], dtype=torch.int32), "edge_weight": torch.tensor([1.0, 2.0])},
        {"edge_index": torch.tensor([[0, 1], [1, 0]]), "x": torch.arange(6).reshape(3, 2)},
    ],
    ids=["no edges", "a loop", "other weights back", "integer features"],
)
def test_small_graphs(tmp_path: Path, more: dict[str, torch.Tensor]) -> None:
    data = Data(**{"x": torch.ones(3, 1), **more})
    butfor.write_graph(data, tmp_path / "graph")
    check_same(butfor.open_graph(tmp_path / "graph"), data)


@settings(deadline=None, max_examples=60)
@given(
    st.integers(1, 7),
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 1)), max_size=14),
    st.booleans(),
    st.booleans(),
)
def test_any_graph(tmp_path_factory, nodes: int, edges: list[tuple[int, int, int]], both: bool, weighted: bool) -> None:
    edges = [(u % nodes, v % nodes, w) for u, v, w in edges]
    if both:
        edges += [(v, u, w) for u, v, w in edges if u != v]
    array = np.array(edges, dtype=np.int64).reshape(-1, 3)
    data = Data(x=torch.rand(nodes, 1), edge_index=torch.from_numpy(array[:, :2].T.copy()))
    if weighted:
        data.edge_weight = torch.from_numpy(array[:, 2].astype(np.float32))
    folder = tmp_path_factory.mktemp("any") / "graph"
    butfor.write_graph(data, folder, memory=300)  # three edges at a time
    opened = butfor.open_graph(folder)
    check_same(opened, data, hops=3)
    incoming = Incoming.of(data.edge_index.numpy(), nodes, "source_to_target")
    assert stored_of(opened).reversible == is_symmetric(incoming)


def test_directed_is_as_given(tmp_path: Path) -> None:
    both = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1], [1, 0]]), edge_weight=torch.tensor([1.0, 2.0]))
    butfor.write_graph(both, tmp_path / "weights differ")
    opened = butfor.open_graph(tmp_path / "weights differ")
    assert Graph.of(opened).directed
    assert not Graph.of(opened, directed=False).directed
    butfor.write_graph(both, tmp_path / "given", directed=False)
    assert not Graph.of(butfor.open_graph(tmp_path / "given")).directed
    assert Graph.of(butfor.open_graph(tmp_path / "given"), directed=True).directed
    one_way = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0], [1]]))
    with pytest.raises(GraphError, match="some edges have no reverse"):
        butfor.write_graph(one_way, tmp_path / "refused", directed=False)
    butfor.write_graph(one_way, tmp_path / "one way")
    with pytest.raises(GraphError, match="directed=False was given, but some edges have no reverse"):
        Graph.of(butfor.open_graph(tmp_path / "one way"), directed=False)
    assert not (tmp_path / "refused").exists()


def test_it_is_pickled_as_its_path(tmp_path: Path) -> None:
    for data in (a_graph(), a_typed_graph()):
        folder = tmp_path / type(data).__name__
        butfor.write_graph(data, folder)
        opened = butfor.open_graph(folder)
        for sent in (opened, Graph.of(opened)):
            content = pickle.dumps(sent)
            assert len(content) < 1000
            received = Graph.of(getattr(pickle.loads(content), "data", pickle.loads(content)))
            assert received.path == folder.resolve()
            assert received.fingerprint() == Graph.of(opened).fingerprint()
        graph = Graph.of(data)  # in memory, all of it travels
        assert pickle.loads(pickle.dumps(graph)).fingerprint() == graph.fingerprint()


def test_whoever_opens_another_graph_there_is_told(tmp_path: Path) -> None:
    butfor.write_graph(a_graph(), tmp_path / "graph")
    content = pickle.dumps(butfor.open_graph(tmp_path / "graph"))
    butfor.write_graph(a_graph(x=torch.zeros(5, 1)), tmp_path / "graph", force=True)
    with pytest.raises(GraphError, match="no longer the graph that it was"):
        pickle.loads(content)


def test_what_is_changed_is_in_memory(tmp_path: Path) -> None:
    butfor.write_graph(a_graph(), tmp_path / "graph")
    for change in ("y", "new", "copy", "delete"):
        opened = butfor.open_graph(tmp_path / "graph")
        written = Graph.of(opened).fingerprint()
        if change == "copy":
            opened = copy.copy(opened)
            assert type(opened) is Data
        elif change == "delete":
            del opened.y
        else:
            opened[change] = torch.zeros(5)
        graph = Graph.of(opened)
        assert graph.path is None
        assert graph.fingerprint() == tensors_fingerprint(opened)
        assert (graph.fingerprint() == written) == (change != "new")
        received = pickle.loads(pickle.dumps(opened))
        assert type(received) is Data
        assert set(received.keys()) == set(opened.keys())
    typed = tmp_path / "typed"
    butfor.write_graph(a_typed_graph(), typed)
    opened = butfor.open_graph(typed)
    opened["user"].x = opened["user"].x + 1
    assert Graph.of(opened).path is None
    assert type(copy.deepcopy(butfor.open_graph(typed))) is HeteroData


def test_nothing_is_overwritten_but_a_graph(tmp_path: Path) -> None:
    folder = tmp_path / "graph"
    butfor.write_graph(a_graph(), folder)
    with pytest.raises(InputError, match="exists already"):
        butfor.write_graph(a_graph(), folder)
    butfor.write_graph(a_graph(y=torch.zeros(5).long()), folder, force=True)
    assert not butfor.open_graph(folder).y.any()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "graph.json").write_text(json.dumps({"nodes": []}))
    for other in (tmp_path / "mine", tmp_path):
        with pytest.raises(InputError, match="not the folder of a graph"):
            butfor.write_graph(a_graph(), other, force=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="exists already"):
        butfor.write_graph(a_graph(), tmp_path / "file")
    with pytest.raises(GraphError, match="cannot write"):
        butfor.write_graph(a_graph(), tmp_path / "file" / "below")


def test_what_a_killed_process_left_is_no_hindrance_and_a_running_one_is(tmp_path: Path) -> None:
    left = tmp_path / ".cut.partial"
    (left / "notes").mkdir(parents=True)
    for name in ("x.npy", "notes/source", ".lock"):
        (left / name).write_bytes(b"half")
    butfor.write_graph(a_graph(), tmp_path / "cut")
    butfor.write_graph(a_graph(), tmp_path / "whole")
    names = [
        {path.relative_to(folder) for path in folder.rglob("*")} for folder in (tmp_path / "cut", tmp_path / "whole")
    ]
    assert names[0] == names[1]
    # Killed at the very end, when the graph of before was on its way out.
    shutil.copytree(tmp_path / "whole", tmp_path / ".whole.replaced")
    butfor.write_graph(a_graph(), tmp_path / "whole", force=True)
    assert not (tmp_path / ".whole.replaced").exists()
    with PartialFolder(tmp_path / "new"):
        with pytest.raises(InputError, match=r"another conversion to .*new is running"):
            butfor.write_graph(a_graph(), tmp_path / "new", force=True)
        assert (tmp_path / ".new.partial").exists()
    butfor.write_graph(a_graph(), tmp_path / "new")


def test_what_no_file_holds_is_refused(tmp_path: Path) -> None:
    for more, words in (
        ({"pos": torch.ones(5, 1).bfloat16()}, "attribute pos is a tensor of torch.bfloat16"),
        ({"thing": object()}, "attribute thing is a object, which no file can hold"),
        ({"node_ids": [1, "a", None, 2, 3]}, "attribute node_ids has neither numbers nor text alone"),
        ({"x": torch.full((5, 2), torch.nan)}, "x of node 0, column 0 is nan: 10 of its values are not finite"),
        ({"edge_index": torch.tensor([[0], [9]]), "edge_weight": None, "edge_attr": None}, "points to node 9"),
    ):
        with pytest.raises(GraphError, match=words):
            butfor.write_graph(a_graph(**more), tmp_path / "graph")
        assert not list(tmp_path.iterdir())


def test_reverses_are_added_if_that_is_wanted(tmp_path: Path) -> None:
    one_way = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1, 1], [1, 0, 2]]), edge_weight=torch.arange(3.0))
    butfor.write_graph(one_way, tmp_path / "both", undirected=True)
    opened = butfor.open_graph(tmp_path / "both")
    assert opened.edge_index.T.tolist() == [[1, 0], [0, 1], [2, 1], [1, 2]]
    assert opened.edge_weight.tolist() == [1, 0, 2, 2]
    typed = HeteroData()
    typed["a"].x = torch.ones(2, 1)
    with pytest.raises(InputError, match="not known which relation holds the reverses"):
        butfor.write_graph(typed, tmp_path / "typed", undirected=True)
    assert not (tmp_path / "typed").exists()
