"""Graphs in .npz files: what is kept, and everything that can be wrong with such a file."""

from __future__ import annotations

import io
import os
import pickle
import struct
import zipfile
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from bad_files import bomb, check_refused, npz, zipped
from butfor.datasets import describe, load_graph, load_graphs, save_graph, tree_cycles
from butfor.errors import GraphError, InputError
from graphs import same_graph, small_graph

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "graph.npz"


ARRAYS = {"edge_index": np.array([[0, 1, 2], [1, 0, 1]]), "x": np.arange(6).reshape(3, 2)}


def test_npz_roundtrip_keeps_everything(path: Path) -> None:
    data = tree_cycles(4)
    data.edge_weight = torch.rand(data.num_edges)
    data.edge_attr = torch.rand(data.num_edges, 2)
    data.node_ids = [f"n{i}" for i in range(data.num_nodes)]
    data.nothing = None
    save_graph(data, path)
    del data.nothing
    assert same_graph(load_graph(path), data)
    assert [entry.name for entry in path.parent.iterdir()] == ["graph.npz"]
    data.node_ids = list(range(0, 2 * data.num_nodes, 2))
    save_graph(data, path)
    assert same_graph(load_graph(str(path)), data)


def test_npz_of_plain_arrays(path: Path) -> None:
    np.savez(
        path,
        **ARRAYS,
        y=np.array([0, 1, 1], dtype=np.uint8),
        test_idx=np.array([2, 0]),
        val_idx=np.array([]),
        train_mask=np.array([0, 1, 0]),
        class_names=np.array(["a", "b"]),
        edge_weight=np.array([1, 2, 3]),
        colour=np.array([5, 6, 7]),
    )
    data = load_graph(path)
    assert data.x.dtype == data.edge_weight.dtype == torch.float32
    assert data.edge_index.dtype == data.y.dtype == torch.int64
    assert data.test_mask.tolist() == [True, False, True]
    assert data.val_mask.tolist() == [False] * 3
    assert data.train_mask.tolist() == [False, True, False]
    assert data.class_names == ["a", "b"]
    assert data.colour.tolist() == [5, 6, 7]
    assert "test_idx" not in data


def test_numbers_of_another_byte_order_and_no_edges(path: Path) -> None:
    path.write_bytes(npz(edge_index=np.zeros((2, 0), int), edge_type=np.zeros(0, int), x=np.ones((3, 2), ">f8")))
    data = load_graph(path)
    assert data.edge_type.stride() == (1,)
    assert data.x.tolist() == [[1, 1]] * 3
    assert describe(data)["edges"] == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": None}, "has no array 'x', only edge_index"),
        ({"x": np.ones((0, 2)), "edge_index": np.zeros((2, 0), int)}, "this graph is empty"),
        ({"x": np.array([[1, np.nan], [1, 1], [1, 1]])}, "x of node 0, column 1 is nan"),
        ({"x": np.array(["a", "b", "c"])}, "has no node features x"),
        ({"x": np.ones(3)}, r"x has shape \(3,\)"),
        ({"x": np.ones((3, 2), complex)}, "array x of .* is of dtype complex128"),
        (
            {"edge_index": np.array([[0, 1], [1, 3]])},
            "edge 1 points to node 3, but this graph has nodes 0 to 2",
        ),
        ({"edge_index": np.ones((3, 2))}, r"edge_index has shape \(3, 2\)"),
        ({"edge_index": np.array([[0.0], [1.0]])}, "edge_index is of dtype torch.float64"),
        ({"test_idx": np.array([0, 3])}, "test_idx of .* names node 3, but this graph has nodes 0 to 2"),
        ({"test_idx": np.array([0.5])}, "test_idx of .* must be a list of node numbers"),
        ({"test_idx": np.array([0]), "test_mask": np.zeros(3, bool)}, "has both test_mask and test_idx"),
        ({"test_mask": np.array([0, 1, 2])}, "test_mask is of dtype torch.int64"),
        ({"y": np.array([0, 1])}, "y has 2 rows, but this graph has 3 nodes"),
        ({"num_edges": np.array([3])}, "an array named 'num_edges', which no graph can carry"),
        ({"x": np.array([[object()]] * 3)}, "holds pickled Python objects"),
    ],
)
def test_bad_npz_arrays(path: Path, change: dict[str, object], message: str) -> None:
    arrays = {key: value for key, value in {**ARRAYS, **change}.items() if value is not None}
    np.savez(path, **arrays)
    with pytest.raises(GraphError, match=message):
        load_graph(path)


