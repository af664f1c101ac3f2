"""One picture of one counterfactual: the target, its neighbourhood, and the edges that decide."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from butfor.datasets.atomic import atomic_write
from butfor.errors import InputError
from butfor.report.layout import fit, place
from butfor.report.page import frame
from butfor.report.style import DARK, DASHES, DPI, FAINT, INK, REMOVED, RING, SIZE, plain, styles_of
from butfor.report.view import View

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from butfor.counterfactual import Counterfactual
    from butfor.report.scene import Scene
    from butfor.report.style import Style

__all__ = ["draw"]

FORMATS = ("png", "svg", "pdf")

# Up to so many nodes all carry their ids; beyond, only the target and the ends of removed edges do,
# and where these are more, the target alone.
NAMED = 60
# An id longer than this stands below its node instead of inside it.
INSIDE = 5


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
    styles = styles_of(classes, scene.num_classes)

    figure = Figure(figsize=SIZE, dpi=DPI, facecolor="white")
    FigureCanvasAgg(figure)
    axes = frame(figure, result, scene, view, styles)
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


# From here on the graph itself, in points.


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
            axes.text(x, y, words, ha="center", va="center_baseline", **look, **plain(ink))
        else:
            axes.text(
                x,
                y - radius[node] - 2,
                words,
                ha="center",
                va="top",
                path_effects=halo,
                **look,
                **plain(INK),
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
    points = place(len(view.nodes), view.links, view.centre, view.ends if loud and not few else removed[:0, 0])
    return fit(points, apart, size, margin=radius + 3, free=removed if loud else removed[:0], longest=110)


def _draw_loops(axes: Axes, points: NDArray[np.float64], radius: NDArray[np.float64], loops: NDArray[np.int64]) -> None:
    """A small ring at the side of a node that faces away from the middle of the drawing."""
    if len(loops):
        away = points[loops] - points.mean(axis=0) + [0, 1e-6]
        away *= (radius[loops] / np.linalg.norm(away, axis=1))[:, None]
        x, y = (points[loops] + away).T
        axes.scatter(x, y, s=(1.2 * radius[loops]) ** 2, facecolor="none", edgecolor=FAINT, zorder=1, gid="self-loops")


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
            axes.add_collection(PolyCollection(list(heads), facecolor=colour, zorder=layer, gid=f"{name}-heads"))
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
