"""Render the reproduction as one self-contained HTML page, which needs no network and no scripts."""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from butfor.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from jinja2 import Template
    from markupsafe import Markup

    from butfor.evaluation.tables import Table
    from butfor.paper.sections import Picture, Section

__all__ = ["render_page"]

CODE = re.compile(r"`([^`]+)`")

# Estimated widths in rem: of a lower-case and an upper-case letter, and of the padding of a column.
LETTER, CAPITAL, PADDING = 0.46, 0.62, 1.0

# A pinned column is at most this wide, and all pinned columns together, in rem. The style sheet has rules for three.
WIDEST_PINNED, ALL_PINNED, MOST_PINNED = 15.0, 30.0, 3


def render_page(sections: Sequence[Section], figures: Path, facts: Mapping[str, str], *, title: str, lead: str) -> str:
    """One HTML document with all sections; it links to files in the folders ``tables`` and ``figures`` beside it.

    Args:
        sections: the sections, in the order of the page.
        figures: the folder with the SVG files of the pictures, which are embedded in the page.
        facts: versions, seeds and settings, listed at the end.
        title: the title of the page.
        lead: the paragraph below the title.

    Raises:
        StoreError: the file of a picture cannot be read.
    """

    def data_url(picture: Picture) -> str:
        return _data_url(figures / f"{picture.name}.svg")

    return _template().render(
        sections=sections, facts=facts, title=title, lead=lead, table_layout=TableLayout.of, data_url=data_url
    )


@cache
def _template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("butfor.paper", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"prose": _prose, "plain": _plain}
    return environment.get_template("page.html")


@dataclass(frozen=True)
class Column:
    """How a column of a table is laid out.

    Attributes:
        heading: the text of its heading.
        primary: the heading of the column that it comments on, as "paper" comments on the metric before it; or "".
        is_text: whether it holds text, aligned to the left, instead of numbers.
        pinned: whether it stays visible while the rest of the table scrolls.
        width: its estimated width in rem.
        classes: its classes in the style sheet.
    """

    heading: str
    primary: str
    is_text: bool
    pinned: bool
    width: float
    classes: str


@dataclass(frozen=True)
class TableLayout:
    """How a table is laid out on the page.

    Attributes:
        columns: the columns, from left to right.
        groups: the rows, in groups that share their first cell.
        grouped: whether there is more than one group.
        stacked: whether a narrow screen shows the name of a group above its rows, as it has no room for two columns of
            text.
    """

    columns: Sequence[Column]
    groups: Sequence[Sequence[tuple[str, ...]]]
    grouped: bool
    stacked: bool

    @classmethod
    def of(cls, table: Table) -> TableLayout:
        """The layout of a table."""
        columns, groups = _columns(table), _groups(table)
        grouped = groups != [table.rows]
        return cls(columns, groups, grouped, stacked=grouped and table.left > 1 and columns[1].pinned)

    @property
    def style(self) -> str:
        """The widths of the pinned columns: each of them begins where the one before it ends."""
        return "".join(
            f"--width-{number}:{column.width:g}rem;" for number, column in enumerate(self.columns) if column.pinned
        )


def _columns(table: Table) -> list[Column]:
    columns: list[Column] = []
    primary, taken = "", 0.0
    for number, heading in enumerate(table.headings):
        is_text = number < table.left
        repeated = table.headings.count(heading) > 1
        secondary = bool(primary) and repeated
        text_width = max(_text_width(cells[number]) for cells in (table.headings, *table.rows))
        width = min(PADDING + text_width, WIDEST_PINNED)
        taken += width
        # If every column were pinned, the table could not scroll.
        pinned = is_text and number < MOST_PINNED and table.left < len(table.headings) and taken <= ALL_PINNED
        classes = {
            "text": is_text,
            f"pinned pin-{number}": pinned,
            "secondary": secondary,
            "primary": not (is_text or secondary),
        }
        used = " ".join(name for name, applies in classes.items() if applies)
        columns.append(Column(heading, primary if secondary else "", is_text, pinned, width, used))
        if not is_text and not repeated:
            primary = heading
    return columns


def _groups(table: Table) -> list[tuple[tuple[str, ...], ...]]:
    """The rows in groups: a row with an empty first cell belongs to the row above it."""
    if table.left == 0 or all(row[0] for row in table.rows):
        return [table.rows]
    starts = [number for number, row in enumerate(table.rows) if row[0] or number == 0]
    return [table.rows[start:end] for start, end in zip(starts, [*starts[1:], None], strict=True)]


def _text_width(text: str) -> float:
    """The estimated width of a cell's text in rem; text that turns out wider is wrapped."""
    return sum(CAPITAL if letter.isupper() else LETTER for letter in _plain(text))


def _data_url(svg: Path) -> str:
    """An image as a URL that contains it. As images of their own, two pictures may use the same ids inside."""
    try:
        return f"data:image/svg+xml;base64,{b64encode(svg.read_bytes()).decode()}"
    except OSError as error:
        raise StoreError(f"the picture {svg} cannot be read ({error.strerror}): draw its part again") from error


def _plain(text: str) -> str:
    """Text without backticks, for places where HTML allows no tags: attributes and the title of the window."""
    return CODE.sub(r"\1", text)


def _prose(text: str) -> Markup:
    """Text as HTML, where backticks enclose code."""
    from markupsafe import Markup, escape

    return Markup(CODE.sub(r"<code>\1</code>", str(escape(text))))
