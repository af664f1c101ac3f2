"""Interval bounds on a model's program over a family of edited graphs; the checker's own, in plain numpy.

**The family.** Every edit (the deletion of an edge) is made, excluded or free, and at most ``most`` of the free edits
are made. Every value gets an interval that contains it on all graphs of the family. This is why:

- A function of single numbers, a matrix product, a fold within a row: interval arithmetic (`intervals.py`).
- A *reduction* at a row loses an entry where its edge is deleted. Let k be the largest number of entries of one
  row that one free edit deletes. At most min(loose entries, k·most) are lost, where an entry is loose if a free edit
  deletes it. Let i entries be lost. What an entry brings is changed only by edits in its *cone*, all edits that it
  depends on. For each free edit count the entries whose cones contain it, and let q be the sum of the ``most`` largest
  counts: at most q entries are changed. With b the values if no free edit is made, and l the lower ends,

      sum ≥ Σ b − (the i largest b of loose entries) − (the q largest b − l of all entries).

  An entry that is both lost and changed is counted twice, which only lowers the bound. Where an end is infinite,
  so is that of the sum. For the upper end all signs are turned.
- A maximum of which i entries are lost is at least the (i + 1)-th largest lower end, and at least every lower end of an
  entry that is not loose; it is at most the largest upper end. Once all entries are lost it is the value of an empty
  row.
- **One number of losses at a time.** Sums over the same entries lose the same i entries, so what follows from them row
  by row (a mean, a normalisation by degrees) is bounded for each i separately. The arrays of
  such values have one more axis for i. The hull over all i is taken where another row reads the value, or where it
  meets a value that depends on losses of other entries.

All is computed in float64. `Subject` leaves room for a model that computes in single precision, except where a single
number is compared with another: that is decided as computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from butfor.certificate.intervals import image, product
from butfor.oracle.program.steps import Concat, Fold, Gather, Linear, Map, Pick, Reduce, in_order

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from butfor.certificate.intervals import Interval
    from butfor.oracle.program.steps import Step, Value

    Bools = NDArray[np.bool_]
    Numbers = NDArray[np.int64]

__all__ = ["Bounds"]


@dataclass(frozen=True, eq=False)
class _Known:
    """The interval of a value: (rows, columns), or (losses, rows, columns) if it is bounded for each number of losses.

    Attributes:
        interval: the ends.
        losses: the reduction whose losses the first axis counts; -1 where there is no such axis.
    """

    interval: Interval
    losses: int = -1

    @property
    def hull(self) -> Interval:
        """The interval that holds for any number of losses."""
        low, high = self.interval
        return (low.min(axis=0), high.max(axis=0)) if self.losses >= 0 else (low, high)


class Bounds:
    """Bounds on the program of a target over families of graphs.

    Args:
        out: the program's output.
        edit_of: the edit that deletes each edge column; -1 for none.
        num_edits: how many edits there are.
    """

    def __init__(self, out: Value, edit_of: Numbers, num_edits: int) -> None:
        self.out, self.num_edits = out, num_edits
        self._pairs = in_order(out)
        self._edit_of = np.append(edit_of, -1)

    def ends(self, made: Bools, free: Bools, most: int) -> Interval:
        """A lower and an upper bound of each column of the output."""
        family = _Family(made, free, most, _Family(made, free & False, 0, None))
        low, high = self._pass(family)[id(self.out)].hull
        return low[0], high[0]

    def least(self, made: Bools, free: Bools, most: int) -> NDArray[np.float64]:
        """A lower bound of each column of the output."""
        return self.ends(made, free, most)[0]

    def exactly(self, made: Bools) -> NDArray[np.float64]:
        """The output after exactly these edits; NaN where a function is not known."""
        low, high = self._pass(_Family(made, made & False, 0, None))[id(self.out)].hull
        return np.where(low[0] == high[0], low[0], np.nan)

    # What a value depends on.

    def _entry_edits(self, step: Reduce) -> Numbers:
        """The edit that deletes each entry; -1 for none."""
        edits: Numbers = self._edit_of[step.edges]
        return edits

    @cached_property
    def _cones(self) -> dict[int, Bools]:
        """For each value, by its id, which edits each of its rows depends on."""
        cones: dict[int, Bools] = {}
        for step, value in self._pairs:
            cone = np.zeros((value.rows, self.num_edits + 1), dtype=bool)
            for number, one in enumerate(step.inputs):
                if id(one) not in cones:
                    continue
                theirs = cones[id(one)]
                if isinstance(step, Reduce):
                    np.logical_or.at(cone, step.receiver, theirs[step.source] if number == 0 else theirs)
                elif isinstance(step, Gather):
                    cone |= theirs[step.source]
                elif isinstance(step, Concat):
                    begin = sum(other.rows for other in step.inputs[:number])
                    cone[begin : begin + one.rows] |= theirs
                else:
                    cone |= theirs
            if isinstance(step, Reduce):
                cone[step.receiver, self._entry_edits(step)] = True
                cone[:, -1] = False  # the place of entries that no edit deletes
            cones[id(value)] = cone
        return cones

    @cached_property
    def _same_entries(self) -> dict[int, int]:
        """For each reduction, by its id, the number of the first one over the same entries."""
        numbers: dict[tuple[bytes, bytes], int] = {}
        return {
            id(step): numbers.setdefault((step.receiver.tobytes(), step.edges.tobytes()), len(numbers))
            for step, _ in self._pairs
            if isinstance(step, Reduce)
        }

    # One pass from the features to the output.

    def _pass(self, family: _Family) -> dict[int, _Known]:
        known: dict[int, _Known] = {}
        base = {} if family.base is None else self._pass(family.base)
        for step, value in self._pairs:
            known[id(value)] = self._bounded(step, value, family, known, base)
        return known

    def _bounded(
        self, step: Step, value: Value, family: _Family, known: dict[int, _Known], base: dict[int, _Known]
    ) -> _Known:
        if isinstance(step, Reduce):
            return self._reduced(step, value, family, known, base)
        given = [_of(one, known) for one in step.inputs]
        if isinstance(step, (Map, Linear, Pick, Fold)):
            counted = {one.losses for one in given if one.losses >= 0}
            if len(counted) > 1:
                # They count losses of different entries, which need not be equal: take what holds for any number.
                given = [_Known(one.hull) for one in given]
            losses = counted.pop() if len(counted) == 1 else -1
            return _Known(_row_by_row(step, [one.interval for one in given]), losses)
        hulls = [one.hull for one in given]
        if isinstance(step, Gather):
            return _Known((hulls[0][0][step.source], hulls[0][1][step.source]))
        assert isinstance(step, Concat)
        low, high = (np.concatenate([hull[end] for hull in hulls]) for end in (0, 1))
        return _Known((low, high))

    def _reduced(
        self, step: Reduce, value: Value, family: _Family, known: dict[int, _Known], base: dict[int, _Known]
    ) -> _Known:
        edits = self._entry_edits(step)
        there, loose = ~family.made[edits], family.free[edits]
        worst = _entries(step, known)
        usual = _entries(step, base) if base else worst
        losses = self._most_lost(step, value.rows, edits, loose & there, family)
        shape = int(losses.max(initial=0)) + 1, value.rows, value.width
        low, high = np.empty(shape), np.empty(shape)
        order = np.argsort(step.receiver, kind="stable")
        ends = np.searchsorted(step.receiver[order], np.arange(value.rows + 1))
        for row in range(value.rows):
            mine = order[ends[row] : ends[row + 1]]
            mine = mine[there[mine]]
            ends_of = worst[0][mine], worst[1][mine], usual[0][mine], usual[1][mine]
            entries = _Entries(*ends_of, loose[mine], int(losses[row]))
            if step.code in ("sum", "share"):
                bounds = entries.sums(self._most_changed(step, mine, family))
            else:
                bounds = entries.extremes(step.empty, step.code == "amin")
            # A row that cannot lose so many entries repeats its last interval.
            last = np.minimum(np.arange(shape[0]), losses[row])
            low[:, row], high[:, row] = bounds[0][last], bounds[1][last]
        if step.added is not None:
            low, high = low + _data(step.added), high + _data(step.added)
        return _Known((low, high), self._same_entries[id(step)])

    def _most_lost(self, step: Reduce, rows: int, edits: Numbers, loose: Bools, family: _Family) -> Numbers:
        """How many entries each row can lose at most."""
        lost = np.bincount(step.receiver[loose], minlength=rows)
        pair = step.receiver[loose] * (self.num_edits + 1) + edits[loose]
        _, counts = np.unique(pair, return_counts=True)
        at_once = int(counts.max(initial=0))
        return np.minimum(lost, at_once * family.most)

    def _most_changed(self, step: Reduce, entries: Numbers, family: _Family) -> int:
        """q: how many of some entries can differ from what they are without free edits, at most."""
        count = np.zeros(self.num_edits + 1, dtype=np.int64)
        cone = np.zeros((len(entries), self.num_edits + 1), dtype=bool)
        for number, one in enumerate(step.inputs):
            if id(one) in self._cones:
                cone |= self._cones[id(one)][step.source[entries] if number == 0 else entries]
        count += cone.sum(axis=0)
        return int(np.sort(count[family.free])[::-1][: family.most].sum())


@dataclass(frozen=True, eq=False)
class _Family:
    """All graphs with the ``made`` edits and at most ``most`` of the ``free`` ones; in ``base``, with none of these.

    The last place of both arrays is for entries that no edit deletes.
    """

    made: Bools
    free: Bools
    most: int
    base: _Family | None


def _of(value: Value, known: dict[int, _Known]) -> _Known:
    if id(value) in known:
        return known[id(value)]
    data = _data(value)
    return _Known((data, data))


def _data(value: Value) -> NDArray[np.float64]:
    assert value.data is not None
    return value.data


def _entries(step: Reduce, known: dict[int, _Known]) -> Interval:
    """The interval of what each entry brings."""
    low, high = _of(step.inputs[0], known).hull
    rows = step.source if step.inputs[0].space is not None else np.zeros_like(step.source)
    brought = low[rows], high[rows]
    if len(step.inputs) == 1:
        return brought
    factors = _of(step.inputs[1], known).hull
    columns = step.factor_columns
    return product(brought, factors if columns is None else (factors[0][:, columns], factors[1][:, columns]))


@dataclass(frozen=True, eq=False)
class _Entries:
    """The entries that lead to one row: (entry, column).

    Attributes:
        low, high: the ends of what each brings.
        usual_low, usual_high: the same if no free edit is made.
        loose: whether a free edit deletes it.
        losses: how many are lost at most.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    usual_low: NDArray[np.float64]
    usual_high: NDArray[np.float64]
    loose: Bools
    losses: int

    def sums(self, changed: int) -> Interval:
        """The sum, for each number of losses, where at most ``changed`` entries differ from their usual values."""
        return (
            self._least_sums(self.usual_low, self.low, changed),
            -self._least_sums(-self.usual_high, -self.high, changed),
        )

    def _least_sums(self, usual: NDArray[np.float64], least: NDArray[np.float64], changed: int) -> NDArray[np.float64]:
        with np.errstate(invalid="ignore"):
            lost = np.cumsum(_falling(usual[self.loose])[: self.losses], axis=0)
            lost = np.concatenate([np.zeros((1, usual.shape[1])), lost])
            moved = _falling(np.maximum(usual - least, 0.0))[:changed].sum(axis=0)
            totals = usual.sum(axis=0) - lost - moved
        return np.where(np.isnan(totals), -np.inf, totals)

    def extremes(self, empty: float, is_minimum: bool) -> Interval:
        """The maximum or minimum, for each number of losses."""
        if is_minimum:
            high, low = self._maxima(-self.high, -self.low, -empty)
            return -low, -high
        return self._maxima(self.low, self.high, empty)

    def _maxima(self, low: NDArray[np.float64], high: NDArray[np.float64], empty: float) -> Interval:
        """For each number i of losses: one of the i + 1 largest entries stays, and so do all that are not loose."""
        shape = self.losses + 1, low.shape[1]
        least, most = np.full(shape, empty), np.full(shape, empty)
        left = min(self.losses + 1, len(low))  # with so many losses or more, no entry stays
        if left:
            least[:left] = _falling(low)[:left]
            most[:left] = high.max(axis=0)
        if not self.loose.all():
            least[:left] = np.maximum(least[:left], low[~self.loose].max(axis=0))
        return least, most


