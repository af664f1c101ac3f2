"""The part of a program that one of its rows needs, as a program of its own.

A model is recorded once on the whole graph; what no edit can change is computed there, once. A target then takes the
rows that it needs, which costs what its neighbourhood costs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from butfor.oracle.program.steps import Concat, Gather, Linear, Reduce, Space, Value, in_order
from butfor.oracle.program.trace import Untraceable

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from butfor.oracle.program.steps import Step

    Rows = NDArray[np.int64]

__all__ = ["Restrictable"]


@dataclass(frozen=True, eq=False)
class Restrictable:
    """A program of which any row can be had alone.

    Attributes:
        out: the value that has a row for each target.
    """

    out: Value

    @cached_property
    def _pairs(self) -> list[tuple[Step, Value]]:
        return in_order(self.out)

    @cached_property
    def _space_numbers(self) -> dict[int, int]:
        """A number for each space, by its id; spaces whose rows stand for the same have the same number."""
        numbers: dict[int, int] = {}
        distinct: list[Space] = []
        for step, value in self._pairs:
            for space in (one.space for one in (*step.inputs, *_added(step), value)):
                if space is None or id(space) in numbers:
                    continue
                same = next((k for k, other in enumerate(distinct) if space.matches(other)), len(distinct))
                numbers[id(space)] = same
                if same == len(distinct):
                    distinct.append(space)
        return numbers

    @cached_property
    def _arrivals(self) -> dict[int, tuple[Rows, Rows]]:
        """For each reduction, by its id: pointers by receiver, and the entries in that order."""
        found = {}
        for step, value in self._pairs:
            if isinstance(step, Reduce):
                order = np.argsort(step.receiver, kind="stable")
                found[id(step)] = np.searchsorted(step.receiver[order], np.arange(value.rows + 1)), order
        return found

    def of(self, row: int, columns: Rows) -> tuple[Value, int]:
        """The same value with only what one row needs, and the number of that row.

        ``columns`` are the edge columns of the neighbourhood, ascending; they are numbered in that order.

        Raises:
            Untraceable: the row needs another edge.
        """
        needed = self._needed(row)
        numbering = self._numbering(needed)
        made: dict[int, Value] = {}

        def part(value: Value) -> Value:
            if id(value) not in made:
                # What a step computes is made before any step reads it.
                assert value.step is None
                made[id(value)] = self._fixed(value, numbering)
            return made[id(value)]

        for step, value in self._pairs:
            if id(value) in needed:
                rows = numbering[self._space_of(value)]
                restricted = self._step(step, value, numbering, needed[id(value)], columns, part)
                assert value.space is not None
                made[id(value)] = Value(_space(value.space, rows), value.width, step=restricted)
        return made[id(self.out)], int(np.searchsorted(numbering[self._space_of(self.out)], row))

    def _space_of(self, value: Value) -> int:
        return self._space_numbers[id(value.space)]

    def _needed(self, row: int) -> dict[int, Rows]:
        """The rows that are needed of each value, by its id."""
        wanted: dict[int, list[Rows]] = {id(self.out): [np.array([row])]}
        needed: dict[int, Rows] = {}
        for step, value in reversed(self._pairs):
            if id(value) not in wanted:
                continue
            rows = needed[id(value)] = _union(wanted.pop(id(value)))
            for one, theirs in self._reads(step, rows):
                if one.space is not None:
                    wanted.setdefault(id(one), []).append(theirs)
        return needed | {number: _union(parts) for number, parts in wanted.items()}

    def _reads(self, step: Step, rows: Rows) -> list[tuple[Value, Rows]]:
        """What some rows of a step read."""
        if isinstance(step, Gather):
            return [(step.inputs[0], step.source[rows])]
        if isinstance(step, Concat):
            begins = np.concatenate([[0], np.cumsum([value.rows for value in step.inputs])])
            return [
                (value, rows[(rows >= first) & (rows < last)] - first)
                for value, first, last in zip(step.inputs, begins, begins[1:], strict=False)
            ]
        added = [(one, rows) for one in _added(step)]
        if isinstance(step, Reduce):
            entries = self._entries(step, rows)
            return [(step.inputs[0], step.source[entries]), *((one, entries) for one in step.inputs[1:]), *added]
        return [(one, rows) for one in step.inputs] + added

    def _entries(self, step: Reduce, rows: Rows) -> Rows:
        """The entries that lead to some rows."""
        pointers, order = self._arrivals[id(step)]
        counts = pointers[rows + 1] - pointers[rows]
        ends = np.cumsum(counts)
        at = np.arange(ends[-1] if len(ends) else 0) + np.repeat(pointers[rows] - (ends - counts), counts)
        entries: Rows = order[at]
        return entries

    def _numbering(self, needed: dict[int, Rows]) -> dict[int, Rows]:
        """The rows of each space that are kept: those that are needed of any of its values."""
        kept: dict[int, list[Rows]] = {}
        seen = {id(one): one for step, value in self._pairs for one in (*step.inputs, *_added(step), value)}
        for number, rows in needed.items():
            kept.setdefault(self._space_of(seen[number]), []).append(rows)
        numbering = {space: _union(parts) for space, parts in kept.items()}
        for step, value in self._pairs:
            if id(value) in needed and isinstance(step, Reduce) and len(step.inputs) == 2:
                # Factors are numbered like entries, so that all of these must lead somewhere.
                entries = numbering[self._space_of(step.inputs[1])]
                mine = self._space_of(value)
                numbering[mine] = _union([numbering[mine], step.receiver[entries]])
        return numbering

    def _fixed(self, value: Value, numbering: dict[int, Rows]) -> Value:
        """A value that no step computes."""
        if value.space is None:
            return value
        rows = numbering[self._space_of(value)]
        assert value.data is not None
        return Value(_space(value.space, rows), value.width, value.data[rows])

    def _step(
        self, step: Step, value: Value, numbering: dict[int, Rows], needed: Rows, columns: Rows,
        part: Callable[[Value], Value],
    ) -> Step:  # fmt: skip
        rows = numbering[self._space_of(value)]
        if isinstance(step, Gather):
            (inner,) = step.inputs
            return Gather([part(inner)], _places(numbering[self._space_of(inner)], step.source[rows]))
        if isinstance(step, Concat):
            return self._concat(step, rows, numbering, part)
        if isinstance(step, Reduce):
            return self._reduce(step, value, numbering, needed, columns, part)
        inputs = [part(one) for one in step.inputs]
        if isinstance(step, Linear) and step.added is not None:
            return replace(step, inputs=inputs, added=part(step.added))
        return replace(step, inputs=inputs)

    def _concat(self, step: Concat, rows: Rows, numbering: dict[int, Rows], part: Callable[[Value], Value]) -> Step:
        """Rows one behind the other, of which only some are left: gathered from all that is left of the parts."""
        parts = [part(one) for one in step.inputs]
        begins = np.concatenate([[0], np.cumsum([one.rows for one in step.inputs])])
        left = np.concatenate([[0], np.cumsum([one.rows for one in parts])])
        source = np.zeros(len(rows), dtype=np.int64)
        for k, one in enumerate(step.inputs):
            mine = (rows >= begins[k]) & (rows < begins[k + 1])
            source[mine] = left[k] + _places(numbering[self._space_of(one)], rows[mine] - begins[k])
        together = Value(Space(int(left[-1])), step.inputs[0].width, step=Concat(parts))
        return Gather([together], source)

    def _reduce(
        self, step: Reduce, value: Value, numbering: dict[int, Rows], needed: Rows, columns: Rows,
        part: Callable[[Value], Value],
    ) -> Reduce:  # fmt: skip
        rows, inner = numbering[self._space_of(value)], step.inputs[0]
        if len(step.inputs) == 2:
            entries = numbering[self._space_of(step.inputs[1])]
        else:
            entries = np.sort(self._entries(step, needed))
        edges = step.edges[entries]
        places = np.searchsorted(columns, edges)
        outside = (edges >= 0) & (np.append(columns, -1)[places] != edges)
        if outside[np.isin(step.receiver[entries], needed)].any():
            raise Untraceable("an edge outside the neighbourhood")
        receiver = _places(rows, step.receiver[entries])
        if (rows[receiver] != step.receiver[entries]).any():
            raise Untraceable("factors of edges that lead to other edges")
        source = step.source[entries]
        if inner.space is not None:
            source = _places(numbering[self._space_of(inner)], source)
        return replace(
            step,
            inputs=[part(one) for one in step.inputs],
            receiver=receiver,
            source=source,
            edges=np.where((edges < 0) | outside, -1, places),
            added=None if step.added is None else part(step.added),
        )


def _added(step: Step) -> list[Value]:
    return [step.added] if isinstance(step, (Linear, Reduce)) and step.added is not None else []


def _union(parts: list[Rows]) -> Rows:
    return np.unique(np.concatenate(parts))


def _places(kept: Rows, rows: Rows) -> Rows:
    """Where rows stand among those that are kept; the first place for one that is not, which nobody needs."""
    places = np.searchsorted(kept, rows)
    places[np.append(kept, -1)[places] != rows] = 0
    return places


def _space(space: Space, rows: Rows) -> Space:
    return Space(len(rows), None if space.columns is None else space.columns[rows])
