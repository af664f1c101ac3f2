"""Functions of single numbers on intervals.

An interval is *unknown*, from -inf to inf, unless the number is known to be finite; what is computed from it is unknown
too. The only infinite numbers that are known are single ones, from inf to inf: GCN's normalisation tests for them.
"""

from __future__ import annotations

import math

import numpy as np

from butfor.oracle.program.kernels import functions as codes
from butfor.oracle.program.kernels.flat import called, kernel
from butfor.oracle.program.kernels.functions import function

__all__ = ["OUTWARDS", "image", "known", "product"]

# How far rounding may have moved a number, relative to 1 + its size: closer ones may compare either way in the model.
NEAR = 1e-5

# Where a middle and half a width are put together, the ends move outwards by this share of them: rounding, which is by
# 1e-16 of the larger end, would else move the other one inwards, where that is much smaller.
OUTWARDS = 2.0**-40

ADD, SUB, MUL, DIV = codes.ADD, codes.SUB, codes.MUL, codes.DIV
MAXIMUM, MINIMUM, POW, WHERE = codes.MAXIMUM, codes.MINIMUM, codes.POW, codes.WHERE
EQ, NE, LT, LE, GT, GE = codes.EQ, codes.NE, codes.LT, codes.LE, codes.GT, codes.GE
AND, OR, NOT = codes.LOGICAL_AND, codes.LOGICAL_OR, codes.LOGICAL_NOT
RELU, LEAKY_RELU, ABS, SQUARE, CLAMP, NEG = (
    codes.RELU, codes.LEAKY_RELU, codes.ABS, codes.SQUARE, codes.CLAMP, codes.NEG,
)  # fmt: skip
EXP, EXPM1, SIGMOID, TANH, ERF = codes.EXP, codes.EXPM1, codes.SIGMOID, codes.TANH, codes.ERF
LOG, LOG1P, SQRT, RSQRT, RECIPROCAL = codes.LOG, codes.LOG1P, codes.SQRT, codes.RSQRT, codes.RECIPROCAL
SIGN, FLOOR, ISINF, ISNAN, ISFINITE = codes.SIGN, codes.FLOOR, codes.ISINF, codes.ISNAN, codes.ISFINITE
SIN, COS = codes.SIN, codes.COS


@kernel
def known(low: float, high: float) -> tuple[float, float]:
    """The interval if both ends are finite or it is a single number; else the unknown one."""
    if low == high or (low <= high and math.isfinite(low) and math.isfinite(high)):
        return low, high
    return -np.inf, np.inf


@kernel
def product(a: float, b: float, c: float, d: float) -> tuple[float, float]:
    """The interval of all products of a number from a to b and one from c to d."""
    p, q, r, s = a * c, a * d, b * c, b * d
    if math.isnan(p + q + r + s):
        # 0 times inf. Check before `min`, which may return the other number where one is not a number.
        return -np.inf, np.inf
    return known(min(min(p, q), min(r, s)), max(max(p, q), max(r, s)))


@called
def image(
    code: int, a: float, b: float, c: float, d: float, e: float, f: float, p: float, q: float, arity: int
) -> tuple[float, float]:
    """An interval of all that a function gives for numbers from a to b, c to d and e to f, with parameters p and q."""
    if code == WHERE:
        return _chosen(a, b, c, d, e, f)
    if (a == -np.inf and b == np.inf) or (arity > 1 and c == -np.inf and d == np.inf):
        return -np.inf, np.inf
    if EQ <= code <= GE:
        return _compared(code, a, b, c, d, p != 0.0)
    if code in (AND, OR, NOT, ISINF, ISNAN, ISFINITE, SIGN, FLOOR):
        return _stepwise(code, a, b, c, d)
    if arity == 1:
        low, high = _of_one(code, a, b, p, q)
    else:
        low, high = _of_two(code, a, b, c, d)
    return known(low, high)


