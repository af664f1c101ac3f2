"""Hidden numbers whose intervals reach to 1e20, although the scores are small."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from families import EXACT, margins, missed, plain_of, sifted, subsets
from program_cases import ProgramCase, sums

TOPS = (5.0, 20.0, 38.0, 42.0, 45.0, 60.0, 80.0, 300.0)


class Model(nn.Module):
    """Of two sums of what arrives, the second is raised by ``top``: its exponential is large where edges are gone."""

    def __init__(self, top: float) -> None:
        super().__init__()
        self.top = top

    def sums(self, x: Tensor, edge_index: Tensor) -> tuple[Tensor, Tensor]:
        h = sums(x[edge_index[0]], edge_index[1], len(x))
        return h[:, :1], (h[:, 1:] + self.top).exp()


class Mixed(Model):
    """A matrix mixes a small sum with a large number, and a sigmoid hides how large that may be."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        small, large = self.sums(x, edge_index)
        mixed = torch.cat([small - 1, large], dim=1) @ x.new_tensor([[8.0], [1.0]]) + 2
        return (mixed.sigmoid() - 0.3) * x.new_tensor([[1.0, -1.0]])


class Apart(Model):
    """A sum, and a bounded function of a large number, which no deletion changes much."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        small, large = self.sums(x, edge_index)
        d = small + (large.log1p() * 0.01).tanh() + 0.5
        return torch.cat([d, -d], dim=1)


def check(model: nn.Module, x: Tensor) -> None:
    data = Data(x=x.double(), edge_index=torch.tensor([[1, 2, 3, 4, 5], [0, 0, 0, 0, 0]]))
    model = model.double().eval()
    case = ProgramCase(lambda: copy.deepcopy(model), data, True, 0)
    plain, pairs, every = plain_of(case)
    free = np.arange(5)
    for most in (1, 2, 5):
        sets = subsets(free, range(most + 1))
        truth = dict(zip(map(frozenset, sets), margins(case, sets, pairs, every).tolist(), strict=True))
        least = min(truth.values())
        assert plain.least_margin((), free, most) <= least + EXACT
        for needed in (0.0, least + 0.1):
            assert not missed(truth, sifted(plain, free, most, needed), needed)


@pytest.mark.parametrize("top", TOPS)
def test_a_matrix_that_mixes_small_numbers_with_large_ones(top: float) -> None:
    check(Mixed(top), torch.tensor([[0.0, 0], [1, 0], [0, -top], [0.01, 0], [0.02, 0], [0.03, 0]]))


@pytest.mark.parametrize("top", TOPS)
def test_losses_of_which_one_is_large(top: float) -> None:
    check(Apart(top), torch.tensor([[0.0, 0], [2, 0], [0, -top], [0, -0.01], [0, 0.01], [-1.8, 0]]))
