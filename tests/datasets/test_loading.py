"""Which loader reads a path, and paths that none can read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bad_files import check_refused, make_no_file
from butfor.datasets import load_graph, load_graphs
from butfor.errors import GraphError, InputError

if TYPE_CHECKING:
    from pathlib import Path


def test_paths_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(GraphError, match=r"there is no file or folder .*none\.npz"):
        load_graph(tmp_path / "none.npz")
    (tmp_path / "graph.txt").touch()
    with pytest.raises(GraphError, match=r"graph\.txt is of no known kind: expected \.npz"):
        load_graph(tmp_path / "graph.txt")
    with pytest.raises(GraphError, match=r"has no raw files of a Planetoid .*a TUDataset .*neither"):
        load_graph(tmp_path)
    (tmp_path / "edges.csv").write_text("source,target\nann,bob\n")
    with pytest.raises(InputError, match=r"edges\.csv needs its node table"):
        load_graph(tmp_path / "edges.csv")
    with pytest.raises(GraphError, match=r"there is no file .*nodes\.csv"):
        load_graph(tmp_path / "edges.csv", nodes=tmp_path / "nodes.csv")
    with pytest.raises(InputError, match="nodes= goes with an edge list"):
        load_graph(tmp_path / "graph.txt", nodes=tmp_path / "edges.csv")


@pytest.mark.parametrize("end", [".npz", ".pt", ".csv", ".parquet"])
@pytest.mark.parametrize("kind", ["pipe", "broken link", "endless", "larger than memory", "folder", "NUL", "too long"])
def test_graphs_that_are_no_files(tmp_path: Path, end: str, kind: str) -> None:
    path, nodes = tmp_path / f"graph{end}", None
    if end in (".csv", ".parquet"):
        nodes = tmp_path / "nodes.csv"
        nodes.write_text("id,f\na,1\nb,2\n")
    if kind in ("NUL", "too long"):
        path = tmp_path / (f"a\0b{end}" if kind == "NUL" else "x" * 300 + end)
    else:
        make_no_file(path, kind)
    check_refused(lambda: load_graphs(path, nodes=nodes), GraphError, tmp_path, end)
