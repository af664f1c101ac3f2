"""Models and graphs that break an assumption somebody might make."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCN, GCNConv, GraphConv, GraphSAGE, SGConv

import butfor
from butfor.edits.rules import Rules
from butfor.edits.space import EditSpace
from butfor.errors import InputError, ModelError
from butfor.graph.graph import Graph
from butfor.models import fingerprint
from butfor.oracle.general import ModelOracle
from butfor.predict.predictor import Predictor
from butfor.problem.builder import WHOLE_GRAPH
from butfor.problem.goal import Goal
from butfor.testing import predict_without, random_problem


class ByHand(torch.nn.Module):
    """Two rounds of mean aggregation without any layer of PyG: its messages cannot be counted."""

    def forward(self, x, edge_index):
        for _ in range(2):
            total = torch.zeros_like(x).index_add(0, edge_index[1], x[edge_index[0]])
            count = torch.zeros(len(x)).index_add(0, edge_index[1], torch.ones(edge_index.size(1)))
            x = (x + total) / (1 + count)[:, None]
        return torch.cat([x, -x + 1e-3], dim=1)


def test_a_model_whose_messages_cannot_be_counted() -> None:
    data = Data(x=torch.tensor([[0.0], [0.0], [1.0], [-1.0]]), edge_index=torch.tensor([[1, 2, 3], [0, 1, 1]]))
    result = butfor.explain(ByHand(), data, 0, butfor.Exact())
    assert WHOLE_GRAPH in result.note
    assert result.status.value == "optimal"
    assert len(result.removed_edges) == 1


class HalfByHand(torch.nn.Module):
    """One layer that is counted, and one round that is not."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.rest = GCNConv(4, 3), ByHand()

    def forward(self, x, edge_index):
        x = self.layer(x, edge_index)
        for _ in range(3):
            x = x + torch.zeros_like(x).index_add(0, edge_index[1], x[edge_index[0]])
        return x


def test_a_model_that_sees_further_than_was_counted() -> None:
    torch.manual_seed(0)
    model = HalfByHand().eval()
    edge_index = torch.tensor([list(range(12)), list(range(1, 13))])
    x = torch.randn(13, 4, generator=torch.Generator().manual_seed(1))
    data = Data(x=x, edge_index=torch.cat([edge_index, edge_index.flip(0)], dim=1))
    for node in range(13):
        result = butfor.explain(model, data, node, butfor.Exact())
        truth = predict_without(model, data, ()).argmax(1)[node]
        single = [
            pair
            for pair in itertools.pairwise(range(13))
            if predict_without(model, data, [pair]).argmax(1)[node] != truth
        ]
        assert (result.size == 1) == bool(single)


def test_scores_that_are_no_numbers_reach_no_goal() -> None:
    nothing = torch.tensor([[float("nan"), 1.0], [torch.inf, 0.0], [0.0, 1.0]])
    assert Goal().judge(nothing, 1)[1].tolist() == [False, False, False]
    assert Goal().judge(nothing, 0)[1].tolist() == [False, False, True]


def test_a_model_that_breaks_down_after_a_deletion() -> None:
    # Without the edge 1 → 0 the degree of node 0 is 1 - 2 = -1, and its root is no number.
    edges, weights = torch.tensor([[1, 2], [0, 0]]), torch.tensor([1.5, -2.0])
    broken = 0
    for seed in range(20):
        model, data = random_problem(seed)
        data = Data(x=data.x[:3], edge_index=edges, edge_weight=weights)
        with torch.no_grad():
            before, after = (model(data.x, edges[:, kept], weights[kept])[0] for kept in ([0, 1], [1]))
        assert after.isnan().all()
        # argmax calls no number class 0, so only another class before makes it look like a change.
        if int(before.argmax()) != 0:
            broken += 1
            for method in (butfor.Exact(), butfor.Greedy(), butfor.RandomPerturbation(samples=50)):
                result = butfor.explain(model, data, 0, method)
                assert (1, 0) not in result.removed_edges or (2, 0) in result.removed_edges
    assert broken >= 5


def test_settings_without_weights_make_another_model() -> None:
    mean, largest = GraphSAGE(4, 8, 2, 3, aggr="mean"), GraphSAGE(4, 8, 2, 3, aggr="max")
    largest.load_state_dict(mean.state_dict())
    assert fingerprint(mean) != fingerprint(largest)
    assert fingerprint(mean) == fingerprint(mean.train())


class Weighted(torch.nn.Module):
    def __init__(self, *layers) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(layers)

    def forward(self, x, edge_index, edge_weight=None):
        for layer in self.layers:
            x = layer(x, edge_index, edge_weight)
        return x


