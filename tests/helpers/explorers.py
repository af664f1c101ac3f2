"""Explorers of small graphs, for every task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from butfor.pages.explore import explorer_of
from butfor.problem.target import Pair
from butfor.testing import random_problem
from task_cases import GraphModel
from typed_cases import Convs, library

if TYPE_CHECKING:
    from butfor.pages.explorer import Explorer

__all__ = ["LinkModel", "graphs_explorer", "link_explorer", "node_explorer", "typed_explorer"]


class LinkModel(torch.nn.Module):
    """A score for a pair of nodes."""

    def __init__(self, inner: torch.nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x, edge_index, edge_label_index):
        first, second = self.inner(x, edge_index)[edge_label_index]
        return (first * second).sum(-1)


def node_explorer(seed: int = 3, nodes: int = 12, **settings: Any) -> Explorer:
    """Nodes of a random graph, by a GCN."""
    model, data = random_problem(seed, nodes=nodes, density=0.3)
    return explorer_of(model, data, 0, **settings)


def link_explorer() -> Explorer:
    """Links of a random graph."""
    import butfor

    model, data = random_problem(3, nodes=10, density=0.3)
    return explorer_of(LinkModel(model), data, Pair(0, 5), goal=butfor.Goal(threshold=0.0))


def graphs_explorer() -> Explorer:
    """Whole graphs."""
    torch.manual_seed(2)
    graphs = [random_problem(seed, nodes=7)[1] for seed in range(3)]
    for data in graphs:
        data.x = data.x[:, :3]
    return explorer_of(GraphModel(pool="sum").eval(), graphs, 1)


def typed_explorer(**settings: Any) -> Explorer:
    """Papers of a small library."""
    torch.manual_seed(0)
    return explorer_of(Convs("SAGE").eval(), library(1), 2, node_type="paper", **settings)
