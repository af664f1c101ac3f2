"""How much a search may spend, and what it has spent."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from butfor.boundary.arguments import check_whole, is_number
from butfor.errors import InputError

if TYPE_CHECKING:
    from butfor.problem.listener import Watch

__all__ = ["UNLIMITED", "Budget", "Meter"]


@dataclass(frozen=True)
class Budget:
    """How much a search may spend on one target.

    Attributes:
        evaluations: units of work: 1 for an edit set put to the oracle or a gradient step, and for bounds as many as
            take about as long; None for no limit.
        seconds: wall time; None for no limit.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> cf = butfor.explain(model, data, 13, budget=butfor.Budget(evaluations=20))
        >>> print(cf.status, cf.size, cf.lower_bound)
        unknown None 1.0
        >>> cf = butfor.explain(model, data, 13, budget=butfor.Budget(evaluations=None, seconds=60))
        >>> print(cf.status, cf.size, cf.lower_bound)
        optimal 2 2.0
    """

    evaluations: int | None = 3_000
    seconds: float | None = None

    def __post_init__(self) -> None:
        if self.evaluations is not None:
            check_whole(self.evaluations, "evaluations of the budget")
        for name, value in (("evaluations", self.evaluations), ("seconds", self.seconds)):
            if value is not None and not (is_number(value) and value > 0):
                raise InputError(f"a budget of {value!r} {name} allows no search; give a positive number or None")

    def meter(self, watch: Watch | None = None) -> Meter:
        """A meter that starts now; whoever watches the search is told what is spent, and may end it."""
        return Meter(self, watch=watch)


UNLIMITED = Budget(evaluations=None)


@dataclass
class Meter:
    """What one search has spent of its budget, and on how many edited graphs the model failed.

    What is counted on a meter is counted on its parent too, if it has one.

    Attributes:
        budget: what may be spent.
        evaluations: what was spent, in units of `Budget.evaluations`.
        failures: on how many edited graphs the model failed.
        parent: the meter of the search that this is a part of.
        started: when the time began, by ``time.monotonic``.
        watch: whoever is told how the search gets on.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> problem = butfor.prepare(model, data).problem(597)
        >>> answers = problem.ask([[0], [1], [2]])
        >>> problem.meter.evaluations, problem.meter.left
        (3, None)
        >>> meter = butfor.Budget(evaluations=10).meter()
        >>> meter.count(10)
        >>> meter.spent
        True
    """

    budget: Budget
    evaluations: int = 0
    failures: int = 0
    parent: Meter | None = None
    started: float = field(default_factory=time.monotonic)
    watch: Watch | None = None

    def count(self, evaluations: int, failures: int = 0) -> None:
        """Count work that was done, and edited graphs on which the model failed."""
        self.evaluations += evaluations
        self.failures += failures
        if self.parent is not None:
            self.parent.count(evaluations, failures)
        elif self.watch is not None:
            self.watch.counted(self.evaluations)

    def half(self) -> Meter:
        """A meter for a part of this search, which may spend half of what is left."""
        left, seconds = self.left, self.seconds_left
        half = Budget(None if left is None else left // 2 or 1, None if seconds is None else seconds / 2 or 1e-9)
        return Meter(half, parent=self, watch=self.watch)

    def part(self, evaluations: int) -> Meter:
        """A meter for a part of this search, which may spend so many evaluations of what is left."""
        left = self.left
        most = evaluations if left is None else min(evaluations, left)
        seconds = self.seconds_left
        limits = Budget(most or 1, None if seconds is None else seconds or 1e-9)
        return Meter(limits, parent=self, watch=self.watch)

    def restarted(self) -> Meter:
        """A meter whose time begins now, for a search that had to wait for its turn."""
        return Meter(self.budget, self.evaluations, parent=self, watch=self.watch)

    @property
    def left(self) -> int | None:
        """How many evaluations are left; None if there is no limit, 0 when time is up."""
        if self.late:
            return 0
        return None if self.budget.evaluations is None else max(self.budget.evaluations - self.evaluations, 0)

    @property
    def seconds_left(self) -> float | None:
        """How many seconds are left; None if there is no limit."""
        if self.budget.seconds is None:
            return None
        return max(self.budget.seconds - (time.monotonic() - self.started), 0.0)

    @property
    def late(self) -> bool:
        """Whether the time is up, or whoever watches has ended the search."""
        return self.seconds_left == 0 or (self.watch is not None and self.watch.listener.stopped)

    @property
    def spent(self) -> bool:
        """Whether the search must end."""
        return self.left == 0
