"""The proof that no set of a size reaches the goal: each set is tried, or pruned with its branch."""

from __future__ import annotations

import math
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from butfor.methods.branching import Branch, Ordering

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from torch import Tensor

    from butfor.oracle.base import Influence, Sieved
    from butfor.problem.budget import Meter
    from butfor.problem.problem import Problem

__all__ = ["Proof", "Tuning", "number_of_sets"]

# Branches that grow together. The order in which sets are tried depends on it, so it is no part of `Tuning`.
BLOCK = 256

# Where the influence of single edits is known, branches of a size grow for so many evaluations before a sieve is used;
# this is so where a budget has at least so many times as many left.
BRANCHED_FIRST, MUCH = 10_000, 4

# What bounds on the margin cost: one counts as an evaluation for each so many free edits. With 400, it takes 0.5 ms.
MARGINS_PER_EVALUATION = 16

# Room for the rounding of logits where margins are compared with a bound, relative to 1 + the largest logit: of the
# graph from which a branch begins, not of those that its edits lead to.
SLACK = 1e-4

# The sieve spends so many evaluations, at first, before it returns so that the clock can be looked at. The number is
# halved after a step that took so many seconds, and doubled after a shorter one; where time is no limit, it is doubled
# up to a number.
FIRST_BOUNDED, LONG_STEP, MOST_BOUNDED = 16, 0.05, 512


def number_of_sets(count: int, size: int) -> int:
    """How many sets of this size there are, or at least: beyond 10^18 it takes too long to count, and to no purpose."""
    return math.comb(count, min(size, count - size, 32)) if size <= count else 0


@dataclass(frozen=True)
class Tuning:
    """Numbers that make the search quicker or slower; the answer does not depend on them.

    Attributes:
        bounding_pays: edits are bounded if there are at least this many of them, or four times this many sets; a sieve
            is used from this many sets on. With fewer, trying is quicker.
        margins_pay: the margin of a branch is bounded if it has at least this many sets.
        first_chunk: how many edit sets the oracle is asked about first: few, so that the clock is looked at early.
        largest_chunk: how many it is asked about at once, at most.
    """

    bounding_pays: int = 1024
    margins_pay: int = 256
    first_chunk: int = 1024
    largest_chunk: int = 65_536


