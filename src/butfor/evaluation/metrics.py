"""The metrics, as plain functions of verified results, and `evaluate`, which computes all of them.

A new metric is a function in this file and one `Metric` in the list below the functions. "In a motif" means predicted
as any class but 0, the base, as in the paper's three datasets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from butfor.errors import InputError
from butfor.evaluation.registry import METRICS, Measure, Metric, register_metric
from butfor.result.status import Status

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from numpy.typing import NDArray
    from torch_geometric.data import Data

    from butfor.evaluation.registry import MetricValue, Need
    from butfor.result.counterfactual import Counterfactual

__all__ = [
    "Measure",
    "Metrics",
    "accuracy",
    "evaluate",
    "explanation_size",
    "fidelity",
    "marked_only",
    "marked_share",
    "motif_edges",
    "share_kept",
    "sparsity",
    "strict_accuracy",
]


def fidelity(results: Sequence[Counterfactual]) -> float:
    """Of the targets that need a counterfactual, the share for which none was found; 0 to 1, low is good.

    A target whose search failed counts as one for which none was found: whether there is one is not known.

    Args:
        results: explanations by one method.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> results = butfor.explain(model, data, [597, 600, 605], space=butfor.EditSpace(max_edits=1))
        >>> [str(result.status) for result in results]
        ['optimal', 'optimal', 'impossible']
        >>> round(butfor.evaluation.fidelity(results), 2)
        0.33
    """
    needed = [result for result in results if result.status is not Status.REACHED]
    return 1 - sum(result.found for result in needed) / len(needed) if needed else math.nan


def explanation_size(results: Sequence[Counterfactual]) -> Measure:
    """The number of edits, over the targets with a counterfactual; at least 1, low is good.

    Args:
        results: explanations by one method.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> print(butfor.evaluation.explanation_size(butfor.explain(model, data, [597, 600, 605])))
        1.33 ± 0.47
    """
    return Measure.of([result.size for result in results if result.size is not None])


def sparsity(results: Sequence[Counterfactual]) -> Measure:
    """The share of the neighbourhood's edges that are kept; 0 to 1, high is good.

    It is the mean over the targets with a counterfactual.

    Args:
        results: explanations by one method.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> print(butfor.evaluation.sparsity(butfor.explain(model, data, [597, 600, 605])))
        0.90 ± 0.06
    """
    return Measure.of([share_kept(result) for result in results if result.found])


def share_kept(result: Counterfactual) -> float:
    """The share of the neighbourhood's edges that one counterfactual keeps."""
    return 1 - len(result.removed_edges) / max(result.edges, 1)


def accuracy(results: Sequence[Counterfactual], classes: NDArray[np.int64]) -> Measure:
    """The share of the deleted edges' end nodes, except the target, that are in a motif; 0 to 1, high is good.

    This is what the paper's tables call accuracy. It is the mean over the counterfactuals of targets in a motif.

    Args:
        results: explanations of nodes by one method.
        classes: the predicted class of every node of the intact graph, as `Session.classes`.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> session = butfor.prepare(model, data)
        >>> results = session.explain(range(600, 610))
        >>> print(butfor.evaluation.accuracy(results, session.classes))
        1.00 ± 0.00
    """
    shares = []
    for result in _in_motif(results):
        ends = sorted({node for edge in result.removed_edges for node in edge} - {result.target})
        shares.append(float(np.mean(classes[ends] > 0)))
    return Measure.of(shares)


def strict_accuracy(results: Sequence[Counterfactual], inside: Collection[tuple[int, int]]) -> Measure:
    """The share of counterfactuals that delete only edges inside motifs; 0 to 1, high is good.

    This is accuracy as the paper's text defines it, in contrast to its tables. It is over the same targets as
    `accuracy`.

    Args:
        results: explanations of nodes by one method.
        inside: the edges inside motifs, as `motif_edges` returns them.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> from butfor.evaluation import motif_edges, strict_accuracy
        >>> results = butfor.explain(model, data, range(600, 610))
        >>> print(strict_accuracy(results, motif_edges(data)))
        1.00 ± 0.00
    """
    edges = set(inside)
    return Measure.of([float(np.all(_hits(result, edges))) for result in _in_motif(results)])


