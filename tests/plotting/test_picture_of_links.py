"""Pictures of links: two targets, and a line of its own between them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch_geometric.nn import GCN

import butfor
from butfor import Goal, Pair
from butfor.plotting.excerpt import Excerpt
from butfor.testing import random_problem
from pictures import (
    as_schema_2,
    assert_everything_is_inside,
    collection,
    count,
    ids,
    legend,
    nodes,
    parts,
    places,
    reread,
    texts,
)

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from butfor import Counterfactual

ZERO = Goal(threshold=0.0)


class LinkModel(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gnn = GCN(4, 8, num_layers=2, out_channels=8)

    def forward(self, x: Any, edge_index: Any, edge_label_index: Any) -> Any:
        z = self.gnn(x, edge_index)
        source, target = edge_label_index
        return (z[source] * z[target]).sum(-1)


@pytest.fixture(scope="module")
def link() -> tuple[LinkModel, Data, Counterfactual]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model, data = LinkModel().eval(), random_problem(1, nodes=24, density=0.08)[1]
    known = data.edge_index.T.tolist()
    pairs = torch.tensor([(a, b) for a in range(24) for b in range(a + 1, 24) if [a, b] not in known])
    with torch.no_grad():
        unsure_first = model(data.x, data.edge_index, pairs.T).abs().argsort()
    targets = (Pair(*pair) for pair in pairs[unsure_first].tolist())
    results = (butfor.explain(model, data, target, butfor.Greedy(), goal=ZERO) for target in targets)
    return model, data, next(result for result in results if result.found)


def test_a_link_has_two_ends_and_a_line_of_its_own(link: Any) -> None:
    model, data, result = link
    for figure in (result.plot(), reread(result).plot(data, model)):
        assert_everything_is_inside(figure)
        assert texts(figure)[0] == str(result)
        assert len(collection(figure, "target").get_offsets()) == 2
        assert count(figure, "predicted-link") == 1
        assert count(figure, "removed-edges") == result.size
        assert count(figure, "other-edges") == result.edges - result.size
        assert len(nodes(figure)) == result.nodes
        assert set(map(str, result.target)) <= ids(figure)
        assert len(parts(figure, "nodes")) == 1, "nodes without classes look alike"
        assert legend(figure) == ["ends of the link", "predicted link", "removed edge", "other edge"]
        assert figure.legends[0].get_title().get_text() == ""


def test_the_predicted_link_runs_beside_an_edge_between_the_same_nodes() -> None:
    model, data = LinkModel().eval(), random_problem(1, nodes=24, density=0.08)[1]
    pair = Pair(*data.edge_index[:, 0].tolist())
    figure = butfor.explain(model, data, pair, goal=ZERO).plot()
    (asked,) = collection(figure, "predicted-link").get_segments()
    others = collection(figure, "other-edges").get_segments() + collection(figure, "removed-edges").get_segments()
    gaps = [min(np.abs(asked - line).max(), np.abs(asked - line[::-1]).max()) for line in others]
    assert 3 < min(gaps) < 9, "side by side, not on top of each other"


def test_that_no_link_is_predicted_is_said(link: Any) -> None:
    _, _, result = link
    result = replace(result, before=replace(result.before, label=0, name="not linked"))
    assert "no link predicted" in legend(result.plot())


def test_a_directed_link_has_an_arrow() -> None:
    model, data = LinkModel().eval(), random_problem(1, nodes=30, density=0.06, directed=True)[1]
    figure = butfor.explain(model, data, Pair(0, 7), goal=ZERO).plot()
    assert count(figure, "predicted-link-heads") == 1
    tip = collection(figure, "predicted-link-heads").get_paths()[0].vertices[0]
    assert np.linalg.norm(tip - places(figure)["7"]) < np.linalg.norm(tip - places(figure)["0"])


def test_of_a_large_graph_both_ends_are_shown_and_what_is_nearest() -> None:
    model, data = LinkModel().eval(), random_problem(3, nodes=400, density=0.012)[1]
    result = butfor.explain(model, data, Pair(3, 9), butfor.Greedy(), goal=ZERO)
    figure = result.plot()
    assert len(nodes(figure)) == 100 < result.nodes
    assert len(collection(figure, "target").get_offsets()) == 2
    assert count(figure, "removed-edges") == result.size
    assert "the farthest from the target" in texts(figure)[1]
    assert Excerpt.of(result, result._context.graph, 1).nodes.tolist() in ([3], [9])


def test_a_link_of_schema_2_has_the_same_excerpt() -> None:
    model, data = LinkModel().eval(), random_problem(1, nodes=60, density=0.03)[1]
    pair = Pair(*data.edge_index[:, 0].tolist())
    result = butfor.explain(model, data, pair, butfor.Greedy(), goal=ZERO)
    assert 2 < result.nodes < 60
    new, old = (Excerpt.of(one, result._context.graph, 200) for one in (result, as_schema_2(result)))
    assert old.nodes.tolist() == new.nodes.tolist()
    assert len(new.nodes) == result.nodes
