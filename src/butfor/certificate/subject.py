"""What a proof is about: the edits of a target, what they cost, and bounds on the scores that they lead to."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from butfor.certificate.bounds import Bounds
from butfor.certificate.early import times
from butfor.oracle.program.build import differences
from butfor.oracle.program.restriction import Restrictable
from butfor.oracle.program.steps import in_order
from butfor.oracle.program.trace import Untraceable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from butfor.problem.problem import Problem

__all__ = ["Subject", "listed"]

# Room for the rounding of scores in single precision, relative to 1 + the largest score that the edits may lead to.
SLACK = 1e-4

# Bounds keep for each row of the program which edits it depends on: at most so many truth values, a byte each.
MOST_TOLD = 500_000_000


@dataclass(frozen=True, eq=False)
class Subject:
    """One target, and which sets of its edits are to be ruled out.

    Attributes:
        costs: of each edit.
        below: sets that cost less are to be ruled out.
        rounding: how far sums of the same costs may lie apart.
        max_edits: the size of the largest set that is allowed.
        bounds: on the differences of scores that decide whether the goal is reached, and on the scores behind them;
            None where nothing can be bounded.
        unbounded: why nothing can be bounded; empty where something can.
        pairs: these differences, one a row.
        lead: how far below 0 a difference has to fall.
        every: whether every difference has to fall that far to reach the goal, as for a wanted class; else one is
            enough.
    """

    costs: NDArray[np.float64]
    below: float
    rounding: float
    max_edits: int
    bounds: Bounds | None
    unbounded: str
    pairs: NDArray[np.float64]
    lead: float
    every: bool

    @classmethod
    def of(cls, problem: Problem, below: float) -> Subject:
        """The subject of a problem."""
        edits, goal = problem.edits, problem.goal
        pairs = goal.pairs(problem.predictor.num_classes, problem.before)
        largest = len(edits) if edits.max_edits is None else edits.max_edits
        bounds, why = None, "features are changed, and the checker bounds deletions and additions only"
        if not len(edits.changes.edit):
            try:
                bounds, why = _bounds(problem, pairs), ""
            except Untraceable as untraceable:
                why = f"the model's scores cannot be bounded: {untraceable}"
        if bounds is not None and np.isnan(bounds.exactly(np.zeros(len(edits) + 1, dtype=bool))).any():
            bounds, why = None, "the model computes a function that the checker has no bounds for"
        every = goal.wanted is not None
        return cls(edits.costs, below, edits.rounding(below), largest, bounds, why, pairs, goal.lead, every)

    def most(self, made: Sequence[int], free: NDArray[np.int64]) -> int:
        """How many free edits a set that is to be ruled out can contain beside ``made``, at most."""
        affordable = int(np.searchsorted(np.cumsum(np.sort(self.costs[free])), self._room(made), side="left"))
        return max(min(affordable, self.max_edits - len(made)), 0)

    def is_wanted(self, made: Sequence[int]) -> bool:
        """Whether this set is to be ruled out: it costs less than ``below``, and is not too large."""
        return self._room(made) > 0 and len(made) <= self.max_edits

    def _room(self, made: Sequence[int]) -> float:
        """What may be spent beside ``made``."""
        return self.below - self.rounding - float(self.costs[list(made)].sum())

    def is_bounded(self, made: Sequence[int], free: NDArray[np.int64]) -> bool:
        """Whether a bound rules out all sets of ``made`` and some free edits that are to be ruled out."""
        if self.bounds is None:
            return False
        low, high = self.bounds.ends(self._mask(made), self._mask(free), self.most(made, free))
        count = len(self.pairs)
        score = float(np.maximum(np.abs(low), np.abs(high))[count:].max())
        clear = low[:count] > SLACK * (1 + score) - self.lead
        return bool(clear.any() if self.every else clear.all())

    def exactly(self, made: Sequence[int]) -> NDArray[np.float64]:
        """The differences of scores after these edits, by the program that is bounded."""
        assert self.bounds is not None
        return self.bounds.exactly(self._mask(made))[: len(self.pairs)]

    def _mask(self, edits: Sequence[int] | NDArray[np.int64]) -> NDArray[np.bool_]:
        mask = np.zeros(len(self.costs) + 1, dtype=bool)
        mask[list(edits)] = True
        return mask


def _bounds(problem: Problem, pairs: NDArray[np.float64]) -> Bounds:
    """Bounds on these differences of the target's scores and, behind them, on the scores.

    Raises:
        Untraceable: the model has no program, or one that is too large.
    """
    edits = problem.edits
    scores = differences(problem.predictor, edits, np.eye(pairs.shape[1]))
    # Only the rows that the target needs.
    out, row = Restrictable(scores).of(0, np.arange(edits.all_ends.shape[1]))
    assert row == 0
    # The scores themselves say how much rounding may hide.
    out = times(out, np.concatenate([pairs, np.eye(pairs.shape[1])]).T)
    told = sum(value.rows for _, value in in_order(out)) * len(edits)
    if told > MOST_TOLD:
        raise Untraceable(f"a table of {told:,} rows and edits")
    owner = np.concatenate([edits.edit_of, edits.new_edit])
    return Bounds(out, owner, np.arange(len(owner)) >= len(edits.edit_of), len(edits))


def listed(problem: Problem) -> tuple[str, ...]:
    """What each edit does, in the order of their numbers."""
    edits = problem.edits
    return tuple(json.dumps([one.plain for one in edits.records([edit])]) for edit in range(len(edits)))
