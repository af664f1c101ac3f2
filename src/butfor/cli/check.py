"""``butfor check``: check the proofs of results, without the search that found them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

from cyclopts import Group, Parameter

from butfor.certificate.check import Refused
from butfor.certificate.record import read_certificates
from butfor.cli.edit_space import read_space
from butfor.cli.output import read_with_notes, say
from butfor.cli.progress import Tally, progress
from butfor.cli.proofs import beside
from butfor.cli.provenance import check_provenance, graph_of
from butfor.cli.source import Source
from butfor.errors import InputError, StoreError
from butfor.problem.target import Pair
from butfor.result.status import Status
from butfor.result.verify import verify
from butfor.session import Session

if TYPE_CHECKING:
    from butfor.certificate.record import Certificate
    from butfor.predict.call import Task
    from butfor.problem.problem import Problem
    from butfor.result.counterfactual import Counterfactual

__all__ = ["check"]

RULES = Group("Rules", sort_key=12)


def check(
    results: Path,
    /,
    *,
    certificate: Path | None = None,
    source: Source | None = None,
    space: Annotated[Path | None, Parameter(group=RULES)] = None,
    protect: Annotated[str, Parameter(group=RULES, show_default=False)] = "",
    quiet: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
) -> int:
    """Check results that have a certificate: the edits on the whole graph, and every step of the proof.

    Args:
        results: a file that butfor explain --certificate wrote.
        certificate: the file with the proofs; by default the one beside the results.
        source: the model and the graph that the results are of.
        space: the JSON file that said which edits were allowed, if there was one.
        protect: the edges that must not be deleted, as for butfor explain.
        quiet: say nothing of results that hold.
    """
    found = read_with_notes(results)
    if not found:
        raise StoreError(f"{results} holds no results")
    if source is None or not source.names_model:
        raise InputError("a proof is checked on the model and the graph: give --checkpoint FOLDER, for example")
    proofs = list(read_certificates(certificate or beside(results)))
    subject = source.read()
    check_provenance(results, found, subject)
    refused = without = 0
    sessions: dict[tuple[int, str], Session] = {}
    for result in progress(found, Tally(len(found), found[0].task), "checking", "none" if quiet else "auto"):
        if result.status is Status.FAILED:
            without += 1
            continue
        data = graph_of(result, subject)
        key = id(data), str(result.goal)
        if key not in sessions:
            sessions[key] = Session.of(
                subject.model, data, task=cast("Task", result.task), goal=result.goal, node_type=result.node_type,
                space=read_space(space, protect, data), directed=source.options.directed,
            )  # fmt: skip
        target = Pair(*result.target) if isinstance(result.target, tuple) else result.target
        problem = sessions[key].problem(None if result.task == "graph" else target)
        mine = [one for one in proofs if one.target == problem.target and one.graph_id == result.graph_id]
        if not mine:
            without += 1
            continue
        try:
            said = _confirmed(sessions[key], problem, result, mine[-1])
        except Refused as problem_found:
            refused += 1
            say(f"{result.target_name}: refused: {problem_found}")
            continue
        if not quiet:
            say(f"{result.target_name}: {said}")
    confirmed = len(found) - refused - without
    say(f"{confirmed} of {len(found)} results are confirmed; {refused} refused, {without} without a certificate")
    return 2 if refused else 0


def _confirmed(session: Session, problem: "Problem", result: "Counterfactual", proof: "Certificate") -> str:
    """What was confirmed of a result.

    Raises:
        Refused: something is wrong with the result or its proof.
    """
    chosen = _numbers(problem, result)
    if (result.status is Status.REACHED) != problem.reached:
        raise Refused(f"the intact graph {'reaches' if problem.reached else 'does not reach'} the goal")
    if result.edits and abs(problem.edits.cost(chosen) - result.cost) > problem.edits.rounding(result.cost):
        raise Refused(f"its edits cost {problem.edits.cost(chosen):g}, not {result.cost:g}")
    if result.edits and not verify(problem, chosen).reached:
        raise Refused("its edits do not reach the goal on the whole graph")
    checked = session.check(proof)
    claimed = float("inf") if result.status is Status.IMPOSSIBLE else result.lower_bound or 0.0
    if proof.limit < claimed:
        raise Refused(f"it proves less than the result claims: nothing below {proof.limit:g}, not below {claimed:g}")
    if result.status is Status.OPTIMAL and problem.edits.cost(chosen) > claimed + problem.edits.rounding(claimed):
        raise Refused("its edits cost more than the proof rules out, so that they are not proved smallest")
    return f"{result.status} holds ({checked.tried} sets tried, {checked.bounded} branches bounded)"


def _numbers(problem: "Problem", result: "Counterfactual") -> list[int]:
    """The numbers of a result's edits.

    Raises:
        Refused: one of them is not allowed.
    """
    wanted, numbers = set(result.edits), []
    for edit in range(len(problem.edits)):
        records = set(problem.edits.records([edit]))
        if records & wanted:
            numbers.append(edit)
            wanted -= records
    if wanted:
        raise Refused("it makes an edit that is not allowed")
    return numbers
