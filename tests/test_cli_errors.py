"""Bad input: one clear line, exit code 2, and nothing written over."""

from __future__ import annotations

import contextlib
import errno
import os
import pickle
import re
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch_geometric.data import Data

from butfor.cli import main
from butfor.models import PaperGCN
from butfor.runs import read_results
from butfor.runs import store as store_module
from butfor.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Refused = Callable[[list[str], str], None]

NODES = 24
PROGRAM = "from butfor.cli import main; raise SystemExit(main())"


def ring(**changes: np.ndarray) -> dict[str, np.ndarray]:
    """Two rings joined by an edge, as the arrays of an .npz file."""
    half = NODES // 2
    pairs = [(i + start, (i + 1) % half + start) for start in (0, half) for i in range(half)] + [(0, half)]
    edges = np.array(pairs + [(v, u) for u, v in pairs]).T
    rng = np.random.default_rng(0)
    arrays = {
        "edge_index": edges,
        "x": rng.random((NODES, 3)).astype(np.float32),
        "y": (np.arange(NODES) >= half).astype(np.int64),
        "train_idx": np.arange(0, NODES, 2),
        "test_idx": np.arange(1, NODES, 2),
    }
    return arrays | changes


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a graph, a checkpoint and the results of a finished run."""
    folder = tmp_path_factory.mktemp("place")
    np.savez(folder / "graph.npz", **ring())
    arguments = ["train", str(folder / "graph.npz"), "--epochs", "40", "--lr", "0.02"]
    assert main([*arguments, "--out", str(folder / "run")]) == 0
    assert main(explain(folder, "--out", str(folder / "done.jsonl"))) == 0
    return folder


def explain(place: Path, *more: str) -> list[str]:
    return ["explain", "--checkpoint", str(place / "run"), *more]


@pytest.fixture
def refused(place: Path, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Run a command that must fail with a message and leave every file as it is."""

    def run(argv: list[str], message: str) -> None:
        before = _contents(place)
        assert main(argv) == 2
        captured = capsys.readouterr()
        errors = [line for line in captured.err.splitlines() if line.startswith("error: ")]
        assert len(errors) == 1, captured.err
        assert re.search(message, errors[0]), errors[0]
        assert "Traceback" not in captured.err
        assert _contents(place) == before

    return run


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# the command line itself


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["expalin"], 'Unknown command "expalin". Did you mean "explain"'),
        (["--frobnicate"], "frobnicate"),
        (["explain", "--frobnicate", "3"], "Unknown option: --frobnicate. See: butfor explain --help"),
        (["explain", "17"], "Unexpected argument '17'"),
        (["explain", "--limit", "x"], "--limit"),
        (["explain", "--limit", "0"], "--limit"),
        (["explain", "--seed", "-1"], "--seed"),
        (["explain", "--nodes"], "--nodes requires an argument"),
        (["explain", "--method", "magic"], 'Invalid value "magic" for --method. Choose from: .*"greedy"'),
        (["train", "tree-cycles"], "--out"),
        (["evaluate"], "RESULTS"),
        (["explain"], "one model is needed and none is given"),
    ],
)
def test_what_cannot_be_parsed(refused: Refused, argv: list[str], message: str) -> None:
    refused(argv, message)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--lr", "0.1"], "--lr belongs to cf-gnn and prbcd and remove-subgraph, not to exact"),
        (["--method", "cf-gnn", "--width", "3"], "--width belongs to exact and greedy, not to cf-gnn"),
        (["--method", "random", "--published-choices"], "belongs to cf-gnn, not to random"),
        (["--width", "0"], "width is 0"),
        (["--width", "wide"], "--width"),
        (["--method", "cf-gnn", "--lr", "-1"], "lr is -1"),
        (["--method", "cf-gnn", "--lr", "nan"], "lr is nan"),
        (["--method", "cf-gnn", "--optimizer", "lbfgs"], 'Invalid value "lbfgs" for --optimizer'),
        (["--method", "remove-subgraph", "--size", "all"], "--size"),
        (["--evaluations", "0"], "a budget of 0 evaluations"),
        (["--seconds", "-3"], "a budget of -3.0 seconds"),
        (["--wanted", "7"], "class 7 is wanted, but the model has classes 0 to 1"),
        (["--wanted", "cat"], "'cat' is no class"),
        (["--least", "-1"], "least margin is -1"),
        (["--protect", "3"], "'3' is no edge"),
        (["--protect", "3-17"], "3–17, which is not in this graph"),
        (["--protect", "3-99"], r"node 99 is not in this graph \(0 to 23\)"),
    ],
)
def test_flags_that_make_no_sense(refused: Refused, place: Path, flags: list[str], message: str) -> None:
    refused(explain(place, *flags, "--out", str(place / "new.jsonl")), message)


