"""Interval bounds on a model's program over a family of edited graphs; the checker's own, in plain numpy.

**The family.** Every edit, which deletes or adds edges, is made, excluded or free, and at most r of the free edits are
made. Every value gets an interval that contains it on all graphs of the family. This is why:

- **Rows and cases.** Every row of a value has edits *of its own*: those that delete or add an entry of a reduction
  which leads there, or to the same row of another value with as many rows. (The proof holds for any choice.) A *case*
  says which free ones of these are made: a certain subset while there are few, else only their number. Together the
  cases cover all that the family allows. Functions of single numbers, matrices and folds compute a row from the same
  row of other values, case by case, by interval arithmetic (`intervals.py`). So within a case the entries that are
  there, their number and all that follows row by row (a mean, a normalisation by degrees) agree.
- **Levels.** In each case an interval is computed for at most 0, 1, 2, 3 and any number of edits that are made beside
  the row's own. Other rows read the *hull* of the cases: for at most j edits in all, the smallest interval that
  contains those of all cases of i ≤ j edits with at most j - i others. A value depends only on the edits of its *cone*,
  so this holds where at most j edits of its cone are made, whatever is made elsewhere. An entry has its *usual* value,
  level 0, if no edit of its cone is made.
- **Capacity.** Let c(x) be the number of entries at a row whose cones contain the free edit x. The edits of the cones
  of all entries that are there, counted once for each, are at most Q: for edits of the case, their c(x) among entries
  that are there; and the c(x) of as many other edits as the level allows, those with the largest. Where a case is only
  a number of edits, the largest c(x) of so many edits of the row take the place of the first.
- **Sums.** Let D(j) be how far an entry falls below its usual lower end on level j. The sum is at least the usual sum
  of the entries that are there, less the largest Σ D(j_e) over all entries e with Σ j_e ≤ Q, which is at most the sum
  of the Q largest steps of the least concave functions above all D. Where a case is only a number i of edits, each edit
  of the row has an effect on the usual sum: it takes away what it deletes, and adds the lower end, on the last level,
  of what it adds. The i smallest effects are added to the sum without these edits. (An entry that is deleted and falls
  counts twice, which only lowers the bound.) For the upper end all signs are turned.
- **Own entries.** An entry of a sum that brings the row itself, as a self-loop does, and that no edit touches, is read
  in the same case, not as a hull.
- **Maxima.** A maximum is at least the largest lower end of the entries that are there, and at least the (Q + 1)-th
  largest usual one; it is at most the largest upper end. Where only the number of edits is known, and at most k entries
  can be deleted, these are the (k + 1)-th and the (Q + k + 1)-th largest, or the largest of an entry that no free edit
  deletes; and where all may be deleted, the value of an empty row belongs to the interval, too.

All is computed in float64. `Subject` leaves room for a model that computes in single precision, and so does a
comparison (`intervals.py`).

`cases.py` has the cases of all rows, `entries.py` the reductions at one row, `rows.py` what is done row by row.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from butfor.certificate.cases import Cases, Family
from butfor.certificate.entries import Entries
from butfor.certificate.intervals import product
from butfor.certificate.rows import expanded, numbers, row_by_row
from butfor.oracle.program.steps import Concat, Gather, Reduce, in_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from butfor.certificate.intervals import Interval
    from butfor.oracle.program.steps import Value

    Bools = NDArray[np.bool_]
    Numbers = NDArray[np.int64]

__all__ = ["Bounds"]


class Bounds:
    """Bounds on the program of a target over families of graphs.

    Args:
        out: the program's output.
        edit_of: the edit that deletes or adds each edge column; -1 for none.
        added: which edge columns are not there unless they are added.
        num_edits: how many edits there are.
    """

    def __init__(self, out: Value, edit_of: Numbers, added: Bools, num_edits: int) -> None:
        self.out, self.num_edits = out, num_edits
        self._pairs = in_order(out)
        self._edit_of, self._added = np.append(edit_of, -1), np.append(added, False)

    def ends(self, made: Bools, free: Bools, most: int) -> Interval:
        """A lower and an upper bound of each column of the output.

        ``made`` and ``free`` have a place for each edit, and a last one for no edit.
        """
        low, high = _Pass(self, Family(made, free, most)).hull(self.out)
        return low[-1, 0], high[-1, 0]

    def least(self, made: Bools, free: Bools, most: int) -> NDArray[np.float64]:
        """A lower bound of each column of the output."""
        return self.ends(made, free, most)[0]

    def exactly(self, made: Bools) -> NDArray[np.float64]:
        """The output after exactly these edits; NaN where a function is not known."""
        low, high = self.ends(made, made & False, 0)
        return np.where(low == high, low, np.nan)

    def edits_of(self, step: Reduce) -> Numbers:
        """The edit that deletes or adds each entry; -1 for none."""
        edits: Numbers = self._edit_of[step.edges]
        return edits

    def is_added(self, step: Reduce) -> Bools:
        """Which entries are not there unless they are added."""
        added: Bools = self._added[step.edges]
        return added

    @property
    def steps(self) -> list[Any]:
        """All steps, each with the value that it computes."""
        return self._pairs

    @cached_property
    def cones(self) -> dict[int, Bools]:
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
                cone[step.receiver, self.edits_of(step)] = True
                cone[:, -1] = False  # the place of entries without an edit
            cones[id(value)] = cone
        return cones

    @cached_property
    def needed(self) -> dict[int, Bools]:
        """For each value, by its id, which of its rows the first row of the output is computed from."""
        needed = {id(value): np.zeros(value.rows, dtype=bool) for _, value in self._pairs}
        needed[id(self.out)][0] = True
        for step, value in reversed(self._pairs):
            rows = needed[id(value)]
            for number, one in enumerate(step.inputs):
                if id(one) not in needed:
                    continue
                if isinstance(step, Reduce):
                    entries = rows[step.receiver]
                    needed[id(one)][step.source[entries] if number == 0 else entries] = True
                elif isinstance(step, Gather):
                    needed[id(one)][step.source[rows]] = True
                elif isinstance(step, Concat):
                    begin = sum(other.rows for other in step.inputs[:number])
                    needed[id(one)] |= rows[begin : begin + one.rows]
                else:
                    needed[id(one)] |= rows if one.rows == value.rows else rows.any()
        return needed

    @cached_property
    def own(self) -> dict[int, Bools]:
        """For each number of rows that a reduction leads to, which edits are each row's own."""
        own: dict[int, Bools] = {}
        for step, value in self._pairs:
            if isinstance(step, Reduce):
                mine = own.setdefault(value.rows, np.zeros((value.rows, self.num_edits + 1), dtype=bool))
                mine[step.receiver, self.edits_of(step)] = True
                mine[:, -1] = False
        return own


