"""Whole graphs, links and numbers: every answer against every subset of the edits, made by hand in plain torch."""

from __future__ import annotations

import copy
import itertools
import json
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.nn import (
    GCN,
    GATConv,
    GCNConv,
    GINConv,
    SAGEConv,
    SimpleConv,
    global_add_pool,
    global_max_pool,
    global_mean_pool,
)

import butfor
from butfor.edits.addition import Within
from butfor.edits.change import Features
from butfor.edits.space import EditSpace
from butfor.errors import ButforError, InputError, ModelError
from butfor.methods import CFGNN, GRBCD, PRBCD, Exact, Greedy, KeepEgo, RandomPerturbation, RemoveEgo, RemoveSubgraph
from butfor.problem.budget import Budget
from butfor.problem.goal import Goal
from butfor.problem.target import Pair
from butfor.result.counterfactual import Counterfactual
from butfor.result.status import Status
from butfor.runs import Run
from butfor.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from torch import Tensor

# What is closer than this to what is asked may be told wrongly in single precision.
CLOSE = 1e-4
NO_LIMIT = Budget(evaluations=None)

Link = tuple[int, int]


def both(pairs: Iterable[Link]) -> Tensor:
    pairs = list(pairs)
    return torch.tensor([*pairs, *((v, u) for u, v in pairs)], dtype=torch.long).reshape(-1, 2).T.contiguous()


# Models.

POOLS: dict[str, Callable[..., Tensor]] = {"sum": global_add_pool, "mean": global_mean_pool, "max": global_max_pool}


def layer(kind: str, width: int, out: int) -> torch.nn.Module:
    if kind == "GIN":
        return GINConv(torch.nn.Linear(width, out))
    return {"GCN": GCNConv, "SAGE": SAGEConv, "GAT": GATConv}[kind](width, out)


class GraphModel(torch.nn.Module):
    """Two layers, a readout, a linear layer."""

    def __init__(self, kind: str = "SAGE", pool: str = "mean", out: int = 3, probabilities: bool = False) -> None:
        super().__init__()
        self.first, self.second = layer(kind, 3, 6), layer(kind, 6, 6)
        self.head = torch.nn.Linear(6, out)
        self.pool, self.probabilities = pool, probabilities

    def read(self, x, edge_index, batch):
        x = self.second(self.first(x, edge_index).relu(), edge_index).relu()
        out = self.head(POOLS[self.pool](x, batch))
        return out.softmax(-1) if self.probabilities else out

    def forward(self, x, edge_index, batch):
        return self.read(x, edge_index, batch)


class AloneGraphModel(GraphModel):
    """The same for one graph at a time: it cannot be told of several."""

    def forward(self, x, edge_index):
        return self.read(x, edge_index, None)


class EitherGraphModel(GraphModel):
    """The same with a batch if there is one."""

    def forward(self, x, edge_index, batch=None):
        return self.read(x, edge_index, batch)


class LinkModel(torch.nn.Module):
    """An encoder and a decoder, and no forward."""

    def __init__(self, kind: str = "SAGE", out: int = 1, sigmoid: bool = False, flat: bool = True) -> None:
        super().__init__()
        self.layer, self.head = layer(kind, 3, 6), torch.nn.Linear(12, out)
        self.sigmoid, self.flat = sigmoid, flat

    def encode(self, x, edge_index):
        return self.layer(x, edge_index).tanh()

    def decode(self, z, edge_label_index):
        out = self.head(torch.cat([z[edge_label_index[0]], z[edge_label_index[1]]], dim=1))
        out = out.sigmoid() if self.sigmoid else out
        return out.view(-1) if self.flat and out.size(1) == 1 else out


class ForwardLinkModel(LinkModel):
    """The same in one call."""

    def forward(self, x, edge_index, edge_label_index):
        return self.decode(self.encode(x, edge_index), edge_label_index)


class NodeModel(torch.nn.Module):
    """One number for each node."""

    def __init__(self, kind: str = "SAGE", flat: bool = False, sigmoid: bool = False) -> None:
        super().__init__()
        self.first, self.second = layer(kind, 3, 6), layer(kind, 6, 1)
        self.flat, self.sigmoid = flat, sigmoid

    def forward(self, x, edge_index):
        out = self.second(self.first(x, edge_index).relu(), edge_index)
        out = out.sigmoid() if self.sigmoid else out
        return out[:, 0] if self.flat else out


# Questions, and the truth about them.


