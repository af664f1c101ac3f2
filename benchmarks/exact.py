"""`Exact`: what it proves, what that costs, and how much faster it is than the dense reference.

    python -m benchmarks.exact                     # everything, in about five minutes
    python -m benchmarks.exact --parts trees       # or any of trees, ba_shapes, speed, fresh, cora

- **trees**, **ba_shapes**: what is proved on the published graphs and weights, if they are in ../shared/data/reference.
  The gap is the cost of an answer minus its lower bound, on average over the nodes with an answer. Accuracy is defined
  as in the paper, for nodes predicted in a motif: over all of them, and over those that the published code solves. The
  best accuracy is that of the best choice among the smallest sets, for nodes of which all smallest sets are known.
- **speed**: `Exact` with its default settings against the dense Algorithm 1 (K = 500), in one process and in turns. The
  dense version explains only an evenly spaced sample. torch has one thread; `Exact` may use all cores for one hard
  target.
- **fresh**: what is proved on graphs of the same three kinds and models that are made from a seed.
- **cora**: what is proved for a two-layer GCN on Cora, for its first 200 test nodes, with 0.6 seconds for each.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import torch
from torch_geometric.nn import GCN

import butfor
from benchmarks.cf_gnn import DATASETS, REFERENCE, load
from butfor.evaluation import Measure, evaluate
from butfor.paper.dense_cf_gnn import dense_cf_gnn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch_geometric.data import Data

Model = TypeVar("Model", bound=torch.nn.Module)

CORA = REFERENCE.parent / "planetoid" / "Cora"
ROUNDS = 6
PARTS = ("trees", "ba_shapes", "speed", "fresh", "cora")


def best_accuracy(results: Sequence[butfor.Counterfactual], classes: np.ndarray) -> Measure:
    """The accuracy of the best choice among the smallest sets, for nodes of which all smallest sets are known."""
    best = []
    for result in results:
        if result.necessity is not None and result.before.label > 0:
            sets = (result.edits, *result.alternatives)
            ends = [{node for e in edits for node in (e.source, e.target)} - {result.target} for edits in sets]
            best.append(max(float(np.mean(classes[sorted(nodes)] > 0)) for nodes in ends))
    return Measure.of(best)


def statuses(results: Sequence[butfor.Counterfactual]) -> str:
    """How many results have each status, in words."""
    counts = Counter(result.status.value for result in results)
    return ", ".join(f"{counts[status]} {status}" for status in ("optimal", "found", "impossible", "unknown"))


def proofs(name: str, seed: int | None, evaluations: int | None, threads: int) -> list[butfor.Counterfactual]:
    """Explain all test nodes and print what was proved."""
    model, data = load(name, seed)
    start = time.perf_counter()
    method, budget = butfor.Exact(all_smallest=True, threads=threads), butfor.Budget(evaluations)
    session = butfor.prepare(model, data)
    results = session.explain(data.test_mask, method, budget=budget, progress=True)
    seconds = time.perf_counter() - start
    classes = session.classes
    paper = butfor.CFGNN.published(momentum=0.9 if name == "ba_shapes" else 0.0)
    solved = {result.target for result in session.explain(data.test_mask, paper) if result.found}
    on_all = evaluate(results, data, classes, motifs=True)
    on_solved = evaluate([result for result in results if result.target in solved], data, classes, motifs=True)
    gaps = [result.cost - (result.lower_bound or 0) for result in results if result.found]
    sizes = Counter(result.size for result in results if result.size)
    proved = sum(result.status.value == "optimal" for result in results)
    print(
        f"{name}: fidelity {on_all.fidelity:.2f}, mean size {on_all.size.mean:.3f}, {proved / len(results):.1%} proved "
        f"smallest ({statuses(results)}), mean gap {np.mean(gaps):.2f}\n"
        f"  sizes {dict(sorted(sizes.items()))}\n"
        f"  accuracy {on_all.accuracy.mean:.3f}; on the {len(solved)} nodes that the published code solves "
        f"{on_solved.accuracy.mean:.3f}; best choice among the smallest {best_accuracy(results, classes).mean:.3f}\n"
        f"  {sum(result.evaluations for result in results):,} evaluations, {seconds:.1f} s",
        flush=True,
    )
    return results


def speed(name: str, sample: int) -> None:
    """Print the seconds per node of `Exact` and of the dense version."""
    model, data = load(name, None)
    model.requires_grad_(False)
    nodes = data.test_mask.nonzero().flatten().tolist()
    before = butfor.prepare(model, data).classes
    method = butfor.CFGNN.published(momentum=0.9 if name == "ba_shapes" else 0.0)
    results = butfor.explain(model, data, nodes)  # loads the kernels
    chosen = [nodes[i] for i in np.linspace(0, len(nodes) - 1, sample).astype(int)]
    fast = slow = 0.0
    # In turns, because the speed of a machine changes over time.
    for turn in range(ROUNDS):
        start = time.perf_counter()
        butfor.explain(model, data, nodes)
        fast += (time.perf_counter() - start) / len(nodes) / ROUNDS
        start = time.perf_counter()
        for node in chosen[turn::ROUNDS]:
            dense_cf_gnn(model, data, node, int(before[node]), method)
        slow += (time.perf_counter() - start) / len(chosen)
    print(
        f"{name}: {slow:.4f} s a node, dense; {fast:.5f} s, Exact ({statuses(results)}): ratio {slow / fast:.0f}",
        flush=True,
    )


def cora_model() -> tuple[GCN, Data]:
    """The usual two-layer GCN on Cora."""
    data = butfor.datasets.load_graph(CORA)
    torch.manual_seed(0)
    model = GCN(data.num_features, 16, num_layers=2, out_channels=7, dropout=0.5)
    return fit(model, data, 200), data


def fit(model: Model, data: Data, epochs: int) -> Model:
    """Train a node classifier the usual way, and leave it in evaluation mode."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for _ in range(epochs):
        optimizer.zero_grad()
        logits = model(data.x, data.edge_index)[data.train_mask]
        torch.nn.functional.cross_entropy(logits, data.y[data.train_mask]).backward()
        optimizer.step()
    return model.eval()