def test_npz_with_a_bomb_runs_nothing(path: Path, tmp_path: Path) -> None:
    np.savez(path, **ARRAYS, y=np.array([bomb(tmp_path / "ran")], dtype=object))
    with pytest.raises(GraphError, match="could run code and are not read"):
        load_graph(path)
    path.write_bytes(pickle.dumps(bomb(tmp_path / "ran")))
    with pytest.raises(GraphError, match="pickled"):
        load_graph(path)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_truncated_npz(path: Path, share: float) -> None:
    save_graph(tree_cycles(0), path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(GraphError, match=r"graph\.npz"):
        load_graph(path)


def test_npz_with_flipped_bits(path: Path) -> None:
    save_graph(tree_cycles(0), path)
    content = bytearray(path.read_bytes())
    content[200:260] = bytes(60)
    path.write_bytes(content)
    with pytest.raises(GraphError, match=r"cannot be read as \.npz"):
        load_graph(path)


def test_single_array_is_no_graph(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, np.ones(3))
    with pytest.raises(GraphError, match="a single array"):
        load_graph(path)


def test_save_refuses_and_leaves_the_old_file(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_graph(tree_cycles(0), path)
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"must end in \.npz"):
        save_graph(tree_cycles(0), tmp_path / "graph.csv")
    broken = tree_cycles(1)
    broken.notes = {"a": 1}
    with pytest.raises(GraphError, match="attribute notes is a dict"):
        save_graph(broken, path)
    broken.notes = [1, "a", None]
    with pytest.raises(GraphError, match="attribute notes is a list"):
        save_graph(broken, path)
    broken.x[0] = torch.nan
    with pytest.raises(GraphError, match="x of node 0"):
        save_graph(broken, path)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(GraphError, match=r"cannot write .*graph\.npz: No space left on device"):
        save_graph(tree_cycles(1), path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["graph.npz"]
    with pytest.raises(GraphError, match=r"cannot write .*: No such file or directory"):
        save_graph(tree_cycles(1), tmp_path / "missing" / "graph.npz")


def npy(header: str, content: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY" + version + struct.pack("<H" if version == b"\x01\x00" else "<I", len(text)) + text + content


def header(descr: str, shape: object) -> str:
    return f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}"


def with_member(name: str, content: bytes) -> bytes:
    buffer = io.BytesIO(npz())
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


def growing() -> bytes:
    """16 KiB that stand for 16 MiB, and those for 128 MiB of numbers."""
    return zipped({"x.npy": npy(header("|b1", (2**24,)), bytes(2**24))})


BAD_FILES: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"",
    "text": lambda: b"hello",
    "zeros": lambda: bytes(1000),
    "pickle": lambda: pickle.dumps([1, 2]),
    "npy": lambda: npy(header("<f8", (1,)), bytes(8)),
    "zip of nothing": lambda: zipped({}),
    "only the end of a zip": lambda: b"PK\x05\x06" + bytes(18),
    "half": lambda: npz()[: len(npz()) // 2],
    "no end": lambda: npz()[:-10],
    "flipped": lambda: npz().replace(b"NUMPY", b"NUMPX"),
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
    "object": lambda: npz(y=np.array([{}, {}, {}], dtype=object)),
    "complex": lambda: npz(y=np.ones(3, complex)),
    "structured": lambda: npz(y=np.zeros(3, [("a", "<f8"), ("b", "<i4")])),
    "void": lambda: npz(y=np.zeros(3, "V4")),
    "bytes": lambda: npz(y=np.array([b"a", b"b", b"c"])),
    "time": lambda: npz(y=np.zeros(3, "datetime64[s]")),
    "long double": lambda: npz(y=np.zeros(3, np.longdouble)),
    "no letters": lambda: with_member("z.npy", npy(header("<U1", (1,)), b"\xff\xff\xff\x7f")),
    "half a letter": lambda: with_member("z.npy", npy(header("<U1", (1,)), b"\x00\xd8\x00\x00")),
    "unsigned beyond 63 bits": lambda: npz(edge_index=np.array([[2**64 - 1], [0]], np.uint64)),
    "node beyond 32 bits": lambda: npz(edge_index=np.array([[2**40], [0]])),
    "negative node": lambda: npz(edge_index=np.array([[-1], [0]])),
    "edge_attr 0-d": lambda: npz(edge_attr=np.array(1.0)),
    "edge_weight 0-d": lambda: npz(edge_weight=np.array(1.0)),
    "edge_attr text": lambda: npz(edge_attr=np.array(["a", "b", "c"])),
    "y 0-d": lambda: npz(y=np.array(1)),
    "x 0-d": lambda: npz(x=np.array(1)),
    "edge_index 0-d": lambda: npz(edge_index=np.array(1)),
    "mask 0-d": lambda: npz(test_mask=np.array(True)),
    "index 0-d": lambda: npz(test_idx=np.array(1)),
    "index beyond 63 bits": lambda: npz(test_idx=np.array([2**64 - 1], np.uint64)),
    "overflow of float32": lambda: npz(x=np.full((3, 2), 1e300)),
    "nan weight": lambda: npz(edge_weight=np.array([1, np.nan, 1])),
    "num_nodes": lambda: npz(num_nodes=np.array([1, 2])),
    "other num_nodes": lambda: npz(num_nodes=np.array(7)),
    **{
        f"named {name}": (lambda name=name: npz(**{name: np.ones(3)}))
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


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_npz_files(tmp_path: Path, case: str) -> None:
    path = tmp_path / "graph.npz"
    path.write_bytes(BAD_FILES[case]())
    # Where the graph itself is at fault, its attribute is named.
    about = {"edge": "edge", "index": "idx", "mask": "mask", "nan": "edge_weight", "node": "edge", "negative": "node"}
    known = case.split()[0].split("_")[0]
    with pytest.raises(GraphError) as caught:
        load_graphs(path)
    named = "graph.npz" if "graph.npz" in str(caught.value) else about.get(known, "")
    check_refused(lambda: load_graphs(path), GraphError, tmp_path, named)


def test_a_zip_that_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "graph.npz"
    path.write_bytes(growing())
    assert path.stat().st_size < 10**5
    monkeypatch.setenv("BUTFOR_MAX_BYTES", str(2**25))
    check_refused(
        lambda: load_graphs(path), GraphError, tmp_path, "would take 128 MiB of memory, and the limit is 32 MiB"
    )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float8_e4m3fn, torch.complex64])
def test_kinds_of_numbers_that_npz_cannot_hold(tmp_path: Path, dtype: torch.dtype) -> None:
    check_refused(
        lambda: save_graph(small_graph(pos=torch.ones(3).to(dtype)), tmp_path / "graph.npz"),
        GraphError,
        tmp_path,
        f"attribute pos is a tensor of {dtype}, which .npz cannot hold",
    )


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.npz")
    (tmp_path / "device.npz").symlink_to("/dev/null")
    (tmp_path / "folder.npz").mkdir()
    for name in ("pipe.npz", "device.npz", "folder.npz", "a\0b.npz", "x" * 300 + ".npz", "none/graph.npz"):
        check_refused(
            lambda name=name: save_graph(small_graph(), tmp_path / name), GraphError, tmp_path, "cannot write"
        )
    long = tmp_path / ("x" * 251 + ".npz")
    save_graph(small_graph(), long)
    assert long.is_file()
