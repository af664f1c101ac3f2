"""Verification: the one place where an edit set becomes a counterfactual, or does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from butfor.predictor import untouched

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from butfor.edits import Edits, EditSet
    from butfor.graph import Graph
    from butfor.predictor import Predictor
    from butfor.problem import Problem

__all__ = ["TOGETHER", "scores_after", "verify", "verify_together"]

# Problems that are verified together, and runs that are kept apart for them: one for each bit of a number.
TOGETHER = 256
RUNS = 64


def verify(problem: Problem, chosen: EditSet) -> Tensor | None:
    """Make the edits on the whole graph and run the original model on it.

    Returns the target's scores if they reach the goal, else None. Every method's answer passes through
    here or through `verify_together`, and nothing else fills a result.
    """
    return _reached(problem, scores_after(problem.graph, problem.predictor, problem.edits, chosen))


def verify_together(asked: Sequence[tuple[Problem, EditSet]]) -> list[Tensor | None]:
    """Verify one edit set for each problem of a run, in as few runs of the model on the whole graph as will do.

    Targets share a run where no edit of one lies in the neighbourhood of another: the model does not look
    further, so there an edit cannot matter. A target that shares a run and does not reach its goal is looked
    at alone before it is given up.
    """
    results: list[Tensor | None] = [None] * len(asked)
    for group in _apart(asked):
        problem = asked[group[0]][0]
        columns = [_columns(*asked[number]) for number in group]
        scores = _run(problem.graph, problem.predictor, np.concatenate(columns))
        for number in group:
            problem, chosen = asked[number]
            results[number] = _reached(problem, scores[problem.target])
            if results[number] is None and len(group) > 1:
                results[number] = verify(problem, chosen)
    return results


def scores_after(graph: Graph, predictor: Predictor, edits: Edits, chosen: EditSet) -> Tensor:
    """The target's scores on the whole graph after these edits."""
    return _run(graph, predictor, edits.neighbourhood.edges[edits.columns(chosen)])[edits.neighbourhood.targets[0]]


def _run(graph: Graph, predictor: Predictor, columns: NDArray[np.int64]) -> Tensor:
    edge_index, carried = graph.without(columns)
    fields = {name: carried[name] for name in predictor.fields}
    with untouched(predictor.model), torch.no_grad():
        return predictor(graph.x, edge_index, fields)


def _reached(problem: Problem, logits: Tensor) -> Tensor | None:
    return logits if problem.goal.judge(logits[None], problem.before)[1][0] else None


def _columns(problem: Problem, chosen: EditSet) -> NDArray[np.int64]:
    return problem.edits.neighbourhood.edges[problem.edits.columns(chosen)]


def _apart(asked: Sequence[tuple[Problem, EditSet]]) -> list[list[int]]:
    """Groups of problems that do not touch each other; a model that sees the whole graph makes each one its own."""
    groups: list[list[int]] = []
    alone: list[list[int]] = []
    if asked:
        # Bit g of each edge: whether it is deleted in group g, and whether a target of group g sees it.
        deleted = np.zeros(asked[0][0].graph.edge_index.shape[1], dtype=np.uint64)
        seen = np.zeros_like(deleted)
    for number, (problem, chosen) in enumerate(asked):
        near, columns = problem.edits.neighbourhood, _columns(problem, chosen)
        taken = int(np.bitwise_or.reduce(seen[columns]) | np.bitwise_or.reduce(deleted[near.edges]))
        free = (taken + 1) & ~taken
        group = free.bit_length() - 1
        if group == RUNS:
            alone.append([number])
            continue
        if group >= len(groups):
            group = len(groups)
            groups.append([])
        bit = np.uint64(1 << group)
        deleted[columns] |= bit
        seen[near.edges] |= bit
        groups[group].append(number)
    return groups + alone
