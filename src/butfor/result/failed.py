"""The result of a target whose search broke off: it claims nothing, and says why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from butfor.graph.node_names import names_of
from butfor.result.assemble import versions
from butfor.result.counterfactual import Counterfactual
from butfor.result.status import Prediction, Status

if TYPE_CHECKING:
    from butfor.predict.predictor import Predictor
    from butfor.problem.goal import Goal
    from butfor.result.assemble import Provenance

__all__ = ["failed"]

# The prediction is not looked up: running the model may be what failed.
UNKNOWN = Prediction(0, "unknown", None)


def failed(
    target: int | tuple[int, int], predictor: Predictor, goal: Goal, provenance: Provenance, seed: int, why: str
) -> Counterfactual:
    """The result of a target, by its number in the results."""
    kind = predictor.node_type
    ends = target if isinstance(target, tuple) else (target,)
    kinds = kind if isinstance(kind, tuple) else (kind,) * len(ends)
    named = set() if predictor.task == "graph" else set(zip(ends, kinds, strict=True))
    return Counterfactual(
        target=tuple(target) if isinstance(target, tuple) else target,  # type: ignore[arg-type]  # of two
        status=Status.FAILED,
        before=UNKNOWN,
        after=None,
        edits=(),
        cost=0.0,
        lower_bound=0.0,
        task=predictor.task,
        nodes=0,
        edges=0,
        directed=predictor.graph.directed,
        goal=goal,
        method=provenance.method,
        evaluations=0,
        seed=seed,
        space_id=provenance.space_id,
        graph_id=provenance.graph_id,
        model_id=provenance.model_id,
        node_type=kind,
        note=why,
        names=names_of(predictor.graph.data, named),
        versions=versions(),
    )
