"""butfor as an algorithm of PyG's own Explainer: nodes, settings, and what PyG does with the explanation."""

from __future__ import annotations

import copy
import itertools
import logging
import pickle

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.explain import Explainer, Explanation
from torch_geometric.nn import GCNConv

import butfor
from butfor.errors import InputError, ModelError
from butfor.integrations.pyg import CounterfactualExplainer
from butfor.models import fingerprint
from method_list import ALL
from pyg_explaining import BINARY, ENDS, KINDS, MULTICLASS, Classifier, check, explainer_of, links_of, small_graph
from sampling import slow


@pytest.mark.parametrize(
    ("kind", "returns"),
    [
        (kind, returns) if (row + column) % 2 == 0 else slow((kind, returns))
        for (row, kind), (column, returns) in itertools.product(enumerate(KINDS), enumerate(ENDS))
    ],
)
def test_nodes_are_explained_by_the_fewest_edges(kind, returns) -> None:
    data = small_graph(1)
    model = Classifier(kind, data, returns)
    explain = explainer_of(model, returns=returns)
    sizes = []
    for node in range(0, 7, 3):
        explanation = explain(data.x, data.edge_index, index=node)
        assert isinstance(explanation, Explanation)
        assert explanation.validate(raise_on_error=True)
        assert explanation.available_explanations == ["edge_mask"]

        def label(kept, node=node):
            return int(model(data.x, data.edge_index[:, kept])[node].argmax())

        check(explanation, label)
        result = explanation.counterfactual
        probabilities = {"raw": None, "probs": True, "log_probs": None}[returns]
        assert result == butfor.explain(model, data, node, probabilities=probabilities)
        assert result.target == node
        assert result.before.label == explanation.target[node]
        if result.found:
            sizes.append(result.size)
            kept = explanation.get_complement_subgraph()
            assert kept.num_nodes == 7
            assert model(kept.x, kept.edge_index)[node].argmax() == result.after.label
            gone = explanation.get_explanation_subgraph()
            assert gone.num_edges == 2 * result.size
            assert links_of(gone.edge_index) == sorted(result.removed_edges)
    assert sizes


def test_what_the_model_returns_is_what_was_said() -> None:
    # Raw scores that happen to look like probabilities.
    data = small_graph(1)
    model = Classifier("GCN", data, "probs")
    out = model(data.x, data.edge_index)[3].detach()
    for returns, probabilities in (("raw", out.softmax(-1)), ("probs", out)):
        result = explainer_of(model, returns=returns)(data.x, data.edge_index, index=3).counterfactual
        assert result.before.probability == pytest.approx(float(probabilities.max()), abs=1e-5)


def test_the_snippet_of_the_manual() -> None:
    data = small_graph(2, nodes=14, links=18)
    model = Classifier("GCN", data, "log_probs")
    explainer = Explainer(
        model,
        algorithm=CounterfactualExplainer(method=butfor.Greedy()),
        explanation_type="model",
        edge_mask_type="object",
        model_config={"mode": "multiclass_classification", "task_level": "node", "return_type": "log_probs"},
    )
    explanation = explainer(data.x, data.edge_index, index=10)
    assert explanation.counterfactual.found
    assert explanation.edge_mask.sum() == 2 * explanation.counterfactual.size
    kept = explanation.get_complement_subgraph()
    assert model(kept.x, kept.edge_index)[10].argmax() == explanation.counterfactual.after.label


def test_several_indices_have_a_result_each_and_one_mask() -> None:
    data = small_graph(1)
    explain = explainer_of(Classifier("GCN", data))
    several = explain(data.x, data.edge_index, index=torch.tensor([6, 0, 3]))
    assert list(several.counterfactuals) == [6, 0, 3]
    assert "counterfactual" not in several
    alone = [explain(data.x, data.edge_index, index=node) for node in (6, 0, 3)]
    assert [one.counterfactual for one in alone] == list(several.counterfactuals.values())
    assert torch.equal(several.edge_mask, torch.stack([one.edge_mask for one in alone]).amax(0))


def test_no_index_means_all() -> None:
    # As many results as there are edges, which PyG must not take for something that edges have.
    data = Data(x=torch.randn(6, 4), edge_index=torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]]))
    explanation = explainer_of(Classifier("GCN", data))(data.x, data.edge_index)
    assert list(explanation.counterfactuals) == list(range(6)) == list(range(data.num_edges))
    assert explanation.get_complement_subgraph().counterfactuals == explanation.counterfactuals


