"""Test accuracy of the paper's GCN on the paper's three datasets, by seed.

    python -m benchmarks.accuracy
    python -m benchmarks.accuracy --seeds 0 1 2 --noise

The same seed makes the graph and the model. With --noise, it also prints the accuracy on Tree-Grid by the distance of a
node to the nearest noise edge: an edge that is neither in the tree, nor in a motif, nor joins a motif to the tree.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch

import butfor
from butfor.graph.graph import Graph

GENERATORS = butfor.datasets.GENERATORS


def by_noise(seed: int) -> list[tuple[int, int, float]]:
    """Hops to the nearest noise edge, nodes at that distance, and the share of them predicted right."""
    data = GENERATORS["tree-grid"](seed)
    model, _ = butfor.models.trained_gcn(data, seed=seed)
    classes = butfor.prepare(model, data).classes
    u, v = data.edge_index.numpy()
    motif = data.node_motif.numpy()
    tree = (np.maximum(u, v) - 1) // 2 == np.minimum(u, v)
    base = motif < 0
    # The one edge that joins a motif to the tree is at the motif's first node.
    first = np.array([np.flatnonzero(motif == number).min() for number in range(motif.max() + 1)])
    tie = (np.isin(u, first) & base[v]) | (np.isin(v, first) & base[u])
    noise = ~(data.edge_motif.numpy() | (tree & base[u] & base[v]) | tie)
    near = Graph.of(data).neighbourhood(np.unique(u[noise]).tolist(), None)
    right = classes == data.y.numpy()
    return [(hops, int((near.distance == hops).sum()), right[near.distance == hops].mean()) for hops in range(5)]


def main() -> None:
    """Print one row for each seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(8)))
    parser.add_argument(
        "--noise", action="store_true", help="also print the accuracy on Tree-Grid by distance to noise edges"
    )
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print("test accuracy (training accuracy)")
    print(f"{'seed':>4}" + "".join(f"{name:>16}" for name in GENERATORS))
    rows = []
    for seed in arguments.seeds:
        results = [butfor.models.trained_gcn(make(seed), seed=seed)[1] for make in GENERATORS.values()]
        rows.append([result.test_accuracy for result in results])
        cells = [f"{result.test_accuracy:.3f} ({result.train_accuracy:.3f})" for result in results]
        print(f"{seed:>4}" + "".join(f"{cell:>16}" for cell in cells), flush=True)
    print("mean" + "".join(f"{mean:>16.3f}" for mean in np.mean(rows, axis=0)))
    if arguments.noise:
        print("\nTree-Grid, all nodes, by hops to the nearest noise edge")
        print(f"{'hops':>4} {'nodes':>6} {'right':>6}")
        for hops, count, share in by_noise(arguments.seeds[0]):
            print(f"{hops:>4} {count:>6} {share:>6.3f}")


if __name__ == "__main__":
    main()
