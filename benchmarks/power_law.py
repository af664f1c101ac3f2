"""A power-law graph of any size on disk: ``python -m benchmarks.power_law FOLDER --nodes 10000000``.

Undirected, with degrees of mean 10 that fall off with their third power and end at 1,000, whatever the number of nodes;
so the neighbourhoods of two graphs differ only in what a larger one has more of. Stubs are paired at random (the
configuration model); loops are left out, and the few edges that are there twice stay.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from butfor.graph.disk.writer import GraphWriter

FEATURES = 32
LEAST, MOST = 5, 1_000  # of a power law with exponent 3, the mean is twice the least
CHUNK = 2**20


def power_law(folder: Path, nodes: int, seed: int = 0, *, force: bool = False, progress: bool = False) -> None:
    """Write such a graph to a folder; holds four bytes for each end of an edge, and the writer's half a gigabyte."""
    rng = np.random.default_rng(seed)
    with GraphWriter(folder, nodes, memory=2**29, force=force, progress=progress) as writer:
        writer.node_array("x", np.float32, FEATURES)
        writer.node_array("y", np.int64)
        for first in range(0, nodes, CHUNK):
            x = rng.standard_normal((min(CHUNK, nodes - first), FEATURES), dtype=np.float32)
            writer.nodes("x", x)
            writer.nodes("y", (x[:, 0] > 0).astype(np.int64))
        stubs = _stubs(rng, nodes)
        for first in range(0, len(stubs), CHUNK):
            one, other = stubs[first : first + CHUNK].reshape(-1, 2).T
            kept = one != other
            one, other = one[kept], other[kept]
            writer.edges(np.concatenate([one, other]), np.concatenate([other, one]))
        del stubs
        writer.finish(name="power-law", seed=seed)


def _stubs(rng: np.random.Generator, nodes: int) -> np.ndarray:
    """The ends of all edges, in random order: each two that follow each other are an edge."""
    degree = np.rint(LEAST / np.sqrt(1 - rng.random(nodes, dtype=np.float32))).clip(max=MOST).astype(np.int32)
    degree[0] += degree.sum() % 2
    stubs = np.repeat(np.arange(nodes, dtype=np.int32), degree)
    rng.shuffle(stubs)
    return stubs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--force", action="store_true")
    given = parser.parse_args()
    begun = time.perf_counter()
    power_law(given.folder, given.nodes, given.seed, force=given.force, progress=True)
    size = sum(path.stat().st_size for path in given.folder.rglob("*.npy"))
    print(f"{given.nodes} nodes: {size / 1e9:.2f} GB in {time.perf_counter() - begun:.1f} s")


if __name__ == "__main__":
    main()
