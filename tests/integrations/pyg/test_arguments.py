"""What a model is given: all of it, never changed, and refused where nothing says what an edit does to it."""

from __future__ import annotations

import copy

import pytest
import torch
from torch_geometric.nn import GATConv

import butfor
from butfor.errors import InputError, ModelError
from pyg_explaining import (
    BATCH,
    INSIDE,
    LEVELS,
    MULTICLASS,
    PAIRS,
    PATH,
    Classifier,
    EveryLevel,
    Swallowing,
    algorithm_of,
    check,
    explainer_of,
    features,
    small_graph,
    without,
)


def test_an_index_may_be_written_in_many_ways() -> None:
    data = small_graph(1)
    explain = explainer_of(Classifier("GCN", data))
    mask = torch.arange(7) == 3
    given = [3, torch.tensor(3), torch.tensor([3]), torch.tensor([[3]]), torch.tensor([3, 3]), mask]
    found = [explain(data.x, data.edge_index, index=index) for index in given]
    for explanation in found:
        assert list(explanation.counterfactuals) == [3]
        assert explanation.counterfactual == found[0].counterfactual == explanation.counterfactuals[3]
        assert torch.equal(explanation.edge_mask, found[0].edge_mask)


@pytest.mark.parametrize(
    ("index", "words"),
    [
        (7, r"index is 7, but the model has outputs for 7 nodes \(0 to 6\)"),
        (-1, "index is -1"),
        (torch.ones(4, dtype=torch.bool), r"a mask of shape \(4,\)"),
        (torch.tensor([]), "index is empty"),
        (torch.zeros(7, dtype=torch.bool), "index is empty"),
    ],
)
def test_an_index_that_is_not_there_is_refused(index, words) -> None:
    data = small_graph(1)
    with pytest.raises(InputError, match=words):
        explainer_of(Classifier("GCN", data))(data.x, data.edge_index, index=index)


