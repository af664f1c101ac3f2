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
    """1HOP of the paper: keep only the edges of the target's ego graph.

    The ego graph is the target with its neighbours and the edges among them; a whole graph has none and is refused.
    All other edges go at once: this is the only set of edits that is tried.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> print(butfor.explain(model, data, 597, butfor.KeepEgo()))
        Node 597 is predicted 'motif' (0.85). But for these 12 of its 14 edges it would be 'base' (0.73):
            55–112, 112–225, 112–226, 112–595, 360–781, 595–596, 595–600, 595–781, 598–599, 599–600, 781–782,
            781–786.
    """

    def solve(self, problem: Problem) -> Proposal:
        """One edit set, asked once."""
        return _one_set(problem, np.flatnonzero(problem.edits.deletes & ~_in_ego_graph(problem)))


@dataclass(frozen=True)
class RemoveEgo(Method):
    """RM-1HOP of the paper: remove every edge of the target's ego graph.

    The ego graph is the target with its neighbours and the edges among them; a whole graph has none and is refused.
    This is the only set of edits that is tried.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> print(butfor.explain(model, data, 597, butfor.RemoveEgo()))
        Node 597 is predicted 'motif' (0.85). No counterfactual was found among its 14 edges; a counterfactual,
            if there is one, costs at least 1.
    """

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
