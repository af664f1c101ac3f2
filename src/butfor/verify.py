"""Verification: the one place where an edit set becomes a counterfactual, or does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from butfor.predictor import untouched

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from butfor.problem import Problem

__all__ = ["verify"]


def verify(problem: Problem, chosen: Sequence[int]) -> Tensor | None:
    """Make the edits on the whole graph and run the original model on it.

    Returns the target's scores if they reach the goal, else None. Every method's answer passes through
    here, and nothing else fills a result.
    """
    graph, predictor = problem.graph, problem.predictor
    columns = problem.edits.neighbourhood.edges[problem.edits.columns(chosen)]
    edge_index, carried = graph.without(columns)
    fields = {name: carried[name] for name in predictor.fields}
    with untouched(predictor.model), torch.no_grad():
        logits = predictor(graph.x, edge_index, fields)[problem.target]
    return logits if bool(problem.goal.reached(logits, problem.before)) else None
