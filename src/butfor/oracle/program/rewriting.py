"""The same program with less work."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from butfor.oracle.program.steps import Gather, Linear, Map, Pick, Reduce, Value, in_order, made

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from butfor.oracle.program.steps import Step

__all__ = ["begin_with_what_is_added", "readers_of", "simplify", "sum_of"]


def simplify(out: Value) -> None:
    """Rewrite the steps that lead to a value, in place.

    Copies of columns are read where they come from. A matrix that is applied to a sum or mean of rows is applied to the
    rows instead: features of width 1,433 become 64 once and for all, and a sum that loses an entry need not be
    multiplied again. A sum of gathered rows, or of their products with factors, reads them where they are. Constants
    that are added to rows and multiplied with them, such as a bias and batch norm, become part of the matrix before. A
    ReLU of all rows that a maximum is taken of becomes one of the maximum.
    """
    _leave_out_what_does_nothing(out)
    _read_through_copies(out)
    products = _Products()
    for step, value in in_order(out):
        if isinstance(step, Linear):
            moved = products.before_sums(step.inputs[0], step.matrix)
            if moved is not None:
                value.step, value.data, value.gathered = moved.step, moved.data, moved.gathered
    _read_through_copies(out)
    for step, value in in_order(out):
        if isinstance(step, Reduce) and len(step.inputs) == 1:
            _read_where_it_is(step, value)
    _compare_first(out)
    _join_constants(out)


def _leave_out_what_does_nothing(out: Value) -> None:
    """Read what is multiplied with 1, or has 0 added, as it is."""
    for step, _ in in_order(out):
        for i, value in enumerate(step.inputs):
            while (same := _unchanged(value)) is not None:
                value = step.inputs[i] = same


def _unchanged(value: Value) -> Value | None:
    step = value.step
    if not isinstance(step, Map) or len(step.inputs) != 2 or step.code not in _NEUTRAL:
        return None
    for i in (1,) if step.code in ("sub", "div") else (0, 1):
        row, constant = step.inputs[1 - i], step.inputs[i]
        neutral = constant.space is None and constant.data is not None and (constant.data == _NEUTRAL[step.code]).all()
        if neutral and step.columns[1 - i] is None and row.width == value.width and row.space is not None:
            return row
    return None


_NEUTRAL = {"add": 0.0, "sub": 0.0, "mul": 1.0, "div": 1.0}


def _join_constants(out: Value) -> None:
    """Let (x·A + b)·s + t be x·(A·s) + (b·s + t), where nothing else reads what is between."""
    readers = readers_of(out)
    for step, value in in_order(out):
        affine = _affine(step)
        if affine is None:
            continue
        row, scale, shift = affine
        inner = None if row.step is None or readers.get(id(row), 0) > 1 else _affine(row.step)
        if inner is not None:
            row, scale, shift = inner[0], inner[1] * scale, inner[2] * scale + shift
        if isinstance(row.step, Linear) and readers.get(id(row), 0) == 1 and (scale != 1).any():
            row = _made(Linear(row.step.inputs, row.step.matrix * scale), row, row.width)
            readers[id(row)] = 1
            scale = np.ones_like(scale)
        if (scale != 1).any():
            if inner is None:
                continue
            row = _made(Map([row, Value(None, row.width, scale)], "mul", [None, None]), row, row.width)
            readers[id(row)] = 1
        value.step = Map([row, Value(None, row.width, shift)], "add", [None, None])


def _compare_first(out: Value) -> None:
    """Let the extremes of f(x) be f of the extremes of x, where f never falls and nothing else reads f(x).

    Only for rows that are always there, such as the nodes of a graph that is read out: an edge that fades (`soften`) is
    to be followed through what the model does, step by step.
    """
    readers = readers_of(out)
    for step, value in in_order(out):
        if not isinstance(step, Reduce) or step.code not in ("amax", "amin") or len(step.inputs) > 1:
            continue
        (row,) = step.inputs
        never_empty = (step.edges < 0).all() and len(np.unique(step.receiver)) == value.rows
        if never_empty and readers[id(row)] == 1 and _never_falls(row):
            assert isinstance(row.step, Map)
            extremes = _made(replace(step, inputs=row.step.inputs), value, value.width)
            value.step = replace(row.step, inputs=[extremes])


def _never_falls(row: Value) -> bool:
    """Whether it is a function of each number of a row by itself that never falls."""
    step = row.step
    if not isinstance(step, Map) or len(step.inputs) > 1 or not step.keeps_columns or step.inputs[0].space is None:
        return False
    return step.code in _RISING or (step.code == "leaky_relu" and step.parameters[0] >= 0)


_RISING = ("relu", "sigmoid", "tanh")


def readers_of(out: Value) -> dict[int, int]:
    """How many steps read each value, by its id."""
    readers: dict[int, int] = {}
    for step, _ in in_order(out):
        for value in step.inputs:
            readers[id(value)] = readers.get(id(value), 0) + 1
    return readers


def begin_with_what_is_added(out: Value) -> None:
    """Let a matrix product or sum that nothing else reads take in what is added to it, in place.

    Both begin with what never changes, and a sum counts a node's own row where it is added to those of its neighbours.
    """
    readers = readers_of(out)
    for step, value in in_order(out):
        if not isinstance(step, Map) or step.code != "add" or not step.keeps_columns:
            continue
        for one, other in (step.inputs, step.inputs[::-1]):
            inner = one.step
            is_sum = isinstance(inner, Reduce) and inner.code == "sum"
            if readers[id(one)] > 1 or not (is_sum or isinstance(inner, Linear)) or one.width != value.width:
                continue
            assert isinstance(inner, (Linear, Reduce))
            if other.fixed and other.width == value.width:
                value.step = replace(inner, added=sum_of(inner.added, other))
                break
            if isinstance(inner, Reduce) and len(inner.inputs) == 1 and inner.inputs[0] is other:
                itself = np.arange(value.rows)
                value.step = replace(
                    inner,
                    receiver=np.concatenate([inner.receiver, itself]),
                    source=np.concatenate([inner.source, itself]),
                    edges=np.concatenate([inner.edges, np.full(value.rows, -1)]),
                )
                break


def sum_of(one: Value | None, other: Value) -> Value:
    """Two fixed values added up."""
    if one is None:
        return other
    assert one.data is not None
    assert other.data is not None
    return Value(one.space or other.space, one.width, one.data + other.data)


def _affine(step: Step) -> tuple[Value, NDArray[np.float64], NDArray[np.float64]] | None:
    """A value that numbers for each column are added to or multiplied with: the value, and both of them."""
    if not isinstance(step, Map) or step.code not in _NEUTRAL or len(step.inputs) != 2:
        return None
    for i in (1,) if step.code in ("sub", "div") else (1, 0):
        row, constant, columns = step.inputs[1 - i], step.inputs[i], step.columns[i]
        if constant.space is None and constant.data is not None and step.columns[1 - i] is None and not row.fixed:
            data = constant.data if columns is None else constant.data[:, columns]
            numbers = np.broadcast_to(data, (1, row.width)).astype(np.float64)
            one, nothing = np.ones_like(numbers), np.zeros_like(numbers)
            if step.code in ("add", "sub"):
                return row, one, numbers if step.code == "add" else -numbers
            return row, numbers if step.code == "mul" else 1 / numbers, nothing
    return None


def _read_through_copies(out: Value) -> None:
    for step, _ in in_order(out):
        if isinstance(step, Map):
            for i, value in enumerate(step.inputs):
                while isinstance(value.step, Pick) and len(value.step.inputs) == 1:
                    own, columns = step.columns[i], value.step.columns
                    step.columns[i] = columns if own is None else columns[own]
                    value = step.inputs[i] = value.step.inputs[0]


class _Products:
    """Products of values with matrices, each made once."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[Value, NDArray[np.float64], Value]] = {}

    def of(self, value: Value, matrix: NDArray[np.float64]) -> Value:
        """The value times the matrix."""
        key = id(value), id(matrix)
        if key not in self._known:
            # Both are kept, so that their ids stay theirs.
            self._known[key] = value, matrix, _made(Linear([value], matrix), value, matrix.shape[1])
        return self._known[key][2]

    def before_sums(self, value: Value, matrix: NDArray[np.float64]) -> Value | None:
        """The value times the matrix, multiplied before the sums that it is made of; None where it is made of none."""
        step, width = value.step, matrix.shape[1]
        if value.gathered is not None:
            product = self.before_sums(value.gathered.inputs[0], matrix)
            assert product is not None
            return _made(Gather([product], value.gathered.source), value, width)
        if value.fixed:
            assert value.data is not None
            return Value(value.space, width, value.data @ matrix)
        if isinstance(step, Gather) or (isinstance(step, Reduce) and step.code == "sum" and len(step.inputs) == 1):
            (inner,) = step.inputs
            product = self.before_sums(inner, matrix)
            if product is None:
                if width > matrix.shape[0]:
                    return None
                product = self.of(inner, matrix)
            return _again(step, product, value, width)
        if isinstance(step, Map) and step.code in ("mul", "div"):
            return self._factor_later(step, value, matrix)
        if isinstance(step, Map) and step.code in ("add", "sub") and step.keeps_columns:
            products = [self.before_sums(one, matrix) for one in step.inputs]
            if any(product is not None for product in products):
                both = [product or self.of(one, matrix) for product, one in zip(products, step.inputs, strict=True)]
                return _made(Map(both, step.code, [None, None]), value, width)
        return None

    def _factor_later(self, step: Map, value: Value, matrix: NDArray[np.float64]) -> Value | None:
        """A factor that is one number for each row may as well come after the matrix."""
        width = matrix.shape[1]
        for i in (0, 1) if step.code == "mul" else (0,):
            columns, other = step.columns[1 - i], step.inputs[1 - i]
            if step.columns[i] is None and (other.width == 1 or (columns is not None and not columns.any())):
                product = self.before_sums(step.inputs[i], matrix)
                if product is not None:
                    pair: list[tuple[Value, NDArray[np.int64] | None]] = [
                        (product, None),
                        (other, np.zeros(width, dtype=np.int64)),
                    ]
                    pair = pair if i == 0 else pair[::-1]
                    return _made(Map([one for one, _ in pair], step.code, [own for _, own in pair]), value, width)
        return None


