"""Greedy search: the most promising edit first, with gradients or without."""

from __future__ import annotations

import pytest

import butfor
from butfor.errors import InputError
from butfor.methods.greedy import NO_GRADIENT, Greedy, pruned
from butfor.session import Session
from butfor.testing import random_problem
from crowd import Crowd, crowd
from without_gradients import WithoutGradients


@pytest.mark.parametrize("leaves", [5, 9, 30])
@pytest.mark.parametrize("width", [None, 1, 3, 64])
def test_most_evaluations_is_no_underestimate(leaves: int, width: int | None) -> None:
    method = Greedy(width)
    hopeless = Session.of(Crowd(), crowd(leaves), goal=butfor.Goal(wanted=1, least=100.0)).problem(0)
    assert not method.solve(hopeless).candidates
    easy = Session.of(Crowd(), crowd(leaves)).problem(0)
    assert method.solve(easy).candidates
    spent = [problem.meter.evaluations for problem in (hopeless, easy)]
    assert 0 < max(spent) <= method.most_evaluations(leaves)


def test_without_gradients_edits_are_ranked_by_what_they_did() -> None:
    model, data = WithoutGradients(), random_problem(0)[1]
    blind = butfor.explain(model, data, range(8), Greedy(width=2))
    assert sum(result.found for result in blind) >= 3
    assert all(NO_GRADIENT in result.note for result in blind)
    seeing = butfor.explain(model.inner, data, range(8), Greedy(width=2))
    assert not any("gradient" in result.note for result in seeing)


def test_what_is_not_needed_is_undone_the_most_expensive_first() -> None:
    space = butfor.EditSpace(costs={(0, leaf): float(leaf) for leaf in range(1, 8)})
    problem = Session.of(Crowd(), crowd(7), space=space).problem(0)
    kept, margin = pruned(problem, range(7))
    assert problem.edits.costs[list(kept)].tolist() == [1.0, 2.0, 3.0]
    assert margin == problem.ask([kept]).margins[0]
    # Nothing that is needed goes.
    assert pruned(problem, kept, margin) == (kept, margin)


def test_a_width_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="width is 0"):
        Greedy(width=0)
