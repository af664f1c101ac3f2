"""Rules in odd shapes, costs far apart, and targets that show nothing of the model."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import SimpleConv

import butfor
from butfor.edits.deletion import Deletion
from butfor.errors import InputError


class Votes(torch.nn.Module):
    """A node's value and those of its neighbours, added up: class 1 if they are above 0."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = SimpleConv("add", combine_root="sum")

    def forward(self, x, edge_index):
        total = self.layer(x, edge_index)
        return torch.cat([-total, total], dim=1)


def star(*values: float) -> Data:
    leaves = torch.arange(1, len(values))
    there = torch.stack([leaves, torch.zeros_like(leaves)])
    return Data(x=torch.tensor(values)[:, None], edge_index=torch.cat([there, there.flip(0)], dim=1))


@pytest.mark.parametrize(
    "protected",
    [
        lambda: [(0, 1)],
        lambda: zip([0], [1], strict=True),
        lambda: np.array([[0, 1]]),
        lambda: torch.tensor([[0, 1]]),
        lambda: [np.array([0, 1])],
    ],
)
def test_rules_may_be_lists_iterators_or_arrays(protected) -> None:
    space = butfor.EditSpace(protected=protected())
    assert butfor.explain(Votes(), star(-1.0, 2.0, 0.3, 0.3), 0, space=space).status.value == "impossible"


def test_allowed_and_added_edges_may_be_iterators() -> None:
    data = star(-1.0, 2.0, 0.3, 0.3)
    assert butfor.explain(Votes(), data, 0, space=butfor.EditSpace(allowed=zip([0], [1], strict=True))).size == 1
    lonely = Data(x=torch.tensor([[1.0], [-2.0]]), edge_index=torch.empty(2, 0, dtype=torch.long))
    assert butfor.explain(Votes(), lonely, 0, space=butfor.EditSpace(add=zip([0], [1], strict=True))).size == 1


def test_a_group_with_a_self_loop_is_refused() -> None:
    data = star(-1.0, 2.0)
    data.edge_index = torch.cat([data.edge_index, torch.zeros(2, 1, dtype=torch.long)], dim=1)
    for rule in ({"groups": {"g": [(0, 0), (0, 1)]}}, {"allowed": [(0, 0)]}, {"protected": [(0, 0)]}):
        with pytest.raises(InputError, match="self-loop 0–0; a self-loop is never deleted"):
            butfor.explain(Votes(), data, 0, space=butfor.EditSpace(**rule))


@pytest.mark.parametrize("price", [1e6, 1e9, 1e12])
def test_a_dear_edit_does_not_hide_a_needless_one(price: float) -> None:
    space = butfor.EditSpace(costs={(0, 1): price})
    result = butfor.explain(Votes(), star(-1.0, 2.0, 0.3, 0.3), 0, butfor.Exact(all_smallest=True), space=space)
    assert result.edits == (Deletion(0, 1),)
    assert result.alternatives == ()


class Rounded(Votes):
    def forward(self, x, edge_index):
        return super().forward(x.float(), edge_index)


def test_whole_numbers_are_set_to_whole_numbers() -> None:
    data = star(-1.0, 2.0)
    data.x = data.x.long()
    with pytest.raises(InputError, match="whole numbers and cannot be set to"):
        butfor.explain(Rounded(), data, 0, space=butfor.EditSpace(features=butfor.Features(values=[1.5])))


class HalfByHand(torch.nn.Module):
    """A round by hand, which is not counted, and one that is."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = SimpleConv("add")

    def forward(self, x, edge_index):
        hidden = (x + torch.zeros_like(x).index_add(0, edge_index[1], x[edge_index[0]])).relu()
        total = self.layer(hidden, edge_index) + 0.1 * x
        return torch.cat([-total, total], dim=1)


def test_targets_without_edges_prove_nothing_about_the_model() -> None:
    edges = torch.tensor([[0, 1, 1], [1, 2, 3]])
    x = torch.tensor([[-1.0], [-0.5], [-6.0], [6.0], [1.0], [1.0]])
    data = Data(x=x, edge_index=torch.cat([edges, edges.flip(0)], dim=1))
    alone = butfor.explain(HalfByHand(), data, 0)
    among = butfor.explain(HalfByHand(), data, [4, 5, 0])[2]
    assert (alone.status, alone.edits) == (among.status, among.edits)
    assert alone.removed_edges == ((1, 2),)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: butfor.EditSpace(protected=(0, 1)), "protected names 0, which is no edge"),
        (lambda: butfor.EditSpace(add=[(0, 4.0)]), "4.0 is not a node"),
        (lambda: butfor.EditSpace(add=True), "add is True; give a list"),
        (lambda: butfor.EditSpace(costs={3: 2}), "costs names 3, which is no edge"),
        (lambda: butfor.EditSpace(features="flip"), "features is 'flip'"),
        (lambda: butfor.Features(between=(0, 1), steps=3.5), "steps is 3.5"),
        (lambda: butfor.Features(between=("a", "b")), "between is"),
        (lambda: butfor.explain(Votes(), star(1.0, 2.0), 0, space={"delete": False}), "give a butfor.EditSpace"),
        (lambda: butfor.explain(Votes(), star(1.0, 2.0), 0, goal=1), "give a butfor.Goal"),
        (lambda: butfor.explain(Votes(), star(1.0, 2.0), 0, goal=butfor.Goal(wanted="x")), "'x' is no class"),
        (lambda: butfor.explain(Votes(), star(1.0, 2.0), 0, goal=butfor.Goal(least="a")), "least of the goal is 'a'"),
    ],
)
def test_rules_of_the_wrong_kind_are_refused(make, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
