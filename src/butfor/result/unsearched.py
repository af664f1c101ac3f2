"""The result of a target that was not searched, or not to an end: it claims nothing, and says why."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from butfor.graph.node_names import names_of
from butfor.result.assemble import prediction, versions
from butfor.result.counterfactual import Counterfactual
from butfor.result.status import Prediction, Status

if TYPE_CHECKING:
    from butfor.predict.predictor import Predictor
    from butfor.problem.builder import TooLarge
    from butfor.problem.goal import Goal
    from butfor.result.assemble import Provenance

__all__ = ["failed", "too_large"]


def failed(
    target: int | tuple[int, int], predictor: Predictor, goal: Goal, provenance: Provenance, seed: int, why: str
) -> Counterfactual:
    """The result of a target whose search broke off, by its number in the results.

    The prediction is not looked up: running the model may be what failed.
    """
    return _unsearched(target, predictor, goal, provenance, seed, why, Status.FAILED)


def too_large(problem: TooLarge, predictor: Predictor, goal: Goal, provenance: Provenance, seed: int) -> Counterfactual:
    """The result of a target whose neighbourhood is too large, with the prediction where that is known."""
    types = predictor.graph.types
    nodes = [node if types is None else types.local(node)[1] for node in problem.target]
    target = (nodes[0], nodes[1]) if predictor.task == "link" else nodes[0]
    result = _unsearched(target, predictor, goal, provenance, seed, str(problem), Status.UNKNOWN)
    if predictor.scope == "whole-graph":
        before = prediction(predictor, predictor.intact_logits([problem.target])[0], provenance.context.class_names)
        result = replace(result, before=before)
    return replace(result, edges=problem.size, hops=problem.hops, flow=predictor.flow)


def _unsearched(
    target: int | tuple[int, int],
    predictor: Predictor,
    goal: Goal,
    provenance: Provenance,
    seed: int,
    why: str,
    status: Status,
) -> Counterfactual:
    kind = predictor.node_type
    ends = target if isinstance(target, tuple) else (target,)
    kinds = kind if isinstance(kind, tuple) else (kind,) * len(ends)
    named = set() if predictor.task == "graph" else set(zip(ends, kinds, strict=True))
    return Counterfactual(
        target=tuple(target) if isinstance(target, tuple) else target,  # type: ignore[arg-type]  # of two
        status=status,
        before=Prediction.unknown(),
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
