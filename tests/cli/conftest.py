"""Folders that the commands work on, made once, and the command that must be refused."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from butfor.cli import main
from cli_folders import MODELS, one_ring, two_rings, write_molecules

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of a small GCN on Tree-Cycles."""
    folder = tmp_path_factory.mktemp("trees") / "tree-cycles"
    assert main(["train", "tree-cycles", "--epochs", "300", "--lr", "0.01", "--quiet", "--out", str(folder)]) == 0
    return folder


@pytest.fixture(scope="session")
def results(trained: Path) -> Path:
    """What Exact finds for ten test nodes of it."""
    path = trained.parent / "exact.jsonl"
    assert main(["explain", "--checkpoint", str(trained), "--limit", "10", "--quiet", "--out", str(path)]) == 0
    return path


@pytest.fixture(scope="session")
def rings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a graph of two rings, a checkpoint, and the results of its twelve test nodes."""
    folder = tmp_path_factory.mktemp("rings")
    np.savez(folder / "graph.npz", **two_rings())
    train = ["train", str(folder / "graph.npz"), "--epochs", "40", "--lr", "0.02", "--quiet"]
    assert main([*train, "--out", str(folder / "run")]) == 0
    explain = ["explain", "--checkpoint", str(folder / "run"), "--quiet"]
    assert main([*explain, "--out", str(folder / "done.jsonl")]) == 0
    return folder


@pytest.fixture(scope="session")
def _tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tasks")
    (folder / "task_models.py").write_text(MODELS)
    np.savez(folder / "graph.npz", **one_ring())
    write_molecules(folder / "molecules")
    train = ["train", str(folder / "molecules"), "--epochs", "15", "--hidden", "8", "--layers", "2", "--lr", "0.05"]
    assert main([*train, "--quiet", "--out", str(folder / "run")]) == 0
    explain = ["explain", "--checkpoint", str(folder / "run"), "--graphs", "all", "--quiet"]
    assert main([*explain, "--out", str(folder / "done.jsonl")]) == 0
    return folder


@pytest.fixture
def tasks(_tasks: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: models and a graph of one's own, molecules, a checkpoint of theirs and its results."""
    monkeypatch.chdir(_tasks)
    monkeypatch.setattr(sys, "path", [str(_tasks), *sys.path])
    return _tasks


@pytest.fixture
def refused(
    request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[[list[str], str], None]:
    """Run a command that must fail with a message and leave every file of the test's folders as it is."""
    used = [name for name in ("rings", "tasks", "trained") if name in request.fixturenames]
    folders = [tmp_path, *map(request.getfixturevalue, used)]

    def contents() -> dict[Path, bytes]:
        files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
        return {path: path.read_bytes() for path in files if path.parent.name != "__pycache__"}

    def run(argv: list[str], message: str) -> None:
        before = contents()
        capsys.readouterr()
        assert main(argv) == 2
        captured = capsys.readouterr()
        *notes, error = captured.err.splitlines()
        assert error.startswith("error: ")
        assert re.search(message, error), error
        assert all(line.startswith("note: ") for line in notes), captured.err
        assert all(line.isprintable() for line in (*notes, error)), captured.err
        assert contents() == before

    return run
