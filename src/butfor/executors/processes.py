"""Workers that are processes of this machine."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Any

from butfor.boundary.arguments import check_whole
from butfor.executors.base import Executor, Luggage, Unpacked, Worker

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from concurrent.futures import Future

__all__ = ["Processes"]

# One thread each, before torch and numba are imported; and loky is not to replace workers that have grown, for which
# the graph would have to be sent again.
ENVIRONMENT = {
    **dict.fromkeys(["OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"], "1"),
    "LOKY_MAX_MEMORY_LEAK_SIZE": "1e18",
}


@dataclass(frozen=True)
class Processes(Executor):
    """So many processes of this machine; ``jobs=2`` is short for ``executor=Processes(2)``.

    A process takes some seconds to start, because it imports torch and PyG.

    Attributes:
        jobs: how many processes search at the same time.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> butfor.explain(model, data, [597, 600, 605], executor=butfor.Processes(2))
        <3 results: 3 optimal>
    """

    jobs: int

    def __post_init__(self) -> None:
        check_whole(self.jobs, "jobs", 1)

    @property
    def size(self) -> int:
        """How many there are."""
        return self.jobs

    def start(self, luggage: Luggage) -> Worker:
        """A new process."""
        return _Process(luggage.packed)

    @property
    def deaths(self) -> tuple[type[BaseException], ...]:
        """What loky raises for a process that was killed or crashed."""
        from loky.process_executor import BrokenProcessPool, ShutdownExecutorError

        return BrokenProcessPool, ShutdownExecutorError


class _Process:
    """A pool of one process: when it breaks, it is known which shard was in it, and no other process suffers."""

    def __init__(self, packed: bytes) -> None:
        from loky import ProcessPoolExecutor

        self._pool = ProcessPoolExecutor(1, initializer=_keep, initargs=(packed,), env=ENVIRONMENT)

    def submit(self, items: Sequence[Any]) -> Future[Any]:
        with _deaf_children():
            future: Future[Any] = self._pool.submit(_do, items)
            return future

    def stop(self) -> None:
        self._pool.shutdown(wait=True, kill_workers=True)


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Processes that are started here never hear Ctrl-C, which reaches all processes of a terminal: this one ends them.

    What is blocked stays blocked in a child, from its first instruction on; here it arrives a moment later.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    # Started by the first process otherwise, and up to Python 3.12 that unblocks the signal here.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# In a worker process: its work.
_unpacked: Unpacked


def _keep(packed: bytes) -> None:
    global _unpacked
    _unpacked = Unpacked(packed)


def _do(items: Sequence[Any]) -> Any:
    return _unpacked(items)
