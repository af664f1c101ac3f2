"""Edges sorted by receiver outside memory: noted in files as they come, and then put in order bucket by bucket."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from butfor.errors import GraphError
from butfor.graph.disk.reverses import blocks, first_reverse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from butfor.graph.disk.partial import ArrayFolder

__all__ = ["EdgeFiles"]

Chunk = dict[str, Any]

# Passes over all edges in which every position is looked at once need no more than this many at a time.
MOST_AT_ONCE = 2**20


class EdgeFiles:
    """Edges on their way into a folder.

    Args:
        folder: the folder.
        num_nodes: how many nodes there are.
        memory: how many bytes may be used for edges.
        shown: shows progress: called with steps, their number and what is done.
    """

    def __init__(self, folder: ArrayFolder, num_nodes: int, memory: int, shown: Callable[..., Iterable[Any]]) -> None:
        self._folder = folder
        self._nodes = num_nodes
        self._memory = memory
        self._shown = shown
        self._notes = _Notes(folder.path / "notes")
        self._made: Chunk = {}
        self.count = 0
        self.pointers: NDArray[np.int64] = folder.array("pointers", np.int64, (num_nodes + 1,))

    @property
    def fields(self) -> Mapping[str, tuple[np.dtype[Any], tuple[int, ...]]]:
        """What edges carry: dtype, and the shape of one row."""
        return {name: kind for name, kind in self._notes.kinds.items() if name not in ("source", "target")}

    @property
    def at_once(self) -> int:
        """How many edges fit into the memory while they are sorted."""
        carried = sum(kind.itemsize * int(np.prod(tail)) for kind, tail in self.fields.values())
        return max(self._memory // (80 + 3 * carried), 1)

    def carried(self, name: str) -> NDArray[Any]:
        """What sorted edges carry under this name."""
        values: NDArray[Any] = self._made[name]
        return values

    def add(self, source: NDArray[Any], target: NDArray[Any], fields: Mapping[str, NDArray[Any]]) -> None:
        """Note some edges, in any order.

        Raises:
            GraphError: one of them leads to or from a node that is not there, or what they carry does not fit.
        """
        chunk: Chunk = {"source": source.astype(np.int64, copy=False), "target": target.astype(np.int64, copy=False)}
        for name, end in chunk.items():
            outside = (end < 0) | (end >= self._nodes)
            if outside.any():
                edge = int(outside.argmax())
                raise GraphError(
                    f"edge {self.count + edge} {'starts at' if name == 'source' else 'points to'} node {end[edge]}, "
                    f"but this graph has nodes 0 to {self._nodes - 1}"
                )
        for name, values in fields.items():
            if len(values) != len(source):
                raise GraphError(f"{name} has {len(values)} rows, but there are {len(source)} edges")
            check_finite(name, values, "edge", self.count)
        self._notes.write({**chunk, **fields})
        np.add.at(self.pointers, chunk["target"] + 1, 1)
        self.count += len(source)

    def sort(self) -> NDArray[np.int64]:
        """Put all edges and what they carry into the folder, in order; returns the edge index."""
        _accumulate(self.pointers)
        pointers, fields = self.pointers, self.fields
        edge_index = self._folder.array("edge_index", np.int64, (2, self.count))
        made = self._made
        made["source"], made["target"] = edge_index
        for name, (dtype, tail) in fields.items():
            made[name] = self._folder.array(f"edge/{name}", dtype, (self.count, *tail))
        parts = list(blocks(pointers, self.at_once))
        self._distribute(made, np.array([first for first, _ in parts], dtype=np.int64))
        for first, last in self._shown(parts, len(parts), "sorting edges"):
            self._sort_bucket(made, first, last)
        return edge_index

    def _distribute(self, made: Chunk, starts: NDArray[np.int64]) -> None:
        """Copy the noted edges into their buckets: stretches of the arrays for consecutive receivers."""
        cursor = self.pointers[starts].tolist()
        at_once = min(self.at_once, MOST_AT_ONCE)
        steps = -(-self.count // at_once)
        for chunk in self._shown(self._notes.read(at_once), steps, "distributing edges"):
            bucket = np.searchsorted(starts, chunk["target"], side="right") - 1
            order = np.argsort(bucket.astype(np.uint16 if len(starts) < 2**16 else np.int64), kind="stable")
            counts = np.bincount(bucket, minlength=len(starts))
            for name, values in chunk.items():
                ordered, begin = values[order], 0
                for number in np.flatnonzero(counts).tolist():
                    count = int(counts[number])
                    made[name][cursor[number] : cursor[number] + count] = ordered[begin : begin + count]
                    begin += count
            cursor = [place + count for place, count in zip(cursor, counts.tolist(), strict=True)]
        self._notes.remove()

    def _sort_bucket(self, made: Chunk, first: int, last: int) -> None:
        where = slice(int(self.pointers[first]), int(self.pointers[last]))
        source, target = made["source"], made["target"]
        # Both ends as one number, which does not overflow below three thousand million nodes.
        key = (target[where] - first) * self._nodes + source[where]
        if len(made) > 2:
            order = np.argsort(key, kind="stable")
            key = key[order]
            for name in made.keys() - {"source", "target"}:
                made[name][where] = made[name][where][order]
        else:
            key.sort()
        target[where], source[where] = key // self._nodes + first, key % self._nodes

    def both_ways(self, folder: ArrayFolder) -> EdgeFiles:
        """The sorted edges on their way into another folder, with the reverse of each that has none behind them.

        A reverse that is added carries the same as its edge.
        """
        others = EdgeFiles(folder, self._nodes, self._memory, self._shown)
        edge_index = self._made["source"], self._made["target"]
        parts = list(blocks(self.pointers, min(self.at_once, MOST_AT_ONCE)))
        for begin, stop in self._shown(parts, len(parts), "adding directions"):
            where = slice(int(self.pointers[begin]), int(self.pointers[stop]))
            source, target, *carried = (values[where] for values in self._made.values())
            others.add(source, target, dict(zip(self.fields, carried, strict=True)))
            _, found = first_reverse(edge_index, self.pointers, where.start, where.stop)
            fields = {name: values[~found] for name, values in zip(self.fields, carried, strict=True)}
            others.add(target[~found], source[~found], fields)
        return others


class _Notes:
    """Chunks of arrays, one behind the other, in a file for each array."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self.kinds: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {}

    def write(self, chunk: Chunk) -> None:
        if not self.kinds:
            self.kinds = {name: (values.dtype.newbyteorder("<"), values.shape[1:]) for name, values in chunk.items()}
        for name, (dtype, tail) in self.kinds.items():
            if name not in chunk or chunk[name].shape[1:] != tail:
                raise GraphError(f"{name} of the edges must have rows of shape {tail} in every part")
            with (self._folder / name).open("ab") as file:
                np.ascontiguousarray(chunk[name], dtype=dtype).tofile(file)

    def read(self, rows: int) -> Iterator[Chunk]:
        files = {name: (self._folder / name).open("rb") for name in self.kinds}
        try:
            while True:
                chunk = {}
                for name, (dtype, tail) in self.kinds.items():
                    width = int(np.prod(tail))
                    chunk[name] = np.fromfile(files[name], dtype, rows * width).reshape(-1, *tail)
                if not chunk or not len(chunk["source"]):
                    return
                yield chunk
        finally:
            for file in files.values():
                file.close()

    def remove(self) -> None:
        for name in self.kinds:
            (self._folder / name).unlink()
        self._folder.rmdir()


def check_finite(key: str, values: NDArray[Any], what: str, first: int) -> None:
    """Refuse what is no number in some rows of an array, of which the first has this number.

    Raises:
        GraphError: naming the first such place.
    """
    if values.dtype.kind != "f" or np.isfinite(values.sum(dtype=np.float64)):
        return
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        place = tuple(bad[0].tolist())
        where = f"{what} {first + place[0]}" + (f", column {place[1]}" if len(place) > 1 else "")
        raise GraphError(f"{key} of {where} is {values[place]}: {len(bad)} of its values are not finite")


def _accumulate(counts: NDArray[np.int64]) -> None:
    """Running sums in place, in parts: the array may be larger than memory."""
    total = 0
    for first in range(0, len(counts), MOST_AT_ONCE):
        part = counts[first : first + MOST_AT_ONCE]
        part[:] = np.cumsum(part) + total
        total = int(part[-1])
