"""Any graph neural network is explained, whatever its layers, and is as it was afterwards.

The truth is in `gnns`: edges cut by hand from plain lists, and a model that was never run before.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from gnns import (
    CLASSES,
    GLOBAL,
    LOCAL,
    WIDTH,
    Kind,
    Shared,
    Stack,
    Then,
    Truth,
    all_scores,
    brute_force,
    graph,
    links,
    ring,
    scores_without,
    small,
    tiny,
)
from torch import Tensor, nn
from torch_geometric import nn as pyg

import butfor
from butfor.methods.cf_gnn import INSTEAD
from butfor.methods.greedy import NO_GRADIENT
from butfor.posing import WHOLE_GRAPH
from butfor.space import EditSpace

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from torch_geometric.data import Data

    from butfor.counterfactual import Counterfactual
    from butfor.problem import Problem

# Torch says once that nobody checks its sparse tensors; GraphUNet makes some.
SPARSE = pytest.mark.filterwarnings("ignore:Sparse invariant checks")

RELAXED = [name for name, kind in LOCAL.items() if kind.relaxed]
BOTH = pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])


def pose(kind: Kind, data: Data, nodes: Iterable[int], directed: bool) -> list[Problem]:
    explainer = butfor.Explainer.of(kind.make(data), data)
    assert explainer.graph.directed == directed
    return [explainer.poser.pose((node,)) for node in nodes]


def pairs_of(problem: Problem, chosen: Sequence[int]) -> list[tuple[int, int]]:
    return [(edit.source, edit.target) for edit in problem.edits.records(chosen)]


@cache
def posed(name: str, directed: bool) -> list[Problem]:
    """A node of the ring, the end of a short way across, and a leaf."""
    return pose(LOCAL[name], ring(directed), (7, 13, 34), directed)


@BOTH
@pytest.mark.parametrize("name", LOCAL)
def test_the_neighbourhood_reproduces_the_whole_graph(name: str, directed: bool) -> None:
    kind, data = LOCAL[name], ring(directed)
    random = np.random.default_rng(1)
    for problem in posed(name, directed):
        (node,) = problem.target
        count = len(problem.edits)
        sets = [np.flatnonzero(random.random(count) < chance) for chance in (0.0, 0.1, 0.3, 0.6, 1.0)]
        for chosen, scores in zip(sets, problem.ask(sets).logits, strict=True):
            truth = scores_without(kind, data, pairs_of(problem, chosen), directed)[node]
            assert torch.allclose(scores, truth, rtol=1e-5, atol=2e-5), (node, chosen)
        # What was left out cannot matter, or nothing would be proved.
        outside = sorted(set(links(data, directed)) - set(pairs_of(problem, range(count))))
        some = pairs_of(problem, sets[2])
        here, there = (scores_without(kind, data, gone, directed)[node] for gone in (some, [*some, *outside]))
        assert torch.allclose(here, there, rtol=1e-5, atol=2e-5), node
        if not directed:
            assert outside, "the neighbourhood is the whole graph, so nothing was tested"
            assert problem.edits.neighbourhood.num_nodes < data.num_nodes
            assert WHOLE_GRAPH not in problem.note


@BOTH
@pytest.mark.parametrize("name", RELAXED)
def test_weights_of_zero_and_one_are_deletion(name: str, directed: bool) -> None:
    kind, data, problems = LOCAL[name], ring(directed), posed(name, directed)
    oracle = problems[0].oracle
    assert all(problem.oracle is oracle for problem in problems)
    together = oracle.relax([problem.edits for problem in problems])
    assert together is not None
    random = np.random.default_rng(2)
    for chance in (0.0, 0.15, 0.5, 1.0):
        gone = [random.random(len(problem.edits)) < chance for problem in problems]
        truths = [
            scores_without(kind, data, pairs_of(problem, np.flatnonzero(one)), directed)[problem.target[0]]
            for problem, one in zip(problems, gone, strict=True)
        ]
        weights = torch.from_numpy(1.0 - np.concatenate(gone)).float()
        assert torch.allclose(together.logits(weights), torch.stack(truths), rtol=1e-4, atol=1e-4), chance
        alone = oracle.relax([problems[0].edits]).logits(weights[: len(problems[0].edits)])
        assert torch.allclose(alone, truths[0][None], rtol=1e-4, atol=1e-4), chance
    for problem in problems:
        gradient = problem.gradient()
        assert gradient is not None
        assert np.isfinite(gradient).all()
        assert (np.abs(gradient) > 1e-6).any()


@pytest.mark.parametrize("name", [name for name, kind in LOCAL.items() if not kind.relaxed])
def test_no_relaxation_is_offered_where_none_is_faithful(name: str) -> None:
    for problem in posed(name, False):
        assert problem.oracle.relax([problem.edits]) is None
        assert problem.gradient() is None


@cache
def truths_of(name: str, directed: bool) -> list[Truth]:
    return brute_force(LOCAL[name], small(directed), directed)


def check_exact(results: list[Counterfactual], truths: list[Truth]) -> None:
    """The very sets that brute force finds, or the proof that there are none."""
    clear = [(result, truth) for result, truth in zip(results, truths, strict=True) if not truth.close]
    assert len(clear) >= len(truths) - 2, "too many near ties to learn anything"
    assert any(truth.size for _, truth in clear), "no edges decide anything, so nothing was tested"
    for result, truth in clear:
        assert result.before.label == truth.before
        assert result.size == truth.size, str(result)
        assert result.status.value == ("impossible" if truth.size is None else "optimal"), str(result)
        if truth.size is not None:
            assert result.lower_bound == truth.size
            others = [frozenset((edit.source, edit.target) for edit in edits) for edits in result.alternatives]
            assert {frozenset(result.removed_edges), *others} == truth.smallest, str(result)


@BOTH
@pytest.mark.parametrize("name", LOCAL)
def test_exact_equals_brute_force(name: str, directed: bool) -> None:
    kind, data = LOCAL[name], small(directed)
    results = butfor.explain(kind.make(data), data, range(6), butfor.Exact(all_smallest=True))
    check_exact(results, truths_of(name, directed))
    check_by_hand(kind, data, directed, results, truths_of(name, directed))


@pytest.mark.parametrize("name", LOCAL)
def test_brute_force_side_by_side_is_one_after_the_other(name: str) -> None:
    sets, scores = all_scores(LOCAL[name], small(False), False)
    for number in (0, 3, 100, len(sets) - 1):
        alone = scores_without(LOCAL[name], small(False), sets[number], False)
        assert np.allclose(alone.numpy(), scores[number], atol=1e-5)


def check_by_hand(
    kind: Kind, data: Data, directed: bool, results: list[Counterfactual], truths: list[Truth] | None = None
) -> int:
    """Cut the edges by hand: the prediction is what the result says. Returns how many were found."""
    for number, result in enumerate(results):
        intact = scores_without(kind, data, (), directed)[result.target]
        assert result.before.label == int(intact.argmax())
        assert result.before.probability == pytest.approx(float(intact.softmax(0).max()), abs=1e-4)
        assert (result.after is None) == (not result.removed_edges)
        if result.after is not None:
            assert set(result.removed_edges) <= set(links(data, directed))
            scores = scores_without(kind, data, result.removed_edges, directed)[result.target]
            assert result.after.label == int(scores.argmax()) != result.before.label, str(result)
            assert result.after.probability == pytest.approx(float(scores.softmax(0).max()), abs=1e-4)
        if truths is not None and not truths[number].close:
            least = truths[number].size
            assert not result.found or result.size >= least
            assert result.status.value != "impossible" or least is None
            assert result.status.value != "optimal" or result.size == least
            assert least is None or result.lower_bound <= least
    return sum(result.found for result in results)


@BOTH
@pytest.mark.parametrize("name", LOCAL)
def test_counterfactuals_of_other_methods_are_verified(name: str, directed: bool) -> None:
    kind, data = LOCAL[name], small(directed)
    for method, note in ((butfor.Greedy(width=2), NO_GRADIENT), (butfor.CFGNN(epochs=30, lr=1.0), INSTEAD)):
        results = butfor.explain(kind.make(data), data, range(6), method)
        assert check_by_hand(kind, data, directed, results, truths_of(name, directed)) >= 2
        for result in results:
            searched = result.evaluations > 0 and result.edges > 2
            assert (note in result.note) == (not kind.relaxed and searched), result.note


@SPARSE
@pytest.mark.parametrize("name", GLOBAL)
def test_what_sees_all_nodes_is_searched_on_the_whole_graph(name: str) -> None:
    kind, data = GLOBAL[name], tiny()
    truths = brute_force(kind, data, False)
    for method in (butfor.Exact(all_smallest=True), butfor.Greedy(width=2), butfor.CFGNN(epochs=30, lr=1.0)):
        results = butfor.explain(kind.make(data), data, range(5), method)
        check_by_hand(kind, data, False, results, truths)
        for result in results:
            assert WHOLE_GRAPH in result.note
            assert (result.nodes, result.edges) == (5, 6)
            if isinstance(method, butfor.CFGNN):
                assert (INSTEAD in result.note) == (not kind.relaxed)
        if isinstance(method, butfor.Exact):
            check_exact(results, truths)


@SPARSE
@pytest.mark.parametrize("name", GLOBAL)
def test_what_sees_all_nodes_is_found_out_on_a_large_graph_too(name: str) -> None:
    kind, data = GLOBAL[name], ring(False)
    random = np.random.default_rng(3)
    (problem,) = pose(kind, data, [7], False)
    assert WHOLE_GRAPH in problem.note
    assert len(problem.edits) == len(links(data, False)) == 43
    sets = [np.flatnonzero(random.random(43) < chance) for chance in (0.0, 0.2, 0.5)]
    for chosen, scores in zip(sets, problem.ask(sets).logits, strict=True):
        truth = scores_without(kind, data, pairs_of(problem, chosen), False)[7]
        assert torch.allclose(scores, truth, rtol=1e-5, atol=2e-5)
