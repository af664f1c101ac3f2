"""Folders of a TUDataset, and everything that can be wrong with them."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

import pytest
import torch

from bad_files import MOST, check_refused
from butfor.datasets import load_graph, load_graphs
from butfor.errors import GraphError

if TYPE_CHECKING:
    from pathlib import Path


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
@pytest.mark.slow
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


# One graph with one edge, and no more than is needed.
MINIMAL = {"A": "1, 2\n2, 1\n", "graph_indicator": "1\n1\n"}


DAMAGED: dict[str, dict[str, str | bytes]] = {
    "binary": {"A": b"\xff\xfe\x00"},
    "fractions": {"A": "1.5, 2\n2, 1\n"},
    "beyond 64 bits": {"A": "1, 99999999999999999999999\n2, 1\n"},
    "least number": {"A": f"{-(2**63)}, 1\n2, 1\n"},
    "zero": {"A": "0, 1\n2, 1\n"},
    "three columns": {"A": "1, 2, 3\n"},
    "ragged": {"A": "1, 2\n1\n"},
    "empty edges": {"A": ""},
    "words": {"graph_indicator": "one\none\n"},
    "giant graph": {"graph_indicator": f"1\n{10**15}\n"},
    "graph of the last number": {"graph_indicator": f"1\n{2**63 - 1}\n"},
    "graph of the least number": {"graph_indicator": f"{-(2**63)}\n1\n"},
    "giant node label": {"node_labels": f"0\n{10**12}\n"},
    "labels from end to end": {"node_labels": f"{-(2**63)}\n{2**63 - 1}\n"},
    "giant edge label": {"edge_labels": f"{10**12}\n0\n"},
    "nan": {"node_attributes": "1\nnan\n"},
    "infinite edge": {"edge_attributes": "1\ninf\n"},
    "wrong truth": {"edge_gt": "0\n7\n"},
    "wrong length": {"edge_gt": "0\n"},
    "labels are words": {"graph_labels": "a\n"},
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_tu_folders(tmp_path: Path, case: str) -> None:
    for part, content in {**MINIMAL, **DAMAGED[case]}.items():
        (tmp_path / f"T_{part}.txt").write_bytes(content if isinstance(content, bytes) else content.encode())
    check_refused(lambda: load_graphs(tmp_path), GraphError, tmp_path, "")


def test_many_labels_are_one_hot_all_the_same(tmp_path: Path) -> None:
    for part, content in {**MINIMAL, "node_labels": "0\n100000\n"}.items():
        (tmp_path / f"T_{part}.txt").write_text(content)
    tracemalloc.start()
    (graph,) = load_graphs(tmp_path)
    assert tracemalloc.get_traced_memory()[1] < MOST, "not a square of labels"
    tracemalloc.stop()
    assert graph.x.shape == (2, 100001)
    assert graph.x.nonzero().tolist() == [[0, 0], [1, 100000]]
