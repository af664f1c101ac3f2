"""Every method on the published graphs with the published weights, beside what was published.

    python -m benchmarks.published

Needs the published graphs in ../shared/data/reference. Trees: the known test nodes (174 of 175, 243 of 247).
"""

from __future__ import annotations

import json
import time

import torch

import butfor
from benchmarks.cf_gnn import DATASETS, REFERENCE, load
from butfor.explainer import Explainer
from butfor.paper import PAPER


def main() -> None:
    torch.set_num_threads(1)
    print(f"{'dataset':<12} {'method':<22} {'found':>9} {'size':>16} {'sparsity':>12}  acc. strict  s/node")
    for name in DATASETS:
        model, data = load(name, None)
        published = json.loads((REFERENCE / f"{name}_published_results.json").read_text())["size"]
        data.motif_size = PAPER[name.replace("_", "-")].statistics.motif_edges
        momentum = PAPER[name.replace("_", "-")].momentum
        methods = {
            "CFGNN.published": butfor.CFGNN.published(momentum=momentum),
            "CFGNN (paper)": butfor.CFGNN(momentum=momentum),
            "Greedy": butfor.Greedy(),
            "RandomPerturbation": butfor.RandomPerturbation(),
            "KeepEgo": butfor.KeepEgo(),
            "RemoveEgo": butfor.RemoveEgo(),
            "RemoveSubgraph, S = 5": butfor.RemoveSubgraph(size=5),
            "RemoveSubgraph, truth": butfor.RemoveSubgraph(size="ground-truth"),
        }
        classes = Explainer.of(model, data).scene.classes
        butfor.explain(model, data, [0, 1], butfor.CFGNN(epochs=2))  # loads the kernels
        for label, method in methods.items():
            start = time.perf_counter()
            results = butfor.explain(model, data, [int(node) for node in published], method)
            seconds = (time.perf_counter() - start) / len(results)
            m = butfor.evaluation.evaluate(results, data, classes, motifs=True)
            acc, strict = (f"{x.mean:.2f}" if x.count else "–" for x in (m.accuracy, m.strict_accuracy))
            print(
                f"{name:<12} {label:<22} {f'{m.found}/{m.total}':>9} {m.size!s:>16} {m.sparsity!s:>12} {acc:>5} "
                f"{strict:>6} {seconds:>7.4f}",
                flush=True,
            )
            if label == "CFGNN.published":
                differ = [r.target for r in results if r.size != published[str(r.target)]]
                print(f"{'':12} nodes that differ from the published result: {len(differ)} {differ or ''}")


if __name__ == "__main__":
    main()
