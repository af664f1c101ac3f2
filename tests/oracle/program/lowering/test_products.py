"""A product over edges, with factors of both signs and none, after every set of deletions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv

import butfor
from butfor.edits.edits import pack
from butfor.oracle.program.oracle import ProgramOracle


class Product(torch.nn.Module):
    """The product of what neighbours have, before and after a layer; negative numbers stay, or become 0."""

    def __init__(self, rectified: bool) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.first, self.second, self.rectified = SAGEConv(3, 4, aggr="mul"), SAGEConv(4, 2, aggr="mul"), rectified

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = self.first(x, edge_index)
        return self.second(x.relu() if self.rectified else x, edge_index)


@pytest.mark.parametrize("rectified", [False, True])
def test_a_product_after_every_set_of_deletions(rectified: bool) -> None:
    ends = [(0, 1), (0, 2), (0, 3), (1, 4), (2, 5), (3, 5), (1, 2)]
    edge_index = torch.tensor([*ends, *(pair[::-1] for pair in ends)]).T.contiguous()
    x = torch.tensor([[1.0, -2.0, 0.5], [0.0, -1.0, 2.0], [-0.5, 1.5, 0.0], [2.0, 0.0, -1.0], [-1, 1, 1], [0.5, -3, 0]])
    model, data = Product(rectified).eval(), Data(x=x, edge_index=edge_index)
    problem = butfor.prepare(model, data).problem(0)
    oracle, edits = problem.oracle, problem.edits
    assert isinstance(oracle, ProgramOracle)
    assert len(edits) == len(ends)
    sets = [some for size in range(len(ends) + 1) for some in itertools.combinations(range(len(ends)), size)]
    answers = oracle.logits([(edits, pack(sets))])[0]
    for some, answer in zip(sets, answers, strict=True):
        gone = {edge.edge for edge in edits.records(np.array(some, dtype=np.int64))}
        kept = [tuple(sorted(pair)) not in gone for pair in edge_index.T.tolist()]
        with torch.no_grad():
            truth = model(x, edge_index[:, torch.tensor(kept)])[0]
        assert answer.numpy() == pytest.approx(truth.numpy(), abs=1e-4, rel=1e-4), some
    # Bounds are of these numbers too.
    margins = (answers[:, 0] - answers[:, 1]).numpy()
    pairs, every = np.array([[1.0, -1.0]]), np.arange(len(edits))
    for most in range(len(edits) + 1):
        bound = oracle.margin_bound(edits, pairs, (), every, most)
        assert bound is not None
        assert bound <= min(margin for some, margin in zip(sets, margins, strict=True) if len(some) <= most) + 1e-4
