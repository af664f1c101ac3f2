"""How far a run is: for people and for machines."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from butfor.cli import progress as progress_module
from butfor.cli.progress import Tally, progress
from sample_results import NOTHING, RESULT

RESULTS = [replace(RESULT, target=target, seconds=float(target)) for target in range(5)]
RESULTS[3] = replace(NOTHING, target=3, seconds=3.0)

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which a test sets."""
    now = [0.0]
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: now[0])
    return now


def test_time_left_is_weighted_by_cost(clock: list[float]) -> None:
    tally = Tally(5, "node", {0: 60.0, 1: 10.0, 2: 10.0, 3: 10.0, 4: 10.0})
    assert (tally.share, tally.left) == (0.0, None)
    clock[0] = 30.0
    tally.add(RESULTS[0])
    assert tally.share == pytest.approx(0.6)
    assert tally.left == pytest.approx(20.0)
    for result in RESULTS[1:]:
        tally.add(result)
    assert (tally.share, tally.left) == (1.0, 0.0)
    assert tally.slowest == [("node 4", 4.0), ("node 3", 3.0), ("node 2", 2.0)]
    assert tally.counts == "found 4, unknown 1"


def test_lines_in_a_log_come_ever_more_rarely(clock: list[float], capsys: Capture) -> None:
    results = [replace(RESULT, target=target) for target in range(400)]
    for _ in progress(results, Tally(400, "node"), kind="lines"):
        clock[0] += 1.0
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("explaining: ")]
    assert lines[0] == "explaining: 31 of 400 nodes in 00:30 (8% of the work, about 05:57 left): found 31"
    assert 3 <= len(lines) <= 8


def test_short_runs_say_nothing_in_a_log(capsys: Capture) -> None:
    assert list(progress(RESULTS, Tally(5, "node"))) == RESULTS
    assert list(progress(RESULTS, Tally(5, "node"), kind="none")) == RESULTS
    assert capsys.readouterr().err == ""


def test_a_bar(capsys: Capture) -> None:
    assert list(progress(RESULTS, Tally(5, "node"), kind="bar")) == RESULTS
    assert "explaining:" in capsys.readouterr().err


def test_lines_for_machines(clock: list[float], capsys: Capture) -> None:
    for _ in progress(RESULTS, Tally(5, "node"), kind="json"):
        clock[0] += 0.6
    first, *more, last = map(json.loads, capsys.readouterr().err.splitlines())
    assert first["event"] == "start"
    assert [one["event"] for one in more] == ["progress", "progress"]
    assert last == {
        "event": "end",
        "unit": "node",
        "done": 5,
        "total": 5,
        "share": 1.0,
        "elapsed": 3.0,
        "left": 0.0,
        "statuses": {"found": 4, "unknown": 1},
        "slowest": [{"target": f"node {node}", "seconds": float(node)} for node in (4, 3, 2)],
    }
    assert first.keys() == last.keys()


def test_machines_are_told_that_a_run_was_stopped(capsys: Capture) -> None:
    going = progress(RESULTS, Tally(5, "node"), kind="json")
    next(going)
    going.close()
    assert json.loads(capsys.readouterr().err.splitlines()[-1])["event"] == "stopped"
