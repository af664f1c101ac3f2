"""A matrix that is applied to a value of a program as early as possible."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from butfor.oracle.program.steps import Gather, Linear, Map, Reduce, Value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

__all__ = ["times"]


def times(value: Value, matrix: Matrix) -> Value:
    """The value times a matrix, before all that is linear: sums, other matrices, factors that a whole row shares.

    The interval of a difference is narrower than the difference of two intervals.
    """
    step, width = value.step, matrix.shape[1]
    if value.fixed:
        assert value.data is not None
        return Value(value.space, width, value.data @ matrix)
    if isinstance(step, Linear):
        product = times(step.inputs[0], step.matrix @ matrix)
        if step.added is None:
            return product
        return _made(Map([product, times(step.added, matrix)], "add", [None, None]), value, width)
    if isinstance(step, Gather):
        return _made(Gather([times(step.inputs[0], matrix)], step.source), value, width)
    if isinstance(step, Map):
        moved = _before(step, value, matrix)
        if moved is not None:
            return _made(moved, value, width)
    if isinstance(step, Reduce) and step.code == "sum":
        factors = step.inputs[1:]
        column = _shared(step.factor_columns, factors[0].width) if factors else -1
        if column is not None:
            return _made(
                replace(
                    step,
                    inputs=[times(step.inputs[0], matrix), *factors],
                    factor_columns=np.full(width, column) if factors else None,
                    added=None if step.added is None else times(step.added, matrix),
                ),
                value,
                width,
            )
    return _made(Linear([value], matrix), value, width)


def _before(step: Map, value: Value, matrix: Matrix) -> Map | None:
    """A sum of rows, or rows times one factor for each, with the matrix before it."""
    if step.code in ("add", "sub") and all(own is None for own in step.columns):
        if all(one.width == value.width for one in step.inputs):
            return replace(step, inputs=[times(one, matrix) for one in step.inputs])
        return None
    for rows, factor in ((0, 1), (1, 0))[: {"mul": 2, "div": 1}.get(step.code, 0)]:
        column = _shared(step.columns[factor], step.inputs[factor].width)
        if column is not None and step.columns[rows] is None and step.inputs[rows].width == value.width:
            inputs, columns = list(step.inputs), list(step.columns)
            inputs[rows], columns[factor] = times(step.inputs[rows], matrix), np.full(matrix.shape[1], column)
            return replace(step, inputs=inputs, columns=columns)
    return None


def _shared(columns: NDArray[np.int64] | None, width: int) -> int | None:
    """The one column that is read by all; None where there are several."""
    if columns is None:
        return 0 if width == 1 else None
    return int(columns[0]) if len(columns) and (columns == columns[0]).all() else None


def _made(step: Gather | Linear | Map | Reduce, like: Value, width: int) -> Value:
    return Value(like.space, width, step=step)
