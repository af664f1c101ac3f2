"""A program in flat arrays, for one target."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from butfor.oracle.program.kernels import flat
from butfor.oracle.program.kernels.emitting import LANES
from butfor.oracle.program.kernels.evaluate import evaluate
from butfor.oracle.program.kernels.flat import Flat, State
from butfor.oracle.program.kernels.functions import CODES
from butfor.oracle.program.kernels.values import WIDE
from butfor.oracle.program.steps import Concat, Fold, Gather, Linear, Map, Pick, Reduce, in_order

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeVar

    from numpy.typing import NDArray

    from butfor.oracle.program.steps import Step, Value

    Number = TypeVar("Number", np.bool_, np.int64)

__all__ = ["Layout", "Values", "room_for", "rows_for"]


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


def _padded(size: int) -> int:
    """The next multiple of a vector."""
    return -(-size // LANES) * LANES


def room_for(size: int) -> NDArray[np.float64]:
    """Zeros that begin where vectors are read best, with room for one more vector behind them."""
    room = np.zeros(size + 2 * LANES)
    first = -(room.ctypes.data // room.itemsize) % LANES
    return room[first : first + size]


def rows_for(count: int, width: int) -> NDArray[np.float64]:
    """Likewise, rows that are read and written in vectors, and may be somewhat wider than asked for."""
    return room_for(count * _padded(width)).reshape(count, _padded(width))


def _added(step: Step) -> list[Value]:
    """The fixed value that a step begins with, if any."""
    return [step.added] if isinstance(step, (Linear, Reduce)) and step.added is not None else []


class Values:
    """All values of a program, numbered by where they first appear, and where the numbers of each stand.

    Attributes are as in `Flat`; ``start`` ends with where all end, and ``numbers`` has the number of a value by its id.
    """

    def __init__(self, pairs: list[tuple[Step, Value]]) -> None:
        self.all = list(
            {id(one): one for step, value in pairs for one in (*step.inputs, *_added(step), value)}.values()
        )
        self.numbers = {id(value): number for number, value in enumerate(self.all)}
        self.rows = np.array([value.rows for value in self.all], dtype=np.int64)
        self.width = np.array([value.width for value in self.all], dtype=np.int64)
        self.stride = np.array([0 if value.space is None else value.width for value in self.all], dtype=np.int64)
        self.start = np.concatenate([[0], np.cumsum(self.rows * self.width)])
        changing = self.rows * np.array([not value.fixed for value in self.all])
        self.first = np.where([not value.fixed for value in self.all], np.cumsum(changing) - changing, -1)
        self.num_changing = int(changing.sum())

    def data(self) -> NDArray[np.float64]:
        """The numbers that no step computes, and 0 for the others."""
        data = np.zeros(self.start[-1])
        for number, value in enumerate(self.all):
            if value.data is not None:
                data[self.start[number] : self.start[number + 1]] = value.data.ravel()
        return data

    def part(self, of_rows: NDArray[Number], value: Value) -> NDArray[Number]:
        """The rows of one value, in an array with a place for each row that can change."""
        first = self.first[self.numbers[id(value)]]
        return of_rows[first : first + value.rows]


class _Steps:
    """All steps of a program, written into arrays one after the other. Attributes are as in `Flat`."""

    def __init__(self, pairs: list[tuple[Step, Value]], values: Values, num_columns: int) -> None:
        size = len(pairs)
        self.out = np.array([values.numbers[id(value)] for _, value in pairs], dtype=np.int64)
        self.kind, self.code, self.arity = (np.zeros(size, np.int64) for _ in range(3))
        self.inputs, self.columns = np.zeros((size, 3), np.int64), np.full((size, 3), -1)
        self.parameters, self.places = np.zeros((size, 3)), np.full((size, flat.NUM_TABLES), -1)
        self.added = np.array(
            [next((values.numbers[id(one)] for one in _added(step)), -1) for step, _ in pairs], dtype=np.int64
        )
        self.tables = _Tables()
        self._matrices: list[NDArray[np.float64]] = []
        self.num_entries = self.num_second = 0
        self._rows, self._num_columns = values.rows, num_columns
        for at, (step, value) in enumerate(pairs):
            self._write(at, step, value, [values.numbers[id(one)] for one in step.inputs])

    def all_matrices(self) -> NDArray[np.float64]:
        """One behind the other."""
        room = room_for(sum(_padded(matrix.size) for matrix in self._matrices))
        at = 0
        for matrix in self._matrices:
            room[at : at + matrix.size] = matrix
            at += _padded(matrix.size)
        return room

    def _write(self, at: int, step: Step, value: Value, of: list[int]) -> None:
        """Write one step, which reads the values with the numbers ``of``."""
        self.arity[at] = len(of)
        if not isinstance(step, (Pick, Concat)):
            self.inputs[at, : len(of)] = of
        if isinstance(step, Map):
            self._write_map(at, step)
        elif isinstance(step, Pick):
            self._write_pick(at, step, of)
        elif isinstance(step, Concat):
            self._write_concat(at, of)
        elif isinstance(step, Linear):
            self._write_linear(at, step)
        elif isinstance(step, Fold):
            self._write_fold(at, step)
        elif isinstance(step, Gather):
            self._write_gather(at, step, of[0])
        elif isinstance(step, Reduce):
            self._write_reduce(at, step, of[0], value)

    def _write_map(self, at: int, step: Map) -> None:
        self.kind[at], self.code[at] = flat.MAP, CODES[step.code]
        self.parameters[at, : len(step.parameters)] = step.parameters
        for i, own in enumerate(step.columns):
            self.columns[at, i] = -1 if own is None else self.tables.put(own)

    def _write_pick(self, at: int, step: Pick, of: list[int]) -> None:
        self.kind[at], place = flat.PICK, self.places[at]
        place[flat.WHICH], place[flat.COLUMN] = self.tables.put(step.which), self.tables.put(step.columns)
        place[flat.INPUTS] = self.tables.put(np.array(of))

    def _write_concat(self, at: int, of: list[int]) -> None:
        self.kind[at], place = flat.CONCAT, self.places[at]
        place[flat.BEGINS] = self.tables.put(np.concatenate([[0], np.cumsum(self._rows[of])]))
        place[flat.INPUTS] = self.tables.put(np.array(of))

    def _write_linear(self, at: int, step: Linear) -> None:
        self.kind[at], self.code[at] = flat.LINEAR, step.of_relu
        self.places[at, flat.MATRIX] = sum(_padded(matrix.size) for matrix in self._matrices)
        self._matrices.append(step.matrix.ravel())

    def _write_fold(self, at: int, step: Fold) -> None:
        self.kind[at], self.code[at] = flat.FOLD, flat.FOLDS[step.code]
        self.places[at, flat.GROUPS] = self.tables.put(step.groups)

    def _write_gather(self, at: int, step: Gather | Reduce, source: int) -> None:
        """Which row of the value ``source`` each row, or entry, reads."""
        self.kind[at], place = flat.GATHER, self.places[at]
        place[flat.SOURCE] = self.tables.put(step.source)
        place[flat.READERS : flat.READER + 1] = self.tables.put_lists(step.source, int(self._rows[source]))

    def _write_reduce(self, at: int, step: Reduce, source: int, value: Value) -> None:
        self._write_gather(at, step, source)
        self.kind[at], self.code[at] = flat.REDUCE, flat.REDUCTIONS[step.code]
        self.parameters[at] = step.empty, step.counts, _limit(step)
        place, tables = self.places[at], self.tables
        place[flat.ARRIVING : flat.ARRIVAL + 1] = tables.put_lists(step.receiver, value.rows)
        place[flat.RECEIVER], place[flat.EDGE] = tables.put(step.receiver), tables.put(step.edges)
        place[flat.OF_EDGE : flat.ENTRY + 1] = tables.put_lists(step.edges, self._num_columns)
        place[flat.VISIT] = self.num_entries
        self.num_entries += len(step.receiver)
        if step.code in ("amax", "amin") and step.inputs[0].fixed:
            place[flat.SECOND] = self.num_second
            self.num_second += value.rows * value.width
        if step.factor_columns is not None:
            self.columns[at, 1] = tables.put(step.factor_columns)


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
        num_second: how many numbers `State.second` has.
        reads: for each edge column, whether it leads to a row that the target needs.
        receivers: for each reduction, the nodes that the rows are which the target needs, -1 for rows that are none,
            and whether edges are followed to their senders.
        features: the values in which edits set features; -1 for those that the target does not need.
    """

    flat: Flat
    start: NDArray[np.float64]
    output: int
    row: int
    present: NDArray[np.bool_]
    num_entries: int
    num_second: int
    reads: NDArray[np.bool_]
    receivers: list[tuple[NDArray[np.int64], bool]]
    features: list[int]

    @classmethod
    def of(
        cls,
        out: Value,
        row: int,
        present: NDArray[np.bool_],
        features: Sequence[Value] = (),
        never: NDArray[np.int64] | None = None,
        fused: bool = False,
    ) -> Layout:
        """Lay out all that leads to one row of a value; the edge columns ``never`` lead nowhere, whatever is edited.

        ``fused`` lets one step do what two did, which is quicker, and not for those who look at every step.
        """
        pairs = _fused(in_order(out)) if fused else in_order(out)
        values = Values(pairs)
        steps = _Steps(pairs, values, len(present))
        leads = np.ones(len(present) + 1, dtype=bool)  # the last place is for what is no edge
        leads[[] if never is None else never] = False
        needed, reads, receivers = _needed(pairs, values, out, row, leads)
        program = Flat(
            values.start[:-1].copy(), values.width, values.stride, values.first, values.rows, steps.kind, steps.out,
            steps.inputs, steps.arity, steps.code, steps.columns, steps.parameters, steps.added, steps.places,
            steps.tables.joined(), steps.all_matrices(), needed,
        )  # fmt: skip
        editable = [values.numbers.get(id(value), -1) for value in features]
        output = values.numbers[id(out)]
        entries, second = steps.num_entries, steps.num_second
        return cls(program, values.data(), output, row, present, entries, second, reads, receivers, editable)

    def state(self) -> State:
        """All values before any edit."""
        state = self.empty_state()
        evaluate(self.flat, state)
        return state

    def soft_state(self) -> State:
        """The values that no step computes, and no room for changes."""
        nothing, none = np.empty(0), np.empty(0, np.int64)
        stamps, widest = np.zeros(len(self.flat.needed), np.int64), int(self.flat.width.max())
        values = room_for(len(self.start))
        values[:] = self.start
        return State(
            values, values, nothing, nothing, np.empty((0, 2), np.int64), stamps, none, none, none, nothing, none,
            np.empty(0, np.bool_), none, none, none, none, none, np.empty(widest, np.int64), np.empty(widest), none,
        )  # fmt: skip

    def empty_state(self) -> State:
        """The values that no step computes, and room for what edits change."""
        size, rows, widest = len(self.start), len(self.flat.needed), int(self.flat.width.max())
        values, middle = room_for(2 * _padded(size)), _padded(size)
        values[:size] = self.start
        return State(
            values, values[:size], values[middle : middle + size], room_for(size), np.empty((rows, 2), np.int64),
            np.zeros(rows, np.int64), np.empty(rows + 1, np.int64), np.zeros(len(self.flat.first), np.int64),
            np.zeros(rows, np.int64), room_for(self.num_second), np.zeros(rows, np.int64),
            self.present.copy(), np.zeros(len(self.present), np.int64),
            np.zeros(self.num_entries, np.int64), np.empty(3 * self.num_entries, np.int64),
            np.empty(self.num_entries, np.int64), np.empty(self.num_entries, np.int64), np.empty(widest, np.int64),
            room_for(widest), np.zeros(2, np.int64),
        )  # fmt: skip

    @cached_property
    def numbers(self) -> int:
        """How many numbers a state holds, about."""
        return 3 * len(self.start) + self.num_second + len(self.flat.table)


