"""Every command, run as a user runs it, on graphs small enough to be quick."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import fields, replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from butfor.api import explain
from butfor.cli import main
from butfor.cli.app import COMMANDS
from butfor.cli.hyperparameters import make_method
from butfor.cli.labels import method_label
from butfor.cli.target_lists import parse_edges, parse_nodes
from butfor.datasets import GENERATORS, load_graph, save_graph
from butfor.errors import InputError
from butfor.evaluation import evaluate
from butfor.graph.graph import Graph
from butfor.methods import CFGNN, METHODS, Greedy, KeepEgo, RemoveSubgraph
from butfor.models import load_checkpoint
from butfor.paper import PAPER, dataset_of, paper_row
from butfor.runs import Run, Store, read_results
from butfor.session import Session

if TYPE_CHECKING:
    from pathlib import Path

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of a small GCN on Tree-Cycles."""
    folder = tmp_path_factory.mktemp("run") / "tree-cycles"
    assert main(["train", "tree-cycles", "--epochs", "300", "--lr", "0.01", "--out", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def results(trained: Path) -> Path:
    """Exact's results for ten test nodes."""
    path = trained.parent / "exact.jsonl"
    assert main(["explain", "--checkpoint", str(trained), "--limit", "10", "--out", str(path)]) == 0
    return path


# help, version, extras


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_an_example(command: str, capsys: Capture) -> None:
    assert main([command, "--help"]) == 0
    out = capsys.readouterr().out
    assert f"Usage: butfor {command}" in out
    assert f"butfor {command}" in out.partition("Example")[2]


def test_help_and_version(capsys: Capture) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in COMMANDS)
    assert "Examples:" in out
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == "0.1.0\n"


@pytest.mark.parametrize(("package", "extra"), [("cyclopts", "cli"), ("rich", "cli")])
def test_a_missing_package_names_its_extra(package: str, extra: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(f"import sys; sys.modules[{package!r}] = None\n")
    done = subprocess.run(
        [sys.executable, "-c", "from butfor.cli import main; raise SystemExit(main(['datasets']))"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert f"pip install 'butfor[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr


# datasets


def test_datasets_shows_the_generators_beside_the_paper(capsys: Capture) -> None:
    assert main(["datasets"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for name, paper in PAPER.items():
        row = next(number for number, line in enumerate(lines) if line.startswith(name))
        for line in lines[row : row + 2]:
            assert f" {paper.statistics.nodes} " in line
            assert f" {paper.statistics.edges} " in line
            assert line.endswith(f" {paper.statistics.test_nodes}")


def test_datasets_writes_and_describes_a_graph(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "graph.npz"
    assert main(["datasets", "tree-grid", "--seed", "3", "--out", str(path)]) == 0
    assert torch.equal(load_graph(path).edge_index, GENERATORS["tree-grid"](3).edge_index)
    assert main(["datasets", str(path)]) == 0
    out = capsys.readouterr().out
    assert "3410 columns, undirected" in out
    assert "247 nodes" in out
    assert "base: 511, motif: 720" in out


def test_datasets_describes_an_edge_list(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "edges.csv").write_text("source,target\n1,2\n2,3\n")
    (tmp_path / "nodes.csv").write_text("id,size,label\n1,0.5,a\n2,0.5,b\n3,1.0,a\n4,2.0,a\n")
    arguments = ["datasets", str(tmp_path / "edges.csv"), "--nodes", str(tmp_path / "nodes.csv")]
    assert main(arguments) == 0
    assert "2 columns, directed" in capsys.readouterr().out
    assert main([*arguments, "--undirected"]) == 0
    out = capsys.readouterr().out
    assert "4 columns, undirected" in out
    assert "a: 3, b: 1" in out


def test_datasets_counts_many_graphs(tmp_path: Path, capsys: Capture) -> None:
    for name, text in [
        ("A", "1, 2\n2, 1\n3, 4\n"),
        ("graph_indicator", "1\n1\n2\n2\n2\n"),
        ("graph_labels", "0\n1\n"),
    ]:
        (tmp_path / f"Toy_{name}.txt").write_text(text)
    (tmp_path / "Toy_node_labels.txt").write_text("0\n1\n0\n0\n1\n")
    assert main(["datasets", str(tmp_path)]) == 0
    assert "2.50 on average" in capsys.readouterr().out


# train


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


# explain


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
    assert {item.method.partition("(")[0] for item in read_results(path)} == {METHODS[method].__name__}


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


def test_explain_a_model_of_your_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trained: Path) -> None:
    (tmp_path / "my_own_models.py").write_text(
        "from butfor.models import PaperGCN\ndef gcn():\n    return PaperGCN(10, 2)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    arguments = ["--model", "my_own_models:gcn", "--weights", str(trained / "model.safetensors")]
    path = tmp_path / "cfs.jsonl"
    assert main(["explain", *arguments, "--graph", "tree-cycles", "--nodes", "600", "--out", str(path)]) == 0
    data = GENERATORS["tree-cycles"](0)
    assert read_results(path) == [explain(load_checkpoint(trained)[0], data, 600)]


@pytest.mark.published
def test_explain_and_evaluate_the_published_model(reference: Path, tmp_path: Path, capsys: Capture) -> None:
    source = ["--published", str(reference / "ba_shapes_gcn_weights.npz")]
    source += ["--graph", str(reference / "ba_shapes_graph.npz")]
    path = tmp_path / "remove-ego.jsonl"
    assert main(["explain", *source, "--method", "remove-ego", "--out", str(path)]) == 0
    assert main(["evaluate", str(path), *source]) == 0
    ours, theirs = capsys.readouterr().out.splitlines()[-2:]
    assert ours.split()[2:4] == theirs.split()[2:4] == ["110/140", "0.21"]
    assert ours.split()[4].startswith("10.56±20.1")
    assert theirs.split()[4:6] == ["10.56±20.11", "0.97±0.04"]
    assert float(ours.split()[6]) > 0  # the published graphs mark no motifs, but they are known


def test_explain_to_a_closed_pipe(trained: Path) -> None:
    program = "from butfor.cli import main; raise SystemExit(main())"
    command = f'{sys.executable} -c "{program}" explain --checkpoint {trained} --nodes all | head -n 1'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.stdout.startswith("Node 0 is predicted")
    assert "Traceback" not in done.stderr
    assert "Broken" not in done.stderr


# nodes and edges


def test_nodes_in_every_form(tmp_path: Path) -> None:
    data = GENERATORS["tree-cycles"](0)
    data.odd = torch.arange(871) % 2 == 1
    listed = tmp_path / "nodes.txt"
    listed.write_text("3, 4\n7-9  # a range\n\n4\n")
    test = data.test_mask.nonzero().flatten().tolist()
    for text, nodes in [
        ("5", [5]),
        ("9,2,5-7,6", [9, 2, 5, 6, 7]),
        (" 1 , 2 ", [1, 2]),
        ("test", test),
        ("test_mask", test),
        ("odd", list(range(1, 871, 2))),
        ("all", list(range(871))),
        (str(listed), [3, 4, 7, 8, 9]),
        (f"@{listed}", [3, 4, 7, 8, 9]),
    ]:
        assert parse_nodes(text, data) == nodes


def test_edges() -> None:
    data = GENERATORS["tree-cycles"](0)
    assert parse_edges("3-17,4-9", data) == ((3, 17), (4, 9))
    assert parse_edges("", data) == ()
    with pytest.raises(InputError, match="'3–17' is no edge"):
        parse_edges("3–17", data)


def own(*ids: object) -> Data:
    """A graph whose nodes have ids of their own."""
    count = len(ids)
    return Data(
        x=torch.ones(count, 1),
        edge_index=torch.zeros(2, 0, dtype=torch.long),
        node_ids=list(ids),
        test_mask=torch.arange(count) == 1,
    )


def test_nodes_by_their_own_ids(tmp_path: Path) -> None:
    data = own("acct_3", "acct_7", "New York", "a,b", "@me", "n-1", "#8")
    listed = tmp_path / "nodes.txt"
    listed.write_text("acct_7, n-1  # two\nNew York\na,b\n#8\n# nothing\n")
    for text, nodes in [
        ("acct_7", [1]),
        ("acct_7,acct_3,acct_7", [1, 0]),
        ("n-1 acct_3", [5, 0]),
        ("New York, acct_3", [2, 0]),
        ("a,b", [3]),
        ("@me", [4]),
        ("test", [1]),
        ("all", list(range(7))),
        (str(listed), [1, 5, 2, 3, 6]),
        (f"@{listed}", [1, 5, 2, 3, 6]),
        (",".join(["acct_3"] * 2000), [0]),  # too long for the name of a file
    ]:
        assert parse_nodes(text, data) == nodes, text
    numbers = own(5, 6, 7, 0)
    assert parse_nodes("0,5-7", numbers) == [3, 0, 1, 2]
    for text, message in [
        ("3", "'3' in --nodes '3' is no node id of this graph, which has ids of its own: 5, 6, 7, …"),
        ("6-99999999999999", "'8' in .* is no node id"),
        ("7-6", "range 7-6"),
        ("-1", "'-1' in .* is no node id"),
        ("5,x", "'x' in .* is no node id"),
        ("x", r"neither all, a node id of this graph \(5, 6, 7, …\), a file, nor a mask of this graph \(test\)"),
        (",", "names no nodes"),
    ]:
        with pytest.raises(InputError, match=message):
            parse_nodes(text, numbers)
    with pytest.raises(InputError, match="two nodes of this graph have the id 'a'"):
        parse_nodes("a", own("a", "a"))


def test_edges_by_their_own_ids() -> None:
    data = own("acct_3", "acct_7", "New York", "a", "b", "a-b", "-2")
    assert parse_edges("acct_3-acct_7, New York - a", data) == ((0, 1), (2, 3))
    assert parse_edges("a-b a-a-b,a--2", data) == ((3, 4), (3, 5), (3, 6))
    assert parse_edges("", data) == ()
    for text, message in [
        ("0-1", r"'0-1' is no edge; .* two node ids of this graph \(acct_3, acct_7, New York, …\)"),
        ("acct_3", "'acct_3' is no edge"),
    ]:
        with pytest.raises(InputError, match=message):
            parse_edges(text, data)
    with pytest.raises(InputError, match="'a-a-a' may be more than one edge"):
        parse_edges("a-a-a", own("a", "a-a"))


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
    run = Run(**{item.name: getattr(found[0], item.name) for item in fields(Run)})
    with Store("named.jsonl", run) as store:
        for result in found:
            store.append(replace(result, names=tuple(enumerate(names))))
    capsys.readouterr()
    assert main(["show", "named.jsonl", "--node", "acct_3"]) == 0
    assert capsys.readouterr().out.startswith("Node acct_3 is predicted")
    assert main(["show", "named.jsonl", "--node", "3"]) == 2
    assert "node 3 is not in named.jsonl, which has 2 nodes: acct_7, acct_3" in capsys.readouterr().err


# hyper-parameters


def test_every_plain_field_of_every_method_has_a_flag(capsys: Capture) -> None:
    assert main(["explain", "--help"]) == 0
    out = capsys.readouterr().out
    for name, method in METHODS.items():
        names = [item.name for item in fields(method) if item.name not in ("explainer", "memory")]  # type: ignore[arg-type]
        panel = out.partition(f"--method {name} ─")[2].partition("╰")[0]
        assert all(f"--{item.replace('_', '-')}" in panel for item in names)


def test_flags_become_hyper_parameters(trained: Path, tmp_path: Path) -> None:
    path = tmp_path / "cfs.jsonl"
    base = ["explain", "--checkpoint", str(trained), "--nodes", "600", "--method"]
    for flags, method in [
        (
            ["cf-gnn", "--epochs", "3", "--clip", "1.5", "--keep", "first"],
            CFGNN(epochs=3, clip=1.5, keep="first"),
        ),
        (["cf-gnn", "--epochs", "3", "--no-distance-gradient"], CFGNN(epochs=3, distance_gradient=False)),
        (["cf-gnn", "--published-choices", "--epochs", "3"], CFGNN.published(epochs=3)),
        (["cf-gnn", "--published-choices", "--epochs", "3", "--clip", "none"], None),
        (["greedy", "--width", "none"], Greedy(width=None)),
        (["remove-subgraph", "--epochs", "2", "--size", "2"], RemoveSubgraph(epochs=2, size=2)),
        (["remove-subgraph", "--epochs", "2", "--size", "ground-truth"], RemoveSubgraph(epochs=2)),
    ]:
        path.unlink(missing_ok=True)
        assert main([*base, *flags, "--out", str(path)]) == 0
        used = read_results(path)[0].method
        assert used == repr(method) if method is not None else "clip=None" in used


def test_a_method_without_flags_is_its_default() -> None:
    assert all(make_method(name, None) == method() for name, method in METHODS.items())


def test_methods_in_few_words() -> None:
    for method, label in [
        (Greedy(), "greedy"),
        (KeepEgo(), "keep-ego"),
        (CFGNN(momentum=0.9), "cf-gnn, momentum=0.9"),
        (CFGNN.published(epochs=7), "cf-gnn, published code, epochs=7"),
        (RemoveSubgraph(size=3), "remove-subgraph, size=3"),
    ]:
        assert method_label(repr(method)) == label
    assert method_label("Mine(3)") == "Mine(3)"


# evaluate and show


def test_evaluate_gives_the_metrics(results: Path, trained: Path, capsys: Capture) -> None:
    assert main(["evaluate", str(results), "--checkpoint", str(trained)]) == 0
    row = capsys.readouterr().out.splitlines()[-1].split()
    data = GENERATORS["tree-cycles"](0)
    explainer = Session.of(load_checkpoint(trained)[0], data)
    metrics = evaluate(read_results(results), data, explainer.classes)
    assert row[0] == "exact.jsonl:"
    assert row[2] == f"{metrics.found}/10"
    assert row[4] == f"{metrics.size.mean:.2f}±{metrics.size.std:.2f}"
    assert row[6] == (f"{metrics.accuracy.mean:.2f}" if metrics.accuracy.count else "–")


def test_evaluate_without_known_motifs(results: Path, trained: Path, tmp_path: Path, capsys: Capture) -> None:
    data = GENERATORS["tree-cycles"](0)
    del data.edge_motif
    save_graph(data, tmp_path / "graph.npz")
    assert main(["evaluate", str(results), "--checkpoint", str(trained), "--graph", str(tmp_path / "graph.npz")]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split()[-2:] == ["–", "–"]


def test_evaluate_several_files_beside_the_paper(results: Path, trained: Path, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "one-hop.jsonl"
    arguments = ["--checkpoint", str(trained), "--limit", "5", "--method", "keep-ego"]
    assert main(["explain", *arguments, "--out", str(path)]) == 0
    capsys.readouterr()
    assert main(["evaluate", str(results), str(path), "--checkpoint", str(trained)]) == 0
    title, _, first, hop, paper = capsys.readouterr().out.splitlines()
    assert title == "Tree-Cycles: 2 result files"
    assert first.startswith("exact.jsonl: exact")
    assert hop.startswith("one-hop.jsonl: keep-ego")
    assert paper.split() == ["paper:", "1HOP", "119/175", "0.32", "15.64±12.36", "0.13±0.06", "0.45", "–"]


def test_evaluate_without_a_model(results: Path, capsys: Capture) -> None:
    assert main(["evaluate", str(results)]) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines()[-1].split()[-2:] == ["–", "–"]
    assert "accuracy needs the model" in captured.err


def test_an_incomplete_last_line_is_noted(results: Path, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "cut.jsonl"
    path.write_bytes(results.read_bytes()[:-30])
    assert main(["evaluate", str(path)]) == 0
    captured = capsys.readouterr()
    assert "note: the last line of" in captured.err
    assert "/9 " in captured.out


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


def test_show_all_sentences(results: Path, capsys: Capture) -> None:
    assert main(["show", str(results)]) == 0
    assert capsys.readouterr().out.splitlines() == [str(item) for item in read_results(results)]


# the paper's numbers


def test_the_papers_rows_are_of_our_methods() -> None:
    assert list(PAPER) == list(GENERATORS)
    for paper in PAPER.values():
        assert len(paper.rows) == 10
        total = paper.statistics.test_nodes
        for row in paper.rows:
            if row.found is not None:
                # The paper rounds, and cuts off rather than rounds in one place.
                assert row.fidelity == pytest.approx(1 - row.found / total, abs=0.0101)
            for method in row.methods:
                assert paper_row(paper, repr(method)) is row
        assert paper_row(paper, repr(Greedy())) is None
        assert paper.momentum == (0.9 if paper.name == "ba-shapes" else 0.0)


@pytest.mark.published
def test_published_graphs_are_recognised(reference: Path) -> None:
    for name, paper in PAPER.items():
        data = load_graph(reference / f"{name.replace('-', '_')}_graph.npz")
        assert dataset_of(None, Graph.of(data).fingerprint()) is paper
    assert dataset_of("mine", "ffff") is None


# the demo


@pytest.mark.slow
def test_demo_writes_models_results_and_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    from butfor.cli import demo as module

    def quick(data: object, seed: int, progress: bool) -> object:
        from butfor import models

        model = models.PaperGCN(10, 2)
        return model, models.train(model, data, epochs=300, lr=0.01, seed=seed)  # type: ignore[arg-type]

    def few(seed: int) -> object:
        data = GENERATORS["tree-cycles"](seed)
        data.test_mask[torch.from_numpy(np.flatnonzero(data.test_mask)[:-40])] = False
        return data

    monkeypatch.setattr(module, "PAPER", {"tree-cycles": PAPER["tree-cycles"]})
    monkeypatch.setattr(module, "GENERATORS", {"tree-cycles": few})
    monkeypatch.setattr(module, "trained_gcn", quick)
    monkeypatch.setattr(module, "_methods", lambda _: {"greedy": Greedy(), "keep-ego": KeepEgo()})
    mine = tmp_path / "demo" / "tree-cycles" / "mine.txt"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    for _ in range(2):  # the second time over what the first has written
        assert main(["demo", "--out", str(tmp_path / "demo")]) == 0
    out = capsys.readouterr().out
    assert "numbers need not match" in out
    assert "paper: 1HOP" in out
    written = {path.name for path in mine.parent.iterdir()}
    assert written >= {"mine.txt", "model.json", "model.safetensors", "greedy.jsonl", "keep-ego.jsonl"}
    assert "counterfactual-1.png" in written
    assert len(read_results(mine.parent / "greedy.jsonl")) == 40
    assert json.loads((mine.parent / "model.json").read_text())["data"]["name"] == "tree-cycles"
    capsys.readouterr()
    assert main(["evaluate", str(mine.parent / "greedy.jsonl"), "--checkpoint", str(mine.parent)]) == 0
