"""Exact search that cuts branches by bounds: it claims nothing else than without them, and needs fewer questions."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCN, GraphSAGE

import butfor
from butfor.methods import proof
from butfor.methods.exact import Tuning
from butfor.methods.proof import Proof
from butfor.oracle.gcn.oracle import GCNOracle
from butfor.problem.budget import UNLIMITED, Budget
from butfor.problem.goal import Goal
from butfor.result.verify import verify
from butfor.session import Session
from larger_graphs import star
from proofs import ALWAYS, EVERY, NEVER, clear, compare, without_close
from truth import Case, Pair, larger_case, random_case, random_model, solve, subsets

if TYPE_CHECKING:
    from butfor.oracle.base import Influence

KINDS = ("GCN", "PaperGCN")
ENOUGH = Budget(100_000)


def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts how often the oracle is asked for bounds, and how often after some edits."""
    calls: Counter[str] = Counter()

    def counting(self: GCNOracle, edits, pairs, removed, free, more) -> Influence | None:
        # A question about no edits only asks whether there are bounds at all.
        if len(free):
            calls["all"] += 1
            calls["renewed"] += len(removed) > 0
        return INFLUENCE(self, edits, pairs, removed, free, more)

    monkeypatch.setattr(GCNOracle, "influence", counting)
    return calls


INFLUENCE = GCNOracle.influence


