"""Where the model and the graphs come from, and what cannot be one of them."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from bad_files import npz
from butfor.cli import main
from butfor.cli.source import GraphOptions, Source, read_graphs
from butfor.errors import GraphError, ModelError
from butfor.models import GraphClassifier, PaperGCN, load_checkpoint, save_checkpoint
from cli_folders import RING_NODES, Refused, explain, two_rings, write_molecules

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": np.full((RING_NODES, 3), np.nan, np.float32)}, "x of node 0, column 0 is nan"),
        ({"x": np.ones((RING_NODES, 5), np.float32)}, "takes 3 features per node, but x has 5"),
        (
            {"edge_index": np.array([[0, 1], [1, 99]])},
            "edge 1 points to node 99, but this graph has nodes 0 to 23",
        ),
        ({"edge_index": np.array([[0, -4], [1, 2]])}, "edge 1 starts at node -4"),
        ({"x": np.array([{"a": 1}] * RING_NODES, dtype=object)}, "holds pickled Python objects"),
    ],
)
def test_graphs_that_cannot_be_used(
    refused: Refused, rings: Path, tmp_path: Path, changes: dict[str, np.ndarray], message: str
) -> None:
    graph = tmp_path / "graph.npz"
    np.savez(graph, **two_rings(**changes))
    refused(explain(rings, "--graph", str(graph), "--out", str(rings / "new.jsonl")), message)


def test_graph_files_that_cannot_be_read(refused: Refused, rings: Path, tmp_path: Path) -> None:
    whole = (rings / "graph.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "evil.pt").write_bytes(pickle.dumps(os.system))
    torch.save(PaperGCN(3, 2), tmp_path / "module.pt")
    (tmp_path / "graph.xyz").write_text("?")
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n")
    for graph, message in [
        (tmp_path / "cut.npz", "cannot be read as .npz"),
        (tmp_path / "evil.pt", "damaged or was not written by torch.save"),
        (tmp_path / "module.pt", "which could run code, so it was not read"),
        (tmp_path / "graph.xyz", "no known kind"),
        (tmp_path / "edges.csv", "needs its node table"),
        (tmp_path / "missing.npz", "neither a file or folder nor a generated graph"),
        (tmp_path, "no raw files"),
    ]:
        for command in (explain(rings, "--graph", str(graph)), ["datasets", str(graph)]):
            refused(command, message)
        refused(["train", str(graph), "--out", str(rings / "new")], message)


def test_nodes_of_several_graphs_are_refused(refused: Refused, rings: Path, tmp_path: Path) -> None:
    for name, text in [("A", "1, 2\n"), ("graph_indicator", "1\n1\n2\n"), ("node_labels", "0\n1\n0\n")]:
        (tmp_path / f"Toy_{name}.txt").write_text(text)
    refused(explain(rings, "--graph", str(tmp_path)), "which graphs were left for testing is not known here")
    refused(explain(rings, "--graph", str(tmp_path), "--nodes", "1"), "there are 2 graphs; nodes and links")


def test_graph_options_that_do_not_fit(refused: Refused, rings: Path) -> None:
    graph = str(rings / "graph.npz")
    refused(explain(rings, "--graph", graph, "--graph-seed", "1"), "--graph-seed goes with a generated graph")
    refused(explain(rings, "--graph", "tree-cycles", "--node-table", graph), "--node-table goes with an edge")
    refused(explain(rings, "--graph-seed", "1"), "the checkpoint knows its own graph")


def test_models_that_cannot_be_used(refused: Refused, rings: Path, tmp_path: Path) -> None:
    graph, run = str(rings / "graph.npz"), str(rings / "run")
    for model, message in [
        (["--published", "missing.npz"], "there is no file missing.npz"),
        (["--published", graph], "holds no published GCN"),
        (["--checkpoint", str(tmp_path)], "is no checkpoint"),
        (["--checkpoint", run, "--model", "a:b"], "--checkpoint and --model are both given"),
        (["--checkpoint", run, "--weights", "w"], "--weights goes with --model"),
    ]:
        refused(["explain", *model, "--graph", graph, "--out", str(rings / "new.jsonl")], message)
    refused(["explain", "--model", "models:gcn"], "--model needs a graph")
    refused(["explain", "--graph", graph], "one model is needed and none is given")


def test_a_graph_that_changed_since_the_training(refused: Refused, tmp_path: Path) -> None:
    graph = tmp_path / "graph.npz"
    np.savez(graph, **two_rings())
    assert main(["train", str(graph), "--epochs", "1", "--out", str(tmp_path / "run")]) == 0
    np.savez(graph, **two_rings(x=np.ones((RING_NODES, 3), np.float32)))
    refused(explain(tmp_path), "is no longer the graph that the checkpoint")
    graph.unlink()
    refused(explain(tmp_path), "if it was moved, give --graph")


def test_molecules_that_changed_since_the_training(refused: Refused, tmp_path: Path) -> None:
    molecules = write_molecules(tmp_path / "mine", prefix="Toy")
    train = ["train", str(molecules), "--epochs", "1", "--conv", "gcn", "--readout", "mean"]
    assert main([*train, "--out", str(tmp_path / "run")]) == 0
    model, _ = load_checkpoint(tmp_path / "run")
    assert isinstance(model, GraphClassifier)
    assert (model.conv, model.readout, model.layers) == ("gcn", "mean", 3)
    assert main(["explain", "--checkpoint", str(tmp_path / "run"), "--graphs", "1"]) == 0
    shutil.rmtree(molecules)
    write_molecules(molecules, prefix="Toy", length=6)
    refused(["explain", "--checkpoint", str(tmp_path / "run")], "is no longer the graph that the checkpoint")


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    save_checkpoint(folder, PaperGCN(2, 2, hidden=3), data_info={"name": "tree-cycles", "seed": 0, "sha256": "a"})
    return folder


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"data": {}}, "does not say which graph it is of"),
        ({"data": {"path": ""}}, "does not say which graph it is of"),
        ({"data": {"name": "no-such-graph"}}, "cannot read the graph of the checkpoint"),
        ({"data": {"path": "x" * 5000}}, "cannot read the graph of the checkpoint"),
        ({"data": {"path": "a\0b"}}, "cannot read the graph of the checkpoint"),
        ({"data": {"path": "/dev/zero"}}, "cannot read the graph of the checkpoint"),
        ({"data": {"path": "graph.npz", "node_table": "a\0b"}}, "cannot read the graph of the checkpoint"),
        ({"data": {"name": "tree-cycles", "seed": 0, "sha256": "x"}}, "is no longer the graph"),
        ({"training": {"test": [0, 7]}}, "says that graph 7 was left for testing, but .* has graphs 0 to 0"),
    ],
)
def test_what_a_checkpoint_says_of_its_graph(
    checkpoint: Path, about: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(checkpoint.parent)
    (checkpoint.parent / "graph.npz").write_bytes(npz())
    path = checkpoint / "model.json"
    info = {**json.loads(path.read_text()), "data": read_graphs("graph.npz", GraphOptions())[1], **about}
    path.write_text(json.dumps(info))
    with pytest.raises((GraphError, ModelError), match=message) as caught:
        Source(checkpoint=checkpoint).read()
    assert "\n" not in str(caught.value)


def test_the_example_needs_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--example", "--nodes", "605", "--quiet"]) == 0
    assert "Node 605 is predicted 'motif' (0.93)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--graph", "tree-cycles"], "--example has its own graph"),
        (["--checkpoint", "x"], "--checkpoint and --example are both given"),
        (["--directed"], "--example has its own graph"),
    ],
)
def test_the_example_is_a_model_of_its_own(flags: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--example", "--nodes", "605", *flags]) == 2
    assert sentence in capsys.readouterr().err
