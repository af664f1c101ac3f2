"""``butfor explain``: verified counterfactuals, one per line, each as soon as it is found."""

import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter, validators

from butfor.boundary.printable import printable
from butfor.cli.edit_space import read_space
from butfor.cli.hyperparameters import FLAGS, make_method
from butfor.cli.interrupts import exit_code
from butfor.cli.job import Job, Search, Targets, WholeGraphs, WithinGraph
from butfor.cli.output import note, say
from butfor.cli.progress import ProgressKind
from butfor.cli.proofs import Proofs, beside
from butfor.cli.source import Seed, Source
from butfor.errors import ButforError, InputError
from butfor.executors import Processes, Ray
from butfor.graphs import Graphs
from butfor.methods import METHODS
from butfor.predict.predictor import Scope
from butfor.problem.budget import Budget
from butfor.problem.builder import MAX_EDGES
from butfor.problem.goal import Goal
from butfor.runs import Folder, Outcome, Store
from butfor.runs.folder import check_folder
from butfor.runs.shards import Format
from butfor.runs.store import check_output_path
from butfor.session import Session

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from butfor.executors import Executor
    from butfor.result.counterfactual import Counterfactual

    MethodName = str
    Flags = Any
else:
    MethodName = Literal[tuple(METHODS)]
    Flags = FLAGS

__all__ = ["explain"]

DEFAULT = Budget()

