"""Ranges of tensors hold on every graph: tried against true runs, and where nothing may be claimed nothing is."""

from __future__ import annotations

import warnings
from math import inf

import pytest
import torch
from torch import Tensor
from torch_geometric.utils import get_laplacian

from butfor.oracle.program.lowering.ranges import Range, Ranges, range_of_all
from butfor.oracle.program.recorder import record
from butfor.oracle.program.trace import Ref

NODES = 6


def found(run, weight: Tensor, known: Range | None) -> tuple[Range | None, Tensor]:
    """The range of what a function makes of an edge weight, and one of its values."""
    ends = torch.tensor([[0, 1, 2, 3, 0], [1, 0, 3, 2, 4]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what torch says of recording
        trace = record(torch.nn.Identity(), lambda: run(ends, weight), {"edge_index": ends, "weight": weight})
    ranges = Ranges(trace, lambda name: known if name == "weight" else None)
    return ranges.of(Ref(trace.output)), trace.values[trace.output]


def laplacian(kind: str | None):
    return lambda ends, weight: get_laplacian(ends, weight, kind, num_nodes=NODES)[1]


@pytest.mark.parametrize("kind", ["sym", "rw"])
def test_the_diagonal_of_a_laplacian_is_its_maximum(kind: str) -> None:
    bounds, value = found(laplacian(kind), torch.rand(5) + 0.1, Range(0.1, 2.0))
    assert bounds is not None
    assert bounds.high == value.max() == 1.0
    assert bounds.low <= value.min()


@pytest.mark.parametrize("kind", ["sym", "rw"])
@pytest.mark.parametrize("known", [None, Range(-0.1, 2.0)])
def test_nothing_is_known_of_a_laplacian_with_negative_weights(kind: str, known: Range | None) -> None:
    assert found(laplacian(kind), torch.rand(5), known)[0] is None


def test_degrees_have_no_upper_end() -> None:
    bounds, _ = found(laplacian(None), torch.rand(5), Range(0.0, 2.0))
    assert bounds == Range(-2.0, inf)


FUNCTIONS = {
    "product": lambda _, w: w * (1 - w),
    "quotient": lambda _, w: (w - 0.5) / (w + 1),
    "root": lambda _, w: (w + 1).rsqrt() - (w + 1).sqrt(),
    "relu": lambda _, w: (w - 0.5).relu(),
    "chosen": lambda ends, w: w[ends[0] != 0],
    "filled": lambda _, w: (w - 2).masked_fill(w > 0.5, 0.0),
    "together": lambda _, w: torch.cat([w, w.new_full((3,), 7.0)]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_all_values_lie_between_both_ends(name: str) -> None:
    for seed in range(20):
        weight = torch.rand(5, generator=torch.Generator().manual_seed(seed))
        bounds, value = found(FUNCTIONS[name], weight, Range(0.0, 1.0))
        assert bounds is not None
        assert bounds.low - 1e-6 <= value.min()
        assert value.max() <= bounds.high + 1e-6


UNKNOWN = {
    "infinite numbers that are not filled": lambda _, w: w.pow(-0.5) * 0.0,
    "roots of negative numbers": lambda _, w: (w - 0.5).sqrt(),
    "another function": lambda _, w: w.sin(),
    "one number for each node": lambda _, w: w[:1] * torch.arange(5.0),
    "no numbers": lambda _, w: torch.cat([w, w.new_full((0,), 7.0)]),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_nothing_is_claimed_of_what_is_not_known(name: str) -> None:
    assert found(UNKNOWN[name], torch.rand(5), Range(0.0, 1.0))[0] is None


def test_numbers_that_are_not_finite_have_no_range() -> None:
    assert range_of_all(torch.tensor([1.0, inf])) is None
    assert range_of_all(torch.tensor([1.0, torch.nan])) is None
    assert range_of_all(torch.zeros(0)) is None
    assert range_of_all(torch.tensor([1.0, -2.0])) == (-2.0, 1.0, True)
