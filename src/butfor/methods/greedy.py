"""Greedy search: the steepest verified step first, then pruned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from butfor.errors import InputError
from butfor.methods.base import Method
from butfor.problem.problem import Proposal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from butfor.problem.problem import Budget, Meter, Problem

__all__ = ["NO_GRADIENT", "Descent", "Greedy", "pruned"]

NO_GRADIENT = "The model offers no gradients that agree with the edits, so the search went without."


@dataclass(frozen=True)
class Descent:
    """What a descent found.

    Attributes:
        sets: edit sets that reach the goal with the margin that each leaves: the pruned one, then the one as found.
        lower_bound: proved: no set that costs less reaches the goal.
        exhausted: proved: no set of allowed edits reaches it.
        note: what the user should know about it.
    """

    sets: tuple[tuple[float, tuple[int, ...]], ...]
    lower_bound: float
    exhausted: bool = False
    note: str = ""


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

    def solve(self, problem: Problem, budget: Budget) -> Proposal:
        """Descend until the goal is reached, no edit is left or the budget is spent."""
        meter = budget.meter()
        found = self.descend(problem, meter)
        sets = tuple(edits for _, edits in found.sets)
        return Proposal(
            sets, found.lower_bound, found.exhausted, meter.evaluations, failures=meter.failures, note=found.note
        )

    def most_evaluations(self, count: int) -> int:
        """What a descent among so many edits costs at most."""
        width = count if self.width is None else min(self.width, count)
        # All steps, of which the last have fewer edits left than are checked; without gradients, a first one that
        # checks all; and what was found is pruned one by one.
        return width * (count - width) + width * (width + 1) // 2 + count + count * (count + 1) // 2

    def descend(self, problem: Problem, meter: Meter) -> Descent:
        """The search itself, on somebody's meter."""
        costs = problem.edits.costs
        lower_bound = problem.least_cost
        exhausted = False
        chosen: list[int] = []
        margin = problem.margin
        found = False
        # What each edit did when it was last checked; those that never were come first.
        effect = np.full(len(costs), np.inf)
        ranked_blindly = False
        while not found and not meter.spent:
            candidates, blind = self._candidates(problem, chosen, effect, meter)
            ranked_blindly |= blind
            if not len(candidates):
                # Nothing may follow, or time ran out just now.
                break
            answers = problem.extend(chosen, candidates, meter)
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
            return Descent((), lower_bound, exhausted, note)
        kept, kept_margin = pruned(problem, chosen, meter, margin)
        whole = margin, tuple(sorted(chosen))
        return Descent(((kept_margin, kept), whole), lower_bound, note=note)

    def _candidates(
        self, problem: Problem, chosen: list[int], effect: NDArray[np.float64], meter: Meter
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
        return free[: count if meter.left is None else min(count, meter.left)], blind


def pruned(
    problem: Problem, chosen: Sequence[int], meter: Meter, margin: float = np.nan
) -> tuple[tuple[int, ...], float]:
    """Undo edits, the dearest first, for as long as the goal stays reached; what is left, and its margin."""
    costs = problem.edits.costs
    kept = sorted(chosen)
    while len(kept) > 1 and (meter.left is None or meter.left >= len(kept)):
        answers = problem.ask([kept[:i] + kept[i + 1 :] for i in range(len(kept))], meter)
        if not answers.reached.any():
            break
        order = np.lexsort([np.array(kept), answers.margins, -costs[kept], ~answers.reached])
        margin = float(answers.margins[order[0]])
        del kept[order[0]]
    return tuple(kept), margin
