"""Edges that come: in which directions, what they carry, how they are told, and which pairs may be joined."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Data

import butfor
from butfor.edits.addition import Addition, Within
from butfor.edits.space import EditSpace
from butfor.methods import Exact
from butfor.result.status import Status
from butfor.session import Session
from votes import Votes, WeightedVotes, both, voters


def test_an_added_edge_alone_is_told(star: Data) -> None:
    result = butfor.explain(Votes(), star, 0, space=EditSpace(add=[(4, 0)]))
    assert str(result) == "Node 0 is predicted 'class 1' (1.00). It would be 'class 0' (0.95) with the edge 0–4 added."
    assert result.to_dict()["edits"] == [["add", 0, 4]]
    assert result.status is Status.OPTIMAL


def test_several_added_edges_are_counted_in_the_sentence() -> None:
    data = voters([1.5, -1, -1], [(1, 2)])
    result = butfor.explain(Votes(), data, 0, space=EditSpace(add=[(0, 1), (0, 2)]))
    assert "it would be" in str(result).lower()
    assert str(result).endswith("with these 2 edges (0–1, 0–2) added.")


def test_an_edge_is_added_in_both_directions_of_an_undirected_graph_and_in_one_of_a_directed_one() -> None:
    x = torch.tensor([[1.0], [-3.0]])
    pairs = torch.empty(2, 0, dtype=torch.long)
    for source, target, found in ((1, 0, True), (0, 1, False)):
        space = EditSpace(add=[(source, target)])
        directed = butfor.explain(Votes(), Data(x=x, edge_index=pairs), 0, space=space, directed=True)
        assert directed.found is found
        assert directed.added_edges == (((source, target),) if found else ())
        either = butfor.explain(Votes(), Data(x=x, edge_index=pairs), 0, space=space, directed=False)
        assert either.added_edges == ((0, 1),)


def test_additions_that_carry_nothing_special_have_weight_one() -> None:
    data = voters([1, -0.8, -0.8], [(1, 2)])
    data.edge_weight = torch.full((2,), 9.0)
    both_needed = butfor.explain(WeightedVotes(), data, 0, space=EditSpace(add=[(0, 1), (0, 2)]))
    assert both_needed.added_edges == ((0, 1), (0, 2))
    heavy = EditSpace(add=[(0, 1), (0, 2)], carries={"edge_weight": 2.0})
    result = butfor.explain(WeightedVotes(), data, 0, space=heavy)
    assert result.cost == 1
    assert result.after.probability == pytest.approx(float(torch.tensor([0.6, -0.6]).softmax(0)[0]), abs=1e-5)


def test_additions_carry_the_attributes_that_were_given() -> None:
    data = voters([1, -1, 0], [(1, 2)])
    data.edge_attr = torch.ones(2, 2)
    space = EditSpace(add=[(0, 1)], carries={"edge_attr": [3.0, 0.0]})
    result = butfor.explain(WeightedVotes(), data, 0, space=space)
    assert result.after.probability == pytest.approx(float(torch.tensor([2.0, -2.0]).softmax(0)[0]), abs=1e-5)
    weak = EditSpace(add=[(0, 1)], carries={"edge_attr": [0.5, 9.0]})
    assert butfor.explain(WeightedVotes(), data, 0, space=weak).status is Status.IMPOSSIBLE


# Within.


def joined(data: Data, target: int, rule: Within, rounds: int = 2, directed: bool = False) -> list[tuple[int, int]]:
    """The pairs that may be joined."""
    session = Session.of(Votes(rounds), data, space=EditSpace(add=rule), directed=directed)
    edits = session.problem(target).edits
    return [tuple(pair) for pair in edits.neighbourhood.nodes[edits.added.ends].tolist()]


def test_within_means_all_pairs_of_near_nodes_that_have_no_edge() -> None:
    data = voters([0.0] * 7, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 6)])
    assert sorted(joined(data, 0, Within(hops=1))) == [(1, 6)]
    assert sorted(joined(data, 0, Within(hops=2))) == [(0, 2), (1, 6), (2, 6)]
    # The nearest first: the two pairs at distance 2 before the pair at distance 3.
    assert sorted(joined(data, 0, Within(hops=2, most=2))) == [(0, 2), (1, 6)]


def test_within_means_both_directions_of_a_directed_graph() -> None:
    data = Data(x=torch.zeros(4, 1), edge_index=torch.tensor([[1, 2, 3], [0, 0, 2]]))
    assert sorted(joined(data, 0, Within(hops=1), directed=True)) == [(0, 1), (0, 2), (1, 2), (2, 1)]


@pytest.mark.parametrize("hops", [3, 4, 6])
def test_within_reaches_as_far_as_was_said_even_where_the_model_does_not(hops: int) -> None:
    data = voters([1, 0, 0, -5, 0, 0, 0, 0], [(i, i + 1) for i in range(7)])
    assert (0, 3) in joined(data, 0, Within(hops=hops), rounds=1)


def test_a_proof_counts_all_pairs_that_were_allowed() -> None:
    # 0 is one hop from 1 and two from 2; one round of votes sees one hop. To join 0 and 2 is the cheapest by far.
    data = voters([-1, 1.5, -2], [(0, 1), (1, 2)])
    for space in (EditSpace(add=[(0, 2)], costs={(0, 2): 0.4}), EditSpace(add=Within(hops=2, cost=0.4))):
        result = butfor.explain(Votes(), data, 0, space=space)
        assert (result.added_edges, result.cost, result.status) == (((0, 2),), 0.4, Status.OPTIMAL)


def test_a_cap_on_pairs_is_told_and_kept() -> None:
    many = voters([0.5, 0, 0, 0, 0, 0], [(0, i) for i in range(1, 6)])
    capped = butfor.explain(Votes(), many, 0, space=EditSpace(add=Within(most=4)))
    assert capped.note == "Only the 4 nearest pairs could be joined."
    # Five leaves have ten pairs.
    for most in (10, 11):
        assert butfor.explain(Votes(), many, 0, space=EditSpace(add=Within(most=most))).note == ""
    assert "9 nearest" in butfor.explain(Votes(), many, 0, space=EditSpace(add=Within(most=9))).note


def test_the_cost_of_joining_counts() -> None:
    # 1 votes with 0 and 2; to join 0 and 2 costs less than to part any two.
    data = voters([1, 1, 1, -9], [(0, 1), (1, 2), (2, 3)])
    result = butfor.explain(Votes(2), data, 0, Exact(all_smallest=True), space=EditSpace(add=Within(hops=2, cost=0.4)))
    scores = Votes(2)(data.x, both([(0, 1), (1, 2), (2, 3), (0, 2)]))[0]
    assert int(scores.argmax()) == 0
    assert int(Votes(2)(data.x, data.edge_index)[0].argmax()) == 1
    assert (result.edits, result.cost, result.alternatives) == ((Addition(0, 2),), 0.4, ())
