"""Deletions, additions and changed features together, against every subset of them made by hand in plain torch.

The truth shares no code with the library: edited graphs are laid side by side here, and a copy of the model in
double precision is run on all of them at once. Costs are whole tenths, so that sums are exact.
"""

from __future__ import annotations

import copy
import itertools
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GAT, GCN, GraphSAGE, SimpleConv

import butfor
from butfor.edits.addition import Addition, Within
from butfor.edits.change import Change, Features
from butfor.edits.deletion import Deletion
from butfor.edits.space import EditSpace
from butfor.errors import InputError, StoreError
from butfor.methods import CFGNN, GRBCD, PRBCD, Exact, Greedy, KeepEgo, RandomPerturbation, RemoveEgo, RemoveSubgraph
from butfor.models import PaperGCN
from butfor.predict.batch import EditedBatch
from butfor.problem.budget import Budget
from butfor.problem.goal import Goal
from butfor.result.counterfactual import Counterfactual
from butfor.result.status import Status
from butfor.runs import Run, Store
from butfor.session import Session

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from butfor.edits.edit import Edit

# Leads closer than this to what is asked, or to each other, may be told apart wrongly in single precision.
CLOSE = 1e-4
# Leads closer than this are equal but for rounding.
SAME = 2e-6

NO_LIMIT = Budget(evaluations=None)

Pair = tuple[int, int]


@dataclass(frozen=True)
class Cut:
    """All these links go."""

    links: tuple[Pair, ...]
    tenths: int = 10


@dataclass(frozen=True)
class Join:
    """This link comes."""

    ends: Pair
    tenths: int = 10


@dataclass(frozen=True)
class Put:
    """This feature gets this value."""

    node: int
    feature: int
    value: float
    tenths: int = 10


Act = Cut | Join | Put


@dataclass(frozen=True, eq=False)
class Case:
    """A model, a graph, and the rules twice: as single acts for brute force, and as the library takes them."""

    name: str
    model: torch.nn.Module
    data: Data
    directed: bool
    acts: tuple[Act, ...]
    space: EditSpace
    hops: int  # how far the model sees, degrees included
    goal: Goal = field(default_factory=Goal)

    @cached_property
    def chosen(self) -> np.ndarray:
        """All subsets of the acts, one a row."""
        return (np.arange(2 ** len(self.acts))[:, None] >> np.arange(len(self.acts))) & 1 == 1

    @cached_property
    def scores(self) -> np.ndarray:
        """The scores of every node after every subset."""
        return scores_after(self.model, self.data, self.directed, self.acts, self.chosen, self.space.carries)

    @cached_property
    def tenths(self) -> np.ndarray:
        return self.chosen @ np.array([act.tenths for act in self.acts], dtype=np.int64)

    @cached_property
    def allowed(self) -> np.ndarray:
        """Which subsets set no feature twice and are small enough."""
        slots = [(act.node, act.feature) if isinstance(act, Put) else None for act in self.acts]
        fine = np.ones(len(self.chosen), dtype=bool)
        for i, j in itertools.combinations(range(len(self.acts)), 2):
            if slots[i] is not None and slots[i] == slots[j]:
                fine &= ~(self.chosen[:, i] & self.chosen[:, j])
        if self.space.max_edits is not None:
            fine &= self.chosen.sum(axis=1) <= self.space.max_edits
        return fine

    def connected(self, target: int) -> np.ndarray:
        """Which subsets leave connected what was connected in the target's neighbourhood."""
        links = [link_of(pair, self.directed) for pair in self.data.edge_index.T.tolist()]
        joins = [act.ends for act in self.acts if isinstance(act, Join)]
        inside = near(target, {*links, *joins}, self.directed, self.hops)
        owner = {link: i for i, act in enumerate(self.acts) if isinstance(act, Cut) for link in act.links}
        nodes = self.data.num_nodes
        together = np.tile(np.eye(nodes, dtype=bool), (len(self.chosen), 1, 1))
        for u, v in links:
            if u in inside and v in inside:
                there = ~self.chosen[:, owner[u, v]] if (u, v) in owner else True
                together[:, u, v] |= there
                together[:, v, u] |= there
        for i, act in enumerate(self.acts):
            if isinstance(act, Join) and set(act.ends) <= inside:
                u, v = act.ends
                together[:, u, v] |= self.chosen[:, i]
                together[:, v, u] |= self.chosen[:, i]
        for _ in range(3):  # paths of up to 8 edges, which is enough for 6 nodes
            together = together @ together
        fine: np.ndarray = (together | ~together[0]).all(axis=(1, 2))
        return fine

    def records(self, row: int) -> tuple[Edit, ...]:
        """What the library should call this subset."""
        acts = [act for act, taken in zip(self.acts, self.chosen[row], strict=True) if taken]
        x = self.data.x
        return (
            *sorted(Deletion(u, v) for act in acts if isinstance(act, Cut) for u, v in act.links),
            *sorted(Addition(*act.ends) for act in acts if isinstance(act, Join)),
            *sorted(
                Change(act.node, act.feature, float(x[act.node, act.feature]), act.value)
                for act in acts
                if isinstance(act, Put)
            ),
        )

    def row(self, edits: Iterable[Edit]) -> int:
        """The subset that these records are; a part of a group is none."""
        left, number = set(edits), 0
        for i in range(len(self.acts)):
            mine = set(self.records(2**i))
            if mine <= left:
                left -= mine
                number += 2**i
            assert not mine & left, f"{self.name}: only a part of {mine} was done"
        assert not left, f"{self.name}: {left} is not allowed at all"
        return number


def scores_after(
    model: torch.nn.Module,
    data: Data,
    directed: bool,
    acts: Sequence[Act],
    chosen: np.ndarray,
    carries: dict,
) -> np.ndarray:
    """The scores of every node after every row of chosen acts."""
    taken, nodes, count = torch.from_numpy(chosen), data.num_nodes, len(chosen)
    old = [link_of(pair, directed) for pair in data.edge_index.T.tolist()]
    present = torch.ones(count, len(old), dtype=torch.bool)
    ends, added = data.edge_index, []
    x = data.x.double().repeat(count, 1).view(count, nodes, -1)
    for i, act in enumerate(acts):
        if isinstance(act, Cut):
            for column, link in enumerate(old):
                if link in act.links:
                    present[:, column] &= ~taken[:, i]
        elif isinstance(act, Join):
            ways = [act.ends] if directed else [act.ends, act.ends[::-1]]
            ends = torch.cat([ends, torch.tensor(ways).T], dim=1)
            added += [taken[:, i]] * len(ways)
        else:
            x[taken[:, i], act.node, act.feature] = act.value
    present = torch.cat([present, *(new[:, None] for new in added)], dim=1)
    graph, column = present.nonzero(as_tuple=True)
    fields = {}
    for name in ("edge_weight", "edge_attr"):
        values = data.get(name)
        if values is not None:
            new = torch.as_tensor(carries.get(name, 1.0)).double().expand(len(added), *values.shape[1:])
            fields[name] = torch.cat([values.double(), new])[column]
    double = copy.deepcopy(model).double().eval()
    with torch.no_grad():
        out = double(x.view(count * nodes, -1), ends[:, column] + graph * nodes, **fields)
    return out.numpy().reshape(count, nodes, -1)


def link_of(pair: Sequence[int], directed: bool) -> Pair:
    u, v = pair
    return (u, v) if directed else (min(u, v), max(u, v))


def near(target: int, links: set[Pair], directed: bool, hops: int) -> set[int]:
    """The nodes whose messages reach the target within so many hops."""
    ways = links if directed else links | {(v, u) for u, v in links}
    inside = {target}
    for _ in range(hops):
        inside |= {u for u, v in ways if v in inside}
    return inside


@dataclass(frozen=True)
class Truth:
    """What brute force knows about one target."""

    target: int
    before: int
    lead: np.ndarray
    reached: np.ndarray  # and allowed
    unsure: np.ndarray  # too close to call
    tenths: int | None
    smallest: tuple[int, ...]
    close: bool  # whether what is too close to call could matter to the answer