def _made(step: Step, like: Value, width: int) -> Value:
    assert like.space is not None
    return made(step, like.space, width)


def _again(step: Gather | Reduce, inner: Value, like: Value, width: int) -> Value:
    """The same gathering or sum of another value."""
    if isinstance(step, Gather):
        return _made(Gather([inner], step.source), like, width)
    again = replace(step, inputs=[inner])
    return _made(again, like, width)


def _read_where_it_is(step: Reduce, value: Value) -> None:
    """Let a reduction read gathered rows where they are, and a sum of products its factors.

    A factor that the receiver gives to all its entries comes after the sum, so that an entry that goes changes no
    other one; a factor that the sender gives to all its messages is multiplied once, at the sender.
    """
    terms = _terms(step.inputs[0]) if step.code == "sum" else [_Term(step.inputs[0], None, False)]
    terms = [term for term in terms if not _is_one(term.value)]
    width = value.width
    message = next((term for term in terms if _is_message(term, width)), None)
    if message is None:
        return
    gather = _gather_of(message.value)
    assert gather is not None
    source, rows = gather.source, gather.inputs[0]
    others = [term for term in terms if term is not message]
    before = [term for term in others if _is_gathered(term, source, rows)]
    after = [term for term in others if term not in before and _is_gathered(term, step.receiver, value)]
    factors = [t for t in terms if t is not message and t not in before and t not in after]
    for term in before:
        rows = _times(rows, term.of_senders, width)
    step.inputs, step.source = [rows], source[step.source]
    if factors:
        factor, step.factor_columns = _product_of(factors, width)
        step.inputs.append(factor)
    if after:
        result = Value(value.space, width, step=step)
        for term in after:
            result = _times(result, term.of_senders, width)
        value.step, value.data = result.step, result.data


