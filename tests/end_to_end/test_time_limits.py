"""Time may run out at any moment of any search: nothing is claimed then that is not proved."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING

import pytest

import butfor
from butfor.problem.budget import Budget
from butfor.session import Session
from butfor.testing import random_problem
from method_list import ALL
from proofs import ALWAYS, NEVER

if TYPE_CHECKING:
    from butfor.methods import Method

# Those that look at the clock most often.
WATCHFUL = {
    "Greedy": butfor.Greedy(width=4),
    "Exact, bounded": butfor.Exact(tuning=ALWAYS),
    "Exact, unbounded": butfor.Exact(tuning=NEVER),
    "Exact, all smallest, bounded": butfor.Exact(all_smallest=True, tuning=ALWAYS),
    "Exact, all smallest, unbounded": butfor.Exact(all_smallest=True, tuning=NEVER),
}


@pytest.mark.parametrize(
    ("method", "moments"),
    [
        *(pytest.param(method, range(0, 60, 4), id=name) for name, method in WATCHFUL.items()),
        *(
            pytest.param(method, range(60), marks=pytest.mark.slow, id=f"{name}, at all moments")
            for name, method in WATCHFUL.items()
        ),
        *(pytest.param(method, range(0, 60, 9), id=name) for name, method in ALL.items()),
    ],
)
def test_time_may_run_out_at_any_moment(method: Method, moments: range, monkeypatch: pytest.MonkeyPatch) -> None:
    model, data = random_problem(3, nodes=12)
    problem = Session.of(model, data).problem(2)
    sure = butfor.Exact().solve(problem.metered(Budget(None)))
    assert sure.candidates
    for moment in moments:
        # The clock stands still, and after so many looks at it an hour has passed.
        now = time.monotonic()
        ticks = itertools.chain([now] * moment, itertools.repeat(now + 3600))
        with monkeypatch.context() as patch:
            patch.setattr("butfor.problem.budget.time.monotonic", lambda ticks=ticks: next(ticks))
            proposal = method.solve(problem.metered(Budget(None, seconds=60)))
        assert proposal.lower_bound <= sure.lower_bound
        assert not proposal.exhausted
        assert all(problem.ask([chosen]).reached[0] for chosen in proposal.candidates)
