"""Where there is no answer: what may stand in the way and what would help, in words that follow from what was asked.

Nothing is searched for it, and nothing that a result claims depends on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from butfor.result.settle import CONTRADICTS
from butfor.result.status import Status

if TYPE_CHECKING:
    from butfor.edits.space import EditSpace
    from butfor.problem.problem import Problem
    from butfor.result.settle import Settled

__all__ = ["ADDITIONS", "hint", "instead"]

# How far from the target edges are added by the edit space that `instead` names.
ADDITIONS = 2

# How much larger the budget is that is named where one was spent.
TIMES = 10


def instead(space: EditSpace) -> str:
    """How to try additions too, where this edit space allows deletions alone, in Python and on the command line."""
    if space.is_default:
        python, file = f"butfor.EditSpace(add=butfor.Within({ADDITIONS}))", f'{{"add": {{"hops": {ADDITIONS}}}}}'
    else:
        python = f"dataclasses.replace(space, add=butfor.Within({ADDITIONS}))"
        file = f'that of --space and "add": {{"hops": {ADDITIONS}}}'
    return (
        f"Missing edges may decide where others do not: otherwise={python} also tries additions within {ADDITIONS} "
        f"hops (on the command line --otherwise FILE, where the file holds {file})."
    )


def hint(settled: Settled, status: Status, method: str, helps: str) -> str:
    """What to say of a target that has no answer; empty for all others.

    Args:
        settled: what was asked, with the meter of the search, and what holds.
        status: what came of it.
        method: the name of the method that searched.
        helps: what `instead` says; empty where there is no use in it.
    """
    if status not in (Status.IMPOSSIBLE, Status.UNKNOWN):
        return ""
    edits, rules = settled.problem.edits, _rules(settled.problem)
    told = [_ended(settled, method)] if status is Status.UNKNOWN else []
    if not edits.num_edges and edits.only_deletes:
        told.append("It has no edges that could be deleted.")
    if rules:
        told.append(f"What may stand in the way: {', '.join(rules)}.")
    return " ".join(filter(None, [*told, helps]))


def _rules(problem: Problem) -> list[str]:
    """What of the question leaves fewer answers, as far as it concerns this target."""
    edits, goal, rules = problem.edits, problem.goal, []
    kept = edits.num_edges - len(edits.deleted.edit)
    if edits.max_edits is not None and edits.max_edits < len(edits):
        rules.append(f"max_edits={edits.max_edits}")
    if kept:
        rules.append(f"{'all' if kept == edits.num_edges else kept} of its {edits.num_edges} edges must stay")
    if edits.keep_connected:
        rules.append("keep_connected=True")
    if goal.wanted is not None and problem.predictor.num_classes > 2:
        rules.append(f"class {goal.wanted} is wanted")
    if goal.least:
        rules.append(f"a lead of at least {goal.least:g}")
    if goal.probability is not None:
        rules.append(f"a probability of at least {goal.probability:g}")
    return rules


def _ended(settled: Settled, method: str) -> str:
    """Why a search ended without an answer, how far it got, and what to raise; empty where other notes say it."""
    problem, bound = settled.problem, settled.proposal.lower_bound
    meter, budget = problem.meter, problem.meter.budget
    if meter.watch is not None and meter.watch.listener.stopped:
        return f"The search was stopped after {meter.evaluations:,} evaluations."
    if budget.evaluations is not None and meter.evaluations >= budget.evaluations:
        limit, raised = f"{budget.evaluations:,} evaluations", TIMES * budget.evaluations
        more = f"budget=butfor.Budget({raised}) (--evaluations {raised})"
    elif method != "Exact":
        return f"{method} ended after {meter.evaluations:,} evaluations; butfor.Exact() (--method exact) searches on."
    elif budget.seconds is not None and problem.can_prove and CONTRADICTS not in settled.proposal.note:
        limit, seconds = f"{budget.seconds:g} seconds", f"{TIMES * budget.seconds:g}"
        more = f"budget=butfor.Budget(None, {seconds}) (--evaluations none --seconds {seconds})"
    else:
        return ""
    got = f", and whatever costs less than {bound:g} is ruled out" if bound > problem.least_cost else ""
    return f"The budget of {limit} is spent{got}: {more} goes further."
