"""Limits of hidden numbers, against what these are with every set of deletions, in double precision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric import nn as pyg

from butfor.oracle.program.bounding.plain import sieve
from families import EXACT, margins, missed, plain_of, sage_stack, sifted, subsets, undirected_case
from gnn_models import Then
from program_cases import CLASSES, WIDTH, ProgramCase

if TYPE_CHECKING:
    from butfor.oracle.program.bounding.plain.sieve import PlainBounding

# Rings with chords and a tail: edges lie on many paths, some of which lead back to the target.
EDGES = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 4), (3, 4), (4, 5), (0, 5), (0, 6), (6, 7)]
KINDS = ("sum", "mean", "max", "min", "GCN", "gate")
ENOUGH = 10**6


class Gate(nn.Module):
    """A product of numbers that change, between two sums."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = pyg.GraphConv(WIDTH, WIDTH), pyg.GraphConv(WIDTH, WIDTH)
        self.last = pyg.GraphConv(WIDTH, CLASSES)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        h = self.first(x, edge_index) * self.second(x, edge_index).sigmoid()
        return self.last(h.relu(), edge_index)


def case_of(kind: str, seed: int) -> ProgramCase:
    torch.manual_seed(seed)
    if kind == "GCN":
        layers = (pyg.GCNConv(WIDTH, WIDTH), nn.ReLU(), pyg.GCNConv(WIDTH, WIDTH), nn.ReLU())
        return undirected_case(Then(*layers, pyg.GCNConv(WIDTH, CLASSES)), EDGES, seed)
    return undirected_case(Gate() if kind == "gate" else sage_stack(kind, 3, seed), EDGES, seed)


def numbers_of(plain: PlainBounding, made: tuple[int, ...]) -> np.ndarray:
    """All numbers of the program with these edits."""
    plain.least_margin(made, np.zeros(0, np.int64), 0)
    return plain.room.low[0].copy()


def check(kind: str, seed: int, size: int, claimed: int | None = None) -> int:
    """No set of at most ``size`` edits passes a limit. Returns how many limits are narrower than intervals.

    ``claimed``: what the limits are found for, if it is not that size.
    """
    case = case_of(kind, seed)
    plain, _, _ = plain_of(case)
    free = np.sort(np.random.default_rng(seed).permutation(len(case.edits))[:8])
    plain.least_margin((), free, size)
    level = plain.level_of[min(size, len(plain.level_of) - 1)]
    low, high = plain.room.low[level].copy(), plain.room.high[level].copy()
    plain.limit(free, size if claimed is None else claimed, ENOUGH)
    least, most = plain.room.least_of_all.copy(), plain.room.most_of_all.copy()
    for one in subsets(free, range(size + 1)):
        now = numbers_of(plain, one)
        assert (now >= least - EXACT * (1 + np.abs(now))).all()
        assert (now <= most + EXACT * (1 + np.abs(now))).all()
    assert np.isneginf(plain.room.least_of_all).all(), "another question has no limits"
    return int(((least > low + 1e-6) | (most < high - 1e-6)).sum())


@pytest.mark.parametrize("kind", KINDS)
def test_no_set_passes_a_limit(kind: str) -> None:
    narrower = [check(kind, seed, size) for seed in range(3) for size in (1, 2, 3)]
    # What is the largest of several entries falls by the same numbers that its interval is made of.
    assert sum(narrower) > 0 or kind in ("max", "min")


def test_limits_for_smaller_sets_do_not_hold_for_larger_ones() -> None:
    with pytest.raises(AssertionError):
        check("sum", 0, 3, claimed=1)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_missed_within_limits(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sieve, "LIMITED_AFTER", 0)
    found: list[Any] = []
    limit = sieve.PlainBounding.limit
    monkeypatch.setattr(sieve.PlainBounding, "limit", lambda self, *a: found.append(a) or limit(self, *a))
    for seed in range(4):
        case = case_of(kind, seed)
        plain, pairs, every = plain_of(case)
        order = np.random.default_rng(seed).permutation(len(case.edits))[:9]
        for size in (2, 4):
            sets = subsets(order, range(size + 1))
            truth = dict(zip(map(frozenset, sets), margins(case, sets, pairs, every).tolist(), strict=True))
            needed = float(np.quantile(list(truth.values()), 0.1)) + 1e-6
            results = [sifted(plain, order, size, needed, step) for step in (3, 10**6)]
            assert not missed(truth, results[0], needed)
            assert results[0] == results[1]
    assert found


def test_searches_of_other_threads_keep_limits_and_lose_them() -> None:
    case = case_of("sum", 0)
    plain, _, _ = plain_of(case)
    free = np.arange(8)
    plain.limit(free, 2, ENOUGH)
    other = plain.again()
    assert other.is_limited
    assert (other.room.least_of_all == plain.room.least_of_all).all()
    before = other.least_margin((), free, 8)
    assert not other.is_limited
    assert before == plain_of(case)[0].least_margin((), free, 8)
