"""Graphs of several node and edge types: every answer against every subset of the edges, deleted by hand."""

from __future__ import annotations

import copy
import itertools
import json
from collections import Counter
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import GCN, GATConv, GraphConv, HeteroConv, HGTConv, SAGEConv, SimpleConv, to_hetero
from torch_geometric.transforms import ToUndirected

import butfor
from butfor.edits.addition import Within
from butfor.edits.change import Features
from butfor.edits.deletion import Deletion
from butfor.edits.space import EditSpace
from butfor.errors import ButforError, InputError
from butfor.methods import CFGNN, GRBCD, PRBCD, Exact, Greedy, KeepEgo, RandomPerturbation, RemoveEgo, RemoveSubgraph
from butfor.problem.budget import Budget
from butfor.problem.goal import Goal
from butfor.problem.target import Pair
from butfor.result.counterfactual import Counterfactual
from butfor.result.status import Status
from butfor.runs import Run
from butfor.session import Session

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

CLOSE = 1e-4
NO_LIMIT = Budget(evaluations=None)
CLASSES = 3

Relation = tuple[str, str, str]
Link = tuple[Relation, int, int]

WRITES: Relation = ("author", "writes", "paper")
CITES: Relation = ("paper", "cites", "paper")
IN: Relation = ("paper", "in", "venue")
WIDTHS = {"author": 3, "paper": 4, "venue": 2}
REVERSE = {("paper", "rev_writes", "author"): WRITES, ("venue", "rev_in", "paper"): IN}
METADATA = (list(WIDTHS), [WRITES, CITES, IN, *REVERSE])


def graph(seed: int, sizes: Sequence[int] = (3, 4, 2), links: Sequence[int] = (4, 3, 2)) -> HeteroData:
    """Authors write papers, which cite each other and appear in venues; every edge with its reverse."""
    random = np.random.default_rng(seed)
    data = HeteroData()
    counts = dict(zip(WIDTHS, sizes, strict=True))
    for kind, width in WIDTHS.items():
        data[kind].x = torch.from_numpy(random.normal(size=(counts[kind], width)) * 2).float()
    for relation, count in zip((WRITES, CITES, IN), links, strict=True):
        ends = [(u, v) for u in range(counts[relation[0]]) for v in range(counts[relation[2]])]
        if relation == CITES:
            ends = [(u, v) for u, v in ends if u < v]
        chosen = random.choice(len(ends), size=min(count, len(ends)), replace=False)
        data[relation].edge_index = torch.tensor([ends[i] for i in sorted(chosen)]).T.contiguous()
    return ToUndirected()(data)


# Models: two rounds of messages each.


class Convs(torch.nn.Module):
    """Layers of one kind for each relation, twice, and a linear layer."""

    def __init__(self, kind: str) -> None:
        super().__init__()

        def side_by_side(widths: dict[str, int]) -> HeteroConv:
            made = {
                "SAGE": lambda a, b: SAGEConv((a, b), 5),
                "GAT": lambda a, b: GATConv((a, b), 5, add_self_loops=False),
                "GraphConv": lambda a, b: GraphConv((a, b), 5),
            }[kind]
            return HeteroConv({r: made(widths[r[0]], widths[r[2]]) for r in METADATA[1]}, aggr="sum")

        self.first, self.second = side_by_side(WIDTHS), side_by_side(dict.fromkeys(WIDTHS, 5))
        self.head = torch.nn.Linear(5, CLASSES)

    def forward(self, x_dict, edge_index_dict):
        x_dict = {kind: x.relu() for kind, x in self.first(x_dict, edge_index_dict).items()}
        return {kind: self.head(x) for kind, x in self.second(x_dict, edge_index_dict).items()}


class Attributes(torch.nn.Module):
    """Attention that reads what edges carry, once, for papers alone."""

    def __init__(self) -> None:
        super().__init__()
        convs = {r: GATConv((WIDTHS[r[0]], WIDTHS[r[2]]), 5, add_self_loops=False, edge_dim=2) for r in METADATA[1]}
        self.first, self.head = HeteroConv(convs), torch.nn.Linear(5, CLASSES)

    def forward(self, x_dict, edge_index_dict, edge_attr_dict):
        return self.head(self.first(x_dict, edge_index_dict, edge_attr_dict)["paper"])


