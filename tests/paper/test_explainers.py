"""The explainers that the paper's method is compared with: PGExplainer, trained; and the rows of the table."""

from __future__ import annotations

import copy
import pickle
import sys
from functools import cache

import numpy as np
import pytest
import torch
from torch_geometric import nn as pyg
from torch_geometric.explain import ExplainerAlgorithm, PGExplainer

import butfor
from butfor.errors import InputError, ModelError
from butfor.methods import RemoveSubgraph
from butfor.paper.explainers import FinePGExplainer, explainers_for, trained_pg_explainer, with_trained_explainer
from butfor.testing import check_leaves_model_alone, check_repeatable, random_problem
from explainers import Lively, learnt, mask


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
@pytest.mark.slow
def test_compared_explainers_keep_the_contract(name: str, check) -> None:
    check(RemoveSubgraph(others()[name], size=2))


@cache
def others() -> dict[str, ExplainerAlgorithm]:
    """Explainers of the random models, which are all alike in shape."""
    model, data = random_problem(0)
    return {**explainers_for(model), "PGExplainer": trained_pg_explainer(model, data, epochs=2)}
