"""Work for executors that needs no model, and so has quick workers; and a killer of workers."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Squares:
    """The squares of numbers, each with the process that computed it; some numbers kill it."""

    deadly: tuple[int, ...] = ()
    seconds: float = 0.0

    def __call__(self, items: Sequence[int]) -> list[tuple[int, int]]:
        found = []
        for item in items:
            if item in self.deadly:
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(self.seconds)
            found.append((item**2, os.getpid()))
        return found


def raising(items: Sequence[int]) -> list[int]:
    raise ZeroDivisionError(f"of {items}")


class Unwelcome:
    """Can be pickled, but not unpickled."""

    def __call__(self, items: Sequence[int]) -> list[int]:
        return list(items)

    def __reduce__(self):
        return _refuse, ()


def _refuse() -> None:
    raise ImportError("there is no such model here")


class DeadlyToMake(Unwelcome):
    """Kills whoever unpickles it."""

    def __reduce__(self):
        return os._exit, (1,)


class Killer:
    """Kills workers at random moments: each time one that has just handed over something."""

    def __init__(self, times: int, seed: int, pause: float) -> None:
        self.left, self.killed, self.pause = times, 0, pause
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def saw(self, pid: int) -> None:
        """A result of this process has come; at some random moment soon it is killed."""
        with self._lock:
            if self.left and self._timer is None and pid != os.getpid():
                self._timer = threading.Timer(self._random.random() * self.pause, self._kill, [pid])
                self._timer.start()

    def _kill(self, pid: int) -> None:
        with self._lock:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                self.left -= 1
                self.killed += 1
            self._timer = None
