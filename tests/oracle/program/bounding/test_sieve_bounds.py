"""Bounds on all sets of a family against every one of these sets, in double precision, on graphs edited by hand."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric import nn as pyg

import butfor
from butfor.oracle import registry
from butfor.oracle.program.bounding import sieve
from butfor.oracle.program.oracle import program_oracle
from families import EXACT, bounding_of, check_bounds, hub_case, margins, subsets
from gnn_models import Then
from gnns import LOCAL
from program_cases import BY_HAND, CARRIES, CLASSES, WIDTH, Hand, HandGraphs, ProgramCase, hand_case, kind_case, sums

if TYPE_CHECKING:
    from collections.abc import Callable

    from butfor.oracle.program.bounding.owners import Units


@pytest.fixture(autouse=True)
def _programs_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "FAST_ORACLES", [program_oracle])


QUICK = (
    "GCN, edge_weight", "GraphSAGE, mean", "GraphSAGE, max", "GAT", "GATv2, edge_attr", "GIN", "TransformerConv",
    "PNA", "RGCN, edge_type", "jumping knowledge, max", "log-probabilities", "counts",
)  # fmt: skip


def with_additions(name: str, seed: int, directed: bool, node: int) -> ProgramCase:
    carries = {field: CARRIES[field] for field in LOCAL[name].fields if field in CARRIES}
    case = kind_case(LOCAL[name], seed, directed, node, False)
    return replace(case, space=butfor.EditSpace(add=butfor.Within(hops=2, most=4), carries=carries))


@pytest.mark.parametrize("name", QUICK)
def test_models_of_some_kinds(name: str) -> None:
    seed = list(LOCAL).index(name)
    check_bounds(kind_case(LOCAL[name], seed, False, seed % 9, False), seed)
    check_bounds(with_additions(name, seed, bool(seed % 2), seed % 9), seed, wanted=seed % 3)


@pytest.mark.slow
@pytest.mark.parametrize("name", LOCAL)
def test_models_of_all_kinds(name: str) -> None:
    # Both ways and both nodes; which node goes with which way is another for the next model.
    cases = list(enumerate(itertools.product((False, True), (2, 5))))
    for seed, (directed, node) in cases[::3] if list(LOCAL).index(name) % 2 else cases[1:3]:
        wanted = (None, seed % 3)[seed % 2]
        check_bounds(kind_case(LOCAL[name], seed, directed, node, False), seed, wanted=wanted)
        check_bounds(with_additions(name, seed, directed, node), seed)


@pytest.mark.parametrize("first", BY_HAND)
def test_layers_in_plain_torch(first: str) -> None:
    seed = list(BY_HAND).index(first)
    second = list(BY_HAND)[(seed + 2) % len(BY_HAND)]
    for directed in (False, True):
        check_bounds(hand_case(Hand(first, second, seed=seed), seed, directed, 1), seed)
    check_bounds(hand_case(HandGraphs(("sum", "mean", "maximum")[seed % 3], first, seed=seed), seed, False, None), seed)


# Many edits at one node: a case is a subset, a number of edits, or a range of numbers.


def stack(make: Callable[[int, int], nn.Module]) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        torch.manual_seed(3)
        return Then(make(WIDTH, WIDTH), nn.Tanh(), make(WIDTH, CLASSES))

    return build


AGGREGATIONS: dict[str, Callable[[], nn.Module]] = {
    **{one: stack(lambda a, b, one=one: pyg.SAGEConv(a, b, aggr=one)) for one in ("sum", "mean", "max", "min", "std")},
    "several": stack(lambda a, b: pyg.SAGEConv(a, b, aggr=["mean", "max"])),
    "softmax": stack(lambda a, b: pyg.GATv2Conv(a, b, add_self_loops=False)),
    "softmax with loops": stack(lambda a, b: pyg.TransformerConv(a, b, heads=2, concat=False)),
    "degrees": stack(lambda a, b: pyg.GCNConv(a, b, add_self_loops=False)),
}


@pytest.mark.parametrize("name", AGGREGATIONS)
def test_a_hub(name: str) -> None:
    """Of nine edits the subsets of three are too many to be told apart."""
    for seed in range(2):
        assert check_bounds(hub_case(AGGREGATIONS[name](), 9, seed), seed, most_free=9)


@pytest.mark.parametrize("name", ["sum", "mean", "max", "softmax"])
def test_ranges_of_numbers(name: str) -> None:
    """Beyond 16 edits, numbers from 17 on are no cases of their own."""
    case = hub_case(AGGREGATIONS[name](), 19, 1)
    bounding, pairs, every = bounding_of(case)
    free = np.arange(len(case.edits))
    sets = subsets(free, (0, 1, len(free) - 2, len(free) - 1, len(free)))
    bound = bounding.least_margin((), free, len(free))
    assert bound <= margins(case, sets, pairs, every).min() + EXACT
    assert np.isfinite(bound)


def test_edits_of_several_edges() -> None:
    """Two edges into the same node are one edit."""
    space = butfor.EditSpace(groups=[[(1, 0), (2, 0)], [(3, 0), (8, 1)]], add=[(9, 0), (6, 4)])
    for name in ("sum", "max", "softmax", "mean"):
        check_bounds(hub_case(AGGREGATIONS[name](), 7, 1, space), 1, most_free=8)


# Numbers that are none, or not known although no edit changes them.


class Turning(nn.Module):
    def __init__(self, turn: Callable[[Tensor], Tensor], again: bool) -> None:
        super().__init__()
        self.turn, self.again = turn, again
        torch.manual_seed(0)
        self.last = nn.Linear(WIDTH, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        hidden = self.turn(sums(torch.ones_like(x[edge_index[0]]), edge_index[1], len(x))) * x
        return self.last(sums(hidden[edge_index[0]], edge_index[1], len(x)) if self.again else hidden)


def none_or(count: Tensor, more: float) -> Tensor:
    """No number where fewer edges arrive; that is noticed afterwards."""
    found = torch.where(count > more, count, torch.full_like(count, float("nan")))
    return torch.where(torch.isnan(found), torch.full_like(count, -9.0), found)


TURNS: dict[str, Callable[[Tensor], Tensor]] = {
    "floor": lambda count: torch.floor(count / 2),
    "equal": lambda count: (count * 0.5 == 1.0).to(count),
    "sign": lambda count: torch.sign(count - 2),
    "none": lambda count: none_or(count, 2),
    "endless": lambda count: (lambda one: one.masked_fill(torch.isinf(one), 0.0))(count.pow(-0.5)),
    "0 / 0": lambda count: ((count - 1) / (count - 1) >= -5).to(count),
    "logarithm": lambda count: torch.relu(count.log()),
}


@pytest.mark.parametrize("again", [False, True], ids=["at once", "a layer further"])
@pytest.mark.parametrize("turn", TURNS)
def test_turns(turn: str, again: bool) -> None:
    for seed in range(2):
        check_bounds(hub_case(Turning(TURNS[turn], again), 8, seed), seed, most_free=8)


def test_no_number_in_a_range_of_numbers_of_edits() -> None:
    """Of 20 edges 17 or 18 go: then the comparison is open, and one of both is no number."""
    case = hub_case(Turning(TURNS["none"], False), 20)
    bounding, pairs, every = bounding_of(case)
    free = np.arange(len(case.edits))[-20:]
    sets = [tuple(free[:size]) for size in range(20)]
    for most in range(1, 20):
        bound = bounding.least_margin((), free, most)
        assert bound <= margins(case, sets[: most + 1], pairs, every).min() + EXACT


def test_many_neighbours_at_a_turn() -> None:
    """An edit changes one neighbour; that the others are not known for certain is no edit's doing."""
    for turn in ("floor", "equal", "sign"):
        for sign in (1.0, -1.0):
            model = Turning(lambda count, turn=turn, sign=sign: sign * TURNS[turn](count), True)
            for seed in range(3):
                check_bounds(hand_case(model, seed, False, seed), seed)


