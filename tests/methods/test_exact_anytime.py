"""Exact search whose budget ends it: an incumbent first, then a proof that never says more than is true."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric import nn as gnn
from torch_geometric.data import Data

import butfor
from butfor.methods import Method
from butfor.methods.exact import Tuning
from butfor.oracle.gcn.oracle import GCNOracle
from butfor.problem.budget import Budget
from butfor.problem.proposal import Proposal
from butfor.session import Session
from method_list import ALL
from proofs import EVERY, clear, compare, explain
from truth import Case, larger_case, pairs_of, random_case, solve

if TYPE_CHECKING:
    from butfor.problem.problem import Problem

# Each at least twice the one before: a budget that is only a little larger may be spent otherwise, and get less far.
BUDGETS = (1, 2, 5, 17, 60, 300)


def check_budgets(kind: str, graphs: int, method: Method) -> Counter[str]:
    """With more to spend nothing gets worse, and whatever is claimed is true; counts what was claimed."""
    seen: Counter[str] = Counter()
    for case, truths in clear(kind, range(graphs)):
        last: dict[int, tuple[float, float]] = {}
        for limit in BUDGETS:
            for truth, result in zip(truths, explain(case, truths, method, budget=Budget(limit)), strict=True):
                where = f"{case.name}, node {truth.node}, {limit} evaluations: {result} {result.lower_bound}"
                assert result.evaluations <= limit, where
                bound = np.inf if result.lower_bound is None else result.lower_bound
                cost = result.cost if result.found else np.inf
                assert bound <= truth.cost * (1 + 1e-9), where
                assert cost >= truth.cost * (1 - 1e-9), where
                status = result.status.value
                assert (status in ("optimal", "found")) == result.found, where
                assert (status == "optimal") == (result.found and bound >= cost * (1 - 1e-9)), where
                assert (status == "impossible") == (result.lower_bound is None), where
                assert result.necessity is None or len(result.alternatives) + 1 == len(truth.lead), where
                for other in map(pairs_of, result.alternatives):
                    assert status != "optimal" or other in truth.lead, where
                lower, upper = last.get(truth.node, (0, np.inf))
                assert bound >= lower * (1 - 1e-9), f"the bound was {lower}: {where}"
                assert cost <= upper * (1 + 1e-9), f"the cost was {upper}: {where}"
                last[truth.node] = bound, cost
                seen[status] += 1
                seen["a bound short of the cost"] += status == "found" and bound < cost
    return seen


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "graphs", "method"),
    [
        ("GCN", 20, butfor.Exact()),
        ("GCN", 15, EVERY),
        ("PaperGCN", 24, butfor.Exact()),
        ("GIN", 12, butfor.Exact()),
        ("GraphSAGE", 10, EVERY),
    ],
)
def test_budgets(kind: str, graphs: int, method: Method) -> None:
    seen = check_budgets(kind, graphs, method)
    assert min(seen[what] for what in ("optimal", "found", "impossible", "unknown", "a bound short of the cost")) >= 3


def test_bound_one_edit_too_high_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that is cut off and claims the level that it did not finish."""
    solve_truly = butfor.Exact.solve

    def hasty(self, problem: Problem) -> Proposal:
        proposal = solve_truly(self, problem.metered(Budget(evaluations=20)))
        one_more = proposal.lower_bound + problem.edits.costs.min()
        return replace(proposal, lower_bound=one_more, exhausted=not proposal.candidates)

    monkeypatch.setattr(butfor.Exact, "solve", hasty)
    with pytest.raises(AssertionError):
        compare(clear("GCN", range(20)))
    with pytest.raises(AssertionError):
        check_budgets("GCN", 20, butfor.Exact())


def answers(case: Case, method: Method, limit: int) -> list[butfor.Counterfactual]:
    """The results of every fourth node."""
    nodes = range(0, case.data.num_nodes, 4)
    return butfor.explain(case.model, case.data, nodes, method, **case.asked, budget=Budget(limit))


def in_chunks(method: butfor.Exact) -> list[butfor.Exact]:
    """The same method with questions to the oracle of several sizes."""
    return [replace(method, tuning=Tuning(first_chunk=chunk, largest_chunk=chunk)) for chunk in (1, 7, 1024)]


def same_answer(one: butfor.Counterfactual, two: butfor.Counterfactual, evaluations: bool) -> bool:
    return one == two if evaluations else replace(one, evaluations=0) == replace(two, evaluations=0)


