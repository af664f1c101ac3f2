"""Bounds on what further deletions can do: they hold for every subset.

The truth comes from `truth`, in double precision; on graphs too large for it, from the general oracle.
"""

from __future__ import annotations

import copy
import itertools
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCN

import butfor
from butfor.oracle.gcn.curve.shape import Curve, Reading
from butfor.oracle.gcn.oracle import GCNOracle
from butfor.session import Session
from butfor.testing import links, random_problem
from larger_graphs import star
from proofs import ALWAYS, EVERY, clear, compare, without_close
from sampling import split
from truth import Case, pairs_of, random_case, scores_after, solve, subsets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    from butfor.oracle.base import Influence
    from butfor.problem.problem import Problem

# Rounding in double precision, of scores that are at most some tens.
ROUNDING = 1e-9

KINDS = ("GCN", "PaperGCN", "equal features")


def double(case: Case) -> Case:
    """The same in double precision."""
    data = case.data.clone()
    data.x = data.x.double()
    if data.edge_weight is not None:
        data.edge_weight = data.edge_weight.double()
    return replace(case, model=copy.deepcopy(case.model).double(), data=data)


def case_of(kind: str, seed: int) -> Case:
    """A case in double precision. Where features are equal, there are three layers, with jumping knowledge or not."""
    if kind != "equal features":
        return double(random_case(kind, seed))
    case = double(random_case(("GCN", "PaperGCN")[seed % 2], seed))
    if seed % 2 == 0:
        torch.manual_seed(seed)
        case = replace(case, model=GCN(case.data.num_features, 6, 3, case.model.out_channels).double().eval())
    data = case.data.clone()
    data.x = data.x[:1].repeat(data.num_nodes, 1)
    return replace(case, data=data)


def problems(case: Case) -> Iterator[tuple[Problem, NDArray[np.float64], NDArray[np.int64]]]:
    """The problem of each node, the margin after every subset of the case's edges, and the bit of each edit."""
    number = {pair: i for i, pair in enumerate(case.free)}
    scores = torch.from_numpy(scores_after(case, case.free, subsets(len(number))))
    session = Session.of(case.model, case.data, **case.asked)
    for node in range(case.data.num_nodes):
        if int(scores[0, node].argmax()) == case.wanted:
            continue
        problem = session.problem(node)
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


