"""PyG's explainers as methods: what they are asked, what is remembered of them, and that nothing else is touched."""

from __future__ import annotations

import copy
import logging
import pickle
import sys
from dataclasses import fields, replace
from functools import cache
from typing import get_args

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric import nn as pyg
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
from butfor.errors import InputError, ModelError
from butfor.methods import RemoveSubgraph
from butfor.methods.explainer_masks import Question
from butfor.paper.explainers import FinePGExplainer, explainers_for, trained_pg_explainer, with_trained_explainer
from butfor.session import Session
from butfor.testing import (
    check_leaves_model_alone,
    check_plain_value,
    check_repeatable,
    check_respects_space,
    random_problem,
)


class Counting(DummyExplainer):
    """Random masks; counts how often it is asked, also its copies."""

    calls = 0

    def forward(self, *args, **kwargs):
        Counting.calls += 1
        return super().forward(*args, **kwargs)


class Lively(nn.Module):
    """Two layers of a kind, with ReLU as a module."""

    def __init__(self, layer=pyg.GCNConv, first: nn.Module | None = None) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.first = first or nn.Identity()
            self.one, self.relu, self.two = layer(4, 8), nn.ReLU(), layer(8, 3)

    def forward(self, x, edge_index):
        return self.two(self.relu(self.one(self.first(x), edge_index)), edge_index)


def asked_for(model: nn.Module, data: Data, nodes=range(8), **settings) -> int:
    """How often the counting explainer is asked."""
    before = Counting.calls
    butfor.explain(model, data, nodes, **settings)
    return Counting.calls - before


def mask(explainer: ExplainerAlgorithm, model: nn.Module, data: Data, node: int = 0, goal=None) -> np.ndarray:
    """The explainer's mask by column of the target's neighbourhood."""
    problem = Session.of(model, data, goal=goal).builder.build((node,))
    return Question.of(problem).ask(explainer, model, 0)


