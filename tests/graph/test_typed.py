"""Graphs of several types: which edges are one, and what rules may name; answers that can be read off."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import GCN, SimpleConv, global_mean_pool
from torch_geometric.transforms import ToUndirected

import butfor
from butfor.edits.addition import Addition, Within
from butfor.edits.change import Change, Features
from butfor.edits.deletion import Deletion
from butfor.edits.space import EditSpace
from butfor.errors import InputError
from butfor.graph.typed import Types
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
        for method in (Exact(all_smallest=True), ALL["greedy"], ALL["random"], ALL["remove-ego"], ALL["grbcd"]):
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


# Additions.


BUYS, BOUGHT_BY = ("user", "buys", "item"), ("item", "rev_buys", "user")


def test_an_added_edge_brings_its_reverse() -> None:
    data = shop(buys=[(1, 2)])
    # Only items say something, and only by the reverse relation.
    for edge in ((BUYS, 0, 1), (BOUGHT_BY, 1, 0)):
        result = butfor.explain(Votes(), data, 0, node_type="user", space=EditSpace(add=[edge]))
        assert result.edits == (Addition(0, 1, BUYS),)
        assert result.added_edges == ((0, 1),)
        assert str(result) == (
            "User 0 is predicted 'class 0' (0.88). It would be 'class 1' (0.88) "
            "with the edge user 0 → item 1 (buys) added."
        )
        dear = EditSpace(add=[edge], costs={(BOUGHT_BY, 1, 0): 2.5})
        assert butfor.explain(Votes(), data, 0, node_type="user", space=dear).cost == 2.5
    with pytest.raises(
        InputError, match=r"add names 1–2 of \('user', 'buys', 'item'\), which is an edge of this graph"
    ):
        butfor.explain(Votes(), data, 0, node_type="user", space=EditSpace(add=[(BOUGHT_BY, 2, 1)]))


def test_an_added_edge_of_a_relation_without_reverse_has_one_direction() -> None:
    data = HeteroData()
    data["user"].x = torch.tensor([[-1.0], [1.5], [1.5]])
    data["user", "follows", "user"].edge_index = torch.tensor([[0], [2]])
    follows = ("user", "follows", "user")
    there, back = (
        butfor.explain(Votes(), data, 0, node_type="user", space=EditSpace(add=[edge]))
        for edge in ((follows, 1, 0), (follows, 0, 1))
    )
    assert (there.edits, back.status) == ((Addition(1, 0, follows),), Status.IMPOSSIBLE)
    data["user", "follows", "user"].edge_index = torch.tensor([[1, 2], [2, 1]])
    for edge in ((follows, 1, 0), (follows, 0, 1)):
        # Now it is its own reverse, and both directions come together.
        result = butfor.explain(Votes(), data, 0, node_type="user", space=EditSpace(add=[edge]))
        assert result.edits == (Addition(0, 1, follows),)


def test_a_relation_without_edges_may_get_some() -> None:
    data = HeteroData()
    data["user"].x, data["item"].x = torch.tensor([[-1.0], [0.0]]), torch.full((3, 1), 2.0)
    nothing = torch.empty(2, 0, dtype=torch.long)
    for relation in (BUYS, ("item", "sells", "user"), BOUGHT_BY, ("user", "knows", "user")):
        data[relation].edge_index = nothing
    types = Types.of(data)[0]
    # The name tells what is the reverse of what; nothing else is known of relations without edges.
    assert types.reverse.tolist() == [2, -1, 0, -1]
    result = butfor.explain(Votes(), data, 0, node_type="user", space=EditSpace(add=[(BUYS, 0, 1)]))
    assert result.edits == (Addition(0, 1, BUYS),)
    result = butfor.explain(
        Votes(), data, 0, node_type="user", space=EditSpace(add=[(("item", "sells", "user"), 1, 0)])
    )
    assert result.edits == (Addition(1, 0, ("item", "sells", "user")),)


def joins(data: HeteroData, space: EditSpace, node: int = 0) -> set[tuple[str, int, int]]:
    """The edges that may be added around a user."""
    problem = Session.of(Votes(), data, node_type="user", space=space).problem(node)
    numbers = np.unique(problem.edits.added.edit).tolist()
    return {(edit.relation[1], edit.source, edit.target) for edit in problem.edits.records(numbers)}


def test_within_joins_nodes_of_the_types_of_each_relation() -> None:
    data = shop(buys=[(0, 0), (1, 0), (1, 1)], views=[(0, 1)])
    data["user", "knows", "user"].edge_index = torch.tensor([[0, 1], [1, 0]])
    near = {("buys", 0, 1), ("views", 0, 0), ("views", 1, 0), ("views", 1, 1)}
    assert joins(data, EditSpace(add=Within())) == near
    views = [("user", "views", "item")]
    assert joins(data, EditSpace(add=Within(relations=views))) == {edge for edge in near if edge[0] == "views"}
    assert joins(data, EditSpace(add=Within(relations=[("item", "rev_views", "user")]))) == near - {("buys", 0, 1)}
    # By default those that edges may be deleted of.
    assert joins(data, EditSpace(add=Within(), relations=[BUYS])) == {("buys", 0, 1)}
    assert joins(data, EditSpace(add=Within(relations=views), relations=[BUYS])) == near - {("buys", 0, 1)}
    assert joins(data, EditSpace(add=Within(hops=2))) == near
    few = EditSpace(add=Within(most=2))
    assert joins(data, few) == {("buys", 0, 1), ("views", 0, 0)}
    assert "Only the 2 nearest pairs" in Session.of(Votes(), data, node_type="user", space=few).problem(0).note
    ids = [
        Session.of(Votes(), data, node_type="user", space=EditSpace(add=add)).space_id
        for add in (Within(), Within(relations=views), Within(relations=[("item", "rev_views", "user")]))
    ]
    assert ids[0] != ids[1] == ids[2]


def test_many_nodes_that_no_relation_joins_to_the_target_do_not_hide_the_others() -> None:
    data = HeteroData()
    data["user"].x, data["item"].x = torch.zeros(1, 1), torch.ones(900, 1)
    data["item", "shown_to", "user"].edge_index = torch.stack([torch.arange(800), torch.zeros(800, dtype=torch.long)])
    data["item", "like", "item"].edge_index = torch.tensor([[850], [0]])
    found = joins(data, EditSpace(add=Within(hops=2, most=3)))
    # Every item but one is at the user already.
    assert found == {("shown_to", 850, 0), ("like", 0, 1), ("like", 1, 0)}


# Features.


def test_features_of_each_type_have_their_own_columns() -> None:
    data = HeteroData()
    data["user"].x = torch.tensor([[-1.0, 1.0], [0.0, 0.0]])
    data["item"].x = torch.tensor([[0, 1, 0], [1, 1, 1]])
    data[BUYS].edge_index = torch.tensor([[0], [1]])

    class Flat(torch.nn.Module):
        def forward(self, x_dict, edge_index_dict):
            total = x_dict["user"][:, :1] * 2 + x_dict["user"][:, 1:]
            return torch.cat([-total, total], dim=1)

    def changes(**rule: object) -> set[tuple[str, int, int, float]]:
        space = EditSpace(features=Features(**rule), delete=False)
        problem = Session.of(Flat(), ToUndirected()(data.clone()), node_type="user", space=space).problem(0)
        records = [edit for number in range(len(problem.edits)) for edit in problem.edits.records([number])]
        return {(edit.node_type, edit.node, edit.feature, edit.after) for edit in records}

    assert changes(values=[5.0]) == {("user", 0, 0, 5.0), ("user", 0, 1, 5.0)}
    assert changes(values=[1.0], within=1, columns=[1, 2]) == set()
    assert changes(values=[7.0], within=1, columns=[1, 2]) == {
        ("user", 0, 1, 7.0),
        *(("item", 1, i, 7.0) for i in (1, 2)),
    }
    assert changes(node_type="item", within=1) == {("item", 1, column, 0.0) for column in range(3)}
    assert changes(node_type="item", nodes=[0], values=[3.0]) == {("item", 0, column, 3.0) for column in range(3)}
    with pytest.raises(InputError, match="features of this graph are whole numbers"):
        changes(node_type="item", values=[0.5], within=1)
    with pytest.raises(InputError, match="feature 0 of user 0 is -1; only 0 and 1 can be flipped"):
        changes(within=1)
    result = butfor.explain(
        Flat(), data, 0, node_type="user", space=EditSpace(features=Features(values=[1.0], columns=[0]), delete=False)
    )
    assert result.edits == (Change(0, 0, -1.0, 1.0, "user"),)
    assert str(result).endswith("with feature 0 of user 0 at 1 instead of -1.")


def test_rules_about_types_are_refused_where_there_is_one() -> None:
    data = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1], [1, 2]]))
    for space, message in (
        (EditSpace(add=Within(relations=[BUYS])), "this graph has one type of edges"),
        (EditSpace(add=[(BUYS, 0, 1)]), "is no edge of this graph; give the pair of its nodes"),
        (EditSpace(add=Within(), carries={"edge_attr": {BUYS: 1.0}}), "this graph has one type of edges"),
        (
            EditSpace(features=Features(node_type="user")),
            "node_type of features is 'user', but this graph has one type",
        ),
    ):
        with pytest.raises(InputError, match=message):
            butfor.explain(GCN(1, 4, 1, 2).eval(), data, 0, space=space)
    with pytest.raises(InputError, match="node_type of features is 3; give the name of a node type"):
        Features(node_type=3)
    with pytest.raises(InputError, match=r"'pays' is no relation"):
        Within(relations=["pays"])


# What edges and nodes carry.


class Weighted(torch.nn.Module):
    """The sum of what a user's items say, times the attribute of the edge."""

    def forward(self, x, edge_index, edge_attr):
        (sender, receiver), weight = edge_index[BOUGHT_BY], edge_attr[BOUGHT_BY]
        total = x["user"].index_add(0, receiver, weight * x["item"][sender])
        return torch.cat([-total, total], dim=1)