class Transformer(torch.nn.Module):
    """HGT."""

    def __init__(self) -> None:
        super().__init__()
        self.into = torch.nn.ModuleDict({kind: torch.nn.Linear(width, 6) for kind, width in WIDTHS.items()})
        self.first, self.second = HGTConv(6, 6, METADATA, heads=2), HGTConv(6, 6, METADATA)
        self.head = torch.nn.Linear(6, CLASSES)

    def forward(self, x_dict, edge_index_dict):
        x_dict = {kind: self.into[kind](x).relu() for kind, x in x_dict.items()}
        x_dict = self.second(self.first(x_dict, edge_index_dict), edge_index_dict)
        return {kind: self.head(x) for kind, x in x_dict.items()}


class Relational(torch.nn.Module):
    """As RGCN: a mean for each relation times a matrix of its own; by PyG's simplest layer, or by hand without any."""

    def __init__(self, by_hand: bool) -> None:
        super().__init__()
        self.into = torch.nn.ModuleDict({kind: torch.nn.Linear(width, 5) for kind, width in WIDTHS.items()})
        self.matrices = torch.nn.ModuleList(torch.nn.Linear(5, 5, bias=False) for _ in METADATA[1])
        self.layer = None if by_hand else SimpleConv("mean")
        self.head = torch.nn.Linear(5, CLASSES)

    def mean(self, x, size, edge_index):
        if self.layer is not None:
            return self.layer((x, x.new_zeros(size, 5)), edge_index)
        total = x.new_zeros(size, 5).index_add(0, edge_index[1], x[edge_index[0]])
        count = x.new_zeros(size).index_add(0, edge_index[1], x.new_ones(edge_index.size(1)))
        return total / count.clamp(min=1)[:, None]

    def forward(self, x_dict, edge_index_dict):
        x_dict = {kind: self.into[kind](x) for kind, x in x_dict.items()}
        for _ in range(2):
            new = dict(x_dict)
            for relation, matrix in zip(METADATA[1], self.matrices, strict=True):
                source, _, target = relation
                got = self.mean(matrix(x_dict[source]), len(x_dict[target]), edge_index_dict[relation])
                new[target] = new[target] + got
            x_dict = {kind: x.tanh() for kind, x in new.items()}
        return self.head(x_dict["paper"])


