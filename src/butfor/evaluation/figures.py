"""Figures of a whole run: how large explanations are, and how close methods come to the proved bounds."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from butfor.boundary.extras import optional_imports
from butfor.errors import InputError
from butfor.plotting.style import COLOURS, DPI, FAINT, INK, QUIET, REMOVED, plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

__all__ = ["Frontier", "Histogram", "frontier", "size_histograms"]

# Sizes on the page, in inches.
PANEL, TITLE_LINE, LEGEND_LINE = (3.5, 3.1), 0.25, 0.2

# Up to SINGLE, every size has a bar of its own; beyond it, sizes share at most BARS bars.
SINGLE, BARS = 70, 50

# The looks of the methods; yellow and grey are too faint for lines. Curves often coincide, so solid lines are thin and
# dashed ones wide: of two methods that follow each other, the one beneath shows beside or between the one on top.
LINES = (COLOURS[4], COLOURS[5], COLOURS[2], COLOURS[3], COLOURS[0], REMOVED, INK)
BREAKS: tuple[tuple[float, ...], ...] = ((), (8, 3), (), (2.5, 2), (), (9, 2.5, 2.5, 2.5))
WIDTHS, BROKEN = (2.2, 1.3), 1.5
BOUND: dict[str, Any] = {"color": "#b4b4b4", "linewidth": 7}
PROVED, IMPOSSIBLE = "no method can be above (proved)", "#eaeaea"
# Sizes begin at 1; some space to the left of it shows the first step.
START = 0.85


@dataclass(frozen=True)
class Histogram:
    """The sizes of one method's counterfactuals on one dataset.

    Attributes:
        title: the title of the panel.
        sizes: the sizes of the counterfactuals found.
        total: the number of targets explained, with or without success.
        limit: where the axis of sizes ends.
    """

    title: str
    sizes: Sequence[int]
    total: int
    limit: float

    def __post_init__(self) -> None:
        _check_sizes(self.title, self.sizes, self.total)
        if not 1 <= self.limit < math.inf:
            raise InputError(f"{self.title}: the limit is {self.limit}; give a number of edges, 1 or more")


@dataclass(frozen=True)
class Frontier:
    """The sizes that several methods reach on one dataset, and what is proved about the smallest.

    Attributes:
        title: the title of the panel.
        total: the number of targets explained, with or without success.
        sizes: for each method, the sizes of the counterfactuals it found.
        bounds: for every target, a proved lower bound on the size of its counterfactuals; None where it is proved that
            there is no counterfactual.
    """

    title: str
    total: int
    sizes: Mapping[str, Sequence[int]]
    bounds: Sequence[float | None]

    def __post_init__(self) -> None:
        if len(self.bounds) != self.total:
            raise InputError(f"{self.title}: {len(self.bounds)} bounds for {self.total} targets; give one for each")
        limits = np.sort(self.proved)
        for method, sizes in self.sizes.items():
            _check_sizes(f"{self.title}, {method}", sizes, self.total)
            # The k-th smallest counterfactual cannot be smaller than the k-th smallest bound.
            if len(sizes) > len(limits) or (np.sort(sizes) < limits[: len(sizes)] - 1e-6).any():
                raise InputError(f"{self.title}, {method}: better than the bounds allow; are they of these targets?")

    @property
    def proved(self) -> NDArray[np.float64]:
        """The bounds of the targets that may have a counterfactual."""
        return np.array([bound for bound in self.bounds if bound is not None], dtype=np.float64)


def size_histograms(panels: Sequence[Histogram], title: str) -> Figure:
    """Draw histograms of the sizes of counterfactuals, one panel per dataset.

    They correspond to Figures 2 to 5 of the CF-GNNExplainer paper. Bars are shares of all counterfactuals found,
    including those larger than the panel's limit; a note says how many these are.

    Raises:
        InputError: matplotlib is not installed, or there is no panel.
    """
    figure, row = _page(len(panels), title)
    row[0].set_ylabel("proportion of counterfactuals", size=9, **plain(INK))
    for axes, panel in zip(row, panels, strict=True):
        sizes = np.asarray(panel.sizes, dtype=np.int64)
        width = _bar_width(panel.limit)
        edges = 0.5 + width * np.arange(math.ceil(panel.limit / width) + 1)
        found = f"{len(sizes)} of {panel.total} found"
        _frame(axes, panel.title, f"{found}, mean {sizes.mean():.2f}" if len(sizes) else found)
        axes.set(xlim=(0, edges[-1]), ylim=(0, 1))
        axes.locator_params(axis="x", integer=True, nbins=7)
        bins = "" if width == 1 else f", in bins of {width}"
        axes.set_xlabel(f"explanation size (edges removed{bins})", size=9, **plain(INK))
        if not len(sizes):
            _note(axes, "no counterfactuals found", (0.5, 0.5), ha="center", size=9)
            continue
        heights = np.histogram(sizes[sizes <= panel.limit], edges)[0] / len(sizes)
        axes.bar(edges[:-1], heights, width, align="edge", color=COLOURS[4], edgecolor="white", linewidth=0.3, zorder=2)
        if larger := int((sizes > panel.limit).sum()):
            # The note goes to the right unless a bar there is too tall; then those on the left are low.
            x, side = (0.985, "right") if heights[len(heights) // 2 :].max() < 0.85 else (0.015, "left")
            _note(axes, f"{larger} larger, up to {sizes.max()} →", (x, 0.96), ha=side, va="top", size=8)
    return figure


def frontier(panels: Sequence[Frontier], title: str) -> Figure:
    """Draw the share of all targets that each method explains with at most s edges, one panel per dataset.

    A method looks the same in all panels. No method can explain more targets with s edges than have a bound of at most
    s; the region above this share is shaded.

    Raises:
        InputError: matplotlib is not installed, or there is no panel.
    """
    figure, row = _page(len(panels), title)
    methods = list(dict.fromkeys(method for panel in panels for method in panel.sizes))
    looks = {method: _look(number, len(methods)) for number, method in enumerate(methods)}
    row[0].set_ylabel("share of all targets explained\nwith at most s edges", size=9, **plain(INK))
    for axes, panel in zip(row, panels, strict=True):
        end = 1.25 * max([4.0, *panel.proved, *(size for sizes in panel.sizes.values() for size in sizes)])
        _frame(axes, panel.title, f"{panel.total} targets")
        _size_axis(axes, end)
        bound = _steps(panel.proved, panel.total, end)
        axes.fill_between(*bound, 1, step="post", color=IMPOSSIBLE, linewidth=0, zorder=1)
        axes.step(*bound, where="post", solid_joinstyle="miter", zorder=2, label=PROVED, **BOUND)
        for layer, method in enumerate(methods, start=3):
            if method in panel.sizes:
                curve = _steps(panel.sizes[method], panel.total, end)
                axes.step(*curve, where="post", zorder=layer, label=method, **looks[method])
    _legend(figure, looks)
    return figure


def _check_sizes(where: str, sizes: Sequence[int], total: int) -> None:
    if len(sizes) > total:
        raise InputError(f"{where}: {len(sizes)} counterfactuals for {total} targets; give one for each at most")
    if len(sizes) and min(sizes) < 1:
        raise InputError(f"{where}: a counterfactual of size {min(sizes)}; it takes 1 edge at least")


def _page(number: int, title: str) -> tuple[Figure, list[Axes]]:
    """A figure that pyplot does not keep, and its row of panels."""
    with optional_imports():
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    if number == 0:
        raise InputError("there is nothing to draw; give one panel at least")
    # A single panel is wider, to make room for its title and legend.
    width = PANEL[0] * max(number, 1.5) + 0.5
    lines = textwrap.wrap(title, int(11 * width))
    size = (width, PANEL[1] + TITLE_LINE * len(lines))
    layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08, wspace=0.03)
    figure = Figure(figsize=size, dpi=DPI, facecolor="white", layout=layout)
    FigureCanvasAgg(figure)
    figure.suptitle("\n".join(lines), x=0.012, ha="left", size=11.5, **plain(INK))
    return figure, list(figure.subplots(1, number, sharey=True, squeeze=False)[0])


def _frame(axes: Axes, title: str, subtitle: str) -> None:
    axes.set_title(title, loc="left", size=10, weight="bold", pad=18, **plain(INK))
    _note(axes, subtitle, (0, 1), xytext=(0, 6), textcoords="offset points", size=8.5)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8, colors=QUIET)
    axes.grid(axis="y", color=FAINT, linewidth=0.5, alpha=0.5)
    axes.set_axisbelow(True)


def _note(axes: Axes, words: str, where: tuple[float, float], **look: Any) -> None:
    axes.annotate(words, where, xycoords="axes fraction", **look, **plain(QUIET))


def _bar_width(limit: float) -> int:
    """How many sizes share a bar: 1 if the limit is small, otherwise a round number."""
    if limit <= SINGLE:
        return 1
    round_numbers = (digits * 10**power // 10 for power in count() for digits in (10, 20, 25, 50))
    return next(int(width) for width in round_numbers if limit <= BARS * width)


def _look(number: int, total: int) -> dict[str, Any]:
    """The style of the line of one method out of ``total``."""
    pattern = BREAKS[number % len(BREAKS)]
    width = float(np.interp(number, [0, total], WIDTHS)) + (BROKEN if pattern else 0)
    # Matplotlib measures dashes in widths of the line; BREAKS are in points.
    style = (0, tuple(length / width for length in pattern)) if pattern else "-"
    return {"color": LINES[number % len(LINES)], "linewidth": width, "linestyle": style}


def _steps(sizes: Iterable[float], total: int, end: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A cumulative share as x, where it rises, and y, its new value, from the left edge of the axes to ``end``."""
    values, counts = np.unique(np.maximum(np.array([*sizes], dtype=np.float64), 1), return_counts=True)
    shares = np.cumsum(counts) / max(total, 1)
    return np.array([START, *values, end]), np.array([0, *shares, shares[-1] if len(shares) else 0])


