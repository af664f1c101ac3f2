"""From recorded operations to steps on rows.

Each tensor of a trace is one of three things: *rows*, a value with a row for each node or edge along one of its axes;
an *index*, whole numbers or truth values that follow from the edges alone; or a *constant*, such as a weight. Edits
act in one place only: an edge that is gone is an entry that no reduction counts. So the index tensors are constants of
the neighbourhood, once it is known which edge each of their entries comes from, and what is left are a few kinds of
steps. An operation that mixes rows in any other way is `Untraceable`.

Operations that only move numbers (views, slices, permutations, concatenations) are not known one by one: the same
operation is done to the numbers of the entries, and what it did is read off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from butfor.oracle.program.steps import Concat, Fold, Gather, Linear, Map, Pick, Reduce, Space, Step, Value, made
from butfor.oracle.program.trace import Ref, Untraceable, refs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from butfor.oracle.program.trace import Operation, Trace

__all__ = ["Index", "Lowering", "Rows"]

_SAME = {"clone", "detach", "alias", "_to_copy", "to", "contiguous", "lift_fresh", "lift_fresh_copy"}
_MOVES = _SAME | {
    "view", "reshape", "_unsafe_view", "_reshape_alias", "select", "slice", "narrow", "expand", "expand_as", "t",
    "transpose", "permute", "movedim", "unsqueeze", "squeeze", "flip", "repeat", "repeat_interleave", "unbind", "split",
    "split_with_sizes", "chunk", "unsafe_chunk", "unsafe_split", "cat", "broadcast_tensors",
}  # fmt: skip
_CHOICES = {"index", "index_select", "masked_select", "gather"}
_UNARY = {
    "relu", "leaky_relu", "exp", "log", "log1p", "expm1", "sqrt", "rsqrt", "reciprocal", "neg", "abs", "sigmoid",
    "tanh", "erf", "sign", "isinf", "isnan", "isfinite", "logical_not", "bitwise_not", "sin", "cos", "floor", "clamp",
    "clamp_min", "clamp_max", "square",
}  # fmt: skip
_BINARY = {
    "add", "sub", "mul", "div", "maximum", "minimum", "pow", "eq", "ne", "lt", "le", "gt", "ge", "logical_and",
    "logical_or", "bitwise_and", "bitwise_or", "atan2", "remainder",
}  # fmt: skip
_FOLDS = {"sum", "mean", "amax", "amin", "prod"}
_REDUCTIONS = {"scatter_add", "index_add", "scatter_reduce", "index_reduce", "scatter"}
_PRODUCTS = {"mm", "addmm", "bmm", "matmul", "baddbmm"}
_FRESH = {
    "new_zeros", "new_ones", "new_full", "new_empty", "zeros_like", "ones_like", "empty_like", "full_like", "fill",
    "zero",
}  # fmt: skip
# Sizes and checks: they decide what the code does, and say nothing of single rows.
_QUESTIONS = {"_local_scalar_dense", "is_nonzero", "item", "equal", "max", "min", "any", "all", "nonzero"}

_KNOWN = (
    _MOVES | _CHOICES | _UNARY | _BINARY | _FOLDS | _REDUCTIONS | _PRODUCTS | _FRESH
    | {"embedding", "where", "masked_fill", "rsub", "index_put", "edge_softmax", "copy", "overlay", "max", "min"}
)  # fmt: skip

# Numbers of rows and columns share one 64-bit integer.
_SHIFT = 32


@dataclass(frozen=True, eq=False)
class Rows:
    """A tensor that has a row for each row of a space, along one of its axes; where axis is None it is one row."""

    value: Value
    axis: int | None
    shape: tuple[int, ...]

    @property
    def space(self) -> Space:
        """What the rows stand for."""
        assert self.value.space is not None
        return self.value.space

    @property
    def inner(self) -> list[int]:
        """The shape of one row."""
        return [size for axis, size in enumerate(self.shape) if axis != self.axis]

    def numbered(self, start: int = 0) -> Tensor:
        """A tensor of its shape in which each entry is its own row and column; columns are counted from ``start``."""
        own = torch.arange(self.value.width).reshape(self.inner) + start
        if self.axis is None:
            return own
        row = (torch.arange(self.space.size) << _SHIFT).reshape([-1] + [1] * len(self.inner))
        return (row + own).movedim(0, self.axis)


@dataclass(frozen=True, eq=False)
class Index:
    """Whole numbers or truth values that follow from the edges.

    Attributes:
        origin: the edge that each entry comes from: twice its column, and 1 more for the second end; -1 for none.
        of_nodes: whether they are numbers of nodes, which say where a node stands and nothing else.
    """

    origin: Tensor
    of_nodes: bool = False

    @property
    def columns(self) -> Tensor:
        """The edge column of each entry, or -1."""
        return _columns(self.origin)


@dataclass(frozen=True, eq=False)
class Lost:
    """A tensor of which it is not known what it is; it may still be a size."""

    reason: str
    is_size: bool = False


class Lowering:
    """Walks the operations of a trace once.

    Attributes:
        beyond: what makes a row depend on more than the edges that lead to it: on all rows, or on where it stands.
            Where there is nothing of the kind, what a row needs is all that it depends on, in any graph.
        reads_all: whether it is certain that edges outside a neighbourhood count: they are all added up, or messages
            are passed against the direction that is known of.
    """

    def __init__(self, trace: Trace, receiving: int = 1) -> None:
        """``receiving`` is the row of an edge index that has the nodes which messages are passed to."""
        self.trace, self._receiving = trace, receiving
        self.reads_all = False
        self.beyond: list[str] = []
        self.graph = Space(1)
        self._facts: dict[int, Rows | Index | Lost] = {}
        self._edge_spaces: list[Space] = []
        self._node_counts: set[int] = set()

    # What is known of the inputs.

    def add_rows(self, name: str, space: Space, editable: bool = False) -> Value:
        """An input that has a row for each node or edge."""
        number = self.trace.inputs[name]
        tensor = self.trace.values[number]
        value = Value(space, _width(tensor, 0), _flat(tensor, 0), editable=editable)
        if space.columns is None:
            self._node_counts.add(space.size)
        self._facts[number] = Rows(value, 0, tuple(tensor.shape))
        return value

    def add_edges(self, name: str, columns: NDArray[np.int64]) -> Space:
        """An edge index, and the edge column that each of its columns is."""
        self._facts[self.trace.inputs[name]] = Index(
            2 * torch.from_numpy(columns) + torch.tensor([[0], [1]]), of_nodes=True
        )
        return self.edge_space(columns)

    def add_targets(self, name: str) -> None:
        """The rows that are asked about."""
        number = self.trace.inputs[name]
        self._facts[number] = Index(torch.full(self.trace.values[number].shape, -1), of_nodes=True)

    def add_labels(self, name: str, columns: NDArray[np.int64]) -> None:
        """Whole numbers that edges carry, such as their types."""
        number = self.trace.inputs[name]
        shape = self.trace.values[number].shape
        origin = 2 * torch.from_numpy(columns).reshape([-1] + [1] * (len(shape) - 1))
        self._facts[number] = Index(origin.expand(shape).clone())

    def edge_space(self, columns: NDArray[np.int64]) -> Space:
        """The space of rows along these edges, the same object for the same edges."""
        made = Space(len(columns), columns)
        found = next((space for space in self._edge_spaces if space.matches(made)), None)
        if found is None:
            self._edge_spaces.append(made)
        return found or made

    # Walking.

    def run(self) -> Rows:
        """The output, with all steps that lead to it.

        Raises:
            Untraceable: saying what it was.
        """
        for operation in self.trace.operations:
            lost = [fact for ref in operation.refs if isinstance(fact := self._facts.get(ref.number), Lost)]
            if lost and operation.name == "overlay":
                self._facts[operation.outputs[0]] = lost[0]
                continue
            if operation.name == "_local_scalar_dense" and any(fact.is_size for fact in lost):
                continue
            facts = [self._fact(ref) for ref in operation.refs]
            counted = operation.name in _REDUCTIONS and len(facts) == 3 and any(fact is not None for fact in facts)
            if any(isinstance(fact, Rows) for fact in facts) or counted:
                self._lower(operation)
            elif any(fact is not None for fact in facts):
                self._follow_index(operation)
        found = self._facts.get(self.trace.output)
        if not isinstance(found, Rows):
            raise Untraceable("an output that does not follow from the graph row by row")
        return found

    def _tensor(self, ref: Ref) -> Tensor:
        return self.trace.values[ref.number]

    def _fact(self, argument: Any) -> Rows | Index | None:
        fact = self._facts.get(argument.number) if isinstance(argument, Ref) else None
        if isinstance(fact, Lost):
            raise Untraceable(fact.reason)
        return fact

    def _rows(self, argument: Any) -> Rows:
        fact = self._fact(argument)
        assert isinstance(fact, Rows)
        return fact

    # Indices.

    def _follow_index(self, operation: Operation) -> None:
        """Do to the origins of an index what is done to the index."""
        name, outputs = operation.name, [self.trace.values[number] for number in operation.outputs]
        if name in _FRESH:
            return
        if name in _QUESTIONS:
            self._ask_index(operation)
            return
        if name in _CHOICES | {"embedding"}:
            self._choose_from_index(operation, outputs[0])
        elif name == "overlay":
            self._overlay_index(operation)
        elif name == "copy":
            self._copy(operation)
        elif name in _MOVES:
            self._move_index(operation)
        elif name == "bincount":
            self._count(operation)
        elif name == "scatter":
            self._mark_labels(operation, outputs[0])
        elif name in _UNARY | _BINARY:
            self._map_index(operation, outputs[0])
        else:
            raise Untraceable(f"the operation {name} on the edges")

    def _ask_index(self, operation: Operation) -> None:
        """A maximum over all edges, a decision: the largest number of a node says how many there are, and that only."""
        given = [fact for ref in operation.refs if isinstance(fact := self._fact(ref), Index)]
        is_size = operation.name in ("max", "min") and all(fact.of_nodes for fact in given)
        if not operation.outputs:
            raise Untraceable("a decision that depends on the edges")
        for number in operation.outputs:
            self._facts[number] = Lost(f"the operation {operation.name} over all edges", is_size)

    def _move_index(self, operation: Operation) -> None:
        """Do to the origins what is done to the numbers."""
        args, kwargs = tree_map(self._origin, (operation.args, operation.kwargs))
        given = [fact for ref in operation.refs if isinstance(fact := self._fact(ref), Index)]
        of_nodes = any(fact.of_nodes for fact in given)
        moved = _several(args[0] if operation.name in _SAME else _done(operation, args, kwargs))
        parts = [fact.origin for fact in given], moved
        before, after = (_columns(torch.cat([one.reshape(-1) for one in part])) for part in parts)
        kept = torch.zeros(int(torch.cat([before, after]).max()) + 2 if len(after) else 1, dtype=torch.bool)
        kept[after] = True  # the last place is for what is no edge
        if not bool(kept[before].all()):
            self.beyond.append("some edges chosen by where they stand")
        constants = [ref for ref in operation.refs if self._fact(ref) is None]
        if of_nodes and not all(self._are_all_nodes(self._tensor(ref)) for ref in constants):
            self.beyond.append("edges between certain nodes")
        for number, origin in zip(operation.outputs, moved, strict=True):
            self._put_index(number, origin, of_nodes)

    def _are_all_nodes(self, numbers: Tensor) -> bool:
        """Whether they are the numbers of all nodes in order, such as both ends of a self-loop at each."""
        size = numbers.shape[-1] if numbers.dim() else 0
        return size in self._node_counts and bool((numbers == torch.arange(size)).all())

    def _overlay_index(self, operation: Operation) -> None:
        """A part of an index that is written over, such as senders that are counted from another number on."""
        whole, part = (self._fact(argument) for argument in operation.args)
        origins = [self._origin(argument) for argument in operation.args]
        origin = origins[0].clone()
        origin.view(-1)[operation.kwargs["places"]] = origins[1]
        of_nodes = any(isinstance(fact, Index) and fact.of_nodes for fact in (whole, part))
        self._put_index(operation.outputs[0], origin, of_nodes)

    def _map_index(self, operation: Operation, output: Tensor) -> None:
        """Truth values and numbers that follow from numbers of nodes or labels, entry by entry."""
        given = [self._fact(argument) for argument in operation.args]
        known = [fact for fact in given if isinstance(fact, Index)]
        found = next((fact for fact in known if fact.origin.shape == output.shape), None)
        if found is None:
            raise Untraceable(f"the operation {operation.name} on the edges")
        of_nodes = any(fact.of_nodes for fact in known)
        compared = output.dtype == torch.bool
        # Whether two ends are the same node does not depend on how nodes are numbered; all else does.
        if of_nodes and (operation.name not in ("eq", "ne") or len(known) < 2):
            self.beyond.append("the numbers of nodes")
        self._put_index(operation.outputs[0], found.origin, of_nodes and not compared)

    def _mark_labels(self, operation: Operation, output: Tensor) -> None:
        """A row of 0 and 1 for each label."""
        into, axis, index, value = operation.args
        fact = self._fact(index)
        if isinstance(fact, Index) and fact.of_nodes:
            self.beyond.append("the numbers of nodes")
        if (
            axis == 0
            or isinstance(value, Ref)
            or self._fact(into) is not None
            or not isinstance(fact, Index)
            or fact.origin.shape[1:] != (1,)
        ):
            raise Untraceable("the operation scatter on the edges")
        self._put_index(operation.outputs[0], fact.origin.expand(output.shape))

    def _origin(self, argument: Any) -> Any:
        if not isinstance(argument, Ref):
            return argument
        fact = self._fact(argument)
        return fact.origin if isinstance(fact, Index) else torch.full(self._tensor(argument).shape, -1)

    def _put_index(self, number: int, origin: Tensor, of_nodes: bool = False) -> None:
        tensor = self.trace.values[number]
        if not tensor.is_floating_point():
            self._facts[number] = Index(origin, of_nodes)
            return
        # Whole numbers as features, such as the type of an edge, or 0 and 1 for each type.
        origin = _columns(origin)
        rows = origin.reshape(len(origin), -1) if origin.dim() else origin.reshape(1, 1)
        if not bool((rows == rows[:, :1]).all()):
            raise Untraceable("numbers of nodes used as features")
        if of_nodes:
            self.beyond.append("the numbers of nodes")
        value = Value(self.edge_space(rows[:, 0].numpy()), _width(tensor, 0), _flat(tensor, 0))
        self._facts[number] = Rows(value, 0, tuple(tensor.shape))

    def _choose_from_index(self, operation: Operation, output: Tensor) -> None:
        """Entries of an index by a constant or another index; or rows of a constant by an index."""
        first, rest = (
            operation.args[0],
            tree_map(
                lambda argument: self._tensor(argument) if isinstance(argument, Ref) else argument, operation.args[1:]
            ),
        )
        fact = self._fact(first)
        chosen = [self._fact(ref) for ref in refs(operation.args[1:])]
        if isinstance(fact, Index):
            if not all(isinstance(one, Index) for one in chosen):
                self.beyond.append("some edges chosen by where they stand")
            origin = operation.function(fact.origin, *rest, **operation.kwargs)
            self._put_index(operation.outputs[0], origin, fact.of_nodes)
            return
        if any(isinstance(one, Index) and one.of_nodes for one in chosen):
            self.beyond.append("a table with a row for each node")
        index = [one.columns for one in chosen if isinstance(one, Index)]
        if len(index) != 1 or index[0].dim() != 1 or operation.name not in ("index", "index_select", "embedding"):
            raise Untraceable(f"the operation {operation.name} on the edges")
        axis = operation.args[1] if operation.name == "index_select" else 0
        if not output.is_floating_point():
            if output.dim() != 1:
                raise Untraceable("a table of whole numbers looked up by edges")
            self._facts[operation.outputs[0]] = Index(index[0])
            return
        space = self.edge_space(index[0].numpy())
        value = Value(space, _width(output, axis), _flat(output, axis))
        self._facts[operation.outputs[0]] = Rows(value, axis, tuple(output.shape))

    # Rows.

    def _lower(self, operation: Operation) -> None:
        name = operation.name
        facts = [fact for ref in operation.refs if (fact := self._fact(ref)) is not None]
        if name in _FRESH:
            return
        always = [fact for fact in facts if isinstance(fact, Rows) and fact.value.fixed and fact.space.columns is None]
        if name not in _KNOWN and len(always) == len(facts):
            # Whatever it is, no edit changes what comes out.
            self.beyond.append(f"the operation {name}")
            return
        if name in ("max", "min") and (len(operation.args) == 1 or isinstance(operation.args[1], int)):
            self._fold(operation, f"a{name}")
            return
        if name in _QUESTIONS:
            raise Untraceable("a decision that depends on the values of nodes")
        if name == "index_put":
            self._index_put(operation)
            return
        if name in _REDUCTIONS:
            self._reduce(operation)
        elif name == "edge_softmax":
            self._softmax(operation)
        elif name in _SAME:
            self._facts[operation.outputs[0]] = self._rows(operation.args[0])
        elif name == "copy":
            self._copy(operation)
        elif name == "overlay":
            self._overlay(operation)
        elif name in _CHOICES | {"embedding"}:
            self._gather(operation)
        elif name in _MOVES:
            self._move(operation)
        elif name in _UNARY | _BINARY | {"where", "masked_fill", "rsub"}:
            self._map(operation)
        elif name in _PRODUCTS:
            self._multiply(operation)
        elif name in _FOLDS:
            self._fold(operation)
        else:
            raise Untraceable(f"the operation {name}")

    def _put(self, operation: Operation, step: Step, space: Space, axis: int | None, fixed: bool | None = None) -> None:
        """The output of an operation is what this step computes."""
        number = operation.outputs[0]
        tensor = self.trace.values[number]
        fixed = all(value.fixed for value in step.inputs) if fixed is None else fixed
        width = _width(tensor, axis)
        if fixed:
            gathered = step if isinstance(step, Gather) and len(step.source) == space.size else None
            value = Value(space, width, _flat(tensor, axis), gathered=gathered)
        else:
            value = Value(space, width, step=step)
        self._facts[number] = Rows(value, axis, tuple(tensor.shape))

    def _operand(
        self, argument: Any, space: Space, shape: tuple[int, ...], axis: int | None
    ) -> tuple[Value, NDArray[np.int64] | None]:
        """An argument that is broadcast to a shape with rows along ``axis``; and which column each output reads."""
        number = None if isinstance(argument, Ref) else torch.tensor(float(argument), dtype=torch.float64)
        tensor = self._tensor(argument) if number is None else number
        own = None if axis is None else axis - (len(shape) - tensor.dim())  # where its rows would be
        fact = self._fact(argument)
        inner = list(tensor.shape)
        if isinstance(fact, Index):
            raise Untraceable("numbers of nodes used as features")
        if isinstance(fact, Rows):
            value = self._spread(fact, space, own)
            inner = [1 if i == fact.axis else size for i, size in enumerate(inner)]
        elif own is not None and own >= 0 and tensor.dim() and tensor.shape[own] == space.size != 1:
            value = self._constant(tensor, space, own)
            inner[own] = 1
        else:
            value = Value(None, tensor.numel(), tensor.detach().double().reshape(1, -1).numpy())
        trailing = [1 if i == axis else size for i, size in enumerate(shape)]
        columns = torch.arange(value.width).reshape(inner).expand(trailing).reshape(-1).numpy()
        plain = len(columns) == value.width and np.array_equal(columns, np.arange(value.width))
        return value, None if plain else columns

    def _constant(self, tensor: Tensor, space: Space, axis: int | None) -> Value:
        """A constant that has a row for each row of a space."""
        rows = _flat(tensor, axis)
        if (rows != rows[:1]).any():
            self.beyond.append("a table with a row for each node")
        return Value(space, _width(tensor, axis), rows)

    def _spread(self, fact: Rows, space: Space, axis: int | None) -> Value:
        """A value as one of a space; what the graph as a whole has, every row of the space has."""
        if fact.axis == axis and fact.space.matches(space):
            return fact.value
        if fact.space.size != 1 or fact.space.columns is not None:
            raise Untraceable("values of different rows combined")
        if space.size == 1:
            return fact.value
        return made(Gather([fact.value], np.zeros(space.size, dtype=np.int64)), space, fact.value.width)

    def _map(self, operation: Operation) -> None:
        code, arguments, parameters = _as_map(operation)
        shape = tuple(self.trace.values[operation.outputs[0]].shape)
        facts = [fact for argument in arguments if isinstance(fact := self._fact(argument), Rows)]
        first = max(facts, key=lambda fact: (fact.space.size, fact.axis is not None))
        axis = None if first.axis is None else first.axis + len(shape) - len(first.shape)
        pairs = [self._operand(argument, first.space, shape, axis) for argument in arguments]
        step = Map([value for value, _ in pairs], code, [columns for _, columns in pairs], parameters)
        self._put(operation, step, first.space, axis)

    def _move(self, operation: Operation) -> None:
        """Find out where each number goes, by moving the numbers' own numbers."""
        if operation.name == "cat" and self._cat_rows(operation):
            return
        arguments = {ref.number: ref for ref in operation.refs}
        first = next(fact for ref in arguments.values() if isinstance(fact := self._fact(ref), Rows))
        space = first.space
        values: list[Value] = []
        ids: dict[int, Tensor] = {}
        total = 0
        for number, ref in arguments.items():
            fact, tensor = self._fact(ref), self._tensor(ref)
            if (
                fact is None
                and first.axis is not None
                and tensor.dim() == len(first.shape)
                and tensor.shape[first.axis] == space.size
            ):
                fact = Rows(self._constant(tensor, space, first.axis), first.axis, tuple(tensor.shape))
            if not isinstance(fact, Rows) or not fact.space.matches(space):
                raise Untraceable("rows of different kinds put together")
            ids[number] = fact.numbered(total)
            values.append(fact.value)
            total += fact.value.width
        args, kwargs = tree_map(
            lambda one: ids[one.number] if isinstance(one, Ref) else one, (operation.args, operation.kwargs)
        )
        for number, grid in zip(operation.outputs, _several(_done(operation, args, kwargs)), strict=True):
            self._facts[number] = self._moved(grid, values, space)

    def _cat_rows(self, operation: Operation) -> bool:
        """Rows of several kinds one behind the other, such as the weights of edges and those of self-loops."""
        parts, dim = operation.args[0], operation.args[1] if len(operation.args) > 1 else 0
        facts = [self._fact(part) for part in parts]
        first = next(fact for fact in facts if isinstance(fact, Rows))
        if first.axis is None or dim % len(first.shape) != first.axis:
            return False
        values = []
        for part, fact in zip(parts, facts, strict=True):
            tensor = self._tensor(part)
            if isinstance(fact, Index) or (isinstance(fact, Rows) and fact.axis != first.axis):
                raise Untraceable("rows of different kinds put together")
            if tensor.numel():
                values.append(
                    fact.value if isinstance(fact, Rows) else self._constant(tensor, Space(tensor.shape[dim]), dim)
                )
        self._put(operation, Concat(values), self._joined([value.space for value in values]), first.axis)
        return True

    def _joined(self, spaces: Sequence[Space | None]) -> Space:
        """The space of rows one behind the other."""
        known = [space for space in spaces if space is not None]
        columns = np.concatenate([space.edges for space in known])
        if len(known) > 1 and all(space.matches(known[0]) for space in known):
            # They may be stacked: then they become rows of the same space again.
            rows = np.tile(np.arange(known[0].size), len(known))
            return Space(len(columns), None if known[0].columns is None else columns, part_of=rows)
        return self.edge_space(columns) if (columns >= 0).any() else Space(len(columns))

    def _moved(self, grid: Tensor, values: list[Value], space: Space) -> Rows:
        """The value whose numbers stand where the grid says."""
        starts = np.concatenate([[0], np.cumsum([one.width for one in values])])

        def picked(columns: NDArray[np.int64]) -> Value:
            if len(values) == 1 and np.array_equal(columns, np.arange(values[0].width)):
                return values[0]
            which = np.searchsorted(starts, columns, side="right") - 1
            return made(Pick(values, which, columns - starts[which]), space, len(columns))

        shape = tuple(grid.shape)
        lines = [
            (axis, *_rows_and_columns(grid.movedim(axis, 0).reshape(shape[axis], _width(grid, axis))))
            for axis in range(grid.dim() if grid.numel() else 0)
        ]
        for axis, row, column in lines:
            if space.part_of is not None and row.shape[1] > 1 and _same(column):
                line = np.arange(len(row))[:, None]
                if (space.part_of[row] == line).all() and not _same(row.T):
                    # Parts of rows become rows again.
                    return Rows(self._side_by_side(picked(np.arange(starts[-1])), space, row, column[0]), axis, shape)
        plain = [(axis, row[:, 0], column[0]) for axis, row, column in lines if _same(row.T) and _same(column)]
        # Where several axes fit (there is one row only), the first is where it was.
        everything = np.arange(space.size)
        for axis, rows, columns in plain:
            if np.array_equal(rows, everything):
                return Rows(picked(columns), axis, shape)
        if plain:
            self.beyond.append("some rows chosen by where they stand")
            axis, rows, columns = plain[0]
            chosen = made(Gather([picked(columns)], rows), self._part(space, rows), len(columns))
            return Rows(chosen, axis, shape)
        if space.size == 1 and grid.dim() < 2:
            return Rows(picked(_rows_and_columns(grid)[1].reshape(-1)), None, shape)
        for axis, row, column in lines:
            if _same(row.T):
                # Parts of a row become rows.
                patterns, which = np.unique(column, axis=0, return_inverse=True)
                parts = [picked(pattern) for pattern in patterns]
                rows = which.reshape(-1) * space.size + row[:, 0]
                together = made(Concat(parts), Space(len(parts) * space.size), column.shape[1])
                edges = None if space.columns is None else space.columns[row[:, 0]]
                divided = Space(len(rows), edges, part_of=row[:, 0])
                return Rows(made(Gather([together], rows), divided, column.shape[1]), axis, shape)
        for axis, row, column in sorted(lines, key=lambda one: -len(one[1])):
            if _same(column):
                # Several rows become one; which axis counts rows cannot be seen, but they are many.
                return Rows(self._side_by_side(picked(np.arange(starts[-1])), space, row, column[0]), axis, shape)
        raise Untraceable("rows mixed with other axes")

    def _side_by_side(self, value: Value, space: Space, row: NDArray[np.int64], column: NDArray[np.int64]) -> Value:
        """For each row and column the row of a value that it is from; the column is the same in all rows."""
        choices, which = np.unique(row, axis=1, return_inverse=True)
        parts = [self._part(space, choice) for choice in choices.T]
        if not all(part.matches(parts[0]) for part in parts):
            raise Untraceable("rows of different edges put together")
        gathered = [made(Gather([value], choice), parts[0], value.width) for choice in choices.T]
        return made(Pick(gathered, which.reshape(-1), column), parts[0], len(column))

    def _part(self, space: Space, chosen: NDArray[np.int64]) -> Space:
        return self.edge_space(space.columns[chosen]) if space.columns is not None else Space(len(chosen))

    def _gather(self, operation: Operation) -> None:
        """Rows chosen by an index, such as the sender of each edge."""
        args = operation.args
        if operation.name == "index_select":
            axis, index = args[1], args[2]
        elif operation.name == "embedding":
            axis, index = 0, args[1]
        elif operation.name == "gather":
            self._gather_columns(operation)
            return
        elif operation.name == "index" and sum(one is not None for one in args[1]) == 1:
            axis, index = next((i, one) for i, one in enumerate(args[1]) if one is not None)
        else:
            raise Untraceable(f"the operation {operation.name}")
        fact, labels = self._fact(args[0]), self._fact(index)
        if fact is None and isinstance(labels, Rows) and labels.value.fixed and len(labels.shape) == 1:
            # A table looked up by what nodes carry, such as the embedding of an atom's number.
            self._put(operation, Gather([labels.value], np.empty(0, np.int64)), labels.space, 0)
            return
        if not isinstance(fact, Rows):
            raise Untraceable("a choice that depends on the values of nodes")
        found, tensor = self._fact(index), self._tensor(index)
        if isinstance(found, Index) and tensor.dim() == 2 and axis == fact.axis == 0 and operation.name == "index":
            self._gather_ends(operation, fact, found, tensor)
            return
        if isinstance(found, Rows) or axis % len(fact.shape) != fact.axis or tensor.dim() != 1:
            if found is None:
                self._move_by_constant(operation, fact, axis, tensor)
                return
            raise Untraceable("a choice that depends on the values of nodes")
        if found is None:
            self.beyond.append("some rows chosen by where they stand")
        if tensor.dtype == torch.bool:
            chosen = tensor.nonzero().view(-1).numpy()
            space = self._part(fact.space, chosen)
        else:
            chosen = tensor.long().numpy()
            space = (
                self.edge_space(found.columns.numpy()) if isinstance(found, Index) else self._part(fact.space, chosen)
            )
        self._put(operation, Gather([fact.value], chosen), space, fact.axis)

    def _gather_ends(self, operation: Operation, fact: Rows, found: Index, index: Tensor) -> None:
        """Rows of both ends of edges or pairs, one end after the other."""
        columns = found.columns
        if not bool((columns == columns[:1]).all()):
            raise Untraceable("rows of different edges put together")
        space, width = self.edge_space(columns[0].numpy()), fact.value.width
        ends = [made(Gather([fact.value], end.numpy()), space, width) for end in index.long()]
        step = Pick(ends, np.repeat(np.arange(len(ends)), width), np.tile(np.arange(width), len(ends)))
        self._put(operation, step, space, 1)

    def _gather_columns(self, operation: Operation) -> None:
        """Of each row the columns that a label says: all columns times 0 or 1, added up."""
        args = operation.args
        fact, index, shape = self._fact(args[0]), self._tensor(args[2]), self.trace.values[operation.outputs[0]].shape
        if not isinstance(fact, Rows) or isinstance(self._fact(args[2]), Rows) or fact.axis != 0 or args[1] % 2 != 1:
            raise Untraceable("the operation gather")
        width, many = fact.shape[1], int(shape[1])
        chosen = torch.nn.functional.one_hot(index, width).reshape(len(index), -1)
        if self._fact(args[2]) is None:
            self.beyond.append("a table with a row for each node")
        factor = Value(fact.space, many * width, _flat(chosen, 0))
        every = np.tile(np.arange(width), many)
        products = made(Map([fact.value, factor], "mul", [every, None]), fact.space, many * width)
        self._put(operation, Fold([products], "sum", np.repeat(np.arange(many), width)), fact.space, 0)

    def _index_put(self, operation: Operation) -> None:
        """Rows that are written over, such as the weights of self-loops, or numbers such as those that are infinite."""
        into, where, values, *more = operation.args
        fact, condition = self._fact(into), self._fact(where[0])
        if all(self._tensor(ref).numel() == 0 for ref in refs((where, values))):
            if fact is not None:
                self._facts[operation.outputs[0]] = fact
            return
        shape, index = tuple(self._tensor(into).shape), self._tensor(where[0])
        if len(where) != 1 or any(more) or isinstance(fact, Index):
            raise Untraceable("the operation index_put")
        if isinstance(condition, Rows) and isinstance(fact, Rows):
            if condition.shape != shape or self._tensor(values).numel() != 1:
                raise Untraceable("the operation index_put")
            pairs = [self._operand(one, fact.space, shape, fact.axis) for one in (where[0], values, into)]
            step = Map([value for value, _ in pairs], "where", [columns for _, columns in pairs])
            self._put(operation, step, fact.space, fact.axis)
            return
        if isinstance(condition, Rows) or index.dim() != 1:
            raise Untraceable("the operation index_put")
        if condition is None or index.dtype != torch.bool:
            self.beyond.append("some rows chosen by where they stand")
        rows = index.nonzero().view(-1).numpy() if index.dtype == torch.bool else index.long().numpy()
        self._write_over(operation, into, values, rows)

    def _copy(self, operation: Operation) -> None:
        """A tensor that is written over by another."""
        into, source = operation.args[:2]
        fact = self._fact(source)
        if fact is not None and self._tensor(into).shape != self._tensor(source).shape:
            raise Untraceable("the operation copy")
        if fact is not None:
            self._facts[operation.outputs[0]] = fact

    def _overlay(self, operation: Operation) -> None:
        """Rows of which some are written over; if anything else is, it must not be used any more."""
        whole, part = operation.args
        tensor = self._tensor(whole)
        width = _width(tensor, 0) if tensor.dim() else 0
        places = operation.kwargs["places"].reshape(-1)
        try:
            if not width or len(places) % width:
                raise Untraceable("a tensor that is written into through another one")
            places = places.reshape(-1, width)
            rows = places[:, 0] // width
            if not bool((places == rows[:, None] * width + torch.arange(width)).all()):
                raise Untraceable("a tensor that is written into through another one")
            fact = self._fact(part)
            if len(rows) == len(tensor) and bool((rows == torch.arange(len(rows))).all()) and isinstance(fact, Rows):
                if fact.shape != tuple(tensor.shape):
                    raise Untraceable("a tensor that is written into through another one")
                self._facts[operation.outputs[0]] = fact
                return
            self.beyond.append("some rows chosen by where they stand")
            self._write_over(operation, whole, part, rows.numpy())
        except Untraceable as problem:
            self._facts[operation.outputs[0]] = Lost(str(problem))

    def _write_over(self, operation: Operation, into: Any, values: Any, rows: NDArray[np.int64]) -> None:
        """Rows of a tensor that are replaced by others."""
        fact, new, shape = self._fact(into), self._fact(values), self._tensor(into).shape
        known = [one for one in (fact, new) if one is not None]
        if not all(isinstance(one, Rows) and one.axis == 0 for one in known) or (
            isinstance(new, Rows) and (new.space.size != len(rows) or new.shape[1:] != tuple(shape[1:]))
        ):
            raise Untraceable("rows that are written over by something else")
        size, width = shape[0], _width(self._tensor(into), 0)
        tensors = (self._tensor(into), self._tensor(values).expand(len(rows), *shape[1:]))
        both = [
            one.value if isinstance(one, Rows) else self._constant(tensor, Space(len(tensor)), 0)
            for one, tensor in zip((fact, new), tensors, strict=True)
        ]
        source, columns = np.arange(size), fact.space.edges.copy() if isinstance(fact, Rows) else np.full(size, -1)
        source[rows] = size + np.arange(len(rows))
        if isinstance(new, Rows) and not isinstance(fact, Rows):
            columns[rows] = new.space.edges
        together = made(Concat(both), Space(size + len(rows)), width)
        space = self.edge_space(columns) if (columns >= 0).any() else Space(size)
        self._put(operation, Gather([together], source), space, 0)

    def _move_by_constant(self, operation: Operation, fact: Rows, axis: int, index: Tensor) -> None:
        """Columns chosen by a constant."""
        grid = fact.numbered()
        args = (None,) * axis + (index,)
        picked = (
            grid.index_select(axis, index) if operation.name == "index_select" else torch.ops.aten.index(grid, args)
        )
        self._facts[operation.outputs[0]] = self._moved(picked, [fact.value], fact.space)

    def _multiply(self, operation: Operation) -> None:
        """A product with a constant matrix."""
        arguments = list(operation.args)
        bias = arguments.pop(0) if operation.name in ("addmm", "baddbmm") else None
        alpha, beta = (float(operation.kwargs.get(name, 1)) for name in ("alpha", "beta"))
        facts = [self._fact(argument) for argument in arguments]
        at = next(i for i, fact in enumerate(facts) if isinstance(fact, Rows))
        fact, other = facts[at], facts[1 - at]
        assert isinstance(fact, Rows)
        constant = self._tensor(arguments[1 - at])
        summed = len(fact.shape) - 1 - at
        if operation.name == "bmm" and fact.axis == 0 and (other is None or isinstance(other, Rows)):
            if other is None:
                other = Rows(self._constant(constant, fact.space, 0), 0, tuple(constant.shape))
            self._multiply_rows(operation, *((fact, other) if at == 0 else (other, fact)))
            return
        if other is not None or fact.axis == summed:
            raise Untraceable("a matrix product of values of nodes")
        shape = tuple(self.trace.values[operation.outputs[0]].shape)
        added, columns = (None, None) if bias is None else self._operand(bias, fact.space, shape, fact.axis)
        inputs = [fact.value] if added is None else [fact.value, added]
        if all(value.fixed for value in inputs):
            self._put(operation, Step(inputs), fact.space, fact.axis)
            return
        matrix = alpha * _matrix(fact, constant, at)
        if added is None:
            self._put(operation, Linear([fact.value], matrix), fact.space, fact.axis)
            return
        product = made(Linear([fact.value], matrix), fact.space, matrix.shape[1])
        if beta != 1:
            factor = Value(None, 1, np.full((1, 1), beta))
            every = np.zeros(added.width, dtype=np.int64)
            added = made(Map([added, factor], "mul", [None, every]), fact.space, added.width)
        self._put(operation, Map([product, added], "add", [None, columns]), fact.space, fact.axis)

    def _multiply_rows(self, operation: Operation, left: Rows, right: Rows) -> None:
        """A small matrix product for each row: all products of entries, then sums of them."""
        if left.axis or right.axis or not left.space.matches(right.space):
            raise Untraceable("a matrix product of values of nodes")
        (_, rows, summed), (_, _, columns) = left.shape, right.shape
        ours = torch.arange(rows * summed).reshape(rows, 1, summed).expand(rows, columns, summed).reshape(-1).numpy()
        theirs = (
            torch.arange(summed * columns).reshape(summed, columns).T[None].expand(rows, -1, -1).reshape(-1).numpy()
        )
        width = rows * columns * summed
        products = made(Map([left.value, right.value], "mul", [ours, theirs]), left.space, width)
        self._put(operation, Fold([products], "sum", np.repeat(np.arange(rows * columns), summed)), left.space, 0)

    def _fold(self, operation: Operation, code: str | None = None) -> None:
        """A sum, mean or maximum within each row, over all rows, or both."""
        code = code or operation.name
        fact = self._rows(operation.args[0])
        dims = operation.args[1] if len(operation.args) > 1 else operation.kwargs.get("dim")
        keep = operation.args[2] if len(operation.args) > 2 else operation.kwargs.get("keepdim", False)
        axes = [dims] if isinstance(dims, int) else list(dims or range(len(fact.shape)))
        axes = [axis % len(fact.shape) for axis in axes]
        over_rows = fact.axis is not None and fact.axis in axes
        value = fact.value
        kept = [1 if axis in axes else size for axis, size in enumerate(fact.shape) if axis != fact.axis]
        groups = torch.arange(math.prod(kept)).reshape(kept).expand(fact.inner).reshape(-1).numpy()
        if len(axes) == over_rows:
            self._fold_rows(operation, code, value, fact, keep)
            return
        within = Fold([value], code, groups)
        if over_rows:
            self._fold_rows(operation, code, made(within, fact.space, math.prod(kept)), fact, keep)
            return
        axis = fact.axis
        if axis is not None and not keep:
            axis -= sum(one < axis for one in axes)
        self._put(operation, within, fact.space, axis)

    def _fold_rows(self, operation: Operation, code: str, value: Value, fact: Rows, keep: bool) -> None:
        """A sum, mean or maximum over all rows: what the graph as a whole has."""
        if code not in ("sum", "mean", "amax", "amin") or (code == "mean" and fact.space.columns is not None):
            raise Untraceable(f"a {code} over all edges")
        self.beyond.append(f"a {code} over all rows")
        self.reads_all |= code in ("sum", "mean")
        size, axis = fact.space.size, fact.axis if keep else None
        entry = np.arange(size)
        edges = fact.space.edges
        step = Reduce([value], "sum" if code == "mean" else code, entry * 0, entry, edges)
        fixed = value.fixed and bool((edges < 0).all())
        if code != "mean":
            self._put(operation, step, self.graph, axis, fixed)
            return
        total = Value(self.graph, value.width, step=step)
        share = Value(None, 1, np.full((1, 1), 1 / size))
        scaled = Map([total, share], "mul", [None, np.zeros(value.width, dtype=np.int64)])
        self._put(operation, scaled, self.graph, axis, fixed)

    def _reduce(self, operation: Operation) -> None:
        """What arrives at each node along its edges."""
        names = ("input", "dim", "index", "src", "reduce")
        given = dict(zip(names, operation.args, strict=False)) | operation.kwargs
        start, source = self._tensor(given["input"]), given.get("src", given.get("source"))
        dim = given["dim"] % max(start.dim(), 1)
        code = "sum" if operation.name in ("scatter_add", "index_add") else str(given.get("reduce"))
        empty = _flat(start, dim)
        if (
            self._fact(given["input"]) is not None
            or given.get("alpha", 1) != 1
            or not isinstance(source, Ref)
            or (empty.size and bool((empty != empty.flat[0]).any()))
            or (code == "sum" and bool(empty.any()))
            or (code != "sum" and given.get("include_self", True))
            or code not in ("sum", "amax", "amin")
        ):
            raise Untraceable(f"the operation {operation.name} ({code})")
        receiver, origin = self._receivers(given["index"], dim)
        fact = self._fact(source)
        if isinstance(fact, Rows):
            if fact.axis != dim or fact.space.size != len(receiver):
                raise Untraceable("a reduction along another axis than the rows")
            if origin is None and fact.space.columns is not None:
                origin = fact.space.columns
            if origin is not None and fact.space.columns is not None and not np.array_equal(origin, fact.space.columns):
                raise Untraceable("messages and receivers of different edges")
            value = fact.value
        elif origin is not None:
            value = self._constant(self._tensor(source), self.edge_space(origin), dim)
        else:
            raise Untraceable("a reduction that does not follow the edges")
        edges = np.full(len(receiver), -1) if origin is None else origin
        size = start.shape[dim]
        space = Space(size)
        start_value = float(empty.flat[0]) if empty.size else 0.0
        step = Reduce([value], code, receiver, np.arange(len(receiver)), edges, start_value, counts=operation.counts)
        self._put(operation, step, space, dim, fixed=value.fixed and bool((edges < 0).all()))

    def _count(self, operation: Operation) -> None:
        """How many edges lead to each node."""
        receiver, origin = self._receivers(operation.args[0], 0)
        assert origin is not None
        if len(operation.args) > 1 and operation.args[1] is not None:
            raise Untraceable("the operation bincount with weights")
        size = len(self.trace.values[operation.outputs[0]])
        if int(receiver.max(initial=-1)) + 1 == size > (operation.args[2] if len(operation.args) > 2 else 0):
            raise Untraceable("a number of counts that depends on the edges")
        one = Value(self.edge_space(origin), 1, np.ones((len(origin), 1)))
        step = Reduce([one], "sum", receiver, np.arange(len(receiver)), origin)
        self._put(operation, step, Space(size), 0, fixed=bool((origin < 0).all()))

    def _softmax(self, operation: Operation) -> None:
        """PyG's softmax over the edges into each node."""
        names = ("src", "index", "ptr", "num_nodes", "dim")
        given = dict(zip(names, operation.args, strict=False)) | operation.kwargs
        fact, index = self._fact(given["src"]), given.get("index")
        dim = given.get("dim", 0)
        if not isinstance(fact, Rows) or index is None or dim % len(fact.shape) != fact.axis:
            raise Untraceable("a softmax along another axis than the rows")
        receiver, origin = self._receivers(index, 0)
        if origin is None or fact.space.columns is None or not np.array_equal(origin, fact.space.columns):
            raise Untraceable("a softmax over other groups than the edges into a node")
        value, space, width = fact.value, fact.space, fact.value.width
        size = given.get("num_nodes")
        size = int(receiver.max(initial=-1)) + 1 if size is None else int(size)
        receivers = Space(size)
        entries = np.arange(space.size)
        highest = Value(receivers, width, step=Reduce([value], "shift", receiver, entries, origin))
        shift = Value(space, width, step=Gather([highest], receiver))
        shifted = Value(space, width, step=Map([value, shift], "sub", [None, None]))
        power = Value(space, width, step=Map([shifted], "exp", [None]))
        total = Value(receivers, width, step=Reduce([power], "share", receiver, entries, origin))
        tiny = Value(None, 1, np.full((1, 1), 1e-16))
        positive = Value(receivers, width, step=Map([total, tiny], "add", [None, np.zeros(width, dtype=np.int64)]))
        divisor = Value(space, width, step=Gather([positive], receiver))
        self._put(operation, Map([power, divisor], "div", [None, None]), space, fact.axis)

    def _receivers(self, index: Ref, dim: int) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
        """The row that each entry leads to, and the edge that it is."""
        tensor, fact = self._tensor(index), self._fact(index)
        axis = dim if tensor.dim() > 1 else 0
        lines = tensor.movedim(axis, 0).reshape(tensor.shape[axis], _width(tensor, axis))
        if isinstance(fact, Rows) or not bool((lines == lines[:, :1]).all()):
            raise Untraceable("a reduction with another index for each feature")
        receiver = lines[:, 0].long().numpy()
        if fact is None:
            self.beyond.append("a reduction that does not follow the edges")
            return receiver, None
        origin = fact.origin.movedim(axis, 0).reshape(len(receiver), lines.shape[1])[:, 0]
        if not fact.of_nodes:
            self.reads_all = True
        elif bool(((origin >= 0) & (origin % 2 != self._receiving)).any()):
            self.reads_all = True
        return receiver, _columns(origin).numpy()


