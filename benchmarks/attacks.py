"""Graph attacks as explainers, beside the other methods on the same nodes.

    python -m benchmarks.attacks               # 60 test nodes of each graph, in about two minutes
    python -m benchmarks.attacks --seed 1      # graphs and models made from this seed instead

The graphs and weights are the published ones if they are in ../shared/data/reference, and are made from a seed
otherwise. "where all found" is the mean size over the nodes that all methods solve (and their number); "asked" is the
mean number of evaluations; seconds are per node, on one thread.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch

import butfor
from benchmarks.cf_gnn import REFERENCE, load
from butfor.methods.attack import GRBCD, PRBCD

DATASETS = ("tree_cycles", "ba_shapes")


def compare(name: str, count: int, seed: int | None) -> None:
    """Print one row for each method."""
    model, data = load(name, seed)
    nodes = data.test_mask.nonzero().flatten().tolist()
    nodes = [nodes[i] for i in np.linspace(0, len(nodes) - 1, min(count, len(nodes))).astype(int)]
    methods = {
        "Exact": butfor.Exact(),
        "Greedy": butfor.Greedy(),
        "CFGNN.published": butfor.CFGNN.published(momentum=0.9 if name == "ba_shapes" else 0.0),
        "PRBCD": PRBCD(),
        "GRBCD": GRBCD(),
    }
    session = butfor.prepare(model, data)
    results, seconds = {}, {}
    for label, method in methods.items():
        session.explain(nodes[:1], method)  # loads the kernels
        start = time.perf_counter()
        results[label] = session.explain(nodes, method)
        seconds[label] = (time.perf_counter() - start) / len(nodes)
    solved = [i for i in range(len(nodes)) if all(found[i].found for found in results.values())]
    for label, answers in results.items():
        sizes = [answer.size for answer in answers if answer.found]
        shared = [answers[i].size for i in solved]
        asked = np.mean([answer.evaluations for answer in answers])
        mean, common = (f"{np.mean(some):.3f}" if some else "–" for some in (sizes, shared))
        print(
            f"{name:<12} {label:<16} {f'{len(sizes)}/{len(nodes)}':>7} {mean:>7} {common:>9} ({len(solved)}) "
            f"{asked:>9.0f} {seconds[label]:>8.4f}",
            flush=True,
        )


def main() -> None:
    """Compare the methods on each dataset."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--nodes", type=int, default=60, help="how many nodes of each graph, evenly spaced among its test nodes"
    )
    parser.add_argument("--seed", type=int, default=None, help="make graphs and models from this seed")
    parser.add_argument("--datasets", nargs="+", choices=DATASETS, default=DATASETS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.seed is None and not REFERENCE.is_dir():
        print(f"The published graphs are not in {REFERENCE}; others are made, seed 0.")
    print(f"{'dataset':<12} {'method':<16} {'found':>7} {'size':>7} {'where all found':>14} {'asked':>8} {'s/node':>8}")
    for name in arguments.datasets:
        compare(name, arguments.nodes, arguments.seed)


if __name__ == "__main__":
    main()
