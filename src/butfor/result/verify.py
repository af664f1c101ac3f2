"""Verification: the one place where an edit set becomes a counterfactual, or does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from butfor.edits.edits import pack
from butfor.errors import ModelError
from butfor.predict.batch import Copies
from butfor.predict.preserved import untouched

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from butfor.edits.edits import Edits, EditSet
    from butfor.predict.predictor import Predictor
    from butfor.problem.problem import Problem

__all__ = ["TOGETHER", "Verified", "scores_after", "verify", "verify_together"]

# Problems that are verified together, and runs that are kept apart for them: one for each bit of a number.
TOGETHER = 256
RUNS = 64


@dataclass(frozen=True, eq=False)
class Verified:
    """What the model says on the whole graph after an edit set.

    Attributes:
        scores: of the target.
        reached: whether they reach the goal.
        as_expected: whether they are what the search was told.
    """

    scores: Tensor
    reached: bool
    as_expected: bool


def verify(problem: Problem, chosen: EditSet) -> Verified:
    """Make the edits on the whole graph and run the original model on it.

    Every method's answer passes through here or through `verify_together`, and nothing else fills a result.
    """
    return verify_together([(problem, chosen)])[0]


def verify_together(asked: Sequence[tuple[Problem, EditSet]]) -> list[Verified]:
    """Verify edit sets of several problems of a run, in as few runs of the model on the whole graph as will do.

    Targets share a run where no edit of one lies in the neighbourhood of another and the model is known to look no
    further (`Oracle.knows_layers`), so that there an edit cannot matter. A target that shares a run and does not get
    the scores, or the outcome, that its search was told is looked at alone before that is believed.
    """
    expected = _expected(asked)
    results: dict[int, Verified] = {}
    for group in _apart(asked):
        made = [(asked[number][0].edits, asked[number][1]) for number in group]
        for row, number in zip(_run(asked[0][0].predictor, made), group, strict=True):
            problem, chosen = asked[number]
            seen = _verified(problem, chosen, row, expected[number])
            if len(group) > 1 and not (seen.as_expected and seen.reached == problem.reaches(chosen, expected[number])):
                alone = scores_after(problem.predictor, problem.edits, chosen)
                seen = _verified(problem, chosen, alone, expected[number])
            results[number] = seen
    return [results[number] for number in range(len(asked))]


def _expected(asked: Sequence[tuple[Problem, EditSet]]) -> list[Tensor]:
    """What the oracles say of these sets, each asked alone: beside others, what is missing may not be missed."""
    return [problem.oracle.logits([(problem.edits, pack([chosen]))])[0][0] for problem, chosen in asked]


def _verified(problem: Problem, chosen: EditSet, scores: Tensor, expected: Tensor) -> Verified:
    return Verified(scores, problem.reaches(chosen, scores), problem.predictor.same(expected, scores))


def scores_after(predictor: Predictor, edits: Edits, chosen: EditSet) -> Tensor:
    """The target's scores on the whole graph after these edits."""
    return _run(predictor, [(edits, chosen)])[0]


def _run(predictor: Predictor, made: Sequence[tuple[Edits, EditSet]]) -> Tensor:
    targets = [edits.neighbourhood.targets for edits, _ in made]
    with untouched(predictor.model), torch.no_grad():
        try:
            return predictor(Copies.whole(predictor.graph, targets, made))
        except ModelError:
            # If the model still works on the intact graph it cannot do with the edits, and predicts nothing.
            predictor(Copies.whole(predictor.graph, targets))
            return torch.full_like(predictor.logits[:1], torch.nan).expand(len(targets), -1)


def _apart(asked: Sequence[tuple[Problem, EditSet]]) -> list[list[int]]:
    """Groups of problems that do not touch each other."""
    groups: list[list[int]] = []
    alone: list[list[int]] = []
    if asked:
        # Bit g of each edge: whether it is deleted in group g, and whether a target of group g sees it.
        deleted = np.zeros(asked[0][0].graph.edge_index.shape[1], dtype=np.uint64)
        seen = np.zeros_like(deleted)
    for number, (problem, chosen) in enumerate(asked):
        near, columns = problem.edits.neighbourhood, problem.edits.whole_columns(chosen)
        if not problem.edits.only_deletes or not problem.oracle.knows_layers:
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
