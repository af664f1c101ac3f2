"""CSV and Parquet files that are damaged, of another kind, or hold what no graph can."""

from __future__ import annotations

import os
import pickle
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from bad_files import check_refused, zipped
from butfor.datasets import load_graphs
from butfor.errors import GraphError

if TYPE_CHECKING:
    from pathlib import Path


NODES, EDGES = b"id,f\na,1\nb,2\n", b"source,target\na,b\n"


CSV: dict[str, tuple[bytes, bytes]] = {
    "no nodes": (EDGES, b""),
    "no edges": (b"", NODES),
    "only line ends": (EDGES, b"\n\n\n"),
    "NUL": (EDGES, b"\x00" * 100),
    "latin-1": (EDGES, b"id,f\n\xe4,1\nb,2\n"),
    "utf-16": (EDGES, NODES.decode().encode("utf-16")),
    "too many cells": (EDGES, b"id,f\na,1,2,3\nb,1\n"),
    "open quote": (EDGES, b'id,f\n"a,1\nb,2\n'),
    "nan": (EDGES, b"id,f\na,nan\nb,2\n"),
    "infinity": (EDGES, b"id,f\na,Infinity\nb,2\n"),
    "twice": (EDGES, b"id,f,f\na,1,1\nb,2,2\n"),
    "twice nothing": (EDGES, b"id,f,,\na,1,1,1\nb,2,2,2\n"),
    "id twice": (EDGES, b"id,id,f\na,a,1\nb,b,2\n"),
    "huge number": (EDGES, b"id,f\na," + b"9" * 400 + b"\nb,2\n"),
    "label beyond 64 bits": (EDGES, b"id,y,f\na," + b"9" * 19 + b",1\nb,1,2\n"),
    "bad mask": (EDGES, b"id,_mask,f\na,1,1\nb,0,1\n"),
    "unknown id": (b"source,target\na,99999999999999999999999\n", NODES),
    "pickle": (EDGES, pickle.dumps([1])),
    "zip": (EDGES, zipped({"a": b"b"})),
}


@pytest.mark.parametrize("case", CSV)
def test_csv(tmp_path: Path, case: str) -> None:
    edges, nodes = tmp_path / "edges.csv", tmp_path / "nodes.csv"
    for path, content in zip((edges, nodes), CSV[case], strict=True):
        path.write_bytes(content)
    check_refused(lambda: load_graphs(edges, nodes=nodes), GraphError, tmp_path, ".csv")


PARQUET: dict[str, dict[str, list[Any]]] = {
    "list": {"f": [[1.0], [2.0]]},
    "struct": {"f": [{"a": 1}, {"a": 2}]},
    "bytes": {"f": [b"a", b"b"]},
    "null": {"f": [None, None]},
    "nan": {"f": [1.0, float("nan")]},
    "no features": {"name": ["x", "y"]},
    "ids that are lists": {"id": [["a"], ["b"]], "f": [1, 2]},
    "ids that are fractions": {"id": [0.5, 1.5], "f": [1, 2]},
    "no ids": {"id": [None, "b"], "f": [1, 2]},
}


@pytest.mark.parametrize("case", [*PARQUET, "half", "many rows"])
def test_parquet(tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pl = pytest.importorskip("polars")
    edges, nodes = tmp_path / "edges.parquet", tmp_path / "nodes.parquet"
    pl.DataFrame({"source": ["a"], "target": ["b"]}).write_parquet(edges)
    if case == "many rows":
        pl.select(id=pl.repeat(1, 10**6), f=pl.repeat(1.0, 10**6)).write_parquet(nodes)
        assert nodes.stat().st_size < 20_000
        monkeypatch.setenv("BUTFOR_MAX_BYTES", str(2**20))
    else:
        pl.DataFrame({"id": ["a", "b"], **PARQUET.get(case, {"f": [1.0, 2.0]})}).write_parquet(nodes)
    if case == "half":
        nodes.write_bytes(nodes.read_bytes()[:-20])
    check_refused(lambda: load_graphs(edges, nodes=nodes), GraphError, tmp_path, "nodes.parquet")


def test_a_damaged_parquet_says_nothing_else(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pl = pytest.importorskip("polars")
    edges, nodes = tmp_path / "edges.parquet", tmp_path / "nodes.parquet"
    pl.DataFrame({"source": ["a"], "target": ["b"]}).write_parquet(edges)
    pl.DataFrame({"id": ["a", "b"], "f": [1.0, 2.0]}).write_parquet(nodes, compression="uncompressed")
    whole = nodes.read_bytes()
    for place in range(4, len(whole), 13):  # somewhere among these, polars panics
        nodes.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        with suppress(GraphError):
            load_graphs(edges, nodes=nodes)
    os.write(2, b"heard")
    assert capfd.readouterr().err == "heard"
