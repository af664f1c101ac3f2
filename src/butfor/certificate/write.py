"""Write a proof down: a tree of branches whose leaves were tried or bounded.

The tree is built from the claim alone, with the checker's own bounds, so that it can be checked whatever search made
the claim. At each node, the edits that lower the margin most are decided first, as few as possible until one leaf
bounds all sets that are left.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

import numpy as np

from butfor.certificate.record import BOUNDED, TRIED
from butfor.certificate.subject import Subject
from butfor.problem.budget import UNLIMITED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from butfor.problem.problem import Problem

__all__ = ["Unwritten", "written"]

# How many nodes a tree may have: a larger file is more than anyone wants to check.
MOST_NODES = 100_000


class Unwritten(Exception):
    """Why there is no certificate."""


def written(problem: Problem, below: float, seconds: float | None = None) -> tuple[int, ...]:
    """The tree of a proof that no set of edits that costs less than ``below`` reaches the goal.

    Raises:
        Unwritten: the tree grows too large or takes too long, as where nothing can be bounded and there are many sets.
    """
    subject = Subject.of(problem, below)
    end = math.inf if seconds is None else time.monotonic() + seconds
    return tuple(_Writer(subject, problem.metered(UNLIMITED), end).tree())


class _Writer:
    def __init__(self, subject: Subject, problem: Problem, end: float) -> None:
        self.subject, self.problem, self.end = subject, problem, end
        self.nodes: list[int] = []

    def tree(self) -> list[int]:
        self._node((), np.arange(len(self.problem.edits)))
        return self.nodes

    def _put(self, node: int) -> None:
        if len(self.nodes) == MOST_NODES or time.monotonic() > self.end:
            why = f", because {self.subject.unbounded}" if self.subject.unbounded else ""
            raise Unwritten(f"the proof is too long to be written down{why}")
        self.nodes.append(node)

    def _node(self, made: tuple[int, ...], free: NDArray[np.int64]) -> None:
        """Write the subtree of all sets that contain ``made`` and otherwise only free edits."""
        if not self.subject.most(made, free):
            self._put(TRIED)
            return
        free = self._ordered(made, free)
        decided = self._fewest_decided(made, free)
        for position in range(decided):
            self._put(int(free[position]))
            self._node((*made, int(free[position])), free[position + 1 :])
        self._put(BOUNDED if self.subject.most(made, free[decided:]) else TRIED)

    def _ordered(self, made: tuple[int, ...], free: NDArray[np.int64]) -> NDArray[np.int64]:
        """The edits that lower the margin most by themselves come first."""
        answers = self.problem.extend(made, free)
        order: NDArray[np.int64] = free[np.lexsort([free, answers.margins])]
        return order

    def _fewest_decided(self, made: tuple[int, ...], free: NDArray[np.int64]) -> int:
        """How many edits have to be decided before one leaf covers what is left: fewest, if more are never worse."""

        def is_enough(count: int) -> bool:
            left = free[count:]
            return not self.subject.most(made, left) or self.subject.is_bounded(made, left)

        if is_enough(0):
            return 0
        not_enough, enough = 0, 1
        while not is_enough(enough):
            not_enough, enough = enough, min(2 * enough, len(free))
        while enough - not_enough > 1:
            middle = (enough + not_enough) // 2
            if is_enough(middle):
                enough = middle
            else:
                not_enough = middle
        return enough
