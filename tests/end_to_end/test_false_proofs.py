"""Attempts to have something false confirmed: each was confirmed, or broke the checker, before it was mended.

`python -m benchmarks.falsify` tries many more, at random.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv
from torch_geometric.utils import scatter

import butfor
from butfor.boundary.json_values import Misfit
from butfor.certificate import subject as subjects
from butfor.certificate.check import Refused
from butfor.certificate.record import BOUNDED, TRIED, Certificate, read_certificates
from butfor.certificate.subject import Subject, listed
from butfor.errors import InputError
from butfor.problem.builder import NOT_SHOWN

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Told(nn.Module):
    """The second class by so much as a function of node and edges says; the first has 0."""

    def __init__(self, lead: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.lead, self.weight = lead, nn.Parameter(torch.ones(1))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        lead = self.lead(x, edge_index)[:, :1] * self.weight
        return torch.cat([0 * lead, lead], dim=1)


def heard(x: Tensor, edge_index: Tensor) -> Tensor:
    return scatter(x[edge_index[0]], edge_index[1], 0, dim_size=x.size(0))


def star(*heights: float) -> Data:
    """Node 0 hears of nodes that have these features."""
    x = torch.tensor([[0.0], *([height] for height in heights)])
    leaves = torch.arange(1, len(x))
    return Data(x=x, edge_index=torch.stack([leaves, torch.zeros_like(leaves)]))


def claim(session: butfor.Session, below: float | None, tree: tuple[int, ...], target: int = 0) -> Certificate:
    """A certificate as `Exact` would write it, with any tree."""
    problem = session.problem(target)
    ids = session.graph_id, session.model_id, session.space_id
    return Certificate(problem.target, below, listed(problem), tree, str(problem.goal), *ids)


def everything_tried(count: int, below: int) -> tuple[int, ...]:
    """The tree that tries every set of fewer than so many edits, each of which costs 1."""

    def subtree(edit: int, left: int) -> list[int]:
        if edit == count or not left:
            return [TRIED]
        return [edit, *subtree(edit + 1, left - 1), *subtree(edit + 1, left)]

    return tuple(subtree(0, below - 1))


# Costs.


def priced(data: Data, lead: float, *costs: float) -> butfor.Session:
    """The class changes when what node 0 hears of falls below ``lead``."""
    space = butfor.EditSpace(costs={(node, 0): cost for node, cost in enumerate(costs, 1)})
    return butfor.prepare(Told(lambda x, e: heard(x, e) - lead), data, directed=True, space=space)


def test_costs_that_are_tiny_count() -> None:
    """Any of the three edges does it, for 1e-12; that is less than 2e-12."""
    session = priced(star(1, 1, 1), 2.5, 1e-12, 1e-12, 1e-12)
    with pytest.raises(Refused, match="further edits are affordable"):
        session.check(claim(session, 2e-12, (TRIED,)))
    assert session.explain(0).cost == 1e-12


def test_small_costs_count_beside_huge_ones() -> None:
    """The first edge does it, for 1e12; that is less than 1e12 + 1."""
    session = priced(star(2, 0.5, 0), 1.5, 1e12, 1, 1)
    tree = (0, TRIED, 1, 2, TRIED, TRIED, 2, TRIED, TRIED)
    with pytest.raises(Refused, match="a set that was tried reaches the goal"):
        session.check(claim(session, 1e12 + 1, tree))
    assert session.explain(0).cost == 1e12


# What is not a number.

HIDDEN: dict[str, Callable[[Tensor], Tensor]] = {
    "compared": lambda h: torch.where(torch.sigmoid(h) >= -1, 1.0, -1.0),
    "compared with itself": lambda h: torch.where((bounded := h.tanh()) == bounded, 1.0, -1.0),
    "tested": lambda h: torch.where(torch.isnan(h.clamp(0, 0)), -1.0, 1.0),
    "below a fraction line": lambda h: torch.where(1 / (1 + h.clamp(0, 1)) > -1, 1.0, -1.0),
}


@pytest.mark.parametrize("hidden", HIDDEN)
def test_nan_within_known_limits(hidden: str) -> None:
    """A mean of nothing is NaN, which a function with known limits hides, and a comparison makes a number again.

    It takes all 24 edges, which is not among the sets that are drawn at random to compare program and model.
    """
    session = butfor.prepare(
        Told(lambda x, e: HIDDEN[hidden](heard(x, e) / heard(torch.ones_like(x), e))), star(*[1.0] * 24), directed=True
    )
    with pytest.raises(Refused, match="said to be bounded and is not"):
        session.check(claim(session, None, (BOUNDED,)))


def test_numbers_too_large_for_single_precision() -> None:
    """exp(100) is infinite in single precision, and infinite less infinite is NaN."""

    def lead(x: Tensor, edge_index: Tensor) -> Tensor:
        large = (3 - heard(x, edge_index)) * 50
        difference = large.exp() - large.exp()
        return torch.where(difference == difference, 1.0, -1.0)

    data = star(1, 1, 1, *[0.0] * 20)
    with torch.no_grad():
        assert Told(lead)(data.x, data.edge_index[:, 2:])[0].argmax() == 0
    session = butfor.prepare(Told(lead), data, directed=True, space=butfor.EditSpace(max_edits=2))
    with pytest.raises(Refused, match="said to be bounded and is not"):
        session.check(claim(session, None, (BOUNDED,)))
    assert session.explain(0, butfor.Exact()).size == 2


# What the neighbourhood shows.


class Triangles(nn.Module):
    """Exactly one triangle counts: two look like none."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.lin = SAGEConv(2, 3), nn.Linear(3, 2)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        dense = x.new_zeros(len(x), len(x))
        dense[edge_index[0], edge_index[1]] = 1
        twice = torch.diagonal(dense @ dense @ dense)[:, None]
        return self.lin(self.conv(x, edge_index).relu() + (twice == 2))


