"""The general oracle tells the truth: deletion on the whole graph, for every kind of model and graph."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import APPNP, GAT, GCN, GIN, GCNConv, GraphNorm, GraphSAGE, SGConv, global_mean_pool

from butfor.edits.rules import Rules
from butfor.edits.space import EditSpace
from butfor.graph.graph import Graph
from butfor.models import PaperGCN
from butfor.oracle.general import ModelOracle
from butfor.predict.predictor import Predictor
from butfor.session import Session
from butfor.testing import predict_without, random_problem
from truth import pairs_of


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


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_oracle_equals_deletion_on_the_whole_graph(name: str, directed: bool) -> None:
    model = make(name)
    _, data = random_problem(1, nodes=14, directed=directed, density=0.12)
    random = np.random.default_rng(0)
    for node in range(0, 14, 3):
        problem = Session.of(model, data).problem(node)
        count = len(problem.edits)
        sets = [random.permutation(count)[: random.integers(0, count + 1)] for _ in range(6)]
        answers = problem.ask(sets)
        for chosen, logits in zip(sets, answers.logits, strict=True):
            scores = predict_without(model, data, pairs_of(problem.edits.records(chosen)), directed)[node]
            truth = scores.log() if name == "probabilities" else scores
            assert torch.allclose(logits, truth, atol=1e-4), f"{name}, node {node}"


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


def test_memory_is_bounded_in_features_too() -> None:
    wide = Data(x=torch.ones(50, 4000), edge_index=torch.randint(0, 50, (2, 400), generator=torch.Generator()))
    graph = Graph.of(wide, directed=True)
    oracle = ModelOracle(Predictor.of(GCN(4000, 8, 1, 2).eval(), graph))
    edits = Rules.of(EditSpace(), graph).edits(graph.neighbourhood(0, 3))
    near = edits.neighbourhood
    assert oracle.batch_size(edits) * (near.num_nodes + near.num_columns) * 4000 <= oracle.max_numbers
