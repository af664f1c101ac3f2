"""Links, whole graphs and edit spaces on the command line, on graphs small enough to be quick."""

from __future__ import annotations

import json
import re
import shutil
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import butfor
from butfor.cli import main
from butfor.cli.edit_space import read_space
from butfor.cli.target_lists import parse_graphs, parse_links
from butfor.datasets import load_graph, load_mutagenicity
from butfor.edits.addition import Within
from butfor.edits.change import Features
from butfor.edits.space import EditSpace
from butfor.errors import InputError, ModelError
from butfor.evaluation import motif_edges
from butfor.models import GraphClassifier, fingerprint, load_checkpoint, save_checkpoint
from butfor.runs import read_results
from butfor.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Refused = Callable[[list[str], str], None]

Capture = pytest.CaptureFixture[str]

# A link predictor, a classifier of nodes and one that returns a single number, as a user's own module has them.
MODELS = """
import torch
from torch import nn
from torch_geometric.nn import GCNConv

class Links(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv = GCNConv(3, 8)
    def encode(self, x, edge_index):
        return self.conv(x, edge_index)
    def decode(self, z, edge_label_index):
        return (z[edge_label_index[0]] * z[edge_label_index[1]]).sum(-1)
    def forward(self, x, edge_index, edge_label_index):
        return self.decode(self.encode(x, edge_index), edge_label_index)

class Nodes(nn.Module):
    def __init__(self, outputs=2):
        super().__init__()
        torch.manual_seed(outputs)
        self.conv = GCNConv(3, outputs)
    def forward(self, x, edge_index):
        return self.conv(x, edge_index)

def number():
    return Nodes(1)
"""
NODES = 12


def write_molecules(folder: Path, count: int = 40, prefix: str = "Mutagenicity", length: int = 4) -> Path:
    """Chains of carbon in the format of Mutagenicity: in every other one N and twice O are a nitro group."""
    folder.mkdir()
    rows: dict[str, list[object]] = {part: [] for part in ("A", "graph_indicator", "node_labels", "edge_labels")}
    rows |= {"graph_labels": [], "edge_gt": []}
    first = 1
    for number in range(count):
        chain = length + number % 3
        atoms = [0] * chain + [4, 1, 1] + (list(range(14)) if number == 0 else [])
        bonds = [(i, i + 1, i % 3, 0) for i in range(chain - 1)] + [(0, chain, 0, 0)]
        nitro = number % 2 == 0
        bonds += [(chain if nitro else oxygen, chain + oxygen, 0, int(nitro)) for oxygen in (1, 2)]
        for u, v, kind, truth in bonds:
            for a, b in ((u, v), (v, u)):
                rows["A"].append(f"{a + first}, {b + first}")
                rows["edge_labels"].append(kind)
                rows["edge_gt"].append(truth)
        rows["node_labels"] += atoms
        rows["graph_indicator"] += [number + 1] * len(atoms)
        rows["graph_labels"].append(number % 2)
        first += len(atoms)
    for part, lines in rows.items():
        (folder / f"{prefix}_{part}.txt").write_text("".join(f"{line}\n" for line in lines))
    return folder


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with models and a graph of one's own, molecules, a checkpoint of theirs and its results."""
    folder = tmp_path_factory.mktemp("tasks")
    (folder / "task_models.py").write_text(MODELS)
    ring = np.array([(i, (i + 1) % NODES) for i in range(NODES)])
    edges = np.concatenate([ring, ring[:, ::-1]]).T
    x = (np.random.default_rng(1).random((NODES, 3)) < 0.5).astype(np.float32)
    np.savez(folder / "graph.npz", edge_index=edges, x=x, y=np.arange(NODES) % 2)
    write_molecules(folder / "molecules")
    train = ["train", str(folder / "molecules"), "--epochs", "15", "--hidden", "8", "--layers", "2", "--lr", "0.05"]
    assert main([*train, "--out", str(folder / "run")]) == 0
    assert main(["explain", "--checkpoint", str(folder / "run"), "--graphs", "all", "--out", str(folder / "done")]) == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "path", [str(folder), *sys.path])
        yield folder


