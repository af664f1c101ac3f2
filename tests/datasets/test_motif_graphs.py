"""BA-2Motifs: its counts, its shapes, its randomness."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from butfor.datasets import ba_2motifs
from butfor.errors import InputError
from butfor.graph.validate import validate
from graphs import same_graph

if TYPE_CHECKING:
    from torch_geometric.data import Data


def with_both_directions(data: Data) -> bool:
    edges = {(u, v): inside for (u, v), inside in zip(data.edge_index.t().tolist(), data.edge_motif.tolist())}  # noqa: B905
    return len(edges) == data.num_edges and all(edges.get((v, u)) == inside for (u, v), inside in edges.items())


def test_ba_2motifs_has_the_published_counts() -> None:
    graphs = ba_2motifs()
    assert len(graphs) == 1000
    assert Counter(int(graph.y) for graph in graphs) == {0: 500, 1: 500}
    assert sum(graph.num_edges for graph in graphs) == 51_000
    for graph in graphs:
        validate(graph)
        assert graph.y.shape == (1,)
        assert torch.equal(graph.x, torch.full((25, 10), 0.1))
        assert graph.class_names == ["cycle", "house"]


@pytest.mark.parametrize("seed", [0, 7])
def test_ba_2motifs_is_a_tree_with_a_motif(seed: int) -> None:
    for graph in ba_2motifs(60, seed):
        assert with_both_directions(graph)
        assert not graph.has_self_loops()
        source, target = graph.edge_index
        base = (source < 20) & (target < 20)
        assert int(base.sum()) == 2 * 19
        assert connected(graph.edge_index[:, base], 20)
        hook = (source < 20) & (target >= 20)
        assert int(hook.sum()) == 1
        assert torch.equal(graph.node_motif, torch.tensor([-1] * 20 + [0] * 5))
        assert torch.equal(graph.edge_motif, (source >= 20) & (target >= 20))
        assert int(graph.edge_motif.sum()) == 2 * graph.motif_size
        inside = graph.edge_index[:, graph.edge_motif] - 20
        assert connected(inside, 5)
        # Five nodes with one cycle more than a tree, or two: these degrees leave only the cycle and the house
        # (or the two triangles at one node, which have a node of degree 4, or K23, which has no triangle).
        degrees = sorted(torch.bincount(inside[0], minlength=5).tolist())
        assert degrees == ([2] * 5 if int(graph.y) == 0 else [2, 2, 2, 3, 3])
        assert triangles(inside) == int(graph.y)


def connected(edge_index: torch.Tensor, nodes: int) -> bool:
    reach = torch.eye(nodes)
    reach[edge_index[0], edge_index[1]] = 1
    return bool((torch.matrix_power(reach, nodes) > 0).all())


def triangles(edge_index: torch.Tensor) -> int:
    adjacency = torch.zeros(5, 5)
    adjacency[edge_index[0], edge_index[1]] = 1
    return int(torch.matrix_power(adjacency, 3).trace()) // 6


def test_motifs_hang_anywhere() -> None:
    hooks = [
        tuple(graph.edge_index[:, (graph.edge_index[0] < 20) & (graph.edge_index[1] >= 20)].flatten().tolist())
        for graph in ba_2motifs(400)
    ]
    assert {base for base, _ in hooks} == set(range(20))
    assert {motif for _, motif in hooks} == set(range(20, 25))


def test_base_prefers_the_rich() -> None:
    largest = [int(torch.bincount(graph.edge_index[0, graph.edge_index[1] < 20]).max()) for graph in ba_2motifs(300)]
    # The largest degree of a uniform random recursive tree of 20 nodes is near 5 on average.
    assert np.mean(largest) > 6


def test_seed_decides_everything_and_fewer_are_the_first_of_more() -> None:
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    one, again, other = ba_2motifs(30, 1), ba_2motifs(20, 1), ba_2motifs(30, 2)
    assert torch.equal(torch_state, torch.get_rng_state())
    assert np.array_equal(numpy_state, np.random.get_state()[1])  # noqa: NPY002
    assert all(map(same_graph, one, again))
    assert not any(map(same_graph, one, other))
    assert not any(same_graph(one[i], one[i + 2]) for i in range(28))
    with pytest.raises(InputError, match="graphs is 0, but"):
        ba_2motifs(0)
