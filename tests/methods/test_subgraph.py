"""Subgraph explainers as a method: how many edges go, what is remembered of an explainer, how it is told."""

from __future__ import annotations

import copy
from dataclasses import fields, replace
from typing import get_args

import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.explain import (
    AttentionExplainer,
    CaptumExplainer,
    DummyExplainer,
    ExplainerAlgorithm,
    GNNExplainer,
    PGExplainer,
)

import butfor
from butfor.cli.hyperparameters import FLAGS
from butfor.errors import InputError
from butfor.methods import RemoveSubgraph
from butfor.paper.explainers import FinePGExplainer
from butfor.testing import check_plain_value, check_repeatable, check_respects_space, random_problem
from explainers import learnt
from sampling import slow


def test_as_many_edges_go_as_the_motif_has() -> None:
    model, data = random_problem(1)
    method = RemoveSubgraph(DummyExplainer(), size="ground-truth")
    with pytest.raises(InputError, match="ground-truth"):
        butfor.explain(model, data, 0, method)
    data.motif_size = 3
    results = butfor.explain(model, data, range(8), method)
    assert {result.size for result in results} == {None, 3}


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"size": 0}, "size is 0"),
        ({"size": "all"}, "size is 'all'"),
        ({"epochs": 0}, "epochs is 0"),
        ({"explainer": "gnn"}, "explainer is 'gnn'; give one of PyG's algorithms"),
        ({"memory": []}, r"memory is \[\]; give a dictionary"),
    ],
)
def test_senseless_settings_are_refused(settings: dict, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        RemoveSubgraph(**settings)


# What is remembered.


class Counting(DummyExplainer):
    """Random masks; counts how often it is asked, also its copies."""

    calls = 0

    def forward(self, *args, **kwargs):
        Counting.calls += 1
        return super().forward(*args, **kwargs)


def asked_for(model: nn.Module, data: Data, nodes=range(8), **settings) -> int:
    """How often the counting explainer is asked."""
    before = Counting.calls
    butfor.explain(model, data, nodes, **settings)
    return Counting.calls - before


def test_memory_is_shared_by_all_sizes() -> None:
    model, data = random_problem(0)
    explainer, memory = Counting(), {}
    methods = [RemoveSubgraph(explainer, size=size, memory=memory) for size in (1, 2, 3)]
    assert [asked_for(model, data, method=method) for method in methods] == [8, 0, 0]
    assert asked_for(model, data, method=replace(methods[0], memory=None)) == 8
    assert len(memory) == 8
    # What the edit space allows has no part in what an explainer says.
    space = butfor.EditSpace(protected=butfor.testing.links(data)[:2])
    assert asked_for(model, data, method=methods[0], space=space) == 0


@pytest.mark.slow
@pytest.mark.parametrize("explainer", [None, slow(GNNExplainer(epochs=2)), slow(CaptumExplainer("Saliency"))], ids=str)
def test_memory_changes_no_result(explainer: ExplainerAlgorithm | None) -> None:
    model, data = random_problem(1)
    memory: dict = {}
    for size in (1, 3, 2):
        for space in (None, butfor.EditSpace(protected=butfor.testing.links(data)[:2])):
            method = RemoveSubgraph(explainer, size=size, epochs=2, memory=memory)
            shared = butfor.explain(model, data, range(8), method, space=space)
            assert shared == butfor.explain(model, data, range(8), replace(method, memory=None), space=space)


@pytest.mark.parametrize(
    "check", [check_plain_value, check_repeatable, check_respects_space], ids=lambda check: check.__name__
)
def test_one_memory_for_many_graphs_and_models(check) -> None:
    check(RemoveSubgraph(size=2, epochs=2, memory=MEMORY))


MEMORY: dict = {}


def test_nothing_is_shared_that_may_differ() -> None:
    model, data = random_problem(0)
    explainer, memory = Counting(), {}
    method = RemoveSubgraph(explainer, size=1, memory=memory)

    def again(model=model, data=data, **settings) -> int:
        return asked_for(model, data, **{"nodes": [0], "method": method, **settings})

    assert again() == 1
    assert again() == 0
    assert again(model=copy.deepcopy(model)) == 1
    assert again(nodes=[1]) == 1
    assert again(seed=1) == 1
    assert again(method=replace(method, explainer=Counting())) == 1
    other = data.clone()
    other.x[0, 0] += 1
    assert again(data=other) == 1
    assert again(data=Data(x=data.x, edge_index=data.edge_index[:, 2:]), directed=True) == 1
    # In place.
    with torch.no_grad():
        next(model.parameters()).add_(0.1)
    assert again() == 1
    data.x[0, 0] += 2
    assert again() == 1
    explainer.coeffs = {"edge_size": 1.0}
    assert again() == 1
    explainer.strength = 3
    assert again() == 1
    assert again() == 0


def test_an_explainer_that_learns_more_is_asked_again() -> None:
    model, data, explainer = learnt()
    explainer = copy.deepcopy(explainer)
    memory: dict = {}
    method = RemoveSubgraph(explainer, size=1, memory=memory)
    for _ in range(2):
        butfor.explain(model, data, 0, method)
        assert len(memory) == 1
    with torch.no_grad():
        explainer.mlp[0].weight.mul_(2)
    butfor.explain(model, data, 0, method)
    assert len(memory) == 2


def test_memory_is_neither_printed_nor_compared_nor_a_flag() -> None:
    method = RemoveSubgraph(size=2, memory={})
    assert method == RemoveSubgraph(size=2)
    assert repr(method) == "RemoveSubgraph(explainer=None, size=2, epochs=100, lr=0.01)"
    flags = {item.name for item in fields(get_args(FLAGS)[0])}
    assert {"size", "epochs", "lr"} <= flags
    assert not {"memory", "explainer"} & flags


# How it is told.


def test_reprs_tell_explainers_apart() -> None:
    explainers = [CaptumExplainer(name) for name in CaptumExplainer.SUPPORTED_METHODS]
    explainers += [CaptumExplainer("IntegratedGradients", n_steps=9), AttentionExplainer(), AttentionExplainer("mean")]
    explainers += [PGExplainer(3), PGExplainer(4), learnt()[2], FinePGExplainer(), FinePGExplainer(seed=1)]
    told = [repr(RemoveSubgraph(explainer)) for explainer in explainers]
    assert len(set(told)) == len(told)
    assert "attribution_method_class='Saliency'" in told[1]
    # What was trained in another way is another method; as asked for and as trained it is the same one.
    explainer = learnt()[2]
    plain = PGExplainer(1)
    plain.mlp = copy.deepcopy(explainer.mlp)
    before = repr(RemoveSubgraph(plain))
    with torch.no_grad():
        plain.mlp[2].bias.add_(1)
    assert repr(RemoveSubgraph(plain)) != before
    assert repr(RemoveSubgraph(explainer)) == repr(RemoveSubgraph(FinePGExplainer(epochs=3)))
    # As it has always been.
    expected = "RemoveSubgraph(explainer=GNNExplainer(epochs=7, lr=0.02, is_hetero=False), size=2, epochs=100, lr=0.01)"
    assert repr(RemoveSubgraph(GNNExplainer(7, 0.02), size=2)) == expected
