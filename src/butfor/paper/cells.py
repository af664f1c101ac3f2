"""Numbers as they stand in the tables."""

from __future__ import annotations

import math

__all__ = ["NOTHING", "difference", "number", "p_value", "spread"]

NOTHING = "–"


def number(value: float | None, digits: int = 2) -> str:
    """A number, or a dash where there is none."""
    return NOTHING if value is None or math.isnan(value) else f"{value:.{digits}f}"


def spread(mean: float | None, std: float | None, digits: int = 2) -> str:
    """A mean with its standard deviation, where there is one."""
    known = std is not None and not math.isnan(std) and mean is not None and not math.isnan(mean)
    return f"{number(mean, digits)} ± {number(std, digits)}" if known else number(mean, digits)


def difference(ours: float | None, theirs: float | None, digits: int = 2) -> str:
    """Ours less theirs, with its sign."""
    if ours is None or theirs is None or math.isnan(ours) or math.isnan(theirs):
        return NOTHING
    # What rounds to nothing has no sign; a true minus is as wide as a plus.
    value = round(ours - theirs, digits)
    return f"{value:+.{digits}f}".replace("-", "−") if value else f"{0:.{digits}f}"


def p_value(p: float) -> str:
    """A probability, as short as it can be told."""
    return NOTHING if math.isnan(p) else "< 0.0001" if p < 0.0001 else f"{p:.4f}"