@kernel
def _of_one(code: int, a: float, b: float, p: float, q: float) -> tuple[float, float]:
    first, last = function(code, a, 0.0, 0.0, p, q), function(code, b, 0.0, 0.0, p, q)
    if a == b:
        return first, last
    if code in (RELU, EXP, EXPM1, SIGMOID, TANH, ERF, CLAMP):
        return first, last
    if (code in (LOG, SQRT) and a >= 0) or (code == LOG1P and a >= -1):
        return first, last
    if (code == RSQRT and a >= 0) or (code == RECIPROCAL and (a > 0 or b < 0)) or code == NEG:
        return last, first
    if code in (ABS, SQUARE, LEAKY_RELU):
        # They rise or fall on each side of 0, where they are 0.
        turn = 0.0 if a < 0 < b else first
        return min(min(first, last), turn), max(max(first, last), turn)
    if code in (SIN, COS):
        return -1.0, 1.0
    return -np.inf, np.inf


@kernel
def _of_two(code: int, a: float, b: float, c: float, d: float) -> tuple[float, float]:
    if code == ADD:
        return a + c, b + d
    if code == SUB:
        return a - d, b - c
    if code == MUL:
        return product(a, b, c, d)
    if a == b and c == d and code in (DIV, POW):
        exactly = function(code, a, c, 0.0, 0.0, 0.0)
        return exactly, exactly
    if code == DIV and (c > 0 or d < 0):
        return product(a, b, 1 / d, 1 / c)
    if code == MAXIMUM:
        return max(a, c), max(b, d)
    if code == MINIMUM:
        return min(a, c), min(b, d)
    if code == POW and c == d and a > 0:
        first, last = a**c, b**c
        return min(first, last), max(first, last)
    return -np.inf, np.inf


@kernel
def _compared(code: int, a: float, b: float, c: float, d: float, whole: bool) -> tuple[float, float]:
    """0 or 1 where no rounding could turn the comparison, else both; ``whole`` numbers are not rounded."""
    single = a == b and c == d
    if single and (whole or math.isinf(a) or math.isinf(c)):
        truth = function(code, a, c, 0.0, 0.0, 0.0)
        return truth, truth
    room = 0.0 if whole else NEAR * (1 + _size(a, b) + _size(c, d))
    below, above = b + room < c, a - room > d
    if code in (LT, LE, GT, GE):
        if (below and code in (LT, LE)) or (above and code in (GT, GE)):
            return 1.0, 1.0
        if (below and code in (GT, GE)) or (above and code in (LT, LE)):
            return 0.0, 0.0
    elif below or above:
        truth = 1.0 if code == NE else 0.0
        return truth, truth
    return 0.0, 1.0


@kernel
def _size(low: float, high: float) -> float:
    """The size of a number that may be rounded; what is infinite for sure is not."""
    return 0.0 if low == high and math.isinf(low) else max(abs(low), abs(high))


@kernel
def _stepwise(code: int, a: float, b: float, c: float, d: float) -> tuple[float, float]:
    """Functions with steps: truth values, signs and floors."""
    single = a == b
    if code == NOT:
        no, yes = single and a == 0, a > 0 or b < 0
        return (1.0 if no else 0.0), (0.0 if yes else 1.0)
    if code in (AND, OR):
        yes, also = a > 0 or b < 0, c > 0 or d < 0
        no, neither = single and a == 0, c == d and c == 0
        if code == AND:
            return (1.0 if yes and also else 0.0), (0.0 if no or neither else 1.0)
        return (1.0 if yes or also else 0.0), (0.0 if no and neither else 1.0)
    room = NEAR * (1 + max(abs(a), abs(b)))
    if code == SIGN:
        if single and a == 0:
            return -1.0, 1.0
        return float(np.sign(a - room)), float(np.sign(b + room))
    if code == FLOOR:
        return known(float(np.floor(a - room)), float(np.floor(b + room)))
    if single:
        truth = function(code, a, 0.0, 0.0, 0.0, 0.0)
        return truth, truth
    return 0.0, 1.0


@kernel
def _chosen(a: float, b: float, c: float, d: float, e: float, f: float) -> tuple[float, float]:
    """The first of two numbers if a condition is true, else the second; a hull of both where it is undecided."""
    if a > 0 or b < 0:
        return known(c, d)
    if a == 0 and b == 0:
        return known(e, f)
    # Check before `min`, which may return the other number where one is not a number.
    if c != c or e != e:
        return -np.inf, np.inf
    return known(min(c, e), max(d, f))
