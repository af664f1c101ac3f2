"""Bad files of every kind: each is refused in one line that names it, nothing is written, and no memory is claimed."""

from __future__ import annotations

import collections
import io
import json
import os
import pickle
import struct
import tracemalloc
import zipfile
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch_geometric.data import Data, HeteroData

from butfor.boundary.limits import check_size, limit
from butfor.boundary.reading import reading
from butfor.cli.edit_space import read_space
from butfor.cli.target_lists import parse_edges, parse_graphs, parse_links, parse_nodes
from butfor.datasets import describe, load_graphs, save_graph
from butfor.edits.change import Change, Features
from butfor.edits.deletion import Deletion
from butfor.edits.edit import read_edit
from butfor.errors import ButforError, GraphError, InputError, ModelError, StoreError
from butfor.models import PaperGCN, load_checkpoint, load_published, load_weights, save_checkpoint
from butfor.paper.benchmark import Benchmark
from butfor.paper.experiment import Experiment
from butfor.paper.report import _delete_tables, _earlier_commands, _read_section
from butfor.paper.sections import Section
from butfor.problem.goal import Goal
from butfor.result.counterfactual import Counterfactual
from butfor.result.method_record import MethodRecord
from butfor.result.status import Prediction, Status
from butfor.runs import read_results
from butfor.runs.lines import to_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# Far more than any of these files needs, far less than what they claim.
MOST = 60 * 2**20


def refused(use: Callable[[], object], error: type[ButforError], place: Path, names: str) -> None:
    """What every bad file must lead to."""

    def listing() -> dict[str, tuple[int, int]]:
        return {str(path): (path.lstat().st_size, path.lstat().st_mtime_ns) for path in place.rglob("*")}

    before = listing()
    tracemalloc.start()
    try:
        with pytest.raises(error) as caught:
            use()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    message = str(caught.value)
    assert "\n" not in message
    assert names in message
    assert len(message) < 1500
    assert peak < MOST
    assert listing() == before


# .npz ---------------------------------------------------------------------------------------------------

GRAPH = {"edge_index": np.array([[0, 1, 2], [1, 0, 1]]), "x": np.ones((3, 2))}


def npy(header: str, content: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY" + version + struct.pack("<H" if version == b"\x01\x00" else "<I", len(text)) + text + content


def header(descr: str, shape: object) -> str:
    return f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}"


