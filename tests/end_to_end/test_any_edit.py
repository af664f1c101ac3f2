"""Deletions, additions and changed features together: every answer against every subset of them, made by hand."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from butfor.methods import CFGNN, PRBCD, Exact, Greedy, RandomPerturbation, RemoveSubgraph
from butfor.methods.exact import Tuning
from butfor.result.status import Status
from claims import check_claims, check_proved
from hand_edits import Cut, Join, Put
from method_list import ALL
from mixed_cases import KINDS, mixed_case
from sampling import split

SEEDS = range(8)


@pytest.mark.parametrize("seed", split(SEEDS, range(3)))
@pytest.mark.parametrize("kind", KINDS)
def test_exact_proves_what_brute_force_over_all_edits_finds(kind: str, seed: int) -> None:
    question = mixed_case(kind, seed)
    check_proved(question, question.clear, Exact(all_smallest=True))


@pytest.mark.slow
def test_the_random_questions_are_worth_asking() -> None:
    questions = [mixed_case(kind, seed) for kind in KINDS for seed in SEEDS]
    known = [(question, truth) for question in questions for truth in question.clear]
    # Targets of the wanted class are left out.
    assert len(known) > 0.8 * sum(question.data.num_nodes for question in questions) - 60
    answers: Counter = Counter()
    for question, truth in known:
        answers["impossible" if truth.tenths is None else "possible"] += 1
        answers["ties"] += len(truth.lead) > 1
        rows = [question.chosen[question.row(edits)] for edits in truth.lead]
        sets = [[act for act, on in zip(question.acts, row, strict=True) if on] for row in rows]
        answers.update({type(act) for acts in sets for act in acts})
        answers["group"] += any(isinstance(act, Cut) and len(act.edges) > 1 for acts in sets for act in acts)
        answers["mixed"] += any(len({type(act) for act in acts}) > 1 for acts in sets)
    worth = ("impossible", "possible", "ties", Cut, Join, Put, "group", "mixed")
    assert all(answers[what] >= 8 for what in worth), answers


@pytest.mark.parametrize("bounding_pays", [2, 10**9], ids=["bounds", "no bounds"])
@pytest.mark.parametrize("kind", split(["GCN", "PaperGCN", "weighted GCN"], ["GCN"]))
def test_exact_is_right_about_groups_costs_and_goals_where_only_edges_go(kind: str, bounding_pays: int) -> None:
    method = Exact(all_smallest=True, tuning=Tuning(bounding_pays=bounding_pays))
    questions = [mixed_case(kind, seed, only_cuts=True) for seed in range(10)]
    seen = Counter(result.status for one in questions for result in check_proved(one, one.clear, method))
    assert seen[Status.OPTIMAL] > 5
    assert seen[Status.IMPOSSIBLE] > 0


METHODS = {**ALL, "greedy, narrow": Greedy(width=2), "cf-gnn, fast": CFGNN(epochs=15, lr=0.3, beta=0.1, start=0.3)}
# Five of them, and every other one is asked: each method about two or three, which are others for the next method.
ASKED = ("GCN", "GraphSAGE", "GAT with attributes", "weighted GCN", "PaperGCN")


@pytest.mark.slow
@pytest.mark.parametrize(("method", "kind"), list(itertools.product(METHODS, ASKED))[::2])
def test_no_method_breaks_a_rule_or_beats_the_truth(kind: str, method: str) -> None:
    takes_long = isinstance(METHODS[method], CFGNN | Greedy | RemoveSubgraph | PRBCD)
    for seed in (0, 3) if takes_long else (0, 3, 4):
        question = mixed_case(kind, seed)
        results = question.ask([truth.target for truth in question.clear], METHODS[method])
        for truth, result in zip(question.clear, results, strict=True):
            check_claims(question, truth, result)


def test_greedy_and_the_gradient_find_answers_among_mixed_edits() -> None:
    for method in (Greedy(), CFGNN(epochs=80, lr=0.3, beta=0.1, start=0.3), RandomPerturbation()):
        kinds = set()
        for kind in ("GCN", "GraphSAGE"):
            question = mixed_case(kind, 0)
            known = [truth.target for truth in question.clear if truth.tenths is not None]
            results = question.ask(known, method)
            assert sum(result.found for result in results) >= 2, method
            kinds |= {type(edit) for result in results for edit in result.edits}
        assert len(kinds) > 1, method
