"""A section of the report: text, tables and pictures, and how it is saved as JSON."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from butfor.boundary.json_values import Misfit, items, record, shown, text, whole
from butfor.evaluation.tables import Table

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from matplotlib.figure import Figure

__all__ = ["Picture", "Section"]


@dataclass(frozen=True)
class Picture:
    """A figure, saved in ``figures/`` as ``name.svg`` and ``name.png``, and its caption."""

    name: str
    caption: str

    @classmethod
    def of(cls, figure: Figure, folder: Path, name: str, caption: str) -> Picture:
        """Save a figure to both files."""
        import matplotlib

        from butfor.plotting.style import DPI

        folder.mkdir(parents=True, exist_ok=True)
        # Without a date and with ids that are not random, the same figure always gives the same file.
        with matplotlib.rc_context({"svg.hashsalt": name}):
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
        figure.savefig(folder / f"{name}.png", dpi=DPI)
        return cls(name, caption)


@dataclass(frozen=True)
class Section:
    """The report of one part of the reproduction.

    Attributes:
        name: the name of the part, as on the command line.
        title: its heading.
        settings: one line that says which graphs, models and nodes it is about.
        text: its paragraphs; backticks enclose code.
        tables: its tables.
        pictures: its pictures, which follow the tables.
    """

    name: str
    title: str
    settings: str
    text: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The section as plain values, for JSON."""
        tables = [table.to_dict() for table in self.tables]
        return {**vars(self), "tables": tables, "pictures": [vars(picture) for picture in self.pictures]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Section:
        """The section that `to_dict` returned these values for.

        Raises:
            Misfit: they are not values of a section.
        """
        known = record(values, "a section")
        _check_fields(known, cls)
        tables, pictures = (items(known[name], name) for name in ("tables", "pictures"))
        for table in tables:
            _check_table(table)
        for picture in pictures:
            _check_fields(record(picture, "a picture"), Picture)
            file_name(picture["name"], "a picture")
            text(picture["caption"], "a caption")
        return cls(
            file_name(known["name"], "a section"),
            text(known["title"], "title"),
            text(known["settings"], "settings"),
            tuple(text(words, "a paragraph") for words in items(known["text"], "text")),
            tuple(map(Table.from_dict, tables)),
            tuple(Picture(**picture) for picture in pictures),
        )


def file_name(value: Any, what: str) -> str:
    """The value, if it is safe in the name of a file, so that the file cannot end up in another folder.

    Raises:
        Misfit: it is not.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", text(value, f"the name of {what}")):
        raise Misfit(f"the name of {what} is {shown(value)}, but must be letters, digits and dashes")
    return str(value)


def _check_fields(given: Mapping[str, Any], cls: type) -> None:
    known = {item.name for item in fields(cls)}
    if given.keys() != known:
        raise Misfit(f"it has the fields {shown(sorted(given))} instead of {', '.join(sorted(known))}")


def _check_table(given: Any) -> None:
    _check_fields(record(given, "a table"), Table)
    file_name(given["name"], "a table")
    text(given["title"], "the title of a table")
    columns = len(items(given["headings"], "headings"))
    for cells in (given["headings"], *(items(row, "a row", columns) for row in items(given["rows"], "rows"))):
        for cell in cells:
            text(cell, "a cell")
    for note in items(given["notes"], "notes"):
        text(note, "a note")
    for row in items(given["records"], "records"):
        for column, value in record(row, "a record").items():
            if not isinstance(value, (str, int, float, bool, type(None))):
                raise Misfit(f"{column} of a record is {shown(value)}, but must be a single value")
    whole(given["left"], "left", most=columns)
