"""Results of the reproduction that are missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bad_files import check_refused
from butfor.errors import StoreError
from butfor.paper.benchmark import Benchmark
from butfor.paper.experiment import Experiment
from butfor.problem.goal import Goal
from butfor.problem.method_record import MethodRecord
from butfor.result.counterfactual import Counterfactual
from butfor.result.lines import to_line
from butfor.result.status import Prediction, Status

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


# A result of node 3, and nothing more than it must have.
RESULT = Counterfactual(
    target=3,
    status=Status.UNKNOWN,
    before=Prediction(1, "motif", 0.9),
    after=None,
    edits=(),
    cost=0.0,
    lower_bound=2.0,
    task="node",
    nodes=9,
    edges=8,
    directed=False,
    goal=Goal(),
    method=MethodRecord("Exact"),
    evaluations=3,
    seed=0,
    space_id="",
    graph_id="a",
    model_id="b",
)


def test_results_that_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment, benchmark = Experiment(tmp_path), Benchmark("tree-cycles", 0)
    monkeypatch.setattr(Experiment, "nodes", lambda *_: [3, 4])
    path = experiment.results_file(benchmark, "a")
    path.parent.mkdir(parents=True)
    path.write_bytes(to_line(RESULT))
    check_refused(lambda: experiment.results(benchmark, "a"), StoreError, tmp_path, "a.jsonl has no result of node 4")
    monkeypatch.setattr(Experiment, "nodes", lambda *_: [3])
    assert experiment.results(benchmark, "a") == [RESULT]
