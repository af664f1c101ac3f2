"""Make an answer smaller: undo edits that are not needed, many at once first; then replace two edits by one."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from butfor.problem.problem import Problem

__all__ = ["FEW", "Shrinking", "most_to_prune", "most_to_swap"]

Edits = tuple[int, ...]

# All pairs of so many edits are replaced in turn, and so many edits are tried in place of each pair.
REPLACED = 4
REPLACEMENTS = 16

# Pairs are not replaced in answers this small: exact search settles those by trying all sets.
SMALL = 3

# A problem with at most so many edits has few: greedy search checks all of them in every step.
FEW = 64

# Many edits are undone at once only in sets larger than this.
LARGE = 32

# How many prefixes of an order are tried at once when looking for the longest that can be undone.
CUTS = 8


def most_to_prune(num_edits: int) -> int:
    """How many evaluations it takes at most to prune a set of so many edits."""
    # Each time every edit is tried by itself, or the longest prefix is looked for, after a gradient.
    at_once = 1 + 2 * CUTS * (1 + num_edits.bit_length() // 3) if num_edits > LARGE else 0
    return num_edits * (num_edits + 1) // 2 + num_edits * at_once


def most_to_swap(num_edits: int) -> int:
    """How many evaluations it takes at most to replace two edits by one again and again."""
    once = num_edits + 1 + REPLACED * (REPLACED - 1) // 2 * REPLACEMENTS
    return 2 * (once + most_to_prune(num_edits))


class Shrinking:
    """The answers that are known for one problem, and how to make them smaller.

    No evaluation is made after number ``last``.
    """

    def __init__(self, problem: Problem, last: int) -> None:
        self.problem, self.last = problem, last
        self.known: dict[Edits, float] = {}  # the margin after each answer

    @property
    def best(self) -> Edits | None:
        """The cheapest answer."""
        return min(self.known, key=lambda chosen: (self.problem.edits.cost(chosen), self.known[chosen]), default=None)

    @property
    def candidates(self) -> tuple[Edits, ...]:
        """All answers, the cheapest first."""
        return tuple(sorted(self.known, key=lambda chosen: (self.problem.edits.cost(chosen), self.known[chosen])))

    @property
    def margins(self) -> tuple[float, ...]:
        """The margin after each of the candidates."""
        return tuple(self.known[chosen] for chosen in self.candidates)

    def affords(self, evaluations: int) -> bool:
        """Whether so many evaluations may still be made."""
        meter = self.problem.meter
        left = meter.left
        return meter.evaluations + evaluations <= self.last and (left is None or left >= evaluations)

    def prune(self, chosen: Edits, margin: float) -> Edits:
        """Undo edits until none can be undone: in large sets many at once, by the gradient; then by trying each."""
        kept = tuple(sorted(chosen))
        self.known[kept] = margin
        while len(kept) > 1:
            fewer = self._without_many(kept) or self._without_some(kept)
            if fewer is None:
                break
            kept = fewer
        return kept

    def _without_many(self, kept: Edits) -> Edits | None:
        """Undo as many edits as possible, those first that matter least by the gradient; None if none can be undone."""
        if len(kept) <= LARGE or not self.affords(CUTS + 1):
            return None
        gradient = self.problem.gradient(kept)
        if gradient is None:
            return None
        self.problem.meter.count(1)
        members = np.array(kept)
        return self._longest(
            kept, members[np.argsort(gradient[members] / self.problem.edits.costs[members], kind="stable")]
        )

    def _without_some(self, kept: Edits) -> Edits | None:
        """Try to undo each edit; undo one that can be, or in a large set as many of them together as possible."""
        if not self.affords(len(kept)):
            return None
        members, costs = np.array(kept), self.problem.edits.costs
        answers = self.problem.ask([np.delete(members, place) for place in range(len(members))])
        order = np.lexsort([members, answers.margins, -costs[members], ~answers.reached])
        if not answers.reached[order[0]]:
            return None
        first = self._undone(kept, members[order[:1]])
        self.known[first] = float(answers.margins[order[0]])
        if len(kept) <= LARGE:
            return first
        return self._longest(kept, members[order[: answers.reached.sum()]], 1) or first

    def _longest(self, kept: Edits, order: NDArray[np.int64], low: int = 0) -> Edits | None:
        """Undo the longest prefix of this order that can be undone, if it is longer than ``low``.

        The search takes for granted that longer prefixes are harder to undo, so it may miss the longest.
        """
        best, high = None, min(len(order), len(kept) - 1) + 1
        # The first `low` can be undone; the first `high` cannot, or are more than there are.
        while high - low > 1 and self.affords(CUTS):
            cuts = np.unique(np.linspace(low, high, CUTS + 2).astype(int)[1:-1])
            cuts = cuts[(cuts > low) & (cuts < high)]
            sets = [self._undone(kept, order[:cut]) for cut in cuts]
            answers = self.problem.ask(sets)
            for chosen, margin, reached in zip(sets, answers.margins, answers.reached, strict=True):
                if reached:
                    self.known[chosen] = float(margin)
            last = int(np.flatnonzero(answers.reached)[-1]) if answers.reached.any() else -1
            if last >= 0:
                low, best = int(cuts[last]), sets[last]
            high = int(cuts[last + 1]) if last + 1 < len(cuts) else high
        return best

    def _undone(self, kept: Edits, undone: NDArray[np.int64]) -> Edits:
        gone = set(undone.tolist())
        return tuple(edit for edit in kept if edit not in gone)

    def swap(self) -> None:
        """Replace two edits by one, and prune, until that makes the best answer no cheaper."""
        best = self.best
        last = self.problem.meter.evaluations + most_to_swap(len(self.problem.edits)) // 2
        while best is not None and len(best) > SMALL and self.problem.meter.evaluations < last:
            fewer = self._with_one_for_two(best)
            if fewer is None:
                return
            best = self.prune(fewer, self.known[fewer])

    def _with_one_for_two(self, best: Edits) -> Edits | None:
        problem, members = self.problem, np.array(best)
        if not self.affords(len(best) + REPLACED * (REPLACED - 1) // 2 * REPLACEMENTS):
            return None
        # The edits that are missed least, by what undoing each alone does.
        answers = problem.ask([np.delete(members, place) for place in range(len(members))])
        weakest = members[np.lexsort([members, answers.margins])[:REPLACED]].tolist()
        gradient = problem.gradient(best)
        if gradient is None:
            return None
        problem.meter.count(1)
        promise = np.where(problem.oracle.relevant(problem.edits), gradient / problem.edits.costs, -np.inf)
        promise[members] = -np.inf
        others = np.argsort(-promise, kind="stable")[: min(REPLACEMENTS, int(np.isfinite(promise).sum()))]
        pairs = list(combinations(weakest, 2))
        sets = [self._undone(best, np.array(pair)) for pair in pairs]
        pointers = np.arange(len(sets) + 1) * len(others)
        answers = problem.extend_many(np.array(sets), np.tile(others, len(sets)), pointers)
        found = np.flatnonzero(answers.reached)
        cost = problem.edits.cost(best) - problem.edits.rounding(problem.edits.cost(best))
        cheaper = []
        for row in found.tolist():
            chosen = tuple(sorted((*sets[row // len(others)], int(others[row % len(others)]))))
            if problem.edits.cost(chosen) < cost:
                cheaper.append((problem.edits.cost(chosen), float(answers.margins[row]), chosen))
        if not cheaper:
            return None
        _, margin, chosen = min(cheaper)
        self.known[chosen] = margin
        return chosen
