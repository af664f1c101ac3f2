"""The oracle tells the truth: deletion on the whole graph, for every kind of model and graph."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import (
    APPNP,
    GAT,
    GCN,
    GIN,
    GCNConv,
    GraphConv,
    GraphNorm,
    GraphSAGE,
    SGConv,
    global_mean_pool,
)

import butfor
from butfor.edits.edits import pack
from butfor.edits.rules import Rules
from butfor.edits.space import EditSpace
from butfor.errors import ModelError
from butfor.graph.graph import Graph
from butfor.models import PaperGCN
from butfor.oracle.gcn.oracle import GCNOracle
from butfor.oracle.general import ModelOracle
from butfor.predict.predictor import Predictor
from butfor.problem.builder import WHOLE_GRAPH, ProblemBuilder
from butfor.problem.goal import Goal
from butfor.testing import links, predict_without, random_problem


class Layers(torch.nn.Module):
    """Layers in a row, with ReLU between."""

    def __init__(self, *layers: torch.nn.Module) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(layers)

    def forward(self, x, edge_index):
        for number, layer in enumerate(self.layers):
            x = layer(x, edge_index)
            if number + 1 < len(self.layers):
                x = x.relu()
        return x


class Weighted(Layers):
    def forward(self, x, edge_index, edge_weight=None):
        for number, layer in enumerate(self.layers):
            x = layer(x, edge_index, edge_weight)
            if number + 1 < len(self.layers):
                x = x.relu()
        return x


class Normalised(torch.nn.Module):
    """A layer that looks at all nodes: no neighbourhood will do."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = GCNConv(4, 8), GraphNorm(8), GCNConv(8, 3)

    def forward(self, x, edge_index):
        return self.last(self.norm(self.first(x, edge_index)).relu(), edge_index)


class Pooled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = GCNConv(4, 8), torch.nn.Linear(16, 3)

    def forward(self, x, edge_index):
        h = self.first(x, edge_index).relu()
        return self.last(torch.cat([h, global_mean_pool(h, None).expand_as(h)], dim=1))


class Probabilities(Layers):
    def forward(self, x, edge_index):
        return super().forward(x, edge_index).softmax(-1)


MODELS = {
    "GCN": lambda: GCN(4, 8, 2, 3),
    "GCN-jk": lambda: GCN(4, 8, 3, 3, jk="cat"),
    "GCN-last": lambda: GCN(4, 8, 2, 3, jk="last"),
    "PaperGCN": lambda: PaperGCN(4, 3),
    "GraphSAGE": lambda: GraphSAGE(4, 8, 2, 3),
    "GAT": lambda: GAT(4, 8, 2, 3),
    "GIN": lambda: GIN(4, 8, 2, 3),
    "GCN-norm": lambda: GCN(4, 8, 2, 3, norm="batch_norm"),
    "SGConv": lambda: Layers(SGConv(4, 3, K=3)),
    "SGConv-cached": lambda: Layers(SGConv(4, 3, K=2, cached=True)),
    "GCNConv-cached": lambda: Layers(GCNConv(4, 8, cached=True), GCNConv(8, 3, cached=True)),
    "GCNConv-no-loops": lambda: Weighted(GCNConv(4, 8, add_self_loops=False), GCNConv(8, 3, add_self_loops=False)),
    "APPNP": lambda: Layers(GCNConv(4, 3), APPNP(10, 0.1)),
    "target-to-source": lambda: Layers(GCNConv(4, 8, flow="target_to_source"), GCNConv(8, 3, flow="target_to_source")),
    "mixed-flow": lambda: Layers(GCNConv(4, 8), GCNConv(8, 3, flow="target_to_source")),
    "probabilities": lambda: Probabilities(GCNConv(4, 8), GCNConv(8, 3)),
    "GraphNorm": Normalised,
    "pooling": Pooled,
}


def make(name: str) -> torch.nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return MODELS[name]().eval()


def poser(model, data, directed=None) -> ProblemBuilder:
    graph = Graph.of(data, directed)
    return ProblemBuilder(Predictor.of(model, graph), Goal(), Rules.of(EditSpace(), graph))


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_oracle_equals_deletion_on_the_whole_graph(name: str, directed: bool) -> None:
    model = make(name)
    _, data = random_problem(1, nodes=14, directed=directed, density=0.12)
    random = np.random.default_rng(0)
    for node in range(0, 14, 3):
        problem = poser(model, data).build((node,))
        count = len(problem.edits)
        sets = [random.permutation(count)[: random.integers(0, count + 1)] for _ in range(6)]
        answers = problem.ask(sets)
        for chosen, logits in zip(sets, answers.logits, strict=True):
            scores = predict_without(
                model, data, [(edit.source, edit.target) for edit in problem.edits.records(chosen)], directed
            )[node]
            truth = scores.log() if name == "probabilities" else scores
            assert torch.allclose(logits, truth, atol=1e-4), f"{name}, node {node}"


