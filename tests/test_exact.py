"""Proof tests: what `Exact` says is proved is what brute force over all subsets finds.

The truth comes from `brute`, which shares no code with the library's search.
"""

from __future__ import annotations

import itertools
import json
import time
from collections import Counter
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest

import butfor
import butfor.methods.exact as module
from truth import Case, Truth, larger_case, pairs_of, random_case, scores_after, solve, subsets
from butfor.edits.space import EditSpace
from butfor.oracle.gcn.oracle import GCNOracle
from butfor.problem.budget import Budget
from butfor.session import Session
from butfor.testing import links, random_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from butfor.methods import Method
    from butfor.problem.problem import Problem
    from butfor.problem.proposal import Proposal

# Random graphs for each kind of model, and how many problems (a graph and one of its nodes) they make at least.
GRAPHS = {"GCN": 130, "PaperGCN": 80, "GIN": 60, "GraphSAGE": 60, "GAT": 60}
PROBLEMS = {"GCN": 800, "PaperGCN": 470, "GIN": 360, "GraphSAGE": 360, "GAT": 360}

EVERY = butfor.Exact(all_smallest=True)


@cache
def solved(kind: str, seed: int) -> tuple[Case, list[Truth]]:
    """A random case and the truth about its nodes."""
    case = random_case(kind, seed)
    return case, solve(case)


def explain(case: Case, truths: Iterable[Truth], method: Method = EVERY, **options) -> list[butfor.Counterfactual]:
    nodes = [truth.node for truth in truths]
    return butfor.explain(case.model, case.data, nodes, method, **case.asked, **options)


def clear(kind: str, seeds: Iterable[int]) -> list[tuple[Case, list[Truth]]]:
    """The cases of these seeds, without nodes that are too close to call."""
    pairs = [solved(kind, seed) for seed in seeds]
    return [(case, [truth for truth in truths if not truth.close]) for case, truths in pairs]


def check(case: Case, truth: Truth, result: butfor.Counterfactual) -> None:
    """Everything that a result of `EVERY` says, where the budget was enough."""
    where = f"{case.name}, node {truth.node}: {result}"
    assert result.target == truth.node
    assert result.before.label == truth.before, where
    if truth.tenths is None:
        assert result.status.value == "impossible", where
        assert (result.found, result.removed_edges, result.alternatives) == (False, (), ()), where
        assert (result.size, result.lower_bound, result.necessity) == (None, None, None), where
        return
    assert result.status.value == "optimal", f"{truth.cost} is the least: {where}"
    assert result.cost == pytest.approx(truth.cost, rel=1e-9), where
    assert result.lower_bound == pytest.approx(truth.cost, rel=1e-9), where
    sets = [result.removed_edges, *map(pairs_of, result.alternatives)]
    assert len(set(sets)) == len(sets), f"the same set twice: {where}"
    assert set(sets) == set(truth.lead), f"all smallest: {sorted(truth.lead)}, not {sorted(sets)}: {where}"
    assert result.size == len(result.removed_edges), where
    assert result.removed_edges in truth.decisive, f"more decisive: {truth.decisive}: {where}"
    assert result.necessity is not None, where
    shares = {(edit.source, edit.target): share for edit, share in result.necessity}
    assert list(shares) == sorted(truth.necessity), where
    assert shares == pytest.approx(truth.necessity), where


def compare(kind: str, seeds: Iterable[int]) -> Counter[str]:
    """Check all clear problems of these seeds, and count what they were."""
    seen: Counter[str] = Counter()
    for case, truths in clear(kind, seeds):
        for truth, result in zip(truths, explain(case, truths), strict=True):
            check(case, truth, result)
            seen.update(case.features)
            seen["problems"] += 1
            seen["impossible" if truth.tenths is None else f"size {min(result.size, 3)}"] += 1
            seen["several smallest"] += len(truth.lead) > 1
    return seen


QUICK = ("GCN", "GraphSAGE")


