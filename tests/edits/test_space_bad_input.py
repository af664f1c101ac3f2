"""Values that no rule of an edit space can have: refused when the space is made, with the value and what to give."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from bad_files import LARGE
from butfor.edits.addition import Within
from butfor.edits.change import Features
from butfor.edits.space import EditSpace
from butfor.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

META = torch.ones(2, device="meta")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: EditSpace(max_edits=1.5), "^max_edits is 1.5; give a whole number"),
        (lambda: EditSpace(max_edits=LARGE), r"^max_edits is 9+\.\.\.9+; give a whole number of at most"),
        (lambda: EditSpace(delete="no"), "^delete is 'no'; give True or False$"),
        (lambda: EditSpace(protected=[META]), "^protected names None, which is no edge"),
        (lambda: EditSpace(protected=[(0, LARGE, 1)]), "^0 is no relation"),
        (lambda: EditSpace(costs=[3]), r"^costs has 3; give an edge or a group's name and a number"),
        (lambda: EditSpace(costs={(0, 1): "2"}), r"^costs gives \(0, 1\) the cost '2'; give a number$"),
        (lambda: EditSpace(costs={"pair": None}), r"^costs gives 'pair' the cost None; give a number$"),
        (lambda: EditSpace(costs={(0, 1): LARGE}), r"^costs gives \(0, 1\) the cost 9+\.\.\.9+; give a number$"),
        (lambda: EditSpace(carries={"edge_attr": [1, "x"]}), "^carries is {'edge_attr'.*; give numbers"),
        (lambda: EditSpace(carries={"edge_attr": [[1], [1, 2]]}), "^carries is {'edge_attr'.*; give numbers"),
        (lambda: EditSpace(carries={"edge_attr": LARGE}), "^carries is {'edge_attr'.*; give numbers"),
        (lambda: EditSpace(carries={"edge_attr": META}), "^carries is {'edge_attr'.*; give numbers"),
        (lambda: EditSpace.from_dict({"features": [3]}), "^features has 3; give its fields by name, such as {'values'"),
        (lambda: EditSpace.from_dict({"add": {"hops": 1.5}}), "^hops is 1.5; give a whole number"),
        (lambda: Within(hops=LARGE), "^hops is 9.*; give a whole number of at most"),
        (lambda: Within(most=2.5), "^most is 2.5; give a whole number"),
        (lambda: Within(cost="2"), "^the cost of an added edge is '2'; give a positive number$"),
        (
            lambda: Features(between=(0, LARGE)),
            r"^between is \(0, 9+\.\.\.9+\); give two numbers, the ends of a range$",
        ),
        (lambda: Features(between=[1]), r"^between is \[1\]; give two numbers, the ends of a range$"),
        (lambda: Features(columns=["a"]), "^one of the columns of features is 'a'; give a whole number$"),
        (lambda: Features(nodes=[LARGE]), "^one of the nodes of features is 9.*; give a whole number of at most"),
        (lambda: Features(within=-1), "^within is -1; give a whole number of at least 0$"),
        (lambda: Features(steps=1), "^steps is 1; give a whole number of at least 2$"),
        (lambda: Features(values=["1"]), r"^a feature cannot be set to \['1'\]; give finite numbers$"),
        (lambda: Features(values="flop"), "^feature values are 'flop'; give 'flip' or a list of numbers$"),
    ],
)
def test_a_value_of_another_kind_is_named(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        make()
    assert len(str(caught.value)) < 250


def test_what_an_added_edge_carries_may_be_a_number_an_array_or_nested_lists() -> None:
    for value in (1, 0.5, [1, 2], torch.ones(2), [[1.0, 2.0], [3.0, 4.0]], torch.ones(2, 2)):
        assert EditSpace(carries={"edge_attr": value}).carries["edge_attr"] is value
