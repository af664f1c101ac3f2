"""Which sets of edits are allowed: not too many, one value for a feature, nothing cut off; and what they cost."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCN

import butfor
from butfor.edits.addition import Addition
from butfor.edits.change import Change, Features
from butfor.edits.deletion import Deletion
from butfor.edits.space import EditSpace
from butfor.methods import Exact, Greedy
from butfor.result.status import Status
from method_list import ALL
from votes import Votes, both, star_of, voters


def test_all_three_kinds_of_edits_are_told_in_one_sentence(star: Data) -> None:
    star.x[4] = -1.5
    space = EditSpace(
        allowed=[(0, 1)], add=[(0, 4)], features=Features(values=[-1.0], nodes=[0]), costs={(4, 0): 0.5, (1, 0): 0.7}
    )
    result = butfor.explain(Votes(), star, 0, space=space)
    assert result.edits == (Deletion(0, 1), Addition(0, 4), Change(0, 0, 0.5, -1.0))
    assert (result.removed_edges, result.added_edges) == (((0, 1),), ((0, 4),))
    assert (result.size, result.cost, result.lower_bound) == (3, 2.2, 2.2)
    assert result.status is Status.OPTIMAL
    assert str(result) == (
        "Node 0 is predicted 'class 1' (1.00). It would be 'class 0' (0.73) without the edge 0–1 and with the edge 0–4 "
        "added and with feature 0 of node 0 at -1 instead of 0.5."
    )


def test_a_feature_has_one_value_at_a_time() -> None:
    # Two changes of one feature would add up to enough, but a feature has only one value.
    data = voters([2, 1], [(0, 1)])
    space = EditSpace(delete=False, features=Features(values=[-0.5, -0.75], nodes=[0]))
    for method in ALL.values():
        assert not butfor.explain(Votes(), data, 0, method, space=space).found
    assert butfor.explain(Votes(), data, 0, space=space).status is Status.IMPOSSIBLE


@pytest.mark.parametrize("method", ALL.values(), ids=ALL)
@pytest.mark.parametrize("most", [1, 2, 3])
def test_no_answer_has_more_edits_than_allowed(method: butfor.methods.Method, most: int) -> None:
    data = voters([-1.5, 1, 1, 1], [(0, 1), (0, 2), (0, 3)])
    result = butfor.explain(Votes(), data, 0, method, space=EditSpace(max_edits=most))
    assert not result.found or result.size <= most
    if isinstance(method, Exact):
        # Two neighbours must go.
        assert result.status is (Status.IMPOSSIBLE if most == 1 else Status.OPTIMAL)


@pytest.mark.parametrize("method", ALL.values(), ids=ALL)
def test_nothing_is_cut_off_where_all_must_stay_connected(method: butfor.methods.Method) -> None:
    # A triangle with a tail: 0–1, 0–2, 1–2, 2–3. Both edges of 0 would have to go.
    data = voters([-1, 1, 1, 0], [(0, 1), (0, 2), (1, 2), (2, 3)])
    assert butfor.explain(Votes(), data, 0).removed_edges in {((0, 1),), ((0, 2),)}
    data.x[0] = -0.5
    assert butfor.explain(Votes(), data, 0).size == 2
    result = butfor.explain(Votes(), data, 0, method, space=EditSpace(keep_connected=True))
    assert not result.found
    assert not isinstance(method, Exact) or result.status is Status.IMPOSSIBLE


def test_an_added_edge_may_keep_together_what_a_deleted_one_parts() -> None:
    # 0 must leave 1; it may then hang on 2, which hangs on 1.
    data = voters([-1, 5, -1], [(0, 1), (1, 2)])
    assert butfor.explain(Votes(), data, 0, space=EditSpace(keep_connected=True)).status is Status.IMPOSSIBLE
    result = butfor.explain(Votes(), data, 0, space=EditSpace(keep_connected=True, add=[(0, 2)]))
    assert result.edits == (Deletion(0, 1), Addition(0, 2))
    assert (result.status, result.lower_bound) == (Status.OPTIMAL, 2.0)


@pytest.mark.parametrize("method", [Exact(), Greedy()], ids=["Exact", "Greedy"])
def test_an_edge_to_another_part_does_not_make_up_for_one_that_is_cut_off(method: butfor.methods.Method) -> None:
    # 0–1 and 2–3 are apart. To change 0 it must leave 1 and join 2, and then 1 is cut off from 0.
    data = voters([0, 3, -1, 0], [(0, 1), (2, 3)])
    data.x[0] = 0.5
    space = EditSpace(keep_connected=True, allowed=[(0, 1)], add=[(0, 2)])
    result = butfor.explain(Votes(), data, 0, method, space=space)
    assert result.removed_edges == ()


@pytest.mark.parametrize("model", ["Votes", "GCN"])
def test_an_added_edge_that_the_model_does_not_see_may_keep_together_what_a_deleted_one_parts(model: str) -> None:
    if model == "Votes":
        # 0 must leave 1. One round of votes at 0 sees nothing of an edge 1–2.
        data = voters([-1, 5, 0], [(0, 1), (0, 2)])
        space = EditSpace(keep_connected=True, add=[(1, 2)])
        result = butfor.explain(Votes(), data, 0, space=space)
        assert int(Votes()(data.x, both([(0, 2), (1, 2)]))[0].argmax()) == 0
        assert result.edits == (Deletion(0, 1), Addition(1, 2))
    else:
        # One layer at 0 sees the degrees of 1 and 2, and of 3 and 4 nothing.
        data = Data(
            x=torch.tensor([[-1.0], [5.0], [-1.0], [0.0], [0.0]]), edge_index=both([(0, 1), (0, 2), (1, 3), (2, 4)])
        )
        gcn = GCN(1, 4, 1, 2).eval()
        with torch.no_grad():
            gcn.convs[0].lin.weight.copy_(torch.tensor([[-1.0], [1.0]]))
            gcn.convs[0].bias.zero_()
        space = EditSpace(keep_connected=True, allowed=[(0, 1)], add=[(3, 4)])
        scores = gcn(data.x, both([(0, 2), (1, 3), (2, 4), (3, 4)]))[0]
        assert int(scores.argmax()) != int(gcn(data.x, data.edge_index)[0].argmax())
        result = butfor.explain(gcn, data, 0, space=space)
        assert result.edits == (Deletion(0, 1), Addition(3, 4))
    assert (result.status, result.cost) == (Status.OPTIMAL, 2.0)


@pytest.mark.parametrize("price", [1e6, 1e9, 1e12])
def test_a_dear_edit_does_not_hide_a_needless_one(price: float) -> None:
    space = butfor.EditSpace(costs={(0, 1): price})
    result = butfor.explain(Votes(), star_of(-1.0, 2.0, 0.3, 0.3), 0, butfor.Exact(all_smallest=True), space=space)
    assert result.edits == (Deletion(0, 1),)
    assert result.alternatives == ()
