"""Exact search: every smaller set is tried or ruled out, so that the answer is proved to be smallest."""

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
from butfor.methods.branching import diverse
from butfor.methods.descent import Descent
from butfor.methods.proof import Proof, Tuning, number_of_sets
from butfor.problem.proposal import Proposal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from butfor.problem.problem import Problem

__all__ = ["Exact", "Tuning"]

# Margins closer than this, relative to 1 + their size, are equal up to rounding; the lower edit numbers then decide.
SAME_MARGIN = 1e-5

CORES = os.cpu_count() or 1

# Evaluations that may be spent on small sets before an incumbent is looked for, where the oracle has a sieve. There are
# none where they would be more than one in HEAD_SHARE of the budget.
HEAD_START, HEAD_SHARE = 200, 12

# How many times the work of the size before it a size takes, where bounds prune most of its sets. It only decides
# whether to look for more decisive answers; on BA-Shapes the median is between 12 and 20.
GROWTH = 16

# How long a proof may take to be written down, where the budget has no limit in seconds.
PROOF_SECONDS = 20.0

# Sets of so few edits are bounded much more quickly than larger ones; from so many on a size need not be exact.
FEW, LARGE = 2, 64

# An oracle that answers about so many edit sets at once takes microseconds for each.
QUICK_BATCH = 4096

# Further candidates handed over in case the whole graph refutes the first.
SPARE = 8


