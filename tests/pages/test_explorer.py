"""What the explorer's page asks is answered by the model itself, under the rules that the page states."""

from __future__ import annotations

import itertools
import json
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import torch

import butfor
from butfor.errors import ButforError, InputError
from butfor.pages.explore import explorer_of
from butfor.testing import links, random_problem
from explorers import graphs_explorer, link_explorer, node_explorer, typed_explorer

if TYPE_CHECKING:
    from collections.abc import Callable

    from butfor.pages.explorer import Explorer

EXPLORERS: dict[str, tuple[Callable[[], Explorer], Any]] = {
    "nodes": (node_explorer, 0),
    "links": (link_explorer, [0, 5]),
    "graphs": (graphs_explorer, 1),
    "types": (typed_explorer, 2),
}


def nested(depth: int) -> list[Any]:
    """A list in a list in a list ..."""
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def finished(explorer: Explorer, **asked: Any) -> dict[str, Any]:
    """The end of a search."""
    number = explorer.answer("search", asked)["search"]
    for _ in range(600):
        state = explorer.answer("progress", {"search": number})
        if not state["running"]:
            return state
        time.sleep(0.05)
    raise AssertionError("the search did not end")


@pytest.mark.parametrize("name", EXPLORERS)
def test_every_question_is_answered_with_plain_data(name: str) -> None:
    make, target = EXPLORERS[name]
    explorer = make()
    opened = json.loads(json.dumps(explorer.opened(), allow_nan=False))
    assert opened["first"] == target
    view = json.loads(json.dumps(explorer.answer("target", {"target": target}), allow_nan=False))
    assert view["target"] == target
    lines = len(view["scene"]["ends"]) // 2
    assert lines == len(view["lines"]["edit"]) == len(view["lines"]["edge"]) == len(view["lines"]["added"])
    assert len(view["nodes"]) == len(view["distance"]) == len(view["scene"]["labels"])
    assert len(view["edits"]) == len(view["told"]) == len(view["costs"])
    first = view["edits"][0][0]
    said = explorer.answer("predict", {"target": target, "edits": [first]})
    assert said["allowed"]
    assert said["cost"] == 1
    assert explorer.answer("predict", {"target": target, "edits": []}) == view["unedited"]


@pytest.mark.parametrize("name", EXPLORERS)
def test_a_search_finds_what_explain_finds(name: str) -> None:
    make, target = EXPLORERS[name]
    explorer = make()
    state = finished(explorer, target=target)
    assert not state["error"]
    result = butfor.Counterfactual.from_dict(state["result"]["json"])
    session = explorer.subject if isinstance(explorer.subject, butfor.Session) else explorer.subject.session(target)
    asked = None if name == "graphs" else butfor.Pair(*target) if name == "links" else target
    expected = session.explain(asked, butfor.Exact(all_smallest=True), budget=butfor.Budget(None))
    # What is spent depends on the clock where time is limited.
    assert replace(result, evaluations=0) == replace(expected, evaluations=0)
    assert result.found
    sets = [expected.edits, *expected.alternatives]
    assert state["result"]["sets"] == [[edit.plain for edit in edits] for edits in sets]
    for edits in state["result"]["sets"]:
        assert explorer.answer("predict", {"target": target, "edits": edits})["reached"]


def test_predictions_are_those_of_the_model_on_the_edited_graph() -> None:
    model, data = random_problem(3, nodes=12, density=0.3)
    explorer = node_explorer()
    edges = links(data)
    for chosen in [*itertools.combinations(edges[:6], 2), *itertools.combinations(edges, 1)]:
        kept = [pair for pair in data.edge_index.T.tolist() if (min(pair), max(pair)) not in chosen]
        with torch.no_grad():
            truth = model(data.x, torch.tensor(kept).T)[0].softmax(-1)
        view = explorer.answer("target", {"target": 0})
        known = [["delete", *edge] for edge in chosen]
        inside = [edit for edit in known if [edit] in view["edits"]]
        if inside == known:
            said = explorer.answer("predict", {"target": 0, "edits": known})
            assert said["shares"] == pytest.approx(truth.tolist(), abs=1e-5)
            assert said["label"] == int(truth.argmax())


