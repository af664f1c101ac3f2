"""Neighbourhoods: the subgraph that PyG finds, with distances, for one target or for many at once."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.utils import k_hop_subgraph

from butfor.errors import InputError
from butfor.graph.csr import Incoming
from butfor.graph.graph import Graph
from edge_lists import data_of, edge_lists


@settings(deadline=None, max_examples=200)
@given(edge_lists, st.data())
def test_neighbourhood_equals_pyg(graph_of: tuple[int, list[tuple[int, int]]], draw) -> None:
    nodes, pairs = graph_of
    data = data_of(pairs, nodes)
    graph = Graph.of(data, directed=True)
    target = draw.draw(st.integers(0, nodes - 1))
    hops = draw.draw(st.integers(0, 4))
    for flow in ("source_to_target", "target_to_source"):
        near = graph.neighbourhood(target, hops, flow)
        subset, edge_index, mapping, mask = k_hop_subgraph(
            target, hops, data.edge_index, relabel_nodes=True, num_nodes=nodes, flow=flow
        )
        assert near.nodes.tolist() == subset.tolist()
        assert near.columns.tolist() == mask.nonzero().flatten().tolist()
        assert near.edge_index.tolist() == edge_index.tolist()
        assert near.target_rows.tolist() == mapping.tolist()
        # The maps lead back: relabelled ends are the original edge's ends.
        assert np.array_equal(near.nodes[near.edge_index], graph.edge_index[:, near.columns])


@settings(deadline=None, max_examples=50)
@given(edge_lists, st.data())
def test_distances_equal_networkx(graph_of: tuple[int, list[tuple[int, int]]], draw) -> None:
    nodes, pairs = graph_of
    graph = Graph.of(data_of(pairs, nodes), directed=True)
    targets = draw.draw(st.lists(st.integers(0, nodes - 1), min_size=1, max_size=2, unique=True))
    reverse = nx.DiGraph([(v, u) for u, v in pairs])
    reverse.add_nodes_from(range(nodes))
    truth = nx.multi_source_dijkstra_path_length(reverse, set(targets))
    near = graph.neighbourhood(targets, 3)
    wanted = {node: hops for node, hops in truth.items() if hops <= 3}
    assert dict(zip(near.nodes.tolist(), near.distance.tolist(), strict=True)) == wanted
    assert near.nodes[near.target_rows].tolist() == targets


def test_whole_graph_as_neighbourhood() -> None:
    graph = Graph.of(data_of([(0, 1), (1, 0), (2, 3), (3, 2)], 5))
    near = graph.neighbourhood(0, None)
    assert near.nodes.tolist() == [0, 1, 2, 3, 4]
    assert near.distance.tolist() == [0, 1, 5, 5, 5]
    assert near.hops is None


def test_nodes_that_are_not_there() -> None:
    graph = Graph.of(data_of([(0, 1)], 3))
    for node in (3, -1):
        with pytest.raises(InputError, match=rf"node {node} is not in this graph \(0 to 2\)"):
            graph.neighbourhood(node, 1)


def test_neighbourhoods_together_are_those_found_alone() -> None:
    random = np.random.default_rng(0)
    ends = random.integers(0, 60, (2, 150))
    graph = Graph.of(data_of(ends.T.tolist(), 60), directed=True)
    groups = [(node,) for node in range(60)] + [(3, 40), (5, 5)]
    for flow in ("source_to_target", "target_to_source"):
        for hops in (1, 3, None):
            together = graph.neighbourhoods(groups, hops, flow)
            assert len(together) == len(groups)
            for group, near in zip(groups, together, strict=True):
                alone = graph.neighbourhood(group, hops, flow)
                assert near.targets == alone.targets == group
                for name in ("target_rows", "nodes", "columns", "edge_index", "distance", "hops", "flow"):
                    assert np.array_equal(getattr(near, name), getattr(alone, name)), (group, hops, name)


def test_no_more_neighbourhoods_than_fit() -> None:
    graph = Graph.of(data_of([(u, v) for u in range(30) for v in range(30) if u != v], 30))
    groups = [(node,) for node in range(30)]
    near = graph.neighbourhoods(groups, 2, most=4 * 30 * 29)
    assert 1 <= len(near) <= 4
    assert [one.targets for one in near] == groups[: len(near)]
    assert graph.neighbourhoods(groups, 2, most=1) == []


@settings(deadline=None, max_examples=100)
@given(edge_lists, st.data())
def test_edges_that_may_be_added_are_looked_along(graph_of: tuple[int, list[tuple[int, int]]], draw) -> None:
    nodes, pairs = graph_of
    joins = draw.draw(st.lists(st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)), max_size=3))
    target, hops = draw.draw(st.integers(0, nodes - 1)), draw.draw(st.integers(0, 3))
    for flow in ("source_to_target", "target_to_source"):
        graph = Graph.of(data_of(pairs, nodes), directed=True)
        near = graph.neighbourhood(target, hops, flow, [(0, u, v) for u, v in joins])
        joined = Graph.of(data_of([*pairs, *joins], nodes), directed=True).neighbourhood(target, hops, flow)
        assert near.nodes.tolist() == joined.nodes.tolist()
        assert near.distance.tolist() == joined.distance.tolist()
        # The edges themselves are not there yet.
        assert near.columns.tolist() == [column for column in joined.columns.tolist() if column < len(pairs)]


def test_edges_into_the_outermost_nodes_are_not_visible() -> None:
    """A path: with two hops, what the node at its end hears is too far away to matter."""
    graph = Graph.of(data_of([(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)], 4))
    for flow, seen in (("source_to_target", [(1, 0), (0, 1), (2, 1)]), ("target_to_source", [(0, 1), (1, 0), (1, 2)])):
        near = graph.neighbourhood(0, 2, flow)
        visible = near.edge_index[:, near.visible(near.edge_index)]
        assert {tuple(edge) for edge in visible.T.tolist()} == set(seen)
    whole = graph.neighbourhood(0, None)
    assert whole.visible(whole.edge_index).all()


@settings(deadline=None, max_examples=100)
@given(edge_lists, st.booleans(), st.integers(1, 3))
def test_without_its_rim_a_neighbourhood_has_the_edges_that_can_matter(
    graph_of: tuple[int, list[tuple[int, int]]], directed: bool, hops: int
) -> None:
    nodes, edges = graph_of
    both = edges if directed else edges + [(v, u) for u, v in edges if u != v]
    graph = Graph.of(data_of(both, nodes), directed=directed)
    # The same graph in order, as it is stored on disk.
    order = np.lexsort(graph.edge_index)
    pointers = np.searchsorted(graph.edge_index[1, order], np.arange(nodes + 1))
    ordered = replace(
        Graph.of(data_of([both[i] for i in order], nodes), directed=directed),
        _by_flow={"source_to_target": Incoming(pointers, None, graph.edge_index[0, order])},
    )
    for node in range(nodes):
        full, trimmed = graph.neighbourhood(node, hops), graph.neighbourhood(node, hops, rim=False)
        wanted = full.visible(full.edge_index)
        if not directed:
            wanted |= full.visible(full.edge_index[::-1])
        assert np.array_equal(trimmed.nodes, full.nodes)
        assert np.array_equal(trimmed.columns, full.columns[wanted])
        assert np.array_equal(trimmed.edge_index, full.edge_index[:, wanted])
        again = ordered.neighbourhood(node, hops, rim=False)
        assert np.array_equal(np.sort(order[again.columns]), trimmed.columns)
        assert sorted(again.edge_index.T.tolist()) == sorted(trimmed.edge_index.T.tolist())
        assert graph.size((node,), hops, "source_to_target", 10**9) == full.visible(full.edge_index).sum()
        few = graph.size((node,), hops, "source_to_target", 2)
        assert few <= 2 or graph.size((node,), hops, "source_to_target", 10**9) > 2
