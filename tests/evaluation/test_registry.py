"""The registry of metrics: a function and a description are a metric, and a column of every table."""

from __future__ import annotations

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
from butfor.evaluation import METRICS, Measure, Metric, evaluate, fidelity, register_metric, unregister_metric
from butfor.methods import KeepEgo
from butfor.paper import PAPER
from printed_tables import metric_rows
from sample_results import NOTHING, RESULT

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Pair = tuple[int, int]

# Two of 34 edges deleted; one of 10; none found; one of 5.
RESULTS = [
    RESULT,
    replace(RESULT, edits=(Deletion(17, 18),), edges=10),
    NOTHING,
    replace(RESULT, edits=(Deletion(17, 30),), edges=5),
]


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
        row = MetricsRow("one-hop", KeepEgo().record(), evaluate(RESULTS))
        print_metrics([row], PAPER["tree-cycles"])
    ours, paper = metric_rows(capsys.readouterr().out)
    columns = ["method", "found", "fid.", "size", "spars.", "acc.", "strict", "eval."]
    measured = ["one-hop", "3/4", "0.25", "1.33±0.47", "0.88±0.06", "–", "–", "40.00"]
    published = ["paper: 1HOP", "119/175", "0.32", "15.64±12.36", "0.13±0.06", "0.45", "–", "–"]
    assert [ours[column] for column in columns] == measured
    assert [paper[column] for column in columns] == published
    # Whatever other columns there are, the paper has nothing for them either.
    assert {cell for column, cell in paper.items() if column not in columns} <= {"–"}


def test_a_metric_is_given_what_it_needs() -> None:
    def toy(results: Sequence[Counterfactual], edges: Collection[Pair], classes: NDArray[np.int64]) -> float:
        return len(results) + 10 * len(edges) + 100 * int(classes.sum())

    edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    data = Data(x=torch.ones(3, 1), edge_index=edge_index, edge_motif=torch.tensor([False, False, True, True]))
    classes = np.zeros(40, dtype=np.int64)
    classes[[17, 18, 20]] = 1
    with registered(Metric("toy", toy, "toy", better="high", needs=("motif_edges", "motif_classes"))):
        assert evaluate(RESULTS, data, classes)["toy"] == 4 + 10 + 300
        incomplete = evaluate(RESULTS, data)["toy"]
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
