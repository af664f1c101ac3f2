"""Graphs of several node and edge types: every answer against every subset of the edges, deleted by hand."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
import torch

import butfor
from butfor.errors import InputError
from butfor.methods import CFGNN, Exact, Greedy, RemoveSubgraph
from butfor.session import Session
from claims import check_claims, check_proved
from method_list import ALL
from sampling import split
from typed_cases import CITES, IN, KINDS, WRITES, build, library, scores_without, typed_case, typed_edges

SEEDS = range(4)


@pytest.mark.parametrize(
    ("kind", "seed"),
    split(itertools.product(KINDS, SEEDS), [(kind, 0) for kind in KINDS if kind not in ("attributes", "GraphConv")]),
)
def test_exact_proves_what_brute_force_finds(kind: str, seed: int) -> None:
    question = typed_case(kind, seed)
    check_proved(question, question.clear, Exact(all_smallest=True))


@pytest.mark.slow
def test_the_random_questions_are_worth_asking() -> None:
    known = [truth for kind in KINDS for seed in SEEDS for truth in typed_case(kind, seed).clear]
    assert len(known) > 100
    seen = Counter(edit.relation for truth in known for edits in truth.lead for edit in edits)
    assert set(seen) == {WRITES, CITES, IN}
    assert sum(truth.tenths is None for truth in known) > 5
    assert sum(len(edits) > 1 for truth in known for edits in truth.lead) > 20


def test_brute_force_counts_edges_as_a_person_does() -> None:
    data = library(0)
    edges = typed_edges(data)
    assert Counter(relation for relation, _, _ in edges) == {WRITES: 4, CITES: 3, IN: 2}
    assert data[CITES].num_edges == 6
    assert all(relation != CITES or u < v for relation, u, v in edges)


METHODS = {name: method for name, method in ALL.items() if not isinstance(method, RemoveSubgraph)}
METHODS["greedy, narrow"] = Greedy(width=2)


@pytest.mark.slow
# Every other one: each method is asked about two or three models, which are others for the next method.
@pytest.mark.parametrize(
    ("method", "kind"), list(itertools.product(METHODS, ("SAGE", "attributes", "HGT", "to_hetero", "GAT")))[::2]
)
def test_no_method_breaks_a_rule_or_beats_the_truth(kind: str, method: str) -> None:
    question = typed_case(kind, list(METHODS).index(method) % 2 * 3)
    assert question.clear
    results = question.ask([truth.target for truth in question.clear], METHODS[method])
    for truth, result in zip(question.clear, results, strict=True):
        check_claims(question, truth, result)
        if isinstance(METHODS[method], CFGNN) and result.found:
            assert "Greedy searched in place of CFGNN" in result.note


@pytest.mark.parametrize("seed", split([0, 3], [0]))
@pytest.mark.parametrize("kind", ["SAGE", "attributes", "to_hetero"])
def test_a_subgraph_explainer_answers_for_layers_side_by_side(kind: str, seed: int) -> None:
    question = typed_case(kind, seed)
    targets = [truth.target for truth in question.clear]
    assert targets
    results = question.ask(targets, RemoveSubgraph(size=1, epochs=5))
    for truth, result in zip(question.clear, results, strict=True):
        check_claims(question, truth, result)


def test_a_subgraph_explainer_is_refused_where_it_has_no_layer_to_mask() -> None:
    data = library(0)
    with pytest.raises(InputError, match=r"RemoveSubgraph .* layers that have one for each relation"):
        butfor.explain(build("HGT", 0, data), data, 0, RemoveSubgraph(size=1), node_type="paper")


# A larger graph.


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["SAGE", "GAT", "GraphConv", "HGT", "RGCN", "to_hetero"])
def test_the_neighbourhood_gives_the_scores_of_the_whole_graph(kind: str) -> None:
    data = library(7, sizes=(40, 40, 40), edges=(45, 25, 30))
    model = build(kind, 3, data)
    session = Session.of(model, data, node_type="paper")
    random = np.random.default_rng(1)
    sizes, tried = [], 0
    for node in range(0, 40, 5):
        problem = session.problem(node)
        near = problem.edits.neighbourhood
        assert near.hops is not None
        assert problem.is_local
        sizes.append(near.num_nodes)
        count = len(problem.edits)
        if not count:
            continue
        sets = [[], *(sorted(random.choice(count, size=size)) for size in (1, 1, 2, 3)), list(range(count))]
        sets = [sorted(set(some)) for some in sets]
        tried += len(sets)
        gone = [[edit.edge for edit in problem.edits.records(some)] for some in sets]
        truth = scores_without(model, data, gone, "paper")[:, node]
        assert problem.ask(sets).logits.numpy() == pytest.approx(truth, abs=1e-4), node
    assert tried > 24
    assert max(sizes) < 90
    # A layer that all relations share is counted once for each of them, so that one sees too far rather than too near.
    assert sorted(sizes)[len(sizes) // 2] < (90 if kind == "RGCN" else 30)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["SAGE", "HGT"])
def test_answers_on_a_larger_graph_hold_when_the_edges_are_deleted_by_hand(kind: str) -> None:
    data = library(7, sizes=(40, 40, 40), edges=(45, 25, 30))
    model = build(kind, 3, data)
    with torch.no_grad():
        model.head.bias -= torch.from_numpy(scores_without(model, data, [()], "paper").mean(axis=(0, 1))).float()
    results = butfor.explain(model, data, range(0, 40, 3), Greedy(), node_type="paper")
    found = [result for result in results if result.found]
    assert found
    intact = scores_without(model, data, [()], "paper")[0]
    assert [result.before.label for result in results] == intact[::3].argmax(axis=1).tolist()
    gone = [[edit.edge for edit in result.edits] for result in found]
    for result, scores in zip(found, scores_without(model, data, gone, "paper"), strict=True):
        assert result.after.label == int(scores[result.target].argmax()) != result.before.label
