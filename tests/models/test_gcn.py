"""The paper's GCN: what it computes."""

from __future__ import annotations

import math

import pytest
import torch

from butfor.datasets import tree_cycles
from butfor.errors import ModelError
from butfor.models import PaperGCN


def test_forward_is_the_paper_s_formula(model: PaperGCN) -> None:
    data = tree_cycles(0)
    n = data.num_nodes
    adjacency = torch.eye(n)
    adjacency[data.edge_index[0], data.edge_index[1]] = 1
    scale = adjacency.sum(dim=1).rsqrt()
    a = scale[:, None] * adjacency * scale
    state = model.state_dict()
    x = torch.rand(n, 10, generator=torch.Generator().manual_seed(1))
    h1 = (a @ x @ state["gc1.lin.weight"].T + state["gc1.bias"]).relu()
    h2 = (a @ h1 @ state["gc2.lin.weight"].T + state["gc2.bias"]).relu()
    h3 = a @ h2 @ state["gc3.lin.weight"].T + state["gc3.bias"]
    expected = torch.cat([h1, h2, h3], dim=1) @ state["lin.weight"].T + state["lin.bias"]
    logits = model(x, data.edge_index)
    torch.testing.assert_close(logits, expected)
    assert not torch.allclose(logits.exp().sum(dim=1), torch.ones(n))  # logits, not log-probabilities
    torch.testing.assert_close(model(x, data.edge_index, torch.ones(data.num_edges)), logits)
    assert not torch.allclose(model(x, data.edge_index, torch.full((data.num_edges,), 0.5)), logits)


def test_start_is_that_of_the_published_code() -> None:
    model = PaperGCN(10, 4, hidden=25)
    drawn = torch.cat([p.flatten() for layer in (model.gc1, model.gc2, model.gc3) for p in layer.parameters()])
    assert drawn.abs().max() <= 0.2
    assert drawn.std().item() == pytest.approx(0.2 / math.sqrt(3), rel=0.1)
    assert bool((model.gc1.bias != 0).all())


def test_wrong_sizes_are_refused(model: PaperGCN) -> None:
    with pytest.raises(ModelError, match="takes 10 features per node, but x has 7"):
        model(torch.ones(3, 7), torch.zeros(2, 0, dtype=torch.long))
    with pytest.raises(ModelError, match="num_classes is 0"):
        PaperGCN(10, 0)