def _fused(pairs: list[tuple[Step, Value]]) -> list[tuple[Step, Value]]:
    """The same steps, where matrix products compute the ReLU of what they read if nothing else reads it."""
    readers = Counter(id(value) for step, _ in pairs for value in step.inputs)
    found, inside = [], set()
    for step, value in pairs:
        if isinstance(step, Linear):
            (row,) = step.inputs
            if _is_relu(row) and readers[id(row)] == 1 and row.width <= WIDE:
                assert row.step is not None
                step = replace(step, inputs=row.step.inputs, of_relu=True)
                inside.add(id(row))
        found.append((step, value))
    return [(step, value) for step, value in found if id(value) not in inside]


def _is_relu(value: Value) -> bool:
    """Whether it is the ReLU of another value, column by column."""
    step = value.step
    return isinstance(step, Map) and step.code == "relu" and step.columns == [None] and step.inputs[0].space is not None


def _limit(step: Reduce) -> float:
    """What a maximum or minimum is that no message can fall short of, and an empty row has; not a number if unknown.

    An entry that goes changes no column in which that is the extreme.
    """
    lowest, highest = _range(step.inputs[0])
    known = {"amax": step.empty <= lowest, "amin": step.empty >= highest}
    return step.empty if known.get(step.code, False) else np.nan


