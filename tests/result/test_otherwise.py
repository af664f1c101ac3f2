"""When the answer is no: another edit space is searched too, and the result stays what it is."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import butfor
from butfor.errors import InputError, StoreError
from butfor.result.counterfactual import Counterfactual
from butfor.testing import links, random_problem

if TYPE_CHECKING:
    from collections.abc import Iterable

OTHER = butfor.EditSpace(add=butfor.Within(2))


@pytest.fixture(scope="module")
def results() -> list[tuple[Counterfactual, Counterfactual]]:
    """Results without and with another edit space."""
    pairs = []
    for seed in range(4):
        model, data = random_problem(seed, nodes=10)
        plain = butfor.explain(model, data, range(10))
        pairs += zip(plain, butfor.explain(model, data, range(10), otherwise=OTHER), strict=True)
    return pairs


def test_the_result_itself_stays_what_it_is(results: list[tuple[Counterfactual, Counterfactual]]) -> None:
    helped = 0
    for plain, result in results:
        assert replace(result, otherwise=None, note=plain.note) == plain
        without = plain.status.value in ("impossible", "unknown")
        assert (result.otherwise is not None) == without
        if result.otherwise is None:
            assert result.note == plain.note
            continue
        other = result.otherwise
        assert (other.target, other.before) == (result.target, result.before)
        assert other.space_id != result.space_id
        if other.found:
            helped += 1
            assert other.verified_on == "whole graph"
            assert f"a counterfactual of {other.size} edit" in result.note
            assert "deletions and additions within 2 hops" in result.note
            assert f"It would be {other.after}" in str(result)
    assert helped >= 3


def test_it_is_what_a_search_of_that_edit_space_finds(results: list[tuple[Counterfactual, Counterfactual]]) -> None:
    model, data = random_problem(0, nodes=10)
    mine = [result for _, result in results[:10] if result.otherwise is not None]
    assert mine
    for result in mine:
        assert result.otherwise == butfor.explain(model, data, result.target, space=OTHER)


def notes(results: Iterable[Counterfactual]) -> dict[tuple[str, str], str]:
    """What is said of each two statuses: of the result, and of that in the other edit space."""
    return {
        (result.status.value, result.otherwise.status.value): result.note
        for result in results
        if result.otherwise is not None
    }


def test_what_the_note_says_follows_from_both(results: list[tuple[Counterfactual, Counterfactual]]) -> None:
    said = notes(result for _, result in results)
    model, data = random_problem(6)
    said |= notes(butfor.explain(model, data, range(8), otherwise=OTHER))
    # With little to spend less is proved, and with very little less is found.
    for seed, limit in itertools.product(range(4), (200, 20)):
        model, data = random_problem(seed, nodes=10)
        said |= notes(butfor.explain(model, data, range(10), otherwise=OTHER, budget=butfor.Budget(limit)))
    model, data = random_problem(11, nodes=14)
    said |= notes(butfor.explain(model, data, range(14), otherwise=OTHER, budget=butfor.Budget(400)))
    nothing = butfor.EditSpace(protected=links(data))
    said |= notes(butfor.explain(model, data, range(10), otherwise=nothing, budget=butfor.Budget(5)))
    assert {*said} == {*itertools.product(("impossible", "unknown"), ("optimal", "found", "impossible", "unknown"))}
    for (first, second), note in said.items():
        assert ("deletions do it" in note) == (first == "impossible")
        assert ("deletions were found that do it" in note) == (first == "unknown")
        assert ("a counterfactual of" in note) == (second in ("optimal", "found"))
        assert ("it is proved that none costs less" in note) == (second == "optimal")
        assert ("it is proved that nothing does" in note) == (second == "impossible")
        assert ("nor was anything found" in note) == (second == "unknown")


def test_other_rules_for_the_same_edits_are_told_apart() -> None:
    model, data = butfor.example()
    result = butfor.explain(model, data, 605, space=butfor.EditSpace(max_edits=1), otherwise=butfor.EditSpace())
    assert "No allowed deletions do it; with deletions under the other rules a counterfactual of 2" in result.note


def test_it_survives_a_file(results: list[tuple[Counterfactual, Counterfactual]]) -> None:
    result = next(result for _, result in results if result.otherwise is not None and result.otherwise.found)
    plain = json.loads(json.dumps(result.to_dict()))
    assert Counterfactual.from_dict(plain) == result
    # What was written before there was such a field.
    del plain["otherwise"]
    assert Counterfactual.from_dict(plain) == replace(result, otherwise=None)


@pytest.mark.parametrize("damage", ["target", "nested", "found", "text"])
def test_one_that_contradicts_the_result_is_refused(
    damage: str, results: list[tuple[Counterfactual, Counterfactual]]
) -> None:
    result = next(result for _, result in results if result.otherwise is not None and result.otherwise.found)
    plain, other = result.to_dict(), result.otherwise.to_dict()
    if damage == "target":
        plain["otherwise"] = {**other, "target": other["target"] + 1}
    elif damage == "nested":
        plain["otherwise"] = {**plain, "otherwise": other}
    elif damage == "found":
        plain = {**other, "otherwise": other}
    else:
        plain["otherwise"] = "nothing"
    with pytest.raises(StoreError):
        Counterfactual.from_dict(plain)


def test_it_must_be_an_edit_space() -> None:
    model, data = random_problem(0)
    with pytest.raises(InputError, match=r"otherwise is 3; give a butfor\.EditSpace"):
        butfor.explain(model, data, 0, otherwise=3)
    with pytest.raises(InputError, match="node 99 is not in this graph"):
        butfor.prepare(model, data, otherwise=butfor.EditSpace(protected=[(0, 99)]))
