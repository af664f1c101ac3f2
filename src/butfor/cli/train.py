"""``butfor train``: the paper's GCN on a graph, kept as a checkpoint."""

import math
import os
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from butfor.cli.output import say
from butfor.cli.source import GraphOptions, Seed, read_graph
from butfor.errors import GraphError, InputError

__all__ = ["train"]


def train(
    graph: str,
    /,
    *,
    out: Path,
    seed: Seed = 0,
    epochs: int = 1000,
    lr: float = 0.001,
    weight_decay: float = 0.001,
    hidden: int = 20,
    force: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    quiet: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    options: GraphOptions | None = None,
) -> None:
    """Train on the graph's training nodes, with the paper's settings unless told otherwise.

    Args:
        graph: tree-cycles, tree-grid or ba-shapes; a file (.npz, .csv, .parquet, .pt); or a folder of a
            Planetoid dataset.
        out: the folder to write the checkpoint to.
        seed: of the model's first weights.
        epochs: how often all training nodes are gone through.
        lr: the learning rate.
        weight_decay: the weight decay.
        hidden: the width of the layers.
        force: write into the folder even if something is in it.
        quiet: no progress bar.
        options: how the graph is read.
    """
    _check_settings(epochs, lr, weight_decay, hidden)
    _check_folder(out, force)
    from butfor import models

    data, info = read_graph(graph, options or GraphOptions())
    if not data.x.is_floating_point():
        raise GraphError(f"x is of dtype {data.x.dtype}, but the paper's GCN takes floating features: use x.float()")
    model, result = models.trained_gcn(
        data, seed, not quiet, hidden=hidden, epochs=epochs, lr=lr, weight_decay=weight_decay
    )
    models.save_checkpoint(out, model, data_info=info, result=result)
    test = "no test nodes" if result.test_accuracy is None else f"{result.test_accuracy:.1%} on test nodes"
    say(f"accuracy: {result.train_accuracy:.1%} on training nodes, {test} ({result.epochs} epochs)")
    say(f"the checkpoint is in {out}; next: butfor explain --checkpoint {out} --nodes test --out cfs.jsonl")


def _check_settings(epochs: int, lr: float, weight_decay: float, hidden: int) -> None:
    if epochs < 1:
        raise InputError(f"--epochs is {epochs}; at least 1 is needed")
    if not (lr > 0 and math.isfinite(lr)):
        raise InputError(f"--lr is {lr}; the learning rate must be positive")
    if not (weight_decay >= 0 and math.isfinite(weight_decay)):
        raise InputError(f"--weight-decay is {weight_decay}; it cannot be negative")
    if hidden < 1:
        raise InputError(f"--hidden is {hidden}; layers need a width of at least 1")


def _check_folder(folder: Path, force: bool) -> None:
    """Refuse a folder before the training, not after it."""
    place = folder
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        raise InputError(f"cannot write the checkpoint to {folder}: {place} is not a folder")
    if not os.access(place, os.W_OK | os.X_OK):
        raise InputError(f"cannot write the checkpoint to {folder}: {place} is not yours to write to")
    if place == folder and any(folder.iterdir()) and not force:
        raise InputError(f"{folder} is not empty; choose another folder, or write into it with --force")
