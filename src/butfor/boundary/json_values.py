"""Checks of values from a JSON file: each returns the value if it is of the right kind, and raises `Misfit` if not."""

from __future__ import annotations

import math
import reprlib
import sys
from typing import Any

__all__ = ["Misfit", "flag", "items", "number", "record", "shown", "text", "whole"]

LARGEST_INT = 2**63 - 1


class _Short(reprlib.Repr):
    """Abbreviates values, including integers with more digits than Python is willing to print."""

    def repr_int(self, x: int, level: int) -> str:
        try:
            return super().repr_int(x, level)
        except ValueError:
            return f"a number of more than {sys.get_int_max_str_digits()} digits"


_REPR = _Short()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = 60
_REPR.maxlevel = 3


class Misfit(ValueError):
    """A value is of the wrong kind or out of range."""


def shown(value: object) -> str:
    """A value from outside as short text on one line, however large it is."""
    return " ".join(_REPR.repr(value).split())


def whole(value: Any, name: str, least: int = 0, most: int = LARGEST_INT) -> int:
    """A whole number in a range; true and 1.0 are not.

    Raises:
        Misfit: it is not.
    """
    if type(value) is not int or not least <= value <= most:
        span = f"from {least}" if most == LARGEST_INT else f"from {least} to {most}"
        raise Misfit(f"{name} is {shown(value)}, but must be a whole number {span}")
    return value


def number(value: Any, name: str, least: float = -math.inf, most: float = math.inf) -> float:
    """A finite number in a range.

    Raises:
        Misfit: it is not.
    """
    # Compared before it is converted, because a whole number may be too large for a float.
    if type(value) not in (int, float) or not (abs(value) <= sys.float_info.max and least <= value <= most):
        span = "".join(f" {word} {end:g}" for word, end in (("from", least), ("to", most)) if math.isfinite(end))
        raise Misfit(f"{name} is {shown(value)}, but must be a finite number{span}")
    return float(value)


def text(value: Any, name: str) -> str:
    """Text that can be printed, which a lone surrogate cannot.

    Raises:
        Misfit: it is not.
    """
    if not isinstance(value, str) or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise Misfit(f"{name} is {shown(value)}, but must be text")
    return value


def flag(value: Any, name: str) -> bool:
    """True or false.

    Raises:
        Misfit: it is neither.
    """
    if not isinstance(value, bool):
        raise Misfit(f"{name} is {shown(value)}, but must be true or false")
    return value


def items(value: Any, name: str, length: int | None = None) -> list[Any]:
    """A list, perhaps of a given length.

    Raises:
        Misfit: it is not.
    """
    if not isinstance(value, (list, tuple)) or length not in (None, len(value)):
        raise Misfit(f"{name} is {shown(value)}, but must be a list{'' if length is None else f' of {length}'}")
    return list(value)


def record(value: Any, name: str) -> dict[str, Any]:
    """An object with named fields.

    Raises:
        Misfit: it is not.
    """
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise Misfit(f"{name} is {shown(value)}, but must be an object")
    return value
