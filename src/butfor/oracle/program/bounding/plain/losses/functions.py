"""How steeply functions of single numbers rise and fall from their present numbers, on intervals.

What a function changes by is a slope times what its number changes by, and the slope lies in a range. That of a convex
function lies between the chords from the present point to both ends of the interval; and it falls no more steeply than
its tangent there, so that one slope is enough where its fall is what counts. A concave function is a convex one with
its sign turned. Of a function that is neither, all derivatives on the interval make the range.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from butfor.oracle.program.kernels import functions as codes
from butfor.oracle.program.kernels.flat import called, kernel
from butfor.oracle.program.kernels.functions import function, slopes

__all__ = ["ALWAYS_SLOPED", "find_slopes", "slope_range"]

RELU, LEAKY_RELU, NEG, ABS, SQUARE, CLAMP = (
    codes.RELU, codes.LEAKY_RELU, codes.NEG, codes.ABS, codes.SQUARE, codes.CLAMP,
)  # fmt: skip
EXP, EXPM1, LOG, LOG1P, SQRT, RSQRT, RECIPROCAL, POW = (
    codes.EXP, codes.EXPM1, codes.LOG, codes.LOG1P, codes.SQRT, codes.RSQRT, codes.RECIPROCAL, codes.POW,
)  # fmt: skip
SIGMOID, TANH, ERF, SIN, COS = codes.SIGMOID, codes.TANH, codes.ERF, codes.SIN, codes.COS
ADD, SUB, MUL, DIV, MAXIMUM, MINIMUM = codes.ADD, codes.SUB, codes.MUL, codes.DIV, codes.MAXIMUM, codes.MINIMUM

# What is sloped on all intervals that are finite.
ALWAYS_SLOPED = (
    ADD, SUB, MUL, MAXIMUM, MINIMUM, RELU, LEAKY_RELU, NEG, ABS, SQUARE, CLAMP, EXP, EXPM1, SIGMOID, TANH, ERF, SIN,
    COS,
)  # fmt: skip

CONVEX, CONCAVE, NEITHER, UNKNOWN = 1, -1, 0, 2


@kernel
def _shape(code: int, low: float, high: float, p: float, q: float, power: float) -> int:
    """Whether a function is convex on an interval, concave, or neither."""
    if code in (RELU, EXP, EXPM1, ABS, SQUARE, NEG) or (code == LEAKY_RELU and 0.0 <= p <= 1.0):
        return CONVEX
    if code in (SIGMOID, TANH, ERF, SIN, COS):
        return NEITHER
    if code == CLAMP:
        return CONVEX if high <= q else CONCAVE if low >= p else NEITHER
    if low > 0.0:
        if code in (RSQRT, RECIPROCAL) or (code == POW and (power <= 0.0 or power >= 1.0)):
            return CONVEX
        if code in (LOG, LOG1P, SQRT, POW):
            return CONCAVE
    if code == RECIPROCAL and high < 0.0:
        return CONCAVE
    return UNKNOWN


@called
def find_slopes(
    code: int, x: float, low: float, high: float, p: float, q: float, power: float
) -> tuple[float, float, float, float]:
    """The least and the largest slope from x to any number of an interval, and one for the fall, and for the rise.

    The function falls, from x, by no more than with the slope for the fall, and rises by no more than with that for
    the rise; either is not a number where there is none such. All are not numbers where nothing is known. ``power`` is
    the exponent of a power.
    """
    shape = _shape(code, low, high, p, q, power)
    if shape == UNKNOWN or not (np.isfinite(low) and np.isfinite(high) and np.isfinite(x)):
        return np.nan, np.nan, np.nan, np.nan
    y = function(code, x, power, 0.0, p, q)
    tangent = _derivative(code, x, p, q, power)
    if code == CLAMP and shape != NEITHER:
        # At the end of an interval the kernel's derivative may be that of the other side.
        tangent = 1.0 if (x > p if shape == CONVEX else x < q) else 0.0
    if shape == NEITHER:
        if code in (SIN, COS):
            return -1.0, 1.0, np.nan, np.nan
        if code == CLAMP:
            return 0.0, 1.0, np.nan, np.nan
        # The derivatives of these are largest at 0, and fall to both sides.
        nearest = max(min(0.0, high), low)
        most = max(_derivative(code, nearest, p, q, power), tangent)
        least = min(min(_derivative(code, low, p, q, power), _derivative(code, high, p, q, power)), tangent)
        return least, most, np.nan, np.nan
    down = up = tangent
    if low < x:
        down = (y - function(code, low, power, 0.0, p, q)) / (x - low)
    if high > x:
        up = (function(code, high, power, 0.0, p, q) - y) / (high - x)
    least, most = min(min(down, up), tangent), max(max(down, up), tangent)
    if shape == CONVEX:
        return least, most, tangent, np.nan
    return least, most, np.nan, tangent


@kernel
def _derivative(code: int, x: float, p: float, q: float, power: float) -> float:
    return slopes(code, x, power, p, q, function(code, x, power, 0.0, p, q))[0]


@called
def slope_range(code: int, i: int, xs: Any, ys: Any, scale: int) -> tuple[float, float]:
    """The least and the largest slope of a function of two numbers in one of them; not numbers if unknown.

    ``xs`` and ``ys`` have what both numbers are at present, and the ends of their intervals. Of a product, ``scale``
    says which one multiplies a whole row: 0 or 1, or -1 for neither.
    """
    x, x_low, x_high = xs
    y, y_low, y_high = ys
    if code in (MUL, DIV):
        least = most = 1.0
        if code == DIV:
            # A product with the reciprocal.
            least, most, _, _ = find_slopes(RECIPROCAL, y, y_low, y_high, 0.0, 0.0, 0.0)
            y, y_low, y_high = 1.0 / y, 1.0 / y_high, 1.0 / y_low
        # One of them may be any number of its interval, and the other one counts as it is: xy - uv = (x - u) y + u (y -
        # v). The second is a scale, which few edits change; else the first is that with the narrower interval.
        is_any = (y_high - y_low) * (abs(x_low) + abs(x_high)) <= (x_high - x_low) * (abs(y_low) + abs(y_high))
        is_any = scale == 0 or (is_any and scale < 0)
        if i == 0:
            return (y_low, y_high) if is_any else (y, y)
        a, b = (x, x) if is_any else (x_low, x_high)
        return min(min(a * least, a * most), min(b * least, b * most)), max(
            max(a * least, a * most), max(b * least, b * most)
        )
    if code in (MAXIMUM, MINIMUM):
        # Whichever number it is changes it; of a maximum the first one, if that exceeds the other.
        is_first = (i == 0) == (code == MAXIMUM)
        if x_low >= y_high:
            return (1.0, 1.0) if is_first else (0.0, 0.0)
        if y_low >= x_high:
            return (0.0, 0.0) if is_first else (1.0, 1.0)
        return 0.0, 1.0
    return np.nan, np.nan