class Plain(torch.nn.Module):
    """For `to_hetero`."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = SAGEConv((-1, -1), 5), SAGEConv((-1, -1), 5)
        self.head = torch.nn.Linear(5, CLASSES)

    def forward(self, x, edge_index):
        return self.head(self.second(self.first(x, edge_index).relu(), edge_index).relu())


KINDS = ("SAGE", "GAT", "GraphConv", "attributes", "HGT", "RGCN", "RGCN by hand", "to_hetero")


def build(kind: str, seed: int, data: HeteroData) -> torch.nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if kind == "attributes":
            return Attributes().eval()
        if kind == "HGT":
            return Transformer().eval()
        if kind.startswith("RGCN"):
            return Relational("hand" in kind).eval()
        if kind == "to_hetero":
            model = to_hetero(Plain(), METADATA, aggr="sum").eval()
            with torch.no_grad():
                model(data.x_dict, data.edge_index_dict)
            return model
        return Convs(kind).eval()


# Questions, and the truth about them.


def forward_of(relation: Relation, u: int, v: int) -> Link:
    """An edge as a person counts it: of the forward relation, and a citation from the lower number."""
    if relation in REVERSE:
        return REVERSE[relation], v, u
    return (relation, min(u, v), max(u, v)) if relation == CITES else (relation, u, v)


def links_of(data: HeteroData) -> list[Link]:
    return sorted({forward_of(r, u, v) for r in data.edge_types for u, v in data[r].edge_index.T.tolist()})


def scores_without(
    model: torch.nn.Module, data: HeteroData, sets: Sequence[Iterable[Link]], node_type: str
) -> np.ndarray:
    """The scores of all nodes of a type without these edges, for each set: edited graphs laid side by side."""
    sets, count = [set(some) for some in sets], len(sets)
    x = {kind: data[kind].x.double().repeat(count, 1) for kind in data.node_types}
    ends, attr = {}, {}
    for relation in data.edge_types:
        pairs = data[relation].edge_index.T.tolist()
        shift = torch.tensor([[data[relation[0]].num_nodes], [data[relation[2]].num_nodes]])
        kept = [[i for i, (u, v) in enumerate(pairs) if forward_of(relation, u, v) not in gone] for gone in sets]
        parts = [data[relation].edge_index[:, some] + number * shift for number, some in enumerate(kept)]
        ends[relation] = torch.cat(parts, dim=1)
        if "edge_attr" in data[relation]:
            attr[relation] = torch.cat([data[relation].edge_attr[some] for some in kept]).double()
    model = copy.deepcopy(model).double().eval()
    with torch.no_grad():
        out = model(x, ends, attr) if isinstance(model, Attributes) else model(x, ends)
    out = out[node_type] if isinstance(out, dict) else out
    return out.view(count, data[node_type].num_nodes, -1).numpy()


@dataclass(frozen=True, eq=False)
class Case:
    """A model, a graph and the rules: as sets of edges with costs for brute force, and as the library takes them."""

    name: str
    model: torch.nn.Module
    data: HeteroData
    node_type: str
    acts: tuple[tuple[tuple[Link, ...], int], ...]
    space: EditSpace
    goal: Goal

    @cached_property
    def chosen(self) -> np.ndarray:
        count = len(self.acts)
        rows = (np.arange(2**count)[:, None] >> np.arange(count)) & 1 == 1
        return rows if self.space.max_edits is None else rows[rows.sum(axis=1) <= self.space.max_edits]

    def links(self, row: int) -> frozenset[Link]:
        return frozenset(link for i in np.flatnonzero(self.chosen[row]) for link in self.acts[i][0])

    @cached_property
    def scores(self) -> np.ndarray:
        sets = [self.links(row) for row in range(len(self.chosen))]
        return scores_without(self.model, self.data, sets, self.node_type)

    @cached_property
    def tenths(self) -> np.ndarray:
        return self.chosen @ np.array([tenths for _, tenths in self.acts], dtype=np.int64)

    def ask(self, nodes: list[int], method: butfor.methods.Method) -> list[Counterfactual]:
        return butfor.explain(
            self.model,
            self.data,
            nodes,
            method,
            goal=self.goal,
            space=self.space,
            budget=NO_LIMIT,
            node_type=self.node_type,
        )


@dataclass(frozen=True, eq=False)
class Truth:
    node: int
    before: int
    lead: np.ndarray
    least: int | None
    smallest: dict[frozenset[Link], int]


@cache
def truths(case: Case) -> list[Truth]:
    """The truth about every node that can be asked about, and told."""
    found = []
    for node in range(case.data[case.node_type].num_nodes):
        rows, goal = case.scores[:, node], case.goal
        before = int(rows[0].argmax())
        if before == goal.wanted:
            continue
        own = before if goal.wanted is None else goal.wanted
        lead = np.delete(rows, own, axis=1).max(axis=1) - rows[:, own]
        lead = (lead if goal.wanted is None else -lead) - goal.least
        least = int(case.tenths[lead > 0].min()) if (lead > 0).any() else None
        matters = lead if least is None else lead[case.tenths <= least]
        top = np.sort(rows[0])
        if (np.abs(matters[1:]) < CLOSE).any() or top[-1] - top[-2] < CLOSE:
            continue
        smallest = {case.links(row): row for row in np.flatnonzero((lead > 0) & (case.tenths == least))}
        found.append(Truth(node, before, lead, least, smallest))
    return found


@cache
def random_case(kind: str, seed: int) -> Case:
    """A small random problem; its rules vary with the seed."""
    random = np.random.default_rng([sum(kind.encode()), seed])
    data = graph(seed, links=(4, 3, 3))
    if kind == "attributes":
        carried = {link: random.normal(size=2) for link in links_of(data)}
        for relation in data.edge_types:
            pairs = data[relation].edge_index.T.tolist()
            rows = [carried[forward_of(relation, u, v)] for u, v in pairs]
            data[relation].edge_attr = torch.from_numpy(np.array(rows)).float()
    links = [links_of(data)[i] for i in random.permutation(len(links_of(data)))]
    backwards = {forward: relation for relation, forward in REVERSE.items()}

    def written(link: Link) -> Link:
        """The same edge, sometimes by its reverse."""
        relation, u, v = link
        return link if random.random() < 0.5 else (backwards.get(relation, relation), v, u)

    price = (lambda: int(random.choice([4, 10, 15]))) if seed % 2 else (lambda: 10)
    groups, costs, rules, acts = {}, {}, {}, []
    if seed % 3 == 0:
        group = (links.pop(), links.pop())
        acts.append((group, price()))
        groups["pair"] = [written(link) for link in group]
        costs["pair"] = acts[0][1] / 10
    if seed % 4 == 1:
        rules["protected"] = [written(link) for link in links[:2]]
        links = links[2:]
    if seed % 4 == 2:
        rules["allowed"] = [written(link) for link in links[:-2]] + [link for act, _ in acts for link in act]
        links = links[:-2]
    if seed % 4 == 3:
        rules["relations"] = [("paper", "rev_writes", "author"), CITES]
        links = [link for link in links if link[0] != IN]
        acts = [act for act in acts if all(link[0] != IN for link in act[0])]
    for link in links:
        acts.append(((link,), price()))
        if acts[-1][1] != 10:
            costs[written(link)] = acts[-1][1] / 10
    space = EditSpace(costs=costs, groups=groups, max_edits=(None, 3)[seed % 5 == 4], **rules)
    node_type = "paper" if kind in ("attributes", "RGCN", "RGCN by hand") or seed % 2 else "author"
    model = build(kind, seed, data)
    goal = (Goal(), Goal(least=0.05), Goal(wanted=seed % CLASSES))[seed % 3]
    case = Case(f"{kind}, seed {seed}", model, data, node_type, tuple(acts), space, goal)
    name = f"head.{node_type}.bias" if kind == "to_hetero" else "head.bias"
    with torch.no_grad():
        bias = dict(model.named_parameters())[name]
        bias -= torch.from_numpy(case.scores.mean(axis=(0, 1))).to(bias)
    return Case(**{name: getattr(case, name) for name in case.__dataclass_fields__})


def check_result(case: Case, truth: Truth, result: Counterfactual) -> None:
    """What is said is so, whoever found it."""
    told = f"{case.name}, {case.node_type} {truth.node}: {result}"
    assert (result.target, result.node_type, result.task) == (truth.node, case.node_type, "node")
    assert result.before.label == truth.before, told
    if truth.least is None:
        assert not result.found, told
        return
    assert result.status is not Status.IMPOSSIBLE, told
    assert result.lower_bound <= truth.least / 10 + 1e-9, told
    if not result.found:
        return
    gone = frozenset((edit.relation, edit.source, edit.target) for edit in result.edits)
    rows = {case.links(row): row for row in range(len(case.chosen))}
    assert gone in rows, f"{gone} is not allowed, {told}"
    row = rows[gone]
    scores = torch.from_numpy(case.scores[row, truth.node])
    assert truth.lead[row] > -CLOSE, told
    assert result.after.label == int(scores.argmax()), told
    assert result.after.probability == pytest.approx(float(scores.softmax(0).max()), abs=1e-4)
    assert result.cost == pytest.approx(case.tenths[row] / 10)
    assert case.tenths[row] >= truth.least, told
    assert result.status is not Status.OPTIMAL or case.tenths[row] == truth.least, told
    assert (result.size, len(result.removed_edges)) == (len(gone), len(gone))
    assert Counterfactual.from_dict(json.loads(json.dumps(result.to_dict()))) == result
    for (source, name, target), u, v in gone:
        assert f"{source} {u} → {target} {v} ({name})" in str(result)


SEEDS = range(5)


@pytest.mark.parametrize("seed", [seed if seed < 2 else pytest.param(seed, marks=pytest.mark.slow) for seed in SEEDS])
@pytest.mark.parametrize("kind", KINDS)
def test_exact_proves_what_brute_force_finds(kind: str, seed: int) -> None:
    case = random_case(kind, seed)
    known = truths(case)
    for truth, result in zip(known, case.ask([truth.node for truth in known], Exact(all_smallest=True)), strict=True):
        check_result(case, truth, result)
        if truth.least is None:
            assert result.status is Status.IMPOSSIBLE, f"{case.name}: {result}"
            continue
        assert result.status is Status.OPTIMAL, f"{case.name}: {result}"
        assert result.lower_bound == pytest.approx(truth.least / 10)
        sets = [
            frozenset((edit.relation, edit.source, edit.target) for edit in some)
            for some in (result.edits, *result.alternatives)
        ]
        assert len(sets) == len(truth.smallest)
        assert set(sets) == set(truth.smallest), f"{case.name}: {result}"


def test_the_random_problems_are_worth_solving() -> None:
    known = [
        (case, truth)
        for kind in KINDS
        for seed in SEEDS
        for case in [random_case(kind, seed)]
        for truth in truths(case)
    ]
    assert len(known) > 100
    seen = Counter(relation for _, truth in known for some in truth.smallest for relation, _, _ in some)
    assert set(seen) == {WRITES, CITES, IN}
    assert sum(truth.least is None for _, truth in known) > 5
    assert sum(len(some) > 1 for _, truth in known for some in truth.smallest) > 20


METHODS = (
    Greedy(),
    Greedy(width=2),
    CFGNN(epochs=10),
    PRBCD(epochs=5),
    GRBCD(epochs=6),
    RandomPerturbation(samples=100),
    RemoveEgo(),
    KeepEgo(),
)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS, ids=lambda method: repr(method)[:18])
@pytest.mark.parametrize("kind", ["SAGE", "attributes", "HGT", "to_hetero"])
def test_no_method_breaks_a_rule_or_beats_the_truth(kind: str, method: butfor.methods.Method) -> None:
    for seed in (0, 3):
        case = random_case(kind, seed)
        known = truths(case)
        for truth, result in zip(known, case.ask([truth.node for truth in known], method), strict=True):
            check_result(case, truth, result)
            if isinstance(method, CFGNN) and result.found:
                assert "Greedy searched in place of CFGNN" in result.note


def test_a_subgraph_explainer_is_refused() -> None:
    data = graph(0)
    with pytest.raises(InputError, match=r"RemoveSubgraph .* a graph of one type"):
        butfor.explain(build("SAGE", 0, data), data, 0, RemoveSubgraph(size=1), node_type="paper")


# Small graphs whose answers can be read off.


class Votes(torch.nn.Module):
    """Class 1 where what a user and its neighbours of every kind say adds up to more than 0."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = SimpleConv("sum")

    def forward(self, x_dict, edge_index_dict):
        total = x_dict["user"].clone()
        for (source, _, target), edge_index in edge_index_dict.items():
            if target == "user":
                total = total + self.layer((x_dict[source], x_dict["user"]), edge_index)
        return torch.cat([-total, total], dim=1)


