"""A session: what is prepared once serves any number of targets and methods, and says what it was prepared for."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch_geometric.data import HeteroData

import butfor
from butfor.errors import InputError
from butfor.pipeline import Batching
from butfor.problem.budget import Budget
from butfor.runs import Run
from butfor.session import Session
from butfor.testing import random_problem
from method_list import ALL


class Runs(torch.nn.Module):
    """Counts how often the model is run on the whole graph."""

    def __init__(self, inner: torch.nn.Module, nodes: int) -> None:
        super().__init__()
        self.inner, self.nodes, self.whole = inner, nodes, 0

    def forward(self, x, edge_index):
        self.whole += len(x) == self.nodes
        return self.inner(x, edge_index)


@pytest.mark.parametrize("name", ALL)
def test_a_session_says_what_explain_says(name: str) -> None:
    model, data = random_problem(1)
    session = butfor.prepare(model, data)
    asked = {"budget": Budget(40), "seed": 3}
    assert session.explain([0, 2], ALL[name], **asked) == butfor.explain(model, data, [0, 2], ALL[name], **asked)


def test_targets_as_explain_takes_them() -> None:
    session = butfor.prepare(*random_problem(1))
    one = session.explain(3)
    assert session.explain([3, 1, 3])[::2] == [one, one]
    mask = torch.arange(8) == 3
    assert session.explain(mask) == [one]
    assert session.explain([]) == []
    assert [position for position, _ in session.stream([3, 1])] == [0, 1]


def test_what_a_session_learns_of_the_model_is_learnt_once() -> None:
    """The second question runs the model on the whole graph to verify its answer, and for nothing else."""
    model, data = random_problem(1, nodes=30, density=0.08)
    counting = Runs(model, 30)
    session = butfor.prepare(counting, data)
    session.explain(0, butfor.RemoveEgo())
    before = counting.whole
    result = session.explain(0, butfor.RemoveEgo())
    assert result.nodes < 30
    assert counting.whole - before <= 1


@pytest.mark.parametrize(
    "batching", [Batching(columns=1), Batching(targets=1), Batching(targets=3, seconds=0.0)], ids=repr
)
@pytest.mark.parametrize("method", [butfor.Greedy(), butfor.CFGNN(epochs=10)], ids=lambda one: type(one).__name__)
def test_results_do_not_depend_on_how_targets_are_batched(batching: Batching, method: butfor.Greedy) -> None:
    session = Session.of(*random_problem(2, nodes=20, density=0.15))
    usual = session.explain(range(20), method)
    assert replace(session, batching=batching).explain(range(20), method) == usual


def test_questions_of_another_kind_are_refused() -> None:
    session = butfor.prepare(*random_problem(1))
    with pytest.raises(InputError, match=r"a pair of nodes is asked about, .* prepared for nodes; .*task='link'"):
        session.explain(butfor.Pair(0, 1))
    with pytest.raises(InputError, match=r"the whole graph is asked about, .* task='graph'"):
        session.explain()
    with pytest.raises(InputError, match=r"node 8 is not in this graph \(0 to 7\)"):
        session.explain(8)
    with pytest.raises(InputError, match="nodes and pairs of nodes were given together"):
        session.explain([0, butfor.Pair(0, 1)])


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"method": "greedy"}, "method is 'greedy'; give a method such as"),
        ({"budget": 300}, r"budget is 300; give a butfor\.Budget"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 0.5}, "seed is 0.5"),
        ({"progress": "yes"}, "progress is 'yes'"),
    ],
)
def test_settings_of_a_search_are_checked(settings: dict, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        butfor.prepare(*random_problem(1)).explain(0, **settings)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"goal": "red"}, r"goal is 'red'; give a butfor\.Goal"),
        ({"space": []}, r"space is \[\]; give a butfor\.EditSpace"),
        ({"directed": 1}, "directed is 1; give True, False or None"),
        ({"probabilities": "no"}, "probabilities is 'no'; give True, False or None"),
        ({"goal": butfor.Goal(wanted=9)}, "class 9 is wanted"),
        ({"space": butfor.EditSpace(protected=[(0, 99)])}, "node 99 is not in this graph"),
    ],
)
def test_settings_of_a_session_are_checked_before_the_first_question(settings: dict, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        butfor.prepare(*random_problem(1), **settings)


def test_the_order_of_checks_starts_with_the_cheapest() -> None:
    """A setting of the wrong type is told before the graph is read, which may take long."""
    with pytest.raises(InputError, match="goal is 'red'"):
        Session.of(torch.nn.Identity(), HeteroData(), goal="red")


def test_a_run_is_known_by_what_its_results_say() -> None:
    model, data = random_problem(1)
    session = butfor.prepare(model, data, goal=butfor.Goal(wanted=1), space=butfor.EditSpace(max_edits=3))
    method = butfor.CFGNN(epochs=5, fallback=butfor.Greedy(width=3))
    run = Run.of(session, method, seed=2)
    for result in session.explain(range(8), method, seed=2):
        assert run.difference(result) is None
        assert result.method == method.record()
        assert (result.graph_id, result.model_id) == (session.graph_id, session.model_id)
        assert result.space_id == session.space_id != ""
        assert result.before.label == session.classes[result.target]


def test_the_former_explainer_still_works_and_is_told() -> None:
    model, data = random_problem(1)
    with pytest.warns(DeprecationWarning, match=r"Explainer\.of\(\.\.\.\) is now butfor\.prepare\(\.\.\.\)"):
        former = butfor.Explainer.of(model, data, method=butfor.Greedy(), budget=Budget(50), seed=1)
    expected = butfor.explain(model, data, [0, 1], butfor.Greedy(), budget=Budget(50), seed=1)
    assert [result for _, result in former.stream([0, 1])] == expected
    assert former.one(0) == expected[0]


def test_another_question_about_the_same_model_and_graph() -> None:
    model, data = random_problem(1, nodes=30, density=0.08)
    counting = Runs(model, 30)
    session = butfor.prepare(counting, data)
    before = counting.whole
    goal, space = butfor.Goal(wanted=1), butfor.EditSpace(protected=[session.graph.edge_index[:, 0].tolist()])
    other = session.asking(goal, space)
    assert counting.whole == before
    assert (other.goal, other.space) == (goal, space)
    assert session.asking().goal == session.goal
    anew = butfor.prepare(model, data, goal=goal, space=space)
    assert butfor.prepare(model, data).asking(goal, space).explain([0, 3]) == anew.explain([0, 3])
    with pytest.raises(InputError, match="class 99 is wanted"):
        session.asking(butfor.Goal(wanted=99))
    with pytest.raises(InputError, match="another threshold"):
        session.asking(butfor.Goal(threshold=1.0))
