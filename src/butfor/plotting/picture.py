"""The picture of a counterfactual: the target, its neighbourhood, and the edits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from butfor.boundary.atomic import atomic_write
from butfor.boundary.extras import optional_imports
from butfor.errors import InputError
from butfor.plotting.edge_labels import edge_labels as labels_of
from butfor.plotting.excerpt import ADD, OTHER, PREDICTED, REMOVE, Excerpt
from butfor.plotting.labels import INSIDE, Lettering
from butfor.plotting.layout import fit, place
from butfor.plotting.page import frame
from butfor.plotting.style import (
    DASHES,
    DOTS,
    DPI,
    FAINT,
    INK,
    NEW,
    REMOVED,
    RING,
    SIZE,
    STAR,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from butfor.plotting.appearance import Appearance
    from butfor.plotting.style import Style
    from butfor.result.counterfactual import Counterfactual

__all__ = ["checked_path", "draw", "save"]

FORMATS = ("png", "svg", "pdf")

# Up to this many nodes, all of them show their ids. Otherwise only the target and the nodes of edits do; if there are
# more than this many of those, only the target.
NAMED = 60
# Where there are more than NAMED nodes, how strongly those nodes and edges are drawn that neither are edited nor lead
# from an edit to the target.
FADED = 0.4


def draw(
    result: Counterfactual,
    appearance: Appearance,
    *,
    path: str | os.PathLike[str] | None = None,
    max_nodes: int = 200,
    edge_labels: str | None = None,
    has_words: bool = True,
) -> Figure:
    """Draw the target, its neighbourhood and the edits.

    Nodes are coloured by the class predicted for them on the intact graph. Where there are several node types their
    shapes are those of their types, and colours too if no classes are predicted for nodes.
    Of a large neighbourhood only the nodes of edits, the paths from them to the target and some nodes nearest it are
    shown, and the caption says what is left out. Where there are many nodes, those that are neither edited nor on such
    a path are faint. The same result gives the same picture.

    Args:
        result: what to draw.
        appearance: how the nodes of its graph look.
        path: where to save the picture; the name ends in .png, .svg or .pdf.
        max_nodes: how many nodes to show at most.
        edge_labels: the name of an edge attribute, whose values are written beside edges.
        has_words: whether title and caption say what the result says; if not, the caption only says what is left out.

    Returns:
        A figure that pyplot does not manage, so there is nothing to close.

    Raises:
        InputError: matplotlib is not installed, the picture cannot be saved there, the graph is not the one the result
            is about, or it has no such edge attribute.
    """
    with optional_imports():
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    if max_nodes < 1:
        raise InputError(f"max_nodes is {max_nodes}; show at least one node")
    file = None if path is None else checked_path(Path(path))
    excerpt = Excerpt.of(result, appearance.graph, max_nodes)
    kinds = appearance.kinds(excerpt.nodes)
    styles = appearance.styles(kinds)

    figure = Figure(figsize=SIZE, dpi=DPI, facecolor="white")
    FigureCanvasAgg(figure)
    axes = frame(figure, result, appearance, excerpt, styles, has_words)
    labels = labels_of(appearance.graph, excerpt, edge_labels)
    _draw_graph(axes, appearance, excerpt, [styles[int(kind)] for kind in kinds], labels)
    if file is not None:
        save(figure, file)
    return figure


def checked_path(path: Path) -> Path:
    """The path, if a picture may be written there.

    Raises:
        InputError: it does not end in a format that is known, or there is no such folder.
    """
    if path.suffix.lower().lstrip(".") not in FORMATS:
        raise InputError(f"cannot save a picture as {path.name!r}; let the name end in .png, .svg or .pdf")
    if not path.parent.is_dir():
        raise InputError(f"cannot save {path}: there is no folder {path.parent}")
    return path


def save(figure: Figure, path: Path) -> None:
    """Write the picture completely or not at all."""
    try:
        with atomic_write(path) as file:
            figure.savefig(file, format=path.suffix.lower().lstrip("."), dpi=DPI)
    except OSError as error:
        raise InputError(f"cannot save {path}: {error.strerror or error}") from error


# The rest of this file draws the graph itself. All lengths are in points.


def _draw_graph(
    axes: Axes, appearance: Appearance, excerpt: Excerpt, styles: Sequence[Style], labels: dict[int, str]
) -> None:
    names = _visible_names(appearance, excerpt)
    radius = _radii(excerpt, names)
    edited = excerpt.removed | excerpt.added
    longest = max((len(label) for line, label in labels.items() if edited[line]), default=0)
    room = min(max(18.0, 5.5 * longest), 80.0)
    points = _positions(excerpt, radius, (axes.get_xlim()[1], axes.get_ylim()[1]), room)
    lines = _lines(points, radius, excerpt.pairs)
    faint = _faint_nodes(excerpt)
    _draw_loops(axes, points, radius, excerpt.loops)
    _draw_lines(axes, lines, excerpt, bool(faint.any()))
    _draw_nodes(axes, points, radius, excerpt, styles, faint)
    lettering = Lettering(axes, points, radius, lines)
    lettering.avoid(_draw_stars(axes, points, radius, excerpt.changed), 5)
    lettering.names(appearance, excerpt, names, styles)
    # What is about edits gets the better places.
    lettering.edges({line: label for line, label in labels.items() if edited[line]}, excerpt)
    lettering.notes(excerpt.notes)
    lettering.edges({line: label for line, label in labels.items() if not edited[line]}, excerpt)


def _on_paths(excerpt: Excerpt) -> set[int]:
    """The targets, the nodes of edits, and those on the paths from these to a target."""
    leading = excerpt.pairs[excerpt.leading].ravel().tolist()
    return {*excerpt.targets.tolist(), *excerpt.ends.tolist(), *leading}


def _faint_nodes(excerpt: Excerpt) -> NDArray[np.bool_]:
    """Where there are many nodes and some are edited, which of them only show what is around these."""
    faint = np.full(len(excerpt.nodes), len(excerpt.nodes) > NAMED and len(excerpt.ends) > 0)
    faint[list(_on_paths(excerpt))] = False
    return faint


def _visible_names(appearance: Appearance, excerpt: Excerpt) -> dict[int, str]:
    """The names of the nodes that show one."""
    on_paths = _on_paths(excerpt)
    important = {*excerpt.targets.tolist(), *(on_paths if len(on_paths) <= NAMED else ())}
    names = {
        node: appearance.label(excerpt.nodes[node]) for node in range(len(excerpt.nodes)) if len(excerpt.nodes) <= NAMED
    }
    if max(map(len, names.values()), default=INSIDE + 1) <= INSIDE:
        return names
    return {node: appearance.label(excerpt.nodes[node]) for node in sorted(important)}


def _radii(excerpt: Excerpt, names: dict[int, str]) -> NDArray[np.float64]:
    """The radius of each node, including the ring of a target."""
    radius = np.full(len(excerpt.nodes), np.interp(len(excerpt.nodes), [NAMED, 200], [5.0, 3.2]))
    for node, name in names.items():
        radius[node] = max(9.0, 1.5 + 2.1 * len(name)) if len(name) <= INSIDE else 6.0
    for node in excerpt.targets:
        radius[node] = max(13.0, radius[node] + 2) + RING
    return radius


def _positions(
    excerpt: Excerpt, radius: NDArray[np.float64], size: tuple[float, float], length: float
) -> NDArray[np.float64]:
    """The positions of the nodes. If there is room, highlighted edges get at least this ``length``."""
    few_nodes = len(excerpt.nodes) <= NAMED
    marked = excerpt.pairs[excerpt.highlighted]
    few_marked = len(marked) <= NAMED
    apart = radius[:, None] + radius[None, :] + (5 if few_nodes else 2)
    # A removed or added edge must be visible between its nodes.
    first, second = marked.T
    apart[first, second] = apart[second, first] = apart[first, second] + (length if few_marked else 4)
    points = place(
        len(excerpt.nodes),
        excerpt.pairs,
        excerpt.centre,
        excerpt.ends if few_marked and not few_nodes else marked[:0, 0],
    )
    return fit(points, apart, size, margin=radius + 3, free=marked if few_marked else marked[:0], longest=110)


def _draw_loops(axes: Axes, points: NDArray[np.float64], radius: NDArray[np.float64], loops: NDArray[np.int64]) -> None:
    """Draw self-loops as small rings, on the side of the node that faces away from the middle of the drawing."""
    if len(loops):
        away = points[loops] - points.mean(axis=0) + [0, 1e-6]
        away *= (radius[loops] / np.linalg.norm(away, axis=1))[:, None]
        x, y = (points[loops] + away).T
        axes.scatter(x, y, s=(1.2 * radius[loops]) ** 2, facecolor="none", edgecolor=FAINT, zorder=1, gid="self-loops")


def _draw_lines(axes: Axes, lines: NDArray[np.float64], excerpt: Excerpt, is_faint: bool) -> None:
    from matplotlib.collections import LineCollection, PolyCollection

    edited = excerpt.removed | excerpt.added
    crowding = float(np.interp((~excerpt.highlighted).sum() + edited.sum(), [60, 800], [0, 1]))
    edit_crowding = float(np.interp(edited.sum(), [30, 200, 600], [0, 1, 1.25]))
    if edited.any():
        # A white rim sets edited edges apart from the lines they cross.
        rim = LineCollection(list(lines[edited]), color="white", linewidth=5.4 - 3 * edit_crowding, zorder=2)
        axes.add_collection(rim)
    leads = excerpt.leading[excerpt.role == OTHER] & is_faint
    thin, strength = 1.1 - 0.6 * crowding, (1 - 0.45 * crowding) * (FADED if is_faint else 1)
    quiet: dict[str, Any] = {
        "linewidth": [1.4 if is_leading else thin for is_leading in leads] or thin,
        "alpha": [1.0 if is_leading else strength for is_leading in leads] or strength,
    }
    width, head = 3 - 1.8 * edit_crowding, 9 - 4 * edit_crowding
    for name, role, colour, layer, look, size in (
        ("other-edges", OTHER, FAINT, 1, quiet, 5 - 1.5 * crowding),
        ("predicted-link", PREDICTED, INK, 2.5, {"linewidth": 1.6, "linestyle": DOTS}, 6.0),
        ("removed-edges", REMOVE, REMOVED, 3, {"linewidth": width, "linestyle": DASHES}, head),
        ("added-edges", ADD, NEW, 3, {"linewidth": width}, head),
    ):
        which = excerpt.role == role
        mine, arrows = lines[which].copy(), excerpt.arrows[which]
        if arrows.any():
            heads = _heads(mine[arrows], size)
            axes.add_collection(PolyCollection(list(heads), facecolor=colour, zorder=layer, gid=f"{name}-heads"))
            mine[arrows, 1] = heads[:, 1:].mean(axis=1)
        axes.add_collection(LineCollection(list(mine), color=colour, zorder=layer, gid=name, **look))


def _lines(points: NDArray[np.float64], radius: NDArray[np.float64], pairs: NDArray[np.int64]) -> NDArray[np.float64]:
    """The line of each pair, from the rim of one node to the rim of the other; parallel lines run side by side."""
    start, stop = points[pairs[:, 0]], points[pairs[:, 1]]
    length = np.maximum(np.linalg.norm(stop - start, axis=1, keepdims=True), 1e-9)
    along = (stop - start) / length
    inset = np.minimum(radius[pairs] + 1, 0.45 * length)
    start, stop = start + along * inset[:, :1], stop - along * inset[:, 1:]
    _, pair, count = np.unique(np.sort(pairs, axis=1), axis=0, return_inverse=True, return_counts=True)
    rank = np.empty(len(pairs), dtype=np.int64)
    order = np.argsort(pair, kind="stable")
    rank[order] = np.arange(len(pairs)) - np.repeat(np.cumsum(count) - count, count)
    aside = 6.0 * ((count[pair] - 1) / 2 - rank) * np.where(pairs[:, 0] < pairs[:, 1], 1, -1)
    shift = aside[:, None] * along[:, ::-1] * [1, -1]
    return np.stack([start + shift, stop + shift], axis=1)


def _heads(lines: NDArray[np.float64], size: float) -> NDArray[np.float64]:
    """A triangle at the end of each line: its tip, then its two back corners."""
    span = lines[:, 1] - lines[:, 0]
    along = size * span / np.maximum(np.linalg.norm(span, axis=1, keepdims=True), 1e-9)
    back, side = lines[:, 1] - along, 0.42 * along[:, ::-1] * [1, -1]
    return np.stack([lines[:, 1], back + side, back - side], axis=1)


def _draw_stars(
    axes: Axes, points: NDArray[np.float64], radius: NDArray[np.float64], changed: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Mark each node with a changed feature by a star; return where the stars are."""
    stars: NDArray[np.float64] = points[changed] + 0.85 * radius[changed, None]
    if len(changed):
        x, y = stars.T
        axes.scatter(x, y, s=110, marker=STAR, facecolor=NEW, edgecolor="white", linewidth=0.6, zorder=5, gid="changed")
    return stars


