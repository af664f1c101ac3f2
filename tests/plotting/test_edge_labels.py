"""Edge attributes beside the edges of a picture."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import torch
from torch_geometric.data import HeteroData
from torch_geometric.nn import SAGEConv, to_hetero

import butfor
from butfor import Addition, Deletion
from butfor.errors import InputError
from butfor.plotting.edge_labels import edge_labels
from butfor.plotting.excerpt import Excerpt
from butfor.plotting.picture import draw
from pictures import assert_everything_is_inside, both_ways, look_of, words

if TYPE_CHECKING:
    from collections.abc import Callable

    from butfor import Counterfactual
    from butfor.plotting.appearance import Appearance

    Make = Callable[..., Counterfactual]

STAR = [(0, i) for i in range(1, 6)]


def labels(result: Counterfactual, look: Appearance, name: str) -> dict[tuple[int, ...], str]:
    excerpt = Excerpt.of(result, look.graph, 200)
    found = edge_labels(look.graph, excerpt, name)
    return {tuple(excerpt.nodes[excerpt.pairs[line]].tolist()): label for line, label in found.items()}


def test_all_edges_have_labels_where_they_are_few(result_of: Make) -> None:
    look = look_of(both_ways(STAR), 6)
    look.graph.data.amount = torch.tensor([10.0, 2.5, 1234567.0, 0.1, -3.0] * 2)
    result = result_of(0, [(0, 1)], look)
    expected = {(0, 1): "10", (0, 2): "2.5", (0, 3): "1234567", (0, 4): "0.1", (0, 5): "-3"}
    assert labels(result, look, "amount") == expected
    figure = draw(result, look, edge_labels="amount")
    assert sorted(words(figure, "edge-label")) == sorted(expected.values())
    assert words(draw(result, look), "edge-label") == []
    assert_everything_is_inside(figure)


def test_only_edits_have_labels_where_edges_are_many(result_of: Make) -> None:
    look = look_of(both_ways([(0, i) for i in range(1, 50)]), 50)
    look.graph.data.amount = torch.arange(98) % 49
    assert labels(result_of(0, [(0, 7), (0, 30)], look), look, "amount") == {(0, 7): "6", (0, 30): "29"}


def test_copies_and_directions_with_other_values_are_told(result_of: Make) -> None:
    look = look_of([(1, 0), (1, 0), (0, 1), (2, 0), (2, 0), (2, 0), (2, 0)], 3, directed=True)
    look.graph.data.amount = torch.tensor([1, 2, 5, 1, 2, 3, 4])
    assert labels(result_of(0, [(1, 0)], look), look, "amount") == {(1, 0): "1, 2", (0, 1): "5", (2, 0): "1, 2, 3, …"}
    look = look_of([(0, 1), (1, 0)], 2, directed=False)
    look.graph.data.amount = torch.tensor([[1.0], [2.0]])
    assert labels(result_of(0, [(0, 1)], look), look, "amount") == {(0, 1): "1, 2"}


def test_an_added_edge_has_no_value(result_of: Make) -> None:
    look = look_of(both_ways(STAR), 6)
    look.graph.data.amount = torch.arange(10) % 5
    result = replace(result_of(0, [(0, 1)], look), edits=(Deletion(0, 1), Addition(1, 2)))
    assert (1, 2) not in labels(result, look, "amount")


def test_an_attribute_that_is_none_is_refused(result_of: Make) -> None:
    look = look_of(both_ways(STAR), 6)
    look.graph.data.amount = torch.ones(10)
    look.graph.data.table = torch.ones(10, 3)
    look.graph.data.short = torch.ones(3)
    result = result_of(0, [(0, 1)], look)
    with pytest.raises(InputError, match=r"edge attribute 'price', which this graph has not \(it has amount, table\)"):
        draw(result, look, edge_labels="price")
    with pytest.raises(InputError, match="table"):
        draw(result, look, edge_labels="table")
    with pytest.raises(InputError, match="short"):
        draw(result, look, edge_labels="short")


class Layers(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.only = SAGEConv((-1, -1), 2)

    def forward(self, x, edge_index):
        return self.only(x, edge_index)


def test_in_a_typed_graph_the_relations_that_have_it() -> None:
    data = HeteroData()
    data["user"].x, data["item"].x = torch.randn(3, 2), torch.randn(2, 2)
    data["user", "buys", "item"].edge_index = torch.tensor([[0, 1, 2], [0, 0, 1]])
    data["user", "buys", "item"].amount = torch.tensor([5, 6, 7])
    data["user", "sees", "item"].edge_index = torch.tensor([[0, 1], [0, 0]])
    data["item", "rev_buys", "user"].edge_index = data["user", "buys", "item"].edge_index.flip(0)
    model = to_hetero(Layers(), data.metadata()).eval()
    with torch.no_grad():
        model(data.x_dict, data.edge_index_dict)
    result = butfor.explain(model, data, 0, node_type="item")
    relations = ("user", "buys", "item"), ("user", "sees", "item")
    edits = (Deletion(0, 0, relations[0]), Deletion(1, 0, relations[1]))
    figure = replace(result, after=result.before, edits=edits).plot(edge_labels="amount")
    assert sorted(words(figure, "edge-label")) == ["6", "buys 5", "sees"]  # all of so small a neighbourhood
    with pytest.raises(InputError, match="no attribute of any relation"):
        result.plot(edge_labels="price")
