"""Edges that go: all copies and both directions together, groups as one, near the target or far away."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Data

import butfor
from butfor.edits.space import EditSpace
from butfor.predict.batch import EditedBatch
from butfor.result.status import Status
from butfor.session import Session
from method_list import ALL
from votes import Votes, both, voters


def test_a_multi_edge_goes_as_a_whole() -> None:
    data = Data(x=torch.tensor([[-1.0], [1.0]]), edge_index=both([(0, 1), (0, 1), (0, 1)]))
    result = butfor.explain(Votes(), data, 0)
    assert (result.removed_edges, result.cost, result.edges) == (((0, 1),), 1.0, 1)


def test_no_edge_goes_where_none_may_be_deleted(star: Data) -> None:
    space = EditSpace(delete=False, add=[(0, 4)], costs={(0, 4): 40})
    for method in ALL.values():
        result = butfor.explain(Votes(), star, 0, method, space=space)
        assert not result.removed_edges
        assert not result.found or result.cost == 40
    assert butfor.explain(Votes(), star, 0, space=EditSpace(delete=False)).status is Status.IMPOSSIBLE


def test_a_group_is_one_edit_however_many_edges_it_has() -> None:
    data = voters([-1.5, 1, 1, 1], [(0, 1), (0, 2), (0, 3)])
    space = EditSpace(max_edits=1, groups={"two": [(1, 0), (0, 2)]})
    result = butfor.explain(Votes(), data, 0, space=space)
    assert (result.removed_edges, result.size, result.cost) == (((0, 1), (0, 2)), 2, 1.0)
    dear = EditSpace(groups={"two": [(1, 0), (0, 2)]}, costs={"two": 2.5, (0, 3): 0.5})
    assert butfor.explain(Votes(), data, 0, space=dear).cost == 2.5


def test_members_of_a_group_far_away_go_too_and_are_named() -> None:
    # A path 0 to 9; one round of votes sees two hops. The group holds 0–1 and two edges far away.
    data = voters([-0.5, 1, 0, 0, 0, 0, 0, 0, 0, 0], [(i, i + 1) for i in range(9)])
    space = EditSpace(groups={"all": [(0, 1), (6, 5), (8, 9)]}, protected=[(1, 2)])
    problem = Session.of(Votes(), data, space=space).problem(0)
    assert len(problem.edits) == 1
    assert EditedBatch.whole_graph(problem.graph, [(0,)], [(problem.edits, [0])]).edge_index.shape == (2, 12)
    for name in ("exact", "greedy", "random", "remove-ego", "prbcd", "grbcd", "remove-subgraph"):
        result = butfor.explain(Votes(), data, 0, ALL[name], space=space)
        assert result.removed_edges == ((0, 1), (5, 6), (8, 9)), name
        assert (result.cost, result.size) == (1.0, 3)
        for link in ("0–1", "5–6", "8–9"):
            assert link in str(result)
        # The whole graph without them, by hand, says the same.
        kept = data.edge_index[:, [tuple(sorted(e)) not in result.removed_edges for e in data.edge_index.T.tolist()]]
        assert kept.size(1) == 12
        scores = Votes()(data.x, kept)[0]
        assert result.after.label == int(scores.argmax()) == 0
        assert result.after.probability == pytest.approx(float(scores.softmax(0)[0]), abs=1e-6)


def test_a_sentence_does_not_name_more_edges_than_there_are() -> None:
    data = voters([-0.5, 1, 0, 0, 0, 0, 0, 0, 0, 0], [(i, i + 1) for i in range(9)])
    space = EditSpace(groups={"all": [(0, 1), (6, 5), (8, 9)]})
    result = butfor.explain(Votes(), data, 0, space=space)
    # Two of the three are not in the target's neighbourhood.
    assert (result.size, result.edges) == (3, 1)
    assert "But for these 3 edges it would be" in str(result)


def test_a_group_goes_whichever_of_its_members_a_target_sees() -> None:
    data = voters([-0.5, 1, 0, 1, -0.5], [(0, 1), (1, 2), (2, 3), (3, 4)])
    result = butfor.explain(Votes(), data, [0, 4], space=EditSpace(groups=[[(0, 1), (3, 4)]]))
    for one in result:
        assert one.removed_edges == ((0, 1), (3, 4))
        assert one.cost == 1.0
