"""Whole graphs by hand: alone, in lists and batches, without edges, with a bare number for an answer."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.nn import SimpleConv, global_add_pool

import butfor
from butfor.edits.addition import Within
from butfor.edits.change import Features
from butfor.edits.space import EditSpace
from butfor.problem.goal import Goal
from butfor.result.status import Status
from butfor.session import Session
from sampling import sampled
from task_cases import POOLS, AloneGraphModel, EitherGraphModel, GraphModel, random_graph
from votes import both


# Of three pools and three kinds of models `make test` runs each once.
@pytest.mark.parametrize(
    ("pool", "kind"), sampled(itertools.product(POOLS, (GraphModel, AloneGraphModel, EitherGraphModel)), every=4)
)
def test_several_graphs_are_explained_each_as_it_would_be_alone(pool: str, kind: type[GraphModel]) -> None:
    torch.manual_seed(5)
    model = kind("SAGE", pool).eval()
    graphs = [random_graph(seed, directed=False, nodes=4 + seed, edges=3 + seed)[0] for seed in range(4)]
    together = butfor.explain(model, graphs)
    assert [result.target for result in together] == [0, 1, 2, 3]
    for data, result in zip(graphs, together, strict=True):
        alone = butfor.explain(model, data)
        assert alone.target == 0
        assert (alone.edits, alone.before, alone.after, alone.cost) == (
            result.edits,
            result.before,
            result.after,
            result.cost,
        )
        assert (result.nodes, result.task) == (data.num_nodes, "graph")
    assert butfor.explain(model, iter(graphs[:2])) == together[:2]
    assert str(together[2]).startswith("Graph 2 is predicted")


def test_a_graph_without_edges_has_nothing_to_delete_but_something_to_add() -> None:
    data = Data(x=torch.tensor([[1.0], [1.0]]), edge_index=torch.empty(2, 0, dtype=torch.long))

    class Edges(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = SimpleConv("sum")

        def forward(self, x, edge_index, batch):
            total = global_add_pool(self.layer(x, edge_index), batch)
            return torch.cat([1 - total, total], dim=1)

    assert butfor.explain(Edges(), data).status is Status.IMPOSSIBLE
    joined = butfor.explain(Edges(), data, space=EditSpace(add=[(0, 1)]), directed=False)
    assert (joined.added_edges, joined.status) == (((0, 1),), Status.OPTIMAL)
    near = butfor.explain(Edges(), data, space=EditSpace(add=Within()), directed=False)
    assert near.added_edges == ((0, 1),)


def test_of_a_whole_graph_all_nodes_may_be_joined_and_changed() -> None:
    model, data = EitherGraphModel("SAGE", "sum").eval(), Data(x=torch.zeros(5, 3), edge_index=both([(0, 1), (2, 3)]))
    space = EditSpace(add=Within(hops=1), features=Features(columns=[2]))
    edits = Session.of(model, data, task="graph", space=space).problem().edits
    assert {tuple(ends) for ends in edits.added.ends.tolist()} == {
        pair for pair in itertools.combinations(range(5), 2) if pair not in {(0, 1), (2, 3)}
    }
    assert sorted(edits.changes.node.tolist()) == [0, 1, 2, 3, 4]


def test_a_cap_on_pairs_is_told_where_there_are_no_edges() -> None:
    data = Data(x=torch.zeros(4, 3), edge_index=torch.empty(2, 0, dtype=torch.long))
    result = butfor.explain(EitherGraphModel().eval(), data, space=EditSpace(add=Within(most=1)), directed=False)
    assert result.note == "Only the 1 nearest pairs could be joined."


def test_a_model_may_return_a_bare_number_for_a_whole_graph() -> None:
    class Bare(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = SimpleConv("sum")

        def forward(self, x, edge_index):
            return self.layer(x, edge_index).sum()

    data = Data(x=torch.ones(3, 1), edge_index=both([(0, 1), (1, 2)]))
    result = butfor.explain(Bare(), data, goal=Goal(threshold=2.5))
    assert (result.before.value, result.after.value, result.cost) == (4.0, 2.0, 1.0)


def test_graphs_in_a_batch_are_not_taken_for_one_graph() -> None:
    graphs = [random_graph(seed, directed=False)[0] for seed in range(3)]
    model = GraphModel().eval()
    assert butfor.explain(model, Batch.from_data_list(graphs)) == butfor.explain(model, graphs)