def truth_of(case: Case, target: int) -> Truth:
    rows, goal = case.scores[:, target], case.goal
    before = int(rows[0].argmax())
    own = before if goal.wanted is None else goal.wanted
    others = np.delete(rows, own, axis=1).max(axis=1)
    lead = others - rows[:, own] if goal.wanted is None else rows[:, own] - others
    reached = lead > goal.least
    unsure = np.abs(lead - goal.least) < CLOSE
    if goal.probability is not None:
        # Of the class that is predicted.
        chance = 1 / np.exp(rows - rows.max(axis=1)[:, None]).sum(axis=1)
        reached &= chance >= goal.probability
        unsure |= np.abs(chance - goal.probability) < CLOSE
    allowed = case.allowed & case.connected(target) if case.space.keep_connected else case.allowed
    reached &= allowed
    least = int(case.tenths[reached].min()) if reached.any() else None
    matters = allowed if least is None else allowed & (case.tenths <= least)
    # The intact graph must have a clear class; that it does not reach the goal needs no telling.
    first = np.sort(rows[0])[::-1]
    close = bool((unsure & matters)[1:].any() or first[0] - first[1] < CLOSE)
    smallest = () if least is None else tuple(np.flatnonzero(reached & (case.tenths == least)).tolist())
    return Truth(target, before, lead, reached, unsure, least, smallest, close)


@cache
def truths(case: Case) -> list[Truth]:
    """The truth for every node that can be asked about and told."""
    found = [truth_of(case, node) for node in range(case.data.num_nodes)]
    return [truth for truth in found if truth.before != case.goal.wanted and not truth.close]


KINDS = ("GCN", "PaperGCN", "GraphSAGE", "GAT", "weighted GCN", "GAT with attributes")
CLASSES = 3