class _Pass:
    """One pass from the features to the output: the interval of each value, (level, case, column)."""

    def __init__(self, bounds: Bounds, family: Family) -> None:
        self.bounds, self.family = bounds, family
        self._cases: dict[int, Cases] = {}
        self._known: dict[int, Interval] = {}
        self._hulls: dict[int, Interval] = {}
        for step, value in bounds.steps:
            self._known[id(value)] = self._bounded(step, value)

    def cases(self, rows: int) -> Cases:
        """The cases of values with so many rows."""
        if rows not in self._cases:
            own = self.bounds.own.get(rows)
            nothing = np.empty(0, dtype=np.int64)
            edits = [nothing] * rows if own is None else [np.flatnonzero(one) for one in own & self.family.free]
            self._cases[rows] = Cases.of(edits, self.family)
        return self._cases[rows]

    def hull(self, value: Value) -> Interval:
        """What other rows read of a value: (level, row, column)."""
        if id(value) not in self._known:
            data = np.broadcast_to(numbers(value), (len(self.family.levels), *numbers(value).shape))
            return data, data
        if id(value) not in self._hulls:
            self._hulls[id(value)] = self.cases(value.rows).hull(*self._known[id(value)])
        return self._hulls[id(value)]

    def _bounded(self, step: Any, value: Value) -> Interval:
        cases = self.cases(value.rows)
        if isinstance(step, Reduce):
            return self._reduced(step, value, cases)
        if isinstance(step, Gather):
            low, high = self.hull(step.inputs[0])
            return cases.lifted(low[:, step.source], high[:, step.source])
        if isinstance(step, Concat):
            hulls = [self.hull(one) for one in step.inputs]
            low, high = (np.concatenate([hull[end] for hull in hulls], axis=1) for end in (0, 1))
            return cases.lifted(low, high)
        low, high = row_by_row(step, [self._here(one, cases) for one in step.inputs], cases.row_of)
        shape = len(self.family.levels), len(cases.row_of), value.width
        return np.broadcast_to(low, shape), np.broadcast_to(high, shape)

    def _here(self, value: Value, cases: Cases) -> Interval:
        """A value as its own row reads it: case by case."""
        if id(value) not in self._known:
            return (expanded(value, cases.row_of),) * 2
        if value.rows == len(cases.starts) - 1:
            return self._known[id(value)]
        low, high = self.hull(value)  # one row that serves all
        return cases.lifted(low[:, [0] * (len(cases.starts) - 1)], high[:, [0] * (len(cases.starts) - 1)])

    def _reduced(self, step: Reduce, value: Value, cases: Cases) -> Interval:
        """A sum or maximum over the entries that lead to each row."""
        bounds, family = self.bounds, self.family
        edits, added = bounds.edits_of(step), bounds.is_added(step)
        low, high = self._entries(step)
        free, there = family.free[edits], np.where(added, family.made[edits], ~family.made[edits])
        is_sum = step.code in ("sum", "share")
        own = self._own_entries(step, value) if is_sum else np.zeros(len(edits), dtype=bool)
        fixed = all(one.fixed for one in step.inputs)
        shape = len(family.levels), len(cases.row_of), value.width
        result: Interval = np.full(shape, -np.inf), np.full(shape, np.inf)
        order = np.argsort(step.receiver, kind="stable")
        ends = np.searchsorted(step.receiver[order], np.arange(value.rows + 1))
        needed = bounds.needed[id(value)]
        for row in np.flatnonzero(needed):
            mine = order[ends[row] : ends[row + 1]]
            mine = mine[(there[mine] | free[mine]) & ~own[mine]]
            part = slice(cases.starts[row], cases.starts[row + 1])
            places = np.full(bounds.num_edits + 1, -1)
            places[cases.edits[row]] = np.arange(len(cases.edits[row]))
            size, chosen = cases.size[part], cases.chosen[row]
            capacity = np.zeros((shape[0], len(size)), dtype=np.int64)
            entries = Entries(
                *(low[:, mine], high[:, mine], there[mine], places[edits[mine]], len(cases.edits[row]), chosen, size),
                *(cases.level(cases.levels[:, None] + size), capacity, fixed),
            )
            if not fixed:
                capacity[:] = self._capacity(step, mine, cases.edits[row], entries)
            bounded = entries.sums() if is_sum else entries.extremes(step.empty, step.code == "amin")
            result[0][:, part], result[1][:, part] = bounded
        for entry in np.flatnonzero(own & needed[step.receiver]):
            self._add_own(step, int(entry), cases, result)
        if step.added is not None:
            constant = expanded(step.added, cases.row_of)
            result = result[0] + constant, result[1] + constant
        return result

    def _own_entries(self, step: Reduce, value: Value) -> Bools:
        """Which entries bring the row itself, whatever is edited."""
        if id(step.inputs[0]) not in self._known or step.inputs[0].rows != value.rows:
            return np.zeros(len(step.source), dtype=bool)
        own: Bools = (step.source == step.receiver) & (self.bounds.edits_of(step) < 0)
        return own

    def _add_own(self, step: Reduce, entry: int, cases: Cases, result: Interval) -> None:
        row = int(step.receiver[entry])
        part = slice(cases.starts[row], cases.starts[row + 1])
        low, high = self._known[id(step.inputs[0])]
        brought = low[:, part], high[:, part]
        if len(step.inputs) == 2:
            least, most = self._factors(step)
            at = cases.level(cases.levels[:, None] + cases.size[part])
            brought = product(brought, (least[at, entry], most[at, entry]))
        result[0][:, part] += brought[0]
        result[1][:, part] += brought[1]

    def _factors(self, step: Reduce) -> Interval:
        low, high = self.hull(step.inputs[1])
        columns = step.factor_columns
        return (low, high) if columns is None else (low[..., columns], high[..., columns])

    def _entries(self, step: Reduce) -> Interval:
        """What each entry brings: (level, entry, column)."""
        low, high = self.hull(step.inputs[0])
        rows = step.source if step.inputs[0].space is not None else np.zeros_like(step.source)
        brought = low[:, rows], high[:, rows]
        return brought if len(step.inputs) == 1 else product(brought, self._factors(step))

    def _capacity(self, step: Reduce, mine: Numbers, own: Numbers, entries: Entries) -> Numbers:
        """Q for each level and case."""
        cone = np.zeros((len(mine), self.bounds.num_edits + 1), dtype=bool)
        for number, one in enumerate(step.inputs):
            if id(one) in self.bounds.cones:
                cone |= self.bounds.cones[id(one)][step.source[mine] if number == 0 else mine]
        others = self.family.free.copy()
        others[own] = False
        counts = np.concatenate([[0], np.cumsum(np.sort(cone[:, others].sum(axis=0))[::-1])])
        of_others = counts[np.minimum(self.family.levels, len(counts) - 1)]
        if entries.chosen is not None:
            of_own = ((entries.present.astype(np.int64) @ cone[:, own]) * entries.chosen).sum(axis=1)
        else:
            of_own = np.concatenate([[0], np.cumsum(np.sort(cone[:, own].sum(axis=0))[::-1])])[entries.size]
        capacity: Numbers = of_others[:, None] + of_own
        return capacity
