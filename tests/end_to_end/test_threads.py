"""Several threads explain one model at once: each gets what it would get alone, and the model is as it was."""

from __future__ import annotations

import copy
import itertools
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor, nn
from torch_geometric import nn as gnn

import butfor
from butfor.models import fingerprint
from butfor.testing import random_problem
from sampling import split

THREADS = 4


class Busy(nn.Module):
    """Everything that another thread could spoil: dropout, BatchNorm, a cache, attention that soft edges exchange."""

    def __init__(self, first: nn.Module) -> None:
        super().__init__()
        self.first, self.norm, self.second = first, gnn.BatchNorm(8), gnn.GATConv(8, 3)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = nn.functional.dropout(self.norm(self.first(x, edge_index)), 0.5, self.training)
        return self.second(x.relu(), edge_index)


LAYERS = {
    "cached GCN": lambda: gnn.GCNConv(4, 8, cached=True),
    "SAGE": lambda: gnn.SAGEConv(4, 8),
    "GAT": lambda: gnn.GATConv(4, 8),
}


METHODS = (butfor.Exact(), butfor.Greedy(width=2), butfor.PRBCD(epochs=2, samples=2))
CASES = [*itertools.product(LAYERS, METHODS[:2]), ("GAT", METHODS[2])]


@pytest.mark.parametrize(("layer", "method"), split(CASES, [("cached GCN", METHODS[0])]), ids=str)
def test_four_threads_give_what_one_gives(layer: str, method: butfor.Exact) -> None:
    torch.manual_seed(0)
    data = random_problem(1)[1]
    model = Busy(LAYERS[layer]()).train()
    model.norm.module.running_mean.uniform_(-1, 1)
    frozen = model.second.bias
    frozen.requires_grad_(False)
    print_before, modes = fingerprint(model), [module.training for module in model.modules()]
    budget = butfor.Budget(60)
    nodes = [node for node in range(data.num_nodes) for _ in range(2)]
    alone = {node: butfor.explain(copy.deepcopy(model), data, node, method, budget=budget) for node in set(nodes)}
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(lambda node: butfor.explain(model, data, node, method, budget=budget), nodes))
    assert found == [alone[node] for node in nodes]
    assert fingerprint(model) == print_before
    assert [module.training for module in model.modules()] == modes
    assert [name for name, value in model.named_parameters() if not value.requires_grad] == ["second.bias"]
    assert all(value.grad is None for value in model.parameters())