# nodes


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ("24", r"node 24 is not in this graph \(0 to 23\)"),
        ("3,5-99999999999999", r"node 99999999999999 is not in this graph"),
        ("-1", "'-1' in .* is no node"),
        ("9-3", "range 9-3"),
        ("", "neither all"),
        (",", "names no nodes"),
        ("valid", r"nor a mask of this graph \(test, train\)"),
        ("@missing.txt", "cannot read missing.txt: No such file"),
    ],
)
def test_nodes_that_are_not_there(refused: Refused, place: Path, nodes: str, message: str) -> None:
    refused(explain(place, f"--nodes={nodes}", "--out", str(place / "new.jsonl")), message)


def test_files_of_nodes(refused: Refused, place: Path, tmp_path: Path) -> None:
    listed = tmp_path / "nodes.txt"
    for content, message in [
        (b"1 2 x", "'x' in .*nodes.txt is no node"),
        (b"1\n500\n", "node 500 is not in this graph"),
        (b"# none\n", "nodes.txt names no nodes"),
        (b"\xff\xfe\x00", "it is not a text file"),
    ]:
        listed.write_bytes(content)
        refused(explain(place, "--nodes", str(listed)), message)


def test_a_mask_that_selects_nothing(refused: Refused, place: Path, tmp_path: Path) -> None:
    graph = tmp_path / "graph.npz"
    np.savez(graph, **ring(val_mask=np.zeros(NODES, dtype=bool)))
    refused(explain(place, "--graph", str(graph), "--nodes", "val"), "the mask val_mask .* selects no nodes")


# graphs


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": np.full((NODES, 3), np.nan, np.float32)}, "x of node 0, column 0 is nan"),
        ({"x": np.ones((NODES, 5), np.float32)}, "takes 3 features per node, but x has 5"),
        (
            {"edge_index": np.array([[0, 1], [1, 99]])},
            "edge 1 points to node 99, but this graph has nodes 0 to 23",
        ),
        ({"edge_index": np.array([[0, -4], [1, 2]])}, "edge 1 starts at node -4"),
        ({"x": np.array([{"a": 1}] * NODES, dtype=object)}, "holds pickled Python objects"),
    ],
)
def test_graphs_that_cannot_be_used(
    refused: Refused, place: Path, tmp_path: Path, changes: dict[str, np.ndarray], message: str
) -> None:
    graph = tmp_path / "graph.npz"
    np.savez(graph, **ring(**changes))
    refused(explain(place, "--graph", str(graph), "--out", str(place / "new.jsonl")), message)


def test_an_empty_graph(refused: Refused, tmp_path: Path) -> None:
    np.savez(tmp_path / "empty.npz", x=np.zeros((0, 3), np.float32), edge_index=np.zeros((2, 0), np.int64))
    refused(["datasets", str(tmp_path / "empty.npz")], "this graph is empty: it has no nodes")


def test_graph_files_that_cannot_be_read(refused: Refused, place: Path, tmp_path: Path) -> None:
    whole = (place / "graph.npz").read_bytes()
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
        for command in (explain(place, "--graph", str(graph)), ["datasets", str(graph)]):
            refused(command, message)
        refused(["train", str(graph), "--out", str(place / "new")], message)


def test_many_graphs_and_integer_features(refused: Refused, place: Path, tmp_path: Path) -> None:
    for name, text in [("A", "1, 2\n"), ("graph_indicator", "1\n1\n2\n"), ("node_labels", "0\n1\n0\n")]:
        (tmp_path / f"Toy_{name}.txt").write_text(text)
    refused(explain(place, "--graph", str(tmp_path)), "which graphs were left for testing is not known here")
    refused(explain(place, "--graph", str(tmp_path), "--nodes", "1"), "there are 2 graphs; nodes and links")
    refused(["train", str(tmp_path), "--out", str(place / "new")], "there are 2 graphs, but a split .* at least 10")
    edges = torch.tensor([[0, 1], [1, 0]])
    torch.save(Data(x=torch.ones(2, 1, dtype=torch.long), edge_index=edges), tmp_path / "atoms.pt")
    refused(["train", str(tmp_path / "atoms.pt"), "--out", str(place / "new")], "GCN takes floating features")