def build(kind: str, seed: int, width: int) -> tuple[torch.nn.Module, int]:
    """A random model, and how far it sees: layers that normalise by degree see one hop more."""
    depth = 1 + seed % 2
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if kind == "PaperGCN":
            return PaperGCN(width, CLASSES, hidden=6).eval(), 4
        if kind == "GraphSAGE":
            return GraphSAGE(width, 8, depth, CLASSES).eval(), depth
        if kind == "GAT":
            return GAT(width, 8, depth, CLASSES).eval(), depth
        if kind == "GAT with attributes":
            return GAT(width, 8, depth, CLASSES, edge_dim=2, v2=True).eval(), depth
        return GCN(width, 8, depth, CLASSES, jk=(None, "cat")[seed // 2 % 2]).eval(), depth + 1


def even_out(case: Case) -> Case:
    """Shift the last bias so that no class always wins."""
    bias = [p for name, p in case.model.named_parameters() if name.endswith("bias") and len(p) == CLASSES][-1]
    with torch.no_grad():
        bias -= torch.from_numpy(case.scores.mean(axis=(0, 1))).to(bias)
    return Case(**{name: getattr(case, name) for name in case.__dataclass_fields__})


@cache
def random_case(kind: str, seed: int, only_cuts: bool = False) -> Case:
    """A small random problem; which rules there are varies with the seed."""
    random = np.random.default_rng([sum(kind.encode()), seed, only_cuts])
    directed, nodes = bool(seed % 3 == 1), int(random.integers(5, 7))
    pairs = list(itertools.permutations(range(nodes), 2) if directed else itertools.combinations(range(nodes), 2))
    pairs = [pairs[i] for i in random.permutation(len(pairs))]
    links = sorted(pairs[: nodes + int(random.integers(1, 4)) + 3 * only_cuts])
    absent = pairs[len(links) :]
    columns = links if directed else [*links, *(link[::-1] for link in links)]
    columns += [columns[0], columns[len(links) % len(columns)]] if seed % 4 == 2 else []
    x = np.round(random.normal(size=(nodes, 3)) * 2, 2)
    x[:, 0] = random.integers(0, 2, nodes)
    data = Data(x=torch.from_numpy(x).float(), edge_index=torch.tensor(columns).T.contiguous())
    carries: dict = {}
    if kind == "weighted GCN":
        weight = {link: float(random.choice([0.5, 1.0, 2.0])) for link in links}
        data.edge_weight = torch.tensor([weight[link_of(pair, directed)] for pair in columns])
        carries = {"edge_weight": 1.5} if seed % 2 else {}
    if kind == "GAT with attributes":
        attr = {link: random.normal(size=2).round(2).tolist() for link in links}
        data.edge_attr = torch.tensor([attr[link_of(pair, directed)] for pair in columns])
        carries = {"edge_attr": [0.5, -1.0]}

    price = (lambda: int(random.choice([3, 5, 10, 10, 13, 20]))) if seed % 2 else (lambda: 10)
    shuffled = [links[i] for i in random.permutation(len(links))]
    acts: list[Act] = []
    groups, costs = {}, {}
    if seed % 3 != 2:
        for name in ("one", "two"):
            acts.append(Cut(tuple(sorted([shuffled.pop(), shuffled.pop()])), price()))
            groups[name], costs[name] = (
                [link[::-1] if not directed else link for link in acts[-1].links],
                acts[-1].tenths,
            )
    free = shuffled[: 9 if only_cuts else 4]
    for link in free:
        acts.append(Cut((link,), price()))
        costs[link if directed else link[::-1]] = acts[-1].tenths
    features: list[Features] = []
    add = []
    if not only_cuts:
        for ends in absent[:3]:
            acts.append(Join(ends, price()))
            costs[ends] = acts[-1].tenths
            add.append(ends)
        first, second = (int(node) for node in random.choice(nodes, 2, replace=False))
        tenths = price()
        features.append(Features(columns=[0], nodes=[first], cost=tenths / 10))
        acts.append(Put(first, 0, 1.0 - float(data.x[first, 0]), tenths))
        tenths = price()
        if seed % 2:
            features.append(Features(values=[-4.0, 4.0], columns=[1], nodes=[second], cost=tenths / 10))
            acts += [Put(second, 1, value, tenths) for value in (-4.0, 4.0)]
        else:
            features.append(Features(between=(-3.0, 3.0), steps=3, columns=[2], nodes=[second], cost=tenths / 10))
            acts += [Put(second, 2, value, tenths) for value in (-3.0, 0.0, 3.0)]
    stay = [link for link in shuffled if link not in free]
    limits = {"allowed": [*free, *(link for act in acts[: len(groups)] for link in act.links)]}
    space = EditSpace(
        **({"protected": stay} if seed % 2 else limits),
        costs={name: tenths / 10 for name, tenths in costs.items() if tenths != 10},
        groups=groups,
        add=add,
        carries=carries,
        features=features,
        max_edits=(None, None, 2, 4)[seed % 4],
        keep_connected=seed % 4 == 3,
    )
    goals = [
        Goal(),
        Goal(wanted=seed % CLASSES),
        Goal(least=0.2),
        Goal(probability=0.6),
        Goal(wanted=1, probability=0.5, least=0.1),
    ]
    model, hops = build(kind, seed, 3)
    name = f"{kind}, seed {seed}"
    return even_out(Case(name, model, data, directed, tuple(acts), space, hops, goals[seed % len(goals)]))


def ask(case: Case, targets: list[int], method: butfor.methods.Method) -> list[Counterfactual]:
    return butfor.explain(
        case.model,
        case.data,
        targets,
        method,
        goal=case.goal,
        space=case.space,
        budget=NO_LIMIT,
        directed=case.directed,
    )


def check_exact(case: Case) -> list[Status]:
    """Exact's answers are the truth; what they were."""
    known = truths(case)
    results = ask(case, [truth.target for truth in known], Exact(all_smallest=True))
    for truth, result in zip(known, results, strict=True):
        told = f"{case.name}, node {truth.target}: {result}"
        assert result.target == truth.target
        assert result.before.label == truth.before, told
        if truth.tenths is None:
            assert result.status is Status.IMPOSSIBLE, told
            assert result.lower_bound is None
            assert (result.edits, result.cost, result.size, result.after) == ((), 0.0, None, None)
            continue
        assert result.status is Status.OPTIMAL, told
        assert result.cost == pytest.approx(truth.tenths / 10), told
        assert result.lower_bound == pytest.approx(truth.tenths / 10), told
        sets = [result.edits, *result.alternatives]
        assert len(set(sets)) == len(sets), f"the same set twice, {told}"
        assert set(sets) == {case.records(row) for row in truth.smallest}, told
        share = Counter(edit for row in truth.smallest for edit in case.records(row))
        assert dict(result.necessity) == pytest.approx({e: n / len(sets) for e, n in share.items()}), told
        most = max(truth.lead[row] for row in truth.smallest)
        chosen = case.row(result.edits)
        assert truth.lead[chosen] >= most - CLOSE, f"{case.records(chosen)} is not the most decisive, {told}"
        check_after(case, truth, result)
    return [result.status for result in results]


def check_after(case: Case, truth: Truth, result: Counterfactual) -> None:
    """The prediction after the edits, what they are called, and their way through JSON."""
    row = case.row(result.edits)
    scores = torch.from_numpy(case.scores[row, truth.target])
    assert result.after.label == int(scores.argmax())
    assert result.after.probability == pytest.approx(float(scores.softmax(0).max()), abs=1e-4)
    assert result.after.value is None
    assert result.edits == case.records(row)
    assert result.cost == pytest.approx(case.tenths[row] / 10)
    acts = [act for act, taken in zip(case.acts, case.chosen[row], strict=True) if taken]
    assert result.removed_edges == tuple(sorted(link for act in acts if isinstance(act, Cut) for link in act.links))
    assert result.added_edges == tuple(sorted(act.ends for act in acts if isinstance(act, Join)))
    changed = sorted((act.node, act.feature, act.value) for act in acts if isinstance(act, Put))
    assert [(edit.node, edit.feature, edit.after) for edit in result.changes] == changed
    assert result.size == len(result.removed_edges) + len(result.added_edges) + len(result.changes)
    assert Counterfactual.from_dict(json.loads(json.dumps(result.to_dict()))) == result
    arrow = "→" if case.directed else "–"
    for u, v in (*result.removed_edges, *result.added_edges):
        assert f"{u}{arrow}{v}" in str(result)
    for node, feature, value in changed:
        old = float(case.data.x[node, feature])
        assert f"feature {feature} of node {node} at {value:g} instead of {old:g}" in str(result)


SEEDS = range(8)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", KINDS)
def test_exact_proves_what_brute_force_over_all_edits_finds(kind: str, seed: int) -> None:
    check_exact(random_case(kind, seed))


def test_the_random_problems_are_worth_solving() -> None:
    cases = [random_case(kind, seed) for kind in KINDS for seed in SEEDS]
    known = [(case, truth) for case in cases for truth in truths(case)]
    assert len(known) > 0.8 * sum(case.data.num_nodes for case in cases) - 60  # those wanted already are left out
    answers = Counter()
    for case, truth in known:
        answers["impossible" if truth.tenths is None else "possible"] += 1
        answers["ties"] += len(truth.smallest) > 1
        acts = {act for row in truth.smallest for act, on in zip(case.acts, case.chosen[row], strict=True) if on}
        answers.update({type(act) for act in acts})
        answers["group"] += any(isinstance(act, Cut) and len(act.links) > 1 for act in acts)
        kinds = [
            {type(act) for act, on in zip(case.acts, case.chosen[row], strict=True) if on} for row in truth.smallest
        ]
        answers["mixed"] += any(len(some) > 1 for some in kinds)
    assert all(answers[what] >= 8 for what in ("impossible", "possible", "ties", Cut, Join, Put, "group", "mixed")), (
        answers
    )


@pytest.mark.parametrize("worth_a_bound", [2, 10**9], ids=["bounds", "no bounds"])
@pytest.mark.parametrize("kind", ["GCN", "PaperGCN", "weighted GCN"])
def test_exact_is_right_about_groups_costs_and_goals_where_only_edges_go(
    kind: str, worth_a_bound: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("butfor.methods.exact.WORTH_A_BOUND", worth_a_bound)
    seen = Counter(status for seed in range(10) for status in check_exact(random_case(kind, seed, only_cuts=True)))
    assert seen[Status.OPTIMAL] > 5
    assert seen[Status.IMPOSSIBLE] > 0


METHODS = (
    Greedy(),
    Greedy(width=2),
    CFGNN(epochs=15, lr=0.3, beta=0.1, start=0.3),
    PRBCD(epochs=3, samples=3),
    GRBCD(epochs=6),
    RandomPerturbation(samples=100),
    RemoveEgo(),
    KeepEgo(),
    RemoveSubgraph(size=2, epochs=2),
)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS, ids=lambda method: repr(method)[:20])
@pytest.mark.parametrize("kind", ["GCN", "GraphSAGE", "GAT with attributes", "weighted GCN"])
def test_no_method_breaks_a_rule_or_beats_the_truth(kind: str, method: butfor.methods.Method) -> None:
    for seed in (0, 3) if isinstance(method, CFGNN | Greedy | RemoveSubgraph | PRBCD) else (0, 3, 4):
        case = random_case(kind, seed)
        known = truths(case)
        for truth, result in zip(known, ask(case, [truth.target for truth in known], method), strict=True):
            told = f"{case.name}, node {truth.target}: {result}"
            if truth.tenths is None:
                assert not result.found, told
            else:
                assert result.status is not Status.IMPOSSIBLE, told
                assert result.lower_bound <= truth.tenths / 10 + 1e-9, told
            if result.found:
                row = case.row(result.edits)
                assert truth.reached[row] or truth.unsure[row], told
                assert case.tenths[row] >= truth.tenths, told
                assert result.status is not Status.OPTIMAL or case.tenths[row] == truth.tenths, told
                check_after(case, truth, result)


def test_greedy_and_the_gradient_find_answers_among_mixed_edits() -> None:
    for method in (Greedy(), CFGNN(epochs=80, lr=0.3, beta=0.1, start=0.3), RandomPerturbation()):
        kinds = set()
        for kind in ("GCN", "GraphSAGE"):
            case = random_case(kind, 0)
            known = [truth.target for truth in truths(case) if truth.tenths is not None]
            results = ask(case, known, method)
            assert sum(result.found for result in results) >= 2, method
            kinds |= {type(edit) for result in results for edit in result.edits}
        assert len(kinds) > 1, method


# From here on, small graphs whose answers can be read off: a node votes with its neighbours.


class Votes(torch.nn.Module):
    """Class 1 where feature 0 of a node and of its neighbours (and theirs, by rounds) adds up to more than 0."""

    def __init__(self, rounds: int = 1) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(SimpleConv("sum") for _ in range(rounds))

    def forward(self, x, edge_index):
        total = x[:, :1]
        for layer in self.layers:
            total = total + layer(total, edge_index)
        return torch.cat([-total, total], dim=1)


class WeightedVotes(torch.nn.Module):
    """The same once, by edge weight and by the first edge attribute where there are any."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = SimpleConv("sum")

    def forward(self, x, edge_index, edge_weight=None, edge_attr=None):
        weight = edge_weight if edge_attr is None else edge_attr[:, 0]
        total = x[:, :1] + self.layer(x[:, :1], edge_index, weight)
        return torch.cat([-total, total], dim=1)


def both(pairs: Iterable[Pair]) -> torch.Tensor:
    """Undirected edges, each in both directions."""
    pairs = list(pairs)
    return torch.tensor([*pairs, *((v, u) for u, v in pairs)], dtype=torch.long).reshape(-1, 2).T.contiguous()


def graph(votes: Sequence[float], pairs: Iterable[Pair]) -> Data:
    return Data(x=torch.tensor(votes, dtype=torch.float)[:, None], edge_index=both(pairs))


@pytest.fixture
def star() -> Data:
    """Node 0 with votes of 1 from 1, 2 and 3; node 4, which votes -5, and 5 are apart."""
    return graph([0.5, 1, 1, 1, -5, 0], [(0, 1), (0, 2), (0, 3), (4, 5)])


def test_all_three_kinds_of_edits_are_told_in_one_sentence(star: Data) -> None:
    star.x[4] = -1.5
    space = EditSpace(
        allowed=[(0, 1)], add=[(0, 4)], features=Features(values=[-1.0], nodes=[0]), costs={(4, 0): 0.5, (1, 0): 0.7}
    )
    result = butfor.explain(Votes(), star, 0, space=space)
    assert result.edits == (Deletion(0, 1), Addition(0, 4), Change(0, 0, 0.5, -1.0))
    assert (result.removed_edges, result.added_edges) == (((0, 1),), ((0, 4),))
    assert (result.size, result.cost, result.lower_bound) == (3, 2.2, 2.2)
    assert result.status is Status.OPTIMAL
    assert str(result) == (
        "Node 0 is predicted 'class 1' (1.00). It would be 'class 0' (0.73) without the edge 0–1 and with the edge 0–4 "
        "added and with feature 0 of node 0 at -1 instead of 0.5."
    )


def test_an_added_edge_alone_is_told(star: Data) -> None:
    result = butfor.explain(Votes(), star, 0, space=EditSpace(add=[(4, 0)]))
    assert str(result) == "Node 0 is predicted 'class 1' (1.00). It would be 'class 0' (0.95) with the edge 0–4 added."
    assert result.to_dict()["edits"] == [["add", 0, 4]]
    assert result.status is Status.OPTIMAL


def test_several_added_edges_are_counted_in_the_sentence() -> None:
    data = graph([1.5, -1, -1], [(1, 2)])
    result = butfor.explain(Votes(), data, 0, space=EditSpace(add=[(0, 1), (0, 2)]))
    assert "it would be" in str(result).lower()
    assert str(result).endswith("with these 2 edges (0–1, 0–2) added.")


def test_an_edge_is_added_in_both_directions_of_an_undirected_graph_and_in_one_of_a_directed_one() -> None:
    x = torch.tensor([[1.0], [-3.0]])
    pairs = torch.empty(2, 0, dtype=torch.long)
    for source, target, found in ((1, 0, True), (0, 1, False)):
        space = EditSpace(add=[(source, target)])
        directed = butfor.explain(Votes(), Data(x=x, edge_index=pairs), 0, space=space, directed=True)
        assert directed.found is found
        assert directed.added_edges == (((source, target),) if found else ())
        either = butfor.explain(Votes(), Data(x=x, edge_index=pairs), 0, space=space, directed=False)
        assert either.added_edges == ((0, 1),)


def test_no_edge_goes_where_none_may_be_deleted(star: Data) -> None:
    space = EditSpace(delete=False, add=[(0, 4)], costs={(0, 4): 40})
    for method in (Exact(), Greedy(), RandomPerturbation(), CFGNN(epochs=50)):
        result = butfor.explain(Votes(), star, 0, method, space=space)
        assert not result.removed_edges
        assert not result.found or result.cost == 40
    assert butfor.explain(Votes(), star, 0, space=EditSpace(delete=False)).status is Status.IMPOSSIBLE


def test_additions_that_carry_nothing_special_have_weight_one() -> None:
    data = graph([1, -0.8, -0.8], [(1, 2)])
    data.edge_weight = torch.full((2,), 9.0)
    both_needed = butfor.explain(WeightedVotes(), data, 0, space=EditSpace(add=[(0, 1), (0, 2)]))
    assert both_needed.added_edges == ((0, 1), (0, 2))
    heavy = EditSpace(add=[(0, 1), (0, 2)], carries={"edge_weight": 2.0})
    result = butfor.explain(WeightedVotes(), data, 0, space=heavy)
    assert result.cost == 1
    assert result.after.probability == pytest.approx(float(torch.tensor([0.6, -0.6]).softmax(0)[0]), abs=1e-5)


def test_additions_carry_the_attributes_that_were_given() -> None:
    data = graph([1, -1, 0], [(1, 2)])
    data.edge_attr = torch.ones(2, 2)
    space = EditSpace(add=[(0, 1)], carries={"edge_attr": [3.0, 0.0]})
    result = butfor.explain(WeightedVotes(), data, 0, space=space)
    assert result.after.probability == pytest.approx(float(torch.tensor([2.0, -2.0]).softmax(0)[0]), abs=1e-5)
    weak = EditSpace(add=[(0, 1)], carries={"edge_attr": [0.5, 9.0]})
    assert butfor.explain(WeightedVotes(), data, 0, space=weak).status is Status.IMPOSSIBLE


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (EditSpace(add=[(0, 2)]), r"reads edge_attr, .* what an added edge carries .*'edge_attr': .* shape \(2,\)"),
        (EditSpace(add=Within()), "the model reads edge_attr"),
        (EditSpace(add=[(0, 2)], carries={"edge_attr": 1.0}), r"edge_attr the shape \(\), but edges have \(2,\)"),
        (EditSpace(add=[(0, 2)], carries={"edge_attr": [1.0]}), r"edge_attr the shape \(1,\), but edges have \(2,\)"),
    ],
)
def test_additions_are_refused_where_nobody_says_what_they_carry(space: EditSpace, message: str) -> None:
    data = graph([1, -1, 0], [(1, 2)])
    data.edge_attr = torch.ones(2, 2)
    with pytest.raises(InputError, match=message):
        butfor.explain(WeightedVotes(), data, 0, space=space)
    # A model that does not read them does not mind.
    assert butfor.explain(Votes(), data, 0, space=EditSpace(add=[(0, 1), (0, 2)])) is not None


def test_flipped_features_and_those_between_two_ends() -> None:
    data = Data(x=torch.tensor([[0.0, 4.0], [1.0, 4.0]]), edge_index=both([(0, 1)]))
    flips = butfor.explain(
        Votes(), data, 0, Exact(all_smallest=True), space=EditSpace(features=Features(within=1, columns=[0]))
    )
    assert {flips.edits, *flips.alternatives} == {(Deletion(0, 1),), (Change(1, 0, 1.0, 0.0),)}
    rule = Features(between=(-2.0, 2.0), steps=9, columns=[0], within=0)
    tried = Session.of(Votes(), data, space=EditSpace(features=rule)).builder.build((0,)).edits.changes
    # 0 is what it has.
    assert tried.after.tolist() == [-2.0, -1.5, -1.0, -0.5, 0.5, 1.0, 1.5, 2.0]
    result = butfor.explain(Votes(), data, 0, Exact(all_smallest=True), space=EditSpace(delete=False, features=rule))
    # At -1 it is a tie, and class 0 wins a tie.
    assert {some[0].after for some in (result.edits, *result.alternatives)} == {-2.0, -1.5, -1.0}
    assert result.edits == (Change(0, 0, 0.0, -2.0),)


def test_features_change_at_the_target_unless_it_is_said_where() -> None:
    data = Data(x=torch.ones(4, 2), edge_index=both([(0, 1), (1, 2), (2, 3)]))

    def nodes(**rule: object) -> set[int]:
        space = EditSpace(features=Features(values=[5.0], **rule))
        edits = Session.of(Votes(2), data, space=space).builder.build((0,)).edits
        return set(edits.neighbourhood.nodes[edits.changes.node].tolist())

    assert nodes() == {0}
    assert nodes(within=1) == {0, 1}
    assert nodes(within=2) == {0, 1, 2}
    assert nodes(nodes=[2]) == {2}


def test_an_edge_that_may_be_added_does_not_bring_features_nearer() -> None:
    data = Data(x=torch.ones(8, 1), edge_index=both((i, i + 1) for i in range(7)))
    space = EditSpace(add=[(0, 7)], features=Features(values=[5.0], within=1))
    edits = Session.of(Votes(2), data, space=space).builder.build((0,)).edits
    assert set(edits.neighbourhood.nodes[edits.changes.node].tolist()) == {0, 1}


def test_a_feature_has_one_value_at_a_time() -> None:
    # Two changes of one feature would add up to enough, but a feature has only one value.
    data = graph([2, 1], [(0, 1)])
    space = EditSpace(delete=False, features=Features(values=[-0.5, -0.75], nodes=[0]))
    for method in (Exact(), Greedy(), CFGNN(epochs=50), RandomPerturbation()):
        assert not butfor.explain(Votes(), data, 0, method, space=space).found
    assert butfor.explain(Votes(), data, 0, space=space).status is Status.IMPOSSIBLE


@pytest.mark.parametrize(
    "features",
    [Features(values=[-9.0, -9.0]), [Features(values=[-9.0]), Features(values=[-9.0, 3.0])]],
    ids=["in one rule", "in two rules"],
)
def test_a_value_that_is_given_twice_is_one_edit(features: object) -> None:
    space = EditSpace(delete=False, features=features)
    result = butfor.explain(Votes(), graph([2, 1], [(0, 1)]), 0, Exact(all_smallest=True), space=space)
    assert (result.edits, result.alternatives) == ((Change(0, 0, 2.0, -9.0),), ())


def test_a_value_in_two_rules_has_the_lower_cost() -> None:
    rules = [Features(values=[-9.0], cost=3.0), Features(values=[-9.0], cost=2.0)]
    space = EditSpace(delete=False, features=rules)
    result = butfor.explain(Votes(), graph([2, 1], [(0, 1)]), 0, space=space)
    assert (result.cost, result.status) == (2.0, Status.OPTIMAL)


# Rules about sets.


@pytest.mark.parametrize("method", [Exact(), Greedy(), CFGNN(epochs=50), RandomPerturbation(), RemoveEgo()])
@pytest.mark.parametrize("most", [1, 2, 3])
def test_no_answer_has_more_edits_than_allowed(method: butfor.methods.Method, most: int) -> None:
    data = graph([-1.5, 1, 1, 1], [(0, 1), (0, 2), (0, 3)])
    result = butfor.explain(Votes(), data, 0, method, space=EditSpace(max_edits=most))
    assert not result.found or result.size <= most
    if isinstance(method, Exact):
        # Two neighbours must go.
        assert result.status is (Status.IMPOSSIBLE if most == 1 else Status.OPTIMAL)


def test_a_group_is_one_edit_however_many_edges_it_has() -> None:
    data = graph([-1.5, 1, 1, 1], [(0, 1), (0, 2), (0, 3)])
    space = EditSpace(max_edits=1, groups={"two": [(1, 0), (0, 2)]})
    result = butfor.explain(Votes(), data, 0, space=space)
    assert (result.removed_edges, result.size, result.cost) == (((0, 1), (0, 2)), 2, 1.0)
    dear = EditSpace(groups={"two": [(1, 0), (0, 2)]}, costs={"two": 2.5, (0, 3): 0.5})
    assert butfor.explain(Votes(), data, 0, space=dear).cost == 2.5


def test_a_group_of_which_an_edge_must_stay_stays() -> None:
    data = graph([-1.5, 1, 1, 1], [(0, 1), (0, 2), (0, 3)])
    groups = [[(0, 1), (0, 2)]]
    for space in (EditSpace(groups=groups, protected=[(2, 0)]), EditSpace(groups=groups, allowed=[(0, 1), (0, 3)])):
        result = butfor.explain(Votes(), data, 0, space=space)
        assert result.status is Status.IMPOSSIBLE


def test_a_multi_edge_goes_as_a_whole() -> None:
    data = Data(x=torch.tensor([[-1.0], [1.0]]), edge_index=both([(0, 1), (0, 1), (0, 1)]))
    result = butfor.explain(Votes(), data, 0)
    assert (result.removed_edges, result.cost, result.edges) == (((0, 1),), 1.0, 1)


@pytest.mark.parametrize("method", [Exact(), Greedy(), CFGNN(epochs=50), RandomPerturbation(), RemoveEgo(), KeepEgo()])
def test_nothing_is_cut_off_where_all_must_stay_connected(method: butfor.methods.Method) -> None:
    # A triangle with a tail: 0–1, 0–2, 1–2, 2–3. Both edges of 0 would have to go.
    data = graph([-1, 1, 1, 0], [(0, 1), (0, 2), (1, 2), (2, 3)])
    assert butfor.explain(Votes(), data, 0).removed_edges in {((0, 1),), ((0, 2),)}
    data.x[0] = -0.5
    assert butfor.explain(Votes(), data, 0).size == 2
    result = butfor.explain(Votes(), data, 0, method, space=EditSpace(keep_connected=True))
    assert not result.found
    assert not isinstance(method, Exact) or result.status is Status.IMPOSSIBLE


def test_an_added_edge_may_keep_together_what_a_deleted_one_parts() -> None:
    # 0 must leave 1; it may then hang on 2, which hangs on 1.
    data = graph([-1, 5, -1], [(0, 1), (1, 2)])
    assert butfor.explain(Votes(), data, 0, space=EditSpace(keep_connected=True)).status is Status.IMPOSSIBLE
    result = butfor.explain(Votes(), data, 0, space=EditSpace(keep_connected=True, add=[(0, 2)]))
    assert result.edits == (Deletion(0, 1), Addition(0, 2))
    assert (result.status, result.lower_bound) == (Status.OPTIMAL, 2.0)


@pytest.mark.parametrize("method", [Exact(), Greedy()], ids=["Exact", "Greedy"])
def test_an_edge_to_another_part_does_not_make_up_for_one_that_is_cut_off(method: butfor.methods.Method) -> None:
    # 0–1 and 2–3 are apart. To change 0 it must leave 1 and join 2, and then 1 is cut off from 0.
    data = graph([0, 3, -1, 0], [(0, 1), (2, 3)])
    data.x[0] = 0.5
    space = EditSpace(keep_connected=True, allowed=[(0, 1)], add=[(0, 2)])
    result = butfor.explain(Votes(), data, 0, method, space=space)
    assert result.removed_edges == ()


@pytest.mark.parametrize("model", ["Votes", "GCN"])
def test_an_added_edge_that_the_model_does_not_see_may_keep_together_what_a_deleted_one_parts(model: str) -> None:
    if model == "Votes":
        # 0 must leave 1. One round of votes at 0 sees nothing of an edge 1–2.
        data = graph([-1, 5, 0], [(0, 1), (0, 2)])
        space = EditSpace(keep_connected=True, add=[(1, 2)])
        result = butfor.explain(Votes(), data, 0, space=space)
        assert int(Votes()(data.x, both([(0, 2), (1, 2)]))[0].argmax()) == 0
        assert result.edits == (Deletion(0, 1), Addition(1, 2))
    else:
        # One layer at 0 sees the degrees of 1 and 2, and of 3 and 4 nothing.
        data = Data(
            x=torch.tensor([[-1.0], [5.0], [-1.0], [0.0], [0.0]]), edge_index=both([(0, 1), (0, 2), (1, 3), (2, 4)])
        )
        gcn = GCN(1, 4, 1, 2).eval()
        with torch.no_grad():
            gcn.convs[0].lin.weight.copy_(torch.tensor([[-1.0], [1.0]]))
            gcn.convs[0].bias.zero_()
        space = EditSpace(keep_connected=True, allowed=[(0, 1)], add=[(3, 4)])
        scores = gcn(data.x, both([(0, 2), (1, 3), (2, 4), (3, 4)]))[0]
        assert int(scores.argmax()) != int(gcn(data.x, data.edge_index)[0].argmax())
        result = butfor.explain(gcn, data, 0, space=space)
        assert result.edits == (Deletion(0, 1), Addition(3, 4))
    assert (result.status, result.cost) == (Status.OPTIMAL, 2.0)


class DegreeVotes(torch.nn.Module):
    """A node votes with how many edges it has less two: a model may look at degrees outside of its layers."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = SimpleConv("sum")

    def forward(self, x, edge_index):
        degree = torch.zeros(len(x)).index_add(0, edge_index[1], torch.ones(edge_index.size(1)))
        total = x[:, :1] + self.layer(degree[:, None] - 1.5, edge_index)
        return torch.cat([-total, total], dim=1)


def test_a_model_that_counts_degrees_before_its_layers_is_searched_in_full() -> None:
    # A triangle. Without 1–2 both neighbours of 0 have one edge less, and vote -0.5.
    data = graph([0, 0, 0], [(0, 1), (0, 2), (1, 2)])
    data.x[0] = 0.75
    model = DegreeVotes()
    labels = {gone: int(model(data.x, both({(0, 1), (0, 2), (1, 2)} - {gone}))[0].argmax()) for gone in links_of(data)}
    assert int(model(data.x, data.edge_index)[0].argmax()) == 1
    assert labels == {(0, 1): 1, (0, 2): 1, (1, 2): 0}
    result = butfor.explain(model, data, 0)
    assert (result.removed_edges, result.status) == (((1, 2),), Status.OPTIMAL)


def links_of(data: Data) -> set[Pair]:
    return {link_of(pair, False) for pair in data.edge_index.T.tolist()}


# Groups that reach beyond the target's neighbourhood.


def test_members_of_a_group_far_away_go_too_and_are_named() -> None:
    # A path 0 to 9; one round of votes sees two hops. The group holds 0–1 and two edges far away.
    data = graph([-0.5, 1, 0, 0, 0, 0, 0, 0, 0, 0], [(i, i + 1) for i in range(9)])
    space = EditSpace(groups={"all": [(0, 1), (6, 5), (8, 9)]}, protected=[(1, 2)])
    problem = Session.of(Votes(), data, space=space).builder.build((0,))
    assert len(problem.edits) == 1
    assert EditedBatch.whole_graph(problem.graph, [(0,)], [(problem.edits, [0])]).edge_index.shape == (2, 12)
    for method in (Exact(), Greedy(), RandomPerturbation(), RemoveEgo(), RemoveSubgraph(size=1, epochs=3)):
        result = butfor.explain(Votes(), data, 0, method, space=space)
        assert result.removed_edges == ((0, 1), (5, 6), (8, 9))
        assert (result.cost, result.size) == (1.0, 3)
        for link in ("0–1", "5–6", "8–9"):
            assert link in str(result)
        # The whole graph without them, by hand, says the same.
        kept = data.edge_index[:, [tuple(sorted(e)) not in result.removed_edges for e in data.edge_index.T.tolist()]]
        assert kept.size(1) == 12
        scores = Votes()(data.x, kept)[0]
        assert result.after.label == int(scores.argmax()) == 0
        assert result.after.probability == pytest.approx(float(scores.softmax(0)[0]), abs=1e-6)


def test_a_sentence_does_not_name_more_edges_than_there_are() -> None:
    data = graph([-0.5, 1, 0, 0, 0, 0, 0, 0, 0, 0], [(i, i + 1) for i in range(9)])
    space = EditSpace(groups={"all": [(0, 1), (6, 5), (8, 9)]})
    result = butfor.explain(Votes(), data, 0, space=space)
    counted = re.search(r"these (\d+) of its (\d+) edges", str(result))
    assert counted is None or int(counted[1]) <= int(counted[2])


def test_a_group_goes_whichever_of_its_members_a_target_sees() -> None:
    data = graph([-0.5, 1, 0, 1, -0.5], [(0, 1), (1, 2), (2, 3), (3, 4)])
    result = butfor.explain(Votes(), data, [0, 4], space=EditSpace(groups=[[(0, 1), (3, 4)]]))
    for one in result:
        assert one.removed_edges == ((0, 1), (3, 4))
        assert one.cost == 1.0


# Additions bring far nodes near.


def larger(directed: bool, seed: int = 0) -> Data:
    """A ring of 40 nodes with some chords."""
    random = np.random.default_rng(seed)
    pairs = [(i, (i + 1) % 40) for i in range(40)] + [(0, 5), (20, 26), (21, 30), (13, 17)]
    edge_index = torch.tensor(pairs).T.contiguous() if directed else both(pairs)
    return Data(x=torch.from_numpy(random.normal(size=(40, 3))).float(), edge_index=edge_index)


@pytest.mark.parametrize("add", [[(0, 20), (20, 10), (33, 21)], Within(hops=2, most=40)], ids=["given", "within"])
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("kind", ["GCN", "GraphSAGE", "GAT", "PaperGCN"])
def test_the_neighbourhood_with_additions_gives_the_scores_of_the_whole_graph(
    kind: str, directed: bool, add: object
) -> None:
    data, (model, _) = larger(directed), build(kind, 1, 3)
    if directed and isinstance(add, list):
        add = [pair[::-1] for pair in add]
    space = EditSpace(add=add, features=Features(values=[-3.0, 3.0], columns=[1], within=3))
    problem = Session.of(model, data, space=space, directed=directed).builder.build((0,))
    inside = set(problem.edits.neighbourhood.nodes.tolist())
    assert len(inside) < 40
    if isinstance(add, list):
        assert {20, 19, 10} <= inside
        assert len(problem.edits.added.edit) == (3 if {33, 21} <= inside else 2)
    random = np.random.default_rng(0)
    count = len(problem.edits)
    new = np.flatnonzero(np.isin(np.arange(count), problem.edits.added.edit))
    sizes = [size for size in (1, 2, 3, 5, 8, 12) if size <= count]
    sets = [random.choice(count, size=size, replace=False) for size in sizes for _ in range(4)]
    sets += [[one] for one in new[:10]] + [new]
    sets = [sorted(some) for some in sets if _one_value_each(problem.edits.records(some))]
    found = problem.ask(sets).logits
    assert len(sets) > 10
    assert any(isinstance(edit, Addition) for some in sets for edit in problem.edits.records(some))
    for some, scores in zip(sets, found, strict=True):
        acts: list[Act] = []
        for edit in problem.edits.records(some):
            if isinstance(edit, Deletion):
                acts.append(Cut(((edit.source, edit.target),)))
            elif isinstance(edit, Addition):
                acts.append(Join((edit.source, edit.target)))
            else:
                acts.append(Put(edit.node, edit.feature, edit.after))
        truth = scores_after(model, data, directed, acts, np.ones((1, len(acts)), dtype=bool), {})[0, 0]
        assert scores.numpy() == pytest.approx(truth, abs=1e-4), acts


def _one_value_each(edits: Sequence[Edit]) -> bool:
    slots = [(edit.node, edit.feature) for edit in edits if isinstance(edit, Change)]
    return len(set(slots)) == len(slots)


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_an_edit_beyond_an_added_edge_is_found_on_a_larger_graph(directed: bool) -> None:
    # 0 must be joined to 20, and 20 rid of the vote of 19, which only two rounds see.
    data = larger(directed)
    data.x = torch.zeros(40, 1)
    data.x[0], data.x[20], data.x[19] = 0.5, -4.0, 9.0
    ways = (20, 0) if directed else (0, 20)
    model = Votes(2)
    space = EditSpace(add=[ways])
    result = butfor.explain(model, data, 0, space=space, directed=directed)
    truth = {}
    for gone in [(), *(((u, v),) for u, v in {link_of(pair, directed) for pair in data.edge_index.T.tolist()})]:
        for joined in ((), (ways,)):
            acts = [*(Cut((link,)) for link in gone), *(Join(ends) for ends in joined)]
            scores = scores_after(model, data, directed, acts, np.ones((1, len(acts)), dtype=bool), {})[0, 0]
            truth[(*gone, *joined)] = scores.argmax()
    least = min((len(acts) for acts, label in truth.items() if label != truth[()]), default=None)
    assert least == 2
    assert (result.cost, result.status) == (2.0, Status.OPTIMAL)
    assert result.added_edges == (ways,)
    assert truth[(*result.removed_edges, *result.added_edges)] == 0
    assert set(result.removed_edges) <= {(19, 20)}


# Within.


def joined(data: Data, target: int, rule: Within, rounds: int = 2, directed: bool = False) -> list[Pair]:
    """The pairs that may be joined."""
    explainer = Session.of(Votes(rounds), data, space=EditSpace(add=rule), directed=directed)
    edits = explainer.builder.build((target,)).edits
    return [tuple(pair) for pair in edits.neighbourhood.nodes[edits.added.ends].tolist()]


def test_within_means_all_pairs_of_near_nodes_that_have_no_edge() -> None:
    data = graph([0.0] * 7, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 6)])
    assert sorted(joined(data, 0, Within(hops=1))) == [(1, 6)]
    assert sorted(joined(data, 0, Within(hops=2))) == [(0, 2), (1, 6), (2, 6)]
    # The nearest first: the two pairs at distance 2 before the pair at distance 3.
    assert sorted(joined(data, 0, Within(hops=2, most=2))) == [(0, 2), (1, 6)]


