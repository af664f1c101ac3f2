"""Training with the paper's settings: full batch, Adam, clipped gradients, no dropout."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from tqdm import tqdm

from butfor.errors import GraphError, ModelError
from butfor.graph.validate import validate
from butfor.models.gcn import PaperGCN
from butfor.models.threads import threads_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_geometric.data import Data

__all__ = ["TrainingResult", "train", "trained_gcn"]


@dataclass(frozen=True)
class TrainingResult:
    """What a training run did and how well the model does now; accuracies are shares from 0 to 1.

    Attributes:
        train_accuracy: on the nodes of ``train_mask``.
        test_accuracy: on those of ``test_mask``; None where the graph has none.
        loss: cross-entropy on the training nodes, of the model as it is now.
        epochs: how many were run.
        lr: the learning rate.
        weight_decay: that of the optimiser.
        clip: the largest norm of a gradient.
        seed: of the weights.

    Examples:
        >>> import butfor
        >>> model, training = butfor.models.trained_gcn(butfor.datasets.tree_cycles(seed=0), epochs=20)
        >>> training.epochs, training.lr, training.seed
        (20, 0.001, 0)
        >>> 0 <= training.test_accuracy <= 1
        True
    """

    train_accuracy: float
    test_accuracy: float | None
    loss: float
    epochs: int
    lr: float
    weight_decay: float
    clip: float
    seed: int


def train(
    model: nn.Module,
    data: Data,
    *,
    epochs: int = 1000,
    lr: float = 0.001,
    weight_decay: float = 0.001,
    clip: float = 2.0,
    seed: int = 0,
    progress: bool = False,
) -> TrainingResult:
    """Train the model from scratch on `data.train_mask` and leave it in evaluation mode.

    Its weights are initialised anew (`reset_parameters`) from the seed, so that the same seed gives the same result.
    The caller's random state is left as it was.

    Args:
        model: a classifier of nodes that takes ``x``, ``edge_index`` and, where the graph has one, ``edge_weight``.
        data: the graph, with labels ``y`` and ``train_mask``.
        epochs: how many steps of Adam, each on all training nodes.
        lr: the learning rate.
        weight_decay: that of the optimiser.
        clip: the largest norm of a gradient.
        seed: of the weights.
        progress: show a progress bar on standard error, where that is a terminal.

    Raises:
        GraphError: if the graph is malformed or has no labels or no training nodes.
        ModelError: if the model cannot be reset, does not fit the graph, or its loss stops being finite.

    Examples:
        >>> import butfor
        >>> data = butfor.datasets.tree_cycles(seed=0)
        >>> model = butfor.models.PaperGCN(in_channels=10, num_classes=2)
        >>> training = butfor.models.train(model, data, epochs=20)
        >>> training.epochs, model.training
        (20, False)
    """
    labels, train_mask = _supervision(data)
    reset = getattr(model, "reset_parameters", None)
    if not callable(reset):
        raise ModelError(f"{type(model).__name__} has no reset_parameters(), so it cannot be trained from scratch")
    with seeded(seed, data.x.device), threads_for(data.num_edges):
        reset()
        optimizer = torch.optim.Adam(model.parameters(), lr=lr, weight_decay=weight_decay)
        model.train()
        # tqdm's None means: only where the output is a terminal.
        for epoch in tqdm(range(epochs), "training", file=sys.stderr, disable=None if progress else True):
            optimizer.zero_grad()
            logits = _logits(model, data)
            if int(labels.max()) >= logits.size(1):
                raise ModelError(
                    f"the labels go up to {int(labels.max())}, but the model gives {logits.size(1)} classes"
                )
            loss = nn.functional.cross_entropy(logits[train_mask], labels[train_mask])
            if not torch.isfinite(loss):
                raise ModelError(f"the training loss is {loss.item()} after {epoch} epochs: lower lr (it is {lr})")
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
        model.eval()
    with torch.no_grad():
        logits = _logits(model, data)
        final = nn.functional.cross_entropy(logits[train_mask], labels[train_mask])
        right = logits.argmax(dim=1) == labels
    test_mask = data.test_mask if "test_mask" in data else None
    return TrainingResult(
        train_accuracy=share(right[train_mask]),
        test_accuracy=None if test_mask is None else share(right[test_mask]),
        loss=final.item(),
        epochs=epochs,
        lr=lr,
        weight_decay=weight_decay,
        clip=clip,
        seed=seed,
    )


def trained_gcn(
    data: Data,
    seed: int = 0,
    progress: bool = False,
    *,
    hidden: int = 20,
    epochs: int = 1000,
    lr: float = 0.001,
    weight_decay: float = 0.001,
) -> tuple[PaperGCN, TrainingResult]:
    """Return the paper's GCN trained on this graph, by default with the paper's settings, and how well it does.

    Args:
        data: the graph, with labels ``y`` and ``train_mask``.
        seed: of the weights.
        progress: show a progress bar on standard error, where that is a terminal.
        hidden: the width of each layer.
        epochs: how many steps of Adam, each on all training nodes.
        lr: the learning rate.
        weight_decay: that of the optimiser.

    Raises:
        GraphError: if the graph is malformed or has no labels or no training nodes.

    Examples:
        >>> import butfor
        >>> data = butfor.datasets.tree_cycles(seed=0)
        >>> model, training = butfor.models.trained_gcn(data, epochs=20)  # 1000 take some seconds
        >>> cf = butfor.explain(model, data, 600)
        >>> cf.before.name in data.class_names
        True
    """
    labels, _ = _supervision(data)
    num_classes = len(data.class_names) if "class_names" in data else int(labels.max()) + 1
    with seeded(seed, data.x.device):  # even building a module draws from the global generator
        model = PaperGCN(data.x.size(1), num_classes, hidden).to(data.x.device)
    result = train(model, data, epochs=epochs, lr=lr, weight_decay=weight_decay, seed=seed, progress=progress)
    return model, result


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Seed torch's global generators inside this context, and restore their state afterwards."""
    on_gpu = device.type == "cuda"
    with torch.random.fork_rng(devices=[device] if on_gpu else []):
        torch.default_generator.manual_seed(seed)
        if on_gpu:
            torch.cuda.manual_seed(seed)
        yield


def _supervision(data: Data) -> tuple[Tensor, Tensor]:
    """The labels and the mask of the training nodes, checked."""
    validate(data)
    if "y" not in data:
        raise GraphError("this graph has no labels y, so no model can be trained on it")
    labels: Tensor = data.y
    if labels.dim() != 1 or labels.is_floating_point() or labels.size(0) != data.x.size(0):
        raise GraphError(
            f"y has shape {tuple(labels.shape)} and dtype {labels.dtype}, but training takes one integer "
            f"class for each of the {data.x.size(0)} nodes"
        )
    if int(labels.min()) < 0:
        raise GraphError(f"node {int(labels.argmin())} has class {int(labels.min())}; classes count from 0")
    if "train_mask" not in data or not bool(data.train_mask.any()):
        raise GraphError("this graph has no training nodes: set train_mask (or train_idx in an .npz file)")
    return labels, data.train_mask


def _logits(model: nn.Module, data: Data) -> Tensor:
    # Edge weights are passed only if there are any, because not every model takes them.
    weights = (data.edge_weight,) if "edge_weight" in data else ()
    logits: Tensor = model(data.x, data.edge_index, *weights)
    return logits


def share(right: Tensor) -> float:
    """The share of True values; NaN if there are none at all."""
    return right.double().mean().item() if right.numel() else float("nan")