def check_cases(kind: str, seeds: Iterable[int]) -> Counter[str]:
    """Check the bounds of all nodes of these cases, and count what they were."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        case = case_of(kind, seed)
        random = np.random.default_rng(seed)
        marks = {*case.features, f"jk {getattr(case.model, 'jk_mode', '-')}"}
        marks.add(f"{getattr(case.model, 'num_layers', 3)} layers")
        for problem, margins, bits in problems(case):
            assert type(problem.oracle) is GCNOracle
            if not len(bits):
                continue
            seen["along the curve"] += problem.oracle._is_curve(problem.oracle._field(problem.edits))
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


@pytest.mark.parametrize("kind", split(KINDS, ["GCN"]))
def test_bounds_hold_for_every_subset(kind: str) -> None:
    seen = check_cases(kind, range(40))
    assert seen["comparisons"] >= 300_000
    least = dict.fromkeys(["directed", "undirected", "weighted", "loops", "duplicates", "wanted"], 15)
    least |= dict.fromkeys([f"{count} classes" for count in range(2, 6)], 15)
    if kind == "GCN":
        least |= dict.fromkeys(["jk None", "jk cat", "jk last", "1 layers", "2 layers", "3 layers"], 15)
    assert {what: seen[what] for what in least if seen[what] < least[what]} == {}
    assert seen["along the curve"] >= seen["problems"] or kind != "equal features"
    # Sound alone is not enough: infinity is. About half lie within five times what the strongest edit does.
    assert seen["limits near the largest effect"] >= 0.45 * seen["limits"]
    assert seen["zeros"] <= 0.2 * seen["limits"]


NEXT: dict[str, Callable[[NDArray[np.float64]], int]] = {
    "down": lambda margins: int(margins.argmin()),
    "up": lambda margins: int(margins.argmax()),
    "any": lambda margins: len(margins) * 5 // 8,
}


def larger(kind: str) -> tuple[GCN, Data]:
    """A star whose nodes have features of their own, or all the same and a model of three layers."""
    model, data = star(int(kind == "two layers"))
    if kind == "equal features":
        torch.manual_seed(0)
        data.x, model = torch.ones_like(data.x), GCN(4, 8, 3, 3).eval()
    return model, data


@pytest.mark.parametrize("way", NEXT)
@pytest.mark.parametrize("kind", ["one layer", "two layers", "equal features"])
def test_bounds_hold_along_ways_through_a_larger_graph(kind: str, way: str) -> None:
    """Of 45 edges many may go at once, and most of them at one node."""
    model, data = larger(kind)
    data.x = data.x.double()
    fast = Session.of(model.double(), data).problem(0)
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
            assert not isinstance(problem.oracle, GCNOracle)
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


def test_nothing_is_proved_where_a_node_may_lose_all_weight() -> None:
    asked = 0
    for seed in range(12):
        case = without_own_weight(seed)
        for problem, _, bits in problems(case):
            near = problem.edits.neighbourhood
            if seed % case.data.num_nodes in near.nodes[near.distance < near.hops]:
                assert type(problem.oracle) is GCNOracle
                assert problem.influence((), np.arange(len(bits)), 2) is None
                asked += 1
        compare([without_close(case, solve(case))], replace(EVERY, tuning=ALWAYS))
    assert asked >= 20


INFLUENCE = GCNOracle.influence


def short(bounds: Influence) -> Influence:
    return replace(bounds, limits=0.3 * bounds.limits, total=0.3 * bounds.total)


def half(bounds: Influence) -> Influence:
    kept = np.arange(len(bounds.limits)) < len(bounds.limits) / 2
    return replace(bounds, limits=np.where(kept, bounds.limits, 0.0))


def total_alone(bounds: Influence) -> Influence:
    return replace(bounds, total=0.1 * bounds.total)


@pytest.mark.parametrize("broken", [short, half, total_alone])
def test_broken_bound_is_caught(broken: Callable[[Influence], Influence], monkeypatch: pytest.MonkeyPatch) -> None:
    """By the comparison with every subset, and by what a search that trusts it then claims."""

    def unsound(self: GCNOracle, *asked) -> Influence | None:
        bounds = INFLUENCE(self, *asked)
        return bounds and broken(bounds)

    cases = clear("GCN", range(40))
    monkeypatch.setattr(GCNOracle, "influence", unsound)
    with pytest.raises(AssertionError):
        compare(cases, replace(EVERY, tuning=ALWAYS))
    for kind in KINDS:
        with pytest.raises(AssertionError):
            check_cases(kind, range(20))


def straight(curve: Curve) -> Curve:
    """Without a break, as if all ReLUs of the first layer stayed what they are at first."""
    first = [np.repeat(part[:1], len(part), axis=0) for part in (curve.slope, curve.offset, curve.hidden_slope)]
    return Curve(curve.breaks, *first)


def without_jumps(reading: Reading) -> Reading:
    """As if the head read the third layer alone."""
    return reading._replace(second=reading.second * np.array([1.0, 0.0])[:, None])


def without_senders(reading: Reading) -> Reading:
    """As if what neighbours send in the third layer did not matter."""
    return reading._replace(second=reading.second * np.array([0.0, 1.0])[:, None])


@pytest.mark.parametrize("broken", [straight, without_jumps, without_senders])
def test_broken_curve_is_caught(broken: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    kind = Curve if broken is straight else Reading
    right = kind.of
    monkeypatch.setattr(kind, "of", lambda *given: broken(right(*given)))
    with pytest.raises(AssertionError):
        check_cases("equal features", range(20))


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
    problem = Session.of(model, data).problem(0)
    assert problem.ask([[0]]).reached[0]
    bounds = problem.influence((), np.arange(len(problem.edits)), 1)
    assert bounds is None or problem.margin - problem.ask([[0]]).margins[0] <= bounds.limits[0] + 1e-6
    assert butfor.explain(model, data, 0, butfor.Exact()).status.value != "impossible"


@pytest.mark.parametrize("kind", ["own features", "equal features"])
def test_bounds_hold_where_edges_go_together(kind: str) -> None:
    """Groups of edges anywhere: one edit may take several terms of a sum, and entries into several nodes."""
    compared = 0
    for seed in range(12):
        _, data = random_problem(seed, nodes=9)
        data.x = data.x.double()
        if kind == "equal features":
            data.x = data.x[:1].repeat(data.num_nodes, 1)
        torch.manual_seed(seed)
        model = GCN(4, 6, 3, 3).double().eval()
        random = np.random.default_rng(seed)
        edges = [links(data)[i] for i in random.permutation(len(links(data)))][:14]
        groups = [edges[i : i + 2 + seed % 2] for i in range(0, len(edges) - 2, 2 + seed % 2)]
        session = Session.of(model, data, space=butfor.EditSpace(groups=groups, allowed=edges))
        for node in range(data.num_nodes):
            fast = session.problem(node)
            assert type(fast.oracle) is GCNOracle
            count = len(fast.edits)
            if not 1 <= count <= 8:
                continue
            chosen = subsets(count)
            sets = [np.flatnonzero(row).tolist() for row in chosen]
            margins = replace(fast, oracle=fast.oracle.general).ask(sets).margins
            for more in (1, 2, count):
                none = np.zeros(0, np.int64)
                compared += check_bounds(fast, margins, 1 << np.arange(count), none, np.arange(count), more)[0]
    assert compared >= 10_000
