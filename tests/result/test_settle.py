"""From a proposal to what holds: where the whole graph disagrees the search goes on, and proofs are withdrawn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import pytest

import butfor
from butfor.methods import Method
from butfor.problem.budget import Budget
from butfor.problem.proposal import Proposal
from butfor.result.settle import CONTRADICTS, RETRIES, Settler, to_verify
from butfor.result.verify import verify, verify_many
from butfor.session import Session
from butfor.testing import random_problem

if TYPE_CHECKING:
    from butfor.problem.problem import Problem


@dataclass(frozen=True)
class Refuted(Method):
    """Proposes two sets that do not hold, then searches once it is told so."""

    def solve(self, problem: Problem) -> Proposal:
        if not problem.refuted:
            problem.ask([[0], [1]])
            return Proposal(((0,), (1,)))
        assert problem.refuted == {frozenset({0}), frozenset({1})}
        return butfor.Greedy().solve(problem)


@cache
def hard() -> tuple[Session, butfor.Counterfactual]:
    """A target that needs more than one edge, and what `Exact` proves about it."""
    for seed in range(30):
        session = Session.of(*random_problem(seed))
        for truth in session.explain(range(8)):
            if truth.size is not None and truth.size > 1:
                return session, truth
    raise AssertionError("no problem needs more than one edge")


@pytest.fixture
def session() -> Session:
    return hard()[0]


@pytest.fixture
def truth() -> butfor.Counterfactual:
    return hard()[1]


@pytest.fixture
def problem(session: Session, truth: butfor.Counterfactual) -> Problem:
    return session.problem(truth.target)


def test_search_goes_on_when_the_whole_graph_refutes_it(
    session: Session, problem: Problem, truth: butfor.Counterfactual
) -> None:
    result = session.explain(truth.target, Refuted())
    assert result.found
    assert result.removed_edges == truth.removed_edges
    # What was spent on all searches counts.
    metered = problem.metered(Budget())
    butfor.Greedy().solve(metered)
    assert result.evaluations == 2 + metered.meter.evaluations


def test_searches_end_where_each_finds_something_else_that_does_not_hold(
    session: Session, problem: Problem, truth: butfor.Counterfactual
) -> None:
    refuted = []

    @dataclass(frozen=True)
    class Stubborn(Method):
        """The first single edge that was not refuted."""

        def solve(self, problem: Problem) -> Proposal:
            refuted.append(len(problem.refuted))
            free = [edit for edit in range(len(problem.edits)) if frozenset({edit}) not in problem.refuted]
            return Proposal(((free[0],),), lower_bound=1.0)

    result = session.explain(truth.target, Stubborn())
    assert result.status.value == "unknown"
    assert refuted == list(range(RETRIES + 1))


def test_the_best_set_that_holds_is_taken(problem: Problem) -> None:
    best = butfor.Exact().solve(problem.metered(Budget())).candidates[0]

    def never(*asked):
        raise AssertionError("there is nothing to search for")

    settled = Settler(never, never).settle(problem, Proposal(((0,), best), 1.0), [verify(problem, (0,))])
    assert settled.chosen == best
    assert settled.proposal.lower_bound == 1.0
    assert settled.logits is not None


def test_nothing_is_proved_where_the_model_contradicts_itself(problem: Problem, truth: butfor.Counterfactual) -> None:
    """No neighbourhood is large enough, so what the search was told cannot be trusted; what was seen holds."""
    proposal = butfor.Exact().solve(problem.metered(Budget()))
    assert proposal.lower_bound == truth.cost
    seen = [replace(one, as_expected=False) for one in verify_many([(problem, proposal.candidates[0])])]

    def search(problem: Problem) -> tuple[Problem, Proposal]:
        raise AssertionError("there is nowhere else to search")

    settled = Settler(search, lambda problem: None).settle(problem, proposal, seen)
    assert settled.chosen == proposal.candidates[0]
    assert (settled.proposal.lower_bound, settled.proposal.exhausted, settled.proposal.complete) == (0, False, False)
    assert CONTRADICTS in settled.proposal.note
    given_up = Settler(search, lambda problem: None).settle(
        problem, Proposal(exhausted=True), [replace(seen[0], reached=False)]
    )
    assert not given_up.proposal.exhausted
    assert given_up.logits is None


def test_a_larger_neighbourhood_is_searched_where_a_proof_rests_on_what_was_not_so(
    problem: Problem, truth: butfor.Counterfactual
) -> None:
    proposal = butfor.Exact().solve(problem.metered(Budget()))
    wrong = [replace(one, as_expected=False) for one in verify_many([(problem, proposal.candidates[0])])]
    wider = []

    def widen(narrow: Problem) -> Problem:
        wider.append(narrow)
        return narrow

    def search(wide: Problem) -> tuple[Problem, Proposal]:
        metered = wide.metered(Budget())
        return metered, butfor.Exact().solve(metered)

    settled = Settler(search, widen).settle(problem, proposal, wrong)
    assert wider == [problem]
    assert settled.proposal.lower_bound == truth.cost
    assert settled.evaluations == settled.problem.meter.evaluations > 0
    # What was found without a proof is not doubted: it was seen on the whole graph.
    unproved = replace(proposal, lower_bound=problem.least_cost)
    settled = Settler(search, widen).settle(problem, unproved, wrong)
    assert wider == [problem]
    assert settled.chosen == proposal.candidates[0]


def test_more_is_looked_at_where_more_is_proved_than_the_layers_show(problem: Problem) -> None:
    # A predictor like this one, of a model whose code shows nothing.
    obscure = replace(problem.predictor)
    vars(obscure)["hears_only_messages"] = False
    general = replace(problem, oracle=problem.oracle.general, predictor=obscure)
    found, proved = Proposal(((0, 1),), problem.least_cost), Proposal(((0, 1),), 2.0)
    assert to_verify(problem, proved) == to_verify(general, found) == [(0, 1)]
    assert len(to_verify(general, proved)) == 1 + len(problem.edits.sample_sets())
    assert to_verify(replace(general, predictor=problem.predictor), proved) == [(0, 1)]
    assert len(to_verify(general, Proposal(exhausted=True))) == len(problem.edits.sample_sets()) > 0
