"""A small graph for tests that need any, and whether two graphs are the same."""

from __future__ import annotations

from typing import Any

import torch
from torch_geometric.data import Data


def small_graph(**changes: Any) -> Data:
    """Three nodes and an edge, with these attributes changed or added."""
    graph = Data(x=torch.ones(3, 2), edge_index=torch.tensor([[0, 1], [1, 0]]))
    for name, value in changes.items():
        graph[name] = value
    return graph


def same_graph(one: Data, other: Data) -> bool:
    """Whether two graphs have the same attributes, of the same types and values."""

    def same(a: object, b: object) -> bool:
        both_tensors = isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)
        return torch.equal(a, b) and a.dtype == b.dtype if both_tensors else a == b

    return sorted(one.keys()) == sorted(other.keys()) and all(same(one[k], other[k]) for k in one.keys())  # noqa: SIM118
