"""Which models are stacks of GCN layers: those that do what one does, whoever wrote the class."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GCN, GCNConv

from butfor.oracle.gcn.oracle import GCNOracle
from butfor.session import Session
from butfor.testing import random_problem

if TYPE_CHECKING:
    from collections.abc import Callable

WIDTH, CLASSES = 4, 3


class Written(nn.Module):
    """Two or three GCN layers, put together by hand."""

    def __init__(self, between: Callable[..., Tensor], head: int | None = None) -> None:
        super().__init__()
        torch.manual_seed(1)
        features = random_problem(0)[1].num_features
        self.first, self.second = GCNConv(features, WIDTH), GCNConv(WIDTH, WIDTH if head else CLASSES)
        self.head, self.between = None if head is None else nn.Linear(head, CLASSES), between

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        return self.between(self, x, edge_index, edge_weight)


def plain(self: Written, x: Tensor, e: Tensor, w: Tensor | None) -> Tensor:
    return self.second(F.dropout(self.first(x, e, w).relu(), training=self.training), e, w)


def headed(self: Written, x: Tensor, e: Tensor, w: Tensor | None) -> Tensor:
    return self.head(F.relu(self.second(F.relu(self.first(x, e, w)), e, w)))


def joined(self: Written, x: Tensor, e: Tensor, w: Tensor | None) -> Tensor:
    first = F.relu(self.first(x, e, w))
    return self.head(torch.cat([first, self.second(first, e, w)], dim=-1))


def turned(self: Written, x: Tensor, e: Tensor, w: Tensor | None) -> Tensor:
    first = F.relu(self.first(x, e, w))
    return self.head(torch.cat([self.second(first, e, w), first], dim=-1))


def skipping(self: Written, x: Tensor, e: Tensor, w: Tensor | None) -> Tensor:
    first = F.relu(self.first(x, e, w))
    return self.head(first + self.second(first, e, w))


def smooth(self: Written, x: Tensor, e: Tensor, w: Tensor | None) -> Tensor:
    return self.second(F.elu(self.first(x, e, w)), e, w)


def half_weighted(self: Written, x: Tensor, e: Tensor, w: Tensor | None) -> Tensor:
    return self.second(F.relu(self.first(x, e, w)), e)


STACKS = {"plain": Written(plain), "headed": Written(headed, WIDTH), "joined": Written(joined, 2 * WIDTH)}
OTHERS = {
    "turned": Written(turned, 2 * WIDTH),
    "skipping": Written(skipping, WIDTH),
    "smooth": Written(smooth),
    "half weighted": Written(half_weighted),
}


@pytest.mark.parametrize("name", [*STACKS, *OTHERS])
def test_a_stack_is_known_by_what_it_does(name: str) -> None:
    _, data = random_problem(0)
    data.edge_weight = torch.full((data.num_edges,), 0.5)
    model = (STACKS | OTHERS)[name].eval()
    problem = Session.of(model, data).problem(0)
    assert isinstance(problem.oracle, GCNOracle) == (name in STACKS)
    mine, truth = (
        oracle.logits([(problem.edits, torch.arange(len(problem.edits))[:, None].numpy())])[0]
        for oracle in (problem.oracle, problem.oracle.general)
    )
    torch.testing.assert_close(mine, truth)


def test_switches_of_a_layer_matter() -> None:
    _, data = random_problem(0)
    for settings in ({"improved": True}, {"add_self_loops": False}, {"normalize": False}, {"aggr": "mean"}):
        model = GCN(data.num_features, WIDTH, 2, CLASSES, **settings).eval()
        assert not isinstance(Session.of(model, data).problem(0).oracle, GCNOracle), settings