@dataclass(frozen=True)
class Exact(Method):
    """Find a first answer, the incumbent; then try or rule out every cheaper set of edits, and so prove the smallest.

    An anytime search: whenever it ends it has an incumbent and a lower bound, and the answer is `optimal` when the two
    meet. Sets are gone through by size until none is left or the budget is spent. Edits that cannot matter are left
    out, of sets that differ only in equivalent edits one is tried for all, and branches that cannot reach the goal are
    pruned by bounds. All three rest on proofs, not on guesses.

    Among all sets of the smallest cost the most decisive is returned, the one with the largest margin for its new
    class; ties are broken by edit number. All of them are looked at for that if it is likely to fit into what is
    left of the budget; if not, the most decisive of those that were found is returned.

    Attributes:
        all_smallest: return every smallest set, and from them each edge's necessity.
        k: return this many smallest sets, as different from each other as possible.
        width: the width of `Descent`, where that finds the incumbent.
        threads: for the proof of one target; 0 for all cores. The answer does not depend on it.
        incumbent: the method that finds the first answer; None for ``Descent(width)``.
        certificate: write the proof down, so that anyone can check it. This is done after the search, and takes at most
            the seconds of the budget once more, or 20 where it has no limit in seconds.
        tuning: numbers that make the search quicker or slower; the answer does not depend on them.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> cf = butfor.explain(model, data, 605, butfor.Exact(all_smallest=True))
        >>> print(cf.status, cf.size, 1 + len(cf.alternatives))  # six sets of two edges do it
        optimal 2 6
        >>> edge, share = cf.necessity[0]
        >>> edge.edge, round(share, 2)  # this edge is in a third of them
        ((601, 602), 0.33)
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
    """One search: what to do next, until incumbent and bound meet."""

    def __init__(self, method: Exact, problem: Problem) -> None:
        self.method = method
        self.proof = Proof(problem, method.tuning, method.threads or CORES)
        # Evaluations before an incumbent is looked for; of a small budget the incumbent gets all.
        left = problem.meter.left
        self.head_start = HEAD_START if left is None or left >= HEAD_START * HEAD_SHARE else 0
        self.incumbent = method.incumbent or Descent(method.width)
        self.has_incumbent = False  # also true if one was looked for and not found
        self.reserve: tuple[tuple[int, ...], ...] = ()
        self.floor = 0.0  # a lower bound that the incumbent's search proved
        # What bounds on the margin have said of all sets of a size: ruled out up to here, and not from here on.
        self.clear, self.open = 0, math.inf
        self.note = ""

    def run(self) -> Proposal:
        proof = self.proof
        if not len(proof.edits):
            return Proposal(exhausted=True)
        # Proved: every set of at most `done` edits was tried, is ruled out, or is no cheaper than the incumbent.
        done = 0
        may_jump, tried_to_rule_out = True, False
        while self._worth_trying(done + 1):
            size = done + 1
            proof.problem.proved(proof.cheapest[size])
            if not self.has_incumbent and not self._incumbent_can_wait(size):
                if not proof.hits and self._bounds_margin and self._all_stay_clear():
                    return Proposal(exhausted=True)
                if self._proved_early(size):
                    done = size
                elif not proof.hits:
                    self._find_incumbent()
                self.has_incumbent |= bool(proof.hits)
                continue
            if not tried_to_rule_out and self._may_rule_out_all(size):
                tried_to_rule_out = True
                if self._rule_out_all():
                    return Proposal(exhausted=True)
                continue
            if may_jump and proof.bounding_pays(len(proof.edits), size) and self._bounds_margin:
                may_jump = False
                done = self._clear_size(done)
                continue
            if proof.prove(size):
                done = size
            elif not proof.gave_up:
                break
        if proof.meter.spent and proof.cheapest[done + 1] < proof.limit(strict=True):
            done = self._bounded_size(done)
        untried = max(proof.cheapest[done + 1], self.floor)
        lower_bound = min(untried, proof.best_cost)
        exhausted = not proof.hits and math.isinf(untried)
        complete = not self._may_tie(done + 1)
        return self._proposal(0.0 if math.isinf(lower_bound) else float(lower_bound), exhausted, complete)

    # What to do next.

    @cached_property
    def _bounds_margin(self) -> bool:
        """Whether it pays to bound the margin of all sets together. Small questions are answered without asking."""
        return self.proof.bounding_pays(len(self.proof.edits), self.proof.largest_size) and self.proof.knows_margins

    def _incumbent_can_wait(self, size: int) -> bool:
        """Whether all sets of this size can be tried first, and the incumbent is still found after that.

        A method that has its answers within a known number of evaluations can wait as long as these are left: trying
        small sets is as quick, and often all that is needed.
        """
        most = self.incumbent.most_evaluations(len(self.proof.problem.edits))
        sets = number_of_sets(len(self.proof.edits), size)
        if most is None or self.proof.bounding_pays(len(self.proof.edits), size):
            return False
        if self.proof.meter.seconds_left is not None:
            # Where an evaluation takes microseconds, so many take no time.
            return self.proof.largest_chunk >= QUICK_BATCH and sets <= self.proof.tuning.bounding_pays
        return self.proof.meter.left is None or self.proof.meter.left >= sets + most

    def _worth_trying(self, size: int) -> bool:
        """Whether sets of this size are worth a try."""
        if self.proof.meter.spent or size > self.proof.largest_size:
            return False
        if self.proof.cheapest[size] < self.proof.limit(strict=True):
            return True
        # Nothing cheaper is left. There may be sets that cost the same and are more decisive, if all can be looked at.
        if not self._may_tie(size):
            return False
        sets, meter = number_of_sets(len(self.proof.edits), size), self.proof.meter
        left, seconds = meter.left, meter.seconds_left
        fits = left is None or sets <= left or (GROWTH * self.proof.work <= left and self.proof.has_bounds)
        if seconds is None or not fits:
            return fits
        each = self.proof.seconds / max(self.proof.work, 1)
        return sets * each <= seconds or (GROWTH * self.proof.seconds <= seconds and self.proof.has_bounds)

    def _may_tie(self, size: int) -> bool:
        """Whether a set of this size can cost as little as the best."""
        return size <= self.proof.largest_size and self.proof.cheapest[size] <= self.proof.limit()

    def _proved_early(self, size: int) -> bool:
        """Try to prove a small size before looking for an incumbent, where that may be quicker; whether it worked."""
        if self.head_start <= 0 or not self.proof.sieve_pays(len(self.proof.edits), max(size, 2)):
            return False
        before = self.proof.meter.evaluations
        with self.proof.on(self.proof.meter.part(self.head_start)):
            proved = self.proof.prove(size)
        self.head_start -= self.proof.meter.evaluations - before
        if not proved:
            self.head_start = 0
        return proved

    def _find_incumbent(self) -> None:
        """Find an incumbent, with all that is left of the budget if need be: an answer is worth more than a bound."""
        self.has_incumbent = True
        found = self.incumbent.solve(self.proof.problem)
        self.note = found.note
        self.floor = math.inf if found.exhausted else found.lower_bound
        self.reserve = found.candidates
        if not found.candidates:
            return
        best = found.candidates[0]
        if found.margins:
            margin = found.margins[0]
        elif self.proof.meter.spent:
            margin = math.inf  # unknown, so any other set that costs the same counts as more decisive
        else:
            answer = self.proof.problem.ask([best])
            if not answer.reached[0]:
                return
            margin = float(answer.margins[0])
        self.proof.record(self.proof.problem.edits.cost(best), margin, best)

    def _bounded_size(self, done: int) -> int:
        """The largest size that bounds alone rule out, given that all sets of at most ``done`` edits are.

        This asks the model nothing, so it may be done when the budget is spent.
        """

        def is_ruled_out(size: int) -> bool:
            influence = self.proof.problem.influence((), self.proof.edits, size)
            assert influence is not None
            ordering = self.proof.sorted_edits(self.proof.edits, self.proof.edits, influence)
            return bool(ordering.largest_effect(size)[0] < self.proof.root_need)

        if not self.proof.has_bounds or not self.proof.bounding_pays(len(self.proof.edits), self.proof.largest_size):
            return done
        if self.proof.knows_margins:
            done = self._clear_size(done)
        if not self.proof.knows_influence or done == self.proof.largest_size:
            return done
        if is_ruled_out(self.proof.largest_size):
            return self.proof.largest_size
        return _last(is_ruled_out, done, self.proof.largest_size)

    def _clear_size(self, done: int) -> int:
        """The largest size up to which the bound on the margin rules out all sets; ``done`` is proved already."""
        # Larger sets cost no less than the incumbent, so they need not be ruled out.
        first = int(np.searchsorted(self.proof.cheapest, self.proof.limit(strict=True)))
        open_size = min(max(first, done + 1), self.proof.largest_size + 1)
        return _last(self._stays_clear, done, open_size)

    def _all_stay_clear(self) -> bool:
        """Whether a bound on the margin rules out all sets; first of the small ones, where that takes less time."""
        largest = self.proof.largest_size
        return (not self.proof.sifts or self._stays_clear(min(FEW, largest))) and self._stays_clear(largest)

    def _stays_clear(self, size: int) -> bool:
        """Whether a bound on the margin rules out all sets of at most this size; each is asked for only once."""
        if self.clear < size < self.open:
            if self.proof.stays_clear((), self.proof.edits, size):
                self.clear = size
            else:
                self.open = size
        return size <= self.clear

    def _may_rule_out_all(self, size: int) -> bool:
        """Whether it is worth a try at this size: a sieve may where a bound on the margin of all sets does not."""
        proof = self.proof
        if proof.hits or size < 2 or not proof.bounding_pays(len(proof.edits), size):
            return False
        return proof.sifts or not self._bounds_margin

    def _rule_out_all(self) -> bool:
        """Try to rule out the sets of all sizes at once, with half of the budget that is left; whether it worked."""
        proof, size = self.proof, self.proof.largest_size
        with proof.on(proof.meter.half()):
            return proof.has_bounds and (
                proof.prove(size, until_hit=True) or (proof.gave_up and proof.prove(size, until_hit=True))
            )

    # The answers.

    def _proposal(self, lower_bound: float, exhausted: bool, complete: bool) -> Proposal:
        smallest = {edits: margin for cost, margin, edits in self.proof.hits if cost <= self.proof.limit()}
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
        # A larger set is more likely to hold on the whole graph, so what the incumbent's search found comes last.
        spare += [edits for edits in self.reserve if edits != best and edits not in spare]
        return Proposal(
            (best, *spare),
            lower_bound,
            alternatives=tuple(others),
            complete=complete and self.method.all_smallest,
            note=self.note,
        )

    def _equivalent(self, edits: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        """All sets that have the same effect because their edits are equivalent."""
        counts: dict[int, int] = {}
        for edit in edits:
            number = int(self.proof.classes[edit])
            counts[number] = counts.get(number, 0) + 1
        every = self.proof.edits
        members = {number: every[self.proof.classes[every] == number].tolist() for number in counts}
        for parts in product(*(combinations(members[number], count) for number, count in counts.items())):
            yield tuple(sorted(chain.from_iterable(parts)))


def _last(holds: Callable[[int], bool], first: int, end: int) -> int:
    """The largest size below ``end`` that ``holds``, as ``first`` does: in growing steps, then by bisection.

    Of a large one an eighth may be missing: a bound on so many edits takes long, and says little more.
    """
    step = 1
    while end - first > (1 if first < LARGE else first // 8):
        size = min(first + step, (first + end) // 2)
        if holds(size):
            first, step = size, 2 * step
        else:
            end = size
    return first
