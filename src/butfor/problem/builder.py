"""Pose the problem of a target: find the neighbourhood that gives exactly the whole graph's answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from butfor.edits.edits import pack
from butfor.errors import ModelError
from butfor.oracle.gcn.oracle import gcn_oracle
from butfor.oracle.general import ModelOracle
from butfor.predict.locality import unmoved
from butfor.problem.problem import Problem
from butfor.result.verify import scores_after

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from butfor.edits.edits import Edits, EditSet
    from butfor.edits.space import EditSpace
    from butfor.graph.graph import Flow, Graph, Neighbourhood
    from butfor.oracle.general import Oracle
    from butfor.predict.predictor import Predictor
    from butfor.problem.goal import Goal

__all__ = ["Poser"]

WHOLE_GRAPH = "The model reads more than a neighbourhood, so the whole graph was searched."


@dataclass(eq=False)
class Poser:
    """Poses problems about one model on one graph.

    The neighbourhood reaches as many hops as the model passes messages, and one more where layers may normalise
    by the degrees of the last senders (`Predictor.reach`). It must reproduce the target's scores on the whole graph,
    and keep them with noise all around (`butfor.predict.locality`); it is widened until it does, at last to the whole
    graph. A model whose messages cannot be counted is searched on the whole graph from the start. All of this is done
    for every target, whatever was seen of others.
    """

    graph: Graph
    predictor: Predictor
    goal: Goal
    space: EditSpace
    seed: int
    _ahead: dict[tuple[int, ...], tuple[Edits, bool]] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def hops(self) -> int | None:
        """How far neighbourhoods reach at first; None for the whole graph."""
        countable = self.predictor.depth > 0 and self.predictor.flow is not None and self.predictor.task != "graph"
        return self.predictor.reach if countable else None

    def pose(self, target: tuple[int, ...]) -> Problem:
        """The problem of one target: a node, the two of a link, nothing for the whole graph.

        Raises:
            ModelError: not even the whole graph gives the same scores twice.
        """
        return self._posed(target, self.hops)

    def wider(self, problem: Problem) -> Problem | None:
        """The same problem in a larger neighbourhood; None where none gives the whole graph's scores."""
        near = problem.edits.neighbourhood
        if near.hops is None:
            return None
        try:
            return self._posed(near.targets, self._next(near))
        except ModelError:
            return None

    def look_ahead(self, targets: Sequence[tuple[int, ...]], most: int) -> None:
        """Prepare targets that will be posed soon: together that takes a fraction of the time.

        Of so many of them that at most ``most`` edges have to be looked at.
        """
        self._ahead = {}
        if not self.hops or self.predictor.task != "node" or self.space.add or self.space.features:
            return
        found = self.graph.neighbourhoods(list(targets), self.hops, self._flow, most)
        edits = [self.space.edits(self.graph, near) for near in found]
        for start, end in self._general.pieces(edits):
            piece = edits[start:end]
            keys = [one.neighbourhood.targets for one in piece]
            closed = self._closed(piece, self.predictor.intact(keys))
            self._ahead |= dict(zip(keys, zip(piece, closed, strict=True), strict=True))

    def _posed(self, target: tuple[int, ...], hops: int | None) -> Problem:
        logits = self.predictor.intact([target])[0]
        while True:
            edits, note, closed = self._edits(target, hops, logits)
            for oracle in self._oracles(hops, closed):
                if self._agrees(oracle, edits, logits):
                    if target and hops is None:
                        note = f"{WHOLE_GRAPH} {note}".strip()
                    return Problem(self.graph, self.predictor, oracle, edits, self.goal, logits, self.seed, note)
            if hops is None:
                scores_after(self.predictor, edits, ())  # if it fails on the intact graph, it says why
                name = type(self.predictor.model).__name__
                what = " ".join(map(str, ("node", *target))) if target else "it"
                raise ModelError(
                    f"{name} gives {what} different scores on the same graph; "
                    "a model that draws random numbers in evaluation mode cannot be explained"
                )
            hops = self._next(edits.neighbourhood)

    def _next(self, near: Neighbourhood) -> int | None:
        """How far to reach where this neighbourhood does not do: twice as far; the whole graph if it has all nodes."""
        assert near.hops is not None
        wider = 2 * near.hops
        return None if near.num_nodes == self.graph.num_nodes or wider > self.graph.num_nodes else wider

    @property
    def _flow(self) -> Flow:
        return self.predictor.flow or "source_to_target"

    def _edits(self, target: tuple[int, ...], hops: int | None, logits: Tensor) -> tuple[Edits, str, bool]:
        """The edits of a target, what is to be said of them, and whether nothing beyond or beside them matters."""
        if hops == self.hops and target in self._ahead:
            edits, closed = self._ahead.pop(target)
            return edits, "", closed
        near, note = self.graph.neighbourhood(target, hops, self._flow), ""
        if not self.space.add and not self.space.features:
            edits = self.space.edits(self.graph, near)
        else:
            # What is near enough to be joined or changed may lie beyond what the model sees.
            wide = None if hops is None else max(hops, self.space.widest)
            around = near if wide == hops else self.graph.neighbourhood(target, wide, self._flow)
            joins, note = self.space.joins(self.graph, around)
            near = self.graph.neighbourhood(target, hops, self._flow, joins) if joins else near
            edits = self.space.edits(self.graph, near, around, joins)
        return edits, note, self._closed([edits], logits[None])[0]

    def _closed(self, asked: Sequence[Edits], logits: Tensor) -> list[bool]:
        """Whether nothing beyond each neighbourhood matters to its target, nor what stands beside it."""
        if self._fast is not None and self._fast.knows_layers:
            return [True] * len(asked)
        return unmoved(self.predictor, asked, list(logits)) if self.predictor.separable else [False] * len(asked)

    def _oracles(self, hops: int | None, closed: bool) -> tuple[Oracle, ...]:
        """What may answer, the quickest first.

        Where nodes or links are searched on the whole graph the model may read all of it, so copies of it side by side
        could disturb each other in ways that no sample shows.
        """
        quick = () if self._fast is None else (self._fast,)
        together = (self._general,) if hops is not None or self.predictor.wants_batch else ()
        return (*((*quick, *together) if closed else ()), *((self._one_at_a_time,) if hops is None else ()))

    @cached_property
    def _general(self) -> ModelOracle:
        return ModelOracle(self.predictor, self.graph)

    @cached_property
    def _fast(self) -> Oracle | None:
        return gcn_oracle(self._general)

    @cached_property
    def _one_at_a_time(self) -> Oracle:
        return ModelOracle(self.predictor, self.graph, separable=False)

    def _agrees(self, oracle: Oracle, edits: Edits, logits: Tensor) -> bool:
        """Whether the oracle says of the intact neighbourhood what the model says of the whole graph.

        Edited copies beside it must not disturb it, nor each other; where the layers are known they cannot.
        """
        sets: list[EditSet] = [np.arange(0), *(() if oracle.knows_layers else edits.samples())]
        truths = [logits]
        try:
            scores = oracle.logits([(edits, pack(sets))])[0]
            if edits.neighbourhood.hops is None:
                truths += [scores_after(self.predictor, edits, chosen) for chosen in sets[1:]]
            elif oracle is self._general:
                truths += [oracle.logits([(edits, pack([chosen]))])[0][0] for chosen in sets[1:]]
        except ModelError:
            # A model made for this very graph, with an embedding of each node say, fails on any other.
            return False
        return all(map(self.predictor.same, scores, truths))