def test_protected_edges_stay_and_costs_count() -> None:
    explorer = node_explorer()
    plain = finished(explorer, target=0)["result"]
    first = plain["sets"][0][0]
    rules = {"protected": [first[1:]]}
    view = explorer.answer("target", {"target": 0, "rules": rules})
    assert [first] not in view["edits"]
    assert view["lines"]["edit"][view["lines"]["edge"].index(first[1:])] == -1
    with pytest.raises(InputError, match="is not allowed for this target"):
        explorer.answer("predict", {"target": 0, "rules": rules, "edits": [first]})
    other = finished(explorer, target=0, rules=rules)["result"]
    assert all(first not in edits for edits in other["sets"])
    priced = finished(explorer, target=0, rules={"costs": [[first[1:], 50]]})["result"]
    assert priced["cost"] >= plain["cost"]
    assert (
        explorer.answer("predict", {"target": 0, "rules": {"costs": [[first[1:], 50]]}, "edits": [first]})["cost"] == 50
    )


def test_pages_may_allow_more_where_no_rules_were_given() -> None:
    explorer = node_explorer()
    view = explorer.answer("target", {"target": 0})
    edges = {tuple(edge) for edge in view["lines"]["edge"]}
    missing = next(pair for pair in itertools.combinations(range(12), 2) if pair not in edges)
    rules = {"add": [list(missing)], "features": {"values": [0.0]}}
    wider = explorer.answer("target", {"target": 0, "rules": rules})
    assert [["add", *missing]] in wider["edits"]
    line = wider["lines"]["edge"].index(list(missing))
    assert wider["lines"]["added"][line]
    changes = [wider["edits"][change["edit"]][0] for change in wider["changes"]]
    assert [edit[:3] for edit in changes] == [["change", 0, feature] for feature in range(4)]
    both = explorer.answer("predict", {"target": 0, "rules": rules, "edits": [["add", *missing], changes[0]]})
    assert both["cost"] == 2
    near = explorer.answer("target", {"target": 0, "rules": {"add": {"hops": 2}}})
    assert sum(near["lines"]["added"]) > 1


def test_rules_that_were_given_hold() -> None:
    _model, data = random_problem(3, nodes=12, density=0.3)
    edge = links(data)[0]
    explorer = node_explorer(space=butfor.EditSpace(protected=[edge], max_edits=1))
    assert not explorer.opened()["free"]
    view = explorer.answer("target", {"target": 0})
    assert [["delete", *edge]] not in view["edits"]
    two = [records[0] for records in view["edits"][:2]]
    assert not explorer.answer("predict", {"target": 0, "edits": two})["allowed"]
    with pytest.raises(InputError, match="do not allow the page to allow more"):
        explorer.answer("target", {"target": 0, "rules": {"add": {"hops": 2}}})
    more = explorer.answer("target", {"target": 0, "rules": {"protected": [two[0][1:]]}})
    assert [two[0]] not in more["edits"]
    assert [["delete", *edge]] not in more["edits"]


def test_goals_are_the_pages() -> None:
    explorer = node_explorer()
    before = explorer.answer("target", {"target": 0})["unedited"]["label"]
    for wanted in {0, 1, 2} - {before}:
        state = finished(explorer, target=0, goal={"wanted": wanted, "probability": None})
        result = butfor.Counterfactual.from_dict(state["result"]["json"])
        assert result.goal == butfor.Goal(wanted=wanted)
        assert result.after is None or result.after.label == wanted


def test_a_search_can_be_stopped_and_another_one_stops_it() -> None:
    explorer = node_explorer(nodes=40)
    first = explorer.answer("search", {"target": 0})["search"]
    second = explorer.answer("search", {"target": 1})["search"]
    assert first != second
    explorer.answer("stop", {"search": second})
    for number in (first, second):
        for _ in range(200):
            if not explorer.answer("progress", {"search": number})["running"]:
                break
            time.sleep(0.05)
        state = explorer.answer("progress", {"search": number})
        assert not state["running"]
        assert not state["error"]
        assert state["result"]["status"] in ("optimal", "found", "unknown", "impossible")
    explorer.searches.close()


