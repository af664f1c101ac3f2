"""A program with its state and its edits as one object.

Numba takes every array of a tuple apart at each call from Python, which here takes as long as several evaluations; of
this object it takes a pointer.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.experimental import structref

from butfor.oracle.program.kernels.flat import jit

__all__ = ["Bound", "bound"]


@structref.register
class _BoundType(types.StructRef):  # type: ignore[misc]
    """How compiled code sees it."""


class Bound(structref.StructRefProxy):  # type: ignore[misc]
    """A `Flat`, its `State` and what is `Edited`, for compiled code."""


structref.define_boxing(_BoundType, Bound)
structref.define_constructor(Bound, _BoundType, ["flat", "state", "edited"])


@jit
def bound(flat: Any, state: Any, edited: Any) -> Any:
    """All of it together."""
    return Bound(flat, state, edited)
