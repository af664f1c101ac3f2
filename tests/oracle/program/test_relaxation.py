"""Soft edits: weights of 0 and 1 are the edits, gradients are true, and none are offered where they are not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from butfor.problem.builder import WHOLE_GRAPH
from butfor.session import Session
from butfor.testing import random_problem
from gnns import FRAGILE, LOCAL, ring, scores_without
from truth import pairs_of

if TYPE_CHECKING:
    from butfor.problem.problem import Problem


def built(name: str, directed: bool, *nodes: int) -> list[Problem]:
    """Problems about nodes of the ring."""
    session = Session.of(LOCAL[name].make(ring(directed)), ring(directed))
    return [session.problem(node) for node in nodes]


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, kind in LOCAL.items() if kind.relaxed])
def test_weights_of_zero_and_one_are_deletion(name: str) -> None:
    # Every other model on a directed graph: each on both would take too long.
    kind, directed = LOCAL[name], list(LOCAL).index(name) % 2 == 1
    data, problems = ring(directed), built(name, directed, 7, 13)
    if WHOLE_GRAPH in problems[0].note:
        problems = problems[:1]  # such as ChebConv's out-degrees in a directed graph: one graph at a time
    oracle = problems[0].oracle
    assert all(problem.oracle is oracle for problem in problems)
    together = oracle.relax([problem.edits for problem in problems])
    assert together is not None
    random = np.random.default_rng(2)
    for chance in (0.0, 0.15, 0.5, 1.0):
        gone = [random.random(len(problem.edits)) < chance for problem in problems]
        truths = [
            scores_without(kind, data, pairs_of(problem.edits.records(np.flatnonzero(one))), directed)[
                problem.target[0]
            ]
            for problem, one in zip(problems, gone, strict=True)
        ]
        weights = torch.from_numpy(1.0 - np.concatenate(gone)).float()
        assert torch.allclose(together.logits(weights), torch.stack(truths), rtol=1e-4, atol=1e-4), chance
        alone = oracle.relax([problems[0].edits]).logits(weights[: len(problems[0].edits)])
        assert torch.allclose(alone, truths[0][None], rtol=1e-4, atol=1e-4), chance
    gradient = problems[0].gradient()
    assert gradient is not None
    assert np.isfinite(gradient).all()
    assert (np.abs(gradient) > 1e-6).any()


@pytest.mark.parametrize("name", FRAGILE)
def test_no_relaxation_is_offered_where_the_model_cannot_be_traced(name: str) -> None:
    data = ring(False)
    problem = Session.of(FRAGILE[name].make(data), data).problem(7)
    assert problem.oracle.relax([problem.edits]) is None
    assert problem.gradient() is None


def test_gradient_matches_finite_differences() -> None:
    model, data = random_problem(5, nodes=10)
    model.double()
    data.x = data.x.double()
    problem = Session.of(model, data).problem(2)
    relaxation = problem.oracle.relax([problem.edits])
    gradient = problem.gradient([1])
    for edit in range(len(problem.edits)):
        margins = []
        for step in (-1e-6, 1e-6):
            weights = torch.ones(len(problem.edits), dtype=torch.float64)
            weights[1] = 0.0
            weights[edit] += step
            margins.append(float(problem.goal.margin(relaxation.logits(weights), problem.before)))
        assert gradient[edit] == pytest.approx((margins[1] - margins[0]) / 2e-6, abs=1e-5)
