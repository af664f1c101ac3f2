"""Steps that treat every row by itself, on intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from butfor.certificate.intervals import defined, image
from butfor.oracle.program.steps import Linear, Map, Pick

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from butfor.certificate.intervals import Interval
    from butfor.oracle.program.steps import Fold, Value

    Numbers = NDArray[np.int64]

__all__ = ["expanded", "numbers", "row_by_row"]


def numbers(value: Value) -> NDArray[np.float64]:
    """The numbers of a value that no edit changes."""
    assert value.data is not None
    return value.data


def expanded(value: Value, row_of: Numbers) -> NDArray[np.float64]:
    """A fixed value in the order of cases."""
    data = numbers(value)
    return data if value.space is None else data[row_of]


def row_by_row(step: Map | Linear | Pick | Fold, given: list[Interval], row_of: Numbers) -> Interval:
    """The interval of a step that treats every row by itself; the last axis has the columns."""
    if isinstance(step, Map):
        read = [
            one if columns is None else (one[0][..., columns], one[1][..., columns])
            for one, columns in zip(given, step.columns, strict=True)
        ]
        if step.code in ("eq", "ne") and _is_one(step):
            # A value is asked whether it is a number. It is, where all operations before it are known to be defined.
            finite, same = np.isfinite(read[0][0]) & np.isfinite(read[0][1]), float(step.code == "eq")
            return np.where(finite, same, 0.0), np.where(finite, same, 1.0)
        return image(step.code, step.parameters, [_alike(one, read) for one in read])
    if isinstance(step, Linear):
        rising, falling = np.maximum(step.matrix, 0), np.minimum(step.matrix, 0)
        low, high = given[0]
        added = 0.0 if step.added is None else expanded(step.added, row_of)
        with np.errstate(invalid="ignore"):
            return defined(low @ rising + high @ falling + added, high @ rising + low @ falling + added)
    if isinstance(step, Pick):
        shape = np.broadcast_shapes(*(one[0].shape[:-1] for one in given))
        low, high = (
            np.stack(
                [np.broadcast_to(given[n][end][..., c], shape) for n, c in zip(step.which, step.columns, strict=True)],
                axis=-1,
            )
            for end in (0, 1)
        )
        return low, high
    low, high = given[0]
    groups = [np.flatnonzero(step.groups == group) for group in range(int(step.groups.max(initial=-1)) + 1)]
    folds: dict[str, Callable[..., Any]] = {"sum": np.sum, "mean": np.mean, "amax": np.max, "amin": np.min}
    if step.code in folds:
        fold = folds[step.code]
        with np.errstate(invalid="ignore"):
            return defined(*(np.stack([fold(one[..., g], axis=-1) for g in groups], axis=-1) for one in (low, high)))
    shape = (*low.shape[:-1], len(groups))
    return np.full(shape, -np.inf), np.full(shape, np.inf)


def _is_one(step: Map) -> bool:
    """Whether a function of two numbers is given the same number twice."""
    one, other = (np.arange(step.inputs[0].width) if own is None else own for own in step.columns)
    return step.inputs[0] is step.inputs[1] and np.array_equal(one, other)


def _alike(one: Interval, others: list[Interval]) -> Interval:
    """The interval, broadcast to the common shape of all."""
    shape = np.broadcast_shapes(*(other[0].shape for other in others))
    return np.broadcast_to(one[0], shape), np.broadcast_to(one[1], shape)
