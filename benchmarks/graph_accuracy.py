"""Accuracy of the graph classifier on BA-2Motifs and Mutagenicity: mean and standard deviation over seeds.

    python -m benchmarks.graph_accuracy
    python -m benchmarks.graph_accuracy --seeds 0 1 2 3 4 --readout mean
    python -m benchmarks.graph_accuracy --mutagenicity path/to/Mutagenicity

The seed determines the split and the model, and for BA-2Motifs also the graphs. Seconds are processor time for training
one model. Mutagenicity is left out if its files are missing.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch

import butfor

MUTAGENICITY = Path(__file__).resolve().parents[2] / "shared" / "data" / "tu" / "Mutagenicity"


def main() -> None:
    """Print one row for each dataset and kind of layer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--conv", nargs="+", default=["gin", "gcn"], choices=["gin", "gcn"])
    parser.add_argument("--readout", default="max", choices=["sum", "mean", "max"])
    parser.add_argument("--mutagenicity", type=Path, default=MUTAGENICITY, help="the folder of its files")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    datasets = {"BA-2Motifs": [butfor.datasets.ba_2motifs(seed=seed) for seed in arguments.seeds]}
    if arguments.mutagenicity.exists():
        molecules = butfor.datasets.load_mutagenicity(arguments.mutagenicity)
        datasets["Mutagenicity"] = [molecules] * len(arguments.seeds)
    print(
        f"{'':<13}{'conv':<5}" + "".join(f"{part:>15}" for part in ("train", "val", "test")) + f"{'epoch':>7}{'s':>6}"
    )
    for name, collections in datasets.items():
        for conv in arguments.conv:
            begin = time.process_time()
            results = [
                butfor.models.trained_graph_classifier(graphs, seed=seed, conv=conv, readout=arguments.readout)[1]
                for seed, graphs in zip(arguments.seeds, collections, strict=True)
            ]
            seconds = (time.process_time() - begin) / len(results)
            accuracies = np.array([[run.train_accuracy, run.val_accuracy, run.test_accuracy] for run in results])
            cells = "".join(
                f"{f'{m:.3f} ± {s:.3f}':>15}" for m, s in zip(accuracies.mean(0), accuracies.std(0), strict=True)
            )
            epoch = np.mean([run.best_epoch for run in results])
            print(f"{name:<13}{conv:<5}{cells}{epoch:>7.0f}{seconds:>6.1f}", flush=True)


if __name__ == "__main__":
    main()