def test_within_means_both_directions_of_a_directed_graph() -> None:
    data = Data(x=torch.zeros(4, 1), edge_index=torch.tensor([[1, 2, 3], [0, 0, 2]]))
    assert sorted(joined(data, 0, Within(hops=1), directed=True)) == [(0, 1), (0, 2), (1, 2), (2, 1)]


@pytest.mark.parametrize("hops", [3, 4, 6])
def test_within_reaches_as_far_as_was_said_even_where_the_model_does_not(hops: int) -> None:
    data = graph([1, 0, 0, -5, 0, 0, 0, 0], [(i, i + 1) for i in range(7)])
    assert (0, 3) in joined(data, 0, Within(hops=hops), rounds=1)


def test_a_proof_counts_all_pairs_that_were_allowed() -> None:
    # 0 is one hop from 1 and two from 2; one round of votes sees one hop. To join 0 and 2 is the cheapest by far.
    data = graph([-1, 1.5, -2], [(0, 1), (1, 2)])
    for space in (EditSpace(add=[(0, 2)], costs={(0, 2): 0.4}), EditSpace(add=Within(hops=2, cost=0.4))):
        result = butfor.explain(Votes(), data, 0, space=space)
        assert (result.added_edges, result.cost, result.status) == (((0, 2),), 0.4, Status.OPTIMAL)