def test_graph_options_that_do_not_fit(refused: Refused, place: Path) -> None:
    graph = str(place / "graph.npz")
    refused(explain(place, "--graph", graph, "--graph-seed", "1"), "--graph-seed goes with a generated graph")
    refused(explain(place, "--graph", "tree-cycles", "--node-table", graph), "--node-table goes with an edge")
    refused(explain(place, "--graph-seed", "1"), "the checkpoint knows its own graph")
    refused(["datasets", graph, "--out", graph], "exists already")
    refused(["datasets", "--out", "new.npz"], "which graph")
    refused(["datasets", "tree-cycles", "--out", str(place / "graph.txt")], "must end in .npz")
    refused(["datasets", "tree-cycles", "--out", str(place / "no" / "g.npz")], "cannot write .*No such file")


# models


def test_models_that_cannot_be_used(
    refused: Refused, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bad_models.py").write_text(
        "from butfor.models import PaperGCN\n"
        "number = 3\n"
        "def none(): return None\n"
        "def fails(): raise RuntimeError('no luck')\n"
        "def leaves(): raise SystemExit(0)\n"
        "def wants(size): return PaperGCN(3, size)\n"
        "def gcn(): return PaperGCN(3, 2)\n"
    )
    (tmp_path / "worse_models.py").write_text("import surely_not_there\n")
    (tmp_path / "leaving_models.py").write_text("raise SystemExit('usage')\n")
    save_file(PaperGCN(3, 4).state_dict(), tmp_path / "four.safetensors")
    whole = (place / "run" / "model.safetensors").read_bytes()
    (tmp_path / "cut.safetensors").write_bytes(whole[:-100])
    torch.save(PaperGCN(3, 2).state_dict(), tmp_path / "pickled.safetensors")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    graph = ["--graph", str(place / "graph.npz")]
    for model, message in [
        (["--model", "gcn"], "must name a factory"),
        (["--model", "no_such_module:gcn"], "cannot import no_such_module"),
        (["--model", "worse_models:gcn"], "cannot import worse_models .*surely_not_there"),
        (["--model", "bad_models:gin"], "bad_models has no gin"),
        (["--model", "bad_models:number"], "number is a int, not a function"),
        (["--model", "bad_models:none"], "returned a NoneType"),
        (["--model", "bad_models:fails"], "RuntimeError: no luck"),
        (["--model", "bad_models:leaves"], "bad_models:leaves failed: SystemExit: 0"),
        (["--model", "leaving_models:gcn"], "cannot import leaving_models .*SystemExit: usage"),
        (["--model", "bad_models:wants"], "TypeError: .*size"),
        (["--model", "bad_models:gcn", "--weights", "four.safetensors"], r"lin\.\w+ .* has shape"),
        (["--model", "bad_models:gcn", "--weights", "cut.safetensors"], "truncated"),
        (
            ["--model", "bad_models:gcn", "--weights", "pickled.safetensors"],
            "could run code and is not opened",
        ),
        (["--model", "bad_models:gcn", "--weights", "missing"], "cannot read missing: No such file"),
        (["--published", "missing.npz"], "there is no file missing.npz"),
        (["--published", str(place / "graph.npz")], "holds no published GCN"),
        (["--checkpoint", str(tmp_path)], "is no checkpoint"),
        (["--checkpoint", str(place / "run"), "--model", "a:b"], "--checkpoint and --model are both given"),
        (["--checkpoint", str(place / "run"), "--weights", "w"], "--weights goes with --model"),
    ]:
        refused(["explain", *model, *graph, "--out", str(place / "new.jsonl")], message)
    refused(["explain", "--model", "bad_models:gcn"], "--model needs a graph")


def test_a_graph_that_changed_since_the_training(refused: Refused, tmp_path: Path) -> None:
    graph = tmp_path / "graph.npz"
    np.savez(graph, **ring())
    assert main(["train", str(graph), "--epochs", "1", "--out", str(tmp_path / "run")]) == 0
    np.savez(graph, **ring(x=np.ones((NODES, 3), np.float32)))
    refused(explain(tmp_path), "is no longer the graph that the checkpoint")
    graph.unlink()
    refused(explain(tmp_path), "if it was moved, give --graph")


