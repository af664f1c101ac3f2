"""What is kept from one branch to the next, and from one search to the next, against what is computed anew."""

from __future__ import annotations

import copy
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

import butfor
from butfor.oracle.program.bounding.plain.entries import FREE, KEPT, MADE
from butfor.oracle.program.bounding.plain.sieve import NEVER, PlainBounding
from butfor.oracle.program.bounding.sieve import Bounding
from families import EXACT, bounding_of, margins, missed, plain_of, sage_stack, sifted, subsets, undirected_case
from program_cases import ProgramCase

if TYPE_CHECKING:
    from collections.abc import Callable

EDGES = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 4), (3, 4), (4, 5), (5, 6), (0, 6), (0, 7), (7, 8)]


def apart(plain: PlainBounding, branches: Any, most: int) -> float:
    """How far the intervals of a level are narrower than those that are computed anew; the former are kept."""
    level = plain.level_of[most]
    plain.run(branches, most, np.inf, 0.0, NEVER, 0)
    kept = [plain.room.low[level].copy(), plain.room.high[level].copy()]
    plain.ready[level] = False
    plain.run(branches, most, np.inf, 0.0, NEVER, 0)
    anew = [plain.room.low[level].copy(), plain.room.high[level].copy()]
    plain.room.low[level], plain.room.high[level] = kept
    return float(max((kept[0] - anew[0]).max(), (anew[1] - kept[1]).max()))


@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("aggregation", ["sum", "mean", "max", "min"])
def test_levels_do_not_depend_on_what_came_before(aggregation: str, depth: int) -> None:
    for seed in range(1, 9):
        plain, _, _ = plain_of(undirected_case(sage_stack(aggregation, depth, seed), EDGES, seed))
        random = np.random.default_rng(seed)
        branches = plain.begin(np.arange(len(EDGES)), np.ones(len(EDGES)), 0)
        for _ in range(60):
            branches.status[random.integers(0, len(EDGES), 2)] = random.integers(0, 3, 2)
            assert apart(plain, branches, int(random.integers(0, 5))) < EXACT


@pytest.mark.parametrize("aggregation", ["sum", "mean", "max", "min"])
def test_edits_of_another_search_are_excluded(aggregation: str) -> None:
    """What an earlier question made or left free, and this one does not name."""
    plain, _, _ = plain_of(undirected_case(sage_stack(aggregation, 2, 0), EDGES, 0))
    for most in (0, 1, 3):
        for made, free in (([0, 1, 4], [5]), ([], [0, 1, 4])):
            plain.least_margin(made, np.array(free), most)
            assert abs(apart(plain, plain.begin(np.array([2, 3]), np.ones(2), 0), most)) < EXACT


