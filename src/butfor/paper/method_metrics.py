"""The metrics of a method on a benchmark, and how tables show them beside the paper's numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from butfor.evaluation import METRICS, evaluate
from butfor.paper.formatting import MISSING, format_difference, format_mean, format_number, none_if_nan
from butfor.result.status import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from butfor.evaluation import Metrics
    from butfor.evaluation.tables import Value
    from butfor.paper.benchmark import Benchmark
    from butfor.paper.experiment import Experiment
    from butfor.paper.published_numbers import PaperRow

__all__ = [
    "HEADINGS",
    "HEADINGS_WITH_PAPER",
    "PAPER_METRICS",
    "PROTOCOLS",
    "MethodMetrics",
    "cells_with_paper",
    "paper_count",
    "record_of_paper",
]

# The metrics in the paper's tables.
PAPER_METRICS = ("fidelity", "size", "sparsity", "accuracy")

# The headings of `MethodMetrics.cells`, and of the same cells with the paper's numbers.
STRICT = METRICS["strict_accuracy"].column
HEADINGS = (*(METRICS[name].column for name in PAPER_METRICS), STRICT)
HEADINGS_WITH_PAPER = (*(text for name in PAPER_METRICS for text in (METRICS[name].column, "paper", "Δ")), STRICT)

# Which test nodes count. Numbers of different protocols cannot be compared.
PROTOCOLS = {"all": "all test nodes", "motif": "test nodes in a motif that the model classifies correctly"}


@dataclass(frozen=True)
class MethodMetrics:
    """The metrics of one method on one benchmark by one protocol.

    Attributes:
        benchmark: the benchmark.
        label: the label under which the method's results are saved.
        protocol: one of `PROTOCOLS`.
        metrics: the metrics.
        proved: how many results are proved to be smallest.
    """

    benchmark: Benchmark
    label: str
    protocol: str
    metrics: Metrics
    proved: int

    @classmethod
    def of(cls, experiment: Experiment, benchmark: Benchmark, label: str, protocol: str = "all") -> MethodMetrics:
        """Compute them from the results in the experiment's folder."""
        loaded = experiment.load(benchmark)
        results = experiment.results(benchmark, label)
        if protocol == "motif":
            results = [result for result in results if loaded.is_correct_motif_node(result.target)]
        metrics = evaluate(results, loaded.data, loaded.classes, motifs=True)
        return cls(benchmark, label, protocol, metrics, sum(result.status is Status.OPTIMAL for result in results))

    def value(self, metric: str) -> tuple[float, float | None]:
        """The mean of a metric, and its standard deviation over nodes if the paper has one."""
        return METRICS[metric].shown(self.metrics[metric])

    @property
    def means(self) -> list[float]:
        """The means of the paper's metrics."""
        return [self.value(metric)[0] for metric in PAPER_METRICS]

    @property
    def strict(self) -> float:
        """Accuracy as the text of the paper defines it, which its tables do not use."""
        return self.value("strict_accuracy")[0]

    @property
    def count(self) -> str:
        """How many targets have a counterfactual, of how many."""
        return f"{self.metrics.found}/{self.metrics.total}"

    def cells(self) -> list[str]:
        """The cells below `HEADINGS`."""
        return [*(format_mean(*self.value(metric)) for metric in PAPER_METRICS), format_number(self.strict)]

    def record(self, paper: PaperRow | None = None) -> dict[str, Value]:
        """Everything in full precision, for a CSV file."""
        record: dict[str, Value] = {
            "dataset": self.benchmark.dataset,
            "source": self.benchmark.source,
            "protocol": self.protocol,
            "method": self.label,
            "found": self.metrics.found,
            "total": self.metrics.total,
        }
        for metric in PAPER_METRICS:
            record |= METRICS[metric].record(self.metrics[metric])
        record |= {"strict": none_if_nan(self.strict), "proved": self.proved}
        return record | record_of_paper(paper, self.means)


def cells_with_paper(cells: Sequence[str], means: Sequence[float], paper: PaperRow | None) -> list[str]:
    """The cells of metrics, each followed by the paper's value and by how much the mean differs from it."""
    with_paper = []
    for metric, cell, mean in zip(PAPER_METRICS, cells, means, strict=False):
        their_mean, their_std = paper.value(metric) if paper else (None, None)
        with_paper += [cell, format_mean(their_mean, their_std), format_difference(mean, their_mean)]
    return [*with_paper, *cells[len(PAPER_METRICS) :]]


def record_of_paper(paper: PaperRow | None, means: Sequence[float]) -> dict[str, Value]:
    """The paper's numbers and by how much these means differ from them, for a CSV file."""
    if paper is None:
        return {}
    record: dict[str, Value] = {"paper_found": paper.found}
    for metric, mean in zip(PAPER_METRICS, means, strict=True):
        their_mean, their_std = paper.value(metric)
        record[f"paper_{metric}"] = their_mean
        if their_std is not None:
            record[f"paper_{metric}_std"] = their_std
        record[f"difference_{metric}"] = None if their_mean is None else none_if_nan(mean - their_mean)
    return record


def paper_count(paper: PaperRow | None, benchmark: Benchmark) -> str:
    """How many counterfactuals the paper found, of how many."""
    if paper is None or paper.found is None:
        return MISSING
    return f"{paper.found}/{benchmark.paper.statistics.test_nodes}"