def test_a_cap_on_pairs_is_told_and_kept() -> None:
    many = graph([0.5, 0, 0, 0, 0, 0], [(0, i) for i in range(1, 6)])
    capped = butfor.explain(Votes(), many, 0, space=EditSpace(add=Within(most=4)))
    assert capped.note == "Only the 4 nearest pairs could be joined."
    # Five leaves have ten pairs.
    for most in (10, 11):
        assert butfor.explain(Votes(), many, 0, space=EditSpace(add=Within(most=most))).note == ""
    assert "9 nearest" in butfor.explain(Votes(), many, 0, space=EditSpace(add=Within(most=9))).note


def test_the_cost_of_joining_counts() -> None:
    # 1 votes with 0 and 2; to join 0 and 2 costs less than to part any two.
    data = graph([1, 1, 1, -9], [(0, 1), (1, 2), (2, 3)])
    result = butfor.explain(Votes(2), data, 0, Exact(all_smallest=True), space=EditSpace(add=Within(hops=2, cost=0.4)))
    scores = Votes(2)(data.x, both([(0, 1), (1, 2), (2, 3), (0, 2)]))[0]
    assert int(scores.argmax()) == 0
    assert int(Votes(2)(data.x, data.edge_index)[0].argmax()) == 1
    assert (result.edits, result.cost, result.alternatives) == ((Addition(0, 2),), 0.4, ())


