"""Compiled look for edit sets whose two best classes are so close that rounding could swap them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

__all__ = ["near_ties"]


def _near_ties(scores: Any, tolerance: float) -> Any:
    """The rows whose first and second score differ by at most that much, relative to 1 and the first.

    Few rows are asked about at a time, and each function of NumPy takes longer than all of this.
    """
    found, count = np.empty(len(scores), np.int64), 0
    for row in range(len(scores)):
        first = second = -np.inf
        broken = False
        for score in scores[row]:
            broken |= np.isnan(score)
            if score > first:
                first, second = score, first
            elif score > second:
                second = score
        if not broken and first - second <= tolerance * (1 + abs(first)):
            found[count] = row
            count += 1
    return found[:count]


near_ties: Any = njit(cache=True, nogil=True)(_near_ties)
