"""How far a run is: a bar on a terminal, a line now and then in a log, JSON lines for machines."""

from __future__ import annotations

import heapq
import json
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from tqdm import tqdm

from butfor.cli.output import note

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from butfor.result.counterfactual import Counterfactual

__all__ = ["ProgressKind", "Tally", "progress"]

ProgressKind = Literal["auto", "bar", "lines", "json", "none"]

# Seconds until the first line in a log; each later one takes a little longer, up to the second number.
FIRST, LONGEST, GROWTH = 30.0, 600.0, 1.3
# Seconds between two lines for a machine.
MACHINE = 1.0
# How many of the slowest targets are named.
SLOWEST = 3


@dataclass
class Tally:
    """What is done of a run.

    Attributes:
        total: how many targets there are.
        unit: what they are.
        costs: about what each target costs, compared with others; those that are missing cost 1.
    """

    total: int
    unit: str
    costs: Mapping[Any, float] = field(default_factory=dict)
    done: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    _paid: float = 0.0
    _slowest: list[tuple[float, int, str]] = field(default_factory=list)
    _started: float = field(default_factory=lambda: time.monotonic())

    def add(self, result: Counterfactual) -> None:
        """Count one more result."""
        self.done += 1
        self.statuses[result.status.value] += 1
        self._paid += self.costs.get(result.target, 1.0)
        heapq.heappush(self._slowest, (result.seconds, self.done, result.target_name))
        if len(self._slowest) > SLOWEST:
            heapq.heappop(self._slowest)

    @property
    def share(self) -> float:
        """The share of the work that is done, 0 to 1, by what targets cost."""
        return min(self._paid / self._whole, 1.0) if self._whole else 1.0

    @cached_property
    def _whole(self) -> float:
        return sum(self.costs.values()) or float(self.total)

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._started

    @property
    def left(self) -> float | None:
        """About how many seconds are left; None before anything is done."""
        return self.elapsed * (1 - self.share) / self.share if self.share else None

    @property
    def slowest(self) -> list[tuple[str, float]]:
        """The targets that took longest, and their seconds."""
        return [(name, seconds) for seconds, _, name in sorted(self._slowest, reverse=True)]

    def record(self, event: str) -> dict[str, Any]:
        """All of this for a machine."""
        return {
            "event": event,
            "unit": self.unit,
            "done": self.done,
            "total": self.total,
            "share": round(self.share, 4),
            "elapsed": round(self.elapsed, 1),
            "left": None if self.left is None else round(self.left, 1),
            "statuses": dict(self.statuses),
            "slowest": [{"target": name, "seconds": round(seconds, 3)} for name, seconds in self.slowest],
        }

    @property
    def counts(self) -> str:
        """How many results there are of each status."""
        return ", ".join(f"{status} {count}" for status, count in sorted(self.statuses.items()))

    @property
    def line(self) -> str:
        """All of this for a person."""
        left = "" if self.left is None else f", about {tqdm.format_interval(self.left)} left"
        took = tqdm.format_interval(self.elapsed)
        return f"{self.done} of {self.total} {self.unit}s in {took} ({self.share:.0%} of the work{left}): {self.counts}"


def progress(
    results: Iterable[Counterfactual], tally: Tally, label: str = "explaining", kind: ProgressKind = "auto"
) -> Iterator[Counterfactual]:
    """The same results, while standard error says how far the run is."""
    if kind == "auto":
        kind = "bar" if sys.stderr.isatty() else "lines"
    show = {"bar": _bar, "lines": _lines, "json": _json}.get(kind)
    yield from results if show is None else show(results, tally, label)
    if kind in ("bar", "lines") and tally.elapsed > FIRST:
        note("the slowest: " + ", ".join(f"{name} ({seconds:.1f} s)" for name, seconds in tally.slowest))


def _bar(results: Iterable[Counterfactual], tally: Tally, label: str) -> Iterator[Counterfactual]:
    shape = "{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} [{elapsed}{postfix}]"
    with tqdm(total=tally.total, desc=label, unit=tally.unit, leave=False, bar_format=shape) as bar:
        for result in results:
            tally.add(result)
            left = "" if tally.left is None else f"{tqdm.format_interval(tally.left)} left; "
            bar.set_postfix_str(left + tally.counts, refresh=False)
            bar.update()
            yield result


def _lines(results: Iterable[Counterfactual], tally: Tally, label: str) -> Iterator[Counterfactual]:
    pause = due = FIRST
    for result in results:
        tally.add(result)
        if tally.elapsed >= due:
            print(f"{label}: {tally.line}", file=sys.stderr, flush=True)
            pause = min(pause * GROWTH, LONGEST)
            due = tally.elapsed + pause
        yield result


def _json(results: Iterable[Counterfactual], tally: Tally, _label: str) -> Iterator[Counterfactual]:
    def say(event: str) -> None:
        print(json.dumps(tally.record(event)), file=sys.stderr, flush=True)

    say("start")
    due, event = MACHINE, "stopped"
    try:
        for result in results:
            tally.add(result)
            if tally.elapsed >= due:
                say("progress")
                due = tally.elapsed + MACHINE
            yield result
        event = "end"
    finally:
        say(event)