def marked_share(results: Sequence[Counterfactual], marked: Mapping[int, Collection[tuple[int, int]]]) -> Measure:
    """The share of the edges deleted from a graph that are marked as ground truth; 0 to 1, high is good.

    This is the accuracy of explanations of whole graphs: the mean over those that delete edges of a graph in which
    some are marked.

    Args:
        results: explanations of whole graphs by one method.
        marked: the marked edges by the number of the graph.

    Examples:
        >>> import torch
        >>> import butfor
        >>> from butfor.evaluation import marked_share, motif_edges
        >>> class HasCycle(torch.nn.Module):
        ...     def forward(self, x, edge_index):
        ...         spare = edge_index.size(1) // 2 - x.size(0)  # -1 for a tree
        ...         return torch.tensor([[-0.5 - spare, 0.5 + spare]])
        >>> graphs = butfor.datasets.ba_2motifs(graphs=2)
        >>> marked = {number: motif_edges(graph) for number, graph in enumerate(graphs)}
        >>> print(marked_share(butfor.explain(HasCycle(), graphs), marked))
        0.00 ± 0.00
        >>> space = butfor.EditSpace(allowed="edge_motif")
        >>> print(marked_share(butfor.explain(HasCycle(), graphs, space=space), marked))
        1.00 ± 0.00
    """
    return Measure.of([float(np.mean(hits)) for hits in _hits_on_graphs(results, marked)])


def marked_only(results: Sequence[Counterfactual], marked: Mapping[int, Collection[tuple[int, int]]]) -> Measure:
    """The share of explanations that delete only edges marked as ground truth; 0 to 1, high is good.

    This is the strict accuracy of explanations of whole graphs, over the same ones as `marked_share`.

    Args:
        results: explanations of whole graphs by one method.
        marked: the marked edges by the number of the graph.

    Examples:
        >>> import torch
        >>> import butfor
        >>> from butfor.evaluation import marked_only, motif_edges
        >>> class HasCycle(torch.nn.Module):
        ...     def forward(self, x, edge_index):
        ...         spare = edge_index.size(1) // 2 - x.size(0)  # -1 for a tree
        ...         return torch.tensor([[-0.5 - spare, 0.5 + spare]])
        >>> graphs = butfor.datasets.ba_2motifs(graphs=2)
        >>> marked = {number: motif_edges(graph) for number, graph in enumerate(graphs)}
        >>> print(marked_only(butfor.explain(HasCycle(), graphs), marked))
        0.00 ± 0.00
        >>> space = butfor.EditSpace(allowed="edge_motif")
        >>> print(marked_only(butfor.explain(HasCycle(), graphs, space=space), marked))
        1.00 ± 0.00
    """
    return Measure.of([float(np.all(hits)) for hits in _hits_on_graphs(results, marked)])


# The columns, from left to right.
for _metric in (
    Metric("fidelity", fidelity, "fid.", better="low"),
    Metric("size", explanation_size, "size", better="low", show_std=True),
    Metric("sparsity", sparsity, "spars.", better="high", show_std=True),
    # The paper gives no standard deviation of its accuracy.
    Metric("accuracy", accuracy, "acc.", better="high", needs=("motif_classes",), on_graphs=marked_share),
    Metric("strict_accuracy", strict_accuracy, "strict", better="high", needs=("motif_edges",), on_graphs=marked_only),
):
    register_metric(_metric)


@dataclass(frozen=True)
class Metrics:
    """All metrics of one set of results.

    ``metrics["name"]`` is the value of any metric; those of this library are attributes too.

    Attributes:
        found: how many targets have a counterfactual.
        total: how many targets need one; a target that has the wanted class from the start does not.
        values: the value of every metric by its name; an empty `Measure` where what it needs was not given.
        failed: how many of the targets were not explained because the search broke off.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> metrics = butfor.evaluation.evaluate(butfor.explain(model, data, range(600, 610)))
        >>> metrics.found, metrics.failed
        (10, 0)
        >>> metrics["size"] == metrics.size
        True
        >>> metrics.record()["size"]
        1.2
    """

    found: int
    total: int
    values: Mapping[str, MetricValue]
    failed: int = 0

    def __getitem__(self, name: str) -> MetricValue:
        return self.values[name]

    @property
    def fidelity(self) -> float:
        """See `fidelity`."""
        return cast("float", self["fidelity"])

    @property
    def size(self) -> Measure:
        """See `explanation_size`."""
        return cast("Measure", self["size"])

    @property
    def sparsity(self) -> Measure:
        """See `sparsity`."""
        return cast("Measure", self["sparsity"])

    @property
    def accuracy(self) -> Measure:
        """See `accuracy`, and for whole graphs `marked_share`."""
        return cast("Measure", self["accuracy"])

    @property
    def strict_accuracy(self) -> Measure:
        """See `strict_accuracy`, and for whole graphs `marked_only`."""
        return cast("Measure", self["strict_accuracy"])

    def record(self) -> dict[str, float | None]:
        """Everything as one flat record of numbers, for CSV or JSON."""
        record: dict[str, float | None] = {"found": self.found, "total": self.total}
        for name, value in self.values.items():
            record |= METRICS[name].record(value)
        return record