def _draw_nodes(
    axes: Axes,
    points: NDArray[np.float64],
    radius: NDArray[np.float64],
    excerpt: Excerpt,
    styles: Sequence[Style],
    faint: NDArray[np.bool_],
) -> None:
    x, y = points.T
    rings = excerpt.targets
    axes.scatter(
        x[rings],
        y[rings],
        s=(2 * radius[rings] - 2) ** 2,
        facecolor="white",
        edgecolor=INK,
        linewidth=2.4,
        zorder=3.5,
        gid="target",
    )
    size = radius.copy()
    size[rings] -= RING
    rim = np.full(len(points), INK)
    for nodes, colour in (
        (excerpt.changed, NEW),
        (excerpt.pairs[excerpt.added].ravel(), NEW),
        (excerpt.pairs[excerpt.removed].ravel(), REMOVED),
    ):
        rim[nodes] = colour
    for look, is_faint in sorted(set(zip(styles, faint.tolist(), strict=True))):
        colour, shape, factor = look
        mine = np.array([style == look for style in styles]) & (faint == is_faint)
        axes.scatter(
            x[mine],
            y[mine],
            s=(2 * size[mine] * factor) ** 2,
            marker=shape,
            facecolor=colour,
            edgecolors=rim[mine].tolist(),
            linewidths=np.where(rim[mine] != INK, np.minimum(1.8, size[mine] / 3.5), 0.6).tolist(),
            alpha=FADED if is_faint else 1,
            zorder=3.2 if is_faint else 4,
            gid="nodes",
        )