def shop(**relations: list[tuple[int, int]]) -> HeteroData:
    """User 0 says -1, items say 2; relations from users to items, each with its reverse."""
    data = HeteroData()
    data["user"].x, data["item"].x = torch.tensor([[-1.0], [0.0]]), torch.full((3, 1), 2.0)
    for name, pairs in relations.items():
        data["user", name, "item"].edge_index = torch.tensor(pairs).T.contiguous()
    return ToUndirected()(data)


def test_an_edge_and_its_reverse_are_one_edit() -> None:
    data = shop(buys=[(0, 1), (1, 2)])
    result = butfor.explain(Votes(), data, 0, node_type="user")
    buys = ("user", "buys", "item")
    assert result.edits == (Deletion(0, 1, buys),)
    assert (result.cost, result.edges, result.status) == (1.0, 1, Status.OPTIMAL)
    assert str(result) == (
        "User 0 is predicted 'class 1' (0.88). But for this 1 of its 1 edges it would be 'class 0' (0.88): "
        "user 0 → item 1 (buys)."
    )
    # The model reads only the reverse, so that must be gone too; named either way, it is the same edge.
    for link in ((buys, 0, 1), (("item", "rev_buys", "user"), 1, 0)):
        kept = butfor.explain(Votes(), data, 0, node_type="user", space=EditSpace(protected=[link]))
        assert kept.status is Status.IMPOSSIBLE
        dear = butfor.explain(Votes(), data, 0, node_type="user", space=EditSpace(costs={link: 2.5}))
        assert (dear.cost, dear.edits) == (2.5, result.edits)


