"""Sums over edges that are divided by a function of how many entries they have: means, GCN's normalisation, and others.

Taken apart, a sum may lose what it can, and its divisor too; together, both lose the same entries.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from butfor.oracle.program.steps import Map, Reduce, in_order

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from butfor.oracle.program.steps import Value

    Numbers = NDArray[np.float64]

__all__ = ["join_scales"]

# Functions that divisors are made of.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "pow": np.power, "sqrt": np.sqrt,
    "square": np.square, "reciprocal": np.reciprocal, "clamp": np.clip, "log": np.log, "log1p": np.log1p, "exp": np.exp,
    "maximum": np.maximum, "minimum": np.minimum, "neg": np.negative, "where": np.where, "isinf": np.isinf,
    "rsqrt": lambda x: 1 / np.sqrt(x), "logical_not": np.logical_not,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip


def join_scales(out: Value) -> None:
    """Replace each such product by one reduction, a "mean" with a scale for each number of entries."""
    for step, value in in_order(out):
        if not isinstance(step, Map) or step.code not in ("mul", "div"):
            continue
        for i in (0, 1) if step.code == "mul" else (0,):
            total, factor = step.inputs[i].step, step.inputs[1 - i]
            if step.columns[i] is not None or factor.width != 1 or not isinstance(total, Reduce):
                continue
            scales = _scales(total, step.inputs[i].rows, factor, step.code == "div")
            if scales is not None:
                value.step = replace(total, code="mean", scales=scales)
                break


def _scales(total: Reduce, rows: int, factor: Value, divides: bool) -> Numbers | None:
    """What a sum of 0, 1, 2 … entries is multiplied with; None if it does not follow from that, or is not positive."""
    if total.code != "sum" or len(total.inputs) != 1 or total.added is not None or total.empty != 0.0:
        return None
    # The sum that counts may have rows of its own; they are multiplied with nothing, but must be numbers.
    most = max(np.bincount(one.receiver, minlength=1).max() for one in (total, *_sums_of(factor)))
    counts = np.arange(most + 1, dtype=np.float64)
    with np.errstate(all="ignore"):
        scales = _function_of(factor, total, counts)
        scales = 1 / scales if scales is not None and divides else scales
    if scales is None or scales.shape != counts.shape:
        return None
    if not np.isfinite(scales[0]):
        if len(np.unique(total.receiver[total.edges < 0])) < rows:
            return None
        # No row can be empty.
        scales[0] = 0.0
    return scales if np.isfinite(scales).all() and (scales[1:] > 0).all() else None


def _sums_of(value: Value) -> list[Reduce]:
    """All sums that a value is made of."""
    if isinstance(value.step, Reduce):
        return [value.step]
    return [one for read in value.step.inputs for one in _sums_of(read)] if isinstance(value.step, Map) else []


def _function_of(value: Value, total: Reduce, counts: Numbers) -> Numbers | None:
    """What a value is for each number of entries of a sum; None if it depends on anything else."""
    step = value.step
    if value.fixed:
        return value.data.reshape(()) if value.data is not None and value.data.size == 1 else None
    if isinstance(step, Reduce):
        return counts.copy() if _counts_entries(step, total) else None
    if not isinstance(step, Map) or value.width != 1 or any(one.width != 1 for one in step.inputs):
        return None
    parts = [_function_of(one, total, counts) for one in step.inputs]
    if step.code not in FUNCTIONS or any(part is None for part in parts):
        return None
    limits = step.parameters if step.code == "clamp" else ()
    return np.asarray(FUNCTIONS[step.code](*parts, *limits), dtype=np.float64)


def _counts_entries(count: Reduce, total: Reduce) -> bool:
    """Whether a sum adds up 1 for each entry of another."""
    if count.code != "sum" or len(count.inputs) != 1 or count.added is not None or count.empty != 0.0:
        return False
    ones = count.inputs[0].data if count.inputs[0].fixed else None
    if ones is None or not (ones[count.source if count.inputs[0].space is not None else 0] == 1.0).all():
        return False
    # Nobody needs the other rows.
    needed = np.isin(count.receiver, total.receiver)
    mine, theirs = _sorted(total.receiver, total.edges), _sorted(count.receiver[needed], count.edges[needed])
    return np.array_equal(mine, theirs)


def _sorted(receiver: NDArray[np.int64], edges: NDArray[np.int64]) -> NDArray[np.int64]:
    order = np.lexsort([edges, receiver])
    return np.stack([receiver[order], edges[order]])