@pytest.mark.slow
@pytest.mark.parametrize("method", [EVERY, butfor.Exact()], ids=repr)
@pytest.mark.parametrize("kind", KINDS)
def test_search_with_bounds_equals_brute_force(
    kind: str, method: butfor.Exact, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = clear(kind, range(32))
    calls = counted(monkeypatch)
    seen, bounded = compare(cases, replace(method, tuning=ALWAYS), budget=ENOUGH)
    assert seen["problems"] >= 180
    assert min(seen["impossible"], seen["size 1"]) >= 30
    assert min(seen["size 2"], seen["size 3"]) >= 5
    assert min(calls["all"], 3 * calls["renewed"]) >= seen["problems"]
    calls.clear()
    _, plain = compare(cases[:15], replace(method, tuning=NEVER), budget=ENOUGH)
    assert not calls
    # How much was tried for it may differ, and nothing else.
    assert len(plain) >= 80
    for one, other in zip(bounded, plain, strict=False):
        assert replace(one, evaluations=0) == replace(other, evaluations=0)


@pytest.mark.parametrize("kind", KINDS)
def test_sizes_whose_branches_grow_long(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are left to the search of the model's program, which claims nothing else than brute force."""
    calls: Counter[int] = Counter()
    sift = Proof._sift

    def counting(self: Proof, edits, size: int, limit: float, until_hit: bool) -> bool:
        calls[size] += 1
        return sift(self, edits, size, limit, until_hit)

    monkeypatch.setattr(Proof, "_sift", counting)
    monkeypatch.setattr(proof, "BRANCHED_FIRST", 1)
    monkeypatch.setattr(proof, "MUCH", 1)
    seen, _ = compare(clear(kind, range(6)), replace(EVERY, tuning=ALWAYS), budget=ENOUGH)
    assert seen["problems"] > 20
    assert sum(calls.values()) >= 5


@pytest.mark.parametrize(("seed", "lift"), [(0, 5), (1, 40), (2, 5), (3, 40)])
def test_impossible_at_once(seed: int, lift: float) -> None:
    """Of more sets than could ever be tried none can reach the goal, and a bound says so."""
    model, data = star(seed, size=0.05, lift=lift)
    budget = Budget(2000)
    result = butfor.explain(model, data, 0, butfor.Exact(), budget=budget)
    assert (result.status.value, result.lower_bound) == ("impossible", None)
    problem = Session.of(model, data).problem(0)
    assert 2 ** len(problem.edits) > 10**13
    random = np.random.default_rng(seed)
    sets = [np.flatnonzero(random.random(len(problem.edits)) < share) for share in np.linspace(0, 1, 2000)]
    assert not replace(problem, oracle=problem.oracle.general).ask(sets).reached.any()
    assert butfor.explain(model, data, 0, butfor.Greedy(), budget=budget).status.value == "unknown"
    assert butfor.explain(model, data, 0, butfor.Exact(tuning=NEVER), budget=budget).status.value == "unknown"


def hubs(seed: int) -> Case:
    """Hubs at the edge of what node 0 sees, whose leaves are equivalent if they cost the same."""
    random = np.random.default_rng(seed)
    layers = 1 + seed % 2
    near, far = ([(0, 1), (0, 2)], (1, 2)) if layers == 1 else ([(0, 1), (1, 2), (1, 3)], (2, 3))
    leaves = range(len(near) + 1, 11)
    pairs: list[Pair] = [*near, *((far[int(random.random() < 0.4)], leaf) for leaf in leaves)]
    edge_index = torch.tensor([*pairs, *(pair[::-1] for pair in pairs)]).T.contiguous()
    data = Data(x=torch.from_numpy(random.normal(size=(11, 3)) * 2).float(), edge_index=edge_index)
    if seed % 3 == 0:
        low, high = edge_index.sort(dim=0).values
        data.edge_weight = 0.5 + (low + high // 3) % 2
    classes = 2 + seed % 3
    model = random_model("GCN", 3 * int(random.integers(10**6)) + layers - 1, classes, data)
    tenths = {pair: int(random.choice([4, 10])) for pair in pairs}
    return Case(f"hubs, seed {seed}", model, data, classes, False, tenths=tenths)


@pytest.mark.slow
@pytest.mark.parametrize("tuning", [ALWAYS, Tuning(bounding_pays=5)], ids=lambda one: str(one.bounding_pays))
def test_bounds_with_costs_and_equivalent_edits(tuning: Tuning, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    equivalent = 0
    cases = []
    for case in map(hubs, range(40)):
        problem = Session.of(case.model, case.data, **case.asked).problem(0)
        equivalent += len(problem.edits) - len(np.unique(problem.oracle.equivalence_classes(problem.edits)))
        cases.append((case, [truth for truth in solve(case) if truth.node < 4 and not truth.close]))
    assert equivalent >= 100
    for kind, seed in itertools.product(KINDS, range(100, 110)):
        case = random_case(kind, seed)
        case = replace(case, tenths={pair: int(random.choice([1, 2, 3, 10, 13])) for pair in case.links})
        cases.append(without_close(case, solve(case)))
    calls = counted(monkeypatch)
    seen, _ = compare(cases, replace(EVERY, tuning=tuning), budget=ENOUGH)
    assert seen["problems"] >= 200
    assert min(seen["impossible"], seen["size 1"], seen["size 2"], seen["size 3"]) >= 15
    assert calls["renewed"] >= 100


@pytest.mark.slow
@pytest.mark.parametrize("limit", [50, 200, 100_000])
def test_neither_chunks_nor_threads_matter(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Larger graphs for budgets that end the search, smaller ones for a budget that does not.
    ends = limit <= 200
    cases = [larger_case(seed) for seed in range(4)] if ends else [random_case("GCN", seed) for seed in range(8)]
    # So that there is work for two threads even where chunks are small.
    monkeypatch.setattr("butfor.oracle.extending.WORTH_A_THREAD", 1)
    calls = counted(monkeypatch)
    runs = []
    for threads, chunk in ((1, 1), (1, 7), (2, 7), (2, 1024)):
        tuning = replace(ALWAYS, first_chunk=chunk, largest_chunk=chunk)
        methods = [replace(method, threads=threads, tuning=tuning) for method in (butfor.Exact(), EVERY)]
        results = []
        for case, method in itertools.product(cases, methods):
            nodes = range(0, case.data.num_nodes, 5)
            rules = {**case.asked, "goal": Goal()}
            results += butfor.explain(case.model, case.data, nodes, method, **rules, budget=Budget(limit))
        runs.append(results)
    assert all(run == runs[0] for run in runs)
    assert all(result.evaluations <= limit for result in runs[0])
    seen = Counter(result.status.value for result in runs[0])
    assert seen["optimal"] >= 5
    assert seen["unknown"] + seen["found"] >= (5 if ends else 0)
    assert calls["all"] >= len(runs[0])
    # Fifty evaluations are spent before anything is bounded anew.
    assert calls["renewed"] >= (20 if limit > 50 else 0)


def test_budget_that_ends_with_the_first_size() -> None:
    """As many evaluations as there are kinds of edits: single edits take them all."""
    model, data = star(0)
    problem = Session.of(model, data).problem(0)
    limit = len(np.unique(problem.oracle.equivalence_classes(problem.edits)))
    result = butfor.explain(model, data, 0, butfor.Exact(), budget=Budget(limit))
    assert not result.found
    assert result.evaluations <= limit


def test_no_bound_spends_more_than_is_left() -> None:
    """One bound on all sets of a wide model costs several evaluations."""
    torch.manual_seed(0)
    ends = torch.tensor([(0, 1), *((1, leaf) for leaf in range(2, 12)), (2, 3), (4, 12)]).T
    data = Data(x=torch.randn(13, 8), edge_index=torch.cat([ends, ends.flip(0)], dim=1))
    model = GraphSAGE(8, 32, 2, 3).eval()
    for limit in (98, 99, 100):
        result = butfor.explain(model, data, 0, butfor.Exact(tuning=ALWAYS), budget=Budget(limit))
        assert result.evaluations <= limit


def nearly_equal(seed: int, size: float, layers: int) -> tuple[GCN, Data]:
    """Two classes of nearly the same large score, in single precision: what the model says is the truth."""
    random = np.random.default_rng(seed)
    a, b = random.normal(size=9) + 2, random.normal(size=9) * 1e-4
    pairs = [(0, leaf) for leaf in range(1, 9)]
    edge_index = torch.tensor([*pairs, *(pair[::-1] for pair in pairs)]).T.contiguous()
    data = Data(x=torch.from_numpy(np.stack([a, a, a, b], axis=1)).float(), edge_index=edge_index)
    model = GCN(4, 4, layers, 2, act=None).eval()
    with torch.no_grad():
        for conv in model.convs[:-1]:
            conv.lin.weight[:] = torch.eye(4)
        # The same sum, rounded in two ways.
        weights = [[size, 0.0, 0.0, 1.0], [0.3 * size, 0.3 * size, 0.4 * size, -1.0]]
        model.convs[-1].lin.weight[:] = torch.tensor(weights)
        model.convs[-1].bias[:] = torch.tensor([2e-7 * size, 0.0])
    return model, data


@pytest.mark.slow
@pytest.mark.parametrize("layers", [1, 2])
def test_bounds_leave_room_for_the_rounding_of_large_scores(layers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In float64 no set reaches the goal, in float32 some do: the model's word counts, and bounds must not deny it.

    How scores are rounded depends on the processor, and on what else is in a batch, so the truth is what the model says
    of every set alone, and which seeds show what the room is for is not known beforehand.
    """
    seen: Counter[str] = Counter()
    for seed, size in itertools.product(range(8), (1e4, 1e5)):
        model, data = nearly_equal(seed, size, layers)
        problem = Session.of(model, data).problem(0)
        sets = subsets(len(problem.edits))
        reached = np.array([verify(problem, np.flatnonzero(chosen)).reached for chosen in sets])
        truth = ("optimal", int(sets.sum(axis=1)[reached].min())) if reached.any() else ("impossible", None)
        # Bounds count as evaluations, and so many take more than trying all sets would: no limit ends the search.
        for tuning in (NEVER, ALWAYS):
            result = butfor.explain(model, data, 0, butfor.Exact(tuning=tuning), budget=UNLIMITED)
            assert (result.status.value, result.size) == truth, (seed, size, tuning)
        seen[truth[0]] += 1
        if reached.any():
            with monkeypatch.context() as patch:
                patch.setattr("butfor.methods.proof.SLACK", 0.0)
                without = butfor.explain(model, data, 0, butfor.Exact(tuning=ALWAYS), budget=UNLIMITED)
            seen["saved"] += (without.status.value, without.size) != truth
    assert seen["optimal"] >= 5
    # Without that room the bounds would prove what is not true.
    assert seen["saved"] >= 1