def zipped(members: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def arrays(**changes: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **{**GRAPH, **changes})
    return buffer.getvalue()


def with_member(name: str, content: bytes) -> bytes:
    buffer = io.BytesIO(arrays())
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


def bomb() -> bytes:
    """16 KiB that stand for 16 MiB, and those for 128 MiB of numbers."""
    return zipped({"x.npy": npy(header("|b1", (2**24,)), bytes(2**24))})


NPZ: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"",
    "text": lambda: b"hello",
    "zeros": lambda: bytes(1000),
    "pickle": lambda: pickle.dumps([1, 2]),
    "npy": lambda: npy(header("<f8", (1,)), bytes(8)),
    "zip of nothing": lambda: zipped({}),
    "only the end of a zip": lambda: b"PK\x05\x06" + bytes(18),
    "half": lambda: arrays()[: len(arrays()) // 2],
    "no end": lambda: arrays()[:-10],
    "flipped": lambda: arrays().replace(b"NUMPY", b"NUMPX"),
    "member that is no array": lambda: with_member("notes", b"hello"),
    "empty member": lambda: with_member("notes.npy", b""),
    "member of unknown version": lambda: with_member("z.npy", npy(header("<f8", (1,)), bytes(8), b"\x09\x00")),
    "version 3": lambda: with_member("z.npy", npy(header("<f8", (1,)), bytes(8), b"\x03\x00")),
    "header that is code": lambda: with_member("z.npy", npy("__import__('os').getcwd()")),
    "header that is deep": lambda: with_member("z.npy", npy("(" * 5000 + ")" * 5000)),
    "header that is long": lambda: with_member("z.npy", npy("{" + " " * 60000 + "}")),
    "header without shape": lambda: with_member("z.npy", npy("{'descr': '<f8'}")),
    "negative shape": lambda: with_member("z.npy", npy(header("<f8", (-3,)), bytes(24))),
    "giant shape": lambda: with_member("z.npy", npy(header("<f8", (10**15,)))),
    "shape beyond 64 bits": lambda: with_member("z.npy", npy(header("<f8", (10**30, 10**30)))),
    "giant shape of nothing": lambda: with_member("z.npy", npy(header("<U0", (10**15,)))),
    "giant and empty": lambda: with_member("z.npy", npy(header("<f8", (10**12, 0)))),
    "giant letters": lambda: with_member("z.npy", npy(header("<U1000000000", (10**6,)))),
    "twice": lambda: with_member("x", npy(header("<f8", (1,)), bytes(8))),
    "lzma": lambda: zipped({"x.npy": npy(header("<f8", (1,)), bytes(8))}, zipfile.ZIP_LZMA),
    "object": lambda: arrays(y=np.array([{}, {}, {}], dtype=object)),
    "complex": lambda: arrays(y=np.ones(3, complex)),
    "structured": lambda: arrays(y=np.zeros(3, [("a", "<f8"), ("b", "<i4")])),
    "void": lambda: arrays(y=np.zeros(3, "V4")),
    "bytes": lambda: arrays(y=np.array([b"a", b"b", b"c"])),
    "time": lambda: arrays(y=np.zeros(3, "datetime64[s]")),
    "long double": lambda: arrays(y=np.zeros(3, np.longdouble)),
    "no letters": lambda: with_member("z.npy", npy(header("<U1", (1,)), b"\xff\xff\xff\x7f")),
    "half a letter": lambda: with_member("z.npy", npy(header("<U1", (1,)), b"\x00\xd8\x00\x00")),
    "unsigned beyond 63 bits": lambda: arrays(edge_index=np.array([[2**64 - 1], [0]], np.uint64)),
    "node beyond 32 bits": lambda: arrays(edge_index=np.array([[2**40], [0]])),
    "negative node": lambda: arrays(edge_index=np.array([[-1], [0]])),
    "edge_attr 0-d": lambda: arrays(edge_attr=np.array(1.0)),
    "edge_weight 0-d": lambda: arrays(edge_weight=np.array(1.0)),
    "edge_attr text": lambda: arrays(edge_attr=np.array(["a", "b", "c"])),
    "y 0-d": lambda: arrays(y=np.array(1)),
    "x 0-d": lambda: arrays(x=np.array(1)),
    "edge_index 0-d": lambda: arrays(edge_index=np.array(1)),
    "mask 0-d": lambda: arrays(test_mask=np.array(True)),
    "index 0-d": lambda: arrays(test_idx=np.array(1)),
    "index beyond 63 bits": lambda: arrays(test_idx=np.array([2**64 - 1], np.uint64)),
    "overflow of float32": lambda: arrays(x=np.full((3, 2), 1e300)),
    "nan weight": lambda: arrays(edge_weight=np.array([1, np.nan, 1])),
    "num_nodes": lambda: arrays(num_nodes=np.array([1, 2])),
    "other num_nodes": lambda: arrays(num_nodes=np.array(7)),
    **{
        f"named {name}": (lambda name=name: arrays(**{name: np.ones(3)}))
        for name in (
            "_mapping",
            "_store",
            "__class__",
            "_edge_attr_cls",
            "keys",
            "num_edges",
            "to_dict",
            "a b",
            "stores",
        )
    },
    "named self": lambda: with_member("self.npy", npy(header("<f8", (1,)), bytes(8))),
    "named by a path": lambda: with_member("../../x.npy", npy(header("<f8", (1,)), bytes(8))),
}


@pytest.mark.parametrize("case", NPZ)
def test_npz(tmp_path: Path, case: str) -> None:
    path = tmp_path / "graph.npz"
    path.write_bytes(NPZ[case]())
    # Where the graph itself is at fault, its attribute is named.
    about = {"edge": "edge", "index": "idx", "mask": "mask", "nan": "edge_weight", "node": "edge", "negative": "node"}
    known = case.split()[0].split("_")[0]
    with pytest.raises(GraphError) as caught:
        load_graphs(path)
    named = "graph.npz" if "graph.npz" in str(caught.value) else about.get(known, "")
    refused(lambda: load_graphs(path), GraphError, tmp_path, named)


def test_a_zip_that_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "graph.npz"
    path.write_bytes(bomb())
    assert path.stat().st_size < 10**5
    monkeypatch.setenv("BUTFOR_MAX_BYTES", str(2**25))
    refused(lambda: load_graphs(path), GraphError, tmp_path, "would take 128 MiB of memory, and the limit is 32 MiB")


# .pt ----------------------------------------------------------------------------------------------------


def pt(content: object, **options: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(content, buffer, **options)
    return buffer.getvalue()


def data(**changes: Any) -> Data:
    plain = Data(x=torch.ones(3, 2), edge_index=torch.tensor([[0, 1], [1, 0]]))
    for name, value in changes.items():
        plain[name] = value
    return plain


def hollow(**inside: object) -> Data:
    """A Data whose inside is not what it should be."""
    broken = data()
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
    return bytes(whole) + b""


PT: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"",
    "text": lambda: b"hello",
    "zip": lambda: zipped({"a": b"b"}),
    "half": lambda: pt(data())[:500],
    "list of numbers": lambda: pt([1, 2]),
    "None": lambda: pt(None),
    "nothing in a list": lambda: pt([[]]),
    "weights": lambda: pt({"a": torch.ones(2)}),
    "number": lambda: pt(3),
    "words": lambda: pt("graph"),
    "hetero": lambda: pt(HeteroData(a={"x": torch.ones(2, 2)})),
    "hetero in a list": lambda: pt([data(), HeteroData(a={"x": torch.ones(2, 2)})]),
    "nothing in it": lambda: pt(Data()),
    "stride 0": lambda: pt(data(x=torch.ones(1, 1).expand(10**6, 10**6))),
    "stride 0 elsewhere": lambda: pt(data(pos=torch.ones(1).expand(10**10))),
    "stride 0, many a little": lambda: pt(data(**{f"a{n}": torch.ones(1).expand(2**28) for n in range(4)})),
    "compressed": lambda: repacked(pt(data())),
    "sparse x": lambda: pt(data(x=torch.eye(3).to_sparse())),
    "sparse of a giant shape": lambda: pt(
        data(
            adj=torch.sparse_coo_tensor(torch.tensor([[0], [0]]), torch.ones(1), (10**9, 10**9), check_invariants=False)
        )
    ),
    "sparse edges": lambda: pt(data(edge_index=torch.tensor([[0, 1], [1, 0]]).to_sparse())),
    "meta x": lambda: pt(data(x=torch.empty(3, 2, device="meta"))),
    "meta pos": lambda: pt(data(pos=torch.empty(10**6, 10**6, device="meta"))),
    "float8 x": lambda: pt(data(x=torch.ones(3, 2).to(torch.float8_e4m3fn))),
    "complex x": lambda: pt(data(x=torch.ones(3, 2, dtype=torch.complex64))),
    "complex weights": lambda: pt(data(edge_weight=torch.ones(2, dtype=torch.complex64))),
    "bool x": lambda: pt(data(x=torch.ones(3, 2, dtype=torch.bool))),
    "uint16 edges": lambda: pt(data(edge_index=torch.tensor([[0, 1], [1, 0]]).to(torch.uint16))),
    "float edges": lambda: pt(data(edge_index=torch.tensor([[0.0, 1], [1, 0]]))),
    "0-d x": lambda: pt(data(x=torch.tensor(1.0))),
    "0-d edges": lambda: pt(data(edge_index=torch.tensor(1))),
    "0-d edge_attr": lambda: pt(data(edge_attr=torch.tensor(1.0))),
    "edge_attr is a number": lambda: pt(data(edge_attr=1.0)),
    "edge_attr is a list": lambda: pt(data(edge_attr=[1.0, 2.0])),
    "y is a list": lambda: pt(data(y=[1, 2, 3])),
    "x is a list": lambda: pt(data(x=[1, 2, 3])),
    "num_nodes is text": lambda: pt(data(num_nodes="3")),
    "num_nodes is a vector": lambda: pt(data(num_nodes=torch.tensor([3, 3]))),
    "num_nodes of an odd kind": lambda: pt(data(num_nodes=torch.tensor([3]).to(torch.uint64))),
    "edge_type is a list": lambda: pt(data(edge_type=[0, 1])),
    "edge_type of an odd kind": lambda: pt(data(edge_type=torch.tensor([0, 1]).to(torch.uint64))),
    "num_nodes is another": lambda: pt(data(num_nodes=10**12)),
    "mapping is a list": lambda: pt(hollow(_mapping=[1])),
    "mapping is text": lambda: pt(hollow(_mapping="abc")),
    "mapping is None": lambda: pt(hollow(_mapping=None)),
    "mapping of numbers": lambda: pt(hollow(_mapping={1: torch.ones(2)})),
    "mapping of a bad name": lambda: pt(hollow(_mapping={"_mapping": torch.ones(2), "x": torch.ones(3, 2)})),
    "formerly": lambda: pt(data(), _use_new_zipfile_serialization=False)[:-30],
}


@pytest.mark.parametrize("case", PT)
def test_pt(tmp_path: Path, case: str) -> None:
    path = tmp_path / "graph.pt"
    path.write_bytes(PT[case]())
    refused(lambda: load_graphs(path), GraphError, tmp_path, "")


@pytest.mark.filterwarnings("ignore")  # torch says that one is old and the other new
def test_a_pt_of_quantized_or_nested_tensors(tmp_path: Path) -> None:
    path = tmp_path / "graph.pt"
    quantized = torch.quantize_per_tensor(torch.ones(3, 2), 0.1, 0, torch.qint8)
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    for x in (quantized, nested):
        path.write_bytes(pt(data(x=x)))
        refused(lambda: load_graphs(path), GraphError, tmp_path, "")


def test_odd_tensors_that_can_be_used(tmp_path: Path) -> None:
    """Repeated numbers get places of their own, and what is not of edges does not grow with them."""
    path = tmp_path / "graph.pt"
    one_way = torch.tensor([[0], [1]])
    path.write_bytes(
        pt(
            data(
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
    path = tmp_path / "graph.npz"
    path.write_bytes(arrays(edge_index=np.zeros((2, 0), int), edge_type=np.zeros(0, int), x=np.ones((3, 2), ">f8")))
    (graph,) = load_graphs(path)
    assert graph.edge_type.stride() == (1,)
    assert describe(graph)["edges"] == 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float8_e4m3fn, torch.complex64])
def test_kinds_of_numbers_that_npz_cannot_hold(tmp_path: Path, dtype: torch.dtype) -> None:
    refused(
        lambda: save_graph(data(pos=torch.ones(3).to(dtype)), tmp_path / "graph.npz"),
        GraphError,
        tmp_path,
        f"attribute pos is a tensor of {dtype}, which .npz cannot hold",
    )


# CSV and Parquet ----------------------------------------------------------------------------------------

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
    refused(lambda: load_graphs(edges, nodes=nodes), GraphError, tmp_path, ".csv")


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
    refused(lambda: load_graphs(edges, nodes=nodes), GraphError, tmp_path, "nodes.parquet")


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


# Folders ------------------------------------------------------------------------------------------------

TU = {"A": "1, 2\n2, 1\n", "graph_indicator": "1\n1\n"}
BAD_TU: dict[str, dict[str, str | bytes]] = {
    "binary": {"A": b"\xff\xfe\x00"},
    "fractions": {"A": "1.5, 2\n2, 1\n"},
    "beyond 64 bits": {"A": "1, 99999999999999999999999\n2, 1\n"},
    "least number": {"A": f"{-(2**63)}, 1\n2, 1\n"},
    "zero": {"A": "0, 1\n2, 1\n"},
    "three columns": {"A": "1, 2, 3\n"},
    "ragged": {"A": "1, 2\n1\n"},
    "empty edges": {"A": ""},
    "words": {"graph_indicator": "one\none\n"},
    "giant graph": {"graph_indicator": f"1\n{10**15}\n"},
    "graph of the last number": {"graph_indicator": f"1\n{2**63 - 1}\n"},
    "graph of the least number": {"graph_indicator": f"{-(2**63)}\n1\n"},
    "giant node label": {"node_labels": f"0\n{10**12}\n"},
    "labels from end to end": {"node_labels": f"{-(2**63)}\n{2**63 - 1}\n"},
    "giant edge label": {"edge_labels": f"{10**12}\n0\n"},
    "nan": {"node_attributes": "1\nnan\n"},
    "infinite edge": {"edge_attributes": "1\ninf\n"},
    "wrong truth": {"edge_gt": "0\n7\n"},
    "wrong length": {"edge_gt": "0\n"},
    "labels are words": {"graph_labels": "a\n"},
}


@pytest.mark.parametrize("case", BAD_TU)
def test_tu(tmp_path: Path, case: str) -> None:
    for part, content in {**TU, **BAD_TU[case]}.items():
        (tmp_path / f"T_{part}.txt").write_bytes(content if isinstance(content, bytes) else content.encode())
    refused(lambda: load_graphs(tmp_path), GraphError, tmp_path, "")


def test_many_labels_are_one_hot_all_the_same(tmp_path: Path) -> None:
    for part, content in {**TU, "node_labels": "0\n100000\n"}.items():
        (tmp_path / f"T_{part}.txt").write_text(content)
    tracemalloc.start()
    (graph,) = load_graphs(tmp_path)
    assert tracemalloc.get_traced_memory()[1] < MOST, "not a square of labels"
    tracemalloc.stop()
    assert graph.x.shape == (2, 100001)
    assert graph.x.nonzero().tolist() == [[0, 0], [1, 100000]]


def planetoid(**changes: object) -> dict[str, bytes]:
    parts: dict[str, object] = {
        "x": np.eye(2, 3),
        "allx": np.eye(5, 3),
        "tx": np.ones((2, 3)),
        "y": np.eye(2),
        "ally": np.ones((5, 2)),
        "ty": np.ones((2, 2)),
        "graph": collections.defaultdict(list, {0: [1], 1: [0], 5: [0], 6: []}),
        "test.index": b"5\n6\n",
    }
    parts.update(changes)
    return {part: value if isinstance(value, bytes) else pickle.dumps(value) for part, value in parts.items()}


def sparse(**state: object) -> bytes:
    import scipy.sparse as sp

    matrix = sp.csr_matrix(np.eye(5, 3))
    for name, value in state.items():
        object.__setattr__(matrix, name, value)
    return pickle.dumps(matrix)


class Asks:
    """A pickle that calls something."""

    def __init__(self, call: Any, *arguments: object) -> None:
        self.call, self.arguments = call, arguments

    def __reduce__(self) -> Any:
        return self.call, self.arguments


RECONSTRUCT: Any = np.empty(0).__reduce__()[0]
BAD_PLANETOID: dict[str, Callable[[], dict[str, bytes]]] = {
    "empty": lambda: planetoid(allx=b""),
    "text": lambda: planetoid(allx=b"hello"),
    "half": lambda: planetoid(allx=pickle.dumps(np.eye(5, 3))[:-20]),
    "number": lambda: planetoid(allx=7),
    "dict": lambda: planetoid(allx={"a": 1}),
    "list": lambda: planetoid(allx=[[1, 2], [3, 4]]),
    "vector": lambda: planetoid(allx=np.ones(5)),
    "words": lambda: planetoid(allx=np.array([["a"] * 3] * 5)),
    "void": lambda: planetoid(allx=np.zeros((5, 3), "V8")),
    "structured": lambda: planetoid(allx=np.zeros((5, 3), [("a", "<f8")])),
    "objects": lambda: planetoid(allx=np.array([[None] * 3] * 5)),
    "complex": lambda: planetoid(allx=np.ones((5, 3), complex)),
    "giant sparse": lambda: planetoid(allx=sparse(_shape=(5, 10**12))),
    "sparse beyond 64 bits": lambda: planetoid(allx=sparse(_shape=(5, 10**30))),
    "sparse of another height": lambda: planetoid(allx=sparse(_shape=(10**12, 3))),
    "sparse without shape": lambda: planetoid(allx=sparse(_shape=None)),
    "sparse of fractions": lambda: planetoid(allx=sparse(_shape=(5.0, 3.0))),
    "sparse of negative width": lambda: planetoid(allx=sparse(_shape=(5, -3))),
    "sparse with steps back": lambda: planetoid(allx=sparse(indptr=np.array([0, 3, 1, 3, 3, 3]))),
    "sparse with many in a row": lambda: planetoid(allx=sparse(indptr=np.array([0, 10**12, 0, 0, 0, 0]))),
    "sparse with wrong columns": lambda: planetoid(allx=sparse(indices=np.array([0, 1, 10**9]))),
    "an array of a giant size": lambda: planetoid(allx=Asks(RECONSTRUCT, np.ndarray, (10**11,), b"b")),
    "a giant array made by name": lambda: planetoid(allx=Asks(np.ndarray, (10**6, 10**6))),
    "remembered far away": lambda: planetoid(allx=b"\x80\x02]r\xff\xff\xff\x7f."),
    "deep": lambda: planetoid(graph=b"\x80\x02" + b"]" * 20_000 + b"a" * 19_999 + b"."),
    "graph of lists": lambda: planetoid(graph=[[1], [0]]),
    "graph of words": lambda: planetoid(graph={"a": [1]}),
    "graph of numbers": lambda: planetoid(graph={0: 1}),
    "graph of fractions": lambda: planetoid(graph={0: [1.5]}),
    "node beyond 64 bits": lambda: planetoid(graph={0: [2**70]}),
    "negative node": lambda: planetoid(graph={0: [-1]}),
    "giant test node": lambda: planetoid(**{"test.index": b"5\n999999999999\n"}),
    "test node beyond 64 bits": lambda: planetoid(**{"test.index": b"5\n" + b"9" * 30}),
    "test nodes are words": lambda: planetoid(**{"test.index": b"a\nb\n"}),
    "no test nodes": lambda: planetoid(**{"test.index": b""}),
    "other width": lambda: planetoid(tx=np.ones((2, 4))),
    "other classes": lambda: planetoid(ty=np.ones((2, 4))),
    "no classes": lambda: planetoid(ty=np.ones((2, 0)), ally=np.ones((5, 0))),
}


@pytest.mark.parametrize("case", BAD_PLANETOID)
def test_planetoid(tmp_path: Path, case: str) -> None:
    for part, content in BAD_PLANETOID[case]().items():
        (tmp_path / f"ind.tiny.{part}").write_bytes(content)
    refused(lambda: load_graphs(tmp_path), GraphError, tmp_path, "")


# What is no file ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [".npz", ".pt", ".csv", ".parquet"])
@pytest.mark.parametrize("kind", ["pipe", "broken link", "endless", "sparse", "folder", "NUL", "too long"])
def test_graphs_that_are_no_files(tmp_path: Path, end: str, kind: str) -> None:
    path, nodes = tmp_path / f"graph{end}", None
    if end in (".csv", ".parquet"):
        nodes = tmp_path / "nodes.csv"
        nodes.write_bytes(NODES)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "broken link":
        path.symlink_to(tmp_path / "nothing")
    elif kind == "endless":
        path.symlink_to("/dev/zero")
    elif kind == "sparse":
        with path.open("wb") as file:
            file.truncate(2**40)
    elif kind == "folder":
        path.mkdir()
    else:
        path = tmp_path / (f"a\0b{end}" if kind == "NUL" else "x" * 300 + end)
    refused(lambda: load_graphs(path, nodes=nodes), GraphError, tmp_path, end)


@pytest.mark.parametrize("kind", ["pipe", "endless", "sparse", "folder"])
def test_other_files_that_are_none(tmp_path: Path, kind: str) -> None:
    (tmp_path / "run").mkdir()
    path = tmp_path / "run" / "model.json"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "endless":
        path.symlink_to("/dev/zero")
    elif kind == "sparse":
        with path.open("wb") as file:
            file.truncate(2**40)
    else:
        path.mkdir()
    refused(lambda: load_checkpoint(path.parent), ModelError, tmp_path, "model.json")
    refused(lambda: load_weights(PaperGCN(2, 2), path), ModelError, tmp_path, "model.json")
    refused(lambda: load_published(path), ModelError, tmp_path, "model.json")
    refused(lambda: read_results(path), StoreError, tmp_path, "model.json")
    refused(lambda: _earlier_commands(path), StoreError, tmp_path, "model.json")
    refused(lambda: _read_section(path), StoreError, tmp_path, "model.json")
    if kind != "pipe":  # a list or rules may come through a pipe
        refused(lambda: read_space(path, "", None), InputError, tmp_path, "model.json")
        refused(lambda: parse_nodes(f"@{path}", data()), InputError, tmp_path, "model.json")


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.npz")
    (tmp_path / "device.npz").symlink_to("/dev/null")
    (tmp_path / "folder.npz").mkdir()
    for name in ("pipe.npz", "device.npz", "folder.npz", "a\0b.npz", "x" * 300 + ".npz", "none/graph.npz"):
        refused(lambda name=name: save_graph(data(), tmp_path / name), GraphError, tmp_path, "cannot write")
    long = tmp_path / ("x" * 251 + ".npz")
    save_graph(data(), long)
    assert long.is_file()


# Checkpoints --------------------------------------------------------------------------------------------


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    save_checkpoint(folder, PaperGCN(2, 2, hidden=3), data_info={"name": "tree-cycles", "seed": 0, "sha256": "a"})
    load_checkpoint(folder)
    return folder


LARGE = int("9" * 400)
BAD_INFO: dict[str, dict[str, Any]] = {
    "schema true": {"schema": True},
    "schema 1.0": {"schema": 1.0},
    "schema list": {"schema": [1]},
    "schema large": {"schema": LARGE},
    "architecture list": {"architecture": ["PaperGCN"]},
    "architecture object": {"architecture": {"a": 1}},
    "architecture null": {"architecture": None},
    "arguments null": {"arguments": None},
    "arguments list": {"arguments": [1, 2, 3]},
    "argument true": {"arguments": {"in_channels": True, "num_classes": 2, "hidden": 3}},
    "argument large": {"arguments": {"in_channels": LARGE, "num_classes": 2, "hidden": 3}},
    "argument fraction": {"arguments": {"in_channels": 2.0, "num_classes": 2, "hidden": 3}},
    "argument list": {"arguments": {"in_channels": [2], "num_classes": 2, "hidden": 3}},
    "conv list": {
        "architecture": "GraphClassifier",
        "arguments": {"num_features": 2, "num_classes": 2, "hidden": 3, "layers": 2, "conv": ["gin"], "readout": "max"},
    },
    "conv unknown": {
        "architecture": "GraphClassifier",
        "arguments": {"num_features": 2, "num_classes": 2, "hidden": 3, "layers": 2, "conv": "os", "readout": "max"},
    },
    "checksum number": {"weights_sha256": 1},
    "checksum null": {"weights_sha256": None},
    "checksum other": {"weights_sha256": "abc"},
    "data list": {"data": [1]},
    "data null": {"data": None},
    "data text": {"data": "tree-cycles"},
    "path number": {"data": {"path": 3}},
    "path list": {"data": {"path": ["a"]}},
    "name number": {"data": {"name": 3}},
    "seed text": {"data": {"name": "tree-cycles", "seed": "0"}},
    "seed negative": {"data": {"name": "tree-cycles", "seed": -1}},
    "seed large": {"data": {"name": "tree-cycles", "seed": LARGE}},
    "seed fraction": {"data": {"name": "tree-cycles", "seed": 0.5}},
    "undirected text": {"data": {"path": "a", "undirected": "no"}},
    "node_table number": {"data": {"path": "a", "node_table": 3}},
    "fingerprint number": {"data": {"path": "a", "sha256": 3}},
    "half a letter": {"data": {"path": "\ud800"}},
    "training list": {"training": [1]},
    "training text": {"training": "yes"},
    "test number": {"training": {"test": 3}},
    "test text": {"training": {"test": "abc"}},
    "test of fractions": {"training": {"test": [0.5]}},
    "test negative": {"training": {"test": [-1]}},
    "test true": {"training": {"test": [True]}},
    "test large": {"training": {"test": [LARGE]}},
    "versions list": {"versions": [1]},
}


@pytest.mark.parametrize("case", BAD_INFO)
def test_checkpoint(checkpoint: Path, case: str) -> None:
    path = checkpoint / "model.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **BAD_INFO[case]}))
    refused(lambda: load_checkpoint(checkpoint), ModelError, checkpoint, "model.")


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"data": {}}, "does not say which graph it is of"),
        ({"data": {"path": ""}}, "does not say which graph it is of"),
        ({"data": {"name": "no-such-graph"}}, "cannot read the graph of the checkpoint"),
        ({"data": {"path": "x" * 5000}}, "cannot read the graph of the checkpoint"),
        ({"data": {"path": "a\0b"}}, "cannot read the graph of the checkpoint"),
        ({"data": {"path": "/dev/zero"}}, "cannot read the graph of the checkpoint"),
        ({"data": {"path": "graph.npz", "node_table": "a\0b"}}, "cannot read the graph of the checkpoint"),
        ({"data": {"name": "tree-cycles", "seed": 0, "sha256": "x"}}, "is no longer the graph"),
        ({"training": {"test": [0, 7]}}, "says that graph 7 was left for testing, but .* has graphs 0 to 0"),
    ],
)
def test_what_a_checkpoint_says_of_its_graph(
    checkpoint: Path, about: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from butfor.cli.source import GraphOptions, Source, read_graphs

    monkeypatch.chdir(checkpoint.parent)
    (checkpoint.parent / "graph.npz").write_bytes(arrays())
    path = checkpoint / "model.json"
    info = {**json.loads(path.read_text()), "data": read_graphs("graph.npz", GraphOptions())[1], **about}
    path.write_text(json.dumps(info))
    with pytest.raises((GraphError, ModelError), match=message) as caught:
        Source(checkpoint=checkpoint).read()
    assert "\n" not in str(caught.value)


JSON: dict[str, bytes] = {
    "empty": b"",
    "NUL": b"\x00\x00",
    "latin-1": b'{"a": "\xe4"}',
    "deep": b"[" * 100_000,
    "deep object": b'{"a":' * 100_000,
    "NaN": b'{"schema": NaN}',
    "-Infinity": b"[-Infinity]",
    "too many digits": b'{"schema": ' + b"9" * 10_000 + b"}",
    "number": b"7",
    "null": b"null",
    "list": b"[]",
    "text": b'"abc"',
    "open": b'{"schema": 1,',
    "twice": b"{}{}",
}


@pytest.mark.parametrize("case", JSON)
def test_json(checkpoint: Path, case: str) -> None:
    path = checkpoint / "model.json"
    path.write_bytes(JSON[case])
    part = checkpoint / "table-1.json"
    part.write_bytes(JSON[case])
    refused(lambda: load_checkpoint(checkpoint), ModelError, checkpoint, "model.json")
    refused(lambda: _read_section(part), StoreError, checkpoint, "table-1.json")
    refused(lambda: _earlier_commands(path), StoreError, checkpoint, "model.json")
    refused(lambda: read_space(path, "", None), InputError, checkpoint, "model.json")
    if case != "empty":  # a file of no results
        refused(lambda: read_results(path), StoreError, checkpoint, "model.json")


def safetensors(header: object, content: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + content


WEIGHTS: dict[str, bytes] = {
    "empty": b"",
    "giant header": struct.pack("<Q", 2**60) + b"{}",
    "short": safetensors({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}),
    "giant shape": safetensors({"a": {"dtype": "F32", "shape": [10**12], "data_offsets": [0, 4]}}, bytes(4)),
    "shape beyond 64 bits": safetensors({"a": {"dtype": "F32", "shape": [2**62, 2**62], "data_offsets": [0, 4]}}),
    "unknown dtype": safetensors({"a": {"dtype": "X9", "shape": [1], "data_offsets": [0, 4]}}, bytes(4)),
    "negative shape": safetensors({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}, bytes(4)),
    "list": safetensors([1, 2]),
    "other tensors": safetensors({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}, bytes(4)),
    "pickle": pickle.dumps({"a": 1}),
    "zip": pt({"a": torch.ones(2)}),
}


@pytest.mark.parametrize("case", WEIGHTS)
def test_weights(checkpoint: Path, case: str) -> None:
    path = checkpoint / "model.safetensors"
    path.write_bytes(WEIGHTS[case])
    refused(lambda: load_checkpoint(checkpoint), ModelError, checkpoint, "model.safetensors")


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.float8_e4m3fn, torch.complex64, torch.uint8])
def test_weights_of_odd_kinds(tmp_path: Path, dtype: torch.dtype) -> None:
    model = PaperGCN(2, 2, hidden=3)
    state = {name: tensor.detach().abs().to(dtype) for name, tensor in model.state_dict().items()}
    save_file(state, tmp_path / "w.safetensors")
    refused(lambda: load_weights(model, tmp_path / "w.safetensors"), ModelError, tmp_path, f"is of dtype {dtype}")


