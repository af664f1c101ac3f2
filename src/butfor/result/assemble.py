"""Write down what holds: a `Counterfactual` from what was settled."""

from __future__ import annotations

import platform
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import torch
import torch_geometric

from butfor.certificate.record import Certificate
from butfor.certificate.subject import listed
from butfor.edits.edit import KINDS
from butfor.graph.node_names import names_of
from butfor.predict.class_names import class_name
from butfor.result.counterfactual import Counterfactual
from butfor.result.hint import hint
from butfor.result.status import Prediction, Status
from butfor.result.verify import verify
from butfor.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from butfor.edits.edit import Edit
    from butfor.predict.predictor import Predictor
    from butfor.problem.method_record import MethodRecord
    from butfor.problem.problem import Problem
    from butfor.problem.proposal import Proposal
    from butfor.result.context import PlotContext
    from butfor.result.settle import Settled

__all__ = ["Provenance", "assemble", "prediction", "versions"]


@dataclass(frozen=True, eq=False)
class Provenance:
    """What all results of one session and method have in common.

    Attributes:
        method: the method and its hyper-parameters.
        space_id: fingerprint of what may be edited.
        graph_id: fingerprint of the graph.
        model_id: fingerprint of the model.
        context: what a picture needs.
        number: what a whole graph is called.
        helps: what would help a target without an answer, beside what follows from its own search.
    """

    method: MethodRecord
    space_id: str
    graph_id: str
    model_id: str
    context: PlotContext
    number: int = 0
    helps: str = ""


def assemble(settled: Settled, provenance: Provenance) -> Counterfactual:
    """The result for one target; alternatives are verified here, one by one."""
    problem, proposal, chosen = settled.problem, settled.proposal, settled.chosen
    predictor, near = problem.predictor, problem.edits.neighbourhood
    status, names = _status(settled), provenance.context.class_names
    edits = problem.edits.records(chosen)
    others = [other for other in proposal.alternatives if other != chosen] if settled.logits is not None else []
    alternatives = tuple(problem.edits.records(other) for other in others if verify(problem, other).reached)
    all_known = proposal.complete and chosen in proposal.candidates[:1] and len(alternatives) == len(others)
    named = {
        one for some in (edits, *alternatives) for edit in some for one in zip(edit.nodes, edit.node_types, strict=True)
    }
    return Counterfactual(
        target=_target(problem, provenance.number),
        status=status,
        before=prediction(predictor, problem.logits, names),
        after=None if settled.logits is None else prediction(predictor, settled.logits, names),
        edits=edits,
        cost=problem.edits.cost(chosen),
        lower_bound=None if status is Status.IMPOSSIBLE else proposal.lower_bound,
        task=predictor.task,
        nodes=near.num_nodes,
        edges=problem.edits.num_edges,
        directed=problem.graph.directed,
        goal=problem.goal,
        method=provenance.method,
        evaluations=settled.evaluations,
        seed=problem.seed,
        space_id=provenance.space_id,
        graph_id=provenance.graph_id,
        model_id=provenance.model_id,
        alternatives=alternatives,
        necessity=_necessity([edits, *alternatives]) if all_known else None,
        node_type=predictor.node_type,
        note=_note(settled, hint(settled, status, provenance.method.name, provenance.helps)),
        names=names_of(problem.graph.data, {*(_local(problem, node) for node in problem.target), *named}),
        versions=versions(),
        hops=near.hops,
        flow=predictor.flow,
        verified_on=None if settled.logits is None else predictor.verified_on(problem.target),
        certificate=_certificate(problem, proposal, provenance),
        _context=provenance.context,
    )


def _certificate(problem: Problem, proposal: Proposal, provenance: Provenance) -> Certificate | None:
    """The proof of what the proposal claims, if it was written down."""
    if proposal.tree is None:
        return None
    ids = provenance.graph_id, provenance.model_id, provenance.space_id
    below = None if proposal.exhausted else proposal.lower_bound
    return Certificate(problem.target, below, listed(problem), proposal.tree, str(problem.goal), *ids)


def _status(settled: Settled) -> Status:
    problem, proposal = settled.problem, settled.proposal
    if problem.reached:
        return Status.REACHED
    if settled.logits is None:
        return Status.IMPOSSIBLE if proposal.exhausted else Status.UNKNOWN
    cost = problem.edits.cost(settled.chosen)
    # Rounding apart: sums of the same costs in another order must not turn a proof into a doubt.
    proved = cost <= proposal.lower_bound + problem.edits.rounding(cost)
    return Status.OPTIMAL if proved else Status.FOUND


def _target(problem: Problem, number: int) -> int | tuple[int, int]:
    """What a target is called in its result."""
    nodes = [_local(problem, node)[0] for node in problem.target]
    if problem.predictor.task == "graph":
        return number
    return (nodes[0], nodes[1]) if problem.predictor.task == "link" else nodes[0]


def _local(problem: Problem, node: int) -> tuple[int, str | None]:
    """A node's number within its type, and that type; None in a graph of one type."""
    types = problem.graph.types
    return (node, None) if types is None else types.local(node)[::-1]


def prediction(predictor: Predictor, logits: Tensor, class_names: Sequence[str]) -> Prediction:
    """What these logits of a target predict."""
    label, threshold = int(logits.argmax()), predictor.threshold
    name = class_name(class_names, label)
    if threshold is not None:
        return Prediction(label, name, None, float(logits[1]) + threshold)
    return Prediction(label, name, float(logits.softmax(-1)[label]))


def _necessity(sets: Sequence[Sequence[Edit]]) -> tuple[tuple[Edit, float], ...]:
    """The share of the sets that contain each edit."""
    counts = Counter(edit for edits in sets for edit in edits)
    ordered = sorted(counts, key=lambda edit: (KINDS.index(type(edit)), edit))
    return tuple((edit, counts[edit] / len(sets)) for edit in ordered)


def _note(settled: Settled, hinted: str) -> str:
    problem, proposal = settled.problem, settled.proposal
    failures = problem.meter.failures
    failed = f"On {failures} of the edited graphs tried the model failed or gave no numbers; it says nothing there."
    return " ".join(filter(None, [problem.note, proposal.note, failed if failures else "", hinted]))


@cache
def versions() -> dict[str, str]:
    """What results are computed with."""
    return {
        "butfor": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_geometric": torch_geometric.__version__,
    }
