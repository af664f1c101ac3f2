"""The reproduction as one HTML page that needs nothing but itself: no network, no scripts."""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING
from urllib.parse import quote

from butfor.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from butfor.evaluation.tables import Table
    from butfor.paper.sections import Picture, Section

__all__ = ["page"]

# The browser itself then refuses whatever would come from elsewhere.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
CODE = re.compile(r"`([^`]+)`")

# In rem: a small and a capital letter, the room between columns, the widest column that stays in sight, and what
# all of those may take together.
LETTER, CAPITAL, PADDING, WIDEST, STUCK = 0.46, 0.62, 1.0, 15.0, 30.0


def page(sections: Sequence[Section], figures: Path, facts: Mapping[str, str], *, title: str, lead: str) -> str:
    """One HTML document of all sections, to lie beside the folders ``tables`` and ``figures``.

    Args:
        sections: in their order.
        figures: the folder with the pictures' SVG files, which become part of the page.
        facts: versions, seeds and settings, listed at the end.
        title: of the page.
        lead: the paragraph below the title.

    Raises:
        StoreError: if a picture's file cannot be read.
    """
    entries = [(section.name, section.title) for section in sections] + [("made-with", "How this was made")]
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            # An empty icon, or browsers ask the server for one.
            '<link rel="icon" href="data:,">',
            f"<title>{_plain(title)}</title>",
            f"<style>\n{files('butfor.paper').joinpath('page.css').read_text('utf-8')}</style>",
            f'</head>\n<body>\n<header>\n<h1>{_prose(title)}</h1>\n<p class="lead">{_prose(lead)}</p>\n</header>',
            '<nav aria-label="Contents">\n<ol>',
            *(f'<li><a href="#{quote(name)}">{_prose(words)}</a></li>' for name, words in entries),
            "</ol>\n</nav>\n<main>",
            *(_section(section, figures) for section in sections),
            f'<section id="made-with">\n<h2>{entries[-1][1]}</h2>\n<dl>',
            *(f"<div><dt>{_prose(name)}</dt><dd>{_prose(value)}</dd></div>" for name, value in facts.items()),
            "</dl>\n</section>\n</main>\n</body>\n</html>\n",
        ]
    )


def _section(section: Section, figures: Path) -> str:
    return "\n".join(
        [
            f'<section id="{escape(section.name)}">',
            f"<h2>{_prose(section.title)}</h2>",
            *([f'<p class="settings">{_prose(section.settings)}</p>'] if section.settings else []),
            *(f"<p>{_prose(paragraph)}</p>" for paragraph in section.text),
            *map(_table, section.tables),
            *(_picture(picture, figures) for picture in section.pictures),
            "</section>",
        ]
    )


def _picture(picture: Picture, figures: Path) -> str:
    """A figure; as an image of its own, so that the ids inside of two pictures cannot collide."""
    file = figures / f"{picture.name}.svg"
    try:
        source = f"data:image/svg+xml;base64,{b64encode(file.read_bytes()).decode()}"
    except OSError as error:
        raise StoreError(f"the picture {file} cannot be read ({error.strerror}): draw its part again") from error
    link = f"figures/{quote(picture.name)}"
    return "\n".join(
        [
            f'<figure id="figure-{escape(picture.name)}">',
            f'<a href="{link}.svg"><img src="{source}" alt="{_plain(picture.caption)}"></a>',
            f"<figcaption>{_prose(picture.caption)} {_files(SVG=f'{link}.svg', PNG=f'{link}.png')}</figcaption>",
            "</figure>",
        ]
    )


def _table(table: Table) -> str:
    columns, groups = _columns(table), _groups(table)
    widths = "".join(f"--w{number}:{column.width:g}rem;" for number, column in enumerate(columns) if column.stuck)
    # A narrow screen has no room for the first of two columns of text: groups of rows get a line above them instead.
    deep = table.left > 1 and columns[1].stuck and groups != [table.rows]
    link = f"tables/{quote(table.name)}"
    return "\n".join(
        [
            f'<div class="table" id="table-{escape(table.name)}">',
            # Reachable by keyboard, or it could not be scrolled without a mouse.
            f'<div class="box" role="region" tabindex="0" aria-label="{_plain(table.title)}">',
            f'<table class="{"deep" if deep else "flat"}" style="{widths}">',
            f"<caption><span>{_prose(table.title)}</span></caption>",
            f"<thead>\n<tr>{''.join(map(_head, columns))}</tr>\n</thead>",
            *(_group(rows, columns, grouped=groups != [table.rows], deep=deep) for rows in groups),
            "</table>\n</div>",
            *(f'<p class="note">{_prose(note)}</p>' for note in table.notes),
            f'<p class="note">{_files(CSV=f"{link}.csv", Markdown=f"{link}.md")}</p>',
            "</div>",
        ]
    )


