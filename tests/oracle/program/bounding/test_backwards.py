"""Linear bounds at nodes with many edges: against every set of edits, against intervals alone, and piece by piece."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric import nn as pyg
from torch_geometric.data import Data

import butfor
from butfor.oracle import registry
from butfor.oracle.program.bounding import backwards, sieve, slopes, tables
from butfor.oracle.program.oracle import program_oracle
from families import (
    EXACT,
    bounding_of,
    check_bounds,
    hub_case,
    margins,
    missed,
    sage_stack,
    sifted,
    subsets,
    undirected_case,
)
from program_cases import CLASSES, WIDTH, ProgramCase

# The target has one neighbour, a hub with eight others, two of which have one more: too many edits for subsets.
HUB = [(0, 1), *((1, leaf) for leaf in range(2, 10)), (2, 3), (4, 10)]
# The target is a hub itself.
TARGET = [*((0, leaf) for leaf in range(1, 9)), (1, 2), (3, 9)]
# All edges of the target may go, which are too many for subsets, and two of its neighbours hear of others.
SPOKES = [*((0, leaf) for leaf in range(1, 8)), (1, 8), (2, 9)]


@pytest.fixture(autouse=True)
def _programs_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "FAST_ORACLES", [program_oracle])


def bounds(case: ProgramCase) -> list[float]:
    """Of all families of at most 1, 2, 3 and so on of all edits, each beside the truth."""
    bounding, pairs, every = bounding_of(case)
    free = np.arange(len(case.edits))
    sets = subsets(free, range(len(free) + 1))
    truth = margins(case, sets, pairs, every)
    sizes = np.array([len(one) for one in sets])
    found = []
    for most in (1, 2, 3, 5, len(free)):
        bound = bounding.least_margin((), free, most)
        least = truth[sizes <= most].min()
        assert bound <= least + EXACT * (1 + abs(least)), f"{bound} of {least}, at most {most}"
        found.append(bound)
    return found


@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("aggregation", ["sum", "mean", "max", "min"])
def test_they_hold_and_tell_more_than_intervals(aggregation: str, depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def every_bound() -> np.ndarray:
        cases = itertools.product((HUB, TARGET), range(2))
        return np.array(
            [bounds(undirected_case(sage_stack(aggregation, depth, seed), edges, seed)) for edges, seed in cases]
        )

    linear, tightened = every_bound(), sieve._tightened
    monkeypatch.setattr(sieve, "_tightened", lambda *given: 0 * tightened(*given))
    gained = linear - every_bound()
    assert gained.min() >= -EXACT
    assert gained.max() > 1e-3, "intervals tell as much, so nothing is tested"


@pytest.mark.parametrize("aggregation", ["sum", "max"])
def test_nothing_is_missed(aggregation: str) -> None:
    case = undirected_case(sage_stack(aggregation, 2, 2), HUB, 2)
    bounding, pairs, every = bounding_of(case)
    count = len(case.edits)
    sets = subsets(range(count), range(count + 1))
    truth = dict(zip(map(frozenset, sets), margins(case, sets, pairs, every).tolist(), strict=True))
    for size in (4, count):
        inside = {one: margin for one, margin in truth.items() if len(one) <= size}
        needed = float(np.quantile(list(inside.values()), 0.02))
        found = sifted(bounding, np.random.default_rng(size).permutation(count), size, needed, 7)
        assert not missed(inside, found, needed)
        assert len(found) < 0.8 * len(inside), "nothing is pruned, so nothing is tested"


class Straight(nn.Module):
    """Two layers of maxima, or minima, and nothing between them: rows may be below 0, which an empty row has."""

    def __init__(self, aggregation: str, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.first, self.last = (pyg.SAGEConv(WIDTH, width, aggr=aggregation) for width in (WIDTH, CLASSES))
        self.shift = -0.4 if aggregation == "max" else 0.4

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.last(self.first(x, edge_index) + self.shift, edge_index)


@pytest.mark.parametrize("aggregation", ["max", "min"])
def test_rows_that_may_be_empty(aggregation: str) -> None:
    for seed in range(8):
        check_bounds(undirected_case(Straight(aggregation, seed), SPOKES, seed), seed, most_free=len(SPOKES))


class Below(nn.Module):
    """The largest numbers of those that a node hears of, added up, with their sign turned."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        index = edge_index[1][:, None].expand(-1, x.size(1))
        most = torch.zeros_like(x).scatter_reduce(0, index, x[edge_index[0]], "amax", include_self=False)
        return most @ -torch.ones(x.size(1), 2, dtype=x.dtype) * torch.tensor([1.0, 0.0])