def test_relations_with_the_same_edges_keep_their_own_reverses() -> None:
    data = shop(buys=[(0, 1)], views=[(0, 1)])
    result = butfor.explain(Votes(), data, 0, Exact(all_smallest=True), node_type="user")
    # Two items say 2 each and user 0 says -1: both edges must go.
    assert set(result.edits) == {Deletion(0, 1, ("user", "buys", "item")), Deletion(0, 1, ("user", "views", "item"))}
    assert result.edges == 2
    for name in ("buys", "views"):
        only = EditSpace(relations=[("user", name, "item")])
        assert butfor.explain(Votes(), data, 0, node_type="user", space=only).status is Status.IMPOSSIBLE
    data["user"].x[0] = -3.0
    for name in ("buys", "views"):
        only = EditSpace(relations=[("item", f"rev_{name}", "user")])
        result = butfor.explain(Votes(), data, 0, node_type="user", space=only)
        assert result.edits == (Deletion(0, 1, ("user", name, "item")),)
        assert result.after.probability == pytest.approx(float(torch.tensor(2.0).sigmoid()), abs=1e-5)


def test_a_relation_without_a_reverse_has_direction() -> None:
    data = HeteroData()
    data["user"].x, data["item"].x = torch.tensor([[-1.0], [1.5], [-9.0]]), torch.zeros(1, 1)
    data["user", "follows", "user"].edge_index = torch.tensor([[1, 0], [0, 2]])
    data["item", "sold_to", "user"].edge_index = torch.tensor([[0], [0]])
    result = butfor.explain(Votes(), data, 0, node_type="user")
    assert result.edits == (Deletion(1, 0, ("user", "follows", "user")),)
    # 0 follows nobody that matters: what it sends to 2 is not in its neighbourhood.
    assert (result.edges, result.nodes) == (2, 3)


