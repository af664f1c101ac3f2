"""What an executor is: it starts workers, which are given the work once and then shards of items, one at a time.

A new executor is a file like `processes.py`; what happens when a worker dies is the same for all of them (`run.py`).
"""

from __future__ import annotations

import pickle
import sys
from abc import ABC, abstractmethod
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import cloudpickle

from butfor.errors import InputError, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Work = Callable[[Sequence[Any]], Any]

__all__ = ["Executor", "Luggage", "Serial", "Unpacked", "Worker"]


class Worker(Protocol):
    """Something that has the work and does one shard at a time."""

    def submit(self, items: Sequence[Any]) -> Future[Any]:
        """Begin a shard; without items the worker only makes itself ready."""

    def stop(self) -> None:
        """End it at once, whatever it is doing; does nothing if it has ended."""


class Executor(ABC):
    """Starts workers; a frozen dataclass that says how many and where.

    Examples:
        >>> from dataclasses import dataclass
        >>> import butfor
        >>> model, data = butfor.example()
        >>> from butfor.executors import Executor, Serial
        >>> @dataclass(frozen=True)
        ... class Logged(Executor):
        ...     size = 1
        ...     def start(self, luggage):
        ...         print("a worker starts")
        ...         return Serial().start(luggage)
        >>> butfor.explain(model, data, [597, 605], executor=Logged())
        a worker starts
        <2 results: 2 optimal>
    """

    @property
    @abstractmethod
    def size(self) -> int:
        """How many workers there are to be at the same time."""

    @abstractmethod
    def start(self, luggage: Luggage) -> Worker:
        """A new worker; it need not be ready yet."""

    @property
    def deaths(self) -> tuple[type[BaseException], ...]:
        """The errors of a shard whose worker ended, in contrast to errors of the work itself."""
        return ()


@dataclass(frozen=True, eq=False)
class Luggage:
    """The work, as it travels to workers: pickled once, however many there are."""

    work: Work

    @cached_property
    def packed(self) -> bytes:
        """The work as bytes.

        Raises:
            InputError: it cannot be pickled.
        """
        try:
            # Unlike pickle, cloudpickle also takes what was defined in a notebook or script.
            return bytes(cloudpickle.dumps(self.work))
        except Exception as problem:  # whatever objects do that are in the way
            raise InputError(
                f"the model, graph or method cannot be sent to another process ({one_line(problem)}); "
                "explain in this one: jobs=1"
            ) from problem


class Unpacked:
    """The work in a worker: unpacked when it is first needed, and done by one thread.

    ``path`` is where the first process finds modules; a worker looks there too, if only after its own places.
    """

    def __init__(self, packed: bytes, path: Sequence[str] = ()) -> None:
        self._packed = packed
        self._path = path

    @cached_property
    def _work(self) -> Work:
        sys.path += [place for place in self._path if place not in sys.path]
        work: Work = pickle.loads(self._packed)  # our own process packed it
        if (torch := sys.modules.get("torch")) is not None:
            # There are as many workers as cores; and sums in one order give the same digits.
            torch.set_num_threads(1)
        self._packed = b""
        return work

    def __call__(self, items: Sequence[Any]) -> Any:
        """Do a shard."""
        work = self._work
        return work(items) if items else None


@dataclass(frozen=True)
class Serial(Executor):
    """This process itself: for many targets of which some may fail, and to compare others with.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> from butfor.executors import Serial
        >>> results = butfor.explain(model, data, [597, 605], executor=Serial())
        >>> results
        <2 results: 2 optimal>
    """

    @property
    def size(self) -> int:
        """One."""
        return 1

    def start(self, luggage: Luggage) -> Worker:
        """This process."""
        return _Here(luggage.work)


@dataclass(frozen=True, eq=False)
class _Here:
    work: Work

    def submit(self, items: Sequence[Any]) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(self.work(items) if items else None)
        except Exception as problem:
            done.set_exception(problem)
        return done

    def stop(self) -> None:
        pass
