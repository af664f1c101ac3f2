"""The metrics of several sets of results as one table, the paper's numbers below each where it has any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from butfor.cli.output import print_table
from butfor.paper import paper_row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from butfor.evaluation import Measure, Metrics
    from butfor.paper import PaperDataset

__all__ = ["Measured", "print_metrics"]

# ▼: low is good; ▲: high is good.
HEADINGS = ("method", "found", "fid. ▼", "size ▼", "spars. ▲", "acc. ▲", "strict ▲")
NOTHING = "–"


@dataclass(frozen=True)
class Measured:
    """One row: what to call it, the method as its ``repr``, and the metrics."""

    label: str
    method: str
    metrics: Metrics


def print_metrics(rows: Sequence[Measured], paper: PaperDataset | None, title: str | None = None) -> None:
    """Print the table."""
    lines: list[list[str]] = []
    for row in rows:
        lines.append(_ours(row))
        if paper is not None and (theirs := _paper(paper, row.method)):
            lines.append(theirs)
    print_table(HEADINGS, lines, title=title)


def _ours(row: Measured) -> list[str]:
    metrics = row.metrics
    return [
        row.label,
        f"{metrics.found}/{metrics.total}",
        _spread(metrics.fidelity, None),
        _measure(metrics.size),
        _measure(metrics.sparsity),
        # The paper gives no standard deviation for shares.
        _spread(metrics.accuracy.mean, None) if metrics.accuracy.count else NOTHING,
        _spread(metrics.strict_accuracy.mean, None) if metrics.strict_accuracy.count else NOTHING,
    ]


def _paper(paper: PaperDataset, method: str) -> list[str] | None:
    row = paper_row(paper, method)
    if row is None:
        return None
    return [
        f"  paper: {row.label}",
        NOTHING if row.found is None else f"{row.found}/{paper.statistics.test_nodes}",
        _spread(row.fidelity, None),
        _spread(*row.size),
        _spread(*row.sparsity),
        NOTHING if row.accuracy is None else _spread(row.accuracy, None),
        NOTHING,
    ]


def _measure(measure: Measure) -> str:
    return _spread(measure.mean, measure.std) if measure.count else NOTHING


def _spread(mean: float, std: float | None) -> str:
    return f"{mean:.2f}" if std is None else f"{mean:.2f}±{std:.2f}"
