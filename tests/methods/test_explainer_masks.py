"""Putting problems to PyG's explainers: what they are asked, and that nothing else is touched."""

from __future__ import annotations

import logging
from functools import cache

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric import nn as pyg
from torch_geometric.data import Data
from torch_geometric.explain import (
    AttentionExplainer,
    CaptumExplainer,
    ExplainerAlgorithm,
    GNNExplainer,
    HeteroExplanation,
)

import butfor
from butfor.errors import InputError, ModelError
from butfor.methods import RemoveSubgraph
from butfor.methods.explainer_masks import Question
from butfor.session import Session
from butfor.testing import random_problem
from explainers import Lively, learnt, mask
from sampling import slow
from typed_cases import CITES, IN, WRITES, build, library


@cache
def paper() -> tuple[nn.Module, Data]:
    data = butfor.datasets.tree_cycles(seed=0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = butfor.models.PaperGCN(10, 2).eval()
    return model, data


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


# Graphs of several types.


class Known(ExplainerAlgorithm):
    """Finds the edges of one relation important, those to high receivers most."""

    def __init__(self, relation: tuple[str, str, str]) -> None:
        super().__init__()
        self.relation = relation

    def supports(self) -> bool:
        return True

    def forward(self, model, x, edge_index, **_):
        explanation = HeteroExplanation()
        masks = {
            r: ends[1] + 1.0 if r == self.relation else torch.zeros(ends.size(1)) for r, ends in edge_index.items()
        }
        explanation.set_value_dict("edge_mask", masks)
        return explanation


@pytest.mark.parametrize("relation", [WRITES, slow((CITES,)), slow((IN,)), ("paper", "rev_writes", "author")])
def test_masks_of_several_types_come_back_to_their_edges(relation) -> None:
    data = library(0)
    data[CITES].edge_index = torch.cat([torch.tensor([[1], [1]]), data[CITES].edge_index], dim=1)  # a self-loop first
    session, asked = Session.of(build("SAGE", 0, data), data, node_type="paper"), set()
    for node in range(4):
        problem = session.problem(node)
        near = problem.edits.neighbourhood
        values = Question.of(problem).ask(Known(relation), session.predictor.model, 0)
        types = session.graph.types
        kind = np.searchsorted(types.edge_starts, near.columns, side="right") - 1
        # Among the papers of the neighbourhood: receivers are numbered there.
        receiver = near.nodes[near.edge_index[1]]
        order = np.searchsorted(
            near.nodes[session.graph.kinds(near.nodes) == types.node_types.index(relation[2])], receiver
        )
        expected = np.where(kind == types.relations.index(relation), order + 1.0, 0.0)
        # A relation without effect on the target is not even asked about.
        assert np.array_equal(values, expected if relation in Question.of(problem).relations else 0 * expected)
        asked.add(relation in Question.of(problem).relations)
    assert True in asked


@pytest.mark.slow
def test_captum_and_gnn_explainer_on_several_types() -> None:
    data = library(1)
    model = build("SAGE", 3, data)
    for explainer in (GNNExplainer(epochs=5), CaptumExplainer("InputXGradient")):
        problem = Session.of(model, data, node_type="paper").problem(0)
        first, second = (Question.of(problem).ask(explainer, model, 0) for _ in range(2))
        assert np.array_equal(first, second)
        assert first.any()
    memory: dict = {}
    for size in (1, 2):
        butfor.explain(model, data, [0, 1], RemoveSubgraph(size=size, epochs=3, memory=memory), node_type="paper")
    assert len(memory) == 2
