"""A program in flat arrays, for one target."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from butfor.oracle.program import kernels
from butfor.oracle.program.kernels import CODES, FOLDS, NUM_TABLES, REDUCTIONS, Flat, State
from butfor.oracle.program.steps import Concat, Fold, Gather, Linear, Map, Pick, Reduce, in_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from butfor.oracle.program.steps import Step, Value

__all__ = ["Layout"]


class _Tables:
    """Whole numbers one behind the other."""

    def __init__(self) -> None:
        self.parts: list[NDArray[np.int64]] = []
        self.size = 0

    def put(self, numbers: NDArray[np.int64]) -> int:
        """Where they begin."""
        self.parts.append(np.asarray(numbers, dtype=np.int64))
        self.size += len(numbers)
        return self.size - len(numbers)

    def put_lists(self, keys: NDArray[np.int64], size: int) -> tuple[int, int]:
        """For each key below ``size``, where in ``keys`` it stands: pointers, and positions."""
        order = np.argsort(keys, kind="stable")
        order = order[np.searchsorted(keys[order], 0) :]
        return self.put(np.searchsorted(keys[order], np.arange(size + 1))), self.put(order)

    def joined(self) -> NDArray[np.int64]:
        """All of them."""
        return np.concatenate(self.parts) if self.parts else np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Layout:
    """The flat arrays of a program, and where its output is.

    Attributes:
        flat: the program.
        start: the numbers that no step computes.
        output: the value that is asked for.
        row: the row of it.
        present: which edge columns are there before any edit.
        num_entries: of all reductions together.
        reads: for each edge column, whether it leads to a row that the target needs.
        receivers: for each reduction, how many rows there are, and which the target needs.
        features: the values in which edits set features; -1 for those that the target does not need.
    """

    flat: Flat
    start: NDArray[np.float64]
    output: int
    row: int
    present: NDArray[np.bool_]
    num_entries: int
    reads: NDArray[np.bool_]
    receivers: list[tuple[int, NDArray[np.int64]]]
    features: list[int]

    @classmethod
    def of(cls, out: Value, row: int, present: NDArray[np.bool_], features: Sequence[Value] = ()) -> Layout:
        """Lay out all that leads to one row of a value."""
        steps = in_order(out)
        numbers: dict[int, int] = {}
        values: list[Value] = []
        for step, value in steps:
            for one in (*step.inputs, value):
                if id(one) not in numbers:
                    numbers[id(one)] = len(values)
                    values.append(one)
        rows = np.array([value.rows for value in values], dtype=np.int64)
        width = np.array([value.width for value in values], dtype=np.int64)
        start = np.concatenate([[0], np.cumsum(rows * width)])
        changing = np.array([not value.fixed for value in values])
        first = np.where(changing, np.cumsum(rows * changing) - rows * changing, -1)
        data = np.zeros(start[-1])
        for number, value in enumerate(values):
            if value.data is not None:
                data[start[number] : start[number + 1]] = value.data.ravel()
        tables = _Tables()
        matrices: list[NDArray[np.float64]] = []
        shape = len(steps)
        columns = np.full((shape, 3), -1)
        inputs, arity = np.zeros((shape, 3), np.int64), np.zeros(shape, np.int64)
        kind, code = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        parameters, places = np.zeros((shape, 2)), np.full((shape, NUM_TABLES), -1)
        out_of = np.array([numbers[id(value)] for _, value in steps], dtype=np.int64)
        entries = 0
        for at, (step, value) in enumerate(steps):
            arity[at] = len(step.inputs)
            of = [numbers[id(one)] for one in step.inputs]
            place = places[at]
            if not isinstance(step, (Pick, Concat)):
                inputs[at, : len(of)] = of
            if isinstance(step, Map):
                kind[at], code[at] = kernels.MAP, CODES[step.code]
                parameters[at, : len(step.parameters)] = step.parameters
                for i, own in enumerate(step.columns):
                    columns[at, i] = -1 if own is None else tables.put(own)
            elif isinstance(step, Pick):
                kind[at] = kernels.PICK
                place[:3] = tables.put(step.which), tables.put(step.columns), tables.put(np.array(of))
            elif isinstance(step, Concat):
                kind[at] = kernels.CONCAT
                place[kernels.BEGINS] = tables.put(np.concatenate([[0], np.cumsum(rows[of])]))
                place[kernels.INPUTS] = tables.put(np.array(of))
            elif isinstance(step, Linear):
                kind[at] = kernels.LINEAR
                place[kernels.MATRIX] = sum(matrix.size for matrix in matrices)
                matrices.append(step.matrix.ravel())
            elif isinstance(step, Fold):
                kind[at], code[at] = kernels.FOLD, FOLDS[step.code]
                place[kernels.GROUPS] = tables.put(step.groups)
            elif isinstance(step, Gather):
                kind[at] = kernels.GATHER
                place[kernels.SOURCE] = tables.put(step.source)
                place[kernels.READERS : kernels.READER + 1] = tables.put_lists(step.source, int(rows[of[0]]))
            elif isinstance(step, Reduce):
                kind[at], code[at] = kernels.REDUCE, REDUCTIONS[step.code]
                parameters[at] = step.empty, step.counts
                place[kernels.SOURCE] = tables.put(step.source)
                place[kernels.READERS : kernels.READER + 1] = tables.put_lists(step.source, int(rows[of[0]]))
                place[kernels.ARRIVING : kernels.ARRIVAL + 1] = tables.put_lists(step.receiver, value.rows)
                place[kernels.RECEIVER], place[kernels.EDGE] = tables.put(step.receiver), tables.put(step.edges)
                place[kernels.OF_EDGE : kernels.ENTRY + 1] = tables.put_lists(step.edges, len(present))
                place[kernels.VISIT] = entries
                entries += len(step.receiver)
                if step.factor_columns is not None:
                    columns[at, 1] = tables.put(step.factor_columns)
        output = numbers[id(out)]
        needed = np.zeros(int((rows * changing).sum()), dtype=bool)
        needed[first[output] + row] = True
        reads = np.zeros(len(present) + 1, dtype=bool)
        receivers: list[tuple[int, NDArray[np.int64]]] = []
        for step, value in reversed(steps):
            mine = _part(needed, first[numbers[id(value)]], value)
            if isinstance(step, Reduce):
                arriving = np.flatnonzero(mine[step.receiver])
                reads[step.edges[arriving]] = True
                receivers.append((value.rows, np.flatnonzero(mine)))
            for i, one in enumerate(step.inputs):
                if not one.fixed:
                    theirs = _part(needed, first[numbers[id(one)]], one)
                    _need(step, i, mine, theirs)
        stride = np.array([0 if value.space is None else value.width for value in values], dtype=np.int64)
        flat = Flat(
            start[:-1].copy(), width, stride, first, rows, kind, out_of, inputs, arity, code, columns, parameters,
            places, tables.joined(), np.concatenate(matrices) if matrices else np.zeros(0), needed,
        )  # fmt: skip
        editable = [numbers.get(id(value), -1) for value in features]
        return cls(flat, data, output, row, present, entries, reads[:-1], receivers, editable)

    def state(self) -> State:
        """All values before any edit."""
        state = self.empty_state()
        kernels.evaluate(self.flat, state)
        return state

    def soft_state(self) -> State:
        """The values that no step computes, and no room for changes."""
        nothing, none = np.empty(0), np.empty(0, np.int64)
        stamps = np.zeros(len(self.flat.needed), np.int64)
        return State(
            self.start.copy(), nothing, nothing, np.empty((0, 2), np.int64), stamps, none, none, none,
            np.empty(0, np.bool_), none, none, none, none, none,
        )  # fmt: skip

    def empty_state(self) -> State:
        """The values that no step computes, and room for what edits change."""
        size, rows = len(self.start), len(self.flat.needed)
        return State(
            self.start.copy(), np.empty(size), np.empty(size), np.empty((rows, 2), np.int64), np.zeros(rows, np.int64),
            np.empty(rows, np.int64), np.zeros(len(self.flat.first), np.int64), np.zeros(rows, np.int64),
            self.present.copy(), np.zeros(len(self.present), np.int64), np.zeros(self.num_entries, np.int64),
            np.empty(3 * self.num_entries, np.int64), np.empty(int(self.flat.width.max()), np.int64),
            np.zeros(1, np.int64),
        )  # fmt: skip

    @cached_property
    def numbers(self) -> int:
        """How many numbers a state holds, about."""
        return 3 * len(self.start) + len(self.flat.table)


def _part(needed: NDArray[np.bool_], first: int, value: Value) -> NDArray[np.bool_]:
    return needed[first : first + value.rows]


def _need(step: Step, number: int, mine: NDArray[np.bool_], theirs: NDArray[np.bool_]) -> None:
    """Mark the rows of an input that the needed rows of a step read."""
    if isinstance(step, Gather):
        theirs[step.source[mine]] = True
    elif isinstance(step, Concat):
        begins = sum(value.rows for value in step.inputs[:number])
        theirs |= mine[begins : begins + len(theirs)]
    elif isinstance(step, Reduce):
        arriving = np.flatnonzero(mine[step.receiver])
        theirs[step.source[arriving] if number == 0 else arriving] = True
    else:
        theirs |= mine