# Errors name what is wrong.


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Within(hops=0), r"Within\(hops=0.*at least 1 hop"),
        (lambda: Within(most=0), r"most=0"),
        (lambda: Within(cost=0.0), r"cost of an added edge is 0\.0"),
        (lambda: Within(cost=float("nan")), r"cost of an added edge is nan"),
        (lambda: Features(values="flop"), "'flop'"),
        (lambda: Features(between=(2.0, 2.0)), r"between 2\.0 and 2\.0"),
        (lambda: Features(between=(3, 1)), "between 3 and 1"),
        (lambda: Features(between=(float("nan"), 1)), "between nan and 1"),
        (lambda: Features(between=(0, 1), steps=1), "steps is 1"),
        (lambda: Features(values=[1.0, float("inf")]), r"cannot be set to \[1\.0, inf\]"),
        (lambda: Features(between=(0.0, float("inf"))), "inf"),
        (lambda: Features(cost=-2), "cost of a changed feature is -2"),
    ],
)
def test_rules_that_make_no_sense_are_refused(make: object, message: str) -> None:
    with np.errstate(invalid="ignore"), pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (EditSpace(max_edits=0), "max_edits is 0"),
        (EditSpace(max_edits=-3), "max_edits is -3"),
        (EditSpace(protected=[(1, 2)]), "protected names the edge 1–2, which is not in this graph"),
        (EditSpace(allowed=[(0, 4)]), "allowed names the edge 0–4"),
        (EditSpace(protected=[(0, 77)]), r"node 77 is not in this graph \(0 to 5\)"),
        (EditSpace(protected=[(("a", "to", "b"), 0, 1)]), r"\(\('a', 'to', 'b'\), 0, 1\) is no edge of this graph"),
        (EditSpace(groups={"mine": [(1, 2)]}), "group 'mine' names the edge 1–2"),
        (EditSpace(groups=[[(0, 1)], [(3, 2)]]), "group 'group 1' names the edge 3–2"),
        (EditSpace(groups={"mine": []}), "the group 'mine' is empty"),
        (EditSpace(groups={"a": [(0, 1)], "b": [(1, 0)]}), "edge 1–0 is in two groups, 'a' and 'b'"),
        (EditSpace(add=[(1, 0)]), "add names 0–1, which is an edge of this graph already"),
        (EditSpace(add=[(2, 2)]), "add names 2–2; a node cannot be joined to itself"),
        (EditSpace(add=[(2, 9)]), "node 9 is not in this graph"),
        (EditSpace(costs={"mine": 2.0}), "costs names the group 'mine'"),
        (EditSpace(costs={"mine": 0.0}, groups={"mine": [(0, 1)]}), r"cost of the group 'mine' is 0\.0"),
        (EditSpace(costs={(2, 3): 2.0}), "costs names the edge 2–3, which is not in this graph"),
        (EditSpace(costs={(0, 1): -1.0}), r"cost of edge 0–1 is -1\.0"),
        (EditSpace(costs={(0, 4): float("inf")}, add=[(0, 4)]), "cost of edge 0–4 is inf"),
        (EditSpace(costs={(0, -1): 1.0}), "node -1 is not in this graph"),
        (EditSpace(relations=[("a", "to", "b")]), r"relations names \('a', 'to', 'b'\).*one type of edges"),
        (EditSpace(features=Features(columns=[1])), r"feature 1 is not in this graph \(0 to 0\)"),
        (EditSpace(features=[Features(nodes=[6], values=[1.0])]), "node 6 is not in this graph"),
        (EditSpace(features=Features()), r"feature 0 of node 0 is 0\.5; only 0 and 1"),
    ],
)
def test_rules_that_do_not_fit_the_graph_are_refused(star: Data, space: EditSpace, message: str) -> None:
    with pytest.raises(InputError, match=message):
        butfor.explain(Votes(), star, 0, space=space)


