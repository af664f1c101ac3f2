"""``butfor explain``: verified counterfactuals, one per line, each as soon as it is found."""

import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter, validators

from butfor.boundary.printable import printable
from butfor.cli.edit_space import read_space
from butfor.cli.hyperparameters import FLAGS, make_method
from butfor.cli.interrupts import exit_code
from butfor.cli.job import Job, Search, Targets, WholeGraphs, WithinGraph
from butfor.cli.output import note, say
from butfor.cli.proofs import Proofs, beside
from butfor.cli.source import Seed, Source
from butfor.errors import ButforError, InputError
from butfor.methods import METHODS
from butfor.predict.predictor import Scope
from butfor.problem.budget import Budget
from butfor.problem.builder import MAX_EDGES
from butfor.problem.goal import Goal
from butfor.runs import Outcome, Store
from butfor.runs.store import check_output_path
from butfor.session import Session

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from butfor.result.counterfactual import Counterfactual

    MethodName = str
    Flags = Any
else:
    MethodName = Literal[tuple(METHODS)]
    Flags = FLAGS

__all__ = ["explain"]

DEFAULT = Budget()

SEARCH = Group("Search", sort_key=12)
OUTPUT = Group("Output", sort_key=13)
Count = Annotated[int, Parameter(validator=validators.Number(gte=1))]


def explain(
    *,
    source: Source | None = None,
    nodes: Annotated[str | None, Parameter(group=SEARCH)] = None,
    links: Annotated[str | None, Parameter(group=SEARCH)] = None,
    graphs: Annotated[str | None, Parameter(group=SEARCH)] = None,
    limit: Annotated[Count | None, Parameter(group=SEARCH)] = None,
    method: Annotated[MethodName, Parameter(group=SEARCH)] = "exact",
    published_choices: Annotated[bool, Parameter(group=SEARCH, negative=(), show_default=False)] = False,
    flags: Flags = None,
    wanted: Annotated[str | None, Parameter(group=SEARCH)] = None,
    least: Annotated[float, Parameter(group=SEARCH)] = 0.0,
    probability: Annotated[float | None, Parameter(group=SEARCH)] = None,
    threshold: Annotated[float | None, Parameter(group=SEARCH)] = None,
    space: Annotated[Path | None, Parameter(group=SEARCH)] = None,
    otherwise: Annotated[Path | None, Parameter(group=SEARCH)] = None,
    protect: Annotated[str, Parameter(group=SEARCH, show_default=False)] = "",
    evaluations: Annotated[int | Literal["none"], Parameter(group=SEARCH)] = DEFAULT.evaluations or "none",
    seconds: Annotated[float | None, Parameter(group=SEARCH)] = None,
    seed: Annotated[Seed, Parameter(group=SEARCH)] = 0,
    verify: Annotated[Scope | None, Parameter(group=SEARCH)] = None,
    max_edges: Annotated[Count, Parameter(group=SEARCH)] = MAX_EDGES,
    out: Annotated[Path | None, Parameter(group=OUTPUT)] = None,
    quiet: Annotated[bool, Parameter(group=OUTPUT, negative=(), show_default=False)] = False,
) -> int:
    """Explain nodes, links or whole graphs. Each result is saved as soon as it is verified.

    Args:
        source: the model and the graph.
        nodes: the nodes to explain: a list such as 1,2,5-9; a file of such lists, or @file; the name of a mask, such as
            test; or all. If the nodes have ids of their own, as from a node table, lists are of these ids. By default
            the test nodes.
        links: explain links instead, given as pairs of nodes such as 3-17,4-9; or a file of such lists, or @file.
        graphs: explain whole graphs instead: a list such as 1,2,5-9 of their numbers in the file, counted from 0; a
            file of such lists, or @file; all; or test, the graphs that were kept for testing when the checkpoint was
            trained. The default for several graphs is test.
        limit: explain only the first LIMIT targets.
        method: the search method.
        published_choices: for cf-gnn, take the defaults of the published code instead of the paper's.
        flags: the method's hyper-parameters.
        wanted: the class to reach, by number or name; by default any other class.
        least: by how much the logit of the new class must exceed the others, or by how much a single number must be
            beyond --threshold.
        probability: the lowest probability that the new class may have.
        threshold: for a model that returns one number: it predicts class 1 above this threshold, and class 0 otherwise.
        space: a JSON file that says which edits are allowed and what they cost: the fields of butfor.EditSpace, such as
            {"add": {"hops": 2}, "max_edits": 3}. Text in protected or costs names an attribute of the graph's edges:
            {"protected": "is_frozen", "costs": "price"}. By default every edge may be deleted, at a cost of 1.
        otherwise: a JSON file like that of --space: edits that are tried too where those of --space give no answer. The
            result stays what it is, and says what would help.
        protect: edges that must not be deleted, such as 3-17,4-9, in addition to those that --space protects.
        evaluations: how many edit sets to try at most for each target; none for no limit.
        seconds: how much time to spend at most on each target.
        seed: the seed of methods that draw random numbers.
        verify: what edits are verified on: whole-graph, or the receptive-field of each target, which costs the same
            however large the graph is. By default the whole graph, unless that is too large.
        max_edges: a target whose neighbourhood has more edges is not searched. The default fits into 2 GB of memory.
        out: append the results to this file (JSON Lines). If it already holds results of the same run, their targets
            are not explained again. Without this option the results are printed.
        quiet: show no progress bar and no notes.
    """
    started = time.monotonic()
    if out is not None:
        check_output_path(out)
    budget = Budget(None if evaluations == "none" else evaluations, seconds)
    subject = (source or Source()).read()
    targets = Targets.of(subject, nodes, links, graphs)
    search = Search(make_method(method, flags, published_choices), budget, seed)
    certified = getattr(search.method, "certificate", False)
    if certified and out is None:
        raise InputError("--certificate writes proofs beside the results: give --out FILE too")
    settings: dict[str, Any] = {
        "goal": Goal(wanted, least, probability, threshold),
        "directed": None if source is None else source.options.directed,
        "verify": verify,
        "max_edges": max_edges,
    }
    job: Job
    if targets.task == "graph":
        numbers = targets.numbers(subject)[:limit]
        only = subject.graphs[numbers[0]] if len(numbers) == 1 else None
        spaces = _spaces(space, otherwise, protect, only)
        job = WholeGraphs(subject, numbers, search, {**settings, **spaces})
    else:
        chosen = targets.within(subject.graph)[:limit]
        spaces = _spaces(space, otherwise, protect, subject.graph)
        session = Session.of(subject.model, subject.graph, task=targets.task, **spaces, **settings)
        job = WithinGraph(session, chosen, search)
    proofs = Proofs(beside(out) if certified and out is not None else None)
    with proofs, _Printer() if out is None else Store(out, job.run) as sink:
        todo = [target for target in job.targets if target not in sink.done]
        _note_earlier_results(sink, job, len(todo), quiet)
        try:
            for result in job.results(todo, quiet):
                # The proof first: a result that is in the file is not explained again.
                proofs.append(result)
                sink.append(result)
        except (KeyboardInterrupt, ButforError) as problem:
            progress = _describe_progress(sink, job)
            if isinstance(problem, ButforError):
                note(progress, quiet)
                raise
            print(f"interrupted: {printable(progress)}", file=sys.stderr)
            return exit_code(problem)
        outcomes = [sink.done[target] for target in job.targets]
        summary = _summary(outcomes, job.what, time.monotonic() - started)
    if out is not None:
        say(f"{summary}; results in {out}{f', proofs in {proofs.path}' if certified else ''}")
    elif not quiet:
        print(summary, file=sys.stderr)
    return 0


