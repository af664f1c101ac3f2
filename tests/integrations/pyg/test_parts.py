"""The graphs of a batch: each is explained alone, and must not depend on the others."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Batch

import butfor
from butfor.errors import InputError, ModelError
from pyg_explaining import (
    BATCH,
    GRAPHS,
    INSIDE,
    MULTICLASS,
    PAIRS,
    PATH,
    EveryLevel,
    GraphClassifier,
    every_level,
    explainer_of,
    features,
)


def test_graphs_of_a_batch_are_explained_alone() -> None:
    model = GraphClassifier().centred(GRAPHS)
    batch = Batch.from_data_list(GRAPHS)
    explain = explainer_of(model, level="graph")
    intact = model(batch.x, batch.edge_index, batch.batch).argmax(1)
    for number, data in enumerate(GRAPHS):
        explanation = explain(batch.x, batch.edge_index, index=number, batch=batch.batch)
        assert explanation.validate()
        result, alone = explanation.counterfactual, butfor.explain(model, data)
        assert result.target == number
        assert (result.edits, result.status, result.before) == (alone.edits, alone.status, alone.before)
        kept = explanation.get_complement_subgraph()
        after = model(kept.x, kept.edge_index, batch.batch).argmax(1)
        assert [i for i in range(4) if after[i] != intact[i]] == ([number] if result.found else [])
    every = explain(batch.x, batch.edge_index, batch=batch.batch)
    assert list(every.counterfactuals) == [0, 1, 2, 3]
    with pytest.raises(InputError, match="index is 4, but the model has outputs for 4 graphs"):
        explain(batch.x, batch.edge_index, index=4, batch=batch.batch)


class Compared(GraphClassifier):
    """The graphs of a batch are normalised together."""

    def forward(self, x, edge_index, batch=None):
        out = super().forward(x, edge_index, batch)
        return out - out.mean(0)


def test_a_graph_that_depends_on_the_others_is_refused() -> None:
    batch = Batch.from_data_list(GRAPHS)
    with pytest.raises(ModelError, match="arguments that belong to the whole batch"):
        explainer_of(Compared(), level="graph")(batch.x, batch.edge_index, index=1, batch=batch.batch)


@pytest.mark.parametrize("index", [None, 2])
def test_edges_from_one_graph_of_a_batch_to_another_are_refused(index) -> None:
    _, explain = every_level(MULTICLASS, "graph", "raw")
    words = r"edges of the batch cross graphs: the first is \(2, 3\), from graph 0 to graph 1"
    with pytest.raises(InputError, match=words):
        explain(features(), PATH, index=index, batch=BATCH, edge_label_index=PAIRS)
    turned = torch.cat([INSIDE, torch.tensor([[7, 0], [3, 5]])], dim=1)
    with pytest.raises(InputError, match=r"the first is \(7, 3\), from graph 2 to graph 1"):
        explain(features(), turned, index=index, batch=BATCH)


def test_a_batch_and_its_outputs_must_fit() -> None:
    _, explain = every_level(MULTICLASS, "graph", "raw")
    gap = torch.tensor([0, 0, 0, 2, 2, 3, 3, 3])
    with pytest.raises(InputError, match="graph 1 of the batch has no nodes"):
        explain(features(), INSIDE, index=1, batch=gap)
    assert explain(features(), INSIDE, index=2, batch=gap).counterfactual.target == 2
    model = EveryLevel(MULTICLASS, "node", "raw")
    with pytest.raises(ModelError, match="returns 8 rows for the 3 graphs of the batch"):
        explainer_of(model, level="graph")(features(), INSIDE, index=1, batch=BATCH)
