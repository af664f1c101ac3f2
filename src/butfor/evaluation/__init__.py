"""What the results of a run are worth."""

from butfor.evaluation.metrics import (
    Measure,
    Metrics,
    accuracy,
    evaluate,
    explanation_size,
    fidelity,
    motif_edges,
    sparsity,
    strict_accuracy,
)

__all__ = [
    "Measure",
    "Metrics",
    "accuracy",
    "evaluate",
    "explanation_size",
    "fidelity",
    "motif_edges",
    "sparsity",
    "strict_accuracy",
]
