"""A graph with everything that a graph can carry."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from butfor.testing import random_problem

if TYPE_CHECKING:
    from torch_geometric.data import Data


def full_graph() -> Data:
    """Features, positions, edges with weights, attributes and types, labels, masks and names."""
    data = random_problem(1)[1]
    data.pos = torch.randn(data.num_nodes, 3, generator=torch.Generator().manual_seed(0))
    data.z = torch.arange(data.num_nodes)
    data.edge_weight = torch.ones(data.num_edges)
    data.edge_attr = torch.ones(data.num_edges, 2)
    data.edge_type = torch.zeros(data.num_edges, dtype=torch.long)
    data.batch = torch.zeros(data.num_nodes, dtype=torch.long)
    data.y = torch.zeros(data.num_nodes, dtype=torch.long)
    data.train_mask = torch.ones(data.num_nodes, dtype=torch.bool)
    data.node_ids = [f"n{node}" for node in range(data.num_nodes)]
    return data
