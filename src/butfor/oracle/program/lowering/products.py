"""A product over the edges into each node, as sums: an edge that comes or goes then changes a sum by its own part.

The product of some numbers is the exponential of the sum of their logarithms, by size. Its sign follows from how many
of them are negative, and it is 0 where any of them is; these two are counted.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from butfor.oracle.program.steps import Map, Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from butfor.oracle.program.steps import Space

__all__ = ["product"]


def product(value: Value, space: Space, add_up: Callable[[Value], Value]) -> Map:
    """The last step of a product of rows; ``add_up`` says what arrives at each row of a space, added up."""
    is_zero, is_negative, size = _counted(value)
    zeros, negative, total = (add_up(one) for one in (is_zero, is_negative, size))

    def step(code: str, *inputs: Value) -> Map:
        return Map(list(inputs), code, [_columns(one, value.width) for one in inputs])

    def made(code: str, *inputs: Value) -> Value:
        return Value(space, value.width, step=step(code, *inputs))

    # The cosine of n half turns is 1 where n is even, and -1 where it is odd.
    signed = made("mul", made("cos", made("mul", negative, _number(math.pi))), made("exp", total))
    return step("where", made("gt", zeros, _number(0.0)), _number(0.0), signed)


def _counted(value: Value) -> tuple[Value, Value, Value]:
    """Whether each number is 0, whether it is negative, and the logarithm of its size, which is 0 for 0."""
    if value.fixed:
        assert value.data is not None
        data, is_zero = value.data, value.data == 0
        parts = (is_zero, data < 0, np.log(np.where(is_zero, 1.0, np.abs(data))))
        first, second, third = (Value(value.space, value.width, one.astype(np.float64)) for one in parts)
        return first, second, third

    def made(code: str, *inputs: Value) -> Value:
        columns = [_columns(one, value.width) for one in inputs]
        return Value(value.space, value.width, step=Map(list(inputs), code, columns))

    is_zero, zero = made("eq", value, _number(0.0)), _number(0.0)
    size = made("log", made("where", is_zero, _number(1.0), made("abs", value)))
    return is_zero, made("lt", value, zero), size


def _number(number: float) -> Value:
    return Value(None, 1, np.full((1, 1), number))


def _columns(value: Value, width: int) -> np.ndarray[tuple[int], np.dtype[np.int64]] | None:
    """One number serves all columns."""
    return np.zeros(width, dtype=np.int64) if value.width != width else None