@dataclass(frozen=True)
class _Column:
    """How a column is set.

    Attributes:
        heading: what stands above it.
        owner: the heading it belongs to, if it is one of several with its own: "paper" belongs to what is before it.
        text: whether it is flush left.
        stuck: whether it stays in sight while the table scrolls.
        width: in rem, if it is stuck, as the next one has to know where it ends.
        classes: for the style sheet.
    """

    heading: str
    owner: str
    text: bool
    stuck: bool
    width: float
    classes: str


def _columns(table: Table) -> list[_Column]:
    columns: list[_Column] = []
    owner, taken = "", 0.0
    for number, heading in enumerate(table.headings):
        text = number < table.left
        owned = bool(owner) and table.headings.count(heading) > 1
        width = min(PADDING + max(_width(cells[number]) for cells in (table.headings, *table.rows)), WIDEST)
        taken += width
        # If all columns were stuck, nothing could scroll. The style sheet knows three.
        stuck = text and number < 3 and table.left < len(table.headings) and taken <= STUCK
        marks = {"text": text, f"stuck s{number}": stuck, "owned": owned, "own": not (text or owned)}
        classes = " ".join(mark for mark, applies in marks.items() if applies)
        columns.append(_Column(heading, owner if owned else "", text, stuck, width, classes))
        owner = heading if not text and table.headings.count(heading) == 1 else owner
    return columns


def _groups(table: Table) -> list[tuple[tuple[str, ...], ...]]:
    """The rows, in groups that share their first cell; one group if no row leaves it to the row above."""
    if table.left == 0 or all(row[0] for row in table.rows):
        return [table.rows]
    starts = [number for number, row in enumerate(table.rows) if row[0] or number == 0]
    return [table.rows[start:end] for start, end in zip(starts, [*starts[1:], None], strict=True)]


def _head(column: _Column) -> str:
    label = f' aria-label="{_plain(f"{column.owner}, {column.heading}")}"' if column.owner else ""
    return f'<th scope="col" class="{column.classes}"{label}>{_prose(column.heading)}</th>'


def _group(rows: Sequence[tuple[str, ...]], columns: Sequence[_Column], *, grouped: bool, deep: bool) -> str:
    lines = ["<tbody>"]
    if deep:
        name = f'<th scope="rowgroup" colspan="{len(columns) - 1}"><span>{_prose(rows[0][0])}</span></th>'
        lines.append(f'<tr class="group">{name}</tr>')
    for line, row in enumerate(rows):
        cells = []
        for number, (column, cell) in enumerate(zip(columns, row, strict=True)):
            if grouped and number == 0 and line > 0:
                continue  # The cell above spans this row.
            scope = f'scope="rowgroup" rowspan="{len(rows)}"' if grouped and number == 0 else 'scope="row"'
            tag, scope = ("th", f" {scope}") if column.text and number <= grouped else ("td", "")
            cells.append(f'<{tag}{scope} class="{column.classes}">{_prose(cell)}</{tag}>')
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return "\n".join([*lines, "</tbody>"])


def _files(**links: str) -> str:
    """The files behind a table or a picture, by their kinds."""
    anchors = " ".join(f'<a href="{link}">{kind}</a>' for kind, link in links.items())
    return f'<span class="files">{anchors}</span>'


def _width(text: str) -> float:
    """About how wide a cell's text is, in rem; where it is wider after all, it takes two lines."""
    return sum(CAPITAL if letter.isupper() else LETTER for letter in _bare(text))


def _bare(text: str) -> str:
    """Text without its backticks."""
    return CODE.sub(r"\1", text)


def _plain(text: str) -> str:
    """Text where HTML allows no code: in attributes and in the window's title."""
    return escape(_bare(text))


def _prose(text: str) -> str:
    """Text as HTML, with what stands in backticks as code."""
    return CODE.sub(r"<code>\1</code>", escape(text))
