"""What is known of the tensors of a trace."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from butfor.oracle.program.lowering.counting import NO_NODES, Counted, Counting, at_least_one, distinct
from butfor.oracle.program.lowering.ranges import Ranges
from butfor.oracle.program.lowering.relations import Relations
from butfor.oracle.program.steps import Gather, Space, Step, Value, made
from butfor.oracle.program.trace import Ref, Untraceable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from butfor.oracle.program.lowering.ranges import Range
    from butfor.oracle.program.trace import Operation, Trace

__all__ = ["Facts", "Index", "Lost", "Rows", "columns_of", "flat_rows", "no_count", "row_width"]


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


@dataclass(frozen=True, eq=False)
class Index:
    """Whole numbers or truth values that follow from the edges.

    Attributes:
        origin: the edge that each entry comes from: twice its column, and 1 more for the second end; -1 for none.
        counting: for numbers of nodes, which say where a node stands and nothing else, what they count (`Counting`).
    """

    origin: Tensor
    counting: Tensor

    @property
    def columns(self) -> Tensor:
        """The edge column of each entry, or -1."""
        return columns_of(self.origin)

    @cached_property
    def of_nodes(self) -> bool:
        """Whether any of them are numbers of nodes."""
        return bool((distinct(self.counting) != NO_NODES).any())


@dataclass(frozen=True, eq=False)
class Lost:
    """A tensor of which it is not known what it is; it may still be a size."""

    reason: str
    is_size: bool = False


class Facts:
    """What is known of each tensor: nothing but its value where it is a constant.

    Attributes:
        trace: the run that the tensors are from.
        known: the facts, by the number of the tensor.
        beyond: what makes a row depend on more than the edges that lead to it: on all rows, or on where it stands.
            Where there is nothing of the kind, what a row needs is all that it depends on, in any graph.
        reads_all: whether it is certain that rows outside a neighbourhood count: all are added up, or the largest is
            looked for.
        receiving: the row of an edge index that has the nodes which messages are passed to.
        graph: the space that has one row, the graph as a whole.
        nodes: the nodes of each type, in the order of their rows.
        has_edges: whether there are any.
        counting: what numbers of nodes count.
        relations: of which relation each edge column is.
        now: the numbers of what the operation that is followed now computes.
        unread: rows chosen by where they stand that nothing has read yet: they may only be there to be written over.
        ranges: between which numbers each tensor lies on every graph, given those of the inputs.
    """

    def __init__(self, trace: Trace, receiving: int = 1, given: Callable[[str], Range | None] = lambda _: None) -> None:
        self.trace, self.receiving = trace, receiving
        self.ranges = Ranges(trace, given)
        self.reads_all = False
        self.known: dict[int, Rows | Index | Lost] = {}
        self.beyond: list[str] = []
        self.graph = Space(1)
        self.nodes: dict[str, NDArray[np.int64]] = {}
        self.has_edges = False
        self.counting = Counting()
        self.relations = Relations()
        self.now: tuple[int, ...] = ()
        self.unread: set[int] = set()
        self._edge_spaces: list[Space] = []

    # What the model was given.

    def add_rows(self, name: str, space: Space, editable: bool = False) -> Value:
        """An input that has a row for each node or edge."""
        number = self.trace.inputs[name]
        tensor = self.trace.values[number]
        value = Value(space, row_width(tensor, 0), flat_rows(tensor, 0), editable=editable)
        self.known[number] = Rows(value, 0, tuple(tensor.shape))
        return value

    def add_nodes(self, node_type: str, nodes: NDArray[np.int64]) -> Space:
        """The space of the nodes of a type."""
        self.nodes[node_type] = nodes
        return Space(len(nodes), nodes=nodes)

    def add_edges(self, name: str, columns: NDArray[np.int64], node_types: tuple[str, ...]) -> None:
        """An edge index, the edge column that each of its columns is, and the node types of both ends."""
        self.has_edges |= len(columns) > 0
        self.relations.add(name, columns)
        counting = self._counting_from_0(node_types)[:, None]
        origin = 2 * torch.from_numpy(columns) + torch.tensor([[0], [1]])
        self.known[self.trace.inputs[name]] = Index(origin, counting.expand(2, max(len(columns), 1)))

    def add_targets(self, name: str, node_types: tuple[str, ...]) -> None:
        """The rows that are asked about: in each line those of nodes of these types."""
        number = self.trace.inputs[name]
        shape = self.trace.values[number].shape
        counting = self._counting_from_0(node_types).expand(at_least_one(shape)) if node_types else no_count(shape)
        self.known[number] = Index(torch.full(shape, -1), counting)

    def add_labels(self, name: str, columns: NDArray[np.int64]) -> None:
        """Whole numbers that edges carry, such as their types."""
        number = self.trace.inputs[name]
        shape = self.trace.values[number].shape
        origin = 2 * torch.from_numpy(columns).reshape([-1] + [1] * (len(shape) - 1))
        self.known[number] = Index(origin.expand(shape).clone(), no_count(shape))

    # Spaces.

    def edge_space(self, columns: NDArray[np.int64]) -> Space:
        """The space of rows along these edges, the same object for the same edges."""
        made = Space(len(columns), columns)
        found = next((space for space in self._edge_spaces if space.matches(made)), None)
        if found is None:
            self._edge_spaces.append(made)
        return found or made

    def space_of(self, columns: NDArray[np.int64]) -> Space:
        """The space of rows of which some may be along edges."""
        return self.edge_space(columns) if (columns >= 0).any() else Space(len(columns))

    def part(self, space: Space, chosen: NDArray[np.int64]) -> Space:
        """The space of some rows of another one."""
        if space.columns is not None:
            return self.edge_space(space.columns[chosen])
        part_of, nodes, blocks = (
            None if one is None else one[chosen] for one in (space.part_of, space.nodes, space.blocks)
        )
        return Space(len(chosen), None, part_of, nodes, blocks)

    def are_the_same(self, one: Space, other: Space) -> bool:
        """Whether rows of two spaces may be combined; where they stand for different nodes, that is noted."""
        if one.differs(other):
            self.beyond.append("rows of different nodes combined")
        return one.matches(other)

    # Numbers of nodes.

    def _counting_from_0(self, node_types: tuple[str, ...]) -> Tensor:
        return torch.tensor([self.counting.number(frozenset({Counted(kind)})) for kind in node_types])

    # Arguments of operations.

    def tensor(self, ref: Ref) -> Tensor:
        """Its value in this run."""
        return self.trace.values[ref.number]

    def fact(self, argument: Any) -> Rows | Index | None:
        """What is known of it; None where it is a constant.

        Raises:
            Untraceable: it is used although nobody knows what it is.
        """
        fact = self.known.get(argument.number) if isinstance(argument, Ref) else None
        if isinstance(fact, Lost):
            raise Untraceable(fact.reason)
        return fact

    def rows(self, argument: Any) -> Rows:
        """What is known of an argument that has rows."""
        fact = self.fact(argument)
        assert isinstance(fact, Rows)
        return fact

    def operand(
        self, argument: Any, space: Space, shape: tuple[int, ...], axis: int | None
    ) -> tuple[Value, NDArray[np.int64] | None]:
        """An argument that is broadcast to a shape with rows along ``axis``; and which column each output reads."""
        number = None if isinstance(argument, Ref) else torch.tensor(float(argument), dtype=torch.float64)
        tensor = self.tensor(argument) if number is None else number
        own = None if axis is None else axis - (len(shape) - tensor.dim())  # where its rows would be
        fact = self.fact(argument)
        inner = list(tensor.shape)
        if isinstance(fact, Index):
            raise Untraceable("numbers of nodes used as features")
        if isinstance(fact, Rows):
            value = _spread(self, fact, space, own)
            inner = [1 if i == fact.axis else size for i, size in enumerate(inner)]
        elif own is not None and own >= 0 and tensor.dim() and tensor.shape[own] == space.size != 1:
            value = self.constant(tensor, space, own, argument)
            inner[own] = 1
        else:
            value = Value(None, tensor.numel(), tensor.detach().double().reshape(1, -1).numpy())
        trailing = [1 if i == axis else size for i, size in enumerate(shape)]
        columns = torch.arange(value.width).reshape(inner).expand(trailing).reshape(-1).numpy()
        plain = len(columns) == value.width and np.array_equal(columns, np.arange(value.width))
        return value, None if plain else columns

    def constant(self, tensor: Tensor, space: Space, axis: int | None, ref: Ref | None = None) -> Value:
        """A constant that has a row for each row of a space; where it is said which, edges of a relation may share one.

        That is noted, because on another graph the rows stand elsewhere.
        """
        rows = flat_rows(tensor, axis)
        if (rows != rows[:1]).any():
            table = self.relations.table(space.columns, rows) if ref is not None and space.columns is not None else None
            if ref is None or table is None:
                self.beyond.append("a table with a row for each node")
            else:
                self.place(table, ref.number)
        return Value(space, row_width(tensor, axis), rows)

    def choose_by_place(self) -> None:
        """Rows are chosen by where they stand, which matters where they are read."""
        self.unread.update(self.now)

    def read(self, number: int) -> None:
        """A tensor is read."""
        if number in self.unread:
            self.beyond.append("some rows chosen by where they stand")

    def place(self, what: Any, number: int | None = None) -> None:
        """Note what is done by numbers that depend on sizes: by the operation that is followed, or by this tensor."""
        self.trace.placed.setdefault(self.now[0] if number is None else number, []).append(what)

    def forget_values(self) -> None:
        """Let go of all numbers, once every step is made: they are most of a trace."""
        self.trace.values.clear()
        self.known.clear()

    # What comes out.

    def output(self, operation: Operation) -> Tensor:
        """The value of an operation's output, or the first of them, in this run."""
        return self.trace.values[operation.outputs[0]]

    def put(self, operation: Operation, step: Step, space: Space, axis: int | None, fixed: bool | None = None) -> None:
        """The output of an operation is what this step computes."""
        tensor = self.output(operation)
        fixed = all(value.fixed for value in step.inputs) if fixed is None else fixed
        width = row_width(tensor, axis)
        if fixed:
            gathered = step if isinstance(step, Gather) and len(step.source) == space.size else None
            value = Value(space, width, flat_rows(tensor, axis), gathered=gathered)
        else:
            value = Value(space, width, step=step)
        self.known[operation.outputs[0]] = Rows(value, axis, tuple(tensor.shape))