def _as_map(operation: Operation) -> tuple[str, list[Any], tuple[float, ...]]:
    """A pointwise operation as a code of ours, its tensors or numbers, and its parameters."""
    name, args, kwargs = operation.name, list(operation.args), operation.kwargs
    if kwargs.get("alpha", 1) != 1 or kwargs.get("rounding_mode"):
        raise Untraceable(f"the operation {name} with options")
    if name == "rsub":
        return "sub", [args[1], args[0]], ()
    if name == "masked_fill":
        return "where", [args[1], args[2], args[0]], ()
    if name == "leaky_relu":
        return name, args[:1], (float(args[1]) if len(args) > 1 else 0.01,)
    if name in ("clamp", "clamp_min", "clamp_max"):
        low, high = (args[i] if len(args) > i else kwargs.get(word) for i, word in ((1, "min"), (2, "max")))
        low, high = (None, low) if name == "clamp_max" else (low, high)
        if isinstance(low, Ref) or isinstance(high, Ref):
            raise Untraceable("a clamp between tensors")
        return "clamp", args[:1], (-math.inf if low is None else float(low), math.inf if high is None else float(high))
    return name, args[: 3 if name == "where" else 2 if name in _BINARY else 1], ()


def _rows_and_columns(grid: Tensor) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return (grid >> _SHIFT).numpy(), (grid & ((1 << _SHIFT) - 1)).numpy()