@pytest.mark.slow
@pytest.mark.parametrize("method", [EVERY, butfor.Exact(k=3)], ids=repr)
def test_chunks_do_not_matter(method: butfor.Exact) -> None:
    cases = [*map(larger_case, range(6)), *(replace(random_case(kind, 3), wanted=None) for kind in KINDS)]
    runs = [[answers(case, chunked, 1000) for case in cases] for chunked in in_chunks(method)]
    proved = 0
    for case, *results in zip(cases, *runs, strict=True):
        for one, two, three in zip(*results, strict=True):
            # With costs, an incumbent found within a chunk rules out more expensive sets only in the next.
            strict = not case.tenths
            assert same_answer(one, two, strict), f"{case.name}: {one} {two}"
            assert same_answer(one, three, strict), f"{case.name}: {one} {three}"
            proved += one.status.value == "optimal" and one.size > 1
    assert proved >= 10


KINDS = ("GCN", "PaperGCN", "GIN", "GraphSAGE", "GAT")


@pytest.mark.parametrize("seed", [65, 122, 129])
def test_chunks_do_not_matter_where_the_budget_ends_among_costs(seed: int) -> None:
    case = random_case("GCN", seed)
    runs = []
    for method in in_chunks(butfor.Exact()):
        results = explain(case, solve(case), method, budget=Budget(20))
        runs.append([(str(result.status), result.cost, result.lower_bound) for result in results])
    assert runs[0] == runs[1] == runs[2]


@pytest.mark.slow
@pytest.mark.parametrize("method", [butfor.Exact(), EVERY], ids=repr)
def test_threads_do_not_matter(method: butfor.Exact) -> None:
    for seed in range(5):
        case = larger_case(seed)
        for limit in (100, 1000):
            one, two, three = (answers(case, replace(method, threads=threads), limit) for threads in (1, 2, 3))
            assert one == two == three, case.name


def test_all_that_is_put_to_the_oracle_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    extend, solve_truly = GCNOracle.extend, butfor.Exact.solve

    def counted(self, edits, prefixes, candidates, *rest):
        asked.append(len(candidates))
        return extend(self, edits, prefixes, candidates, *rest)

    def counting(*arguments):
        # What is asked to build the problem is no part of the search.
        with monkeypatch.context() as patch:
            patch.setattr(GCNOracle, "extend", counted)
            return solve_truly(*arguments)

    monkeypatch.setattr(butfor.Exact, "solve", counting)
    for limit in (17, 100_000):
        for case, truths in clear("GCN", range(5)):
            for truth in truths:
                asked.clear()
                (result,) = explain(case, [truth], butfor.Exact(), budget=Budget(limit))
                assert sum(asked) <= result.evaluations <= limit, f"{case.name}, node {truth.node}"
                assert asked or not result.evaluations


# An incumbent first.


def undirected(pairs: list[tuple[int, int]], x: Tensor) -> Data:
    ends = torch.tensor(pairs).T
    return Data(x=x, edge_index=torch.cat([ends, ends.flip(0)], dim=1))


