"""The user's model and data are as they were found: from several threads, and where the model writes into its input."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor, nn
from torch_geometric import nn as gnn
from torch_geometric.data import Data

import butfor
from butfor.models import fingerprint
from butfor.testing import random_problem

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


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize(
    "method",
    [butfor.Exact(), butfor.Greedy(width=2), pytest.param(butfor.PRBCD(epochs=2, samples=2), marks=pytest.mark.slow)],
    ids=str,
)
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


class Spoiler(nn.Module):
    """Writes into everything that it is given, and into what it returned before."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner, self.last = inner, None

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor, pos: Tensor) -> Tensor:
        out = self.inner(torch.cat([x, pos], 1), edge_index, edge_weight)
        x /= 1 + x.norm()
        pos.fill_(torch.nan)
        edge_index.fill_(0)
        edge_weight.zero_()
        if self.last is not None:
            self.last.fill_(7.0)
        self.last = out
        return out


class Tame(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor, pos: Tensor) -> Tensor:
        return self.inner(torch.cat([x, pos], 1), edge_index, edge_weight)


METHODS = [butfor.Exact(), butfor.Greedy(width=2), butfor.CFGNN(epochs=5)]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
@pytest.mark.parametrize("features", [False, True])
def test_a_model_may_spoil_what_it_is_given(method: butfor.Exact, features: bool) -> None:
    torch.manual_seed(0)
    _, data = random_problem(2)
    data.pos = torch.randn(data.num_nodes, 2)
    data.edge_weight = torch.ones(data.num_edges)
    inner = gnn.GraphConv(6, 3)
    before = data.clone()
    space = butfor.EditSpace(features=butfor.Features(values=[-3.0, 3.0])) if features else None
    settings = {"method": method, "space": space, "budget": butfor.Budget(200)}
    tame = butfor.explain(Tame(inner), data, range(4), **settings)
    spoilt = butfor.explain(Spoiler(inner), data, range(4), **settings)
    # It also writes over what gradients need, so the search goes without them: the answers may be others, not wrong.
    for key in before.keys():  # noqa: SIM118
        assert torch.equal(data[key], before[key]), key
    assert [result.before for result in tame] == [result.before for result in spoilt]
    if isinstance(method, butfor.Exact):
        assert [(result.status, result.edits) for result in tame] == [(r.status, r.edits) for r in spoilt]


def test_links_and_whole_graphs_may_be_spoilt_too() -> None:
    torch.manual_seed(0)
    _, data = random_problem(2)
    before = data.clone()
    layer = gnn.SAGEConv(4, 3)

    class Links(nn.Module):
        def forward(self, x: Tensor, edge_index: Tensor, edge_label_index: Tensor) -> Tensor:
            z = layer(x, edge_index)
            score = (z[edge_label_index[0]] * z[edge_label_index[1]]).sum(1)
            x.zero_()
            edge_label_index.zero_()
            return score

    class Whole(nn.Module):
        def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
            out = gnn.global_add_pool(layer(x, edge_index), batch)
            x.zero_()
            batch.zero_()
            return out

    link = butfor.explain(Links(), data, butfor.Pair(0, 1), goal=butfor.Goal(threshold=0.0))
    whole = butfor.explain(Whole(), Data(x=data.x, edge_index=data.edge_index))
    assert link.evaluations > 0
    assert whole.evaluations > 0
    assert torch.equal(data.x, before.x)
