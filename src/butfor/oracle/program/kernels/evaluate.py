"""A program evaluated in full."""

from __future__ import annotations

from typing import Any

from butfor.oracle.program.kernels.flat import REDUCE, SECOND, jit
from butfor.oracle.program.kernels.reductions import find_second, reduce_rows
from butfor.oracle.program.kernels.values import compute, needed_rows

__all__ = ["evaluate"]


@jit
def evaluate(flat: Any, state: Any) -> None:
    """All rows that the target needs, as the edges and features are."""
    for step in range(len(flat.kind)):
        rows = needed_rows(flat, flat.out[step])
        if flat.kind[step] == REDUCE:
            reduce_rows(flat, state, step, rows, -1, state.base)
            if flat.tables[step, SECOND] >= 0:
                find_second(flat, state, step, rows)
        else:
            compute(flat, state, step, rows, -1, state.base)
