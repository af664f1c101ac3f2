"""Features that change: to which values, of which nodes, at what cost."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Data

import butfor
from butfor.edits.change import Change, Features
from butfor.edits.deletion import Deletion
from butfor.edits.space import EditSpace
from butfor.errors import InputError
from butfor.methods import Exact
from butfor.result.status import Status
from butfor.session import Session
from votes import Votes, both, star_of, voters


def test_flipped_features_and_those_between_two_ends() -> None:
    data = Data(x=torch.tensor([[0.0, 4.0], [1.0, 4.0]]), edge_index=both([(0, 1)]))
    flips = butfor.explain(
        Votes(), data, 0, Exact(all_smallest=True), space=EditSpace(features=Features(within=1, columns=[0]))
    )
    assert {flips.edits, *flips.alternatives} == {(Deletion(0, 1),), (Change(1, 0, 1.0, 0.0),)}
    rule = Features(between=(-2.0, 2.0), steps=9, columns=[0], within=0)
    tried = Session.of(Votes(), data, space=EditSpace(features=rule)).problem(0).edits.changes
    # 0 is what it has.
    assert tried.after.tolist() == [-2.0, -1.5, -1.0, -0.5, 0.5, 1.0, 1.5, 2.0]
    result = butfor.explain(Votes(), data, 0, Exact(all_smallest=True), space=EditSpace(delete=False, features=rule))
    # At -1 it is a tie, and class 0 wins a tie.
    assert {some[0].after for some in (result.edits, *result.alternatives)} == {-2.0, -1.5, -1.0}
    assert result.edits == (Change(0, 0, 0.0, -2.0),)


def test_features_change_at_the_target_unless_it_is_said_where() -> None:
    data = Data(x=torch.ones(4, 2), edge_index=both([(0, 1), (1, 2), (2, 3)]))

    def nodes(**rule: object) -> set[int]:
        space = EditSpace(features=Features(values=[5.0], **rule))
        edits = Session.of(Votes(2), data, space=space).problem(0).edits
        return set(edits.neighbourhood.nodes[edits.changes.node].tolist())

    assert nodes() == {0}
    assert nodes(within=1) == {0, 1}
    assert nodes(within=2) == {0, 1, 2}
    assert nodes(nodes=[2]) == {2}


def test_an_edge_that_may_be_added_does_not_bring_features_nearer() -> None:
    data = Data(x=torch.ones(8, 1), edge_index=both((i, i + 1) for i in range(7)))
    space = EditSpace(add=[(0, 7)], features=Features(values=[5.0], within=1))
    edits = Session.of(Votes(2), data, space=space).problem(0).edits
    assert set(edits.neighbourhood.nodes[edits.changes.node].tolist()) == {0, 1}


@pytest.mark.parametrize(
    "features",
    [Features(values=[-9.0, -9.0]), [Features(values=[-9.0]), Features(values=[-9.0, 3.0])]],
    ids=["in one rule", "in two rules"],
)
def test_a_value_that_is_given_twice_is_one_edit(features: object) -> None:
    space = EditSpace(delete=False, features=features)
    result = butfor.explain(Votes(), voters([2, 1], [(0, 1)]), 0, Exact(all_smallest=True), space=space)
    assert (result.edits, result.alternatives) == ((Change(0, 0, 2.0, -9.0),), ())


def test_a_value_in_two_rules_has_the_lower_cost() -> None:
    rules = [Features(values=[-9.0], cost=3.0), Features(values=[-9.0], cost=2.0)]
    space = EditSpace(delete=False, features=rules)
    result = butfor.explain(Votes(), voters([2, 1], [(0, 1)]), 0, space=space)
    assert (result.cost, result.status) == (2.0, Status.OPTIMAL)


class Rounded(Votes):
    def forward(self, x, edge_index):
        return super().forward(x.float(), edge_index)


def test_whole_numbers_are_set_to_whole_numbers() -> None:
    data = star_of(-1.0, 2.0)
    data.x = data.x.long()
    with pytest.raises(InputError, match="whole numbers and cannot be set to"):
        butfor.explain(Rounded(), data, 0, space=butfor.EditSpace(features=butfor.Features(values=[1.5])))
