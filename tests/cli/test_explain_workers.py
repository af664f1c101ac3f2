"""``butfor explain`` with several workers, into folders, and what it says on the way."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from butfor.cli import main
from butfor.methods import Exact
from butfor.runs import load_results, read_results
from cli_folders import RING_NODES, Refused, explain

if TYPE_CHECKING:
    from pathlib import Path

    from butfor.problem.problem import Problem
    from butfor.problem.proposal import Proposal

Capture = pytest.CaptureFixture[str]


def by_target(path: Path) -> dict:
    return {result.target: result for result in read_results(path)}


@pytest.fixture
def unlucky(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exact search that fails at node 7."""
    solve = Exact.solve

    def unlucky(self: Exact, problem: Problem) -> Proposal:
        if problem.target == (7,):
            raise RuntimeError("no luck")
        return solve(self, problem)

    monkeypatch.setattr(Exact, "solve", unlucky)


@pytest.mark.slow
def test_processes_write_the_same_results(rings: Path, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "cfs.jsonl"
    assert main(explain(rings, "--jobs", "2", "--progress", "json", "--out", str(path))) == 0
    assert by_target(path) == by_target(rings / "done.jsonl")
    events = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert (events[0]["event"], events[-1]["event"], events[-1]["done"]) == ("start", "end", 12)


@pytest.mark.slow
def test_a_model_of_ones_own_is_known_to_the_processes(tasks: Path, tmp_path: Path) -> None:
    model = ["explain", "--model", "task_models:Nodes", "--graph", "graph.npz", "--nodes", "all", "--quiet"]
    assert main([*model, "--jobs", "2", "--out", str(tmp_path / "two.jsonl")]) == 0
    assert main([*model, "--out", str(tmp_path / "one.jsonl")]) == 0
    assert by_target(tmp_path / "two.jsonl") == by_target(tmp_path / "one.jsonl")


@pytest.mark.slow
def test_whole_graphs_in_processes(tasks: Path, tmp_path: Path) -> None:
    folder = f"{tmp_path}/results/"
    graphs = ["explain", "--checkpoint", "run", "--graphs", "all", "--quiet", "--out", folder]
    assert main([*graphs, "--jobs", "2"]) == 0
    assert by_target(tmp_path / "results") == by_target(tasks / "done.jsonl")
    assert main(graphs) == 0


@pytest.mark.parametrize("format", [[], ["--format", "parquet"]])
def test_a_folder_is_written_continued_and_read(
    rings: Path, tmp_path: Path, capsys: Capture, format: list[str]
) -> None:
    folder = tmp_path / "results"
    assert main(explain(rings, "--limit", "5", *format, "--out", f"{folder}/")) == 0
    assert len(load_results(folder)) == 5
    assert main(explain(rings, "--out", str(folder))) == 0
    assert "5 of 12 nodes are in" in capsys.readouterr().err
    assert by_target(folder) == by_target(rings / "done.jsonl")
    assert main(["show", str(folder), "--node", "3"]) == 0
    assert "Node 3 is predicted" in capsys.readouterr().out
    assert main(["evaluate", str(folder), "--checkpoint", str(rings / "run")]) == 0
    measured = capsys.readouterr().out.splitlines()[-1].split()[2:]
    assert main(["evaluate", str(rings / "done.jsonl"), "--checkpoint", str(rings / "run")]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split()[2:] == measured


def test_a_folder_of_another_run_is_refused(refused: Refused, rings: Path, tmp_path: Path) -> None:
    folder = f"{tmp_path / 'results'}/"
    assert main(explain(rings, "--limit", "5", "--quiet", "--out", folder)) == 0
    refused(explain(rings, "--seed", "1", "--out", folder), r"another seed \(0 instead of 1\)")
    refused(explain(rings, "--evaluations", "7", "--out", folder), "another budget")
    refused(explain(rings, "--format", "parquet", "--out", folder), "another format")
    refused(["show", str(rings)], "not one of results")


@pytest.mark.slow
def test_proofs_of_a_folder_are_checked(rings: Path, tmp_path: Path, capsys: Capture) -> None:
    folder = f"{tmp_path / 'results'}/"
    # The proofs of others are longer, and may not be ready in time on a busy machine.
    assert main(explain(rings, "--nodes", "1,5,7,13,15", "--certificate", "--quiet", "--out", folder)) == 0
    capsys.readouterr()
    assert main(["check", folder, "--checkpoint", str(rings / "run")]) == 0
    assert "5 of 5 results are confirmed" in capsys.readouterr().out


@pytest.mark.usefixtures("unlucky")
def test_a_node_that_fails_is_a_row(rings: Path, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "cfs.jsonl"
    assert main(explain(rings, "--out", str(path))) == 0
    assert "failed 1" in capsys.readouterr().out
    truth = by_target(rings / "done.jsonl")
    found = by_target(path)
    assert found.pop(7).note == "RuntimeError: no luck"
    assert found == {node: result for node, result in truth.items() if node != 7}
    assert main(explain(rings, "--out", str(path))) == 0
    assert "nothing to do" in capsys.readouterr().err
    assert main(["evaluate", str(path)]) == 0
    assert "1 of the 12 targets" in capsys.readouterr().err
    assert main(["show", str(path), "--node", "7"]) == 0
    assert "Node 7 could not be explained: RuntimeError: no luck" in capsys.readouterr().out


@pytest.mark.parametrize("out", ["cfs.jsonl", "cfs/"])
def test_nodes_that_failed_are_tried_again(
    rings: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, out: str
) -> None:
    command = explain(rings, "--out", f"{tmp_path}/{out}")
    with monkeypatch.context() as bad_luck:
        solve = Exact.solve
        bad_luck.setattr(Exact, "solve", lambda self, problem: 1 / (problem.target != (7,)) and solve(self, problem))
        assert main(command) == 0
        # In vain at first.
        assert main([*command, "--retry-failed"]) == 0
        assert capsys.readouterr().out.count("failed 1") == 2
    assert main([*command, "--retry-failed"]) == 0
    assert "11 of 12 nodes are in" in capsys.readouterr().err
    assert by_target(tmp_path / out) == by_target(rings / "done.jsonl")
    assert main([*command, "--retry-failed"]) == 0
    assert "nothing to do" in capsys.readouterr().err


@pytest.mark.usefixtures("unlucky")
def test_where_all_nodes_fail_nothing_is_written(refused: Refused, rings: Path, tmp_path: Path) -> None:
    command = explain(rings, "--nodes", "7", "--out", str(tmp_path / "cfs.jsonl"))
    refused(command, "node 7 cannot be explained, nor any other that was tried: RuntimeError: no luck")


def test_senseless_flags(refused: Refused, rings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused(explain(rings, "--jobs", "0"), "jobs")
    refused(explain(rings, "--address", "auto"), "give --executor ray too")
    refused(explain(rings, "--retry-failed"), "give --out FILE too")
    refused(explain(rings, "--progress", "loud"), "progress")
    monkeypatch.setitem(sys.modules, "ray", None)
    refused(explain(rings, "--executor", "ray"), r"ray is not installed; run: pip install 'butfor\[ray\]'")


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code", "out"), [(signal.SIGINT, 130, "cfs.jsonl"), (signal.SIGTERM, 143, "cfs/")])
def test_a_signal_stops_the_workers(rings: Path, tmp_path: Path, number: int, code: int, out: str) -> None:
    """Ctrl-C reaches all processes of a terminal, SIGTERM only the first; what was found is kept either way."""
    path = tmp_path / out.rstrip("/")
    (tmp_path / "slowly.py").write_text(
        "import time, signal\n"
        "from butfor.cli import main\n"
        "from butfor.methods import Exact\n"
        "solve = Exact.solve\n"
        "Exact.solve = lambda *a: (time.sleep(0.3), solve(*a))[1]\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import butfor.runs.folder as folder; folder.SECONDS = 0\n"
        "raise SystemExit(main())\n"
    )
    arguments = explain(rings, "--nodes", "all", "--jobs", "2", "--out", f"{tmp_path}/{out}")
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "slowly.py"), *arguments], stderr=subprocess.PIPE, text=True, process_group=0
    )
    try:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and not _lines(path):
            time.sleep(0.02)
        if number == signal.SIGINT:
            subprocess.run(["kill", "-INT", "--", f"-{process.pid}"], check=True)
        else:
            process.send_signal(number)
        _, err = process.communicate(timeout=60)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    assert process.returncode == code, err
    done = len(read_results(path))
    assert 1 <= done < RING_NODES
    assert f"interrupted: {done} of {RING_NODES} nodes are done and kept in {path}" in err
    assert "Traceback" not in err
    left = subprocess.run(["pgrep", "-ag", str(process.pid)], capture_output=True, text=True, check=False)
    assert not [line for line in left.stdout.splitlines() if not re.search("resource_tracker|defunct", line)]
    # One process goes on where several were stopped.
    assert main(explain(rings, "--nodes", "all", "--quiet", "--out", f"{tmp_path}/{out}")) == 0
    assert main(explain(rings, "--nodes", "all", "--quiet", "--out", str(tmp_path / "whole.jsonl"))) == 0
    assert by_target(path) == by_target(tmp_path / "whole.jsonl")


def _lines(path: Path) -> int:
    files = path.glob("part-*") if path.is_dir() else [path] if path.exists() else []
    return sum(file.read_bytes().count(b"\n") for file in files)
