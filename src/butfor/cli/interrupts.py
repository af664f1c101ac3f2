"""Ctrl-C and SIGTERM: both let a command save what it has found; only the exit codes differ."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

__all__ = ["TERMINATED", "exit_code", "terminable", "was_terminated"]

INTERRUPTED, TERMINATED = 130, 143


class _Terminated(KeyboardInterrupt):
    """SIGTERM was received; whatever handles Ctrl-C handles this too."""


_termination_requested = threading.Event()


def was_terminated() -> bool:
    """Whether the process was asked to end; a library in the middle of its import may turn that into another error."""
    return _termination_requested.is_set()


def exit_code(problem: KeyboardInterrupt) -> int:
    """The exit code that a shell expects of a command that was ended this way."""
    return TERMINATED if isinstance(problem, _Terminated) else INTERRUPTED


@contextmanager
def terminable() -> Iterator[None]:
    """Make SIGTERM raise an exception, as Ctrl-C does, instead of ending the process on the spot."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread receives signals
        return
    _termination_requested.clear()
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminate(_number: int, _frame: FrameType | None) -> None:
    _termination_requested.set()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough: what was found is being saved
    raise _Terminated
