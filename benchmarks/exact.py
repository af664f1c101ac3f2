"""`Exact` on the paper's three test sets: what is proved, and what that costs.

    python -m benchmarks.exact                          # the published graphs and weights
    python -m benchmarks.exact --evaluations 2000000    # a budget that proves answers of three edges on BA-Shapes
    python -m benchmarks.exact --seed 0                 # fresh graphs and models

The gap is the size of the answer less its lower bound, over all nodes. The best accuracy is what the best choice
among the smallest sets could reach, on nodes predicted in a motif whose smallest sets are all known.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter

import numpy as np
import torch

import butfor
from benchmarks.cf_gnn import DATASETS, load
from butfor.evaluation import Measure
from butfor.explainer import Explainer


def best_accuracy(results: list[butfor.Counterfactual], classes: np.ndarray) -> Measure:
    best = []
    for result in results:
        if result.necessity is not None and result.before.label > 0:
            ends = [{n for e in s for n in e} - {result.target} for s in (result.removed_edges, *result.alternatives)]
            best.append(max(float(np.mean(classes[sorted(nodes)] > 0)) for nodes in ends))
    return Measure.of(best)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--evaluations", type=int, default=butfor.Budget().evaluations)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--threads", type=int, default=0, help="for one target; 0 for all cores")
    parser.add_argument("--datasets", nargs="+", choices=DATASETS, default=DATASETS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    started = time.perf_counter()
    for name in arguments.datasets:
        model, data = load(name, arguments.seed)
        method = butfor.Exact(all_smallest=name != "ba_shapes", threads=arguments.threads)
        start = time.perf_counter()
        budget = butfor.Budget(evaluations=arguments.evaluations)
        results = butfor.explain(model, data, data.test_mask, method, budget=budget, progress=True)
        seconds = time.perf_counter() - start
        classes = Explainer.of(model, data).scene.classes
        metrics = butfor.evaluation.evaluate(results, data, classes, motifs=True)
        statuses = Counter(str(result.status) for result in results)
        gaps = [result.cost - (result.lower_bound or 0) for result in results if result.found]
        sizes = Counter(result.size for result in results)
        print(
            f"{name}: {metrics.found} of {metrics.total} found, mean size {metrics.size.mean:.3f}, "
            f"{statuses['optimal'] / len(results):.0%} optimal {dict(statuses)}, mean gap {np.mean(gaps):.2f}\n"
            f"  sizes {dict(sorted(sizes.items(), key=lambda item: item[0] or 0))}\n"
            f"  accuracy {metrics.accuracy.mean:.3f} (strict {metrics.strict_accuracy.mean:.3f}), "
            f"best choice among the smallest {best_accuracy(results, classes).mean:.3f}\n"
            f"  {sum(result.evaluations for result in results):,} evaluations, {seconds:.1f} s",
            flush=True,
        )
    print(f"{time.perf_counter() - started:.1f} s in all")


if __name__ == "__main__":
    main()
