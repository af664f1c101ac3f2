"""A table in two forms: text for people, records for programs."""

from __future__ import annotations

import io
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from butfor.boundary.extras import optional_imports

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Table", "Value"]

Value = str | int | float | bool | None


@dataclass(frozen=True)
class Table:
    """One table.

    Attributes:
        name: the name of its files, without a suffix.
        title: the line above it.
        headings: the headings of the columns that people read.
        rows: the cells that people read; a cell that repeats the one above it may be empty.
        records: the same numbers and more in full precision, one flat record per line of the CSV file.
        notes: paragraphs below it.
        left: the number of columns that are aligned left; the others hold numbers and are aligned right.
    """

    name: str
    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    records: tuple[Mapping[str, Value], ...]
    notes: tuple[str, ...] = ()
    left: int = 1

    def markdown(self) -> str:
        """The table in Markdown, with its title and notes."""
        rule = ["---" if number < self.left else "---:" for number in range(len(self.headings))]
        lines = [f"| {' | '.join(map(_cell, cells))} |" for cells in (self.headings, rule, *self.rows)]
        return "\n".join([f"**{self.title}**", "", *lines, *(f"\n{note}" for note in self.notes)]) + "\n"

    def csv(self) -> str:
        """The records in CSV; a column stands where it first occurs in the records."""
        with optional_imports():
            import polars as pl

        columns = list(dict.fromkeys(column for record in self.records for column in record))
        frame = pl.DataFrame(
            {column: [record.get(column) for record in self.records] for column in columns}, strict=False
        )
        buffer = io.BytesIO()
        frame.write_csv(buffer)
        return buffer.getvalue().decode()

    def to_dict(self) -> dict[str, Any]:
        """The table as plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Table:
        """The table that `to_dict` wrote."""
        return cls(
            **{
                **values,
                "headings": tuple(values["headings"]),
                "rows": tuple(map(tuple, values["rows"])),
                "records": tuple(values["records"]),
                "notes": tuple(values["notes"]),
            }
        )


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
