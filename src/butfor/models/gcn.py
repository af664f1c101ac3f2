"""The graph convolutional network that the paper explains."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv

from butfor.errors import ModelError

__all__ = ["PaperGCN"]


class PaperGCN(nn.Module):
    """Three GCN layers whose outputs are concatenated and read by one linear layer.

    ReLU follows the first two layers, not the third. `forward` returns logits, not log-probabilities.

    Layer weights and biases start uniform in ±1/sqrt(hidden), as in the published code: all features are
    equal to one, so with PyG's own initialisation (zero biases) all nodes would start with multiples of one vector.

    Args:
        in_channels: how many features a node has.
        num_classes: how many classes there are.
        hidden: the width of each layer.

    Raises:
        ModelError: if a size is not positive, or (in `forward`) the graph has another number of features.

    Examples:
        >>> import butfor
        >>> data = butfor.datasets.tree_cycles(seed=0)
        >>> model = butfor.models.PaperGCN(in_channels=10, num_classes=2)
        >>> model(data.x, data.edge_index).shape
        torch.Size([871, 2])
    """

    def __init__(self, in_channels: int, num_classes: int, hidden: int = 20) -> None:
        super().__init__()
        for name, value in (("in_channels", in_channels), ("num_classes", num_classes), ("hidden", hidden)):
            if value < 1:
                raise ModelError(f"{name} is {value}, but a PaperGCN needs at least 1")
        self.in_channels = in_channels
        self.num_classes = num_classes
        self.hidden = hidden
        self.gc1 = GCNConv(in_channels, hidden)
        self.gc2 = GCNConv(hidden, hidden)
        self.gc3 = GCNConv(hidden, hidden)
        self.lin = nn.Linear(3 * hidden, num_classes)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights anew from torch's global generator."""
        bound = 1 / math.sqrt(self.hidden)
        for layer in (self.gc1, self.gc2, self.gc3):
            for parameter in layer.parameters():
                nn.init.uniform_(parameter, -bound, bound)
        self.lin.reset_parameters()

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """Return the logits of every node, one column per class."""
        if x.size(-1) != self.in_channels:
            raise ModelError(
                f"this PaperGCN takes {self.in_channels} features per node, but x has {x.size(-1)}: "
                "use the graph it was trained on, or train a new model"
            )
        h1 = self.gc1(x, edge_index, edge_weight).relu()
        h2 = self.gc2(h1, edge_index, edge_weight).relu()
        h3 = self.gc3(h2, edge_index, edge_weight)
        logits: Tensor = self.lin(torch.cat([h1, h2, h3], dim=1))
        return logits
