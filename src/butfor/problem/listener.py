"""Whoever wants to know how a search gets on: told of every better incumbent and bound, and able to end it."""

from __future__ import annotations

import math
import threading
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from butfor.edits.edit import Edit

__all__ = ["Listener", "SearchState", "Watch"]

# Seconds after which a listener is told again, where nothing but the number of evaluations has changed.
PAUSE = 0.1


@dataclass(frozen=True)
class SearchState:
    """How far a search is.

    Attributes:
        evaluations: what was spent, in units of `butfor.Budget.evaluations`.
        seconds: since the search began.
        cost: that of the incumbent, the best set found so far; None where there is none yet.
        edits: the incumbent. It is verified when the search is over.
        lower_bound: no cheaper set of edits reaches the goal.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> class Diary(butfor.Listener):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.states = []
        ...     def hear(self, state):
        ...         self.states.append(state)
        >>> diary = Diary()
        >>> cf = butfor.prepare(model, data).explain(605, listener=diary)
        >>> last = diary.states[-1]
        >>> last.cost, last.lower_bound, last.edits == cf.edits
        (2.0, 2.0, True)
    """

    evaluations: int
    seconds: float
    cost: float | None
    edits: tuple[Edit, ...]
    lower_bound: float


class Listener(ABC):
    """Is told how a search gets on; `stop` ends it as if its budget were spent, from any thread.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> class FirstAnswer(butfor.Listener):
        ...     def hear(self, state):
        ...         if state.cost is not None:
        ...             self.stop()  # it need not be the smallest
        >>> cf = butfor.prepare(model, data).explain(605, listener=FirstAnswer())
        >>> cf.found, cf.size
        (True, 2)
    """

    def __init__(self) -> None:
        self._stop = threading.Event()

    @abstractmethod
    def hear(self, state: SearchState) -> None:
        """Called with every better incumbent and bound, and now and then in between, in the thread that searches."""

    def stop(self) -> None:
        """End the search; what it has found so far is its answer."""
        self._stop.set()

    @property
    def stopped(self) -> bool:
        """Whether the search is to end."""
        return self._stop.is_set()


@dataclass
class Watch:
    """What a listener knows of one search."""

    listener: Listener
    evaluations: int = 0
    cost: float = math.inf
    edits: tuple[Edit, ...] = ()
    lower_bound: float = 0.0
    _started: float = field(default_factory=time.monotonic)
    _told: float = -math.inf

    def counted(self, evaluations: int) -> None:
        """So many evaluations have been spent in all."""
        self.evaluations = evaluations
        if time.monotonic() - self._told >= PAUSE:
            self._tell()

    def found(self, cost: float, edits: Callable[[], tuple[Edit, ...]]) -> None:
        """A set of edits reaches the goal at this cost."""
        if cost < self.cost:
            self.cost, self.edits = cost, edits()
            self._tell()

    def proved(self, lower_bound: float) -> None:
        """No set of edits that reaches the goal costs less."""
        if self.lower_bound < lower_bound < math.inf:
            self.lower_bound = lower_bound
            self._tell()

    def _tell(self) -> None:
        self._told = time.monotonic()
        cost = None if math.isinf(self.cost) else self.cost
        bound = float(min(self.lower_bound, self.cost))
        self.listener.hear(SearchState(self.evaluations, self._told - self._started, cost, self.edits, bound))
