"""Operations that only move numbers: views, slices, permutations, concatenations.

They are not known one by one. The same operation is done to the numbers of the entries, each of which says its own row
and column, and what it did is read off (`moved`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch.utils._pytree import tree_map

from butfor.oracle.program.lowering import blocks
from butfor.oracle.program.lowering.facts import Index, Rows, row_width
from butfor.oracle.program.lowering.operations import done
from butfor.oracle.program.steps import Concat, Gather, Pick, Space, Value, made
from butfor.oracle.program.trace import Ref, Untraceable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from butfor.oracle.program.lowering.facts import Facts
    from butfor.oracle.program.trace import Operation

__all__ = ["move", "moved", "numbered", "same"]

# Numbers of rows and columns share one 64-bit integer.
_SHIFT = 32


def same(facts: Facts, operation: Operation) -> None:
    """A copy, or the same numbers under another name."""
    facts.known[operation.outputs[0]] = facts.rows(operation.args[0])


def move(facts: Facts, operation: Operation) -> None:
    """Find out where each number goes, by moving the numbers' own numbers."""
    if operation.name == "cat" and _cat_rows(facts, operation):
        return
    arguments = {ref.number: ref for ref in operation.refs}
    first = next(fact for ref in arguments.values() if isinstance(fact := facts.fact(ref), Rows))
    values: list[Value] = []
    ids: dict[int, Tensor] = {}
    total = 0
    for number, ref in arguments.items():
        fact = _rows_like(facts, ref, first)
        ids[number] = numbered(fact, total)
        values.append(fact.value)
        total += fact.value.width
    args, kwargs = tree_map(
        lambda one: ids[one.number] if isinstance(one, Ref) else one, (operation.args, operation.kwargs)
    )
    for number, grid in zip(operation.outputs, done(operation, args, kwargs), strict=True):
        gone = None if grid.numel() else _none_kept(facts, grid, first)
        facts.known[number] = gone or moved(facts, grid, values, first.space, number)


def _none_kept(facts: Facts, grid: Tensor, before: Rows) -> Rows | None:
    """No row stays, such as those of a type that there are no nodes of; on another graph there may be some."""
    without = [0 if axis == before.axis else size for axis, size in enumerate(before.shape)]
    if not before.space.size or before.axis is None or list(grid.shape) != without:
        return None
    none = np.empty(0, np.int64)
    if not blocks.notes_choice(facts, before.space, none):
        facts.choose_by_place()
    return _no_rows(grid, facts.part(before.space, none))


def _rows_like(facts: Facts, ref: Ref, first: Rows) -> Rows:
    """An argument with the same rows as the first; a constant may have them too."""
    fact, tensor = facts.fact(ref), facts.tensor(ref)
    if (
        fact is None
        and first.axis is not None
        and tensor.dim() == len(first.shape)
        and tensor.shape[first.axis] == first.space.size
    ):
        fact = Rows(facts.constant(tensor, first.space, first.axis, ref), first.axis, tuple(tensor.shape))
    if not isinstance(fact, Rows) or not facts.are_the_same(fact.space, first.space):
        raise Untraceable("rows of different kinds put together")
    return fact


# Concatenations along the rows.


def _cat_rows(facts: Facts, operation: Operation) -> bool:
    """Rows of several kinds one behind the other, such as the weights of edges and those of self-loops."""
    parts, dim = operation.args[0], operation.args[1] if len(operation.args) > 1 else 0
    given = [facts.fact(part) for part in parts]
    first = next(fact for fact in given if isinstance(fact, Rows))
    if first.axis is None or dim % len(first.shape) != first.axis:
        return False
    values = []
    for part, fact in zip(parts, given, strict=True):
        tensor = facts.tensor(part)
        if isinstance(fact, Index) or (isinstance(fact, Rows) and fact.axis != first.axis):
            raise Untraceable("rows of different kinds put together")
        if tensor.numel():
            values.append(
                fact.value if isinstance(fact, Rows) else facts.constant(tensor, Space(tensor.shape[dim]), dim)
            )
    facts.put(operation, Concat(values), _joined(facts, [value.space for value in values]), first.axis)
    return True


def _joined(facts: Facts, spaces: Sequence[Space | None]) -> Space:
    """The space of rows one behind the other."""
    known = [space for space in spaces if space is not None]
    columns = np.concatenate([space.edges for space in known])
    nodes = np.concatenate([np.full(space.size, -1) if space.nodes is None else space.nodes for space in known])
    space = facts.space_of(columns)
    return space if space.columns is not None else replace(space, nodes=nodes, blocks=blocks.joined(known))


# Where numbers went.


def numbered(fact: Rows, start: int = 0) -> Tensor:
    """A tensor of the same shape in which each entry is its own row and column; columns are counted from ``start``."""
    own = torch.arange(fact.value.width).reshape(fact.inner) + start
    if fact.axis is None:
        return own
    row = (torch.arange(fact.space.size) << _SHIFT).reshape([-1] + [1] * len(fact.inner))
    return (row + own).movedim(0, fact.axis)


def moved(facts: Facts, grid: Tensor, values: list[Value], space: Space, number: int) -> Rows:
    """The value with that number, whose numbers stand where the grid says.

    Raises:
        Untraceable: nothing that has a row for each row of a space.
    """
    if not space.size:
        return _no_rows(grid, space)
    given = _Grid(grid, values, space)
    for way in (_parts_joined, _rows_kept, _only_row, _rows_divided, _rows_joined):
        found = way(facts, given)
        if found is not None:
            facts.trace.made[number] = given.columns_along(found.axis)
            return found
    raise Untraceable("rows mixed with other axes")


