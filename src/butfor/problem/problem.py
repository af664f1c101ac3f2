"""A problem: one target with everything a method needs to search for its counterfactual."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch

from butfor.checks import check_whole, is_number
from butfor.edits.edits import pack
from butfor.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from butfor.edits.edits import Edits, EditSet, EditSets
    from butfor.graph.graph import Graph
    from butfor.oracle.general import Influence, Oracle
    from butfor.predict.predictor import Predictor
    from butfor.problem.goal import Goal

__all__ = ["Answers", "Budget", "Meter", "Problem", "Proposal"]


@dataclass(frozen=True)
class Budget:
    """How much a search may spend on one target.

    Attributes:
        evaluations: edit sets put to the oracle, and the work of bounding others; None for no limit.
        seconds: wall time; None for no limit.
    """

    evaluations: int | None = 3_000
    seconds: float | None = None

    def __post_init__(self) -> None:
        if self.evaluations is not None:
            check_whole(self.evaluations, "evaluations of the budget")
        for name, value in (("evaluations", self.evaluations), ("seconds", self.seconds)):
            if value is not None and not (is_number(value) and value > 0):
                raise InputError(f"a budget of {value!r} {name} allows no search; give a positive number or None")

    def meter(self) -> Meter:
        """A meter that starts now."""
        return Meter(self)


@dataclass
class Meter:
    """What one search has spent of its budget, and on how many edited graphs the model failed."""

    budget: Budget
    evaluations: int = 0
    failures: int = 0
    started: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> int | None:
        """How many evaluations are left; None if there is no limit, 0 when time is up."""
        if self.late:
            return 0
        return None if self.budget.evaluations is None else max(self.budget.evaluations - self.evaluations, 0)

    @property
    def seconds_left(self) -> float | None:
        """How many seconds are left; None if there is no limit."""
        if self.budget.seconds is None:
            return None
        return max(self.budget.seconds - (time.monotonic() - self.started), 0.0)

    @property
    def late(self) -> bool:
        """Whether the time is up."""
        return self.seconds_left == 0

    @property
    def spent(self) -> bool:
        """Whether the search must end."""
        return self.left == 0


@dataclass(frozen=True)
class Proposal:
    """What a method found; nothing is a counterfactual until it is verified.

    Attributes:
        candidates: edit sets believed to reach the goal, the best first.
        lower_bound: proved: no set that costs less reaches the goal.
        exhausted: proved: no set of allowed edits reaches it.
        evaluations: edit sets that were put to the oracle, and the work of bounding others.
        alternatives: other sets, as cheap as the best candidate.
        complete: proved: with the best candidate these are all sets of that cost.
        failures: edit sets after which the model failed or gave no numbers.
        note: what the user should know about this search.
    """

    candidates: tuple[tuple[int, ...], ...] = ()
    lower_bound: float = 0.0
    exhausted: bool = False
    evaluations: int = 0
    alternatives: tuple[tuple[int, ...], ...] = ()
    complete: bool = False
    failures: int = 0
    note: str = ""


@dataclass(frozen=True, eq=False)
class Answers:
    """What the oracle said about some edit sets: scores, margins and whether they reach the goal."""

    logits: Tensor
    margins: NDArray[np.float64]
    reached: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Problem:
    """Which of these edits make the model predict something else for this target?

    Attributes:
        graph: the whole graph.
        predictor: the user's model.
        oracle: answers by true deletion on the neighbourhood.
        edits: the allowed edits; ``edits.neighbourhood`` is where they are.
        goal: what counts as something else.
        logits: the target's scores on the intact graph.
        seed: for methods that draw random numbers.
        note: what the user should know about how the problem was posed.
        refuted: edit sets that seemed to reach the goal and did not on the whole graph.
    """

    graph: Graph
    predictor: Predictor
    oracle: Oracle
    edits: Edits
    goal: Goal
    logits: Tensor
    seed: int = 0
    note: str = ""
    refuted: frozenset[frozenset[int]] = frozenset()

    @property
    def target(self) -> tuple[int, ...]:
        """What is explained: a node, the two nodes of a link, nothing for the whole graph."""
        return self.edits.neighbourhood.targets

    @cached_property
    def before(self) -> int:
        """The class predicted on the intact graph."""
        return int(self.logits.argmax())

    @cached_property
    def margin(self) -> float:
        """How far the intact graph is from the goal."""
        return float(self.goal.judge(self.logits[None], self.before)[0][0])

    def reaches(self, chosen: EditSet, scores: Tensor) -> bool:
        """Whether these scores, after these edits, reach the goal by an allowed set."""
        allowed = not self.edits.constrained or bool(self.edits.permits(pack([chosen]))[0])
        return allowed and bool(self.goal.judge(scores[None], self.before)[1][0])

    @cached_property
    def reached(self) -> bool:
        """Whether the intact graph reaches the goal, so that nothing has to change."""
        return bool(self.goal.judge(self.logits[None], self.before)[1][0])

    @property
    def least_cost(self) -> float:
        """A bound that costs nothing: the empty set does not do, so one edit at least is needed."""
        return float(self.edits.costs.min()) if len(self.edits) else 0.0

    def ask(self, sets: EditSets, meter: Meter | None = None) -> Answers:
        """Put edit sets to the oracle, and count them."""
        packed = pack(sets)
        return self._answers(packed, self.oracle.logits([(self.edits, packed)])[0], meter)

    def extend(self, chosen: Sequence[int], candidates: NDArray[np.int64], meter: Meter | None = None) -> Answers:
        """Put ``chosen`` and one more of the candidates to the oracle, each in turn.

        Stops when the meter's time is up: there are then fewer answers than candidates.
        """
        prefix = np.array(chosen, dtype=np.int64)[None]
        pieces: list[Tensor] = []
        pace = self.oracle.pace(self.edits)
        for start in range(0, len(candidates), pace):
            if pieces and meter is not None and meter.late:
                break
            piece = candidates[start : start + pace]
            pieces.append(self.oracle.extensions(self.edits, prefix, piece, np.array([0, len(piece)])))
        logits = torch.cat(pieces) if pieces else self.logits[None][:0]
        sets = np.concatenate([np.repeat(prefix, len(logits), axis=0), candidates[: len(logits), None]], axis=1)
        return self._answers(sets, logits, meter)

    def _answers(self, sets: NDArray[np.int64], logits: Tensor, meter: Meter | None) -> Answers:
        margins, reached = self.goal.judge(logits, self.before)
        if meter is not None:
            meter.evaluations += len(sets)
            meter.failures += int(np.isnan(margins).sum())
        if self.edits.constrained:
            reached &= self.edits.permits(sets)
        if self.refuted:
            again = [frozenset(row[row >= 0].tolist()) in self.refuted for row in sets]
            reached &= ~np.array(again, dtype=bool)
        return Answers(logits, margins, reached)

    def free(self, chosen: Sequence[int]) -> NDArray[np.int64]:
        """The edits that may follow the chosen ones."""
        rest = np.delete(np.arange(len(self.edits)), np.array(chosen, dtype=np.int64))
        if not self.edits.constrained or not len(rest):
            return rest
        prefix = np.broadcast_to(np.array(chosen, dtype=np.int64), (len(rest), len(chosen)))
        return rest[self.edits.permits(np.concatenate([prefix, rest[:, None]], axis=1))]

    def influence(self, removed: Sequence[int], free: NDArray[np.int64], more: int) -> Influence | None:
        """How far at most ``more`` of the ``free`` edits lower the margin after ``removed``; None where unknown."""
        pairs = self.goal.pairs(self.predictor.num_classes, self.before)
        return self.oracle.influence(self.edits, pairs, removed, free, more)

    def gradient(self, removed: Sequence[int] = ()) -> NDArray[np.float64] | None:
        """The margin's gradient with respect to each edit's weight, with ``removed`` at weight 0.

        None where the model has no faithful relaxation, or no derivative there. A large entry promises
        that the edit brings the goal closer.
        """
        relaxation = self.oracle.relax([self.edits])
        if relaxation is None:
            return None
        weights = torch.ones(len(self.edits), dtype=self.logits.dtype, device=self.logits.device)
        weights[list(removed)] = 0.0
        weights.requires_grad_()
        margin = self.goal.margin(relaxation.logits(weights), self.before).sum()
        (gradient,) = torch.autograd.grad(margin, weights)
        # GCNConv without self-loops has no derivative at a node that lost all its edges.
        values: NDArray[np.float64] = gradient.cpu().double().numpy()
        return values if np.isfinite(values).all() else None

    def generator(self) -> torch.Generator:
        """Random numbers that depend on the seed and the target alone, not on the order of the run."""
        mixed = np.random.SeedSequence([self.seed, *self.target]).generate_state(1, np.uint64)[0]
        return torch.Generator().manual_seed(int(mixed >> 1))

    def without(self, refuted: Sequence[Sequence[int]]) -> Problem:
        """The same problem with sets ruled out that did not hold on the whole graph."""
        return replace(self, refuted=self.refuted | {frozenset(chosen) for chosen in refuted})
