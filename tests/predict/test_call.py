"""What a model is given, and which tasks it can be called for."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch_geometric import nn as pyg
from torch_geometric.data import Data
from torch_geometric.nn import GCN

import butfor
from butfor.errors import InputError, ModelError
from butfor.problem.goal import Goal
from butfor.problem.target import Pair
from butfor.testing import random_problem
from gnn_models import CLASSES, WIDTH
from gnns import tiny
from task_cases import AloneGraphModel, GraphModel, LinkModel
from typed_cases import Convs, build, library
from votes import path

SMALL = path(torch.ones(4, 3))


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


class WithDecoder(Convs):
    def encode(self, x_dict, edge_index_dict):
        return self.first(x_dict, edge_index_dict)

    def decode(self, z, edge_label_index):
        return z["author"][edge_label_index[0]].sum(-1)


@pytest.mark.parametrize(
    ("node_type", "message"),
    [
        (
            None,
            r"which the two ends of a link are of \('author' or 'paper' or 'venue'\): node_type=\('author', 'venue'\)",
        ),
        (("author", "writes", "paper"), "say which the two ends of a link are of"),
        (("author", "cat"), "node type 'cat' is not in this graph"),
        (("author", "venue"), r"venue 3 is not in this graph \(0 to 1\)"),
        ("venue", r"venue 3 is not in this graph \(0 to 1\)"),
    ],
)
def test_links_between_types_that_are_not_there_are_refused(node_type: object, message: str) -> None:
    data = library(0)
    with pytest.raises(InputError, match=message):
        butfor.explain(WithDecoder("SAGE").eval(), data, Pair(0, 3), goal=Goal(threshold=0.0), node_type=node_type)


def test_models_of_nodes_of_several_types_are_refused_for_other_tasks() -> None:
    data = library(0)
    model = build("SAGE", 0, data)
    with pytest.raises(ModelError, match="does not say how it predicts links"):
        butfor.explain(model, data, Pair(0, 1), node_type="paper")
    with pytest.raises(ModelError, match=r"returns a dictionary \(.*paper.*\), and a whole graph is asked"):
        butfor.explain(model, data)


def test_a_node_type_in_a_graph_of_one_is_refused() -> None:
    data = Data(x=torch.ones(3, 2), edge_index=torch.tensor([[0, 1], [1, 0]]))
    with pytest.raises(InputError, match="node_type is 'paper', but this graph has one type of nodes"):
        butfor.explain(GCN(2, 4, 1, 2).eval(), data, 0, node_type="paper")


class Batched(nn.Module):
    """A norm over the nodes of each graph, which must be told which node belongs to which."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = pyg.GCNConv(WIDTH, 8), pyg.GraphNorm(8), pyg.GCNConv(8, CLASSES)

    def forward(self, x, edge_index, batch):
        return self.last(self.norm(self.first(x, edge_index), batch).tanh(), edge_index)


def test_a_model_of_nodes_is_told_which_graph_each_node_belongs_to() -> None:
    """Two graphs in one: the norm of the first is not that of the second, on the intact graph and after edits."""
    torch.manual_seed(0)
    model, one = Batched().eval(), tiny()
    x, edges = torch.cat([one.x, 3 + one.x.flip(0)]), torch.cat([one.edge_index, one.edge_index + 5], dim=1)
    data = Data(x=x, edge_index=edges, batch=torch.arange(2).repeat_interleave(5))
    found = 0
    for result in butfor.explain(model, data, range(5)):
        assert result.nodes == 10  # nothing shows that the second does not matter
        removed = result.removed_edges
        gone = torch.tensor([tuple(sorted(pair)) in removed for pair in one.edge_index.T.tolist()])
        with torch.no_grad():
            alone = model(one.x, one.edge_index[:, ~gone], torch.zeros(5, dtype=torch.long))[result.target]
        prediction = result.after if result.found else result.before
        assert prediction.label == int(alone.argmax())
        assert prediction.probability == pytest.approx(float(alone.softmax(0).max()), abs=1e-5)
        found += result.found
    assert found


def test_features_of_another_type_or_number_than_the_model_takes() -> None:
    model, data = random_problem(1)
    for given, graph in ((model, Data(x=data.x.long(), edge_index=data.edge_index)), (GCN(7, 8, 2, 3), data)):
        with pytest.raises(ModelError, match=r"GCN fails on this graph of 4 features per node: .*Error"):
            butfor.explain(given, graph, 0)
