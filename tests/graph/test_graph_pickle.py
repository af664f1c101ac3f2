"""A graph travels to another process as its data alone."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from torch_geometric.data import Data, HeteroData

from butfor.graph.graph import Graph

EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


def typed() -> HeteroData:
    data = HeteroData()
    data["a"].x = torch.randn(3, 2)
    data["b"].x = torch.randn(2, 2)
    data["a", "to", "b"].edge_index = torch.tensor([[0, 1, 2], [1, 0, 1]])
    return data


@pytest.mark.parametrize("directed", [False, True, None])
@pytest.mark.parametrize("make", [lambda: Data(x=torch.randn(3, 2), edge_index=EDGES), typed])
def test_it_is_the_same_after_the_journey(make, directed: bool | None) -> None:
    data = make()
    graph = Graph.of(data, None if isinstance(data, HeteroData) else directed)
    graph.neighbourhood((0,), 2)
    again = pickle.loads(pickle.dumps([graph, graph]))
    assert again[0] is again[1]
    other = again[0]
    assert (other.directed, other.num_nodes, other.fingerprint()) == (
        graph.directed,
        graph.num_nodes,
        graph.fingerprint(),
    )
    assert np.array_equal(other.edge_index, graph.edge_index)
    for node in range(graph.num_nodes):
        mine, theirs = (one.neighbourhood((node,), 2) for one in (graph, other))
        assert np.array_equal(mine.edge_index, theirs.edge_index)
        assert np.array_equal(mine.columns, theirs.columns)
