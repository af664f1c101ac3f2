"""Exact search: every smaller set is tried, so the answer is proved smallest."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, combinations, product
from typing import TYPE_CHECKING

import numpy as np

from butfor.errors import InputError
from butfor.methods.base import Method
from butfor.methods.greedy import Greedy
from butfor.problem.problem import Budget, Proposal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from torch import Tensor

    from butfor.oracle.general import Influence
    from butfor.problem.problem import Meter, Problem

__all__ = ["Exact"]

# Margins closer than this are the same margin up to rounding; the lower edge numbers then decide.
SAME_MARGIN = 1e-5

CORES = os.cpu_count() or 1

# Edit sets in one question to the oracle: few at first, so that the clock is looked at early.
FIRST_CHUNK, LARGEST_CHUNK = 1024, 65_536

# Branches that are followed together. It decides in which order sets are tried, so it is not for tuning.
BLOCK = 256

# Single edits that it takes to make up for bounding their influence, or a quarter of the sets: a small
# neighbourhood has many sets of few edits, but each is tried quickly.
WORTH_A_BOUND = 1024

# Edits are bounded in the time that it takes to try one.
BOUNDS_FOR_ONE = 4

# By how much more work a size takes than the one before it where bounds cut most of its sets. It decides whether
# to look for more decisive answers, and no more; on BA-Shapes the median lies between 12 and 20.
GROWTH = 16

# Room for the rounding of scores, relative to the largest, where margins are compared with a bound.
SLACK = 1e-4

# Further candidates handed over in case the whole graph refutes the first.
SPARE = 8


@dataclass(frozen=True)
class Exact(Method):
    """An incumbent first, by `Greedy`; then every cheaper set, by size, until none is left or the budget is.

    An anytime search: whenever it ends it has an incumbent and a lower bound, and the answer is
    `optimal` when the two meet. Edits that cannot matter are left out (`Oracle.relevant`), of sets that
    differ only in edits which are alike (`Oracle.alike`) one is tried for all, and branches are cut that
    cannot reach the goal (`Oracle.influence`). All three rest on proofs, not on guesses.

    Among all sets of the smallest cost the most decisive is returned, the one with the largest margin
    for its new class; equal ones are decided by edge number. All of them are looked at for that if it is
    likely to fit into what is left of the budget; if not, the most decisive of those that were met is
    returned.

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
        super().__post_init__()
        if self.k < 1:
            raise InputError(f"k is {self.k}; at least one answer is needed")
        if self.threads < 0:
            raise InputError(f"threads is {self.threads}; give a positive number, or 0 for all cores")
        Greedy(self.width)

    def solve(self, problem: Problem, budget: Budget) -> Proposal:
        """Search until incumbent and bound meet, or the budget is spent."""
        return _Search(self, problem, budget.meter()).run()


@dataclass(frozen=True, eq=False)
class _Order:
    """Edits in the order they are tried, those that are alike side by side.

    Attributes:
        edits: the order.
        costs: what each costs.
        first: whether each is the first of its kind.
        limits: what each can do at most, falling; None where nothing is proved.
        total: what all can do together at most.
    """

    edits: NDArray[np.int64]
    costs: NDArray[np.float64]
    first: NDArray[np.bool_]
    limits: NDArray[np.float64] | None = None
    total: float = math.inf

    @cached_property
    def firsts(self) -> NDArray[np.int64]:
        """The positions of those that are the first of their kind."""
        return np.flatnonzero(self.first)

    @cached_property
    def _falling(self) -> dict[int, NDArray[np.float64]]:
        return {}

    def most(self, count: int) -> NDArray[np.float64]:
        """What so many edits can do at most, of those from each position on, and of none at all; it falls."""
        if count not in self._falling:
            assert self.limits is not None
            starts = np.arange(len(self.edits) + 1)
            sums = np.append(0.0, np.cumsum(self.limits))
            # Differences of long sums lose digits, and those of infinite ones are no numbers.
            with np.errstate(invalid="ignore"):
                lost = len(self.edits) * np.finfo(float).eps * sums[-1]
                most = sums[np.minimum(starts + count, len(self.edits))] - sums + lost
            most = np.minimum(np.where(np.isnan(most), math.inf, most), self.total)
            self._falling[count] = np.maximum.accumulate(most[::-1])[::-1]
        return self._falling[count]

    def may_follow(self, count: int, start: int, need: float) -> NDArray[np.int64]:
        """The first of each kind from ``start`` on that may be enough as the next of so many edits."""
        # Of the kind that the last edit was, the next is the first that is left.
        same = start < len(self.edits) and not self.first[start]
        end = len(self.edits)
        if self.limits is not None:
            end = int(np.searchsorted(-self.most(count)[:-1], -need, side="right"))
        a, b = np.searchsorted(self.firsts, [start, end])
        positions = self.firsts[a:b]
        return np.append(start, positions) if same and start < end else positions


