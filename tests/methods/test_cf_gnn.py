"""CF-GNNExplainer: what it may spend, what it does without gradients, and settings that make no sense."""

from __future__ import annotations

import time

import pytest

import butfor
from butfor.errors import InputError
from butfor.methods.cf_gnn import CFGNN, INSTEAD
from butfor.problem.budget import Budget
from butfor.session import Session
from butfor.testing import random_problem
from without_gradients import WithoutGradients


def test_published_settings_are_those_of_the_published_code() -> None:
    method = CFGNN.published(epochs=7, lr=0.3, beta=0.2, momentum=0.9)
    assert method == CFGNN(7, 0.3, 0.2, "sgd", 0.9, distance_gradient=False, degrees="detached", clip=2.0, keep="first")


@pytest.mark.parametrize("fallback", [butfor.Greedy(), butfor.RemoveEgo()], ids=repr)
def test_the_fallback_searches_where_there_are_no_gradients(fallback) -> None:
    model, data = WithoutGradients(), random_problem(0)[1]
    instead = butfor.explain(model, data, range(8), CFGNN(fallback=fallback))
    assert all(INSTEAD.format(type(fallback).__name__) in result.note for result in instead)
    plain = butfor.explain(model, data, range(8), fallback)
    assert [result.removed_edges for result in instead] == [result.removed_edges for result in plain]
    assert [result.evaluations for result in instead] == [result.evaluations for result in plain]
    assert any(result.found for result in plain)


def test_each_target_has_its_own_time_where_they_are_searched_one_by_one() -> None:
    class Slow(WithoutGradients):
        """Takes so long that time for one target is not enough for all."""

        def forward(self, x, edge_index):
            time.sleep(0.01)
            return super().forward(x, edge_index)

    results = butfor.explain(Slow(), random_problem(0)[1], range(3), CFGNN(), budget=Budget(None, seconds=0.05))
    assert all(result.evaluations for result in results)


def test_steps_are_counted_on_the_meter_of_the_problem() -> None:
    session = Session.of(*random_problem(3, nodes=10))
    for spent, limit, steps in ((0, 4, 4), (3, 4, 1), (4, 4, 0), (0, None, 6)):
        problem = session.problem(0).metered(Budget(limit))
        problem.meter.count(spent)
        CFGNN(epochs=6, lr=1e-9).solve(problem)
        assert problem.meter.evaluations == spent + steps


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"epochs": 0}, "epochs is 0"),
        ({"lr": -1}, "lr is -1"),
        ({"lr": 1e31}, "lr is 1e"),
        ({"start": -1e31}, "start is -1e"),
        ({"beta": -0.5}, "beta is -0.5"),
        ({"optimizer": "lbfgs"}, "optimizer is 'lbfgs'"),
        ({"degrees": "hard"}, "degrees is 'hard'"),
        ({"keep": "last"}, "keep is 'last'"),
        ({"momentum": 1.0}, "momentum is 1.0"),
        ({"optimizer": "adam", "momentum": 0.5}, "momentum is for optimizer 'sgd'"),
        ({"clip": 0.0}, "clip is 0.0"),
        ({"fallback": None}, "fallback is None; give a method"),
    ],
)
def test_senseless_settings_are_refused(settings: dict, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        CFGNN(**settings)
