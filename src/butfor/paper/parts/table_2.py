"""Table 2 and the appendix: the paper's method, its baselines and our methods by the paper's four metrics."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from butfor.evaluation.tables import Table
from butfor.paper.compared_methods import TITLES, comparison_jobs
from butfor.paper.formatting import MISSING, blank_repeats, format_mean, format_number, none_if_nan
from butfor.paper.method_metrics import (
    HEADINGS,
    HEADINGS_WITH_PAPER,
    PAPER_METRICS,
    PROTOCOLS,
    MethodMetrics,
    cells_with_paper,
    paper_count,
    record_of_paper,
)
from butfor.paper.published_numbers import LITERATURE
from butfor.paper.sections import Section

if TYPE_CHECKING:
    from collections.abc import Sequence

    from butfor.evaluation.tables import Value
    from butfor.paper.benchmark import Benchmark
    from butfor.paper.experiment import Experiment
    from butfor.paper.jobs import Job
    from butfor.paper.published_numbers import PaperRow

__all__ = ["jobs", "section"]

NOTE = (
    "▼ low is good, ▲ high is good, Δ is our value minus the paper's. Accuracy is the share of the removed edges' end "
    "nodes that are predicted in a motif, as in the paper's tables; strict is the share of explanations that remove "
    "only edges inside motifs, as in the paper's text. “CF-GNN” makes the choices of the published code, “CF-GNN, as "
    "written” those of the paper's text. “proved” counts the answers that are proved to be smallest."
)
NOTES_ON_PUBLISHED = {
    "all": "On the trees 174 of 175 and 243 of 247 test nodes are known, so a published count can be higher than "
    "ours by one and by four. `python -m benchmarks.unknown_nodes` finds nodes that make all published counts and "
    "sizes of CF-GNN, 1HOP and RM-1HOP come out.",
    "motif": "InduCE's numbers are those that its authors published. They trained models of their own, so the numbers "
    "are only roughly comparable.",
}
NOTE_ON_FRESH = (
    "Mean ± standard deviation (of a sample) over the seeds. In brackets, the standard deviation over the nodes of one "
    "seed, which is what the paper gives. “found” and “proved” are sums over the seeds."
)


def jobs(experiment: Experiment) -> list[Job]:
    """All methods on all benchmarks."""
    return comparison_jobs(experiment.benchmarks())


def section(experiment: Experiment) -> Section:
    """Four tables: published and fresh benchmarks, each by both protocols."""
    tables = []
    for protocol in PROTOCOLS:
        if experiment.published():
            tables.append(_published_table(experiment, protocol))
        tables.append(_fresh_table(experiment, protocol))
    text = (
        "The literature uses two protocols: all test nodes, as the paper does, and only the test nodes in a motif that "
        "the model classifies correctly. Numbers of one cannot be compared with numbers of the other, so each has its "
        "own tables; the paper's numbers are only in those of the first.",
    )
    settings = experiment.describe(experiment.benchmarks())
    return Section("table-2", "Table 2 and the appendix: the methods compared", settings, text, tuple(tables))


def _published_table(experiment: Experiment, protocol: str) -> Table:
    rows: list[tuple[str, ...]] = []
    records: list[dict[str, Value]] = []
    for benchmark in experiment.published():
        for label, title in TITLES.items():
            paper = _paper_row(benchmark, label, protocol)
            metrics = MethodMetrics.of(experiment, benchmark, label, protocol)
            cells = [metrics.count, *metrics.cells()]
            if protocol == "all":
                counts = [metrics.count, paper_count(paper, benchmark)]
                cells = [*counts, *cells_with_paper(metrics.cells(), metrics.means, paper)]
            rows.append((benchmark.title, title, *cells, str(metrics.proved)))
            records.append(metrics.record(paper))
        if protocol == "motif":
            rows += _literature_rows(benchmark)
            records += _literature_records(benchmark, protocol)
    headings = ("published", *HEADINGS_WITH_PAPER) if protocol == "all" else HEADINGS
    # The note on unknown nodes is about counts over all nodes, which a quick run does not have.
    notes = [NOTE] if experiment.quick and protocol == "all" else [NOTE, NOTES_ON_PUBLISHED[protocol]]
    return Table(
        f"table-2-published-{protocol}",
        f"Table 2, published graphs and weights: {_which_nodes(experiment, protocol)}",
        ("dataset", "method", "found", *headings, "proved"),
        blank_repeats(rows),
        tuple(records),
        tuple(notes),
        left=2,
    )


def _fresh_table(experiment: Experiment, protocol: str) -> Table:
    rows = []
    records: list[dict[str, Value]] = []
    for dataset in experiment.datasets:
        benchmarks = experiment.fresh(dataset)
        for label, title in TITLES.items():
            seeds = [MethodMetrics.of(experiment, benchmark, label, protocol) for benchmark in benchmarks]
            paper = _paper_row(benchmarks[0], label, protocol)
            records += [*(metrics.record(paper) for metrics in seeds), _record_over_seeds(seeds, paper)]
            found, total = sum(one.metrics.found for one in seeds), sum(one.metrics.total for one in seeds)
            cells, means = _cells_over_seeds(seeds)
            if protocol == "all":
                cells = cells_with_paper(cells, means, paper)
            proved = sum(metrics.proved for metrics in seeds)
            rows.append((benchmarks[0].title, title, f"{found}/{total}", *cells, str(proved)))
    return Table(
        f"table-2-fresh-{protocol}",
        f"Table 2, fresh graphs and models: {_which_nodes(experiment, protocol)}",
        ("dataset", "method", "found", *(HEADINGS_WITH_PAPER if protocol == "all" else HEADINGS), "proved"),
        blank_repeats(rows),
        tuple(records),
        (NOTE, NOTE_ON_FRESH),
        left=2,
    )


def _which_nodes(experiment: Experiment, protocol: str) -> str:
    return PROTOCOLS[protocol] + (", every tenth" if experiment.quick else "")


def _paper_row(benchmark: Benchmark, label: str, protocol: str) -> PaperRow | None:
    """The paper's numbers for a method; it has one row for both variants of CF-GNN."""
    return benchmark.paper_row(TITLES[label].partition(",")[0]) if protocol == "all" else None


