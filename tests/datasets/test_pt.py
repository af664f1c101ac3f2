"""Graphs in .pt files: read without running anything, and everything that can be wrong with such a file."""

from __future__ import annotations

import io
import pickle
import struct
import zipfile
from typing import TYPE_CHECKING

import pytest
import torch
from torch_geometric.data import Data, HeteroData

from bad_files import bomb, check_refused, pt, zipped
from butfor.datasets import load_graph, load_graphs, tree_cycles
from butfor.errors import GraphError
from graphs import same_graph, small_graph

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_pt_roundtrip(tmp_path: Path) -> None:
    data = tree_cycles(2)
    torch.save(data, tmp_path / "graph.pt")
    assert same_graph(load_graph(tmp_path / "graph.pt"), data)
    torch.save([data, tree_cycles(3)], tmp_path / "two.pt")
    assert [graph.seed for graph in load_graphs(tmp_path / "two.pt")] == [2, 3]
    with pytest.raises(GraphError, match="holds 2 graphs: use load_graphs"):
        load_graph(tmp_path / "two.pt")


def test_pt_with_a_bomb_runs_nothing(tmp_path: Path) -> None:
    path, mark = tmp_path / "graph.pt", tmp_path / "ran"
    data = tree_cycles(0)
    data.extra = bomb(mark)
    torch.save(data, path)
    with pytest.raises(GraphError, match=r"it asks for .*mkdir, which could run code, so it was not read"):
        load_graph(path)
    path.write_bytes(pickle.dumps(bomb(mark)))
    with pytest.raises(GraphError, match=r"could run code|not written by torch.save"):
        load_graph(path)
    assert not mark.exists()


def test_pt_leaves_the_list_of_safe_classes_alone(tmp_path: Path) -> None:
    before = list(torch.serialization.get_safe_globals())
    torch.save(tree_cycles(0), tmp_path / "graph.pt")
    load_graph(tmp_path / "graph.pt")
    assert set(torch.serialization.get_safe_globals()) == set(before)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"x": torch.ones(2)}, "not a dict"),
        (torch.ones(2), "not a Tensor"),
        ([], "not a list"),
        (HeteroData(a={"x": torch.ones(2, 2)}), "several node types"),
        (Data(x=torch.ones(2, 2)), "has no edge_index"),
        (Data(x=torch.ones(2, 2), edge_index=torch.tensor([[0], [7]])), "edge 0 points to node 7"),
    ],
)
def test_pt_of_something_else(tmp_path: Path, content: object, message: str) -> None:
    torch.save(content, tmp_path / "graph.pt")
    with pytest.raises(GraphError, match=message):
        load_graph(tmp_path / "graph.pt")


@pytest.mark.parametrize("size", [0, 5, 3000])
def test_truncated_pt(tmp_path: Path, size: int) -> None:
    path = tmp_path / "graph.pt"
    torch.save(tree_cycles(0), path)
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(GraphError, match=r"graph\.pt is damaged or was not written by torch\.save"):
        load_graph(path)


def hollow(**inside: object) -> Data:
    """A Data whose inside is not what it should be."""
    broken = small_graph()
    for name, value in inside.items():
        object.__setattr__(broken._store, name, value)
    return broken