def test_a_row_that_one_edit_empties(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty row has 0 in both columns, and each edge that may be added has 0 in only one of them."""
    monkeypatch.setattr(sieve, "_subsets", lambda units, most: np.ones_like(units.begin))
    x = torch.tensor([[0.0, 0], [-1, -1], [-1, -1], [-1, -1], [0, -5], [-5, 0]]).double()
    data = Data(x=x, edge_index=torch.tensor([[1, 2, 3], [0, 0, 0]]))
    space = butfor.EditSpace(groups=[[(1, 0), (2, 0), (3, 0)]], add=[(4, 0), (5, 0)])
    case = ProgramCase(Below, data, True, 0, space)
    bounding, pairs, every = bounding_of(case)
    truth = margins(case, subsets(range(3), range(2)), pairs, every)
    assert sorted(truth) == [0.0, 1.0, 1.0, 2.0]
    # With the room that is left for rounding.
    assert -0.01 < bounding.least_margin((), np.arange(3), 1) <= 0.0


class Between(nn.Module):
    """Two layers of sums, with a function and a norm between them."""

    def __init__(self, function: nn.Module) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = pyg.GraphConv(WIDTH, 6), pyg.GraphConv(6, CLASSES)
        self.function, self.norm = function, nn.BatchNorm1d(6)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.last(self.norm(self.function(self.first(x, edge_index))), edge_index)


@pytest.mark.parametrize("function", [nn.LeakyReLU(0.2), nn.LeakyReLU(-0.3), nn.LeakyReLU(1.7), nn.ELU()], ids=str)
def test_other_functions_on_the_way(function: nn.Module) -> None:
    """Leaky ReLU is convex only if its leak is at most 1."""
    check_bounds(undirected_case(Between(function), HUB, 0), 3, most_free=8)
    check_bounds(hub_case(Between(function), 8, 1), 3, most_free=8, wanted=1)


def test_edges_that_may_be_added() -> None:
    space = butfor.EditSpace(add=[(9, 0), (10, 0), (6, 4)])
    for aggregation, seed in itertools.product(("sum", "mean", "max", "min"), range(2)):
        check_bounds(hub_case(sage_stack(aggregation, 2, seed), 8, seed, space), seed, most_free=9)


# Piece by piece; would any of this notice?


def test_lines_lie_below() -> None:
    for low, high, leak, slope in itertools.product((-2.0, -0.5), (0.3, 1.0), (0.0, 0.2, 1.0), (1.5, -0.7)):
        z = np.linspace(low, high, 41)
        truth = slope * np.where(z > 0, z, leak * z)

        def lies_below(low: float, high: float, leak: float = leak, slope: float = slope, z=z, truth=truth) -> bool:
            a, b = backwards._line.py_func(low, high, leak, slope)
            return bool((a * z + b <= truth + 1e-12).all())

        assert lies_below(low, high)
        if slope < 0 and leak < 1:
            assert not lies_below(0.5 * low, 0.5 * high), "a chord over too short an interval must be noticed"


def test_shares_cover_every_fall() -> None:
    """Of all sets of entries that are deleted or fall; too small a share is noticed."""
    random = np.random.default_rng(0)
    t, noticed = np.zeros(tables.NUM_NAMES + 20, dtype=np.int64), 0
    for _ in range(40):
        count = int(random.integers(1, 7))
        usual = np.sort(random.normal(size=count).round(1))[::-1]
        least = usual - random.choice([0.0, 0.4, 3.0], count)
        floor = float(random.choice([least.min() - 0.2, np.median(least)]))
        f = np.stack([usual, least], axis=1).ravel()
        shares = [slopes._shares.py_func(t, f, count, n, floor) for n in range(count)]
        for state in itertools.product(range(3), repeat=count):
            left = [(usual, None, least)[one][n] for n, one in enumerate(state) if one != 1]
            after = max([*left, floor])
            covered = sum(shares[n][one - 1] for n, one in enumerate(state) if one)
            assert usual[0] - after <= covered + 1e-12
            noticed += usual[0] - after > 0.9 * covered + 1e-12
    assert noticed, "shares that are a tenth smaller must be noticed"
