"""Pose the problem of a target: find the neighbourhood that gives exactly the whole graph's answer."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch

from butfor.copies import Copies
from butfor.edits import pack
from butfor.errors import ModelError
from butfor.gcn.oracle import gcn_oracle
from butfor.inputs import noisy
from butfor.oracle import ModelOracle
from butfor.predictor import FAILURES
from butfor.problem import Problem
from butfor.untouched import untouched
from butfor.verify import scores_after

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from butfor.edits import Edits
    from butfor.goal import Goal
    from butfor.graph import Flow, Graph, Neighbourhood
    from butfor.oracle import Oracle
    from butfor.predictor import Predictor
    from butfor.space import EditSpace

__all__ = ["Poser"]

# How far the neighbourhood's scores may be from the whole graph's before it counts as too small.
AGREE = 1e-4

# Targets whose neighbourhood is compared with the whole graph also after deletions.
PROBED = 2
# Targets that show nothing, after which no more is expected.
IDLE = 64

WHOLE_GRAPH = "The model reads more than a neighbourhood, so the whole graph was searched."


@dataclass(eq=False)
class Poser:
    """Poses problems about one model on one graph, and remembers how far the model sees.

    The neighbourhood reaches as many hops as the model passes messages, and one more where layers may normalise
    by the degrees of the last senders (`Predictor.reach`). It must reproduce the target's scores on the
    whole graph, for the first few targets also after random deletions; it is widened until it does, at last to the
    whole graph. A model whose messages cannot be counted is searched on the whole graph from the start.
    """

    graph: Graph
    predictor: Predictor
    goal: Goal
    space: EditSpace
    seed: int
    _probed: int = field(default=0, init=False, repr=False)
    _idle: int = field(default=0, init=False, repr=False)
    _apart: bool = field(default=False, init=False, repr=False)
    _ahead: dict[tuple[int, ...], Neighbourhood] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        countable = self.predictor.depth > 0 and self.predictor.flow is not None and self.predictor.task != "graph"
        self.hops: int | None = self.predictor.reach if countable else None

    def pose(self, target: tuple[int, ...]) -> Problem:
        """The problem of one target: a node, the two of a link, nothing for the whole graph.

        Raises:
            ModelError: not even the whole graph gives the same scores twice.
        """
        logits = self.predictor.intact([target])[0]
        while True:
            edits, note = self._edits(target)
            for oracle in self._oracles if self._sees_no_further(edits, logits) else ():
                if self._agrees(oracle, edits, logits):
                    self._count(edits)
                    if target and self.hops is None:
                        note = f"{WHOLE_GRAPH} {note}".strip()
                    return Problem(self.graph, self.predictor, oracle, edits, self.goal, logits, self.seed, note)
                # What was seen once of whole graphs side by side holds for all targets.
                self._apart |= oracle is self._general and self.hops is None
            self._widen(edits)

    def _count(self, edits: Edits) -> None:
        """A target without edits, or whose part of the graph ends before the rim, shows nothing of what lies beyond."""
        near = edits.neighbourhood
        telling = len(edits) > 0 and (near.hops is None or bool((near.distance == near.hops).any()))
        self._probed += telling
        self._idle += not telling
        if self._idle == IDLE:
            self._probed = max(self._probed, PROBED)

    def _widen(self, edits: Edits) -> None:
        if self.hops is None:
            name = type(self.predictor.model).__name__
            what = " ".join(map(str, ("node", *edits.neighbourhood.targets))) if edits.neighbourhood.targets else "it"
            raise ModelError(
                f"{name} gives {what} different scores on the same graph; "
                "a model that draws random numbers in evaluation mode cannot be explained"
            )
        wider = 2 * self.hops
        covered = edits.neighbourhood.num_nodes == self.graph.num_nodes or wider > self.graph.num_nodes
        self.hops = None if covered else wider

    def look_ahead(self, targets: Sequence[tuple[int, ...]], most: int) -> None:
        """Find the neighbourhoods of targets that will be posed soon: together that takes a fraction of the time.

        Of so many of them that at most ``most`` edges have to be looked at.
        """
        groups = list(targets) if self.hops and self.predictor.task == "node" and not self.space.add else []
        found = self.graph.neighbourhoods(groups, self.hops, self._flow, most) if groups else []
        self._ahead = {near.targets: near for near in found}

    @property
    def _flow(self) -> Flow:
        return self.predictor.flow or "source_to_target"

    def _edits(self, target: tuple[int, ...]) -> tuple[Edits, str]:
        near = self._ahead.pop(target, None)
        if near is None or near.hops != self.hops:
            near = self.graph.neighbourhood(target, self.hops, self._flow)
        if not self.space.add and not self.space.features:
            return self.space.edits(self.graph, near), ""
        # What is near enough to be joined or changed may lie beyond what the model sees.
        wide = None if self.hops is None else max(self.hops, self.space.widest)
        around = near if wide == self.hops else self.graph.neighbourhood(target, wide, self._flow)
        joins, note = self.space.joins(self.graph, around)
        near = self.graph.neighbourhood(target, self.hops, self._flow, joins) if joins else near
        return self.space.edits(self.graph, near, around, joins), note

    @property
    def _oracles(self) -> tuple[Oracle, ...]:
        """What may answer, the quickest first."""
        quick = () if self._fast is None else (self._fast,)
        together = (self._general,) if self.predictor.separable and not self._apart else ()
        alone = (self._one_at_a_time,) if self.hops is None else ()
        return (*quick, *together, *alone)

    @cached_property
    def _general(self) -> ModelOracle:
        return ModelOracle(self.predictor, self.graph)

    @cached_property
    def _fast(self) -> Oracle | None:
        return gcn_oracle(self._general)

    @cached_property
    def _one_at_a_time(self) -> Oracle:
        return ModelOracle(self.predictor, self.graph, separable=False)

    def _sees_no_further(self, edits: Edits, logits: Tensor) -> bool:
        """Whether the target's scores stay the same when all that lies outside the neighbourhood is replaced by noise.

        A maximum over all nodes may happen to lie inside; only noise shows that it is looked for outside.
        """
        # This looks at the whole graph, so only the first targets may do it.
        if self._probed >= PROBED or edits.neighbourhood.num_nodes == self.graph.num_nodes:
            return True
        outside = np.ones(self.graph.num_nodes, dtype=bool)
        outside[edits.neighbourhood.nodes] = False
        far = outside[self.graph.edge_index].all(axis=0)
        copies = Copies.whole(self.graph, [edits.neighbourhood.targets])
        kept = np.flatnonzero(~far)
        copies = replace(copies, edge_index=copies.edge_index[:, kept], columns=copies.columns[kept])
        with untouched(self.predictor.model), torch.no_grad():
            try:
                scores = self.predictor.score(noisy(self.predictor.inputs(copies), outside, self.graph))
            except FAILURES:
                return True
        return _same(scores[0], logits)

    def _agrees(self, oracle: Oracle, edits: Edits, logits: Tensor) -> bool:
        # The place must be large enough, and a copy edited beyond recognition beside it must not disturb it.
        everything = edits.tidy(np.ones((1, len(edits)), dtype=bool))[0]
        sets = [np.arange(0), np.flatnonzero(everything)]
        truths = {0: logits}
        if self._probed < PROBED:
            order = np.random.default_rng(self._probed).permutation(sets[1])
            sets += [np.sort(order[: len(order) // 2 + 1]), np.sort(order[-1 - len(order) // 8 :])]
            rows = (1, 2, 3) if self._probed == 0 else (2,)
            truths |= {row: scores_after(self.predictor, edits, sets[row]) for row in rows}
        try:
            scores = oracle.logits([(edits, pack(sets))])[0]
        except FAILURES:
            # A model made for this very graph, with an embedding of each node say, fails on any other.
            return False
        return all(_same(scores[row], truth) or bool(truth.isnan().all()) for row, truth in truths.items())


def _same(scores: Tensor, truth: Tensor) -> bool:
    """`torch.allclose` at a tenth of its price for so few numbers."""
    mine, other = scores.cpu().numpy(), truth.cpu().numpy()
    with np.errstate(invalid="ignore"):
        near = np.abs(mine - other) <= AGREE * (1 + np.abs(other))
    return bool((near | (mine == other) | (np.isnan(mine) & np.isnan(other))).all())
