"""Functions of single numbers on intervals, in plain numpy, so that it can be checked by reading.

An interval is a pair of arrays, the lower and the upper ends. A function that is not listed here may give any number.
A number is *known* if both ends of its interval are finite, and not too large for single precision, or if it is a
single infinite one. Any other may be NaN, and so may all that is computed from it, but for the result of a comparison,
which is true or false.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Interval = tuple[NDArray[np.float64], NDArray[np.float64]]

__all__ = ["defined", "image", "product"]


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


# Functions that never fall; those that never fall and those that never rise, where the argument is not negative.
RISING: dict[str, Callable[..., Any]] = {
    "relu": lambda x: np.maximum(x, 0.0),
    "exp": np.exp,
    "expm1": np.expm1,
    "sigmoid": _sigmoid,
    "tanh": np.tanh,
}
RISING_FROM_0: dict[str, Callable[..., Any]] = {"sqrt": np.sqrt, "log": np.log, "log1p": np.log1p}
FALLING_FROM_0: dict[str, Callable[..., Any]] = {"rsqrt": lambda x: 1 / np.sqrt(x)}
# Numbers closer than this, relative to their size, may compare either way once a model has rounded them.
NEAR = 1e-5
COMPARED: dict[str, Callable[..., Any]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
TESTED: dict[str, Callable[..., Any]] = {"isinf": np.isinf, "isnan": np.isnan, "isfinite": np.isfinite}


# What is larger may be infinite in a model.
LARGEST = float(np.finfo(np.float32).max)


def image(code: str, parameters: tuple[float, ...], given: list[Interval]) -> Interval:
    """An interval that holds whatever a function gives for numbers in the given intervals."""
    with np.errstate(all="ignore"):
        low, high = _image(code, parameters, given)
    defined = _is_known(low, high)
    if code not in ("where", *COMPARED, *TESTED):
        for one in given:
            defined = defined & _is_known(*one)
    return _where(defined, (low, high))


def _is_known(low: Any, high: Any) -> Any:
    """Whether a number of this interval is one, and infinite only where it is nothing else."""
    infinite = (low == high) & np.isinf(low)
    return infinite | ((np.abs(low) <= LARGEST) & (np.abs(high) <= LARGEST))


def _image(code: str, parameters: tuple[float, ...], given: list[Interval]) -> Interval:
    a, b = given[0]
    c, d = given[1] if len(given) > 1 else (a, b)
    if code in RISING:
        return RISING[code](a), RISING[code](b)
    if code == "leaky_relu" and parameters[0] >= 0:
        return np.where(a > 0, a, parameters[0] * a), np.where(b > 0, b, parameters[0] * b)
    if code == "clamp":
        least, most = parameters
        return np.clip(a, least, most), np.clip(b, least, most)
    if code in RISING_FROM_0:
        return _where(a >= 0, (RISING_FROM_0[code](a), RISING_FROM_0[code](b)))
    if code in FALLING_FROM_0:
        return _where(a >= 0, (FALLING_FROM_0[code](b), FALLING_FROM_0[code](a)))
    if code == "neg":
        return -b, -a
    if code == "abs":
        return np.where((a <= 0) & (b >= 0), 0.0, np.minimum(abs(a), abs(b))), np.maximum(abs(a), abs(b))
    if code == "square":
        return np.where((a <= 0) & (b >= 0), 0.0, np.minimum(a * a, b * b)), np.maximum(a * a, b * b)
    if code == "add":
        return a + c, b + d
    if code == "sub":
        return a - d, b - c
    if code == "mul":
        return product((a, b), (c, d))
    if code in ("div", "reciprocal"):
        above, below = (given[0], given[1]) if code == "div" else ((np.ones_like(a), np.ones_like(a)), given[0])
        return _quotient(above, below)
    if code == "maximum":
        return np.maximum(a, c), np.maximum(b, d)
    if code == "minimum":
        return np.minimum(a, c), np.minimum(b, d)
    if code == "pow":
        ends = a**c, b**c
        return _where((a >= 0) & (c == d), (np.minimum(*ends), np.maximum(*ends)))
    if code == "where":
        return _chosen(given)
    if code in TESTED:
        return np.where(a == b, TESTED[code](a), 0.0), np.where(a == b, TESTED[code](a), 1.0)
    if code in COMPARED:
        # Decided only where no rounding could turn it, or where single numbers are infinite; otherwise both count.
        room = NEAR * (1 + np.maximum(np.abs(a), np.abs(b)) + np.maximum(np.abs(c), np.abs(d)))
        infinite = (a == b) & (c == d) & (np.isinf(a) | np.isinf(c))
        decided = infinite | (b + room < c) | (a - room > d)
        return np.where(decided, COMPARED[code](a, c), 0.0), np.where(decided, COMPARED[code](a, c), 1.0)
    if code in ("logical_not", "bitwise_not"):
        return np.where((a == 0) & (b == 0), 1.0, 0.0), np.where((a > 0) | (b < 0), 0.0, 1.0)
    return np.full_like(a, -np.inf), np.full_like(b, np.inf)


def _where(defined: NDArray[np.bool_], interval: Interval) -> Interval:
    """The interval, or all numbers where the function is not known to be defined."""
    return np.where(defined, interval[0], -np.inf), np.where(defined, interval[1], np.inf)


def defined(low: Any, high: Any) -> Interval:
    """The interval, or all numbers where an end is not a number."""
    undefined = np.isnan(low) | np.isnan(high)
    return np.where(undefined, -np.inf, low), np.where(undefined, np.inf, high)


def product(one: Interval, other: Interval) -> Interval:
    """The interval of all products of a number from one interval and a number from another."""
    with np.errstate(invalid="ignore"):
        ends = np.stack([a * c for a in one for c in other])
    return defined(ends.min(axis=0), ends.max(axis=0))


def _quotient(above: Interval, below: Interval) -> Interval:
    c, d = below
    ends = np.stack([a / e for a in above for e in below])
    # A single number divided by exactly 0 is infinite in the model too. An interval around 0 may lead to any number.
    exact = (above[0] == above[1]) & (c == d)
    defined = (c > 0) | (d < 0) | exact
    return _where(defined, (ends.min(axis=0), ends.max(axis=0)))


def _chosen(given: list[Interval]) -> Interval:
    """The first of two numbers if a condition is true, else the second; a hull of both where it is undecided."""
    (a, b), (c, d), (e, f) = given
    yes, no = (a > 0) | (b < 0), (a == 0) & (b == 0)
    low = np.where(yes, c, np.where(no, e, np.minimum(c, e)))
    return low, np.where(yes, d, np.where(no, f, np.maximum(d, f)))
