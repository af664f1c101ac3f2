"""Small graphs whose answers can be read off: a node votes with its neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch_geometric.data import Data
from torch_geometric.nn import SimpleConv

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Votes(torch.nn.Module):
    """Class 1 where feature 0 of a node and of its neighbours (and theirs, by rounds) adds up to more than 0."""

    def __init__(self, rounds: int = 1) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(SimpleConv("sum") for _ in range(rounds))

    def forward(self, x, edge_index):
        total = x[:, :1]
        for layer in self.layers:
            total = total + layer(total, edge_index)
        return torch.cat([-total, total], dim=1)


class WeightedVotes(torch.nn.Module):
    """The same once, by edge weight and by the first edge attribute where there are any."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = SimpleConv("sum")

    def forward(self, x, edge_index, edge_weight=None, edge_attr=None):
        weight = edge_weight if edge_attr is None else edge_attr[:, 0]
        total = x[:, :1] + self.layer(x[:, :1], edge_index, weight)
        return torch.cat([-total, total], dim=1)


def both(pairs: Iterable[tuple[int, int]]) -> torch.Tensor:
    """Undirected edges, each in both directions."""
    pairs = list(pairs)
    return torch.tensor([*pairs, *((v, u) for u, v in pairs)], dtype=torch.long).reshape(-1, 2).T.contiguous()


def voters(votes: Sequence[float], pairs: Iterable[tuple[int, int]]) -> Data:
    """A graph of nodes that vote so, undirected."""
    return Data(x=torch.tensor(votes, dtype=torch.float)[:, None], edge_index=both(pairs))


def star_of(*votes: float) -> Data:
    """Node 0 with the first of these votes, and around it nodes with the others."""
    return voters(votes, [(0, leaf) for leaf in range(1, len(votes))])


def path(features: torch.Tensor) -> Data:
    """Nodes with these features in a row."""
    return Data(x=features, edge_index=both((node, node + 1) for node in range(len(features) - 1)))
