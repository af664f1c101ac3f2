"""The three generators: structure, Table 1, ground truth, randomness."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data, HeteroData

from butfor.datasets import GENERATORS, ba_shapes, describe, tree_cycles, tree_grid
from butfor.errors import GraphError
from butfor.graph.validate import validate

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


def test_describe_counts_what_a_model_sees() -> None:
    data = tree_cycles(0)
    info = describe(data, "a/b.npz")
    assert info["path"] == "a/b.npz"
    assert (info["nodes"], info["edges"], info["features"], info["name"], info["seed"]) == (
        871,
        1950,
        10,
        "tree-cycles",
        0,
    )
    data.y = 1 - data.y
    assert describe(data)["sha256"] == info["sha256"]
    data.x[3, 3] = 2
    assert describe(data)["sha256"] != info["sha256"]


def test_import_stays_light() -> None:
    code = (
        "import sys, butfor.datasets, butfor.models;"
        "print([m for m in ('polars', 'matplotlib', 'rich', 'networkx', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def triangle(**changes: object) -> Data:
    edge_index = torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]])
    fields: dict[str, object] = {"x": torch.ones(3, 2), "edge_index": edge_index}
    fields.update(changes)
    return Data(**{key: value for key, value in fields.items() if value is not None})


def with_value(tensor: torch.Tensor, place: tuple[int, ...], value: float) -> torch.Tensor:
    tensor = tensor.clone()
    tensor[place] = value
    return tensor


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"edge_index": torch.empty(2, 0, dtype=torch.long)},
        {"edge_index": torch.tensor([[0, 0], [0, 1]], dtype=torch.int32)},
        {"y": torch.tensor([0, 1, 1]), "val_mask": torch.tensor([True, False, True])},
        {"y": torch.tensor([1])},
        {"edge_weight": torch.ones(6), "edge_attr": torch.ones(6, 3), "edge_label_index": torch.ones(2, 9)},
        {"x": torch.ones(3, 2, dtype=torch.long)},  # kinds of atoms, for an embedding
        {"x": torch.ones(3, 2, dtype=torch.uint8)},
        {"x": torch.full((3, 2), 3e38)},  # the sum overflows, the values do not
        {"num_nodes": 3, "train_mask": torch.ones(3, 10, dtype=torch.bool)},
    ],
)
def test_sound_graphs_pass(fields: dict[str, object]) -> None:
    validate(triangle(**fields))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"edge_index": None}, "has no edge_index"),
        (
            {"edge_index": torch.zeros(6, 2, dtype=torch.long)},
            r"edge_index has shape \(6, 2\), but must be \[2, edges\]",
        ),
        ({"edge_index": torch.zeros(2, 6)}, "edge_index is of dtype torch.float32"),
        (
            {"edge_index": torch.tensor([[0, 1], [1, 871]])},
            "edge 1 points to node 871, but this graph has nodes 0 to 2",
        ),
        ({"edge_index": torch.tensor([[0, -1], [1, 1]])}, "edge 1 starts at node -1"),
        ({"x": None}, "has no node features x"),
        ({"x": torch.ones(3)}, r"x has shape \(3,\)"),
        ({"x": torch.ones(0, 2)}, "this graph is empty: it has no nodes"),
        ({"x": torch.ones(3, 2, dtype=torch.bool)}, r"x is of dtype torch.bool.*x.float\(\)"),
        ({"x": torch.ones(3, 2, dtype=torch.complex64)}, "x is of dtype torch.complex64"),
        ({"x": torch.ones(3, 2).to_sparse()}, r"^x is sparse; use x.to_dense\(\)$"),
        (
            {"x": with_value(torch.ones(3, 2), (2, 1), float("nan"))},
            "x of node 2, column 1 is nan: 1 of its values",
        ),
        ({"x": with_value(torch.ones(3, 2), (0, 0), float("-inf"))}, "x of node 0, column 0 is -inf"),
        ({"num_nodes": 4}, "x has 3 rows, but the graph says it has 4 nodes"),
        ({"y": torch.zeros(2)}, "y has 2 rows, but this graph has 3 nodes"),
        ({"test_mask": torch.ones(1, dtype=torch.bool)}, "test_mask has 1 row, but this graph has 3 nodes"),
        ({"test_mask": torch.ones(3)}, r"test_mask is of dtype torch.float32.*test_mask.bool\(\)"),
        ({"edge_weight": torch.ones(5)}, "edge_weight has 5 rows, but this graph has 6 edges"),
        ({"edge_attr": torch.full((6, 2), torch.inf)}, "edge_attr of edge 0, column 0 is inf"),
        ({"edge_weight": torch.tensor(1.0)}, "edge_weight has no rows"),
        (
            {"edge_motif": torch.ones(3, dtype=torch.bool)},
            "edge_motif has 3 rows, but this graph has 6 edges",
        ),
        ({"node_motif": torch.ones(6)}, "node_motif has 6 rows, but this graph has 3 nodes"),
    ],
)
def test_malformed_graphs_are_named(fields: dict[str, object], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        validate(triangle(**fields))


def test_other_kinds_of_graph_are_refused() -> None:
    with pytest.raises(GraphError, match="it has no node types"):
        validate(HeteroData())
    with pytest.raises(GraphError, match="node type 'a': this graph has no node features x"):
        validate(HeteroData(a={"num_nodes": 2}))
    there = {"x": torch.ones(2, 2)}
    for relation, edges, message in (
        (("a", "to", "b"), [[0], [0]], r"relation .*: node type 'b' is not in this graph"),
        (("a", "to", "a"), [[0], [2]], "edge 0 points to a 2, but there are a 0 to 1"),
    ):
        data = HeteroData(a=there)
        data[relation].edge_index = torch.tensor(edges)
        with pytest.raises(GraphError, match=message):
            validate(data)
    with pytest.raises(GraphError, match="not a list"):
        validate([triangle()])
