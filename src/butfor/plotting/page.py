"""The page of a picture: title, legend and caption, and the axes in the space that they leave."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from butfor.boundary.printable import printable
from butfor.plotting.excerpt import OTHER, PREDICTED
from butfor.plotting.labels import shortened
from butfor.plotting.style import (
    DASHES,
    DOTS,
    EDGE_OF_PAGE,
    FAINT,
    INK,
    NEW,
    QUIET,
    REMOVED,
    SIZE,
    STAR,
    plain,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

    from butfor.plotting.appearance import Appearance
    from butfor.plotting.excerpt import Excerpt
    from butfor.plotting.style import Style
    from butfor.result.counterfactual import Counterfactual

__all__ = ["extent", "frame", "paragraph"]

# At most so many classes are listed, and so many node types; fewer where there is no room.
LISTED = 20
# The entries of the legend have at most two lines of so many letters.
LINE = 24
MOST_LINES = 6

BLANK = ("white", "o", 1.0)


def frame(
    figure: Figure,
    result: Counterfactual,
    appearance: Appearance,
    excerpt: Excerpt,
    styles: dict[int, Style],
    has_words: bool = True,
) -> Axes:
    """Write title, caption and legend; return axes for the graph, with points as coordinates."""
    width, height = SIZE[0] * 72, SIZE[1] * 72
    top, bottom = height - EDGE_OF_PAGE, EDGE_OF_PAGE
    left_out = _left_out(result, excerpt)
    caption = " ".join(filter(None, [result.verdict, left_out, result.note] if has_words else [left_out]))
    if has_words:
        top -= extent(figure, paragraph(figure, str(result), 11.5, INK, y=top, va="top"))[1] + 8
    if caption:
        bottom += extent(figure, paragraph(figure, caption, 8, QUIET, y=bottom, va="bottom"))[1] + 8
    legend = _legend(figure, result, appearance, excerpt, styles, (width - EDGE_OF_PAGE, top), top - bottom)
    right = width - EDGE_OF_PAGE - extent(figure, legend)[0] - 10
    box = (EDGE_OF_PAGE, bottom, right - EDGE_OF_PAGE, top - bottom)
    axes = figure.add_axes((box[0] / width, box[1] / height, box[2] / width, box[3] / height))
    axes.set(xlim=(0, box[2]), ylim=(0, box[3]), aspect="equal")
    axes.set_axis_off()
    return axes


def _left_out(result: Counterfactual, excerpt: Excerpt) -> str:
    """How much of the neighbourhood is not shown; empty if all of it is."""
    if len(excerpt.nodes) == excerpt.all_nodes:
        return ""
    changed = {(change.node_type, change.node) for change in result.changes}
    counted = [
        (len(excerpt.nodes), excerpt.all_nodes, "nodes"),
        (int((excerpt.removed | (excerpt.role == OTHER)).sum()), excerpt.all_edges, "edges"),
        (int(excerpt.removed.sum()), len(result.removed_edges), "removed edges"),
        (int(excerpt.added.sum()), len(result.added_edges), "added edges"),
        (len(excerpt.changed), len(changed), "changed nodes"),
    ]
    parts = [f"{total - shown} of {total} {what}" for shown, total, what in counted if shown < total]
    near = "the target" if len(excerpt.targets) else "the edits" if result.edits else "the node with the most edges"
    why = f", the farthest from {near}" if excerpt.is_cut else ""
    if not excerpt.is_cut and result.hops is not None:
        why = ": only edges that were not added lead there"
    return f"Not shown: {' and '.join(filter(None, [', '.join(parts[:-1]), parts[-1]]))}{why}."


def paragraph(figure: Figure, words: str, points: float, colour: str, *, y: float, va: str) -> Any:
    """Text over the whole width of the page, broken into lines that fit."""
    words = printable(words)
    room = SIZE[0] * 72 - 2 * EDGE_OF_PAGE
    text = figure.text(
        EDGE_OF_PAGE / (SIZE[0] * 72),
        y / (SIZE[1] * 72),
        words,
        size=points,
        linespacing=1.35,
        va=va,
        **plain(colour),
    )
    width = extent(figure, text)[0]
    start = len(words) if width <= room else int(1.2 * len(words) * room / width)
    best: list[str] = []
    for columns in range(start, 10, -1):
        lines = textwrap.wrap(words, columns, break_on_hyphens=False)
        # Make the lines narrower while their number stays the same, so that the last one is not a single word.
        if width <= room and len(lines) > max(1, len(best)):
            break
        if lines != best:
            best = lines
            text.set_text("\n".join(lines))
            width = extent(figure, text)[0]
    if len(best) > MOST_LINES:
        text.set_text("\n".join([*best[: MOST_LINES - 1], f"{best[MOST_LINES - 1][:-1]}…"]))
    return text


def extent(figure: Figure, artist: Any) -> tuple[float, float]:
    """Width and height of text or a legend, in points."""
    box = artist.get_window_extent()
    return box.width * 72 / figure.dpi, box.height * 72 / figure.dpi


def _legend(
    figure: Figure,
    result: Counterfactual,
    appearance: Appearance,
    excerpt: Excerpt,
    styles: dict[int, Style],
    corner: tuple[float, float],
    height: float,
) -> Legend:
    """The legend with its upper right corner at ``corner``, of as many classes and types as there is room for."""
    marks = _mark_entries(result, excerpt)
    edited = excerpt.nodes[[*excerpt.targets, *excerpt.ends]]
    sought = {*appearance.kinds(edited).tolist()} if appearance.title else set()
    for listed in range(LISTED, 0, -1):
        kinds = _kind_entries(appearance, excerpt, styles, sought, listed)
        legend = _legend_of(figure, [*kinds, *marks], appearance, corner)
        if listed == 1 or extent(figure, legend)[1] <= height:
            break
        legend.remove()
    return legend


def _legend_of(
    figure: Figure, entries: list[tuple[Any, str]], appearance: Appearance, corner: tuple[float, float]
) -> Legend:
    legend = figure.legend(
        handles=[handle for handle, _ in entries],
        # The names are set below, because matplotlib drops labels that begin with an underscore.
        labels=["-"] * len(entries),
        loc="upper right",
        bbox_to_anchor=(corner[0] / (SIZE[0] * 72), corner[1] / (SIZE[1] * 72)),
        borderaxespad=0,
        frameon=False,
        fontsize=8.5,
        title=appearance.title,
        title_fontproperties={"size": 8.5, "weight": "bold"},
        alignment="left",
        handlelength=2.4,
    )
    for text, (_, name) in zip(legend.get_texts(), entries, strict=True):
        text.set(text=name, weight="bold" if name == appearance.second_title else "normal", **plain(INK))
    legend.get_title().set(**plain(INK))
    return legend


def _two_lines(name: str) -> str:
    """A name in two lines if need be; of a longer one the beginning and the end, because names often differ there."""
    return "\n".join(textwrap.wrap(shortened(printable(name), 2 * LINE - 8), LINE, break_on_hyphens=False))


def _kind_entries(
    appearance: Appearance, excerpt: Excerpt, styles: dict[int, Style], sought: set[int], most: int
) -> list[tuple[Any, str]]:
    """Legend entries for the classes or node types, or for both: at most so many of each, ``sought`` kinds first."""
    if not appearance.title:
        return []
    shown = [kind for kind in styles if not appearance.is_type(kind) or not appearance.shows_both]
    listed = sorted(sorted(shown, key=lambda kind: kind not in sought)[:most])
    space = (_dot(BLANK, 0), "")
    entries = _limited([(_dot(styles[kind]), _two_lines(appearance.kind_name(kind))) for kind in listed], len(shown))
    if appearance.shows_both:
        types = appearance.type_styles(excerpt.nodes)
        edited = appearance.type_styles(excerpt.nodes[[*excerpt.targets, *excerpt.ends]])
        first = sorted(types, key=lambda one: one not in edited)[:most]
        named = [(_dot(style), _two_lines(name)) for name, style in types if (name, style) in first]
        space_and_title = [space, (_dot(BLANK, 0), appearance.second_title)] if entries else []
        entries = [*_limited(named, len(types)), *space_and_title, *entries]
    return [*entries, space]


def _limited(entries: list[tuple[Any, str]], total: int) -> list[tuple[Any, str]]:
    """The entries, and how many there are besides."""
    left = total - len(entries)
    return [*entries, (_dot(BLANK, 0), f"and {left} more")] if left else entries


def _mark_entries(result: Counterfactual, excerpt: Excerpt) -> list[tuple[Any, str]]:
    """Legend entries for the target and the edits."""
    from matplotlib.lines import Line2D

    def line(colour: str, width: float, **more: Any) -> Line2D:
        return Line2D([], [], color=colour, linewidth=width, **more)

    name = printable(result.target_name)
    target = f"{name}, the target" if len(name) <= LINE - 8 else f"{shortened(name, LINE)},\nthe target"
    # A model of links may also predict that there is none.
    link = "no link predicted" if result.before.name == "not linked" else "predicted link"
    entries = [
        (len(excerpt.targets) == 1, _dot(BLANK, 10, markeredgewidth=2.2), target),
        (len(excerpt.targets) == 2, _dot(BLANK, 10, markeredgewidth=2.2), "ends of the link"),
        (PREDICTED in excerpt.role, line(INK, 1.6, linestyle=DOTS), link),
        (excerpt.removed.any(), line(REMOVED, 2.6, linestyle=DASHES), "removed edge"),
        (excerpt.added.any(), line(NEW, 2.6), "added edge"),
        (len(excerpt.changed) > 0, _dot((NEW, STAR, 1.0), 10, markeredgecolor="white"), "changed feature"),
        (OTHER in excerpt.role, line(FAINT, 1), "other edge"),
    ]
    return [(handle, name) for is_shown, handle, name in entries if is_shown]


def _dot(style: Style, size: float = 8, **more: Any) -> Any:
    from matplotlib.lines import Line2D

    look = {"markerfacecolor": style[0], "marker": style[1], "markersize": size * style[2], **more}
    return Line2D([], [], linestyle="none", **{"markeredgecolor": INK, "markeredgewidth": 0.6, **look})