@cache
def paper() -> tuple[nn.Module, Data]:
    data = butfor.datasets.tree_cycles(seed=0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = butfor.models.PaperGCN(10, 2).eval()
    return model, data


@cache
def learnt() -> tuple[nn.Module, Data, FinePGExplainer]:
    model, data = random_problem(0, nodes=10)
    return model, data, trained_pg_explainer(model, data, epochs=3)


# What is remembered


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


@pytest.mark.parametrize("explainer", [None, GNNExplainer(epochs=2), CaptumExplainer("Saliency")], ids=str)
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


# What is asked


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


@pytest.mark.parametrize("name", CaptumExplainer.SUPPORTED_METHODS)
def test_captum(name: str) -> None:
    quick = {"IntegratedGradients": {"n_steps": 5}, "ShapleyValueSampling": {"n_samples": 1}}
    explainer = CaptumExplainer(name, **quick.get(name, {}))
    model, data = Lively(), random_problem(0)[1]
    results = butfor.explain(model, data, range(8), RemoveSubgraph(explainer, size=2))
    assert any(result.found for result in results)
    assert not hasattr(explainer, "attribution_method_instance")
    # Before the first layer no gradient is needed, but by Captum's hooks.
    assert mask(explainer, Lively(first=nn.ReLU()), data).any()


def test_functions_have_no_hooks() -> None:
    """Why Deconvolution and GuidedBackprop are no rows of the table: on the paper's model they are the gradient."""
    model, data = paper()
    plain = mask(CaptumExplainer("InputXGradient"), model, data, 600)
    for name in ("Deconvolution", "GuidedBackprop"):
        assert np.array_equal(mask(CaptumExplainer(name), model, data, 600), plain)
    assert np.array_equal(mask(CaptumExplainer("Saliency"), model, data, 600), abs(plain))
    live, data = Lively(), random_problem(0)[1]
    plain = mask(CaptumExplainer("InputXGradient"), live, data)
    assert not np.allclose(mask(CaptumExplainer("GuidedBackprop"), live, data), plain)


class Balance(nn.Module):
    """One number for each node: the sum of its neighbours' features."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = pyg.SimpleConv(aggr="sum")

    def forward(self, x, edge_index):
        return self.layer(x, edge_index)[:, 0]


@pytest.mark.parametrize(("threshold", "edge"), [(2.0, (0, 3)), (0.0, (0, 1))])
def test_edges_that_speak_against_the_answer_stay(threshold: float, edge: tuple[int, int]) -> None:
    """Node 0 hears 5, 1 and -4: below 2 it is because of -4, above 0 because of 5."""
    data = Data(x=torch.tensor([[0.0], [5.0], [1.0], [-4.0]]), edge_index=torch.tensor([[1, 2, 3], [0, 0, 0]]))
    for name in ("InputXGradient", "IntegratedGradients"):
        method = RemoveSubgraph(CaptumExplainer(name), size=1)
        result = butfor.explain(Balance(), data, 0, method, goal=butfor.Goal(threshold=threshold))
        assert result.removed_edges == (edge[::-1],)


class Choosy(nn.Module):
    """Takes attributes of edges, but not in the first place behind the edges."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = pyg.GATv2Conv(4, 3, edge_dim=2)

    def forward(self, x, edge_index, edge_weight=None, edge_attr=None):
        assert edge_weight is None
        assert edge_attr is not None
        return self.layer(x, edge_index, edge_attr)


def test_arguments_find_their_places() -> None:
    data = random_problem(0)[1]
    data.edge_attr = torch.arange(2 * data.num_edges).reshape(-1, 2) / data.num_edges
    for explainer in (CaptumExplainer("Saliency"), AttentionExplainer(), GNNExplainer(epochs=2)):
        assert mask(explainer, Choosy(), data).any()


@pytest.mark.parametrize("layer", [pyg.GCNConv, pyg.GATConv], ids=lambda layer: layer.__name__)
def test_masks_stay_with_their_edges_beside_self_loops(layer) -> None:
    """These layers add self-loops where there are none: a graph that has them all is the same to them."""
    model, data = Lively(layer), random_problem(2)[1]
    loops = torch.arange(8).repeat(2, 1)
    everything = torch.cat([loops, data.edge_index], dim=1)
    order = torch.randperm(everything.size(1), generator=torch.Generator().manual_seed(0))
    looped = Data(x=data.x, edge_index=everything[:, order])
    explainers = [CaptumExplainer("InputXGradient")] + [AttentionExplainer()] * (layer is pyg.GATConv)
    for explainer in explainers:
        for number in (1, 2):
            method = RemoveSubgraph(explainer, size=number)
            before = butfor.explain(model, data, range(8), method)
            after = butfor.explain(model, looped, range(8), method)
            assert [result.removed_edges for result in after] == [result.removed_edges for result in before]


def test_attention() -> None:
    data = random_problem(0)[1]
    for layer in (pyg.GATConv, pyg.GATv2Conv, pyg.TransformerConv):
        results = butfor.explain(Lively(layer), data, range(8), RemoveSubgraph(AttentionExplainer(), size=2))
        assert any(result.found for result in results)
    with pytest.raises(ModelError, match=r"AttentionExplainer cannot explain Lively: .*attention"):
        butfor.explain(Lively(), data, 0, RemoveSubgraph(AttentionExplainer(), size=2))


@pytest.mark.parametrize("layer", [pyg.GATConv, pyg.GATv2Conv, pyg.TransformerConv], ids=lambda one: one.__name__)
def test_attention_says_nothing_where_features_are_equal(layer) -> None:
    """Why there is no row of it on the paper's datasets."""
    data = paper()[1]
    assert bool((data.x == data.x[0]).all())
    with torch.no_grad():
        scores = Lively(layer)(data.x[:, :4], data.edge_index)
    assert torch.allclose(scores, scores[:1].expand_as(scores), atol=1e-5)


class Link(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Lively()

    def forward(self, x, edge_index, edge_label_index):
        z = self.inner(x, edge_index)
        return z[edge_label_index[0]] - z[edge_label_index[1]]


def test_refusals_say_why_and_leave_logging_alone(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, data, explainer = learnt()
    root = logging.getLogger()
    # As in a program that has not set up logging.
    monkeypatch.setattr(root, "handlers", [])
    with pytest.raises(
        InputError, match=r"PGExplainer cannot be asked .* edge-level prediction: .*node-level or graph"
    ):
        butfor.explain(Link(), data, butfor.Pair(0, 3), RemoveSubgraph(explainer, size=1))
    butfor.explain(model, data, 0, RemoveSubgraph(explainer, size=1))
    assert (root.handlers, root.filters) == ([], [])
    assert capfd.readouterr() == ("", "")


# PGExplainer


@pytest.mark.parametrize("explainer", [PGExplainer(3), FinePGExplainer()], ids=lambda one: type(one).__name__)
def test_pg_explainer_must_be_trained(explainer: PGExplainer) -> None:
    model, data = random_problem(0)
    with pytest.raises(InputError, match=r"not yet fully trained .*trained_pg_explainer\(model, data\)"):
        butfor.explain(model, data, 0, RemoveSubgraph(explainer, size=1, memory={}))


def test_pg_explainer_ranks_edges() -> None:
    model, data, explainer = learnt()
    results = butfor.explain(model, data, range(10), RemoveSubgraph(explainer, size=4))
    assert any(result.found for result in results)
    # So large a logit is 1 in single precision.
    sure = copy.deepcopy(explainer)
    with torch.no_grad():
        sure.mlp[2].bias.fill_(25.0)
    values = mask(sure, model, data)
    assert len(set(values)) > 2
    other = Lively()
    other.two = pyg.GCNConv(8, 5)
    with pytest.raises(ModelError, match="FinePGExplainer cannot explain Lively: "):
        butfor.explain(other, data, 0, RemoveSubgraph(explainer, size=1))


def test_pg_explainer_is_trained_by_seed_and_touches_nothing() -> None:
    model, data = random_problem(0, nodes=10)
    model.train()
    next(model.parameters()).requires_grad_(False)
    marks = [{name: str(value) for name, value in vars(module).items()} for module in model.modules()]
    trainable = [parameter.requires_grad for parameter in model.parameters()]
    state = torch.random.get_rng_state()
    first, second, other = (trained_pg_explainer(model, data, seed, epochs=2, nodes=4) for seed in (0, 0, 1))
    assert torch.equal(torch.random.get_rng_state(), state)
    assert [{name: str(value) for name, value in vars(module).items()} for module in model.modules()] == marks
    assert [parameter.requires_grad for parameter in model.parameters()] == trainable
    assert all(parameter.grad is None for parameter in model.parameters())
    same = [torch.equal(one, two) for one, two in zip(first.parameters(), second.parameters(), strict=True)]
    assert all(same)
    assert not torch.equal(first.mlp[0].weight, other.mlp[0].weight)
    revived = pickle.loads(pickle.dumps(first))
    assert np.array_equal(mask(revived, model, data), mask(first, model, data))


def test_pg_explainer_learns_from_training_nodes() -> None:
    model, data = random_problem(0, nodes=10)
    data.test_mask = torch.arange(10) > 0
    alone = trained_pg_explainer(model, data, epochs=1)
    data.train_mask = torch.arange(10) < 1
    data.test_mask = torch.zeros(10, dtype=torch.bool)
    assert torch.equal(trained_pg_explainer(model, data, epochs=1).mlp[0].weight, alone.mlp[0].weight)
    data.train_mask = torch.zeros(10, dtype=torch.bool)
    with pytest.raises(InputError, match="cannot learn from 0 nodes"):
        trained_pg_explainer(model, data)


# The rows of the table


def test_rows() -> None:
    model, data = random_problem(0)
    labels = ["PGExplainer", "Integrated gradients", "Saliency", "Input × gradient"]
    state = torch.random.get_rng_state()
    assert list(explainers_for(model)) == labels
    assert list(explainers_for(Lively(pyg.GATConv))) == [*labels, "Attention"]
    assert torch.equal(torch.random.get_rng_state(), state)
    found = explainers_for(model, data, seed=3)
    assert found["PGExplainer"].is_trained
    assert found["PGExplainer"].seed == 3
    for explainer in found.values():
        butfor.explain(model, data, [0, 1], RemoveSubgraph(explainer, size=1))


def test_captum_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "captum.attr", None)
    with pytest.raises(InputError, match=r"pip install 'butfor\[reproduce\]'"):
        explainers_for(random_problem(0)[0])


def test_what_is_trained_later() -> None:
    model, data = random_problem(0)
    explainer = FinePGExplainer(epochs=2, nodes=5)
    # As it comes out of another process.
    methods = [pickle.loads(pickle.dumps(RemoveSubgraph(explainer, size=size))) for size in (1, 2)]
    ready = [with_trained_explainer(method, model, data) for method in methods]
    assert ready[0].explainer is ready[1].explainer
    assert [repr(method) for method in ready] == [repr(method) for method in methods]
    assert with_trained_explainer(ready[0], model, data) is ready[0]
    assert with_trained_explainer(butfor.Exact(), model, data) == butfor.Exact()
    direct = trained_pg_explainer(model, data, epochs=2, nodes=5)
    assert torch.equal(direct.mlp[0].weight, ready[0].explainer.mlp[0].weight)
    with torch.no_grad():
        next(model.parameters()).add_(0.1)
    assert with_trained_explainer(methods[0], model, data).explainer is not ready[0].explainer


@pytest.mark.parametrize("name", ["PGExplainer", "Saliency", "Input × gradient"])
@pytest.mark.parametrize("check", [check_leaves_model_alone, check_repeatable], ids=lambda check: check.__name__)
def test_contract(name: str, check) -> None:
    check(RemoveSubgraph(others()[name], size=2))


@cache
def others() -> dict[str, ExplainerAlgorithm]:
    """Explainers of the random models, which are all alike in shape."""
    model, data = random_problem(0)
    return {**explainers_for(model), "PGExplainer": trained_pg_explainer(model, data, epochs=2)}
