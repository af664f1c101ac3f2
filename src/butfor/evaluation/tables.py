"""A table twice over: as text for people, and as records for programs."""

from __future__ import annotations

import io
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Table", "Value"]

Value = str | int | float | bool | None


@dataclass(frozen=True)
class Table:
    """One table.

    Attributes:
        name: what its files are called.
        title: what stands above it.
        headings: of the columns that people read.
        rows: what people read; a cell that repeats the one above it may be empty.
        records: the same and more in full precision, one flat record per line of the CSV file.
        notes: what stands below it.
        left: how many columns are flush left; the others hold numbers.
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
        """The records in CSV; columns in the order in which the records bring them."""
        import polars as pl

        columns = list(dict.fromkeys(column for record in self.records for column in record))
        frame = pl.DataFrame(
            {column: [record.get(column) for record in self.records] for column in columns}, strict=False
        )
        buffer = io.BytesIO()
        frame.write_csv(buffer)
        return buffer.getvalue().decode()

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Table:
        """What `to_dict` gave."""
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
