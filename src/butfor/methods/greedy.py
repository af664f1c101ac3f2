"""Greedy search: the steepest verified step first, then pruned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from butfor.errors import InputError
from butfor.methods.base import Method
from butfor.problem.proposal import Proposal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from butfor.problem.problem import Problem

__all__ = ["NO_GRADIENT", "Greedy", "pruned"]

NO_GRADIENT = "The model offers no gradients that agree with the edits, so the search went without."


@dataclass(frozen=True)
class Greedy(Method):
    """Make the edit that brings the goal closest, again and again; then undo what is not needed.

    In each step the edits are ranked by the gradient of the margin, where the model gives one, and the
    best ``width`` are checked by making them. Without gradients the first step checks all, and later ones
    rank the edits by what each did when it was last checked.

    Attributes:
        width: how many edits are checked in each step; None for all.
    """

    width: int | None = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width is not None and self.width < 1:
            raise InputError(f"width is {self.width}; at least one edit must be checked in each step")

    def most_evaluations(self, num_edits: int) -> int:
        """An upper limit of what a search among this many edits costs."""
        width = num_edits if self.width is None else min(self.width, num_edits)
        # Every step checks `width` edits, or as many as are left; without gradients the first step checks all; and what
        # was found is pruned one by one.
        steps = width * (num_edits - width) + width * (width + 1) // 2
        return steps + num_edits + num_edits * (num_edits + 1) // 2

    def solve(self, problem: Problem) -> Proposal:
        """Descend until the goal is reached, no edit is left or the budget is spent; then prune."""
        costs, meter = problem.edits.costs, problem.meter
        lower_bound = problem.least_cost
        exhausted = False
        chosen: list[int] = []
        margin = problem.margin
        found = False
        # What each edit did when it was last checked; those that never were come first.
        effect = np.full(len(costs), np.inf)
        ranked_blindly = False
        while not found and not meter.spent:
            candidates, blind = self._candidates(problem, chosen, effect)
            ranked_blindly |= blind
            if not len(candidates):
                # Nothing may follow, or time ran out just now.
                break
            answers = problem.extend(chosen, candidates)
            candidates = candidates[: len(answers.margins)]
            effect[candidates] = margin - answers.margins
            found = bool(answers.reached.any())
            if not chosen and not found and len(candidates) == len(problem.free(())):
                # Every single edit was tried, so two are needed, or there is nothing to be had.
                exhausted = len(costs) == 1 or problem.edits.max_edits == 1
                lower_bound = float(np.sort(costs)[:2].sum())
            if found:
                ranked = np.lexsort([candidates, answers.margins, costs[candidates], ~answers.reached])
            else:
                ranked = np.lexsort([candidates, (answers.margins - margin) / costs[candidates]])
            margin = float(answers.margins[ranked[0]])
            chosen.append(int(candidates[ranked[0]]))
        note = NO_GRADIENT if ranked_blindly else ""
        if not found:
            return Proposal((), lower_bound, exhausted, note=note)
        kept, kept_margin = pruned(problem, chosen, margin)
        # The larger set, as found, is kept in reserve in case the whole graph refutes the pruned one.
        return Proposal((kept, tuple(sorted(chosen))), lower_bound, margins=(kept_margin, margin), note=note)

    def _candidates(
        self, problem: Problem, chosen: list[int], effect: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], bool]:
        """The edits to check, and whether they had to be ranked without a gradient."""
        free = problem.free(chosen)
        count = len(free)
        blind = False
        if self.width is not None and self.width < count:
            gradient = problem.gradient(chosen)
            blind = gradient is None
            promise = (effect if gradient is None else gradient)[free] / problem.edits.costs[free]
            free = free[np.argsort(-promise, kind="stable")]
            count = max(self.width, int(np.isinf(promise).sum()))
        left = problem.meter.left
        return free[: count if left is None else min(count, left)], blind


def pruned(problem: Problem, chosen: Sequence[int], margin: float = np.nan) -> tuple[tuple[int, ...], float]:
    """Undo edits, the most expensive first, as long as the goal stays reached; returns what is left, and its margin."""
    costs, meter = problem.edits.costs, problem.meter
    kept = sorted(chosen)
    while len(kept) > 1 and (meter.left is None or meter.left >= len(kept)):
        answers = problem.ask([kept[:i] + kept[i + 1 :] for i in range(len(kept))])
        if not answers.reached.any():
            break
        order = np.lexsort([np.array(kept), answers.margins, -costs[kept], ~answers.reached])
        margin = float(answers.margins[order[0]])
        del kept[order[0]]
    return tuple(kept), margin
