"""Checks of arguments: is this a whole number, a finite number, a list?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeGuard

import numpy as np

from butfor.boundary.json_values import LARGEST_INT, shown
from butfor.errors import InputError

__all__ = ["as_items", "as_plain", "check_whole", "is_finite", "is_number", "is_whole"]


def is_whole(value: object) -> TypeGuard[int]:
    """Whether this is an integer of Python or NumPy; 1.0 and True are not."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[float]:
    """Whether this is a number of Python or NumPy that a float can hold; True is not."""
    if not is_whole(value):
        return isinstance(value, (float, np.floating))
    try:
        float(value)
    except OverflowError:
        return False
    return True


def is_finite(value: object) -> TypeGuard[float]:
    """Whether this is a finite number that a float can hold."""
    return is_number(value) and math.isfinite(value)


def check_whole(value: object, what: str, least: int | None = None) -> None:
    """Refuse anything but a whole number that fits into 64 bits; 1.5 is not rounded to 1.

    Raises:
        InputError: the message says ``what`` it is and which value it has.
    """
    at_least = "" if least is None else f" of at least {least}"
    if not is_whole(value) or (least is not None and value < least):
        raise InputError(f"{what} is {shown(value)}; give a whole number{at_least}")
    if abs(value) > LARGEST_INT:
        raise InputError(f"{what} is {shown(value)}; give a whole number of at most {LARGEST_INT}")


def as_plain(value: Any) -> Any:
    """The content of an array or tensor as lists and numbers, None if it cannot be read; other values unchanged."""
    try:
        return value.tolist() if hasattr(value, "tolist") else value
    except (RuntimeError, TypeError, NotImplementedError):
        return None  # a tensor that is sparse, on the meta device, or of a dtype that its device does not have


def as_items(several: Any, what: str) -> tuple[Any, ...]:
    """The items of a list, array, tensor or other iterable, as plain values.

    Raises:
        InputError: it is a single value, text, or a tensor whose values cannot be read.
    """
    plain = as_plain(several)
    if isinstance(plain, (str, bytes, Mapping)) or not isinstance(plain, Iterable):
        raise InputError(f"{what} is {shown(several)}; give a list")
    return tuple(plain)
