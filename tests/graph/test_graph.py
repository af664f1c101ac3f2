"""A graph as it is read: checked, directed or not, its edges known by their ends."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Data, HeteroData

from butfor.errors import GraphError, InputError
from butfor.graph.graph import Graph
from edge_lists import data_of


@pytest.mark.parametrize(
    ("pairs", "fields", "directed"),
    [
        ([(0, 1), (1, 0)], {}, False),
        ([(0, 1)], {}, True),
        ([], {}, False),
        ([(2, 2)], {}, False),
        ([(0, 1), (0, 1), (1, 0), (1, 0)], {}, False),
        ([(0, 1), (0, 1), (1, 0)], {}, False),
        ([(0, 1), (1, 0)], {"edge_weight": torch.tensor([1.0, 1.0])}, False),
        ([(0, 1), (1, 0)], {"edge_weight": torch.tensor([1.0, 2.0])}, True),
        ([(0, 1), (1, 0)], {"edge_attr": torch.tensor([[1.0, 2.0], [1.0, 3.0]])}, True),
    ],
)
def test_directed_or_undirected(pairs, fields, directed: bool) -> None:
    data = data_of(pairs, 3, **fields)
    assert Graph.of(data).directed is directed
    assert Graph.of(data, directed=True).directed is True


def test_undirected_cannot_be_forced_on_one_way_edges() -> None:
    with pytest.raises(GraphError, match="some edges have no reverse"):
        Graph.of(data_of([(0, 1)], 2), directed=False)
    weights = torch.tensor([1.0, 2.0])
    assert not Graph.of(data_of([(0, 1), (1, 0)], 2, edge_weight=weights), directed=False).directed


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (HeteroData(), "no node types"),
        (Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [5]])), "points to node 5"),
    ],
)
def test_malformed_graphs_are_refused(data: Data, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        Graph.of(data)


def test_an_edge_is_known_by_its_ends() -> None:
    pairs = [(0, 1), (1, 0), (1, 0), (0, 1), (1, 2), (2, 1)]
    graph = Graph.of(data_of(pairs, 4))
    key = graph.edge_key((1, 0))
    assert key == graph.edge_key((0, 1))
    assert graph.has_edge(key)
    assert sorted(graph.columns_of(key)) == [0, 1, 2, 3]
    assert not graph.has_edge(graph.edge_key((0, 3)))
    directed = Graph.of(data_of(pairs, 4), directed=True)
    assert directed.columns_of(directed.edge_key((1, 0))) == [1, 2]
    with pytest.raises(InputError, match=r"node 9 is not in this graph \(0 to 3\)"):
        graph.edge_key((0, 9))


@pytest.mark.parametrize("directed", [False, True])
def test_many_edges_are_found_as_each_is(directed: bool) -> None:
    pairs = [(0, 1), (1, 0), (1, 0), (0, 1), (1, 2), (2, 1), (3, 3)]
    graph = Graph.of(data_of(pairs, 5), directed)
    edges = [(1, 0), (2, 1), (3, 3), (0, 4), (0, 1)]
    keys = graph.edge_keys(edges)
    assert keys.tolist() == [list(graph.edge_key(edge)) for edge in edges]
    columns, which = graph.columns_of_all(keys)
    for row, key in enumerate(map(tuple, keys.tolist())):
        last = max(other for other in range(len(edges)) if tuple(keys[other]) == key)
        assert sorted(columns[which == last].tolist()) == graph.columns_of(key)
        assert last == row or not (which == row).any()
    assert graph.keys_of_columns(columns).tolist() == keys[which].tolist()
    with pytest.raises(InputError, match=r"node 9 is not in this graph \(0 to 4\)"):
        graph.edge_keys([(0, 1), (0, 9)])
    with pytest.raises(InputError, match="is no edge of this graph; give the pair of its nodes"):
        graph.edge_keys([(0, 1), (("a", "b", "c"), 0, 1)])
    assert graph.edge_keys([]).shape == (0, 3)