PUBLISHED: dict[str, dict[str, Any]] = {
    "nothing": {},
    "no matrices": {"gc1.weight": np.ones(3), "lin.weight": np.ones(3)},
    "empty matrices": {"gc1.weight": np.ones((0, 2)), "lin.weight": np.ones((0, 0))},
    "numbers": {"gc1.weight": np.ones((2, 3), int), "lin.weight": np.ones((2, 9))},
    "long": {"gc1.weight": np.ones((2, 3), np.longdouble), "lin.weight": np.ones((2, 9))},
    "0-d": {"gc1.weight": np.ones((2, 3)), "lin.weight": np.ones((2, 9)), "gc2.weight": np.array(1.0)},
    "odd name": {"gc1.weight": np.ones((2, 3)), "lin.weight": np.ones((2, 9)), "gc1..weight": np.ones(2)},
}


@pytest.mark.parametrize("case", PUBLISHED)
def test_published_weights(tmp_path: Path, case: str) -> None:
    np.savez(tmp_path / "w.npz", **PUBLISHED[case])
    refused(lambda: load_published(tmp_path / "w.npz"), ModelError, tmp_path, "w.npz")


# Results ------------------------------------------------------------------------------------------------

RESULT = Counterfactual(
    target=3,
    status=Status.OPTIMAL,
    before=Prediction(1, "motif", 0.9),
    after=Prediction(0, "base", 0.8),
    edits=(Deletion(3, 4), Change(3, 0, 1.0, 0.0)),
    cost=2.0,
    lower_bound=2.0,
    task="node",
    nodes=9,
    edges=8,
    directed=False,
    goal=Goal(),
    method=MethodRecord("Exact"),
    evaluations=3,
    seed=0,
    space_id="",
    graph_id="a",
    model_id="b",
    alternatives=((Deletion(3, 5),),),
    necessity=((Deletion(3, 4), 0.5),),
    names=((3, "three"),),
    seconds=0.5,
    versions={"python": "3"},
)
NOTHING = {"after": None, "edits": [], "alternatives": [], "necessity": None, "cost": 0.0}
COUNTS = [-1, 1.0, True, "3", None, LARGE, [1]]
NUMBERS = [-1, True, "1", LARGE, [1]]
WORDS = [1, None, ["a"], {}, "\ud800"]
EDITS: list[Any] = [
    ["delete", 1],
    *(["delete", end, 2] for end in (1.5, True, -1, LARGE, "1", None)),
    *(["delete", 1, 2, relation] for relation in (3, ["a", "b"], ["a", "b", 3])),
    ["swap", 1, 2],
    [["add"], 1, 2],
    ["add", 1, 2, 3],
    ["change", 1, 2, 3],
    *(["change", 1, 2, 3, value] for value in ("4", LARGE, True, None)),
]
BAD_FIELDS: dict[str, list[Any]] = {
    "schema": [True, 2.0, "2", None, [2], LARGE, 1, 3],
    "target": [-1, 1.5, True, "3", None, LARGE, [1], [1, 2, 3], [1, -2], [1, True], [1, 2.0], {}],
    "status": ["perhaps", None, 1, ["found"], "OPTIMAL", "impossible", "unknown"],
    "before": [None, 1, [], {}, {"label": 1}, {"label": 1, "name": "a", "probability": 0.5, "colour": 1}],
    "after": [None, 1, {}],
    "edits": [None, 1, {}, "abc", [], [1], *([edit] for edit in EDITS)],
    "cost": [*NUMBERS, None],
    "lower_bound": [*NUMBERS, None],
    "task": ["link", "edge", None, 1, ["node"]],
    "nodes": COUNTS,
    "edges": COUNTS,
    "directed": [0, 1, None, "no"],
    "goal": WORDS,
    "method": WORDS,
    "evaluations": COUNTS,
    "seed": [1.0, True, "0", None, LARGE],
    "space_id": WORDS,
    "graph_id": WORDS,
    "model_id": WORDS,
    "alternatives": [None, 1, [1], [[]], [[["delete", 1.5, 2]]]],
    "necessity": [1, [1], [[1]], [[["delete", 1, 2], 0]], [[["delete", 1, 2], 1.5]], [[["delete", 1, 2], True]]],
    "node_type": [1, ["a"]],
    "note": WORDS,
    "names": [None, 1, [1], [[1]], [["1", "a"]], [[1, 2]], [[-1, "a"]], [[True, "a"]], [[1.0, "a"]]],
    "seconds": [*NUMBERS, None],
    "versions": [None, 1, [], {"a": 1}, {"a": None}],
    "colour": ["red"],
}
PREDICTIONS: list[dict[str, Any]] = [{"label": value} for value in (-1, 1.0, True, "1", None, LARGE)] + [
    {"name": 1},
    {"name": None},
    {"probability": -0.1},
    {"probability": 1.1},
    {"probability": True},
    {"value": "1"},
]


