"""Where the results of a run go: what a file and a folder of them have in common."""

from __future__ import annotations

import importlib.util
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple

from butfor.errors import StoreError
from butfor.result.status import Status

# Windows has no such advisory locks, so there two runs that write to one file are not noticed.
CAN_LOCK = importlib.util.find_spec("fcntl") is not None

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from typing_extensions import Self

    from butfor.result.counterfactual import Counterfactual
    from butfor.runs.run import Run, RunOfGraphs

__all__ = ["Outcome", "Sink", "lock"]


class Outcome(NamedTuple):
    """What a summary needs to know about a result.

    Attributes:
        status: how sure it is.
        size: how many edits it has; None where nothing was found.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> from butfor.runs import Run, Store
        >>> session, method = butfor.prepare(model, data), butfor.Exact()
        >>> with Store("results.jsonl", Run.of(session, method)) as store:
        ...     store.append(session.explain(605, method))
        ...     print(store.done)
        {605: Outcome(status=<Status.OPTIMAL: 'optimal'>, size=2)}
    """

    status: Status
    size: int | None


class Sink(ABC):
    """Takes the results of one run, each target once, and knows which are there already; a context manager.

    A result that failed gives way to a later one of the same target.

    Attributes:
        path: the file or folder.
        run: what all results have in common.
        done: the targets that need not be done again. If ``retry_failed``, those that failed earlier are not among
            them; their results stay until there are others.
        notice: what the user should know about what was there.
    """

    def __init__(self, path: Path, run: Run | RunOfGraphs, retry_failed: bool) -> None:
        self.path = path
        self.run = run
        self.retry_failed = retry_failed
        self.done: dict[int | tuple[int, int], Outcome] = {}
        self.notice = ""

    @abstractmethod
    def append(self, result: Counterfactual) -> None:
        """Take one result.

        Raises:
            StoreError: the result belongs to another run, its target is there already, or the disk is full.
        """

    @abstractmethod
    def close(self) -> None:
        """Write what is left."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except StoreError:
            # An error that ended the run is not hidden by one of closing.
            if error is None:
                raise

    def _check(self, result: Counterfactual) -> None:
        """Refuse a result that does not belong here."""
        if difference := self.run.difference(result):
            raise StoreError(f"the result of {result.target_name} is of {difference}")
        if result.target in self.done:
            raise StoreError(f"{result.target_name} is in {self.path} already")

    def _note(self, result: Counterfactual) -> None:
        """A result is there."""
        self.done[result.target] = Outcome(result.status, result.size)

    def _has(self, result: Counterfactual) -> bool:
        """Whether there is a result of this target that did not fail."""
        known = self.done.get(result.target)
        return known is not None and known.status is not Status.FAILED

    def _forget_failures(self) -> None:
        """After all that is there has been noted: what failed is to be done again, if that is wanted."""
        if self.retry_failed:
            self.done = {target: one for target, one in self.done.items() if one.status is not Status.FAILED}


def lock(file: int, path: Path) -> None:
    """Keep other runs from writing to what this open file stands for.

    Raises:
        StoreError: another run is writing to it.
    """
    if not CAN_LOCK:
        return
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise StoreError(f"another run is writing to {path}; wait for it to end, or choose another file") from None
    except OSError:
        return  # a file system without locks
