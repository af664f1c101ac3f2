"""A star and a model that counts: how many edges must go is known without a search."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

__all__ = ["Crowd", "crowd"]


class Crowd(nn.Module):
    """Class 0 while a node has more than four neighbours."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        count = torch.zeros(len(x)).index_add(0, edge_index[1], torch.ones(edge_index.size(1))) - 4.5
        return torch.stack([count, -count], dim=1)


def crowd(leaves: int) -> Data:
    """Node 0 with this many neighbours."""
    ends = torch.tensor([(0, leaf) for leaf in range(1, leaves + 1)]).T
    return Data(x=torch.ones(leaves + 1, 1), edge_index=torch.cat([ends, ends.flip(0)], dim=1))
