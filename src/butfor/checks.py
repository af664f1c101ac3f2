"""Is this a number? The questions that every argument with a number is asked."""

from __future__ import annotations

import numbers
from typing import TypeGuard

from butfor.errors import InputError

__all__ = ["check_whole", "is_number", "is_whole"]


def is_whole(value: object) -> TypeGuard[int]:
    """Whether this is a whole number, as Python and NumPy have them; 1.0 and True are none."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[float]:
    """Whether this is a number; True is none."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def check_whole(value: object, what: str, least: int | None = None) -> None:
    """Refuse what is not a whole number: 1.5 is not cut to 1.

    Raises:
        InputError: naming it.
    """
    at_least = "" if least is None else f" of at least {least}"
    if not is_whole(value) or (least is not None and value < least):
        raise InputError(f"{what} is {value!r}; give a whole number{at_least}")
