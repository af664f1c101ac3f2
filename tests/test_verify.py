"""Verification of many targets at once says what verification of each alone says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCN

import butfor
import butfor.result.verify as module
from butfor.errors import ModelError
from butfor.methods import Method
from butfor.problem.budget import Budget
from butfor.problem.problem import Problem
from butfor.problem.proposal import Proposal
from butfor.result.verify import verify, verify_many
from butfor.session import Session
from butfor.testing import random_problem


def ladder(nodes: int = 120) -> tuple[GCN, Data]:
    """A long path with some cross links: most targets are far from each other."""
    ends = [(i, i + 1) for i in range(nodes - 1)] + [(i, i + 3) for i in range(0, nodes - 3, 7)]
    edge_index = torch.tensor(ends).T
    x = torch.randn(nodes, 4, generator=torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    return GCN(4, 8, 2, 3).eval(), Data(x=x, edge_index=torch.cat([edge_index, edge_index.flip(0)], dim=1))


def asked(model: torch.nn.Module, data: Data, seed: int = 0) -> list[tuple[Problem, tuple[int, ...]]]:
    random = np.random.default_rng(seed)
    explainer = Session.of(model, data)
    problems = [explainer.builder.build((node,)) for node in range(data.num_nodes)]
    return [(p, tuple(random.permutation(len(p.edits))[: random.integers(1, 4)].tolist())) for p in problems]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one with every run of a model on the whole graph."""
    seen: list[int] = []
    run = module._run
    monkeypatch.setattr(module, "_run", lambda *arguments: (seen.append(1), run(*arguments))[1])
    return seen


def test_together_as_alone(runs: list[int]) -> None:
    both = 0
    for seed in range(5):
        questions = asked(*ladder(), seed)
        runs.clear()
        together = verify_many(questions)
        alone = [verify(problem, chosen) for problem, chosen in questions]
        for mine, other in zip(together, alone, strict=True):
            assert (mine.reached, mine.as_expected) == (other.reached, True)
            torch.testing.assert_close(mine.scores, other.scores)
            both += mine.reached
    assert both >= 20


def test_targets_that_are_apart_share_runs(runs: list[int]) -> None:
    questions = asked(*ladder())
    groups = module._apart(questions)
    assert sorted(number for group in groups for number in group) == list(range(len(questions)))
    assert len(groups) <= len(questions) // 4
    for group in groups:
        for number in group:
            near = set(questions[number][0].edits.neighbourhood.columns.tolist())
            for other in set(group) - {number}:
                assert not near & set(questions[other][0].edits.whole_columns(questions[other][1]).tolist())
    # What a shared run does not confirm is looked at alone, once.
    refused = sum(not verify(problem, chosen).reached for problem, chosen in questions)
    runs.clear()
    verify_many(questions)
    assert len(groups) <= len(runs) <= len(groups) + refused


def test_targets_that_touch_do_not_share_a_run() -> None:
    model, data = random_problem(1, nodes=9, density=1.0)
    questions = asked(model, data)
    assert [len(group) for group in module._apart(questions)] == [1] * len(questions)


def test_more_targets_than_runs_are_kept_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RUNS", 2)
    model, data = random_problem(1, nodes=9, density=1.0)
    questions = asked(model, data)
    groups = module._apart(questions)
    assert sorted(groups) == [[number] for number in range(9)]
    assert verify_many([]) == []


@dataclass(frozen=True)
class Interrupted(Method):
    """The first edge, and Ctrl-C at one node."""

    at: int = 5

    def solve(self, problem: Problem, budget: Budget) -> Proposal:
        del budget
        if problem.target == (self.at,):
            raise KeyboardInterrupt
        return Proposal(((0,),), 1.0)


def test_what_was_solved_before_an_interruption_is_handed_over() -> None:
    model, data = ladder()
    stream = Session.of(model, data, method=Interrupted()).stream(range(10))
    results = []
    with pytest.raises(KeyboardInterrupt):
        results.extend(result for _, result in stream)
    # `extend` keeps what the generator gave before it raised.
    assert [result.target for result in results] == list(range(5))


def test_what_was_posed_before_a_failure_is_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    model, data = ladder()
    explainer = Session.of(model, data, method=butfor.Greedy())
    pose = explainer.builder.build

    def failing(target: tuple[int, ...]) -> Problem:
        if target == (7,):
            raise ModelError("node 7 is too much")
        return pose(target)

    monkeypatch.setattr(explainer.builder, "pose", failing)
    results: list[butfor.Counterfactual] = []
    with pytest.raises(ModelError, match="too much"):
        results.extend(result for _, result in explainer.stream(range(10)))
    assert [result.target for result in results] == list(range(7))


def test_what_was_handed_over_before_an_interruption_is_not_handed_over_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("butfor.session.SOON", 1e9)
    model, data = ladder()
    stream = Session.of(model, data, method=butfor.Greedy()).stream(range(10))
    targets = [next(stream)[1].target]
    # Something goes wrong in the middle of handing over: the rest still comes, each once.
    targets.append(stream.throw(ModelError("too much"))[1].target)
    with pytest.raises(ModelError, match="too much"):
        targets.extend(result.target for _, result in stream)
    assert targets == list(range(10))
