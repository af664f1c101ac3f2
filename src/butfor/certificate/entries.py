"""Sums and maxima over the entries that lead to one row, case by case; see `bounds.py` for the proof."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]
    Numbers = NDArray[np.int64]
    Floats = NDArray[np.float64]
    Interval = tuple[Floats, Floats]

__all__ = ["Entries"]


@dataclass(frozen=True, eq=False)
class Entries:
    """The entries that lead to one row, in the cases of that row.

    Attributes:
        low, high: what each brings, (level, entry, column); levels count all edits that are made.
        there: which of them are there if no free edit is made.
        edit: the free edit of the row that deletes or adds each, by its place among these; -1 for none.
        edits: how many free edits the row has.
        chosen: which edits of the row are made in each case; None where only their number is known.
        size: the number of edits of the row that are made in each case.
        level: the level that counts all edits, for each level that counts others and each case.
        capacity: Q, in the same order.
        fixed: whether no edit changes what they bring.
    """

    low: Floats
    high: Floats
    there: Bools
    edit: Numbers
    edits: int
    chosen: Bools | None
    size: Numbers
    level: Numbers
    capacity: Numbers
    fixed: bool

    @cached_property
    def present(self) -> Bools:
        """Which entries are there in each case: an edit deletes what is there and adds what is not."""
        assert self.chosen is not None
        toggled = np.concatenate([self.chosen, np.zeros((len(self.chosen), 1), dtype=bool)], axis=1)
        present: Bools = toggled[:, self.edit] != self.there
        return present

    def sums(self) -> Interval:
        """The sum, (level, case, column)."""
        return self._least_sums(self.low), -self._least_sums(-self.high)

    def _least_sums(self, low: Floats) -> Floats:
        with np.errstate(invalid="ignore"):
            totals = np.broadcast_to(self._usual_sums(low), (*self.level.shape, low.shape[-1]))
            if not self.fixed and len(low) > 1:
                totals = totals - self._falls(low)
        return np.where(np.isnan(totals), -np.inf, totals)

    def _usual_sums(self, low: Floats) -> Floats:
        """The sum in each case if no edit but those of the row is made."""
        if self.chosen is not None:
            sums = self.present.astype(float) @ np.where(np.isfinite(low[0]), low[0], 0.0)
            return np.where(self.present @ ~np.isfinite(low[0]), -np.inf, sums)
        # Each edit takes away what the entries that it deletes usually bring, and adds what its others bring at least.
        # An edit without entries here has no effect; the last place is for entries without an edit.
        effect = np.zeros((self.edits + 1, low.shape[-1]))
        np.add.at(effect, self.edit, np.where(self.there[:, None], -low[0], low[-1]))
        worst = np.concatenate([np.zeros((1, low.shape[-1])), np.cumsum(np.sort(effect[:-1], axis=0), axis=0)])
        sums_known: Floats = low[0][self.there].sum(axis=0) + worst[self.size]
        return sums_known

    def _falls(self, low: Floats) -> Floats:
        """By how much entries fall together, at most: (level, case, column)."""
        steps = np.where(self._counted[:, None, :, None], _concave(_known(low[0] - low[1:])), 0.0)
        return _largest(steps.reshape(len(steps), -1, low.shape[-1]), self.capacity)

    @property
    def _counted(self) -> Bools:
        """The entries that fall: those that are there in each case or, where only a number is known, at first."""
        return self.there[None] if self.chosen is None else self.present

    def extremes(self, empty: float, is_minimum: bool) -> Interval:
        """The maximum or minimum, (level, case, column); ``empty`` where no entry is there."""
        if is_minimum:
            low, high = self._maxima(-self.high, -self.low, -empty)
            return -high, -low
        return self._maxima(self.low, self.high, empty)

    def _maxima(self, low: Floats, high: Floats, empty: float) -> Interval:
        cases, columns = len(self.size), low.shape[-1]
        if self.chosen is None:
            least, most = np.empty((2, len(self.level), cases, columns))
            for level, case in np.ndindex(self.level.shape):
                at, changed = int(self.level[level, case]), int(self.capacity[level, case])
                ends = self._maximum_of_some(low, high, empty, at, case, changed)
                least[level, case], most[level, case] = ends
            return least, most
        here = self.present[:, :, None]
        usual = np.sort(np.where(here, low[0], -np.inf), axis=1)[:, ::-1]
        usual = np.concatenate([usual, np.full((cases, 1, columns), -np.inf)], axis=1)
        # The (Q + 1)-th largest; the last place is for none.
        least = usual[np.arange(cases), np.minimum(self.capacity, usual.shape[1] - 1)]
        least = np.maximum(least, np.where(here, low[self.level], -np.inf).max(axis=2, initial=-np.inf))
        most = np.where(here, high[self.level], -np.inf).max(axis=2, initial=-np.inf)
        some = here.any(axis=1)
        return np.where(some, least, empty), np.where(some, most, empty)

    def _maximum_of_some(
        self, low: Floats, high: Floats, empty: float, at: int, case: int, changed: int
    ) -> tuple[Floats, Floats]:
        """Where only the number of edits is known: one of the entries that are there stays, or none does."""
        deleted = np.bincount(self.edit[self.there & (self.edit >= 0)])
        gone = int(self.size[case]) * int(deleted.max(initial=0))
        certain, may_be = self.there & (self.edit < 0), self.there | (self.edit >= 0)
        if not may_be.any():
            return np.full(low.shape[-1], empty), np.full(low.shape[-1], empty)
        least = np.maximum(_nth(low[at, self.there], gone), _nth(low[0, self.there], gone + changed))
        if certain.any():
            least = np.maximum(least, low[at, certain].max(axis=0))
        most = high[at, may_be].max(axis=0)
        if not certain.any() and gone >= self.there.sum():
            return np.minimum(low[at, may_be].min(axis=0), empty), np.maximum(most, empty)
        return least, most


def _known(falls: Floats) -> Floats:
    """Without those below 0; what is not a number may be anything."""
    return np.maximum(np.where(np.isnan(falls), np.inf, falls), 0.0)


def _concave(falls: Floats) -> Floats:
    """The steps of the least concave function from 0 that is nowhere below falls of (level, entry, column)."""
    steps, reached = np.zeros_like(falls), np.zeros_like(falls[0])
    for first in range(len(falls)):
        slopes = [(falls[level] - reached) / (level - first + 1) for level in range(first, len(falls))]
        steps[first] = _known(np.max(slopes, axis=0))
        reached = reached + steps[first]
    return steps


def _largest(values: Floats, counts: Numbers) -> Floats:
    """Of values (case, number, column) the sum of the so many largest, for counts (level, case)."""
    sums = np.cumsum(np.sort(values, axis=1)[:, ::-1], axis=1)
    sums = np.concatenate([np.zeros((len(values), 1, values.shape[2])), sums], axis=1)
    largest: Floats = sums[np.arange(len(sums)), np.minimum(counts, values.shape[1])]
    return largest


def _nth(values: Floats, place: int) -> Floats:
    """The largest but so many, column by column; -inf where there is none."""
    if place >= len(values):
        return np.full(values.shape[1], -np.inf)
    largest: Floats = np.sort(values, axis=0)[len(values) - 1 - place]
    return largest
