"""A graph from PyG's pair of stores is the same graph, and only the features that are needed are fetched."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch_geometric.data import Data, FeatureStore, GraphStore, HeteroData, TensorAttr
from torch_geometric.data.graph_store import EdgeAttr, EdgeLayout
from torch_geometric.nn import SAGEConv

import butfor
from butfor.errors import GraphError
from butfor.graph.graph import Graph
from butfor.graph.stores import LazyRows
from random_graphs import random_model


class Features(FeatureStore):
    """Arrays by group and name; notes how many rows were fetched."""

    def __init__(self, arrays: dict[tuple[object, str], np.ndarray]) -> None:
        super().__init__()
        self.__dict__["arrays"] = arrays
        self.__dict__["fetched"] = []

    def _get_tensor(self, attr: TensorAttr):
        array = self.arrays[attr.group_name, attr.attr_name]
        found = array if attr.index is None else array[attr.index.numpy()]
        if attr.attr_name == "x":
            self.fetched.append(len(found))
        return torch.from_numpy(found)

    def _get_tensor_size(self, attr: TensorAttr):
        return tuple(self.arrays[attr.group_name, attr.attr_name].shape)

    def get_all_tensor_attrs(self):
        return [TensorAttr(*key) for key in self.arrays]

    def _put_tensor(self, tensor, attr) -> bool:
        raise NotImplementedError

    def _remove_tensor(self, attr) -> bool:
        raise NotImplementedError


class Edges(GraphStore):
    """Edges by type, in one layout."""

    def __init__(self, edges: dict[tuple[str, str, str] | None, torch.Tensor], layout: str, nodes: int) -> None:
        super().__init__()
        self.__dict__["held"] = {}
        for kind, (row, col) in edges.items():
            attr = EdgeAttr(kind, EdgeLayout(layout), size=(nodes, nodes))
            if layout != "coo":
                by, other = (col, row) if layout == "csc" else (row, col)
                order = torch.argsort(by, stable=True)
                pointers = torch.cat([torch.zeros(1).long(), torch.bincount(by, minlength=nodes).cumsum(0)])
                row, col = (other[order], pointers) if layout == "csc" else (pointers, other[order])
            self.held[kind] = attr, (row, col)

    def _get_edge_index(self, edge_attr):
        return self.held[edge_attr.edge_type][1]

    def get_all_edge_attrs(self):
        return [attr for attr, _ in self.held.values()]

    def _put_edge_index(self, edge_index, edge_attr) -> bool:
        raise NotImplementedError

    def _remove_edge_index(self, edge_attr) -> bool:
        raise NotImplementedError


class BrokenEdges(Edges):
    def get_all_edge_attrs(self):
        raise ConnectionError("nobody there")


def a_graph(nodes: int = 40) -> Data:
    generator = torch.Generator().manual_seed(0)
    ends = torch.randint(nodes, (2, 3 * nodes // 2), generator=generator)
    edge_index = torch.cat([ends, ends.flip(0)], dim=1).unique(dim=1)
    return Data(x=torch.rand(nodes, 3, generator=generator), edge_index=edge_index, y=torch.arange(nodes) % 2)


@pytest.mark.parametrize("layout", ["coo", "csc", "csr"])
def test_one_type(layout: str) -> None:
    data = a_graph()
    features = Features({(None, "x"): data.x.numpy(), (None, "y"): data.y.numpy()})
    graph = Graph.of((features, Edges({None: data.edge_index}, layout, 40)))
    assert sum(features.fetched) <= 1  # to see of what dtype they are
    assert isinstance(graph.x, LazyRows)
    assert graph.directed == Graph.of(data).directed
    assert graph.data.y.tolist() == data.y.tolist()
    for node in range(40):
        near, known = graph.neighbourhood(node, 2), Graph.of(data).neighbourhood(node, 2)
        assert near.nodes.tolist() == known.nodes.tolist()
        assert sorted(zip(*near.edge_index.tolist(), strict=True)) == sorted(
            zip(*known.edge_index.tolist(), strict=True)
        )
    rows = torch.tensor([3, 7])
    assert torch.equal(graph.x[rows], data.x[rows])
    assert torch.equal(graph.x.clone(), data.x)
    assert (graph.x.shape, graph.x.dtype, len(graph.x)) == (data.x.shape, data.x.dtype, 40)
    same = Data(x=data.x, edge_index=torch.from_numpy(np.ascontiguousarray(graph.edge_index)))
    assert graph.fingerprint() == Graph.of(same).fingerprint()


@pytest.mark.parametrize("kind", ["gcn", "sage"])
def test_the_same_explanations(kind: str) -> None:
    data = a_graph()
    model = random_model("GCN", 1, 2, data) if kind == "gcn" else Sage()
    stores = Features({(None, "x"): data.x.numpy()}), Edges({None: data.edge_index}, "coo", 40)
    for node in range(3):
        found, wanted = butfor.explain(model, stores, node), butfor.explain(model, data, node)
        assert (found.status, found.edits) == (wanted.status, wanted.edits)
    assert butfor.prepare(model, stores).explain(3).edits == butfor.explain(model, data, 3).edits


class Sage(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.one, self.two = SAGEConv(3, 8), SAGEConv(8, 2)

    def forward(self, x, edge_index):
        return self.two(self.one(x, edge_index).relu(), edge_index)


def test_several_types() -> None:
    data = HeteroData()
    data["a"].x, data["b"].x = torch.rand(4, 2), torch.rand(4, 3)
    edges = torch.tensor([[0, 1, 2, 3], [3, 2, 2, 0]])
    data["a", "to", "b"].edge_index = edges
    data["b", "rev_to", "a"].edge_index = edges.flip(0)
    features = Features({("a", "x"): data["a"].x.numpy(), ("b", "x"): data["b"].x.numpy()})
    graph = Graph.of((features, Edges(data.edge_index_dict, "coo", 4)))
    known = Graph.of(data)
    assert graph.types is not None
    assert known.types is not None
    assert graph.types.relations == known.types.relations
    assert graph.types.forward.tolist() == known.types.forward.tolist()
    assert graph.fingerprint() == known.fingerprint()
    assert torch.equal(graph.features(1)[torch.tensor([2])], data["b"].x[2:3])


def test_pygs_own_graphs_are_stores() -> None:
    data = a_graph()
    assert Graph.of((data, copy.copy(data))).fingerprint() == Graph.of(data).fingerprint()


def test_what_does_not_fit() -> None:
    data = a_graph()
    edges = Edges({None: data.edge_index}, "coo", 40)
    with pytest.raises(GraphError, match="no node features x"):
        Graph.of((Features({(None, "y"): data.y.numpy()}), edges))
    with pytest.raises(GraphError, match=r"(points to|starts at) node \d+, but this graph has nodes 0 to 9"):
        Graph.of((Features({(None, "x"): data.x[:10].numpy()}), edges))
    with pytest.raises(GraphError, match="does not say of which type x is, but edges have types"):
        Graph.of((Features({(None, "x"): data.x.numpy()}), Edges({("a", "to", "a"): data.edge_index}, "coo", 40)))
    with pytest.raises(GraphError, match="the stores give no graph"):
        Graph.of((Features({}), BrokenEdges({}, "coo", 40)))
    x = data.x.clone()
    x[5, 1] = torch.nan
    graph = Graph.of((Features({(None, "x"): x.numpy()}), edges))
    with pytest.raises(GraphError, match="x of node 5 is not finite"):
        graph.x[torch.tensor([4, 5])]
    with pytest.raises(GraphError, match="not a tuple"):
        Graph.of((data, 3))