def test_an_added_edge_carries_what_the_rules_say_of_its_relation() -> None:
    """Arguments may be called as to_hetero calls them, without _dict."""
    data = shop(buys=[(1, 2)])
    data[BUYS].edge_attr, data[BOUGHT_BY].edge_attr = torch.zeros(1, 2), torch.ones(1, 1)
    add = [(BUYS, 0, 1)]

    def ask(carries: object) -> butfor.Counterfactual:
        plain = {"add": [[list(BUYS), 0, 1]], "carries": carries}
        return butfor.explain(Weighted(), data, 0, node_type="user", space=EditSpace.from_dict(plain))

    said = {BUYS: [0.0, 0.0], BOUGHT_BY: [3.0]}
    result = ask({"edge_attr": said})
    assert result.after.probability == pytest.approx(float(torch.tensor(10.0).sigmoid()))
    assert ask({"edge_attr": [[list(relation), value] for relation, value in said.items()]}) == result
    assert ask({"edge_attr": {**said, BOUGHT_BY: [0.1]}}).status is Status.IMPOSSIBLE
    with pytest.raises(InputError, match=r"what an added edge of \('user', 'buys', 'item'\) carries there"):
        butfor.explain(Weighted(), data, 0, node_type="user", space=EditSpace(add=add))
    with pytest.raises(InputError, match=r"shape \(2,\), but edges of \('item', 'rev_buys', 'user'\) have \(1,\)"):
        ask({"edge_attr": [0.0, 1.0]})
    with pytest.raises(InputError, match="finite numbers"):
        ask({"edge_attr": {**said, BOUGHT_BY: [float("inf")]}})
    with pytest.raises(InputError, match="give numbers or lists of them by field"):
        ask({"edge_attr": {**said, BOUGHT_BY: "one"}})