@pytest.mark.parametrize(
    "kind", [kind if kind in QUICK else pytest.param(kind, marks=pytest.mark.slow) for kind in GRAPHS]
)
def test_equals_brute_force(kind: str) -> None:
    seeds = range(GRAPHS[kind])
    seen = compare(kind, seeds)
    assert seen["problems"] >= PROBLEMS[kind]
    close = sum(truth.close for seed in seeds for truth in solved(kind, seed)[1])
    assert close <= 0.1 * seen["problems"], f"{close} problems are too close to call"
    least = {"impossible": 50, "size 1": 50, "size 2": 20, "size 3": 3, "several smallest": 20}
    least |= dict.fromkeys(["directed", "undirected", "protected", "costs", "wanted", "least"], 50)
    least |= dict.fromkeys(["loops", "duplicates", *(f"{count} classes" for count in range(2, 6))], 50)
    least |= {"weighted": 50} if kind in ("GCN", "PaperGCN") else {}
    assert {what: seen[what] for what in least if seen[what] < least[what]} == {}


def test_some_thousands_of_problems() -> None:
    assert sum(PROBLEMS.values()) >= 2000


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
                check(tied, answer, explain(tied, [answer])[0])
                ties += 1
    assert ties >= 10


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["GCN", "PaperGCN"])
def test_relevant_and_alike_hold_for_every_subset(kind: str) -> None:
    """An edit that is left out changes no score; edits that are alike can be exchanged in any set."""
    irrelevant = alike = 0
    for seed in range(60):
        case, truths = solved(kind, seed)
        free = case.free
        number = {pair: i for i, pair in enumerate(free)}
        scores = scores_after(case, free, subsets(len(free)))
        poser = Session.of(case.model, case.data, **case.asked).builder
        rows = np.arange(2 ** len(free))
        for truth in truths:
            problem = poser.build((truth.node,))
            assert type(problem.oracle) is GCNOracle
            bits = [1 << number[pairs_of(problem.edits.records([edit]))[0]] for edit in range(len(problem.edits))]
            mine = scores[:, truth.node]
            for edit in np.flatnonzero(~problem.oracle.relevant(problem.edits)):
                np.testing.assert_allclose(mine[rows | bits[edit]], mine[rows & ~bits[edit]], atol=1e-9)
                irrelevant += 1
            kinds = problem.oracle.equivalence_classes(problem.edits)
            for one, two in zip(*np.nonzero(np.triu(kinds[:, None] == kinds, 1)), strict=True):
                neither = rows[(rows & (bits[one] | bits[two])) == 0]
                np.testing.assert_allclose(mine[neither | bits[one]], mine[neither | bits[two]], atol=1e-9)
                assert problem.edits.costs[one] == problem.edits.costs[two]
                alike += 1
    # Three layers see nearly all of so small a graph, but not quite.
    assert irrelevant >= 10
    assert alike >= 10


HEURISTICS: list[Method] = [
    butfor.Greedy(),
    butfor.Greedy(width=2),
    butfor.CFGNN(epochs=40, lr=1.0, momentum=0.9),
    butfor.CFGNN.published(epochs=15, lr=0.5, momentum=0.9),
    butfor.RandomPerturbation(samples=30),
    butfor.RemoveEgo(),
    butfor.KeepEgo(),
    butfor.RemoveSubgraph(size=2, epochs=3),
]


@cache
def proofs(kind: str, seed: int) -> list[butfor.Counterfactual]:
    """What `Exact` proves about the clear nodes of this case."""
    ((case, truths),) = clear(kind, [seed])
    return explain(case, truths, butfor.Exact())


@pytest.mark.slow
@pytest.mark.parametrize("method", HEURISTICS, ids=repr)
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


# Each at least twice the one before: the search for an incumbent takes at most half of what is left, so the
# proof then gets at least as far as before. A budget only a little larger may get less far.
BUDGETS = (1, 2, 5, 17, 60, 300)


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
    assert min(seen[what] for what in ("optimal", "found", "impossible", "unknown", "a bound short of the cost")) >= 3


def same_answer(one: butfor.Counterfactual, two: butfor.Counterfactual, evaluations: bool) -> bool:
    return one == two if evaluations else replace(one, evaluations=0) == replace(two, evaluations=0)


def answers(case: Case, method: Method, limit: int) -> list[butfor.Counterfactual]:
    nodes = range(0, case.data.num_nodes, 4)
    return butfor.explain(case.model, case.data, nodes, method, **case.asked, budget=Budget(limit))


