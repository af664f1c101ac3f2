"""Whole graphs explained by deletions: BA-2Motifs, and the mutagens of Mutagenicity by their bonds.

    python -m benchmarks.molecules                 # about three minutes on one core

The models are trained by `trained_graph_classifier` with seed 0. The graphs are from the test split, classified
correctly, and have ground truth (for Mutagenicity: mutagens with a nitro or amino group). Accuracy is the share of the
deleted edges that are ground truth; *strict* is the share of explanations that delete only such edges; *touch* is the
share in which every deleted edge has at least one end in the ground truth. The models never saw the ground truth.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

import numpy as np
import torch

import butfor
from benchmarks.cf_gnn import REFERENCE
from benchmarks.exact import statuses
from butfor.evaluation import Measure, explanation_size, fidelity, motif_edges, sparsity

if TYPE_CHECKING:
    from torch_geometric.data import Data

MUTAGENICITY = REFERENCE.parent / "tu" / "Mutagenicity"
METHODS = {
    "Exact": butfor.Exact(),
    "Greedy": butfor.Greedy(),
    "CFGNN": butfor.CFGNN(epochs=200, optimizer="adam"),
    "RandomPerturbation": butfor.RandomPerturbation(),
    "GNNExplainer, top 2": butfor.RemoveSubgraph(size=2),
}


def report(name: str, graphs: list[Data], conv: str, readout: str, count: int) -> None:
    """Train a model, explain its graphs by every method, and print one row for each."""
    model, training = butfor.models.trained_graph_classifier(graphs, seed=0, conv=conv, readout=readout)
    print(
        f"\n{name}: {conv}, {readout} readout, "
        f"test accuracy {training.test_accuracy:.3f} on {len(training.test)} graphs"
    )
    chosen = []
    for number in training.test:
        data = graphs[number]
        with torch.no_grad():
            right = int(model(data.x, data.edge_index).argmax()) == int(data.y)
        if right and data.edge_motif.any() and (name != "Mutagenicity" or int(data.y) == 0):
            chosen.append(data)
    chosen = chosen[:count]
    print(f"{len(chosen)} graphs, {np.mean([data.num_edges / 2 for data in chosen]):.1f} edges each on average")
    heads = f"{'fidelity':>8} {'size':>12} {'sparsity':>12} {'accuracy':>8} {'strict':>6} {'touch':>6} {'s':>6}"
    print(f"{'method':<20} {heads}  status")
    for label, method in METHODS.items():
        start = time.perf_counter()
        results = butfor.explain(model, chosen, method=method, progress=True)
        seconds = (time.perf_counter() - start) / len(chosen)
        share, strict, touch = [], [], []
        for result, data in zip(results, chosen, strict=True):
            if result.found:
                truth = motif_edges(data)
                atoms = {node for edge in truth for node in edge}
                hits = [tuple(sorted(edge)) in truth for edge in result.removed_edges]
                share.append(float(np.mean(hits)))
                strict.append(float(all(hits)))
                touch.append(float(all(set(edge) & atoms for edge in result.removed_edges)))
        print(
            f"{label:<20} {fidelity(results):>8.2f} {explanation_size(results)!s:>12} {sparsity(results)!s:>12} "
            f"{Measure.of(share).mean:>8.2f} {Measure.of(strict).mean:>6.2f} {Measure.of(touch).mean:>6.2f} "
            f"{seconds:>6.2f}  {statuses(results)}"
        )


def main() -> None:
    """Report on both datasets; on Mutagenicity only if its files are there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", type=int, default=60, help="how many graphs of each dataset")
    options = parser.parse_args()
    torch.set_num_threads(1)
    report("BA-2Motifs", butfor.datasets.ba_2motifs(seed=0), "gin", "max", options.graphs)
    if MUTAGENICITY.exists():
        report("Mutagenicity", butfor.datasets.load_mutagenicity(MUTAGENICITY), "gin", "max", options.graphs)


if __name__ == "__main__":
    main()
