"""``butfor train``: a checkpoint that knows its graph."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from butfor.cli import main
from butfor.models import GraphClassifier, load_checkpoint
from cli_folders import Refused, two_rings, write_molecules
from graphs import small_graph

if TYPE_CHECKING:
    from pathlib import Path


Capture = pytest.CaptureFixture[str]


def test_train_writes_a_checkpoint_that_knows_its_graph(tmp_path: Path, capsys: Capture) -> None:
    folder = tmp_path / "deep" / "run"
    arguments = ["train", "tree-cycles", "--graph-seed", "5", "--seed", "2", "--epochs", "3", "--hidden", "7"]
    assert main([*arguments, "--out", str(folder)]) == 0
    assert "on test nodes (3 epochs)" in capsys.readouterr().out
    model, info = load_checkpoint(folder)
    assert model.hidden == 7
    assert (info["data"]["name"], info["data"]["seed"]) == ("tree-cycles", 5)
    assert info["training"]["seed"] == 2
    assert main(["explain", "--checkpoint", str(folder), "--nodes", "17"]) == 0
    assert capsys.readouterr().out.startswith("Node 17 is predicted ")


def test_train_on_a_file_and_explain_from_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    (tmp_path / "edges.csv").write_text("source,target\n" + "".join(f"{i},{(i + 1) % 9}\n" for i in range(9)))
    rows = "".join(f"{i},{i % 3},{i % 2},{'train' if i < 6 else 'test'}\n" for i in range(9))
    (tmp_path / "nodes.csv").write_text("id,size,label,split\n" + rows)
    monkeypatch.chdir(tmp_path)
    arguments = ["train", "edges.csv", "--node-table", "nodes.csv", "--undirected", "--epochs", "5"]
    assert main([*arguments, "--out", "run"]) == 0
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    capsys.readouterr()
    assert main(["explain", "--checkpoint", "../run", "--nodes", "all"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 9


def test_train_on_several_graphs_gives_a_classifier_of_graphs(tasks: Path) -> None:
    model, info = load_checkpoint("run")
    assert isinstance(model, GraphClassifier)
    assert info["arguments"] == {
        "num_features": 14,
        "num_classes": 2,
        "hidden": 8,
        "layers": 2,
        "conv": "gin",
        "readout": "max",
    }
    assert (info["data"]["name"], info["data"]["graphs"], len(info["training"]["test"])) == ("Mutagenicity", 40, 4)


def test_graphs_that_are_generated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    from butfor.datasets import motif_graphs

    monkeypatch.setattr("butfor.datasets.ba_2motifs", lambda seed: motif_graphs.ba_2motifs(30, seed))
    assert main(["datasets", "ba-2motifs"]) == 0
    out = capsys.readouterr().out
    assert "cycle: 15, house: 15" in out
    assert re.search(r"ground truth +30 graphs", out)
    run = str(tmp_path / "run")
    assert main(["train", "ba-2motifs", "--graph-seed", "2", "--epochs", "2", "--out", run]) == 0
    assert "on test graphs (2 epochs)" in capsys.readouterr().out
    assert load_checkpoint(run)[1]["data"]["seed"] == 2
    assert main(["explain", "--checkpoint", run, "--graphs", "3", "--evaluations", "50"]) == 0
    assert capsys.readouterr().out.startswith("Graph 3 is predicted")
    assert main(["datasets", "ba-2motifs", "--out", str(tmp_path / "all.npz")]) == 2
    assert "holds 30 graphs, and .npz takes one" in capsys.readouterr().err


def test_training_that_cannot_be_done(refused: Refused, rings: Path, tmp_path: Path) -> None:
    graph = str(rings / "graph.npz")
    new = str(rings / "new")
    np.savez(tmp_path / "bare.npz", **{key: two_rings()[key] for key in ("x", "edge_index")})
    torch.save(small_graph(x=torch.ones(3, 1, dtype=torch.long)), tmp_path / "atoms.pt")
    for arguments, message in [
        ([graph, "--out", str(rings / "run")], "is not empty; choose another folder"),
        ([graph, "--out", str(rings / "graph.npz" / "new")], "graph.npz is not a folder"),
        ([graph, "--out", str(rings / "graph.npz")], "graph.npz is not a folder"),
        ([graph, "--epochs", "0", "--out", new], "--epochs is 0"),
        ([graph, "--lr", "nan", "--out", new], "--lr is nan"),
        ([graph, "--weight-decay", "-1", "--out", new], "--weight-decay is -1"),
        ([graph, "--hidden", "0", "--out", new], "--hidden is 0"),
        ([str(tmp_path / "bare.npz"), "--out", new], "no labels"),
        ([str(tmp_path / "atoms.pt"), "--out", new], "GCN takes floating features"),
    ]:
        refused(["train", *arguments], message)
    assert main(["train", graph, "--epochs", "1", "--out", str(tmp_path / "run")]) == 0
    assert main(["train", graph, "--epochs", "2", "--out", str(tmp_path / "run"), "--force"]) == 0


def test_training_on_graphs_that_cannot_be_done(refused: Refused, tasks: Path, tmp_path: Path) -> None:
    few = str(write_molecules(tmp_path / "few", count=4))
    for arguments, message in [
        ([few], "there are 4 graphs, but a split .* at least 10"),
        (["molecules", "--layers", "0"], "--layers is 0; at least 1 is needed"),
        (["molecules", "--conv", "gat"], 'Invalid value "gat" for --conv'),
        (["graph.npz", "--conv", "gin"], "--conv goes with several graphs, and graph.npz is one"),
        (["molecules", "--graph-seed", "1"], "--graph-seed goes with a generated graph"),
    ]:
        refused(["train", *arguments, "--out", "new"], message)