@dataclass(frozen=True, eq=False)
class _Term:
    """A factor of a product, or a divisor: a value, and which of its columns each column of the product reads."""

    value: Value
    columns: NDArray[np.int64] | None
    divides: bool

    @property
    def of_senders(self) -> _Term:
        """The same term at the rows that it was gathered from."""
        gather = _gather_of(self.value)
        assert gather is not None
        return _Term(gather.inputs[0], self.columns, self.divides)


def _terms(value: Value) -> list[_Term]:
    """A product, taken apart as far as it goes."""
    step = value.step
    if not isinstance(step, Map) or step.code not in ("mul", "div"):
        return [_Term(value, None, False)]
    found = []
    for number, (one, columns) in enumerate(zip(step.inputs, step.columns, strict=True)):
        if one.space is None:
            # The same numbers for all rows: part of the product as it stands.
            return [_Term(value, None, False)]
        divides = step.code == "div" and number == 1
        for term in _terms(one):
            own = columns if term.columns is None else term.columns if columns is None else term.columns[columns]
            found.append(_Term(term.value, own, term.divides != divides))
    return found


def _is_one(value: Value) -> bool:
    """Whether it is 1 everywhere, as the weights of edges without weights are."""
    return value.fixed and value.data is not None and bool((value.data == 1.0).all())


