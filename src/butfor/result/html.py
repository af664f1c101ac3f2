"""Results in a notebook: HTML without scripts or style sheets, so that a saved notebook shows it too.

No colour is set for text: it is the notebook's own, light or dark. (``prefers-color-scheme`` would follow the operating
system, which a notebook's theme need not do.) Pictures are drawn for a white page and bring it with them. Everything
that is written is escaped, because names come from files.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from butfor.boundary.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["card", "table"]

_CELL = "text-align: left; vertical-align: top; padding: 0.25em 0.8em 0.25em 0"
# A cell with more letters than this may be broken into lines.
_ONE_LINE = 36


def card(sentence: str, status: str, verdict: str, note: str = "", picture: str | None = None) -> str:
    """One result: its sentence, what is proved, a picture (as SVG, which is not escaped) and its note."""
    parts = [
        _paragraph(_text(sentence)),
        _paragraph(f"<strong>{_text(status)}</strong>: {_text(verdict)}"),
        f'<div style="margin: 0.6em 0">{picture}</div>' if picture else "",
        _paragraph(_text(note), "font-size: 90%; opacity: 0.8") if note else "",
    ]
    return f'<div class="butfor-result" style="max-width: 768px; line-height: 1.45">{"".join(parts)}</div>'


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], more: str = "") -> str:
    """A table of text with a caption above it and, where rows are left out, a line below it."""
    heads = "".join(f'<th scope="col" style="{_cell(name)}">{_text(name)}</th>' for name in head)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_cell(cell)}">{_text(cell)}</td>' for cell in row) + "</tr>" for row in rows
    )
    above = f'<caption style="{_CELL}">{_text(caption)}</caption>'
    below = _paragraph(_text(more)) if more else ""
    listed = f"<table>{above}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="butfor-results">{listed}{below}</div>'


def _cell(words: str) -> str:
    return f"{_CELL}; white-space: {'nowrap' if len(words) <= _ONE_LINE else 'normal; max-width: 46em'}"


def _paragraph(content: str, style: str = "") -> str:
    return f'<p style="margin: 0.2em 0; {style}">{content}</p>'


def _text(words: str) -> str:
    return escape(printable(words))