class Mixed(nn.Module):
    """The largest of what neighbours have heard, added up over columns, and beside it a sum."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        sender, receiver = edge_index
        heard = x + torch.zeros_like(x).index_add(0, receiver, x[sender])
        index = receiver[:, None].expand(-1, 3)
        largest = x.new_zeros(len(x), 3).scatter_reduce(0, index, heard[sender, :3], "amax", include_self=False)
        total = x.new_zeros(len(x), 1).index_add(0, receiver, heard[sender, 3:])
        score = largest @ x.new_ones(3, 1) + total - 13.05
        return torch.cat([score, 0 * score], dim=1)


def test_what_entries_bring_changes_and_the_interval_of_their_maximum_does_not() -> None:
    """Nodes 1 to 3 have 5 in one column each, of which 1.5 come from node 5, and node 4, which stays, has 3 in all.

    So each column is from 3 to 5, whether or not these 1.5 may go. But then all three may fall at once.
    """
    x = torch.zeros(10, 4, dtype=torch.float64)
    x[[1, 2, 3], [0, 1, 2]], x[4, :3], x[5, :3] = 3.5, 3.0, 1.5
    x[[7, 8, 9], 3] = torch.tensor([0.1, 1.0, 1.0], dtype=torch.float64)
    ends = [(node, 0) for node in (1, 2, 3, 4, 6, 7, 8, 9)] + [(5, 1), (5, 2), (5, 3)]
    space = butfor.EditSpace(
        groups=[ends[-3:]], protected=[(4, 0)], costs={(1, 0): 5.0, (2, 0): 5.0, (3, 0): 5.0}
    )  # fmt: skip
    case = ProgramCase(Mixed, Data(x=x, edge_index=torch.tensor(ends).T.contiguous()), True, 0, space)
    number = {case.edits.records([edit])[0].source: edit for edit in range(len(case.edits))}
    order = np.array([number[node] for node in (7, 8, 9, 5, 6, 1, 2, 3)])
    plain, pairs, every = plain_of(case)
    sets = [one for one in subsets(order, range(4)) if case.edits.costs[list(one)].sum() <= 3]
    truth = dict(zip(map(frozenset, sets), margins(case, sets, pairs, every).tolist(), strict=True))
    found = sifted(plain, order, 3, 0.0, costs=case.edits.costs[order], limit=3.0)
    assert not missed({one: margin for one, margin in truth.items() if len(one) in (0, 2, 3)}, found, 0.0)
    assert frozenset(number[node] for node in (8, 9, 5)) in found


class Logarithms(nn.Module):
    """The largest or smallest logarithm that arrives; a number below 0 has none, which counts as little."""

    def __init__(self, code: str) -> None:
        super().__init__()
        self.code = code

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        sender, receiver = edge_index
        index = receiver[:, None].expand(-1, x.size(1))
        found = torch.zeros_like(x).scatter_reduce(0, index, x.log()[sender], self.code, include_self=False)
        score = torch.where(found.isnan(), torch.full_like(found, -20.0), found).sum(1, keepdim=True) + 50
        return torch.cat([score, 0 * score], dim=1)


@pytest.mark.parametrize("code", ["amax", "amin"])
def test_what_is_not_a_number_is_not_passed_over(code: str) -> None:
    x = torch.tensor([[1.0, 1.0], [-1.0, 1.0], [5.0, 2.0], [2.0, 3.0], [3.0, 4.0]], dtype=torch.float64)
    data = Data(x=x, edge_index=torch.tensor([[1, 2, 3, 4], [0, 0, 0, 0]]))
    case = ProgramCase(lambda: Logarithms(code), data, True, 0)
    plain, pairs, every = plain_of(case)
    for most in range(5):
        least = margins(case, subsets(range(4), range(most + 1)), pairs, every).min()
        assert plain.least_margin((), np.arange(4), most) <= least


def test_sets_of_more_edits_than_there_are() -> None:
    case = undirected_case(sage_stack("mean", 2, 3), EDGES, 3)
    plain, _, _ = plain_of(case)
    order = np.arange(4)
    every = sifted(plain, order, 4, np.inf, costs=np.full(4, 0.5), limit=2.0)
    assert {frozenset([0, 1, 2, 3])} <= every
    for size in (5, 6, 30):
        assert sifted(plain, order, size, np.inf, costs=np.full(4, 0.5), limit=2.0) == every


def interrupted(call: Callable[[], Any], line: int) -> bool:
    """Call, and interrupt `Bounding.margin` before it runs its line number ``line``; whether there is such a line."""
    count = 0

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal count
        if frame.f_code is not Bounding.margin.__code__:
            return None
        count += event == "line"
        if event == "line" and count == line:
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def test_tighter_bounds_after_an_interruption() -> None:
    """Whenever it comes: what is asked next is computed as if there had been none."""
    case = undirected_case(sage_stack("sum", 2, 0), EDGES, 0)
    bounding, _, _ = bounding_of(case)
    free, made = np.full(len(EDGES), FREE, np.int8), np.full(len(EDGES), KEPT, np.int8)
    made[:3] = MADE
    expected, line = bounding.margin(made, 2, 3)[0], 1
    while True:
        bounding.margin(free, 2, 3)
        if not interrupted(lambda: bounding.margin(made, 2, 3), line):
            break
        assert bounding.margin(made, 2, 3)[0] == pytest.approx(expected, abs=EXACT)
        line += 1
    assert line > 10


def test_tighter_bounds_of_another_size_between() -> None:
    case = undirected_case(sage_stack("max", 3, 0), EDGES, 0)
    (bounding, _, _), (other, _, _) = bounding_of(case), bounding_of(copy.copy(case))
    random = np.random.default_rng(0)
    for _ in range(40):
        status, size = random.integers(0, 3, len(EDGES)).astype(np.int8), int(random.integers(2, 6))
        left = int(random.integers(1, size + 1))
        if random.random() < 0.2:
            bounding.least_margin((0,), np.arange(2, 5), 2)
        other.least_margin((), np.arange(3), 1)
        assert bounding.margin(status, left, size)[0] == pytest.approx(other.margin(status, left, size)[0], abs=EXACT)
