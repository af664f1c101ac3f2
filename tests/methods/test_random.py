"""The paper's random baseline: the cheapest of the sets that were drawn."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import butfor
from butfor.errors import InputError
from butfor.methods.random import DRAWS, RandomPerturbation
from butfor.problem.budget import Budget
from butfor.session import Session
from butfor.testing import links, random_problem


@pytest.mark.parametrize(("samples", "limit"), [(1, None), (30, None), (2 * DRAWS + 7, None), (30, 12)])
def test_the_cheapest_of_so_many_draws(samples: int, limit: int | None) -> None:
    model, data = random_problem(2)
    space = butfor.EditSpace(costs={pair: 1.0 + number / 7 for number, pair in enumerate(links(data))})
    session = Session.of(model, data, space=space)
    found = 0
    for node in range(8):
        problem = session.problem(node, seed=5).metered(Budget(limit))
        proposal = RandomPerturbation(samples).solve(problem)
        assert problem.meter.evaluations == (limit or samples)
        # An edge goes where its draw from [-1, 1] is negative.
        drawn = torch.rand(limit or samples, len(problem.edits), generator=problem.generator()) < 0.5
        sets = [np.flatnonzero(row) for row in drawn.numpy()]
        costs = [problem.edits.cost(chosen) for chosen in sets]
        reached = [cost for cost, hit in zip(costs, problem.ask(sets).reached, strict=True) if hit]
        assert [problem.edits.cost(chosen) for chosen in proposal.candidates] == ([min(reached)] if reached else [])
        found += bool(reached)
    assert found >= 1


def test_other_seeds_draw_otherwise() -> None:
    model, data = random_problem(2)
    one, two = (butfor.explain(model, data, range(8), RandomPerturbation(5), seed=seed) for seed in (0, 1))
    assert [result.edits for result in one] != [result.edits for result in two]


def test_no_draws_are_refused() -> None:
    with pytest.raises(InputError, match="samples is 0"):
        RandomPerturbation(samples=0)
