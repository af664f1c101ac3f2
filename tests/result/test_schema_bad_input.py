"""Results in which a field is not what it must be, is missing, or contradicts another."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from bad_files import LARGE, check_refused
from butfor.edits.change import Change
from butfor.edits.deletion import Deletion
from butfor.errors import StoreError
from butfor.problem.goal import Goal
from butfor.problem.method_record import MethodRecord
from butfor.result.counterfactual import Counterfactual
from butfor.result.lines import to_line
from butfor.result.status import Prediction, Status
from butfor.runs import read_results

if TYPE_CHECKING:
    from pathlib import Path


RESULT = Counterfactual(
    target=3,
    status=Status.OPTIMAL,
    before=Prediction(1, "motif", 0.9),
    after=Prediction(0, "base", 0.8),
    edits=(Deletion(3, 4), Change(3, 0, 1.0, 0.0)),
    cost=2.0,
    lower_bound=2.0,
    task="node",
    nodes=9,
    edges=8,
    directed=False,
    goal=Goal(),
    method=MethodRecord("Exact"),
    evaluations=3,
    seed=0,
    space_id="",
    graph_id="a",
    model_id="b",
    alternatives=((Deletion(3, 5),),),
    necessity=((Deletion(3, 4), 0.5),),
    names=((3, "three"),),
    seconds=0.5,
    versions={"python": "3"},
)


NOTHING = {"after": None, "edits": [], "alternatives": [], "necessity": None, "cost": 0.0}


COUNTS = [-1, 1.0, True, "3", None, LARGE, [1]]


NUMBERS = [-1, True, "1", LARGE, [1]]


WORDS = [1, None, ["a"], {}, "\ud800"]


EDITS: list[Any] = [
    ["delete", 1],
    *(["delete", end, 2] for end in (1.5, True, -1, LARGE, "1", None)),
    *(["delete", 1, 2, relation] for relation in (3, ["a", "b"], ["a", "b", 3])),
    ["swap", 1, 2],
    [["add"], 1, 2],
    ["add", 1, 2, 3],
    ["change", 1, 2, 3],
    *(["change", 1, 2, 3, value] for value in ("4", LARGE, True, None)),
]


GOAL = {"wanted": None, "least": 0.0, "probability": None, "threshold": None}
GOALS: list[Any] = [
    *WORDS,
    "any other class",
    {"least": 0.0},
    {**GOAL, "colour": "red"},
    *({**GOAL, "wanted": value} for value in (-1, 1.0, True, "1", LARGE)),
    *({**GOAL, "least": value} for value in (-0.5, None, "1", True, LARGE)),
    *({**GOAL, "probability": value} for value in (0, 1, -1, "0.5", True, LARGE)),
    *({**GOAL, "threshold": value} for value in ("1", True, LARGE)),
]
METHODS: list[Any] = [
    *WORDS,
    "Exact()",
    {"name": "Exact"},
    {"name": "Exact", "settings": {}, "colour": "red"},
    *({"name": name, "settings": {}} for name in WORDS),
    *({"name": "Exact", "settings": settings} for settings in (1, None, [], "k=1")),
    {"name": "CFGNN", "settings": {"fallback": {"name": "Greedy"}}},
    {"name": "CFGNN", "settings": {"fallback": {"name": 3, "settings": {}}}},
]


BAD_FIELDS: dict[str, list[Any]] = {
    "schema": [True, 3.0, "3", None, [3], LARGE, 1, 2, 4],
    "target": [-1, 1.5, True, "3", None, LARGE, [1], [1, 2, 3], [1, -2], [1, True], [1, 2.0], {}],
    "status": ["perhaps", None, 1, ["found"], "OPTIMAL", "impossible", "unknown"],
    "before": [None, 1, [], {}, {"label": 1}, {"label": 1, "name": "a", "probability": 0.5, "colour": 1}],
    "after": [None, 1, {}],
    "edits": [None, 1, {}, "abc", [], [1], *([edit] for edit in EDITS)],
    "cost": [*NUMBERS, None],
    "lower_bound": [*NUMBERS, None],
    "task": ["link", "edge", None, 1, ["node"]],
    "nodes": COUNTS,
    "edges": COUNTS,
    "directed": [0, 1, None, "no"],
    "goal": GOALS,
    "method": METHODS,
    "evaluations": COUNTS,
    "seed": [1.0, True, "0", None, LARGE],
    "space_id": WORDS,
    "graph_id": WORDS,
    "model_id": WORDS,
    "alternatives": [None, 1, [1], [[]], [[["delete", 1.5, 2]]]],
    "necessity": [1, [1], [[1]], [[["delete", 1, 2], 0]], [[["delete", 1, 2], 1.5]], [[["delete", 1, 2], True]]],
    "node_type": [1, ["a"], ["a", 2], ["a", "b", "c"]],
    "note": WORDS,
    "names": [None, 1, [1], [[1]], [["1", "a"]], [[1, 2]], [[-1, "a"]], [[True, "a"]], [[1.0, "a"]], [[1, "a", 2]]],
    "seconds": [*NUMBERS, None],
    "versions": [None, 1, [], {"a": 1}, {"a": None}],
    "hops": [-1, 1.0, True, "2", LARGE, [1]],
    "flow": [1, "both", ["source_to_target"]],
    "verified_on": [1, ["a"], {}],
    "colour": ["red"],
}


PREDICTIONS: list[dict[str, Any]] = [{"label": value} for value in (-1, 1.0, True, "1", None, LARGE)] + [
    {"name": 1},
    {"name": None},
    {"probability": -0.1},
    {"probability": 1.1},
    {"probability": True},
    {"value": "1"},
]


def test_a_result_survives() -> None:
    assert Counterfactual.from_dict(json.loads(to_line(RESULT))) == RESULT
    for status in set(Status) - {Status.OPTIMAL, Status.FOUND}:
        plain = {**RESULT.to_dict(), **NOTHING, "status": status.value}
        assert Counterfactual.from_dict(plain).status is status
    link = replace(RESULT, target=(3, 4), task="link")
    assert Counterfactual.from_dict(json.loads(to_line(link))) == link


@pytest.mark.parametrize("field", BAD_FIELDS)
def test_fields_that_are_not_what_they_must_be(tmp_path: Path, field: str) -> None:
    path = tmp_path / "results.jsonl"
    for value in BAD_FIELDS[field]:
        path.write_text(json.dumps({**RESULT.to_dict(), field: value}) + "\n")
        check_refused(lambda: read_results(path), StoreError, tmp_path, "line 1 of")


@pytest.mark.parametrize("field", ["before", "after"])
def test_predictions_that_are_none(tmp_path: Path, field: str) -> None:
    path = tmp_path / "results.jsonl"
    for change in PREDICTIONS:
        plain = RESULT.to_dict()
        path.write_text(json.dumps({**plain, field: {**plain[field], **change}}) + "\n")
        check_refused(lambda: read_results(path), StoreError, tmp_path, "line 1 of")


@pytest.mark.parametrize("field", ["target", "status", "before", "edits", "cost", "task", "graph_id"])
def test_results_without_a_field(tmp_path: Path, field: str) -> None:
    plain = RESULT.to_dict()
    del plain[field]
    (tmp_path / "results.jsonl").write_text(json.dumps(plain) + "\n")
    check_refused(lambda: read_results(tmp_path / "results.jsonl"), StoreError, tmp_path, f"it has no '{field}'")


@pytest.mark.parametrize(
    "change",
    [
        {"after": None},
        {**NOTHING, "status": "unknown", "cost": 1.0},
        {**NOTHING, "status": "unknown", "alternatives": [[["delete", 1, 2]]]},
        {**NOTHING, "status": "found"},
        {"target": [1, 2]},
        {"task": "link"},
        {"node_type": ["author", "paper"]},
    ],
)
def test_results_that_contradict_themselves(tmp_path: Path, change: dict[str, Any]) -> None:
    (tmp_path / "results.jsonl").write_text(json.dumps({**RESULT.to_dict(), **change}) + "\n")
    check_refused(lambda: read_results(tmp_path / "results.jsonl"), StoreError, tmp_path, "contradicts itself")


@pytest.mark.parametrize(
    "change",
    [
        {"goal": "class " + "9" * 5000},
        {"goal": "the other class"},
        {"goal": "any other class, by at least 1.2.3"},
        {"goal": "any other class, by at least inf"},
        {"goal": GOAL},
        {"method": {"name": "Exact", "settings": {}}},
        {"hops": 2},
    ],
)
def test_results_of_schema_2_that_nobody_wrote(tmp_path: Path, change: dict[str, Any]) -> None:
    newer = ("hops", "flow", "verified_on")
    plain = {name: value for name, value in RESULT.to_dict().items() if name not in newer}
    plain |= {"schema": 2, "goal": "any other class", "method": "Exact(k=1)"}
    path = tmp_path / "results.jsonl"
    path.write_text(json.dumps(plain) + "\n")
    assert len(read_results(path)) == 1
    path.write_text(json.dumps(plain | change) + "\n")
    check_refused(lambda: read_results(path), StoreError, tmp_path, "line 1 of")