LINKS = ["--model", "task_models:Links", "--graph", "graph.npz"]
LINES = ["explain", *LINKS, "--links", "3-5,7-2"]


@pytest.fixture
def refused(place: Path, capsys: Capture) -> Refused:
    """Run a command that must fail with a message and leave every file as it is."""

    def run(argv: list[str], message: str) -> None:
        before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
        assert main(argv) == 2
        captured = capsys.readouterr()
        errors = [line for line in captured.err.splitlines() if line.startswith("error: ")]
        assert len(errors) == 1, captured.err
        assert re.search(message, errors[0]), errors[0]
        assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before

    return run


# links


def test_links_as_the_library_explains_them(place: Path, tmp_path: Path, capsys: Capture) -> None:
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


def test_links_shown_drawn_and_measured(place: Path, tmp_path: Path, capsys: Capture) -> None:
    path, picture = tmp_path / "links.jsonl", tmp_path / "link.png"
    assert main([*LINES, "--threshold", "1.5", "--out", str(path)]) == 0
    assert main(["show", str(path), "--link", "7-2"]) == 0
    assert "Link 7–2 is predicted" in capsys.readouterr().out
    assert main(["show", str(path), "--link", "3-5", *LINKS, "--out", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    capsys.readouterr()
    assert main(["evaluate", str(path), *LINKS]) == 0
    row = capsys.readouterr().out.splitlines()[-1].split()
    assert row[:2] == ["links.jsonl:", "exact"]
    assert row[2].endswith("/2")
    assert row[-2:] == ["–", "–"]


def test_links_in_every_form(place: Path, tmp_path: Path) -> None:
    data = load_graph("graph.npz")
    listed = tmp_path / "links.txt"
    listed.write_text("3-5, 7-2  # two\n3-5\n")
    for text in ("3-5,7-2", "3-5 7-2 3-5", str(listed), f"@{listed}"):
        assert parse_links(text, data) == [(3, 5), (7, 2)]
    data.node_ids = [f"n-{node}" for node in range(NODES)]
    assert parse_links("n-3-n-5", data) == [(3, 5)]
    data.node_ids[0] = "@me"
    assert parse_links("@me-n-1", data) == [(0, 1)]


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
def test_links_that_make_no_sense(refused: Refused, flags: list[str], message: str) -> None:
    refused(["explain", *LINKS, *flags, "--out", "new.jsonl"], message)


def test_a_model_that_predicts_no_links(refused: Refused) -> None:
    argv = ["explain", "--model", "task_models:Nodes", "--graph", "graph.npz", "--links", "3-5"]
    refused(argv, "does not say how it predicts links")


# goals


def test_probability_and_threshold(place: Path, tmp_path: Path) -> None:
    sure, number = tmp_path / "sure.jsonl", tmp_path / "number.jsonl"
    nodes = ["--graph", "graph.npz", "--nodes", "all"]
    assert main(["explain", "--model", "task_models:Nodes", *nodes, "--probability", "0.6", "--out", str(sure)]) == 0
    assert {result.goal for result in read_results(sure)} == {"any other class, with a probability of at least 0.6"}
    assert all(result.after.probability >= 0.6 for result in read_results(sure) if result.after is not None)
    source = ["--model", "task_models:number", *nodes[:2]]
    assert main(["explain", *source, *nodes[2:], "--threshold", "0.1", "--out", str(number)]) == 0
    found = read_results(number)
    assert any(result.found for result in found)
    assert all((result.after.value > 0.1) != (result.before.value > 0.1) for result in found if result.found)
    assert main(["evaluate", str(number), *source]) == 0
    assert main(["show", str(number), "--node", "3", *source, "--out", str(tmp_path / "node.png")]) == 0


def test_a_probability_that_makes_no_sense(refused: Refused) -> None:
    nodes = ["explain", "--model", "task_models:Nodes", "--graph", "graph.npz", "--nodes", "all"]
    refused([*nodes, "--probability", "1.5"], "probability is 1.5; it must lie between 0 and 1")


# edit spaces


def test_a_space_is_what_its_file_says(place: Path, tmp_path: Path) -> None:
    rules = {
        "allowed": [[0, 1], [1, 2]],
        "costs": [[[0, 1], 2.5], ["pair", 3]],
        "groups": {"pair": [[2, 3], [3, 4]]},
        "add": {"hops": 2, "cost": 2},
        "features": [{"values": "flip", "nodes": [0, 2]}, {"between": [0, 1], "columns": [1]}],
        "max_edits": 2,
        "keep_connected": True,
    }
    path = tmp_path / "rules.json"
    path.write_text(json.dumps(rules))
    space = read_space(path, "4-5", load_graph("graph.npz"))
    assert list(space.protected) == [(4, 5)]
    assert space == EditSpace(
        protected=[(4, 5)],
        allowed=[(0, 1), (1, 2)],
        costs={(0, 1): 2.5, "pair": 3},
        groups={"pair": [(2, 3), (3, 4)]},
        add=Within(hops=2, cost=2),
        features=[Features(nodes=[0, 2]), Features(between=[0, 1], columns=[1])],  # type: ignore[arg-type]
        max_edits=2,
        keep_connected=True,
    )
    path.write_text(json.dumps({"protected": [[1, 2]]}))
    assert list(read_space(path, "4-5", load_graph("graph.npz")).protected) == [(1, 2), (4, 5)]
    assert read_space(None, "", None) == EditSpace()


def test_a_space_by_own_ids(place: Path, tmp_path: Path) -> None:
    data = Data(x=torch.ones(3, 1), edge_index=torch.zeros(2, 0, dtype=torch.long), node_ids=["a", 7, "c-d"])
    path = tmp_path / "rules.json"
    path.write_text('{"protected": [["a", 7]], "add": [["c-d", "a"]], "features": {"nodes": ["7"]}}')
    space = read_space(path, "a-c-d", data)
    assert list(space.protected) == [(0, 1), (0, 2)]
    assert space.add == ((2, 0),)
    assert list(space.features) == [Features(nodes=[1])]
    path.write_text('{"protected": [[0, 1]]}')
    with pytest.raises(InputError, match=r"protected names 0, which is no node id of this graph \(a, 7, c-d"):
        read_space(path, "", data)


def test_additions_and_features_are_explained_and_shown(place: Path, tmp_path: Path, capsys: Capture) -> None:
    rules, path = tmp_path / "rules.json", tmp_path / "edits.jsonl"
    rules.write_text('{"delete": false, "add": {"hops": 2}, "features": {"values": "flip", "within": 1}}')
    source = ["--model", "task_models:Nodes", "--graph", "graph.npz"]
    run = ["explain", *source, "--nodes", "all", "--space", str(rules), "--out", str(path)]
    assert main(run) == 0
    found = [result for result in read_results(path) if result.found]
    assert any(result.changes for result in found)
    assert not any(result.removed_edges for result in found)
    capsys.readouterr()
    assert main(["show", str(path), "--node", str(found[0].target)]) == 0
    assert re.search(r"^size +(edges added|features changed): ", capsys.readouterr().out, flags=re.MULTILINE)
    assert main(["evaluate", str(path), *source]) == 0
    # The same file under other rules is refused.
    rules.write_text('{"delete": false, "add": {"hops": 1}}')
    assert main(run) == 2
    assert "another edit space" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot read rules.json: No such file"),
        ("{", "rules.json cannot be read as JSON"),
        ("[1]", "must be an object"),
        ('{"protect": []}', "an edit space has no field 'protect'"),
        ('{"add": {"hop": 1}}', "add has no field 'hop'"),
        ('{"delete": "no"}', 'delete is "no", but must be true or false'),
        ('{"max_edits": "3"}', 'max_edits is "3", but must be a whole number'),
        ('{"max_edits": 0}', "max_edits is 0"),
        ('{"features": {"between": [1]}}', r"between is \[1\], but must be two numbers"),
        ('{"features": {"columns": ["a"]}}', "columns is .* but must be a list of whole numbers"),
        ('{"features": {"columns": [9]}}', r"feature 9 is not in this graph \(0 to 2\)"),
        ('{"features": {"nodes": [0.5]}}', "features names 0.5, but the nodes of this graph are numbers"),
        ('{"features": "flip"}', 'features is "flip", but must be a list'),
        ('{"costs": [[[0, 1], "x"]]}', r"costs has .*; give \[edge, number\]"),
        ('{"costs": {"pair": 2}}', "costs names the group 'pair', which is not among the groups"),
        ('{"carries": [1]}', "carries is .* but must be an object of numbers"),
        ('{"protected": [[0.5, 1]]}', "protected names 0.5"),
        ('{"protected": [[0, 5]]}', "protected names the edge 0–5, which is not in this graph"),
        ('{"protected": null}', "protected is null, but must be a list"),
        ('{"allowed": [[0, 99]]}', r"node 99 is not in this graph \(0 to 11\)"),
        ('{"groups": [[[0, 1, 2]]]}', r"groups has \[0, 1, 2\]; an edge is written as its two nodes"),
        ('{"add": [[0, 1]]}', "add names 0–1, which is an edge of this graph already"),
    ],
)
def test_spaces_that_make_no_sense(
    refused: Refused, place: Path, content: str | None, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "rules.json").unlink(missing_ok=True)
    if content is not None:
        (place / "rules.json").write_text(content)
    refused([*LINES, "--threshold", "0.1", "--space", "rules.json", "--out", "new.jsonl"], message)