def evaluate(
    results: Sequence[Counterfactual],
    data: Data | None = None,
    classes: NDArray[np.int64] | None = None,
    motifs: bool | None = None,
    *,
    graphs: Sequence[Data] | None = None,
) -> Metrics:
    """Compute all registered metrics, as far as what they need is given.

    Args:
        results: explanations by one method.
        data: for nodes, the graph that they are in; accuracy needs it.
        classes: for nodes, the predicted class of every node of the intact graph; accuracy needs them too.
        motifs: whether class 0 is the base and every other class a motif; otherwise accuracy means nothing.
            By default, whether the graph marks its motifs (``data.edge_motif``).
        graphs: for whole graphs, all of them, in the order of their numbers; accuracy needs them.

    Raises:
        InputError: motifs are asked for in a graph without labels, or a result is of none of the graphs.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> session = butfor.prepare(model, data)
        >>> results = session.explain(range(600, 610))
        >>> metrics = butfor.evaluation.evaluate(results, data, session.classes)
        >>> metrics.found, metrics.total, metrics.fidelity
        (10, 10, 0.0)
        >>> print(metrics.size, "edges;", metrics["accuracy"], "of their ends are in a motif")
        1.20 ± 0.40 edges; 1.00 ± 0.00 of their ends are in a motif
    """
    given: dict[Need, Any] = {}
    if data is not None and (data.get("edge_motif") is not None if motifs is None else motifs):
        given["motif_edges"] = motif_edges(data)
        if classes is not None:
            given["motif_classes"] = classes
    marked = None if graphs is None else _marked_edges(results, graphs)

    def value(metric: Metric) -> MetricValue:
        if marked is not None and metric.on_graphs is not None:
            return metric.on_graphs(results, marked)
        if all(need in given for need in metric.needs):
            return metric.function(results, *(given[need] for need in metric.needs))
        return Measure.of([])

    return Metrics(
        found=sum(result.found for result in results),
        total=sum(result.status is not Status.REACHED for result in results),
        values={name: value(metric) for name, metric in METRICS.items()},
        failed=sum(result.status is Status.FAILED for result in results),
    )


def motif_edges(data: Data) -> set[tuple[int, int]]:
    """The edges inside motifs: as ``data.edge_motif`` marks them, or else all edges between two nodes of motif classes.

    Args:
        data: the graph.

    Returns:
        Pairs of nodes, the smaller one first.

    Raises:
        InputError: the graph has neither ``edge_motif`` nor labels.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> edges = butfor.evaluation.motif_edges(data)
        >>> len(edges), (602, 603) in edges
        (360, True)
    """
    marked: Any = data.get("edge_motif")
    if marked is None:
        if data.get("y") is None:
            raise InputError("the motifs of this graph are not known; give it edge_motif or labels y")
        marked = (data.y[data.edge_index] > 0).all(dim=0)
    return {(min(u, v), max(u, v)) for u, v in data.edge_index[:, marked.bool()].T.tolist()}


def _marked_edges(results: Sequence[Counterfactual], graphs: Sequence[Data]) -> dict[int, set[tuple[int, int]]]:
    """By the number of each explained graph, the edges that it marks as ground truth."""
    marked = {}
    for result in results:
        number = result.target
        if isinstance(number, tuple) or result.task != "graph":
            raise InputError(f"{result.target_name} is not a whole graph; evaluate nodes, links and graphs separately")
        if not 0 <= number < len(graphs):
            raise InputError(
                f"{result.target_name} is not among the {len(graphs)} graphs; give all that were explained"
            )
        data = graphs[number]
        marked[number] = set() if data.get("edge_motif") is None else motif_edges(data)
    return marked


def _in_motif(results: Sequence[Counterfactual]) -> list[Counterfactual]:
    """The counterfactuals that delete edges, of targets in a motif."""
    return [result for result in results if result.removed_edges and result.before.label > 0]


def _hits_on_graphs(
    results: Sequence[Counterfactual], marked: Mapping[int, Collection[tuple[int, int]]]
) -> Iterator[list[bool]]:
    """The hits of each explanation that deletes edges, in graphs where some edges are marked."""
    for result in results:
        edges = marked[cast("int", result.target)]
        if edges and result.removed_edges:
            yield _hits(result, edges)


def _hits(result: Counterfactual, edges: Collection[tuple[int, int]]) -> list[bool]:
    """For every deleted edge, whether it is one of these."""
    return [(min(edge), max(edge)) in edges for edge in result.removed_edges]
