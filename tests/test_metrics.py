"""The metrics on results small enough to compute by hand, and the registry that makes a column of each."""

from __future__ import annotations

import csv
import io
import json
import math
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from butfor import Counterfactual, Deletion
from butfor.cli import main
from butfor.cli.metrics_table import MetricsRow, print_metrics
from butfor.errors import InputError
from butfor.evaluation import (
    METRICS,
    Measure,
    Metric,
    accuracy,
    evaluate,
    explanation_size,
    fidelity,
    marked_only,
    marked_share,
    motif_edges,
    register_metric,
    sparsity,
    strict_accuracy,
    unregister_metric,
)
from butfor.evaluation.tables import Table
from butfor.methods import KeepEgo
from butfor.paper import PAPER
from butfor.result.status import Status
from test_counterfactual import NOTHING, RESULT

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Pair = tuple[int, int]

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


# The registry


def mean_evaluations(results: Sequence[Counterfactual]) -> Measure:
    return Measure.of([result.evaluations for result in results])


@contextmanager
def registered(metric: Metric) -> Iterator[None]:
    register_metric(metric)
    try:
        yield
    finally:
        unregister_metric(metric.name)


def test_a_new_metric_is_a_function_and_a_description(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = [replace(result, target=number, evaluations=number) for number, result in enumerate(RESULTS)]
    path = tmp_path / "results.jsonl"
    path.write_text("".join(f"{json.dumps(result.to_dict())}\n" for result in results))

    def table() -> list[list[str]]:
        assert main(["evaluate", str(path)]) == 0
        _, headings, row = capsys.readouterr().out.splitlines()
        return [headings.split(), row.split()]

    before = table()
    with registered(Metric("evaluations", mean_evaluations, "eval.", better="low", show_std=True, digits=1)):
        headings, row = table()
        metrics = evaluate(results)
        assert metrics.record()["evaluations"] == 1.5
    assert headings == [*before[0], "eval.", "▼"]
    assert row == [*before[1], "1.5±1.1"]
    assert metrics["evaluations"] == Measure.of([0, 1, 2, 3])
    assert table() == before
    assert "evaluations" not in evaluate(results).values


def test_a_metric_that_the_paper_lacks_is_a_dash_in_its_row(capsys: pytest.CaptureFixture[str]) -> None:
    with registered(Metric("evaluations", mean_evaluations, "eval.", better="low")):
        row = MetricsRow("one-hop", repr(KeepEgo()), evaluate(RESULTS))
        print_metrics([row], PAPER["tree-cycles"])
    ours, paper = (line.split() for line in capsys.readouterr().out.splitlines()[-2:])
    assert ours == ["one-hop", "3/4", "0.25", "1.33±0.47", "0.88±0.06", "–", "–", "40.00"]
    assert paper == ["paper:", "1HOP", "119/175", "0.32", "15.64±12.36", "0.13±0.06", "0.45", "–", "–"]


def test_a_metric_is_given_what_it_needs() -> None:
    def toy(results: Sequence[Counterfactual], edges: Collection[Pair], classes: NDArray[np.int64]) -> float:
        return len(results) + 10 * len(edges) + 100 * int(classes.sum())

    with registered(Metric("toy", toy, "toy", better="high", needs=("motif_edges", "motif_classes"))):
        assert evaluate(RESULTS, MARKED, CLASSES)["toy"] == 4 + 10 + 300
        incomplete = evaluate(RESULTS, MARKED)["toy"]
    assert isinstance(incomplete, Measure)
    assert incomplete.count == 0


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"name": "size"}, "called 'size' already"),
        ({"name": "found"}, "called 'found' already"),
        ({"name": "two words"}, "cannot be called 'two words'"),
        ({"better": "▲"}, "better is '▲'; say 'low' or 'high'"),
        ({"needs": ("labels",)}, "needs labels; available are motif_classes, motif_edges"),
    ],
)
def test_a_description_that_cannot_be_used_is_refused(wrong: dict[str, Any], words: str) -> None:
    before = dict(METRICS)
    with pytest.raises(InputError, match=words):
        register_metric(Metric(**{"name": "toy", "function": fidelity, "heading": "toy", "better": "low"} | wrong))
    assert before == METRICS


def test_unregistering_an_unknown_metric_names_the_known_ones() -> None:
    with pytest.raises(InputError, match="no metric called 'toy'; there are fidelity, size"):
        unregister_metric("toy")


def test_headings_and_cells_follow_the_description() -> None:
    low = Metric("low", fidelity, "low", better="low", show_std=True, digits=1)
    high = Metric("high", fidelity, "high", better="high")
    assert (low.column, high.column) == ("low ▼", "high ▲")
    value = Measure(1.26, 0.44, 3)
    assert low.text(*low.shown(value)) == "1.3 ± 0.4"
    assert low.text(*low.shown(value), plus_minus="±") == "1.3±0.4"
    assert high.text(*high.shown(value)) == "1.26"
    assert high.text(*high.shown(0.5)) == "0.50"
    assert low.text(1.0, math.nan) == "1.0"
    assert low.text(*low.shown(Measure.of([]))) == low.text(None) == high.text(math.nan) == "–"


def test_a_record_holds_every_value_in_full_precision() -> None:
    record = evaluate(RESULTS).record()
    assert record == {
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
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    (row,) = csv.DictReader(io.StringIO(Table("t", "t", (), (), (record,)).csv()))
    assert list(row) == list(record)
    assert float(row["size"]) == record["size"]