@pytest.mark.slow
@pytest.mark.parametrize("method", [EVERY, butfor.Exact(k=3)], ids=repr)
def test_chunks_do_not_matter(method: Method, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [*map(larger_case, range(6)), *(replace(random_case(kind, 3), wanted=None) for kind in GRAPHS)]
    runs = []
    for chunk in (1, 7, 1024):
        monkeypatch.setattr(module, "FIRST_CHUNK", chunk)
        monkeypatch.setattr(module, "LARGEST_CHUNK", chunk)
        runs.append([answers(case, method, 1000) for case in cases])
    proved = 0
    for case, *results in zip(cases, *runs, strict=True):
        for one, two, three in zip(*results, strict=True):
            # With costs, an incumbent found within a chunk rules out dearer sets only in the next.
            strict = not case.tenths
            assert same_answer(one, two, strict), f"{case.name}: {one} {two}"
            assert same_answer(one, three, strict), f"{case.name}: {one} {three}"
            proved += one.status.value == "optimal" and one.size > 1
    assert proved >= 10


@pytest.mark.parametrize("seed", [65, 122, 129])
def test_chunks_do_not_matter_where_the_budget_ends_among_costs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    case = random_case("GCN", seed)
    runs = []
    for chunk in (1, 7, 1024):
        monkeypatch.setattr(module, "FIRST_CHUNK", chunk)
        monkeypatch.setattr(module, "LARGEST_CHUNK", chunk)
        results = explain(case, solve(case), butfor.Exact(), budget=Budget(20))
        runs.append([(str(result.status), result.cost, result.lower_bound) for result in results])
    assert runs[0] == runs[1] == runs[2]


def test_sets_that_are_too_dear_take_no_time() -> None:
    """Five cheap edges: any number of them is cheaper than the incumbent, and with any other edge no set is."""
    model, data = random_problem(1, nodes=16, density=0.3)
    alone = butfor.explain(model, data, 1, butfor.Exact())
    cheap = [pair for pair in links(data) if pair not in alone.removed_edges][::5][:5]
    space = EditSpace(costs=dict.fromkeys(cheap, 0.19))
    started = time.monotonic()
    result = butfor.explain(model, data, 1, butfor.Exact(), space=space)
    assert (result.status.value, result.cost) == ("optimal", 1)
    assert result.evaluations < 100
    assert time.monotonic() - started < 0.2


def test_all_that_is_put_to_the_oracle_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    extend, solve = GCNOracle.extensions, butfor.Exact.solve

    def counted(self, edits, prefixes, candidates, *rest):
        asked.append(len(candidates))
        return extend(self, edits, prefixes, candidates, *rest)

    def counting(*arguments):
        # What is asked to pose the problem is no part of the search.
        with monkeypatch.context() as patch:
            patch.setattr(GCNOracle, "extend", counted)
            return solve(*arguments)

    monkeypatch.setattr(butfor.Exact, "solve", counting)
    for limit in (17, 100_000):
        for case, truths in clear("GCN", range(5)):
            for truth in truths:
                asked.clear()
                (result,) = explain(case, [truth], butfor.Exact(), budget=Budget(limit))
                assert sum(asked) <= result.evaluations <= limit, f"{case.name}, node {truth.node}"


@pytest.mark.slow
@pytest.mark.parametrize("method", [butfor.Exact(), EVERY], ids=repr)
def test_threads_do_not_matter(method: butfor.Exact) -> None:
    for seed in range(5):
        case = larger_case(seed)
        for limit in (100, 1000):
            one, two, three = (answers(case, replace(method, threads=threads), limit) for threads in (1, 2, 3))
            assert one == two == three, case.name


@pytest.mark.slow
def test_fast_and_general_oracle_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [larger_case(seed) for seed in range(11)]
    fast = [answers(case, EVERY, 1500) for case in cases]
    monkeypatch.setattr("butfor.problem.builder.gcn_oracle", lambda general: None)
    slow = [answers(case, EVERY, 1500) for case in cases]
    seen: Counter[str] = Counter()
    for case, quick, general in zip(cases, fast, slow, strict=True):
        for one, two in zip(quick, general, strict=True):
            where = f"{case.name}: {one} {two}"
            assert one.before.label == two.before.label
            for this, other in ((one, two), (two, one)):
                if this.status.value in ("optimal", "impossible"):
                    assert other.lower_bound is None or other.lower_bound <= (this.lower_bound or np.inf) * (1 + 1e-9)
                    assert not other.found or other.cost >= this.cost * (1 - 1e-9), where
            if two.status.value not in ("optimal", "impossible"):
                continue
            # The general oracle knows of no edits that are alike or cannot matter, so it has more to try.
            assert (one.status, one.size, one.cost) == (two.status, two.size, two.cost), where
            assert (one.lower_bound or 0) == pytest.approx(two.lower_bound or 0, rel=1e-9), where
            seen["compared"] += 1
            seen[f"size {one.size}"] += 1
            if two.necessity is None:
                continue  # nothing was found, or the budget was not enough for all of the smallest
            assert {one.edits, *one.alternatives} == {two.edits, *two.alternatives}, where
            assert one.necessity == two.necessity, where
            if one.removed_edges != two.removed_edges:
                assert tied(case, one.target, one.removed_edges, two.removed_edges), where
            seen["all smallest"] += 1
    assert seen["compared"] >= 40
    assert seen["all smallest"] >= 30
    assert min(seen["size 1"], seen["size 2"]) >= 10


def tied(case: Case, node: int, *sets: Sequence[tuple[int, int]]) -> bool:
    """Whether these sets lead by the same, but for rounding."""
    links = case.links
    removed = np.array([[False] * len(links), *([pair in edges for pair in links] for edges in sets)])
    scores = scores_after(case, links, removed)[:, node]
    before = scores[0].argmax()
    one, two = np.delete(scores[1:], before, axis=1).max(axis=1) - scores[1:, before]
    return abs(one - two) <= 2e-5 * (1 + abs(one))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "k"), [("GCN", 2), ("GCN", 3), ("PaperGCN", 3), ("GIN", 2)])