def _range(value: Value) -> tuple[float, float]:
    """Numbers that all of a value lie between, whichever edits are made."""
    if isinstance(value.step, Gather):
        return _range(value.step.inputs[0])
    if isinstance(value.step, Map) and value.step.code == "relu":
        return 0.0, np.inf
    if not value.fixed or value.data is None or not value.data.size:
        return -np.inf, np.inf
    return float(value.data.min()), float(value.data.max())


def _needed(
    pairs: list[tuple[Step, Value]], values: Values, out: Value, row: int, leads: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], list[tuple[NDArray[np.int64], bool]]]:
    """What one row of a value needs: which rows, edge columns, and nodes of each reduction (see `Layout`).

    ``leads`` says which edge columns can be there.
    """
    needed = np.zeros(values.num_changing, dtype=bool)
    values.part(needed, out)[row] = True
    reads = np.zeros(len(leads), dtype=bool)
    receivers: list[tuple[NDArray[np.int64], bool]] = []
    for step, value in reversed(pairs):
        mine = values.part(needed, value)
        arriving = np.empty(0, np.int64)
        if isinstance(step, Reduce):
            arriving = np.flatnonzero(mine[step.receiver] & leads[step.edges])
            reads[step.edges[arriving]] = True
            nodes = None if value.space is None else value.space.nodes
            receivers.append((np.full(mine.sum(), -1) if nodes is None else nodes[mine], step.against))
        for i, one in enumerate(step.inputs):
            if not one.fixed:
                _need(step, i, mine, arriving, values.part(needed, one))
    return needed, reads[:-1], receivers


def _need(
    step: Step, number: int, mine: NDArray[np.bool_], arriving: NDArray[np.int64], theirs: NDArray[np.bool_]
) -> None:
    """Mark the rows of an input that the needed rows of a step read; of a reduction, those that arrive there."""
    if isinstance(step, Gather):
        theirs[step.source[mine]] = True
    elif isinstance(step, Concat):
        begins = sum(value.rows for value in step.inputs[:number])
        theirs |= mine[begins : begins + len(theirs)]
    elif isinstance(step, Reduce):
        theirs[step.source[arriving] if number == 0 else arriving] = True
    else:
        theirs |= mine
