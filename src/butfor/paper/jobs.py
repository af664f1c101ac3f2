"""Jobs: which methods to run on which benchmark. They are run in several processes, and results are saved at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from butfor.errors import InputError
from butfor.executors import Processes, Serial
from butfor.executors.run import run
from butfor.methods import BatchMethod, RemoveSubgraph
from butfor.models.threads import threads_for
from butfor.paper.benchmark import is_trained
from butfor.paper.explainers import with_trained_explainer
from butfor.problem.budget import Budget
from butfor.runs import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from butfor.methods import Method
    from butfor.paper.benchmark import Benchmark
    from butfor.paper.experiment import Experiment
    from butfor.result.counterfactual import Counterfactual

__all__ = ["Job", "run_jobs"]

# Roughly how many seconds a batch of nodes may take. An interruption loses the batches that are under way.
BATCH_SECONDS = 8.0


@dataclass(frozen=True, eq=False)
class Job:
    """Methods to run on all nodes of a benchmark, one after the other: they may share what they compute.

    Attributes:
        benchmark: the benchmark.
        methods: the methods, by the label under which their results are saved.
        budget: the budget for each node.
        seconds_per_node: a rough estimate; long jobs are started first.
    """

    benchmark: Benchmark
    methods: dict[str, Method]
    budget: Budget = Budget()  # noqa: RUF009 (frozen)
    seconds_per_node: float = 0.01


@dataclass(frozen=True, eq=False)
class _ExplainBatch:
    """Explains some nodes of a job; it is sent to a worker process."""

    experiment: Experiment
    job: Job
    nodes: tuple[int, ...]

    def __call__(self) -> tuple[Job, dict[str, list[Counterfactual]]]:
        """The results of all methods, by label."""
        loaded = self.experiment.load(self.job.benchmark)
        found: dict[str, list[Counterfactual]] = {}
        with threads_for(loaded.data.num_edges):
            for label, method in _with_shared_rankings(self.job.methods).items():
                method = with_trained_explainer(method, loaded.model, loaded.data)
                found[label] = loaded.explain(self.nodes, method, self.job.budget)
        return self.job, found


@dataclass(frozen=True, eq=False)
class _TrainModel:
    """Trains the model of a benchmark; it is sent to a worker process."""

    experiment: Experiment
    benchmark: Benchmark

    def __call__(self) -> None:
        """Train the model and save it in the experiment's folder."""
        self.experiment.load(self.benchmark)


def run_jobs(experiment: Experiment, jobs: Sequence[Job], processes: int) -> None:
    """Run all jobs, except for results that are already saved.

    Raises:
        InputError: a worker process died.
        StoreError: the folder holds results of another run, or cannot be written.
    """
    _train_models(experiment, jobs, processes)
    _explain(experiment, jobs, processes)


def _train_models(experiment: Experiment, jobs: Sequence[Job], processes: int) -> None:
    benchmarks = dict.fromkeys(job.benchmark for job in jobs)
    tasks = [
        _TrainModel(experiment, benchmark)
        for benchmark in benchmarks
        if benchmark.seed is not None and not is_trained(experiment.model_folder(benchmark))
    ]
    with _progress_bar(len(tasks), "training models", "model", experiment.quiet) as bar:
        for _ in _run_tasks(tasks, processes):
            bar.update()


def _explain(experiment: Experiment, jobs: Sequence[Job], processes: int) -> None:
    tasks = [batch for job in without_duplicates(jobs) for batch in _batches(experiment, job)]
    tasks.sort(key=lambda batch: -batch.job.seconds_per_node * len(batch.nodes))
    total = sum(len(batch.nodes) * len(batch.job.methods) for batch in tasks)
    with _progress_bar(total, "explaining", "node", experiment.quiet) as bar:
        for job, found in _run_tasks(tasks, processes):
            for label, results in found.items():
                _save(experiment, job, label, results)
                bar.update(len(results))


def without_duplicates(jobs: Sequence[Job]) -> Iterator[Job]:
    """The jobs without methods that an earlier job runs on the same benchmark, as parts share results."""
    seen: set[tuple[Benchmark, str]] = set()
    for job in jobs:
        new = {label: method for label, method in job.methods.items() if (job.benchmark, label) not in seen}
        seen |= {(job.benchmark, label) for label in new}
        if new:
            yield replace(job, methods=new)


def _batches(experiment: Experiment, job: Job) -> Iterator[_ExplainBatch]:
    """The nodes for which the result of some method is missing, in batches."""
    every = experiment.nodes(job.benchmark)
    missing: set[int] = set()
    for label, method in job.methods.items():
        path = experiment.results_file(job.benchmark, label)
        done: set[Any] = set()
        if path.exists():
            with Store(path, experiment.load(job.benchmark).run(method)) as store:
                done = set(store.done)
        missing |= set(every) - done
    nodes = [node for node in every if node in missing]
    all_at_once = any(isinstance(method, BatchMethod) for method in job.methods.values())
    size = max(1, len(nodes) if all_at_once else int(BATCH_SECONDS / job.seconds_per_node))
    for start in range(0, len(nodes), size):
        yield _ExplainBatch(experiment, job, tuple(nodes[start : start + size]))


def _save(experiment: Experiment, job: Job, label: str, results: Sequence[Counterfactual]) -> None:
    path = experiment.results_file(job.benchmark, label)
    path.parent.mkdir(parents=True, exist_ok=True)
    with Store(path, experiment.load(job.benchmark).run(job.methods[label])) as store:
        for result in results:
            if result.target not in store.done:
                store.append(result)


def _with_shared_rankings(methods: dict[str, Method]) -> dict[str, Method]:
    """The same methods; if several of them remove the top edges of one explainer, they share its rankings."""
    memory: dict[Any, Any] = {}
    return {
        label: replace(method, memory=memory) if isinstance(method, RemoveSubgraph) else method
        for label, method in methods.items()
    }


def _run_tasks(tasks: Sequence[Callable[[], Any]], processes: int) -> Iterator[Any]:
    """What the tasks return, in the order in which they finish.

    Raises:
        InputError: a task ends every process that it is given to.
    """
    executor = Serial() if processes == 1 or len(tasks) < 2 else Processes(processes)
    for _, returned in run(executor, _call, [[task] for task in tasks]):
        if returned is None:
            raise InputError(
                "a worker process ended before its work was done, again and again; if memory ran out, ask for fewer "
                "with --jobs"
            )
        yield from returned


def _call(tasks: Sequence[Callable[[], Any]]) -> list[Any]:
    return [task() for task in tasks]


def _progress_bar(total: int, label: str, unit: str, quiet: bool) -> Any:
    # For tqdm, disable=None means: show the bar only on a terminal.
    return tqdm(total=total, desc=label, unit=unit, leave=False, disable=True if quiet or not total else None)
