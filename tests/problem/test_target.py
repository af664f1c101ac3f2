"""What may be asked about: nodes, pairs and whole graphs, in any shape that says which."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.nn import GCN

import butfor
from butfor.errors import InputError, ModelError
from butfor.problem.goal import Goal
from butfor.problem.target import Pair
from butfor.session import Session
from butfor.testing import random_problem
from task_cases import LinkModel
from typed_cases import build, library
from votes import path


def test_targets_in_odd_shapes() -> None:
    model, data = random_problem(1)
    one = butfor.explain(model, data, 3)
    assert butfor.explain(model, data, torch.tensor(3)) == one
    assert butfor.explain(model, data, (node for node in (3, 1)))[0] == one
    assert butfor.explain(model, data, np.int64(3)) == one
    assert len(list(Session.of(model, data).stream(node for node in range(4)))) == 4
    with pytest.raises(ModelError, match="is it a node classifier, and which node is meant"):
        butfor.explain(model, data)


def test_a_graph_with_ids_of_its_own() -> None:
    model, data = random_problem(1)
    data.node_ids = [f"acct_{number}" for number in range(8)]
    assert str(butfor.explain(model, data, 3)).startswith("Node acct_3 is predicted")


SMALL = path(torch.ones(4, 3))


@pytest.mark.parametrize(
    ("data", "target", "message"),
    [
        (SMALL, [0, Pair(0, 1)], "nodes and pairs of nodes were given together"),
        (SMALL, [Pair(0, 1), 2], "nodes and pairs of nodes were given together"),
        (SMALL, [(0, 1)], r"\(0, 1\) is not a node"),
        (SMALL, [None], "None is not a node"),
        (SMALL, "0", "'0' is not a node"),
        (SMALL, 0.5, r"0\.5 is not a node"),
        (SMALL, 1.0, r"1\.0 is not a node"),
        (SMALL, torch.tensor(1.5), r"1\.5 is not a node"),
        (SMALL, torch.tensor([1.5]), r"1\.5 is not a node"),
        (SMALL, True, "True is not a node"),
        (SMALL, torch.tensor([True, False]), r"mask has shape \(2,\), but the graph has 4 nodes"),
        ([SMALL, SMALL], 0, "give one graph to explain its nodes or links"),
        ([SMALL, SMALL], Pair(0, 1), "several graphs are explained as wholes"),
        (7, None, "give one graph"),
    ],
)
def test_targets_that_make_no_sense_are_refused(data: object, target: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        butfor.explain(GCN(3, 4, 1, 2).eval(), data, target)


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        (Pair(0, 4), r"node 4 is not in this graph \(0 to 3\)"),
        (Pair(-1, 2), r"node -1 is not in this graph \(0 to 3\)"),
        (Pair(1.5, 2), r"node 1\.5 is not in this graph \(0 to 3\)"),
    ],
)
def test_a_pair_outside_the_graph_is_refused(pair: Pair, message: str) -> None:
    with pytest.raises(InputError, match=message):
        butfor.explain(LinkModel().eval(), SMALL, pair, goal=Goal(threshold=0.0))


# Graphs of several types.


def test_a_mask_of_nodes_is_of_the_predicted_type() -> None:
    data = library(2)
    model = build("SAGE", 0, data)
    mask = torch.tensor([True, False, True])
    results = butfor.explain(model, data, mask, node_type="author")
    assert [result.target for result in results] == [0, 2]
    assert results == butfor.explain(model, data, [0, 2], node_type="author")


@pytest.mark.parametrize(
    ("target", "node_type", "message"),
    [
        (0, None, "several node types; say which is predicted: node_type='author' or 'paper' or 'venue'"),
        (0, "editor", r"node type 'editor' is not in this graph \(author, paper, venue\)"),
        (4, "paper", r"paper 4 is not in this graph \(0 to 3\)"),
        (-1, "paper", r"paper -1 is not in this graph \(0 to 3\)"),
        (torch.tensor([True]), "paper", r"mask has shape \(1,\), but the graph has 4 nodes"),
        (None, "paper", "node_type is 'paper', but a whole graph is asked about; leave it out, or say which paper"),
    ],
)
def test_targets_that_do_not_fit_are_refused(target: object, node_type: str | None, message: str) -> None:
    data = library(0)
    with pytest.raises(InputError, match=message):
        butfor.explain(build("SAGE", 0, data), data, target, node_type=node_type)


@pytest.mark.parametrize("node_type", [None, "editor"])
def test_a_mask_does_not_hide_that_the_node_type_is_wrong(node_type: str | None) -> None:
    data = library(0)
    with pytest.raises(InputError, match=r"node[ _]type"):
        butfor.explain(build("SAGE", 0, data), data, torch.ones(4, dtype=torch.bool), node_type=node_type)