def _is_message(term: _Term, width: int) -> bool:
    whole = term.columns is None and term.value.width == width and not term.divides
    return whole and _gather_of(term.value) is not None


def _gather_of(value: Value) -> Gather | None:
    return value.step if isinstance(value.step, Gather) else value.gathered


def _is_gathered(term: _Term, source: NDArray[np.int64], table: Value) -> bool:
    """Whether a term is gathered from such rows as a table has: of senders, or of receivers, which may be others."""
    gather = _gather_of(term.value)
    if gather is None or not (gather.source is source or np.array_equal(gather.source, source)):
        return False
    space = gather.inputs[0].space
    if space is None or table.space is None:
        return False
    return space.matches(table.space) and not space.differs(table.space)


def _times(value: Value, term: _Term, width: int) -> Value:
    columns = term.columns
    if columns is None and term.value.width != width:
        columns = np.zeros(width, dtype=np.int64)
    return _made(Map([value, term.value], "div" if term.divides else "mul", [None, columns]), value, width)


def _product_of(factors: list[_Term], width: int) -> tuple[Value, NDArray[np.int64] | None]:
    """The product of some factors, and which of its columns each column reads."""
    first = next((term for term in factors if not term.divides), None)
    if first is None:
        one = Value(factors[0].value.space, 1, np.ones((factors[0].value.rows, 1)))
        first = _Term(one, np.zeros(width, dtype=np.int64), False)
    value, columns = first.value, first.columns
    for term in factors:
        if term is first:
            continue
        code = "div" if term.divides else "mul"
        if value.width == term.value.width and _reads_same(columns, term.columns):
            value = _made(Map([value, term.value], code, [None, None]), value, value.width)
        else:
            value = _made(Map([value, term.value], code, [columns, term.columns]), value, width)
            columns = None
    return value, columns


def _reads_same(one: NDArray[np.int64] | None, other: NDArray[np.int64] | None) -> bool:
    return other is None if one is None else other is not None and np.array_equal(one, other)
