"""Verification: the one place where an edit set becomes a counterfactual, or does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from butfor.predictor import untouched

if TYPE_CHECKING:
    from torch import Tensor

    from butfor.edits import Edits, EditSet
    from butfor.graph import Graph
    from butfor.predictor import Predictor
    from butfor.problem import Problem

__all__ = ["scores_after", "verify"]


def verify(problem: Problem, chosen: EditSet) -> Tensor | None:
    """Make the edits on the whole graph and run the original model on it.

    Returns the target's scores if they reach the goal, else None. Every method's answer passes through
    here, and nothing else fills a result.
    """
    logits = scores_after(problem.graph, problem.predictor, problem.edits, chosen)
    return logits if bool(problem.goal.reached(logits, problem.before)) else None


def scores_after(graph: Graph, predictor: Predictor, edits: Edits, chosen: EditSet) -> Tensor:
    """The target's scores on the whole graph after these edits."""
    edge_index, carried = graph.without(edits.neighbourhood.edges[edits.columns(chosen)])
    fields = {name: carried[name] for name in predictor.fields}
    with untouched(predictor.model), torch.no_grad():
        return predictor(graph.x, edge_index, fields)[edits.neighbourhood.targets[0]]
