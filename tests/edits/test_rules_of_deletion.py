"""Edge deletions of a neighbourhood: both directions and all copies go together, and rules say which may go."""

from __future__ import annotations

import pytest

from butfor.edits.edits import pack
from butfor.edits.rules import Rules
from butfor.edits.space import EditSpace
from butfor.errors import InputError
from butfor.graph.graph import Graph
from edge_lists import data_of


def test_edits_join_directions_and_copies_and_leave_self_loops() -> None:
    pairs = [(1, 0), (0, 1), (0, 1), (1, 0), (2, 2), (1, 2), (2, 1)]
    graph = Graph.of(data_of(pairs, 3))
    near = graph.neighbourhood(0, 3)
    edits = Rules.of(EditSpace(), graph).edits(near)
    assert edits.deleted.ends.tolist() == [[0, 1], [1, 2]]
    assert edits.edit_of.tolist() == [0, 0, 0, 0, -1, 1, 1]
    assert sorted(edits.columns([0]).tolist()) == [0, 1, 2, 3]
    assert edits.present(edits.chosen(pack([[], [1], [0, 1]]))).astype(int).tolist() == [
        [1, 1, 1, 1, 1, 1, 1],
        [1, 1, 1, 1, 1, 0, 0],
        [0, 0, 0, 0, 1, 0, 0],
    ]
    one_way = Rules.of(EditSpace(), Graph.of(data_of(pairs, 3), directed=True)).edits(near)
    assert one_way.deleted.ends.tolist() == [[0, 1], [1, 0], [1, 2], [2, 1]]


def test_edit_space_rules() -> None:
    pairs = [(0, 1), (1, 0), (1, 2), (2, 1), (0, 2), (2, 0)]
    graph = Graph.of(data_of(pairs, 3))
    near = graph.neighbourhood(0, 2)
    edits = Rules.of(EditSpace(protected=[(2, 1)], costs={(1, 0): 3.0}), graph).edits(near)
    assert edits.deleted.ends.tolist() == [[0, 1], [0, 2]]
    assert edits.costs.tolist() == [3.0, 1.0]
    assert edits.num_edges == 3
    assert edits.edit_of.tolist() == [0, 0, -1, -1, 1, 1]
    assert Rules.of(EditSpace(allowed=[(2, 0)]), graph).edits(near).deleted.ends.tolist() == [[0, 2]]
    with pytest.raises(InputError, match="node 9 is not in this graph"):
        Rules.of(EditSpace(protected=[(0, 9)]), graph)
    with pytest.raises(InputError, match="cost of edge 0–1 is -1"):
        Rules.of(EditSpace(costs={(0, 1): -1}), graph)
    with pytest.raises(InputError, match="protected names the edge 1–1, which is not in this graph"):
        Rules.of(EditSpace(protected=[(1, 1)]), graph)