@pytest.mark.parametrize(
    ("verb", "body", "sentence"),
    [
        ("delete-disk", {}, "'delete-disk' is no question of this page"),
        (None, {}, "None is no question of this page"),
        (["target"], {}, "is no question"),
        ("target", {}, "the node is None"),
        ("target", {"target": 12}, "the node is 12, but must be a whole number from 0 to 11"),
        ("target", {"target": -1}, "the node is -1"),
        ("target", {"target": True}, "the node is True"),
        ("target", {"target": "x"}, r"node 'x' is not in this graph \(from 0 to 11\)"),
        ("target", {"target": 0, "rules": 3}, "rules is 3, but must be an object"),
        ("target", {"target": 0, "rules": {"delete": False}}, "the rules have no field 'delete'"),
        ("target", {"target": 0, "rules": {"protected": [[0, 99]]}}, "node 99 is not in this graph"),
        ("target", {"target": 0, "rules": {"protected": "price"}}, "protected is 'price', but must be a list"),
        ("target", {"target": 0, "rules": {"costs": [[[0, 1], -1]]}}, "cost"),
        ("target", {"target": 0, "rules": {"add": [[0, 0]]}}, "cannot be joined to itself"),
        ("target", {"target": 0, "goal": {"wanted": 7}}, "class 7 is wanted"),
        ("target", {"target": 0, "goal": {"wanted": "a"}}, "the wanted class is 'a'"),
        ("target", {"target": 0, "goal": {"probability": 2}}, "the probability is 2"),
        ("predict", {"target": 0, "edits": None}, "edits is None"),
        ("predict", {"target": 0, "edits": [["delete", 0]]}, "a deletion has two ends"),
        ("predict", {"target": 0, "edits": [["burn", 0, 1]]}, "is no edit"),
        ("predict", {"target": 0, "edits": [["delete", 0, 0]]}, "is not allowed for this target"),
        ("target", {"target": 0, "rules": {"add": {"hops": 3}}}, "hops is 3, but must be a whole number from 1 to 2"),
        ("target", {"target": 0, "rules": {"add": {"hops": 1, "most": 10**12}}}, "it has hops and nothing else"),
        ("target", {"target": 0, "rules": {"add": [[0, 1]] * 1001}}, "add lists 1,001"),
        ("target", {"target": 0, "rules": {"protected": [[0, 1]] * 1001}}, "protected lists 1,001"),
        ("target", {"target": 0, "rules": {"features": {"values": [1.0] * 101}}}, "values lists 101"),
        ("target", {"target": 0, "rules": {"features": {"between": [0, 1]}}}, "it has values and nothing else"),
        ("target", {"target": 0, "rules": {"features": [{"values": "flip"}] * 3}}, "features is .* an object"),
        ("target", {"target": 0, "goal": {"x": nested(100_000)}}, "the question is nested too deeply"),
        ("search", {"target": 0, "seconds": -1}, "seconds is -1"),
        ("search", {"target": 0, "all": "yes"}, "all is 'yes'"),
        ("progress", {"search": 99}, "this search is not known any more"),
        ("progress", {}, "this search is not known any more"),
        ("stop", {"search": "1"}, "this search is not known any more"),
        ("find", {"text": 3}, "text is 3"),
    ],
)
def test_senseless_questions_get_one_sentence(verb: object, body: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ButforError, match=sentence) as problem:
        node_explorer().answer(verb, body)
    assert "\n" not in str(problem.value)


def test_models_that_fail_leave_the_explorer_at_work() -> None:
    class Failing(torch.nn.Module):
        def __init__(self, inner: torch.nn.Module, edges: int) -> None:
            super().__init__()
            self.inner, self.edges = inner, edges

        def forward(self, x, edge_index):
            if edge_index.size(1) < self.edges:
                raise RuntimeError("fewer edges than I am used to")
            return self.inner(x, edge_index)

    model, data = random_problem(3, nodes=12, density=0.3)
    explorer = explorer_of(Failing(model, data.num_edges), data, 0)
    view = explorer.answer("target", {"target": 0})
    said = explorer.answer("predict", {"target": 0, "edits": view["edits"][0]})
    assert said["name"] == "no prediction"
    assert not said["reached"]
    state = finished(explorer, target=0)
    assert state["error"] or state["result"]["status"] in ("unknown", "impossible")


