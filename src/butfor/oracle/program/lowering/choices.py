"""Rows that are chosen: read, such as the sender of each edge, or written over."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from butfor.oracle.program.lowering import blocks
from butfor.oracle.program.lowering.facts import Index, Lost, Rows, flat_rows, row_width
from butfor.oracle.program.lowering.moves import moved, numbered
from butfor.oracle.program.steps import Concat, Fold, Gather, Map, Pick, Space, Step, Value, made
from butfor.oracle.program.trace import Untraceable, refs

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from butfor.oracle.program.lowering.facts import Facts
    from butfor.oracle.program.trace import Operation

__all__ = ["copy", "gather", "index_put", "overlay"]


# Reading.


def gather(facts: Facts, operation: Operation) -> None:
    """Rows chosen by an index."""
    if operation.name == "gather":
        _gather_columns(facts, operation)
        return
    axis, index = _axis_and_index(operation)
    fact, found, tensor = facts.fact(operation.args[0]), facts.fact(index), facts.tensor(index)
    if fact is None and isinstance(found, Rows) and found.value.fixed and len(found.shape) == 1:
        # A table looked up by what nodes carry, such as the embedding of an atom's number.
        facts.put(operation, Gather([found.value], np.empty(0, np.int64)), found.space, 0)
        return
    if not isinstance(fact, Rows) or isinstance(found, Rows):
        raise Untraceable("a choice that depends on the values of nodes")
    if isinstance(found, Index) and tensor.dim() == 2 and axis == fact.axis == 0:
        _gather_ends(facts, operation, fact, found, tensor)
    elif axis % len(fact.shape) == fact.axis and tensor.dim() == 1:
        _gather_rows(facts, operation, fact, found, tensor)
    elif found is None:
        _move_by_constant(facts, operation, fact, axis, tensor)
    else:
        raise Untraceable("a choice that depends on the values of nodes")


def _axis_and_index(operation: Operation) -> tuple[int, Any]:
    """Along which axis an operation chooses, and by what."""
    args = operation.args
    if operation.name == "index_select":
        return args[1], args[2]
    if operation.name == "embedding":
        return 0, args[1]
    if operation.name == "index" and sum(one is not None for one in args[1]) == 1:
        return next((i, one) for i, one in enumerate(args[1]) if one is not None)
    raise Untraceable(f"the operation {operation.name}")


def _gather_rows(facts: Facts, operation: Operation, fact: Rows, found: Index | None, index: Tensor) -> None:
    if found is None:
        facts.beyond.append("some rows chosen by where they stand")
    chosen = _chosen(index)
    if isinstance(found, Index) and index.dtype != torch.bool:
        _check_numbers(facts, fact, found)
        space = facts.edge_space(found.columns.numpy())
    else:
        space = facts.part(fact.space, chosen)
    facts.put(operation, Gather([fact.value], chosen), space, fact.axis)


def _check_numbers(facts: Facts, fact: Rows, found: Index) -> None:
    """Rows are chosen as edges and targets say only if the numbers are those of the nodes that the rows stand for."""
    if not blocks.are_rows(facts, found, fact.space):
        facts.beyond.append("rows chosen by other numbers than those of their nodes")


def _gather_ends(facts: Facts, operation: Operation, fact: Rows, found: Index, index: Tensor) -> None:
    """Rows of both ends of edges or pairs, one end after the other."""
    _check_numbers(facts, fact, found)
    columns = found.columns
    if not bool((columns == columns[:1]).all()):
        raise Untraceable("rows of different edges put together")
    space, width = facts.edge_space(columns[0].numpy()), fact.value.width
    ends = [made(Gather([fact.value], end.numpy()), space, width) for end in index.long()]
    step = Pick(ends, np.repeat(np.arange(len(ends)), width), np.tile(np.arange(width), len(ends)))
    facts.put(operation, step, space, 1)


def _chosen(index: Tensor) -> NDArray[np.int64]:
    """The numbers that an index or a mask chooses."""
    chosen: NDArray[np.int64] = (index.nonzero().view(-1) if index.dtype == torch.bool else index.long()).numpy()
    return chosen


def _gather_columns(facts: Facts, operation: Operation) -> None:
    """Of each row the columns that a label says: all columns times 0 or 1, added up."""
    args = operation.args
    fact, index = facts.fact(args[0]), facts.tensor(args[2])
    if not isinstance(fact, Rows) or isinstance(facts.fact(args[2]), Rows) or fact.axis != 0 or args[1] % 2 != 1:
        raise Untraceable("the operation gather")
    width, many = fact.shape[1], int(facts.output(operation).shape[1])
    chosen = torch.nn.functional.one_hot(index, width).reshape(len(index), -1)
    if facts.fact(args[2]) is None:
        facts.beyond.append("a table with a row for each node")
    factor = Value(fact.space, many * width, flat_rows(chosen, 0))
    every = np.tile(np.arange(width), many)
    products = made(Map([fact.value, factor], "mul", [every, None]), fact.space, many * width)
    facts.put(operation, Fold([products], "sum", np.repeat(np.arange(many), width)), fact.space, 0)


def _move_by_constant(facts: Facts, operation: Operation, fact: Rows, axis: int, index: Tensor) -> None:
    """Columns chosen by a constant."""
    grid = numbered(fact)
    args = (None,) * axis + (index,)
    picked = grid.index_select(axis, index) if operation.name == "index_select" else torch.ops.aten.index(grid, args)
    facts.known[operation.outputs[0]] = moved(facts, picked, [fact.value], fact.space, operation.outputs[0])


# Writing.


def index_put(facts: Facts, operation: Operation) -> None:
    """Rows that are written over, such as the weights of self-loops, or numbers such as those that are infinite."""
    into, where, values, *more = operation.args
    fact, condition = facts.fact(into), facts.fact(where[0])
    if all(facts.tensor(ref).numel() == 0 for ref in refs((where, values))):
        if condition is None:
            facts.beyond.append("some rows chosen by where they stand")  # on another graph there may be some
        if fact is not None:
            facts.known[operation.outputs[0]] = fact
        return
    index = facts.tensor(where[0])
    if len(where) != 1 or any(more) or isinstance(fact, Index):
        raise Untraceable("the operation index_put")
    if isinstance(condition, Rows) and isinstance(fact, Rows):
        _put_where(facts, operation, fact, condition)
        return
    if isinstance(condition, Rows) or index.dim() != 1:
        raise Untraceable("the operation index_put")
    if condition is None or index.dtype != torch.bool:
        facts.beyond.append("some rows chosen by where they stand")
    _write_over(facts, operation, into, values, _chosen(index))


def _put_where(facts: Facts, operation: Operation, fact: Rows, condition: Rows) -> None:
    """One number wherever a condition holds."""
    into, (where,), values = operation.args[:3]
    if condition.shape != fact.shape or facts.tensor(values).numel() != 1:
        raise Untraceable("the operation index_put")
    pairs = [facts.operand(one, fact.space, fact.shape, fact.axis) for one in (where, values, into)]
    step = Map([value for value, _ in pairs], "where", [columns for _, columns in pairs])
    facts.put(operation, step, fact.space, fact.axis)


def copy(facts: Facts, operation: Operation) -> None:
    """A tensor that is written over by another."""
    into, source = operation.args[:2]
    fact = facts.fact(source)
    if fact is not None and facts.tensor(into).shape != facts.tensor(source).shape:
        raise Untraceable("the operation copy")
    if fact is not None:
        facts.known[operation.outputs[0]] = fact


def overlay(facts: Facts, operation: Operation) -> None:
    """Rows of which some are written over; if anything else is, it must not be used any more."""
    whole, part = operation.args
    tensor = facts.tensor(whole)
    width = row_width(tensor, 0) if tensor.dim() else 0
    try:
        rows = _whole_rows(operation.kwargs["places"].reshape(-1), width)
        fact = facts.fact(part)
        if np.array_equal(rows, np.arange(len(tensor))) and isinstance(fact, Rows) and fact.shape == tensor.shape:
            facts.known[operation.outputs[0]] = fact
            return
        if len(rows):
            _write_over(facts, operation, whole, part, rows, by_place=True)
            return
        facts.place(())  # on another graph there may be some
        if (before := facts.fact(whole)) is not None:
            facts.known[operation.outputs[0]] = before
    except Untraceable as problem:
        facts.known[operation.outputs[0]] = Lost(str(problem))


def _whole_rows(places: Tensor, width: int) -> NDArray[np.int64]:
    """The rows that these places are."""
    if width and not len(places) % width:
        places = places.reshape(-1, width)
        rows = places[:, 0] // width
        if bool((places == rows[:, None] * width + torch.arange(width)).all()):
            found: NDArray[np.int64] = rows.numpy()
            return found
    raise Untraceable("a tensor that is written into through another one")


def _write_over(
    facts: Facts, operation: Operation, into: Any, values: Any, rows: NDArray[np.int64], by_place: bool = False
) -> None:
    """Rows of a tensor that are replaced by others; ``by_place`` says that they are chosen by where they stand."""
    fact, new, shape = facts.fact(into), facts.fact(values), facts.tensor(into).shape
    known = [one for one in (fact, new) if one is not None]
    if not all(isinstance(one, Rows) and one.axis == 0 for one in known) or (
        isinstance(new, Rows) and (new.space.size != len(rows) or new.shape[1:] != tuple(shape[1:]))
    ):
        raise Untraceable("rows that are written over by something else")
    size, width = shape[0], row_width(facts.tensor(into), 0)
    tensors = (facts.tensor(into), facts.tensor(values).expand(len(rows), *shape[1:]))
    old, replaced = (
        one.value if isinstance(one, Rows) else _constant(facts, tensor, ref)
        for one, tensor, ref in zip((fact, new), tensors, (into, values), strict=True)
    )
    columns = fact.space.edges.copy() if isinstance(fact, Rows) else np.full(size, -1)
    if isinstance(new, Rows) and not isinstance(fact, Rows):
        columns[rows] = new.space.edges
    space = _written_over(facts, columns, fact, new, rows)
    if by_place:
        before, after = (one.space if isinstance(one, Rows) else None for one in (fact, new))
        found = blocks.written(facts, space, before, after, rows)
        if found is None:
            facts.beyond.append("some rows chosen by where they stand")
        space = found or space
    facts.put(operation, _replaced(old, replaced, rows, width), space, 0)


def _constant(facts: Facts, tensor: Tensor, ref: Any) -> Value:
    """A constant that is written, or written into; there it may be memory that nothing has been written to yet."""
    space = Space(len(tensor))
    if ref.number in facts.trace.empty:
        return Value(space, row_width(tensor, 0), flat_rows(tensor, 0))
    return facts.constant(tensor, space, 0)


def _replaced(old: Value, new: Value, rows: NDArray[np.int64], width: int) -> Step:
    """What rows are of which some are replaced; nothing is kept of tables that no row is of any more."""
    gather = old.step if isinstance(old.step, Gather) else None
    inner = old if gather is None else gather.inputs[0]
    tables = list(inner.step.inputs) if isinstance(inner.step, Concat) else [inner]
    source = np.arange(old.rows) if gather is None else gather.source.copy()
    tables.append(new)
    starts = np.concatenate([[0], np.cumsum([one.rows for one in tables])])
    source[rows] = starts[-2] + np.arange(len(rows))
    which = np.searchsorted(starts, source, side="right") - 1
    used = [number for number in range(len(tables)) if (which == number).any()]
    shift = np.zeros(len(tables), dtype=np.int64)
    shift[used] = starts[used] - np.concatenate([[0], np.cumsum([tables[n].rows for n in used])[:-1]]).astype(np.int64)
    source, tables = source - shift[which], [tables[number] for number in used]
    size = sum(one.rows for one in tables)
    if len(tables) > 1 and np.array_equal(source, np.arange(size)):
        return Concat(tables)
    together = made(Concat(tables), Space(size), width) if len(tables) > 1 else tables[0]
    return Gather([together], source)


def _written_over(
    facts: Facts,
    columns: NDArray[np.int64],
    fact: Rows | Index | None,
    new: Rows | Index | None,
    rows: NDArray[np.int64],
) -> Space:
    """The space of rows of which some are replaced; what a constant brings is of no node."""
    space = facts.space_of(columns)
    if space.columns is not None:
        return space
    before, after = (one.space.nodes if isinstance(one, Rows) else None for one in (fact, new))
    nodes = np.full(len(columns), -1) if before is None else before.copy()
    if isinstance(new, Rows):
        nodes[rows] = -1 if after is None else after
    return replace(space, nodes=nodes)
