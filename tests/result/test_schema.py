"""Results as plain data: they survive JSON, and what an earlier version wrote is read as it was meant."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from torch_geometric.explain import CaptumExplainer, GNNExplainer

import butfor
from butfor.edits.deletion import Deletion
from butfor.errors import StoreError
from butfor.problem.goal import Goal
from butfor.problem.method_record import MethodRecord
from butfor.result.counterfactual import Counterfactual
from butfor.result.lines import to_line
from butfor.result.schema import READABLE, SCHEMA, WHOLE_GRAPH
from butfor.result.status import Status
from butfor.runs import Run, Store, read_results
from sample_results import NOTHING, RESULT

if TYPE_CHECKING:
    from butfor.methods import Method

RICH = replace(
    RESULT,
    goal=Goal(wanted=2, least=0.1, probability=0.7),
    method=MethodRecord("Exact", {"k": 2, "width": None, "incumbent": MethodRecord("Greedy", {"width": 3})}),
    alternatives=((Deletion(17, 21),),),
    necessity=((Deletion(17, 20), 0.5), (Deletion(17, 21), 0.5)),
    names=((17, "acct_3"),),
    hops=4,
    flow="target_to_source",
    verified_on="whole graph",
)


@pytest.mark.parametrize(
    "result",
    [RESULT, NOTHING, replace(NOTHING, status=Status.IMPOSSIBLE, lower_bound=None), RICH],
    ids=["found", "nothing", "impossible", "rich"],
)
def test_results_survive_json(result: Counterfactual) -> None:
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    again = Counterfactual.from_dict(plain)
    assert again == result
    assert (again.seconds, again.versions) == (result.seconds, result.versions)
    assert plain["schema"] == SCHEMA == 3


def test_goal_method_and_neighbourhood_are_structured() -> None:
    plain = RICH.to_dict()
    assert plain["goal"] == {"wanted": 2, "least": 0.1, "probability": 0.7, "threshold": None}
    assert plain["method"] == {
        "name": "Exact",
        "settings": {"k": 2, "width": None, "incumbent": {"name": "Greedy", "settings": {"width": 3}}},
    }
    assert (plain["hops"], plain["flow"], plain["verified_on"]) == (4, "target_to_source", "whole graph")


def test_fields_with_defaults_may_be_missing() -> None:
    plain = RESULT.to_dict()
    for name in ("names", "hops", "flow", "verified_on", "note", "node_type", "necessity", "alternatives"):
        del plain[name]
    assert Counterfactual.from_dict(plain) == RESULT


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 99}, "has schema 99; this version reads schema 2 to 3"),
        ({"status": "perhaps"}, "status is 'perhaps', but must be one of optimal"),
        ({"colour": "red"}, r"unknown fields \['colour'\]"),
        ({"edits": []}, "contradicts itself"),
        ({"edits": [["swap", 1, 2]]}, r"\['swap', 1, 2\] is no edit"),
        ({"before": None}, "not a counterfactual"),
        ({"flow": "up"}, "flow is 'up', but must be source_to_target or target_to_source"),
        ({"hops": -1}, "hops"),
        ({"goal": "any other class"}, "goal"),
        ({"method": "Greedy(width=64)"}, "method"),
    ],
)
def test_foreign_dictionaries_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(StoreError, match=message):
        Counterfactual.from_dict(RESULT.to_dict() | change)
    with pytest.raises(StoreError, match="no schema version"):
        Counterfactual.from_dict({})


# Schema 2, as version 0.1.0 wrote it.

FORMER = Path(__file__).with_name("schema_2.jsonl")
LINES = [json.loads(line) for line in FORMER.read_text().splitlines()]
# Of each line: the target, the verdict, the sentence and the note, as that version printed them.
SAID = Path(__file__).with_name("schema_2.txt").read_text().splitlines()

# The goal and the method of each line, by its target.
ASKED: dict[int | tuple[int, int], tuple[Goal, Method]] = {
    1: (Goal(), butfor.Exact(all_smallest=True)),
    2: (Goal(wanted=1), butfor.Greedy(width=2)),
    0: (Goal(least=0.01), butfor.CFGNN(lr=0.5, momentum=0.9)),
    3: (Goal(), butfor.RemoveSubgraph(GNNExplainer(epochs=3, lr=0.02), size=6)),
    4: (Goal(wanted=1), butfor.KeepEgo()),
    5: (Goal(), butfor.Exact()),
    20: (Goal(0, 0.125, 0.55), butfor.CFGNN.published(lr=0.5, momentum=0.9)),
    30: (
        Goal(threshold=1 / 3, least=1e-5),
        butfor.RemoveSubgraph(CaptumExplainer("IntegratedGradients", n_steps=9), size=1),
    ),
    40: (Goal(), butfor.PRBCD(epochs=5, samples=3)),
    50: (Goal(), butfor.GRBCD()),
    60: (Goal(), butfor.Exact(k=2)),
    (0, 1): (Goal(), butfor.Greedy()),
    6: (Goal(), butfor.RandomPerturbation(samples=40)),
    70: (Goal(), butfor.Exact()),
    80: (Goal(), butfor.RemoveEgo()),
    90: (Goal(wanted=2), butfor.Exact()),
}


def of_schema_2(plain: dict[str, Any]) -> dict[str, Any]:
    """What schema 2 knew, but for the goal and the method, which it knew as text."""
    return {name: value for name, value in plain.items() if name not in ("schema", "goal", "method")}


def test_the_former_file_has_every_kind_of_result() -> None:
    assert {plain["schema"] for plain in LINES} == {2}
    assert {plain["status"] for plain in LINES} == {status.value for status in Status} - {"failed"}
    assert {plain["task"] for plain in LINES} == {"node", "link", "graph"}
    assert {edit[0] for plain in LINES for edit in plain["edits"]} == {"delete", "add", "change"}
    assert any(plain["necessity"] for plain in LINES)
    assert any(plain["alternatives"] for plain in LINES)
    assert any(plain["names"] for plain in LINES)
    assert any(plain["node_type"] for plain in LINES)
    # `Descent` came later.
    known = set(butfor.methods.METHODS.values()) - {butfor.Descent}
    assert {type(method) for _, method in ASKED.values()} == known


@pytest.mark.parametrize("number", range(len(LINES)))
def test_a_former_result_is_read_as_it_was_meant(number: int) -> None:
    former = LINES[number]
    result = Counterfactual.from_dict(former)
    goal, method = ASKED[result.target]
    assert result.goal == goal
    assert str(result.goal) == former["goal"]
    # Settings that the method did not have then, such as the fallback, are not made up.
    told = method.record()
    assert result.method == replace(told, settings={name: told.settings[name] for name in result.method.settings})
    assert set(told.settings) - set(result.method.settings) <= {"fallback", "incumbent"}
    assert of_schema_2(former).items() <= of_schema_2(result.to_dict()).items()
    # It was always verified on the whole graph; how far the neighbourhood reached nobody wrote down.
    assert result.verified_on == (WHOLE_GRAPH if result.found else None)
    assert (result.hops, result.flow) == (None, None)
    assert f"{result.target_name} | {result.verdict} | {result} | {result.note}" == SAID[number]


@pytest.mark.parametrize("number", range(len(LINES)))
def test_a_former_result_survives_as_one_of_today(number: int) -> None:
    result = Counterfactual.from_dict(LINES[number])
    line = to_line(result)
    assert json.loads(line)["schema"] == SCHEMA
    again = Counterfactual.from_dict(json.loads(line))
    assert again == result
    assert to_line(again) == line


def test_a_former_file_is_read_in_its_order() -> None:
    assert [result.target for result in read_results(FORMER)] == list(ASKED)


def test_a_former_run_is_continued_by_the_same_method(tmp_path: Path) -> None:
    """Also where the line that was written last broke off."""
    (first, *_), method = [plain for plain in LINES if plain["target"] == 20], ASKED[20][1]
    former = Counterfactual.from_dict(first)
    run = Run(
        former.graph_id,
        former.model_id,
        method.record(),
        former.goal,
        former.space_id,
        former.seed,
        former.directed,
        defaults=method.default_settings(),
    )
    path = tmp_path / "results.jsonl"
    line = json.dumps(first).encode() + b"\n"
    for broken in (b"", line[:1], line[:11], line[:200], line[:-1]):
        path.write_bytes(line + broken.replace(b'"target": 20', b'"target": 21'))
        with Store(path, run) as store:
            assert list(store.done) == [20]
            assert bool(store.notice) == bool(broken)
            store.append(replace(former, target=22, method=method.record()))
        assert [result.target for result in read_results(path)] == [20, 22]
        assert path.read_bytes().startswith(line)
    with pytest.raises(StoreError, match="another method"):
        Store(path, replace(run, method=replace(method, lr=0.1).record()))


def test_every_older_schema_has_a_file_that_is_read_here() -> None:
    """Whoever raises the schema keeps a file of the one before."""
    assert READABLE == (2, SCHEMA)
