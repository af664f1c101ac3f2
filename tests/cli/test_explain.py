"""``butfor explain`` for nodes: the same as the library gives, one line at a time."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from butfor.api import explain
from butfor.cli import main
from butfor.datasets import GENERATORS
from butfor.methods import METHODS
from butfor.models import load_checkpoint
from butfor.runs import read_results
from printed_tables import metric_rows

if TYPE_CHECKING:
    from pathlib import Path


Capture = pytest.CaptureFixture[str]


def test_explain_gives_what_the_library_gives(results: Path, trained: Path) -> None:
    data = GENERATORS["tree-cycles"](0)
    nodes = data.test_mask.nonzero().flatten()[:10]
    assert read_results(results) == explain(load_checkpoint(trained)[0], data, nodes)


def test_explain_summarises(trained: Path, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "cfs.jsonl"
    arguments = ["explain", "--checkpoint", str(trained), "--nodes", "600-603", "--out", str(path)]
    assert main(arguments) == 0
    summary = capsys.readouterr().out
    found = [item for item in read_results(path) if item.found]
    assert f"{len(found)} of 4 nodes have a counterfactual; mean size" in summary
    assert f"results in {path}" in summary
    before = path.read_bytes()
    assert main(arguments) == 0
    captured = capsys.readouterr()
    assert captured.err == f"note: all 4 nodes are in {path} already: nothing to do\n"
    assert captured.out.split(";")[:3] == summary.split(";")[:3]
    assert path.read_bytes() == before
    assert main([*arguments, "--quiet"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("method", METHODS)
def test_explain_by_every_method(method: str, trained: Path, tmp_path: Path) -> None:
    path = tmp_path / "cfs.jsonl"
    arguments = ["explain", "--checkpoint", str(trained), "--nodes", "600,601", "--method", method]
    if method in ("cf-gnn", "remove-subgraph"):
        arguments += ["--epochs", "5"]
    assert main([*arguments, "--out", str(path)]) == 0
    assert {item.method.name for item in read_results(path)} == {METHODS[method].__name__}


def test_explain_goal_space_and_budget(trained: Path, tmp_path: Path, capsys: Capture) -> None:
    base = ["explain", "--checkpoint", str(trained), "--nodes", "600", "--evaluations", "none"]
    first = tmp_path / "first.jsonl"
    assert main([*base, "--out", str(first)]) == 0
    (plain,) = read_results(first)
    assert plain.found
    protect = ",".join(f"{u}-{v}" for u, v in plain.removed_edges)
    second = tmp_path / "second.jsonl"
    assert main([*base, "--protect", protect, "--seconds", "60", "--out", str(second)]) == 0
    assert not set(read_results(second)[0].removed_edges) & set(plain.removed_edges)
    third = tmp_path / "third.jsonl"
    assert main([*base, "--wanted", plain.after.name, "--least", "0.01", "--out", str(third)]) == 0
    assert read_results(third)[0].goal != plain.goal
    # The same file for another question is refused.
    assert main([*base, "--wanted", plain.after.name, "--out", str(first)]) == 2
    assert "results of another goal" in capsys.readouterr().err


def test_explain_says_what_other_edits_would_do(trained: Path, tmp_path: Path, capsys: Capture) -> None:
    nothing, other, path = tmp_path / "nothing.json", tmp_path / "other.json", tmp_path / "cfs.jsonl"
    nothing.write_text('{"delete": false}')
    other.write_text('{"max_edits": 3}')
    base = ["explain", "--checkpoint", str(trained), "--nodes", "600", "--space", str(nothing)]
    assert main([*base, "--otherwise", str(other), "--out", str(path)]) == 0
    (result,) = read_results(path)
    assert result.status.value == "impossible"
    assert result.otherwise.found
    assert "No edits do it; with deletions a counterfactual of" in result.note
    capsys.readouterr()
    assert main([*base, "--otherwise", str(other)]) == 0
    assert "If other edits are allowed: But for" in capsys.readouterr().out
    assert main([*base, "--otherwise", str(tmp_path / "missing.json")]) == 2
    assert "missing.json" in capsys.readouterr().err
    assert main([*base, "--out", str(tmp_path / "hint.jsonl")]) == 0
    (hinted,) = read_results(tmp_path / "hint.jsonl")
    assert f"all of its {hinted.edges} edges must stay" in hinted.note
    assert '--otherwise FILE, where the file holds that of --space and "add": {"hops": 2}' in hinted.note
    other.write_text('{"delete": false, "add": {"hops": 2}}')
    assert main([*base, "--otherwise", str(other)]) == 0
    capsys.readouterr()
    assert main(["show", str(tmp_path / "hint.jsonl"), "--node", "600"]) == 0
    assert "edges must stay" in " ".join(capsys.readouterr().out.split())


def test_explain_and_show_by_own_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    names = [f"acct_{number}" for number in range(8)]
    pairs = [(i, (i + 1) % 8) for i in range(8)]
    (tmp_path / "edges.csv").write_text("source,target\n" + "".join(f"{names[u]},{names[v]}\n" for u, v in pairs))
    (tmp_path / "nodes.csv").write_text("id,f,g\n" + "".join(f"{name},{i % 3},{i}\n" for i, name in enumerate(names)))
    (tmp_path / "own_id_models.py").write_text(
        "import torch\nfrom butfor.models import PaperGCN\n"
        "def gcn():\n    torch.manual_seed(0)\n    return PaperGCN(2, 2)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    arguments = ["explain", "--model", "own_id_models:gcn", "--graph", "edges.csv", "--node-table", "nodes.csv"]
    arguments += ["--undirected", "--nodes", "acct_7,acct_3", "--protect", "acct_7-acct_0"]
    assert main([*arguments, "--out", "cfs.jsonl"]) == 0
    found = read_results("cfs.jsonl")
    assert [result.target for result in found] == [7, 3]
    assert not any((0, 7) in result.removed_edges for result in found)
    capsys.readouterr()
    assert main(["show", "cfs.jsonl", "--node", "acct_3"]) == 0
    assert capsys.readouterr().out.startswith("Node acct_3 is predicted")
    assert main(["show", "cfs.jsonl", "--node", "3"]) == 2
    assert "node 3 is not in cfs.jsonl, which has 2 nodes: acct_7, acct_3" in capsys.readouterr().err


@pytest.mark.published
def test_explain_and_evaluate_the_published_model(reference: Path, tmp_path: Path, capsys: Capture) -> None:
    source = ["--published", str(reference / "ba_shapes_gcn_weights.npz")]
    source += ["--graph", str(reference / "ba_shapes_graph.npz")]
    path = tmp_path / "remove-ego.jsonl"
    assert main(["explain", *source, "--method", "remove-ego", "--out", str(path)]) == 0
    assert main(["evaluate", str(path), *source]) == 0
    ours, theirs = metric_rows(capsys.readouterr().out)
    assert ours["found"] == theirs["found"] == "110/140"
    assert ours["fid."] == theirs["fid."] == "0.21"
    assert ours["size"].startswith("10.56±20.1")
    assert (theirs["size"], theirs["spars."]) == ("10.56±20.11", "0.97±0.04")
    assert float(ours["acc."]) > 0  # the published graphs mark no motifs, but they are known
