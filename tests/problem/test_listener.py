"""A listener hears of every better answer and bound of a search, and may end it."""

from __future__ import annotations

import io

import pytest

import butfor
from butfor.errors import InputError
from butfor.problem.listener import Listener, SearchState
from butfor.testing import random_problem
from method_list import ALL


class Recorder(Listener):
    """Keeps what it hears, and ends the search after so many times."""

    def __init__(self, most: int | None = None) -> None:
        super().__init__()
        self.heard: list[SearchState] = []
        self.most = most

    def hear(self, state: SearchState) -> None:
        self.heard.append(state)
        if self.most is not None and len(self.heard) >= self.most:
            self.stop()


@pytest.mark.parametrize("name", ALL)
def test_a_listener_changes_nothing_and_hears_of_the_answer(name: str) -> None:
    session = butfor.prepare(*random_problem(1))
    for target in range(4):
        recorder = Recorder()
        result = session.explain(target, ALL[name], listener=recorder)
        assert result == session.explain(target, ALL[name])
        costs = [state.cost for state in recorder.heard if state.cost is not None]
        assert costs == sorted(costs, reverse=True)
        if result.found:
            best = recorder.heard[-1]
            assert best.cost is not None
            assert best.cost <= result.cost
            assert best.lower_bound <= result.cost
            assert len(best.edits) <= len(result.edits)


def test_bounds_rise_to_the_answer() -> None:
    """Exact proves one size after the other."""
    session = butfor.prepare(*random_problem(3, nodes=12, density=0.4))
    heard = []
    for target in range(12):
        recorder = Recorder()
        result = session.explain(target, listener=recorder)
        bounds = [state.lower_bound for state in recorder.heard]
        assert bounds == sorted(bounds)
        if result.found and result.cost >= 2:
            assert bounds[-1] <= result.lower_bound
            heard.append(bounds[-1])
    assert heard
    assert max(heard) >= 2


def test_stopped_searches_answer_with_what_they_have() -> None:
    session = butfor.prepare(*random_problem(3, nodes=12, density=0.4))
    ends = []
    for target in range(12):
        recorder = Recorder(most=1)
        result = session.explain(target, budget=butfor.Budget(evaluations=None), listener=recorder)
        whole = session.explain(target, budget=butfor.Budget(evaluations=None))
        assert result.evaluations <= whole.evaluations
        assert result.lower_bound is None or whole.lower_bound is None or result.lower_bound <= whole.lower_bound
        ends.append(result.status.value)
    assert {"found", "unknown"} & set(ends)


def test_a_listener_hears_only_this_process() -> None:
    session = butfor.prepare(*random_problem(1))
    with pytest.raises(InputError, match="this process only"):
        session.explain([0, 1], listener=Recorder(), jobs=2)
    with pytest.raises(InputError, match=r"listener is 3; give a butfor\.Listener"):
        session.explain(0, listener=3)  # type: ignore[arg-type]


class Terminal(io.StringIO):
    """Standard error as a terminal."""

    def isatty(self) -> bool:
        return True


def test_progress_of_one_target_is_a_line_that_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    session = butfor.prepare(*random_problem(3, nodes=12, density=0.4))
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    result = session.explain(0, progress=True)
    assert "explaining" in terminal.getvalue()
    assert f"best {result.cost:g}, at least" in terminal.getvalue()
    monkeypatch.setattr("sys.stderr", quiet := io.StringIO())
    assert session.explain(0, progress=True) == result
    assert quiet.getvalue() == ""
