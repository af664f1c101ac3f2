"""Descent: many edits at once where few do not do it, and never less than what greedy search finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import butfor
from butfor.edits.edits import pack
from butfor.errors import InputError
from butfor.methods.descent import Descent, lengths
from butfor.methods.greedy import NO_GRADIENT, Greedy
from butfor.problem.budget import Budget
from butfor.session import Session
from butfor.testing import links, random_problem
from crowd import Crowd, crowd
from sampling import slow
from without_gradients import WithoutGradients

if TYPE_CHECKING:
    from butfor.problem.problem import Problem


def large(seed: int, **settings: object) -> Session:
    """A graph of 40 nodes, each of which has more edges near it than count as few."""
    model, data = random_problem(seed, nodes=40, density=0.25)
    return Session.of(model, data, **settings)


def cost(problem: Problem, method: butfor.methods.Method) -> float:
    """What the best candidate costs; infinite where there is none. Each candidate must be what it claims."""
    proposal = method.solve(problem)
    if not proposal.candidates:
        return np.inf
    answers = problem.ask(proposal.candidates)
    assert answers.reached.all()
    if proposal.margins:
        np.testing.assert_allclose(proposal.margins, answers.margins, atol=1e-5)
    costs = [problem.edits.cost(chosen) for chosen in proposal.candidates]
    assert costs[0] == min(costs)
    return costs[0]


def test_it_finds_more_and_smaller_answers_than_greedy_search_at_the_same_budget() -> None:
    more = smaller = 0
    for seed, nodes in ((0, [29]), (1, [33, 5]), (4, [4, 21, 22, 30]), (7, [11, 14, 27])):
        session = large(seed)
        for node in nodes:
            greedy, descent = (cost(session.problem(node).metered(Budget()), m) for m in (Greedy(), Descent()))
            assert descent <= greedy, f"seed {seed}, node {node}"
            more += np.isinf(greedy) and np.isfinite(descent)
            smaller += np.isfinite(greedy) and descent < greedy
    assert more >= 1
    assert smaller >= 6


@pytest.mark.parametrize("budget", [3, 20, 60, 3000])
def test_where_edits_are_few_it_is_never_worse_than_greedy_search(budget: int) -> None:
    found = 0
    for seed in range(6):
        model, data = random_problem(seed, nodes=9)
        session = Session.of(model, data)
        for node in range(9):
            if not len(session.problem(node).edits) or session.problem(node).reached:
                continue
            metered = session.problem(node).metered(Budget(budget))
            greedy = Greedy().solve(session.problem(node).metered(Budget(budget)))
            descent = Descent().solve(metered)
            assert metered.meter.evaluations <= budget
            assert len(descent.candidates) > 0 or not greedy.candidates
            if greedy.candidates:
                found += 1
                assert metered.edits.cost(descent.candidates[0]) <= metered.edits.cost(greedy.candidates[0])
    assert found >= 5


def test_nothing_can_be_left_out_of_an_answer() -> None:
    sizes = []
    for seed in (0, 4, 7):
        session = large(seed)
        for node in range(0, 40, 3):
            problem = session.problem(node)
            best = Descent().solve(problem).candidates[0]
            sizes.append(len(best))
            if len(best) > 1:
                fewer = [best[:place] + best[place + 1 :] for place in range(len(best))]
                assert not problem.ask(fewer).reached.any(), f"seed {seed}, node {node}"
    assert max(sizes) >= 8


@pytest.mark.parametrize(
    "space",
    [
        butfor.EditSpace(max_edits=4),
        slow(butfor.EditSpace(keep_connected=True)),
        butfor.EditSpace(add=butfor.Within(1, most=80), features=butfor.Features(values=(-2.0, 2.0))),
        None,
    ],
    ids=["size", "connected", "mixed", "costs"],
)
def test_rules_are_kept(space: butfor.EditSpace | None) -> None:
    model, data = random_problem(4, nodes=40, density=0.25)
    space = space or butfor.EditSpace(costs={(u, v): 1.0 + (u * v) % 5 for u, v in links(data)})
    session = Session.of(model, data, space=space)
    found = 0
    for node in (4, 21, 22, 30, 5, 6):
        problem = session.problem(node).metered(Budget())
        assert cost(session.problem(node).metered(Budget()), Descent()) <= cost(
            session.problem(node).metered(Budget()), Greedy()
        )
        proposal = Descent().solve(problem)
        assert problem.meter.evaluations <= 3000
        if proposal.candidates:
            found += 1
            assert problem.edits.permits(pack(proposal.candidates)).all()
    assert found >= 2


def test_a_wanted_class_is_the_only_aim() -> None:
    found = 0
    for node in range(0, 40, 5):
        for wanted in range(3):
            problem = large(4, goal=butfor.Goal(wanted=wanted)).problem(node)
            if not problem.reached and (answers := Descent().solve(problem).candidates):
                found += 1
                assert int(problem.ask(answers[:1]).logits.argmax()) == wanted
    assert found >= 5


def test_without_gradients_edits_are_ranked_by_what_they_did() -> None:
    data = random_problem(0)[1]
    results = butfor.explain(WithoutGradients(), data, range(8), Descent(width=2))
    assert sum(result.found for result in results) >= 3
    assert all(NO_GRADIENT in result.note for result in results)


@pytest.mark.parametrize("leaves", [5, 9, 30, 80])
@pytest.mark.parametrize("width", [None, 3, 64])
def test_most_evaluations_is_no_underestimate(leaves: int, width: int | None) -> None:
    method = Descent(width)
    hopeless = Session.of(Crowd(), crowd(leaves), goal=butfor.Goal(wanted=1, least=100.0)).problem(0)
    assert not method.solve(hopeless).candidates
    easy = Session.of(Crowd(), crowd(leaves)).problem(0)
    assert len(method.solve(easy).candidates[0]) == leaves - 4
    spent = [problem.meter.evaluations for problem in (hopeless, easy)]
    assert 0 < max(spent) <= method.most_evaluations(leaves)


def test_lengths_double() -> None:
    assert [lengths(count) for count in (0, 1, 2, 5, 8)] == [[], [1], [1, 2], [1, 2, 4, 5], [1, 2, 4, 8]]


@pytest.mark.parametrize(("settings", "complaint"), [({"width": 0}, "width is 0"), ({"opening": 0}, "opening is 0")])
def test_senseless_settings_are_refused(settings: dict[str, int], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        Descent(**settings)
