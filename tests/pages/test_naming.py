"""Targets are found by what somebody types: ids where nodes have them, else numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

import butfor
from butfor.errors import InputError
from butfor.pages.explore import explorer_of
from butfor.testing import random_problem
from explorers import LinkModel, graphs_explorer, link_explorer, node_explorer, typed_explorer

if TYPE_CHECKING:
    from butfor.pages.naming import Naming


def named() -> Naming:
    model, data = random_problem(3, nodes=6)
    data.node_ids = ["ann", "bob", "bobby", "carl 2", "Eve<b>", "7"]
    data.test_mask = torch.arange(6) == 4
    return explorer_of(model, data).naming


def test_nodes_by_their_ids() -> None:
    naming = named()
    assert naming.read("bob") == naming.read(" bob ") == naming.read(1) == 1
    assert naming.read("7") == 5
    assert naming.name(3) == "node carl 2"
    assert naming.example() == 4
    assert naming.told == "a node from ann to 7"
    assert [one["target"] for one in naming.find("bob", 9)] == [1, 2]
    assert [one["name"] for one in naming.find("e<", 9)] == ["node Eve<b>"]
    assert naming.find("BO", 1) == [{"target": 1, "typed": "bob", "name": "node bob"}]
    assert naming.find("", 9) == naming.find("zz", 9) == []
    with pytest.raises(InputError, match=r"node 'dora' is not in this graph \(from ann to 7\)"):
        naming.read("dora")


def test_nodes_by_their_numbers() -> None:
    naming = node_explorer().naming
    assert naming.read("11") == 11
    assert [one["target"] for one in naming.find("1", 3)] == [1, 10, 11]
    for wrong in ("12", "-1", "1.0", "", "٣x"):
        with pytest.raises(InputError, match="is not in this graph"):
            naming.read(wrong)


def test_links_by_two_nodes() -> None:
    naming = link_explorer().naming
    assert naming.read("3 9") == naming.read("3, 9") == naming.read([3, 9]) == butfor.Pair(3, 9)
    assert naming.plain(butfor.Pair(3, 9)) == [3, 9]
    assert naming.name(butfor.Pair(3, 9)) == "link 3–9"
    assert naming.find("3", 5) == []
    for wrong in ("3", "3 9 4", "3 99", [3], 3, None):
        with pytest.raises(InputError):
            naming.read(wrong)


def test_what_is_typed_for_a_target_is_read_as_that_target() -> None:
    """Also where ids have spaces, of which a link has two."""
    model, data = random_problem(3, nodes=4)
    data.node_ids = ["ann lee", "bob", "carl 2", "7"]
    links = explorer_of(LinkModel(model), data, butfor.Pair(0, 2), goal=butfor.Goal(threshold=0.0)).naming
    assert links.typed(butfor.Pair(0, 2)) == "ann lee, carl 2"
    for naming, targets in (
        (links, [butfor.Pair(0, 2), butfor.Pair(3, 1)]),
        (named(), range(6)),
        (node_explorer().naming, [0, 11]),
        (graphs_explorer().naming, [0, 2]),
        (typed_explorer().naming, [0, 3]),
    ):
        for target in targets:
            assert naming.read(naming.typed(target)) == target


def test_graphs_by_their_numbers() -> None:
    naming = graphs_explorer().naming
    assert naming.read(2) == naming.read("2") == 2
    assert naming.name(2) == "graph 2"
    assert naming.told == "a graph from 0 to 2"
    assert [one["target"] for one in naming.find("1", 5)] == [1]
    for wrong in (3, "3", -1, None, "x"):
        with pytest.raises(InputError, match="the number of a graph"):
            naming.read(wrong)


def test_nodes_of_a_type() -> None:
    naming = typed_explorer().naming
    assert naming.read("2") == 2
    assert naming.name(2) == "paper 2"
    assert naming.told == "a paper from 0 to 3"
    with pytest.raises(InputError, match="paper '4' is not in this graph"):
        naming.read("4")
