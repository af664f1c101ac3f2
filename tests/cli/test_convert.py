"""``butfor convert``: the same graph in a folder, from every source, under a limit, and never by halves."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
import torch
from torch_geometric.data import Data

import butfor
from butfor.cli import main
from butfor.datasets import conversion, convert_graph, load_graph, save_graph
from butfor.datasets.parts import Table
from butfor.errors import ButforError, GraphError, InputError
from disk_graphs import check_same

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli_folders import Refused


NODES = 'id,label,split,f1,f2,name\nann,cat,train,1,0.5,"Ann, A"\nbob,dog,test,2,0,"B\nB"\ncid,cat,,3,-1,Cid C\n'
EDGES = "source,target,weight,kind\nann,bob,0.5,1\nbob,cid,2,0\ncid,bob,2,0\nann,bob,1,1\ncid,cid,3,1\n"


def tables(folder: Path, edges: str = EDGES, nodes: str = NODES) -> tuple[Path, Path]:
    paths = folder / "edges.csv", folder / "nodes.csv"
    for path, text in zip(paths, (edges, nodes), strict=True):
        path.write_text(text)
    return paths


def as_parquet(path: Path) -> Path:
    ids = dict.fromkeys(("id", "source", "target"), pl.String)
    pl.read_csv(path, schema_overrides=ids).write_parquet(path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_tables(tmp_path: Path, suffix: str, undirected: bool, capsys: pytest.CaptureFixture[str]) -> None:
    edges, nodes = tables(tmp_path)
    if suffix == ".parquet":
        edges, nodes = as_parquet(edges), as_parquet(nodes)
    out = tmp_path / "graph"
    flags = ["--undirected"] if undirected else []
    assert main(["convert", str(edges), "--node-table", str(nodes), "--out", str(out), *flags]) == 0
    assert f"3 nodes and {7 if undirected else 5} edges" in capsys.readouterr().out
    check_same(load_graph(out), load_graph(edges, nodes=nodes, undirected=undirected))


IDS = {
    "numbers of the nodes": lambda rng, n: np.arange(n),
    "other numbers": lambda rng, n: rng.permutation(n) * 7 - 20,
    "text": lambda rng, n: [f"n{i}" for i in rng.permutation(n)],
    "numbers after a while": lambda rng, n: [*range(n - 1), "007"],
}


@pytest.mark.parametrize("ids", IDS)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_many_parts(tmp_path: Path, ids: str, suffix: str) -> None:
    rng = np.random.default_rng(0)
    own = [str(one) for one in IDS[ids](rng, 700)]
    if ids in ("numbers of the nodes", "other numbers") and suffix == ".parquet":
        own = [int(one) for one in own]  # type: ignore[misc]
    nodes = pl.DataFrame({"id": own, "y": rng.integers(0, 3, 700), "f": rng.random(700), "g": rng.random(700) < 0.5})
    ends = rng.integers(0, 700, (2, 4000))
    edges = pl.DataFrame(
        {"source": [own[i] for i in ends[0]], "target": [own[i] for i in ends[1]], "weight": rng.random(4000)}
    )
    paths = [tmp_path / f"{name}{suffix}" for name in ("edges", "nodes")]
    for table, path in zip((edges, nodes), paths, strict=True):
        (table.write_csv if suffix == ".csv" else table.write_parquet)(path)
    assert len(list(Table(paths[0], "source", "target", memory=2**16).parts([]))) > 3
    convert_graph(paths[0], tmp_path / "graph", nodes=paths[1], memory=2**16)
    check_same(load_graph(tmp_path / "graph"), load_graph(paths[0], nodes=paths[1]))


@pytest.mark.parametrize("undirected", [[], ["--undirected"]], ids=["as it is", "undirected"])
@pytest.mark.parametrize("kind", ["compressed", "stored", "other types", "torch", "old torch"])
def test_other_files(tmp_path: Path, kind: str, undirected: list[str]) -> None:
    data = butfor.datasets.tree_cycles(seed=1)
    data.edge_index, data.edge_motif = data.edge_index[:, 3:], data.edge_motif[3:]
    data.edge_weight = torch.rand(data.num_edges)
    path = tmp_path / ("graph.pt" if "torch" in kind else "graph.npz")
    if kind == "compressed":
        save_graph(data, path)
    elif kind == "stored":
        np.savez(
            path, edge_index=data.edge_index.numpy(), x=data.x.numpy(), test_idx=[3, 1], edge_weight=data.edge_weight
        )
    elif kind == "other types":
        # Large numbers first, in the order of Fortran, and an array of no rows.
        pairs = np.ascontiguousarray(data.edge_index.T.numpy()).astype(">i4").T
        np.savez(
            path, edge_index=pairs, x=np.asfortranarray(data.x.numpy(), np.float64), val_idx=np.empty(0, int), seed=5
        )
    else:
        torch.save(data, path, _use_new_zipfile_serialization=kind == "torch")
    before = path.read_bytes()
    assert main(["convert", str(path), "--out", str(tmp_path / "out"), "--quiet", *undirected]) == 0
    check_same(load_graph(tmp_path / "out"), load_graph(path, undirected=bool(undirected)))
    assert path.read_bytes() == before
    assert not {"scratch", ".lock"} & {one.name for one in (tmp_path / "out").iterdir()}


def test_bad_files_are_refused_in_the_same_words_and_leave_nothing(tmp_path: Path) -> None:
    good = {"edge_index": np.array([[0, 1], [1, 0]]), "x": np.ones((2, 3))}
    for number, change in enumerate(
        [
            {"x": np.full((2, 3), np.nan)},
            {"edge_index": np.array([[0], [9]])},
            {"y": np.ones(5)},
            {"x": np.array([None])},
        ]
    ):
        path = tmp_path / f"{number}.npz"
        np.savez(path, **{**good, **change})
        with pytest.raises(ButforError) as wanted:
            load_graph(path)
        with pytest.raises(ButforError, match=re.escape(str(wanted.value))):
            convert_graph(path, tmp_path / "out")
        path.unlink()
        assert not list(tmp_path.iterdir())
    torch.save([Data(x=torch.ones(1, 1), edge_index=torch.zeros(2, 1).long())] * 2, tmp_path / "two.pt")
    with pytest.raises(GraphError, match="holds 2 graphs"):
        convert_graph(tmp_path / "two.pt", tmp_path / "out")


BAD = {
    "an unknown end": (EDGES + "ann,zoe,1,1\n", NODES),
    "an id twice": (EDGES, NODES + "bob,dog,test,1,1,B\n"),
    "no id": (EDGES, NODES + " ,dog,test,1,1,B\n"),
    "no source": (EDGES + ",ann,1,1\n", NODES),
    "fractions": ("source,target\n1.5,2\n", "id,f\n1.5,1\n2,1\n"),
    "other spelling": ("source,target\n0,01\n", "id,f\n0,1\n1,1\n"),
    "no nodes": (EDGES, "id,f\n"),
    "no features": (EDGES, "id,name\nann,A\nbob,B\ncid,C\n"),
    "a gap in features": (EDGES, NODES + "dan,dog,test,,1,B\n"),
    "a feature that is infinite": (EDGES, NODES + "dan,dog,test,inf,1,B\n"),
    "words among numbers": (EDGES, NODES + "dan,dog,test,many,1,B\n"),
    "a weight that is missing": (EDGES + "ann,bob,,1\n", NODES),
    "words among attributes": (EDGES + "ann,bob,1,x\n", NODES),
    "no label": (EDGES, NODES + "dan,,test,1,1,B\n"),
    "both label and y": (EDGES, "id,label,y,f\nann,a,1,1\nbob,a,1,1\ncid,a,1,1\n"),
    "labels with fractions": (EDGES, "id,label,f\nann,1.5,1\nbob,2,1\ncid,3,1\n"),
    "a mask of other numbers": (EDGES, "id,a_mask,f\nann,2,1\nbob,1,1\ncid,1,1\n"),
    "a mask twice": (EDGES, "id,a_mask,split,f\nann,1,a,1\nbob,1,b,1\ncid,1,b,1\n"),
    "a strange split": (EDGES, "id,split,f\nann,my part,1\nbob,b,1\ncid,b,1\n"),
    "a column twice": (EDGES, "id,f,f\nann,1,2\nbob,1,2\ncid,1,2\n"),
    "no column of ids": (EDGES, "name,f\nann,1\nbob,1\ncid,1\n"),
    "an empty file": ("", NODES),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_tables_are_refused_in_the_same_words(tmp_path: Path, case: str) -> None:
    edges, nodes = tables(tmp_path, *BAD[case])
    with pytest.raises(ButforError) as wanted:
        load_graph(edges, nodes=nodes)
    with pytest.raises(ButforError) as found:
        convert_graph(edges, tmp_path / "graph", nodes=nodes)
    assert type(found.value) is type(wanted.value)
    assert str(found.value) == str(wanted.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["edges.csv", "nodes.csv"]


def test_senseless_arguments(tmp_path: Path, refused: Refused) -> None:
    edges, nodes = tables(tmp_path)
    out = tmp_path / "graph"
    given = ["convert", str(edges), "--node-table", str(nodes), "--out", str(out)]
    refused([*given, "--memory", "much"], "--memory is 'much'; give a size of at least 1MB")
    refused([*given, "--memory", "10KB"], "at least 1MB")
    refused(["convert", str(edges), "--out", str(out)], "needs its node table")
    refused(["convert", str(tmp_path / "nothing.npz"), "--out", str(out)], "there is no file")
    assert main([*given, "--memory", "1.5MB"]) == 0
    refused(given, "exists already")
    assert main([*given, "--force"]) == 0
    refused([*given[:-1], str(tmp_path), "--force"], "not the folder of a graph")


def test_every_command_takes_the_folder(
    tmp_path: Path, rings: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where names are short enough for one line
    out = tmp_path / "graph"
    assert main(["convert", str(rings / "graph.npz"), "--out", str(out)]) == 0
    capsys.readouterr()
    assert main(["datasets", "graph"]) == 0
    described = capsys.readouterr().out
    shutil.copy(rings / "graph.npz", "other.npz")
    assert main(["datasets", "other.npz"]) == 0
    lines = zip(described.splitlines(), capsys.readouterr().out.splitlines(), strict=True)
    differing = [one.split()[0] for one, other in lines if one != other]
    assert differing == ["graph", "fingerprint"]  # the name, and edges in another order
    explain = ["explain", "--checkpoint", str(rings / "run"), "--limit", "3", "--quiet"]
    assert main([*explain, "--graph", str(out)]) == 0
    assert main(["train", str(out), "--epochs", "3", "--quiet", "--out", str(tmp_path / "run")]) == 0


def test_directions_that_are_missing_stay_missing(tmp_path: Path) -> None:
    edges, nodes = tables(tmp_path)
    convert_graph(edges, tmp_path / "one way", nodes=nodes)
    with pytest.raises(InputError, match="convert the graph again with --undirected"):
        load_graph(tmp_path / "one way", undirected=True)
    convert_graph(edges, tmp_path / "both", nodes=nodes, undirected=True)
    assert load_graph(tmp_path / "both", undirected=True).num_edges == 7


def test_several_node_types_are_for_python(tmp_path: Path) -> None:
    from torch_geometric.data import HeteroData

    data = HeteroData()
    data["a"].x = torch.ones(2, 1)
    butfor.write_graph(data, tmp_path / "typed")
    with pytest.raises(GraphError, match=r"only Python takes these: butfor\.open_graph"):
        load_graph(tmp_path / "typed")


def test_ctrl_c_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edges, nodes = tables(tmp_path)

    def interrupted(*_: object) -> None:
        assert (tmp_path / ".graph.partial").is_dir()
        raise KeyboardInterrupt

    monkeypatch.setattr(conversion, "_write_edges", interrupted)
    assert main(["convert", str(edges), "--node-table", str(nodes), "--out", str(tmp_path / "graph")]) == 130
    assert sorted(path.name for path in tmp_path.iterdir()) == ["edges.csv", "nodes.csv"]


def large_tables(folder: Path, edges: int) -> tuple[Path, Path]:
    rng = np.random.default_rng(0)
    nodes = edges // 10
    paths = folder / "edges.csv", folder / "nodes.csv"
    ends = rng.integers(0, nodes, (2, edges)) * 7
    pl.DataFrame({"source": ends[0], "target": ends[1], "weight": rng.random(edges)}).write_csv(paths[0])
    pl.DataFrame({"id": np.arange(nodes) * 7, "f": rng.random(nodes)}).write_csv(paths[1])
    return paths


@pytest.mark.slow
def test_a_process_that_is_killed_leaves_nothing_that_looks_whole(tmp_path: Path) -> None:
    edges, nodes = large_tables(tmp_path, 1_000_000)
    code = "import sys; from butfor.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "convert", str(edges), "--node-table", str(nodes)]
    for number, kind in enumerate((signal.SIGKILL, signal.SIGTERM, signal.SIGINT)):
        out = tmp_path / f"graph{number}"
        partial = tmp_path / f".graph{number}.partial"
        run = subprocess.Popen([*command, "--out", str(out)], stderr=subprocess.DEVNULL)
        while run.poll() is None and not (partial / "notes").exists():
            time.sleep(0.05)
        os.kill(run.pid, kind)
        run.wait()
        assert not out.exists()
        assert partial.exists() == (kind == signal.SIGKILL)
    with pytest.raises(GraphError, match=r"has no graph\.json"):
        butfor.open_graph(tmp_path / ".graph0.partial")
    assert main([*command[3:], "--out", str(tmp_path / "graph0"), "--quiet"]) == 0
    assert butfor.open_graph(tmp_path / "graph0").num_edges == 1_000_000
    assert not (tmp_path / ".graph0.partial").exists()


LIMITED = """
import resource, sys
import butfor, polars, torch
from butfor.datasets import convert_graph, load_graph
size = int(next(line for line in open("/proc/self/status") if line.startswith("VmData")).split()[1]) * 1024
resource.setrlimit(resource.RLIMIT_DATA, (size + 300_000_000,) * 2)
source, out, nodes = sys.argv[2], sys.argv[3], sys.argv[4] if len(sys.argv) > 4 else None
if sys.argv[1] == "whole":
    load_graph(source, nodes=nodes)
else:
    convert_graph(source, out, nodes=nodes, memory=50_000_000)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are those of Linux")
@pytest.mark.parametrize("save", [None, np.savez, np.savez_compressed], ids=["tables", "stored", "compressed"])
def test_memory_is_bounded(tmp_path: Path, save: Callable[..., None] | None) -> None:
    if save is None:
        edges, nodes = large_tables(tmp_path, 5_000_000)
        files = [str(edges), str(tmp_path / "graph"), str(nodes)]
    else:
        ends = np.random.default_rng(0).integers(0, 500_000, (200_000, 2))
        save(tmp_path / "graph.npz", edge_index=ends.T, x=np.ones((500_000, 100)))
        files = [str(tmp_path / "graph.npz"), str(tmp_path / "graph")]
    given = [sys.executable, "-c", LIMITED]
    assert subprocess.run([*given, "whole", *files], capture_output=True).returncode != 0
    run = subprocess.run([*given, "parts", *files], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert butfor.open_graph(tmp_path / "graph").num_edges == (5_000_000 if save is None else 200_000)
