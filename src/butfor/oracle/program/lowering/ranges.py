"""Between which numbers a tensor lies, on every graph that the model may be run on.

A maximum over all rows depends on rows outside a neighbourhood, unless one inside is sure to be as large as any can be.
So it is with the diagonal of a normalised Laplacian, of which ChebConv takes the largest entry: it is 1, and entries
beside it are at most 0 where no weight is negative. What the operations make of the numbers that the model is given
shows that, whichever edges are there.
"""

from __future__ import annotations

import math
from functools import cached_property
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

from butfor.oracle.program.lowering.operations import FRESH, MOVES, SAME
from butfor.oracle.program.trace import Ref, refs

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from butfor.oracle.program.trace import Operation, Trace

__all__ = ["Range", "Ranges", "hull", "range_between", "range_of_all"]


class Range(NamedTuple):
    """All numbers lie between two, and none of them is not a number; infinite ones only if not ``finite``."""

    low: float
    high: float
    finite: bool = True


def range_of_all(tensor: Tensor) -> Range | None:
    """The range of a tensor's own numbers; None where there are none, or some are not finite."""
    return range_between(float(tensor.min()), float(tensor.max())) if tensor.numel() else None


def range_between(low: float, high: float) -> Range | None:
    """A range; None where an end is not finite."""
    return Range(low, high) if isfinite(low) and isfinite(high) else None


class Ranges:
    """The ranges of the tensors of a trace; None for those of which nothing is known.

    Attributes:
        trace: the run.
        given: the range of an input, by its name, on the whole graph and after all edits.
    """

    def __init__(self, trace: Trace, given: Callable[[str], Range | None]) -> None:
        self.trace, self._given = trace, given
        self._known: dict[int, Range | None] = {}

    @cached_property
    def _names(self) -> dict[int, str]:
        return {number: name for name, number in self.trace.inputs.items()}

    @cached_property
    def _made(self) -> dict[int, Operation]:
        return {number: operation for operation in self.trace.operations for number in operation.outputs}

    def of(self, argument: Any) -> Range | None:
        """The range of an argument of an operation."""
        if isinstance(argument, (int, float)):
            return Range(float(argument), float(argument)) if isfinite(argument) else None
        if not isinstance(argument, Ref):
            return None
        number = argument.number
        if number not in self._known:
            self._known[number] = self._found(number)
        return self._known[number]

    def _found(self, number: int) -> Range | None:
        if number in self._names:
            return self._given(self._names[number])
        operation = self._made.get(number)
        if operation is None:
            # A constant, which is the same tensor in every run.
            return range_of_all(self.trace.values[number])
        name, args = operation.name, operation.args
        if name in FILLED:
            # As large as the graph; that its numbers do not depend on that is seen where runs are compared.
            tensor = self.trace.values[number]
            return range_of_all(tensor) if tensor.numel() and bool((tensor == tensor.reshape(-1)[0]).all()) else None
        if name == "masked_fill":
            return self._filled(operation)
        if name in SAME | MOVES | CHOSEN:
            return hull([self.of(one) for one in refs(args if name in ("cat", "stack") else args[:1])])
        if name in SUMS:
            return self._sum(operation)
        if name in FUNCTIONS and not operation.kwargs:
            ranges = [self.of(one) for one in args]
            return None if None in ranges else FUNCTIONS[name](*ranges)
        return None

    def _sum(self, operation: Operation) -> Range | None:
        """Any number of terms are added up, to 0 at first."""
        into, term = self.of(operation.args[0]), self.of(operation.args[3])
        if into != Range(0.0, 0.0) or term is None or not term.finite or operation.kwargs:
            return None
        return Range(0.0 if term.low >= 0 else -inf, 0.0 if term.high <= 0 else inf)

    def _filled(self, operation: Operation) -> Range | None:
        """Some numbers are replaced by another: all infinite ones, say."""
        row, where, value = operation.args
        before, after, condition = self.of(row), self.of(value), self._made.get(where.number)
        if before is None or after is None:
            return None
        whole = before.finite
        if condition is not None and condition.name == "eq" and condition.args == (row, inf):
            whole |= before.low > -inf
        return Range(min(before.low, after.low), max(before.high, after.high), whole and after.finite)


# Tensors that have one number everywhere; some of the numbers of another; what is added up at receivers.
FILLED = (FRESH | {"ones", "zeros", "full", "scalar_tensor"}) - {"new_empty", "empty_like"}
CHOSEN = {"index", "index_select", "masked_select"}
SUMS = {"scatter_add", "index_add"}


def hull(ranges: list[Range | None]) -> Range | None:
    """The range of several tensors together."""
    known = [one for one in ranges if one is not None]
    if not known or len(known) < len(ranges):
        return None
    return Range(
        min(one.low for one in known), max(one.high for one in known), all(one.finite for one in known)
    )  # fmt: skip


def _negative(one: Range) -> Range:
    return Range(-one.high, -one.low, one.finite)


def _added(one: Range, other: Range) -> Range | None:
    if not (one.finite and other.finite):
        return None  # the sum of both infinite numbers is not a number
    return Range(one.low + other.low, one.high + other.high)


def _multiplied(one: Range, other: Range) -> Range | None:
    for infinite, factor in ((one, other), (other, one)):
        if not infinite.finite and factor.low <= 0 <= factor.high:
            return None  # 0 times an infinite number is not a number
    ends = [0.0 if not a or not b else a * b for a in one[:2] for b in other[:2]]
    return Range(min(ends), max(ends), one.finite and other.finite)


def _power(one: Range, exponent: Range) -> Range | None:
    """A fixed power of numbers that are not negative."""
    if one.low < 0 or exponent.low != exponent.high or not one.finite:
        return None
    ends = sorted(_raised(end, exponent.low) for end in one[:2])
    return Range(ends[0], ends[1], one.low > 0 or exponent.low >= 0)


def _raised(base: float, exponent: float) -> float:
    return inf if base == 0 and exponent < 0 else math.pow(base, exponent)


def _reciprocal(one: Range) -> Range | None:
    return _power(one, Range(-1.0, -1.0))


def _divided(one: Range, other: Range) -> Range | None:
    divisor = _reciprocal(other)
    return None if divisor is None else _multiplied(one, divisor)


def _relu(one: Range) -> Range:
    return Range(max(one.low, 0.0), max(one.high, 0.0), one.finite)


# Functions of single numbers.
FUNCTIONS: dict[str, Callable[..., Range | None]] = {
    "neg": _negative,
    "add": _added,
    "sub": lambda one, other: _added(one, _negative(other)),
    "rsub": lambda one, other: _added(other, _negative(one)),
    "mul": _multiplied,
    "div": _divided,
    "pow": _power,
    "reciprocal": _reciprocal,
    "rsqrt": lambda one: _power(one, Range(-0.5, -0.5)),
    "sqrt": lambda one: _power(one, Range(0.5, 0.5)),
    "relu": _relu,
}
