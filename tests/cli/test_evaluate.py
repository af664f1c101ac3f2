"""``butfor evaluate``: the metrics of result files, beside the paper's numbers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from butfor.cli import main
from butfor.datasets import GENERATORS, load_mutagenicity, save_graph
from butfor.evaluation import evaluate, motif_edges
from butfor.models import load_checkpoint
from butfor.runs import read_results
from butfor.session import Session
from printed_tables import metric_rows

if TYPE_CHECKING:
    from pathlib import Path

    from cli_folders import Refused


Capture = pytest.CaptureFixture[str]


def test_evaluate_gives_the_metrics(results: Path, trained: Path, capsys: Capture) -> None:
    assert main(["evaluate", str(results), "--checkpoint", str(trained)]) == 0
    (row,) = metric_rows(capsys.readouterr().out)
    data = GENERATORS["tree-cycles"](0)
    session = Session.of(load_checkpoint(trained)[0], data)
    metrics = evaluate(read_results(results), data, session.classes)
    assert row["method"].startswith("exact.jsonl: exact")
    assert row["found"] == f"{metrics.found}/10"
    assert row["size"] == f"{metrics.size.mean:.2f}±{metrics.size.std:.2f}"
    assert row["acc."] == (f"{metrics.accuracy.mean:.2f}" if metrics.accuracy.count else "–")


def test_evaluate_without_known_motifs(results: Path, trained: Path, tmp_path: Path, capsys: Capture) -> None:
    data = GENERATORS["tree-cycles"](0)
    del data.edge_motif
    save_graph(data, tmp_path / "graph.npz")
    assert main(["evaluate", str(results), "--checkpoint", str(trained), "--graph", str(tmp_path / "graph.npz")]) == 0
    (row,) = metric_rows(capsys.readouterr().out)
    assert row["acc."] == row["strict"] == "–"


def test_evaluate_several_files_beside_the_paper(results: Path, trained: Path, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "one-hop.jsonl"
    arguments = ["--checkpoint", str(trained), "--limit", "5", "--method", "keep-ego"]
    assert main(["explain", *arguments, "--out", str(path)]) == 0
    capsys.readouterr()
    assert main(["evaluate", str(results), str(path), "--checkpoint", str(trained)]) == 0
    out = capsys.readouterr().out
    first, hop, paper = metric_rows(out)
    assert out.splitlines()[0] == "Tree-Cycles: 2 result files"
    assert len(out.splitlines()) == 5
    assert first["method"].startswith("exact.jsonl: exact")
    assert hop["method"].startswith("one-hop.jsonl: keep-ego")
    published = {"fid.": "0.32", "size": "15.64±12.36", "spars.": "0.13±0.06", "acc.": "0.45", "strict": "–"}
    published |= {"method": "paper: 1HOP", "found": "119/175"}
    # The paper has nothing for a metric that it does not know.
    assert paper == dict.fromkeys(paper, "–") | published


def test_evaluate_without_a_model(results: Path, capsys: Capture) -> None:
    assert main(["evaluate", str(results)]) == 0
    captured = capsys.readouterr()
    (row,) = metric_rows(captured.out)
    assert row["acc."] == row["strict"] == "–"
    assert "accuracy needs the model" in captured.err


def test_a_graph_without_its_model_is_refused(refused: Refused, rings: Path) -> None:
    refused(["evaluate", str(rings / "done.jsonl"), "--graph", "tree-cycles"], "a graph alone does not do")


def test_an_incomplete_last_line_is_noted(results: Path, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "cut.jsonl"
    path.write_bytes(results.read_bytes()[:-30])
    assert main(["evaluate", str(path)]) == 0
    captured = capsys.readouterr()
    assert "note: the last line of" in captured.err
    assert "/9 " in captured.out


def test_graphs_are_measured_on_their_ground_truth(tasks: Path, capsys: Capture) -> None:
    assert main(["evaluate", "done.jsonl"]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("whole graphs: 1 result file")
    (row,) = metric_rows(captured.out)
    assert row["acc."] == row["strict"] == "–"
    assert "accuracy needs the model" in captured.err
    assert main(["evaluate", "done.jsonl", "--checkpoint", "run"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Mutagenicity: 1 result file")
    shares = []
    for result, data in zip(read_results("done.jsonl"), load_mutagenicity("molecules"), strict=True):
        if result.found and motif_edges(data):
            shares.append(np.mean([edge in motif_edges(data) for edge in result.removed_edges]))
    assert shares
    (row,) = metric_rows(out)
    assert row["acc."] == f"{np.mean(shares):.2f}"
    assert row["strict"] == f"{np.mean(np.array(shares) == 1):.2f}"


def test_files_of_the_same_graphs_share_a_table(tasks: Path, tmp_path: Path, capsys: Capture) -> None:
    lines = (tasks / "done.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "few.jsonl").write_text("".join(lines[5:9]))
    other = [json.loads(line) | {"graph_id": "ffff"} for line in lines[:3]]
    (tmp_path / "other.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in other))
    assert main(["evaluate", "done.jsonl", str(tmp_path / "few.jsonl"), str(tmp_path / "other.jsonl")]) == 0
    out = capsys.readouterr().out
    assert out.count("whole graphs: 2 result files") == out.count("whole graphs: 1 result file\n") == 1
