"""Exact search: every smaller set is tried, so the answer is proved smallest."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from itertools import chain, combinations, product
from typing import TYPE_CHECKING

import numpy as np

from butfor.errors import InputError
from butfor.methods.base import Method
from butfor.methods.greedy import Greedy
from butfor.problem import Budget, Proposal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from butfor.problem import Meter, Problem

__all__ = ["Exact"]

# Margins closer than this are the same margin up to rounding; the lower edge numbers then decide.
SAME_MARGIN = 1e-5

# Edit sets in one question to the oracle: few at first, so that the clock is looked at early.
FIRST_CHUNK, LARGEST_CHUNK = 1024, 65_536

# Further candidates handed over in case the whole graph refutes the first.
SPARE = 8


@dataclass(frozen=True)
class Exact(Method):
    """An incumbent first, by `Greedy`; then every cheaper set, by size, until none is left or the budget is.

    An anytime search: whenever it ends it has an incumbent and a lower bound, and the answer is
    `optimal` when the two meet. Edits that cannot matter are left out, and of sets that differ only in
    edits which are alike (`Oracle.alike`) one is tried for all. Both rest on proofs, not on guesses.

    Among all sets of the smallest cost the most decisive is returned, the one with the largest margin
    for its new class; equal ones are decided by edge number. All of them are tried for that if they fit
    into what is left of the budget; if not, the most decisive of those that were met is returned.

    Attributes:
        all_smallest: return every smallest set, and from them each edge's necessity.
        k: return so many smallest sets, that differ as much as possible.
        width: of the `Greedy` search for the incumbent.
        threads: for the proof of one target; 0 for all cores. The answer does not depend on it.
    """

    all_smallest: bool = False
    k: int = 1
    width: int | None = 64
    threads: int = field(default=0, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.k < 1:
            raise InputError(f"k is {self.k}; at least one answer is needed")
        if self.threads < 0:
            raise InputError(f"threads is {self.threads}; give a positive number, or 0 for all cores")
        Greedy(self.width)

    def solve(self, problem: Problem, budget: Budget) -> Proposal:
        """Search until incumbent and bound meet, or the budget is spent."""
        return _Search(self, problem, budget.meter()).run()


class _Search:
    """One search. Edits go by their rank: the likeliest first, those that are alike side by side."""

    def __init__(self, method: Exact, problem: Problem, meter: Meter) -> None:
        self.method, self.problem, self.meter = method, problem, meter
        self.threads = method.threads or os.cpu_count() or 1
        self.edits = np.flatnonzero(problem.oracle.relevant(problem.edits))
        self.kinds = problem.oracle.alike(problem.edits)
        self.costs = problem.edits.costs[self.edits]
        self.cheapest = np.concatenate([[0.0], np.cumsum(np.sort(self.costs)), [math.inf]])
        self.best_cost = math.inf
        self.met: list[tuple[float, float, tuple[int, ...]]] = []
        self.largest = min(LARGEST_CHUNK, problem.oracle.pace(problem.edits))
        self.chunk = min(FIRST_CHUNK, self.largest)

    def run(self) -> Proposal:
        if not len(self.edits):
            return Proposal(exhausted=True)
        proved = self._singles()
        size = 1
        if proved and not self.met and len(self.edits) > 1:
            self._incumbent()
        # Proved so far: no set of at most `size` edits that was left untried is cheaper than the incumbent.
        while proved and self._open(size + 1):
            size += 1
            proved = self._level(size)
        untried = self.cheapest[size + 1] if proved else self.cheapest[size]
        lower_bound = min(untried, self.best_cost)
        exhausted = proved and not self.met and math.isinf(untried)
        complete = proved and not self._ties(size + 1)
        return self._proposal(0.0 if math.isinf(lower_bound) else float(lower_bound), exhausted, complete)

    def _open(self, size: int) -> bool:
        """Whether sets of this size are worth a try."""
        if self.meter.spent or size > len(self.edits):
            return False
        if self.cheapest[size] < self._limit(strict=True):
            return True
        # Nothing cheaper can come; what may come is as cheap and more decisive.
        count = math.comb(len(self.edits), size)
        return self._ties(size) and (self.meter.left is None or count <= self.meter.left)

    def _ties(self, size: int) -> bool:
        return size <= len(self.edits) and self.cheapest[size] <= self._limit()

    def _limit(self, strict: bool = False) -> float:
        # Sums of the same costs in another order differ by rounding.
        return self.best_cost * (1 - 1e-9 if strict else 1 + 1e-9)

    def _singles(self) -> bool:
        """Try one edit of each kind alone, and order all by what that does; False if the budget ended it."""
        kinds = self.kinds[self.edits]
        names, firsts = np.unique(kinds, return_index=True)
        left = len(firsts) if self.meter.left is None else self.meter.left
        tried = self.edits[firsts][:left]
        answers = self.problem.extend([], tried, self.meter)
        for edit, margin, reached in zip(tried.tolist(), answers.margins, answers.reached, strict=False):
            if reached:
                self._meet(float(self.problem.edits.costs[edit]), float(margin), (edit,))
        if len(answers.margins) < len(firsts):
            return False
        margins = answers.margins[np.searchsorted(names, kinds)]
        order = np.lexsort([self.edits, kinds, margins / self.costs])
        self.edits, self.costs, kinds = self.edits[order], self.costs[order], kinds[order]
        self.follows = np.concatenate([[False], kinds[1:] == kinds[:-1]])
        self.firsts = np.flatnonzero(~self.follows)
        # The next edit of the same kind; it may only be used together with this one.
        self.next = np.where(np.append(self.follows[1:], False), np.arange(1, len(kinds) + 1), -1)
        return True

    def _incumbent(self) -> None:
        left, seconds = self.meter.left, self.meter.seconds_left
        share = None if left is None else max((left - 1) // 2, 0)
        if share == 0 or seconds == 0:
            return
        greedy = Greedy(self.method.width).solve(self.problem, Budget(share, seconds))
        self.meter.evaluations += greedy.evaluations
        for chosen in greedy.candidates[:1]:
            answer = self.problem.ask([chosen], self.meter)
            if answer.reached[0]:
                self._meet(self.problem.edits.cost(chosen), float(answer.margins[0]), chosen)

    def _level(self, size: int) -> bool:
        """Try all sets of this size that are not dearer than the incumbent; False if the budget ended it."""
        batch: list[tuple[int, ...]] = []
        lists: list[NDArray[np.int64]] = []
        room = self.chunk
        # What an incumbent found on the way rules out counts from the next level on: how the sets are cut
        # into chunks must not matter.
        limit = self._limit()
        for number, prefix in enumerate(chain(self._prefixes(size - 1, limit), [None])):
            if number % FIRST_CHUNK == 0 and self.meter.late:
                return False
            if prefix is not None:
                candidates = self._candidates(prefix, limit)
                if not len(candidates):
                    continue
                batch.append(prefix)
                lists.append(candidates)
                room -= len(candidates)
            if batch and (room <= 0 or prefix is None):
                if not self._try(batch, lists):
                    return False
                self.chunk = min(2 * self.chunk, self.largest)
                batch, lists, room = [], [], self.chunk
        return True

    def _prefixes(
        self, size: int, limit: float, prefix: tuple[int, ...] = (), cost: float = 0.0
    ) -> Iterator[tuple[int, ...]]:
        """Sets of this size that leave room for one more edit within the limit."""
        if len(prefix) == size:
            yield prefix
            return
        room = limit - cost - self.cheapest[size - len(prefix)]
        for rank in range(prefix[-1] + 1 if prefix else 0, len(self.edits)):
            if self.costs[rank] <= room and (not self.follows[rank] or rank - 1 in prefix):
                yield from self._prefixes(size, limit, (*prefix, rank), cost + self.costs[rank])

    def _candidates(self, prefix: tuple[int, ...], limit: float) -> NDArray[np.int64]:
        last = prefix[-1] if prefix else -1
        more = [self.next[rank] for rank in prefix if self.next[rank] > last]
        ranks = np.concatenate([self.firsts[np.searchsorted(self.firsts, last + 1) :], np.array(more, dtype=np.int64)])
        if not math.isinf(limit):
            ranks = ranks[self.costs[list(prefix)].sum() + self.costs[ranks] <= limit]
        return ranks

    def _try(self, batch: list[tuple[int, ...]], lists: list[NDArray[np.int64]]) -> bool:
        pointers = np.concatenate([[0], np.cumsum([len(ranks) for ranks in lists])])
        ranks = np.concatenate(lists)
        left = len(ranks) if self.meter.left is None else self.meter.left
        whole = left >= len(ranks)
        if not whole:
            ranks, pointers = ranks[:left], np.minimum(pointers, left)
        if not len(ranks):
            return False
        prefixes = self.edits[np.array(batch, dtype=np.int64).reshape(len(batch), -1)]
        chosen = self.edits[ranks]
        problem = self.problem
        logits = problem.oracle.extensions(problem.edits, prefixes, chosen, pointers, self.threads)
        self.meter.evaluations += len(ranks)
        reached = problem.goal.reached(logits, problem.before).cpu().numpy()
        if reached.any():
            margins = problem.goal.margin(logits, problem.before).cpu().double().numpy()
            for row in np.flatnonzero(reached):
                prefix = prefixes[np.searchsorted(pointers, row, side="right") - 1]
                edits = tuple(sorted([*prefix.tolist(), int(chosen[row])]))
                if frozenset(edits) not in problem.refuted:
                    self._meet(problem.edits.cost(edits), float(margins[row]), edits)
        return whole

    def _meet(self, cost: float, margin: float, edits: tuple[int, ...]) -> None:
        if cost <= self._limit():
            self.best_cost = min(cost, self.best_cost)
            self.met.append((cost, margin, edits))

    def _proposal(self, lower_bound: float, exhausted: bool, complete: bool) -> Proposal:
        smallest = {edits: margin for cost, margin, edits in self.met if cost <= self._limit()}
        if not smallest:
            return Proposal((), lower_bound, exhausted, self.meter.evaluations)
        ranked = sorted(smallest, key=lambda edits: (smallest[edits], edits))
        decisive = smallest[ranked[0]]
        equal = [edits for edits in ranked if smallest[edits] <= decisive + SAME_MARGIN * (1 + abs(decisive))]
        best = min(equal)
        others: list[tuple[int, ...]] = []
        if self.method.all_smallest or self.method.k > 1:
            every = sorted({copy for edits in smallest for copy in self._copies(edits)} - {best})
            others = every if self.method.all_smallest else _apart(best, every, self.method.k - 1)
        spare = [edits for edits in ranked[: SPARE + 1] if edits != best][:SPARE]
        return Proposal(
            (best, *spare),
            lower_bound,
            evaluations=self.meter.evaluations,
            alternatives=tuple(others),
            complete=complete and self.method.all_smallest,
        )

    def _copies(self, edits: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        """All sets that do the same because their edits are alike."""
        counts: dict[int, int] = {}
        for edit in edits:
            kind = int(self.kinds[edit])
            counts[kind] = counts.get(kind, 0) + 1
        members = {kind: self.edits[self.kinds[self.edits] == kind].tolist() for kind in counts}
        for parts in product(*(combinations(members[kind], count) for kind, count in counts.items())):
            yield tuple(sorted(chain.from_iterable(parts)))


def _apart(first: tuple[int, ...], sets: list[tuple[int, ...]], count: int) -> list[tuple[int, ...]]:
    """So many sets, each as far as can be from the nearest of those taken before it (by shared edits)."""
    taken: list[tuple[int, ...]] = []
    shared = {edits: len({*edits} & {*first}) for edits in sets}
    while shared and len(taken) < count:
        chosen = min(shared, key=lambda edits: (shared[edits], edits))
        taken.append(chosen)
        del shared[chosen]
        shared = {edits: max(most, len({*edits} & {*chosen})) for edits, most in shared.items()}
    return taken
