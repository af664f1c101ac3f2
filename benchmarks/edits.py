"""What deletions, additions and feature flips reach on Cora, alone and together, and at what size.

    python -m benchmarks.edits                 # 100 test nodes, about two minutes on one core

A two-layer GCN, explained by `Exact` with its default budget (or `--evaluations`). Additions join any two nodes within
two hops of the target (the 200 nearest pairs), and flips change a word of the target itself. All rows are about the
same nodes; "where all" is the mean size over the nodes for which every row has an answer.
"""

from __future__ import annotations

import argparse
import time

import torch

import butfor
from benchmarks.exact import CORA, cora_model, statuses
from butfor.evaluation import explanation_size

DELETE = butfor.EditSpace()
ADD = butfor.EditSpace(delete=False, add=butfor.Within(hops=2, most=200))
FLIP = butfor.EditSpace(delete=False, features=butfor.Features())
ALL = butfor.EditSpace(add=butfor.Within(hops=2, most=200), features=butfor.Features())
SPACES = {"deletions": DELETE, "additions": ADD, "feature flips": FLIP, "all together": ALL}


def main() -> None:
    """Print one row for each edit space."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--evaluations", type=int, default=butfor.Budget().evaluations)
    options = parser.parse_args()
    if not CORA.exists():
        raise SystemExit(f"{CORA} is not there")
    torch.set_num_threads(1)
    model, data = cora_model()
    nodes = data.test_mask.nonzero().flatten()[: options.nodes]
    budget = butfor.Budget(options.evaluations)
    found: dict[str, list[butfor.Counterfactual]] = {}
    seconds: dict[str, float] = {}
    for name, space in SPACES.items():
        start = time.perf_counter()
        found[name] = butfor.explain(model, data, nodes, space=space, budget=budget, progress=True)
        seconds[name] = time.perf_counter() - start
    solved = [i for i in range(len(nodes)) if all(results[i].found for results in found.values())]
    print(
        f"Cora, {len(nodes)} test nodes, Exact, {options.evaluations} evaluations a node; "
        f"{len(solved)} nodes are solved in all rows"
    )
    print(f"{'edits':<14} {'found':>6} {'size':>12} {'where all':>10} {'s/node':>7}  status")
    for name, results in found.items():
        share = sum(result.found for result in results) / len(results)
        common = explanation_size([results[i] for i in solved])
        print(
            f"{name:<14} {share:>6.0%} {explanation_size(results)!s:>12} {common.mean:>10.2f} "
            f"{seconds[name] / len(nodes):>7.3f}  {statuses(results)}"
        )


if __name__ == "__main__":
    main()
