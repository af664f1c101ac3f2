"""The pipeline hands over what was found, each result once, whatever goes wrong on the way."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

import butfor
from butfor.errors import ModelError
from butfor.methods import BatchMethod, Method
from butfor.pipeline import Batching
from butfor.problem.proposal import Proposal
from butfor.session import Session
from larger_graphs import ladder

if TYPE_CHECKING:
    from butfor.problem.problem import Problem


@dataclass(frozen=True)
class Interrupted(Method):
    """The first edge, and Ctrl-C at one node."""

    at: int = 5

    def solve(self, problem: Problem) -> Proposal:
        if problem.target == (self.at,):
            raise KeyboardInterrupt
        return Proposal(((0,),), 1.0)


def test_what_was_solved_before_an_interruption_is_handed_over() -> None:
    stream = Session.of(*ladder()).stream(range(10), Interrupted())
    results = []
    with pytest.raises(KeyboardInterrupt):
        results.extend(result for _, result in stream)
    # `extend` keeps what the generator gave before it raised.
    assert [result.target for result in results] == list(range(5))


def test_what_was_built_before_a_failure_is_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session.of(*ladder())
    build = type(session.builder).build

    def failing(self, target: tuple[int, ...], *more) -> Problem:
        if target == (7,):
            raise ModelError("node 7 is too much")
        return build(self, target, *more)

    monkeypatch.setattr(type(session.builder), "build", failing)
    results: list[butfor.Counterfactual] = []
    with pytest.raises(ModelError, match="too much"):
        results.extend(result for _, result in session.stream(range(10), butfor.Greedy()))
    assert [result.target for result in results] == list(range(7))


def test_what_was_handed_over_before_an_interruption_is_not_handed_over_again() -> None:
    session = replace(Session.of(*ladder()), batching=Batching(seconds=1e9))
    stream = session.stream(range(10), butfor.Greedy())
    targets = [next(stream)[1].target]
    # Something goes wrong in the middle of handing over: the rest still comes, each once.
    targets.append(stream.throw(ModelError("too much"))[1].target)
    with pytest.raises(ModelError, match="too much"):
        targets.extend(result.target for _, result in stream)
    assert targets == list(range(10))


def test_results_are_handed_over_as_soon_as_they_have_waited_long_enough() -> None:
    solved = []

    @dataclass(frozen=True)
    class Watched(Method):
        """Notes what it is asked."""

        def solve(self, problem: Problem) -> Proposal:
            solved.append(problem.target[0])
            return Proposal()

    session = Session.of(*ladder())
    for batching, known in ((Batching(seconds=0.0), 1), (Batching(targets=4, seconds=1e9), 4)):
        solved.clear()
        next(replace(session, batching=batching).stream(range(10), Watched()))
        assert len(solved) == known


def test_a_batch_method_gets_problems_of_one_oracle_that_fit_into_memory() -> None:
    batches = []

    @dataclass(frozen=True)
    class Together(BatchMethod):
        """Answers the last problem first."""

        def solve_batch(self, problems):
            batches.append([problem.target[0] for problem in problems])
            assert len({id(problem.oracle) for problem in problems}) == 1
            for number in reversed(range(len(problems))):
                yield number, Proposal()

    session = Session.of(*ladder())
    order = [position for position, _ in session.stream(range(10), Together())]
    assert batches == [list(range(10))]
    assert order == list(range(10))[::-1]
    batches.clear()
    results = replace(session, batching=Batching(columns=30)).explain(range(10), Together())
    assert [target for batch in batches for target in batch] == list(range(10))
    assert len(batches) >= 3
    assert [result.target for result in results] == list(range(10))


def test_where_nothing_may_be_edited_or_has_to_be_no_method_is_asked() -> None:
    @dataclass(frozen=True)
    class Never(Method):
        """Must not be asked."""

        def solve(self, problem: Problem) -> Proposal:
            raise AssertionError("there is nothing to search")

    model, data = ladder()
    nothing = butfor.explain(model, data, range(5), Never(), space=butfor.EditSpace(allowed=[(100, 101)]))
    assert {result.status.value for result in nothing} == {"impossible"}
    label = nothing[0].before.label
    done = butfor.explain(model, data, 0, Never(), goal=butfor.Goal(wanted=label))
    assert (done.status.value, done.lower_bound) == ("reached", 0)
