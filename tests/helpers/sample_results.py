"""Two results as they are read from a file: one with a counterfactual, one without."""

from __future__ import annotations

from dataclasses import replace

from butfor import Counterfactual, Deletion, Goal, Prediction, Status
from butfor.problem.method_record import MethodRecord

RESULT = Counterfactual(
    target=17,
    status=Status.FOUND,
    before=Prediction(1, "motif", 0.93),
    after=Prediction(0, "base", 0.81),
    edits=(Deletion(17, 20), Deletion(20, 21)),
    cost=2.0,
    lower_bound=1.0,
    task="node",
    nodes=30,
    edges=34,
    directed=False,
    goal=Goal(),
    method=MethodRecord("Greedy", {"width": 64}),
    evaluations=40,
    seed=0,
    space_id="",
    graph_id="a" * 16,
    model_id="b" * 16,
    seconds=0.1,
    versions={"butfor": "0.1.0"},
)
NOTHING = replace(RESULT, status=Status.UNKNOWN, after=None, edits=(), cost=0.0, lower_bound=2.0)
