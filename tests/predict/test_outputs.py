"""What a model may return, and what it is told where it returns something else."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor, nn
from torch_geometric import nn as gnn
from torch_geometric.nn import GCN

import butfor
from butfor.errors import ModelError
from butfor.problem.goal import Goal
from butfor.problem.target import Pair
from butfor.result.counterfactual import Counterfactual
from butfor.testing import predict_without, random_problem
from sampling import sampled
from task_cases import AloneGraphModel, ForwardLinkModel, GraphModel, LinkModel, NodeModel
from votes import path


class Around(nn.Module):
    """A layer, and something done to its scores."""

    def __init__(self, change, outputs: int = 3) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.change = gnn.SAGEConv(4, outputs), change

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.change(self.layer(x, edge_index))


def masked(scores: Tensor) -> Tensor:
    """Top 1 only: all other classes cannot be."""
    return scores.masked_fill(scores < scores.amax(1, keepdim=True), -torch.inf)


SCALES = {
    "masked": masked,
    "one class cannot be": lambda scores: torch.cat([scores, torch.full((len(scores), 1), -torch.inf)], 1),
    "beyond float32's sums": lambda scores: scores.sign() * 3e38 + scores,
    "huge in float64": lambda scores: scores.double() * 1e300,
    "tiny": lambda scores: scores * 1e-30,
}


METHODS = (butfor.Exact(), butfor.Exact(all_smallest=True), butfor.Greedy(width=1))


@pytest.mark.parametrize(("kind", "method"), sampled(itertools.product(SCALES, METHODS), every=2), ids=str)
def test_scores_without_end_are_searched_like_others(kind: str, method: butfor.Exact) -> None:
    data = random_problem(4)[1]
    model = Around(SCALES[kind]).eval()
    found = 0
    for node in range(data.num_nodes):
        result = butfor.explain(model, data, node, method, budget=butfor.Budget(300))
        assert Counterfactual.from_dict(result.to_dict()) == result
        if result.found:
            found += 1
            after = predict_without(model, data, result.removed_edges)[node]
            assert int(after.argmax()) == result.after.label != result.before.label
    assert found


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_floating_types(dtype: torch.dtype) -> None:
    data = random_problem(4)[1]
    data.x = data.x.to(dtype)
    model = Around(lambda scores: scores).eval().to(dtype)
    for method in (butfor.CFGNN(epochs=5), butfor.Greedy(width=2), butfor.Exact()):
        results = butfor.explain(model, data, range(data.num_nodes), method)
        for result in filter(lambda one: one.found, results):
            assert int(predict_without(model, data, result.removed_edges)[result.target].argmax()) == result.after.label
    assert any(result.found for result in results)


REFUSED = {
    "classes": (lambda scores: scores.argmax(1), "dtype torch.int64.*Leave out its argmax"),
    "one-hot integers": (lambda scores: (scores > 0).long(), "dtype torch.int64"),
    "truth values": (lambda scores: scores > 0, "dtype torch.bool"),
    "complex numbers": (lambda scores: scores.to(torch.complex64), "complex64.*complex numbers"),
    "nothing": (lambda scores: scores[:, :0], "empty tensor"),
    "a tuple": (lambda scores: (scores, scores), "returns a tuple.*return the scores alone"),
    "several sigmoids": (torch.sigmoid, "seems to say of each of 3 labels"),
    "several sigmoids in a view": (lambda scores: scores.sigmoid().view(-1, 3), "seems to say of each of 3 labels"),
    "only impossible classes": (lambda scores: scores - torch.inf, "NaN or infinite"),
    "an error": (lambda scores: {}[0], "KeyError: 0"),
    "an exit": (lambda scores: exit(3), "SystemExit: 3"),
    "a function": (lambda scores: len, "returns a builtin_function_or_method"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_no_score_is_refused_with_a_sentence(kind: str) -> None:
    change, words = REFUSED[kind]
    with pytest.raises(ModelError, match=words) as caught:
        butfor.explain(Around(change), random_problem(4)[1], 0)
    assert "\n" not in str(caught.value)


def test_several_true_labels_are_no_classes() -> None:
    data = random_problem(4)[1]
    data.y = torch.tensor([[1, 1, 0]] * data.num_nodes)
    with pytest.raises(ModelError, match="probabilities=False"):
        butfor.explain(Around(lambda scores: scores), data, 0)
    assert butfor.explain(Around(lambda scores: scores), data, 0, probabilities=False).evaluations
    data.y = torch.tensor([[0, 1, 0]] * data.num_nodes)
    assert butfor.explain(Around(lambda scores: scores), data, 0).evaluations


def test_one_label_of_several_can_be_asked_about() -> None:
    data = random_problem(4)[1]
    result = butfor.explain(
        Around(lambda scores: torch.sigmoid(scores)[:, 1]), data, 0, goal=butfor.Goal(threshold=0.5)
    )
    assert result.before.value is not None


def test_claimed_probabilities_are_checked() -> None:
    data = random_problem(4)[1]
    assert butfor.explain(Around(lambda scores: scores.softmax(1)), data, 0, probabilities=True).evaluations
    with pytest.raises(ModelError, match="does not add up to 1"):
        butfor.explain(Around(lambda scores: scores), data, 0, probabilities=True)


class Width(torch.nn.Module):
    def __init__(self, out) -> None:
        super().__init__()
        self.out = out

    def forward(self, x, edge_index):
        return self.out(x)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Width(lambda x: x.sum()), r"shape \(\)"),
        (Width(lambda x: x * float("nan")), "NaN"),
    ],
)
def test_scores_of_another_shape_and_no_numbers_are_refused(model: nn.Module, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        butfor.explain(model, random_problem(0)[1], 0)


SMALL = path(torch.ones(4, 3))


@pytest.mark.parametrize(
    ("model", "target", "number"),
    [
        (NodeModel(), 0, "each of the 4 nodes"),
        (NodeModel(flat=True), 0, "each of the 4 nodes"),
        (GraphModel(out=1), None, "each of the 1 graphs"),
        (LinkModel(), Pair(0, 1), "each of the 1 links"),
        (ForwardLinkModel(flat=False), Pair(0, 1), "each of the 1 links"),
    ],
)
def test_one_number_without_a_threshold_is_refused(model: torch.nn.Module, target: object, number: str) -> None:
    message = rf"{type(model).__name__} returns one number for {number}.*Goal\(threshold=0\.5\)"
    with pytest.raises(ModelError, match=message):
        butfor.explain(model.eval(), SMALL, target)


@pytest.mark.parametrize(
    ("model", "target"),
    [(GCN(3, 4, 1, 2), 0), (GraphModel(out=2), None), (AloneGraphModel(out=2), None), (LinkModel(out=2), Pair(0, 1))],
)
def test_a_threshold_for_a_classifier_is_refused(model: torch.nn.Module, target: object) -> None:
    with pytest.raises(ModelError, match=f"{type(model).__name__} returns 2 scores .* a threshold is for a model"):
        butfor.explain(model.eval(), SMALL, target, goal=Goal(threshold=0.0))
