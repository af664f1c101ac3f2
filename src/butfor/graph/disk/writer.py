"""A graph written to a folder piece by piece, so that it never has to be in memory."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from tqdm import tqdm

from butfor.errors import GraphError
from butfor.graph.disk.edges import MOST_AT_ONCE, EdgeFiles, check_finite
from butfor.graph.disk.layout import Header
from butfor.graph.disk.opened import attach
from butfor.graph.disk.partial import ArrayFolder, PartialFolder
from butfor.graph.disk.reverses import blocks, symmetry
from butfor.graph.fields import EDGE_FIELDS
from butfor.graph.fingerprint import tensors_fingerprint

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator
    from types import TracebackType

    from numpy.typing import DTypeLike, NDArray
    from typing_extensions import Self

__all__ = ["MEMORY", "GraphWriter"]

# How many bytes edges may take while they are sorted, if nothing else is said.
MEMORY = 2**30


class GraphWriter:
    """Writes a graph of one type of nodes: what nodes have, then edges in any order, then `finish`.

    Everything is checked on the way. The folder appears when all is done; after an error or Ctrl-C there is nothing.

    Args:
        folder: where to write it; or that folder, begun already.
        num_nodes: how many nodes the graph has.
        undirected: add the reverse of each edge that has none.
        memory: how many bytes edges may take while they are sorted.
        force: replace a graph that is there already.
        progress: show progress bars on standard error, where that is a terminal.

    Raises:
        InputError: the folder exists already.
        GraphError: it cannot be made, or there are no nodes.

    Example:
        >>> with GraphWriter("papers", num_nodes=3) as writer:
        ...     writer.nodes("x", np.eye(3, dtype=np.float32))
        ...     writer.edges(np.array([0, 1]), np.array([1, 2]))
        ...     writer.finish(class_names=["cited", "not cited"])
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | PartialFolder,
        num_nodes: int,
        *,
        undirected: bool = False,
        memory: int = MEMORY,
        force: bool = False,
        progress: bool = False,
    ) -> None:
        if num_nodes < 1:
            raise GraphError("this graph is empty: it has no nodes")
        self._num_nodes = num_nodes
        self._memory = memory
        self._progress = progress
        self._rows: dict[str, int] = {}
        self._arrays: dict[str, NDArray[Any]] = {}
        self._folder = folder if isinstance(folder, PartialFolder) else PartialFolder(folder, force=force)
        self._once: ArrayFolder | None = None
        try:
            if undirected:  # edges are sorted twice: to see which reverses are missing, and with these
                self._once = ArrayFolder(self._folder.path / "once")
                self._once.path.mkdir()
            self._edges = EdgeFiles(self._once or self._folder, num_nodes, memory, self._shown)
        except BaseException as problem:
            self._folder.__exit__(type(problem), problem, None)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._folder.__exit__(kind, problem, traceback)

    def node_array(self, name: str, dtype: DTypeLike, *row: int) -> None:
        """Make room for what `nodes` will write, where it comes in parts: one row for each node, of this shape."""
        self._arrays[name] = self._folder.array(
            f"node/{name}", np.dtype(dtype).newbyteorder("<"), (self._num_nodes, *row)
        )
        self._rows[name] = 0

    def nodes(self, name: str, values: NDArray[Any]) -> None:
        """Write what the next nodes have under this name: features `x`, labels `y`, masks, `node_ids`.

        Raises:
            GraphError: a value is not finite, or does not fit.
        """
        if name not in self._arrays:
            self.node_array(name, values.dtype, *values.shape[1:])
        array, first = self._arrays[name], self._rows[name]
        if values.shape[1:] != array.shape[1:] or first + len(values) > len(array):
            raise GraphError(
                f"{name} has rows {first} to {first + len(values) - 1} of shape {values.shape[1:]}, "
                f"but there is room for {array.shape}"
            )
        if name == "x":
            check_finite(name, values, "node", first)
        array[first : first + len(values)] = values
        self._rows[name] = first + len(values)

    def edges(self, source: NDArray[Any], target: NDArray[Any], **carried: NDArray[Any]) -> None:
        """Write some edges, with what they carry: `edge_weight`, `edge_attr` and so on.

        Raises:
            GraphError: a node is not in the graph, or a value not finite.
        """
        self._edges.add(source, target, carried)

    def other(self, name: str, values: NDArray[Any]) -> None:
        """Write an array that belongs to the graph as a whole."""
        self._folder.put(f"graph/{name}", values)

    def finish(self, directed: bool | None = None, **values: Any) -> None:
        """Sort the edges, find out whether the graph is directed, and let the folder appear.

        Args:
            directed: whether the graph is directed; by default this is found out.
            values: names and numbers that belong to the graph, such as ``class_names``.

        Raises:
            GraphError: rows are missing; or the graph is said to be undirected, and some edges have no reverse.
        """
        for name, rows in self._rows.items():
            if rows != self._num_nodes:
                raise GraphError(f"{name} has {rows} rows, but this graph has {self._num_nodes} nodes")
        if "x" not in self._rows:
            raise GraphError("this graph has no node features x: where there are none, use a column of ones")
        edge_index = self._edges.sort()
        if self._once is not None:
            self._edges = self._edges.both_ways(self._folder)
            shutil.rmtree(self._once.path)
            edge_index = self._edges.sort()
        reversible, same = self._symmetry(edge_index)
        if directed is False and not reversible:
            raise GraphError("the graph is said to be undirected, but some edges have no reverse; add these first")
        header = Header(
            num_nodes=self._num_nodes,
            num_edges=self._edges.count,
            directed=not same if directed is None else directed,
            reversible=reversible,
            fingerprint="",
            arrays=self._folder.arrays,
            values={"graph": values},
        )
        self._folder.commit(with_fingerprint(self._folder, header))

    def _symmetry(self, edge_index: NDArray[np.int64]) -> tuple[bool, bool]:
        names = [name for name in EDGE_FIELDS if name in self._edges.fields]
        carried = [self._edges.carried(name) for name in names]
        parts = list(blocks(self._edges.pointers, min(self._edges.at_once, MOST_AT_ONCE)))
        return symmetry(
            edge_index, self._edges.pointers, carried, self._shown(parts, len(parts), "looking for reverses")
        )

    def _shown(self, steps: Iterable[Any], total: int, label: str) -> Iterator[Any]:
        # tqdm's None means: only where the output is a terminal.
        yield from tqdm(steps, desc=label, total=total, leave=False, disable=None if self._progress else True)


def with_fingerprint(folder: ArrayFolder, header: Header) -> Header:
    """The same with the fingerprint of the graph that has been written."""
    return replace(header, fingerprint=tensors_fingerprint(attach(folder.path, header)))
