"""``butfor explain`` for whole graphs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

import butfor
from butfor.cli import main
from butfor.datasets import load_mutagenicity
from butfor.models import load_checkpoint
from butfor.runs import read_results
from cli_folders import Refused, write_molecules

if TYPE_CHECKING:
    from pathlib import Path


Capture = pytest.CaptureFixture[str]


def test_graphs_as_the_library_explains_them(tasks: Path) -> None:
    results = read_results("done.jsonl")
    graphs = load_mutagenicity("molecules")
    model, _ = load_checkpoint("run")
    assert results == butfor.explain(model, graphs)
    assert [result.target for result in results] == list(range(40))
    assert len({result.graph_id for result in results}) > 5


def test_the_chemists_way(tasks: Path, tmp_path: Path, capsys: Capture) -> None:
    path, picture = tmp_path / "mutag.jsonl", tmp_path / "molecule.png"
    assert main(["explain", "--checkpoint", "run", "--graphs", "2-6", "--out", str(path)]) == 0
    assert "of 5 graphs have a counterfactual" in capsys.readouterr().out
    before = path.read_bytes()
    assert main(["explain", "--checkpoint", "run", "--graphs", "2-8", "--out", str(path)]) == 0
    captured = capsys.readouterr()
    assert f"5 of 7 graphs are in {path} already: going on with the rest" in captured.err
    assert path.read_bytes().startswith(before)
    found = read_results(path)
    assert found == read_results("done.jsonl")[2:9]
    assert main(["show", str(path), "--graph", "4"]) == 0
    assert capsys.readouterr().out.startswith("Graph 4 is predicted 'mutagen'")
    assert main(["show", str(path), "--graph", "4", "--checkpoint", "run", "--out", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    both = ["--number", "4", "--checkpoint", "run", "--graph", "molecules", "--out", str(picture), "--force"]
    assert main(["show", str(path), *both]) == 0
    capsys.readouterr()
    assert main(["show", str(path)]) == 0
    assert capsys.readouterr().out.splitlines() == [str(result) for result in found]


def test_test_graphs_unless_told_otherwise(tasks: Path, capsys: Capture) -> None:
    test = load_checkpoint("run")[1]["training"]["test"]
    for flags in ([], ["--graphs", "test"]):
        assert main(["explain", "--checkpoint", "run", "--quiet", *flags]) == 0
        assert re.findall(r"^Graph (\d+) ", capsys.readouterr().out, flags=re.MULTILINE) == list(map(str, test))
    assert main(["explain", "--checkpoint", "run", "--quiet", "--limit", "1"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--graphs", "40"], r"graph 40 is not there \(0 to 39\)"),
        (["--graphs", "x"], "--graphs 'x' is neither all, test, a list such as 1,2,5-9, nor a file"),
        (["--graphs", "9-3"], "range 9-3"),
        (["--graphs", ","], "names no graphs"),
        (["--graphs", "@missing"], "cannot read missing"),
        (["--graphs", "test", "--graph", "molecules"], "which graphs were left for testing is not known here"),
        (["--nodes", "1"], "there are 40 graphs; nodes and links are explained in a single one"),
        (["--graphs", "0,1", "--nodes", "1"], "--nodes and --graphs are given together"),
        (["--graphs", "0,1", "--protect", "C0-C1"], "--protect 'C0-C1' names nodes, but several graphs"),
        (["--graphs", "1", "--protect", "C0-Cl9"], "'C0-Cl9' is no edge"),
        (["--graphs", "all", "--wanted", "cat"], r"'cat' is no class of this graph \(mutagen, nonmutagen\)"),
        (["--graphs", "all", "--graph", "graph.npz"], "graph 0: .*takes 14 features per node, but x has 3"),
    ],
)
def test_graphs_that_make_no_sense(refused: Refused, tasks: Path, flags: list[str], message: str) -> None:
    refused(["explain", "--checkpoint", "run", *flags, "--out", "new.jsonl"], message)


def test_results_of_other_graphs_are_refused(refused: Refused, tasks: Path, tmp_path: Path) -> None:
    others = str(write_molecules(tmp_path / "others", length=5))
    few = str(write_molecules(tmp_path / "few", count=20))
    explain = ["explain", "--checkpoint", "run", "--graphs", "all", "--out", "done.jsonl"]
    refused([*explain, "--graph", others], r"holds results of another graph \(\w+ instead of \w+\): graph 0; choose")
    refused([*explain, "--graph", few], r"holds results of other graphs \(graph 20 instead of 0 to 19\)")
    refused([*explain, "--seed", "3"], "holds results of another seed")
    refused([*explain, "--directed"], "directed or not")