def _no_rows(grid: Tensor, space: Space) -> Rows:
    """Where there are no rows, the axis that has none."""
    axis = next((axis for axis, size in enumerate(grid.shape) if not size), None)
    if axis is None:
        raise Untraceable("rows mixed with other axes")
    width = row_width(grid, axis)
    return Rows(Value(space, width, np.zeros((0, width))), axis, tuple(grid.shape))


class _Lines(NamedTuple):
    """A grid taken apart along one axis, a line for each place: the row and the column that each number is from."""

    axis: int
    row: NDArray[np.int64]
    column: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Grid:
    """Numbers of entries after a move, and the values side by side that they count in."""

    grid: Tensor
    values: list[Value]
    space: Space

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.grid.shape)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where the columns of each value begin, and where all end."""
        return np.concatenate([[0], np.cumsum([one.width for one in self.values])])

    @cached_property
    def lines(self) -> list[_Lines]:
        """The grid along each axis."""
        grid, shape = self.grid, self.shape
        return [
            _Lines(axis, *_rows_and_columns(grid.movedim(axis, 0).reshape(shape[axis], row_width(grid, axis))))
            for axis in range(grid.dim() if grid.numel() else 0)
        ]

    def columns_along(self, axis: int | None) -> Any:
        """The columns that rows are made of, in terms that do not depend on how many rows there are."""
        if axis is None or not self.grid.numel():
            return _rows_and_columns(self.grid)[1].tobytes()
        column = self.lines[axis].column
        return column[0].tobytes() if _same(column) else np.unique(column, axis=0).tobytes()

    def picked(self, columns: NDArray[np.int64]) -> Value:
        """These columns of each row."""
        values, starts = self.values, self.starts
        if len(values) == 1 and np.array_equal(columns, np.arange(values[0].width)):
            return values[0]
        which = np.searchsorted(starts, columns, side="right") - 1
        return made(Pick(values, which, columns - starts[which]), self.space, len(columns))

    def side_by_side(self, facts: Facts, lines: _Lines) -> Rows:
        """Several rows as one; the column that a number is from is the same in all rows."""
        value, column = self.picked(np.arange(self.starts[-1])), lines.column[0]
        choices, which = np.unique(lines.row, axis=1, return_inverse=True)
        parts = [replace(facts.part(self.space, choice), part_of=None) for choice in choices.T]
        blocks.note_side_by_side(facts, self.space, choices)
        if not all(facts.are_the_same(part, parts[0]) for part in parts):
            raise Untraceable("rows of different edges put together")
        gathered = [made(Gather([value], choice), parts[0], value.width) for choice in choices.T]
        return Rows(made(Pick(gathered, which.reshape(-1), column), parts[0], len(column)), lines.axis, self.shape)


# The ways in which a grid may have rows; the first that fits is taken.


def _parts_joined(facts: Facts, given: _Grid) -> Rows | None:
    """Parts of rows become rows again."""
    part_of = given.space.part_of
    if part_of is None:
        return None
    for lines in given.lines:
        _, row, column = lines
        if row.shape[1] > 1 and _same(column):
            line = np.arange(len(row))[:, None]
            if (part_of[row] == line).all() and not _same(row.T):
                return given.side_by_side(facts, lines)
    return None


def _rows_kept(facts: Facts, given: _Grid) -> Rows | None:
    """All rows stay, or some of them."""
    space, shape = given.space, given.shape
    plain = [(axis, row[:, 0], column[0]) for axis, row, column in given.lines if _same(row.T) and _same(column)]
    # Where several axes fit (there is one row only), the first is where it was.
    everything = np.arange(space.size)
    for axis, rows, columns in plain:
        if np.array_equal(rows, everything):
            return Rows(given.picked(columns), axis, shape)
    if not plain:
        return None
    axis, rows, columns = plain[0]
    if not blocks.notes_choice(facts, space, rows):
        facts.choose_by_place()
    return Rows(made(Gather([given.picked(columns)], rows), facts.part(space, rows), len(columns)), axis, shape)


def _only_row(_: Facts, given: _Grid) -> Rows | None:
    """Numbers of the only row there is."""
    if given.space.size != 1 or given.grid.dim() >= 2:
        return None
    return Rows(given.picked(_rows_and_columns(given.grid)[1].reshape(-1)), None, given.shape)


def _rows_divided(_: Facts, given: _Grid) -> Rows | None:
    """Parts of a row become rows."""
    space = given.space
    for axis, row, column in given.lines:
        if _same(row.T):
            patterns, which = np.unique(column, axis=0, return_inverse=True)
            parts = [given.picked(pattern) for pattern in patterns]
            rows = which.reshape(-1) * space.size + row[:, 0]
            together = made(Concat(parts), Space(len(parts) * space.size), column.shape[1])
            edges, nodes = (None if one is None else one[row[:, 0]] for one in (space.columns, space.nodes))
            divided = Space(len(rows), edges, row[:, 0], nodes, blocks.divided(space, row[:, 0], which.reshape(-1)))
            return Rows(made(Gather([together], rows), divided, column.shape[1]), axis, given.shape)
    return None


def _rows_joined(facts: Facts, given: _Grid) -> Rows | None:
    """Several rows become one; which axis counts rows cannot be seen, but they are many."""
    for lines in sorted(given.lines, key=lambda one: -len(one.row)):
        if _same(lines.column):
            return given.side_by_side(facts, lines)
    return None


def _rows_and_columns(grid: Tensor) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return (grid >> _SHIFT).numpy(), (grid & ((1 << _SHIFT) - 1)).numpy()


def _same(lines: NDArray[np.int64]) -> bool:
    """Whether all lines are the same."""
    return bool((lines == lines[:1]).all())
