"""``butfor datasets``: the paper's graphs, and graphs of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from butfor.cli import main
from butfor.datasets import GENERATORS, load_graph, save_graph
from butfor.paper import PAPER

if TYPE_CHECKING:
    from pathlib import Path

    from cli_folders import Refused


Capture = pytest.CaptureFixture[str]


def test_datasets_shows_the_generators_beside_the_paper(capsys: Capture) -> None:
    assert main(["datasets"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for name, paper in PAPER.items():
        row = next(number for number, line in enumerate(lines) if line.startswith(name))
        for line in lines[row : row + 2]:
            assert f" {paper.statistics.nodes} " in line
            assert f" {paper.statistics.edges} " in line
            assert line.endswith(f" {paper.statistics.test_nodes}")


def test_datasets_writes_and_describes_a_graph(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "graph.npz"
    assert main(["datasets", "tree-grid", "--seed", "3", "--out", str(path)]) == 0
    assert torch.equal(load_graph(path).edge_index, GENERATORS["tree-grid"](3).edge_index)
    assert main(["datasets", str(path)]) == 0
    out = capsys.readouterr().out
    assert "3410 columns, undirected" in out
    assert "247 nodes" in out
    assert "base: 511, motif: 720" in out


def test_datasets_describes_an_edge_list(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "edges.csv").write_text("source,target\n1,2\n2,3\n")
    (tmp_path / "nodes.csv").write_text("id,size,label\n1,0.5,a\n2,0.5,b\n3,1.0,a\n4,2.0,a\n")
    arguments = ["datasets", str(tmp_path / "edges.csv"), "--nodes", str(tmp_path / "nodes.csv")]
    assert main(arguments) == 0
    assert "2 columns, directed" in capsys.readouterr().out
    assert main([*arguments, "--undirected"]) == 0
    out = capsys.readouterr().out
    assert "4 columns, undirected" in out
    assert "a: 3, b: 1" in out


def test_datasets_counts_many_graphs(tmp_path: Path, capsys: Capture) -> None:
    for name, text in [
        ("A", "1, 2\n2, 1\n3, 4\n"),
        ("graph_indicator", "1\n1\n2\n2\n2\n"),
        ("graph_labels", "0\n1\n"),
    ]:
        (tmp_path / f"Toy_{name}.txt").write_text(text)
    (tmp_path / "Toy_node_labels.txt").write_text("0\n1\n0\n0\n1\n")
    assert main(["datasets", str(tmp_path)]) == 0
    assert "2.50 on average" in capsys.readouterr().out


@pytest.mark.parametrize("labels", [[-1, 0, -1, 0], [0, 2 * 10**9, 0, 1], [0, 10**12, 0, 1], [0, 2**62, 1, 1]])
def test_labels_of_any_number_are_counted(
    labels: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ends = torch.tensor([[0, 1, 2], [1, 2, 3]])
    save_graph(Data(x=torch.ones(4, 1), edge_index=ends, y=torch.tensor(labels)), tmp_path / "graph.npz")
    assert main(["datasets", str(tmp_path / "graph.npz")]) == 0
    out = capsys.readouterr().out
    assert all(f"{label}: {labels.count(label)}" in out for label in labels)


def test_an_empty_graph(refused: Refused, tmp_path: Path) -> None:
    np.savez(tmp_path / "empty.npz", x=np.zeros((0, 3), np.float32), edge_index=np.zeros((2, 0), np.int64))
    refused(["datasets", str(tmp_path / "empty.npz")], "this graph is empty: it has no nodes")


def test_what_cannot_be_written(refused: Refused, rings: Path) -> None:
    graph = str(rings / "graph.npz")
    refused(["datasets", graph, "--out", graph], "exists already")
    refused(["datasets", "--out", "new.npz"], "which graph")
    refused(["datasets", "tree-cycles", "--out", str(rings / "graph.txt")], "must end in .npz")
    refused(["datasets", "tree-cycles", "--out", str(rings / "no" / "g.npz")], "cannot write .*No such file")