def _falling(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each column sorted by itself, the largest first; NaN comes before all."""
    ordered: NDArray[np.float64] = np.sort(values, axis=0)[::-1]
    return ordered


def _row_by_row(step: Map | Linear | Pick | Fold, given: list[Interval]) -> Interval:
    """The interval of a step that treats every row by itself; the last axis has the columns."""
    if isinstance(step, Map):
        read = [
            one if columns is None else (one[0][..., columns], one[1][..., columns])
            for one, columns in zip(given, step.columns, strict=True)
        ]
        return image(step.code, step.parameters, [_alike(one, read) for one in read])
    if isinstance(step, Linear):
        rising, falling = np.maximum(step.matrix, 0), np.minimum(step.matrix, 0)
        low, high = given[0]
        added = 0.0 if step.added is None else _data(step.added)
        with np.errstate(invalid="ignore"):
            ends = low @ rising + high @ falling + added, high @ rising + low @ falling + added
        return np.where(np.isnan(ends[0]), -np.inf, ends[0]), np.where(np.isnan(ends[1]), np.inf, ends[1])
    if isinstance(step, Pick):
        shape = np.broadcast_shapes(*(one[0].shape[:-1] for one in given))
        low, high = (
            np.stack(
                [np.broadcast_to(given[n][end][..., c], shape) for n, c in zip(step.which, step.columns, strict=True)],
                axis=-1,
            )
            for end in (0, 1)
        )
        return low, high
    low, high = given[0]
    groups = [np.flatnonzero(step.groups == group) for group in range(int(step.groups.max(initial=-1)) + 1)]
    folds: dict[str, Callable[..., Any]] = {"sum": np.sum, "mean": np.mean, "amax": np.max, "amin": np.min}
    if step.code in folds:
        fold = folds[step.code]
        folded = [np.stack([fold(one[..., g], axis=-1) for g in groups], axis=-1) for one in (low, high)]
        return folded[0], folded[1]
    shape = (*low.shape[:-1], len(groups))
    return np.full(shape, -np.inf), np.full(shape, np.inf)


def _alike(one: Interval, others: list[Interval]) -> Interval:
    """The interval, broadcast to the common shape of all."""
    shape = np.broadcast_shapes(*(other[0].shape for other in others))
    return np.broadcast_to(one[0], shape), np.broadcast_to(one[1], shape)