class Aged(torch.nn.Module):
    """What a user says, times its age, less the mean of its graph."""

    def forward(self, x_dict, edge_index_dict, age_dict, batch_dict):
        total = Votes.forward(self.votes, x_dict, edge_index_dict)[:, 1:] * age_dict["user"]
        total = total - global_mean_pool(total, batch_dict["user"])[batch_dict["user"]]
        return torch.cat([-total, total], dim=1)

    def __init__(self) -> None:
        super().__init__()
        self.votes = Votes()


def test_models_read_what_nodes_have_and_which_graph_they_are_of() -> None:
    data = shop(buys=[(0, 1), (1, 2), (1, 0)])
    data["user"].age = torch.tensor([[2.0], [1.0]])
    data["user"].batch, data["item"].batch = torch.tensor([0, 0]), torch.tensor([0, 0, 0])
    session = Session.of(Aged(), data, node_type="user")
    result = session.explain(0)
    with torch.no_grad():
        out = Aged()(data.x_dict, data.edge_index_dict, {"user": data["user"].age}, data.batch_dict)
    assert session.predictor.logits.tolist() == out.tolist()
    assert result.found
    changed = data.clone()
    changed["user"].age = torch.tensor([[2.0], [1.5]])
    other = data.clone()
    other["user"].batch = torch.tensor([0, 1])
    assert len({Session.of(Aged(), one, node_type="user").graph_id for one in (data, changed, other)}) == 3


def test_a_wanted_class_by_its_name() -> None:
    data = shop(buys=[(0, 1)])
    data["user"].class_names = ["poor", "rich"]
    result = butfor.explain(Votes(), data, 0, node_type="user", goal=butfor.Goal(wanted="poor"))
    assert (result.before.name, result.after.name) == ("rich", "poor")


def test_a_graph_without_relations() -> None:
    data = HeteroData()
    data["user"].x, data["item"].x = torch.tensor([[-1.0]]), torch.ones(1, 1)
    result = butfor.explain(
        Votes(), data, 0, node_type="user", space=EditSpace(add=Within(), features=Features(values=[1.0]))
    )
    assert result.edits == (Change(0, 0, -1.0, 1.0, "user"),)


def test_the_only_node_type_need_not_be_named() -> None:
    data = HeteroData()
    data["user"].x = torch.tensor([[-1.0], [1.5], [0.0]])
    data["user", "knows", "user"].edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    named = butfor.explain(Votes(), data, [0, 1], node_type="user")
    assert butfor.explain(Votes(), data, torch.tensor([True, True, False])) == named
    assert named[0].node_type == "user"
