"""`CFGNN` against the dense Algorithm 1, which explains one node at a time: are the answers the same, how much faster?

    python -m benchmarks.cf_gnn                # the dense version explains a sample of the test nodes
    python -m benchmarks.cf_gnn --sample 0     # the dense version explains all test nodes

Both run in this process on one thread, with the same K. `CFGNN` explains all test nodes in one batch, the dense version
an evenly spaced sample of them. Seconds are per node. The graphs and weights are the published ones if they are in
../shared/data/reference, and are made from a seed otherwise.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

import butfor
from butfor.paper.dense_cf_gnn import dense_cf_gnn

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from butfor.models import PaperGCN

REFERENCE = Path(__file__).resolve().parents[2] / "shared" / "data" / "reference"
DATASETS = ("tree_cycles", "tree_grid", "ba_shapes")


def load(name: str, seed: int | None) -> tuple[PaperGCN, Data]:
    """The published model and graph if there is no seed and their files exist, otherwise ones made from the seed."""
    if seed is None and REFERENCE.is_dir():
        data = butfor.datasets.load_graph(REFERENCE / f"{name}_graph.npz")
        return butfor.models.load_published(REFERENCE / f"{name}_gcn_weights.npz"), data
    data = getattr(butfor.datasets, name)(seed=seed or 0)
    return butfor.models.trained_gcn(data, seed=seed or 0)[0], data


def compare(name: str, choices: str, sample: int, epochs: int, seed: int | None) -> None:
    """Print one row for a dataset and a variant of CF-GNN."""
    model, data = load(name, seed)
    model.requires_grad_(False)
    make = butfor.CFGNN.published if choices == "published code" else butfor.CFGNN
    method = make(epochs=epochs, momentum=0.9 if name == "ba_shapes" else 0.0)
    nodes = data.test_mask.nonzero().flatten().tolist()
    session = butfor.prepare(model, data)
    session.explain(nodes[:2], make(epochs=2))  # compiles the kernels, or loads them

    start = time.perf_counter()
    results = {result.target: result for result in session.explain(nodes, method)}
    fast = (time.perf_counter() - start) / len(nodes)

    before = session.classes
    chosen = nodes if not sample else [nodes[i] for i in np.linspace(0, len(nodes) - 1, sample).astype(int)]
    start = time.perf_counter()
    dense = {node: dense_cf_gnn(model, data, node, int(before[node]), method) for node in chosen}
    slow = (time.perf_counter() - start) / len(chosen)

    same = sum((dense[node] or set()) == set(results[node].removed_edges) for node in chosen)
    sizes = [result.size for result in results.values() if result.size is not None]
    mean = np.mean(sizes) if sizes else float("nan")
    print(
        f"{name:<12} {choices:<15} {len(sizes):>4}/{len(nodes):<4} {mean:>6.3f} "
        f"{slow:>9.4f} {fast:>9.4f} {slow / fast:>7.0f}×   {same} of {len(chosen)} the same",
        flush=True,
    )


def main() -> None:
    """Compare both variants on each dataset."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=24, help="how many nodes the dense version explains; 0 for all")
    parser.add_argument("--epochs", type=int, default=500, help="K, the number of iterations")
    parser.add_argument("--seed", type=int, default=None, help="make graphs and models from this seed")
    parser.add_argument("--datasets", nargs="+", choices=DATASETS, default=DATASETS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    source = f"seed {arguments.seed}" if arguments.seed is not None else f"{REFERENCE}"
    print(f"K = {arguments.epochs}, one thread, graphs and weights: {source}")
    print(f"{'dataset':<12} {'choices of the':<15} {'found':<9} {'size':>6} {'dense s':>9} {'CFGNN s':>9} {'ratio':>8}")
    for name in arguments.datasets:
        for choices in ("published code", "paper"):
            compare(name, choices, arguments.sample, arguments.epochs, arguments.seed)


if __name__ == "__main__":
    main()
