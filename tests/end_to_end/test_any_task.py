"""Whole graphs, links and numbers: every answer against every subset of the edits, made by hand."""

from __future__ import annotations

import itertools

import pytest

from butfor.errors import InputError
from butfor.methods import CFGNN, Exact
from butfor.problem.target import Pair
from claims import check_claims, check_proved
from method_list import ALL
from sampling import sampled
from task_cases import MODELS, TaskQuestion, task_case

SEEDS = range(4)


@pytest.mark.parametrize("kind", MODELS)
def test_exact_proves_what_brute_force_finds(kind: str) -> None:
    told = 0
    for seed in SEEDS:
        question = task_case(kind, seed)
        told += any(truth.tenths is not None for truth in question.clear)
        check_proved(question, question.clear, Exact(all_smallest=True))
    assert told >= 2, "most of these questions are too close to call"


def test_the_questions_are_worth_asking() -> None:
    truths = [truth for kind in MODELS for seed in SEEDS for truth in task_case(kind, seed).truths]
    costs = [truth.tenths for truth in truths if not truth.doubtful]
    assert len(costs) > 0.9 * len(truths)
    assert costs.count(10) > 10
    assert sum(tenths is not None and tenths > 10 for tenths in costs) > 15
    kinds = {edit.kind for truth in truths for edits in truth.lead for edit in edits}
    assert kinds == {"delete", "add"}


METHODS = {**ALL, "cf-gnn, fast": CFGNN(epochs=15, lr=0.3, beta=0.1, start=0.3)}


def refusal(method: str, question: TaskQuestion) -> str | None:
    """Why a method does not answer; None where it does."""
    if "ego" in method and question.target is None:
        return "a whole graph has no ego graph"
    if method == "remove-subgraph" and isinstance(question.target, Pair) and "forward" not in question.name:
        return "RemoveSubgraph asks one of PyG's explainers"
    return None


# A quarter of them in `make test`: each method has every task, and each model several methods.
@pytest.mark.parametrize(("method", "kind"), sampled(itertools.product(METHODS, MODELS), every=4))
def test_every_method_answers_truly_or_says_why_it_does_not(method: str, kind: str) -> None:
    for seed in range(2 if method in ("greedy", "random") else 1):
        question = task_case(kind, seed)
        if words := refusal(method, question):
            with pytest.raises(InputError, match=words):
                question.ask([question.target], METHODS[method])
            continue
        for truth in question.clear:
            (result,) = question.ask([truth.target], METHODS[method])
            check_claims(question, truth, result)


@pytest.mark.parametrize("task", ["graph", "link", "node"])
@pytest.mark.parametrize(
    "method",
    [ALL["greedy"], CFGNN(epochs=40, lr=2.0, beta=0.01, start=0.1), ALL["random"]],
    ids=lambda method: type(method).__name__,
)
def test_the_methods_find_something_in_every_task(method, task: str) -> None:
    questions = [task_case(kind, 0) for kind in MODELS if kind.startswith(task)]
    possible = [one for one in questions if one.truths[0].tenths is not None]
    assert any(one.ask([one.target], method)[0].found for one in possible)