def test_a_result_survives() -> None:
    assert Counterfactual.from_dict(json.loads(to_line(RESULT))) == RESULT
    for status in set(Status) - {Status.OPTIMAL, Status.FOUND}:
        plain = {**RESULT.to_dict(), **NOTHING, "status": status.value}
        assert Counterfactual.from_dict(plain).status is status
    link = replace(RESULT, target=(3, 4), task="link")
    assert Counterfactual.from_dict(json.loads(to_line(link))) == link


@pytest.mark.parametrize("field", BAD_FIELDS)
def test_results(tmp_path: Path, field: str) -> None:
    path = tmp_path / "results.jsonl"
    for value in BAD_FIELDS[field]:
        path.write_text(json.dumps({**RESULT.to_dict(), field: value}) + "\n")
        refused(lambda: read_results(path), StoreError, tmp_path, "line 1 of")


@pytest.mark.parametrize("field", ["before", "after"])
def test_predictions(tmp_path: Path, field: str) -> None:
    path = tmp_path / "results.jsonl"
    for change in PREDICTIONS:
        plain = RESULT.to_dict()
        path.write_text(json.dumps({**plain, field: {**plain[field], **change}}) + "\n")
        refused(lambda: read_results(path), StoreError, tmp_path, "line 1 of")


@pytest.mark.parametrize("field", ["target", "status", "before", "edits", "cost", "task", "graph_id"])
def test_results_without_a_field(tmp_path: Path, field: str) -> None:
    plain = RESULT.to_dict()
    del plain[field]
    (tmp_path / "results.jsonl").write_text(json.dumps(plain) + "\n")
    refused(lambda: read_results(tmp_path / "results.jsonl"), StoreError, tmp_path, f"it has no '{field}'")


