"""Exact search: every smaller set is tried or ruled out, so the answer is proved smallest."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, combinations, product
from typing import TYPE_CHECKING

import numpy as np

from butfor.certificate.write import Unwritten, written
from butfor.errors import InputError
from butfor.methods.base import Method
from butfor.methods.branching import Branch, Ordering, diverse
from butfor.methods.descent import Descent
from butfor.problem.proposal import Proposal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray
    from torch import Tensor

    from butfor.oracle.base import Influence, Sieved
    from butfor.problem.budget import Meter
    from butfor.problem.problem import Problem

__all__ = ["Exact", "Tuning"]

# Margins closer than this are the same margin up to rounding; the lower edge numbers then decide.
SAME_MARGIN = 1e-5

CORES = os.cpu_count() or 1

# Branches that are followed together. It decides in which order sets are tried, so it is not for tuning.
BLOCK = 256

# Bounding four edits costs as much as one evaluation.
BOUNDS_PER_EVALUATION = 4

# And so does bounding the margin of all sets of so many edits: a bound for 400 edits takes about 0.5 ms.
MARGINS_PER_EVALUATION = 16

# How often something is bounded before the clock is looked at.
MOST_BOUNDED = 256

# How much more work a size takes than the one before it where bounds cut most of its sets. It only decides whether to
# look for more decisive answers; on BA-Shapes the median lies between 12 and 20.
GROWTH = 16

# Room for the rounding of logits, relative to the largest, where margins are compared with a bound.
SLACK = 1e-4

# How long a proof may take to be written down, where the budget has no limit in seconds.
PROOF_SECONDS = 20.0

# Further candidates handed over in case the whole graph refutes the first.
SPARE = 8


@dataclass(frozen=True)
class Tuning:
    """What makes the search quicker or slower; the answer does not depend on it.

    Attributes:
        bounding_pays: edits are bounded if there are at least this many of them, or four times this many sets: with
            fewer, trying is quicker.
        margins_pay: the margin of a branch is bounded if it has at least this many sets.
        first_chunk: edit sets in the first question to the oracle: few, so that the clock is looked at early.
        largest_chunk: edit sets in the largest question.
    """

    bounding_pays: int = 1024
    margins_pay: int = 256
    first_chunk: int = 1024
    largest_chunk: int = 65_536


@dataclass(frozen=True)
class Exact(Method):
    """An incumbent first; then every cheaper set, by size, until none is left or the budget is spent.

    An anytime search: whenever it ends it has an incumbent and a lower bound, and the answer is `optimal` when the two
    meet. Edits that cannot matter are left out (`Oracle.relevant`), of sets that differ only in equivalent edits
    (`Oracle.equivalence_classes`) one is tried for all, and branches are cut that cannot reach the goal
    (`Oracle.influence`). All three rest on proofs, not on guesses.

    Among all sets of the smallest cost the most decisive is returned, the one with the largest margin for its new
    class; equal ones are decided by edge number. All of them are looked at for that if it is likely to fit into what is
    left of the budget; if not, the most decisive of those that were found is returned.

    Attributes:
        all_smallest: return every smallest set, and from them each edge's necessity.
        k: return this many smallest sets, as different from each other as possible.
        width: of `Descent`, the default incumbent.
        threads: for the proof of one target; 0 for all cores. The answer does not depend on it.
        incumbent: the method that finds the first answer; None for ``Descent(width)``.
        certificate: write the proof down, so that anyone can check it. This is done after the search, and takes as long
            again at most where the budget has a limit in seconds, else 20 seconds.
        tuning: what makes the search quicker or slower.
    """

    all_smallest: bool = False
    k: int = 1
    width: int | None = 64
    threads: int = field(default=0, repr=False, compare=False)
    incumbent: Method | None = None
    certificate: bool = field(default=False, repr=False, compare=False)
    tuning: Tuning = field(default=Tuning(), repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k < 1:
            raise InputError(f"k is {self.k}; at least one answer is needed")
        if self.threads < 0:
            raise InputError(f"threads is {self.threads}; give a positive number, or 0 for all cores")
        Descent(self.width)

    def solve(self, problem: Problem) -> Proposal:
        """Search until incumbent and bound meet, or the budget is spent."""
        proposal = _Search(self, problem).run()
        return _certified(problem, proposal) if self.certificate else proposal


def _certified(problem: Problem, proposal: Proposal) -> Proposal:
    """The same proposal with its proof written down, or the reason why it is not."""
    seconds = problem.meter.budget.seconds
    try:
        tree = written(problem, math.inf if proposal.exhausted else proposal.lower_bound, seconds or PROOF_SECONDS)
    except Unwritten as reason:
        return replace(proposal, note=f"{proposal.note} There is no certificate: {reason}.".strip())
    return replace(proposal, tree=tree)


class _Search:
    """One search.

    Sizes are tried in turn. For each, branches grow one edit at a time, and those are cut whose margin exceeds all that
    the rest of their edits could do.
    """

    def __init__(self, method: Exact, problem: Problem) -> None:
        self.method, self.problem, self.tuning = method, problem, method.tuning
        self.threads = method.threads or CORES
        relevant = problem.oracle.relevant(problem.edits)
        # An edge that the model does not see may be what holds the rest together.
        self.unseen_matters = problem.edits.keep_connected and len(problem.edits.added.edit) > 0
        if self.unseen_matters:
            relevant[:] = True
        self.edits = np.flatnonzero(relevant)
        self.costs = problem.edits.costs[self.edits]
        most = problem.edits.max_edits
        self.largest_size = len(self.edits) if most is None else min(most, len(self.edits))
        # The cost of the cheapest set of each size; none is larger than the largest.
        self.cheapest = np.concatenate([[0.0], np.cumsum(np.sort(self.costs))[: self.largest_size], [math.inf]])
        # The margin that each single edit leaves, where it was tried: the most promising are tried first.
        self.single = np.zeros(len(problem.edits))
        self.work = 0  # evaluations that the last size took
        self.incumbent = method.incumbent or Descent(method.width)
        self.has_incumbent = False  # or it was looked for
        self.reserve: tuple[tuple[int, ...], ...] = ()
        self.floor = 0.0  # a lower bound that the incumbent's search proved
        self.note = ""
        self.best_cost = math.inf
        self.hits: list[tuple[float, float, tuple[int, ...]]] = []
        self.largest_chunk = min(self.tuning.largest_chunk, problem.oracle.batch_size(problem.edits))
        self.chunk = min(self.tuning.first_chunk, self.largest_chunk)

    @property
    def meter(self) -> Meter:
        return self.problem.meter

    @cached_property
    def classes(self) -> NDArray[np.int64]:
        """Which edits are equivalent."""
        if self.problem.edits.keep_connected:
            # What is equivalent to the model need not be to the rest of the graph.
            return np.arange(len(self.problem.edits))
        return self.problem.oracle.equivalence_classes(self.problem.edits)

    @cached_property
    def has_bounds(self) -> bool:
        """Whether branches can be bounded."""
        return self.has_sieve or self.knows_influence

    @cached_property
    def knows_influence(self) -> bool:
        """Whether the influence of each edit is bounded."""
        return self.problem.influence((), self.edits[:0], 1) is not None

    @cached_property
    def has_sieve(self) -> bool:
        """Whether the oracle searches by itself for sets that are not ruled out."""
        if self.unseen_matters:
            # It passes over edits that the model does not see.
            return False
        return self.problem.sieve(self.edits[:0], 0, math.inf, 0.0) is not None

    def bounding_pays(self, count: int, size: int) -> bool:
        """Whether there are so many sets of at most this size that it pays to bound the influence of their edits."""
        sets = math.comb(count, min(size, (count + 1) // 2))
        return count >= self.tuning.bounding_pays or sets >= 4 * self.tuning.bounding_pays

    def run(self) -> Proposal:
        if not len(self.edits):
            return Proposal(exhausted=True)
        # Proved: every set of at most `done` edits was tried, is ruled out, or is no cheaper than the incumbent.
        done = 0
        bounds_margin = self.bounding_pays(len(self.edits), self.largest_size) and self.knows_margins
        may_jump = bounds_margin
        tried_to_rule_out = bounds_margin and not self.has_sieve
        while self._worth_trying(done + 1):
            size = done + 1
            if not self.has_incumbent and not self._incumbent_can_wait(size):
                if bounds_margin and not self.hits and self._stays_clear((), self.edits, self.largest_size):
                    return Proposal(exhausted=True)
                self._find_incumbent()
                continue
            if not self.hits and not tried_to_rule_out and size > 1 and self.bounding_pays(len(self.edits), size):
                tried_to_rule_out = True
                if self._rule_out_all():
                    return Proposal(exhausted=True)
                continue
            if may_jump and self.bounding_pays(len(self.edits), size):
                may_jump = False
                done = self._clear_size(done)
                continue
            if not self._prove(size):
                break
            done = size
        if self.meter.spent and self.cheapest[done + 1] < self._limit(strict=True):
            done = self._bounded_size(done)
        untried = max(self.cheapest[done + 1], self.floor)
        lower_bound = min(untried, self.best_cost)
        exhausted = not self.hits and math.isinf(untried)
        complete = not self._may_tie(done + 1)
        return self._proposal(0.0 if math.isinf(lower_bound) else float(lower_bound), exhausted, complete)

    # What to do next.

    def _incumbent_can_wait(self, size: int) -> bool:
        """Whether all sets of this size can be tried first, and the incumbent is still found after that.

        A method that has its answers within a known number of evaluations can wait as long as these are left: trying
        small sets is as quick, and often all that is needed.
        """
        most = self.incumbent.most_evaluations(len(self.problem.edits))
        if most is None or self.bounding_pays(len(self.edits), size) or self.meter.seconds_left is not None:
            return False
        return self.meter.left is None or self.meter.left >= math.comb(len(self.edits), size) + most

    def _worth_trying(self, size: int) -> bool:
        """Whether sets of this size are worth a try."""
        if self.meter.spent or size > self.largest_size:
            return False
        if self.cheapest[size] < self._limit(strict=True):
            return True
        # Nothing cheaper can come. What may come is as cheap and more decisive, if all of it can be seen.
        if not self._may_tie(size) or self.meter.left is None:
            return self._may_tie(size)
        fits = math.comb(len(self.edits), size) <= self.meter.left
        return fits or (GROWTH * self.work <= self.meter.left and self.has_bounds)

    def _may_tie(self, size: int) -> bool:
        return size <= self.largest_size and self.cheapest[size] <= self._limit()

    def _limit(self, strict: bool = False) -> float:
        # Sums of the same costs in another order differ by rounding, but never by an edit.
        room = self.problem.edits.rounding(self.best_cost)
        return self.best_cost - room if strict else self.best_cost + room

    def _find_incumbent(self) -> None:
        """Find a first answer, with all that is left if need be: an answer is worth more than a bound."""
        self.has_incumbent = True
        found = self.incumbent.solve(self.problem)
        self.note = found.note
        self.floor = math.inf if found.exhausted else found.lower_bound
        self.reserve = found.candidates
        if not found.candidates:
            return
        best = found.candidates[0]
        if found.margins:
            margin = found.margins[0]
        elif self.meter.spent:
            margin = math.inf  # it is not known: whatever else is as cheap may be more decisive
        else:
            answer = self.problem.ask([best])
            if not answer.reached[0]:
                return
            margin = float(answer.margins[0])
        self._record(self.problem.edits.cost(best), margin, best)

    def _bounded_size(self, done: int) -> int:
        """The largest size that bounds alone rule out, given that all sets of at most ``done`` edits are.

        This asks the model nothing, so it may be done when the budget is spent.
        """

        def is_ruled_out(size: int) -> bool:
            influence = self.problem.influence((), self.edits, size)
            assert influence is not None
            ordering = self._sorted(self.edits, self.edits, influence)
            return bool(ordering.largest_effect(size)[0] < self._root_need)

        if not self.has_bounds or not self.bounding_pays(len(self.edits), self.largest_size):
            return done
        if self.knows_margins:
            done = self._clear_size(done)
        if not self.knows_influence or done == self.largest_size:
            return done
        if is_ruled_out(self.largest_size):
            return self.largest_size
        return _last(is_ruled_out, done, self.largest_size)

    def _clear_size(self, done: int) -> int:
        """The largest size that no set of which comes near the goal, by a bound on the margin, from ``done`` on."""
        # More than this need not be known: the incumbent is no larger.
        first = int(np.searchsorted(self.cheapest, self._limit(strict=True)))
        open_size = min(max(first, done + 1), self.largest_size + 1)
        return _last(lambda size: self._stays_clear((), self.edits, size), done, open_size)

    @cached_property
    def knows_margins(self) -> bool:
        """Whether the margin after many edits is bounded at once."""
        return self.problem.margin_bound((), self.edits[:0], 0, 0.0) is not None

    def _stays_clear(self, chosen: tuple[int, ...], free: NDArray[np.int64], more: int) -> bool:
        """Whether none of these sets reaches the goal, by a bound on the margin of all of them."""
        needed = self._needed
        bound = self.problem.margin_bound(chosen, free, more, needed)
        left, work = self.meter.left, len(free) // MARGINS_PER_EVALUATION
        self.meter.count(work if left is None else min(work, left))
        return bound is not None and bound > needed

    @property
    def _needed(self) -> float:
        """A set with a larger margin does not reach the goal, however its scores are rounded."""
        return self.problem.margin - self._root_need

    @cached_property
    def _root_need(self) -> float:
        return float(self._needs(np.array([self.problem.margin]), self.problem.logits[None])[0])

    def _rule_out_all(self) -> bool:
        """Whether all sets can be ruled out at once, with half of what is left."""
        whole, self.problem = self.problem, replace(self.problem, meter=self.meter.half())
        ruled_out = self.has_bounds and self._prove(self.largest_size, until_hit=True)
        self.problem = whole
        return ruled_out

    # The proof for one size.

    def _prove(self, size: int, until_hit: bool = False) -> bool:
        """Try or rule out all sets of at most this size that are not more expensive than the incumbent.

        False if the budget ended it, or the first hit if that was asked for.
        """
        # What an incumbent found on the way rules out counts from the next size on: how the sets are cut into chunks
        # must not make a difference.
        limit = self._limit()
        before = self.meter.evaluations
        affordable = self.edits[self.costs <= limit - self.cheapest[size - 1]]
        if self.bounding_pays(len(affordable), size) and self.has_sieve:
            done = self._sift(affordable, size, limit, until_hit)
            self.work = self.meter.evaluations - before
            return done
        root = Branch((), 0.0, math.nan, self._ordering((), affordable, size), 0)
        bounded = root.ordering.limits is not None
        if bounded:
            root = replace(root, need=self._root_need)
        blocks = [[root]]
        ready: list[Branch] = []
        while blocks or ready:
            enough = len(ready) >= BLOCK or not blocks
            block = ready[:BLOCK] if enough and ready else blocks.pop()
            ready = ready[BLOCK:] if enough else ready
            branches = self._grow(block, size, limit)
            if branches is None or (until_hit and self.hits):
                return False
            # Where nothing is proved, branches multiply before any of them is tried: follow one at a time, and gather
            # those that are one edit short.
            if not bounded and branches and len(branches[0].chosen) + 1 == size:
                ready += branches
                continue
            width = BLOCK if bounded else 1
            blocks += [branches[i : i + width] for i in range(0, len(branches), width)][::-1]
        self.work = self.meter.evaluations - before
        return True

    def _sift(self, edits: NDArray[np.int64], size: int, limit: float, until_hit: bool) -> bool:
        """Try what the oracle's own search does not rule out; as `_prove`."""
        order = edits[np.lexsort([edits, self.single[edits] / self.problem.edits.costs[edits]])]
        sieve = self.problem.sieve(order, size, limit, self._needed)
        assert sieve is not None
        while not self.meter.spent:
            left = self.meter.left
            sieved = sieve.next(MOST_BOUNDED if left is None else min(left, MOST_BOUNDED))
            self.meter.count(sieved.bounded)
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
        """Put some sets that were not ruled out to the oracle. False if the budget ended it."""
        if self.meter.spent:
            return False
        a, b = np.searchsorted(sieved.pointers, [start, end - 1], side="right") - 1
        cut = np.clip(sieved.pointers[a : b + 2], start, end) - start
        prefixes, edits = sieved.prefixes[a : b + 1], sieved.candidates[start:end]
        answers = self.problem.extend_many(prefixes, edits, cut, self.threads)
        for row in np.flatnonzero(answers.reached):
            prefix = prefixes[int(np.searchsorted(cut, row, side="right")) - 1]
            chosen = tuple(sorted((*prefix[prefix >= 0].tolist(), int(edits[row]))))
            self._record(self.problem.edits.cost(chosen), float(answers.margins[row]), chosen)
        return True

    def _ordering(self, chosen: tuple[int, ...], free: NDArray[np.int64], more: int) -> Ordering:
        """The edits that may follow, the most promising first."""
        # Trying single edits is as quick as finding out which of them are equivalent.
        classes = free if more == 1 and not chosen else self.classes[free]
        return self._sorted(free, classes, self._influence(chosen, free, more))

    def _sorted(self, free: NDArray[np.int64], classes: NDArray[np.int64], influence: Influence | None) -> Ordering:
        costs = self.problem.edits.costs[free]
        return Ordering.of(free, costs, classes, self.single[classes] / costs, influence)

    def _influence(self, chosen: tuple[int, ...], free: NDArray[np.int64], more: int) -> Influence | None:
        if not self.bounding_pays(len(free), more):
            return None
        influence = self.problem.influence(chosen, free, more)
        if influence is not None:
            left, work = self.meter.left, len(free) // BOUNDS_PER_EVALUATION
            self.meter.count(work if left is None else min(work, left))
        return influence

    def _grow(self, branches: list[Branch], size: int, limit: float) -> list[Branch] | None:
        """The branches that are left one edit further on; None if the budget ended it."""
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
            # Nothing is proved about what follows, so nothing is gained by asking before the last edit.
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
        """The branch, bounded anew where that pays, and the positions of the edits that may come next."""
        positions = self._positions(branch, more, limit)
        pays = branch.chosen and self.knows_margins and len(positions) ** min(more, 4) >= self.tuning.margins_pay
        if pays and self._stays_clear(branch.chosen, branch.ordering.edits[branch.start :], more):
            return branch, positions[:0]
        if branch.chosen and branch.ordering.limits is not None and self.bounding_pays(len(positions), more):
            # What holds after these edits is tighter than what held before them.
            ordering = self._ordering(branch.chosen, branch.ordering.edits[branch.start :], more)
            if ordering.limits is not None:
                branch = replace(branch, ordering=ordering, start=0)
                positions = self._positions(branch, more, limit)
        return branch, positions

    def _positions(self, branch: Branch, more: int, limit: float) -> NDArray[np.int64]:
        """Which edits may come next: one of each class, if with what can follow it may be enough."""
        ordering = branch.ordering
        positions = ordering.candidates(more, branch.start, branch.need)
        # Smaller sets were tried before, so there must be room for all that are to follow.
        room = limit - branch.cost - self.cheapest[more - 1]
        return positions if math.isinf(room) else positions[ordering.costs[positions] <= room]

    def _try(self, branches: list[Branch], lists: list[NDArray[np.int64]]) -> list[NDArray[np.float64]] | None:
        """Put each branch with each of its next edits to the oracle, in chunks; how far each margin still has to fall.

        None if the budget ended it.
        """
        prefixes = np.array([branch.chosen for branch in branches], dtype=np.int64).reshape(len(branches), -1)
        pointers = np.concatenate([[0], np.cumsum([len(positions) for positions in lists])])
        edits = np.concatenate([b.ordering.edits[positions] for b, positions in zip(branches, lists, strict=True)])
        bounded = branches[0].ordering.limits is not None
        needs = np.empty(len(edits))
        done = 0
        while done < len(edits):
            left = self.meter.left
            end = min(done + self.chunk, len(edits), len(edits) if left is None else done + left)
            if end == done:
                return None
            self.chunk = min(2 * self.chunk, self.largest_chunk)
            a, b = np.searchsorted(pointers, [done, end - 1], side="right") - 1
            cut = np.clip(pointers[a : b + 2], done, end) - done
            answers = self.problem.extend_many(prefixes[a : b + 1], edits[done:end], cut, self.threads)
            for row in np.flatnonzero(answers.reached):
                owner = branches[int(np.searchsorted(pointers, done + row, side="right")) - 1]
                last = int(edits[done + row])
                cost = owner.cost + float(self.problem.edits.costs[last])
                self._record(cost, float(answers.margins[row]), tuple(sorted((*owner.chosen, last))))
            needs[done:end] = self._needs(answers.margins, answers.logits) if bounded else answers.margins
            done = end
        if not branches[0].chosen:
            self.single[edits] = needs
        return np.split(needs, pointers[1:-1])

    def _needs(self, margins: NDArray[np.float64], logits: Tensor) -> NDArray[np.float64]:
        slack: NDArray[np.float64] = SLACK * (1 + np.abs(logits.cpu().numpy()).max(axis=1))
        return margins + self.problem.goal.lead - slack

    # The answers.

    def _record(self, cost: float, margin: float, edits: tuple[int, ...]) -> None:
        if cost <= self._limit():
            self.best_cost = min(cost, self.best_cost)
            self.hits.append((cost, margin, edits))

    def _proposal(self, lower_bound: float, exhausted: bool, complete: bool) -> Proposal:
        smallest = {edits: margin for cost, margin, edits in self.hits if cost <= self._limit()}
        if not smallest:
            return Proposal((), lower_bound, exhausted, note=self.note)
        ranked = sorted(smallest, key=lambda edits: (smallest[edits], edits))
        decisive = smallest[ranked[0]]
        equal = [edits for edits in ranked if smallest[edits] <= decisive + SAME_MARGIN * (1 + abs(decisive))]
        best = min(equal)
        others: list[tuple[int, ...]] = []
        if self.method.all_smallest or self.method.k > 1:
            every = sorted({twin for edits in smallest for twin in self._equivalent(edits)} - {best})
            others = every if self.method.all_smallest else diverse(best, every, self.method.k - 1)
        spare = [edits for edits in ranked[: SPARE + 1] if edits != best][:SPARE]
        # The larger a set, the more often it holds on the whole graph: what the incumbent's search found comes last.
        spare += [edits for edits in self.reserve if edits != best and edits not in spare]
        return Proposal(
            (best, *spare),
            lower_bound,
            alternatives=tuple(others),
            complete=complete and self.method.all_smallest,
            note=self.note,
        )

    def _equivalent(self, edits: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        """All sets that do the same because their edits are equivalent."""
        counts: dict[int, int] = {}
        for edit in edits:
            number = int(self.classes[edit])
            counts[number] = counts.get(number, 0) + 1
        members = {number: self.edits[self.classes[self.edits] == number].tolist() for number in counts}
        for parts in product(*(combinations(members[number], count) for number, count in counts.items())):
            yield tuple(sorted(chain.from_iterable(parts)))


def _last(holds: Callable[[int], bool], first: int, end: int) -> int:
    """The largest size below ``end`` for which it holds, as for ``first``: in growing steps, then by bisection."""
    step = 1
    while end - first > 1:
        size = min(first + step, (first + end) // 2)
        if holds(size):
            first, step = size, 2 * step
        else:
            end = size
    return first
