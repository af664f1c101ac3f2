"""Greedy search: the steepest verified step first, then pruned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from butfor.errors import InputError
from butfor.methods.base import Method
from butfor.problem.goal import ENDLESS
from butfor.problem.proposal import Proposal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from butfor.problem.problem import Problem

__all__ = ["NO_GRADIENT", "Greedy", "Path", "leads", "pruned"]

NO_GRADIENT = "The model offers no gradients that agree with the edits, so the search went without."


@dataclass(frozen=True)
class Greedy(Method):
    """Make the edit that brings the goal closest, again and again; then undo what is not needed.

    In each step the edits are ranked by the gradient of the margin, where the model gives one, and the
    best ``width`` are checked by making them. Without gradients the first step checks all, and later ones
    rank the edits by what each did when it was last checked.

    Attributes:
        width: how many edits are checked in each step; None for all.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> cf = butfor.explain(model, data, 605, butfor.Greedy(width=16))
        >>> print(cf)
        Node 605 is predicted 'motif' (0.93). But for these 2 of its 11 edges it would be 'base' (0.83):
            602–603, 605–606.
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
        path = Path(problem, self.width)
        path.walk()
        return path.proposal()


class Path:
    """Greedy steps, which can be interrupted and continued; towards one class, or whichever is nearest."""

    def __init__(self, problem: Problem, width: int | None, aim: int | None = None) -> None:
        self.problem, self.width, self.aim = problem, width, aim
        self.lower_bound = problem.least_cost
        self.exhausted = False
        self.chosen: list[int] = []
        self.margin = float(leads(problem, problem.logits[None], aim)[0])
        self.found = self.ended = False
        # What each edit did when it was last checked; those that never were come first.
        self.effect = np.full(len(problem.edits), np.inf)
        self.ranked_blindly = False

    def walk(self, most: int | None = None, below: float = np.inf) -> None:
        """Go on until the goal is reached, nothing may follow, or the budget is spent.

        Or until ``most`` edits are made, or as many as cost ``below`` or more.
        """
        while not self.ended and not self.problem.meter.spent:
            if (most is not None and len(self.chosen) >= most) or self.problem.edits.cost(self.chosen) >= below:
                return
            self._step()

    def _step(self) -> None:
        problem, costs = self.problem, self.problem.edits.costs
        candidates, blind = self._candidates()
        self.ranked_blindly |= blind
        if not len(candidates):
            # Nothing may follow, or time ran out just now.
            self.ended = True
            return
        answers = problem.extend(self.chosen, candidates)
        candidates = candidates[: len(answers.margins)]
        margins = leads(problem, answers.logits, self.aim) if self.aim is not None else answers.margins
        self.effect[candidates] = self.margin - margins
        self.found = self.ended = bool(answers.reached.any())
        if not self.chosen and not self.found and len(candidates) == len(problem.free(())):
            # Every single edit was tried, so two are needed, or there is nothing to be had.
            self.exhausted = len(costs) == 1 or problem.edits.max_edits == 1
            self.lower_bound = float(np.sort(costs)[:2].sum())
        if self.found:
            ranked = np.lexsort([candidates, answers.margins, costs[candidates], ~answers.reached])
            margins = answers.margins
        else:
            ranked = np.lexsort([candidates, (margins - self.margin) / costs[candidates]])
        self.margin = float(margins[ranked[0]])
        self.chosen.append(int(candidates[ranked[0]]))

    def _candidates(self) -> tuple[NDArray[np.int64], bool]:
        """The edits to check, and whether they had to be ranked without a gradient."""
        problem = self.problem
        free = problem.free(self.chosen)
        count = len(free)
        blind = False
        if self.width is not None and self.width < count:
            gradient = problem.gradient(self.chosen, self.aim)
            blind = gradient is None
            promise = (self.effect if gradient is None else gradient)[free] / problem.edits.costs[free]
            free = free[np.argsort(-promise, kind="stable")]
            count = max(self.width, int(np.isinf(promise).sum()))
        left = problem.meter.left
        return free[: count if left is None else min(count, left)], blind

    @property
    def note(self) -> str:
        """What the user should know about it."""
        return NO_GRADIENT if self.ranked_blindly else ""

    def proposal(self) -> Proposal:
        """What was found, pruned."""
        if not self.found:
            return Proposal((), self.lower_bound, self.exhausted, note=self.note)
        kept, margin = pruned(self.problem, self.chosen, self.margin)
        # The larger set, as found, is kept in reserve in case the whole graph refutes the pruned one.
        candidates = kept, tuple(sorted(self.chosen))
        return Proposal(candidates, self.lower_bound, margins=(margin, self.margin), note=self.note)


def leads(problem: Problem, logits: Tensor, aim: int | None) -> NDArray[np.float64]:
    """By how much the present class leads over one that is aimed at, for each row of scores; None for the margin."""
    if aim is None:
        return problem.goal.judge(logits, problem.before)[0]
    scores = np.clip(logits.detach().cpu().numpy().astype(np.float64), -ENDLESS, ENDLESS)
    differences: NDArray[np.float64] = scores[:, problem.before] - scores[:, aim]
    return differences


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