@pytest.mark.parametrize(
    "change",
    [
        {"after": None},
        {**NOTHING, "status": "unknown", "cost": 1.0},
        {**NOTHING, "status": "unknown", "alternatives": [[["delete", 1, 2]]]},
        {**NOTHING, "status": "found"},
        {"target": [1, 2]},
        {"task": "link"},
    ],
)
def test_results_that_contradict_themselves(tmp_path: Path, change: dict[str, Any]) -> None:
    (tmp_path / "results.jsonl").write_text(json.dumps({**RESULT.to_dict(), **change}) + "\n")
    refused(lambda: read_results(tmp_path / "results.jsonl"), StoreError, tmp_path, "contradicts itself")


@pytest.mark.parametrize("plain", [None, 3, "delete", [], ["delete"], ["delete", 1.5, 2], ["add", True, 2]])
def test_no_edit(plain: Any) -> None:
    with pytest.raises(ValueError, match="edit"):
        read_edit(plain)


# Rules and lists ----------------------------------------------------------------------------------------

RULES: list[Any] = [
    {"max_edits": LARGE},
    {"max_edits": 1.5},
    {"max_edits": True},
    {"hops": 1},
    {"add": {"hops": LARGE}},
    {"add": {"hops": 1, "cost": LARGE}},
    {"add": {"add": {"hops": 1}}},
    {"add": {"hops": 0}},
    {"add": [[0, LARGE]]},
    {"add": [[0]]},
    {"add": 3},
    {"protected": [[0, 1, 2]]},
    {"protected": {"a": 1}},
    {"protected": [[0, 1.5]]},
    {"protected": [[True, 1]]},
    {"allowed": "all"},
    {"groups": 3},
    {"groups": {"a": 3}},
    {"costs": [[[0, 1], "2"]]},
    {"costs": [[[0, 1], LARGE]]},
    {"costs": [3]},
    {"costs": {"a": None}},
    {"features": {"between": [0, 1], "steps": 10**8}},
    {"features": {"between": [0, LARGE]}},
    {"features": {"between": [0]}},
    {"features": {"between": [-1.7e308, 1.7e308]}},
    {"features": {"values": [LARGE]}},
    {"features": {"values": {"a": 1}}},
    {"features": {"columns": [LARGE]}},
    {"features": {"nodes": [1.5]}},
    {"features": [3]},
    {"features": {"colour": 1}},
    {"relations": [["a", 1, "b"]]},
    {"carries": {"edge_attr": [LARGE]}},
    {"carries": [1]},
    {"delete": 1},
    {"keep_connected": "yes"},
    {"colour": "red"},
]


