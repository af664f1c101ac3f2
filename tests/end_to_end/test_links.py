"""Links by hand: which edges make a model predict one, or would."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import SimpleConv

import butfor
from butfor.edits.addition import Within
from butfor.edits.space import EditSpace
from butfor.methods import Exact
from butfor.problem.goal import Goal
from butfor.problem.target import Pair
from butfor.result.status import Status
from task_cases import CommonNeighbours
from votes import both


class ForwardCommonNeighbours(CommonNeighbours):
    """The same in one call."""

    def forward(self, x, edge_index, edge_label_index):
        return self.decode(self.encode(x, edge_index), edge_label_index)


@pytest.mark.parametrize("kind", [CommonNeighbours, ForwardCommonNeighbours])
@pytest.mark.parametrize("sigmoid", [False, True], ids=["logits", "probabilities"])
def test_edges_but_for_which_a_link_would_not_be_predicted(kind: type[CommonNeighbours], sigmoid: bool) -> None:
    # 0 and 1 have 2 and 3 in common; 4 is only of 0.
    data = Data(x=torch.eye(5), edge_index=both([(0, 2), (1, 2), (0, 3), (1, 3), (0, 4)]))
    goal = Goal(threshold=0.5 if sigmoid else 0.0)
    result = butfor.explain(kind(sigmoid), data, Pair(0, 1), Exact(all_smallest=True), goal=goal)
    assert (result.before.name, result.after.name) == ("linked", "not linked")
    sets = [frozenset((edit.source, edit.target) for edit in some) for some in (result.edits, *result.alternatives)]
    assert len(sets) == 4
    assert set(sets) == {frozenset(some) for some in itertools.product([(0, 2), (1, 2)], [(0, 3), (1, 3)])}
    expected = [1.5, -0.5] if not sigmoid else torch.tensor([1.5, -0.5]).sigmoid().tolist()
    assert [result.before.value, result.after.value] == pytest.approx(expected, abs=1e-6)
    assert result.before.probability is None
    value = f"{expected[0]:.2f}"
    assert str(result).startswith(
        f"Link 0–1 is predicted 'linked' ({value}). But for these 2 of its 5 edges it would be"
    )


@pytest.mark.parametrize("kind", [CommonNeighbours, ForwardCommonNeighbours])
def test_a_link_that_would_be_predicted_with_another_edge(kind: type[CommonNeighbours]) -> None:
    # 4 has a neighbour, and 0 has none: there is nothing to delete that would link them.
    data = Data(x=torch.eye(5), edge_index=both([(4, 3), (1, 2)]))
    goal = Goal(threshold=0.0)
    assert butfor.explain(kind(), data, Pair(0, 4), goal=goal).status is Status.IMPOSSIBLE
    result = butfor.explain(kind(), data, Pair(0, 4), goal=goal, space=EditSpace(add=[(0, 3), (0, 1), (2, 0)]))
    assert (result.before.name, result.after.name, result.added_edges) == ("not linked", "linked", ((0, 3),))
    assert (
        str(result)
        == "Link 0–4 is predicted 'not linked' (-0.50). It would be 'linked' (0.50) with the edge 0–3 added."
    )
    # Any pair near the two will do as well as a given one.
    near = butfor.explain(kind(), data, Pair(0, 4), Exact(all_smallest=True), goal=goal, space=EditSpace(add=Within(1)))
    assert near.added_edges == ((0, 3),)


def test_the_direction_of_a_link_counts_in_a_directed_graph() -> None:
    class Follows(torch.nn.Module):
        """Whether the second node gets a message from a node that is marked, and the first does not matter."""

        def __init__(self) -> None:
            super().__init__()
            self.layer = SimpleConv("sum")

        def forward(self, x, edge_index, edge_label_index):
            got = self.layer(x, edge_index)[:, 0]
            return got[edge_label_index[1]] - 0.25 * got[edge_label_index[0]]

    data = Data(x=torch.tensor([[0.0], [0.0], [1.0]]), edge_index=torch.tensor([[2], [1]]))
    there, back = butfor.explain(Follows(), data, [Pair(0, 1), Pair(1, 0)], goal=Goal(threshold=0.5))
    assert (there.before.name, there.removed_edges, there.target) == ("linked", ((2, 1),), (0, 1))
    assert (back.before.name, back.status, back.target) == ("not linked", Status.IMPOSSIBLE, (1, 0))
    assert str(there).startswith("Link 0→1 is predicted 'linked' (1.00)")
    assert (there.before.value, back.before.value) == (1.0, -0.25)


def test_the_link_itself_is_an_edge_like_any_other() -> None:
    # With a loop at each node, the edge 0–1 is what the two have in common.
    data = Data(x=torch.eye(3), edge_index=torch.cat([both([(0, 1)]), torch.tensor([[0, 1], [0, 1]])], dim=1))
    result = butfor.explain(CommonNeighbours(), data, Pair(0, 1), goal=Goal(threshold=0.0))
    assert (result.removed_edges, result.before.value, result.after.value) == (((0, 1),), 1.5, -0.5)