# Would any of this notice?


def check_many(*names: str) -> None:
    for seed in range(12):
        for name in names:
            check_bounds(kind_case(LOCAL[name], seed, False, 4, False), seed)


def broken_units(monkeypatch: pytest.MonkeyPatch, change: Callable[[Units], dict[str, Any]]) -> None:
    original = sieve.units_of

    def broken(*given: Any) -> Any:
        layout, units = original(*given)
        return layout, units._replace(**change(units))

    monkeypatch.setattr(sieve, "units_of", broken)


BROKEN: dict[str, Callable[[Units], dict[str, Any]]] = {
    "no cones": lambda units: {"counts": 0 * units.counts},
    "a forgotten loss": lambda units: {"edit_of": np.where(units.edit_of == units.edit_of.max(), -1, units.edit_of)},
    "nobody reads others": lambda units: {"exact": np.ones_like(units.exact)},
    "nobody depends on others": lambda units: {"depends": np.zeros_like(units.depends)},
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    broken_units(monkeypatch, BROKEN[name])
    with pytest.raises(AssertionError):
        check_many("GIN", "GraphSAGE, mean")


def test_a_hull_that_leaves_out_another_edit_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the edit that deletes an entry cannot have been made if the entry is there."""
    original = sieve.Room.of

    def broken(layout: Any, units: Units) -> Any:
        room = original(layout, units)
        return room._replace(edit=np.roll(room.edit, 1))

    monkeypatch.setattr(sieve.Room, "of", broken)
    with pytest.raises(AssertionError):
        check_many("GIN", "GraphSAGE, mean")