@dataclass(frozen=True, eq=False)
class _Branch:
    """All sets of these edits and some of those from a position of the order on.

    Attributes:
        chosen: edits that are in the set.
        cost: what they cost.
        need: how far the margin has yet to fall at least, however scores were rounded; only bounds ask for it.
        order: of the edits that may follow.
        start: the first position of these.
    """

    chosen: tuple[int, ...]
    cost: float
    need: float
    order: _Order
    start: int


class _Search:
    """One search."""

    def __init__(self, method: Exact, problem: Problem, meter: Meter) -> None:
        self.method, self.problem, self.meter = method, problem, meter
        self.threads = method.threads or CORES
        relevant = problem.oracle.relevant(problem.edits)
        if problem.edits.keep_connected and len(problem.edits.added.edit):
            # An edge that the model does not see may be what holds the rest together.
            relevant[:] = True
        self.edits = np.flatnonzero(relevant)
        self.costs = problem.edits.costs[self.edits]
        most = problem.edits.max_edits
        self.most = len(self.edits) if most is None else min(most, len(self.edits))
        self.cheapest = np.concatenate([[0.0], np.cumsum(np.sort(self.costs))[: self.most], [math.inf]])
        # The margin that each edit leaves alone, where it was tried: the likeliest are tried first.
        self.alone = np.zeros(len(problem.edits))
        self.work = 0  # evaluations that the last size took
        self.greedy = Greedy(method.width)
        self.searched = False  # for the incumbent
        self.fallback: tuple[tuple[int, ...], ...] = ()
        self.floor = 0.0  # proved by the way: nothing costs less
        self.note = ""
        self.best_cost = math.inf
        self.met: list[tuple[float, float, tuple[int, ...]]] = []
        self.largest = min(LARGEST_CHUNK, problem.oracle.pace(problem.edits))
        self.chunk = min(FIRST_CHUNK, self.largest)

    @cached_property
    def kinds(self) -> NDArray[np.int64]:
        """Which edits are alike."""
        if self.problem.edits.keep_connected:
            # What is alike to the model need not be alike to the rest of the graph.
            return np.arange(len(self.problem.edits))
        return self.problem.oracle.alike(self.problem.edits)

    @cached_property
    def bounded(self) -> bool:
        """Whether anything is proved about this model's layers."""
        return self.problem.influence((), self.edits[:0], 1) is not None

    def run(self) -> Proposal:
        if not len(self.edits):
            return Proposal(exhausted=True)
        # Proved: no set of at most `done` edits that was left untried is cheaper than the incumbent.
        done = 0
        doubted = False
        while self._open(done + 1):
            size = done + 1
            if not self.searched and not self._can_wait(size):
                self._incumbent()
                continue
            if not self.met and not doubted and size > 1 and _many(len(self.edits), size):
                doubted = True
                if self._none_at_all():
                    return Proposal(exhausted=True, evaluations=self.meter.evaluations)
                continue
            if not self._prove(size):
                break
            done = size
        if self.meter.spent and self.cheapest[done + 1] < self._limit(strict=True):
            done = self._ruled_out(done)
        untried = max(self.cheapest[done + 1], self.floor)
        lower_bound = min(untried, self.best_cost)
        exhausted = not self.met and math.isinf(untried)
        complete = not self._ties(done + 1)
        return self._proposal(0.0 if math.isinf(lower_bound) else float(lower_bound), exhausted, complete)

    def _can_wait(self, size: int) -> bool:
        """Whether all sets of this size can be tried first, and the incumbent is still found after that.

        `Greedy` has its answers within what it can spend at most; so long as that is left, trying small sets is as
        quick, and often all that is needed.
        """
        if _many(len(self.edits), size) or self.meter.seconds_left is not None:
            return False
        left = self.meter.left
        needed = math.comb(len(self.edits), size) + self.greedy.most_evaluations(len(self.problem.edits))
        return left is None or left >= needed

    def _open(self, size: int) -> bool:
        """Whether sets of this size are worth a try."""
        if self.meter.spent or size > self.most:
            return False
        if self.cheapest[size] < self._limit(strict=True):
            return True
        # Nothing cheaper can come. What may come is as cheap and more decisive, if all of it can be seen.
        if not self._ties(size) or self.meter.left is None:
            return self._ties(size)
        fits = math.comb(len(self.edits), size) <= self.meter.left
        return fits or (GROWTH * self.work <= self.meter.left and self.bounded)

    def _ties(self, size: int) -> bool:
        return size <= self.most and self.cheapest[size] <= self._limit()

    def _limit(self, strict: bool = False) -> float:
        # Sums of the same costs in another order differ by rounding, but never by an edit.
        room = self.problem.edits.rounding(self.best_cost)
        return self.best_cost - room if strict else self.best_cost + room

    def _incumbent(self) -> None:
        """Find an answer by `Greedy`, with all that is left if need be: an answer is worth more than a bound."""
        self.searched = True
        found = self.greedy.descend(self.problem, self.meter)
        self.note = found.note
        self.floor = math.inf if found.exhausted else found.lower_bound
        self.fallback = tuple(edits for _, edits in found.sets)
        for margin, edits in found.sets[:1]:
            self._meet(self.problem.edits.cost(edits), margin, edits)

    def _ruled_out(self, done: int) -> int:
        """Up to which size bounds alone rule out all sets, given that all of at most ``done`` edits are.

        This asks the model nothing, so it may be done when the budget is spent.
        """

        def holds(size: int) -> bool:
            influence = self.problem.influence((), self.edits, size)
            assert influence is not None
            order = self._sorted(self.edits, self.edits, influence)
            return bool(order.most(size)[0] < self._root_need)

        if not self.bounded or not _many(len(self.edits), self.most):
            return done
        if holds(self.most):
            return self.most
        # Between the largest size that is ruled out and the smallest that is not: in growing steps, then by bisection.
        step, first_open = 1, self.most
        while first_open - done > 1:
            size = min(done + step, (done + first_open) // 2)
            if holds(size):
                done, step = size, 2 * step
            else:
                first_open = size
        return done

    @cached_property
    def _root_need(self) -> float:
        return float(self._needs(np.array([self.problem.margin]), self.problem.logits[None])[0])

    def _none_at_all(self) -> bool:
        """Whether all sets can be ruled out at once, with half of what is left."""
        left, seconds = self.meter.left, self.meter.seconds_left
        half = Budget(None if left is None else left // 2 or 1, None if seconds is None else seconds / 2 or 1e-9)
        whole, self.meter = self.meter, half.meter()
        none = self.bounded and self._prove(self.most, until_met=True)
        whole.evaluations += self.meter.evaluations
        whole.failures += self.meter.failures
        self.meter = whole
        return none

    def _prove(self, size: int, until_met: bool = False) -> bool:
        """Meet or rule out all sets of so many edits that are not dearer than the incumbent, and smaller ones.

        False if the budget ended it, or the first that was met if that was asked for.
        """
        # What an incumbent found on the way rules out counts from the next size on: how the sets are cut
        # into chunks must not matter.
        limit = self._limit()
        before = self.meter.evaluations
        affordable = self.edits[self.costs <= limit - self.cheapest[size - 1]]
        root = _Branch((), 0.0, math.nan, self._order((), affordable, size), 0)
        if root.order.limits is not None:
            root = replace(root, need=self._root_need)
        bounded = root.order.limits is not None
        blocks = [[root]]
        ready: list[_Branch] = []
        while blocks or ready:
            enough = len(ready) >= BLOCK or not blocks
            block = ready[:BLOCK] if enough and ready else blocks.pop()
            ready = ready[BLOCK:] if enough else ready
            branches = self._grow(block, size, limit)
            if branches is None or (until_met and self.met):
                return False
            # Where nothing is proved, branches multiply before any of them is tried: follow one at a time, and
            # gather those that are one edit short.
            if not bounded and branches and len(branches[0].chosen) + 1 == size:
                ready += branches
                continue
            width = BLOCK if bounded else 1
            blocks += [branches[i : i + width] for i in range(0, len(branches), width)][::-1]
        self.work = self.meter.evaluations - before
        return True

    def _order(self, chosen: tuple[int, ...], free: NDArray[np.int64], more: int) -> _Order:
        """The edits that may follow, the likeliest first."""
        # Single edits are tried as quickly as it is found out which of them are alike.
        kinds = free if more == 1 and not chosen else self.kinds[free]
        influence = self._influence(chosen, free, more)
        return self._sorted(free, kinds, influence)

    def _sorted(self, free: NDArray[np.int64], kinds: NDArray[np.int64], influence: Influence | None) -> _Order:
        costs = self.problem.edits.costs[free]
        promise = self.alone[kinds] / costs if influence is None else -influence.limits
        order = np.lexsort([free, kinds, promise])
        first = np.append(True, np.diff(kinds[order]) != 0)[: len(order)]
        if influence is None:
            return _Order(free[order], costs[order], first)
        return _Order(free[order], costs[order], first, influence.limits[order], influence.total)

    def _influence(self, chosen: tuple[int, ...], free: NDArray[np.int64], more: int) -> Influence | None:
        if not _many(len(free), more):
            return None
        influence = self.problem.influence(chosen, free, more)
        if influence is not None:
            left = self.meter.left
            work = len(free) // BOUNDS_FOR_ONE
            self.meter.evaluations += work if left is None else min(work, left)
        return influence

    def _grow(self, branches: list[_Branch], size: int, limit: float) -> list[_Branch] | None:
        """The branches that are left one edit further on; None if the budget ended it."""
        more = size - len(branches[0].chosen)
        grown: list[_Branch] = []
        lists: list[NDArray[np.int64]] = []
        for branch in branches:
            if self.meter.spent:
                return None
            positions = self._positions(branch, more, limit)
            if branch.chosen and branch.order.limits is not None and _many(len(positions), more):
                # What holds after these edits is tighter than what held before them.
                order = self._order(branch.chosen, branch.order.edits[branch.start :], more)
                if order.limits is not None:
                    branch = replace(branch, order=order, start=0)
                    positions = self._positions(branch, more, limit)
            if len(positions):
                grown.append(branch)
                lists.append(positions)
        if not grown:
            return []
        if more > 1 and grown[0].order.limits is None:
            # Nothing is proved about what follows, so nothing is gained by asking before the last edit.
            pairs = zip(grown, lists, strict=True)
            return [self._child(branch, at, math.nan) for branch, positions in pairs for at in positions.tolist()]
        needs = self._try(grown, lists)
        if needs is None or more == 1:
            return None if needs is None else []
        children = []
        for branch, positions, left in zip(grown, lists, needs, strict=True):
            enough = ~(branch.order.most(more - 1)[positions + 1] < left)
            children += [self._child(branch, int(positions[i]), float(left[i])) for i in np.flatnonzero(enough)]
        return children

    def _child(self, branch: _Branch, position: int, need: float) -> _Branch:
        edit = int(branch.order.edits[position])
        cost = branch.cost + float(branch.order.costs[position])
        return _Branch((*branch.chosen, edit), cost, need, branch.order, position + 1)

    def _positions(self, branch: _Branch, more: int, limit: float) -> NDArray[np.int64]:
        """Which edits may come next: one of each kind, if with what can follow it may be enough."""
        order = branch.order
        positions = order.may_follow(more, branch.start, branch.need)
        # Smaller sets were tried before, so there must be room for all that are to follow.
        room = limit - branch.cost - self.cheapest[more - 1]
        return positions if math.isinf(room) else positions[order.costs[positions] <= room]

    def _try(self, branches: list[_Branch], lists: list[NDArray[np.int64]]) -> list[NDArray[np.float64]] | None:
        """Put each branch with each of its next edits to the oracle; how far each margin has yet to fall."""
        problem, goal = self.problem, self.problem.goal
        prefixes = np.array([branch.chosen for branch in branches], dtype=np.int64).reshape(len(branches), -1)
        pointers = np.concatenate([[0], np.cumsum([len(positions) for positions in lists])])
        chosen = np.concatenate([b.order.edits[positions] for b, positions in zip(branches, lists, strict=True)])
        needs = np.empty(len(chosen))
        done = 0
        while done < len(chosen):
            left = self.meter.left
            end = min(done + self.chunk, len(chosen))
            if left is not None:
                end = min(end, done + left)
            if end == done:
                return None
            self.chunk = min(2 * self.chunk, self.largest)
            a, b = np.searchsorted(pointers, [done, end - 1], side="right") - 1
            cut = np.clip(pointers[a : b + 2], done, end) - done
            logits = problem.oracle.extensions(problem.edits, prefixes[a : b + 1], chosen[done:end], cut, self.threads)
            self.meter.evaluations += end - done
            margins, reached = goal.judge(logits, problem.before)
            self.meter.failures += int(np.isnan(margins).sum())
            rows = np.flatnonzero(reached)
            if len(rows):
                owners = np.searchsorted(pointers, done + rows, side="right") - 1
                met = np.concatenate([prefixes[owners], chosen[done + rows, None]], axis=1)
                if problem.edits.constrained:
                    allowed = problem.edits.permits(met)
                    rows, owners, met = rows[allowed], owners[allowed], met[allowed]
                for row, owner, edits in zip(rows, owners, np.sort(met, axis=1).tolist(), strict=True):
                    if frozenset(edits) not in problem.refuted:
                        cost = branches[owner].cost + float(problem.edits.costs[chosen[done + row]])
                        self._meet(cost, float(margins[row]), tuple(edits))
            needs[done:end] = margins if branches[0].order.limits is None else self._needs(margins, logits)
            done = end
        if not branches[0].chosen:
            self.alone[chosen] = needs
        return np.split(needs, pointers[1:-1])

    def _needs(self, margins: NDArray[np.float64], logits: Tensor) -> NDArray[np.float64]:
        slack: NDArray[np.float64] = SLACK * (1 + np.abs(logits.cpu().numpy()).max(axis=1))
        return margins + self.problem.goal.lead - slack

    def _meet(self, cost: float, margin: float, edits: tuple[int, ...]) -> None:
        if cost <= self._limit():
            self.best_cost = min(cost, self.best_cost)
            self.met.append((cost, margin, edits))

    def _proposal(self, lower_bound: float, exhausted: bool, complete: bool) -> Proposal:
        smallest = {edits: margin for cost, margin, edits in self.met if cost <= self._limit()}
        if not smallest:
            return Proposal(
                (), lower_bound, exhausted, self.meter.evaluations, failures=self.meter.failures, note=self.note
            )
        ranked = sorted(smallest, key=lambda edits: (smallest[edits], edits))
        decisive = smallest[ranked[0]]
        equal = [edits for edits in ranked if smallest[edits] <= decisive + SAME_MARGIN * (1 + abs(decisive))]
        best = min(equal)
        others: list[tuple[int, ...]] = []
        if self.method.all_smallest or self.method.k > 1:
            every = sorted({copy for edits in smallest for copy in self._copies(edits)} - {best})
            others = every if self.method.all_smallest else _apart(best, every, self.method.k - 1)
        spare = [edits for edits in ranked[: SPARE + 1] if edits != best][:SPARE]
        # What the descent found holds more often on the whole graph the larger it is.
        spare += [edits for edits in self.fallback if edits != best and edits not in spare]
        return Proposal(
            (best, *spare),
            lower_bound,
            evaluations=self.meter.evaluations,
            alternatives=tuple(others),
            complete=complete and self.method.all_smallest,
            failures=self.meter.failures,
            note=self.note,
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


def _many(count: int, size: int) -> bool:
    """Whether there are so many sets of at most this size that it pays to bound the influence of their edits."""
    return count >= WORTH_A_BOUND or math.comb(count, min(size, (count + 1) // 2)) >= 4 * WORTH_A_BOUND


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
