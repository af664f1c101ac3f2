"""`Counterfactual.plot`: the picture that fits a result, drawn with its own graph or with one that is given."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch_geometric.nn import GCN, global_mean_pool

import butfor
from butfor import Addition, Change, Counterfactual, Deletion
from butfor.errors import InputError
from butfor.plotting.appearance import Appearance
from butfor.plotting.picture import draw
from butfor.result.status import Status
from butfor.testing import random_problem
from molecule_samples import nitromethane
from pictures import assert_everything_is_inside, collection, count, ids, legend, nodes, reread, texts, words

if TYPE_CHECKING:
    from torch_geometric.data import Data


class GraphModel(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gnn = GCN(4, 8, num_layers=2, out_channels=8)
        self.last = torch.nn.Linear(8, 2)

    def forward(self, x: Any, edge_index: Any, batch: Any = None) -> Any:
        return self.last(global_mean_pool(self.gnn(x, edge_index).relu(), batch))


# Nodes.


def test_a_result_from_a_file_is_drawn_alike_with_its_graph_and_model() -> None:
    model, data = random_problem(3, nodes=30, density=0.08)
    result = butfor.explain(model, data, 4, butfor.Greedy())
    assert result.nodes < 30
    figures = [result.plot(), reread(result).plot(data, model)]
    drawn = [(texts(figure), legend(figure), sorted(ids(figure)), nodes(figure).tolist()) for figure in figures]
    assert drawn[0] == drawn[1]
    for given in ((), (data,), (None, model)):
        with pytest.raises(InputError, match=r"give plot\(\) the graph and the model"):
            reread(result).plot(*given)


def test_nodes_are_called_by_ids_of_their_own() -> None:
    model, data = random_problem(0, nodes=6, density=0.5)
    data.node_ids = ["ann", "bob", "cy", "dee", "eve", "fay"]
    result = next(result for result in butfor.explain(model, data, range(6)) if result.found)
    figure = result.plot()
    assert ids(figure)
    assert ids(figure) <= set(data.node_ids)
    assert f"node {data.node_ids[int(result.target)]}, the target" in legend(figure)


# Whole graphs.


def graph_result(num_nodes: int = 25, density: float = 0.1) -> tuple[GraphModel, list[Data], Counterfactual]:
    """Graph 1 of three, by a model that is not sure of it."""
    model = GraphModel().eval()
    graphs = [random_problem(seed, nodes=num_nodes, density=density)[1] for seed in range(3)]
    with torch.no_grad():
        model.last.bias -= model(graphs[1].x, graphs[1].edge_index)[0] - torch.tensor([0.001, 0.0])
    return model, graphs, butfor.explain(model, graphs, method=butfor.Greedy())[1]


def test_a_whole_graph_has_no_target() -> None:
    model, graphs, result = graph_result()
    assert result.found
    data = graphs[int(result.target)]
    for figure in (result.plot(), reread(result).plot(data, model)):
        assert_everything_is_inside(figure)
        assert texts(figure)[0].startswith(f"Graph {result.target} is predicted")
        assert len(nodes(figure)) == data.num_nodes
        assert len(collection(figure, "target").get_offsets()) == 0
        assert count(figure, "removed-edges") == result.size
        assert legend(figure) == ["removed edge", "other edge"]


def test_one_graph_is_not_mistaken_for_another() -> None:
    model, graphs, result = graph_result()
    with pytest.raises(InputError, match=f"this is not graph {result.target} as it was explained"):
        reread(result).plot(graphs[int(result.target) - 1], model)


def test_a_large_graph_is_trimmed_around_its_edits() -> None:
    _, graphs, result = graph_result(num_nodes=260, density=0.012)
    edge = tuple(graphs[1].edge_index[:, -1].tolist())
    look = Appearance(result._context)
    plain = draw(replace(result, after=None, edits=()), look)
    assert "Not shown: 160 of 260 nodes" in texts(plain)[1]
    assert "the farthest from the node with the most edges" in texts(plain)[1]
    figure = draw(replace(result, after=result.before, edits=(Deletion(*edge),)), look, max_nodes=90)
    assert ids(figure) == set(map(str, edge))
    assert "the farthest from the edits" in texts(figure)[1]
    assert len(nodes(figure)) == 90


# Molecules.


def test_a_molecule_is_drawn_as_one() -> None:
    model, data = GraphModel().eval(), nitromethane()
    result = butfor.explain(model, data)
    edits = (Deletion(0, 1), Addition(2, 3))
    found = {"status": Status.FOUND, "after": result.before, "cost": 2.0, "lower_bound": 1.0, "note": ""}
    edited = replace(result, edits=edits, names=((0, "C0"), (1, "N1")), **found)
    for figure in (edited.plot(), reread(edited).plot(data, model)):
        assert texts(figure) == [str(edited), edited.verdict]
        assert legend(figure) == ["removed bond", "added bond", "ground truth"]
        assert count(figure, "truth-bonds") == 2
        assert sorted(words(figure, "atom")) == ["N", "O", "O"]
        # The double bond is two lines; that of the removed bond stands apart.
        assert count(figure, "bonds") == 3


def test_a_molecule_with_changed_features_is_a_graph() -> None:
    model, data = GraphModel().eval(), nitromethane()
    result = butfor.explain(model, data)
    figure = replace(result, after=result.before, edits=(Change(1, 2, 0.0, 1.0),)).plot()
    assert ids(figure) == set(data.node_ids)
    assert legend(figure) == ["changed feature", "other edge"]


def test_a_node_of_a_molecule_is_drawn_in_a_graph() -> None:
    model, data = GCN(4, 8, num_layers=2, out_channels=3).eval(), nitromethane()
    figure = butfor.explain(model, data, 1).plot()
    assert "node N1, the target" in legend(figure)
    assert words(figure, "atom") == []