@dataclass(frozen=True, eq=False)
class Question:
    name: str
    model: torch.nn.Module
    data: Data
    target: int | Pair | None
    directed: bool
    goal: Goal
    add: tuple[Link, ...]

    @property
    def links(self) -> list[Link]:
        pairs = self.data.edge_index.T.tolist()
        return sorted({(u, v) if self.directed else (min(u, v), max(u, v)) for u, v in pairs})

    @property
    def acts(self) -> list[tuple[str, Link]]:
        return [*(("delete", link) for link in self.links), *(("add", link) for link in self.add)]

    def edge_index(self, chosen: Iterable[tuple[str, Link]]) -> Tensor:
        """The edges after these acts."""
        chosen = set(chosen)
        pairs = [tuple(pair) for pair in self.data.edge_index.T.tolist()]
        known = (lambda u, v: (u, v)) if self.directed else (lambda u, v: (min(u, v), max(u, v)))
        kept = [pair for pair in pairs if ("delete", known(*pair)) not in chosen]
        for what, (u, v) in chosen:
            if what == "add":
                kept += [(u, v)] if self.directed else [(u, v), (v, u)]
        return torch.tensor(kept, dtype=torch.long).reshape(-1, 2).T

    def ask(self, method: butfor.methods.Method) -> Counterfactual:
        return butfor.explain(
            self.model,
            self.data,
            self.target,
            method,
            goal=self.goal,
            space=EditSpace(add=self.add),
            budget=NO_LIMIT,
            directed=self.directed,
        )


def outputs(model: torch.nn.Module, data: Data, graphs: list[Tensor], target: int | Pair | None) -> np.ndarray:
    """What a copy of the model in double precision says of the target in each of these graphs, laid side by side."""
    model = copy.deepcopy(model).double().eval()
    nodes, count = data.num_nodes, len(graphs)
    x = data.x.double().repeat(count, 1)
    edge_index = torch.cat([edges + nodes * number for number, edges in enumerate(graphs)], dim=1)
    first = nodes * torch.arange(count)
    with torch.no_grad():
        if isinstance(target, Pair):
            pairs = torch.stack([first + target.source, first + target.target])
            out = model.decode(model.encode(x, edge_index), pairs)
        elif target is None:
            # Models of one graph at a time pool over all nodes; here each graph's are told apart.
            out = model.read(x, edge_index, torch.arange(count).repeat_interleave(nodes))
        else:
            out = model(x, edge_index)[first + target]
    return out.view(count, -1).numpy()


@dataclass(frozen=True, eq=False)
class Truth:
    before: int
    out: dict[frozenset[tuple[str, Link]], np.ndarray]
    lead: dict[frozenset[tuple[str, Link]], float]  # over what is asked
    least: int | None
    close: bool

    @property
    def smallest(self) -> set[frozenset[tuple[str, Link]]]:
        return {some for some, lead in self.lead.items() if lead > 0 and len(some) == self.least}


def truth_of(question: Question) -> Truth:
    goal, model = question.goal, question.model
    probabilities = getattr(model, "probabilities", False)
    subsets = [
        frozenset(some) for n in range(len(question.acts) + 1) for some in itertools.combinations(question.acts, n)
    ]
    rows = outputs(model, question.data, [question.edge_index(some) for some in subsets], question.target)
    out = dict(zip(subsets, rows, strict=True))
    intact = out[frozenset()]
    lead = {}
    if goal.threshold is not None:
        before = int(intact[0] > goal.threshold)
        for some, value in out.items():
            beyond = value[0] - goal.threshold if before == 0 else goal.threshold - value[0]
            lead[some] = float(beyond) - goal.least
    else:
        before = int(intact.argmax())
        own = before if goal.wanted is None else goal.wanted
        for some, row in out.items():
            scores = np.log(row) if probabilities else row
            ahead = np.delete(scores, own).max() - scores[own]
            lead[some] = float(ahead if goal.wanted is None else -ahead) - goal.least
    reached = [len(some) for some, by in lead.items() if by > 0]
    least = min(reached, default=None)
    matters = [by for some, by in lead.items() if some and (least is None or len(some) <= least)]
    return Truth(before, out, lead, least, any(abs(by) < CLOSE for by in matters))


def graph(seed: int, directed: bool, nodes: int = 5, links: int = 6) -> tuple[Data, list[Link]]:
    """A small random graph, and the pairs that it does not have."""
    random = np.random.default_rng(seed)
    pairs = list(itertools.permutations(range(nodes), 2) if directed else itertools.combinations(range(nodes), 2))
    pairs = [pairs[i] for i in random.permutation(len(pairs))]
    columns = torch.tensor(pairs[:links]).T.contiguous() if directed else both(pairs[:links])
    return Data(x=torch.from_numpy(random.normal(size=(nodes, 3)) * 2).float(), edge_index=columns), pairs[links:]