class Placed(torch.nn.Module):
    """Takes positions of nodes, attributes of edges, a power and a number as a tensor."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv = GATConv(6, 3, edge_dim=2)

    def forward(self, x, edge_index, pos, edge_attr=None, power=1, scale=None, more=None):
        return self.conv(torch.cat([x, pos], 1) ** power * scale, edge_index, edge_attr)


@pytest.mark.parametrize("wrap", [lambda model: model, Swallowing])
def test_all_that_a_model_takes_is_given_to_it(wrap) -> None:
    data = small_graph(1)
    model = Placed()
    attr = torch.randn(8, 2)
    more = {"pos": torch.randn(7, 2), "edge_attr": torch.cat([attr, attr]), "power": 3, "scale": torch.tensor(0.5)}
    explain = explainer_of(wrap(model))
    found = 0
    for node in range(7):
        explanation = explain(data.x, data.edge_index, index=node, more=None, **more)

        def label(kept, node=node):
            given = {**more, "edge_attr": more["edge_attr"][kept]}
            return int(model(data.x, data.edge_index[:, kept], **given)[node].argmax())

        check(explanation, label)
        found += explanation.counterfactual.found
    assert found


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("edge_time", torch.ones(16)),
        ("u", torch.ones(1, 3)),
        ("ptr", torch.ones(7)),
        ("parts", {"a": torch.ones(7)}),
        ("y", torch.ones(7)),
        ("train_mask", torch.ones(7, dtype=torch.bool)),
    ],
)
def test_what_cannot_follow_an_edit_is_refused(name, value) -> None:
    data = small_graph(1)
    model = Swallowing(Classifier("GCN", data))
    model.forward = lambda x, edge_index, **kwargs: model.inner(x, edge_index)
    with pytest.raises(InputError, match=f"the model is given {name}, .* nothing says what becomes of it"):
        explainer_of(model)(data.x, data.edge_index, index=0, **{name: value})


class Product(torch.nn.Module):
    def forward(self, x, matrix):
        return matrix @ x


def test_a_sparse_matrix_is_refused() -> None:
    data = small_graph(1)
    matrix = torch.eye(7).to_sparse()
    with pytest.raises(InputError, match="edge_index is a sparse matrix"):
        explainer_of(Product())(data.x, matrix, index=0)


def test_links_need_to_be_named() -> None:
    data = small_graph(2)
    with pytest.raises(InputError, match="pass them to the explainer as edge_label_index"):
        explainer_of(Classifier("GCN", data), level="edge")(data.x, data.edge_index, index=0)


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        (torch.zeros(5, dtype=torch.long), r"batch has the shape \(5,\)"),
        (torch.zeros(8, 1, dtype=torch.long), r"batch has the shape \(8, 1\)"),
        (torch.zeros(8), "batch holds numbers of type torch.float32"),
        (torch.arange(8) - 1, "batch holds -1"),
        ([0] * 8, "batch is a list"),
    ],
)
@pytest.mark.parametrize("level", LEVELS)
def test_a_batch_that_is_none_is_refused(level, batch, words) -> None:
    model = EveryLevel(MULTICLASS, level, "raw")
    model.forward = lambda x, edge_index, batch, edge_label_index: EveryLevel.forward(
        model, x, edge_index, BATCH, edge_label_index
    )
    with pytest.raises(InputError, match=words):
        explainer_of(model, level=level)(features(), INSIDE, index=0, batch=batch, edge_label_index=PAIRS)


class Writing(EveryLevel):
    """Writes into all that it is given."""

    def forward(self, x, edge_index, batch=None, edge_label_index=None, edge_weight=None, scale=None):
        x /= x.norm(dim=1, keepdim=True)
        out = super().forward(x, edge_index.clone(), batch.clone(), edge_label_index.clone())
        for given in (edge_weight, scale, batch, edge_label_index, edge_index):
            if given is not None:
                given *= 0
        return out


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("method", [butfor.Exact(), butfor.Greedy()], ids=["Exact", "Greedy"])
def test_what_is_given_is_never_changed(level, method) -> None:
    given = {
        "x": features(),
        "edge_index": INSIDE.clone(),
        "batch": BATCH.clone(),
        "edge_label_index": PAIRS.clone(),
        "edge_weight": torch.ones(INSIDE.size(1)),
        "scale": torch.tensor(2.0),
    }
    before = copy.deepcopy(given)
    model = Writing(MULTICLASS, level, "raw")
    explanation = algorithm_of(level=level, method=method)(model, target=None, **given)
    assert all(torch.equal(given[name], before[name]) for name in given)
    x = given["x"] / given["x"].norm(dim=1, keepdim=True)

    def label(number, gone=()):
        kept = INSIDE[:, without(INSIDE, gone)]
        return int(EveryLevel.forward(model, x, kept, BATCH, PAIRS)[number].argmax())

    found = 0
    for number, result in explanation.counterfactuals.items():
        assert result.before.label == label(number)
        if result.found:
            found += 1
            first = int((number > BATCH).sum()) if level == "graph" else 0
            gone = {(min(u, v) + first, max(u, v) + first) for u, v in result.removed_edges}
            assert result.after.label == label(number, gone)
    assert found


class Strange(Exception):
    pass


@pytest.mark.parametrize("error", [RuntimeError("bad\nshapes"), KeyError("a"), Strange(), AssertionError()])
def test_a_model_that_fails_is_named(error) -> None:
    model = EveryLevel(MULTICLASS, "node", "raw")

    def forward(x, edge_index):
        raise error

    model.forward = forward
    words = str(error).splitlines()[0] if str(error) else type(error).__name__
    with pytest.raises(
        ModelError, match=rf"EveryLevel fails as PyG calls it, model\(x, edge_index\): .*{words}"
    ) as raised:
        algorithm_of()(model, features(), PATH, target=None, index=0)
    assert raised.value.__cause__ is error


def test_a_model_that_does_not_take_what_it_is_given_is_named() -> None:
    model = EveryLevel(MULTICLASS, "node", "raw")
    words = r"fails as PyG calls it, model\(x, edge_index, time=\.\.\.\): .*unexpected keyword argument 'time'"
    with pytest.raises(ModelError, match=words):
        algorithm_of()(model, features(), PATH, target=None, index=0, time=3)


@pytest.mark.parametrize(
    ("out", "words"),
    [
        (None, "returns a NoneType"),
        ((torch.ones(8, 3), None), "returns a tuple"),
        ([torch.ones(8, 3)], "returns a list"),
        ({"out": torch.ones(8, 3)}, "returns a dict"),
        (torch.tensor(1.0), r"does not return a tensor with one row for each node: it returns a tensor of shape \(\)"),
        (torch.ones(0, 3), r"returns a tensor of shape \(0, 3\)"),
        (torch.ones(8, 3, dtype=torch.long), "returns a tensor of dtype torch.int64"),
        (torch.ones(2, 8, 3), r"returns a tensor of shape \(2, 8, 3\)"),
        (torch.ones(5, 3), r"returns a tensor of shape \(5, 3\)"),
        (torch.full((8, 3), torch.nan), "returns NaN"),
    ],
)
def test_a_model_that_returns_something_else_is_refused(out, words) -> None:
    model = EveryLevel(MULTICLASS, "node", "raw")
    model.forward = lambda x, edge_index: out
    with pytest.raises(ModelError, match=words):
        algorithm_of()(model, features(), PATH, target=None)
