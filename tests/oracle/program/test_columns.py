"""Columns of a maximum that no edit can change are left out, and nothing else is."""

from __future__ import annotations

import numpy as np
import pytest
from torch_geometric.nn import GraphSAGE

import butfor
from butfor.edits.edits import pack
from butfor.oracle.program.columns import leave_out_constant_columns
from butfor.oracle.program.oracle import ProgramOracle
from butfor.oracle.program.steps import Linear, Reduce, Space, Value
from butfor.oracle.ties import near_ties
from butfor.testing import random_problem


def maximum_times_matrix(data, edges, empty=0.0):
    """The maximum over three entries into two rows, times a matrix; the steps of both."""
    source = Value(Space(len(data)), data.shape[1], data)
    inner = Reduce([source], "amax", np.array([0, 0, 1]), np.array([0, 1, 2]), np.array(edges), empty)
    largest = Value(Space(2), data.shape[1], step=inner)
    matrix = np.arange(2.0 * data.shape[1]).reshape(-1, 2) + 1
    return Value(Space(2), 2, step=Linear([largest], matrix))


DATA = np.array([[0.0, 5.0, 1.0], [0.0, 5.0, 2.0], [0.0, 5.0, 0.0]])


@pytest.mark.parametrize(
    ("edges", "width", "added"),
    [
        ([0, 1, 2], 2, [0.0, 0.0]),  # 5 is not what a row without entries has, so only the zeros are constant
        ([0, -1, -1], 1, [15.0, 20.0]),  # each row has an entry that is always there
        ([-1, -1, 2], 2, [0.0, 0.0]),  # the second row can lose all that it has
    ],
)
def test_only_what_no_edit_changes_is_left_out(edges, width, added):
    out = maximum_times_matrix(DATA, edges)
    leave_out_constant_columns(out)
    assert out.step.inputs[0].width == out.step.inputs[0].step.inputs[0].width == len(out.step.matrix) == width
    assert np.array_equal(out.step.added.data, [added])


def test_a_value_keeps_a_column():
    out = maximum_times_matrix(np.zeros((3, 2)), [0, 1, 2])
    leave_out_constant_columns(out)
    assert out.step.inputs[0].width == 1


def test_an_editable_value_keeps_all():
    out = maximum_times_matrix(DATA, [0, 1, 2])
    out.step.inputs[0].step.inputs[0].editable = True
    leave_out_constant_columns(out)
    assert out.step.inputs[0].width == 3


@pytest.mark.parametrize("aggregation", ["max", "min"])
@pytest.mark.parametrize("shift", [0.0, 1.0, -1.0])
def test_the_model_says_the_same(aggregation, shift):
    _, data = random_problem(seed=3)
    data.x = data.x.relu().round() + shift  # many columns and entries are equal, above, at and below what is empty
    data.x[:, 0] = 0.0
    model = GraphSAGE(data.num_features, 8, 2, 3, aggr=aggregation).eval()
    session = butfor.prepare(model, data)
    rng = np.random.default_rng(0)
    for target in range(6):
        problem = session.problem(target)
        if not len(problem.edits):
            continue
        oracle = problem.oracle
        assert isinstance(oracle, ProgramOracle)
        sets = pack([np.flatnonzero(rng.random(len(problem.edits)) < share) for share in (0.1, 0.3, 0.6, 0.9, 1.0)])
        mine = oracle._values(problem.edits, sets, np.full(len(sets), -1), np.arange(len(sets) + 1))
        truth = oracle.general.logits([(problem.edits, sets)])[0].numpy()
        assert np.allclose(mine, truth, atol=1e-5)


def test_near_ties_are_those_that_sorting_finds():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(200, 4))
    scores[::3, 1] = scores[::3, 2] + 1e-6
    scores[5], scores[6, 0] = 1.0, np.nan
    scores[7] = -np.inf
    second, first = np.partition(scores, -2, axis=1)[:, -2:].T
    with np.errstate(invalid="ignore"):
        expected = np.flatnonzero(first - second <= 1e-5 * (1 + np.abs(first)))
    assert np.array_equal(near_ties(scores, 1e-5), expected)