def test_a_relation_that_is_its_own_reverse_is_undirected() -> None:
    data = HeteroData()
    data["user"].x = torch.tensor([[-1.0], [1.5], [0.0]])
    data["user", "knows", "user"].edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    knows = ("user", "knows", "user")
    result = butfor.explain(Votes(), data, 0, node_type="user")
    assert (result.edits, result.cost) == ((Deletion(0, 1, knows),), 1.0)
    for link in ((knows, 0, 1), (knows, 1, 0)):
        space = EditSpace(protected=[link])
        assert butfor.explain(Votes(), data, 0, node_type="user", space=space).status is Status.IMPOSSIBLE


def test_only_edges_of_the_chosen_relations_go() -> None:
    data = shop(buys=[(0, 0)], views=[(0, 1), (0, 2)])
    data["user"].x[0] = -4.5
    buys, views = ("user", "buys", "item"), ("user", "views", "item")
    free = butfor.explain(Votes(), data, 0, Exact(all_smallest=True), node_type="user")
    assert {some for (some,) in (free.edits, *free.alternatives)} == {
        Deletion(0, 0, buys),
        Deletion(0, 1, views),
        Deletion(0, 2, views),
    }
    for relation, count in ((buys, 1), (views, 2)):
        space = EditSpace(relations=[relation])
        for method in (Exact(all_smallest=True), Greedy(), RandomPerturbation(), RemoveEgo()):
            result = butfor.explain(Votes(), data, 0, method, node_type="user", space=space)
            assert result.found
            assert {edit.relation for edit in result.edits} == {relation}
            assert not isinstance(method, Exact) or 1 + len(result.alternatives) == count


def test_a_group_may_hold_edges_of_several_relations_near_and_far() -> None:
    data = shop(buys=[(0, 0), (1, 2)], views=[(0, 0), (0, 1)])
    buys, views = ("user", "buys", "item"), ("user", "views", "item")
    data["user"].x[0] = -2.5
    space = EditSpace(groups={"item 0": [(buys, 0, 0), (("item", "rev_views", "user"), 0, 0), (buys, 1, 2)]})
    result = butfor.explain(Votes(), data, 0, node_type="user", space=space)
    # User 1's purchase is not near user 0, and goes all the same.
    assert result.edits == (Deletion(0, 0, buys), Deletion(1, 2, buys), Deletion(0, 0, views))
    assert (result.cost, result.size, result.edges) == (1.0, 3, 3)


def test_links_of_a_space_survive_json() -> None:
    data = shop(buys=[(0, 0), (0, 1)])
    plain = {
        "protected": [[["user", "buys", "item"], 0, 0]],
        "costs": [[[["item", "rev_buys", "user"], 1, 0], 3.0]],
        "relations": [["user", "buys", "item"]],
    }
    data["user"].x[0] = -2.5
    space = EditSpace.from_dict(json.loads(json.dumps(plain)))
    result = butfor.explain(Votes(), data, 0, node_type="user", space=space)
    assert (result.edits, result.cost) == ((Deletion(0, 1, ("user", "buys", "item")),), 3.0)
    same = EditSpace(
        protected=[(("item", "rev_buys", "user"), 0, 0)],
        costs={(("user", "buys", "item"), 0, 1): 3.0},
        relations=[("item", "rev_buys", "user")],
    )
    ids = [
        Run.of(Session.of(Votes(), data, node_type="user", space=one)).space_id for one in (space, same, EditSpace())
    ]
    assert ids[0] == ids[1] != ids[2]


