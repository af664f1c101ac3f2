"""One picture of one counterfactual: the target, its neighbourhood, and the edges that decide."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from butfor.datasets.atomic import atomic_write
from butfor.errors import InputError
from butfor.report.layout import View, fit, place

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from numpy.typing import NDArray

    from butfor.counterfactual import Counterfactual
    from butfor.report.scene import Scene

__all__ = ["draw"]

FORMATS = ("png", "svg", "pdf")

# Inches, and dots per inch; all other lengths are points (1/72 inch), and so are the axes' coordinates.
SIZE = (8.0, 6.0)
DPI = 150
EDGE_OF_PAGE = 16.0
# The room for the ring around the target.
RING = 5.0

INK, QUIET, FAINT = "#222222", "#555555", "#a9a9a9"

# Okabe and Ito's colours, safe for the colour-blind. Vermilion is kept for what is removed; more
# classes than colours are told apart by shape. Each shape comes with the factor that makes it look as
# large as the circle.
REMOVED = "#d55e00"
DASHES = (0, (2.2, 0.9))
COLOURS = ("#56b4e9", "#f0e442", "#009e73", "#cc79a7", "#0072b2", "#e69f00", "#b3b3b3")
DARK = ("#009e73", "#0072b2")
SHAPES = (("o", 1.0), ("s", 0.88), ("D", 0.78), ("h", 1.08), ("^", 1.15))

# Up to so many nodes all carry their ids; beyond, only the target and the ends of removed edges do,
# and where these are more, the target alone.
NAMED = 60
# An id longer than this stands below its node instead of inside it.
INSIDE = 5

LISTED_CLASSES = 20
CLASS_NAME = 24
MOST_LINES = 6


def draw(
    result: Counterfactual,
    scene: Scene,
    *,
    path: str | os.PathLike[str] | None = None,
    max_nodes: int = 200,
) -> Figure:
    """Draw the target, its neighbourhood and the removed edges.

    Nodes are coloured by the class predicted for them on the intact graph. Of a neighbourhood with
    more than ``max_nodes`` nodes those at removed edges are shown, then those nearest the target; the
    caption says what is left out. The same result gives the same picture.

    Args:
        result: what to draw.
        scene: the graph it is about.
        path: where to save the picture, as its ending says: .png, .svg or .pdf.
        max_nodes: how many nodes to show at most.

    Returns:
        A figure of its own, that pyplot does not know of.

    Raises:
        InputError: matplotlib is not installed, the picture cannot be saved there, or the graph is not
            the one the result is about.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise InputError("pictures need matplotlib: pip install 'butfor[plot]'") from error
    if max_nodes < 1:
        raise InputError(f"max_nodes is {max_nodes}; show at least one node")
    file = None if path is None else _checked(Path(path))
    view = View.of(result, scene, max_nodes)
    classes = scene.classes[view.nodes]
    styles = _styles(classes, scene.num_classes)

    figure = Figure(figsize=SIZE, dpi=DPI, facecolor="white")
    FigureCanvasAgg(figure)
    axes = _frame(figure, result, scene, view, styles)
    _draw_graph(axes, view, [styles[int(label)] for label in classes], result.directed)
    if file is not None:
        _save(figure, file)
    return figure


def _checked(path: Path) -> Path:
    if path.suffix.lower().lstrip(".") not in FORMATS:
        raise InputError(f"cannot save a picture as {path.name!r}; let the name end in .png, .svg or .pdf")
    if not path.parent.is_dir():
        raise InputError(f"cannot save {path}: there is no folder {path.parent}")
    return path


def _save(figure: Figure, path: Path) -> None:
    try:
        with atomic_write(path) as file:
            figure.savefig(file, format=path.suffix.lower().lstrip("."), dpi=DPI)
    except OSError as error:
        raise InputError(f"cannot save {path}: {error.strerror or error}") from error


# How a class looks: its colour, its shape, and the shape's factor.
Style = tuple[str, str, float]


