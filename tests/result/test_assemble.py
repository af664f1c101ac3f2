"""Writing down what holds: every field of a result says what the search and the verification found."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCN, SimpleConv

import butfor
from butfor.edits.deletion import Deletion
from butfor.problem.budget import Budget
from butfor.testing import random_problem


class Sum(torch.nn.Module):
    """Class 1 where the neighbours add up to more than 0."""

    def __init__(self, flow: str = "source_to_target") -> None:
        super().__init__()
        self.layer = SimpleConv("sum", flow=flow)

    def forward(self, x, edge_index):
        total = self.layer(x, edge_index)
        return torch.cat([-total, total], dim=1)


def star(leaves: int) -> Data:
    """Node 0 with this many neighbours, all alike."""
    ends = [(0, leaf) for leaf in range(1, leaves + 1)]
    return Data(x=torch.ones(leaves + 1, 1), edge_index=torch.tensor([*ends, *(end[::-1] for end in ends)]).T)


def test_necessity_is_in_the_order_of_nodes() -> None:
    """Node 9 comes before node 10, which a text would not."""
    data = star(12)
    data.x[1:] = -1.0
    # Without any one of the two the rest is negative.
    data.x[[9, 10]] = 6.5
    result = butfor.explain(Sum(), data, 0, butfor.Exact(all_smallest=True))
    assert result.necessity == ((Deletion(0, 9), 0.5), (Deletion(0, 10), 0.5))


@pytest.mark.parametrize("flow", ["source_to_target", "target_to_source"])
def test_neighbourhood_and_flow_are_written_down(flow: str) -> None:
    result = butfor.explain(Sum(flow), star(3), 0)
    assert result.flow == flow
    assert result.hops == 1
    assert (result.nodes, result.edges) == (4, 3)
    assert result.verified_on == "whole graph"
    deep = butfor.explain(*random_problem(1), 3)
    # Two layers that normalise by degree read the degrees of nodes two hops away.
    assert deep.hops == 3


def test_a_whole_graph_reaches_no_number_of_hops() -> None:
    class Centred(Sum):
        """Reads all nodes."""

        def forward(self, x, edge_index):
            out = super().forward(x, edge_index)
            return out - out.mean(dim=0)

    result = butfor.explain(Centred(), star(3), 0, butfor.Greedy())
    assert result.hops is None
    assert "whole graph was searched" in result.note


def test_nothing_found_was_verified_on_nothing() -> None:
    space = butfor.EditSpace(max_edits=1)
    result = butfor.explain(Sum(), star(3), 0, goal=butfor.Goal(wanted=0), space=space)
    assert (result.status.value, result.after, result.verified_on) == ("impossible", None, None)
    assert (result.edits, result.cost, result.lower_bound) == ((), 0.0, None)


def test_an_optimum_that_rounding_hides_is_still_proved() -> None:
    """0.1 + 0.2 is more than 0.3 to a computer."""
    data = star(2)
    space = butfor.EditSpace(costs={(0, 1): 0.1, (0, 2): 0.2})
    result = butfor.explain(Sum(), data, 0, space=space, goal=butfor.Goal(wanted=0))
    assert result.cost == pytest.approx(0.3)
    assert result.status.value == "optimal"


def test_names_are_those_of_the_nodes_that_are_named() -> None:
    data = star(3)
    data.node_ids = ["hub", "a", "b", "c"]
    data.x[2] = -5.0
    result = butfor.explain(Sum(), data, 0, butfor.Exact(all_smallest=True))
    named = {0, *(node for some in (result.edits, *result.alternatives) for edit in some for node in edit.nodes)}
    assert result.names == tuple((node, data.node_ids[node]) for node in sorted(named))
    assert len(result.names) < 4


def test_what_the_model_could_not_answer_is_counted_in_the_note() -> None:
    class Brittle(Sum):
        """Gives no numbers for a node that has lost an edge."""

        def forward(self, x, edge_index):
            out = super().forward(x, edge_index)
            lonely = torch.bincount(edge_index[1], minlength=len(x)) == 2
            return out.masked_fill(lonely[:, None], float("nan"))

    result = butfor.explain(Brittle(), star(3), 0, butfor.Greedy(), budget=Budget(3))
    assert "On 3 of the edited graphs tried the model failed or gave no numbers" in result.note
    assert result.evaluations == 3


def test_versions_of_what_computed_it() -> None:
    result = butfor.explain(GCN(1, 2, 1, 2).eval(), star(2), 0)
    assert set(result.versions) == {"butfor", "python", "torch", "torch_geometric"}
    assert result.versions["butfor"] == butfor.__version__
