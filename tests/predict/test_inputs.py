"""A model may write into what it is given and over what it returned: the graph and the answers stay as they are."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch_geometric import nn as gnn
from torch_geometric.data import Data

import butfor
from butfor.testing import random_problem
from method_list import ALL
from sampling import slow


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


PROVED = (butfor.Status.OPTIMAL, butfor.Status.IMPOSSIBLE)

# PyG's explainers need gradients, and this model writes over what these need.
METHODS = {name: method for name, method in ALL.items() if name != "remove-subgraph"}


@pytest.mark.parametrize(
    ("name", "features"),
    [
        (name, features) if number % 2 == features else slow((name, features))
        for number, name in enumerate(METHODS)
        for features in (False, True)
    ],
)
def test_a_model_may_spoil_what_it_is_given(name: str, features: bool) -> None:
    method = METHODS[name]
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
        # Nothing shows how far it sees, so the whole graph is searched, and the same budget proves less.
        proofs = [(one, other) for one, other in zip(tame, spoilt, strict=True) if other.status in PROVED]
        assert proofs
        assert [(one.status, one.size) for one, _ in proofs] == [(other.status, other.size) for _, other in proofs]


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
