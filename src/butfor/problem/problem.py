"""A problem: one target with everything a method needs to search for its counterfactual."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch

from butfor.edits.edits import pack
from butfor.problem.budget import UNLIMITED, Budget, Meter
from butfor.problem.listener import Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from butfor.edits.edits import Edits, EditSet, EditSets
    from butfor.graph.graph import Graph
    from butfor.oracle.base import Influence, Oracle, Sieve
    from butfor.oracle.relaxation import Relaxation
    from butfor.predict.predictor import Predictor
    from butfor.problem.goal import Goal
    from butfor.problem.listener import Listener

__all__ = ["Answers", "Problem"]

# So many sizes of edit sets are tried on the whole graph before something is claimed of all sets of these sizes.
MOST_SIZES = 8


@dataclass(frozen=True, eq=False)
class Answers:
    """What the oracle said about some edit sets.

    Attributes:
        logits: one row for each set.
        margins: how far each is from the goal; negative where it is reached.
        reached: which of them count: they reach the goal, are allowed, and were not refuted before.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> problem = butfor.prepare(model, data).problem(597)
        >>> answers = problem.ask([[edit] for edit in range(len(problem.edits))])
        >>> answers.logits.shape
        torch.Size([14, 2])
        >>> [problem.edits.records([edit]) for edit in answers.reached.nonzero()[0]]
        [(Deletion(source=596, target=597, relation=None),)]
    """

    logits: Tensor
    margins: NDArray[np.float64]
    reached: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Problem:
    """Which of these edits make the model predict something else for this target?

    Every question to the oracle is counted on the problem's own meter, and what counts as an answer is decided here:
    a method can forget neither.

    Attributes:
        predictor: the user's model.
        oracle: answers by making the edits in the neighbourhood.
        edits: the allowed edits; ``edits.neighbourhood`` is where they are.
        goal: what counts as something else.
        logits: the target's logits on the intact graph.
        is_local: whether the model's code or its program shows that nothing beyond the neighbourhood matters to the
            target.
        seed: for methods that draw random numbers.
        note: what the user should know about how the problem was built.
        refuted: edit sets that seemed to reach the goal and did not on the whole graph.
        meter: what has been spent on it, and what is left.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> problem = butfor.prepare(model, data).problem(605)
        >>> len(problem.edits), problem.before, round(problem.margin, 2)
        (11, 1, 2.6)
        >>> answers = problem.ask([[0], [1, 2]])
        >>> answers.reached, problem.meter.evaluations
        (array([False, False]), 2)
    """

    predictor: Predictor
    oracle: Oracle
    edits: Edits
    goal: Goal
    logits: Tensor
    is_local: bool = False
    seed: int = 0
    note: str = ""
    refuted: frozenset[frozenset[int]] = frozenset()
    meter: Meter = field(default_factory=UNLIMITED.meter)

    @property
    def graph(self) -> Graph:
        """The whole graph."""
        return self.predictor.graph

    @property
    def can_prove(self) -> bool:
        """Whether what holds in the neighbourhood is sure to hold on the whole graph."""
        return self.edits.neighbourhood.hops is None or self.is_local

    @property
    def does_the_same_everywhere(self) -> bool:
        """Whether it follows from the model's code that it does the same on every graph, whatever its size."""
        return self.predictor.hears_only_messages or self.oracle.knows_layers

    def telling_sets(self, cost: float) -> list[NDArray[np.int64]]:
        """Sets on which the whole graph must do as its part, before it is claimed that none below a cost does it.

        They would reveal a neighbourhood that is too small, or a size that matters. None, where the code shows that
        sizes play no part; and sets of each size only of the whole graph, since what is local at any size
        (`Oracle.proves_locality`) was recorded without some edges, too. Of each relation, which may have few edges, in
        any case.
        """
        if self.does_the_same_everywhere:
            return []
        each = () if self.is_local else self.edits.sets_of_each_size(cost, MOST_SIZES)
        of_relations = self.edits.sets_of_each_relation(cost, MOST_SIZES)
        return [*self.edits.sample_sets(), *each, *of_relations]

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

    @cached_property
    def reached(self) -> bool:
        """Whether the intact graph reaches the goal, so that nothing has to change."""
        return bool(self.goal.judge(self.logits[None], self.before)[1][0])

    @property
    def least_cost(self) -> float:
        """A bound that costs nothing: the empty set does not reach the goal, so at least one edit is needed."""
        return float(self.edits.costs.min()) if len(self.edits) else 0.0

    # Questions to the oracle.

    def ask(self, sets: EditSets, meter: Meter | None = None) -> Answers:
        """What the model says after each of these edit sets."""
        if meter is not None:
            warnings.warn("ask() needs no meter any more: the problem has one", DeprecationWarning, stacklevel=2)
        packed = pack(sets)
        return self._answers(self.oracle.logits([(self.edits, packed)])[0], lambda rows: packed[rows])

    def extend(self, chosen: Sequence[int], candidates: NDArray[np.int64]) -> Answers:
        """What the model says after ``chosen`` and one more edit, for each of the candidates.

        Stops when time is up: there are then fewer answers than candidates.
        """
        prefix = np.array(chosen, dtype=np.int64)[None]
        pieces: list[Tensor] = []
        batch_size = self.oracle.batch_size(self.edits)
        for start in range(0, len(candidates), batch_size):
            if pieces and self.meter.late:
                break
            piece = candidates[start : start + batch_size]
            pieces.append(self.oracle.extend(self.edits, prefix, piece, np.array([0, len(piece)])))
        logits = torch.cat(pieces) if pieces else self.logits[None][:0]
        return self._answers(logits, lambda rows: _extended(prefix, candidates, rows * 0, rows))

    def extend_many(
        self,
        prefixes: NDArray[np.int64],
        candidates: NDArray[np.int64],
        pointers: NDArray[np.int64],
        threads: int = 1,
    ) -> Answers:
        """What the model says after prefix ``i`` and candidate ``j``, for j from pointers[i] to pointers[i + 1]."""
        logits = self.oracle.extend(self.edits, prefixes, candidates, pointers, threads)

        def sets(rows: NDArray[np.int64]) -> NDArray[np.int64]:
            owners = np.searchsorted(pointers, rows, side="right") - 1
            return _extended(prefixes, candidates, owners, rows)

        return self._answers(logits, sets)

    def _answers(self, logits: Tensor, sets: Callable[[NDArray[np.int64]], NDArray[np.int64]]) -> Answers:
        margins, reached = self.goal.judge(logits, self.before)
        self.meter.count(len(margins), int(np.isnan(margins).sum()))
        rows = np.flatnonzero(reached)
        if len(rows) and (self.edits.constrained or self.refuted):
            reached[rows] = self.admits(sets(rows))
        if self.meter.watch is not None and reached.any():
            self._tell(sets(np.flatnonzero(reached)))
        return Answers(logits, margins, reached)

    def _tell(self, sets: NDArray[np.int64]) -> None:
        """Tell whoever watches of the cheapest of these packed sets, which reach the goal."""
        assert self.meter.watch is not None
        costs = np.append(self.edits.costs, 0.0)[sets].sum(axis=1)
        best = sets[int(costs.argmin())]
        self.meter.watch.found(float(costs.min()), lambda: self.edits.records(best[best >= 0]))

    def proved(self, lower_bound: float) -> None:
        """Tell whoever watches that no set of edits that reaches the goal costs less."""
        if self.meter.watch is not None:
            self.meter.watch.proved(lower_bound)

    # What counts as an answer.

    def admits(self, sets: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which packed edit sets may be answers at all: they are allowed, and the whole graph has not refuted them."""
        admitted = self.edits.permits(sets)
        if self.refuted:
            again = [frozenset(row[row >= 0].tolist()) in self.refuted for row in sets]
            admitted &= ~np.array(again, dtype=bool)
        return admitted

    def reaches(self, chosen: EditSet, logits: Tensor) -> bool:
        """Whether these logits, after these edits, reach the goal by an allowed set."""
        allowed = not self.edits.constrained or bool(self.edits.permits(pack([chosen]))[0])
        return allowed and bool(self.goal.judge(logits[None], self.before)[1][0])

    def free(self, chosen: Sequence[int]) -> NDArray[np.int64]:
        """The edits that may follow the chosen ones."""
        rest = np.delete(np.arange(len(self.edits)), np.array(chosen, dtype=np.int64))
        if not self.edits.constrained or not len(rest):
            return rest
        prefix = np.broadcast_to(np.array(chosen, dtype=np.int64), (len(rest), len(chosen)))
        return rest[self.edits.permits(np.concatenate([prefix, rest[:, None]], axis=1))]

    # Gradients and bounds.

    def influence(self, chosen: Sequence[int], free: NDArray[np.int64], more: int) -> Influence | None:
        """How far at most ``more`` of the ``free`` edits lower the margin after ``chosen``; None where unknown."""
        pairs = self.goal.pairs(self.predictor.num_classes, self.before)
        return self.oracle.influence(self.edits, pairs, chosen, free, more)

    def margin_bound(self, chosen: Sequence[int], free: NDArray[np.int64], more: int, enough: float) -> float | None:
        """What the margin is at least after ``chosen`` and at most ``more`` of the ``free`` edits; None where unknown.

        Whoever asks wants to know whether it exceeds ``enough``.
        """
        pairs = self.goal.pairs(self.predictor.num_classes, self.before)
        return self.oracle.margin_bound(self.edits, pairs, chosen, free, more, self.goal.wanted is None, enough)

    def sieve(self, order: NDArray[np.int64], size: int, limit: float, needed: float) -> Sieve | None:
        """All sets of at most ``size`` edits in this order that cost no more than ``limit``, but for those whose margin
        is proved to exceed ``needed``; None where nothing is proved.
        """
        pairs = self.goal.pairs(self.predictor.num_classes, self.before)
        return self.oracle.sieve(self.edits, pairs, self.goal.wanted is None, order, size, limit, needed)

    @cached_property
    def relaxation(self) -> Relaxation | None:
        """The model's logits as a smooth function of one weight per edit; None where it has no faithful one."""
        return self.oracle.relax([self.edits])

    def gradient(self, chosen: Sequence[int] = (), towards: int | None = None) -> NDArray[np.float64] | None:
        """The margin's gradient with respect to each edit's weight, with the chosen edits made (at weight 0).

        With ``towards``, the gradient of the lead that the present class has over that one. None where the model has no
        faithful relaxation, or no derivative there. A large entry promises that the edit brings the goal closer.
        """
        if self.relaxation is None:
            return None
        # Without autograd, which takes several times as long as the relaxation itself; and rounded as the model rounds,
        # so that edits of the same effect stay equal.
        single = self.logits.detach().cpu().numpy().dtype
        weights = np.ones(len(self.edits), dtype=single)
        weights[list(chosen)] = 0.0
        scores = self.relaxation.scores(weights, weights)[0]
        if towards is None:
            slope = self.goal.slope(scores.astype(single), self.before)
        else:
            slope = np.zeros(len(scores))
            slope[[self.before, towards]] = 1.0, -1.0
        of_weights, of_degrees = self.relaxation.slopes(weights, weights, slope[None], by_degrees=True)
        values = (of_weights + of_degrees).astype(single).astype(np.float64)
        # GCNConv without self-loops has no derivative at a node that lost all its edges.
        return values if np.isfinite(values).all() else None

    def generator(self) -> torch.Generator:
        """Random numbers that depend on the seed and the target alone, not on the order of the run."""
        mixed = np.random.SeedSequence([self.seed, *self.target]).generate_state(1, np.uint64)[0]
        return torch.Generator().manual_seed(int(mixed) >> 1)

    # The same problem, otherwise.

    def metered(self, budget: Budget, listener: Listener | None = None) -> Problem:
        """The same problem with a budget that is spent from now on; the listener is told how the search gets on."""
        return replace(self, meter=budget.meter(None if listener is None else Watch(listener)))

    def without(self, refuted: Sequence[Sequence[int]]) -> Problem:
        """The same problem with edit sets ruled out that did not hold on the whole graph."""
        return replace(self, refuted=self.refuted | {frozenset(chosen) for chosen in refuted})


def _extended(
    prefixes: NDArray[np.int64],
    candidates: NDArray[np.int64],
    owners: NDArray[np.int64],
    rows: NDArray[np.int64],
) -> NDArray[np.int64]:
    """The prefix of each owner with the candidate of each row."""
    return np.concatenate([prefixes[owners], candidates[rows, None]], axis=1)
