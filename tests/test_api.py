"""The one verb: what may be asked about, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import butfor
from butfor.errors import InputError
from butfor.problem.goal import Goal
from butfor.result.counterfactual import Counterfactual
from butfor.testing import random_problem


def test_explain_takes_one_node_several_or_a_mask() -> None:
    model, data = random_problem(1)
    one = butfor.explain(model, data, 3)
    assert isinstance(one, Counterfactual)
    assert butfor.explain(model, data, np.int64(3)) == one
    several = butfor.explain(model, data, [3, 1, 3])
    assert [result.target for result in several] == [3, 1, 3]
    assert several[0] == several[2] == one
    mask = torch.zeros(8, dtype=torch.bool)
    mask[[1, 3]] = True
    assert butfor.explain(model, data, mask) == [several[1], one]
    assert butfor.explain(model, data, torch.tensor([3, 1])) == several[:2]
    assert butfor.explain(model, data, []) == []


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        (8, {}, r"node 8 is not in this graph \(0 to 7\)"),
        ([0, -1], {}, "node -1 is not in this graph"),
        (["a"], {}, "'a' is not a node"),
        ([1.5], {}, "1.5 is not a node"),
        (torch.ones(3, dtype=torch.bool), {}, "the graph has 8 nodes"),
        (0, {"method": "greedy"}, "give a method such as butfor.Exact"),
        (0, {"goal": Goal(wanted=3)}, "class 3 is wanted, but the model has classes 0 to 2"),
        (0, {"goal": Goal(least=-1.0)}, "least margin is -1"),
    ],
)
def test_arguments_that_make_no_sense(target, options: dict, message: str) -> None:
    model, data = random_problem(1)
    with pytest.raises(InputError, match=message):
        butfor.explain(model, data, target, **options)


def test_class_names_follow_the_data() -> None:
    model, data = random_problem(1)
    assert butfor.explain(model, data, 0).before.name.startswith("class ")
    data.class_names = ["red", "green", "blue"]
    assert butfor.explain(model, data, 0).before.name in data.class_names


def test_prepare_refuses_what_is_no_task() -> None:
    with pytest.raises(InputError, match="task is 'nodes'; give 'node', 'link' or 'graph'"):
        butfor.prepare(*random_problem(1), task="nodes")


def test_progress_is_shown_on_a_terminal_only(capsys: pytest.CaptureFixture[str]) -> None:
    model, data = random_problem(1)
    assert butfor.explain(model, data, [0, 1], progress=True) == butfor.explain(model, data, [0, 1])
    assert capsys.readouterr() == ("", "")
    with pytest.raises(InputError, match="progress is 1; give True or False"):
        butfor.explain(model, data, 0, progress=1)