@pytest.mark.parametrize(
    ("goal", "message"),
    [
        (Goal(wanted=2), "class 2 is wanted, but the model has classes 0 to 1"),
        (Goal(wanted=-1), "class -1 is wanted"),
        (Goal(least=-0.25), r"least margin is -0\.25"),
        (Goal(least=float("nan")), "least margin is nan"),
        (Goal(probability=1.0), r"least probability is 1\.0"),
        (Goal(probability=0.0), r"least probability is 0\.0"),
        (Goal(probability=-3.0), r"least probability is -3\.0"),
    ],
)
def test_goals_that_make_no_sense_are_refused(star: Data, goal: Goal, message: str) -> None:
    with pytest.raises(InputError, match=message):
        butfor.explain(Votes(), star, 0, goal=goal)


def test_a_class_that_is_predicted_already_needs_no_edits(star: Data) -> None:
    other, reached = butfor.explain(Votes(), star, [4, 0], goal=Goal(wanted=1))
    assert other.status.value != "reached"
    assert (reached.status.value, reached.edits) == ("reached", ())


# Goals, by hand.


def test_a_least_margin_and_a_least_probability_are_kept() -> None:
    data = graph([-0.25, 0.5, 0.5, 0.5, 0.5], [(0, i) for i in range(1, 5)])

    def sizes(**goal: float) -> int | None:
        return butfor.explain(Votes(), data, 0, goal=Goal(**goal)).size

    # With k votes left the sum is k / 2 - 1 / 4, and the margin twice that.
    assert sizes() == 4
    data.x[0] = -1.25
    assert [sizes(least=margin) for margin in (0.0, 0.4, 0.6, 1.4, 1.6, 2.4, 2.6)] == [2, 2, 3, 3, 4, 4, None]
    chances = [float(torch.tensor(2 * total).sigmoid()) for total in (0.25, 0.75, 1.25)]
    assert [sizes(probability=chance - 0.01) for chance in chances] == [2, 3, 4]
    assert [sizes(probability=chance + 0.01) for chance in chances] == [3, 4, None]


# Plain data.


FULL = {
    "protected": [[0, 1]],
    "costs": [[[0, 2], 2.5], ["pair", 3], [[4, 0], 0.5]],
    "groups": {"pair": [[0, 3], [4, 5]]},
    "add": [[4, 0]],
    "carries": {"edge_weight": 2.0},
    "features": [{"values": "flip", "nodes": [1]}, {"between": [0, 1], "steps": 3, "within": 1, "cost": 2}],
    "max_edits": 3,
    "keep_connected": True,
}


def test_a_space_from_json_means_what_one_from_python_means(star: Data) -> None:
    read = EditSpace.from_dict(json.loads(json.dumps(FULL)))
    written = EditSpace(
        protected=[(0, 1)],
        costs={(0, 2): 2.5, "pair": 3, (4, 0): 0.5},
        groups={"pair": [(0, 3), (4, 5)]},
        add=[(4, 0)],
        carries={"edge_weight": 2.0},
        features=[Features(nodes=[1]), Features(between=(0, 1), steps=3, within=1, cost=2)],
        max_edits=3,
        keep_connected=True,
    )
    for node in range(4):
        first, second = (Session.of(Votes(), star, space=one).builder.build((node,)).edits for one in (read, written))
        assert first.costs.tolist() == second.costs.tolist()
        assert len(first) > 3
        for edit in range(len(first)):
            assert first.records([edit]) == second.records([edit])
    result = butfor.explain(Votes(), star, 0, space=read)
    assert (result.edits, result.cost) == ((Addition(0, 4),), 0.5)


