"""How good explanations are: metrics, significance tests, and the tables and figures that show them."""

from butfor.evaluation.metrics import (
    Metrics,
    accuracy,
    evaluate,
    explanation_size,
    fidelity,
    marked_only,
    marked_share,
    motif_edges,
    sparsity,
    strict_accuracy,
)
from butfor.evaluation.registry import METRICS, Measure, Metric, register_metric, unregister_metric

__all__ = [
    "METRICS",
    "Measure",
    "Metric",
    "Metrics",
    "accuracy",
    "evaluate",
    "explanation_size",
    "fidelity",
    "marked_only",
    "marked_share",
    "motif_edges",
    "register_metric",
    "sparsity",
    "strict_accuracy",
    "unregister_metric",
]