@pytest.mark.parametrize("rules", RULES, ids=lambda rules: json.dumps(rules)[:40])
def test_rules(tmp_path: Path, rules: Any) -> None:
    path = tmp_path / "rules.json"
    path.write_text(json.dumps(rules))
    refused(lambda: read_space(path, "", data()), InputError, tmp_path, "rules.json")


def test_lists_of_nodes(tmp_path: Path) -> None:
    path = tmp_path / "nodes.txt"
    for content in (b"", b"\xff\xfe", b"\x00", b"9" * 5000, b"0-" + b"9" * 5000, b"99999999999999999999", b"a", b"1-0"):
        path.write_bytes(content)
        refused(lambda: parse_nodes(f"@{path}", data()), InputError, tmp_path, "")
        refused(lambda: parse_graphs(f"@{path}", 3, ()), InputError, tmp_path, "")
        if content != b"1-0":  # no range, but a link
            refused(lambda: parse_links(f"@{path}", data()), InputError, tmp_path, "")
    refused(lambda: parse_nodes("@a\0b", data()), InputError, tmp_path, "a\0b")
    refused(lambda: parse_edges("1-" + "9" * 5000, data()), InputError, tmp_path, "999")


# The reproduction's folder ------------------------------------------------------------------------------

SECTION: dict[str, Any] = {
    "name": "table-1",
    "title": "a",
    "settings": "b",
    "text": ["c"],
    "tables": [
        {
            "name": "table-1-a",
            "title": "t",
            "headings": ["h", "i"],
            "rows": [["a", "b"]],
            "records": [{"a": 1, "b": None}],
            "notes": ["n"],
            "left": 1,
        }
    ],
    "pictures": [{"name": "figure-a", "caption": "c"}],
}
OUTSIDE = ["../../victim", "/victim", "a/b", "..", ".", "", "a\0b", "-a", ".hidden", "a\nb", 3, None, ["a"], "x" * 300]