def test_where_there_is_nothing_the_mask_is_empty_and_the_status_says_why() -> None:
    data = small_graph(1)
    data.x = torch.cat([data.x, torch.randn(1, 4)])  # a node without edges
    model = Classifier("GCN", data)
    nothing = explainer_of(model)(data.x, data.edge_index, index=7)
    assert nothing.counterfactual.status is butfor.Status.IMPOSSIBLE
    assert not nothing.edge_mask.any()
    assert nothing.validate()
    assert nothing.get_explanation_subgraph().num_edges == 0
    assert nothing.get_complement_subgraph().num_edges == data.num_edges
    far = explainer_of(model, goal=butfor.Goal(least=1e6), budget=butfor.Budget(evaluations=3))
    assert far(data.x, data.edge_index, index=0).counterfactual.status is butfor.Status.UNKNOWN


@pytest.mark.parametrize("training", [True, False])
def test_the_model_is_left_as_it_was(training) -> None:
    data = small_graph(1)
    data.x.requires_grad_()
    model = Classifier("GAT", data).train(training)
    model.shift.requires_grad_(False)
    before = fingerprint(model)
    explainer_of(model, method=butfor.Greedy())(data.x, data.edge_index, index=3)
    assert fingerprint(model) == before
    assert all(module.training == training for module in model.modules() if module is not model.end)
    assert [name for name, value in model.named_parameters() if not value.requires_grad] == ["shift"]
    assert all(value.grad is None for value in (data.x, *model.parameters()))
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert not any(layer.explain for layer in model.modules() if hasattr(layer, "explain"))


@pytest.mark.parametrize("method", ALL.values(), ids=ALL.keys())
def test_any_method_and_settings_go_through(method) -> None:
    data = small_graph(1)
    model = Classifier("GCN", data)
    before = int(model(data.x, data.edge_index)[3].argmax())
    space = butfor.EditSpace(protected=links_of(data.edge_index)[:2])
    goal, budget = butfor.Goal(wanted=(before + 1) % 3), butfor.Budget(evaluations=200)
    settings = {"goal": goal, "space": space, "budget": budget, "directed": True, "seed": 4}
    explanation = explainer_of(model, method=method, **settings)(data.x, data.edge_index, index=3)
    assert explanation.counterfactual == butfor.explain(model, data, 3, method, **settings)
    assert explanation.edge_mask.sum() == (explanation.counterfactual.size or 0)


def test_copies_of_an_edge_go_together_and_loops_stay() -> None:
    data = small_graph(1)
    first = data.edge_index[:, [0, 8]]
    loops = torch.tensor([[0, 4], [0, 4]])
    edge_index = torch.cat([data.edge_index, first, loops], dim=1)
    weight = torch.rand(8)
    weight = torch.cat([weight, weight, weight[[0, 0]], torch.ones(2)])
    model = Classifier("GCN", data)
    explain = explainer_of(model)
    found = 0
    for node in range(7):
        explanation = explain(data.x, edge_index, index=node, edge_weight=weight)

        def label(kept, node=node):
            return int(model(data.x, edge_index[:, kept], weight[kept])[node].argmax())

        check(explanation, label, edge_index)
        kept = explanation.get_complement_subgraph()
        assert len(kept.edge_weight) == kept.num_edges
        assert not explanation.edge_mask[-2:].any()
        found += explanation.counterfactual.found
    assert found


def test_in_a_directed_graph_only_one_direction_goes() -> None:
    data = small_graph(1)
    edge_index = torch.cat([data.edge_index[:, :8], data.edge_index[:, 8:10]], dim=1)
    model = Classifier("GraphSAGE", data)
    for node in range(7):
        explanation = explainer_of(model)(data.x, edge_index, index=node)
        gone = explanation.edge_index[:, explanation.edge_mask > 0].T.tolist()
        assert sorted(map(tuple, gone)) == sorted(explanation.counterfactual.removed_edges)


class OneNumber(torch.nn.Module):
    """One number for each node; what ``end`` says of it."""

    def __init__(self, data: Data, end: str = "raw", flat: bool = False, columns: int = 1) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.conv, self.end, self.flat = GCNConv(4, columns), end, flat
        self.shift = 0.0
        with torch.no_grad():
            self.shift = float(self.conv(data.x, data.edge_index).median())

    def forward(self, x, edge_index):
        out = self.conv(x, edge_index) - self.shift
        out = out.sigmoid() if self.end == "probs" else out
        return out.view(-1) if self.flat else out


