"""Verification: run the model on the edited graph, all of it or all that counts, and ask whether that is the goal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from butfor.edits.edits import pack
from butfor.predict.truth import logits_after, logits_after_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from butfor.edits.edits import EditSet
    from butfor.problem.problem import Problem

__all__ = ["Verified", "verify", "verify_many"]

# So many shared runs are filled at a time: which targets take part in which is kept in the bits of a uint64.
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

    Targets share a run where no edit of one can matter to another (`_disjoint_groups`). If a target's logits or outcome
    in a shared run differ from what its search saw, it is run again alone.
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
    """Groups of problems in which no edit of one can matter to another.

    Let F be the edges that can matter to a target after its own edits (`_field`). In a shared run the edits of others
    are made as well. If none of these deletes an edge of F, the target hears in that run along the same edges, from the
    same nodes, as it would alone: by induction over the hops, the nodes at each distance are the same, and so are the
    edges that lead to them. So a hub does not keep targets apart: all may have it in their receptive fields as long
    as the edges that are deleted lie in that of one target only, or all who see an edge delete it themselves.
    """
    if not asked or asked[0][0].predictor.scope == "receptive-field":
        return [[number] for number in range(len(asked))]
    can_share = [problem.edits.only_deletes and problem.is_local for problem, _ in asked]
    alone = [[number] for number, can in enumerate(can_share) if not can]
    waiting = [number for number, can in enumerate(can_share) if can]
    fields = {number: _field(*asked[number]) for number in waiting}
    groups: list[list[int]] = []
    while waiting:
        filled, waiting = _first_fit(asked, fields, waiting, runs)
        groups += filled
    return groups + alone


def _first_fit(
    asked: Sequence[tuple[Problem, EditSet]], fields: dict[int, NDArray[np.int64]], waiting: list[int], runs: int
) -> tuple[list[list[int]], list[int]]:
    """Each target in the first of so many groups that it fits into; and those that fit into none."""
    groups: list[list[int]] = []
    left: list[int] = []
    # Bit g of each edge: whether it is deleted in group g, and whether it can matter to a target of group g.
    deleted = np.zeros(asked[0][0].graph.edge_index.shape[1], dtype=np.uint64)
    seen = np.zeros_like(deleted)
    for number in waiting:
        problem, chosen = asked[number]
        columns, field = problem.edits.whole_columns(chosen), fields[number]
        taken = int(np.bitwise_or.reduce(seen[columns]) | np.bitwise_or.reduce(deleted[field]))
        free = (taken + 1) & ~taken
        group = free.bit_length() - 1
        if group == runs:
            left.append(number)
            continue
        if group == len(groups):
            groups.append([])
        bit = np.uint64(1 << group)
        deleted[columns] |= bit
        seen[field] |= bit
        groups[group].append(number)
    return groups, left


def _field(problem: Problem, chosen: EditSet) -> NDArray[np.int64]:
    """The edges of the whole graph that can matter to a target after these edits: its receptive field, edited.

    What the edits delete is gone whoever else deletes it. Where the code shows that the model hears along edges alone,
    what they cut off does not matter either: of an edge that does, one end is still near enough. (Not only the end
    that hears: a layer may count the edges that leave a node.)
    """
    edits, near = problem.edits, problem.edits.neighbourhood
    kept = np.ones(near.num_columns, dtype=bool)
    kept[edits.columns(chosen)] = False
    matters = kept & edits.visible
    if problem.predictor.hears_only_messages:
        matters &= near.within_reach(kept)[near.edge_index].any(axis=0)
    return near.columns[matters]
