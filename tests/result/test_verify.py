"""Verification of many targets at once says what verification of each alone says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCN, GraphSAGE

import butfor.result.verify as module
from butfor.predict.truth import logits_after_all
from butfor.result.verify import verify, verify_many
from butfor.session import Session
from butfor.testing import predict_without, random_problem
from larger_graphs import ladder

if TYPE_CHECKING:
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
    # What a shared run does not confirm is looked at alone, once.
    refused = sum(not verify(problem, chosen).reached for problem, chosen in questions)
    runs.clear()
    verify_many(questions)
    assert len(groups) <= len(runs) <= len(groups) + refused


def with_hubs(kind: type[torch.nn.Module], seed: int, directed: bool) -> tuple[torch.nn.Module, Data]:
    """A sparse random graph of 60 nodes in which every third node is joined to one of two hubs; in double precision."""
    random = np.random.default_rng(seed)
    leaves = np.arange(2, 60)
    pairs = [(int(leaf), int(leaf % 2)) for leaf in leaves[::3]]
    pairs += [(int(leaf), int(other)) for leaf, other in zip(leaves, random.permutation(leaves), strict=True)]
    one_way = np.unique([pair for pair in pairs if pair[0] != pair[1]], axis=0).T
    if directed:
        one_way = np.where(random.random(one_way.shape[1]) < 0.5, one_way, one_way[::-1])
    edges = one_way if directed else np.unique(np.concatenate([one_way, one_way[::-1]], axis=1), axis=1)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = kind(4, 8, 2, 3).double().eval()
    x = torch.from_numpy(random.standard_normal((60, 4)))
    return model, Data(x=x, edge_index=torch.from_numpy(edges))


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("kind", [GCN, GraphSAGE])
def test_shared_runs_say_of_targets_around_hubs_what_their_own_runs_say(
    kind: type[torch.nn.Module], directed: bool
) -> None:
    """With several edits for each target, so that parts of its field are cut off; hubs are in most fields."""
    shared = 0
    for seed in range(3):
        model, data = with_hubs(kind, seed, directed)
        questions = [(problem, chosen) for problem, chosen in questions_about(model, data, seed) if chosen]
        for group in module._disjoint_groups(questions, 8):
            together = logits_after_all(
                questions[0][0].predictor, [(questions[n][0].edits, questions[n][1]) for n in group]
            )
            alone = [verify(*questions[number]).logits for number in group]
            torch.testing.assert_close(together, torch.stack(alone), rtol=0, atol=1e-12)
            shared += len(group) > 1 and len(group)
    assert shared >= 100


def star(*more: tuple[int, int]) -> Data:
    """Four leaves around node 0."""
    pairs = torch.tensor([(0, 1), (0, 2), (0, 3), (0, 4), *more]).T
    return Data(x=torch.eye(int(pairs.max()) + 1), edge_index=torch.cat([pairs, pairs.flip(0)], dim=1))


@pytest.mark.parametrize(
    ("kind", "asked", "share"),
    [
        (GraphSAGE, {1: (0, 1), 2: (0, 2)}, True),  # each cuts itself off from the hub
        (GCN, {1: (0, 1), 2: (0, 2)}, True),
        (GraphSAGE, {1: (0, 4), 2: (0, 4)}, True),  # both delete the same edge of the hub
        (GraphSAGE, {1: (0, 3), 2: (0, 4)}, False),  # different edges of it
        (GraphSAGE, {1: (0, 1), 2: (0, 4)}, False),  # the second still hears of the hub, which has lost an edge
        (GraphSAGE, {1: (1, 5), 2: (2, 6)}, True),  # behind the hub, too far away for two messages
        (GCN, {1: (1, 5), 2: (2, 6)}, False),  # but not for the degree of the first sender
    ],
)
def test_a_hub_keeps_targets_apart_only_where_they_hear_of_each_others_edits(
    kind: type[torch.nn.Module], asked: dict[int, tuple[int, int]], share: bool
) -> None:
    session = Session.of(kind(7, 4, 2, 2).eval(), star((1, 5), (2, 6)))
    questions = []
    for node, edge in asked.items():
        problem = session.problem(node)
        ends = [
            (edit.source, edit.target)
            for number in range(len(problem.edits))
            for edit in problem.edits.records([number])
        ]
        questions.append((problem, (ends.index(edge),)))
    assert len(module._disjoint_groups(questions, module.RUNS)) == (1 if share else 2)


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
