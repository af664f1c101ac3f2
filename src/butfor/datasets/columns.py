"""The columns of a table, checked: ids as text, numbers that are finite, text that is left out.

A column may be a part of a longer one, of which ``skipped`` rows came before: people count rows from the first.
"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from butfor.boundary.extras import optional_imports
from butfor.boundary.json_values import shown
from butfor.boundary.reading import reading
from butfor.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    import polars as pl

__all__ = [
    "as_numbers",
    "check_ids",
    "check_names",
    "check_schema",
    "finite_numbers",
    "first_row",
    "has_text",
    "ids_as_text",
    "import_polars",
    "require",
    "silent",
    "spelled",
    "stripped",
    "whole_numbers",
]


def import_polars() -> Any:
    """The package that reads tables.

    Raises:
        InputError: it is not installed.
    """
    with optional_imports():
        import polars
    return polars


@contextmanager
def silent() -> Iterator[None]:
    """Hide what is written to standard error: polars dumps a stack trace of its own there if a file is damaged."""
    try:
        kept = os.dup(2)
    except OSError:  # it is closed
        yield
        return
    try:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def check_names(names: Sequence[str], path: Path) -> None:
    """Refuse a table that has two columns of one name.

    Raises:
        GraphError: naming it.
    """
    name, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise GraphError(f"{path} has the column {shown(name)} more than once: give each its own name")


def check_schema(schema: Mapping[str, Any], path: Path) -> None:
    """Refuse columns of lists, bytes and the like.

    Raises:
        GraphError: naming the first.
    """
    import polars as pl

    for name, dtype in schema.items():
        if dtype.is_nested() or dtype in (pl.Binary, pl.Object):
            raise GraphError(f"column {shown(name)} of {path} is {dtype}, neither numbers nor text: leave it out")


def require(table: pl.DataFrame, path: Path, columns: Collection[str], skipped: int = 0) -> None:
    """Refuse a table that has not these columns, or has empty cells in them.

    Raises:
        GraphError: naming the column or the row.
    """
    for column in columns:
        if column not in table.columns:
            raise GraphError(f"{path} has no column {column!r}, only {', '.join(table.columns) or 'none'}")
        if table[column].null_count():
            raise GraphError(f"row {skipped + first_row(table[column].is_null())} of {path} has no {column}")


def first_row(flags: pl.Series) -> int:
    """The first row that has the flag, as people count: from 1."""
    index = flags.arg_max()
    return -1 if index is None else index + 1


def ids_as_text(ids: pl.Series, path: Path) -> pl.Series:
    """Ids as text without blanks around them; what is empty is missing.

    Raises:
        GraphError: they are numbers with fractions.
    """
    text = stripped(ids, path)
    check_ids(ids.name, ids.dtype, path, *spelled(text))
    return text


def stripped(ids: pl.Series, path: Path) -> pl.Series:
    """Values as text without blanks around them; what is empty is missing."""
    import polars as pl

    with reading(path):  # not every type can be converted to text
        return ids.cast(pl.String).str.strip_chars().replace("", None)


def spelled(text: pl.Series) -> tuple[bool, bool]:
    """Whether all of these are numbers, and whether all are integers."""
    import polars as pl

    numbers = bool(text.cast(pl.Float64, strict=False).is_not_null().all())
    return numbers, numbers and bool(text.str.contains(r"^[+-]?\d+$").all())


def check_ids(name: str, dtype: Any, path: Path, numbers: bool, integers: bool) -> None:
    """Refuse ids that are numbers, but not integers.

    Raises:
        GraphError: naming the column.
    """
    if dtype.is_float() or (numbers and not integers):
        raise GraphError(f"node ids must be integers or text, but column {name!r} of {path} has fractions")


def has_text(column: pl.Series, path: Path, skipped: int = 0) -> bool:
    """Tell whether a column holds text and is left out; refuse a column that mixes numbers and other values.

    Raises:
        GraphError: naming the first value that is no number among numbers.
    """
    import polars as pl

    if column.dtype.is_numeric() or column.dtype == pl.Boolean:
        return False
    numbers = as_numbers(column, path)
    is_number = numbers.is_finite().fill_null(False)
    wrong = column.is_not_null() & ~is_number
    # "nan" and "inf", in any spelling, stand for missing numbers, unless the rest of the column is names.
    if wrong.any() and (is_number.any() or bool(numbers.filter(wrong).is_not_null().all())):
        row = first_row(wrong)
        raise GraphError(
            f"row {skipped + row} of {path} has {column[row - 1]!r} in column {column.name!r}, not a number"
        )
    return True


def as_numbers(column: pl.Series, path: Path) -> pl.Series:
    """The numbers that a column of text spells; null where it does not."""
    import polars as pl

    with reading(path):  # not every type can be converted to text
        return column.cast(pl.String, strict=False).str.strip_chars().cast(pl.Float64, strict=False)


def finite_numbers(column: pl.Series, path: Path, skipped: int = 0) -> Any:
    """A column of numbers as float32.

    Raises:
        GraphError: it has something else, an empty cell, or a number that is not finite.
    """
    import polars as pl

    if not (column.dtype.is_numeric() or column.dtype == pl.Boolean):
        raise GraphError(f"column {column.name!r} of {path} must be numbers, but is {column.dtype}")
    if column.null_count():
        row = skipped + first_row(column.is_null())
        raise GraphError(f"row {row} of {path} has no value in column {column.name!r}")
    numbers = column.cast(pl.Float64).cast(pl.Float32)
    wrong = ~numbers.is_finite()
    if wrong.any():
        row = first_row(wrong)
        raise GraphError(
            f"row {skipped + row} of {path} has {column[row - 1]} in column {column.name!r}, not a finite number"
        )
    return numbers.to_numpy().copy()


def whole_numbers(column: pl.Series, path: Path, skipped: int = 0) -> Any:
    """A column of integers as int64.

    Raises:
        GraphError: one is too large for that.
    """
    import polars as pl

    numbers = column.cast(pl.Int64, strict=False)
    if numbers.null_count():
        row = first_row(numbers.is_null())
        raise GraphError(
            f"row {skipped + row} of {path} has {column[row - 1]} in column {column.name!r}, too large a number"
        )
    return numbers.to_numpy().copy()