@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize(
    ("mode", "returns", "given", "line"),
    [
        (BINARY, "raw", None, 0.0),
        (BINARY, "probs", None, 0.5),
        (BINARY, "probs", 0.6, 0.6),
        ("regression", "raw", 0.3, 0.3),
    ],
)
def test_one_number_crosses_its_threshold(mode, returns, given, line, flat) -> None:
    data = small_graph(3)
    model = OneNumber(data, returns, flat)
    explain = explainer_of(model, mode, returns=returns, goal=butfor.Goal(threshold=given))
    found = 0
    for node in range(0, 7, 2):
        explanation = explain(data.x, data.edge_index, index=node)
        assert explanation.validate()

        def label(kept, node=node):
            return bool(model(data.x, data.edge_index[:, kept])[node] > line)

        check(explanation, label)
        assert explanation.counterfactual.before.value == pytest.approx(float(explanation.prediction[node]), abs=1e-5)
        found += explanation.counterfactual.found
    assert found


def test_several_yes_or_no_answers_at_once_are_refused() -> None:
    data = small_graph(3)
    with pytest.raises(InputError, match="returns 4 numbers for each node, which is no binary classification"):
        explainer_of(OneNumber(data, columns=4), BINARY)(data.x, data.edge_index, index=0)


def test_a_model_that_draws_random_numbers_is_refused() -> None:
    data = small_graph(1)
    model = Classifier("GCN", data)
    model.end = torch.nn.Dropout()
    model.end.forward = lambda x: torch.nn.functional.dropout(x)
    with pytest.raises(ModelError, match="it draws random numbers"):
        explainer_of(model)(data.x, data.edge_index, index=torch.arange(7))


@pytest.mark.parametrize(
    ("config", "model_config", "settings", "words"),
    [
        ({"explanation_type": "phenomenon"}, {}, {}, "only explains what the model predicts"),
        (
            {"edge_mask_type": None, "node_mask_type": "attributes"},
            {},
            {"space": butfor.EditSpace(features=butfor.Features())},
            "use edge_mask_type='object'",
        ),
        ({"node_mask_type": "attributes"}, {}, {}, "changes no features"),
        ({"node_mask_type": "object"}, {}, {}, "changes no features"),
        (
            {"node_mask_type": "common_attributes"},
            {},
            {},
            "changes no features (got node_mask_type='common_attributes')",
        ),
        (
            {"edge_mask_type": None, "node_mask_type": "object"},
            {},
            {"space": butfor.EditSpace(delete=False, add=butfor.Within(2))},
            "changes no features",
        ),
        ({}, {"mode": "regression"}, {}, "goal=Goal(threshold=...)"),
        ({}, {}, {"goal": butfor.Goal(threshold=0.5)}, "leave Goal(threshold=0.5) out"),
    ],
)
def test_settings_that_make_no_sense_are_refused(config, model_config, settings, words, caplog) -> None:
    chosen = {"explanation_type": "model", "edge_mask_type": "object", **config}
    with (
        caplog.at_level(logging.ERROR),
        pytest.raises(ValueError, match="does not support the given explanation settings"),
    ):
        Explainer(
            torch.nn.Identity(),
            algorithm=CounterfactualExplainer(**settings),
            model_config={"mode": MULTICLASS, "task_level": "node", "return_type": "raw", **model_config},
            **chosen,
        )
    (record,) = caplog.records
    assert record.getMessage().startswith("'CounterfactualExplainer' ")
    assert words in record.getMessage()


@pytest.mark.parametrize("kind", ["attributes", "common_attributes"])
def test_edge_masks_of_attributes_are_refused_by_pyg_itself(kind) -> None:
    with pytest.raises(ValueError, match="'edge_mask_type' needs be None or of type 'object'"):
        Explainer(
            torch.nn.Identity(),
            algorithm=CounterfactualExplainer(),
            explanation_type="model",
            edge_mask_type=kind,
            model_config={"mode": MULTICLASS, "task_level": "node", "return_type": "raw"},
        )


def test_what_pyg_does_with_explanations(tmp_path) -> None:
    data = small_graph(1)
    model = Classifier("GCN", data)
    explanation = explainer_of(model, threshold=("hard", 0.5))(data.x, data.edge_index, index=3)
    plain = explainer_of(model)(data.x, data.edge_index, index=3)
    assert torch.equal(explanation.edge_mask, plain.edge_mask)
    assert explanation.counterfactual == plain.counterfactual
    for other in (
        copy.copy(plain),
        copy.deepcopy(plain),
        plain.clone(),
        plain.to("cpu"),
        pickle.loads(pickle.dumps(plain)),
    ):
        assert other.counterfactual == plain.counterfactual
        assert other.validate()
    pytest.importorskip("networkx")
    pytest.importorskip("matplotlib").use("agg")
    plain.visualize_graph(str(tmp_path / "graph.png"), backend="networkx")
    assert (tmp_path / "graph.png").stat().st_size
