"""Many targets by one method, in batches: build the problem, search, verify on the whole graph, settle, write down."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from butfor.methods import BatchMethod
from butfor.problem.builder import TooLarge
from butfor.problem.proposal import Proposal
from butfor.result.assemble import assemble
from butfor.result.settle import Settler, to_verify
from butfor.result.unsearched import too_large
from butfor.result.verify import verify_many

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from butfor.methods import Method
    from butfor.problem.budget import Budget
    from butfor.problem.builder import ProblemBuilder
    from butfor.problem.listener import Listener
    from butfor.problem.problem import Problem
    from butfor.result.assemble import Provenance
    from butfor.result.counterfactual import Counterfactual

__all__ = ["Batching", "Pipeline"]


# How much longer than verifying it takes to search before the next results are verified: targets share its runs.
SEARCHING = 4


@dataclass(frozen=True)
class Batching:
    """How targets are worked on together; results do not depend on it.

    Attributes:
        columns: edge columns of the neighbourhoods that are searched together: bounds the memory of a batch.
        targets: the largest number of targets that are prepared, searched and verified together.
        seconds: after this time what was found is verified and handed over; later, where verifying took so long before
            that it would be most of the work.
    """

    columns: int = 400_000
    targets: int = 256
    seconds: float = 0.5


@dataclass(frozen=True, eq=False)
class _Solved:
    """A proposal that waits for its verification."""

    position: int
    problem: Problem
    proposal: Proposal
    seconds: float


@dataclass(frozen=True, eq=False)
class Pipeline:
    """One method on many targets of a session.

    Attributes:
        builder: builds the problems.
        method: searches.
        budget: what may be spent on each target.
        seed: for methods that draw random numbers.
        provenance: what all results have in common.
        batching: how targets are worked on together.
        listener: is told how each search gets on.
    """

    builder: ProblemBuilder
    method: Method
    budget: Budget
    seed: int
    provenance: Provenance
    batching: Batching = Batching()
    listener: Listener | None = None

    @cached_property
    def settler(self) -> Settler:
        """Decides what holds of a proposal, and searches again where the whole graph disagrees."""
        return Settler(self._search, self.builder.widen)

    def stream(self, targets: Sequence[tuple[int, ...]]) -> Iterator[tuple[int, Counterfactual]]:
        """Results as they are found, each with the position of its target."""
        last = time.monotonic()
        patience = self.batching.seconds
        solved: list[_Solved] = []
        large: list[tuple[int, TooLarge]] = []
        try:
            for positions, problems in self._batches(targets, large):
                yield from self._not_searched(large)
                for number, problem, proposal in self._solve(problems):
                    now = time.monotonic()
                    solved.append(_Solved(positions[number], problem, proposal, now - last))
                    last = now
                    waited = sum(one.seconds for one in solved)
                    if len(solved) == self.batching.targets or waited > patience:
                        yield from self._results(solved)
                        last = time.monotonic()
                        patience = max(self.batching.seconds, SEARCHING * (last - now))
            yield from self._results(solved)
            yield from self._not_searched(large)
        except (Exception, KeyboardInterrupt):
            # What had been found is not lost with what comes after it.
            yield from self._results(solved)
            raise

    def _not_searched(self, large: list[tuple[int, TooLarge]]) -> Iterator[tuple[int, Counterfactual]]:
        """The results of targets that were too large; they are taken off the list."""
        while large:
            position, problem = large.pop()
            builder = self.builder
            yield position, too_large(problem, builder.predictor, builder.goal, self.provenance, self.seed)

    def _batches(
        self, targets: Sequence[tuple[int, ...]], large: list[tuple[int, TooLarge]]
    ) -> Iterator[tuple[list[int], list[Problem]]]:
        """Problems to solve together: of one oracle, and few enough that they fit in memory.

        Those that are too large are put on a list.
        """
        most = len(targets) if isinstance(self.method, BatchMethod) else self.batching.targets
        positions: list[int] = []
        problems: list[Problem] = []
        columns = 0
        for position, target in enumerate(targets):
            if position % self.batching.targets == 0:
                soon = targets[position : position + self.batching.targets]
                prefetched = self.builder.prefetch(soon, self.batching.columns)
            try:
                problem = self.builder.build(target, self.seed, prefetched)
            except TooLarge as reason:
                large.append((position, reason))
                continue
            except Exception:
                # The targets before this one do not suffer for it.
                if problems:
                    yield positions, problems
                raise
            if problems and problem.oracle is not problems[0].oracle:
                yield positions, problems
                positions, problems, columns = [], [], 0
            positions.append(position)
            problems.append(problem)
            columns += problem.edits.neighbourhood.num_columns
            if columns >= self.batching.columns or len(problems) == most:
                yield positions, problems
                positions, problems, columns = [], [], 0
        if problems:
            yield positions, problems

    def _solve(self, problems: list[Problem]) -> Iterator[tuple[int, Problem, Proposal]]:
        """Each problem with its number and proposal, as they are solved."""
        todo: list[int] = []
        for number, problem in enumerate(problems):
            if problem.reached or not len(problem.edits):
                # Where nothing may be edited or has to be, there is nothing to search.
                yield number, problem, Proposal(exhausted=not problem.reached)
            else:
                todo.append(number)
        if isinstance(self.method, BatchMethod) and todo:
            metered = [problems[number].metered(self.budget, self.listener) for number in todo]
            for position, proposal in self.method.solve_batch(metered):
                yield todo[position], metered[position], proposal
        elif todo:
            for number in todo:
                yield number, *self._search(problems[number])

    def _search(self, problem: Problem) -> tuple[Problem, Proposal]:
        metered = problem.metered(self.budget, self.listener)
        return metered, self.method.solve(metered)

    def _results(self, solved: list[_Solved]) -> Iterator[tuple[int, Counterfactual]]:
        """Results of what was found, each with its position and the seconds it took; they are taken off the list."""
        start = time.monotonic()
        asked = [(one.problem, chosen) for one in solved for chosen in to_verify(one.problem, one.proposal)]
        verified = iter(verify_many(asked))
        shared = (time.monotonic() - start) / max(len(solved), 1)
        for one in list(solved):
            start = time.monotonic()
            seen = [next(verified) for _ in to_verify(one.problem, one.proposal)]
            result = assemble(self.settler.settle(one.problem, one.proposal, seen), self.provenance)
            solved.remove(one)
            yield one.position, replace(result, seconds=one.seconds + shared + time.monotonic() - start)