# whole graphs


def test_checkpoints_of_graph_classifiers(place: Path, tmp_path: Path) -> None:
    model, info = load_checkpoint(place / "run")
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
    save_checkpoint(tmp_path / "again", model, data_info={})
    again, _ = load_checkpoint(tmp_path / "again")
    assert fingerprint(again) == fingerprint(model)
    assert not again.training
    other = GraphClassifier(3, 4, hidden=6, layers=2, conv="gcn", readout="sum")
    save_checkpoint(tmp_path / "other", other, data_info={})
    assert fingerprint(load_checkpoint(tmp_path / "other")[0]) == fingerprint(other)
    written = (tmp_path / "other" / "model.json").read_text()
    for old, new, message in [
        ('"conv": "gcn"', '"conv": 3', "says conv is 3, which is no name"),
        ('"conv": "gcn"', '"conv": "gat"', "describes no model: conv is 'gat'"),
        ('"layers": 2', '"layers": 9000000', "says layers is 9000000, which is no size"),
    ]:
        (tmp_path / "other" / "model.json").write_text(written.replace(old, new))
        with pytest.raises(ModelError, match=message):
            load_checkpoint(tmp_path / "other")


def test_graphs_as_the_library_explains_them(place: Path) -> None:
    results = read_results("done")
    graphs = load_mutagenicity("molecules")
    model, _ = load_checkpoint("run")
    assert results == butfor.explain(model, graphs)
    assert [result.target for result in results] == list(range(40))
    assert len({result.graph_id for result in results}) > 5


