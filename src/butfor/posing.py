"""Pose the problem of a target: find the neighbourhood that gives exactly the whole graph's answer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import torch

from butfor.edits import pack
from butfor.errors import ModelError
from butfor.gcn_oracle import gcn_oracle
from butfor.oracle import ModelOracle
from butfor.problem import Problem

if TYPE_CHECKING:
    from torch import Tensor

    from butfor.edits import Edits, EditSpace
    from butfor.goal import Goal
    from butfor.graph import Graph
    from butfor.oracle import Oracle
    from butfor.predictor import Predictor

__all__ = ["Poser"]

# How far the neighbourhood's scores may be from the whole graph's before it counts as too small.
AGREE = 1e-4

WHOLE_GRAPH = "The model reads more than a neighbourhood, so the whole graph was searched."


@dataclass(frozen=True, eq=False)
class Poser:
    """Poses problems about one model on one graph."""

    graph: Graph
    predictor: Predictor
    goal: Goal
    space: EditSpace
    seed: int

    def pose(self, node: int) -> Problem:
        """The problem of one node.

        The neighbourhood reaches as many hops as the model passes messages, and one more for the
        degrees by which some layers normalise. It must reproduce the node's scores on the whole graph;
        it is widened until it does.

        Raises:
            ModelError: not even the whole graph gives the same scores twice.
        """
        hops: int | None = self.predictor.depth + 1
        while True:
            edits = self._edits(node, hops)
            for oracle in self._oracles(whole=hops is None):
                if self._agrees(oracle, edits):
                    note = WHOLE_GRAPH if hops is None else ""
                    return Problem(
                        self.graph,
                        self.predictor,
                        oracle,
                        edits,
                        self.goal,
                        self._scores(node),
                        self.seed,
                        note=note,
                    )
            if hops is None:
                name = type(self.predictor.model).__name__
                raise ModelError(
                    f"{name} gives node {node} different scores on the same graph; "
                    "a model that draws random numbers in evaluation mode cannot be explained"
                )
            wider = 2 * hops
            covered = edits.neighbourhood.num_nodes == self.graph.num_nodes or wider > self.graph.num_nodes
            hops = None if covered or self.predictor.flow is None else wider

    def _edits(self, node: int, hops: int | None) -> Edits:
        near = self.graph.neighbourhood(node, hops, self.predictor.flow or "source_to_target")
        return self.space.edits(near, self.graph.directed)

    def _scores(self, node: int) -> Tensor:
        return self.predictor.logits[node]

    @cached_property
    def _local(self) -> tuple[Oracle, ...]:
        general = ModelOracle(self.predictor, self.graph)
        fast = gcn_oracle(general)
        return (general,) if fast is None else (fast, general)

    @cached_property
    def _one_at_a_time(self) -> Oracle:
        return ModelOracle(self.predictor, self.graph, separable=False)

    def _oracles(self, whole: bool) -> tuple[Oracle, ...]:
        return (*self._local, self._one_at_a_time) if whole else self._local

    def _agrees(self, oracle: Oracle, edits: Edits) -> bool:
        # The place must be large enough, and a copy edited beyond recognition beside it must not disturb it.
        nothing_and_everything = pack([[], range(len(edits))])
        scores = oracle.logits([(edits, nothing_and_everything)])[0]
        truth = self._scores(edits.neighbourhood.targets[0])
        return bool(torch.allclose(scores[0], truth, rtol=AGREE, atol=AGREE))