def test_k_that_differ_as_much_as_possible(kind: str, k: int) -> None:
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


# Deliberately broken proofs. Each must make the comparison with brute force fail.


def all_of_one_kind(self: GCNOracle, edits) -> np.ndarray:
    """Calls all edits of the same cost alike."""
    return np.unique(edits.costs, return_inverse=True)[1]


def first_two_alike(self: GCNOracle, edits) -> np.ndarray:
    """Calls the first two edits alike, if they cost the same."""
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
    [("equivalence_classes", all_of_one_kind), ("equivalence_classes", first_two_alike), ("relevant", one_is_missing)],
    ids=["all alike", "two alike", "one missing"],
)
def test_broken_shortcut_is_caught(name: str, broken: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    compare("GCN", range(20))
    monkeypatch.setattr(GCNOracle, name, broken)
    with pytest.raises(AssertionError):
        compare("GCN", range(20))


def test_broken_bound_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds raised by a half end the search too early: what is left untried is not so dear."""
    build = module._Search.__init__

    def inflated(self, *given) -> None:
        build(self, *given)
        self.cheapest[2:] *= 1.5

    compare("GCN", range(40))
    monkeypatch.setattr(module._Search, "__init__", inflated)
    with pytest.raises(AssertionError):
        compare("GCN", range(40))


def test_bound_one_edit_too_high_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that is cut off and claims the level that it did not finish."""
    solve_truly = butfor.Exact.solve

    def hasty(self, problem: Problem, budget: Budget) -> Proposal:
        proposal = solve_truly(self, problem, Budget(evaluations=20))
        one_more = proposal.lower_bound + problem.edits.costs.min()
        return replace(proposal, lower_bound=one_more, exhausted=not proposal.candidates)

    monkeypatch.setattr(butfor.Exact, "solve", hasty)
    with pytest.raises(AssertionError):
        compare("GCN", range(20))
    with pytest.raises(AssertionError):
        test_budgets("GCN", 20, butfor.Exact())


@pytest.mark.published
@pytest.mark.parametrize(
    ("name", "sizes", "mean", "share"),
    [("tree_cycles", {1: 126, 2: 48}, 1.276, 0.935), ("tree_grid", {1: 204, 2: 39}, 1.160, 0.95)],
)
def test_published_trees(reference: Path, name: str, sizes: dict[int, int], mean: float, share: float) -> None:
    data = butfor.datasets.load_graph(reference / f"{name}_graph.npz")
    model = butfor.models.load_published(reference / f"{name}_gcn_weights.npz")
    published = json.loads((reference / f"{name}_published_results.json").read_text())
    nodes = [int(node) for node in published["size"]]
    explainer = Session.of(model, data, method=butfor.Exact())
    results = [result for _, result in explainer.stream(nodes)]
    assert {result.status.value for result in results} == {"optimal"}
    assert all(result.lower_bound == result.size for result in results)
    assert Counter(result.size for result in results) == sizes
    assert butfor.evaluation.explanation_size(results).mean == pytest.approx(mean, abs=5e-4)
    assert butfor.evaluation.fidelity(results) == 0
    assert butfor.evaluation.accuracy(results, explainer.classes).mean >= share


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