def changed(kind: str, field: str, value: Any) -> dict[str, Any]:
    if kind == "section":
        return {**SECTION, field: value}
    return {**SECTION, kind: [{**SECTION[kind][0], field: value}]}


SECTIONS = [
    *(changed(kind, "name", name) for kind in ("section", "tables", "pictures") for name in OUTSIDE),
    changed("section", "name", "table-2"),
    *(changed("section", field, 3) for field in ("title", "settings", "text", "tables", "pictures")),
    *(changed("section", field, [3]) for field in ("text", "tables", "pictures")),
    *(changed("tables", field, 3) for field in ("title", "headings", "rows", "records", "notes")),
    *(changed("tables", field, [3]) for field in ("headings", "rows", "records", "notes")),
    changed("tables", "rows", [["a"]]),
    changed("tables", "rows", [["a", 3]]),
    changed("tables", "records", [{"a": []}]),
    *(changed("tables", "left", value) for value in (-1, 3, 1.0, True, None)),
    changed("pictures", "caption", None),
    changed("section", "colour", "red"),
    changed("tables", "colour", "red"),
    {key: value for key, value in SECTION.items() if key != "text"},
]


def test_a_section_survives(tmp_path: Path) -> None:
    (tmp_path / "table-1.json").write_text(json.dumps(SECTION))
    assert _read_section(tmp_path / "table-1.json") == Section.from_dict(SECTION)


