"""A proof rests on the neighbourhood standing for the whole graph: for each target that is seen, or none is claimed."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor
from torch_geometric import nn as gnn
from torch_geometric.data import HeteroData
from torch_geometric.nn import GraphConv, HeteroConv, SAGEConv

import butfor
from butfor.predict.locality import are_local
from butfor.problem.builder import WHOLE_GRAPH
from butfor.result.status import Status
from butfor.session import Session
from sampling import sampled, split
from votes import path


class Elsewhere(torch.nn.Module):
    """One round of messages; nodes with feature 0 also look at the number of edges of the whole graph.

    With at least ``enough`` edges all is as it would be without the look; else the class changes.
    """

    def __init__(self, enough: int, offset: float = 0.0) -> None:
        super().__init__()
        self.layer, self.enough, self.offset = GraphConv(2, 2), enough, offset
        torch.nn.init.zeros_(self.layer.lin_root.weight)
        torch.nn.init.zeros_(self.layer.lin_rel.weight)
        self.layer.lin_rel.bias.data = torch.tensor([1.0, 0.0])

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        far = (x[:, 0] > 0) & (edge_index.size(1) > self.enough)
        return self.layer(x, edge_index) + torch.where(far[:, None], torch.tensor([0.0, 2.0]), 0.0) + self.offset


@pytest.mark.parametrize(
    ("offset", "before"), split(itertools.product([0.0, 1e5, -1e5], [0, 5]), [(0.0, 0), (1e5, 5), (-1e5, 0)])
)
def test_no_false_proof_wherever_the_target_stands_in_a_list(offset: float, before: int) -> None:
    """Deleting any edge of the whole graph changes the class of the one node that looks at all of them."""
    x = torch.zeros(30, 2)
    x[15, 0] = 1.0
    data = path(x)
    model = Elsewhere(enough=data.num_edges - 1, offset=offset).eval()
    budget = butfor.Budget(100)
    alone = butfor.explain(model, data, 15, budget=budget)
    listed = butfor.explain(model, data, [*range(before), 15, *range(20, 24)], budget=budget)
    assert alone.status is Status.OPTIMAL
    assert alone.size == 1
    assert WHOLE_GRAPH in alone.note
    assert listed[before] == alone
    others = listed[:before] + listed[before + 1 :]
    assert {result.status for result in others} <= {Status.IMPOSSIBLE, Status.UNKNOWN}


class Reader(torch.nn.Module):
    """A layer of messages, and for some nodes something of all nodes."""

    def __init__(self, read) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.read = SAGEConv(2, 2), read

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        own = (x[:, :1] > 0.5).float()
        return self.layer(x, edge_index) + own * self.read(x, edge_index)


def degrees(edge_index: Tensor, nodes: int) -> Tensor:
    return torch.zeros(nodes).index_add(0, edge_index[1], torch.ones(edge_index.size(1)))


READS = {
    "the maximum": lambda x, e: x[:, 1].max() * torch.tensor([1.0, 0.0]),
    "the minimum": lambda x, e: x[:, 1].min() * torch.tensor([1.0, 0.0]),
    "the mean": lambda x, e: x.mean() * torch.tensor([1.0, 0.0]),
    "the number of nodes": lambda x, e: len(x) * torch.tensor([1.0, 0.0]),
    "the largest degree": lambda x, e: degrees(e, len(x)).max() * torch.tensor([1.0, 0.0]),
    "the first node": lambda x, e: x[0, 1] * torch.tensor([1.0, 0.0]),
    "the last node": lambda x, e: x[-1, 1] * torch.tensor([1.0, 0.0]),
    "whether there are many edges": lambda x, e: (e.size(1) > 3) * torch.tensor([1.0, 0.0]),
}


@pytest.mark.parametrize("what", sampled(READS, every=2))
def test_whatever_is_read_of_the_whole_graph_is_noticed_for_the_target_that_reads_it(what: str) -> None:
    data = path(torch.full((24, 2), 0.1))
    data.x[12] = torch.tensor([1.0, 0.2])
    data.x[20, 1] = 0.05  # else the minimum is in every neighbourhood, and no deletion changes it
    model = Reader(READS[what]).eval()
    results = butfor.explain(model, data, [2, 3, 4, 5, 6, 12, 20], budget=butfor.Budget(30))
    assert results[5].hops != 1
    assert WHOLE_GRAPH in results[5].note or what == "the minimum"  # which 8 hops reach


@pytest.mark.parametrize("kind", ["GCN", "SAGE", "GAT", "GIN"])
def test_a_model_that_only_passes_messages_is_searched_in_neighbourhoods(kind: str) -> None:
    torch.manual_seed(0)
    model = {"GCN": gnn.GCN, "SAGE": gnn.GraphSAGE, "GAT": gnn.GAT, "GIN": gnn.GIN}[kind](3, 8, 2, 2).eval()
    data = path(torch.randn(40, 3))
    assert not any(WHOLE_GRAPH in result.note for result in butfor.explain(model, data, range(40), butfor.Greedy()))


def test_noise_reaches_graphs_of_several_types() -> None:
    data = HeteroData()
    data["user"].x, data["shop"].x = torch.randn(20, 3), torch.randn(20, 4)
    ends = torch.stack([torch.arange(20), torch.arange(20)])
    data["user", "buys", "shop"].edge_index = ends
    data["shop", "sells", "user"].edge_index = (ends + torch.tensor([[0], [1]])) % 20

    class Typed(torch.nn.Module):
        def __init__(self, far: bool) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.far = far
            self.layer = HeteroConv(
                {relation: SAGEConv((-1, -1), 2) for relation in (("user", "buys", "shop"), ("shop", "sells", "user"))}
            )

        def forward(self, x: dict, edges: dict) -> Tensor:
            out = self.layer(x, edges)["user"]
            return out + (x["shop"].max() > 20) * torch.tensor([5.0, 0.0]) if self.far else out

    for far in (False, True):
        model = Typed(far).eval()
        with torch.no_grad():
            model(data.x_dict, data.edge_index_dict)
        session = Session.of(model, data, node_type="user")
        near = [session.graph.neighbourhood(node, 1) for node in range(3)]
        edits = [session.rules.edits(one) for one in near]
        assert are_local(session.predictor, edits, list(session.predictor.logits[:3])) == [not far] * 3


def test_deep_noise_shows_a_layer_that_was_not_counted() -> None:
    """All features are equal, so the intact graph does not show how far a mean reaches; noise at the rim does."""

    class Twice(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(1)
            self.layer = SAGEConv(2, 2)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            for _ in range(2):
                total = torch.zeros_like(x).index_add(0, edge_index[1], x[edge_index[0]])
                x = total / degrees(edge_index, len(x)).clamp(min=1)[:, None]
            return self.layer(x, edge_index)

    data = path(torch.ones(40, 2))
    result = butfor.explain(Twice().eval(), data, 20, butfor.Greedy())
    assert result.nodes >= 7
