"""A problem counts what it is asked, looks at the clock, and decides what counts as an answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from butfor.edits.change import Features
from butfor.edits.edits import pack
from butfor.edits.space import EditSpace
from butfor.oracle.general import ModelOracle
from butfor.problem.budget import Budget
from butfor.session import Session
from butfor.testing import random_problem
from votes import Votes, star_of, voters


def test_every_question_is_counted() -> None:
    problem = Session.of(*random_problem(2, nodes=12)).problem(0).metered(Budget(100))
    spent = []
    for ask in (
        lambda: problem.ask([[0], [1], [0, 1]]),
        lambda: problem.extend([0], np.array([1, 2])),
        lambda: problem.extend_many(np.array([[0], [1]]), np.array([2, 3, 4]), np.array([0, 1, 3])),
    ):
        answers = ask()
        spent.append(problem.meter.evaluations)
        assert len(answers.logits) == len(answers.margins) == len(answers.reached)
    assert spent == [3, 5, 8]
    # The same problem with another budget starts at nothing.
    assert problem.metered(Budget(7)).meter.left == 7
    assert problem.meter.left == 92


class Frail(Votes):
    """Fails on a graph without edges."""

    def forward(self, x, edge_index):
        if not edge_index.numel():
            raise ValueError("no edges")
        return super().forward(x, edge_index)


def test_failures_of_the_model_are_counted_and_reach_nothing() -> None:
    problem = Session.of(Frail(), star_of(-1.0, 0.75, 0.75)).problem(0)
    answers = problem.ask([[0], [1], [0, 1]])
    assert answers.reached.tolist() == [True, True, False]
    assert np.isnan(answers.margins).tolist() == [False, False, True]
    assert (problem.meter.evaluations, problem.meter.failures) == (3, 1)


def test_extending_is_asking() -> None:
    problem = Session.of(*random_problem(2, nodes=12)).problem(0)
    prefixes, candidates = np.array([[0], [3]]), np.array([1, 2, 4])
    asked = problem.ask([[0, 1], [0, 2], [3, 4]])
    extended = problem.extend_many(prefixes, candidates, np.array([0, 2, 3]))
    assert torch.allclose(asked.logits, extended.logits, atol=1e-5)
    assert torch.allclose(asked.logits[:2], problem.extend([0], candidates[:2]).logits, atol=1e-5)
    assert (asked.reached == extended.reached).all()


def test_time_is_looked_at_between_pieces() -> None:
    problem = Session.of(*random_problem(2, nodes=12)).problem(0)
    slow = replace(problem, oracle=ModelOracle(problem.predictor, max_numbers=1))
    late = slow.metered(Budget(seconds=1e-9))
    assert len(late.extend([], np.arange(5)).margins) == 1
    assert late.meter.spent
    assert len(slow.extend([], np.arange(5)).margins) == 5


def test_what_was_refuted_or_is_not_allowed_is_no_answer() -> None:
    data = star_of(-1.0, 0.75, 0.75)
    problem = Session.of(Votes(), data).problem(0)
    sets = [[0], [1], [0, 1]]
    assert problem.ask(sets).reached.tolist() == [True, True, True]
    assert problem.without([[1]]).ask(sets).reached.tolist() == [True, False, True]
    assert problem.without([[1]]).without([[1, 0]]).ask(sets).reached.tolist() == [True, False, False]
    limited = Session.of(Votes(), data, space=EditSpace(max_edits=1)).problem(0)
    assert limited.ask(sets).reached.tolist() == [True, True, False]
    logits = limited.ask(sets).logits
    assert [limited.reaches(chosen, row) for chosen, row in zip(sets, logits, strict=True)] == [True, True, False]
    assert problem.without([[1]]).extend([1], np.array([0])).reached.tolist() == [True]
    assert limited.extend([1], np.array([0])).reached.tolist() == [False]


def test_edits_that_may_follow_others() -> None:
    data = voters([2, 1], [(0, 1)])
    problem = Session.of(Votes(), data, space=EditSpace(features=Features(values=[-1.0, 3.0]))).problem(0)
    # The edge, and two values for one feature.
    assert [problem.free(chosen).tolist() for chosen in ((), (0,), (1,), (0, 2))] == [[0, 1, 2], [1, 2], [0], []]
    assert problem.admits(pack([[1, 2], [0, 1]])).tolist() == [False, True]


def test_random_numbers_depend_on_the_seed_and_the_target_alone() -> None:
    session = Session.of(*random_problem(2, nodes=12))

    def drawn(target: int, seed: int) -> float:
        return float(torch.rand(1, generator=session.problem(target, seed=seed).generator()))

    assert drawn(3, 1) == drawn(3, 1)
    assert len({drawn(target, seed) for target in (3, 4) for seed in (0, 1)}) == 4
