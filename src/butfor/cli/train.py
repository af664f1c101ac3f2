"""``butfor train``: the paper's GCN on a graph, or a classifier of whole graphs on several; kept as a checkpoint."""

import math
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from butfor.boundary.limits import check_size
from butfor.cli.output import say
from butfor.cli.source import GRAPH_HELP, GraphOptions, Seed, read_graphs
from butfor.errors import GraphError, InputError
from butfor.models.graph_classifier import Conv, Readout

if TYPE_CHECKING:
    from torch import nn

    from butfor.models import GraphTraining, TrainingResult

__all__ = ["train"]

CLASSIFIER = Group("Whole graphs", sort_key=12)


@Parameter(name="*")
@dataclass(frozen=True)
class Classifier:
    """What a classifier of whole graphs is made of.

    Attributes:
        layers: the number of message-passing layers; 3 by default.
        conv: the kind of layer; gin by default.
        readout: how the nodes' vectors are pooled into one for the graph; max by default.
    """

    layers: Annotated[int | None, Parameter(group=CLASSIFIER)] = None
    conv: Annotated[Conv | None, Parameter(group=CLASSIFIER)] = None
    readout: Annotated[Readout | None, Parameter(group=CLASSIFIER)] = None


def train(
    graph: Annotated[str, Parameter(help=GRAPH_HELP)],
    /,
    *,
    out: Path,
    seed: Seed = 0,
    epochs: int | None = None,
    lr: float | None = None,
    weight_decay: float | None = None,
    hidden: int | None = None,
    force: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    quiet: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    classifier: Classifier | None = None,
    options: GraphOptions | None = None,
) -> None:
    """Train on the training nodes of one graph, by default with the paper's settings.

    If there are several graphs, each with a class, a classifier of whole graphs is trained on 80 % of them; 10 % choose
    the best epoch, and 10 % are kept for testing. The checkpoint remembers which.

    Args:
        graph: `GRAPH_HELP` describes it.
        out: the folder to write the checkpoint to.
        seed: decides the initial weights of the model, and which graphs are kept for testing.
        epochs: the number of passes over all training nodes or graphs; by default 1000 for nodes and 50 for graphs.
        lr: the learning rate; by default 0.001 for nodes and 0.005 for graphs.
        weight_decay: the weight decay; by default 0.001 for nodes and none for graphs.
        hidden: the width of the layers; by default 20 for nodes and 32 for graphs.
        force: write into the folder even if something is in it.
        quiet: show no progress bar.
        classifier: what a classifier of whole graphs is made of.
        options: how the graph is read.
    """
    settings = _given({"epochs": epochs, "lr": lr, "weight_decay": weight_decay, "hidden": hidden})
    structure = _given(asdict(classifier or Classifier()))
    _check_settings({**settings, **structure})
    _check_folder(out, force)
    from butfor import models

    graphs, info = read_graphs(graph, options or GraphOptions())
    width, deep = settings.get("hidden", 1), structure.get("layers", 3)
    check_size(16 * width * (graphs[0].x.size(1) + width * deep), f"training layers that are {width} wide", InputError)
    model: nn.Module
    result: TrainingResult | GraphTraining
    if len(graphs) > 1:
        model, result = models.trained_graph_classifier(graphs, seed, not quiet, **settings, **structure)
        what = "graph"
    else:
        if structure:
            raise InputError(f"--{next(iter(structure))} goes with several graphs, and {graph} is one")
        x = graphs[0].x
        if not x.is_floating_point():
            raise GraphError(f"x is of dtype {x.dtype}, but the paper's GCN takes floating features: use x.float()")
        model, result = models.trained_gcn(graphs[0], seed, not quiet, **settings)
        what = "node"
    models.save_checkpoint(out, model, data_info=info, result=result)
    test = f"no test {what}s" if result.test_accuracy is None else f"{result.test_accuracy:.1%} on test {what}s"
    say(f"accuracy: {result.train_accuracy:.1%} on training {what}s, {test} ({result.epochs} epochs)")
    say(f"the checkpoint is in {out}; next: butfor explain --checkpoint {out} --{what}s test --out cfs.jsonl")


def _given(flags: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in flags.items() if value is not None}


def _check_settings(given: dict[str, Any]) -> None:
    for name in ("epochs", "hidden", "layers"):
        if given.get(name, 1) < 1:
            raise InputError(f"--{name} is {given[name]}; at least 1 is needed")
    lr, decay = given.get("lr", 1), given.get("weight_decay", 0)
    if not (lr > 0 and math.isfinite(lr)):
        raise InputError(f"--lr is {lr}; the learning rate must be positive")
    if not (decay >= 0 and math.isfinite(decay)):
        raise InputError(f"--weight-decay is {decay}; it cannot be negative")


def _check_folder(folder: Path, force: bool) -> None:
    """Refuse a folder that cannot be written to before the training, not after it."""
    if "\0" in str(folder):
        raise InputError(f"cannot write the checkpoint to {str(folder)!r}: no folder has such a name")
    place = folder
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        raise InputError(f"cannot write the checkpoint to {folder}: {place} is not a folder")
    if not os.access(place, os.W_OK | os.X_OK):
        raise InputError(f"cannot write the checkpoint to {folder}: {place} is not yours to write to")
    if place == folder and any(folder.iterdir()) and not force:
        raise InputError(f"{folder} is not empty; choose another folder, or write into it with --force")