def test_training_that_cannot_be_done(refused: Refused, place: Path, tmp_path: Path) -> None:
    graph = str(place / "graph.npz")
    new = str(place / "new")
    np.savez(tmp_path / "bare.npz", **{key: ring()[key] for key in ("x", "edge_index")})
    for arguments, message in [
        ([graph, "--out", str(place / "run")], "is not empty; choose another folder"),
        ([graph, "--out", str(place / "graph.npz" / "new")], "graph.npz is not a folder"),
        ([graph, "--out", str(place / "graph.npz")], "graph.npz is not a folder"),
        ([graph, "--epochs", "0", "--out", new], "--epochs is 0"),
        ([graph, "--lr", "nan", "--out", new], "--lr is nan"),
        ([graph, "--weight-decay", "-1", "--out", new], "--weight-decay is -1"),
        ([graph, "--hidden", "0", "--out", new], "--hidden is 0"),
        ([str(tmp_path / "bare.npz"), "--out", new], "no labels"),
    ]:
        refused(["train", *arguments], message)
    assert main(["train", graph, "--epochs", "1", "--out", str(tmp_path / "run")]) == 0
    assert main(["train", graph, "--epochs", "2", "--out", str(tmp_path / "run"), "--force"]) == 0


# result files


def test_results_of_another_run(refused: Refused, place: Path, tmp_path: Path) -> None:
    done = str(place / "done.jsonl")
    np.savez(tmp_path / "graph.npz", **ring(x=np.ones((NODES, 3), np.float32)))
    assert main(["train", str(place / "graph.npz"), "--epochs", "2", "--out", str(tmp_path / "run")]) == 0
    other_graph = ["--checkpoint", str(place / "run"), "--graph", str(tmp_path / "graph.npz")]
    other_model = ["--checkpoint", str(tmp_path / "run")]
    refused(["explain", *other_graph, "--out", done], r"results of another graph \(\w+ instead of \w+\)")
    refused(["explain", *other_model, "--out", done], r"results of another model \(\w+ instead of \w+\)")
    refused(explain(place, "--method", "keep-ego", "--out", done), "results of another method")
    refused(explain(place, "--width", "3", "--out", done), "results of another method")
    refused(explain(place, "--seed", "1", "--out", done), r"another seed \(0 instead of 1\)")
    refused(explain(place, "--protect", "0-1", "--out", done), "another edit space")
    refused(["evaluate", done, *other_graph], "results of another graph")
    refused(["evaluate", done, *other_model], "results of another model")
    refused(["show", done, "--node", "1", *other_model, "--out", str(place / "p.png")], "another model")


def test_damaged_results(refused: Refused, place: Path, tmp_path: Path) -> None:
    lines = (place / "done.jsonl").read_bytes().splitlines(keepends=True)
    damaged = tmp_path / "damaged.jsonl"
    damaged.write_bytes(lines[0] + lines[1][:20] + b"\n" + lines[2])
    before = damaged.read_bytes()
    for command in (
        explain(place, "--out", str(damaged)),
        ["evaluate", str(damaged)],
        ["show", str(damaged)],
    ):
        refused(command, "line 2 of .*damaged.jsonl is damaged")
    assert damaged.read_bytes() == before
    graph = str(place / "graph.npz")
    for command in (explain(place, "--out", graph), ["evaluate", graph], ["show", graph, "--node", "1"]):
        refused(command, "this is not a file of results")
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    refused(["evaluate", str(empty)], "holds no results")
    refused(["show", str(empty)], "holds no results")
    refused(["evaluate", str(tmp_path / "missing.jsonl")], "cannot read .*No such file")


def test_what_cannot_be_shown(refused: Refused, place: Path) -> None:
    show = ["show", str(place / "done.jsonl")]
    picture = str(place / "picture.png")
    checkpoint = ["--checkpoint", str(place / "run")]
    refused([*show, "--node", "2"], "node 2 is not in .*done.jsonl, which has 12 nodes: 1, 3, 5")
    refused([*show, "--out", picture], "Give --node")
    refused([*show, "--node", "1", "--out", picture], "a picture needs the model")
    refused([*show, "--node", "1", *checkpoint, "--out", str(place / "p.gif")], "must end in .png")
    refused([*show, "--node", "1", *checkpoint, "--out", str(place / "no" / "p.png")], "there is no folder")
    refused(["evaluate", str(place / "done.jsonl"), "--graph", "tree-cycles"], "a graph alone does not do")


def test_places_that_cannot_be_written(refused: Refused, place: Path) -> None:
    for out, message in [
        (place / "missing" / "cfs.jsonl", "there is no folder .*missing"),
        (place / "graph.npz" / "cfs.jsonl", "Not a directory"),
        (place / "run", "is a folder; give a file such as .*run/results.jsonl"),
    ]:
        refused(explain(place, "--out", str(out)), message)


