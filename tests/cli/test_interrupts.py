"""Ctrl-C and SIGTERM: what was found is kept, and the same command goes on with the rest."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from butfor.cli import main
from butfor.runs import read_results
from butfor.session import Session
from cli_folders import RING_NODES, explain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize("method", [["--method", "greedy"], ["--method", "cf-gnn", "--epochs", "60"]])
@pytest.mark.parametrize("count", [0, 1, 5])
def test_ctrl_c_keeps_what_is_done_and_the_run_goes_on(
    rings: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
    method: list[str],
    count: int,
) -> None:
    path, whole = tmp_path / "cfs.jsonl", tmp_path / "whole.jsonl"
    arguments = explain(rings, "--nodes", "all", *method)
    stream = Session.stream

    def interrupted(self: Session, *given: Any, **more: Any) -> Iterator[object]:
        for number, result in enumerate(stream(self, *given, **more)):
            if number == count:
                raise KeyboardInterrupt
            yield result

    with monkeypatch.context() as patch:
        patch.setattr(Session, "stream", interrupted)
        assert main([*arguments, "--out", str(path)]) == 130
    err = capsys.readouterr().err
    assert f"interrupted: {count} of {RING_NODES} nodes are done and kept in {path}" in err
    assert path.exists() == (count > 0)
    kept = path.read_bytes() if count else b""
    assert main([*arguments, "--out", str(path)]) == 0
    assert path.read_bytes().startswith(kept)
    assert main([*arguments, "--out", str(whole)]) == 0
    results = read_results(path)
    assert sorted(item.target for item in results) == list(range(RING_NODES))
    assert {item.target: item for item in results} == {item.target: item for item in read_results(whole)}


def test_ctrl_c_without_a_file(rings: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    def interrupted(*_: Any, **__: Any) -> Iterator[object]:
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(Session, "stream", interrupted)
    assert main(explain(rings)) == 130
    assert "interrupted: 0 of 12 nodes are done; with --out FILE" in capsys.readouterr().err


@pytest.mark.slow
def test_ctrl_c_in_the_middle_of_graphs(
    tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    path = tmp_path / "cfs.jsonl"
    stream, calls = Session.stream, []

    def interrupted(self: Session, *given: Any, **more: Any) -> Iterator[object]:
        calls.append(self.number)
        if len(calls) == 4:
            raise KeyboardInterrupt
        yield from stream(self, *given, **more)

    with monkeypatch.context() as patch:
        patch.setattr(Session, "stream", interrupted)
        assert main(["explain", "--checkpoint", "run", "--graphs", "all", "--out", str(path)]) == 130
    assert f"interrupted: 3 of 40 graphs are done and kept in {path}" in capsys.readouterr().err
    assert main(["explain", "--checkpoint", "run", "--graphs", "all", "--out", str(path)]) == 0
    assert read_results(path) == read_results("done.jsonl")


def test_ctrl_c_elsewhere(rings: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("butfor.models.trained_gcn", interrupted)
    assert main(["train", str(rings / "graph.npz"), "--out", str(rings / "new")]) == 130
    assert capsys.readouterr().err == "interrupted\n"
    assert not (rings / "new").exists()


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_real_signal(rings: Path, tmp_path: Path, number: int, code: int) -> None:
    path = tmp_path / "cfs.jsonl"
    # Slow enough that the signal comes in the middle: every node has a pause of its own.
    program = (
        "import signal, time; from butfor.methods import Exact; from butfor.cli import main; solve = Exact.solve\n"
        # A shell that runs the tests in the background lets its children ignore Ctrl-C.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "Exact.solve = lambda *a: (time.sleep(0.2), solve(*a))[1]\n"
        "raise SystemExit(main())"
    )
    arguments = explain(rings, "--nodes", "all", "--out", str(path))
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
    assert 2 <= done < RING_NODES
    assert f"interrupted: {done} of {RING_NODES} nodes are done and kept in {path}" in err
    assert "Traceback" not in err
    assert main([*arguments]) == 0
    assert sorted(item.target for item in read_results(path)) == list(range(RING_NODES))
