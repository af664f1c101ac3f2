"""Bounds that would take too much memory are not begun."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GraphConv

from butfor.oracle.program.bounding import owners
from butfor.oracle.program.bounding.plain.sieve import PlainSieve
from butfor.session import Session

if TYPE_CHECKING:
    import pytest

LEAVES = 4_000


def test_a_table_that_would_be_too_large_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = torch.stack([torch.zeros(LEAVES, dtype=torch.long), torch.arange(1, LEAVES + 1)])
    data = Data(x=torch.ones(LEAVES + 1, 2), edge_index=torch.cat([ends, ends.flip(0)], dim=1))
    problem = Session.of(GraphConv(2, 3).eval(), data).problem(0)
    edits = np.arange(len(problem.edits))
    problem.ask([[0]])
    monkeypatch.setattr(owners, "MOST_PAIRS", LEAVES**2 // 2)
    tracemalloc.start()
    try:
        assert isinstance(problem.sieve(edits, 2, np.inf, 0.0), PlainSieve)  # which begins without that table
        assert problem.margin_bound((), edits, 2, np.inf) is not None  # likewise
        assert tracemalloc.get_traced_memory()[1] < LEAVES**2 // 2
    finally:
        tracemalloc.stop()
