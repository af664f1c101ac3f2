"""Exact search: what it says is proved is what brute force over all subsets finds.

The truth comes from `truth`, which shares no code with the library's search.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import butfor
from butfor.edits.space import EditSpace
from butfor.errors import InputError
from butfor.methods.branching import Branch
from butfor.methods.proof import Proof
from butfor.oracle.gcn.oracle import GCNOracle
from butfor.testing import links, random_problem
from method_list import ALL, VARIANTS
from proofs import check, clear, compare, explain, solved
from sampling import slow
from truth import pairs_of, random_case, solve

if TYPE_CHECKING:
    from collections.abc import Callable

    from butfor.methods import Method

# Random graphs for each kind of model, and how many problems (a graph and one of its nodes) they make at least.
GRAPHS = {"GCN": 130, "PaperGCN": 80, "GIN": 60, "GraphSAGE": 60, "GAT": 60}
PROBLEMS = {"GCN": 800, "PaperGCN": 470, "GIN": 360, "GraphSAGE": 360, "GAT": 360}
# A part of them for `make test`: at least as many of each kind for their number.
PART = ("GCN", 50)


@pytest.mark.parametrize(("kind", "graphs"), [PART, *map(slow, GRAPHS.items())])
def test_equals_brute_force(kind: str, graphs: int) -> None:
    seeds, share = range(graphs), graphs / GRAPHS[kind]
    seen, _ = compare(clear(kind, seeds))
    assert seen["problems"] >= share * PROBLEMS[kind]
    close = sum(truth.close for seed in seeds for truth in solved(kind, seed)[1])
    assert close <= 0.1 * seen["problems"], f"{close} problems are too close to call"
    least = {"impossible": 50, "size 1": 50, "size 2": 20, "size 3": 3, "several smallest": 20}
    least |= dict.fromkeys(["directed", "undirected", "protected", "costs", "wanted", "least"], 50)
    least |= dict.fromkeys(["loops", "duplicates", *(f"{count} classes" for count in range(2, 6))], 50)
    least |= {"weighted": 50} if kind in ("GCN", "PaperGCN") else {}
    assert {what: seen[what] for what in least if seen[what] < share * least[what]} == {}


def test_costs_that_do_not_add_up_in_floating_point() -> None:
    """0.1 + 0.2 is more than 0.3 to a computer, and as cheap to a person: one edge ties with two."""
    ties = 0
    for seed in range(60):
        case = replace(random_case("GCN", seed), tenths={})
        for truth in solve(case):
            singles = [edges[0] for edges in truth.lead if len(edges) == 1]
            if not singles:
                continue
            without = replace(case, protected=(*case.protected, *singles))
            pairs = [edges for other in solve(without) if other.node == truth.node for edges in other.lead]
            if not pairs or len(pairs[0]) != 2:
                continue
            priced = dict.fromkeys(case.links, 50) | {singles[0]: 3, pairs[0][0]: 1, pairs[0][1]: 2}
            tied = replace(case, tenths=priced)
            (answer,) = [other for other in solve(tied) if other.node == truth.node]
            if not answer.close:
                assert {len(edges) for edges in answer.lead} == {1, 2}
                check(tied, answer, explain(tied, [answer])[0], every=True)
                ties += 1
    assert ties >= 10


# With enough steps and speed to find something on graphs this small.
STEEP = [
    butfor.CFGNN(epochs=40, lr=1.0, momentum=0.9),
    butfor.CFGNN.published(epochs=15, lr=0.5, momentum=0.9),
]
HEURISTICS = [method for method in [*ALL.values(), *VARIANTS] if not isinstance(method, (butfor.Exact, butfor.CFGNN))]


@cache
def proofs(kind: str, seed: int) -> list[butfor.Counterfactual]:
    """What `Exact` proves about the clear nodes of this case."""
    ((case, truths),) = clear(kind, [seed])
    return explain(case, truths, butfor.Exact())


@pytest.mark.slow
@pytest.mark.parametrize("method", [*HEURISTICS, *STEEP], ids=repr)
def test_no_heuristic_is_cheaper(method: Method) -> None:
    kinds = ["GCN", "PaperGCN"] if isinstance(method, butfor.CFGNN) else list(GRAPHS)
    both = 0
    for kind, seed in itertools.product(kinds, range(7)):
        ((case, truths),) = clear(kind, [seed])
        for proof, result in zip(proofs(kind, seed), explain(case, truths, method), strict=True):
            where = f"{case.name}, node {proof.target}: {proof} {result}"
            if result.found:
                assert proof.status.value == "optimal", where
                assert result.cost >= proof.cost * (1 - 1e-9), where
                assert result.lower_bound <= proof.cost * (1 + 1e-9), where
                both += 1
            if proof.found:
                assert result.status.value != "impossible", where
    assert both >= (3 if isinstance(method, butfor.CFGNN) else 10)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "k"), [("GCN", 2), ("GCN", 3), ("PaperGCN", 3), ("GIN", 2)])
def test_k_sets_that_differ_as_much_as_possible(kind: str, k: int) -> None:
    fewer = more = 0
    for case, truths in clear(kind, range(30)):
        for truth, result in zip(truths, explain(case, truths, butfor.Exact(k=k)), strict=True):
            where = f"{case.name}, node {truth.node}: {result} {result.alternatives}"
            sets = [result.removed_edges, *map(pairs_of, result.alternatives)] if result.found else []
            assert len(sets) == min(k, len(truth.lead)), where
            assert len(set(sets)) == len(sets), where
            assert set(sets) <= set(truth.lead), where
            assert result.necessity is None, where
            assert not sets or sets[0] in truth.decisive, where
            for taken in range(1, len(sets)):
                # How many edges each set shares with the nearest of those taken before it.
                shared = {
                    edges: max(len({*edges} & {*before}) for before in sets[:taken])
                    for edges in truth.lead
                    if edges not in sets[:taken]
                }
                assert shared[sets[taken]] == min(shared.values()), where
            fewer += 0 < len(truth.lead) < k
            more += len(truth.lead) > k
    assert fewer >= 50
    assert more >= 1


def test_sets_that_are_too_expensive_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five cheap edges: any number of them is cheaper than the incumbent, and with any other edge no set is."""
    model, data = random_problem(1, nodes=16, density=0.3)
    alone = butfor.explain(model, data, 1, butfor.Exact())
    cheap = [pair for pair in links(data) if pair not in alone.removed_edges][::5][:5]
    space = EditSpace(costs=dict.fromkeys(cheap, 0.19))
    branches: list[Branch] = []
    child = Branch.child

    def counted(*which: Any) -> Branch:
        branches.append(child(*which))
        return branches[-1]

    monkeypatch.setattr(Branch, "child", counted)
    result = butfor.explain(model, data, 1, butfor.Exact(), space=space)
    assert (result.status.value, result.cost) == ("optimal", 1)
    assert result.evaluations < 100
    assert 10 < len(branches) < 100


