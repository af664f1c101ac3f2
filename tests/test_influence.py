"""Bounds on what further deletions can do: they hold for every subset, and a search that trusts them is exact.

The truth comes from `brute`, in double precision; on graphs too large for it, from the general oracle.
"""

from __future__ import annotations

import copy
import itertools
from collections import Counter
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCN

import butfor
import butfor.methods.exact as module
import butfor.oracle.gcn.oracle
from truth import Case, Pair, Truth, larger_case, pairs_of, random_case, random_model, scores_after, solve, subsets
from butfor.oracle.gcn.oracle import GCNOracle
from butfor.oracle.general import ModelOracle
from butfor.problem.budget import Budget
from butfor.problem.goal import Goal
from butfor.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    from butfor.methods import Method
    from butfor.oracle.base import Influence
    from butfor.problem.problem import Problem

# As `module.WORTH_A_BOUND`: wherever there are two edits left to choose from (with none left, 0 fails), and nowhere.
ALWAYS, NEVER = 2, 10**30

# Rounding in double precision, of scores that are at most some tens.
ROUNDING = 1e-9

EVERY = butfor.Exact(all_smallest=True)
KINDS = ("GCN", "PaperGCN")


@cache
def solved(kind: str, seed: int) -> tuple[Case, list[Truth]]:
    """A random case and the truth about its nodes, but for those too close to call."""
    case = random_case(kind, seed)
    return case, [truth for truth in solve(case) if not truth.close]


def double(case: Case) -> Case:
    """The same in double precision."""
    data = case.data.clone()
    data.x = data.x.double()
    if data.edge_weight is not None:
        data.edge_weight = data.edge_weight.double()
    return replace(case, model=copy.deepcopy(case.model).double(), data=data)


def problems(case: Case) -> Iterator[tuple[Problem, NDArray[np.float64], NDArray[np.int64]]]:
    """The problem of each node, the margin after every subset of the case's edges, and the bit of each edit."""
    number = {pair: i for i, pair in enumerate(case.free)}
    scores = torch.from_numpy(scores_after(case, case.free, subsets(len(number))))
    poser = Session.of(case.model, case.data, **case.asked).builder
    for node in range(case.data.num_nodes):
        if int(scores[0, node].argmax()) == case.wanted:
            continue
        problem = poser.build((node,))
        bits = [1 << number[pairs_of(problem.edits.records([edit]))[0]] for edit in range(len(problem.edits))]
        margins = problem.goal.margin(scores[:, node], problem.before).numpy()
        yield problem, margins, np.array(bits, dtype=np.int64)


