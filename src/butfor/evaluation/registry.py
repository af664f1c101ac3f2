"""What a metric is, and the registry of all metrics.

Whatever is registered is computed by `butfor.evaluation.evaluate` and has a column in the tables of the command line.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from butfor.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["METRICS", "NO_VALUE", "Measure", "Metric", "MetricValue", "Need", "register_metric", "unregister_metric"]

# What a table shows where there is no value.
NO_VALUE = "–"

# What a metric may need besides the results. Both exist only for nodes of a graph with known motifs.
#   motif_classes: the predicted class of every node of the intact graph; 0 is the base, any other class a motif.
#   motif_edges: the edges inside motifs, as `butfor.evaluation.motif_edges` returns them.
Need = Literal["motif_classes", "motif_edges"]


@dataclass(frozen=True)
class Measure:
    """The mean of ``count`` values and their standard deviation.

    As in the paper, the standard deviation divides by ``count``, not by ``count - 1``. Without values, both are NaN.

    Attributes:
        mean: of the values.
        std: their standard deviation.
        count: how many values there are.

    Examples:
        >>> from butfor.evaluation import Measure
        >>> print(Measure.of([1, 2, 2, 3]))
        2.00 ± 0.71
        >>> Measure.of([1, 2, 2, 3]).count
        4
    """

    mean: float
    std: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Measure:
        """Summarise the values."""
        mean = float(np.mean(values)) if len(values) else math.nan
        return cls(mean, float(np.std(values)) if len(values) else math.nan, len(values))

    def __str__(self) -> str:
        if not self.count:
            return NO_VALUE
        return f"{self.mean:.2f}" if math.isnan(self.std) else f"{self.mean:.2f} ± {self.std:.2f}"


MetricValue = Measure | float


@dataclass(frozen=True)
class Metric:
    """A metric: the function that computes it, and the description of its column.

    Attributes:
        name: the key of its value in `Metrics` and its column in a CSV file, such as "size".
        function: takes the results, then what it ``needs``, in that order; returns a `Measure` or a number.
        heading: of its column in a table, as short as possible, such as "spars.".
        better: whether "low" or "high" values are good.
        needs: what the function takes besides the results. Where that is not available, there is no value.
        show_std: whether tables show the standard deviation beside the mean.
        digits: decimal places in tables.
        on_graphs: replaces the function for results about whole graphs, where the metric is defined differently there.
            It takes the results and, by the number of the graph, the edges that each graph marks as ground truth.

    Examples:
        >>> from butfor.evaluation import Measure, Metric
        >>> def work(results):
        ...     return Measure.of([result.evaluations for result in results])
        >>> metric = Metric("work", work, "work", better="low", digits=0)
        >>> metric.column, metric.text(23.4)
        ('work ▼', '23')
    """

    name: str
    function: Callable[..., MetricValue]
    heading: str
    better: Literal["low", "high"]
    needs: tuple[Need, ...] = ()
    show_std: bool = False
    digits: int = 2
    on_graphs: Callable[..., MetricValue] | None = None

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise InputError(f"a metric cannot be called {self.name!r}; use letters, digits and underscores")
        if self.better not in ("low", "high"):
            raise InputError(f"metric {self.name}: better is {self.better!r}; say 'low' or 'high'")
        if unknown := set(self.needs) - set(get_args(Need)):
            raise InputError(
                f"metric {self.name} needs {', '.join(sorted(unknown))}; available are {', '.join(get_args(Need))}"
            )

    @property
    def column(self) -> str:
        """The heading with an arrow: ▼ where low values are good, ▲ where high ones are."""
        return f"{self.heading} {'▼' if self.better == 'low' else '▲'}"

    def shown(self, value: MetricValue) -> tuple[float, float | None]:
        """The parts of a value that tables show: the mean, and the standard deviation or None."""
        if isinstance(value, Measure):
            return value.mean, value.std if self.show_std else None
        return float(value), None

    def text(self, mean: float | None, std: float | None = None, plus_minus: str = " ± ") -> str:
        """The cell of a table; a dash where there is no mean."""
        if mean is None or math.isnan(mean):
            return NO_VALUE
        spread = "" if std is None or math.isnan(std) else f"{plus_minus}{std:.{self.digits}f}"
        return f"{mean:.{self.digits}f}{spread}"

    def record(self, value: MetricValue) -> dict[str, float | None]:
        """The value in full precision for CSV or JSON, with its ``_std`` if tables show that; None for NaN."""
        mean, std = self.shown(value)
        parts = {self.name: mean} if std is None else {self.name: mean, f"{self.name}_std": std}
        return {column: None if math.isnan(part) else part for column, part in parts.items()}


_REGISTERED: dict[str, Metric] = {}

METRICS: Mapping[str, Metric] = MappingProxyType(_REGISTERED)
"""All metrics by name, in the order of their columns; `register_metric` adds one.

Examples:
    >>> import butfor
    >>> [metric.column for metric in butfor.evaluation.METRICS.values()]
    ['fid. ▼', 'size ▼', 'spars. ▲', 'acc. ▲', 'strict ▲']
"""


def register_metric(metric: Metric) -> None:
    """Add a metric; from now on it is computed and shown everywhere, in the last column.

    Args:
        metric: the function and how it is shown.

    Raises:
        InputError: its name is taken.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> from butfor.evaluation import Measure, Metric, register_metric, unregister_metric
        >>> def deleted(results):
        ...     return Measure.of([len(result.removed_edges) for result in results])
        >>> register_metric(Metric("deleted", deleted, "del.", better="low"))
        >>> print(butfor.evaluation.evaluate(butfor.explain(model, data, [600, 605]))["deleted"])
        1.50 ± 0.50
        >>> unregister_metric("deleted")
    """
    if metric.name in METRICS or metric.name in ("found", "total"):
        raise InputError(f"there is a metric called {metric.name!r} already; choose another name")
    _REGISTERED[metric.name] = metric


def unregister_metric(name: str) -> None:
    """Remove a metric.

    Args:
        name: that of the metric.

    Raises:
        InputError: there is none of this name.

    Examples:
        >>> from butfor.evaluation import METRICS, Metric, register_metric, unregister_metric
        >>> register_metric(Metric("number", len, "n", better="high"))
        >>> unregister_metric("number")
        >>> "number" in METRICS
        False
    """
    if name not in METRICS:
        raise InputError(f"there is no metric called {name!r}; there are {', '.join(METRICS)}")
    del _REGISTERED[name]
