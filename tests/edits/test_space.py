"""The edit space as a user writes it: from Python or JSON, in any shape that says what is meant."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import butfor
from butfor.edits.addition import Addition, Within
from butfor.edits.change import Features
from butfor.edits.space import EditSpace
from butfor.errors import InputError
from butfor.session import Session
from votes import Votes, star_of


@pytest.mark.parametrize(
    "protected",
    [
        lambda: [(0, 1)],
        lambda: zip([0], [1], strict=True),
        lambda: np.array([[0, 1]]),
        lambda: torch.tensor([[0, 1]]),
        lambda: [np.array([0, 1])],
    ],
)
def test_rules_may_be_lists_iterators_or_arrays(protected) -> None:
    space = butfor.EditSpace(protected=protected())
    assert butfor.explain(Votes(), star_of(-1.0, 2.0, 0.3, 0.3), 0, space=space).status.value == "impossible"


def test_allowed_and_added_edges_may_be_iterators() -> None:
    data = star_of(-1.0, 2.0, 0.3, 0.3)
    assert butfor.explain(Votes(), data, 0, space=butfor.EditSpace(allowed=zip([0], [1], strict=True))).size == 1
    lonely = Data(x=torch.tensor([[1.0], [-2.0]]), edge_index=torch.empty(2, 0, dtype=torch.long))
    assert butfor.explain(Votes(), lonely, 0, space=butfor.EditSpace(add=zip([0], [1], strict=True))).size == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: butfor.EditSpace(protected=(0, 1)), "protected names 0, which is no edge"),
        (lambda: butfor.EditSpace(add=[(0, 4.0)]), "4.0 is not a node"),
        (lambda: butfor.EditSpace(add=True), "add is True; give a list"),
        (lambda: butfor.EditSpace(costs={3: 2}), "costs names 3, which is no edge"),
        (lambda: butfor.EditSpace(features="flip"), "features is 'flip'"),
        (lambda: butfor.EditSpace(relations=["transfers"]), "'transfers' is no relation; give its source type"),
        (lambda: butfor.Features(between=(0, 1), steps=3.5), "steps is 3.5"),
        (lambda: butfor.Features(between=("a", "b")), "between is"),
        (lambda: butfor.explain(Votes(), star_of(1.0, 2.0), 0, space={"delete": False}), "give a butfor.EditSpace"),
    ],
)
def test_rules_of_the_wrong_kind_are_refused(make, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Within(hops=0), r"Within\(hops=0.*at least 1 hop"),
        (lambda: Within(most=0), r"most=0"),
        (lambda: Within(cost=0.0), r"cost of an added edge is 0\.0"),
        (lambda: Within(cost=float("nan")), r"cost of an added edge is nan"),
        (lambda: Features(between=(2.0, 2.0)), r"between 2\.0 and 2\.0"),
        (lambda: Features(between=(3, 1)), "between 3 and 1"),
        (lambda: Features(between=(float("nan"), 1)), "between nan and 1"),
        (lambda: Features(values=[1.0, float("inf")]), r"cannot be set to \[1\.0, inf\]"),
        (lambda: Features(between=(0.0, float("inf"))), "inf"),
        (lambda: Features(cost=-2), "cost of a changed feature is -2"),
    ],
)
def test_rules_that_make_no_sense_are_refused(make: object, message: str) -> None:
    with np.errstate(invalid="ignore"), pytest.raises(InputError, match=message):
        make()


# Plain data.


FULL = {
    "protected": [[0, 1]],
    "costs": [[[0, 2], 2.5], ["pair", 3], [[4, 0], 0.5]],
    "groups": {"pair": [[0, 3], [4, 5]]},
    "add": [[4, 0]],
    "carries": {"edge_weight": 2.0},
    "features": [{"values": "flip", "nodes": [1]}, {"between": [0, 1], "steps": 3, "within": 1, "cost": 2}],
    "max_edits": 3,
    "keep_connected": True,
}


def test_a_space_from_json_means_what_one_from_python_means(star: Data) -> None:
    read = EditSpace.from_dict(json.loads(json.dumps(FULL)))
    written = EditSpace(
        protected=[(0, 1)],
        costs={(0, 2): 2.5, "pair": 3, (4, 0): 0.5},
        groups={"pair": [(0, 3), (4, 5)]},
        add=[(4, 0)],
        carries={"edge_weight": 2.0},
        features=[Features(nodes=[1]), Features(between=(0, 1), steps=3, within=1, cost=2)],
        max_edits=3,
        keep_connected=True,
    )
    for node in range(4):
        first, second = (Session.of(Votes(), star, space=one).problem(node).edits for one in (read, written))
        assert first.costs.tolist() == second.costs.tolist()
        assert len(first) > 3
        for edit in range(len(first)):
            assert first.records([edit]) == second.records([edit])
    result = butfor.explain(Votes(), star, 0, space=read)
    assert (result.edits, result.cost) == ((Addition(0, 4),), 0.5)


def test_a_space_from_json_may_have_any_of_its_parts(star: Data) -> None:
    assert butfor.explain(Votes(), star, 0, space=EditSpace.from_dict({})).space_id == ""
    assert EditSpace.from_dict({"add": {"hops": 2, "most": 7}}).add == Within(2, 7)
    assert EditSpace.from_dict({"allowed": [[0, 1]]}).allowed == ((0, 1),)
    assert EditSpace.from_dict({"allowed": None}).allowed is None
    assert EditSpace.from_dict({"groups": [[[0, 1], [0, 2]]]}).groups == (((0, 1), (0, 2)),)
    assert EditSpace.from_dict({"features": {"values": [1, 2]}}).features == (Features(values=[1, 2]),)
    typed = EditSpace.from_dict({"protected": [[["a", "to", "b"], 0, 1]], "relations": [["a", "to", "b"]]})
    assert typed.protected == ((("a", "to", "b"), 0, 1),)
    assert typed.relations == (("a", "to", "b"),)


@pytest.mark.parametrize(
    ("plain", "message"),
    [
        ({"protect": []}, "no field 'protect'"),
        ({"protected": [[1]]}, r"protected names \[1\], which is no edge; give pairs of nodes"),
        ({"protected": [5]}, "protected names 5, which is no edge; give pairs of nodes"),
        ({"protected": [[0.5, 1]]}, r"protected names \[0\.5, 1\], which is no edge: 0\.5 is not a node"),
        ({"costs": [[[0, 1], 1, 2]]}, r"costs has \[\[0, 1\], 1, 2\]; give an edge or a group's name and a number"),
        ({"max_edits": "3"}, "max_edits is '3'; give a whole number"),
        ({"add": {"hops": 0}}, r"Within\(hops=0"),
        ({"add": {"jumps": 2}}, "jumps"),
        ({"add": [[1, 2, 3]]}, "1 is no relation; give its source type, name and target type"),
        ({"features": {"values": "flop"}}, "flop"),
        ({"features": {"colour": 1}}, "colour"),
        ({"features": {"values": 3}}, "values of features is 3; give a list"),
    ],
)
def test_json_that_is_no_space_is_refused(plain: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        EditSpace.from_dict(plain)
