"""The paper's random baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from butfor.errors import InputError
from butfor.methods.base import Method
from butfor.problem.proposal import Proposal

if TYPE_CHECKING:
    from butfor.problem.problem import Problem

__all__ = ["RandomPerturbation"]

# Draws put to the oracle at once: enough to be quick, few enough to keep within the budget.
DRAWS = 100


@dataclass(frozen=True)
class RandomPerturbation(Method):
    """RANDOM of the paper: draw P̂ uniformly from [−1, 1] many times, keep the smallest that does it.

    Attributes:
        samples: K, the number of draws.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> cf = butfor.explain(model, data, 605, butfor.RandomPerturbation(samples=200), seed=1)
        >>> print(cf.status, cf.found, cf.lower_bound)
        found True 1.0
    """

    samples: int = 500

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.samples < 1:
            raise InputError(f"samples is {self.samples}; at least 1 is needed")

    def solve(self, problem: Problem) -> Proposal:
        """Draw, ask, keep the cheapest; the first of equally cheap ones."""
        meter, generator = problem.meter, problem.generator()
        best: tuple[int, ...] | None = None
        left = self.samples
        while left:
            room = meter.left
            if room == 0:
                break
            count = min(left, DRAWS, DRAWS if room is None else room)
            p_hat = 2 * torch.rand(count, len(problem.edits), generator=generator) - 1
            sets = [
                np.flatnonzero(row) for row in problem.edits.without_conflicts((torch.sigmoid(p_hat) < 0.5).numpy())
            ]
            left -= count
            for chosen, reached in zip(sets, problem.ask(sets).reached, strict=True):
                if reached and (best is None or problem.edits.cost(chosen) < problem.edits.cost(best)):
                    best = tuple(chosen.tolist())
        return Proposal((best,) if best else (), problem.least_cost)
