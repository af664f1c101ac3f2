"""A problem counts what it is asked, and looks at the clock."""

from __future__ import annotations

import butfor
from butfor.edits.rules import Rules
from butfor.edits.space import EditSpace
from butfor.graph.graph import Graph
from butfor.oracle.general import ModelOracle
from butfor.predict.predictor import Predictor
from butfor.problem.goal import Goal
from butfor.problem.problem import Problem
from butfor.testing import random_problem


def test_time_is_looked_at_between_pieces() -> None:
    model, data = random_problem(2, nodes=12)
    graph = Graph.of(data)
    oracle = ModelOracle(Predictor.of(model, graph), max_numbers=1)
    edits = Rules.of(EditSpace(), graph).edits(graph.neighbourhood(0, 3))
    problem = Problem(oracle.predictor, oracle, edits, Goal(), oracle.predictor.logits[0])
    late = problem.metered(butfor.Budget(seconds=1e-9))
    assert len(late.extend([], edits.edit_of[:5].clip(0)).margins) == 1
    assert late.meter.spent
