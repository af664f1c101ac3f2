"""The runs of `butfor reproduce` that the tests look at. Each takes seconds, and is made once for all of them."""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from reproduction import PARTS, QUICK, Done, Published, reproduce


def made_once(name: str, factory: pytest.TempPathFactory, *arguments: str) -> Done:
    """The run of this name: the first process of pytest-xdist that needs it makes it, the others wait for it."""
    base = factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, out = shared / name / "deep" / "run", shared / f"{name}.txt"
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not out.exists():
            out.write_text(reproduce(folder, *arguments).out, encoding="utf-8")
    return Done(folder, out.read_text(encoding="utf-8"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever looks at such a run is too long for `make test`."""
    for item in items:
        if {"run", "variants"} & {*getattr(item, "fixturenames", ())} and "paper" in item.path.parts:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def published(reference: Path) -> Published:
    return Published.of(reference)


@pytest.fixture(scope="session")
def run(reference: Path, tmp_path_factory: pytest.TempPathFactory) -> Done:
    """Four parts, on a tenth of the nodes, by one process, on the published graph and on a fresh one."""
    return made_once("reproduce", tmp_path_factory, *PARTS, *QUICK, "--reference", str(reference))


@pytest.fixture(scope="session")
def other_reference(reference: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The published graph with ten test nodes, of which a quick run takes one, and a model that is surer."""
    folder = tmp_path_factory.mktemp("other")
    graph = dict(np.load(reference / "tree_cycles_graph.npz"))
    graph["test_idx"] = np.array([45, *range(500, 509)])
    np.savez(folder / "tree_cycles_graph.npz", **graph)
    weights = dict(np.load(reference / "tree_cycles_gcn_weights.npz"))
    for name in ("lin.weight", "lin.bias"):
        weights[name] = weights[name] * np.float32(4)
    np.savez(folder / "tree_cycles_gcn_weights.npz", **weights)
    return folder


@pytest.fixture(scope="session")
def variants(other_reference: Path, tmp_path_factory: pytest.TempPathFactory) -> Done:
    """The parts that run many variants of CF-GNN, on one node."""
    arguments = ("search", "departures", *QUICK, "--reference", str(other_reference))
    return made_once("variants", tmp_path_factory, *arguments)


@pytest.fixture
def copy(run: Done, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(run.folder, tmp_path / "copy"))


@pytest.fixture
def started(run: Done, tmp_path: Path) -> Path:
    """A folder with the models and results of the run, and nothing made of them yet."""
    for kind in ("models", "results"):
        shutil.copytree(run.folder / kind, tmp_path / "started" / kind)
    return tmp_path / "started"