def _styles(classes: NDArray[np.int64], num_classes: int) -> dict[int, Style]:
    """A look for each class that occurs; by its number, so that all pictures of a model agree."""
    present = [int(label) for label in np.unique(classes)]
    every = len(COLOURS) * len(SHAPES)
    looks = present if num_classes <= every else range(len(present))
    return {
        label: (COLOURS[look % len(COLOURS)], *SHAPES[look // len(COLOURS) % len(SHAPES)])
        for label, look in zip(present, looks, strict=True)
    }


# The page: title, legend and caption, and the axes in the room they leave.


def _frame(
    figure: Figure, result: Counterfactual, scene: Scene, view: View, styles: dict[int, Style]
) -> Axes:
    width, height = SIZE[0] * 72, SIZE[1] * 72
    top, bottom = height - EDGE_OF_PAGE, EDGE_OF_PAGE
    title = _paragraph(figure, str(result), 11.5, INK, y=top, va="top")
    caption = _paragraph(figure, _caption(result, view), 8, QUIET, y=bottom, va="bottom")
    top -= _extent(figure, title)[1] + 8
    bottom += _extent(figure, caption)[1] + 8
    legend = _legend(figure, scene, view, styles, (width - EDGE_OF_PAGE, top))
    right = width - EDGE_OF_PAGE - _extent(figure, legend)[0] - 10
    box = (EDGE_OF_PAGE, bottom, right - EDGE_OF_PAGE, top - bottom)
    axes = figure.add_axes((box[0] / width, box[1] / height, box[2] / width, box[3] / height))
    axes.set(xlim=(0, box[2]), ylim=(0, box[3]), aspect="equal")
    axes.set_axis_off()
    return axes


def _caption(result: Counterfactual, view: View) -> str:
    words = [result.status.sentence]
    if len(view.nodes) < view.all_nodes:
        parts = [
            f"{len(view.nodes)} of {view.all_nodes} nodes",
            f"{len(view.links)} of {view.all_links} edges",
        ]
        if view.removed.sum() < len(result.removed_edges):
            parts.append(f"{view.removed.sum()} of {len(result.removed_edges)} removed edges")
        words.append(f"Showing {', '.join(parts[:-1])} and {parts[-1]}, nearest the target first.")
    return " ".join(filter(None, [*words, result.note]))


def _paragraph(figure: Figure, words: str, points: float, colour: str, *, y: float, va: str) -> Any:
    """Text over the whole width, broken into lines that fit."""
    room = SIZE[0] * 72 - 2 * EDGE_OF_PAGE
    text = figure.text(
        EDGE_OF_PAGE / (SIZE[0] * 72),
        y / (SIZE[1] * 72),
        words,
        size=points,
        linespacing=1.35,
        va=va,
        **_plain(colour),
    )
    width = _extent(figure, text)[0]
    start = len(words) if width <= room else int(1.2 * len(words) * room / width)
    best: list[str] = []
    for columns in range(start, 10, -1):
        lines = textwrap.wrap(words, columns, break_on_hyphens=False)
        # Narrower, but no longer: lines of about the same length instead of a last one with one word.
        if width <= room and len(lines) > max(1, len(best)):
            break
        if lines != best:
            best = lines
            text.set_text("\n".join(lines))
            width = _extent(figure, text)[0]
    if len(best) > MOST_LINES:
        text.set_text("\n".join([*best[: MOST_LINES - 1], f"{best[MOST_LINES - 1][:-1]}…"]))
    return text


def _plain(colour: str) -> dict[str, Any]:
    # A class may be called "$5_to_10$": text is never mathematics here.
    return {"color": colour, "parse_math": False, "usetex": False}


def _extent(figure: Figure, artist: Any) -> tuple[float, float]:
    """Width and height of text or a legend, in points."""
    box = artist.get_window_extent()
    return box.width * 72 / figure.dpi, box.height * 72 / figure.dpi


def _legend(
    figure: Figure, scene: Scene, view: View, styles: dict[int, Style], corner: tuple[float, float]
) -> Legend:
    from matplotlib.lines import Line2D

    def dot(style: Style, size: float = 8, **more: Any) -> Line2D:
        look = {"markerfacecolor": style[0], "marker": style[1], "markersize": size * style[2], **more}
        return Line2D([], [], linestyle="none", **{"markeredgecolor": INK, "markeredgewidth": 0.6, **look})

    blank = ("white", "o", 1.0)
    # Where not all classes can be listed, those that the reader will look for come first.
    sought = set(scene.classes[view.nodes[[view.centre, *view.ends]]].tolist())
    listed = sorted(sorted(styles, key=lambda label: label not in sought)[:LISTED_CLASSES])
    entries = [(dot(styles[label]), scene.class_name(label)) for label in listed]
    if len(styles) > LISTED_CLASSES:
        entries.append((dot(blank, 0), f"and {len(styles) - LISTED_CLASSES} more"))
    entries.append((dot(blank, 0), ""))
    entries.append((dot(blank, 10, markeredgewidth=2.2), f"node {view.nodes[view.centre]}, the target"))
    if view.removed.any():
        entries.append((Line2D([], [], color=REMOVED, linewidth=2.6, linestyle=DASHES), "removed edge"))
    if not view.removed.all():
        entries.append((Line2D([], [], color=FAINT, linewidth=1), "other edge"))
    legend = figure.legend(
        handles=[handle for handle, _ in entries],
        # Names are set below: here, those that begin with an underscore would be dropped.
        labels=["-"] * len(entries),
        loc="upper right",
        bbox_to_anchor=(corner[0] / (SIZE[0] * 72), corner[1] / (SIZE[1] * 72)),
        borderaxespad=0,
        frameon=False,
        fontsize=8.5,
        title="predicted class",
        title_fontproperties={"size": 8.5, "weight": "bold"},
        alignment="left",
        handlelength=2.4,
    )
    for text, (_, name) in zip(legend.get_texts(), entries, strict=True):
        short = name if len(name) <= CLASS_NAME else f"{name[: CLASS_NAME - 1].rstrip()}…"
        text.set(text=short, **_plain(INK))
    legend.get_title().set(**_plain(INK))
    return legend


# The graph, in points.


def _draw_graph(axes: Axes, view: View, styles: Sequence[Style], directed: bool) -> None:
    from matplotlib.patheffects import withStroke

    ends = set(view.ends.tolist())
    named = _named(view, ends)
    radius = _radii(view, named)
    points = _positions(view, radius, (axes.get_xlim()[1], axes.get_ylim()[1]))
    _draw_loops(axes, points, radius, view.loops)
    _draw_links(axes, points, radius, view, directed)
    _draw_nodes(axes, points, radius, view, styles)
    halo = [withStroke(linewidth=2.5, foreground="white")]
    for node in named:
        words = str(view.nodes[node])
        (x, y), inside = points[node], len(words) <= INSIDE
        look: dict[str, Any] = {"size": 8.5 if node == view.centre else 7, "zorder": 6, "gid": "id"}
        look["weight"] = "bold" if node == view.centre or node in ends else "normal"
        if inside:
            ink = "white" if styles[node][0] in DARK else INK
            axes.text(x, y, words, ha="center", va="center_baseline", **look, **_plain(ink))
        else:
            axes.text(
                x,
                y - radius[node] - 2,
                words,
                ha="center",
                va="top",
                path_effects=halo,
                **look,
                **_plain(INK),
            )


def _named(view: View, ends: set[int]) -> list[int]:
    """The nodes that carry their ids."""
    if len(view.nodes) <= NAMED and len(str(view.nodes.max())) <= INSIDE:
        return list(range(len(view.nodes)))
    return sorted({view.centre, *(ends if len(ends) <= NAMED else ())})


def _radii(view: View, named: Sequence[int]) -> NDArray[np.float64]:
    """How large the nodes are; the target with its ring."""
    radius = np.full(len(view.nodes), np.interp(len(view.nodes), [NAMED, 200], [5.0, 3.2]))
    for node in named:
        digits = len(str(view.nodes[node]))
        radius[node] = max(9.0, 1.5 + 2.1 * digits) if digits <= INSIDE else 6.0
    radius[view.centre] = max(13.0, radius[view.centre] + 2) + RING
    return radius


def _positions(view: View, radius: NDArray[np.float64], size: tuple[float, float]) -> NDArray[np.float64]:
    few = len(view.nodes) <= NAMED
    removed = view.links[view.removed]
    loud = len(removed) <= NAMED
    apart = radius[:, None] + radius[None, :] + (5 if few else 2)
    # A removed edge must show between its ends.
    first, second = removed.T
    apart[first, second] = apart[second, first] = apart[first, second] + (18 if loud else 4)
    points = place(
        len(view.nodes), view.links, view.centre, view.ends if loud and not few else removed[:0, 0]
    )
    return fit(points, apart, size, margin=radius + 3, free=removed if loud else removed[:0], longest=110)


def _draw_loops(
    axes: Axes, points: NDArray[np.float64], radius: NDArray[np.float64], loops: NDArray[np.int64]
) -> None:
    """A small ring at the side of a node that faces away from the middle of the drawing."""
    if len(loops):
        away = points[loops] - points.mean(axis=0) + [0, 1e-6]
        away *= (radius[loops] / np.linalg.norm(away, axis=1))[:, None]
        x, y = (points[loops] + away).T
        axes.scatter(
            x, y, s=(1.2 * radius[loops]) ** 2, facecolor="none", edgecolor=FAINT, zorder=1, gid="self-loops"
        )


def _draw_links(
    axes: Axes, points: NDArray[np.float64], radius: NDArray[np.float64], view: View, directed: bool
) -> None:
    from matplotlib.collections import LineCollection, PolyCollection

    crowd = float(np.interp(len(view.links), [60, 800], [0, 1]))
    many = float(np.interp(view.removed.sum(), [30, 200, 600], [0, 1, 1.25]))
    lines = _lines(points, radius, view.links, directed)
    if view.removed.any():
        # A white rim sets removed edges apart from the lines they cross.
        rim = LineCollection(list(lines[view.removed]), color="white", linewidth=5.4 - 3 * many, zorder=2)
        axes.add_collection(rim)
    quiet: dict[str, Any] = {"linewidth": 1.1 - 0.6 * crowd, "alpha": 1 - 0.45 * crowd}
    loud: dict[str, Any] = {"linewidth": 3 - 1.8 * many, "linestyle": DASHES}
    for name, which, colour, layer, look, size in (
        ("other-edges", ~view.removed, FAINT, 1, quiet, 5 - 1.5 * crowd),
        ("removed-edges", view.removed, REMOVED, 3, loud, 9 - 4 * many),
    ):
        mine = lines[which]
        if directed:
            heads = _heads(mine, size)
            axes.add_collection(
                PolyCollection(list(heads), facecolor=colour, zorder=layer, gid=f"{name}-heads")
            )
            mine = np.stack([mine[:, 0], heads[:, 1:].mean(axis=1)], axis=1)
        axes.add_collection(LineCollection(list(mine), color=colour, zorder=layer, gid=name, **look))


def _lines(
    points: NDArray[np.float64], radius: NDArray[np.float64], links: NDArray[np.int64], directed: bool
) -> NDArray[np.float64]:
    """From the rim of one node to the rim of the other; edges there and back run side by side."""
    start, stop = points[links[:, 0]], points[links[:, 1]]
    length = np.maximum(np.linalg.norm(stop - start, axis=1, keepdims=True), 1e-9)
    along = (stop - start) / length
    inset = np.minimum(radius[links] + 1, 0.45 * length)
    start, stop = start + along * inset[:, :1], stop - along * inset[:, 1:]
    if directed:
        keys = links @ [len(points), 1]
        both = np.isin(keys, links[:, ::-1] @ [len(points), 1])
        aside = 3.0 * both[:, None] * along[:, ::-1] * [1, -1]
        start, stop = start + aside, stop + aside
    return np.stack([start, stop], axis=1)


def _heads(lines: NDArray[np.float64], size: float) -> NDArray[np.float64]:
    """A triangle at the end of each line: its tip, then its two back corners."""
    span = lines[:, 1] - lines[:, 0]
    along = size * span / np.maximum(np.linalg.norm(span, axis=1, keepdims=True), 1e-9)
    back, side = lines[:, 1] - along, 0.42 * along[:, ::-1] * [1, -1]
    return np.stack([lines[:, 1], back + side, back - side], axis=1)


def _draw_nodes(
    axes: Axes, points: NDArray[np.float64], radius: NDArray[np.float64], view: View, styles: Sequence[Style]
) -> None:
    x, y = points.T
    centre, ends = view.centre, np.isin(np.arange(len(points)), view.ends)
    axes.scatter(
        x[centre],
        y[centre],
        s=(2 * radius[centre] - 2) ** 2,
        facecolor="white",
        edgecolor=INK,
        linewidth=2.4,
        zorder=3.5,
        gid="target",
    )
    size = radius - RING * (np.arange(len(points)) == centre)
    for look in sorted(set(styles)):
        colour, shape, factor = look
        mine = np.array([style == look for style in styles])
        axes.scatter(
            x[mine],
            y[mine],
            s=(2 * size[mine] * factor) ** 2,
            marker=shape,
            facecolor=colour,
            edgecolors=np.where(ends[mine], REMOVED, INK).tolist(),
            linewidths=np.where(ends[mine], np.minimum(1.8, size[mine] / 3.5), 0.6).tolist(),
            zorder=4,
            gid="nodes",
        )
