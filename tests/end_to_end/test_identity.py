"""One fingerprint of a graph: the same in every place that shows it, and a run belongs to it."""

from __future__ import annotations

from pathlib import Path

import pytest

import butfor
from butfor.cli import main
from butfor.datasets import describe, save_graph
from butfor.graph.fingerprint import graph_fingerprint
from butfor.graph.graph import Graph
from full_graph import full_graph

PLACED = """
import torch
from torch_geometric.nn import SAGEConv

class Placed(torch.nn.Module):
    '''Reads where nodes are.'''

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = SAGEConv(7, 3)

    def forward(self, x, edge_index, pos):
        return self.layer(torch.cat([x, pos], 1), edge_index)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a module that has the model."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("placed_models.py").write_text(PLACED)
    return tmp_path


def test_it_is_the_same_everywhere(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from placed_models import Placed

    data = full_graph()
    del data.batch
    save_graph(data, "graph.npz")
    loaded = butfor.datasets.load_graph("graph.npz")
    known = graph_fingerprint(loaded)
    assert known == Graph.of(loaded).fingerprint() == describe(loaded)["sha256"]
    assert known == butfor.explain(Placed(), loaded, 0).graph_id
    assert main(["datasets", "graph.npz"]) == 0
    assert known in capsys.readouterr().out


def test_a_run_is_not_continued_on_another_graph(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same edges and features, but nodes in other places: the model says something else."""
    data = full_graph()
    for name in ("batch", "node_ids"):
        del data[name]
    save_graph(data, "one.npz")
    data.pos = data.pos + 1
    save_graph(data, "two.npz")
    command = ["explain", "--model", "placed_models:Placed", "--nodes", "0,1", "--out", "cfs.jsonl", "--graph"]
    assert main([*command, "one.npz"]) == 0
    assert main([*command, "two.npz"]) == 2
    assert "holds results of another graph" in capsys.readouterr().err
