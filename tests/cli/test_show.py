"""``butfor show``: one result in words, and as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from butfor.cli import main
from butfor.runs import read_results
from cli_folders import two_rings

if TYPE_CHECKING:
    from cli_folders import Refused


Capture = pytest.CaptureFixture[str]


def test_show_in_words_and_as_a_picture(results: Path, trained: Path, tmp_path: Path, capsys: Capture) -> None:
    result = next(item for item in read_results(results) if item.found)
    assert main(["show", str(results), "--node", str(result.target)]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{result}\n{result.verdict}\n")
    assert "Exact(" in out
    picture = tmp_path / "node.png"
    arguments = ["show", str(results), "--node", str(result.target), "--checkpoint", str(trained)]
    assert main([*arguments, "--out", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert f"the picture is in {picture}" in capsys.readouterr().out


def test_a_picture_with_edge_labels(tmp_path: Path) -> None:
    rings = two_rings()
    np.savez(tmp_path / "graph.npz", **rings, edge_weight=np.tile(np.arange(25, dtype=np.float32) + 0.5, 2))
    run, results, picture = (str(tmp_path / name) for name in ("run", "done.jsonl", "node.svg"))
    assert main(["train", str(tmp_path / "graph.npz"), "--epochs", "5", "--quiet", "--out", run]) == 0
    assert main(["explain", "--checkpoint", run, "--nodes", "1", "--quiet", "--out", results]) == 0
    show = ["show", results, "--node", "1", "--checkpoint", run, "--out", picture, "--edge-labels", "edge_weight"]
    assert main(show) == 0
    result = read_results(Path(results))[0]
    assert Path(picture).read_text().count('id="edge-label"') == result.edges


def test_edge_labels_that_cannot_be_shown(rings: Path, tmp_path: Path, refused: Refused) -> None:
    show = ["show", str(rings / "done.jsonl"), "--node", "1", "--edge-labels", "amount"]
    picture = tmp_path / "node.svg"
    drawn = [*show, "--checkpoint", str(rings / "run"), "--out", str(picture)]
    refused(drawn, "edge_labels names the edge attribute 'amount', which this graph has not")
    assert not picture.exists()
    refused(show, "--edge-labels is for a picture: give --out FILE too")


def test_show_all_sentences(results: Path, capsys: Capture) -> None:
    assert main(["show", str(results)]) == 0
    assert capsys.readouterr().out.splitlines() == [str(item) for item in read_results(results)]


def test_what_cannot_be_shown(refused: Refused, rings: Path) -> None:
    show = ["show", str(rings / "done.jsonl")]
    picture = str(rings / "picture.png")
    checkpoint = ["--checkpoint", str(rings / "run")]
    refused([*show, "--node", "2"], "node 2 is not in .*done.jsonl, which has 12 nodes: 1, 3, 5")
    refused([*show, "--out", picture], "Give --node")
    refused([*show, "--node", "1", "--out", picture], "a picture needs the model")
    refused([*show, "--node", "1", *checkpoint, "--out", str(rings / "p.gif")], "must end in .png")
    refused([*show, "--node", "1", *checkpoint, "--out", str(rings / "no" / "p.png")], "there is no folder")


def test_what_cannot_be_shown_of_graphs(refused: Refused, tasks: Path) -> None:
    show = ["show", "done.jsonl"]
    refused([*show, "--graph", "99"], "graph 99 is not in done.jsonl, which has 40 graphs: 0, 1, 2")
    refused([*show, "--node", "3"], "done.jsonl holds results of graphs, not of nodes: give --graph")
    refused([*show, "--link", "3-4"], "done.jsonl holds results of graphs, not of links: give --graph")
    refused([*show, "--node", "3", "--number", "3"], "--node and --graph are given together")
    refused([*show, "--out", "new.png"], "which result is to be drawn. Give --graph")
    refused([*show, "--graph", "3", "--out", "new.png"], "a picture needs the model")
