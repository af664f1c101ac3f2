"""A range of values makes no more edits than fit into memory."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Data

from butfor.edits.change import Features
from butfor.errors import InputError
from butfor.graph.graph import Graph


def test_a_range_of_too_many_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="a range of 100000000 steps makes 100000000 edits, which would take"):
        Features(between=(0, 1), steps=10**8)
    assert len(Features(between=(0, 1), steps=1000).plain[2]) == 1000  # type: ignore[arg-type]
    monkeypatch.setenv("BUTFOR_MAX_BYTES", str(2**20))
    graph = Graph.of(Data(x=torch.ones(50, 50), edge_index=torch.tensor([[0, 1], [1, 0]])))
    near = graph.neighbourhood((0,), 1)
    rule = Features(between=(0, 1), steps=900)
    with pytest.raises(InputError, match="changing 50 features of 1 nodes to 900 values each makes 45000 edits"):
        rule.changes(graph, near, near)