SEARCH = Group("Search", sort_key=12)
WHERE = Group("Workers", sort_key=13)
OUTPUT = Group("Output", sort_key=14)
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
    jobs: Annotated[Count | None, Parameter(group=WHERE)] = None,
    executor: Annotated[Literal["processes", "ray"], Parameter(group=WHERE)] = "processes",
    address: Annotated[str | None, Parameter(group=WHERE)] = None,
    out: Annotated[str | None, Parameter(group=OUTPUT)] = None,
    format: Annotated[Format | None, Parameter(group=OUTPUT)] = None,
    retry_failed: Annotated[bool, Parameter(group=OUTPUT, negative=(), show_default=False)] = False,
    progress: Annotated[ProgressKind, Parameter(group=OUTPUT)] = "auto",
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
        jobs: how many workers search at the same time; by default 1, or all CPUs of a Ray cluster.
        executor: where they are: processes of this machine, or a Ray cluster, which is started on this machine unless
            there is an --address.
        address: the address of a Ray cluster, such as auto or ray://head:10001.
        out: append the results to this file (JSON Lines). If it already holds results of the same run, their targets
            are not explained again. A name that ends with / is a folder, for very many results: it gets a manifest and
            shards, each written at once. Without this option the results are printed.
        format: the format of the shards in a folder; jsonl by default.
        retry_failed: explain targets again whose results in --out have the status failed.
        progress: how to say on standard error how far the run is. By default a bar on a terminal, and a line now and
            then if it is redirected; json is for machines.
        quiet: show no progress bar and no notes.
    """
    started = time.monotonic()
    if retry_failed and out is None:
        raise InputError("--retry-failed is about results of an earlier run: give --out FILE too")
    place = None if out is None else _Place.of(out, format, retry_failed)
    workers = _executor(jobs, executor, address)
    budget = Budget(None if evaluations == "none" else evaluations, seconds)
    subject = (source or Source()).read()
    targets = Targets.of(subject, nodes, links, graphs)
    search = Search(make_method(method, flags, published_choices), budget, seed, workers)
    certified = getattr(search.method, "certificate", False)
    if certified and place is None:
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
        job = WholeGraphs(Graphs(subject.model, subject.graphs, {**settings, **spaces}, numbers[0]), numbers, search)
    else:
        chosen = targets.within(subject.graph)[:limit]
        spaces = _spaces(space, otherwise, protect, subject.graph)
        session = Session.of(subject.model, subject.graph, task=targets.task, **spaces, **settings)
        job = WithinGraph(session, chosen, search)
    proofs = Proofs(beside(place.path) if certified and place is not None else None)
    with proofs, _Printer() if place is None else place.open(job, budget) as sink:
        todo = [target for target in job.targets if target not in sink.done]
        _note_earlier_results(sink, job, len(todo), quiet)
        try:
            for result in job.results(todo, "none" if quiet else progress) if todo else ():
                # The proof first: a result that is in the file is not explained again.
                proofs.append(result)
                sink.append(result)
        except (KeyboardInterrupt, ButforError) as problem:
            so_far = _describe_progress(sink, job)
            if isinstance(problem, ButforError):
                note(so_far, quiet)
                raise
            print(f"interrupted: {printable(so_far)}", file=sys.stderr)
            return exit_code(problem)
        outcomes = [sink.done[target] for target in job.targets]
        summary = _summary(outcomes, job.what, time.monotonic() - started)
    if out is not None:
        say(f"{summary}; results in {out}{f', proofs in {proofs.path}' if certified else ''}")
    elif not quiet:
        print(summary, file=sys.stderr)
    return 0


@dataclass(frozen=True)
class _Place:
    """Where the results go: a file, or a folder of shards."""

    path: Path
    is_folder: bool
    format: "Format | None"
    retry_failed: bool

    @classmethod
    def of(cls, out: str, format: "Format | None", retry_failed: bool) -> "_Place":
        """What --out, --format and --retry-failed say.

        Raises:
            StoreError: nothing can be written there.
        """
        path = Path(out)
        is_folder = out.endswith(("/", os.sep)) or format is not None or path.is_dir()
        check_folder(path) if is_folder else check_output_path(path)
        if format == "parquet":
            import polars  # noqa: F401 (missing now, and not after hours)
        return cls(path, is_folder, format, retry_failed)

    def open(self, job: Job, budget: Budget) -> Store | Folder:
        """The results there, to be continued."""
        again = self.retry_failed
        if self.is_folder:
            return Folder(self.path, job.run, budget, self.format, retry_failed=again)
        return Store(self.path, job.run, retry_failed=again)


def _executor(jobs: int | None, executor: str, address: str | None) -> "Executor | None":
    if executor == "ray":
        import ray  # noqa: F401 (missing now, and not after the graph was read)

        return Ray(address, jobs)
    if address is not None:
        raise InputError("--address is that of a Ray cluster: give --executor ray too")
    return None if jobs in (None, 1) else Processes(jobs)


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


def _note_earlier_results(sink: _Printer | Store | Folder, job: Job, todo: int, quiet: bool) -> None:
    """Say how much of the job an earlier run has done."""
    if not isinstance(sink, (Store, Folder)):
        return
    if sink.notice:
        note(sink.notice, quiet)
    total = len(job.targets)
    if not todo:
        note(f"all {total} {job.what}s are in {sink.path} already: nothing to do", quiet)
    elif todo < total:
        note(f"{total - todo} of {total} {job.what}s are in {sink.path} already: going on with the rest", quiet)


def _describe_progress(sink: _Printer | Store | Folder, job: Job) -> str:
    """How many targets are done, and how the run can be continued."""
    done = sum(target in sink.done for target in job.targets)
    progress = f"{done} of {len(job.targets)} {job.what}s are done"
    if isinstance(sink, (Store, Folder)):
        return f"{progress} and kept in {sink.path}; the same command goes on with the rest"
    return f"{progress}; with --out FILE a run that was interrupted can be continued"


def _summary(outcomes: Sequence[Outcome], what: str, seconds: float) -> str:
    sizes = [outcome.size for outcome in outcomes if outcome.size is not None]
    mean = f"; mean size {sum(sizes) / len(sizes):.2f}" if sizes else ""
    counts = Counter(str(outcome.status) for outcome in outcomes)
    statuses = ", ".join(f"{status} {count}" for status, count in sorted(counts.items()))
    found = f"{len(sizes)} of {len(outcomes)} {what}s have a counterfactual{mean}"
    return f"{found}; status: {statuses}; {seconds:.1f} s"
