"""What targets will cost, and shards of about the same cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from butfor.graph.csr import Flow
    from butfor.graph.graph import Graph

__all__ = ["cut", "edges_around"]

# What a target costs besides its edges, in edges.
FIXED = 30.0
# So many shards for each worker: enough that none waits long for another at the end. And the most targets in a shard:
# what was found in it is lost when its worker dies.
PER_WORKER, MOST = 16, 256
# The same where targets are searched together, and the more there are the better.
PER_WORKER_TOGETHER, MOST_TOGETHER = 1, 4096


def edges_around(graph: Graph, targets: Sequence[tuple[int, ...]], hops: int | None, flow: Flow) -> NDArray[np.float64]:
    """About how many edges are within so many hops of each target, from the degrees around it.

    Two hops are counted (an edge that can be walked to in two ways counts twice). Further ones are taken to grow as the
    second did. No more than two hops are read of the graph, which may be on a disk.
    """
    most = float(graph.num_edges)
    if hops is None or not targets or not targets[0]:
        return np.full(len(targets), FIXED + most)
    nodes = np.array(targets, dtype=np.int64).reshape(-1)
    own = graph.degrees(nodes, flow).astype(np.float64)
    near = np.zeros(len(nodes))
    _, senders, _ = graph.into(nodes, flow)
    np.add.at(near, np.repeat(np.arange(len(nodes)), own.astype(np.int64)), graph.degrees(senders, flow))
    growth = near / np.maximum(own, 1)
    edges, ring = own, near
    for _ in range(hops - 1):
        edges, ring = np.minimum(edges + ring, most), np.minimum(ring * growth, most)
    around: NDArray[np.float64] = FIXED + edges.reshape(len(targets), -1).sum(axis=1)
    return around


def cut(costs: NDArray[np.float64], places: NDArray[np.int64], workers: int, together: bool = False) -> list[list[int]]:
    """The positions of targets in shards of about the same cost; ``places`` are their nodes.

    Neighbours stay together, so that a worker reads one part of the graph. A target that costs more than a shard has
    one of its own, and its turn comes early, so that it does not hold up the end; only the first shard is an ordinary
    one, which soon shows whether anything works at all. Shards are large where targets are searched ``together``.
    """
    if not len(costs):
        return []
    per_worker, most = (PER_WORKER_TOGETHER, MOST_TOGETHER) if together else (PER_WORKER, MOST)
    limit = costs.sum() / (workers * per_worker)
    heavy = np.flatnonzero(costs > limit)
    heavy = heavy[np.argsort(-costs[heavy], kind="stable")]
    rest = np.flatnonzero(costs <= limit)
    rest = rest[np.argsort(places[rest], kind="stable")]
    number = np.floor((np.cumsum(costs[rest]) - costs[rest] / 2) / limit)
    pieces = np.split(rest, np.flatnonzero(np.diff(number)) + 1) if len(rest) else []
    shards = [piece[start : start + most].tolist() for piece in pieces for start in range(0, len(piece), most)]
    return [*shards[:1], *([one] for one in heavy.tolist()), *shards[1:]]