class Named(torch.nn.Module):
    """Two layers one after another, each for one relation and named after it, as people name them."""

    def __init__(self) -> None:
        super().__init__()
        self.item_like_item, self.item_sold_user = SimpleConv("sum"), SimpleConv("sum")

    def forward(self, x_dict, edge_index_dict):
        items = x_dict["item"] + self.item_like_item(x_dict["item"], edge_index_dict["item", "like", "item"])
        sold = edge_index_dict["item", "sold", "user"]
        total = x_dict["user"] + self.item_sold_user((items, x_dict["user"]), sold)
        return torch.cat([-total, total], dim=1)


def test_layers_named_after_relations_may_work_one_after_another() -> None:
    data = HeteroData()
    data["user"].x, data["item"].x = torch.tensor([[-5.0]]), torch.tensor([[2.0], [2.0]])
    data["item", "like", "item"].edge_index = torch.tensor([[1], [0]])
    data["item", "sold", "user"].edge_index = torch.tensor([[0, 1], [0, 0]])
    like, sold = ("item", "like", "item"), ("item", "sold", "user")
    # The user has -5 + (2 + 2) + 2, and 2 less without the edge between the items.
    without = {like: torch.empty(2, 0, dtype=torch.long), sold: data[sold].edge_index}
    assert Named()(data.x_dict, data.edge_index_dict).argmax() == 1
    assert Named()(data.x_dict, without).argmax() == 0
    space = EditSpace(relations=[like])
    result = butfor.explain(Named(), data, 0, node_type="user", space=space)
    assert (result.edits, result.status) == ((Deletion(1, 0, like),), Status.OPTIMAL)


# A larger graph.