def test_a_space_from_json_may_have_any_of_its_parts(star: Data) -> None:
    assert butfor.explain(Votes(), star, 0, space=EditSpace.from_dict({})).space_id == ""
    assert EditSpace.from_dict({"add": {"hops": 2, "most": 7}}).add == Within(2, 7)
    assert EditSpace.from_dict({"allowed": [[0, 1]]}).allowed == ((0, 1),)
    assert EditSpace.from_dict({"allowed": None}).allowed is None
    assert EditSpace.from_dict({"groups": [[[0, 1], [0, 2]]]}).groups == (((0, 1), (0, 2)),)
    assert EditSpace.from_dict({"features": {"values": [1, 2]}}).features == (Features(values=[1, 2]),)
    typed = EditSpace.from_dict({"protected": [[["a", "to", "b"], 0, 1]], "relations": [["a", "to", "b"]]})
    assert typed.protected == ((("a", "to", "b"), 0, 1),)
    assert typed.relations == (("a", "to", "b"),)


@pytest.mark.parametrize(
    ("plain", "message"),
    [
        ({"protect": []}, "no field 'protect'"),
        ({"protected": [[1]]}, "this is no edit space"),
        ({"protected": [5]}, "this is no edit space"),
        ({"costs": [[[0, 1], 1, 2]]}, "this is no edit space"),
        ({"add": {"hops": 0}}, r"Within\(hops=0"),
        ({"add": {"jumps": 2}}, "jumps"),
        ({"add": [[1, 2, 3]]}, "this is no edit space"),
        ({"features": {"values": "flop"}}, "flop"),
        ({"features": {"colour": 1}}, "colour"),
        ({"features": {"values": 3}}, "this is no edit space"),
    ],
)
def test_json_that_is_no_space_is_refused(plain: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        EditSpace.from_dict(plain)


@pytest.mark.parametrize(
    "plain",
    [
        {"max_edits": "3"},
        {"max_edits": 1.5},
        {"costs": [[[0, 1], "cheap"]]},
        {"features": {"between": [3]}},
    ],
    ids=str,
)
def test_json_with_values_of_the_wrong_kind_is_refused(star: Data, plain: dict) -> None:
    with pytest.raises(InputError):
        butfor.explain(Votes(), star, 0, space=EditSpace.from_dict(plain))


@pytest.mark.parametrize("plain", [{"protected": [[0.5, 1]]}, {"delete": "no"}], ids=str)
def test_json_with_values_that_would_be_misread_is_refused(star: Data, plain: dict) -> None:
    with pytest.raises(InputError):
        butfor.explain(Votes(), star, 0, space=EditSpace.from_dict(plain))


# A run goes on only under the same rules.


def rules_id(data: Data, space: EditSpace) -> str:
    return Session.of(Votes(), data, space=space).space_id


SAME_RULES = {
    "order and direction of edges": (
        EditSpace(protected=[(0, 1), (0, 2)], allowed=[(0, 3), (4, 5)], add=[(0, 4), (1, 2)]),
        EditSpace(protected=((2, 0), (1, 0)), allowed={(5, 4), (3, 0)}, add=[(2, 1), (4, 0)]),
    ),
    "order of costs": (EditSpace(costs={(0, 1): 2.0, (0, 2): 3.0}), EditSpace(costs={(2, 0): 3.0, (1, 0): 2.0})),
    "order in groups": (
        EditSpace(groups={"a": [(0, 1), (0, 2)], "b": [(0, 3)]}),
        EditSpace(groups={"b": ((3, 0),), "a": ((2, 0), (1, 0))}),
    ),
    "one rule or a list of one": (
        EditSpace(features=Features(values=[1.0])),
        EditSpace(features=[Features(values=[1.0])]),
    ),
    "JSON": (
        EditSpace(protected=[(0, 1)], costs={(0, 2): 2.0}, max_edits=2),
        EditSpace.from_dict(json.loads('{"protected": [[1, 0]], "costs": [[[0, 2], 2.0]], "max_edits": 2}')),
    ),
}

SAME_RULES_TOLD_APART = {
    "2 and 2.0": (EditSpace(costs={(0, 1): 2}), EditSpace(costs={(0, 1): 2.0})),
    "an edge twice": (EditSpace(protected=[(0, 1), (1, 0)]), EditSpace(protected=[(0, 1)])),
    "a range as JSON has it": (
        EditSpace(features=Features(between=(0, 1))),
        EditSpace.from_dict({"features": {"between": [0, 1]}}),
    ),
    "values in a tuple": (EditSpace(features=Features(values=[1.0])), EditSpace(features=Features(values=(1.0,)))),
    "columns in a tuple": (
        EditSpace(features=Features(values=[1.0], columns=[0])),
        EditSpace(features=Features(values=[1.0], columns=(0,))),
    ),
    "order of nodes": (
        EditSpace(features=Features(values=[1.0], nodes=[0, 1])),
        EditSpace(features=Features(values=[1.0], nodes=[1, 0])),
    ),
    "what an edge carries in a tuple": (
        EditSpace(add=[(0, 4)], carries={"edge_attr": [1.0]}),
        EditSpace(add=[(0, 4)], carries={"edge_attr": (1.0,)}),
    ),
    "order of groups without names": (
        EditSpace(groups=[[(0, 1)], [(0, 2)]]),
        EditSpace(groups=[[(0, 2)], [(0, 1)]]),
    ),
}


@pytest.mark.parametrize(("first", "second"), SAME_RULES.values(), ids=SAME_RULES)
def test_the_same_rules_have_the_same_fingerprint(star: Data, first: EditSpace, second: EditSpace) -> None:
    assert rules_id(star, first) == rules_id(star, second) != ""


@pytest.mark.parametrize(("first", "second"), SAME_RULES_TOLD_APART.values(), ids=SAME_RULES_TOLD_APART)
def test_the_same_rules_have_the_same_fingerprint_however_written(
    star: Data, first: EditSpace, second: EditSpace
) -> None:
    assert rules_id(star, first) == rules_id(star, second)


def test_other_rules_have_another_fingerprint(star: Data) -> None:
    spaces = [
        EditSpace(),
        EditSpace(protected=[(0, 1)]),
        EditSpace(protected=[(0, 2)]),
        EditSpace(allowed=[(0, 1)]),
        EditSpace(allowed=[]),
        EditSpace(delete=False),
        EditSpace(costs={(0, 1): 2.0}),
        EditSpace(costs={(0, 1): 2.5}),
        EditSpace(costs={(0, 2): 2.0}),
        EditSpace(groups=[[(0, 1), (0, 2)]]),
        EditSpace(groups=[[(0, 1)], [(0, 2)]]),
        EditSpace(add=[(0, 4)]),
        EditSpace(add=[(0, 4)], costs={(0, 4): 2.0}),
        EditSpace(add=[(0, 4)], carries={"edge_weight": 2.0}),
        EditSpace(add=Within()),
        EditSpace(add=Within(2)),
        EditSpace(add=Within(most=9)),
        EditSpace(add=Within(cost=2.0)),
        EditSpace(features=Features(values=[1.0])),
        EditSpace(features=Features(values=[2.0])),
        EditSpace(features=Features(values=[1.0], within=1)),
        EditSpace(features=Features(values=[1.0], columns=[0])),
        EditSpace(features=Features(values=[1.0], cost=2.0)),
        EditSpace(features=Features(between=(0.0, 1.0))),
        EditSpace(features=Features(between=(0.0, 1.0), steps=7)),
        EditSpace(max_edits=2),
        EditSpace(max_edits=3),
        EditSpace(keep_connected=True),
    ]
    ids = [rules_id(star, space) for space in spaces]
    assert ids[0] == ""
    assert len(set(ids)) == len(ids)


def test_a_file_of_results_goes_on_under_the_same_rules_and_no_others(star: Data, tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"

    def explainer(space: EditSpace) -> Session:
        return Session.of(Votes(), star, space=space)

    first = explainer(EditSpace(add=[(0, 4)], costs={(0, 1): 2.0, (0, 4): 3.0}))
    with Store(path, Run.of(first)) as store:
        for _, result in first.stream([0, 1]):
            store.append(result)
    again = explainer(EditSpace(add=[(4, 0)], costs={(4, 0): 3.0, (1, 0): 2.0}))
    with Store(path, Run.of(again)) as store:
        assert list(store.done) == [0, 1]
        store.append(again.one(2))
    other = explainer(EditSpace(add=[(4, 0)], costs={(4, 0): 3.5, (1, 0): 2.0}))
    with pytest.raises(StoreError, match="another edit space"):
        Store(path, Run.of(other))
