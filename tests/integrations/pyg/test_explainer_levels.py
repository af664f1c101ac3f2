"""Links, nodes and graphs: what PyG passes at every level of a task, and what becomes of it."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
import torch
from torch_geometric.nn import GCNConv, GraphNorm, SAGEConv

import butfor
from butfor.errors import ModelError
from pyg_explaining import (
    BATCH,
    BINARY,
    GRAPHS,
    INSIDE,
    LEVELS,
    MULTICLASS,
    OUTPUTS,
    PAIRS,
    PATH,
    Classifier,
    EveryLevel,
    GraphClassifier,
    Swallowing,
    check,
    every_level,
    explainer_of,
    features,
    labels_of,
    links_of,
    small_graph,
    without,
)
from sampling import sampled

if TYPE_CHECKING:
    from torch_geometric.data import Data


# All targets, one, and two.
INDICES = [None, [2], [1, 2]]


class LinkPredictor(torch.nn.Module):
    def __init__(self, data: Data, pairs: torch.Tensor, end: str = "raw", classes: int = 1) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.conv, self.head, self.end = GCNConv(4, 6), torch.nn.Linear(6, classes), "raw"
        self.shift = 0.0
        with torch.no_grad():
            self.shift = self(data.x, data.edge_index, pairs).mean(0)
        self.end = end

    def forward(self, x, edge_index, edge_label_index):
        z = self.conv(x, edge_index)
        out = self.head(z[edge_label_index[0]] * z[edge_label_index[1]]) - self.shift
        if self.end == "probs":
            return out.sigmoid() if out.size(1) == 1 else out.softmax(-1)
        return out.squeeze(-1)


@pytest.mark.parametrize(
    ("mode", "returns", "classes"),
    [(BINARY, "raw", 1), (BINARY, "probs", 1), (BINARY, "raw", 2), (BINARY, "probs", 2), (MULTICLASS, "probs", 3)],
)
def test_links_are_explained_one_by_one(mode, returns, classes) -> None:
    data = small_graph(2)
    pairs = torch.tensor([[0, 1, 6, 5], [4, 3, 2, 5]])
    model = LinkPredictor(data, pairs, returns, classes)
    explain = explainer_of(model, mode, "edge", returns)

    def label_of(number):
        def label(kept):
            out = model(data.x, data.edge_index[:, kept], pairs)[number]
            return int(out.argmax()) if classes > 1 else int(out > (0.5 if returns == "probs" else 0.0))

        return label

    found = 0
    for number in range(4):
        explanation = explain(data.x, data.edge_index, index=number, edge_label_index=pairs)
        assert explanation.validate()
        check(explanation, label_of(number))
        assert explanation.counterfactual.target == tuple(pairs[:, number].tolist())
        found += explanation.counterfactual.found
    assert found
    every = explain(data.x, data.edge_index, edge_label_index=pairs)
    assert list(every.counterfactuals) == [0, 1, 2, 3]


def test_a_model_that_answers_for_something_else_than_the_pairs_is_refused() -> None:
    data = small_graph(2)
    model = Swallowing(Classifier("GCN", data))
    model.forward = lambda x, edge_index, edge_label_index: model.inner(x, edge_index)
    with pytest.raises(ModelError, match="returns 7 rows for 1 pairs of nodes"):
        explainer_of(model, level="edge")(data.x, data.edge_index, edge_label_index=torch.tensor([[0], [1]]))


class Unbatched(torch.nn.Module):
    def __init__(self, inner: GraphClassifier) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x, edge_index):
        return self.inner(x, edge_index)


@pytest.mark.parametrize("way", ["plain", "batch", "None", "unbatched", "swallowed"])
def test_one_graph_may_be_passed_in_any_way(way) -> None:
    model = GraphClassifier().centred(GRAPHS)
    found = 0
    for data in GRAPHS:
        asked = {"unbatched": Unbatched(model), "swallowed": Swallowing(model)}.get(way, model)
        more = {"batch": {"batch": torch.zeros(6, dtype=torch.long)}, "None": {"batch": None}}
        more["swallowed"] = more["batch"]
        explain = explainer_of(asked, level="graph")
        explanation = explain(data.x, data.edge_index, index=0 if way == "plain" else None, **more.get(way, {}))
        assert explanation.validate()
        check(explanation, lambda kept, data=data: int(model(data.x, data.edge_index[:, kept]).argmax()))
        assert explanation.counterfactual.target == 0
        assert explanation.counterfactual.size == butfor.explain(model, data).size
        found += explanation.counterfactual.found
    assert found


# By turns in `make test`: every output at every level, with one of the three kinds of index.
ASKED = [
    (*output, level, index)
    for (number, output), (row, level) in itertools.product(enumerate(OUTPUTS), enumerate(LEVELS))
    for index in INDICES[(number + row) % 3 :] + INDICES[: (number + row) % 3]
]


@pytest.mark.parametrize(("mode", "returns", "level", "index"), sampled(ASKED, every=3))
def test_all_that_pyg_passes_at_every_level(mode, returns, level, index) -> None:
    index = None if index is None else index[0] if len(index) == 1 else torch.tensor(index)
    model, explain = every_level(mode, level, returns)
    x, more = features(), {"batch": BATCH, "edge_label_index": PAIRS}
    explanation = explain(x, INSIDE, index=index, **more)
    assert explanation.validate(raise_on_error=True)
    before = labels_of(mode, returns, model(x, INSIDE, **more))
    numbers = range(len(before)) if index is None else torch.as_tensor(index).view(-1).tolist()
    assert list(explanation.counterfactuals) == list(numbers)
    links = links_of(INSIDE)

    def flips(number, gone):
        kept = INSIDE[:, without(INSIDE, gone)]
        return bool(labels_of(mode, returns, model(x, kept, **more))[number] != before[number])

    union = set()
    for number, result in explanation.counterfactuals.items():
        assert result.before.label == before[number]
        # One graph of a batch counts its nodes from 0.
        first = int((number > BATCH).sum()) if level == "graph" else 0
        gone = {(min(u, v) + first, max(u, v) + first) for u, v in result.removed_edges}
        assert flips(number, gone) == result.found
        singles = [one for one in links if flips(number, {one})]
        assert (result.size == 1) == bool(singles)
        union |= gone
    assert set(links_of(INSIDE[:, explanation.edge_mask > 0])) == union
    if index is None:
        assert any(result.found for result in explanation.counterfactuals.values())


@pytest.mark.parametrize("level", ["node", "edge"])
@pytest.mark.parametrize(("mode", "returns"), OUTPUTS)
def test_where_a_batch_is_ignored_its_edges_may_lead_anywhere(mode, returns, level) -> None:
    _, explain = every_level(mode, level, returns)
    given = explain(features(), PATH, index=2, batch=BATCH, edge_label_index=PAIRS)
    alone = explain(features(), PATH, index=2, **({"edge_label_index": PAIRS} if level == "edge" else {}))
    assert given.counterfactual.edits == alone.counterfactual.edits
    assert torch.equal(given.edge_mask, alone.edge_mask)


def test_a_batch_of_nodes_is_no_hindrance_where_the_model_does_not_read_it() -> None:
    data = small_graph(1)
    model = Swallowing(Classifier("GCN", data))
    model.forward = lambda x, edge_index, batch=None: model.inner(x, edge_index)
    explanation = explainer_of(model)(data.x, data.edge_index, index=3, batch=torch.arange(7) // 4)
    assert explanation.counterfactual.size == butfor.explain(model.inner, data, 3).size


class NormedByGraph(torch.nn.Module):
    """A node classifier that reads the batch: nodes are normalised with those of the same graph."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.conv1, self.norm, self.conv2 = SAGEConv(3, 8), GraphNorm(8), SAGEConv(8, 3)

    def forward(self, x, edge_index, batch):
        return self.conv2(self.norm(self.conv1(x, edge_index), batch).relu(), edge_index)


def test_a_node_classifier_may_read_the_batch() -> None:
    model, x = NormedByGraph(), features()
    explain = explainer_of(model)
    found = 0
    for node in range(8):
        explanation = explain(x, INSIDE, index=node, batch=BATCH)
        check(explanation, lambda kept, node=node: int(model(x, INSIDE[:, kept], BATCH)[node].argmax()))
        found += explanation.counterfactual.found
    assert found


def test_arguments_that_are_ignored_may_be_required() -> None:
    model = EveryLevel(MULTICLASS, "node", "raw")
    plain = explainer_of(model)(features(), PATH, index=2)
    model.forward = lambda x, edge_index, batch, edge_label_index: EveryLevel.forward(model, x, edge_index)
    given = explainer_of(model)(features(), PATH, index=2, batch=BATCH, edge_label_index=PAIRS)
    assert given.counterfactual.edits == plain.counterfactual.edits
