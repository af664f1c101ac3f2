"""Table 3: removing the edges that GNNExplainer and PyG's other explainers rank highest."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from butfor.evaluation.tables import Table
from butfor.methods import RemoveSubgraph
from butfor.models import PaperGCN
from butfor.paper.compared_methods import comparison_jobs
from butfor.paper.explainers import explainers_for
from butfor.paper.formatting import blank_repeats
from butfor.paper.jobs import Job
from butfor.paper.method_metrics import HEADINGS_WITH_PAPER, MethodMetrics, cells_with_paper
from butfor.paper.sections import Section

if TYPE_CHECKING:
    from torch_geometric.explain import ExplainerAlgorithm

    from butfor.methods import Method
    from butfor.paper.benchmark import Benchmark
    from butfor.paper.experiment import Experiment

__all__ = ["jobs", "section"]

SIZES: tuple[int | Literal["ground-truth"], ...] = (1, 2, 3, 4, 5, "ground-truth")

# Rough times of the slow explainers for one node, and of the others.
SECONDS = {"GNNExp": 0.35, "Integrated gradients": 0.15}
OTHER_SECONDS = 0.03

# Rows of Table 2, by label, that are repeated for comparison.
COMPARED = {"cf-gnn": "CF-GNN", "exact": "Exact"}


def jobs(experiment: Experiment) -> list[Job]:
    """Every explainer with every number of edges, and the methods to compare with."""
    benchmarks = _benchmarks(experiment)
    compared = [job for job in comparison_jobs(benchmarks) if set(job.methods) <= set(COMPARED)]
    explainers = [
        Job(benchmark, methods, seconds_per_node=SECONDS.get(explainer, OTHER_SECONDS))
        for benchmark in benchmarks
        for explainer, methods in _methods(experiment, benchmark).items()
    ]
    return compared + explainers


def _benchmarks(experiment: Experiment) -> list[Benchmark]:
    return [*experiment.published(), *experiment.first_seeds()]


def _methods(experiment: Experiment, benchmark: Benchmark) -> dict[str, dict[str, Method]]:
    """By the title of each explainer: its methods, one for each number of edges, by their labels."""
    algorithms: dict[str, ExplainerAlgorithm | None] = {"GNNExp": None}
    if benchmark in experiment.one_per_dataset():
        # Which explainers apply depends on the architecture only, so an untrained model is enough.
        algorithms |= explainers_for(PaperGCN(10, benchmark.paper.statistics.classes))
    return {
        title: {_label(title, size): RemoveSubgraph(algorithm, size=size) for size in SIZES}
        for title, algorithm in algorithms.items()
    }


def _label(title: str, size: int | str) -> str:
    name = re.sub(r"[^a-z0-9]+", "-", title.lower())
    return f"explainers/{name}-{_short(size).lower()}"


def _short(size: int | str) -> str:
    return "GT" if size == "ground-truth" else str(size)


def section(experiment: Experiment) -> Section:
    """One table for the published benchmarks, and one for fresh ones."""
    tables = []
    if experiment.published():
        tables.append(_table(experiment, "published", "published graphs and weights", experiment.published()))
    tables.append(_table(experiment, "fresh", "fresh graphs and models, seed 0", experiment.first_seeds()))
    text = (
        "One of PyG's explainers ranks the edges of the neighbourhood, and the S highest are removed; GT is the number "
        "of edges in a motif. Every explainer ranks once for all S. Attributions keep their sign where they have one "
        "(Saliency does not), so edges that speak against the predicted class come last. The paper's model has no "
        "attention, and a model with attention cannot learn these datasets: all features are equal, and so is every "
        "weighted mean of them.",
    )
    settings = experiment.describe(_benchmarks(experiment))
    return Section("table-3", "Table 3: explainers that rank edges", settings, text, tuple(tables))


def _table(experiment: Experiment, name: str, title: str, benchmarks: list[Benchmark]) -> Table:
    rows: list[tuple[str, ...]] = []
    records = []
    for benchmark in benchmarks:
        methods = {
            label: f"{explainer} S={_short(size)}"
            for explainer, labels in _methods(experiment, benchmark).items()
            for size, label in zip(SIZES, labels, strict=True)
        }
        for label, method in (methods | COMPARED).items():
            metrics, paper = MethodMetrics.of(experiment, benchmark, label), benchmark.paper_row(method)
            cells = cells_with_paper(metrics.cells(), metrics.means, paper)
            rows.append((benchmark.title, method, metrics.count, *cells))
            records.append({"title": method, **metrics.record(paper)})
    return Table(
        f"table-3-{name}",
        f"Table 3, {title}: the top S edges of an explainer removed",
        ("dataset", "method", "found", *HEADINGS_WITH_PAPER),
        blank_repeats(rows),
        tuple(records),
        (
            "GNNExp is PyG's GNNExplainer (100 epochs, learning rate 0.01). If a neighbourhood has fewer than S edges, "
            "all of them are removed.",
        ),
        left=2,
    )
