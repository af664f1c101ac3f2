"""Training a classifier of whole graphs: a split by seed, minibatches, Adam, and the weights of the best epoch."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from tqdm import tqdm

from butfor.errors import GraphError, InputError, ModelError
from butfor.graph.validate import validate
from butfor.models.graph_classifier import GraphClassifier
from butfor.models.threads import threads_for
from butfor.models.training import seeded, share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch_geometric.data import Data

    from butfor.models.graph_classifier import Conv, Readout

__all__ = ["GraphTraining", "trained_graph_classifier"]

_PARTS = 10  # one of them for validation, one for testing


@dataclass(frozen=True)
class GraphTraining:
    """What a training run did and how well the model does now; accuracies are shares from 0 to 1.

    Attributes:
        train_accuracy: on the training graphs.
        val_accuracy: on the graphs that chose the epoch.
        test_accuracy: on the others, which had no part in the training.
        train: the positions of the training graphs in the list, in ascending order.
        val: those of the graphs for validation.
        test: those of the graphs for testing.
        epochs: how many were run.
        best_epoch: the one whose weights the model has, counted from 1.
        lr: the learning rate at the start; it falls to 0 along a cosine.
        weight_decay: that of the optimiser.
        batch_size: how many graphs a step sees.
        patience: after how many epochs without improvement training ends.
        seed: of the split, the weights and the batches.

    Examples:
        >>> import butfor
        >>> graphs = butfor.datasets.ba_2motifs(graphs=40)
        >>> model, training = butfor.models.trained_graph_classifier(graphs, epochs=5)
        >>> training.epochs, len(training.test)
        (5, 4)
    """

    train_accuracy: float
    val_accuracy: float
    test_accuracy: float
    train: tuple[int, ...]
    val: tuple[int, ...]
    test: tuple[int, ...]
    epochs: int
    best_epoch: int
    lr: float
    weight_decay: float
    batch_size: int
    patience: int
    seed: int


def trained_graph_classifier(
    graphs: Sequence[Data],
    seed: int = 0,
    progress: bool = False,
    *,
    hidden: int = 32,
    layers: int = 3,
    conv: Conv = "gin",
    readout: Readout = "max",
    epochs: int = 50,
    patience: int = 30,
    lr: float = 0.005,
    weight_decay: float = 0.0,
    batch_size: int = 64,
) -> tuple[GraphClassifier, GraphTraining]:
    """Return a classifier trained on 80 % of the graphs, in evaluation mode, and how well it does.

    Another 10 % are for validation: the model gets the weights of the epoch with the highest accuracy on them, or of
    several such epochs the one with the lowest loss. The learning rate falls from `lr` to 0 along a cosine over
    `epochs`; training ends earlier if `patience` epochs bring no improvement. The last 10 % are for testing only.

    The same seed gives the same model. The split depends on the seed alone, so that models with the same seed can be
    compared. The caller's random state is left as it was.

    Args:
        graphs: at least ten, each with its class ``y`` in shape [1].
        seed: of the split, the weights and the batches.
        progress: show a progress bar on standard error, where that is a terminal.
        hidden: the width of each layer.
        layers: how many rounds of messages are passed.
        conv: the kind of layer, "gin" or "gcn".
        readout: how the nodes of a graph become one vector: "sum", "mean" or "max".
        epochs: how often the training graphs are gone through, at most.
        patience: after how many epochs without improvement training ends.
        lr: the learning rate at the start.
        weight_decay: that of the optimiser.
        batch_size: how many graphs a step sees.

    Raises:
        GraphError: if a graph is malformed, has no class, or does not fit the others, or if there are fewer
            than 10.
        InputError: if `epochs` or `patience` is less than 1, or `batch_size` less than 2.
        ModelError: if a size is not positive, a name unknown, or the loss stops being finite.

    Examples:
        >>> import butfor
        >>> graphs = butfor.datasets.ba_2motifs(graphs=40)
        >>> model, training = butfor.models.trained_graph_classifier(graphs, epochs=5)
        >>> len(training.train), len(training.val), len(training.test)
        (32, 4, 4)
        >>> results = butfor.explain(model, graphs[:2], method=butfor.Greedy())  # each graph as a whole
        >>> [cf.target_name for cf in results]
        ['graph 0', 'graph 1']
    """
    for name, value, least in (("epochs", epochs, 1), ("patience", patience, 1), ("batch_size", batch_size, 2)):
        if value < least:
            raise InputError(f"{name} is {value}, but training needs at least {least}")
    _check(graphs)
    data = _Packed(graphs)
    num_classes = len(graphs[0].class_names) if "class_names" in graphs[0] else int(data.y.max()) + 1
    if int(data.y.max()) >= num_classes:
        worst = int(data.y.argmax())
        raise GraphError(f"graph {worst} has class {int(data.y.max())}, but class_names names {num_classes}")
    train, val, test = _split(len(graphs), seed)
    per_batch = data.edge_index.size(1) * batch_size // len(graphs)
    with seeded(seed, data.x.device), threads_for(per_batch):
        model = GraphClassifier(data.x.size(1), num_classes, hidden, layers, conv, readout).to(data.x.device)
        optimizer = torch.optim.Adam(model.parameters(), lr=lr, weight_decay=weight_decay)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
        best, best_epoch, weights = (-1.0, 0.0), 0, {}
        # tqdm's None means: only where the output is a terminal.
        bar = tqdm(range(1, epochs + 1), "training", file=sys.stderr, disable=None if progress else True)
        for epoch in bar:
            model.train()
            for part in _batches(train[torch.randperm(len(train))], batch_size):
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(*data.batch(part)), data.y[part])
                if not torch.isfinite(loss):
                    raise ModelError(f"the training loss is {loss.item()} in epoch {epoch}: lower lr (it is {lr})")
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
            schedule.step()
            accuracy, mean_loss = _evaluate(model, data, val, batch_size)
            if (accuracy, -mean_loss) > best:
                best, best_epoch = (accuracy, -mean_loss), epoch
                weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
            elif epoch - best_epoch >= patience:
                break
        bar.close()
        model.load_state_dict(weights)
        accuracies = [_evaluate(model, data, part, batch_size)[0] for part in (train, val, test)]
    return model, GraphTraining(
        train_accuracy=accuracies[0],
        val_accuracy=accuracies[1],
        test_accuracy=accuracies[2],
        train=_positions(train),
        val=_positions(val),
        test=_positions(test),
        epochs=epoch,
        best_epoch=best_epoch,
        lr=lr,
        weight_decay=weight_decay,
        batch_size=batch_size,
        patience=patience,
        seed=seed,
    )


class _Packed:
    """All graphs in a few long tensors: a minibatch is gathered from them, much faster than by joining `Data`."""

    def __init__(self, graphs: Sequence[Data]) -> None:
        self.x = torch.cat([graph.x for graph in graphs])
        self.edge_index = torch.cat([graph.edge_index for graph in graphs], dim=1)
        self.y = torch.cat([graph.y for graph in graphs])
        self._nodes = torch.tensor([graph.x.size(0) for graph in graphs], device=self.x.device)
        self._edges = torch.tensor([graph.edge_index.size(1) for graph in graphs], device=self.x.device)

    def batch(self, numbers: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """`x`, `edge_index` and `batch` of these graphs, joined in this order."""
        nodes, node_graph = _gather(self._nodes, numbers)
        edges, edge_graph = _gather(self._edges, numbers)
        sizes = self._nodes[numbers]
        first = sizes.cumsum(0) - sizes
        return self.x[nodes], self.edge_index[:, edges] + first[edge_graph], node_graph


def _gather(sizes: Tensor, numbers: Tensor) -> tuple[Tensor, Tensor]:
    """For graphs whose rows are stored one after the other: the rows of some graphs, and the graph of each row."""
    starts = sizes.cumsum(0) - sizes
    chosen = sizes[numbers]
    graph = torch.repeat_interleave(chosen)
    shift = starts[numbers] - (chosen.cumsum(0) - chosen)
    return torch.arange(len(graph), device=graph.device) + shift[graph], graph


def _split(graphs: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    order = torch.randperm(graphs, generator=torch.Generator().manual_seed(seed))
    tenth = graphs // _PARTS
    return order[2 * tenth :], order[tenth : 2 * tenth], order[:tenth]


def _positions(part: Tensor) -> tuple[int, ...]:
    return tuple(sorted(part.tolist()))


def _batches(numbers: Tensor, batch_size: int) -> tuple[Tensor, ...]:
    # Batches of nearly equal sizes, because batch normalisation fails on a last batch of a single node.
    return numbers.tensor_split(-(-len(numbers) // batch_size))


@torch.no_grad()
def _evaluate(model: GraphClassifier, data: _Packed, numbers: Tensor, batch_size: int) -> tuple[float, float]:
    """The share of these graphs that the model gets right, and its mean loss on them."""
    model.eval()
    logits = torch.cat([model(*data.batch(part)) for part in _batches(numbers, batch_size)])
    labels = data.y[numbers]
    return share(logits.argmax(dim=1) == labels), nn.functional.cross_entropy(logits, labels).item()


def _check(graphs: Sequence[Data]) -> None:
    if len(graphs) < _PARTS:
        raise GraphError(f"there are {len(graphs)} graphs, but a split into 80, 10 and 10 % needs at least {_PARTS}")
    for number, graph in enumerate(graphs):
        try:
            validate(graph)
        except GraphError as problem:
            raise GraphError(f"graph {number}: {problem}") from problem
        if graph.x.size(1) != graphs[0].x.size(1) or not graph.x.is_floating_point():
            raise GraphError(
                f"x of graph {number} has {graph.x.size(1)} columns of dtype {graph.x.dtype}, but training takes "
                f"floating features, in all graphs as many as in the first ({graphs[0].x.size(1)})"
            )
        y = graph.y if "y" in graph else None
        if y is None or y.shape != (1,) or y.is_floating_point() or int(y) < 0:
            raise GraphError(
                f"y of graph {number} is {None if y is None else y.tolist()}, but training takes one integer class "
                "for each graph, counted from 0 and in shape [1]"
            )