def _size_axis(axes: Axes, end: float) -> None:
    # From 100 on, the labels are too long for three ticks per decade.
    ticks = [1, 2, 5, 10, 20, 50] + [digit * 10**power for power in range(2, 12) for digit in (1, 5)]
    ticks = [tick for tick in ticks if tick <= end]
    # Space above 1 for the wide lines that run along it.
    axes.set(xscale="log", xlim=(START, end), ylim=(-0.02, 1.03))
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("explanation size s (edges removed)", size=9, **plain(INK))


def _legend(figure: Figure, looks: Mapping[str, Mapping[str, Any]]) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    entries: list[tuple[Any, str]] = [(Line2D([], [], **look), method) for method, look in looks.items()]
    entries.append((Line2D([], [], **BOUND), PROVED))
    entries.append((Patch(color=IMPOSSIBLE), "proved impossible"))
    column = 0.75 + 0.068 * max(len(name) for _, name in entries)
    columns = min(len(entries), max(1, int(figure.get_figwidth() / column)))
    figure.set_figheight(figure.get_figheight() + LEGEND_LINE * math.ceil(len(entries) / columns))
    legend = figure.legend(
        handles=[handle for handle, _ in entries],
        # The names are set below, because matplotlib drops labels that begin with an underscore.
        labels=["-"] * len(entries),
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        fontsize=8.5,
        handlelength=4,
    )
    for text, (_, name) in zip(legend.get_texts(), entries, strict=True):
        text.set(text=name, **plain(INK))
