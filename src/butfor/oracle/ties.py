"""Which answers are too close to call, so that the model itself must be asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["nearly_tied"]

# Rounding in float32 moves logits by about a tenth of this.
NEARLY_A_TIE = 1e-5


def nearly_tied(logits: NDArray[Any]) -> NDArray[np.int64]:
    """The rows whose first and second class are so close that rounding could swap them."""
    second, first = np.partition(logits, -2, axis=1)[:, -2:].T
    nearly: NDArray[np.int64] = np.flatnonzero(first - second <= NEARLY_A_TIE * (1 + np.abs(first)))
    return nearly
