"""The time to extract a neighbourhood depends on the neighbourhood, not on the size of the graph.

    python -m benchmarks.neighbourhood

Random graphs of average degree 4 with 10 thousand and with 10 million edges (columns of `edge_index`). In each, the
extraction of 4-hop neighbourhoods of nodes of degree 2 is timed. Both graphs have the same degree distribution, so the
neighbourhoods are alike, and the times must be, too.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch
from torch_geometric.data import Data

from butfor.graph.graph import Graph


def random_graph(columns: int, seed: int = 0) -> Graph:
    """An undirected graph of average degree 4 with this many edge columns."""
    random = np.random.default_rng(seed)
    edges, nodes = columns // 2, columns // 4
    ends = random.integers(0, nodes, size=(2, edges))
    edge_index = torch.from_numpy(np.concatenate([ends, ends[::-1]], axis=1))
    return Graph.of(Data(x=torch.ones(nodes, 1), edge_index=edge_index), directed=False)


def measure(graph: Graph, hops: int, repeats: int, seed: int = 1) -> tuple[float, float]:
    """Median microseconds of an extraction, and the mean number of edges extracted."""
    random = np.random.default_rng(seed)
    degree = np.bincount(graph.edge_index[1], minlength=graph.num_nodes)
    targets = random.choice(np.flatnonzero(degree == 2), size=repeats)
    graph.neighbourhood(int(targets[0]), hops)  # builds the CSR arrays, once per graph
    times, sizes = [], []
    for target in targets:
        start = time.perf_counter()
        near = graph.neighbourhood(int(target), hops)
        times.append(time.perf_counter() - start)
        sizes.append(near.num_columns)
    return float(np.median(times)) * 1e6, float(np.mean(sizes))


def main() -> None:
    """Time both graphs and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", type=int, default=10_000_000, help="edge columns of the large graph")
    parser.add_argument("--small", type=int, default=10_000, help="edge columns of the small graph")
    parser.add_argument("--repeats", type=int, default=2000)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{'edges':>12} {'edges in 4 hops':>16} {'median µs':>10}")
    medians = []
    for columns in (arguments.small, arguments.large):
        median, size = measure(random_graph(columns), 4, arguments.repeats)
        medians.append(median)
        print(f"{columns:>12,} {size:>16.1f} {median:>10.0f}")
    print(f"ratio {medians[1] / medians[0]:.2f} for a graph {arguments.large // arguments.small}× as large")


if __name__ == "__main__":
    main()
