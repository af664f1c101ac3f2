"""The user's model is as it was found: after searches, after failures, and with caches and hooks of its owner."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from torch import Tensor, nn
from torch_geometric import nn as pyg

import butfor
from butfor.errors import ModelError
from butfor.testing import random_problem
from gnn_models import CLASSES, WIDTH, Then
from gnns import LOCAL, Kind, in_use, scores_without, small
from model_state import changed, state

if TYPE_CHECKING:
    from torch_geometric.data import Data


class Broken(Exception):
    """What a model of these tests raises."""


class Tripwire(nn.Module):
    """Fails from some run on. It counts outside of the model, which must not change."""

    left = 0
    raises: type[BaseException] = Broken

    def forward(self, x: Tensor) -> Tensor:
        Tripwire.left -= 1
        if Tripwire.left < 0:
            raise Tripwire.raises("the wire was touched")
        return x


class Lived(Then):
    """Caches, statistics, attention and dropout, some of it in training, some frozen, with hooks of its owner."""

    def __init__(self) -> None:
        super().__init__(
            pyg.GCNConv(WIDTH, WIDTH, cached=True),
            pyg.BatchNorm(WIDTH),
            nn.Dropout(),
            pyg.GATConv(WIDTH, WIDTH),
            pyg.SGConv(WIDTH, CLASSES, K=2, cached=True),
            Tripwire(),
        )


def lived() -> tuple[nn.Module, Data]:
    kind, data = Kind(Lived), small(False)
    Tripwire.left = 10
    model = in_use(kind, data)
    cached, norm, _, attention, simple, _ = model.layers
    assert cached._cached_edge_index is not None
    assert simple._cached_x is not None
    norm.eval()
    attention.att_src.requires_grad_(False)
    cached.bias.grad = torch.ones_like(cached.bias)
    attention.register_forward_hook(lambda *_: None)
    attention.register_message_forward_hook(lambda *_: None)
    model.register_forward_pre_hook(lambda *_: None)
    return model, data


@pytest.mark.slow
@pytest.mark.parametrize(
    "method",
    [butfor.Exact(), butfor.Greedy(width=2), butfor.CFGNN(epochs=3), butfor.RemoveSubgraph(size=2, epochs=3)],
    ids=lambda method: type(method).__name__,
)
def test_the_model_is_as_it_was_wherever_it_fails(method) -> None:
    model, data = lived()
    before = state(model)
    Tripwire.left, Tripwire.raises = 1000, Broken
    results = butfor.explain(model, data, [0, 3], method)
    runs = 1000 - Tripwire.left
    assert len(results) == 2
    assert not changed(before, state(model))
    assert runs >= 5
    middle = runs // 2
    places = [(number, Broken) for number in sorted({0, 1, 2, 3, middle, runs - 2, runs - 1})]
    places += [(number, error) for number in (2, middle) for error in (RuntimeError, KeyboardInterrupt)]
    for number, error in places:
        Tripwire.left, Tripwire.raises = number, error
        with pytest.raises((error, butfor.errors.ModelError)):
            butfor.explain(model, data, [0, 3], method)
        assert Tripwire.left < 0
        assert not changed(before, state(model)), (number, error)


def test_a_change_of_the_model_would_be_noticed() -> None:
    """The test of the tests above: each of these is a change."""
    changes = {
        "weight": lambda model: model.layers[0].lin.weight.data.add_(1e-6),
        "frozen": lambda model: model.layers[0].bias.requires_grad_(False),
        "gradient": lambda model: setattr(model.layers[0].bias, "grad", None),
        "training": lambda model: model.eval(),
        "statistics": lambda model: model.layers[1].module.running_mean.add_(1e-6),
        "hook": lambda model: model.layers[3].register_propagate_forward_pre_hook(lambda *_: None),
        "cache": lambda model: setattr(model.layers[4], "_cached_x", None),
        "cached": lambda model: setattr(model.layers[4], "cached", False),
        "random": lambda model: torch.rand(1),
    }
    for name, change in changes.items():
        model, _ = lived()
        before = state(model)
        assert not changed(before, state(model))
        change(model)
        assert changed(before, state(model)), f"a change of the {name} goes unnoticed"


@pytest.mark.parametrize(("name", "cache"), [("GCN, cached", "_cached_edge_index"), ("SGConv, cached", "_cached_x")])
def test_caches_neither_mislead_nor_are_lost(name: str, cache: str) -> None:
    kind, data = LOCAL[name], small(False)
    model = in_use(kind, data)
    layer = model.layers[0]
    kept = getattr(layer, cache)
    assert kept is not None
    results = butfor.explain(model, data, range(data.num_nodes))
    for result in results:
        if result.found:
            scores = scores_without(kind, data, result.removed_edges, directed=False)[result.target]
            assert int(scores.argmax()) == result.after.label
    assert any(result.found for result in results)
    assert getattr(layer, cache) is kept
    assert layer.cached is True


class Failing(torch.nn.Module):
    """Breaks after a few runs."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, _ = random_problem(0)
        self.runs = 0

    def forward(self, x, edge_index):
        self.runs += 1
        if self.runs > 2:
            raise RuntimeError("out of order")
        return self.inner(x, edge_index)


def test_a_model_that_fails_is_left_as_it_was() -> None:
    model = Failing().train()
    with pytest.raises(ModelError, match=r"Failing fails on this graph.*RuntimeError: out of order"):
        butfor.explain(model, random_problem(0)[1], 0)
    assert all(module.training for module in model.modules())
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_compiled_models_run_as_they_were_written() -> None:
    model, data = random_problem(4)
    compiled = torch.compile(model)
    assert butfor.explain(compiled, data, 0) == butfor.explain(model, data, 0)

    class Partly(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.compile(model)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.inner(x, edge_index)

    mine, plain = butfor.explain(Partly(), data, 0), butfor.explain(model, data, 0)
    assert (mine.status, mine.size) == (plain.status, plain.size)
