"""From a proposal to what holds: what it rests on is seen on the whole graph before anything is claimed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from butfor.result.verify import verify, verify_many

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from butfor.edits.edits import EditSet
    from butfor.problem.problem import Problem
    from butfor.problem.proposal import Proposal
    from butfor.result.verify import Verified

__all__ = ["Settled", "Settler", "to_verify"]

# How often a search is begun anew because the whole graph refuted what it found.
RETRIES = 3

CONTRADICTS = "The model gave other scores for the same edits when they were verified, so nothing is proved."


@dataclass(frozen=True, eq=False)
class Settled:
    """What holds on the whole graph.

    Attributes:
        problem: the problem that was solved at last; its neighbourhood may be larger than at first.
        proposal: what was found in it, without what turned out not to be proved.
        evaluations: of all searches for this target.
        chosen: the edits that reach the goal on the whole graph; empty where none do.
        logits: the target's logits after them; None where there are none.
    """

    problem: Problem
    proposal: Proposal
    evaluations: int
    chosen: tuple[int, ...] = ()
    logits: Tensor | None = None


def to_verify(problem: Problem, proposal: Proposal) -> list[EditSet]:
    """The edit sets that must be seen on the whole graph before a proposal is believed.

    The best candidate and, if the proposal also claims a proof, `Problem.telling_sets`.
    """
    sets: list[EditSet] = list(proposal.candidates[:1])
    trivial = not proposal.exhausted and proposal.lower_bound <= problem.least_cost
    if trivial or not problem.can_prove:
        return sets
    return [*sets, *problem.telling_sets(math.inf if proposal.exhausted else proposal.lower_bound)]


@dataclass(frozen=True, eq=False)
class Settler:
    """Settles proposals; where the whole graph disagrees, the search goes on.

    Attributes:
        search: solves a problem anew, on a meter of its own; returns it with that meter, and the proposal.
        widen: the same problem in a larger neighbourhood; None where there is none.
    """

    search: Callable[[Problem], tuple[Problem, Proposal]]
    widen: Callable[[Problem], Problem | None]

    def settle(self, problem: Problem, proposal: Proposal, seen: list[Verified]) -> Settled:
        """What holds of a proposal, given what was seen of the sets of `to_verify`.

        Where the model says something else on the whole graph than the search was told, the neighbourhood was too
        small: the target is searched again in a larger one.
        """
        evaluations, contradicts = problem.meter.evaluations, False
        proposal = _provable(problem, proposal)
        while not all(one.as_expected for one in seen):
            if proposal.candidates and seen[0].reached and not _claims_proof(problem, proposal):
                break
            wider = self.widen(problem)
            if wider is None:
                contradicts = True
                break
            problem, proposal = self._search(wider)
            evaluations += problem.meter.evaluations
            seen = verify_many([(problem, chosen) for chosen in to_verify(problem, proposal)])
        if proposal.candidates and seen[0].reached:
            proposal = _unproved(proposal) if contradicts else proposal
            return Settled(problem, proposal, evaluations, proposal.candidates[0], seen[0].logits)
        return self._next_best(problem, proposal, evaluations, contradicts)

    def _search(self, problem: Problem) -> tuple[Problem, Proposal]:
        problem, proposal = self.search(problem)
        return problem, _provable(problem, proposal)

    def _next_best(self, problem: Problem, proposal: Proposal, evaluations: int, contradicts: bool) -> Settled:
        """The first candidate that holds on the whole graph after the best did not; then the search goes on."""
        candidates = proposal.candidates[1:]
        for _ in range(RETRIES):
            proposal = _unproved(proposal) if contradicts else proposal
            for chosen in candidates:
                seen = verify(problem, chosen)
                if seen.reached:
                    proved = proposal if seen.as_expected else _unproved(proposal)
                    return Settled(problem, proved, evaluations, chosen, seen.logits)
            if not proposal.candidates:
                break
            problem, proposal = self._search(problem.without(proposal.candidates))
            candidates = proposal.candidates
            evaluations += problem.meter.evaluations
        return Settled(problem, _unproved(proposal) if contradicts else proposal, evaluations)


def _claims_proof(problem: Problem, proposal: Proposal) -> bool:
    """Whether a proposal claims to be the best, or that more than the cheapest edit is needed."""
    optimal = any(problem.edits.cost(chosen) <= proposal.lower_bound for chosen in proposal.candidates[:1])
    return proposal.exhausted or optimal or proposal.lower_bound > problem.least_cost


def _provable(problem: Problem, proposal: Proposal) -> Proposal:
    """What a proposal may claim: only that something must change, where the whole graph may not follow its part."""
    if problem.can_prove:
        return proposal
    bound = min(proposal.lower_bound, problem.least_cost)
    return replace(proposal, lower_bound=bound, exhausted=False, complete=False, tree=None)


def _unproved(proposal: Proposal) -> Proposal:
    """What is left of a proposal where the model contradicts itself: sets that may reach the goal, and no proof."""
    note = proposal.note if CONTRADICTS in proposal.note else f"{proposal.note} {CONTRADICTS}".strip()
    return replace(proposal, lower_bound=0.0, exhausted=False, complete=False, note=note, tree=None)
