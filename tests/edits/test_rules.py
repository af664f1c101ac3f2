"""Rules on a graph: what does not fit it is named, and the same rules are known however they are written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import torch

import butfor
from butfor.edits.addition import Within
from butfor.edits.change import Features
from butfor.edits.space import EditSpace
from butfor.errors import InputError, StoreError
from butfor.methods import Exact
from butfor.result.status import Status
from butfor.runs import Run, Store
from butfor.session import Session
from votes import Votes, WeightedVotes, star_of, voters

if TYPE_CHECKING:
    from pathlib import Path

    from torch_geometric.data import Data


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (EditSpace(max_edits=0), "max_edits is 0"),
        (EditSpace(max_edits=-3), "max_edits is -3"),
        (EditSpace(protected=[(1, 2)]), "protected names the edge 1–2, which is not in this graph"),
        (EditSpace(allowed=[(0, 4)]), "allowed names the edge 0–4"),
        (EditSpace(protected=[(0, 77)]), r"node 77 is not in this graph \(0 to 5\)"),
        (EditSpace(protected=[(("a", "to", "b"), 0, 1)]), r"\(\('a', 'to', 'b'\), 0, 1\) is no edge of this graph"),
        (EditSpace(groups={"mine": [(1, 2)]}), "group 'mine' names the edge 1–2"),
        (EditSpace(groups=[[(0, 1)], [(3, 2)]]), "group 'group 1' names the edge 3–2"),
        (EditSpace(groups={"mine": []}), "the group 'mine' is empty"),
        (EditSpace(groups={"a": [(0, 1)], "b": [(1, 0)]}), "edge 1–0 is in two groups, 'a' and 'b'"),
        (EditSpace(add=[(1, 0)]), "add names 0–1, which is an edge of this graph already"),
        (EditSpace(add=[(2, 2)]), "add names 2–2; a node cannot be joined to itself"),
        (EditSpace(add=[(2, 9)]), "node 9 is not in this graph"),
        (EditSpace(costs={"mine": 2.0}), "costs names the group 'mine'"),
        (EditSpace(costs={"mine": 0.0}, groups={"mine": [(0, 1)]}), r"cost of the group 'mine' is 0\.0"),
        (EditSpace(costs={(2, 3): 2.0}), "costs names the edge 2–3, which is not in this graph"),
        (EditSpace(costs={(0, 1): -1.0}), r"cost of edge 0–1 is -1\.0"),
        (EditSpace(costs={(0, 4): float("inf")}, add=[(0, 4)]), "cost of edge 0–4 is inf"),
        (EditSpace(costs={(0, -1): 1.0}), "node -1 is not in this graph"),
        (EditSpace(relations=[("a", "to", "b")]), r"relations names \('a', 'to', 'b'\).*one type of edges"),
        (EditSpace(features=Features(columns=[1])), r"feature 1 is not in this graph \(0 to 0\)"),
        (EditSpace(features=[Features(nodes=[6], values=[1.0])]), "node 6 is not in this graph"),
        (EditSpace(features=Features()), r"feature 0 of node 0 is 0\.5; only 0 and 1"),
    ],
)
def test_rules_that_do_not_fit_the_graph_are_refused(star: Data, space: EditSpace, message: str) -> None:
    with pytest.raises(InputError, match=message):
        butfor.explain(Votes(), star, 0, space=space)


def test_a_group_with_a_self_loop_is_refused() -> None:
    data = star_of(-1.0, 2.0)
    data.edge_index = torch.cat([data.edge_index, torch.zeros(2, 1, dtype=torch.long)], dim=1)
    for rule in ({"groups": {"g": [(0, 0), (0, 1)]}}, {"allowed": [(0, 0)]}, {"protected": [(0, 0)]}):
        with pytest.raises(InputError, match="self-loop 0–0; a self-loop is never deleted"):
            butfor.explain(Votes(), data, 0, space=butfor.EditSpace(**rule))


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (EditSpace(add=[(0, 2)]), r"reads edge_attr, .* what an added edge carries .*'edge_attr': .* shape \(2,\)"),
        (EditSpace(add=Within()), "the model reads edge_attr"),
        (EditSpace(add=[(0, 2)], carries={"edge_attr": 1.0}), r"edge_attr the shape \(\), but edges have \(2,\)"),
        (EditSpace(add=[(0, 2)], carries={"edge_attr": [1.0]}), r"edge_attr the shape \(1,\), but edges have \(2,\)"),
    ],
)
def test_additions_are_refused_where_nobody_says_what_they_carry(space: EditSpace, message: str) -> None:
    data = voters([1, -1, 0], [(1, 2)])
    data.edge_attr = torch.ones(2, 2)
    with pytest.raises(InputError, match=message):
        butfor.explain(WeightedVotes(), data, 0, space=space)
    # A model that does not read them does not mind.
    assert butfor.explain(Votes(), data, 0, space=EditSpace(add=[(0, 1), (0, 2)])).added_edges == ((0, 1),)


def test_a_group_of_which_an_edge_must_stay_stays() -> None:
    data = voters([-1.5, 1, 1, 1], [(0, 1), (0, 2), (0, 3)])
    groups = [[(0, 1), (0, 2)]]
    for space in (EditSpace(groups=groups, protected=[(2, 0)]), EditSpace(groups=groups, allowed=[(0, 1), (0, 3)])):
        result = butfor.explain(Votes(), data, 0, space=space)
        assert result.status is Status.IMPOSSIBLE


# A run goes on only under the same rules.


def rules_id(data: Data, space: EditSpace) -> str:
    return Session.of(Votes(), data, space=space).space_id


SAME_RULES = {
    "order and direction of edges": (
        EditSpace(protected=[(0, 1), (0, 2)], allowed=[(0, 3), (4, 5)], add=[(0, 4), (1, 2)]),
        EditSpace(protected=((2, 0), (1, 0)), allowed={(5, 4), (3, 0)}, add=[(2, 1), (4, 0)]),
    ),
    "order of costs": (EditSpace(costs={(0, 1): 2.0, (0, 2): 3.0}), EditSpace(costs={(2, 0): 3.0, (1, 0): 2.0})),
    "order in groups": (
        EditSpace(groups={"a": [(0, 1), (0, 2)], "b": [(0, 3)]}),
        EditSpace(groups={"b": ((3, 0),), "a": ((2, 0), (1, 0))}),
    ),
    "one rule or a list of one": (
        EditSpace(features=Features(values=[1.0])),
        EditSpace(features=[Features(values=[1.0])]),
    ),
    "JSON": (
        EditSpace(protected=[(0, 1)], costs={(0, 2): 2.0}, max_edits=2),
        EditSpace.from_dict(json.loads('{"protected": [[1, 0]], "costs": [[[0, 2], 2.0]], "max_edits": 2}')),
    ),
    "2 and 2.0": (EditSpace(costs={(0, 1): 2}), EditSpace(costs={(0, 1): 2.0})),
    "an edge twice": (EditSpace(protected=[(0, 1), (1, 0)]), EditSpace(protected=[(0, 1)])),
    "a range as JSON has it": (
        EditSpace(features=Features(between=(0, 1))),
        EditSpace.from_dict({"features": {"between": [0, 1]}}),
    ),
    "values in a tuple": (EditSpace(features=Features(values=[1.0])), EditSpace(features=Features(values=(1.0,)))),
    "columns in a tuple": (
        EditSpace(features=Features(values=[1.0], columns=[0])),
        EditSpace(features=Features(values=[1.0], columns=(0,))),
    ),
    "order of nodes": (
        EditSpace(features=Features(values=[1.0], nodes=[0, 1])),
        EditSpace(features=Features(values=[1.0], nodes=[1, 0])),
    ),
    "what an edge carries in a tuple": (
        EditSpace(add=[(0, 4)], carries={"edge_attr": [1.0]}),
        EditSpace(add=[(0, 4)], carries={"edge_attr": (1.0,)}),
    ),
    "order of groups without names": (
        EditSpace(groups=[[(0, 1)], [(0, 2)]]),
        EditSpace(groups=[[(0, 2)], [(0, 1)]]),
    ),
}


@pytest.mark.parametrize(("first", "second"), SAME_RULES.values(), ids=SAME_RULES)
def test_the_same_rules_have_the_same_fingerprint(star: Data, first: EditSpace, second: EditSpace) -> None:
    assert rules_id(star, first) == rules_id(star, second) != ""


def test_other_rules_have_another_fingerprint(star: Data) -> None:
    spaces = [
        EditSpace(),
        EditSpace(protected=[(0, 1)]),
        EditSpace(protected=[(0, 2)]),
        EditSpace(allowed=[(0, 1)]),
        EditSpace(allowed=[]),
        EditSpace(delete=False),
        EditSpace(costs={(0, 1): 2.0}),
        EditSpace(costs={(0, 1): 2.5}),
        EditSpace(costs={(0, 2): 2.0}),
        EditSpace(groups=[[(0, 1), (0, 2)]]),
        EditSpace(groups=[[(0, 1)], [(0, 2)]]),
        EditSpace(add=[(0, 4)]),
        EditSpace(add=[(0, 4)], costs={(0, 4): 2.0}),
        EditSpace(add=[(0, 4)], carries={"edge_weight": 2.0}),
        EditSpace(add=Within()),
        EditSpace(add=Within(2)),
        EditSpace(add=Within(most=9)),
        EditSpace(add=Within(cost=2.0)),
        EditSpace(features=Features(values=[1.0])),
        EditSpace(features=Features(values=[2.0])),
        EditSpace(features=Features(values=[1.0], within=1)),
        EditSpace(features=Features(values=[1.0], columns=[0])),
        EditSpace(features=Features(values=[1.0], cost=2.0)),
        EditSpace(features=Features(between=(0.0, 1.0))),
        EditSpace(features=Features(between=(0.0, 1.0), steps=7)),
        EditSpace(max_edits=2),
        EditSpace(max_edits=3),
        EditSpace(keep_connected=True),
    ]
    ids = [rules_id(star, space) for space in spaces]
    assert ids[0] == ""
    assert len(set(ids)) == len(ids)


def test_a_file_of_results_goes_on_under_the_same_rules_and_no_others(star: Data, tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"

    def prepared(space: EditSpace) -> Session:
        return Session.of(Votes(), star, space=space)

    first = prepared(EditSpace(add=[(0, 4)], costs={(0, 1): 2.0, (0, 4): 3.0}))
    with Store(path, Run.of(first, Exact())) as store:
        for _, result in first.stream([0, 1]):
            store.append(result)
    again = prepared(EditSpace(add=[(4, 0)], costs={(4, 0): 3.0, (1, 0): 2.0}))
    with Store(path, Run.of(again, Exact())) as store:
        assert list(store.done) == [0, 1]
        store.append(again.explain(2))
    other = prepared(EditSpace(add=[(4, 0)], costs={(4, 0): 3.5, (1, 0): 2.0}))
    with pytest.raises(StoreError, match="another edit space"):
        Store(path, Run.of(other, Exact()))
