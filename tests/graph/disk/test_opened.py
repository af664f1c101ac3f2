"""Opening a folder reads next to nothing, and says what is wrong with a damaged one."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import butfor
from butfor.errors import GraphError
from butfor.graph.disk.layout import Array, Header
from butfor.graph.graph import Graph

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    edge_index = torch.tensor([[0, 1, 2], [1, 0, 1]])
    data = Data(x=torch.rand(3, 2), edge_index=edge_index, edge_weight=torch.rand(3), y=torch.tensor([0, 1, 0]))
    butfor.write_graph(data, tmp_path / "graph")
    return tmp_path / "graph"


def test_a_graph_of_any_size_is_opened_without_being_read(tmp_path: Path) -> None:
    # Two hundred gigabytes of nothing: files with holes take no room, and reading them would take minutes.
    nodes, edges = 10**9, 10**9
    header = Header(
        num_nodes=nodes,
        num_edges=edges,
        directed=True,
        reversible=False,
        fingerprint="0" * 16,
        arrays={
            "edge_index": Array("<i8", (2, edges)),
            "pointers": Array("<i8", (nodes + 1,)),
            "node/x": Array("<f4", (nodes, 32)),
        },
    )
    for place, array in header.arrays.items():
        path = tmp_path / f"{place}.npy"
        path.parent.mkdir(exist_ok=True)
        with path.open("wb") as file:
            shape, dtype = array.shape, np.dtype(array.dtype)
            np.lib.format.write_array_header_1_0(
                file, {"descr": array.dtype, "fortran_order": False, "shape": array.shape}
            )
            size = file.tell() + int(np.prod(shape)) * dtype.itemsize
            file.truncate(size)
            if place == "pointers":
                file.seek(size - 8)
                file.write(np.int64(edges).tobytes())
    (tmp_path / "graph.json").write_text(header.as_json())
    graph = Graph.of(butfor.open_graph(tmp_path))
    assert graph.num_nodes == nodes
    assert graph.x[torch.tensor([5, nodes - 2])].tolist() == [[0.0] * 32] * 2
    assert graph.neighbourhood(17, 2).num_nodes == 1


def test_there_is_no_graph(tmp_path: Path) -> None:
    with pytest.raises(GraphError, match="there is no folder"):
        butfor.open_graph(tmp_path / "nowhere")
    with pytest.raises(GraphError, match=r"has no graph.json: it is no graph, or only a part of one"):
        butfor.open_graph(tmp_path)
    with pytest.raises(GraphError, match="null"):
        butfor.open_graph("a\0b")


def edited(folder: Path, **changes: Any) -> None:
    content = json.loads((folder / "graph.json").read_text())
    for key, value in changes.items():
        if value is ...:
            del content[key]
        else:
            content[key] = value
    (folder / "graph.json").write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"format": "other"}, "format is 'other'"),
        ({"version": 2}, "version is 2, which a later version of butfor wrote"),
        ({"version": ...}, "version is None"),
        ({"num_nodes": -1}, "num_nodes is -1"),
        ({"num_nodes": 4}, r"pointers is int64 of shape \(4,\), but must be int64 of shape \(5,\)"),
        ({"num_edges": 7}, "edge_index is"),
        ({"directed": "yes"}, "directed is 'yes', but must be true or false"),
        ({"fingerprint": 5}, "fingerprint is 5"),
        ({"arrays": {}}, "edge_index is missing"),
        ({"arrays": {"../x": {"dtype": "<f4", "shape": [1]}}}, "'../x' is no place for an array"),
        ({"arrays": {"node/x": {"dtype": "|O", "shape": [1]}}}, "neither numbers nor text"),
        ({"arrays": {"node/x": {"dtype": "<f4", "shape": [-1]}}}, "shape of node/x is -1"),
        ({"types": {"node_types": []}}, "relations is None"),
        ({"values": {"graph": {"num_edges": 3}}}, "which no graph can carry"),
    ],
)
def test_a_damaged_description(folder: Path, changes: dict[str, Any], words: str) -> None:
    edited(folder, **changes)
    with pytest.raises(GraphError, match=words) as caught:
        butfor.open_graph(folder)
    assert "\n" not in str(caught.value)
    assert "graph" in str(caught.value)


def test_damaged_arrays(folder: Path) -> None:
    whole = folder.with_name("whole")
    shutil.copytree(folder, whole)
    x = folder / "node" / "x.npy"

    def refused(words: str) -> None:
        with pytest.raises(GraphError, match=words) as caught:
            butfor.open_graph(folder)
        assert "\n" not in str(caught.value)
        shutil.rmtree(folder)
        shutil.copytree(whole, folder)

    x.unlink()
    refused("x.npy is missing: convert the graph again")
    x.write_bytes(x.read_bytes()[:-4])
    refused("x.npy cannot be read as .npy")
    x.write_bytes(b"")
    refused("x.npy cannot be read as .npy")
    x.write_bytes(b"something else that is long enough")
    refused("x.npy cannot be read as .npy")
    np.save(x, np.zeros((3, 2)))
    refused(r"x.npy is float64 of shape \(3, 2\), but graph.json says float32 of shape \(3, 2\)")
    np.save(x, np.array([{}, {}], dtype=object), allow_pickle=True)
    refused("x.npy cannot be read as .npy")
    np.save(folder / "pointers.npy", np.array([0, 1, 3, 7]))
    refused("pointers.npy is damaged")
    (folder / "graph.json").write_text("{")
    refused("cannot be read as JSON")
    butfor.open_graph(folder)
