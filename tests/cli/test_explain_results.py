"""Where ``butfor explain`` may and may not put its results, and a disk that fills up."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from butfor.cli import main
from butfor.runs import read_results
from butfor.runs import store as store_module
from cli_folders import RING_NODES, Refused, explain, two_rings


def test_results_of_another_run(refused: Refused, rings: Path, tmp_path: Path) -> None:
    done = str(rings / "done.jsonl")
    np.savez(tmp_path / "graph.npz", **two_rings(x=np.ones((RING_NODES, 3), np.float32)))
    assert main(["train", str(rings / "graph.npz"), "--epochs", "2", "--out", str(tmp_path / "run")]) == 0
    other_graph = ["--checkpoint", str(rings / "run"), "--graph", str(tmp_path / "graph.npz")]
    other_model = ["--checkpoint", str(tmp_path / "run")]
    refused(["explain", *other_graph, "--out", done], r"results of another graph \(\w+ instead of \w+\)")
    refused(["explain", *other_model, "--out", done], r"results of another model \(\w+ instead of \w+\)")
    refused(explain(rings, "--method", "keep-ego", "--out", done), "results of another method")
    refused(explain(rings, "--width", "3", "--out", done), "results of another method")
    refused(explain(rings, "--seed", "1", "--out", done), r"another seed \(0 instead of 1\)")
    refused(explain(rings, "--protect", "0-1", "--out", done), "another edit space")


def test_damaged_results(refused: Refused, rings: Path, tmp_path: Path) -> None:
    lines = (rings / "done.jsonl").read_bytes().splitlines(keepends=True)
    damaged = tmp_path / "damaged.jsonl"
    damaged.write_bytes(lines[0] + lines[1][:20] + b"\n" + lines[2])
    before = damaged.read_bytes()
    for command in (
        explain(rings, "--out", str(damaged)),
        ["evaluate", str(damaged)],
        ["show", str(damaged)],
    ):
        refused(command, "line 2 of .*damaged.jsonl is damaged")
    assert damaged.read_bytes() == before
    graph = str(rings / "graph.npz")
    for command in (explain(rings, "--out", graph), ["evaluate", graph], ["show", graph, "--node", "1"]):
        refused(command, "this is not a file of results")
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    refused(["evaluate", str(empty)], "holds no results")
    refused(["show", str(empty)], "holds no results")
    refused(["evaluate", str(tmp_path / "missing.jsonl")], "cannot read .*No such file")


def test_places_that_cannot_be_written(refused: Refused, rings: Path) -> None:
    for out, message in [
        (rings / "missing" / "cfs.jsonl", "there is no folder .*missing"),
        (rings / "graph.npz" / "cfs.jsonl", "Not a directory"),
        (rings / "run", "is a folder; give a file such as .*run/results.jsonl"),
        (".", "is a folder; give a file such as results.jsonl"),
    ]:
        refused(explain(rings, "--out", str(out)), message)


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_what_is_no_file_is_refused_at_once(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before the model and the graph are even read: there are none here."""
    monkeypatch.chdir(tmp_path)
    out = Path("/dev/full")
    if kind == "pipe":
        out = tmp_path / "pipe"
        os.mkfifo(out)
    assert main(["explain", "--checkpoint", "nowhere", "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert f"{out} is no regular file" in said
    assert "nowhere" not in said


def test_a_disk_that_fills_up_in_the_middle(
    rings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
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
    assert main(explain(rings, "--out", str(path))) == 2
    monkeypatch.undo()
    err = capsys.readouterr().err
    assert "No space left on device; the 3 results in it are kept" in err
    assert "3 of 12 nodes are done and kept" in err
    assert path.read_bytes() == b"".join(calls[:3])
    assert main(explain(rings, "--out", str(path))) == 0
    assert read_results(path) == read_results(rings / "done.jsonl")
