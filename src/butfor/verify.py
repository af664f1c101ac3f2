"""Verification: the one place where an edit set becomes a counterfactual, or does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from butfor.copies import Copies
from butfor.edits import pack
from butfor.predictor import FAILURES
from butfor.untouched import untouched

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from butfor.edits import Edits, EditSet
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
    return _reached(problem, chosen, scores_after(problem.predictor, problem.edits, chosen))


def verify_together(asked: Sequence[tuple[Problem, EditSet]]) -> list[Tensor | None]:
    """Verify one edit set for each problem of a run, in as few runs of the model on the whole graph as will do.

    Targets share a run where no edit of one lies in the neighbourhood of another: the model does not look
    further, so there an edit cannot matter. A target that shares a run and does not reach its goal is looked
    at alone before it is given up.
    """
    results: list[Tensor | None] = [None] * len(asked)
    for group in _apart(asked):
        made = [(asked[number][0].edits, asked[number][1]) for number in group]
        scores = _run(asked[0][0].predictor, made)
        for row, number in zip(scores, group, strict=True):
            problem, chosen = asked[number]
            results[number] = _reached(problem, chosen, row)
            if results[number] is None and len(group) > 1:
                results[number] = verify(problem, chosen)
    return results


def scores_after(predictor: Predictor, edits: Edits, chosen: EditSet) -> Tensor:
    """The target's scores on the whole graph after these edits."""
    return _run(predictor, [(edits, chosen)])[0]


def _run(predictor: Predictor, made: Sequence[tuple[Edits, EditSet]]) -> Tensor:
    targets = [edits.neighbourhood.targets for edits, _ in made]
    with untouched(predictor.model), torch.no_grad():
        try:
            return predictor(Copies.whole(predictor.graph, targets, made))
        except FAILURES:
            # If the model still works on the intact graph it cannot do with the edits, and predicts nothing.
            predictor(Copies.whole(predictor.graph, targets))
            return torch.full_like(predictor.logits[:1], torch.nan).expand(len(targets), -1)


def _reached(problem: Problem, chosen: EditSet, logits: Tensor) -> Tensor | None:
    allowed = not problem.edits.constrained or problem.edits.permits(pack([chosen]))[0]
    return logits if allowed and problem.goal.judge(logits[None], problem.before)[1][0] else None


def _apart(asked: Sequence[tuple[Problem, EditSet]]) -> list[list[int]]:
    """Groups of problems that do not touch each other; a model that sees the whole graph makes each one its own."""
    groups: list[list[int]] = []
    alone: list[list[int]] = []
    if asked:
        # Bit g of each edge: whether it is deleted in group g, and whether a target of group g sees it.
        deleted = np.zeros(asked[0][0].graph.edge_index.shape[1], dtype=np.uint64)
        seen = np.zeros_like(deleted)
    for number, (problem, chosen) in enumerate(asked):
        near, columns = problem.edits.neighbourhood, problem.edits.whole_columns(chosen)
        if not problem.edits.only_deletes or problem.predictor.task != "node":
            alone.append([number])
            continue
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
