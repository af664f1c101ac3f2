"""Descent: make many edits at once, towards each class in turn; then undo what is not needed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from butfor.edits.edits import pack
from butfor.errors import InputError
from butfor.methods.base import Method
from butfor.methods.greedy import Greedy, Path, leads
from butfor.methods.shrinking import FEW, Shrinking, most_to_prune, most_to_swap
from butfor.problem.proposal import Proposal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from butfor.problem.problem import Answers, Problem

__all__ = ["Descent"]

Edits = tuple[int, ...]

# How many classes are aimed at, the nearest first. Where there are more, the others are hardly ever reached first.
AIMS = 16

# Rounds of one descent at most. Most end after ten, when no further edit helps.
ROUNDS = 64

# How many edits a greedy step towards one class checks: few, since the gradient of the lead ranks them well.
NARROW = 8

# Evaluations of all descents together, for each edit of the problem; and where they go on (`go_on`), which is only for
# targets without an answer: an edit that is tried by itself in each of some ten rounds costs as many.
EFFORT, LAST_EFFORT = 8, 64

# Greedy steps before descents go on, where there are more than twice as many edits as count as few: with fewer, all
# steps are quick.
STEPS = 32

# A round that gains less than this, relative to 1 + the margin, does not count as progress.
LEAST_GAIN = 1e-5

# At how many nodes all edges are deleted or restored together, those with most edges first.
BLOCKS = 64


@dataclass(frozen=True)
class Descent(Method):
    """A few greedy steps; then many edits at once, towards each class in turn; then undo what is not needed.

    1. As many steps of `Greedy` as ``opening`` says, because most answers are small;
       all of them where edits are few.
    2. If these were not enough, descents, each towards one class. In each round the edits are ranked by the gradient of
       the lead over that class, the best 1, 2, 4, 8, ... are made or undone together, and the best of these is kept.
       Descents begin with nothing deleted, with all edges at the target deleted, all others, and all edges.
    3. `Greedy` is run towards the class that was reached, and its opening steps are continued, both only while they
       cost less than what was found.
    4. If there is still no answer after some more of these steps, descents go on with what a gradient does not show:
       they try every edit by itself, and all edges of a node at once.
    5. The answer is made smaller: edits that are not needed are undone, many at once first, and two edits are replaced
       by one where that is enough.

    Without gradients, edits are ranked by trying each of them. Where there are few edits, it takes all steps of
    `Greedy` first, so its answer is at least as small.

    Attributes:
        width: how many edits a step of `Greedy` checks; None for all.
        opening: steps of `Greedy` before anything else is tried.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> cf = butfor.explain(model, data, 605, butfor.Descent())
        >>> print(cf.status, cf.size, cf.lower_bound)
        optimal 2 2.0
    """

    width: int | None = 64
    opening: int = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width is not None and self.width < 1:
            raise InputError(f"width is {self.width}; at least one edit must be checked in each step")
        if self.opening < 1:
            raise InputError(f"opening is {self.opening}; at least one greedy step is needed")

    def most_evaluations(self, num_edits: int) -> int:
        """How many evaluations a search among this many edits takes at most."""
        greedy = Greedy(self.width).most_evaluations(num_edits)
        if num_edits <= FEW:
            return greedy
        descents = num_edits * (EFFORT + LAST_EFFORT + NARROW + 1)
        return greedy + descents + 2 * most_to_prune(num_edits) + most_to_swap(num_edits)

    def solve(self, problem: Problem) -> Proposal:
        """Search for an answer, then for a smaller one."""
        few = len(problem.edits) <= FEW
        last = problem.meter.evaluations + self.most_evaluations(len(problem.edits))
        path = Path(problem, self.width)
        path.walk(None if few else self.opening)
        shrinking = Shrinking(problem, last)
        if path.found:
            self._follow(path, shrinking)
        elif not path.exhausted:
            search = _Search(problem, last)
            search.run()
            self._take(search, shrinking)
            self._follow(path, shrinking, STEPS if len(problem.edits) > 2 * FEW and shrinking.best is None else None)
            if shrinking.best is None:
                search.go_on()
                self._take(search, shrinking)
                self._follow(path, shrinking)
        if not few:
            shrinking.swap()
        if shrinking.best is None:
            return Proposal((), path.lower_bound, path.exhausted, note=path.note)
        return Proposal(shrinking.candidates, path.lower_bound, margins=shrinking.margins, note=path.note)

    def _take(self, search: _Search, shrinking: Shrinking) -> None:
        """Prune what a descent found, and take greedy steps towards the same class as well."""
        if search.found is not None:
            shrinking.prune(search.found, search.margin)
            if len(search.problem.edits) > FEW:
                self._follow(Path(search.problem, NARROW, search.aim), shrinking)

    def _follow(self, path: Path, shrinking: Shrinking, most: int | None = None) -> None:
        """Take greedy steps until they reach the goal or cost as much as the best answer; prune what they find."""
        if not path.ended:
            # A path that costs more than the best answer is hardly ever pruned to something cheaper.
            path.walk(most, np.inf if shrinking.best is None else path.problem.edits.cost(shrinking.best))
        if path.found:
            shrinking.prune(tuple(path.chosen), path.margin)


class _Search:
    """Descents towards every class, from several starts."""

    def __init__(self, problem: Problem, last: int) -> None:
        self.problem, self.meter, self.last = problem, problem.meter, last
        self.relevant = problem.oracle.relevant(problem.edits)
        self.found: Edits | None = None
        self.margin = np.inf  # after the edits that were found
        self.aim: int | None = None  # the class that the successful descent aimed at
        self.stalled: list[tuple[float, int, Edits]] = []
        self._allot(EFFORT)

    def _allot(self, effort: int) -> None:
        """Allow half of what is left to be spent, at most; the other half is for what comes after."""
        left, seconds = self.meter.left, self.meter.seconds_left
        most = min(effort * len(self.problem.edits), max(self.last - self.meter.evaluations, 0) // 2)
        self.last_evaluation = self.meter.evaluations + (most if left is None else min(most, left // 2))
        self.least_seconds = -1.0 if seconds is None else seconds / 2

    @property
    def affordable(self) -> int:
        """How many evaluations may still be made."""
        seconds = self.meter.seconds_left
        if seconds is not None and seconds <= self.least_seconds:
            return 0
        return max(self.last_evaluation - self.meter.evaluations, 0)

    def run(self) -> None:
        """Descend by the gradient from each start towards each class, until one descent reaches the goal."""
        for start in self._starts():
            if self.affordable < 1:
                return
            begun = self.problem.ask([start])
            if begun.reached[0]:
                self.found, self.margin = start, float(begun.margins[0])
                return
            for number, aim in enumerate(self.aims):
                state, margin = self._descend(start, aim, float(self._margins(begun, aim)[0]))
                if self.found is not None:
                    return
                self.stalled.append((margin, number, state))

    def go_on(self) -> None:
        """Go on where descents ended, the nearest to the goal first, with what a gradient does not show."""
        self._allot(LAST_EFFORT)
        for margin, number, state in sorted(self.stalled):
            self._descend(state, self.aims[number], margin, thorough=True)
            if self.found is not None:
                return

    @cached_property
    def aims(self) -> Sequence[int | None]:
        """The classes to aim at, the nearest first; None stands for the goal itself, where it names a class."""
        if self.problem.goal.wanted is not None:
            return [None]
        scores = self.problem.logits.detach().cpu().numpy().astype(np.float64)
        order = np.argsort(-scores, kind="stable")
        return [int(aim) for aim in order if aim != self.problem.before][:AIMS]

    def _starts(self) -> list[Edits]:
        """Where descents begin: no deletions, those at the target, all others, and all of them, as far as allowed."""
        edits = self.problem.edits
        near = np.zeros(len(edits), dtype=bool)
        near[edits.deleted.edit[np.isin(edits.deleted.ends, edits.neighbourhood.target_rows).any(axis=1)]] = True
        deletes = edits.deletes & self.relevant
        parts = [np.zeros_like(near), near & deletes, deletes & ~near, deletes]
        return list(dict.fromkeys(self._allowed((), np.flatnonzero(part).tolist()) for part in parts))

    def _margins(self, answers: Answers, aim: int | None) -> NDArray[np.float64]:
        """By how much the class that is aimed at still trails, in each answer."""
        return np.nan_to_num(leads(self.problem, answers.logits, aim), nan=np.inf)

    def _descend(self, state: Edits, aim: int | None, margin: float, thorough: bool = False) -> tuple[Edits, float]:
        """Take rounds until none brings the class closer; the edits after the last one, and their margin."""
        for _ in range(ROUNDS):
            if self.affordable < 2:
                break
            moved = self._round(state, aim, margin, self._promise(state, aim))
            if moved is None and thorough and self.found is None:
                moved = self._round(state, aim, margin, self._measured(state, aim, margin), self._blocks(state))
            if moved is None:
                break
            state, margin = moved
        return state, margin

    def _round(
        self,
        state: Edits,
        aim: int | None,
        margin: float,
        promise: NDArray[np.float64] | None,
        more: Sequence[Edits] = (),
    ) -> tuple[Edits, float] | None:
        """Make or undo the 1, 2, 4, ... most promising edits together; the best of these, if it is better."""
        if promise is None or self.affordable < 1:
            return None
        order = np.argsort(-promise, kind="stable")
        order = order[: int((promise > 0).sum())]
        sets = [self._toggled(state, order[:count]) for count in lengths(len(order))]
        sets = list(dict.fromkeys([*sets, *more]))
        sets = [chosen for chosen in sets if chosen != state][: self.affordable]
        if not sets:
            return None
        answers = self.problem.ask(sets)
        if answers.reached.any():
            rows = np.flatnonzero(answers.reached).tolist()
            row = min(rows, key=lambda row: (self.problem.edits.cost(sets[row]), sets[row]))
            self.found, self.margin, self.aim = sets[row], float(answers.margins[row]), aim
            return None
        margins = self._margins(answers, aim)
        best = int(margins.argmin())
        if not margins[best] < margin - LEAST_GAIN * (1 + abs(margin)):
            return None
        return sets[best], float(margins[best])

    # What is likely to help.

    def _promise(self, state: Edits, aim: int | None) -> NDArray[np.float64] | None:
        """How much closer making or undoing each edit brings the class, for its cost, by the gradient."""
        gradient = self.problem.gradient(state, aim)
        if gradient is None:
            return self._measured(state, aim, None)
        self.meter.count(1)
        return self._toggling(state, gradient)

    def _toggling(self, state: Edits, gradient: NDArray[np.float64]) -> NDArray[np.float64]:
        """The gradient as a promise: with its sign turned for edits that are made, and for each unit of cost."""
        promise = np.where(self.relevant, gradient, 0.0)
        promise[list(state)] *= -1
        promise /= self.problem.edits.costs
        return promise

    def _measured(self, state: Edits, aim: int | None, margin: float | None) -> NDArray[np.float64] | None:
        """The same by making or undoing each edit; None where that takes more than half of what may be spent."""
        edits = self.problem.edits
        free = self.problem.free(state)
        free = free[self.relevant[free]]
        count = len(free) + len(state) + (margin is None)
        if count > self.affordable / 2:
            return None
        promise = np.zeros(len(edits))
        if margin is None:
            margin = float(self._margins(self.problem.ask([state]), aim)[0])
        if len(free):
            answers = self.problem.extend(state, free)
            free = free[: len(answers.margins)]
            promise[free] = margin - self._margins(answers, aim)
        if state:
            undone = [tuple(edit for edit in state if edit != one) for one in state]
            promise[list(state)] = margin - self._margins(self.problem.ask(undone), aim)
        return promise / edits.costs

    @cached_property
    def _edges_of_nodes(self) -> list[NDArray[np.bool_]]:
        """For each large node, which edits delete its edges; not those at the target."""
        edits = self.problem.edits
        ends, edit = edits.deleted.ends, edits.deleted.edit
        outer = ~np.isin(ends, edits.neighbourhood.target_rows).any(axis=1) & self.relevant[edit]
        nodes, counts = np.unique(ends[outer], return_counts=True)
        nodes = nodes[counts > 1][np.argsort(-counts[counts > 1], kind="stable")][:BLOCKS]
        blocks = np.zeros((len(nodes), len(edits)), dtype=bool)
        for block, node in zip(blocks, nodes, strict=True):
            block[edit[outer & (ends == node).any(axis=1)]] = True
        return list(blocks)

    def _blocks(self, state: Edits) -> list[Edits]:
        """For each large node, the state with all of its edges deleted, and with none."""
        made = np.zeros(len(self.problem.edits), dtype=bool)
        made[list(state)] = True
        sets: list[Edits] = []
        for block in self._edges_of_nodes:
            sets += [tuple(np.flatnonzero(mask).tolist()) for mask in (made | block, made & ~block)]
        return [chosen for chosen, allowed in zip(sets, self._permitted(sets), strict=True) if allowed]

    # What is allowed.

    def _permitted(self, sets: Sequence[Edits]) -> NDArray[np.bool_]:
        if not self.problem.edits.constrained or not sets:
            return np.ones(len(sets), dtype=bool)
        return self.problem.edits.permits(pack(sets))

    def _toggled(self, state: Edits, toggled: NDArray[np.int64]) -> Edits:
        """The state with some edits made, or undone if they were made, as far as allowed."""
        made = set(state)
        back = made.intersection(toggled.tolist())
        return self._allowed(tuple(sorted(made - back)), [edit for edit in toggled.tolist() if edit not in back])

    def _allowed(self, state: Edits, more: Sequence[int]) -> Edits:
        """The state with these edits too; if that is not allowed, with those that can be added one by one."""
        whole = tuple(sorted((*state, *more)))
        if self._permitted([whole])[0]:
            return whole
        kept = list(state)
        for edit in more:
            if self._permitted([(*kept, edit)])[0]:
                kept.append(edit)
        return tuple(sorted(kept))


def lengths(count: int) -> list[int]:
    """1, 2, 4, 8, ... and the count itself."""
    return sorted({2**power for power in range(count.bit_length())} | {count}) if count else []