@pytest.mark.parametrize("name", ["GraphNorm", "pooling", "mixed-flow"])
def test_models_without_locality_see_the_whole_graph(name: str) -> None:
    _, data = random_problem(1, nodes=14, density=0.12)
    near = poser(make(name), data).build((0,)).edits.neighbourhood
    result = butfor.explain(make(name), data, 0)
    if name != "mixed-flow":
        assert near.hops is None
        assert WHOLE_GRAPH in result.note
    assert near.num_nodes <= 14


def test_depth_is_counted_not_guessed() -> None:
    _, data = random_problem(1, nodes=6)
    graph = Graph.of(data)
    depths = {name: Predictor.of(make(name), graph).depth for name in ("GCN", "PaperGCN", "SGConv", "APPNP")}
    assert depths == {"GCN": 2, "PaperGCN": 3, "SGConv": 3, "APPNP": 11}


def both_oracles(name: str, seed: int = 2, **fields):
    model = make(name)
    _, data = random_problem(seed, nodes=16, density=0.15)
    if fields:
        data = Data(x=data.x, edge_index=data.edge_index, **{key: value(data) for key, value in fields.items()})
    graph = Graph.of(data, directed=False)
    predictor = Predictor.of(model, graph)
    problems = [ProblemBuilder(predictor, Goal(), Rules.of(EditSpace(), graph)).build((node,)) for node in range(8)]
    assert all(isinstance(problem.oracle, GCNOracle) for problem in problems)
    return problems, problems[0].oracle, ModelOracle(predictor)


def symmetric_weights(data: Data) -> torch.Tensor:
    low, high = data.edge_index.sort(dim=0).values
    return 0.5 + ((low * 7 + high * 3) % 5) / 4


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["GCN", "GCN-jk", "GCN-last", "PaperGCN"])
def test_fast_oracle_equals_the_general_one(name: str, weighted: bool) -> None:
    fields = {"edge_weight": symmetric_weights} if weighted else {}
    problems, fast, general = both_oracles(name, **fields)
    random = np.random.default_rng(1)
    asked = []
    for problem in problems:
        count = len(problem.edits)
        sets = [random.permutation(count)[: random.integers(0, count + 1)] for _ in range(5)]
        asked.append((problem.edits, pack(sets)))
    for one, other in zip(fast.logits(asked), general.logits(asked), strict=True):
        assert torch.allclose(one, other, atol=1e-5)

    edits = [problem.edits for problem in problems]
    relaxed = [oracle.relax(edits) for oracle in (fast, general)]
    total = sum(len(each) for each in edits)
    assert relaxed[0].pointers.tolist() == relaxed[1].pointers.tolist()
    soft = torch.from_numpy(random.random(total, dtype=np.float32))
    binary = (soft > 0.3).float()
    pull = torch.from_numpy(random.standard_normal((len(edits), 3)).astype(np.float32))
    for degrees in (None, soft, binary):
        outcomes = []
        for relaxation in relaxed:
            weights = soft.clone().requires_grad_()
            logits = relaxation.logits(weights, degrees)
            (gradient,) = torch.autograd.grad((logits * pull).sum(), weights)
            outcomes.append((logits.detach(), gradient))
        assert torch.allclose(outcomes[0][0], outcomes[1][0], atol=1e-5)
        assert torch.allclose(outcomes[0][1], outcomes[1][1], atol=1e-5)
    weights, counted = soft.clone().requires_grad_(), binary.clone().requires_grad_()
    gradients = [
        torch.autograd.grad((relaxation.logits(weights, counted) * pull).sum(), [weights, counted])
        for relaxation in relaxed
    ]
    assert all(torch.allclose(one, other, atol=1e-5) for one, other in zip(*gradients, strict=True))


@pytest.mark.parametrize("name", ["GCN", "PaperGCN"])
def test_weights_of_zero_and_one_equal_deletion(name: str) -> None:
    problems, fast, general = both_oracles(name)
    edits = [problem.edits for problem in problems]
    random = np.random.default_rng(3)
    gone = [np.flatnonzero(random.random(len(each)) < 0.4) for each in edits]
    weights = torch.ones(sum(len(each) for each in edits))
    starts = np.concatenate([[0], np.cumsum([len(each) for each in edits])])
    for start, chosen in zip(starts, gone, strict=False):
        weights[start + chosen] = 0.0
    truth = torch.cat(general.logits([(each, chosen[None]) for each, chosen in zip(edits, gone, strict=True)]))
    for oracle in (fast, general):
        assert torch.allclose(oracle.relax(edits).logits(weights), truth, atol=1e-5)


class Counted(torch.nn.Module):
    """Reads degrees in a way that no weight can follow."""

    def forward(self, x, edge_index):
        return x[:, :3] * torch.bincount(edge_index[1], minlength=len(x))[:, None]


