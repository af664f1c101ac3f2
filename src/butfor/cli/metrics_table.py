"""The metrics of several sets of results as one table, with the paper's numbers below each row where it has any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from butfor.cli.output import print_table
from butfor.evaluation import METRICS
from butfor.evaluation.registry import NO_VALUE
from butfor.paper import paper_row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from butfor.evaluation import Metrics
    from butfor.paper import PaperDataset, PaperRow
    from butfor.problem.method_record import MethodRecord

__all__ = ["MetricsRow", "print_metrics"]


@dataclass(frozen=True)
class MetricsRow:
    """One row of the table.

    Attributes:
        label: the first cell.
        method: the method, by which the paper's row is found.
        metrics: the metrics of the method's results.
    """

    label: str
    method: MethodRecord
    metrics: Metrics


def print_metrics(rows: Sequence[MetricsRow], paper: PaperDataset | None, title: str | None = None) -> None:
    """Print a table with a column for every registered metric."""
    lines: list[list[str]] = []
    for row in rows:
        lines.append(_measured_cells(row))
        if paper is not None and (published := paper_row(paper, row.method)):
            lines.append(_published_cells(published, paper.statistics.test_nodes))
    print_table(["method", "found", *(metric.column for metric in METRICS.values())], lines, title=title)


def _measured_cells(row: MetricsRow) -> list[str]:
    values = [_cell(name, *metric.shown(row.metrics[name])) for name, metric in METRICS.items()]
    return [row.label, f"{row.metrics.found}/{row.metrics.total}", *values]


def _published_cells(row: PaperRow, test_nodes: int) -> list[str]:
    found = NO_VALUE if row.found is None else f"{row.found}/{test_nodes}"
    # The indent marks a row that belongs to the one above it.
    return [f"  paper: {row.label}", found, *(_cell(name, *row.value(name)) for name in METRICS)]


def _cell(name: str, mean: float | None, std: float | None) -> str:
    # A terminal is narrow, and awk splits at spaces: none inside a cell.
    return METRICS[name].text(mean, std, plus_minus="±")
