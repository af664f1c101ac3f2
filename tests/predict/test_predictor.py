"""How often a model passes messages, and when two rows of its scores are the same."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import HeteroData
from torch_geometric.nn import APPNP, GCN, GCNConv, SGConv, SimpleConv

import butfor
from butfor.edits.deletion import Deletion
from butfor.edits.space import EditSpace
from butfor.graph.graph import Graph
from butfor.models import PaperGCN
from butfor.predict.predictor import Predictor
from butfor.result.status import Status
from butfor.testing import predict_without, random_problem
from gnn_models import Stack


def test_depth_is_counted_not_guessed() -> None:
    _, data = random_problem(1, nodes=6)
    graph = Graph.of(data)
    models = [GCN(4, 8, 2, 3), PaperGCN(4, 3), Stack(SGConv(4, 3, K=3)), Stack(GCNConv(4, 3), APPNP(10, 0.1))]
    assert [Predictor.of(model, graph).depth for model in models] == [2, 3, 3, 11]


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


def test_equal_scores_in_a_constant_are_no_difference() -> None:
    """A large constant that all classes share changes nothing about what is found or proved."""
    model, data = random_problem(5)

    class Lifted(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = model

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.inner(x, edge_index).double() + 1e5

    for node in range(data.num_nodes):
        plain, lifted = butfor.explain(model, data, node), butfor.explain(Lifted(), data, node)
        assert (plain.status, plain.size) == (lifted.status, lifted.size)
        if lifted.found:
            scores = predict_without(model, data, lifted.removed_edges)[node]
            assert int(scores.argmax()) == lifted.after.label
