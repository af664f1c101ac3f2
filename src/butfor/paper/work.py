"""Doing what is asked in several processes; every result is kept as soon as its batch of nodes is done."""

from __future__ import annotations

import signal
import warnings
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from butfor.errors import InputError
from butfor.methods import BatchMethod, RemoveSubgraph
from butfor.models.threads import threads_for
from butfor.paper.explainers import trained
from butfor.runs import Store
from butfor.session import Explainer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from butfor.methods import Method
    from butfor.paper.lab import Ask, Lab
    from butfor.paper.subjects import Subject
    from butfor.result.counterfactual import Counterfactual

__all__ = ["carry_out"]

# Seconds that a batch of nodes may take, roughly: what is lost when the run is interrupted.
BATCH = 8.0


@dataclass(frozen=True, eq=False)
class _Batch:
    """Some nodes of what is asked."""

    lab: Lab
    ask: Ask
    nodes: tuple[int, ...]

    def __call__(self) -> tuple[Ask, dict[str, list[Counterfactual]]]:
        """Explain these nodes by all methods."""
        ready = self.lab.ready(self.ask.subject)
        found: dict[str, list[Counterfactual]] = {}
        with threads_for(ready.data.num_edges):
            for label, method in _sharing(self.ask.methods).items():
                method = trained(method, ready.model, ready.data)
                explainer = Explainer.of(ready.model, ready.data, method=method, budget=self.ask.budget)
                found[label] = [result for _, result in explainer.stream(self.nodes)]
        return self.ask, found


@dataclass(frozen=True, eq=False)
class _Training:
    """The making of one subject."""

    lab: Lab
    subject: Subject

    def __call__(self) -> None:
        """Train the model, which is kept in the lab's folder."""
        self.lab.ready(self.subject)


def carry_out(lab: Lab, asks: Sequence[Ask], jobs: int) -> None:
    """Do all that is asked and not done yet.

    Raises:
        StoreError: the folder holds results of another run, or cannot be written.
    """
    with warnings.catch_warnings():
        # joblib replaces a worker whose memory has grown, as it does with graphs that are kept there; and it tells how
        # many tasks were cancelled by Ctrl-C, when the command itself will say what is kept.
        warnings.filterwarnings("ignore", "A worker stopped while some jobs were given", UserWarning)
        warnings.filterwarnings("ignore", ".*tasks which were still being processed", UserWarning)
        try:
            _carry_out(lab, asks, jobs)
        finally:
            if jobs > 1:
                _dismiss_workers()


def _carry_out(lab: Lab, asks: Sequence[Ask], jobs: int) -> None:
    subjects = list(dict.fromkeys(ask.subject for ask in asks))
    untrained = [one for one in subjects if one.seed is not None and not (lab.models(one) / "model.json").exists()]
    with _bar(len(untrained), "training models", "model", lab.quiet) as bar:
        for _ in _each([_Training(lab, subject) for subject in untrained], jobs):
            bar.update()
    batches = [batch for ask in _each_once(asks) for batch in _batches(lab, ask)]
    batches.sort(key=lambda batch: -batch.ask.seconds * len(batch.nodes))
    total = sum(len(batch.nodes) * len(batch.ask.methods) for batch in batches)
    with _bar(total, "explaining", "node", lab.quiet) as bar:
        for ask, found in _each(batches, jobs):
            for label, results in found.items():
                _keep(lab, ask, label, results)
                bar.update(len(results))


def _each_once(asks: Sequence[Ask]) -> Iterator[Ask]:
    """Without what several parts ask for after the first."""
    asked: set[tuple[Subject, str]] = set()
    for ask in asks:
        new = {label: method for label, method in ask.methods.items() if (ask.subject, label) not in asked}
        asked |= {(ask.subject, label) for label in new}
        if new:
            yield replace(ask, methods=new)


def _batches(lab: Lab, ask: Ask) -> Iterator[_Batch]:
    """The nodes that some method has not done yet, in portions."""
    todo: set[int] = set()
    for label, method in ask.methods.items():
        path = lab.path(ask.subject, label)
        done: set[Any] = set()
        if path.exists():
            with Store(path, lab.run(ask.subject, method)) as store:
                done = set(store.done)
        todo |= set(lab.nodes(ask.subject)) - done
    nodes = [node for node in lab.nodes(ask.subject) if node in todo]
    together = any(isinstance(method, BatchMethod) for method in ask.methods.values())
    size = len(nodes) if together else max(1, int(BATCH / ask.seconds))
    for start in range(0, len(nodes), max(size, 1)):
        yield _Batch(lab, ask, tuple(nodes[start : start + size]))


def _keep(lab: Lab, ask: Ask, label: str, results: Sequence[Counterfactual]) -> None:
    path = lab.path(ask.subject, label)
    path.parent.mkdir(parents=True, exist_ok=True)
    with Store(path, lab.run(ask.subject, ask.methods[label])) as store:
        for result in results:
            if result.target not in store.done:
                store.append(result)


def _sharing(methods: dict[str, Method]) -> dict[str, Method]:
    """The same methods; those that rank edges first do so once for all sizes."""
    memory: dict[Any, Any] = {}
    return {
        label: replace(method, memory=memory) if isinstance(method, RemoveSubgraph) else method
        for label, method in methods.items()
    }


def _each(tasks: Sequence[Callable[[], Any]], jobs: int) -> Iterator[Any]:
    """What the tasks return, in the order in which they end."""
    if jobs == 1 or len(tasks) < 2:
        for task in tasks:
            yield task()
        return
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import BrokenProcessPool

    try:
        yield from Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)(
            delayed(_in_worker)(task) for task in tasks
        )
    except BrokenProcessPool as problem:
        raise InputError(
            "a worker process ended before its work was done; if memory ran out, ask for fewer with --jobs"
        ) from problem


def _dismiss_workers() -> None:
    """End the processes, which joblib would keep for another call, and with them the program's end waiting."""
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor().shutdown(wait=True, kill_workers=True)


def _in_worker(task: Callable[[], Any]) -> Any:
    # Ctrl-C is for the process that started this one, and which will end it.
    with suppress(ValueError):  # not the main thread: then it does not hear of it anyway
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return task()


def _bar(total: int, label: str, unit: str, quiet: bool) -> Any:
    # tqdm's None means: only where the output is a terminal.
    return tqdm(total=total, desc=label, unit=unit, leave=False, disable=True if quiet or not total else None)