@pytest.mark.parametrize("number", range(len(SECTIONS)))
def test_sections(tmp_path: Path, number: int) -> None:
    folder = tmp_path / "out"
    (folder / "parts").mkdir(parents=True)
    (folder / "tables").mkdir()
    for end in ("md", "csv"):
        (tmp_path / f"victim.{end}").write_text("mine")
    (folder / "parts" / "table-1.json").write_text(json.dumps(SECTIONS[number]))
    refused(lambda: _delete_tables(folder, "table-1"), StoreError, tmp_path, "table-1.json is damaged")


def test_results_that_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment, benchmark = Experiment(tmp_path), Benchmark("tree-cycles", 0)
    monkeypatch.setattr(Experiment, "nodes", lambda *_: [3, 4])
    path = experiment.results_file(benchmark, "a")
    path.parent.mkdir(parents=True)
    path.write_bytes(to_line(RESULT))
    refused(lambda: experiment.results(benchmark, "a"), StoreError, tmp_path, "a.jsonl has no result of node 4")
    monkeypatch.setattr(Experiment, "nodes", lambda *_: [3])
    assert experiment.results(benchmark, "a") == [RESULT]


RUNS: list[Any] = [
    {"runs": 3},
    {"runs": {}},
    {"runs": [3]},
    {"runs": [{"command": 1, "seconds": 1, "date": "a"}]},
    {"runs": [{"command": "a", "seconds": "1", "date": "a"}]},
    {"runs": [{"command": "a", "seconds": LARGE, "date": "a"}]},
    {"runs": [{"command": "a", "seconds": -1, "date": "a"}]},
    {"runs": [{"command": "a", "seconds": 1, "date": None}]},
    {},
]


@pytest.mark.parametrize("number", range(len(RUNS)))
def test_settings(tmp_path: Path, number: int) -> None:
    path = tmp_path / "settings.json"
    path.write_text(json.dumps(RUNS[number]))
    refused(lambda: _earlier_commands(path), StoreError, tmp_path, "settings.json is damaged")


# The limit and the guard --------------------------------------------------------------------------------


def test_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BUTFOR_MAX_BYTES", raising=False)
    assert limit() == 4 * 2**30
    check_size(4 * 2**30, "this")
    with pytest.raises(GraphError, match=r"this would take 5 GiB of memory, and the limit is 4 GiB.*BUTFOR_MAX_BYTES="):
        check_size(5 * 2**30, "this")
    with pytest.raises(ModelError, match="more than a million EiB"):
        check_size(10**400, "this", ModelError)
    monkeypatch.setenv("BUTFOR_MAX_BYTES", str(6 * 2**30))
    check_size(5 * 2**30, "this")
    for value in ("4GB", "-1", "0", "1e9", "²", "9" * 5000):
        monkeypatch.setenv("BUTFOR_MAX_BYTES", value)
        with pytest.raises(InputError, match="the environment variable BUTFOR_MAX_BYTES is"):
            check_size(1, "this")


def test_a_range_of_too_many_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="a range of 100000000 steps makes 100000000 edits, which would take"):
        Features(between=(0, 1), steps=10**8)
    assert len(Features(between=(0, 1), steps=1000).plain[2]) == 1000  # type: ignore[arg-type]
    monkeypatch.setenv("BUTFOR_MAX_BYTES", str(2**20))
    from butfor.graph.graph import Graph

    graph = Graph.of(Data(x=torch.ones(50, 50), edge_index=torch.tensor([[0, 1], [1, 0]])))
    near = graph.neighbourhood((0,), 1)
    rule = Features(between=(0, 1), steps=900)
    with pytest.raises(InputError, match="changing 50 features of 1 nodes to 900 values each makes 45000 edits"):
        rule.changes(graph, near, near)


def test_the_guard_lets_nothing_through_but_ctrl_c() -> None:
    class Panic(BaseException):
        """Such as polars raises."""

    for problem in (MemoryError(), RecursionError("a\nb"), KeyError("x"), Panic("gone"), OSError(5, "bad"), OSError()):
        with pytest.raises(StoreError, match="file") as caught, reading("file", StoreError):
            raise problem
        assert "\n" not in str(caught.value)
    for stop in (KeyboardInterrupt, SystemExit):
        with pytest.raises(stop), reading("file", StoreError):
            raise stop
    with pytest.raises(InputError, match="as it is"), reading("file", StoreError):
        raise InputError("as it is")
