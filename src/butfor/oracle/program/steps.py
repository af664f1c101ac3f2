"""What a program is made of: values, which have a row of numbers for each node or edge, and the steps between them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Concat", "Fold", "Gather", "Linear", "Map", "Pick", "Reduce", "Space", "Step", "Value", "in_order", "made"]


@dataclass(frozen=True, eq=False)
class Space:
    """What the rows of a value stand for: nodes, edges, the graph as a whole.

    Attributes:
        size: how many rows there are.
        columns: for rows along edges, the edge column of each; -1 for rows that are no edge of the graph, such as
            the self-loops that a layer adds. None for rows that are always there.
        part_of: where parts of rows became rows, the row that each is a part of.
        nodes: for rows that stand for nodes, the node of each; -1 for a row that is none. None where no row is a node.
        blocks: where rows of several tables became one table, the table that each is from, by numbers that do not
            depend on how large these are; -1 for a row that is none of any. None where all are from one.
    """

    size: int
    columns: NDArray[np.int64] | None = None
    part_of: NDArray[np.int64] | None = None
    nodes: NDArray[np.int64] | None = None
    blocks: NDArray[np.int64] | None = None

    def matches(self, other: Space) -> bool:
        """Whether there are as many rows in two spaces, along the same edges."""
        return self is other or (self.size == other.size and np.array_equal(self.edges, other.edges))

    def differs(self, other: Space) -> bool:
        """Whether a row of a space that matches stands for another node there, such as one of another type."""
        if self.nodes is None or other.nodes is None or self.nodes is other.nodes:
            return False
        return bool(((self.nodes != other.nodes) & (self.nodes >= 0) & (other.nodes >= 0)).any())

    @property
    def edges(self) -> NDArray[np.int64]:
        """The edge column of each row; -1 for what is none."""
        return np.full(self.size, -1) if self.columns is None else self.columns


@dataclass(eq=False)
class Value:
    """Numbers, one row for each row of a space.

    Attributes:
        space: what the rows stand for; None where one row serves all.
        width: how many numbers a row has.
        data: the numbers, where no edit can change them, or where edits change them from outside (`editable`).
        step: what computes them otherwise.
        editable: whether these are features that edits change.
        gathered: for a fixed value that is rows of another one, how it is: a sum may read them there.
    """

    space: Space | None
    width: int
    data: NDArray[np.float64] | None = None
    step: Step | None = None
    editable: bool = False
    gathered: Gather | None = None

    @property
    def fixed(self) -> bool:
        """Whether no edit can change it."""
        return self.step is None and not self.editable

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return 1 if self.space is None else self.space.size


@dataclass(eq=False)
class Step:
    """How a value follows from others."""

    inputs: list[Value]

    def evaluated(self) -> NDArray[np.float64]:
        """What comes out where all inputs are fixed."""
        raise AssertionError(f"{type(self).__name__} is never evaluated ahead of time")


@dataclass(eq=False)
class Map(Step):
    """A function of single numbers, row by row; ``columns`` says which column of an input each output column reads."""

    code: str
    columns: list[NDArray[np.int64] | None]
    parameters: tuple[float, ...] = ()

    @property
    def keeps_columns(self) -> bool:
        """Whether each output column reads the same column of every input."""
        return all(own is None for own in self.columns)

    def evaluated(self) -> NDArray[np.float64]:
        """What comes out; only sums and products are asked for."""
        parts = [_data(v) if c is None else _data(v)[:, c] for v, c in zip(self.inputs, self.columns, strict=True)]
        function: Any = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[self.code]
        result: NDArray[np.float64] = function(*parts)
        return result


@dataclass(eq=False)
class Pick(Step):
    """Columns of several inputs side by side: from which input, and which of its columns."""

    which: NDArray[np.int64]
    columns: NDArray[np.int64]

    def evaluated(self) -> NDArray[np.float64]:
        """What comes out."""
        starts = np.concatenate([[0], np.cumsum([value.width for value in self.inputs])])
        together = np.concatenate([_data(value) for value in self.inputs], axis=1)
        return together[:, starts[self.which] + self.columns]


@dataclass(eq=False)
class Linear(Step):
    """Each row times a matrix, plus fixed numbers where ``added`` has some.

    ``of_relu`` says that it is the ReLU of the row which is multiplied: only in a fused layout, where it saves a step.
    """

    matrix: NDArray[np.float64]
    added: Value | None = None
    of_relu: bool = False

    def evaluated(self) -> NDArray[np.float64]:
        """What comes out."""
        product = _data(self.inputs[0]) @ self.matrix
        return product if self.added is None else product + _data(self.added)


@dataclass(eq=False)
class Fold(Step):
    """A sum, mean, maximum, minimum or product over columns; ``groups`` says which output column each belongs to."""

    code: str
    groups: NDArray[np.int64]

    def evaluated(self) -> NDArray[np.float64]:
        """What comes out."""
        data = _data(self.inputs[0])
        order = np.argsort(self.groups, kind="stable")
        starts = np.searchsorted(self.groups[order], np.arange(self.groups.max(initial=-1) + 1))
        folds: Any = {"amax": np.maximum, "amin": np.minimum, "prod": np.multiply}
        folded: NDArray[np.float64] = folds.get(self.code, np.add).reduceat(data[:, order], starts, axis=1)
        return folded * len(starts) / data.shape[1] if self.code == "mean" else folded


@dataclass(eq=False)
class Gather(Step):
    """For each row, a row of the input."""

    source: NDArray[np.int64]

    def evaluated(self) -> NDArray[np.float64]:
        """What comes out."""
        return _data(self.inputs[0])[self.source]


@dataclass(eq=False)
class Concat(Step):
    """The rows of several inputs, one behind the other."""

    def evaluated(self) -> NDArray[np.float64]:
        """What comes out."""
        return np.concatenate([_data(value) for value in self.inputs])


@dataclass(eq=False)
class Reduce(Step):
    """A sum, maximum or minimum over the entries that lead to each row; only those whose edge is there count.

    The second input, where there is one, holds factors: one row for each entry.

    Attributes:
        code: "sum", "amax" or "amin"; "share" for the sum below a softmax, "shift" for the maximum that it subtracts.
        receiver: the row that each entry leads to.
        source: the row of the first input that it brings.
        edges: the edge column that it stands for; -1 if it is always there.
        empty: the value of rows that nothing leads to.
        factor_columns: which column of the factors each column reads.
        counts: whether it counts degrees for the normalisation that GCN does.
        against: whether it follows edges to their senders.
        added: fixed numbers that a sum begins with.
        scales: of a "mean", what the sum of so many entries is multiplied with (only where bounds are computed).
    """

    code: str
    receiver: NDArray[np.int64]
    source: NDArray[np.int64]
    edges: NDArray[np.int64]
    empty: float = 0.0
    factor_columns: NDArray[np.int64] | None = field(default=None)
    counts: bool = False
    against: bool = False
    added: Value | None = None
    scales: NDArray[np.float64] | None = None


def made(step: Step, space: Space, width: int) -> Value:
    """The value of a step; computed at once where no edit can change it."""
    if not isinstance(step, Reduce) and all(value.fixed for value in step.inputs):
        return Value(space, width, step.evaluated(), gathered=step if isinstance(step, Gather) else None)
    return Value(space, width, step=step)


def in_order(out: Value) -> list[tuple[Step, Value]]:
    """All steps that a value depends on, inputs first, each with what it computes."""
    found: list[tuple[Step, Value]] = []
    seen: set[int] = set()
    stack: list[tuple[Value, bool]] = [(out, False)]
    while stack:
        value, ready = stack.pop()
        if value.step is None or (not ready and id(value) in seen):
            continue
        if ready:
            found.append((value.step, value))
            continue
        seen.add(id(value))
        stack.append((value, True))
        stack += [(other, False) for other in value.step.inputs]
    return found


def _data(value: Value) -> NDArray[np.float64]:
    assert value.data is not None
    return value.data
