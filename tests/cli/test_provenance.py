"""Results are only measured and drawn with the model and the graphs that they are of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from butfor.cli import main
from cli_folders import RING_NODES, Refused, two_rings, write_molecules

if TYPE_CHECKING:
    from pathlib import Path


def test_results_of_another_graph_or_model_are_refused(refused: Refused, rings: Path, tmp_path: Path) -> None:
    done, graph = str(rings / "done.jsonl"), tmp_path / "graph.npz"
    np.savez(graph, **two_rings(x=np.ones((RING_NODES, 3), np.float32)))
    assert main(["train", str(rings / "graph.npz"), "--epochs", "2", "--out", str(tmp_path / "run")]) == 0
    other_graph = ["--checkpoint", str(rings / "run"), "--graph", str(graph)]
    other_model = ["--checkpoint", str(tmp_path / "run")]
    refused(["evaluate", done, *other_graph], "results of another graph")
    refused(["evaluate", done, *other_model], "results of another model")
    refused(["show", done, "--node", "1", *other_model, "--out", str(rings / "p.png")], "another model")


def test_results_of_other_graphs_are_refused(refused: Refused, tasks: Path, tmp_path: Path) -> None:
    others = str(write_molecules(tmp_path / "others", length=5))
    few = str(write_molecules(tmp_path / "few", count=20))
    evaluate = ["evaluate", "done.jsonl", "--checkpoint", "run", "--graph"]
    refused([*evaluate, others], "results of another graph")
    refused([*evaluate, few], r"graph 20 is not there \(0 to 19\)")
    draw = ["show", "done.jsonl", "--number", "3", "--checkpoint", "run", "--graph", others, "--out", "new.png"]
    refused(draw, "results of another graph")