# a full disk


def test_a_device(refused: Refused, place: Path) -> None:
    refused(explain(place, "--out", "/dev/full"), "/dev/full is no regular file")


def test_a_disk_that_fills_up_in_the_middle(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cfs.jsonl"
    write, calls = os.write, []

    def full_after_three(file: int, content: bytes) -> int:
        calls.append(content)
        if len(calls) == 4:
            return write(file, content[:30])
        if len(calls) > 4:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(file, content)

    monkeypatch.setattr(store_module.os, "write", full_after_three)
    assert main(explain(place, "--out", str(path))) == 2
    monkeypatch.undo()
    err = capsys.readouterr().err
    assert "No space left on device; the 3 results in it are kept" in err
    assert "3 of 12 nodes are done and kept" in err
    assert path.read_bytes() == b"".join(calls[:3])
    assert main(explain(place, "--out", str(path))) == 0
    assert read_results(path) == read_results(place / "done.jsonl")


def test_standard_output_that_is_full(place: Path) -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, "show", str(place / "done.jsonl")],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 2
    assert done.stderr == "error: No space left on device\n"


# Ctrl-C


@pytest.mark.parametrize("method", [["--method", "greedy"], ["--method", "cf-gnn", "--epochs", "60"]])
@pytest.mark.parametrize("count", [0, 1, 5])
def test_ctrl_c_keeps_what_is_done_and_the_run_goes_on(
    place: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    method: list[str],
    count: int,
) -> None:
    path, whole = tmp_path / "cfs.jsonl", tmp_path / "whole.jsonl"
    arguments = explain(place, "--nodes", "all", *method)
    stream = Session.stream

    def interrupted(self: Session, nodes: list[int]) -> Iterator[object]:
        for number, result in enumerate(stream(self, nodes)):
            if number == count:
                raise KeyboardInterrupt
            yield result

    with monkeypatch.context() as patch:
        patch.setattr(Session, "stream", interrupted)
        assert main([*arguments, "--out", str(path)]) == 130
    err = capsys.readouterr().err
    assert f"interrupted: {count} of {NODES} nodes are done and kept in {path}" in err
    assert path.exists() == (count > 0)
    kept = path.read_bytes() if count else b""
    assert main([*arguments, "--out", str(path)]) == 0
    assert path.read_bytes().startswith(kept)
    assert main([*arguments, "--out", str(whole)]) == 0
    results = read_results(path)
    assert sorted(item.target for item in results) == list(range(NODES))
    assert {item.target: item for item in results} == {item.target: item for item in read_results(whole)}


def test_ctrl_c_without_a_file(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(self: Session, nodes: list[int]) -> Iterator[object]:
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(Session, "stream", interrupted)
    assert main(explain(place)) == 130
    assert "interrupted: 0 of 12 nodes are done; with --out FILE" in capsys.readouterr().err


def test_ctrl_c_elsewhere(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("butfor.models.trained_gcn", interrupted)
    assert main(["train", str(place / "graph.npz"), "--out", str(place / "new")]) == 130
    assert capsys.readouterr().err == "interrupted\n"
    assert not (place / "new").exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_real_signal(place: Path, tmp_path: Path, number: int, code: int) -> None:
    path = tmp_path / "cfs.jsonl"
    # Slow enough that the signal comes in the middle: every node has a pause of its own.
    program = (
        "import signal, time; from butfor.methods import Exact; from butfor.cli import main; solve = Exact.solve\n"
        # A shell that runs the tests in the background lets its children ignore Ctrl-C.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "Exact.solve = lambda *a: (time.sleep(0.2), solve(*a))[1]\n"
        "raise SystemExit(main())"
    )
    arguments = explain(place, "--nodes", "all", "--out", str(path))
    process = subprocess.Popen([sys.executable, "-c", program, *arguments], stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not (path.exists() and path.read_bytes().count(b"\n") >= 2):
            time.sleep(0.02)
        process.send_signal(number)
        _, err = process.communicate(timeout=30)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    assert process.returncode == code, err
    done = len(read_results(path))
    assert 2 <= done < NODES
    assert f"interrupted: {done} of {NODES} nodes are done and kept in {path}" in err
    assert "Traceback" not in err
    assert main([*arguments]) == 0
    assert sorted(item.target for item in read_results(path)) == list(range(NODES))
