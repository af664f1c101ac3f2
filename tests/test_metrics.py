"""The metrics, on results small enough to do by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from butfor.edits.edits import Deletion
from butfor.evaluation import (
    accuracy,
    evaluate,
    explanation_size,
    fidelity,
    motif_edges,
    sparsity,
    strict_accuracy,
)
from butfor.result.counterfactual import Status
from test_counterfactual import NOTHING, RESULT

# Target 17 predicted in a motif: 2 of 34 edges; 1 of 10; nothing; and one predicted in the base.
RESULTS = [
    RESULT,
    replace(RESULT, edits=(Deletion(17, 18),), edges=10),
    NOTHING,
    replace(RESULT, before=RESULT.after, after=RESULT.before, edits=(Deletion(17, 30),), edges=5),
]
CLASSES = np.zeros(40, dtype=np.int64)
CLASSES[[17, 18, 20]] = 1


def test_fidelity_is_the_share_without_a_counterfactual() -> None:
    assert fidelity(RESULTS) == 0.25
    assert math.isnan(fidelity([]))
    reached = replace(NOTHING, status=Status.REACHED)
    assert fidelity([*RESULTS, reached]) == 0.25
    assert evaluate([*RESULTS, reached]).total == 4


def test_size_and_sparsity_count_only_what_was_found() -> None:
    assert explanation_size(RESULTS).mean == pytest.approx(4 / 3)
    assert explanation_size(RESULTS).std == pytest.approx(np.std([2, 1, 1]))
    assert sparsity(RESULTS).mean == pytest.approx(np.mean([1 - 2 / 34, 0.9, 0.8]))
    assert explanation_size([NOTHING]).count == 0
    assert str(explanation_size([NOTHING])) == "–"
    assert str(explanation_size(RESULTS)) == "1.33 ± 0.47"


def test_accuracy_is_over_targets_in_a_motif_and_leaves_the_target_out() -> None:
    # The first removes 17–20 and 20–21: of 20 and 21 only 20 is in a motif. The second: 18 is.
    assert accuracy(RESULTS, CLASSES).mean == pytest.approx((0.5 + 1.0) / 2)
    assert accuracy(RESULTS, CLASSES).count == 2


def test_strict_accuracy_wants_every_edge_inside() -> None:
    assert strict_accuracy(RESULTS, {(17, 20), (17, 18)}).mean == 0.5
    assert strict_accuracy(RESULTS, {(17, 20), (20, 21), (17, 18)}).mean == 1.0


def test_motif_edges_by_ground_truth_or_by_label() -> None:
    edge_index = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
    by_label = Data(x=torch.ones(4, 1), edge_index=edge_index, y=torch.tensor([0, 1, 1, 1]))
    assert motif_edges(by_label) == {(1, 2), (2, 3)}
    marked = torch.tensor([False, False, True, True, False, False])
    assert motif_edges(Data(x=torch.ones(4, 1), edge_index=edge_index, edge_motif=marked)) == {(1, 2)}
    unlabelled = Data(x=torch.ones(40, 1), edge_index=edge_index)
    everything = evaluate(RESULTS, unlabelled, CLASSES)
    assert (everything.found, everything.total, everything.strict_accuracy.count) == (3, 4, 0)
