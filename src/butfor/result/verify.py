"""Verification: run the model on the edited graph, all of it or all that counts, and ask whether that is the goal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from butfor.edits.edits import pack
from butfor.predict.truth import logits_after, logits_after_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from butfor.edits.edits import EditSet
    from butfor.problem.problem import Problem

__all__ = ["Verified", "verify", "verify_many"]

# At most this many shared runs: which targets take part in which is kept in the bits of a uint64.
RUNS = 64


@dataclass(frozen=True, eq=False)
class Verified:
    """What the model says on the whole graph after an edit set.

    Attributes:
        logits: of the target.
        reached: whether they reach the goal.
        as_expected: whether they are what the search was told.
    """

    logits: Tensor
    reached: bool
    as_expected: bool


def verify(problem: Problem, chosen: EditSet) -> Verified:
    """Make the edits on the whole graph and run the original model on it.

    Every method's answer passes through here or through `verify_many`, and nothing else fills a result.
    """
    return verify_many([(problem, chosen)])[0]


def verify_many(asked: Sequence[tuple[Problem, EditSet]], runs: int = RUNS) -> list[Verified]:
    """Verify edit sets of several problems in as few runs of the model on the whole graph as possible.

    Targets share a run where no edit of one is visible to another and the model is known to look no further
    (`Problem.is_local`), so that it has no effect there. If a target's logits or outcome in a shared run
    differ from what its search saw, it is run again alone.
    """
    expected = _expected(asked)
    results: dict[int, Verified] = {}
    for group in _disjoint_groups(asked, runs):
        made = [(asked[number][0].edits, asked[number][1]) for number in group]
        for row, number in zip(logits_after_all(asked[0][0].predictor, made), group, strict=True):
            problem, chosen = asked[number]
            seen = _verified(problem, chosen, row, expected[number])
            if len(group) > 1 and not (seen.as_expected and seen.reached == problem.reaches(chosen, expected[number])):
                alone = logits_after(problem.predictor, problem.edits, chosen)
                seen = _verified(problem, chosen, alone, expected[number])
            results[number] = seen
    return [results[number] for number in range(len(asked))]


def _expected(asked: Sequence[tuple[Problem, EditSet]]) -> list[Tensor]:
    """What the oracles say of these sets, each asked alone: in a batch, copies could hide that something is missing."""
    return [problem.oracle.logits([(problem.edits, pack([chosen]))])[0][0] for problem, chosen in asked]


def _verified(problem: Problem, chosen: EditSet, logits: Tensor, expected: Tensor) -> Verified:
    return Verified(logits, problem.reaches(chosen, logits), problem.predictor.same_logits(expected, logits))


def _disjoint_groups(asked: Sequence[tuple[Problem, EditSet]], runs: int) -> list[list[int]]:
    """Groups of problems in which no edit of one is visible to another."""
    groups: list[list[int]] = []
    alone: list[list[int]] = []
    if asked and asked[0][0].predictor.scope == "receptive-field":
        return [[number] for number in range(len(asked))]
    if asked:
        # Bit g of each edge: whether it is deleted in group g, and whether a target of group g sees it.
        deleted = np.zeros(asked[0][0].graph.edge_index.shape[1], dtype=np.uint64)
        seen = np.zeros_like(deleted)
    for number, (problem, chosen) in enumerate(asked):
        edits, columns = problem.edits, problem.edits.whole_columns(chosen)
        if not edits.only_deletes or not problem.is_local:
            alone.append([number])
            continue
        visible = edits.neighbourhood.columns[edits.visible]
        taken = int(np.bitwise_or.reduce(seen[columns]) | np.bitwise_or.reduce(deleted[visible]))
        free = (taken + 1) & ~taken
        group = free.bit_length() - 1
        if group == runs:
            alone.append([number])
            continue
        if group >= len(groups):
            group = len(groups)
            groups.append([])
        bit = np.uint64(1 << group)
        deleted[columns] |= bit
        seen[visible] |= bit
        groups[group].append(number)
    return groups + alone
