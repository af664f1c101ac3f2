"""The graph, its neighbourhoods, and what irregular input becomes."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data, HeteroData
from torch_geometric.utils import k_hop_subgraph

from butfor.edits.edits import pack
from butfor.edits.rules import Rules
from butfor.edits.space import EditSpace
from butfor.errors import GraphError, InputError
from butfor.graph.graph import Graph


def data_of(pairs: list[tuple[int, int]], nodes: int, **fields) -> Data:
    edge_index = torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).T.contiguous()
    return Data(x=torch.ones(nodes, 2), edge_index=edge_index, **fields)


edge_lists = st.integers(2, 9).flatmap(
    lambda nodes: st.tuples(
        st.just(nodes),
        st.lists(st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)), max_size=25),
    )
)


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


def test_edits_join_directions_and_copies_and_leave_self_loops() -> None:
    pairs = [(1, 0), (0, 1), (0, 1), (1, 0), (2, 2), (1, 2), (2, 1)]
    graph = Graph.of(data_of(pairs, 3))
    near = graph.neighbourhood(0, 3)
    edits = Rules.of(EditSpace(), graph).edits(near)
    assert edits.deleted.ends.tolist() == [[0, 1], [1, 2]]
    assert edits.edit_of.tolist() == [0, 0, 0, 0, -1, 1, 1]
    assert sorted(edits.columns([0]).tolist()) == [0, 1, 2, 3]
    assert edits.present(edits.chosen(pack([[], [1], [0, 1]]))).astype(int).tolist() == [
        [1, 1, 1, 1, 1, 1, 1],
        [1, 1, 1, 1, 1, 0, 0],
        [0, 0, 0, 0, 1, 0, 0],
    ]
    one_way = Rules.of(EditSpace(), Graph.of(data_of(pairs, 3), directed=True)).edits(near)
    assert one_way.deleted.ends.tolist() == [[0, 1], [1, 0], [1, 2], [2, 1]]


def test_edit_space_rules() -> None:
    pairs = [(0, 1), (1, 0), (1, 2), (2, 1), (0, 2), (2, 0)]
    graph = Graph.of(data_of(pairs, 3))
    near = graph.neighbourhood(0, 2)
    edits = Rules.of(EditSpace(protected=[(2, 1)], costs={(1, 0): 3.0}), graph).edits(near)
    assert edits.deleted.ends.tolist() == [[0, 1], [0, 2]]
    assert edits.costs.tolist() == [3.0, 1.0]
    assert edits.num_edges == 3
    assert edits.edit_of.tolist() == [0, 0, -1, -1, 1, 1]
    assert Rules.of(EditSpace(allowed=[(2, 0)]), graph).edits(near).deleted.ends.tolist() == [[0, 2]]
    with pytest.raises(InputError, match="node 9 is not in this graph"):
        Rules.of(EditSpace(protected=[(0, 9)]), graph)
    with pytest.raises(InputError, match="cost of edge 0–1 is -1"):
        Rules.of(EditSpace(costs={(0, 1): -1}), graph)
    with pytest.raises(InputError, match="protected names the edge 1–1, which is not in this graph"):
        Rules.of(EditSpace(protected=[(1, 1)]), graph)


def test_fingerprint_tells_graphs_apart() -> None:
    one, same, other = (data_of(pairs, 3) for pairs in ([(0, 1)], [(0, 1)], [(1, 0)]))
    assert Graph.of(one).fingerprint() == Graph.of(same).fingerprint() != Graph.of(other).fingerprint()
    weighted = data_of([(0, 1)], 3, edge_weight=torch.tensor([2.0]))
    assert Graph.of(weighted).fingerprint() != Graph.of(one).fingerprint()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (HeteroData(), "no node types"),
        (Data(x=torch.ones(0, 2), edge_index=torch.empty(2, 0, dtype=torch.long)), "no nodes|empty"),
        (Data(x=torch.tensor([[float("nan")]]), edge_index=torch.empty(2, 0, dtype=torch.long)), "[Nn]a[Nn]"),
        (Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [5]])), "5"),
        (Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [-1]])), "-1"),
    ],
)
def test_malformed_graphs(data, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        Graph.of(data)


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
                for name in ("centres", "nodes", "edges", "edge_index", "distance"):
                    assert np.array_equal(getattr(near, name), getattr(alone, name)), (group, hops, name)


def test_no_more_neighbourhoods_than_fit() -> None:
    graph = Graph.of(data_of([(u, v) for u in range(30) for v in range(30) if u != v], 30))
    groups = [(node,) for node in range(30)]
    near = graph.neighbourhoods(groups, 2, most=4 * 30 * 29)
    assert 1 <= len(near) <= 4
    assert [one.targets for one in near] == groups[: len(near)]
    assert len(graph.neighbourhoods(groups, 2, most=1)) == 1