class Crowd(nn.Module):
    """Class 0 while a node has more than four neighbours."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        count = torch.zeros(len(x)).index_add(0, edge_index[1], torch.ones(edge_index.size(1))) - 4.5
        return torch.stack([count, -count], dim=1)


@pytest.mark.parametrize(
    "leaves", [12, 15, 25, *(pytest.param(n, marks=pytest.mark.slow) for n in (13, 14, 17, 18, 30, 70))]
)
def test_a_star_that_greedy_solves(leaves: int) -> None:
    data = undirected([(0, leaf) for leaf in range(1, leaves + 1)], torch.ones(leaves + 1, 1))
    exact = butfor.explain(Crowd(), data, 0)
    assert exact.size == leaves - 4
    assert exact.evaluations <= 3000
    assert exact.lower_bound >= butfor.explain(Crowd(), data, 0, butfor.Greedy()).lower_bound


MODELS = {
    "GCN": lambda: gnn.GCN(3, 8, 2, 2),
    "SAGE": lambda: gnn.GraphSAGE(3, 8, 2, 2),
    "GAT": lambda: gnn.GAT(3, 8, 2, 2),
    "GIN": lambda: gnn.GIN(3, 8, 2, 2),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("budget", [60, pytest.param(400, marks=pytest.mark.slow)])
def test_exact_has_an_answer_wherever_greedy_has_one(name: str, budget: int) -> None:
    found = 0
    for seed in range(3):
        random = np.random.default_rng(seed)
        torch.manual_seed(seed)
        nodes, edges = 14, (18, 30, 60)[seed]
        pairs = np.argwhere(np.triu(np.ones((nodes, nodes)), 1))
        chosen = random.permutation(pairs)[:edges].tolist()
        data = undirected([tuple(pair) for pair in chosen], torch.randn(nodes, 3))
        model = MODELS[name]().eval()
        for width in (4, 64):
            for node in (0, 5):
                greedy, exact = (
                    butfor.explain(model, data, node, method, budget=Budget(budget))
                    for method in (butfor.Greedy(width), butfor.Exact(width=width))
                )
                assert exact.found >= greedy.found, f"seed {seed}, node {node}, width {width}"
                assert exact.evaluations <= budget
                if greedy.found:
                    found += 1
                    assert exact.cost <= greedy.cost
    assert found


# What a method finds on its way to nothing better, and what finds something at once.
LONG = ("cf-gnn", "prbcd", "grbcd", "remove-subgraph")


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in ALL])
def test_any_method_may_find_the_incumbent(name: str) -> None:
    method = replace(EVERY, incumbent=ALL[name])
    cases = clear("GCN", range(10))
    compare(cases, method)
    for (case, truths), limit in itertools.product(cases, (1, 2, 6, 25)):
        for truth, result in zip(truths, explain(case, truths, method, budget=Budget(limit)), strict=True):
            where = f"{case.name}, node {truth.node}, {limit} evaluations: {result}"
            assert result.evaluations <= limit, where
            assert result.lower_bound is None or result.lower_bound <= truth.cost * (1 + 1e-9), where
            assert not result.found or result.cost >= truth.cost * (1 - 1e-9), where
            assert result.status.value != "impossible" or truth.tenths is None, where


def test_an_incumbent_that_does_not_hold_is_no_answer() -> None:
    """A method that proposes what does not reach the goal costs a question, and no proof."""

    @dataclass(frozen=True)
    class Wrong(Method):
        """The first edit, whatever it does."""

        def solve(self, problem: Problem) -> Proposal:
            return Proposal(((0,),))

    seen, _ = compare(clear("GCN", range(10)), replace(EVERY, incumbent=Wrong()))
    assert min(seen["impossible"], seen["size 1"], seen["size 2"]) >= 5


def hub(layers: int, leaves: int, lead: float) -> tuple[gnn.GCN, Data]:
    """Node 0 with so many neighbours, and a first class that is ahead by so much whatever they say."""
    torch.manual_seed(0)
    data = undirected([(0, leaf) for leaf in range(1, leaves + 1)], torch.randn(leaves + 1, 3))
    model = gnn.GCN(3, 8, layers, 2).eval()
    model.convs[-1].bias.data += torch.tensor([lead, 0.0])
    return model, data


@pytest.mark.parametrize(("layers", "lead"), [(3, 50.0), (2, 2.0)])
def test_where_the_budget_is_spent_bounds_still_say_what_they_can(layers: int, lead: float) -> None:
    """Greedy takes everything; that no few deletions do it is known without asking the model."""
    leaves = 80
    model, data = hub(layers, leaves, lead)
    result = butfor.explain(model, data, 0, budget=Budget(50))
    assert (result.status.value, result.evaluations) == ("unknown", 50)
    assert result.lower_bound > 10
    random = np.random.default_rng(0)
    problem = Session.of(model, data).problem(0)
    sets = [random.permutation(leaves)[: int(result.lower_bound) - 1] for _ in range(2000)]
    assert not problem.ask(sets).reached.any()


@pytest.mark.parametrize("limit", [1, 50])
def test_of_two_layers_all_sets_are_bounded_at_once(limit: int) -> None:
    """Then nothing is spent on an incumbent, and even one evaluation is enough to prove that there is no answer."""
    leaves = 80
    model, data = hub(2, leaves, 50.0)
    result = butfor.explain(model, data, 0, budget=Budget(limit))
    assert (result.status.value, result.lower_bound) == ("impossible", None)
    assert result.evaluations <= min(limit, leaves // 16)
    random = np.random.default_rng(0)
    problem = Session.of(model, data).problem(0)
    sets = [np.flatnonzero(random.random(leaves) < share) for share in np.linspace(0, 1, 2000)]
    assert not replace(problem, oracle=problem.oracle.general).ask(sets).reached.any()
