"""A picture of one molecule, as chemists draw it, with the bonds that decide its class."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from butfor.boundary.extras import optional_imports
from butfor.plotting.molecules.pen import TRUTH, Pen
from butfor.plotting.molecules.sketch import Sketch
from butfor.plotting.page import extent, paragraph
from butfor.plotting.picture import checked_path, save
from butfor.plotting.style import DASHES, DPI, EDGE_OF_PAGE, INK, NEW, QUIET, REMOVED, SIZE

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from butfor.plotting.molecules.sketch import Pair

__all__ = ["draw_molecule"]


def draw_molecule(
    symbols: Sequence[str],
    bonds: Sequence[tuple[int, int, str]],
    *,
    removed: Collection[Pair] = (),
    added: Collection[Pair] = (),
    truth: Collection[Pair] = (),
    names: Sequence[str] | None = None,
    title: str = "",
    caption: str = "",
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """Draw the skeletal formula of a molecule: carbons are corners, hydrogens are part of their neighbour's label.

    A hydrogen is drawn as an atom of its own where one of its bonds is marked. Charges are shown where they follow
    from the bonds: plus on a nitrogen with four, minus on the oxygen beside it with one. Coordinates come from RDKit
    (``pip install 'butfor[molecules]'``); without it, the molecule is laid out like any other graph. The same
    molecule gives the same picture.

    Args:
        symbols: the element of each atom; any text will do.
        bonds: two atoms and the kind of each bond: "single", "double", "triple", "aromatic", or "" if unknown. A
            bond may be given in both directions.
        removed: bonds that the counterfactual deletes.
        added: bonds that it adds; they do not influence where the atoms stand.
        truth: bonds known to matter, highlighted.
        names: what atoms are called; by default their numbers. Those of removed and added bonds show it.
        title: text above the molecule.
        caption: text below it.
        path: file to save the picture in; its name ends in .png, .svg or .pdf.

    Returns:
        A figure that pyplot does not manage, so there is nothing to close.

    Raises:
        InputError: matplotlib is not installed, the picture cannot be saved there, or atoms and bonds
            contradict each other.
    """
    with optional_imports():
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    file = None if path is None else checked_path(Path(path))
    sketch = Sketch.of(symbols, bonds, removed=removed, added=added, truth=truth, names=names)
    figure = Figure(figsize=SIZE, dpi=DPI, facecolor="white")
    FigureCanvasAgg(figure)
    axes, size = _frame(figure, sketch, title, caption)
    Pen(axes, sketch, size).draw()
    if file is not None:
        save(figure, file)
    return figure


def _frame(figure: Figure, sketch: Sketch, title: str, caption: str) -> tuple[Axes, tuple[float, float]]:
    """Write title, caption and legend; return axes for the molecule, with points as coordinates, and their size."""
    from matplotlib.lines import Line2D

    width, height = SIZE[0] * 72, SIZE[1] * 72
    top, bottom, right = height - EDGE_OF_PAGE, EDGE_OF_PAGE, width - EDGE_OF_PAGE
    if title:
        top -= extent(figure, paragraph(figure, title, 11.5, INK, y=top, va="top"))[1] + 8
    if sketch.loose:
        counted = ", ".join(f"{count} {symbol}" for symbol, count in sketch.loose.items())
        caption = f"{caption} Atoms without bonds, not drawn: {counted}.".strip()
    if caption:
        bottom += extent(figure, paragraph(figure, caption, 8, QUIET, y=bottom, va="bottom"))[1] + 8
    entries: list[tuple[list[Pair], str, dict[str, Any]]] = [
        (sketch.removed, "removed bond", {"color": REMOVED, "linewidth": 2.6, "linestyle": DASHES}),
        (sketch.added, "added bond", {"color": NEW, "linewidth": 2.6}),
        (sketch.truth, "ground truth", {"color": TRUTH, "linewidth": 9, "solid_capstyle": "butt"}),
    ]
    entries = [entry for entry in entries if entry[0]]
    if entries:
        legend = figure.legend(
            handles=[Line2D([], [], **look) for _, _, look in entries],
            labels=[name for _, name, _ in entries],
            loc="upper right",
            bbox_to_anchor=(right / width, top / height),
            borderaxespad=0,
            frameon=False,
            fontsize=8.5,
            labelcolor=INK,
            alignment="left",
            handlelength=2.4,
        )
        right -= extent(figure, legend)[0] + 10
    size = (right - EDGE_OF_PAGE, top - bottom)
    axes = figure.add_axes((EDGE_OF_PAGE / width, bottom / height, size[0] / width, size[1] / height))
    axes.set(xlim=(0, size[0]), ylim=(0, size[1]), aspect="equal")
    axes.set_axis_off()
    return axes, size
