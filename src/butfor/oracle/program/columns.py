"""Columns of a maximum that no edit can change, left out.

A layer that takes the maximum over its neighbours' raw features takes it over every word of a dictionary, of which a
neighbourhood uses a part. Where all that may arrive has the same number in a column, that number times the matrix that
follows is a constant.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from butfor.oracle.program.rewriting import readers_of, sum_of
from butfor.oracle.program.steps import Linear, Reduce, Value, in_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["leave_out_constant_columns"]


def leave_out_constant_columns(out: Value) -> None:
    """Let matrices that are applied to a maximum or minimum of fixed rows read only columns that can change, in place.

    Worth it where only the rows of one target are left: others have other words.
    """
    readers = readers_of(out)
    for step, value in in_order(out):
        if isinstance(step, Linear) and readers[id(step.inputs[0])] == 1:
            value.step = _shortened(step)


def _shortened(step: Linear) -> Linear:
    """The same product without what is constant."""
    (extremes,) = step.inputs
    inner = extremes.step
    if not isinstance(inner, Reduce) or inner.code not in ("amax", "amin") or extremes.space is None:
        return step
    data = inner.inputs[0].data if inner.inputs[0].fixed else None
    if data is None or not len(inner.source):
        return step
    constant = _constant(inner, data, extremes.rows)
    # A value has at least one column.
    constant[0] &= not constant.all()
    if not constant.any():
        return step
    left = Value(inner.inputs[0].space, int((~constant).sum()), data[:, ~constant])
    shorter = Value(extremes.space, left.width, step=replace(inner, inputs=[left]))
    always = data[inner.source[0], constant] @ step.matrix[constant]
    added = sum_of(step.added, Value(None, len(always), always[None]))
    return Linear([shorter], np.ascontiguousarray(step.matrix[~constant]), added)


def _constant(step: Reduce, data: NDArray[np.float64], rows: int) -> NDArray[np.bool_]:
    """The columns that are the same whichever entries are there.

    All entries have the same number there, and so do rows that nothing leads to, unless there are none.
    """
    arriving = data[np.unique(step.source)]
    same: NDArray[np.bool_] = (arriving == arriving[0]).all(axis=0)
    reached = np.zeros(rows, dtype=bool)
    reached[step.receiver[step.edges < 0]] = True
    return same if reached.all() else same & (arriving[0] == step.empty)