@pytest.mark.parametrize(
    ("model", "faithful"),
    [
        (lambda: GCN(4, 8, 2, 3), True),
        (lambda: Weighted(GraphConv(4, 8), GraphConv(8, 3)), True),
        (lambda: Weighted(GraphConv(4, 8, aggr="mean"), GraphConv(8, 3, aggr="mean")), True),
        (lambda: GAT(4, 8, 2, 3), True),
        (lambda: Counted(), False),
    ],
)
def test_a_relaxation_is_offered_only_where_it_is_faithful(model, faithful: bool) -> None:
    _, data = random_problem(2, nodes=10)
    graph = Graph.of(data)
    oracle = ModelOracle(Predictor.of(model().eval(), graph))
    edits = Rules.of(EditSpace(), graph).edits(graph.neighbourhood(0, 3))
    assert (oracle.relax([edits]) is not None) is faithful


def test_gradient_matches_finite_differences() -> None:
    model, data = random_problem(5, nodes=10)
    model.double()
    data.x = data.x.double()
    problem = poser(model, data).build((2,))
    relaxation = problem.oracle.relax([problem.edits])
    gradient = problem.gradient([1])
    for edit in range(len(problem.edits)):
        margins = []
        for step in (-1e-6, 1e-6):
            weights = torch.ones(len(problem.edits), dtype=torch.float64)
            weights[1] = 0.0
            weights[edit] += step
            margins.append(float(problem.goal.margin(relaxation.logits(weights), problem.before)))
        assert gradient[edit] == pytest.approx((margins[1] - margins[0]) / 2e-6, abs=1e-5)


def test_answers_do_not_depend_on_how_they_are_batched() -> None:
    model, data = random_problem(2, nodes=12)
    graph = Graph.of(data)
    predictor = Predictor.of(model, graph)
    edits = [Rules.of(EditSpace(), graph).edits(graph.neighbourhood(node, 3)) for node in range(6)]
    asked = [(each, np.arange(len(each))[:, None]) for each in edits]
    small, large = (ModelOracle(predictor, max_numbers=size).logits(asked) for size in (1, 10**12))
    for one, other in zip(small, large, strict=True):
        assert torch.allclose(one, other, atol=1e-5)
    assert ModelOracle(predictor).logits([]) == []


@pytest.mark.parametrize("name", ["GCNConv-cached", "SGConv-cached"])
def test_caches_neither_mislead_nor_are_lost(name: str) -> None:
    model = make(name)
    _, data = random_problem(1, nodes=10)
    with torch.no_grad():
        model(data.x, data.edge_index)
    layer = model.layers[0]
    kept = layer._cached_edge_index if name.startswith("GCN") else layer._cached_x
    results = butfor.explain(model, data, range(10))
    fresh = make(name)
    for result in results:
        if result.found:
            assert int(predict_without(fresh, data, result.removed_edges)[result.target].argmax()) == result.after.label
    assert any(result.found for result in results)
    assert (layer._cached_edge_index if name.startswith("GCN") else layer._cached_x) is kept
    assert layer.cached is True


class Failing(torch.nn.Module):
    """Breaks after a few runs."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, _ = random_problem(0)
        self.runs = 0

    def forward(self, x, edge_index):
        self.runs += 1
        if self.runs > 2:
            raise RuntimeError("out of order")
        return self.inner(x, edge_index)


def test_a_model_that_fails_is_left_as_it_was() -> None:
    model = Failing().train()
    with pytest.raises(ModelError, match=r"Failing fails on this graph.*RuntimeError: out of order"):
        butfor.explain(model, random_problem(0)[1], 0)
    assert all(module.training for module in model.modules())
    assert all(parameter.requires_grad for parameter in model.parameters())


class Noisy(torch.nn.Module):
    def forward(self, x, edge_index):
        return torch.rand(len(x), 3)


class Width(torch.nn.Module):
    def __init__(self, out) -> None:
        super().__init__()
        self.out = out

    def forward(self, x, edge_index):
        return self.out(x)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Noisy(), "different scores on the same graph"),
        (GCN(7, 8, 2, 3), "fails on this graph of 4 features"),
        (Width(lambda x: x[:, :1]), "returns one number for each of the 8 nodes; say where another answer begins"),
        (Width(lambda x: x.sum()), r"shape \(\)"),
        (Width(lambda x: (x, x)), "returns a tuple"),
        (Width(lambda x: x * float("nan")), "NaN"),
    ],
)
def test_models_that_cannot_be_explained(model, message: str) -> None:
    with torch.random.fork_rng(devices=[]), pytest.raises(ModelError, match=message):
        butfor.explain(model, random_problem(0)[1], 0)


def test_links_counts_edges_as_a_person_does() -> None:
    data = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1, 0, 2], [1, 0, 1, 2]]))
    assert links(data) == [(0, 1)]
    assert links(data, directed=True) == [(0, 1), (1, 0)]
