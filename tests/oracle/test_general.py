"""The oracle of a problem tells the truth: deletion on the whole graph, for every kind of model and graph."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCN, GCNConv

from butfor.edits.rules import Rules
from butfor.edits.space import EditSpace
from butfor.graph.graph import Graph
from butfor.models import PaperGCN
from butfor.oracle.general import ModelOracle
from butfor.predict.predictor import Predictor
from butfor.session import Session
from butfor.testing import random_problem
from gnn_models import CLASSES, WIDTH, Stack
from gnns import GLOBAL, LOCAL, Kind, scores_without, two
from sampling import sampled
from truth import pairs_of

LISTED = ("GCN", "GCN, cached", "GCN, messages backwards", "GraphSAGE, mean", "GAT", "GIN", "SGConv", "SGConv, cached")
LISTED += ("APPNP", "batch norm", "probabilities", "GraphNorm", "mean of all nodes")
MODELS: dict[str, Kind] = {
    **{name: (LOCAL | GLOBAL)[name] for name in LISTED},
    "PyG's GCN, all layers": Kind(lambda: GCN(WIDTH, 8, 3, CLASSES, jk="cat")),
    "PyG's GCN, the last layer": Kind(lambda: GCN(WIDTH, 8, 2, CLASSES, jk="last")),
    "the paper's GCN": Kind(lambda: PaperGCN(WIDTH, CLASSES)),
    "GCN, no self-loops": two(lambda out: GCNConv(WIDTH, out, add_self_loops=False)),
    "messages both ways": Kind(lambda: Stack(GCNConv(WIDTH, WIDTH), GCNConv(WIDTH, CLASSES, flow="target_to_source"))),
}


# In `make test` by turns: of the undirected graphs every other model, of the directed ones the others.
@pytest.mark.parametrize(
    ("directed", "name"),
    sampled(
        ((directed, name) for directed in (False, True) for name in list(MODELS)[:: -1 if directed else 1]), every=2
    ),
)
def test_answers_are_those_of_deletion_on_the_whole_graph(name: str, directed: bool) -> None:
    _, data = random_problem(1, nodes=14, directed=directed, density=0.12)
    session = Session.of(MODELS[name].make(data), data)
    random = np.random.default_rng(0)
    for node in range(0, 14, 3):
        problem = session.problem(node)
        count = len(problem.edits)
        sets = [random.permutation(count)[: random.integers(0, count + 1)] for _ in range(6)]
        for chosen, logits in zip(sets, problem.ask(sets).logits, strict=True):
            removed = pairs_of(problem.edits.records(chosen))
            truth = scores_without(MODELS[name], data, removed, directed)[node]
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