def _same(lines: NDArray[np.int64]) -> bool:
    """Whether all lines are the same."""
    return bool((lines == lines[:1]).all())


def _matrix(fact: Rows, constant: Tensor, at: int) -> NDArray[np.float64]:
    """What a product with a constant does to a row: to unit rows, if it is more than a matrix."""
    constant, width = constant.double(), fact.value.width
    if at == 0 and fact.axis == 0 and len(fact.shape) == constant.dim() == 2:
        return np.ascontiguousarray(constant.numpy())
    axis = 0 if fact.axis is None else fact.axis
    unit = torch.eye(width, dtype=torch.float64).reshape([-1, *fact.inner]).movedim(0, axis)
    product = torch.matmul(*((unit, constant) if at == 0 else (constant, unit)))
    return np.ascontiguousarray(product.movedim(axis, 0).reshape(width, -1).numpy())


def _done(operation: Operation, args: Any, kwargs: Any) -> Any:
    """Move numbers as an operation moves others; a view of them may need a copy, because they lie otherwise."""
    return args[0].reshape(args[1]) if "view" in operation.name else operation.function(*args, **kwargs)


def _columns(origin: Tensor) -> Tensor:
    """The edge columns that entries of an index come from."""
    return torch.where(origin < 0, -1, origin // 2)


def _several(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (list, tuple)) else [result]


def _width(tensor: Tensor, axis: int | None) -> int:
    """How many numbers a row has."""
    return math.prod(size for one, size in enumerate(tensor.shape) if axis is None or one != axis % tensor.dim())


def _flat(tensor: Tensor, axis: int | None) -> NDArray[np.float64]:
    """The rows of a tensor, everything else behind."""
    tensor = tensor.detach().double()
    if axis is None or not tensor.dim():
        return np.ascontiguousarray(tensor.reshape(1, -1).numpy())
    rows = tensor.movedim(axis, 0).reshape(tensor.shape[axis], _width(tensor, axis))
    return np.ascontiguousarray(rows.numpy())
