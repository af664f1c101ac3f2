"""What the masks of an explanation show: removed edges, changed features, and nothing that is added."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.explain import Explainer

import butfor
from butfor.integrations.pyg import CounterfactualExplainer
from pyg_explaining import (
    BATCH,
    GRAPHS,
    INSIDE,
    LEVELS,
    MULTICLASS,
    PAIRS,
    Classifier,
    EveryLevel,
    GraphClassifier,
    every_level,
    explainer_of,
    features,
    small_graph,
)
from sampling import sampled, slow


def test_changed_features_are_in_the_node_mask() -> None:
    data = small_graph(1)
    x = (data.x > 0).float()
    data.x = x.clone()
    model = Classifier("GCN", data)
    space = butfor.EditSpace(features=butfor.Features(within=1), delete=False)
    found = 0
    for node in range(7):
        explanation = explainer_of(model, nodes="attributes", space=space)(data.x, data.edge_index, index=node)
        assert explanation.validate()
        assert explanation.node_mask.shape == x.shape
        assert not explanation.edge_mask.any()
        result = explanation.counterfactual
        if not result.found:
            assert not explanation.node_mask.any()
            continue
        found += 1
        assert explanation.node_mask.sum() == result.size
        flipped = (x - explanation.node_mask).abs()
        assert model(flipped, data.edge_index)[node].argmax() == result.after.label
        assert explanation.get_explanation_subgraph().num_nodes == len({change.node for change in result.changes})
    assert found
    assert torch.equal(data.x, x)
    plain = explainer_of(model, space=space)(data.x, data.edge_index, index=0)
    assert "node_mask" not in plain


def test_features_of_one_graph_of_a_batch_are_marked_at_its_nodes() -> None:
    graphs = [Data(x=(data.x > 0).float(), edge_index=data.edge_index) for data in GRAPHS]
    model = GraphClassifier().centred(graphs)
    batch = Batch.from_data_list(graphs)
    space = butfor.EditSpace(features=butfor.Features(), delete=False)
    explain = explainer_of(model, level="graph", nodes="attributes", space=space)
    explanation = explain(batch.x, batch.edge_index, index=2, batch=batch.batch)
    assert explanation.counterfactual.found
    assert explanation.node_mask.nonzero()[:, 0].unique().tolist() == sorted(
        {12 + change.node for change in explanation.counterfactual.changes}
    )
    flipped = (batch.x - explanation.node_mask).abs()
    after = model(flipped, batch.edge_index, batch.batch).argmax(1)
    assert after[2] == explanation.counterfactual.after.label


def test_added_edges_are_in_the_result_only() -> None:
    data = small_graph(1)
    space = butfor.EditSpace(add=butfor.Within(2), delete=False)
    explain = explainer_of(Classifier("GCN", data), space=space)
    found = [explain(data.x, data.edge_index, index=node) for node in range(4)]
    assert any(one.counterfactual.added_edges for one in found)
    assert not any(one.edge_mask.any() for one in found)


NODE_MASKS = ("attributes", "object", "common_attributes")


# In `make test` every kind of mask at every level, with and without a mask of edges by turns.
@pytest.mark.parametrize(
    ("nodes", "level", "edges"),
    [
        case if number % 2 == (case[2] is None) else slow(case)
        for number, pair in enumerate(itertools.product(NODE_MASKS, LEVELS))
        for case in ((*pair, "object"), (*pair, None))
    ],
)
def test_every_kind_of_node_mask_marks_the_changed_features(nodes, edges, level) -> None:
    model = EveryLevel(MULTICLASS, level, "raw")
    space = butfor.EditSpace(features=butfor.Features(values=[-3.0, 3.0]), delete=False)
    explain = Explainer(
        model,
        algorithm=CounterfactualExplainer(space=space),
        explanation_type="model",
        node_mask_type=nodes,
        edge_mask_type=edges,
        model_config={"mode": MULTICLASS, "task_level": level, "return_type": "raw"},
    )
    explanation = explain(features(), INSIDE, batch=BATCH, edge_label_index=PAIRS)
    assert explanation.validate(raise_on_error=True)
    if edges is None:
        assert "edge_mask" not in explanation
    else:
        assert explanation.edge_mask.shape == (INSIDE.size(1),)
        assert not explanation.edge_mask.any()
    changed = torch.zeros(8, 3)
    for number, result in explanation.counterfactuals.items():
        first = int((number > BATCH).sum()) if level == "graph" else 0
        for change in result.changes:
            changed[first + change.node, change.feature] = 1
    assert changed.any()
    expected = {
        "attributes": changed,
        "object": changed.amax(1, keepdim=True),
        "common_attributes": changed.amax(0, keepdim=True),
    }
    assert torch.equal(explanation.node_mask, expected[nodes])


def test_pyg_s_subgraphs_follow_a_mask_of_nodes() -> None:
    space = butfor.EditSpace(features=butfor.Features(values=[-3.0, 3.0]), delete=False)
    _, explain = every_level(MULTICLASS, "node", "raw", nodes="object", space=space)
    explanation = explain(features(), INSIDE, index=2)
    changed = {change.node for change in explanation.counterfactual.changes}
    assert changed
    assert explanation.get_explanation_subgraph().num_nodes == len(changed)
    assert explanation.get_complement_subgraph().num_nodes == 8 - len(changed)


THRESHOLDS = (("hard", 0.5), ("topk", 50), ("topk", 1), ("topk_hard", 3))


@pytest.mark.parametrize(("threshold", "nodes"), sampled(itertools.product(THRESHOLDS, [None, *NODE_MASKS]), every=3))
def test_a_threshold_cuts_the_masks_and_not_the_result(threshold, nodes) -> None:
    space = butfor.EditSpace(features=butfor.Features(values=[-3.0, 3.0]) if nodes else ())
    _, explain = every_level(MULTICLASS, "node", "raw", nodes=nodes, space=space)
    _, cut = every_level(MULTICLASS, "node", "raw", nodes=nodes, space=space, threshold=threshold)
    plain, explanation = (one(features(), INSIDE, index=2, batch=BATCH) for one in (explain, cut))
    assert explanation.counterfactual == plain.counterfactual
    for name in plain.available_explanations:
        if threshold in (("hard", 0.5), ("topk", 50)):
            assert torch.equal(explanation[name], plain[name])
        elif threshold == ("topk", 1):
            assert explanation[name].sum() == min(1, plain[name].sum())
        else:
            assert explanation[name].sum() == 3
