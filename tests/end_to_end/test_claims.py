"""The test of the tests: whatever is false in a result is noticed when it is held against brute force."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from butfor.methods import Exact
from butfor.result.status import Status
from claims import check_claims, check_proofs
from mixed_cases import mixed_case

EVERY = Exact(all_smallest=True)

# Each makes one thing wrong about a result that was proved.
LIES = {
    "another target": lambda one: replace(one, target=one.target + 1),
    "another class before": lambda one: replace(one, before=replace(one.before, label=one.before.label - 1)),
    "another probability": lambda one: replace(one, after=replace(one.after, probability=0.99999)),
    "another class after": lambda one: replace(one, after=one.before),
    "cheaper than it is": lambda one: replace(one, cost=one.cost / 2),
    "a bound that is too high": lambda one: replace(one, lower_bound=one.lower_bound + 0.1, status=Status.FOUND),
    "impossible": lambda one: replace(one, status=Status.IMPOSSIBLE),
    "an edit too few": lambda one: replace(one, edits=one.edits[1:]),
    "no proof": lambda one: replace(one, status=Status.FOUND),
    "an alternative too few": lambda one: replace(one, alternatives=one.alternatives[1:]),
    "an alternative twice": lambda one: replace(one, alternatives=(*one.alternatives, one.alternatives[0])),
    "an alternative that does nothing": lambda one: replace(one, alternatives=(one.alternatives[0][1:],)),
    "another necessity": lambda one: replace(one, necessity=tuple((edit, 1.0) for edit, _ in one.necessity)),
    "the least decisive": lambda one: replace(
        one, edits=one.alternatives[-1], alternatives=(*one.alternatives[:-1], one.edits)
    ),
}


@cache
def proved() -> tuple:
    """A question, and the truth and the result of a target that two sets of two edits or more change."""
    for seed in range(8):
        question = mixed_case("GCN", seed)
        for truth, result in zip(
            question.clear, question.ask([one.target for one in question.clear], EVERY), strict=True
        ):
            if len(result.alternatives) > 1 and len(result.edits) > 1:
                return question, truth, result
    raise AssertionError("no question has such an answer")


@pytest.mark.parametrize("lie", LIES)
def test_what_is_false_is_noticed(lie: str) -> None:
    question, truth, result = proved()
    check_proofs(question, [truth], [result])
    with pytest.raises(AssertionError):
        check_proofs(question, [truth], [LIES[lie](result)])


def test_what_is_found_where_nothing_is_possible_is_noticed() -> None:
    question, truth, result = proved()
    nothing = replace(truth, tenths=None, lead={})
    with pytest.raises(AssertionError):
        check_claims(question, nothing, result)
