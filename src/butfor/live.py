"""What standard error shows of a call: a bar for many targets; for one, how its answer and bound move."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from tqdm import tqdm

from butfor.errors import InputError
from butfor.problem.listener import Listener

if TYPE_CHECKING:
    from collections.abc import Iterator

    from butfor.problem.listener import SearchState

__all__ = ["live_line", "shown"]

Shown = TypeVar("Shown")


def shown(results: Iterator[Shown], total: int, progress: bool) -> Iterator[Shown]:
    """The same results, with a progress bar where one is wanted and standard error is a terminal.

    Raises:
        InputError: ``progress`` is neither True nor False.
    """
    if not isinstance(progress, bool):
        raise InputError(f"progress is {progress!r}; give True or False")
    # tqdm takes a semaphore even for a bar that is not shown, and a worker that is ended would leave it behind.
    return iter(tqdm(results, total=total, unit="target", desc="explaining", disable=None)) if progress else results


def _told(state: SearchState) -> str:
    """How far a search is, in words."""
    best = "no answer yet" if state.cost is None else f"best {state.cost:g}"
    return f"{best}, at least {state.lower_bound:g}, {state.evaluations:,} evaluations"


class _LiveLine(Listener):
    """Keeps a line up to date."""

    def __init__(self, line: tqdm[Any]) -> None:
        super().__init__()
        self._line = line

    def hear(self, state: SearchState) -> None:
        self._line.set_postfix_str(_told(state))


@contextmanager
def live_line(wanted: bool) -> Iterator[Listener | None]:
    """A listener that shows what it hears on standard error; None where that is not wanted, or no terminal."""
    if not wanted or not sys.stderr.isatty():
        yield None
        return
    line: tqdm[Any]
    with tqdm(desc="explaining", bar_format="{desc} [{elapsed}]{postfix}", leave=False) as line:
        yield _LiveLine(line)