def _spread(facts: Facts, fact: Rows, space: Space, axis: int | None) -> Value:
    """A value as one of a space; what the graph as a whole has, every row of the space has."""
    if fact.axis == axis and facts.are_the_same(fact.space, space):
        return fact.value
    if fact.space.size != 1 or fact.space.columns is not None:
        raise Untraceable("values of different rows combined")
    if space.size == 1:
        return fact.value
    if fact.space.nodes is not None:
        # The only node there is of a type, which on another graph is one of many.
        facts.beyond.append("rows of different nodes combined")
    return made(Gather([fact.value], np.zeros(space.size, dtype=np.int64)), space, fact.value.width)


def no_count(shape: Sequence[int]) -> Tensor:
    """What numbers count that are none of nodes."""
    return torch.tensor(NO_NODES).expand(at_least_one(shape))


def columns_of(origin: Tensor) -> Tensor:
    """The edge columns that entries of an index come from."""
    return torch.where(origin < 0, -1, origin // 2)


def row_width(tensor: Tensor, axis: int | None) -> int:
    """How many numbers a row has."""
    return math.prod(size for one, size in enumerate(tensor.shape) if axis is None or one != axis % tensor.dim())


def flat_rows(tensor: Tensor, axis: int | None) -> NDArray[np.float64]:
    """The rows of a tensor, everything else behind."""
    tensor = tensor.detach().double()
    if axis is None or not tensor.dim():
        return np.ascontiguousarray(tensor.reshape(1, -1).numpy())
    rows = tensor.movedim(axis, 0).reshape(tensor.shape[axis], row_width(tensor, axis))
    return np.ascontiguousarray(rows.numpy())
