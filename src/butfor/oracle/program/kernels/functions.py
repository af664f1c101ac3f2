"""Functions of single numbers, and their derivatives.

A function that is added gets a code here, a line in `function`, and one in `slopes` unless its derivative is 0.
"""

from __future__ import annotations

import math

import numpy as np

from butfor.oracle.program.kernels.flat import kernel

__all__ = ["CODES", "function", "slopes"]

# The codes by the names that torch gives the functions.
CODES: dict[str, int] = {}


def _code(name: str) -> int:
    return CODES.setdefault(name, len(CODES))


ADD = _code("add")
SUB = _code("sub")
MUL = _code("mul")
DIV = _code("div")
MAXIMUM = _code("maximum")
MINIMUM = _code("minimum")
POW = _code("pow")
EQ = _code("eq")
NE = _code("ne")
LT = _code("lt")
LE = _code("le")
GT = _code("gt")
GE = _code("ge")
LOGICAL_AND = _code("logical_and")
LOGICAL_OR = _code("logical_or")
WHERE = _code("where")
RELU = _code("relu")
LEAKY_RELU = _code("leaky_relu")
EXP = _code("exp")
LOG = _code("log")
LOG1P = _code("log1p")
EXPM1 = _code("expm1")
SQRT = _code("sqrt")
RSQRT = _code("rsqrt")
RECIPROCAL = _code("reciprocal")
NEG = _code("neg")
ABS = _code("abs")
SIGMOID = _code("sigmoid")
TANH = _code("tanh")
ERF = _code("erf")
SIGN = _code("sign")
ISINF = _code("isinf")
ISNAN = _code("isnan")
LOGICAL_NOT = _code("logical_not")
SIN = _code("sin")
COS = _code("cos")
FLOOR = _code("floor")
CLAMP = _code("clamp")
SQUARE = _code("square")
ISFINITE = _code("isfinite")
ATAN2 = _code("atan2")
REMAINDER = _code("remainder")
CODES |= {f"bitwise_{word}": CODES[f"logical_{word}"] for word in ("and", "or", "not")}


@kernel
def function(code: int, x: float, y: float, z: float, p: float, q: float) -> float:
    """One number from up to three; ``p`` and ``q`` are its parameters."""
    if code == ADD:
        return x + y
    if code == SUB:
        return x - y
    if code == MUL:
        return x * y
    if code == DIV:
        return x / y
    if code == MAXIMUM:
        return max(x, y)
    if code == MINIMUM:
        return min(x, y)
    if code == POW:
        return float(x**y)
    if code == EQ:
        return 1.0 if x == y else 0.0
    if code == NE:
        return 1.0 if x != y else 0.0
    if code == LT:
        return 1.0 if x < y else 0.0
    if code == LE:
        return 1.0 if x <= y else 0.0
    if code == GT:
        return 1.0 if x > y else 0.0
    if code == GE:
        return 1.0 if x >= y else 0.0
    if code == LOGICAL_AND:
        return 1.0 if x != 0 and y != 0 else 0.0
    if code == LOGICAL_OR:
        return 1.0 if x != 0 or y != 0 else 0.0
    if code == WHERE:
        return y if x != 0 else z
    if code == RELU:
        return max(x, 0.0)
    if code == LEAKY_RELU:
        return x if x > 0 else p * x
    if code == EXP:
        return float(np.exp(x))
    if code == LOG:
        return float(np.log(x))
    if code == LOG1P:
        return float(np.log1p(x))
    if code == EXPM1:
        return float(np.expm1(x))
    if code == SQRT:
        return float(np.sqrt(x))
    if code == RSQRT:
        return float(1 / np.sqrt(x))
    if code == RECIPROCAL:
        return 1 / x
    if code == NEG:
        return -x
    if code == ABS:
        return abs(x)
    if code == SIGMOID:
        return float(1 / (1 + np.exp(-x)))
    if code == TANH:
        return float(np.tanh(x))
    if code == ERF:
        return math.erf(x)
    if code == SIGN:
        return float(np.sign(x))
    if code == ISINF:
        return 1.0 if np.isinf(x) else 0.0
    if code == ISNAN:
        return 1.0 if np.isnan(x) else 0.0
    if code == LOGICAL_NOT:
        return 1.0 if x == 0 else 0.0
    if code == SIN:
        return float(np.sin(x))
    if code == COS:
        return float(np.cos(x))
    if code == FLOOR:
        return float(np.floor(x))
    if code == CLAMP:
        return min(max(x, p), q)
    if code == SQUARE:
        return x * x
    if code == ISFINITE:
        return 1.0 if np.isfinite(x) else 0.0
    if code == ATAN2:
        return math.atan2(x, y)
    if code == REMAINDER:
        return float(x - y * np.floor(x / y))
    return np.nan


@kernel
def slopes(code: int, x: float, y: float, p: float, q: float, out: float) -> tuple[float, float, float]:
    """The derivatives of a function with respect to its numbers; ``out`` is what it gave."""
    if code == ADD:
        return 1.0, 1.0, 0.0
    if code == SUB:
        return 1.0, -1.0, 0.0
    if code == MUL:
        return y, x, 0.0
    if code == DIV:
        return 1 / y, -x / (y * y), 0.0
    if code == MAXIMUM:
        return (1.0, 0.0, 0.0) if x >= y else (0.0, 1.0, 0.0)
    if code == MINIMUM:
        return (1.0, 0.0, 0.0) if x <= y else (0.0, 1.0, 0.0)
    if code == POW:
        return y * x ** (y - 1), (out * float(np.log(x)) if x > 0 else 0.0), 0.0
    if code == WHERE:
        return (0.0, 1.0, 0.0) if x != 0 else (0.0, 0.0, 1.0)
    if code == RELU:
        return (1.0 if x > 0 else 0.0), 0.0, 0.0
    if code == LEAKY_RELU:
        return (1.0 if x > 0 else p), 0.0, 0.0
    if code == EXP:
        return out, 0.0, 0.0
    if code == LOG:
        return 1 / x, 0.0, 0.0
    if code == LOG1P:
        return 1 / (1 + x), 0.0, 0.0
    if code == EXPM1:
        return out + 1, 0.0, 0.0
    if code == SQRT:
        return 0.5 / out, 0.0, 0.0
    if code == RSQRT:
        return -0.5 * out / x, 0.0, 0.0
    if code == RECIPROCAL:
        return -out * out, 0.0, 0.0
    if code == NEG:
        return -1.0, 0.0, 0.0
    if code == ABS:
        return float(np.sign(x)), 0.0, 0.0
    if code == SIGMOID:
        return out * (1 - out), 0.0, 0.0
    if code == TANH:
        return 1 - out * out, 0.0, 0.0
    if code == ERF:
        return 2 / np.sqrt(np.pi) * float(np.exp(-x * x)), 0.0, 0.0
    if code == SIN:
        return float(np.cos(x)), 0.0, 0.0
    if code == COS:
        return -float(np.sin(x)), 0.0, 0.0
    if code == CLAMP:
        # From below at the lower end: a count that is clamped there can only fall.
        return (1.0 if p < x < q else 0.0), 0.0, 0.0
    if code == SQUARE:
        return 2 * x, 0.0, 0.0
    if code == ATAN2:
        return y / (x * x + y * y), -x / (x * x + y * y), 0.0
    if code == REMAINDER:
        return 1.0, -float(np.floor(x / y)), 0.0
    return 0.0, 0.0, 0.0
