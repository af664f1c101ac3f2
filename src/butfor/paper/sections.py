"""What a part of the reproduction has to say: words, tables and pictures; and how it is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from butfor.evaluation.tables import Table

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from matplotlib.figure import Figure

__all__ = ["Picture", "Section"]


@dataclass(frozen=True)
class Picture:
    """A figure in ``figures/``, as ``name.svg`` and ``name.png``, and the words below it."""

    name: str
    caption: str

    @classmethod
    def of(cls, figure: Figure, folder: Path, name: str, caption: str) -> Picture:
        """Draw a figure into both files."""
        import matplotlib

        from butfor.report.style import DPI

        folder.mkdir(parents=True, exist_ok=True)
        # Without a date and with ids that are not random the same figure is the same file.
        with matplotlib.rc_context({"svg.hashsalt": name}):
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
        figure.savefig(folder / f"{name}.png", dpi=DPI)
        return cls(name, caption)


@dataclass(frozen=True)
class Section:
    """One part of the reproduction.

    Attributes:
        name: of the part, as on the command line.
        title: what it reproduces.
        settings: what it was made with, in a line.
        text: paragraphs; `code` may stand in backticks.
        tables: in their order.
        pictures: in their order, after the tables.
    """

    name: str
    title: str
    settings: str
    text: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        tables = [table.to_dict() for table in self.tables]
        return {**vars(self), "tables": tables, "pictures": [vars(picture) for picture in self.pictures]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Section:
        """What `to_dict` gave."""
        return cls(
            **{
                **values,
                "text": tuple(values["text"]),
                "tables": tuple(map(Table.from_dict, values["tables"])),
                "pictures": tuple(Picture(**picture) for picture in values["pictures"]),
            }
        )
