"""The paper's two baselines on the target's ego graph: its neighbours and the edges among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from butfor.errors import InputError
from butfor.methods.base import Method
from butfor.problem.proposal import Proposal

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from butfor.problem.problem import Problem

__all__ = ["KeepEgo", "RemoveEgo"]


@dataclass(frozen=True)
class KeepEgo(Method):
    """1HOP of the paper: keep only the edges of the target's ego graph."""

    def solve(self, problem: Problem) -> Proposal:
        """One edit set, asked once."""
        return _one_set(problem, np.flatnonzero(problem.edits.deletes & ~_in_ego_graph(problem)))


@dataclass(frozen=True)
class RemoveEgo(Method):
    """RM-1HOP of the paper: remove every edge of the target's ego graph."""

    def solve(self, problem: Problem) -> Proposal:
        """One edit set, asked once."""
        return _one_set(problem, np.flatnonzero(_in_ego_graph(problem)))


def _in_ego_graph(problem: Problem) -> NDArray[np.bool_]:
    """Which edits delete edges of the target's ego graph."""
    near = problem.edits.neighbourhood
    if not near.targets:
        raise InputError("KeepEgo and RemoveEgo are about a node and its neighbours; a whole graph has no ego graph")
    sender, receiver = near.edge_index if problem.predictor.flow != "target_to_source" else near.edge_index[::-1]
    close = np.zeros(near.num_nodes, dtype=bool)
    close[near.target_rows] = True
    close[sender[np.isin(receiver, near.target_rows)]] = True
    return problem.edits.deletes_within(close)


def _one_set(problem: Problem, chosen: NDArray[np.int64]) -> Proposal:
    if not len(chosen):
        return Proposal((), problem.least_cost)
    reached = problem.ask([chosen]).reached[0]
    return Proposal((tuple(chosen.tolist()),) if reached else (), problem.least_cost)
