"""The neighbourhood of a problem gives the whole graph's answer, whatever the model and however far it sees."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric import nn as pyg
from torch_geometric.data import Data
from torch_geometric.nn import GCN, GCNConv, SimpleConv

import butfor
from butfor.edits.space import EditSpace
from butfor.errors import ModelError
from butfor.problem.builder import WHOLE_GRAPH
from butfor.result.status import Status
from butfor.session import Session
from butfor.testing import predict_without, random_problem
from gnn_models import CLASSES, WIDTH, Shared, Stack, Then
from gnns import FAMILIES, LOCAL, Kind, kept, ring, scores_without
from hand_edits import edges_of
from truth import pairs_of
from votes import both, path, voters


@pytest.mark.slow
# On a directed graph one model of each family: what is left out is less there.
@pytest.mark.parametrize(
    ("name", "directed"), [*((name, False) for name in LOCAL), *((name, True) for name in FAMILIES)]
)
def test_the_neighbourhood_reproduces_the_whole_graph(name: str, directed: bool) -> None:
    kind, data = LOCAL[name], ring(directed)
    random = np.random.default_rng(1)
    session = Session.of(kind.make(data), data)
    assert session.graph.directed == directed
    # A node of the ring, the end of a short way across, and one with a leaf; all of them send and receive.
    for node in (7, 13, 21):
        problem = session.problem(node)
        count = len(problem.edits)
        sets = [np.flatnonzero(random.random(count) < chance) for chance in (0.0, 0.2, 0.6)]
        cut = [pairs_of(problem.edits.records(chosen)) for chosen in sets]
        truths = [scores_without(kind, data, pairs, directed)[node] for pairs in cut]
        for chosen, scores, truth in zip(sets, problem.ask(sets).logits, truths, strict=True):
            assert torch.allclose(scores, truth, rtol=1e-5, atol=2e-5), (node, chosen)
        # What was left out cannot matter, or nothing would be proved.
        outside = sorted(set(edges_of(data, directed)) - set(pairs_of(problem.edits.records(range(count)))))
        bare = scores_without(kind, data, [*cut[1], *outside], directed)[node]
        assert torch.allclose(bare, truths[1], rtol=1e-5, atol=2e-5), node
        if not directed:
            assert outside, "the neighbourhood is the whole graph, so nothing was tested"
            assert problem.edits.neighbourhood.num_nodes < data.num_nodes
            assert WHOLE_GRAPH not in problem.note


# Layers and how far each sees; all of them normalise by degrees.
FAR = {
    "SGConv": (3, lambda: Stack(pyg.SGConv(WIDTH, CLASSES, K=3))),
    "APPNP": (5, lambda: Then(nn.Linear(WIDTH, CLASSES), pyg.APPNP(K=5, alpha=0.1))),
    "TAGConv": (3, lambda: Stack(pyg.TAGConv(WIDTH, CLASSES, K=3))),
    "ChebConv": (4, lambda: Stack(pyg.ChebConv(WIDTH, CLASSES, K=5))),
    "ARMAConv": (3, lambda: Stack(pyg.ARMAConv(WIDTH, CLASSES, num_layers=3, act=nn.Tanh()))),
    "one layer three times": (3, Shared),
}


@pytest.mark.parametrize("name", FAR)
def test_edges_at_the_rim_of_the_receptive_field_are_found(name: str) -> None:
    reach, build = FAR[name]
    kind = Kind(build)
    data = path(torch.randn(16, WIDTH, generator=torch.Generator().manual_seed(0)))
    # The last edge that carries a message, and the one behind it that counts in a degree.
    for edge in ((reach - 1, reach), (reach, reach + 1)):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(5)
            model = build().eval()
        with torch.no_grad():
            whole, cut = (model(*kept(data, kind, columns_without(data, gone))[:2])[0] for gone in ((), edge))
            beyond = model(*kept(data, kind, columns_without(data, (reach + 1, reach + 2)))[:2])[0]
            assert torch.equal(beyond, whole), "it sees further than the table says"
            assert float((whole - cut).abs().max()) > 1e-3, "the edge does not matter, so nothing was tested"
            # Half of the way between the two, so that this very edge decides.
            model.shift += (whole + cut) / 2
        result = butfor.explain(model, data, 0, space=EditSpace(allowed=[edge]))
        assert result.removed_edges == (edge,)
        assert result.status.value == "optimal"
        assert result.nodes < 16
        every = butfor.explain(model, data, 0, butfor.Exact(all_smallest=True))
        assert edge in {(edit.source, edit.target) for edits in (every.edits, *every.alternatives) for edit in edits}


def columns_without(data: Data, edge: tuple[int, ...]) -> list[int]:
    return [column for column, pair in enumerate(data.edge_index.T.tolist()) if sorted(pair) != list(edge)]


def test_known_layers_need_no_more_nodes_than_they_see() -> None:
    torch.manual_seed(0)
    data = path(torch.randn(200, 4))
    assert butfor.explain(GCN(4, 8, 2, 3).eval(), data, 100).nodes == 7


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


class OneRoundByHand(torch.nn.Module):
    """A round by hand, which is not counted, and one that is."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = SimpleConv("add")

    def forward(self, x, edge_index):
        hidden = (x + torch.zeros_like(x).index_add(0, edge_index[1], x[edge_index[0]])).relu()
        total = self.layer(hidden, edge_index) + 0.1 * x
        return torch.cat([-total, total], dim=1)


def test_targets_without_edges_prove_nothing_about_the_model() -> None:
    edges = torch.tensor([[0, 1, 1], [1, 2, 3]])
    x = torch.tensor([[-1.0], [-0.5], [-6.0], [6.0], [1.0], [1.0]])
    data = Data(x=x, edge_index=torch.cat([edges, edges.flip(0)], dim=1))
    alone = butfor.explain(OneRoundByHand(), data, 0)
    among = butfor.explain(OneRoundByHand(), data, [4, 5, 0])[2]
    assert (alone.status, alone.edits) == (among.status, among.edits)
    assert alone.removed_edges == ((1, 2),)


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
    data = voters([0.75, 0, 0], [(0, 1), (0, 2), (1, 2)])
    model = DegreeVotes()
    edges = {(0, 1), (0, 2), (1, 2)}
    labels = {gone: int(model(data.x, both(edges - {gone}))[0].argmax()) for gone in edges}
    assert int(model(data.x, data.edge_index)[0].argmax()) == 1
    assert labels == {(0, 1): 1, (0, 2): 1, (1, 2): 0}
    result = butfor.explain(model, data, 0)
    assert (result.removed_edges, result.status) == (((1, 2),), Status.OPTIMAL)


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


def test_layers_whose_messages_flow_both_ways_are_searched_on_the_whole_graph() -> None:
    _, data = random_problem(1, nodes=14, density=0.12)
    model = Stack(GCNConv(4, 4), GCNConv(4, CLASSES, flow="target_to_source"))
    problem = Session.of(model.eval(), data).problem(0)
    assert (problem.edits.neighbourhood.hops, problem.edits.neighbourhood.num_nodes) == (None, 14)
    assert WHOLE_GRAPH in problem.note


class Noisy(torch.nn.Module):
    def forward(self, x, edge_index):
        return torch.rand(len(x), 3)


def test_a_model_that_draws_random_numbers_cannot_be_explained() -> None:
    with torch.random.fork_rng(devices=[]), pytest.raises(ModelError, match="different scores on the same graph"):
        butfor.explain(Noisy(), random_problem(0)[1], 0)