BUILD: dict[str, Callable[[], torch.nn.Module]] = {
    "graph GCN sum": lambda: GraphModel("GCN", "sum"),
    "graph SAGE mean alone": lambda: AloneGraphModel("SAGE", "mean"),
    "graph GAT max": lambda: GraphModel("GAT", "max"),
    "graph GIN max alone": lambda: AloneGraphModel("GIN", "max"),
    "graph GIN sum either": lambda: EitherGraphModel("GIN", "sum"),
    "graph SAGE mean probabilities": lambda: GraphModel("SAGE", "mean", probabilities=True),
    "graph regression SAGE sum": lambda: GraphModel("SAGE", "sum", out=1),
    "graph regression GCN mean alone": lambda: AloneGraphModel("GCN", "mean", out=1),
    "link SAGE": lambda: LinkModel("SAGE"),
    "link GCN forward": lambda: ForwardLinkModel("GCN"),
    "link GAT forward sigmoid": lambda: ForwardLinkModel("GAT", sigmoid=True, flat=False),
    "link GIN sigmoid": lambda: LinkModel("GIN", sigmoid=True),
    "link SAGE two classes": lambda: LinkModel("SAGE", out=2),
    "link GCN forward two classes": lambda: ForwardLinkModel("GCN", out=2),
    "node regression GCN": lambda: NodeModel("GCN"),
    "node regression SAGE flat": lambda: NodeModel("SAGE", flat=True),
    "node GAT one logit sigmoid": lambda: NodeModel("GAT", sigmoid=True),
}


