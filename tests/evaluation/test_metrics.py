"""The metrics, on results small enough to compute by hand."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from butfor import Deletion, Status
from butfor.errors import InputError
from butfor.evaluation import (
    METRICS,
    Measure,
    accuracy,
    evaluate,
    explanation_size,
    fidelity,
    marked_only,
    marked_share,
    motif_edges,
    sparsity,
    strict_accuracy,
)
from butfor.evaluation.tables import Table
from sample_results import NOTHING, RESULT

# Target 17 predicted in a motif: 2 of 34 edges deleted; 1 of 10; none found; and one predicted in the base.
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


EDGE_INDEX = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
MARKED = Data(
    x=torch.ones(4, 1), edge_index=EDGE_INDEX, edge_motif=torch.tensor([False, False, True, True, False, False])
)
UNMARKED = Data(x=torch.ones(4, 1), edge_index=EDGE_INDEX)


def test_motif_edges_by_ground_truth_or_by_label() -> None:
    by_label = Data(x=torch.ones(4, 1), edge_index=EDGE_INDEX, y=torch.tensor([0, 1, 1, 1]))
    assert motif_edges(by_label) == {(1, 2), (2, 3)}
    assert motif_edges(MARKED) == {(1, 2)}
    with pytest.raises(InputError, match="motifs of this graph are not known"):
        motif_edges(UNMARKED)


def test_each_metric_is_computed_where_its_inputs_are_known() -> None:
    edge_index = torch.tensor([[17, 20, 17], [20, 21, 18]])
    data = Data(x=torch.ones(40, 1), edge_index=edge_index, edge_motif=torch.tensor([True, False, True]))
    everything = evaluate(RESULTS, data, CLASSES)
    assert (everything.found, everything.total, everything.fidelity) == (3, 4, 0.25)
    assert everything.size == explanation_size(RESULTS)
    assert everything.sparsity == sparsity(RESULTS)
    assert everything.accuracy == accuracy(RESULTS, CLASSES)
    assert everything.strict_accuracy == strict_accuracy(RESULTS, {(17, 20), (17, 18)})
    assert list(everything.values) == list(METRICS)
    without_classes = evaluate(RESULTS, data)
    assert without_classes.accuracy.count == 0
    assert without_classes.strict_accuracy == everything.strict_accuracy
    del data.edge_motif
    for incomplete in (evaluate(RESULTS), evaluate(RESULTS, data, CLASSES), evaluate(RESULTS, None, CLASSES)):
        assert incomplete.size == everything.size
        assert incomplete.accuracy.count == incomplete.strict_accuracy.count == 0
    data.y = torch.ones(40)
    assert evaluate(RESULTS, data, CLASSES, motifs=True).strict_accuracy.mean == 1
    assert evaluate(RESULTS, data, CLASSES, motifs=False).strict_accuracy.count == 0


# Whole graphs: 1 of the 2 deleted edges is marked; only a marked one goes; nothing is marked; none found.
OF_GRAPHS = [
    replace(RESULT, task="graph", target=0, edits=(Deletion(1, 2), Deletion(2, 3))),
    replace(RESULT, task="graph", target=2, before=RESULT.after, edits=(Deletion(2, 1),)),
    replace(RESULT, task="graph", target=1, edits=(Deletion(0, 1),)),
    replace(NOTHING, task="graph", target=3),
]
GRAPHS = [MARKED, UNMARKED, MARKED, MARKED]


def test_whole_graphs_are_compared_with_the_edges_that_they_mark() -> None:
    marked = {0: {(1, 2)}, 1: set[tuple[int, int]](), 2: {(1, 2)}, 3: {(1, 2)}}
    assert marked_share(OF_GRAPHS, marked) == Measure.of([0.5, 1.0])
    assert marked_only(OF_GRAPHS, marked) == Measure.of([0.0, 1.0])
    metrics = evaluate(OF_GRAPHS, graphs=GRAPHS)
    assert metrics.accuracy == Measure.of([0.5, 1.0])
    assert metrics.strict_accuracy == Measure.of([0.0, 1.0])
    assert metrics.fidelity == 0.25
    assert evaluate(OF_GRAPHS).accuracy.count == 0


def test_graphs_that_do_not_belong_to_the_results_are_refused() -> None:
    with pytest.raises(InputError, match="graph 3 is not among the 2 graphs"):
        evaluate(OF_GRAPHS[3:], graphs=GRAPHS[:2])
    with pytest.raises(InputError, match="node 17 is not a whole graph"):
        evaluate(RESULTS, graphs=GRAPHS)


def test_a_record_holds_every_value_in_full_precision() -> None:
    record = evaluate(RESULTS).record()
    known = {
        "found": 3,
        "total": 4,
        "fidelity": 0.25,
        "size": explanation_size(RESULTS).mean,
        "size_std": explanation_size(RESULTS).std,
        "sparsity": sparsity(RESULTS).mean,
        "sparsity_std": sparsity(RESULTS).std,
        "accuracy": None,
        "strict_accuracy": None,
    }
    assert {column: record[column] for column in known} == known
    assert [column for column in record if not column.endswith("_std")] == ["found", "total", *METRICS]
    assert {column for column in record if column.endswith("_std")} <= {
        f"{name}_std" for name, metric in METRICS.items() if metric.show_std
    }
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    (row,) = csv.DictReader(io.StringIO(Table("t", "t", (), (), (record,)).csv()))
    assert list(row) == list(record)
    assert float(row["size"]) == record["size"]