def test_more_edits_than_a_page_can_show_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    explorer = node_explorer()
    monkeypatch.setattr("butfor.pages.explorer.MOST_EDITS", 3)
    with pytest.raises(InputError, match=r"\d+ edits are possible here, and this page shows 3 at most"):
        explorer.answer("target", {"target": 0})


def test_edges_may_come_anywhere_only_among_few_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """All pairs are looked through: around a hub that would take for ever."""
    explorer = node_explorer()
    monkeypatch.setattr("butfor.pages.explorer.MOST_NEAR", 3)
    for verb in ("target", "search"):
        with pytest.raises(InputError, match=r"nodes are within 2 hops of this target; .* any two of 3 at most"):
            explorer.answer(verb, {"target": 0, "rules": {"add": {"hops": 2}}})
    assert explorer.answer("target", {"target": 0})["edits"]


@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
def test_a_model_that_says_no_numbers_after_edits_predicts_nothing(broken: float) -> None:
    class Breaking(torch.nn.Module):
        """One of its scores is no number as soon as an edge is gone."""

        def __init__(self, inner: torch.nn.Module, edges: int) -> None:
            super().__init__()
            self.inner, self.edges = inner, edges

        def forward(self, x, edge_index):
            scores = self.inner(x, edge_index)
            if edge_index.size(1) < self.edges:
                scores = scores + torch.tensor([0.0, 0.0, broken])
            return scores

    model, data = random_problem(3, nodes=12, density=0.3)
    explorer = explorer_of(Breaking(model, data.num_edges), data, 0)
    view = explorer.answer("target", {"target": 0})
    said = explorer.answer("predict", {"target": 0, "edits": view["edits"][0]})
    json.dumps(said, allow_nan=False)
    assert (said["name"], said["label"], said["reached"]) == ("no prediction", -1, False)


@pytest.mark.parametrize(
    ("kind", "seed"),
    [("mixed", 0), ("task", 0), ("task", 1), ("task", 2), pytest.param("typed", 0, marks=pytest.mark.slow)],
)
def test_predictions_after_all_kinds_of_edits_are_those_of_brute_force(kind: str, seed: int) -> None:
    """Groups, additions, features, weights, types, links, whole graphs: a sample of what the rules allow."""
    from mixed_cases import mixed_case
    from task_cases import MODELS, task_case
    from typed_mixed_cases import typed_question

    question = {
        "mixed": lambda: mixed_case("GAT with attributes", seed),
        "task": lambda: task_case(list(MODELS)[5 * seed], seed),
        "typed": lambda: typed_question("attributes", "node", "mixed", seed),
    }[kind]()
    asked = {"goal": question.goal, "space": question.space, "directed": question.directed, "task": question.task}
    explorer = explorer_of(question.model, question.data, None, node_type=question.node_type, **asked)
    compared = 0
    for number, target in enumerate(question.targets):
        body = {"target": list(target) if isinstance(target, tuple) else target}
        known = [tuple(map(str, records)) for records in explorer.answer("target", body)["edits"]]
        inside = {record for records in known for record in records}
        for row in range(0, len(question.chosen), 29):
            edits = [edit.plain for edit in question.records(row)]
            if not question.allowed(target)[row] or not {str(edit) for edit in edits} <= inside:
                continue
            said = explorer.answer("predict", {**body, "edits": edits})
            scores = torch.from_numpy(question.scores[row, number])
            truth = scores if question.goal.threshold is not None else scores.softmax(-1)
            mine = [said["number"]] if question.goal.threshold is not None else said["shares"]
            assert mine == pytest.approx(truth.tolist(), abs=1e-4)
            assert said["cost"] == pytest.approx(question.tenths[row] / 10)
            compared += 1
    assert compared > 3