def test_what_no_neighbourhood_can_show_is_not_confirmed() -> None:
    """Every set is tried in the neighbourhood, but the model may read more, so that proves nothing."""
    torch.manual_seed(0)
    square = [(0, 1), (1, 2), (2, 3), (0, 3)]
    ends = torch.tensor(square + [(node, node + 1) for node in range(4, 300)]).T
    data = Data(x=torch.randn(301, 2), edge_index=torch.cat([ends, ends.flip(0)], dim=1))
    session = butfor.prepare(Triangles().eval(), data)
    problem = session.problem(0)
    assert NOT_SHOWN in problem.note
    with pytest.raises(Refused, match="reads no more than the neighbourhood"):
        session.check(claim(session, 3.0, everything_tried(len(problem.edits), 3)))


# Fields that make no sense.

SENSELESS: list[tuple[str, Any]] = [
    ("below", 10**400),
    ("below", math.nan),
    ("below", math.inf),
    ("below", -1),
    ("below", 0),
    ("below", True),
    ("below", "1"),
    ("tree", (-3, TRIED, TRIED)),
    ("tree", (0.0, TRIED, TRIED)),
    ("tree", ("0", TRIED, TRIED)),
    ("tree", (None,)),
    ("tree", (2**70,)),
    ("target", (-1,)),
    ("target", ("0",)),
    ("target", (0.0,)),
    ("target", (True,)),
    ("target", (10**30,)),
    ("edits", (1,)),
    ("goal", None),
]


@pytest.mark.parametrize(("name", "value"), SENSELESS, ids=str)
def test_no_certificate_has_senseless_fields(name: str, value: Any, tmp_path: Path) -> None:
    session = priced(star(1, 1, 1), 2.5)
    right = claim(session, 1.0, (TRIED,))
    session.check(right)
    with pytest.raises(Misfit):
        replace(right, **{name: value})
    path = tmp_path / "proofs.jsonl"
    path.write_text(json.dumps({**right.plain, name: value}))
    with pytest.raises(InputError) as problem:
        list(read_certificates(path))
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize("target", [(), (0, 1), (0, 0), (0, 1, 2), (4,)])
def test_targets_that_are_none(target: tuple[int, ...]) -> None:
    session = priced(star(1, 1, 1), 2.5)
    with pytest.raises(Refused, match="there is no target"):
        session.check(replace(claim(session, 1.0, (TRIED,)), target=target))


def test_a_table_that_would_not_fit_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subjects, "MOST_TOLD", 10)
    subject = Subject.of(priced(star(1, 1, 1), 2.5).problem(0), math.inf)
    assert "a table of" in subject.unbounded
