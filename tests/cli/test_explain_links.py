"""``butfor explain`` for links and for models that return one number."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import butfor
from butfor.cli import main
from butfor.datasets import load_graph
from butfor.runs import read_results
from printed_tables import metric_rows

if TYPE_CHECKING:
    from pathlib import Path

    from cli_folders import Refused


Capture = pytest.CaptureFixture[str]

LINKS = ["--model", "task_models:Links", "--graph", "graph.npz"]
LINES = ["explain", *LINKS, "--links", "3-5,7-2"]


def test_links_as_the_library_explains_them(tasks: Path, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "links.jsonl"
    assert main([*LINES, "--threshold", "1.5", "--out", str(path)]) == 0
    assert "of 2 links have a counterfactual" in capsys.readouterr().out
    found = read_results(path)
    import task_models  # type: ignore[import-not-found]

    model, data = task_models.Links(), load_graph("graph.npz")
    pairs = [butfor.Pair(3, 5), butfor.Pair(7, 2)]
    assert found == butfor.explain(model, data, pairs, goal=butfor.Goal(threshold=1.5))
    assert [result.target for result in found] == pairs
    assert found[0].found
    assert main([*LINES, "--threshold", "1.5", "--out", str(path)]) == 0
    assert f"all 2 links are in {path} already" in capsys.readouterr().err
    assert main([*LINES, "--threshold", "0.2", "--out", str(path)]) == 2
    assert "results of another goal" in capsys.readouterr().err


def test_links_shown_drawn_and_measured(tasks: Path, tmp_path: Path, capsys: Capture) -> None:
    path, picture = tmp_path / "links.jsonl", tmp_path / "link.png"
    assert main([*LINES, "--threshold", "1.5", "--out", str(path)]) == 0
    assert main(["show", str(path), "--link", "7-2"]) == 0
    assert "Link 7–2 is predicted" in capsys.readouterr().out
    assert main(["show", str(path), "--link", "3-5", *LINKS, "--out", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    capsys.readouterr()
    assert main(["evaluate", str(path), *LINKS]) == 0
    (row,) = metric_rows(capsys.readouterr().out)
    assert row["method"] == "links.jsonl: exact"
    assert row["found"].endswith("/2")
    assert row["acc."] == row["strict"] == "–"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--links", "3"], "'3' is no link; links are written as two nodes, such as 3-17,4-9"),
        (["--links", "3-12"], r"node 12 is not in this graph \(0 to 11\)"),
        (["--links", ","], "names no links"),
        (["--links", "@missing"], "cannot read missing: No such file"),
        (["--links", "3-5", "--nodes", "1"], "--nodes and --links are given together"),
        (["--links", "3-5", "--graphs", "all"], "--links and --graphs are given together"),
        (["--links", "3-5"], "threshold"),
        (["--links", "3-5", "--threshold", "nan"], "threshold is nan"),
        (["--links", "3-5", "--threshold", "0", "--wanted", "7"], "class 7 is wanted"),
        (["--links", "3-5", "--threshold", "0", "--wanted", "linked"], "'linked' is no class .*give its number"),
        (["--links", "3-5", "--threshold", "0", "--probability", "0.9"], "gives no probabilities"),
    ],
)
def test_links_that_make_no_sense(refused: Refused, tasks: Path, flags: list[str], message: str) -> None:
    refused(["explain", *LINKS, *flags, "--out", "new.jsonl"], message)


def test_a_model_that_predicts_no_links(refused: Refused, tasks: Path) -> None:
    argv = ["explain", "--model", "task_models:Nodes", "--graph", "graph.npz", "--links", "3-5"]
    refused(argv, "does not say how it predicts links")


def test_probability_and_threshold(tasks: Path, tmp_path: Path) -> None:
    sure, number = tmp_path / "sure.jsonl", tmp_path / "number.jsonl"
    nodes = ["--graph", "graph.npz", "--nodes", "all"]
    assert main(["explain", "--model", "task_models:Nodes", *nodes, "--probability", "0.6", "--out", str(sure)]) == 0
    assert {result.goal for result in read_results(sure)} == {butfor.Goal(probability=0.6)}
    assert all(result.after.probability >= 0.6 for result in read_results(sure) if result.after is not None)
    source = ["--model", "task_models:number", *nodes[:2]]
    assert main(["explain", *source, *nodes[2:], "--threshold", "0.1", "--out", str(number)]) == 0
    found = read_results(number)
    assert any(result.found for result in found)
    assert all((result.after.value > 0.1) != (result.before.value > 0.1) for result in found if result.found)
    assert main(["evaluate", str(number), *source]) == 0
    assert main(["show", str(number), "--node", "3", *source, "--out", str(tmp_path / "node.png")]) == 0


def test_a_probability_that_makes_no_sense(refused: Refused, tasks: Path) -> None:
    nodes = ["explain", "--model", "task_models:Nodes", "--graph", "graph.npz", "--nodes", "all"]
    refused([*nodes, "--probability", "1.5"], "probability is 1.5; it must lie between 0 and 1")


def test_results_of_another_task_are_refused(refused: Refused, tasks: Path, tmp_path: Path) -> None:
    nodes = ["explain", "--model", "task_models:Nodes", "--graph", "graph.npz", "--nodes", "1", "--out"]
    assert main([*nodes, str(tmp_path / "nodes.jsonl")]) == 0
    (result,) = read_results(tmp_path / "nodes.jsonl")
    (tmp_path / "graphs.jsonl").write_text(json.dumps(replace(result, task="graph").to_dict()) + "\n")
    refused([*nodes, str(tmp_path / "graphs.jsonl")], r"results of another task \(graph instead of node\)")
