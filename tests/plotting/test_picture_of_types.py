"""Pictures of graphs of several types: nodes look like their type, and removed edges name their relation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import HeteroData
from torch_geometric.nn import SAGEConv, to_hetero

import butfor
from butfor import Deletion
from butfor.errors import InputError
from butfor.plotting.appearance import Appearance
from butfor.plotting.excerpt import Excerpt
from butfor.plotting.picture import draw
from pictures import assert_everything_is_inside, collection, count, legend, nodes, parts, reread, words


class Layers(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = SAGEConv((-1, -1), 8), SAGEConv((-1, -1), 3)

    def forward(self, x: Any, edge_index: Any) -> Any:
        return self.second(self.first(x, edge_index).relu(), edge_index)


def typed(data: HeteroData) -> torch.nn.Module:
    model = to_hetero(Layers(), data.metadata()).eval()
    with torch.no_grad():
        model(data.x_dict, data.edge_index_dict)
    return model


def library(*, both_ways: bool) -> HeteroData:
    data = HeteroData()
    for kind, number, width in (("paper", 14, 4), ("author", 9, 5), ("venue", 3, 3)):
        data[kind].x = torch.randn(number, width)

    def pairs(first: int, second: int, number: int) -> Any:
        return torch.unique(torch.stack([torch.randint(first, (number,)), torch.randint(second, (number,))]), dim=1)

    data["author", "writes", "paper"].edge_index = pairs(9, 14, 20)
    data["author", "reviews", "paper"].edge_index = pairs(9, 14, 12)
    cites = pairs(14, 14, 12)
    data["paper", "cites", "paper"].edge_index = torch.cat([cites, cites.flip(0)], dim=1) if both_ways else cites
    data["paper", "in", "venue"].edge_index = torch.stack([torch.arange(14), torch.randint(3, (14,))])
    for source, name, target in list(data.edge_types):
        if source != target:
            data[target, f"rev_{name}", source].edge_index = data[source, name, target].edge_index.flip(0)
    return data


@pytest.mark.parametrize("both_ways", [False, True])
def test_nodes_look_like_their_type(both_ways: bool) -> None:
    data = library(both_ways=both_ways)
    model = typed(data)
    results = butfor.explain(model, data, range(14), butfor.Greedy(), node_type="paper")
    found = [result for result in results if result.found]
    assert found
    for result in found[:4]:
        for figure in (result.plot(), reread(result).plot(data, model)):
            assert_everything_is_inside(figure)
            assert figure.legends[0].get_title().get_text() == "node type"
            assert legend(figure)[:4] == ["paper", "author", "venue", ""]
            assert legend(figure)[4] == f"paper {result.target}, the target"
            assert len(nodes(figure)) == result.nodes
            assert count(figure, "removed-edges") == result.size
            assert count(figure, "removed-edges") + count(figure, "other-edges") == result.edges
            assert len({item.get_paths()[0].vertices.tobytes() for item in parts(figure, "nodes")}) == 3
            relations = [edit.relation[1] for edit in result.edits]
            assert sorted(words(figure, "relation")) == sorted(relations)
            assert "paper" in words(figure, "type")


def test_removed_edges_are_those_of_their_relation() -> None:
    data = HeteroData()
    data["author"].x, data["paper"].x = torch.randn(2, 3), torch.randn(2, 3)
    for name in ("writes", "reviews"):
        data["author", name, "paper"].edge_index = torch.tensor([[0, 1], [1, 1]])
        data["paper", f"rev_{name}", "author"].edge_index = torch.tensor([[1, 1], [0, 1]])
    data["paper", "cites", "paper"].edge_index = torch.tensor([[0, 1], [1, 0]])
    result = butfor.explain(typed(data), data, 1, node_type="paper")
    look = Appearance(result._context)
    edited = replace(result, after=result.before, edits=(Deletion(0, 1, ("author", "reviews", "paper")),))
    excerpt = Excerpt.of(edited, look.graph, 200)
    (at,) = np.flatnonzero(excerpt.removed)
    assert look.graph.types.relations[excerpt.relation[at]] == ("author", "reviews", "paper")
    assert [look.full_name(node) for node in excerpt.nodes[excerpt.pairs[at]]] == ["author 0", "paper 1"]
    figure = draw(edited, look)
    (gone,) = collection(figure, "removed-edges").get_segments()
    others = collection(figure, "other-edges").get_segments()
    assert min(np.abs(gone - line).max() for line in others) > 2, "the other relation runs beside it"
    # Cites is its own reverse: one line, without an arrow.
    assert len(others) == count(figure, "other-edges-heads") + 1
    with pytest.raises(InputError, match="0–0 is not in this graph"):
        draw(replace(edited, edits=(Deletion(0, 0, ("author", "writes", "paper")),)), look)
