"""A method's metrics on a subject, and how they stand in a table beside the paper's."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from butfor.evaluation import evaluate
from butfor.paper.cells import NOTHING, difference, number, spread
from butfor.result.counterfactual import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from butfor.evaluation import Metrics
    from butfor.evaluation.tables import Value
    from butfor.paper.lab import Lab
    from butfor.paper.published import PaperRow
    from butfor.paper.subjects import Subject

__all__ = [
    "HEADINGS",
    "HEADINGS_BESIDE",
    "METRICS",
    "PROTOCOLS",
    "Measured",
    "beside",
    "known",
    "of_paper",
    "published_count",
    "published_record",
]

# ▼: low is good; ▲: high is good.
METRICS = {"fidelity": "fid. ▼", "size": "size ▼", "sparsity": "spars. ▲", "accuracy": "acc. ▲"}

# Which test nodes count. Numbers of one protocol say nothing about the other.
PROTOCOLS = {"all": "all test nodes", "motif": "test nodes in a motif that the model classifies correctly"}


@dataclass(frozen=True)
class Measured:
    """One method on one subject by one protocol.

    Attributes:
        subject: the subject.
        label: of the method's results.
        protocol: one of `PROTOCOLS`.
        metrics: the paper's.
        proved: how many answers are proved smallest.
    """

    subject: Subject
    label: str
    protocol: str
    metrics: Metrics
    proved: int

    @classmethod
    def of(cls, lab: Lab, subject: Subject, label: str, protocol: str = "all") -> Measured:
        """From the results in the lab."""
        ready = lab.ready(subject)
        results = lab.results(subject, label)
        if protocol == "motif":
            results = [result for result in results if ready.right_in_motif(result.target)]
        metrics = evaluate(results, ready.data, ready.classes, motifs=True)
        return cls(subject, label, protocol, metrics, sum(result.status is Status.OPTIMAL for result in results))

    def value(self, metric: str) -> tuple[float, float | None]:
        """A metric of `METRICS`, with its standard deviation over nodes where the paper gives one."""
        if metric == "fidelity":
            return self.metrics.fidelity, None
        if metric == "accuracy":
            return self.metrics.accuracy.mean, None
        measure = self.metrics.size if metric == "size" else self.metrics.sparsity
        return measure.mean, measure.std

    @property
    def means(self) -> list[float]:
        """Every metric without its standard deviation."""
        return [self.value(metric)[0] for metric in METRICS]

    @property
    def strict(self) -> float:
        """The accuracy of the paper's text."""
        return self.metrics.strict_accuracy.mean

    @property
    def count(self) -> str:
        """How many targets have a counterfactual."""
        return f"{self.metrics.found}/{self.metrics.total}"

    def cells(self) -> list[str]:
        """Every metric, then the strict accuracy."""
        return [*(spread(*self.value(metric)) for metric in METRICS), number(self.strict)]

    def record(self, paper: PaperRow | None = None) -> dict[str, Value]:
        """All of it, for a CSV file."""
        record: dict[str, Value] = {
            "dataset": self.subject.dataset,
            "source": self.subject.source,
            "protocol": self.protocol,
            "method": self.label,
            "found": self.metrics.found,
            "total": self.metrics.total,
        }
        for metric in METRICS:
            mean, std = self.value(metric)
            record[metric] = known(mean)
            if std is not None:
                record[f"{metric}_std"] = known(std)
        record |= {"strict": known(self.strict), "proved": self.proved}
        return record | published_record(paper, self.means)


# The headings of `Measured.cells`, and of the same with the paper's numbers beside them.
HEADINGS = (*METRICS.values(), "strict ▲")
HEADINGS_BESIDE = (*(column for name in METRICS.values() for column in (name, "paper", "Δ")), "strict ▲")


def beside(cells: Sequence[str], means: Sequence[float], paper: PaperRow | None) -> list[str]:
    """Cells of metrics, after each the paper's value and the difference of the mean from it."""
    told = []
    for metric, cell, mean in zip(METRICS, cells, means, strict=False):
        theirs, their_std = of_paper(paper, metric)
        told += [cell, spread(theirs, their_std), difference(mean, theirs)]
    return [*told, *cells[len(METRICS) :]]


def of_paper(paper: PaperRow | None, metric: str) -> tuple[float | None, float | None]:
    """The paper's value of a metric, and its standard deviation."""
    if paper is None:
        return None, None
    if metric == "fidelity":
        return paper.fidelity, None
    if metric == "accuracy":
        return paper.accuracy, None
    return paper.size if metric == "size" else paper.sparsity


def published_record(paper: PaperRow | None, means: Sequence[float]) -> dict[str, Value]:
    """The paper's numbers, and by how much these means differ from them."""
    if paper is None:
        return {}
    record: dict[str, Value] = {"paper_found": paper.found}
    for metric, ours in zip(METRICS, means, strict=True):
        theirs, std = of_paper(paper, metric)
        record[f"paper_{metric}"] = theirs
        if std is not None:
            record[f"paper_{metric}_std"] = std
        record[f"difference_{metric}"] = None if theirs is None else known(ours - theirs)
    return record


def published_count(paper: PaperRow | None, subject: Subject) -> str:
    """How many counterfactuals the paper found, of how many."""
    if paper is None or paper.found is None:
        return NOTHING
    return f"{paper.found}/{subject.paper.statistics.test_nodes}"


def known(value: float) -> float | None:
    """A number, or None where there is none."""
    return None if math.isnan(value) else value
