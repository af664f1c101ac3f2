"""``butfor report``: a run as one page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from butfor.cli import main
from butfor.runs import read_results
from page_runs import content

if TYPE_CHECKING:
    from pathlib import Path

    from cli_folders import Refused

Capture = pytest.CaptureFixture[str]


def test_report_with_and_without_the_graph(results: Path, trained: Path, tmp_path: Path, capsys: Capture) -> None:
    page = tmp_path / "report.html"
    assert main(["report", str(results), "--checkpoint", str(trained), "--out", str(page), "--quiet"]) == 0
    assert f"the report of 10 results is in {page}" in capsys.readouterr().out
    found = content(page)
    assert found["title"] == results.name
    assert found["note"] == ""
    assert [record["sentence"] for record in found["results"]] == [str(item) for item in read_results(results)]
    arguments = ["report", str(results), "--out", str(page), "--title", "Ten nodes", "--force", "--quiet"]
    assert main(arguments) == 0
    assert content(page)["title"] == "Ten nodes"
    assert "The graph was not given" in content(page)["note"]


def test_report_of_whole_graphs(tasks: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert main(["report", "done.jsonl", "--checkpoint", "run", "--out", str(page), "--quiet"]) == 0
    found = content(page)
    assert found["noun"] == "graph"
    assert len(found["results"]) == 40
    assert all("symbols" in record["scene"] for record in found["results"])


def test_report_of_a_folder_of_shards(trained: Path, tmp_path: Path) -> None:
    explain = ["explain", "--checkpoint", str(trained), "--limit", "4", "--method", "greedy", "--quiet"]
    assert main([*explain, "--out", f"{tmp_path / 'shards'}/"]) == 0
    assert (tmp_path / "shards").is_dir()
    page = tmp_path / "report.html"
    assert main(["report", str(tmp_path / "shards"), "--checkpoint", str(trained), "--out", str(page)]) == 0
    assert len(content(page)["results"]) == 4


def test_what_cannot_be_reported(refused: Refused, rings: Path, trained: Path) -> None:
    done, checkpoint = str(rings / "done.jsonl"), ["--checkpoint", str(rings / "run")]
    (rings / "mine.html").write_text("mine")
    refused(["report", done, *checkpoint, "--out", str(rings / "mine.html")], "mine.html exists already")
    refused(["report", done, *checkpoint, "--out", str(rings / "page.txt")], "its name must end in .html")
    refused(["report", done, *checkpoint, "--out", str(rings / "no" / "p.html")], "there is no folder")
    page = ["--out", str(rings / "page.html")]
    refused(["report", done, "--checkpoint", str(trained), *page], "is of another graph .* give the graph that was")
    refused(["report", done, "--graph", str(rings / "graph.npz"), *page], "one model is needed and none is given")
    refused(["report", str(rings / "nothing.jsonl"), *page], "nothing.jsonl")
    (rings / "empty.jsonl").write_text("")
    refused(["report", str(rings / "empty.jsonl"), *page], "empty.jsonl")


def test_results_of_another_model_are_refused(refused: Refused, rings: Path) -> None:
    train = ["train", str(rings / "graph.npz"), "--epochs", "3", "--quiet", "--out", str(rings / "other")]
    assert main(train) == 0
    arguments = ["report", str(rings / "done.jsonl"), "--checkpoint", str(rings / "other")]
    refused([*arguments, "--out", str(rings / "page.html")], "is of another model")