@cache
def question(kind: str, seed: int) -> tuple[Question, Truth]:
    """A question whose answer takes some edits, and the truth about it."""
    directed = seed % 2 == 1
    data, absent = graph(100 * seed + len(kind), directed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(sum(kind.encode()) + seed)
        model = BUILD[kind]().eval()
    target = None if kind.startswith("graph") else (1 if kind.startswith("node") else Pair(0, 3))
    draft = Question(f"{kind}, seed {seed}", model, data, target, directed, Goal(threshold=0.0), tuple(absent[:2]))
    values = outputs(model, data, [draft.edge_index(some) for some in _every(draft.acts)], target)
    if values.shape[1] > 1:
        with torch.no_grad():
            model.head.bias -= torch.from_numpy(values.mean(axis=0)).float() * (not getattr(model, "probabilities", 0))
        goal = Goal(least=(0.0, 0.0, 0.02)[seed % 3])
    else:
        # A threshold that some edits cross, but not the first best.
        intact, far = values[0, 0], values[np.abs(values[:, 0] - values[0, 0]).argmax(), 0]
        threshold = float(np.float32(intact + (0.35 + 0.15 * (seed % 3)) * (far - intact)))
        goal = Goal(threshold=threshold, least=0.1 * abs(far - intact) * (seed % 3 == 2))
    asked = Question(**{**vars(draft), "goal": goal})
    return asked, truth_of(asked)


def _every(acts: list[tuple[str, Link]]) -> list[tuple[tuple[str, Link], ...]]:
    return [some for n in range(len(acts) + 1) for some in itertools.combinations(acts, n)]


SEEDS = range(4)


def check_result(asked: Question, truth: Truth, result: Counterfactual) -> None:
    """What is said is so, whoever found it."""
    told = f"{asked.name}: {result}"
    threshold = asked.goal.threshold
    assert result.task == ("graph" if asked.target is None else "link" if isinstance(asked.target, Pair) else "node")
    assert result.target == (0 if asked.target is None else asked.target)
    for prediction, some in ((result.before, frozenset()), (result.after, frozenset(acts_of(result.edits)))):
        if prediction is None:
            continue
        out = truth.out[some]
        if threshold is not None:
            assert prediction.label == int(out[0] > threshold), told
            assert prediction.probability is None
            assert prediction.value == pytest.approx(out[0], abs=1e-4), told
        else:
            assert prediction.label == int(out.argmax()), told
            assert prediction.value is None
            chances = out if getattr(asked.model, "probabilities", False) else torch.from_numpy(out).softmax(0).numpy()
            assert prediction.probability == pytest.approx(chances.max(), abs=1e-4), told
    if truth.least is None:
        assert not result.found, told
        return
    assert result.status is not Status.IMPOSSIBLE, told
    assert result.lower_bound <= truth.least, told
    if result.found:
        assert truth.lead[frozenset(acts_of(result.edits))] > -CLOSE, told
        assert result.cost == result.size == len(result.edits) >= truth.least, told
        assert result.status is not Status.OPTIMAL or result.cost == truth.least, told
        assert Counterfactual.from_dict(json.loads(json.dumps(result.to_dict()))) == result


def acts_of(edits: Iterable[butfor.edits.Edit]) -> set[tuple[str, Link]]:
    return {(edit.kind, (edit.source, edit.target)) for edit in edits}


@pytest.mark.parametrize("kind", BUILD)
def test_exact_proves_what_brute_force_finds(kind: str) -> None:
    told = 0
    for seed in SEEDS:
        asked, truth = question(kind, seed)
        if truth.close:
            continue
        told += truth.least is not None
        result = asked.ask(Exact(all_smallest=True))
        check_result(asked, truth, result)
        if truth.least is None:
            assert result.status is Status.IMPOSSIBLE, asked.name
        else:
            assert result.status is Status.OPTIMAL, asked.name
            assert result.lower_bound == truth.least
            found = [frozenset(acts_of(some)) for some in (result.edits, *result.alternatives)]
            assert len(found) == len(truth.smallest)
            assert set(found) == truth.smallest, asked.name
    assert told >= 2, "most of these questions are too close to call"


def test_the_questions_are_worth_asking() -> None:
    truths = [question(kind, seed)[1] for kind in BUILD for seed in SEEDS]
    sizes = [truth.least for truth in truths if not truth.close]
    assert len(sizes) > 0.9 * len(truths)
    assert sizes.count(1) > 10
    assert sum(size is not None and size > 1 for size in sizes) > 15
    kinds = {what for truth in truths for some in truth.smallest for what, _ in some}
    assert kinds == {"delete", "add"}


METHODS = {
    "Greedy": Greedy(),
    "CFGNN": CFGNN(epochs=15, lr=0.3, beta=0.1, start=0.3),
    "PRBCD": PRBCD(epochs=5, samples=5),
    "GRBCD": GRBCD(epochs=6),
    "RandomPerturbation": RandomPerturbation(samples=100),
    "KeepEgo": KeepEgo(),
    "RemoveEgo": RemoveEgo(),
    "RemoveSubgraph": RemoveSubgraph(size=2, epochs=2),
}


@pytest.mark.parametrize("kind", BUILD)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_answers_truly_or_says_why_it_does_not(method: str, kind: str) -> None:
    for seed in range(2 if method in ("Greedy", "RandomPerturbation") else 1):
        asked, truth = question(kind, seed)
        refuses = None
        if "Ego" in method and asked.target is None:
            refuses = "a whole graph has no ego graph"
        if method == "RemoveSubgraph" and kind.startswith("link") and "forward" not in kind:
            refuses = "RemoveSubgraph asks one of PyG's explainers"
        if refuses:
            with pytest.raises(InputError, match=refuses):
                asked.ask(METHODS[method])
        elif not truth.close:
            check_result(asked, truth, asked.ask(METHODS[method]))


def test_the_methods_find_something_in_every_task() -> None:
    methods = {**METHODS, "CFGNN": CFGNN(epochs=40, lr=2.0, beta=0.01, start=0.1)}
    for method in ("Greedy", "CFGNN", "RandomPerturbation"):
        for task in ("graph", "link", "node"):
            asked = [question(kind, 0) for kind in BUILD if kind.startswith(task)]
            answers = (one.ask(methods[method]) for one, truth in asked if truth.least is not None)
            assert any(answer.found for answer in answers), (method, task)


# Whole graphs.


@pytest.mark.parametrize("kind", [GraphModel, AloneGraphModel, EitherGraphModel])
@pytest.mark.parametrize("pool", POOLS)
def test_several_graphs_are_explained_each_as_it_would_be_alone(pool: str, kind: type[GraphModel]) -> None:
    torch.manual_seed(5)
    model = kind("SAGE", pool).eval()
    graphs = [graph(seed, directed=False, nodes=4 + seed, links=3 + seed)[0] for seed in range(4)]
    together = butfor.explain(model, graphs)
    assert [result.target for result in together] == [0, 1, 2, 3]
    for data, result in zip(graphs, together, strict=True):
        alone = butfor.explain(model, data)
        assert alone.target == 0
        assert (alone.edits, alone.before, alone.after, alone.cost) == (
            result.edits,
            result.before,
            result.after,
            result.cost,
        )
        assert (result.nodes, result.task) == (data.num_nodes, "graph")
    assert butfor.explain(model, iter(graphs[:2])) == together[:2]
    assert str(together[2]).startswith("Graph 2 is predicted")


def test_a_graph_without_edges_has_nothing_to_delete_but_something_to_add() -> None:
    data = Data(x=torch.tensor([[1.0], [1.0]]), edge_index=torch.empty(2, 0, dtype=torch.long))

    class Edges(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = SimpleConv("sum")

        def forward(self, x, edge_index, batch):
            total = global_add_pool(self.layer(x, edge_index), batch)
            return torch.cat([1 - total, total], dim=1)

    assert butfor.explain(Edges(), data).status is Status.IMPOSSIBLE
    joined = butfor.explain(Edges(), data, space=EditSpace(add=[(0, 1)]), directed=False)
    assert (joined.added_edges, joined.status) == (((0, 1),), Status.OPTIMAL)
    near = butfor.explain(Edges(), data, space=EditSpace(add=Within()), directed=False)
    assert near.added_edges == ((0, 1),)


def test_of_a_whole_graph_all_nodes_may_be_joined_and_changed() -> None:
    model, data = EitherGraphModel("SAGE", "sum").eval(), Data(x=torch.zeros(5, 3), edge_index=both([(0, 1), (2, 3)]))
    space = EditSpace(add=Within(hops=1), features=Features(columns=[2]))
    edits = Session.of(model, data, task="graph", space=space).builder.build(()).edits
    assert {tuple(ends) for ends in edits.added.ends.tolist()} == {
        pair for pair in itertools.combinations(range(5), 2) if pair not in {(0, 1), (2, 3)}
    }
    assert sorted(edits.changes.node.tolist()) == [0, 1, 2, 3, 4]


def test_a_cap_on_pairs_is_told_where_there_are_no_edges() -> None:
    data = Data(x=torch.zeros(4, 3), edge_index=torch.empty(2, 0, dtype=torch.long))
    result = butfor.explain(EitherGraphModel().eval(), data, space=EditSpace(add=Within(most=1)), directed=False)
    assert result.note == "Only the 1 nearest pairs could be joined."


def test_a_model_may_return_a_bare_number_for_a_whole_graph() -> None:
    class Bare(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = SimpleConv("sum")

        def forward(self, x, edge_index):
            return self.layer(x, edge_index).sum()

    data = Data(x=torch.ones(3, 1), edge_index=both([(0, 1), (1, 2)]))
    result = butfor.explain(Bare(), data, goal=Goal(threshold=2.5))
    assert (result.before.value, result.after.value, result.cost) == (4.0, 2.0, 1.0)


def test_graphs_in_a_batch_are_not_taken_for_one_graph() -> None:
    graphs = [graph(seed, directed=False)[0] for seed in range(3)]
    batch = Batch.from_data_list(graphs)
    try:
        results = butfor.explain(GraphModel().eval(), batch)
    except ButforError:
        return
    assert isinstance(results, list)
    assert len(results) == 3


def test_a_graph_that_is_predicted_as_wanted_already_stops_no_other() -> None:
    class Total(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = SimpleConv("sum")

        def forward(self, x, edge_index, batch):
            total = global_add_pool(x + self.layer(x, edge_index), batch)
            return torch.cat([-total, total], dim=1)

    graphs = [Data(x=torch.full((2, 1), sign), edge_index=both([(0, 1)])) for sign in (-1.0, -1.0, 1.0)]
    results = butfor.explain(Total(), graphs, goal=Goal(wanted=1))
    assert [result.status.value for result in results] == ["impossible", "impossible", "reached"]
    assert results[0].verdict == "It is proved that no allowed edits reach the goal (class 1)."
    assert str(results[0]).endswith("No allowed edits reach the goal (class 1); this is proved.")


# Links.


class Common(torch.nn.Module):
    """How many neighbours two nodes have in common, by the messages they get, less a half."""

    def __init__(self, sigmoid: bool = False) -> None:
        super().__init__()
        self.layer, self.sigmoid = SimpleConv("sum"), sigmoid

    def encode(self, x, edge_index):
        return self.layer(x, edge_index)

    def decode(self, z, edge_label_index):
        score = (z[edge_label_index[0]] * z[edge_label_index[1]]).sum(-1) - 0.5
        return score.sigmoid() if self.sigmoid else score


class CommonForward(Common):
    def forward(self, x, edge_index, edge_label_index):
        return self.decode(self.encode(x, edge_index), edge_label_index)


@pytest.mark.parametrize("kind", [Common, CommonForward])
@pytest.mark.parametrize("sigmoid", [False, True], ids=["logits", "probabilities"])
def test_edges_but_for_which_a_link_would_not_be_predicted(kind: type[Common], sigmoid: bool) -> None:
    # 0 and 1 have 2 and 3 in common; 4 is only of 0.
    data = Data(x=torch.eye(5), edge_index=both([(0, 2), (1, 2), (0, 3), (1, 3), (0, 4)]))
    goal = Goal(threshold=0.5 if sigmoid else 0.0)
    result = butfor.explain(kind(sigmoid), data, Pair(0, 1), Exact(all_smallest=True), goal=goal)
    assert (result.before.name, result.after.name) == ("linked", "not linked")
    sets = [frozenset((edit.source, edit.target) for edit in some) for some in (result.edits, *result.alternatives)]
    assert len(sets) == 4
    assert set(sets) == {frozenset(some) for some in itertools.product([(0, 2), (1, 2)], [(0, 3), (1, 3)])}
    expected = [1.5, -0.5] if not sigmoid else torch.tensor([1.5, -0.5]).sigmoid().tolist()
    assert [result.before.value, result.after.value] == pytest.approx(expected, abs=1e-6)
    assert result.before.probability is None
    value = f"{expected[0]:.2f}"
    assert str(result).startswith(
        f"Link 0–1 is predicted 'linked' ({value}). But for these 2 of its 5 edges it would be"
    )


@pytest.mark.parametrize("kind", [Common, CommonForward])
def test_a_link_that_would_be_predicted_with_another_edge(kind: type[Common]) -> None:
    # 4 has a neighbour, and 0 has none: there is nothing to delete that would link them.
    data = Data(x=torch.eye(5), edge_index=both([(4, 3), (1, 2)]))
    goal = Goal(threshold=0.0)
    assert butfor.explain(kind(), data, Pair(0, 4), goal=goal).status is Status.IMPOSSIBLE
    result = butfor.explain(kind(), data, Pair(0, 4), goal=goal, space=EditSpace(add=[(0, 3), (0, 1), (2, 0)]))
    assert (result.before.name, result.after.name, result.added_edges) == ("not linked", "linked", ((0, 3),))
    assert (
        str(result)
        == "Link 0–4 is predicted 'not linked' (-0.50). It would be 'linked' (0.50) with the edge 0–3 added."
    )
    # Any pair near the two will do as well as a given one.
    near = butfor.explain(kind(), data, Pair(0, 4), Exact(all_smallest=True), goal=goal, space=EditSpace(add=Within(1)))
    assert near.added_edges == ((0, 3),)


def test_the_direction_of_a_link_counts_in_a_directed_graph() -> None:
    class Follows(torch.nn.Module):
        """Whether the second node gets a message from a node that is marked, and the first does not matter."""

        def __init__(self) -> None:
            super().__init__()
            self.layer = SimpleConv("sum")

        def forward(self, x, edge_index, edge_label_index):
            got = self.layer(x, edge_index)[:, 0]
            return got[edge_label_index[1]] - 0.25 * got[edge_label_index[0]]

    data = Data(x=torch.tensor([[0.0], [0.0], [1.0]]), edge_index=torch.tensor([[2], [1]]))
    there, back = butfor.explain(Follows(), data, [Pair(0, 1), Pair(1, 0)], goal=Goal(threshold=0.5))
    assert (there.before.name, there.removed_edges, there.target) == ("linked", ((2, 1),), (0, 1))
    assert (back.before.name, back.status, back.target) == ("not linked", Status.IMPOSSIBLE, (1, 0))
    assert str(there).startswith("Link 0→1 is predicted 'linked' (1.00)")
    assert (there.before.value, back.before.value) == (1.0, -0.25)


def test_the_link_itself_is_an_edge_like_any_other() -> None:
    # With a loop at each node, the edge 0–1 is what the two have in common.
    data = Data(x=torch.eye(3), edge_index=torch.cat([both([(0, 1)]), torch.tensor([[0, 1], [0, 1]])], dim=1))
    result = butfor.explain(Common(), data, Pair(0, 1), goal=Goal(threshold=0.0))
    assert (result.removed_edges, result.before.value, result.after.value) == (((0, 1),), 1.5, -0.5)


@pytest.mark.parametrize("kind", ["SAGE", "GCN", "GAT"])
@pytest.mark.parametrize("form", [LinkModel, ForwardLinkModel])
def test_the_neighbourhood_of_a_link_gives_the_scores_of_the_whole_graph(kind: str, form: type[LinkModel]) -> None:
    random = np.random.default_rng(3)
    pairs = [(i, (i + 1) % 40) for i in range(40)] + [(0, 7), (20, 28)]
    data = Data(x=torch.from_numpy(random.normal(size=(40, 3))).float(), edge_index=both(pairs))
    torch.manual_seed(0)
    model = form(kind).eval()
    space = EditSpace(add=[(0, 20), (0, 33)])
    explainer = Session.of(model, data, task="link", goal=Goal(threshold=0.0), space=space)
    problem = explainer.builder.build((0, 20))
    assert problem.edits.neighbourhood.num_nodes < 25
    assert len(problem.edits.added.edit) == 2
    sets = [sorted(random.choice(len(problem.edits), size=size, replace=False)) for size in (1, 1, 2, 3, 4, 6, 8)]
    sets += [np.unique(problem.edits.added.edit), []]
    asked = Question("", model, data, Pair(0, 20), False, Goal(), ())
    for some, scores in zip(sets, problem.ask(sets).logits, strict=True):
        edges = asked.edge_index(acts_of(problem.edits.records(some)))
        truth = outputs(model, data, [edges], asked.target)[0, 0]
        assert float(scores[1] - scores[0]) == pytest.approx(truth, abs=1e-4)


# Numbers.


class Sums(torch.nn.Module):
    """The sum of a node's own feature and its neighbours', in one of the shapes that models return."""

    def __init__(self, flat: bool = False) -> None:
        super().__init__()
        self.layer, self.flat = SimpleConv("sum"), flat

    def forward(self, x, edge_index):
        out = x + self.layer(x, edge_index)
        return out[:, 0] if self.flat else out


@pytest.mark.parametrize("flat", [False, True])
def test_a_regression_crosses_its_threshold_by_as_much_as_was_asked(flat: bool) -> None:
    data = Data(x=torch.ones(5, 1), edge_index=both([(0, i) for i in range(1, 5)]))

    def explained(**goal: float) -> Counterfactual:
        return butfor.explain(Sums(flat), data, 0, goal=Goal(**goal))

    # Node 0 is 5, and loses 1 with each edge.
    sizes = [explained(threshold=4.5, least=least).size for least in (0.0, 0.25, 0.75, 1.25, 3.25, 3.75)]
    assert sizes == [1, 1, 2, 2, 4, None]
    result = explained(threshold=3.5, least=0.75)
    assert (result.before.value, result.after.value, result.size) == (5.0, 2.0, 3)
    assert (result.before.name, result.after.name) == ("above 3.5", "at most 3.5")
    assert (result.before.label, result.after.label) == (1, 0)
    assert result.before.probability is None
    assert "above or below 3.5, by at least 0.75" in result.goal


def test_what_is_equal_to_the_threshold_is_not_above_it() -> None:
    data = Data(x=torch.ones(3, 1), edge_index=both([(0, 1), (0, 2)]))
    exactly, higher = (butfor.explain(Sums(), data, 0, goal=Goal(threshold=value)) for value in (3.0, 2.0))
    assert (exactly.before.label, exactly.status) == (0, Status.IMPOSSIBLE)
    # One edge less gives exactly 2, which is at most 2.
    assert (higher.before.label, higher.size, higher.after.value) == (1, 1, 2.0)


def test_a_number_rises_by_additions_and_features() -> None:
    data = Data(x=torch.tensor([[1.0], [1.0], [4.0]]), edge_index=both([(0, 1)]))
    goal = Goal(threshold=5.0)
    assert butfor.explain(Sums(), data, 0, goal=goal).status is Status.IMPOSSIBLE
    added = butfor.explain(Sums(), data, 0, goal=goal, space=EditSpace(add=[(0, 2)]))
    assert (added.added_edges, added.after.value) == (((0, 2),), 6.0)
    changed = butfor.explain(Sums(), data, 0, goal=goal, space=EditSpace(features=Features(between=(0, 8), within=1)))
    assert (changed.size, changed.after.value) == (1, 9.0)
    wanted = butfor.explain(Sums(), data, 0, goal=Goal(wanted=1, threshold=5.0), space=EditSpace(add=[(0, 2)]))
    assert wanted.edits == added.edits


@pytest.mark.parametrize("flat", [False, True])
def test_a_yes_or_no_from_one_logit(flat: bool) -> None:
    data = Data(x=torch.tensor([[-1.0], [2.0]]), edge_index=both([(0, 1)]))
    result = butfor.explain(Sums(flat), data, 0, goal=Goal(threshold=0.0))
    assert (result.before.label, result.after.label, result.removed_edges) == (1, 0, ((0, 1),))
    assert (result.before.value, result.after.value) == (1.0, -1.0)


@pytest.mark.parametrize(
    ("first", "second"),
    [(Goal(threshold=1234567.0), Goal(threshold=1234568.0)), (Goal(least=0.12345678), Goal(least=0.12345679))],
    ids=["threshold", "least"],
)
def test_runs_with_different_goals_are_different_runs(first: Goal, second: Goal) -> None:
    data = Data(x=torch.ones(3, 1), edge_index=both([(0, 1), (0, 2)]))
    model = Sums() if first.threshold is not None else GCN(1, 4, 1, 2).eval()
    one, other = (Run.of(Session.of(model, data, goal=goal)) for goal in (first, second))
    assert one != other


# Questions that do not fit the model.

SMALL = Data(x=torch.ones(4, 3), edge_index=both([(0, 1), (1, 2)]))


@pytest.mark.parametrize(
    ("model", "target", "number"),
    [
        (NodeModel(), 0, "each of the 4 nodes"),
        (NodeModel(flat=True), 0, "each of the 4 nodes"),
        (GraphModel(out=1), None, "each of the 1 graphs"),
        (LinkModel(), Pair(0, 1), "each of the 1 links"),
        (ForwardLinkModel(flat=False), Pair(0, 1), "each of the 1 links"),
    ],
)
def test_one_number_without_a_threshold_is_refused(model: torch.nn.Module, target: object, number: str) -> None:
    message = rf"{type(model).__name__} returns one number for {number}.*Goal\(threshold=0\.5\)"
    with pytest.raises(ModelError, match=message):
        butfor.explain(model.eval(), SMALL, target)


@pytest.mark.parametrize(
    ("model", "target"),
    [(GCN(3, 4, 1, 2), 0), (GraphModel(out=2), None), (AloneGraphModel(out=2), None), (LinkModel(out=2), Pair(0, 1))],
)
def test_a_threshold_for_a_classifier_is_refused(model: torch.nn.Module, target: object) -> None:
    with pytest.raises(ModelError, match=f"{type(model).__name__} returns 2 scores .* a threshold is for a model"):
        butfor.explain(model.eval(), SMALL, target, goal=Goal(threshold=0.0))


@pytest.mark.parametrize(
    ("goal", "message"),
    [
        (Goal(threshold=float("nan")), "the threshold is nan"),
        (Goal(threshold=float("inf")), "the threshold is inf"),
        (Goal(threshold=0.0, probability=0.6), "no probabilities; use least"),
        (Goal(threshold=0.0, wanted=2), "class 2 is wanted, but the model has classes 0 to 1"),
        (Goal(threshold=0.0, least=-1.0), r"least margin is -1\.0"),
    ],
)
def test_goals_that_do_not_fit_a_number_are_refused(goal: Goal, message: str) -> None:
    with pytest.raises(InputError, match=message):
        butfor.explain(NodeModel().eval(), SMALL, 0, goal=goal)


@pytest.mark.parametrize(
    ("model", "target", "message"),
    [
        (GCN(3, 4, 1, 2), None, "GCN scores each node, and a whole graph is asked about"),
        (AloneGraphModel(), 0, r"AloneGraphModel returns a tensor of shape \(1, 3\).* each of the 4 nodes"),
        (GraphModel(), 0, r"GraphModel returns a tensor of shape \(1, 3\).* each of the 4 nodes"),
        (GCN(3, 4, 1, 2), Pair(0, 1), "GCN does not say how it predicts links.*edge_label_index.*encode"),
        (GraphModel(), Pair(0, 1), "GraphModel does not say how it predicts links"),
        (LinkModel(), 0, "LinkModel"),
        (LinkModel(), None, "LinkModel"),
    ],
)
def test_a_model_of_another_task_is_refused(model: torch.nn.Module, target: object, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        butfor.explain(model.eval(), SMALL, target)


@pytest.mark.parametrize(
    ("data", "target", "message"),
    [
        (SMALL, [0, Pair(0, 1)], "nodes and pairs of nodes were given together"),
        (SMALL, [Pair(0, 1), 2], "nodes and pairs of nodes were given together"),
        (SMALL, [(0, 1)], r"\(0, 1\) is not a node"),
        (SMALL, [None], "None is not a node"),
        (SMALL, "0", "'0' is not a node"),
        (SMALL, 0.5, r"0\.5 is not a node"),
        (SMALL, True, "True is not a node"),
        (SMALL, torch.tensor([True, False]), r"mask has shape \(2,\), but the graph has 4 nodes"),
        ([SMALL, SMALL], 0, "give one graph to explain its nodes or links"),
        ([SMALL, SMALL], Pair(0, 1), "several graphs are explained as wholes"),
        (7, None, "give one graph"),
    ],
)
def test_targets_that_make_no_sense_are_refused(data: object, target: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        butfor.explain(GCN(3, 4, 1, 2).eval(), data, target)


@pytest.mark.parametrize("pair", [Pair(0, 4), Pair(-1, 2)])
def test_a_pair_outside_the_graph_is_refused(pair: Pair) -> None:
    outside = pair.source if pair.source < 0 else pair.target
    with pytest.raises(InputError, match=rf"node {outside} is not in this graph \(0 to 3\)"):
        butfor.explain(LinkModel().eval(), SMALL, pair, goal=Goal(threshold=0.0))


def test_a_link_that_is_predicted_as_wanted_already_stops_no_other() -> None:
    data = Data(x=torch.eye(4), edge_index=both([(0, 2), (1, 2)]))
    results = butfor.explain(Common(), data, [Pair(0, 3), Pair(0, 1)], goal=Goal(wanted=1, threshold=0.0))
    assert [result.status.value for result in results] == ["impossible", "reached"]
