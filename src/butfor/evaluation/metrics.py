"""The paper's four metrics, as plain functions of verified results.

"In a motif" means any class but 0, the base, as in the paper's three datasets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from butfor.result.counterfactual import Status

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray
    from torch_geometric.data import Data

    from butfor.result.counterfactual import Counterfactual

__all__ = [
    "Measure",
    "Metrics",
    "accuracy",
    "evaluate",
    "explanation_size",
    "fidelity",
    "motif_edges",
    "share_kept",
    "sparsity",
    "strict_accuracy",
]


@dataclass(frozen=True)
class Measure:
    """A mean with its standard deviation over ``count`` results, dividing by the count as the paper does."""

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
            return "–"
        return f"{self.mean:.2f}" if math.isnan(self.std) else f"{self.mean:.2f} ± {self.std:.2f}"


@dataclass(frozen=True)
class Metrics:
    """All metrics of one set of results; targets that are as wanted already do not count."""

    found: int
    total: int
    fidelity: float
    size: Measure
    sparsity: Measure
    accuracy: Measure
    strict_accuracy: Measure


def fidelity(results: Sequence[Counterfactual]) -> float:
    """The share of targets without a counterfactual, of those that need one; 0 to 1, low is good."""
    asked = [result for result in results if result.status is not Status.REACHED]
    return 1 - sum(result.found for result in asked) / len(asked) if asked else math.nan


def explanation_size(results: Sequence[Counterfactual]) -> Measure:
    """Removed edges, over the targets with a counterfactual; at least 1, low is good."""
    return Measure.of([result.size for result in results if result.size is not None])


def sparsity(results: Sequence[Counterfactual]) -> Measure:
    """The share of the neighbourhood's edges that stay, over the same targets; 0 to 1, high is good."""
    return Measure.of([share_kept(result) for result in results if result.found])


def share_kept(result: Counterfactual) -> float:
    """The share of the neighbourhood's edges that stay."""
    return 1 - len(result.removed_edges) / max(result.edges, 1)


def accuracy(results: Sequence[Counterfactual], classes: NDArray[np.int64]) -> Measure:
    """The share of the removed edges' end nodes, the target left out, predicted in a motif; high is good.

    Over targets that are predicted in a motif and have a counterfactual. ``classes`` holds the
    predicted class of every node of the intact graph. This is what the paper's tables call accuracy.
    """
    shares = []
    for result in _in_motif(results):
        ends = sorted({node for edge in result.removed_edges for node in edge} - {result.target})
        shares.append(float(np.mean(classes[ends] > 0)))
    return Measure.of(shares)


def strict_accuracy(results: Sequence[Counterfactual], inside: Collection[tuple[int, int]]) -> Measure:
    """The share of explanations that remove nothing but edges inside a motif; 0 to 1, high is good.

    Over the same targets as `accuracy`. ``inside`` are the edges inside motifs, as `motif_edges` gives
    them. This is how the paper's text, not its tables, reads.
    """
    edges = set(inside)
    return Measure.of(
        [float(all((min(e), max(e)) in edges for e in result.removed_edges)) for result in _in_motif(results)]
    )


def motif_edges(data: Data) -> set[tuple[int, int]]:
    """The edges inside motifs: by ``data.edge_motif``, or else those between two nodes labelled so."""
    marked: Any = data.get("edge_motif")
    if marked is None:
        marked = (data.y[data.edge_index] > 0).all(dim=0)
    return {(min(u, v), max(u, v)) for u, v in data.edge_index[:, marked.bool()].T.tolist()}


def evaluate(
    results: Sequence[Counterfactual],
    data: Data | None = None,
    classes: NDArray[np.int64] | None = None,
    motifs: bool | None = None,
) -> Metrics:
    """All metrics; ``classes`` as for `accuracy`, which needs the graph and them.

    ``motifs`` says whether the classes tell base and motifs apart, without which accuracy means nothing;
    unless given, they do if the data carry ``edge_motif``.
    """
    share = strict = Measure.of([])
    if data is not None and classes is not None and (data.get("edge_motif") is not None if motifs is None else motifs):
        share, strict = accuracy(results, classes), strict_accuracy(results, motif_edges(data))
    return Metrics(
        found=sum(result.found for result in results),
        total=sum(result.status is not Status.REACHED for result in results),
        fidelity=fidelity(results),
        size=explanation_size(results),
        sparsity=sparsity(results),
        accuracy=share,
        strict_accuracy=strict,
    )


def _in_motif(results: Sequence[Counterfactual]) -> list[Counterfactual]:
    return [result for result in results if result.removed_edges and result.before.label > 0]
