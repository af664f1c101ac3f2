"""A graph written piece by piece: checked on the way, sorted under a limit of memory, and all or nothing."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import butfor
from butfor.errors import GraphError
from butfor.graph.disk.writer import GraphWriter
from disk_graphs import check_same

if TYPE_CHECKING:
    from pathlib import Path


def test_pieces(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, ends, weight = rng.random((50, 4), dtype=np.float32), rng.integers(0, 50, (2, 400)), rng.random(400)
    with GraphWriter(tmp_path / "graph", 50, memory=2000) as writer:
        for part in np.array_split(np.arange(50), 7):
            writer.nodes("x", x[part])
        for part in np.array_split(np.arange(400), 13):
            writer.edges(*ends[:, part], edge_weight=weight[part])
        writer.other("table", np.arange(7))
        writer.finish(class_names=["a", "b"])
    data = Data(x=torch.from_numpy(x), edge_index=torch.from_numpy(ends), edge_weight=torch.from_numpy(weight))
    data.table, data.class_names = torch.arange(7), ["a", "b"]
    check_same(butfor.open_graph(tmp_path / "graph"), data)


def test_a_hub_larger_than_memory(tmp_path: Path) -> None:
    source = np.random.default_rng(0).permutation(3000)
    with GraphWriter(tmp_path / "graph", 3000, undirected=True, memory=1000) as writer:
        writer.nodes("x", np.ones((3000, 1), dtype=np.float32))
        writer.edges(source, np.zeros(3000, dtype=np.int64))
        writer.finish()
    data = butfor.open_graph(tmp_path / "graph")
    assert data.edge_index.size(1) == 5999
    assert data.edge_index[0, :3000].tolist() == list(range(3000))


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    ones, none = np.ones((3, 1), dtype=np.float32), np.empty(0, dtype=np.int64)

    def write(*, x=(ones,), edges=((none, none),), finish=True, **carried) -> None:
        with GraphWriter(tmp_path / "graph", 3) as writer:
            for part in x:
                writer.nodes("x", part)
            for source, target in edges:
                writer.edges(np.array(source), np.array(target), **carried)
            writer.finish()

    for options, words in (
        ({"x": (ones[:2],)}, "x has 2 rows, but this graph has 3 nodes"),
        ({"x": (ones, ones)}, "there is room for"),
        ({"x": ()}, "this graph has no node features x"),
        ({"x": (ones[:1], np.array([[1], [np.inf]]))}, "x of node 2, column 0 is inf"),
        ({"edges": (([0, 1], [1, 2]), ([0, -1], [1, 2]))}, "edge 3 starts at node -1, but this graph has nodes 0 to 2"),
        ({"edges": (([0], [3]),)}, "edge 0 points to node 3"),
        ({"edges": (([0], [1]),), "edge_weight": np.array([np.nan])}, "edge_weight of edge 0 is nan"),
        ({"edges": (([0], [1]),), "edge_weight": np.ones(2)}, "edge_weight has 2 rows, but there are 1 edges"),
    ):
        with pytest.raises(GraphError, match=words):
            write(**options)
        assert not list(tmp_path.iterdir())
    with pytest.raises(GraphError, match="it has no nodes"):
        GraphWriter(tmp_path / "graph", 0)


@pytest.mark.parametrize("where", ["nodes", "edges", "sorting edges", "looking for reverses"])
def test_an_interruption_leaves_nothing(tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(name: str) -> None:
        if name == where:
            assert [path.name for path in tmp_path.iterdir()] == [".graph.partial"]
            raise KeyboardInterrupt

    def shown(self, steps, total, label):
        interrupt(label)
        return steps

    monkeypatch.setattr(GraphWriter, "_shown", shown)

    def write() -> None:
        with GraphWriter(tmp_path / "graph", 3) as writer:
            interrupt("nodes")
            writer.nodes("x", np.ones((3, 1), dtype=np.float32))
            interrupt("edges")
            writer.edges(np.array([0, 1]), np.array([1, 0]))
            writer.finish()

    with pytest.raises(KeyboardInterrupt):
        write()
    assert not list(tmp_path.iterdir())


LIMITED = """
import resource, sys
import numpy as np
from butfor.graph.disk.writer import GraphWriter
size = int(next(line for line in open("/proc/self/status") if line.startswith("VmData")).split()[1]) * 1024
resource.setrlimit(resource.RLIMIT_DATA, (size + 60_000_000,) * 2)
nodes, edges = 200_000, 5_000_000
try:
    np.zeros((2, edges), dtype=np.int64)
    sys.exit("there is no limit")
except MemoryError:
    pass
rng = np.random.default_rng(0)
with GraphWriter(sys.argv[1], nodes, memory=20_000_000) as writer:
    for part in range(10):
        writer.nodes("x", np.ones((nodes // 10, 32), dtype=np.float32))
    for part in range(50):
        writer.edges(*rng.integers(0, nodes, (2, edges // 50)))
    writer.finish()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are those of Linux")
@pytest.mark.slow
def test_memory_does_not_grow_with_the_graph(tmp_path: Path) -> None:
    run = subprocess.run([sys.executable, "-c", LIMITED, str(tmp_path / "graph")], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert butfor.open_graph(tmp_path / "graph").num_edges == 5_000_000
