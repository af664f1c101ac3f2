"""A small network that classifies whole graphs: message passing, a readout, a linear layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from torch import Tensor, nn
from torch_geometric.nn import GCNConv, GINConv, global_add_pool, global_max_pool, global_mean_pool

from butfor.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Conv", "GraphClassifier", "Readout"]

Conv = Literal["gin", "gcn"]
Readout = Literal["sum", "mean", "max"]

_POOL: dict[str, Callable[[Tensor, Tensor | None], Tensor]] = {
    "sum": global_add_pool,
    "mean": global_mean_pool,
    "max": global_max_pool,
}


class GraphClassifier(nn.Module):
    """Layers of message passing, a readout over the nodes of each graph, and a linear layer.

    A `"gin"` layer is that of the paper "How Powerful are Graph Neural Networks?" with epsilon 0: two linear layers,
    applied to the sum of a node and its neighbours. A `"gcn"` layer is PyG's `GCNConv`. Batch normalisation and ReLU
    follow each layer. Without batch normalisation, GCN does not learn BA-2Motifs at all, where all features are equal.

    `forward` returns logits. In evaluation mode the graphs of a batch do not affect one another.

    Args:
        num_features: how many features a node has.
        num_classes: how many classes there are.
        hidden: the width of each layer.
        layers: how many rounds of messages are passed.
        conv: the kind of layer, "gin" or "gcn".
        readout: how the nodes of a graph become one vector: "sum", "mean" or "max".

    Raises:
        ModelError: if a size is not positive or a name unknown, or (in `forward`) the graphs have another
            number of features.

    Examples:
        >>> from torch_geometric.data import Batch
        >>> import butfor
        >>> batch = Batch.from_data_list(butfor.datasets.ba_2motifs(graphs=4))
        >>> model = butfor.models.GraphClassifier(num_features=10, num_classes=2)
        >>> model(batch.x, batch.edge_index, batch.batch).shape
        torch.Size([4, 2])
    """

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        hidden: int = 32,
        layers: int = 3,
        conv: Conv = "gin",
        readout: Readout = "max",
    ) -> None:
        super().__init__()
        sizes = {"num_features": num_features, "num_classes": num_classes, "hidden": hidden, "layers": layers}
        for name, value in sizes.items():
            if value < 1:
                raise ModelError(f"{name} is {value}, but a GraphClassifier needs at least 1")
        for name, choice, choices in (("conv", conv, get_args(Conv)), ("readout", readout, get_args(Readout))):
            if choice not in choices:
                raise ModelError(f"{name} is {choice!r}, but a GraphClassifier knows {', '.join(choices)}")
        self.num_features = num_features
        self.num_classes = num_classes
        self.hidden = hidden
        self.layers = layers
        self.conv = conv
        self.readout = readout
        widths = [num_features] + [hidden] * layers
        layer = _gin if conv == "gin" else GCNConv
        self.convs = nn.ModuleList(layer(width, hidden) for width in widths[:-1])
        self.norms = nn.ModuleList(nn.BatchNorm1d(hidden) for _ in range(layers))
        self.lin = nn.Linear(hidden, num_classes)

    def reset_parameters(self) -> None:
        """Draw all weights anew from torch's global generator."""
        for layer in (*self.convs, *self.norms, self.lin):
            layer.reset_parameters()

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        """Return the logits of every graph, one column per class.

        `batch` holds the number of each node's graph, as in a PyG `Batch`; without it, all nodes are one graph.
        """
        if x.size(-1) != self.num_features:
            raise ModelError(
                f"this GraphClassifier takes {self.num_features} features per node, but x has {x.size(-1)}: "
                "use the graphs it was trained on, or train a new model"
            )
        for layer, norm in zip(self.convs, self.norms, strict=True):
            x = norm(layer(x, edge_index)).relu()
        logits: Tensor = self.lin(_POOL[self.readout](x, batch))
        return logits


def _gin(in_channels: int, out_channels: int) -> GINConv:
    return GINConv(
        nn.Sequential(nn.Linear(in_channels, out_channels), nn.ReLU(), nn.Linear(out_channels, out_channels))
    )
