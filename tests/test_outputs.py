"""What a model may return, what it may be, and what it is told where it is neither."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from torch import Tensor, nn
from torch_geometric import nn as gnn

import butfor
from butfor.errors import InputError, ModelError
from butfor.result.counterfactual import Counterfactual
from butfor.testing import predict_without, random_problem

if TYPE_CHECKING:
    from torch_geometric.data import Data


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


@pytest.mark.parametrize("kind", SCALES)
@pytest.mark.parametrize("method", [butfor.Exact(), butfor.Exact(all_smallest=True), butfor.Greedy(width=1)], ids=str)
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


class OfData(nn.Module):
    def forward(self, data: Data) -> Tensor:
        return data.x


class NoInit(nn.Module):
    def __init__(self) -> None:
        self.number = 3

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return x


def a_function(x: Tensor, edge_index: Tensor) -> Tensor:
    return x


ODD = [
    (a_function, "model is the function a_function; give a torch.nn.Module"),
    ("GCN", "model is a str"),
    (None, "model is a NoneType"),
    (gnn.GCN, "model is a type|model is the"),
    (OfData(), r"OfData.forward takes \(data\)"),
    (NoInit(), "NoInit"),
    (gnn.GCN(4, 8, 2, 3).to("meta"), "meta device"),
]


@pytest.mark.parametrize(("model", "words"), ODD, ids=[str(i) for i in range(len(ODD))])
def test_what_is_no_model(model: object, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        butfor.explain(model, random_problem(4)[1], 0)


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


def named_problem() -> tuple[nn.Module, Data]:
    model, data = random_problem(4)
    data.class_names = ["cat", "dog", "bird"]
    return model, data


def test_a_wanted_class_by_name() -> None:
    model, data = named_problem()
    for number, name in enumerate(data.class_names):
        by_number = butfor.explain(model, data, 0, goal=butfor.Goal(wanted=number))
        assert butfor.explain(model, data, 0, goal=butfor.Goal(wanted=name)) == by_number
    with pytest.raises(InputError, match=r"'cow' is no class of this graph \(cat, dog, bird\)"):
        butfor.explain(model, data, 0, goal=butfor.Goal(wanted="cow"))


def test_a_target_that_is_as_wanted_gets_a_result_and_stops_no_other() -> None:
    model, data = named_problem()
    before = predict_without(model, data, ()).argmax(1).tolist()
    wanted = before[0]
    results = butfor.explain(model, data, range(data.num_nodes), goal=butfor.Goal(wanted=wanted))
    assert [result.status.value == "reached" for result in results] == [label == wanted for label in before]
    reached = results[0]
    assert (reached.found, reached.size, reached.cost, reached.edits) == (False, None, 0.0, ())
    assert str(reached).endswith("That is what is wanted: nothing has to change.")
    assert Counterfactual.from_dict(reached.to_dict()) == reached
    # Predicted so, but not as likely as it must be: not reached yet.
    sure = butfor.explain(model, data, 0, goal=butfor.Goal(wanted=wanted, probability=0.999))
    assert sure.status.value != "reached"


FRACTIONS = [
    lambda: butfor.Budget(evaluations=1.5),
    lambda: butfor.Budget(evaluations=True),
    lambda: butfor.Budget(seconds="1"),
    lambda: butfor.Exact(k=1.5),
    lambda: butfor.Exact(threads=0.5),
    lambda: butfor.Exact(all_smallest=1),
    lambda: butfor.Greedy(width=2.0),
    lambda: butfor.CFGNN(epochs=10.0),
    lambda: butfor.CFGNN(lr="fast"),
    lambda: butfor.RandomPerturbation(samples=1e3),
    lambda: butfor.RemoveSubgraph(size=1.5),
    lambda: butfor.RemoveSubgraph(size="all"),
    lambda: butfor.PRBCD(block_size=2.5),
    lambda: butfor.EditSpace(relations=["transfers"]),
    lambda: butfor.EditSpace(relations="transfers"),
    lambda: butfor.EditSpace(protected=[(1.5, 2)]),
    lambda: butfor.Within(hops=1.5),
    lambda: butfor.Features(steps=2.5, between=(0, 1)),
    lambda: butfor.explain(*random_problem(4), torch.tensor(1.5)),
    lambda: butfor.explain(*random_problem(4), torch.tensor([1.5])),
    lambda: butfor.explain(*random_problem(4), 1.0),
    lambda: butfor.explain(*random_problem(4), butfor.Pair(1.5, 2)),
    lambda: butfor.explain(*random_problem(4), 0, seed=1.5),
    lambda: butfor.explain(*random_problem(4), 0, space=butfor.EditSpace(max_edits=1.5)),
    lambda: butfor.explain(*random_problem(4), 0, goal=butfor.Goal(wanted=1.5)),
    lambda: butfor.explain(*random_problem(4), 0, goal=butfor.Goal(wanted=True)),
]


@pytest.mark.parametrize("made", FRACTIONS, ids=[str(i) for i in range(len(FRACTIONS))])
def test_fractions_are_refused_not_cut(made) -> None:
    with pytest.raises((InputError, ModelError)) as caught:
        made()
    assert "\n" not in str(caught.value)


def test_numbers_of_numpy_are_numbers() -> None:
    import numpy as np

    assert butfor.Budget(np.int64(5)).evaluations == 5
    assert butfor.Greedy(np.int32(5)).width == 5
    assert butfor.explain(*random_problem(4), np.int64(1)).target == 1