@pytest.mark.slow
def test_never_worse_than_greedy() -> None:
    """Also where the budget ends the proof: the incumbent is what `Greedy` finds."""
    unproved = 0
    for seed in range(4):
        model, data = random_problem(seed, nodes=40, density=0.25)
        greedy = butfor.explain(model, data, range(40), butfor.Greedy())
        exact = butfor.explain(model, data, range(40))
        for mine, other in zip(exact, greedy, strict=True):
            assert mine.found or not other.found
            assert mine.size is None or other.size is None or mine.size <= other.size
            unproved += mine.status.value == "found"
    assert unproved >= 5


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [({"width": 0}, "width is 0"), ({"k": 0}, "k is 0"), ({"threads": -1}, "threads is -1")],
)
def test_senseless_settings_are_refused(settings: dict, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        butfor.Exact(**settings)


# Deliberately broken proofs. Each must make the comparison with brute force fail.


def all_equivalent(self: GCNOracle, edits) -> np.ndarray:
    """Calls all edits of the same cost equivalent."""
    return np.unique(edits.costs, return_inverse=True)[1]


def first_two_equivalent(self: GCNOracle, edits) -> np.ndarray:
    """Calls the first two edits equivalent, if they cost the same."""
    numbers = np.arange(len(edits))
    if len(edits) > 1 and edits.costs[0] == edits.costs[1]:
        numbers[1] = 0
    return numbers


def one_is_missing(self: GCNOracle, edits) -> np.ndarray:
    """Leaves one edit out that does matter, if there is any."""
    kept = RELEVANT(self, edits)
    kept[np.flatnonzero(kept)[:1]] = False
    return kept


RELEVANT = GCNOracle.relevant


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("equivalence_classes", all_equivalent),
        slow(("equivalence_classes", first_two_equivalent)),
        ("relevant", one_is_missing),
    ],
    ids=["all equivalent", "two equivalent", "one missing"],
)
def test_broken_shortcut_is_caught(name: str, broken: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = clear("GCN", range(20))
    compare(cases)
    monkeypatch.setattr(GCNOracle, name, broken)
    with pytest.raises(AssertionError):
        compare(cases)


@pytest.mark.slow
def test_bound_that_is_too_high_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds raised by a half end the search too early: what is left untried is not so expensive."""
    build = Proof.__init__

    def inflated(self, *given) -> None:
        build(self, *given)
        self.cheapest[2:] *= 1.5

    cases = clear("GCN", range(40))
    compare(cases)
    monkeypatch.setattr(Proof, "__init__", inflated)
    with pytest.raises(AssertionError):
        compare(cases)
