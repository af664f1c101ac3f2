"""Numbers that are combined within each row: functions of single numbers, and products with matrices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from butfor.oracle.program.lowering.facts import Rows
from butfor.oracle.program.lowering.operations import BINARY
from butfor.oracle.program.steps import Fold, Linear, Map, Step, Value, made
from butfor.oracle.program.trace import Ref, Untraceable

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from butfor.oracle.program.lowering.facts import Facts
    from butfor.oracle.program.trace import Operation

__all__ = ["apply", "multiply"]


def apply(facts: Facts, operation: Operation) -> None:
    """A function of single numbers."""
    code, arguments, parameters = _as_map(operation)
    shape = tuple(facts.output(operation).shape)
    given = [fact for argument in arguments if isinstance(fact := facts.fact(argument), Rows)]
    first = max(given, key=lambda fact: (fact.space.size, fact.axis is not None, fact.space.nodes is not None))
    axis = None if first.axis is None else first.axis + len(shape) - len(first.shape)
    pairs = [facts.operand(argument, first.space, shape, axis) for argument in arguments]
    step = Map([value for value, _ in pairs], code, [columns for _, columns in pairs], parameters)
    facts.put(operation, step, first.space, axis)


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
    return name, args[: 3 if name == "where" else 2 if name in BINARY else 1], ()


def multiply(facts: Facts, operation: Operation) -> None:
    """A product with a constant matrix, or of two matrices for each row."""
    arguments = list(operation.args)
    bias = arguments.pop(0) if operation.name in ("addmm", "baddbmm") else None
    given = [facts.fact(argument) for argument in arguments]
    at = next(i for i, fact in enumerate(given) if isinstance(fact, Rows))
    fact, other = given[at], given[1 - at]
    assert isinstance(fact, Rows)
    constant = facts.tensor(arguments[1 - at])
    if operation.name == "bmm" and fact.axis == 0 and (other is None or isinstance(other, Rows)):
        if other is None:
            other = Rows(facts.constant(constant, fact.space, 0), 0, tuple(constant.shape))
        _multiply_rows(facts, operation, *((fact, other) if at == 0 else (other, fact)))
        return
    summed = len(fact.shape) - 1 - at
    if other is not None or fact.axis == summed:
        raise Untraceable("a matrix product of values of nodes")
    _multiply_by_constant(facts, operation, fact, constant, at, bias)


def _multiply_by_constant(facts: Facts, operation: Operation, fact: Rows, constant: Tensor, at: int, bias: Any) -> None:
    """A product with a matrix, and a bias or None; ``at`` says on which side of the matrix the rows are."""
    alpha, beta = (float(operation.kwargs.get(name, 1)) for name in ("alpha", "beta"))
    shape = tuple(facts.output(operation).shape)
    added, columns = (None, None) if bias is None else facts.operand(bias, fact.space, shape, fact.axis)
    inputs = [fact.value] if added is None else [fact.value, added]
    if all(value.fixed for value in inputs):
        facts.put(operation, Step(inputs), fact.space, fact.axis)
        return
    matrix = alpha * _matrix(fact, constant, at)
    if added is None:
        facts.put(operation, Linear([fact.value], matrix), fact.space, fact.axis)
        return
    product = made(Linear([fact.value], matrix), fact.space, matrix.shape[1])
    if beta != 1:
        factor = Value(None, 1, np.full((1, 1), beta))
        every = np.zeros(added.width, dtype=np.int64)
        added = made(Map([added, factor], "mul", [None, every]), fact.space, added.width)
    facts.put(operation, Map([product, added], "add", [None, columns]), fact.space, fact.axis)


def _matrix(fact: Rows, constant: Tensor, at: int) -> NDArray[np.float64]:
    """What a product with a constant does to a row: to unit rows, if it is more than a matrix."""
    constant, width = constant.double(), fact.value.width
    if at == 0 and fact.axis == 0 and len(fact.shape) == constant.dim() == 2:
        return np.ascontiguousarray(constant.numpy())
    axis = 0 if fact.axis is None else fact.axis
    unit = torch.eye(width, dtype=torch.float64).reshape([-1, *fact.inner]).movedim(0, axis)
    product = torch.matmul(*((unit, constant) if at == 0 else (constant, unit)))
    return np.ascontiguousarray(product.movedim(axis, 0).reshape(width, -1).numpy())


def _multiply_rows(facts: Facts, operation: Operation, left: Rows, right: Rows) -> None:
    """A small matrix product for each row: all products of entries, then sums of them."""
    if left.axis or right.axis or not facts.are_the_same(left.space, right.space):
        raise Untraceable("a matrix product of values of nodes")
    (_, rows, summed), (_, _, columns) = left.shape, right.shape
    ours = torch.arange(rows * summed).reshape(rows, 1, summed).expand(rows, columns, summed)
    theirs = torch.arange(summed * columns).reshape(summed, columns).T[None].expand(rows, -1, -1)
    width = rows * columns * summed
    read: list[NDArray[np.int64] | None] = [one.reshape(-1).numpy() for one in (ours, theirs)]
    products = made(Map([left.value, right.value], "mul", read), left.space, width)
    facts.put(operation, Fold([products], "sum", np.repeat(np.arange(rows * columns), summed)), left.space, 0)
