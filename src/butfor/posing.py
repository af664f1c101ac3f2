"""Pose the problem of a target: find the neighbourhood that gives exactly the whole graph's answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from butfor.edits import pack
from butfor.errors import ModelError
from butfor.gcn.oracle import gcn_oracle
from butfor.oracle import ModelOracle
from butfor.problem import Problem
from butfor.verify import scores_after

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from butfor.edits import Edits, EditSpace
    from butfor.goal import Goal
    from butfor.graph import Flow, Graph, Neighbourhood
    from butfor.oracle import Oracle
    from butfor.predictor import Predictor

__all__ = ["Poser"]

# How far the neighbourhood's scores may be from the whole graph's before it counts as too small.
AGREE = 1e-4

# Targets whose neighbourhood is compared with the whole graph also after deletions.
PROBED = 2

WHOLE_GRAPH = "The model reads more than a neighbourhood, so the whole graph was searched."


@dataclass(eq=False)
class Poser:
    """Poses problems about one model on one graph, and remembers how far the model sees.

    The neighbourhood reaches as many hops as the model passes messages, and one more for the degrees by
    which some layers normalise. It must reproduce the target's scores on the whole graph, for the first
    few targets also after random deletions; it is widened until it does, at last to the whole graph.
    A model whose messages cannot be counted is searched on the whole graph from the start.
    """

    graph: Graph
    predictor: Predictor
    goal: Goal
    space: EditSpace
    seed: int
    _probed: int = field(default=0, init=False, repr=False)
    _ahead: dict[int, Neighbourhood] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        countable = self.predictor.depth > 0 and self.predictor.flow is not None
        self.hops: int | None = self.predictor.depth + 1 if countable else None

    def pose(self, node: int) -> Problem:
        """The problem of one node.

        Raises:
            ModelError: not even the whole graph gives the same scores twice.
        """
        while True:
            edits = self._edits(node)
            for oracle in self._oracles:
                if self._agrees(oracle, edits):
                    note = WHOLE_GRAPH if self.hops is None else ""
                    logits = self.predictor.logits[node]
                    return Problem(self.graph, self.predictor, oracle, edits, self.goal, logits, self.seed, note)
            self._widen(edits)

    def _widen(self, edits: Edits) -> None:
        if self.hops is None:
            name, node = type(self.predictor.model).__name__, edits.neighbourhood.targets[0]
            raise ModelError(
                f"{name} gives node {node} different scores on the same graph; "
                "a model that draws random numbers in evaluation mode cannot be explained"
            )
        wider = 2 * self.hops
        covered = edits.neighbourhood.num_nodes == self.graph.num_nodes or wider > self.graph.num_nodes
        self.hops = None if covered else wider

    def look_ahead(self, nodes: Sequence[int], most: int) -> None:
        """Find the neighbourhoods of nodes that will be posed soon: together that takes a fraction of the time.

        Of so many of them that at most ``most`` edges have to be looked at.
        """
        groups = [(node,) for node in nodes] if self.hops else []
        found = self.graph.neighbourhoods(groups, self.hops, self._flow, most) if groups else []
        self._ahead = {near.targets[0]: near for near in found}

    @property
    def _flow(self) -> Flow:
        return self.predictor.flow or "source_to_target"

    def _edits(self, node: int) -> Edits:
        near = self._ahead.pop(node, None)
        if near is None or near.hops != self.hops:
            near = self.graph.neighbourhood(node, self.hops, self._flow)
        return self.space.edits(near, self.graph.directed)

    @property
    def _oracles(self) -> tuple[Oracle, ...]:
        return (*self._local, self._one_at_a_time) if self.hops is None else self._local

    @cached_property
    def _local(self) -> tuple[Oracle, ...]:
        general = ModelOracle(self.predictor, self.graph)
        fast = gcn_oracle(general)
        return (general,) if fast is None else (fast, general)

    @cached_property
    def _one_at_a_time(self) -> Oracle:
        return ModelOracle(self.predictor, self.graph, separable=False)

    def _agrees(self, oracle: Oracle, edits: Edits) -> bool:
        # The place must be large enough, and a copy edited beyond recognition beside it must not disturb it.
        sets = [np.arange(0), np.arange(len(edits))]
        truths = {0: self.predictor.logits[edits.neighbourhood.targets[0]]}
        if self.hops is not None and self._probed < PROBED:
            self._probed += 1
            half = np.random.default_rng(self._probed).permutation(len(edits))[: len(edits) // 2 + 1]
            sets.append(np.sort(half))
            rows = (1, 2) if self._probed == 1 else (2,)
            truths |= {row: scores_after(self.graph, self.predictor, edits, sets[row]) for row in rows}
        try:
            scores = oracle.logits([(edits, pack(sets))])[0]
        except (RuntimeError, IndexError, ValueError):
            # A model made for this very graph, with an embedding of each node say, fails on any other.
            return False
        return all(_same(scores[row], truth) for row, truth in truths.items())


def _same(scores: Tensor, truth: Tensor) -> bool:
    """`torch.allclose` at a tenth of its price for so few numbers."""
    mine, other = scores.cpu().numpy(), truth.cpu().numpy()
    with np.errstate(invalid="ignore"):
        near = np.abs(mine - other) <= AGREE * (1 + np.abs(other))
    return bool((near | (mine == other) | (np.isnan(mine) & np.isnan(other))).all())
