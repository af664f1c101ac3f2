"""Every edge there in both directions: found by counting, and the same as by looking."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from butfor.graph import symmetry
from butfor.graph.csr import Incoming
from butfor.graph.symmetry import is_symmetric


def graph(random: np.random.Generator, symmetric: bool) -> tuple[np.ndarray, np.ndarray, int]:
    """Few nodes, so that there are copies and self-loops, in any order."""
    nodes, edges = int(random.integers(1, 8)), int(random.integers(0, 14))
    ends = random.integers(0, nodes, (2, edges))
    carried = random.integers(0, 2, (edges, 2)).astype(float)
    if symmetric:
        ends, carried = np.concatenate([ends, ends[::-1]], axis=1), np.concatenate([carried, carried])
    order = random.permutation(ends.shape[1])
    return ends[:, order], carried[order], nodes


@pytest.mark.parametrize("sample", [0, 64])
def test_the_same_as_by_looking(sample: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symmetry, "SAMPLE", sample)
    random = np.random.default_rng(0)
    seen = Counter()
    for number in range(600):
        ends, carried, nodes = graph(random, symmetric=number % 2 == 0)
        if number % 4 == 2 and ends.shape[1]:
            carried[int(random.integers(ends.shape[1])), 0] += 1  # the edges are symmetric, what they carry is not
        incoming = Incoming.of(ends, nodes, "source_to_target")
        pairs = list(map(tuple, ends.T.tolist()))
        rows = [(*pair, *row) for pair, row in zip(pairs, carried.tolist(), strict=True)]
        alone = set(pairs) == {(v, u) for u, v in pairs}
        together = Counter(rows) == Counter((v, u, *rest) for u, v, *rest in rows)
        assert is_symmetric(incoming) == alone
        assert is_symmetric(incoming, carried) == together
        seen[alone, together] += 1
    assert len(seen) == 3
    assert min(seen.values()) > 20


def test_grouping_keeps_the_order_of_columns() -> None:
    ends = np.random.default_rng(1).integers(0, 9, (2, 200))
    for flow, row in (("source_to_target", 1), ("target_to_source", 0)):
        incoming = Incoming.of(ends, 11, flow)
        assert incoming.columns.tolist() == np.argsort(ends[row], kind="stable").tolist()
        assert incoming.pointers.tolist() == [int((ends[row] < node).sum()) for node in range(12)]
        assert incoming.senders.tolist() == ends[1 - row][incoming.columns].tolist()
    assert Incoming.of(np.empty((2, 0), np.int64), 3, "source_to_target").pointers.tolist() == [0, 0, 0, 0]
