"""One graph_fingerprint of a graph: everything that a model can read, and the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import SAGEConv

import butfor
from butfor.cli import main
from butfor.datasets import describe, save_graph
from butfor.graph.fingerprint import graph_fingerprint
from butfor.graph.graph import Graph
from butfor.testing import random_problem

if TYPE_CHECKING:
    from torch_geometric.data import Data


def full() -> Data:
    data = random_problem(1)[1]
    data.pos = torch.randn(data.num_nodes, 3, generator=torch.Generator().manual_seed(0))
    data.z = torch.arange(data.num_nodes)
    data.edge_weight = torch.ones(data.num_edges)
    data.edge_attr = torch.ones(data.num_edges, 2)
    data.edge_type = torch.zeros(data.num_edges, dtype=torch.long)
    data.batch = torch.zeros(data.num_nodes, dtype=torch.long)
    data.y = torch.zeros(data.num_nodes, dtype=torch.long)
    data.train_mask = torch.ones(data.num_nodes, dtype=torch.bool)
    data.node_ids = [f"n{node}" for node in range(data.num_nodes)]
    return data


READ = ["x", "edge_index", "edge_weight", "edge_attr", "edge_type", "pos", "z", "batch"]


@pytest.mark.parametrize("name", READ)
def test_whatever_a_model_reads_counts(name: str) -> None:
    one, other = full(), full()
    assert graph_fingerprint(one) == graph_fingerprint(other)
    other[name] = other[name].clone()
    other[name].reshape(-1)[0] += 1
    assert graph_fingerprint(one) != graph_fingerprint(other)
    without = full()
    if name not in ("x", "edge_index"):
        del without[name]
        assert graph_fingerprint(one) != graph_fingerprint(without)


@pytest.mark.parametrize("name", ["y", "train_mask", "node_ids"])
def test_what_no_model_reads_does_not(name: str) -> None:
    one, other = full(), full()
    del other[name]
    assert graph_fingerprint(one) == graph_fingerprint(other)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.int32])
def test_any_type_of_features(dtype: torch.dtype) -> None:
    one, other = full(), full()
    one.x = one.x.to(dtype)
    assert graph_fingerprint(one) == graph_fingerprint(one.clone()) != graph_fingerprint(other)


class Placed(nn.Module):
    """Reads where nodes are."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = SAGEConv(7, 3)

    def forward(self, x: Tensor, edge_index: Tensor, pos: Tensor) -> Tensor:
        return self.layer(torch.cat([x, pos], 1), edge_index)


def test_it_is_the_same_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = full()
    del data.batch
    save_graph(data, tmp_path / "graph.npz")
    loaded = butfor.datasets.load_graph(tmp_path / "graph.npz")
    known = graph_fingerprint(loaded)
    assert known == Graph.of(loaded).fingerprint() == describe(loaded)["sha256"]
    assert known == butfor.explain(Placed(), loaded, 0).graph_id
    assert main(["datasets", str(tmp_path / "graph.npz")]) == 0
    assert known in capsys.readouterr().out


def test_a_run_is_not_continued_on_another_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same edges and features, but nodes in other places: the model says something else."""
    monkeypatch.chdir(tmp_path)
    Path("placed_models.py").write_text("import sys\nfrom tests.test_identity import Placed as placed\n")
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    data = full()
    for name in ("batch", "node_ids"):
        del data[name]
    save_graph(data, "one.npz")
    data.pos = data.pos + 1
    save_graph(data, "two.npz")
    command = ["explain", "--model", "placed_models:placed", "--nodes", "0,1", "--out", "cfs.jsonl", "--graph"]
    assert main([*command, "one.npz"]) == 0
    assert main([*command, "two.npz"]) == 2
    assert "holds results of another graph" in capsys.readouterr().err