def _literature_rows(benchmark: Benchmark) -> list[tuple[str, ...]]:
    rows = []
    for published in LITERATURE[benchmark.dataset]:
        values = {"fidelity": published.fidelity, "size": published.size}
        cells = [format_number(values.get(metric)) for metric in (*PAPER_METRICS, "strict_accuracy")]
        rows.append((benchmark.title, published.label, MISSING, *cells, MISSING))
    return rows


def _literature_records(benchmark: Benchmark, protocol: str) -> list[dict[str, Value]]:
    return [
        {
            "dataset": benchmark.dataset,
            "source": "literature",
            "protocol": protocol,
            "method": published.label,
            "fidelity": published.fidelity,
            "size": published.size,
        }
        for published in LITERATURE[benchmark.dataset]
    ]


def _cells_over_seeds(seeds: Sequence[MethodMetrics]) -> tuple[list[str], list[float]]:
    """The cells of `MethodMetrics.cells` over several seeds, and the means of the paper's metrics."""
    cells, means = [], []
    for metric in PAPER_METRICS:
        mean, over_seeds = _mean_and_std([one.value(metric)[0] for one in seeds])
        over_nodes, _ = _mean_and_std([std for one in seeds if (std := one.value(metric)[1]) is not None])
        brackets = "" if math.isnan(over_nodes) else f" [{format_number(over_nodes)}]"
        cells.append(format_mean(mean, over_seeds) + brackets)
        means.append(mean)
    return [*cells, format_mean(*_mean_and_std([one.strict for one in seeds]))], means


def _record_over_seeds(seeds: Sequence[MethodMetrics], paper: PaperRow | None) -> dict[str, Value]:
    """One record for all seeds: sums of counts, and means of metrics with their standard deviation over the seeds."""
    records = [one.record() for one in seeds]
    combined: dict[str, Value] = {**records[0], "source": "all seeds"}
    for name in ("found", "total", "proved"):
        combined[name] = sum(int(record[name] or 0) for record in records)
    means = {}
    for name in (*PAPER_METRICS, "size_std", "sparsity_std", "strict"):
        mean, over_seeds = _mean_and_std([float(value) for record in records if (value := record[name]) is not None])
        combined |= {name: none_if_nan(mean), f"{name}_spread": none_if_nan(over_seeds)}
        means[name] = mean
    return combined | record_of_paper(paper, [means[name] for name in PAPER_METRICS])


def _mean_and_std(values: Sequence[float]) -> tuple[float, float]:
    """The mean of the values that are not NaN, and their sample standard deviation if there are at least two."""
    known = [value for value in values if not math.isnan(value)]
    std = float(np.std(known, ddof=1)) if len(known) > 1 else math.nan
    return (float(np.mean(known)) if known else math.nan), std
