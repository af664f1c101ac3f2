"""Graphs of several types, every kind of edit, task and model: each answer against every subset of the edits."""

from __future__ import annotations

from collections import Counter

import pytest

from butfor.methods import Exact, RemoveSubgraph
from claims import check_claims, check_proved
from method_list import ALL
from sampling import split
from typed_mixed_cases import ENCODERS, TASKS, typed_question

EDITS = ("delete", "add", "change", "mixed")
# Every kind of edit for each task, and for each encoder: there the tasks take turns. Attributes have one task.
CASES = [("HeteroConv", what, edits) for what in TASKS for edits in EDITS]
CASES += [("attributes", "node class", edits) for edits in EDITS]
OTHERS = [(kind, what) for kind in ENCODERS if kind not in ("HeteroConv", "attributes") for what in TASKS]
CASES += [(*case, EDITS[(number + number // 4) % len(EDITS)]) for number, case in enumerate(OTHERS)]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "what", "edits"), CASES)
def test_exact_proves_what_brute_force_finds(kind: str, what: str, edits: str) -> None:
    question = typed_question(kind, what, edits)
    assert question.clear, "too close to call"
    check_proved(question, question.clear, Exact(all_smallest=True))


MIXED = range(1, 6)


@pytest.mark.parametrize("seed", split(MIXED, MIXED[:3]))
def test_exact_proves_what_brute_force_finds_among_mixed_edits(seed: int) -> None:
    question = typed_question("HeteroConv", "node class", "mixed", seed)
    check_proved(question, question.clear, Exact(all_smallest=True))


def test_the_questions_about_mixed_edits_are_worth_asking() -> None:
    questions = [typed_question("HeteroConv", "node class", "mixed", seed) for seed in MIXED[:3]]
    truths = [truth for question in questions for truth in question.clear]
    assert len(truths) > 0.8 * sum(len(question.targets) for question in questions)
    known = [edits for truth in truths for edits in truth.lead]
    assert {edit.kind for edits in known for edit in edits} == {"delete", "add", "change"}
    assert any(len({edit.kind for edit in edits}) > 1 for edits in known)


@pytest.mark.slow
def test_the_questions_are_worth_asking() -> None:
    questions = [typed_question(*case) for case in CASES]
    questions += [typed_question("HeteroConv", "node class", "mixed", seed) for seed in MIXED]
    truths = [truth for question in questions for truth in question.clear]
    assert len(truths) > 0.8 * sum(len(question.targets) for question in questions)
    known = [edits for truth in truths for edits in truth.lead]
    kinds = Counter(edit.kind for edits in known for edit in edits)
    assert all(kinds[kind] > 20 for kind in ("delete", "add", "change")), kinds
    assert {edit.relation[1] for edits in known for edit in edits if edit.kind == "add"} == {
        "writes",
        "cites",
        "reviews",
    }
    assert {edit.node_type for edits in known for edit in edits if edit.kind == "change"} == {"author", "paper"}
    assert sum(len({edit.kind for edit in edits}) > 1 for edits in known) > 10
    assert sum(truth.tenths is None for truth in truths) > 5


METHODS = {name: method for name, method in ALL.items() if not isinstance(method, RemoveSubgraph)}


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("what", ["node class", "link", "graph class"])
def test_no_method_breaks_a_rule_or_beats_the_truth(what: str, method: str) -> None:
    if "ego" in method and what == "graph class":
        pytest.skip("a whole graph has no ego graph")
    # Every other kind of edits, which are others for the next method.
    for edits in EDITS[list(METHODS).index(method) % 2 :: 2]:
        question = typed_question("HeteroConv", what, edits)
        results = question.ask([truth.target for truth in question.clear], METHODS[method])
        for truth, result in zip(question.clear, results, strict=True):
            check_claims(question, truth, result)
