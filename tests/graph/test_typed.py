"""Graphs of several types: which edges are one, and what rules may name; answers that can be read off."""

from __future__ import annotations

import json

import pytest
import torch
from torch_geometric.data import HeteroData
from torch_geometric.nn import SimpleConv
from torch_geometric.transforms import ToUndirected

import butfor
from butfor.edits.addition import Within
from butfor.edits.change import Features
from butfor.edits.deletion import Deletion
from butfor.edits.space import EditSpace
from butfor.errors import InputError
from butfor.methods import Exact
from butfor.result.status import Status
from butfor.session import Session
from method_list import ALL
from typed_cases import CITES, WRITES, build, library


class Votes(torch.nn.Module):
    """Class 1 where what a user and its neighbours of every kind say adds up to more than 0."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = SimpleConv("sum")

    def forward(self, x_dict, edge_index_dict):
        total = x_dict["user"].clone()
        for (source, _, target), edge_index in edge_index_dict.items():
            if target == "user":
                total = total + self.layer((x_dict[source], x_dict["user"]), edge_index)
        return torch.cat([-total, total], dim=1)


def shop(**relations: list[tuple[int, int]]) -> HeteroData:
    """User 0 says -1, items say 2; relations from users to items, each with its reverse."""
    data = HeteroData()
    data["user"].x, data["item"].x = torch.tensor([[-1.0], [0.0]]), torch.full((3, 1), 2.0)
    for name, pairs in relations.items():
        data["user", name, "item"].edge_index = torch.tensor(pairs).T.contiguous()
    return ToUndirected()(data)


def test_an_edge_and_its_reverse_are_one_edit() -> None:
    data = shop(buys=[(0, 1), (1, 2)])
    result = butfor.explain(Votes(), data, 0, node_type="user")
    buys = ("user", "buys", "item")
    assert result.edits == (Deletion(0, 1, buys),)
    assert (result.cost, result.edges, result.status) == (1.0, 1, Status.OPTIMAL)
    assert str(result) == (
        "User 0 is predicted 'class 1' (0.88). But for this 1 of its 1 edges it would be 'class 0' (0.88): "
        "user 0 → item 1 (buys)."
    )
    # The model reads only the reverse, so that must be gone too; named either way, it is the same edge.
    for edge in ((buys, 0, 1), (("item", "rev_buys", "user"), 1, 0)):
        kept = butfor.explain(Votes(), data, 0, node_type="user", space=EditSpace(protected=[edge]))
        assert kept.status is Status.IMPOSSIBLE
        dear = butfor.explain(Votes(), data, 0, node_type="user", space=EditSpace(costs={edge: 2.5}))
        assert (dear.cost, dear.edits) == (2.5, result.edits)


def test_relations_with_the_same_edges_keep_their_own_reverses() -> None:
    data = shop(buys=[(0, 1)], views=[(0, 1)])
    result = butfor.explain(Votes(), data, 0, Exact(all_smallest=True), node_type="user")
    # Two items say 2 each and user 0 says -1: both edges must go.
    assert set(result.edits) == {Deletion(0, 1, ("user", "buys", "item")), Deletion(0, 1, ("user", "views", "item"))}
    assert result.edges == 2
    for name in ("buys", "views"):
        only = EditSpace(relations=[("user", name, "item")])
        assert butfor.explain(Votes(), data, 0, node_type="user", space=only).status is Status.IMPOSSIBLE
    data["user"].x[0] = -3.0
    for name in ("buys", "views"):
        only = EditSpace(relations=[("item", f"rev_{name}", "user")])
        result = butfor.explain(Votes(), data, 0, node_type="user", space=only)
        assert result.edits == (Deletion(0, 1, ("user", name, "item")),)
        assert result.after.probability == pytest.approx(float(torch.tensor(2.0).sigmoid()), abs=1e-5)


def test_a_relation_without_a_reverse_has_direction() -> None:
    data = HeteroData()
    data["user"].x, data["item"].x = torch.tensor([[-1.0], [1.5], [-9.0]]), torch.zeros(1, 1)
    data["user", "follows", "user"].edge_index = torch.tensor([[1, 0], [0, 2]])
    data["item", "sold_to", "user"].edge_index = torch.tensor([[0], [0]])
    result = butfor.explain(Votes(), data, 0, node_type="user")
    assert result.edits == (Deletion(1, 0, ("user", "follows", "user")),)
    # 0 follows nobody that matters: what it sends to 2 is not in its neighbourhood.
    assert (result.edges, result.nodes) == (2, 3)


def test_a_relation_that_is_its_own_reverse_is_undirected() -> None:
    data = HeteroData()
    data["user"].x = torch.tensor([[-1.0], [1.5], [0.0]])
    data["user", "knows", "user"].edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    knows = ("user", "knows", "user")
    result = butfor.explain(Votes(), data, 0, node_type="user")
    assert (result.edits, result.cost) == ((Deletion(0, 1, knows),), 1.0)
    for edge in ((knows, 0, 1), (knows, 1, 0)):
        space = EditSpace(protected=[edge])
        assert butfor.explain(Votes(), data, 0, node_type="user", space=space).status is Status.IMPOSSIBLE


def test_only_edges_of_the_chosen_relations_go() -> None:
    data = shop(buys=[(0, 0)], views=[(0, 1), (0, 2)])
    data["user"].x[0] = -4.5
    buys, views = ("user", "buys", "item"), ("user", "views", "item")
    free = butfor.explain(Votes(), data, 0, Exact(all_smallest=True), node_type="user")
    assert {some for (some,) in (free.edits, *free.alternatives)} == {
        Deletion(0, 0, buys),
        Deletion(0, 1, views),
        Deletion(0, 2, views),
    }
    for relation, count in ((buys, 1), (views, 2)):
        space = EditSpace(relations=[relation])
        for method in (Exact(all_smallest=True), ALL["greedy"], ALL["random"], ALL["remove-ego"], ALL["cf-gnn"]):
            result = butfor.explain(Votes(), data, 0, method, node_type="user", space=space)
            assert result.found
            assert {edit.relation for edit in result.edits} == {relation}
            assert not isinstance(method, Exact) or 1 + len(result.alternatives) == count


def test_a_group_may_hold_edges_of_several_relations_near_and_far() -> None:
    data = shop(buys=[(0, 0), (1, 2)], views=[(0, 0), (0, 1)])
    buys, views = ("user", "buys", "item"), ("user", "views", "item")
    data["user"].x[0] = -2.5
    space = EditSpace(groups={"item 0": [(buys, 0, 0), (("item", "rev_views", "user"), 0, 0), (buys, 1, 2)]})
    result = butfor.explain(Votes(), data, 0, node_type="user", space=space)
    # User 1's purchase is not near user 0, and goes all the same.
    assert result.edits == (Deletion(0, 0, buys), Deletion(1, 2, buys), Deletion(0, 0, views))
    assert (result.cost, result.size, result.edges) == (1.0, 3, 3)


def test_rules_survive_json_and_are_the_same_whichever_way_they_are_written() -> None:
    data = shop(buys=[(0, 0), (0, 1)])
    plain = {
        "protected": [[["user", "buys", "item"], 0, 0]],
        "costs": [[[["item", "rev_buys", "user"], 1, 0], 3.0]],
        "relations": [["user", "buys", "item"]],
    }
    data["user"].x[0] = -2.5
    space = EditSpace.from_dict(json.loads(json.dumps(plain)))
    result = butfor.explain(Votes(), data, 0, node_type="user", space=space)
    assert (result.edits, result.cost) == ((Deletion(0, 1, ("user", "buys", "item")),), 3.0)
    same = EditSpace(
        protected=[(("item", "rev_buys", "user"), 0, 0)],
        costs={(("user", "buys", "item"), 0, 1): 3.0},
        relations=[("item", "rev_buys", "user")],
    )
    ids = [Session.of(Votes(), data, node_type="user", space=one).space_id for one in (space, same, EditSpace())]
    assert ids[0] == ids[1] != ids[2]


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (EditSpace(add=[(0, 1)]), r"\(0, 1\) names no relation; in this graph an edge is \(relation, source, target\)"),
        (EditSpace(add=[(CITES, 1, 1)]), r"add names 1–1 of \('paper', 'cites', 'paper'\); a node cannot be joined to"),
        (EditSpace(add=Within(relations=[("a", "b", "c")])), r"relation \('a', 'b', 'c'\) is not in this graph"),
        (
            EditSpace(features=Features(values=[1.0], nodes=[0])),
            "counted within their type; say which: node_type='author'",
        ),
        (EditSpace(features=Features(values=[1.0], nodes=[9], node_type="paper")), "paper 9 is not in this graph"),
        (EditSpace(features=Features(values=[1.0], node_type="cat")), "node type 'cat' is not in this graph"),
        (EditSpace(features=Features(values=[1.0], columns=[4])), r"feature 4 is not in this graph \(0 to 3\)"),
        (
            EditSpace(features=Features(values=[1.0], columns=[3], node_type="author")),
            r"feature 3 is not in node type 'author' \(0 to 2\)",
        ),
        (EditSpace(features=Features()), r"feature 0 of paper 0 is .*; only 0 and 1 can be flipped"),
        (
            EditSpace(add=Within(), carries={"edge_attr": {("a", "b", "c"): 1.0}}),
            r"relation \('a', 'b', 'c'\) is not in this graph",
        ),
        (
            EditSpace(relations=[("paper", "eats", "paper")]),
            r"relation \('paper', 'eats', 'paper'\) is not in this graph",
        ),
        (EditSpace(protected=[(0, 1)]), r"\(0, 1\) names no relation"),
        (EditSpace(protected=[(("a", "b", "c"), 0, 1)]), r"relation \('a', 'b', 'c'\) is not in this graph"),
        (EditSpace(allowed=[(WRITES, 0, 9)]), r"paper 9 is not in this graph \(0 to 3\)"),
        (EditSpace(allowed=[(WRITES, 3, 0)]), r"author 3 is not in this graph \(0 to 2\)"),
        (EditSpace(costs={(CITES, 0, 0): 2.0}), r"costs names the edge 0–0 of \('paper', 'cites', 'paper'\)"),
        (EditSpace(groups={"g": [(CITES, 1, 1)]}), r"group 'g' names the edge 1–1 of \('paper', 'cites', 'paper'\)"),
        (EditSpace(max_edits=0), "max_edits is 0"),
    ],
)
def test_rules_that_do_not_fit_the_graph_are_refused(space: EditSpace, message: str) -> None:
    data = library(0)
    with pytest.raises(InputError, match=message):
        butfor.explain(build("SAGE", 0, data), data, 0, node_type="paper", space=space)


def test_an_edge_in_two_groups_is_found_whichever_way_it_is_written() -> None:
    data = shop(buys=[(0, 1)])
    groups = {"a": [(("user", "buys", "item"), 0, 1)], "b": [(("item", "rev_buys", "user"), 1, 0)]}
    with pytest.raises(InputError, match="in two groups, 'a' and 'b'"):
        butfor.explain(Votes(), data, 0, node_type="user", space=EditSpace(groups=groups))
