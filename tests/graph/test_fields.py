"""What a model can read of a graph besides features and edges."""

from __future__ import annotations

import torch
from torch_geometric.data import Data

from butfor.graph.fields import edge_fields, node_fields
from full_graph import full_graph


def test_what_nodes_and_edges_carry() -> None:
    data = full_graph()
    assert set(node_fields(data)) == {"pos", "z"}
    assert set(edge_fields(data)) == {"edge_weight", "edge_attr", "edge_type"}


def test_what_is_no_field_of_nodes() -> None:
    edge_index = torch.zeros(2, 0, dtype=torch.long)
    data = Data(x=torch.ones(3, 1), edge_index=edge_index, y=torch.ones(3), known_mask=torch.ones(3, dtype=torch.bool))
    data.graph_label, data.scale, data.name = torch.ones(1), torch.tensor(2.0), "abc"
    assert node_fields(data) == {}
    # A mask of numbers is a feature like any other.
    data.soft_mask = torch.ones(3)
    assert set(node_fields(data)) == {"soft_mask"}


def test_fields_carry_no_gradients() -> None:
    data = full_graph()
    data.pos.requires_grad_()
    data.edge_weight.requires_grad_()
    assert not node_fields(data)["pos"].requires_grad
    assert not edge_fields(data)["edge_weight"].requires_grad