def test_the_chemists_way(place: Path, tmp_path: Path, capsys: Capture) -> None:
    path, picture = tmp_path / "mutag.jsonl", tmp_path / "molecule.png"
    assert main(["explain", "--checkpoint", "run", "--graphs", "2-6", "--out", str(path)]) == 0
    assert "of 5 graphs have a counterfactual" in capsys.readouterr().out
    before = path.read_bytes()
    assert main(["explain", "--checkpoint", "run", "--graphs", "2-8", "--out", str(path)]) == 0
    captured = capsys.readouterr()
    assert f"5 of 7 graphs are in {path} already: going on with the rest" in captured.err
    assert path.read_bytes().startswith(before)
    found = read_results(path)
    assert found == read_results("done")[2:9]
    assert main(["show", str(path), "--graph", "4"]) == 0
    assert capsys.readouterr().out.startswith("Graph 4 is predicted 'mutagen'")
    assert main(["show", str(path), "--graph", "4", "--checkpoint", "run", "--out", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    both = ["--number", "4", "--checkpoint", "run", "--graph", "molecules", "--out", str(picture), "--force"]
    assert main(["show", str(path), *both]) == 0
    capsys.readouterr()
    assert main(["show", str(path)]) == 0
    assert capsys.readouterr().out.splitlines() == [str(result) for result in found]


def test_graphs_are_measured_on_their_ground_truth(place: Path, capsys: Capture) -> None:
    assert main(["evaluate", "done"]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("whole graphs: 1 result file")
    assert captured.out.split()[-2:] == ["–", "–"]
    assert "accuracy needs the model" in captured.err
    assert main(["evaluate", "done", "--checkpoint", "run"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Mutagenicity: 1 result file")
    shares = []
    for result, data in zip(read_results("done"), load_mutagenicity("molecules"), strict=True):
        if result.found and motif_edges(data):
            shares.append(np.mean([edge in motif_edges(data) for edge in result.removed_edges]))
    assert shares
    assert out.split()[-2:] == [f"{np.mean(shares):.2f}", f"{np.mean(np.array(shares) == 1):.2f}"]


def test_files_of_the_same_graphs_share_a_table(place: Path, tmp_path: Path, capsys: Capture) -> None:
    lines = (place / "done").read_text().splitlines(keepends=True)
    (tmp_path / "few.jsonl").write_text("".join(lines[5:9]))
    other = [json.loads(line) | {"graph_id": "ffff"} for line in lines[:3]]
    (tmp_path / "other.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in other))
    assert main(["evaluate", "done", str(tmp_path / "few.jsonl"), str(tmp_path / "other.jsonl")]) == 0
    out = capsys.readouterr().out
    assert out.count("whole graphs: 2 result files") == out.count("whole graphs: 1 result file\n") == 1


def test_test_graphs_unless_told_otherwise(place: Path, capsys: Capture) -> None:
    test = load_checkpoint("run")[1]["training"]["test"]
    for flags in ([], ["--graphs", "test"]):
        assert main(["explain", "--checkpoint", "run", "--quiet", *flags]) == 0
        assert re.findall(r"^Graph (\d+) ", capsys.readouterr().out, flags=re.MULTILINE) == list(map(str, test))
    assert main(["explain", "--checkpoint", "run", "--quiet", "--limit", "1"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_graphs_in_every_form(tmp_path: Path) -> None:
    listed = tmp_path / "graphs.txt"
    listed.write_text("3-5 # some\n1\n")
    for text, numbers in [
        ("all", list(range(9))),
        ("test", [2, 7]),
        ("8,1-3,2", [8, 1, 2, 3]),
        (str(listed), [3, 4, 5, 1]),
        (f"@{listed}", [3, 4, 5, 1]),
    ]:
        assert parse_graphs(text, 9, (7, 2)) == numbers


def test_rules_for_graphs(place: Path, tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    first = next(result for result in read_results("done") if result.found)
    removed = [first.name(node) for node in first.removed_edges[0]]
    (tmp_path / "rules.json").write_text(json.dumps({"protected": [removed]}))
    one = ["explain", "--checkpoint", "run", "--graphs", str(first.target)]
    assert main([*one, "--space", str(tmp_path / "rules.json"), "--out", str(path)]) == 0
    assert first.removed_edges[0] not in read_results(path)[0].removed_edges
    (tmp_path / "rules.json").write_text('{"max_edits": 1}')
    few = tmp_path / "few.jsonl"
    assert main([*one[:-1], "0-9", "--space", str(tmp_path / "rules.json"), "--out", str(few)]) == 0
    assert all(result.size in (None, 1) for result in read_results(few))


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
def test_graphs_that_make_no_sense(refused: Refused, flags: list[str], message: str) -> None:
    refused(["explain", "--checkpoint", "run", *flags, "--out", "new.jsonl"], message)


def test_rules_that_name_nodes_of_several_graphs(refused: Refused, place: Path, tmp_path: Path) -> None:
    (tmp_path / "rules.json").write_text('{"features": {"nodes": [0]}}')
    argv = ["explain", "--checkpoint", "run", "--graphs", "0,1", "--space", str(tmp_path / "rules.json")]
    refused(argv, "features names nodes, but several graphs are explained")


def test_results_of_other_graphs_are_refused(refused: Refused, place: Path, tmp_path: Path) -> None:
    others = str(write_molecules(tmp_path / "others", length=5))
    few = str(write_molecules(tmp_path / "few", count=20))
    explain = ["explain", "--checkpoint", "run", "--graphs", "all", "--out", "done"]
    refused([*explain, "--graph", others], r"holds results of another graph \(\w+ instead of \w+\): graph 0; choose")
    refused([*explain, "--graph", few], r"holds results of other graphs \(graph 20 instead of 0 to 19\)")
    refused([*explain, "--seed", "3"], "holds results of another seed")
    refused([*explain, "--directed"], "directed or not")
    refused(["evaluate", "done", "--checkpoint", "run", "--graph", others], "results of another graph")
    refused(["evaluate", "done", "--checkpoint", "run", "--graph", few], r"graph 20 is not there \(0 to 19\)")
    draw = ["show", "done", "--number", "3", "--checkpoint", "run", "--graph", others, "--out", "new.png"]
    refused(draw, "results of another graph")


def test_nodes_and_links_do_not_share_a_file(refused: Refused, place: Path) -> None:
    assert main(["explain", "--model", "task_models:Nodes", "--graph", "graph.npz", "--nodes", "1", "--out", "n"]) == 0
    result = read_results("n")[0]
    line = {**replace(result, task="graph").to_dict()}
    (place / "as-graph").write_text(json.dumps(line) + "\n")
    argv = ["explain", "--model", "task_models:Nodes", "--graph", "graph.npz", "--nodes", "1", "--out", "as-graph"]
    refused(argv, r"results of another task \(graph instead of node\)")


def test_what_cannot_be_shown(refused: Refused) -> None:
    show = ["show", "done"]
    refused([*show, "--graph", "99"], "graph 99 is not in done, which has 40 graphs: 0, 1, 2")
    refused([*show, "--node", "3"], "done holds results of graphs, not of nodes: give --graph")
    refused([*show, "--link", "3-4"], "done holds results of graphs, not of links: give --graph")
    refused([*show, "--node", "3", "--number", "3"], "--node and --graph are given together")
    refused([*show, "--out", "new.png"], "which result is to be drawn. Give --graph")
    refused([*show, "--graph", "3", "--out", "new.png"], "a picture needs the model")


def test_ctrl_c_in_the_middle_of_graphs(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    path = tmp_path / "cfs.jsonl"
    stream, calls = Session.stream, []

    def interrupted(self: Session, targets: list[None]) -> Iterator[object]:
        calls.append(self.number)
        if len(calls) == 4:
            raise KeyboardInterrupt
        yield from stream(self, targets)

    with monkeypatch.context() as patch:
        patch.setattr(Session, "stream", interrupted)
        assert main(["explain", "--checkpoint", "run", "--graphs", "all", "--out", str(path)]) == 130
    assert f"interrupted: 3 of 40 graphs are done and kept in {path}" in capsys.readouterr().err
    assert main(["explain", "--checkpoint", "run", "--graphs", "all", "--out", str(path)]) == 0
    assert read_results(path) == read_results("done")


# training


def test_molecules_that_changed_since_the_training(refused: Refused, place: Path, tmp_path: Path) -> None:
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


def test_training_that_cannot_be_done(refused: Refused, place: Path, tmp_path: Path) -> None:
    few = str(write_molecules(tmp_path / "few", count=4))
    for arguments, message in [
        ([few], "there are 4 graphs, but a split"),
        (["molecules", "--layers", "0"], "--layers is 0; at least 1 is needed"),
        (["molecules", "--conv", "gat"], 'Invalid value "gat" for --conv'),
        (["graph.npz", "--conv", "gin"], "--conv goes with several graphs, and graph.npz is one"),
        (["molecules", "--graph-seed", "1"], "--graph-seed goes with a generated graph"),
    ]:
        refused(["train", *arguments, "--out", "new"], message)


def test_generated_graphs(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
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