@pytest.mark.parametrize("kind", ["SAGE", "GAT", "GraphConv", "HGT", "RGCN", "to_hetero"])
def test_the_neighbourhood_gives_the_scores_of_the_whole_graph(kind: str) -> None:
    data = graph(7, sizes=(40, 40, 40), links=(45, 25, 30))
    model = build(kind, 3, data)
    explainer = Session.of(model, data, node_type="paper")
    random = np.random.default_rng(1)
    sizes, tried = [], 0
    for node in range(0, 40, 5):
        problem = explainer.builder.build((40 + node,))
        sizes.append(problem.edits.neighbourhood.num_nodes)
        count = len(problem.edits)
        if not count:
            continue
        sets = [[], *(sorted(random.choice(count, size=size)) for size in (1, 1, 2, 3)), list(range(count))]
        sets = [sorted(set(some)) for some in sets]
        tried += len(sets)
        gone = [[(e.relation, e.source, e.target) for e in problem.edits.records(some)] for some in sets]
        truth = scores_without(model, data, gone, "paper")[:, node]
        assert problem.ask(sets).logits.numpy() == pytest.approx(truth, abs=1e-4), node
    assert tried > 24
    assert max(sizes) < 90
    # A layer that all relations share is counted once for each of them, so that one sees too far rather than too near.
    assert sorted(sizes)[len(sizes) // 2] < (90 if kind == "RGCN" else 30)


@pytest.mark.parametrize("kind", ["SAGE", "HGT"])
def test_answers_on_a_larger_graph_hold_when_the_edges_are_deleted_by_hand(kind: str) -> None:
    data = graph(7, sizes=(40, 40, 40), links=(45, 25, 30))
    model = build(kind, 3, data)
    with torch.no_grad():
        model.head.bias -= torch.from_numpy(scores_without(model, data, [()], "paper").mean(axis=(0, 1))).float()
    results = butfor.explain(model, data, range(0, 40, 3), Greedy(), node_type="paper")
    found = [result for result in results if result.found]
    assert found
    intact = scores_without(model, data, [()], "paper")[0]
    assert [result.before.label for result in results] == intact[::3].argmax(axis=1).tolist()
    gone = [[(edit.relation, edit.source, edit.target) for edit in result.edits] for result in found]
    for result, scores in zip(found, scores_without(model, data, gone, "paper"), strict=True):
        assert result.after.label == int(scores[result.target].argmax()) != result.before.label


def test_a_mask_of_nodes_is_of_the_predicted_type() -> None:
    data = graph(2)
    model = build("SAGE", 0, data)
    mask = torch.tensor([True, False, True])
    results = butfor.explain(model, data, mask, node_type="author")
    assert [result.target for result in results] == [0, 2]
    assert results == butfor.explain(model, data, [0, 2], node_type="author")


# Errors.


@pytest.mark.parametrize(
    ("target", "node_type", "message"),
    [
        (0, None, "several node types; say which is predicted: node_type='author' or 'paper' or 'venue'"),
        (0, "editor", r"node type 'editor' is not in this graph \(author, paper, venue\)"),
        (4, "paper", r"paper 4 is not in this graph \(0 to 3\)"),
        (-1, "paper", r"paper -1 is not in this graph \(0 to 3\)"),
        (torch.tensor([True]), "paper", r"mask has shape \(1,\), but the graph has 4 nodes"),
        (None, None, "in a graph of several node types only nodes can be explained"),
        (None, "paper", "in a graph of several node types only nodes can be explained"),
    ],
)
def test_targets_that_do_not_fit_are_refused(target: object, node_type: str | None, message: str) -> None:
    data = graph(0)
    with pytest.raises(InputError, match=message):
        butfor.explain(build("SAGE", 0, data), data, target, node_type=node_type)


@pytest.mark.parametrize("node_type", [None, "editor"])
def test_a_mask_does_not_hide_that_the_node_type_is_wrong(node_type: str | None) -> None:
    data = graph(0)
    with pytest.raises(InputError, match=r"node[ _]type"):
        butfor.explain(build("SAGE", 0, data), data, torch.ones(4, dtype=torch.bool), node_type=node_type)


def test_links_are_refused() -> None:
    data = graph(0)
    with pytest.raises(ButforError, match="link"):
        butfor.explain(build("SAGE", 0, data), data, Pair(0, 1))

    class WithDecoder(Convs):
        def encode(self, x_dict, edge_index_dict):
            return self.first(x_dict, edge_index_dict)

        def decode(self, z, edge_label_index):
            return z["author"][edge_label_index[0]].sum(-1)

    with pytest.raises(InputError, match="only nodes can be explained"):
        butfor.explain(WithDecoder("SAGE").eval(), data, Pair(0, 1), goal=Goal(threshold=0.0))


def test_a_node_type_in_a_graph_of_one_is_refused() -> None:
    data = Data(x=torch.ones(3, 2), edge_index=torch.tensor([[0, 1], [1, 0]]))
    with pytest.raises(InputError, match="node_type is 'paper', but this graph has one type of nodes"):
        butfor.explain(GCN(2, 4, 1, 2).eval(), data, 0, node_type="paper")


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (EditSpace(add=[(0, 1)]), "only edges can be deleted: leave out add and features"),
        (EditSpace(add=Within()), "only edges can be deleted"),
        (EditSpace(features=Features(values=[1.0])), "only edges can be deleted"),
        (
            EditSpace(relations=[("paper", "eats", "paper")]),
            r"relation \('paper', 'eats', 'paper'\) is not in this graph",
        ),
        (EditSpace(protected=[(0, 1)]), r"\(0, 1\) names no relation"),
        (EditSpace(protected=[(("a", "b", "c"), 0, 1)]), r"relation \('a', 'b', 'c'\) is not in this graph"),
        (EditSpace(allowed=[(WRITES, 0, 9)]), r"paper 9 is not in this graph \(0 to 3\)"),
        (EditSpace(allowed=[(WRITES, 3, 0)]), r"author 3 is not in this graph \(0 to 2\)"),
        (EditSpace(costs={(CITES, 0, 0): 2.0}), r"costs names the edge 0–0 of \('paper', 'cites', 'paper'\)"),
        (EditSpace(groups={"g": [(CITES, 1, 1)]}), r"group 'g' names the edge 1–1 of \('paper', 'cites', 'paper'\)"),
        (EditSpace(max_edits=0), "max_edits is 0"),
    ],
)
def test_rules_that_do_not_fit_are_refused(space: EditSpace, message: str) -> None:
    data = graph(0)
    with pytest.raises(InputError, match=message):
        butfor.explain(build("SAGE", 0, data), data, 0, node_type="paper", space=space)


def test_an_edge_in_two_groups_is_found_whichever_way_it_is_written() -> None:
    data = shop(buys=[(0, 1)])
    groups = {"a": [(("user", "buys", "item"), 0, 1)], "b": [(("item", "rev_buys", "user"), 1, 0)]}
    with pytest.raises(InputError, match="in two groups, 'a' and 'b'"):
        butfor.explain(Votes(), data, 0, node_type="user", space=EditSpace(groups=groups))


def test_the_sets_of_brute_force_are_those_of_a_person() -> None:
    data = graph(0, links=(4, 3, 2))
    links = links_of(data)
    assert Counter(relation for relation, _, _ in links) == {WRITES: 4, CITES: 3, IN: 2}
    assert data[CITES].num_edges == 6
    assert all(itertools.starmap(lambda relation, u, v: relation != CITES or u < v, links))
