"""One search of many targets, of which some may fail, spread over the workers of an executor."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from butfor.errors import ModelError, one_line
from butfor.executors.plan import cut
from butfor.executors.run import run
from butfor.methods import BatchMethod
from butfor.result.status import Status

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from butfor.executors import Executor
    from butfor.methods import Method
    from butfor.problem.budget import Budget
    from butfor.problem.listener import Listener
    from butfor.result.counterfactual import Counterfactual

    Found = tuple[int, Counterfactual]

__all__ = ["Question", "Search", "spread"]

DIED = "The worker that searched died every time: it was killed, or memory ran out."
# Where so many targets fail before any has a result, something is wrong with what was given.
HOPELESS = 64


class Question(Protocol):
    """What is asked about targets: a `Session`, or several whole graphs."""

    def stream(
        self, targets: Any, method: Method, *, budget: Budget | None, seed: int, listener: Listener | None = None
    ) -> Iterator[Found]:
        """Results as they are found, each with the position of its target; raises at the first that fails."""

    def failed(self, target: Any, method: Method, seed: int, why: str) -> Counterfactual:
        """The result of a target whose search broke off."""

    def costs(self, targets: Sequence[Any]) -> NDArray[np.float64]:
        """About what each target costs, compared with others."""

    def bare(self) -> Question:
        """The same as it travels to another process."""

    def at_home(self, result: Counterfactual) -> Counterfactual:
        """A result that came from another process."""


@dataclass(frozen=True, eq=False)
class Search:
    """A question, and how to search for its answers. Workers have one, and are given targets with their positions.

    A listener hears of searches in this process only.
    """

    question: Question
    method: Method
    budget: Budget | None = None
    seed: int = 0
    listener: Listener | None = None

    def attempt(self, targets: Sequence[Any]) -> Iterator[Found]:
        """Results as they are found, each with the position of its target; one that fails says why, others go on."""
        left = dict(enumerate(targets))
        try:
            settings: dict[str, Any] = {"budget": self.budget, "seed": self.seed, "listener": self.listener}
            for position, result in self.question.stream(targets, self.method, **settings):
                del left[position]
                yield position, result
        except Exception as problem:
            if len(targets) == 1:
                yield 0, self.failed(targets[0], one_line(problem))
                return
            # Which of them failed is not known, but the half that it is not in goes on.
            positions = list(left)
            for half in (positions[: len(left) // 2], positions[len(left) // 2 :]):
                for number, result in self.attempt([left[position] for position in half]) if half else ():
                    yield half[number], result

    def failed(self, target: Any, why: str) -> Counterfactual:
        """The result of a target whose search broke off."""
        return self.question.failed(target, self.method, self.seed, why)

    def for_workers(self) -> Search:
        """The same as it travels to workers; there are as many of them as cores, so each has one thread."""
        alone = {"threads": 1} if getattr(self.method, "threads", None) == 0 else {}
        return replace(self, question=self.question.bare(), method=replace(self.method, **alone))  # type: ignore[type-var]

    def __call__(self, items: Sequence[tuple[int, Any]]) -> list[Found]:
        """The results of targets, with their positions."""
        found = self.attempt([target for _, target in items])
        return [(items[number][0], result) for number, result in found]


def spread(
    search: Search, targets: Sequence[Any], executor: Executor | None = None, begun: bool = False
) -> Iterator[Found]:
    """Results as they are found, each with the position of its target; one that fails says why.

    Args:
        search: what is asked, and how.
        targets: about what.
        executor: where to search; in this process, and without shards, where there is none.
        begun: whether there are results of other targets already.

    Raises:
        ModelError: no target has a result.
    """
    found = search.attempt(targets) if executor is None else _from_workers(search, targets, executor)
    return _unless_all_fail(found, begun)


def _from_workers(search: Search, targets: Sequence[Any], executor: Executor) -> Iterator[Found]:
    question = search.question
    places = np.array([one if isinstance(one, int) else (one or (0,))[0] for one in targets], dtype=np.int64)
    together = isinstance(search.method, BatchMethod)
    shards = cut(question.costs(targets), places, executor.size, together)
    items = [[(position, targets[position]) for position in shard] for shard in shards]
    with closing(run(executor, search.for_workers(), items)) as finished:
        for shard, results in finished:
            if results is None:
                yield shard[0][0], search.failed(shard[0][1], DIED)
            for position, result in results or ():
                yield position, question.at_home(result)


def _unless_all_fail(found: Iterator[Found], begun: bool) -> Iterator[Found]:
    """The same results, unless none is anything but a failure: then what was given is at fault, and that is raised."""
    held: list[Found] = []
    for position, result in found:
        if begun or result.status is not Status.FAILED:
            begun = True
            yield from held
            held.clear()
            yield position, result
        else:
            held.append((position, result))
            if len(held) == HOPELESS:
                break
    if held:
        first = held[0][1]
        raise ModelError(f"{first.target_name} cannot be explained, nor any other that was tried: {first.note}")