class Proof:
    """What was found, and what is proved, size by size.

    Where the oracle knows the influence of single edits, branches grow by one edit at a time, and a branch is pruned if
    all that further edits could do is less than its margin. Where it does not, or that takes long, a branch and bound
    search of its own (`Oracle.sieve`) is used for each size. Where it has neither, all sets are tried.

    Attributes:
        problem: the question, with its meter.
        edits: the edits that can matter.
        costs: what each of them costs.
        largest_size: the largest set that is allowed.
        cheapest: the cost of the cheapest set of each size; infinite for one size more than the largest.
        single: how far the margin still has to fall after each single edit that was tried, else 0: the edits that leave
            least are tried first.
        work, seconds: evaluations and time that the last size took.
        branched_long: whether branches of one size have grown so long that a sieve is likely to be quicker.
        gave_up: whether they did so when a size was last to be proved.
        best_cost: the least cost of a set that reaches the goal; infinite where none is known.
        hits: the sets that reach the goal and were the cheapest so far: cost, margin and edits.
    """

    def __init__(self, problem: Problem, tuning: Tuning, threads: int) -> None:
        self.problem, self.tuning, self.threads = problem, tuning, threads
        relevant = problem.oracle.relevant(problem.edits)
        if problem.edits.keep_connected and len(problem.edits.added.edit):
            # An added edge that the model does not see may be what keeps the graph connected.
            relevant[:] = True
        self.edits = np.flatnonzero(relevant)
        self.costs = problem.edits.costs[self.edits]
        most = problem.edits.max_edits
        self.largest_size = len(self.edits) if most is None else min(most, len(self.edits))
        self.cheapest = np.concatenate([[0.0], np.cumsum(np.sort(self.costs))[: self.largest_size], [math.inf]])
        self.single = np.zeros(len(problem.edits))
        self.work, self.seconds = 0, 0.0
        self.branched_long = self.gave_up = False
        self.best_cost = math.inf
        self.hits: list[tuple[float, float, tuple[int, ...]]] = []
        self.largest_chunk = min(tuning.largest_chunk, problem.oracle.batch_size(problem.edits))
        self._chunk = min(tuning.first_chunk, self.largest_chunk)

    @contextmanager
    def on(self, meter: Meter) -> Iterator[None]:
        """Spend another meter inside this block, such as a part of the budget."""
        whole, self.problem = self.problem, replace(self.problem, meter=meter)
        try:
            yield
        finally:
            self.problem = whole

    @property
    def meter(self) -> Meter:
        """What counts evaluations, and knows what is left of the budget."""
        return self.problem.meter

    @cached_property
    def classes(self) -> NDArray[np.int64]:
        """The equivalence class of each edit."""
        if self.problem.edits.keep_connected:
            # Edits that are equivalent to the model need not be when it comes to keeping the graph connected.
            return np.arange(len(self.problem.edits))
        return self.problem.oracle.equivalence_classes(self.problem.edits)

    @cached_property
    def has_bounds(self) -> bool:
        """Whether branches can be bounded."""
        return self.knows_influence or self.has_sieve

    @cached_property
    def knows_influence(self) -> bool:
        """Whether the oracle bounds the influence of each edit."""
        return self.problem.influence((), self.edits[:0], 1) is not None

    @cached_property
    def has_sieve(self) -> bool:
        """Whether the oracle has a branch and bound search of its own."""
        if self.problem.edits.keep_connected and len(self.problem.edits.added.edit):
            # It passes over edits that the model does not see, but they may keep the graph connected.
            return False
        return self.problem.sieve(self.edits[:0], 0, math.inf, 0.0) is not None

    @property
    def sifts(self) -> bool:
        """Whether all larger sizes are left to a sieve: where nothing else is known, or that has taken too long."""
        return (self.branched_long or not self.knows_influence) and self.has_sieve

    def sieve_pays(self, count: int, size: int) -> bool:
        """Whether there are so many sets of at most this size that a sieve pays, and one is to be used."""
        sets = number_of_sets(count, min(size, (count + 1) // 2))
        return sets >= self.tuning.bounding_pays and self.sifts

    def bounding_pays(self, count: int, size: int) -> bool:
        """Whether there are so many sets of at most this size that it pays to bound the influence of their edits."""
        sets = number_of_sets(count, min(size, (count + 1) // 2))
        return count >= self.tuning.bounding_pays or sets >= 4 * self.tuning.bounding_pays

    @cached_property
    def knows_margins(self) -> bool:
        """Whether the oracle bounds the margin of all sets of a branch together."""
        return self.problem.margin_bound((), self.edits[:0], 0, 0.0) is not None

    def stays_clear(self, chosen: tuple[int, ...], free: NDArray[np.int64], more: int) -> bool:
        """Whether a bound on the margin rules out ``chosen`` with at most ``more`` of the free edits."""
        needed = self.needed
        bound = self.problem.margin_bound(chosen, free, more, needed)
        left, work = self.meter.left, len(free) // MARGINS_PER_EVALUATION
        self.meter.count(work if left is None else min(work, left))
        return bound is not None and bound > needed

    @property
    def needed(self) -> float:
        """A set with a larger margin does not reach the goal, with room for rounding."""
        return self.problem.margin - self.root_need

    @cached_property
    def root_need(self) -> float:
        """How far the margin of the intact graph has to fall at least, less room for rounding."""
        return float(self._needs(np.array([self.problem.margin]), self.problem.logits[None])[0])

    def prove(self, size: int, until_hit: bool = False) -> bool:
        """Try or rule out all sets of at most this size that cost no more than the incumbent, given smaller sizes.

        False if the budget was spent before that, with ``until_hit`` as soon as a set reaches the goal, or if this is
        better left to a sieve (`gave_up`), which is used if it is asked again.
        """
        # A cheaper incumbent that is found on the way lowers the limit only from the next size on: which sets are
        # looked at must not depend on how they are divided into chunks.
        limit, self.gave_up = self.limit(), False
        before, began = self.meter.evaluations, time.monotonic()
        affordable = self.edits[self.costs <= limit - self.cheapest[size - 1]]
        if self.sieve_pays(len(affordable), size):
            done = self._sift(affordable, size, limit, until_hit)
        else:
            done = self._branch(affordable, size, limit, until_hit)
        self.work, self.seconds = self.meter.evaluations - before, time.monotonic() - began
        return done

    def _branch(self, affordable: NDArray[np.int64], size: int, limit: float, until_hit: bool) -> bool:
        """Grow branches by one edit at a time; it returns what `prove` does."""
        may_give_up = not self.branched_long and self.bounding_pays(len(affordable), size) and self._can_sift_later
        if not may_give_up:
            return self._grow_all(affordable, size, limit, until_hit)
        with self.on(self.meter.part(BRANCHED_FIRST)):
            done = self._grow_all(affordable, size, limit, until_hit)
        self.gave_up = not done and not (until_hit and self.hits) and not self.meter.spent
        self.branched_long |= self.gave_up
        return done

    @property
    def _can_sift_later(self) -> bool:
        left = self.meter.left
        return self.knows_influence and (left is None or left >= MUCH * BRANCHED_FIRST) and self.has_sieve

    def _grow_all(self, affordable: NDArray[np.int64], size: int, limit: float, until_hit: bool) -> bool:
        """Grow branches until all are tried or pruned; False if the budget is spent before."""
        root = Branch((), 0.0, math.nan, self._ordering((), affordable, size), 0)
        bounded = root.ordering.limits is not None
        if bounded:
            root = replace(root, need=self.root_need)
        blocks = [[root]]
        ready: list[Branch] = []
        while blocks or ready:
            enough = len(ready) >= BLOCK or not blocks
            block = ready[:BLOCK] if enough and ready else blocks.pop()
            ready = ready[BLOCK:] if enough else ready
            branches = self._grow(block, size, limit)
            if branches is None or (until_hit and self.hits):
                return False
            # Without bounds, branches multiply before any of them is tried: so grow one at a time, and gather those
            # that need one more edit.
            if not bounded and branches and len(branches[0].chosen) + 1 == size:
                ready += branches
                continue
            width = BLOCK if bounded else 1
            blocks += [branches[i : i + width] for i in range(0, len(branches), width)][::-1]
        return True

    def _sift(self, edits: NDArray[np.int64], size: int, limit: float, until_hit: bool) -> bool:
        """Try what the oracle's own search does not rule out; it returns what `prove` does."""
        order = edits[np.lexsort([edits, self.single[edits] / self.problem.edits.costs[edits]])]
        sieve = self.problem.sieve(order, size, limit, self.needed)
        assert sieve is not None
        most = FIRST_BOUNDED
        while not self.meter.spent:
            left, began = self.meter.left, time.monotonic()
            # A budget of evaluations must lead equally far on any number of cores.
            sieved = sieve.next(most, self.threads) if left is None else sieve.next(min(left, most))
            # The last bound may have cost more than was left.
            self.meter.count(sieved.spent if left is None else min(sieved.spent, left))
            if self.meter.seconds_left is None:
                # By number alone: what is found must not depend on how busy the machine is.
                most = min(2 * most, MOST_BOUNDED)
            elif time.monotonic() - began >= LONG_STEP:
                most = max(most // 2, 1)
            elif sieved.spent >= most:
                most *= 2
            for start in range(0, len(sieved.candidates), self.largest_chunk):
                left = self.meter.left
                end = min(start + self.largest_chunk, len(sieved.candidates))
                if left is not None and left < end - start:
                    return False
                if not self._try_sieved(sieved, start, end):
                    return False
            if until_hit and self.hits:
                return False
            if sieved.done:
                return True
        return False

    def _try_sieved(self, sieved: Sieved, start: int, end: int) -> bool:
        """Ask the oracle about some sets that were not ruled out. False if the budget is spent."""
        if self.meter.spent:
            return False
        a, b = np.searchsorted(sieved.pointers, [start, end - 1], side="right") - 1
        cut = np.clip(sieved.pointers[a : b + 2], start, end) - start
        prefixes, edits = sieved.prefixes[a : b + 1], sieved.candidates[start:end]
        answers = self.problem.extend_many(prefixes, edits, cut, self.threads)
        for row in np.flatnonzero(answers.reached):
            prefix = prefixes[int(np.searchsorted(cut, row, side="right")) - 1]
            chosen = tuple(sorted((*prefix[prefix >= 0].tolist(), int(edits[row]))))
            self.record(self.problem.edits.cost(chosen), float(answers.margins[row]), chosen)
        return True

    def _ordering(self, chosen: tuple[int, ...], free: NDArray[np.int64], more: int) -> Ordering:
        """The edits that may follow, the most promising first."""
        # Trying all single edits is as quick as finding out which of them are equivalent.
        classes = free if more == 1 and not chosen else self.classes[free]
        return self.sorted_edits(free, classes, self._influence(chosen, free, more))

    def sorted_edits(
        self, free: NDArray[np.int64], classes: NDArray[np.int64], influence: Influence | None
    ) -> Ordering:
        """Edits in the order in which they are tried."""
        costs = self.problem.edits.costs[free]
        return Ordering.of(free, costs, classes, self.single[classes] / costs, influence)

    def _influence(self, chosen: tuple[int, ...], free: NDArray[np.int64], more: int) -> Influence | None:
        if not self.bounding_pays(len(free), more):
            return None
        influence = self.problem.influence(chosen, free, more)
        if influence is not None:
            left, work = self.meter.left, influence.work
            self.meter.count(work if left is None else min(work, left))
        return influence

    def _grow(self, branches: list[Branch], size: int, limit: float) -> list[Branch] | None:
        """The branches with one more edit that are not pruned; None if the budget is spent."""
        more = size - len(branches[0].chosen)
        grown: list[Branch] = []
        lists: list[NDArray[np.int64]] = []
        for branch in branches:
            if self.meter.spent:
                return None
            branch, positions = self._rebounded(branch, more, limit)
            if len(positions):
                grown.append(branch)
                lists.append(positions)
        if not grown:
            return []
        if more > 1 and grown[0].ordering.limits is None:
            # Without bounds no branch can be pruned, so there is no use in asking before the last edit.
            pairs = zip(grown, lists, strict=True)
            return [branch.child(at, math.nan) for branch, positions in pairs for at in positions.tolist()]
        needs = self._try(grown, lists)
        if needs is None or more == 1:
            return None if needs is None else []
        children = []
        for branch, positions, need in zip(grown, lists, needs, strict=True):
            enough = ~(branch.ordering.largest_effect(more - 1)[positions + 1] < need)
            children += [branch.child(int(positions[i]), float(need[i])) for i in np.flatnonzero(enough)]
        return children

    def _rebounded(self, branch: Branch, more: int, limit: float) -> tuple[Branch, NDArray[np.int64]]:
        """The branch, with new bounds where that pays, and the positions of the edits that may come next."""
        positions = self._positions(branch, more, limit)
        # Whether there are bounds on margins is asked last: finding out may take as long as trying a thousand sets.
        pays = branch.chosen and number_of_sets(len(positions), more) >= self.tuning.margins_pay and self.knows_margins
        if pays and self.stays_clear(branch.chosen, branch.ordering.edits[branch.start :], more):
            return branch, positions[:0]
        if branch.chosen and branch.ordering.limits is not None and self.bounding_pays(len(positions), more):
            # Bounds for this branch alone are tighter than those of the branch that it came from.
            ordering = self._ordering(branch.chosen, branch.ordering.edits[branch.start :], more)
            if ordering.limits is not None:
                branch = replace(branch, ordering=ordering, start=0)
                positions = self._positions(branch, more, limit)
        return branch, positions

    def _positions(self, branch: Branch, more: int, limit: float) -> NDArray[np.int64]:
        """The edits that may come next: one of each class, if it may be enough with those that can follow."""
        ordering = branch.ordering
        positions = ordering.candidates(more, branch.start, branch.need)
        # Smaller sizes are proved already, so only sets of the full size have to be affordable.
        room = limit - branch.cost - self.cheapest[more - 1]
        return positions if math.isinf(room) else positions[ordering.costs[positions] <= room]

    def _try(self, branches: list[Branch], lists: list[NDArray[np.int64]]) -> list[NDArray[np.float64]] | None:
        """Ask the oracle about each branch with each of its next edits, in chunks; how far margins still have to fall.

        None if the budget is spent.
        """
        prefixes = np.array([branch.chosen for branch in branches], dtype=np.int64).reshape(len(branches), -1)
        pointers = np.concatenate([[0], np.cumsum([len(positions) for positions in lists])])
        edits = np.concatenate([b.ordering.edits[positions] for b, positions in zip(branches, lists, strict=True)])
        bounded = branches[0].ordering.limits is not None
        needs = np.empty(len(edits))
        done = 0
        while done < len(edits):
            left = self.meter.left
            end = min(done + self._chunk, len(edits), len(edits) if left is None else done + left)
            if end == done:
                return None
            self._chunk = min(2 * self._chunk, self.largest_chunk)
            a, b = np.searchsorted(pointers, [done, end - 1], side="right") - 1
            cut = np.clip(pointers[a : b + 2], done, end) - done
            answers = self.problem.extend_many(prefixes[a : b + 1], edits[done:end], cut, self.threads)
            for row in np.flatnonzero(answers.reached):
                owner = branches[int(np.searchsorted(pointers, done + row, side="right")) - 1]
                last = int(edits[done + row])
                cost = owner.cost + float(self.problem.edits.costs[last])
                self.record(cost, float(answers.margins[row]), tuple(sorted((*owner.chosen, last))))
            needs[done:end] = self._needs(answers.margins, answers.logits) if bounded else answers.margins
            done = end
        if not branches[0].chosen:
            self.single[edits] = needs
        return np.split(needs, pointers[1:-1])

    def _needs(self, margins: NDArray[np.float64], logits: Tensor) -> NDArray[np.float64]:
        """How far each margin has to fall at least to reach the goal, less room for rounding."""
        slack: NDArray[np.float64] = SLACK * (1 + np.abs(logits.cpu().numpy()).max(axis=1))
        return margins + self.problem.goal.lead - slack

    def limit(self, strict: bool = False) -> float:
        """The most that a set may cost to be as cheap as the best; if strict, to be cheaper."""
        # Sums of the same costs in another order differ by rounding, but by less than any edit costs.
        room = self.problem.edits.rounding(self.best_cost)
        return self.best_cost - room if strict else self.best_cost + room

    def record(self, cost: float, margin: float, edits: tuple[int, ...]) -> None:
        """Keep a set that reaches the goal, unless a cheaper one is known."""
        if cost <= self.limit():
            self.best_cost = min(cost, self.best_cost)
            self.hits.append((cost, margin, edits))
