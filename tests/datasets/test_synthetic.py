"""The three generators: structure, Table 1, ground truth, randomness."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from butfor.datasets import GENERATORS, ba_shapes, describe, tree_cycles, tree_grid
from butfor.graph.validate import validate

if TYPE_CHECKING:
    from torch_geometric.data import Data

# name: nodes, edges, nodes per class, test nodes, edges and nodes of a motif, motifs, 4-hop nodes and edges
TABLE_1 = {
    "tree-cycles": (871, 1950, [511, 360], 175, 6, 6, 60, 19.12, 18.99),
    "tree-grid": (1231, 3410, [511, 720], 247, 12, 9, 80, 30.69, 33.94),
    "ba-shapes": (700, 4100, [300, 160, 160, 80], 140, 6, 5, 80, 304.40, 1106.24),
}


every_generator = pytest.mark.parametrize("name", sorted(GENERATORS))


def pairs(data: Data) -> set[tuple[int, int]]:
    return {(u, v) for u, v in data.edge_index.t().tolist()}


@every_generator
@pytest.mark.parametrize("seed", [0, 1, 17])
def test_sizes_are_those_of_table_1(name: str, seed: int) -> None:
    nodes, edges, classes, test, motif_edges, motif_nodes, motifs, *_ = TABLE_1[name]
    data = GENERATORS[name](seed)
    validate(data)
    assert (data.num_nodes, data.num_edges, data.motif_size) == (nodes, edges, motif_edges)
    assert torch.bincount(data.y).tolist() == classes
    assert len(data.class_names) == len(classes)
    assert data.class_names[0] == "base"
    assert (data.name, data.seed) == (name, seed)
    assert data.x.dtype == torch.float32
    assert torch.equal(data.x, torch.ones(nodes, 10))
    assert int(data.test_mask.sum()) == test
    assert torch.equal(data.train_mask, ~data.test_mask)
    assert int(data.edge_motif.sum()) == 2 * motifs * motif_edges
    assert torch.bincount(data.node_motif[data.node_motif >= 0]).tolist() == [motif_nodes] * motifs


@every_generator
def test_undirected_and_simple(name: str) -> None:
    data = GENERATORS[name](3)
    edges = pairs(data)
    assert len(edges) == data.num_edges  # no edge twice
    assert all((v, u) in edges for u, v in edges)
    assert all(u != v for u, v in edges)
    by_pair = dict(zip(map(tuple, data.edge_index.t().tolist()), data.edge_motif.tolist(), strict=True))
    assert all(by_pair[v, u] == inside for (u, v), inside in by_pair.items())


@every_generator
def test_ground_truth_is_the_motif_itself(name: str) -> None:
    _, _, _, _, motif_edges, motif_nodes, motifs, *_ = TABLE_1[name]
    data = GENERATORS[name](5)
    assert torch.equal(data.node_motif == -1, data.y == 0)
    source, target = data.edge_index[:, data.edge_motif]
    assert torch.equal(data.node_motif[source], data.node_motif[target])
    assert bool((data.node_motif[source] >= 0).all())
    assert torch.bincount(data.node_motif[source]).tolist() == [2 * motif_edges] * motifs
    shape = {"tree-cycles": [2] * 6, "tree-grid": [2, 2, 2, 2, 3, 3, 3, 3, 4], "ba-shapes": [2, 2, 2, 3, 3]}[name]
    degree = torch.bincount(source, minlength=data.num_nodes)
    assert all(sorted(degree[data.node_motif == i].tolist()) == shape for i in range(motifs))
    # Every motif is joined to a base node that no other motif hangs on.
    first = torch.tensor([int((data.node_motif == i).nonzero()[0]) for i in range(motifs)])
    hooks = [{u for u, v in pairs(data) if v == int(node) and u < int(first[0])} for node in first]
    assert all(hooks)
    assert len(set.union(*hooks)) >= motifs
    assert motif_nodes == len(shape)


def test_roles_in_a_house() -> None:
    data = ba_shapes(0)
    edges = pairs(data)
    house = (data.node_motif == 7).nonzero().flatten().tolist()
    roles = {node: data.class_names[int(data.y[node])] for node in house}
    inside = {
        tuple(sorted((roles[u], roles[v])))
        for (u, v), motif in zip(data.edge_index.t().tolist(), data.edge_motif.tolist(), strict=True)
        if motif and u in roles
    }
    assert inside == {("middle", "top"), ("middle", "middle"), ("bottom", "middle"), ("bottom", "bottom")}
    joined = [node for node in house if any(base < 300 for base in (u for u, v in edges if v == node))]
    assert "middle" in {roles[node] for node in joined}


@every_generator
def test_neighbourhoods_are_as_large_as_in_table_1(name: str) -> None:
    # Over 30 seeds one graph's average varies with a standard deviation of at most 1.5 % (noise edges, and
    # for BA-Shapes its base), and the mean over seeds lies up to 4 % off the one graph the paper measured.
    # 9 % is that difference and more than three standard deviations.
    *_, nodes, edges = TABLE_1[name]
    for seed in range(4):
        data = GENERATORS[name](seed)
        n = data.num_nodes
        adjacency = sp.csr_matrix((np.ones(data.num_edges), data.edge_index.numpy()), shape=(n, n))
        reach = sp.identity(n, format="csr")
        for _ in range(4):
            reach = reach + reach @ adjacency
            reach.data[:] = 1
        assert reach.sum() / n == pytest.approx(nodes, rel=0.09)
        assert (reach @ adjacency).multiply(reach).sum() / 2 / n == pytest.approx(edges, rel=0.09)


def test_barabasi_albert_base_prefers_the_rich() -> None:
    data = ba_shapes(0)
    base = (data.edge_index < 300).all(dim=0)
    degree = torch.bincount(data.edge_index[0, base], minlength=300)
    # 295 nodes came with 5 edges each. A uniform attachment of this size has its largest degree near 30.
    assert int(degree.min()) >= 1
    assert int((degree >= 5).sum()) >= 295
    assert int(degree.max()) > 40
    assert 1475 <= int(degree.sum()) // 2 <= 1475 + 15


@every_generator
def test_seed_decides_everything(name: str) -> None:
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    one, again, other = GENERATORS[name](1), GENERATORS[name](1), GENERATORS[name](2)
    assert torch.equal(torch_state, torch.get_rng_state())
    assert np.array_equal(numpy_state, np.random.get_state()[1])  # noqa: NPY002
    for key in one.keys():  # noqa: SIM118
        same = torch.equal(one[key], again[key]) if isinstance(one[key], torch.Tensor) else one[key] == again[key]
        assert same, key
    assert pairs(one) != pairs(other)
    assert not torch.equal(one.test_mask, other.test_mask)
    assert describe(one) == describe(again)
    assert describe(one)["sha256"] != describe(other)["sha256"]


def test_default_seed_is_zero() -> None:
    assert pairs(tree_cycles()) == pairs(tree_cycles(0))
    assert pairs(tree_grid()) == pairs(tree_grid(0))
