"""Which graphs can be used, and what is said of the others."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Data, HeteroData

from butfor.errors import GraphError
from butfor.graph.validate import validate


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


@pytest.mark.parametrize(
    ("kind", "name", "value", "message"),
    [
        (
            "a",
            "test_mask",
            torch.ones(3, dtype=torch.bool),
            "node type 'a': test_mask has 3 rows, but this graph has 2",
        ),
        ("a", "batch", torch.ones(3), "node type 'a': batch must hold the number of a graph for each of the 2 nodes"),
        ("a", "class_names", "xy", "node type 'a': class_names is a str, but must be a list of names"),
        (
            ("a", "to", "a"),
            "edge_attr",
            torch.ones(2, 1),
            r"relation .*: edge_attr has 2 rows, but this graph has 1 edge",
        ),
        (("a", "to", "a"), "edge_weight", torch.tensor([torch.nan]), r"relation .*: edge_weight of edge 0 is nan"),
        (None, "class_names", 3, "class_names is a int, but must be a list of names"),
    ],
)
def test_what_belongs_to_a_type_must_fit_it(kind: object, name: str, value: object, message: str) -> None:
    data = HeteroData(a={"x": torch.ones(2, 2), "y": torch.ones(2), "node_ids": ["p", "q"], "age": torch.ones(2)})
    data["a", "to", "a"].edge_index = torch.tensor([[0], [1]])
    data["a", "to", "a"].edge_label, data["a", "to", "a"].train_mask = torch.ones(5), torch.ones(1, dtype=torch.bool)
    validate(data)
    setattr(data if kind is None else data[kind], name, value)
    with pytest.raises(GraphError, match=message):
        validate(data)
