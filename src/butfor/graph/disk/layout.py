"""What is in the folder of a graph: `.npy` files, and `graph.json`, which is written last and says what they are.

| file | what it holds |
|---|---|
| `edge_index.npy` | sources above targets, sorted by target and then by source |
| `pointers.npy` | the edges into node v stand at `pointers[v]` to `pointers[v + 1]` |
| `node/x.npy`, … | what nodes have, row by row |
| `edge/edge_weight.npy`, … | what edges carry, in the order of the columns |
| `graph/y.npy`, … | other tensors |

A graph of several types is numbered as `graph.typed` does it, and its columns are in the order of relations first. So
`columns.npy` and `senders.npy` say which edges `pointers.npy` speaks of. Its groups of arrays have numbers: `node/0/…`,
`edge/0/…` (with an `edge_index` of its own), `graph/node/0/…`.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from butfor.boundary.json_values import Misfit, flag, items, record, shown, text, whole
from butfor.boundary.reading import read_json, reading
from butfor.errors import GraphError
from butfor.graph.typed import Types

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["HEADER", "Array", "Header", "is_graph_folder", "plain_types"]

HEADER = "graph.json"
FORMAT, VERSION = "butfor graph", 1

# Whatever else a name says, it must not lead out of the folder.
_PLACE = re.compile(r"edge_index|pointers|columns|senders|(graph|(graph/)?(node|edge)(/\d+)?)/\w+")

# Numbers that torch knows, truth values, and text.
_DTYPES = re.compile(r"[<|](b1|i[1248]|u1|f[248]|U\d+)")


@dataclass(frozen=True)
class Array:
    """The dtype of an array, as NumPy writes it, and its shape."""

    dtype: str
    shape: tuple[int, ...]

    @classmethod
    def of(cls, array: NDArray[Any]) -> Array:
        """That of an array."""
        return cls(array.dtype.str, array.shape)

    def __str__(self) -> str:
        return f"{np.dtype(self.dtype).name} of shape {self.shape}"


@dataclass(frozen=True)
class Header:
    """What `graph.json` says.

    Attributes:
        num_nodes: how many nodes the graph has.
        num_edges: how many edge columns it has.
        directed: whether the graph is directed.
        reversible: whether each edge has its reverse, whatever the two carry.
        fingerprint: that of the graph.
        arrays: all arrays, by their places in the folder, without `.npy`.
        values: names and numbers, by the group of arrays that they belong with: "graph", "node/0", "edge/0".
        types: the types of nodes and edges, if there are several, as `plain_types` writes them.
    """

    num_nodes: int
    num_edges: int
    directed: bool
    reversible: bool
    fingerprint: str
    arrays: dict[str, Array]
    values: dict[str, dict[str, Any]] = field(default_factory=dict)
    types: dict[str, Any] | None = None

    def as_json(self) -> str:
        """The content of `graph.json`."""
        content = {"format": FORMAT, "version": VERSION, **asdict(self)}
        return json.dumps(content, indent=1, allow_nan=False) + "\n"

    @classmethod
    def read(cls, folder: Path) -> Header:
        """What the `graph.json` of a folder says.

        Raises:
            GraphError: there is none, or it is damaged.
        """
        path = folder / HEADER
        with reading(folder):
            missing = "folder" if not folder.is_dir() else "" if path.exists() else HEADER
        if missing == "folder":
            raise GraphError(f"there is no folder {folder}")
        if missing:
            raise GraphError(
                f"{folder} has no {HEADER}: it is no graph, or only a part of one; write it with butfor convert"
            )
        content = read_json(path, GraphError)
        try:
            return _header(record(content, "it"))
        except Misfit as problem:
            raise GraphError(f"{path} does not describe a graph: {problem}; convert the graph again") from problem


def _header(content: dict[str, Any]) -> Header:
    if content.get("format") != FORMAT:
        raise Misfit(f"format is {shown(content.get('format'))}, not {FORMAT!r}")
    if whole(content.get("version"), "version", 1) > VERSION:
        raise Misfit(f"version is {content['version']}, which a later version of butfor wrote")
    arrays = {}
    for place, array in record(content.get("arrays"), "arrays").items():
        if not _PLACE.fullmatch(place):
            raise Misfit(f"{shown(place)} is no place for an array")
        dtype = text(record(array, place).get("dtype"), f"dtype of {place}")
        if not _DTYPES.fullmatch(dtype):
            raise Misfit(f"dtype of {place} is {shown(dtype)}, neither numbers nor text")
        arrays[place] = Array(dtype, tuple(whole(n, f"shape of {place}") for n in items(array.get("shape"), place)))
    values = record(content.get("values"), "values")
    types = content.get("types")
    return Header(
        num_nodes=whole(content.get("num_nodes"), "num_nodes", 1),
        num_edges=whole(content.get("num_edges"), "num_edges"),
        directed=flag(content.get("directed"), "directed"),
        reversible=flag(content.get("reversible"), "reversible"),
        fingerprint=text(content.get("fingerprint"), "fingerprint"),
        arrays=arrays,
        values={group: record(held, f"values of {group}") for group, held in values.items()},
        types=None if types is None else record(types, "types"),
    )


def plain_types(types: Types) -> dict[str, Any]:
    """Types as JSON can hold them."""
    return {name: np.asarray(value).tolist() for name, value in vars(types).items() if name in Types.__annotations__}


def read_types(content: dict[str, Any]) -> Types:
    """Types as they were before `plain_types`.

    Raises:
        Misfit: something is missing or does not fit.
    """
    node_types = tuple(text(name, "a node type") for name in items(content.get("node_types"), "node_types"))
    names = [items(one, "a relation", 3) for one in items(content.get("relations"), "relations")]
    relations: list[tuple[str, str, str]] = [
        (text(source, "a node type"), text(name, "a relation"), text(target, "a node type"))
        for source, name, target in names
    ]
    if unknown := {end for one in relations for end in one[::2]} - set(node_types):
        raise Misfit(f"relations have the node types {shown(sorted(unknown))}, which are not among node_types")
    numbers = {}
    for key, length in (
        ("node_starts", len(node_types) + 1),
        ("edge_starts", len(relations) + 1),
        ("forward", len(relations)),
    ):
        numbers[key] = np.array([whole(n, key) for n in items(content.get(key), key, length)], dtype=np.int64)
    flags = items(content.get("undirected"), "undirected", len(relations))
    undirected = np.array([flag(one, "undirected") for one in flags], dtype=bool)
    if (numbers["forward"] >= len(relations)).any():
        raise Misfit(f"forward is {shown(content['forward'])}, but there are {len(relations)} relations")
    return Types(
        node_types,
        numbers["node_starts"],
        tuple(relations),
        numbers["edge_starts"],
        numbers["forward"],
        undirected,
    )


def is_graph_folder(folder: Path) -> bool:
    """Whether a folder is a graph on disk, whole or damaged."""
    try:
        content = read_json(folder / HEADER, GraphError)
    except GraphError:
        return False
    return isinstance(content, dict) and content.get("format") == FORMAT
