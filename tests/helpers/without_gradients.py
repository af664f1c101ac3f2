"""A model that no gradient can be followed in: methods that follow gradients have to do without."""

from __future__ import annotations

import torch

from butfor.testing import random_problem


class WithoutGradients(torch.nn.Module):
    """Sorts the edges to count them, which cannot be written as a program."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, _ = random_problem(0)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        receivers, nodes = edge_index[1].sort().values, torch.arange(len(x))
        count = torch.searchsorted(receivers, nodes, right=True) - torch.searchsorted(receivers, nodes)
        return self.inner(x, edge_index) + count[:, None] * x[:, :3] / 50
