"""Models that put layers together in the ways that people do; `gnns` lists them with the layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch_geometric import nn as pyg

if TYPE_CHECKING:
    from collections.abc import Callable

WIDTH, CLASSES = 4, 3


class Stack(nn.Module):
    """Layers in a row; what comes out is shifted so that the classes are evenly matched (see `balance`)."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.register_buffer("shift", torch.zeros(CLASSES))

    def run(self, x: Tensor, *given: Tensor | None) -> Tensor:
        for number, layer in enumerate(self.layers):
            x = layer(x, *given)
            if number + 1 < len(self.layers):
                x = x.tanh()
        return x - self.shift

    def forward(self, x, edge_index):
        return self.run(x, edge_index)


class Weighted(Stack):
    def forward(self, x, edge_index, edge_weight=None):
        return self.run(x, edge_index, edge_weight)


class Attributed(Stack):
    def forward(self, x, edge_index, edge_attr):
        return self.run(x, edge_index, edge_attr)


class Both(Stack):
    """Weights for one layer, attributes for the other."""

    def forward(self, x, edge_index, edge_weight, edge_attr):
        first, second = self.layers
        return second(first(x, edge_index, edge_weight).tanh(), edge_index, edge_attr) - self.shift


class Typed(Stack):
    def forward(self, x, edge_index, edge_type):
        return self.run(x, edge_index, edge_type)


class Placed(Stack):
    """Nodes have places in space besides their features."""

    def forward(self, x, edge_index, pos):
        for layer in self.layers:
            x = layer(x, pos, edge_index)
        return x - self.shift


class Then(Stack):
    """Layers with edges, and others without: norms, linear layers."""

    def forward(self, x, edge_index):
        for layer in self.layers:
            x = layer(x, edge_index) if isinstance(layer, pyg.MessagePassing) else layer(x)
        return x - self.shift


class Jumping(Stack):
    """Jumping knowledge by hand, around any mode."""

    def __init__(self, mode: str, *layers: nn.Module) -> None:
        super().__init__(*layers)
        self.jump = pyg.JumpingKnowledge(mode, WIDTH, len(layers))
        self.last = nn.Linear(WIDTH * (len(layers) if mode == "cat" else 1), CLASSES)

    def forward(self, x, edge_index):
        seen = []
        for layer in self.layers:
            x = layer(x, edge_index).tanh()
            seen.append(x)
        return self.last(self.jump(seen)) - self.shift


class Probabilities(Stack):
    def forward(self, x, edge_index):
        return self.run(x, edge_index).softmax(-1)


class LogProbabilities(Stack):
    def forward(self, x, edge_index):
        return self.run(x, edge_index).log_softmax(-1)


class Shared(Stack):
    """One layer, three times."""

    def __init__(self) -> None:
        super().__init__(pyg.GCNConv(WIDTH, WIDTH), nn.Linear(WIDTH, CLASSES))

    def forward(self, x, edge_index):
        for _ in range(3):
            x = self.layers[0](x, edge_index).tanh()
        return self.layers[1](x) - self.shift


class OwnLayer(pyg.MessagePassing):
    """A user's own layer: both ends and their difference, weighed by a gate."""

    def __init__(self, width: int) -> None:
        super().__init__(aggr="mean")
        self.gate, self.value = nn.Linear(3 * WIDTH, 1), nn.Linear(2 * WIDTH, width)

    def forward(self, x, edge_index):
        return self.propagate(edge_index, x=x) + x[:, :1]

    def message(self, x_i, x_j):
        gate = self.gate(torch.cat([x_i, x_j, x_i - x_j], dim=1)).sigmoid()
        return gate * self.value(torch.cat([x_j, x_i - x_j], dim=1))


class Turned(Stack):
    """Turns the edges around before its layers see them."""

    def forward(self, x, edge_index):
        return self.run(x, edge_index.flip(0))


class Counting(Stack):
    """Reads how many edges a node has, in a way that no weight can follow."""

    def forward(self, x, edge_index):
        count = torch.bincount(edge_index[1], minlength=len(x)).view(-1, 1)
        return self.run(x * (1 + count % 3), edge_index)


class Sorted(Stack):
    """Neighbours in some order: PyG wants the edges sorted by receiver."""

    def forward(self, x, edge_index):
        return self.run(x, edge_index[:, edge_index[1].argsort(stable=True)])


class GraphNormed(Stack):
    def __init__(self, norm: nn.Module) -> None:
        super().__init__(pyg.GCNConv(WIDTH, WIDTH), pyg.GCNConv(WIDTH, CLASSES))
        self.norm = norm

    def forward(self, x, edge_index):
        first, second = self.layers
        return second(self.norm(first(x, edge_index)).tanh(), edge_index) - self.shift


class Pooled(Stack):
    """What all nodes have in common is added to each."""

    def __init__(self, pool: Callable[..., Tensor]) -> None:
        super().__init__(pyg.SAGEConv(WIDTH, WIDTH), nn.Linear(2 * WIDTH, CLASSES))
        self.pool = pool

    def forward(self, x, edge_index):
        x = self.layers[0](x, edge_index).tanh()
        return self.layers[1](torch.cat([x, self.pool(x, None).expand_as(x)], dim=1)) - self.shift


class VirtualNode(Stack):
    """A node that is joined to all others, between two layers."""

    def __init__(self) -> None:
        super().__init__(pyg.GINConv(mlp(WIDTH)), pyg.GINConv(mlp(CLASSES)))
        self.start, self.update = nn.Parameter(torch.randn(1, WIDTH)), mlp(WIDTH)

    def forward(self, x, edge_index):
        virtual = self.start.expand(1, -1)
        x = self.layers[0](x + virtual, edge_index).tanh()
        virtual = self.update(virtual + x.sum(0, keepdim=True))
        return self.layers[1](x + virtual, edge_index) - self.shift


class UNet(Stack):
    """Keeps the best half of all nodes, and brings them back."""

    def __init__(self) -> None:
        super().__init__(pyg.GraphUNet(WIDTH, 8, CLASSES, depth=1))


def mlp(width: int, given: int = WIDTH) -> nn.Module:
    return nn.Sequential(nn.Linear(given, 8), nn.Tanh(), nn.Linear(8, width))
