"""Results as plain data: what is said of each, and where its edits are in the picture."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from butfor import Counterfactual, Deletion, Prediction, Status
from butfor.edits.change import Change
from butfor.pages.records import ALTERNATIVES, SHOWN, prediction_of, record_of
from butfor.pages.scene import Legend
from page_runs import Run, edited, library, links, molecules, of_every_status, reread, trees

if TYPE_CHECKING:
    from collections.abc import Callable

RUNS: list[Callable[[], Run]] = [trees, library, links, molecules, edited]


def with_graph(result: Counterfactual) -> dict[str, Any]:
    return record_of(result, Legend(), result._context)


def without_graph(result: Counterfactual) -> dict[str, Any]:
    return record_of(*reread([result]), Legend(), None)


def ends(record: dict[str, Any], line: int) -> set[str]:
    """What the two nodes of a line are called, with their types where they have some."""
    scene = record["scene"]
    names = scene.get("names") or scene["labels"]
    return {names[node] for node in scene["ends"][2 * line : 2 * line + 2]}


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("record", [with_graph, without_graph])
def test_every_edit_is_where_the_picture_shows_it(run: Callable[[], Run], record: Any) -> None:
    drawn = 0
    for result in run().results:
        plain = record(result)
        assert plain["sentence"] == str(result)
        assert plain["verdict"] == result.verdict
        assert plain["size"] == result.size
        assert len(plain["sets"]) == (1 + len(result.alternatives) if result.found else 0)
        sets = [[plain["edits"][number] for number in some] for some in plain["sets"]]
        for some, edits in zip(sets, [result.edits, *result.alternatives], strict=False):
            for shown, edit in zip(some, edits, strict=True):
                assert shown["kind"] == edit.kind
                drawn += 1
                if isinstance(edit, Change):
                    assert plain["scene"]["labels"][shown["node"]] == result.name(edit.node, edit.node_type)
                else:
                    called = zip(edit.nodes, edit.node_types, strict=True)
                    bare = {result.name(*node) for node in called}
                    shown_ends = ends(plain, shown["line"])
                    assert len(shown_ends) == 2
                    assert all(any(one.endswith(name) for one in shown_ends) for name in map(_printed, bare))
        json.dumps(plain, allow_nan=False)
    assert drawn


def _printed(name: str) -> str:
    from butfor.boundary.printable import printable

    return printable(name)


def test_kinds_of_edits_occur() -> None:
    kinds = {edit["kind"] for result in edited().results for edit in with_graph(result)["edits"]}
    assert kinds == {"delete", "add", "change"}


def test_alternatives_and_shares() -> None:
    result = next(result for result in trees().results if len(result.alternatives) > 1)
    plain = with_graph(result)
    told = [plain["edits"][number]["told"] for some in plain["sets"] for number in some]
    assert len(set(told)) == len(plain["edits"])
    assert result.necessity is not None
    assert [share for _, share in plain["shares"]] == [round(share, 4) for _, share in result.necessity]
    assert sum(share for _, share in plain["shares"]) == pytest.approx(result.size, abs=1e-3)


def test_more_alternatives_than_are_listed() -> None:
    result = next(result for result in trees().results if result.size == 1)
    edges = [edge for edge in result._context.graph.edge_index.T.tolist() if edge[0] < edge[1]]  # type: ignore[union-attr]
    many = tuple((Deletion(*edge),) for edge in edges[: ALTERNATIVES + 9])
    plain = with_graph(replace(result, alternatives=many, hops=None))
    assert len(plain["sets"]) == 1 + ALTERNATIVES
    assert plain["more"] == 9
    # So many edits are not drawn, but those of the answer are.
    assert "line" in plain["edits"][plain["sets"][0][0]]


def test_a_large_neighbourhood_is_shown_in_part() -> None:
    result = next(result for result in trees().results if result.found)
    plain = with_graph(replace(result, hops=None, nodes=871, edges=1000))
    assert len(plain["scene"]["labels"]) == SHOWN
    assert plain["scene"]["all"][0] == 871
    assert all("line" in plain["edits"][number] for number in plain["sets"][0])


@pytest.mark.parametrize("result", of_every_status(), ids=lambda result: result.status.value)
def test_every_status(result: Counterfactual) -> None:
    for plain in (with_graph(result), without_graph(result)):
        assert plain["status"] == result.status.value
        assert plain["bound"] == result.lower_bound
        assert (plain["after"] is None) == (plain["cost"] is None) == (not result.found)
        assert plain["sets"] == [] or result.found
        facts = dict(plain["facts"])
        if result.status is Status.IMPOSSIBLE:
            assert facts["cost"] == "none exists"
        if result.status is Status.FAILED:
            assert "could not be explained: the worker was killed" in plain["sentence"]


def test_links_are_marked() -> None:
    result = next(result for result in links().results if result.found)
    scene = with_graph(result)["scene"]
    (line,) = scene["link"]
    assert [scene["labels"][node] for node in scene["ends"][2 * line : 2 * line + 2]] == [
        str(node) for node in result.target
    ]  # type: ignore[union-attr]
    assert scene["arrows"][line]
    assert len(scene["targets"]) == 2


def test_types_are_named() -> None:
    result = next(result for result in library().results if result.found)
    plain = with_graph(result)
    assert {name.split()[0] for name in plain["scene"]["names"]} == {"paper", "author"}
    assert set(plain["scene"]["relations"]) <= {"writes", "rev_writes"}
    assert plain["task"] == "node"


@pytest.mark.parametrize(
    ("prediction", "number"),
    [
        (Prediction(0, "a", 0.123456), 0.1235),
        (Prediction(0, "a", None, -0.0), 0.0),
        (Prediction(0, "a", None, 7.0), 7.0),
        (Prediction(0, "a", None), None),
        (Prediction(0, "a", float("nan")), None),
        (Prediction(0, "a", None, float("inf")), None),
    ],
)
def test_numbers_of_predictions(prediction: Prediction, number: float | None) -> None:
    plain = prediction_of(prediction)
    assert plain.get("number") == number
    assert "-0.0" not in json.dumps(plain, allow_nan=False)