def _spaces(space: Path | None, otherwise: Path | None, protect: str, data: "Data | None") -> dict[str, Any]:
    """What may be edited, and what else may be where that gives no answer; protected edges stay in both."""
    other = None if otherwise is None else read_space(otherwise, protect, data)
    return {"space": read_space(space, protect, data), "otherwise": other}


class _Printer:
    """Stands in for a store where there is no file: it only prints the results."""

    def __init__(self) -> None:
        self.done: dict[int | tuple[int, int], Outcome] = {}

    def append(self, result: "Counterfactual") -> None:
        """Print the result's sentence."""
        say(str(result))
        self.done[result.target] = Outcome(result.status, result.size)

    def __enter__(self) -> "_Printer":
        return self

    def __exit__(self, *_: object) -> None:
        pass


def _note_earlier_results(sink: _Printer | Store, job: Job, todo: int, quiet: bool) -> None:
    """Say how much of the job an earlier run has done."""
    if not isinstance(sink, Store):
        return
    if sink.notice:
        note(sink.notice, quiet)
    total = len(job.targets)
    if not todo:
        note(f"all {total} {job.what}s are in {sink.path} already: nothing to do", quiet)
    elif todo < total:
        note(f"{total - todo} of {total} {job.what}s are in {sink.path} already: going on with the rest", quiet)


def _describe_progress(sink: _Printer | Store, job: Job) -> str:
    """How many targets are done, and how the run can be continued."""
    done = sum(target in sink.done for target in job.targets)
    progress = f"{done} of {len(job.targets)} {job.what}s are done"
    if isinstance(sink, Store):
        return f"{progress} and kept in {sink.path}; the same command goes on with the rest"
    return f"{progress}; with --out FILE a run that was interrupted can be continued"


def _summary(outcomes: Sequence[Outcome], what: str, seconds: float) -> str:
    sizes = [outcome.size for outcome in outcomes if outcome.size is not None]
    mean = f"; mean size {sum(sizes) / len(sizes):.2f}" if sizes else ""
    counts = Counter(str(outcome.status) for outcome in outcomes)
    statuses = ", ".join(f"{status} {count}" for status, count in sorted(counts.items()))
    found = f"{len(sizes)} of {len(outcomes)} {what}s have a counterfactual{mean}"
    return f"{found}; status: {statuses}; {seconds:.1f} s"