def splits(random: np.random.Generator, count: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """What is removed and what is free, in any order: nothing or some, all that is left or not."""
    for some, rest in itertools.product((0, min(2, count - 1)), (0, count // 3)):
        order = random.permutation(count)
        yield order[:some], order[some : max(count - rest, some + 1)]


def check_bounds(
    problem: Problem,
    margins: NDArray[np.float64],
    bits: NDArray[np.int64],
    removed: NDArray[np.int64],
    free: NDArray[np.int64],
    more: int,
) -> tuple[int, Influence]:
    """Compare with every subset; how many comparisons that were, and what was compared."""
    bounds = problem.influence(removed, free, more)
    assert bounds is not None
    assert bounds.limits.shape == free.shape
    chosen = subsets(len(free))
    size = chosen.sum(axis=1)
    after = margins[bits[removed].sum() + chosen @ bits[free]]
    rows = np.arange(len(after))
    # The search also goes on from where edits have raised the margin, so the fall from the highest point counts.
    highest = after.copy()
    for i in range(len(free)):
        without = rows[~chosen[:, i]]
        highest[without | 1 << i] = np.maximum(highest[without | 1 << i], highest[without])
    falls = (highest - after)[size <= more]
    assert falls.max() <= bounds.total + ROUNDING
    count = len(falls)
    for i, limit in enumerate(bounds.limits):
        before = rows[~chosen[:, i] & (size < more)]
        drops = after[before] - after[before | 1 << i]
        assert drops.max() <= limit + ROUNDING
        count += len(drops)
    return count, bounds


def sound(kind: str, seeds: Iterable[int]) -> Counter[str]:
    """Check the bounds of all nodes of these cases, and count what they were."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        case = double(random_case(kind, seed))
        random = np.random.default_rng(seed)
        marks = {*case.features, f"jk {getattr(case.model, 'jk_mode', '-')}"}
        marks.add(f"{getattr(case.model, 'num_layers', 3)} layers")
        for problem, margins, bits in problems(case):
            assert type(problem.oracle) is GCNOracle
            if not len(bits):
                continue
            seen.update(marks)
            seen["problems"] += 1
            for removed, free in splits(random, len(bits)):
                for more in {1, 2, 3, len(free)}:
                    count, bounds = check_bounds(problem, margins, bits, removed, free, more)
                    seen["comparisons"] += count
                    if more > 1 or len(removed):
                        continue
                    # What one edit does at most, any of them: a bound far above that would be of no use.
                    largest = np.abs(margins[0] - margins[bits]).max()
                    seen["limits"] += len(free)
                    seen["limits near the largest effect"] += int((bounds.limits <= 5 * largest).sum())
                    seen["zeros"] += int((bounds.limits == 0).sum())
    return seen


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_hold_for_every_subset(kind: str) -> None:
    seen = sound(kind, range(40))
    assert seen["comparisons"] >= 300_000
    least = dict.fromkeys(["directed", "undirected", "weighted", "loops", "duplicates", "wanted"], 15)
    least |= dict.fromkeys([f"{count} classes" for count in range(2, 6)], 15)
    if kind == "GCN":
        least |= dict.fromkeys(["jk None", "jk cat", "jk last", "1 layers", "2 layers", "3 layers"], 15)
    assert {what: seen[what] for what in least if seen[what] < least[what]} == {}
    # Sound alone is not enough: infinity is. About half lie within five times what the strongest edit does.
    assert seen["limits near the largest effect"] >= 0.45 * seen["limits"]
    assert seen["zeros"] <= 0.2 * seen["limits"]


def star(seed: int, size: float = 1.0, lift: float = 0.0) -> tuple[GCN, Data]:
    """Node 0 among 40 others, some of them joined; ``lift`` speaks for its class, whatever the edges say."""
    random = np.random.default_rng(seed)
    pairs = [*((0, leaf) for leaf in range(1, 41)), *((leaf, leaf + 1) for leaf in range(1, 40, 8))]
    x = torch.from_numpy(random.normal(size=(41, 4)) * size).float()
    data = Data(x=x, edge_index=torch.tensor([*pairs, *(pair[::-1] for pair in pairs)]).T.contiguous())
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = GCN(4, 8, 1 + seed % 2, 3).eval()
    with torch.no_grad():
        model.convs[-1].bias[model(data.x, data.edge_index)[0].argmax()] += lift
    return model, data


NEXT: dict[str, Callable[[NDArray[np.float64]], int]] = {
    "down": lambda margins: int(margins.argmin()),
    "up": lambda margins: int(margins.argmax()),
    "any": lambda margins: len(margins) * 5 // 8,
}


@pytest.mark.parametrize("way", NEXT)
@pytest.mark.parametrize("seed", [0, 1])
def test_bounds_hold_along_ways_through_a_larger_graph(seed: int, way: str) -> None:
    """Of 45 edges many more may go than the kernel tells apart (`gcn.influence.MANY`)."""
    model, data = star(seed)
    data.x = data.x.double()
    fast = Session.of(model.double(), data).builder.build((0,))
    assert type(fast.oracle) is GCNOracle
    problem = replace(fast, oracle=fast.oracle.general)
    for removed in ([], [3, 11, 44]):
        free = np.setdiff1d(np.arange(len(problem.edits)), removed)
        bounds = {more: fast.influence(removed, free, more) for more in (1, 2, 5, 15, 16, 17, 30, len(free))}
        chosen, left = list(removed), free
        now = highest = float(problem.ask([chosen]).margins[0])
        for step in range(len(free)):
            margins = problem.extend(chosen, left).margins
            for more, bound in bounds.items():
                if step < more:
                    assert (now - margins <= bound.limits[np.isin(free, left)] + ROUNDING).all(), (more, chosen)
                    assert highest - margins.min() <= bound.total + ROUNDING, (more, chosen)
            following = NEXT[way](margins)
            now = float(margins[following])
            highest = max(highest, now)
            chosen.append(int(left[following]))
            left = np.delete(left, following)


@pytest.mark.parametrize("kind", ["GraphSAGE", "GAT", "GIN"])
def test_nothing_is_proved_about_other_layers(kind: str) -> None:
    asked = 0
    for seed in range(5):
        for problem, _, bits in problems(random_case(kind, seed)):
            assert type(problem.oracle) is ModelOracle
            assert problem.influence((), np.arange(len(bits)), 2) is None
            asked += 1
    assert asked >= 20


def without_own_weight(seed: int) -> Case:
    """A case in which one node's self-loop carries no weight: it may lose all that it has."""
    case = random_case("GCN", seed)
    nodes, columns = case.data.num_nodes, case.data.num_edges
    loop = torch.tensor([[seed % nodes], [seed % nodes]])
    edge_index = torch.cat([case.data.edge_index, loop], dim=1)
    weights = torch.ones(columns) if case.data.edge_weight is None else case.data.edge_weight
    data = Data(x=case.data.x, edge_index=edge_index, edge_weight=torch.cat([weights, torch.zeros(1)]))
    return replace(case, data=data)


def test_nothing_is_proved_where_a_node_may_lose_all_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WORTH_A_BOUND", ALWAYS)
    asked = 0
    for seed in range(12):
        case = without_own_weight(seed)
        for problem, _, bits in problems(case):
            near = problem.edits.neighbourhood
            if seed % case.data.num_nodes in near.nodes[near.distance < near.hops]:
                assert type(problem.oracle) is GCNOracle
                assert problem.influence((), np.arange(len(bits)), 2) is None
                asked += 1
        compare([(case, [truth for truth in solve(case) if not truth.close])])
    assert asked >= 20


def explain(case: Case, truths: Iterable[Truth], method: Method) -> list[butfor.Counterfactual]:
    nodes = [truth.node for truth in truths]
    return butfor.explain(case.model, case.data, nodes, method, **case.asked, budget=Budget(100_000))


def check(case: Case, truth: Truth, result: butfor.Counterfactual) -> None:
    """What a proof says is what brute force says."""
    where = f"{case.name}, node {truth.node}: {result}"
    assert result.target == truth.node
    if truth.tenths is None:
        assert (result.status.value, result.lower_bound) == ("impossible", None), where
        return
    assert result.status.value == "optimal", f"{truth.cost} is the least: {where}"
    assert result.cost == pytest.approx(truth.cost, rel=1e-9), where
    assert result.lower_bound == pytest.approx(truth.cost, rel=1e-9), where
    assert result.removed_edges in truth.decisive, f"more decisive: {truth.decisive}: {where}"
    if result.necessity is not None:
        assert {result.removed_edges, *map(pairs_of, result.alternatives)} == set(truth.lead), where
        assert len(result.alternatives) == len(truth.lead) - 1, where


def compare(
    cases: Iterable[tuple[Case, list[Truth]]], method: Method = EVERY
) -> tuple[Counter[str], list[butfor.Counterfactual]]:
    """Check all problems of these cases; what they were, and the answers."""
    seen: Counter[str] = Counter()
    results = []
    for case, truths in cases:
        for truth, result in zip(truths, explain(case, truths, method), strict=True):
            check(case, truth, result)
            assert (result.necessity is not None) == (method == EVERY and result.found)
            seen["problems"] += 1
            seen["impossible" if truth.tenths is None else f"size {min(result.size, 3)}"] += 1
            results.append(result)
    return seen, results


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
def test_search_with_bounds_equals_brute_force(kind: str, method: Method, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [solved(kind, seed) for seed in range(32)]
    calls = counted(monkeypatch)
    monkeypatch.setattr(module, "WORTH_A_BOUND", ALWAYS)
    seen, bounded = compare(cases, method)
    assert seen["problems"] >= 180
    assert min(seen["impossible"], seen["size 1"]) >= 30
    assert min(seen["size 2"], seen["size 3"]) >= 5
    assert min(calls["all"], 3 * calls["renewed"]) >= seen["problems"]
    calls.clear()
    monkeypatch.setattr(module, "WORTH_A_BOUND", NEVER)
    _, plain = compare(cases[:15], method)
    assert not calls
    # How much was tried for it may differ, and nothing else.
    assert len(plain) >= 80
    for one, other in zip(bounded, plain, strict=False):
        assert replace(one, evaluations=0) == replace(other, evaluations=0)


def short(bounds: Influence) -> Influence:
    return replace(bounds, limits=0.3 * bounds.limits, total=0.3 * bounds.total)


def half(bounds: Influence) -> Influence:
    kept = np.arange(len(bounds.limits)) < len(bounds.limits) / 2
    return replace(bounds, limits=np.where(kept, bounds.limits, 0.0))


def total_alone(bounds: Influence) -> Influence:
    return replace(bounds, total=0.1 * bounds.total)


@pytest.mark.parametrize("broken", [short, half, total_alone])
def test_broken_bound_is_caught(broken: Callable[[Influence], Influence], monkeypatch: pytest.MonkeyPatch) -> None:
    def unsound(self: GCNOracle, *asked) -> Influence | None:
        bounds = INFLUENCE(self, *asked)
        return bounds and broken(bounds)

    cases = [solved("GCN", seed) for seed in range(40)]
    monkeypatch.setattr(module, "WORTH_A_BOUND", ALWAYS)
    monkeypatch.setattr(GCNOracle, "influence", unsound)
    with pytest.raises(AssertionError):
        compare(cases)
    for kind in KINDS:
        with pytest.raises(AssertionError):
            sound(kind, range(20))


@pytest.mark.parametrize(("seed", "lift"), [(0, 5), (1, 40), (2, 5), (3, 40)])
def test_impossible_at_once(seed: int, lift: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more sets than could ever be tried none can reach the goal, and a bound says so."""
    model, data = star(seed, size=0.05, lift=lift)
    budget = Budget(2000)
    result = butfor.explain(model, data, 0, butfor.Exact(), budget=budget)
    assert (result.status.value, result.lower_bound) == ("impossible", None)
    problem = Session.of(model, data).builder.build((0,))
    assert 2 ** len(problem.edits) > 10**13
    random = np.random.default_rng(seed)
    sets = [np.flatnonzero(random.random(len(problem.edits)) < share) for share in np.linspace(0, 1, 2000)]
    assert not replace(problem, oracle=problem.oracle.general).ask(sets).reached.any()
    assert butfor.explain(model, data, 0, butfor.Greedy(), budget=budget).status.value == "unknown"
    monkeypatch.setattr(module, "WORTH_A_BOUND", NEVER)
    assert butfor.explain(model, data, 0, butfor.Exact(), budget=budget).status.value == "unknown"


def hubs(seed: int) -> Case:
    """Hubs at the edge of what node 0 sees, whose leaves are alike if they cost the same."""
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
@pytest.mark.parametrize("worth", [ALWAYS, 5])
def test_bounds_with_costs_and_edits_that_are_alike(worth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    alike = 0
    cases = []
    for case in map(hubs, range(40)):
        problem = Session.of(case.model, case.data, **case.asked).builder.build((0,))
        alike += len(problem.edits) - len(np.unique(problem.oracle.equivalence_classes(problem.edits)))
        cases.append((case, [truth for truth in solve(case) if truth.node < 4 and not truth.close]))
    assert alike >= 100
    for kind, seed in itertools.product(KINDS, range(100, 110)):
        case, _ = solved(kind, seed)
        case = replace(case, tenths={pair: int(random.choice([1, 2, 3, 10, 13])) for pair in case.links})
        cases.append((case, [truth for truth in solve(case) if not truth.close]))
    calls = counted(monkeypatch)
    monkeypatch.setattr(module, "WORTH_A_BOUND", worth)
    seen, _ = compare(cases)
    assert seen["problems"] >= 200
    assert min(seen["impossible"], seen["size 1"], seen["size 2"], seen["size 3"]) >= 15
    assert calls["renewed"] >= 100


@pytest.mark.slow
@pytest.mark.parametrize("limit", [50, 200, 100_000])
def test_neither_chunks_nor_threads_matter(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Larger graphs for budgets that end the search, smaller ones for a budget that does not.
    ends = limit <= 200
    cases = [larger_case(seed) for seed in range(4)] if ends else [solved("GCN", seed)[0] for seed in range(8)]
    monkeypatch.setattr(module, "WORTH_A_BOUND", ALWAYS)
    # So that there is work for two threads even where chunks are small.
    monkeypatch.setattr(butfor.gcn.oracle, "WORTH_A_THREAD", 1)
    calls = counted(monkeypatch)
    runs = []
    for threads, chunk in ((1, 1), (1, 7), (2, 7), (2, 1024)):
        monkeypatch.setattr(module, "FIRST_CHUNK", chunk)
        monkeypatch.setattr(module, "LARGEST_CHUNK", chunk)
        results = []
        for case, method in itertools.product(cases, (butfor.Exact(threads=threads), replace(EVERY, threads=threads))):
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
    problem = Session.of(model, data).builder.build((0,))
    limit = len(np.unique(problem.oracle.equivalence_classes(problem.edits)))
    result = butfor.explain(model, data, 0, butfor.Exact(), budget=Budget(limit))
    assert not result.found
    assert result.evaluations <= limit


def test_nothing_is_proved_where_numbers_overflow() -> None:
    """Node 1 sends minus infinity, which ReLU hides; without its edge node 0 is of another class."""
    model = GCN(1, 2, 2, 2).eval()
    with torch.no_grad():
        model.convs[0].lin.weight[:] = torch.tensor([[4.0], [2.0]])
        model.convs[0].bias[:] = 1.0
        model.convs[1].lin.weight[:] = torch.tensor([[1.0, 1.0], [0.0, 0.0]])
        model.convs[1].bias[:] = torch.tensor([0.0, 0.4])
    pairs = [(0, 1), *((1, leaf) for leaf in range(2, 16))]
    x = torch.zeros(16, 1)
    x[1] = -3e38
    data = Data(x=x, edge_index=torch.tensor([*pairs, *(pair[::-1] for pair in pairs)]).T.contiguous())
    problem = Session.of(model, data).builder.build((0,))
    assert problem.ask([[0]]).reached[0]
    bounds = problem.influence((), np.arange(len(problem.edits)), 1)
    assert bounds is None or problem.margin - problem.ask([[0]]).margins[0] <= bounds.limits[0] + 1e-6
    assert butfor.explain(model, data, 0, butfor.Exact()).status.value != "impossible"


def test_bounds_leave_room_for_the_rounding_of_large_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two classes of nearly the same large score, in single precision: what the model says is the truth."""
    for seed, size in ((3, 1e4), (8, 1e4), (5, 1e5), (7, 1e5)):
        random = np.random.default_rng(seed)
        a, b = random.normal(size=16) + 2, random.normal(size=16) * 1e-4
        pairs = [(0, leaf) for leaf in range(1, 16)]
        edge_index = torch.tensor([*pairs, *(pair[::-1] for pair in pairs)]).T.contiguous()
        data = Data(x=torch.from_numpy(np.stack([a, a, a, b], axis=1)).float(), edge_index=edge_index)
        model = GCN(4, 4, 1, 2).eval()
        with torch.no_grad():
            # The same sum, rounded in two ways.
            weights = [[size, 0.0, 0.0, 1.0], [0.3 * size, 0.3 * size, 0.4 * size, -1.0]]
            model.convs[0].lin.weight[:] = torch.tensor(weights)
            model.convs[0].bias[:] = torch.tensor([2e-7 * size, 0.0])
        monkeypatch.undo()
        if butfor.explain(model, data, 0, butfor.Exact()).status.value == "impossible":
            monkeypatch.setattr(module, "WORTH_A_BOUND", NEVER)
            result = butfor.explain(model, data, 0, butfor.Exact())
            assert not result.found, f"seed {seed}, size {size}: {result}"


@pytest.mark.parametrize("large", [1e17, 1e300, np.inf])
def test_a_large_limit_does_not_swallow_the_small_ones(large: float) -> None:
    """Sums of what few edits can do are differences of long sums, and these lose digits."""
    limits = np.array([large, 1.0, 1.0])
    order = module._Order(np.arange(3), np.ones(3), np.ones(3, dtype=bool), limits)
    assert (order.most(1)[:3] >= limits).all()
    assert order.most(2)[1] >= 2
