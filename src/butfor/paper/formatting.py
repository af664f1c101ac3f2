"""How numbers and rows are formatted in the tables."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "MISSING",
    "blank_repeats",
    "format_difference",
    "format_mean",
    "format_number",
    "format_p_value",
    "none_if_nan",
]

MISSING = "–"


def format_number(value: float | None, digits: int = 2) -> str:
    """A number, or a dash if it is missing."""
    return MISSING if value is None or math.isnan(value) else f"{value:.{digits}f}"


def format_mean(mean: float | None, std: float | None, digits: int = 2) -> str:
    """A mean, with its standard deviation if that is known."""
    known = std is not None and not math.isnan(std) and mean is not None and not math.isnan(mean)
    return f"{format_number(mean, digits)} ± {format_number(std, digits)}" if known else format_number(mean, digits)


def format_difference(ours: float | None, theirs: float | None, digits: int = 2) -> str:
    """Our value minus theirs, with its sign."""
    if ours is None or theirs is None or math.isnan(ours) or math.isnan(theirs):
        return MISSING
    # Zero, also after rounding, has no sign. The typographic minus is as wide as a plus.
    value = round(ours - theirs, digits)
    return f"{value:+.{digits}f}".replace("-", "−") if value else f"{0:.{digits}f}"


def format_p_value(p: float) -> str:
    """A p-value with four digits."""
    return MISSING if math.isnan(p) else "< 0.0001" if p < 0.0001 else f"{p:.4f}"


def none_if_nan(value: float) -> float | None:
    """The same number, with None for NaN: CSV files leave missing values empty."""
    return None if math.isnan(value) else value


def blank_repeats(rows: Iterable[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """The same rows with an empty first cell wherever it repeats the row above."""
    blanked: list[tuple[str, ...]] = []
    previous = None
    for row in rows:
        blanked.append(("", *row[1:]) if row[0] == previous else row)
        previous = row[0]
    return tuple(blanked)