@pytest.mark.slow
@pytest.mark.parametrize(
    "layers",
    [
        lambda: (GraphConv(4, 8), GraphConv(8, 3)),
        lambda: (GraphConv(4, 8), GCNConv(8, 3)),
        lambda: (SGConv(4, 3, K=2),),
        lambda: (GCNConv(4, 3, normalize=False),),
        lambda: (GCNConv(4, 8, add_self_loops=False), GCNConv(8, 3, add_self_loops=False)),
    ],
    ids=["GraphConv", "mixed", "SGConv", "unnormalised", "no-loops"],
)
@pytest.mark.parametrize("method", [butfor.CFGNN(epochs=60, lr=1.0), butfor.CFGNN.published(epochs=60, lr=1.0)])
def test_cf_gnn_on_other_layers_that_take_weights(layers, method) -> None:
    torch.manual_seed(3)
    model, (_, data) = Weighted(*layers()).eval(), random_problem(3, nodes=12, density=0.2)
    for result in butfor.explain(model, data, range(12), method):
        if result.after is not None:
            after = predict_without(model, data, result.removed_edges).argmax(1)[result.target]
            assert int(after) == result.after.label != result.before.label


class PerNode(torch.nn.Module):
    """An embedding of each node: it runs on this very graph and on no other."""

    def __init__(self, nodes: int) -> None:
        super().__init__()
        self.own, self.layer = torch.nn.Embedding(nodes, 4), GCNConv(8, 3)

    def forward(self, x, edge_index):
        return self.layer(torch.cat([x, self.own.weight], dim=1), edge_index)


def test_a_model_made_for_one_graph() -> None:
    torch.manual_seed(0)
    model, (_, data) = PerNode(8).eval(), random_problem(2)
    results = butfor.explain(model, data, range(8))
    assert all(WHOLE_GRAPH in result.note for result in results)
    assert any(result.found for result in results)


def test_memory_is_bounded_in_features_too() -> None:
    wide = Data(x=torch.ones(50, 4000), edge_index=torch.randint(0, 50, (2, 400), generator=torch.Generator()))
    graph = Graph.of(wide, directed=True)
    oracle = ModelOracle(Predictor.of(GCN(4000, 8, 1, 2).eval(), graph))
    edits = Rules.of(EditSpace(), graph).edits(graph.neighbourhood(0, 3))
    near = edits.neighbourhood
    assert oracle.batch_size(edits) * (near.num_nodes + near.num_columns) * 4000 <= oracle.max_numbers


def test_time_is_looked_at_between_pieces() -> None:
    model, data = random_problem(2, nodes=12)
    graph = Graph.of(data)
    oracle = ModelOracle(Predictor.of(model, graph), max_numbers=1)
    edits = Rules.of(EditSpace(), graph).edits(graph.neighbourhood(0, 3))
    problem = butfor.explainer.Problem(graph, oracle.predictor, oracle, edits, Goal(), oracle.predictor.logits[0])
    late = butfor.Budget(seconds=1e-9).meter()
    assert len(problem.extend([], problem.edits.edit_of[:5].clip(0), late).margins) == 1
    assert late.spent


def test_targets_in_odd_shapes() -> None:
    model, data = random_problem(1)
    one = butfor.explain(model, data, 3)
    assert butfor.explain(model, data, torch.tensor(3)) == one
    assert butfor.explain(model, data, (node for node in (3, 1)))[0] == one
    explainer = butfor.Session.of(model, data)
    assert len(list(explainer.stream(node for node in range(4)))) == 4
    for nonsense in (5.0, True):
        with pytest.raises(InputError, match="is not a node"):
            butfor.explain(model, data, nonsense)
    with pytest.raises(ModelError, match="is it a node classifier, and which node is meant"):
        butfor.explain(model, data)


def test_a_graph_with_ids_of_its_own() -> None:
    model, data = random_problem(1)
    data.node_ids = [f"acct_{number}" for number in range(8)]
    assert str(butfor.explain(model, data, 3)).startswith("Node acct_3 is predicted")


def test_features_of_another_type_than_the_model_takes() -> None:
    model, data = random_problem(1)
    with pytest.raises(ModelError, match="fails on this graph of 4 features"):
        butfor.explain(model, Data(x=data.x.long(), edge_index=data.edge_index), 0)


def test_batches_are_cut_by_edges_and_nothing_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    model, data = random_problem(1, nodes=12)
    whole = butfor.explain(model, data, range(12), butfor.CFGNN(epochs=20))
    monkeypatch.setattr("butfor.session.BATCH_COLUMNS", 1)
    explainer = butfor.Session.of(model, data, method=butfor.CFGNN(epochs=20))
    sizes = [len(numbers) for numbers, _ in explainer._batches([(node,) for node in range(12)])]
    assert sizes == [1] * 12
    assert butfor.explain(model, data, range(12), butfor.CFGNN(epochs=20)) == whole
