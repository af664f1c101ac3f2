"""Ctrl-C and SIGTERM: both end a command in order, with what was found kept; only the exit codes differ."""

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
    """Somebody asked the process to end: what handles Ctrl-C handles this too."""


_asked = threading.Event()


def was_terminated() -> bool:
    """Whether the process was asked to end; a library in the middle of its import may turn that into another error."""
    return _asked.is_set()


def exit_code(problem: KeyboardInterrupt) -> int:
    """What a shell expects of a command that was ended this way."""
    return TERMINATED if isinstance(problem, _Terminated) else INTERRUPTED


@contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM raise an exception, as Ctrl-C does; it would end the process on the spot."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread hears of signals
        return
    _asked.clear()
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminate(_number: int, _frame: FrameType | None) -> None:
    _asked.set()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough: what was found is being kept
    raise _Terminated