def repacked(content: bytes) -> bytes:
    """The same archive compressed, with one member that grows."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as new:
        for info in old.infolist():
            new.writestr(info.filename, old.read(info))
        new.writestr("archive/data/99", bytes(10**6))
    whole = bytearray(buffer.getvalue())
    at = whole.rindex(b"PK\x01\x02")
    whole[at + 24 : at + 28] = struct.pack("<I", 2**32 - 2)
    return bytes(whole)


BAD_FILES: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"",
    "text": lambda: b"hello",
    "zip": lambda: zipped({"a": b"b"}),
    "half": lambda: pt(small_graph())[:500],
    "list of numbers": lambda: pt([1, 2]),
    "None": lambda: pt(None),
    "nothing in a list": lambda: pt([[]]),
    "weights": lambda: pt({"a": torch.ones(2)}),
    "number": lambda: pt(3),
    "words": lambda: pt("graph"),
    "hetero": lambda: pt(HeteroData(a={"x": torch.ones(2, 2)})),
    "hetero in a list": lambda: pt([small_graph(), HeteroData(a={"x": torch.ones(2, 2)})]),
    "nothing in it": lambda: pt(Data()),
    "stride 0": lambda: pt(small_graph(x=torch.ones(1, 1).expand(10**6, 10**6))),
    "stride 0 elsewhere": lambda: pt(small_graph(pos=torch.ones(1).expand(10**10))),
    "stride 0, many a little": lambda: pt(small_graph(**{f"a{n}": torch.ones(1).expand(2**28) for n in range(4)})),
    "compressed": lambda: repacked(pt(small_graph())),
    "sparse x": lambda: pt(small_graph(x=torch.eye(3).to_sparse())),
    "sparse of a giant shape": lambda: pt(
        small_graph(
            adj=torch.sparse_coo_tensor(torch.tensor([[0], [0]]), torch.ones(1), (10**9, 10**9), check_invariants=False)
        )
    ),
    "sparse edges": lambda: pt(small_graph(edge_index=torch.tensor([[0, 1], [1, 0]]).to_sparse())),
    "meta x": lambda: pt(small_graph(x=torch.empty(3, 2, device="meta"))),
    "meta pos": lambda: pt(small_graph(pos=torch.empty(10**6, 10**6, device="meta"))),
    "float8 x": lambda: pt(small_graph(x=torch.ones(3, 2).to(torch.float8_e4m3fn))),
    "complex x": lambda: pt(small_graph(x=torch.ones(3, 2, dtype=torch.complex64))),
    "complex weights": lambda: pt(small_graph(edge_weight=torch.ones(2, dtype=torch.complex64))),
    "bool x": lambda: pt(small_graph(x=torch.ones(3, 2, dtype=torch.bool))),
    "uint16 edges": lambda: pt(small_graph(edge_index=torch.tensor([[0, 1], [1, 0]]).to(torch.uint16))),
    "float edges": lambda: pt(small_graph(edge_index=torch.tensor([[0.0, 1], [1, 0]]))),
    "0-d x": lambda: pt(small_graph(x=torch.tensor(1.0))),
    "0-d edges": lambda: pt(small_graph(edge_index=torch.tensor(1))),
    "0-d edge_attr": lambda: pt(small_graph(edge_attr=torch.tensor(1.0))),
    "edge_attr is a number": lambda: pt(small_graph(edge_attr=1.0)),
    "edge_attr is a list": lambda: pt(small_graph(edge_attr=[1.0, 2.0])),
    "y is a list": lambda: pt(small_graph(y=[1, 2, 3])),
    "x is a list": lambda: pt(small_graph(x=[1, 2, 3])),
    "num_nodes is text": lambda: pt(small_graph(num_nodes="3")),
    "num_nodes is a vector": lambda: pt(small_graph(num_nodes=torch.tensor([3, 3]))),
    "num_nodes of an odd kind": lambda: pt(small_graph(num_nodes=torch.tensor([3]).to(torch.uint64))),
    "edge_type is a list": lambda: pt(small_graph(edge_type=[0, 1])),
    "edge_type of an odd kind": lambda: pt(small_graph(edge_type=torch.tensor([0, 1]).to(torch.uint64))),
    "num_nodes is another": lambda: pt(small_graph(num_nodes=10**12)),
    "mapping is a list": lambda: pt(hollow(_mapping=[1])),
    "mapping is text": lambda: pt(hollow(_mapping="abc")),
    "mapping is None": lambda: pt(hollow(_mapping=None)),
    "mapping of numbers": lambda: pt(hollow(_mapping={1: torch.ones(2)})),
    "mapping of a bad name": lambda: pt(hollow(_mapping={"_mapping": torch.ones(2), "x": torch.ones(3, 2)})),
    "formerly": lambda: pt(small_graph(), _use_new_zipfile_serialization=False)[:-30],
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_pt_files(tmp_path: Path, case: str) -> None:
    path = tmp_path / "graph.pt"
    path.write_bytes(BAD_FILES[case]())
    check_refused(lambda: load_graphs(path), GraphError, tmp_path, "")


@pytest.mark.filterwarnings("ignore")  # torch says that one is old and the other new
def test_a_pt_of_quantized_or_nested_tensors(tmp_path: Path) -> None:
    path = tmp_path / "graph.pt"
    quantized = torch.quantize_per_tensor(torch.ones(3, 2), 0.1, 0, torch.qint8)
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    for x in (quantized, nested):
        path.write_bytes(pt(small_graph(x=x)))
        check_refused(lambda: load_graphs(path), GraphError, tmp_path, "")


def test_odd_tensors_that_can_be_used(tmp_path: Path) -> None:
    """Repeated numbers get places of their own, and what is not of edges does not grow with them."""
    path = tmp_path / "graph.pt"
    one_way = torch.tensor([[0], [1]])
    path.write_bytes(
        pt(
            small_graph(
                x=torch.ones(1, 1).expand(3, 2),
                edge_index=one_way,
                edge_label=torch.ones(7),
                a_edge_mask=one_way[0] == 0,
            )
        )
    )
    (graph,) = load_graphs(path, undirected=True)
    assert graph.x.stride() == (2, 1)
    assert graph.edge_index.tolist() == [[0, 1], [1, 0]]
    assert (len(graph.edge_label), graph.a_edge_mask.tolist()) == (7, [True, True])
