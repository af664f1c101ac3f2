"""Verification of many targets at once says what verification of each alone says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

import butfor.result.verify as module
from butfor.result.verify import verify, verify_many
from butfor.session import Session
from butfor.testing import predict_without, random_problem
from larger_graphs import ladder

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from butfor.problem.problem import Problem


def questions_about(model: torch.nn.Module, data: Data, seed: int = 0) -> list[tuple[Problem, tuple[int, ...]]]:
    """Some of the edits of every node."""
    random = np.random.default_rng(seed)
    session = Session.of(model, data)
    problems = [session.problem(node) for node in range(data.num_nodes)]
    return [(p, tuple(random.permutation(len(p.edits))[: random.integers(1, 4)].tolist())) for p in problems]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one with every run of a model on the whole graph, for one target or for several."""
    seen: list[int] = []
    for name in ("logits_after_all", "logits_after"):
        run = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *asked, run=run: (seen.append(1), run(*asked))[1])
    return seen


def test_together_as_alone() -> None:
    reached = 0
    model, data = ladder()
    for seed in range(5):
        questions = questions_about(model, data, seed)
        together = verify_many(questions)
        for (problem, chosen), mine in zip(questions, together, strict=True):
            alone = verify(problem, chosen)
            assert (mine.reached, mine.as_expected) == (alone.reached, True)
            torch.testing.assert_close(mine.logits, alone.logits)
            reached += mine.reached
    assert reached >= 20


def test_what_is_verified_is_what_the_model_says_of_the_edited_graph() -> None:
    model, data = ladder(30)
    questions = questions_about(model, data)
    for (problem, chosen), seen in zip(questions, verify_many(questions), strict=True):
        removed = [(edit.source, edit.target) for edit in problem.edits.records(chosen)]
        truth = predict_without(model, data, removed)[problem.target[0]]
        torch.testing.assert_close(seen.logits, truth)
        assert seen.reached == (int(truth.argmax()) != problem.before)


def test_targets_that_are_apart_share_runs(runs: list[int]) -> None:
    questions = questions_about(*ladder())
    groups = module._disjoint_groups(questions, module.RUNS)
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
    questions = questions_about(*random_problem(1, nodes=9, density=1.0))
    assert [len(group) for group in module._disjoint_groups(questions, module.RUNS)] == [1] * len(questions)


def test_more_targets_than_runs_are_kept_apart(runs: list[int]) -> None:
    questions = questions_about(*random_problem(1, nodes=9, density=1.0))
    assert sorted(module._disjoint_groups(questions, 2)) == [[number] for number in range(9)]
    assert len(verify_many(questions, runs=2)) == len(runs) == 9
    assert verify_many([]) == []


def test_what_the_search_was_told_wrongly_is_not_as_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    """An oracle that is wrong about one target: that shows, and no other target suffers."""
    questions = questions_about(*ladder())
    truth = verify_many(questions)
    wrong = type(questions[7][0].oracle)
    answer = wrong.logits

    def lying(self, asked):
        lies = [edits is questions[7][0].edits for edits, _ in asked]
        return [one + lie * torch.eye(3)[0] for one, lie in zip(answer(self, asked), lies, strict=True)]

    monkeypatch.setattr(wrong, "logits", lying)
    seen = verify_many(questions)
    assert [number for number, one in enumerate(seen) if not one.as_expected] == [7]
    for one, other in zip(seen, truth, strict=True):
        torch.testing.assert_close(one.logits, other.logits)
        assert one.reached == other.reached
