"""What the note says where there is no answer: what may stand in the way, and what would help."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GATConv

import butfor
from butfor.testing import links, random_problem
from task_cases import task_case
from typed_cases import typed_case

if TYPE_CHECKING:
    from pathlib import Path

    from truth import Question

# Of this problem no deletions change the prediction of node 6.
SEED, NODE = 2, 6

PYTHON = "otherwise=butfor.EditSpace(add=butfor.Within(2))"
FILE = '{"add": {"hops": 2}}'


def explained(**asked) -> butfor.Counterfactual:
    model, data = random_problem(SEED)
    return butfor.explain(model, data, NODE, **asked)


def test_an_answer_needs_no_hint() -> None:
    model, data = random_problem(0, nodes=10)
    results = butfor.explain(model, data, range(10))
    assert any(result.found for result in results)
    assert all((result.note == "") == result.found for result in results)


def test_what_it_says_can_be_pasted() -> None:
    plain = explained()
    assert plain.status == "impossible"
    assert PYTHON in plain.note
    assert f"--otherwise FILE, where the file holds {FILE}" in plain.note
    given = eval(f"dict({PYTHON})", {"butfor": butfor})
    assert given["otherwise"] == butfor.EditSpace.from_dict(json.loads(FILE))
    helped = explained(**given)
    assert helped.otherwise is not None
    assert "Missing edges" not in helped.note


def test_rules_are_kept_by_what_can_be_pasted() -> None:
    model, data = random_problem(SEED)
    space = butfor.EditSpace(protected=links(data)[:3])
    result = butfor.explain(model, data, NODE, space=space)
    (text,) = [word for word in result.note.split("otherwise=") if word.startswith("dataclasses.replace")]
    text = text[: text.index(" also tries")]
    other = eval(text, {"dataclasses": dataclasses, "space": space, "butfor": butfor})
    assert other == dataclasses.replace(space, add=butfor.Within(2))
    assert 'that of --space and "add": {"hops": 2}' in result.note


def test_rules_that_may_stand_in_the_way_are_named() -> None:
    model, data = random_problem(SEED)
    space = butfor.EditSpace(max_edits=1, protected=links(data)[:1], keep_connected=True)
    goal = butfor.Goal(wanted=1, least=0.5, probability=0.9)
    result = butfor.explain(model, data, NODE, space=space, goal=goal)
    assert result.status == "impossible"
    assert (
        f"What may stand in the way: max_edits=1, 1 of its {result.edges} edges must stay, keep_connected=True, "
        "class 1 is wanted, a lead of at least 0.5, a probability of at least 0.9." in result.note
    )


def test_only_rules_that_concern_the_target_are_named() -> None:
    """Edges of the other component are protected, and a wanted class is the only other one."""
    model, data = random_problem(SEED, classes=2)
    apart = torch.cat([data.edge_index, data.edge_index + data.num_nodes], dim=1)
    both = Data(x=torch.cat([data.x, data.x]), edge_index=apart)
    space = butfor.EditSpace(protected=[(u + 8, v + 8) for u, v in links(data)], max_edits=1000)
    results = butfor.explain(model, both, range(8), space=space)
    without = [result for result in results if not result.found]
    assert without
    for result in without:
        assert "In the way" not in result.note
        wanted = butfor.Goal(wanted=1 - result.before.label)
        assert "In the way" not in butfor.explain(model, both, result.target, space=space, goal=wanted).note


def test_all_edges_stay_or_there_are_none() -> None:
    model, data = random_problem(SEED)
    protected = butfor.explain(model, data, NODE, space=butfor.EditSpace(protected=links(data)))
    assert f"all of its {protected.edges} edges must stay" in protected.note
    lonely = butfor.explain(model, Data(x=data.x, edge_index=data.edge_index[:, :0]), NODE)
    assert lonely.status == "impossible"
    assert "It has no edges that could be deleted." in lonely.note


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        (butfor.Budget(5), "The budget of 5 evaluations is spent: budget=butfor.Budget(50) (--evaluations 50) goes"),
        (
            butfor.Budget(None, 1e-6),
            "The budget of 1e-06 seconds is spent: budget=butfor.Budget(None, 1e-05) "
            "(--evaluations none --seconds 1e-05) goes",
        ),
    ],
)
def test_a_spent_budget_is_named(budget: butfor.Budget, said: str) -> None:
    result = explained(budget=budget)
    assert result.status == "unknown"
    assert said in result.note


def test_how_far_a_search_got_is_said() -> None:
    seen = 0
    for seed in range(6):
        model, data = random_problem(seed, nodes=12)
        for result in butfor.explain(model, data, range(12), budget=butfor.Budget(60)):
            if result.status == "unknown" and result.lower_bound > 1:
                assert f"whatever costs less than {result.lower_bound:g} is ruled out" in result.note
                seen += 1
    assert seen


def test_a_method_that_gave_up_is_named() -> None:
    result = explained(method=butfor.RandomPerturbation(), goal=butfor.Goal(probability=0.99))
    assert result.status == "unknown"
    assert "RandomPerturbation ended after" in result.note
    assert "butfor.Exact() (--method exact)" in result.note


class ReadsAttributes(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = GATConv(4, 3, edge_dim=2)

    def forward(self, x, edge_index, edge_attr):
        return self.conv(x, edge_index, edge_attr)


@pytest.mark.parametrize("carries", [{}, {"edge_attr": [1.0, 1.0]}])
def test_additions_are_named_where_it_is_known_what_a_new_edge_carries(carries: dict[str, list[float]]) -> None:
    torch.manual_seed(0)
    _, data = random_problem(SEED)
    data.edge_attr = torch.ones(data.num_edges, 2)
    space = butfor.EditSpace(max_edits=1, carries=carries)
    results = butfor.explain(ReadsAttributes().eval(), data, range(8), space=space)
    without = [result for result in results if not result.found]
    assert without
    assert all(("Missing edges" in one.note) == bool(carries) for one in without)


def asked_of(task: str) -> tuple[Question, Any]:
    """A question of another task than that of a plain node, and a target."""
    kind = {"typed": "SAGE", "link": "link SAGE", "graph": "graph GCN sum"}[task]
    question = typed_case(kind, 0) if task == "typed" else task_case(kind, 0)
    return question, question.targets[1 if task == "typed" else 0]  # the first one hears of nothing


@pytest.mark.parametrize("task", ["typed", "link", "graph"])
def test_every_task_has_hints_that_can_be_pasted(task: str) -> None:
    question, target = asked_of(task)
    settings = {"goal": question.goal, "directed": question.directed, "task": question.task}
    settings |= {"node_type": question.node_type} if task == "typed" else {}
    session = butfor.prepare(question.model, question.data, space=butfor.EditSpace(delete=False), **settings)
    result = session.explain(target)
    assert result.status == "impossible"
    assert f"all of its {result.edges} edges must stay" in result.note
    assert "otherwise=dataclasses.replace(space, add=butfor.Within(2))" in result.note
    other = dataclasses.replace(session.space, add=butfor.Within(2))
    again = butfor.prepare(question.model, question.data, space=session.space, otherwise=other, **settings)
    assert again.explain(target).otherwise is not None


def test_it_is_shown_wherever_notes_are(tmp_path: Path) -> None:
    model, data = random_problem(SEED)
    results = butfor.explain(model, data, [NODE])
    assert PYTHON in results[0]._repr_html_()
    butfor.report(results, tmp_path / "report.html")
    assert "butfor.EditSpace(add=butfor.Within(2))" in (tmp_path / "report.html").read_text()
