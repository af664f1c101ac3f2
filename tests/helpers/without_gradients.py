"""A model that no gradient can be followed in: methods that follow gradients have to do without."""

from __future__ import annotations

import torch

from butfor.testing import random_problem


class WithoutGradients(torch.nn.Module):
    """Counts edges in a way that no weight of an edge can follow."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, _ = random_problem(0)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return self.inner(x, edge_index) + torch.bincount(edge_index[1], minlength=len(x))[:, None] * x[:, :3] / 50