def cora(count: int, seconds: float) -> list[butfor.Counterfactual]:
    """Explain the first ``count`` test nodes of Cora, with this many seconds for each, and print what was proved."""
    model, data = cora_model()
    right = (model(data.x, data.edge_index).argmax(1) == data.y)[data.test_mask].float().mean()
    nodes = data.test_mask.nonzero().flatten()[:count]
    start = time.perf_counter()
    results = butfor.explain(model, data, nodes, budget=butfor.Budget(None, seconds), progress=True)
    total = time.perf_counter() - start
    print(f"Cora, two-layer GCN, test accuracy {right:.3f}, {count} nodes: {statuses(results)}; {total:.0f} s")
    for status in ("optimal", "found", "unknown"):
        these = [result for result in results if result.status.value == status]
        quartiles = {
            what: np.percentile([getattr(result, what) for result in these], [25, 50, 75]).astype(int).tolist()
            for what in (("size",) if status == "optimal" else ("lower_bound",))
            if these
        }
        if status == "found" and these:
            quartiles["size"] = np.percentile([result.size for result in these], [25, 50, 75]).astype(int).tolist()
        print(f"  {status}: {len(these)}, quartiles {quartiles}")
    return results


def draw(drawn: dict[str, list[butfor.Counterfactual]], path: Path) -> None:
    """Draw a column for each node: the sizes that are ruled out, the size that was found, and the gap between."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(drawn), figsize=(5.2 * len(drawn), 3.6), layout="constrained", squeeze=False)
    for axis, (title, results) in zip(axes[0], drawn.items(), strict=True):
        top = 1.4 * max(max(r.size or 0, r.lower_bound or 0) for r in results)
        ordered = sorted(results, key=lambda r: (r.size or top, r.lower_bound if r.lower_bound is not None else top))
        ruled_out = np.array([top if r.lower_bound is None else max(r.lower_bound - 0.5, 0.5) for r in ordered])
        places = np.arange(len(ordered))
        axis.bar(places, ruled_out, width=1.0, color="#c9d6e3", label="ruled out: no set of this size will do")
        for status, colour, label in (
            ("optimal", "#1b7837", "answer, proved smallest"),
            ("found", "#d95f02", "answer, a smaller one may exist"),
        ):
            mine = [i for i, r in enumerate(ordered) if r.status.value == status]
            if mine:
                axis.scatter(mine, [ordered[i].size for i in mine], s=9, color=colour, label=label, zorder=3)
        axis.set_yscale("log")
        axis.set_ylim(0.5, top)
        ticks = [2**power for power in range(12) if 2**power < top]
        axis.set_yticks(ticks, [str(tick) for tick in ticks])
        axis.set_yticks([], minor=True)
        axis.set_xlim(-0.5, len(ordered) - 0.5)
        axis.set(title=title, xlabel="nodes, by the size of their answer", ylabel="edges removed")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument(
        "--evaluations", type=int, default=300_000, help="budget for each node (trees, ba_shapes, fresh)"
    )
    parser.add_argument("--threads", type=int, default=0, help="threads for one target; 0 for all cores")
    parser.add_argument("--seed", type=int, default=0, help="seed of the fresh graphs and models")
    parser.add_argument("--picture", type=Path, help="draw BA-Shapes and Cora into this file, if both parts are run")
    parser.add_argument("--sample", type=int, default=24, help="how many nodes the dense version explains")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    budget = arguments.evaluations, arguments.threads
    started = time.perf_counter()
    if "trees" in arguments.parts:
        start = time.perf_counter()
        for name in DATASETS[:2]:
            proofs(name, None, *budget)
        print(f"  both trees, with the kernels' start and the published method: {time.perf_counter() - start:.1f} s")
    drawn = {}
    if "ba_shapes" in arguments.parts:
        drawn["BA-Shapes, the paper's GCN"] = proofs("ba_shapes", None, *budget)
    if "speed" in arguments.parts:
        print("\nDefault settings against the dense Algorithm 1")
        for name in DATASETS:
            speed(name, arguments.sample)
    if "fresh" in arguments.parts:
        print(f"\nFresh graphs and models, seed {arguments.seed}")
        for name in DATASETS:
            proofs(name, arguments.seed, *budget)
    if "cora" in arguments.parts:
        print()
        drawn["Cora, a two-layer GCN"] = cora(200, 0.6)
    if arguments.picture and len(drawn) == 2:
        draw(drawn, arguments.picture)
    print(f"{time.perf_counter() - started:.0f} s in all")


if __name__ == "__main__":
    main()
