"""Is this a number, a list of them? The questions that every argument is asked."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeGuard

import numpy as np

from butfor.errors import InputError

__all__ = ["as_items", "check_whole", "is_finite", "is_number", "is_whole"]


def is_whole(value: object) -> TypeGuard[int]:
    """Whether this is a whole number, as Python and NumPy have them; 1.0 and True are none."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[float]:
    """Whether this is a number, as Python and NumPy have them; True is none."""
    return is_whole(value) or isinstance(value, (float, np.floating))


def is_finite(value: object) -> TypeGuard[float]:
    """Whether this is a finite number that a float can hold."""
    try:
        return is_number(value) and math.isfinite(float(value))
    except OverflowError:
        return False


def check_whole(value: object, what: str, least: int | None = None) -> None:
    """Refuse what is not a whole number: 1.5 is not cut to 1.

    Raises:
        InputError: naming it.
    """
    at_least = "" if least is None else f" of at least {least}"
    if not is_whole(value) or (least is not None and value < least):
        raise InputError(f"{what} is {value!r}; give a whole number{at_least}")


def as_items(several: Any, what: str) -> tuple[Any, ...]:
    """What a list, array, tensor or anything that can be gone through holds, as plain values.

    Raises:
        InputError: it is a single value, text, or a tensor without values to read.
    """
    plain = several
    if hasattr(several, "tolist"):
        try:
            plain = several.tolist()
        except (RuntimeError, TypeError, NotImplementedError):
            plain = None  # on the meta device, sparse, on another device that has no such type
    if isinstance(plain, (str, bytes, Mapping)) or not isinstance(plain, Iterable):
        raise InputError(f"{what} is {several!r}; give a list")
    return tuple(plain)
