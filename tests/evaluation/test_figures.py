"""Figures of runs: shares add up, nothing vanishes, and no text covers another."""

from __future__ import annotations

import io
import sys
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
import pytest
from matplotlib.text import Text

from butfor.errors import InputError
from butfor.evaluation.figures import BARS, PROVED, Frontier, Histogram, frontier, size_histograms

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BOUNDS = [1.0] * 30 + [2.0] * 40 + [3.5] * 10 + [None] * 20


def texts(figure: Figure) -> list[Text]:
    """All texts that are drawn."""
    figure.draw_without_rendering()
    hidden = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = axis.get_view_interval()
            hidden |= {tick.label1 for tick in axis.get_major_ticks() if not low <= tick.get_loc() <= high}
    return [text for text in figure.findobj(Text) if text.get_visible() and text.get_text() and text not in hidden]


def words(figure: Figure) -> str:
    return "\n".join(text.get_text() for text in texts(figure))


def bars(axes: Axes) -> dict[tuple[float, float], float]:
    """The height of each bar, by its two edges."""
    return {(bar.get_x(), bar.get_x() + bar.get_width()): bar.get_height() for bar in axes.patches}


def curve(axes: Axes, label: str) -> tuple[list[float], list[float]]:
    (line,) = (line for line in axes.get_lines() if line.get_label() == label)
    return line.get_xdata().tolist(), line.get_ydata().tolist()


def share(axes: Axes, label: str, size: float) -> float:
    x, y = curve(axes, label)
    return y[np.searchsorted(x, size, side="right") - 1]


def many_methods(number: int) -> dict[str, list[int]]:
    return {f"_method ${number}$ of many": [1] * 30 + [2] * 40 + [4] * number for number in range(number)}


def assert_apart(figure: Figure) -> None:
    """No two texts overlap, and all are on the page."""
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts(figure)]
    page = figure.bbox
    for written, box in boxes:
        assert page.x0 <= box.x0 < box.x1 <= page.x1, written
        assert page.y0 <= box.y0 < box.y1 <= page.y1, written
    for (one, a), (other, b) in combinations(boxes, 2):
        assert not a.overlaps(b), (one, other)


def test_small_sizes_have_a_bar_each_over_their_number() -> None:
    (axes,) = size_histograms([Histogram("Trees", [1, 1, 2, 20], 10, 20)], "Sizes").axes
    found = bars(axes)
    assert list(found) == [(size - 0.5, size + 0.5) for size in range(1, 21)]
    assert found[0.5, 1.5] == 0.5
    assert found[1.5, 2.5] == found[19.5, 20.5] == 0.25
    assert axes.get_ylim() == (0, 1)
    assert axes.get_xlim() == (0, 20.5)


@pytest.mark.parametrize("limit", [71, 100, 175, 600, 1000, 1500, 1680.5, 12345])
def test_large_limits_have_equal_bins_up_to_the_limit(limit: float) -> None:
    sizes = [1, 2, 60, int(limit)]
    (axes,) = size_histograms([Histogram("BA", sizes, 4, limit)], "Sizes").axes
    found = bars(axes)
    widths = {high - low for low, high in found}
    assert len(widths) == 1
    assert widths.pop() > 1
    assert 20 <= len(found) <= BARS
    assert sum(found.values()) == pytest.approx(1)
    assert limit <= axes.get_xlim()[1] <= 1.05 * limit + 1


def test_sizes_beyond_the_limit_are_counted_in_words_and_in_the_shares() -> None:
    figure = size_histograms([Histogram("BA", [5, 5, 1501, 1680], 6, 1500)], "Sizes")
    assert "2 larger, up to 1680" in words(figure)
    assert "4 of 6 found, mean 797.75" in words(figure)
    assert sum(bars(figure.axes[0]).values()) == 0.5


@pytest.mark.parametrize("size", [1, 4])
def test_the_note_avoids_a_tall_bar(size: int) -> None:
    figure = size_histograms([Histogram("Trees", [size] * 50 + [9], 60, 4)], "Sizes")
    figure.draw_without_rendering()
    (axes,) = figure.axes
    (note,) = (text for text in axes.texts if "larger" in text.get_text())
    box = note.get_window_extent()
    assert not any(bar.get_height() and bar.get_window_extent().overlaps(box) for bar in axes.patches)


def test_without_counterfactuals_a_panel_says_so() -> None:
    figure = size_histograms([Histogram("Trees", [], 12, 20), Histogram("BA", [1], 1, 20)], "Sizes")
    assert "no counterfactuals found" in words(figure)
    assert "0 of 12 found" in words(figure)
    assert not figure.axes[0].patches


def test_curves_are_shares_of_all_targets_up_to_the_right_edge() -> None:
    (axes,) = frontier([Frontier("Trees", 100, {"Fast": [2] * 10 + [300] * 30}, BOUNDS)], "Frontier").axes
    assert [share(axes, "Fast", size) for size in (1, 2, 299, 300)] == [0, 0.1, 0.1, 0.4]
    for label in ("Fast", PROVED):
        x, y = curve(axes, label)
        assert (x[0], x[-1]) == pytest.approx(axes.get_xlim())
        assert y[-1] == y[-2]
        assert all(before <= after for before, after in pairwise(y))
    assert [int(tick.get_text()) for tick in axes.get_xticklabels()] == [1, 2, 5, 10, 20, 50, 100]


def test_the_frontier_counts_the_targets_whose_bound_allows_a_size() -> None:
    (axes,) = frontier([Frontier("Trees", 100, {}, [0.0, *BOUNDS[1:]])], "Frontier").axes
    assert [share(axes, PROVED, size) for size in (0.9, 1, 2, 3, 3.5, 5)] == [0, 0.3, 0.7, 0.7, 0.8, 0.8]
    (shade,) = axes.collections
    corners = shade.get_paths()[0].vertices
    assert corners[:, 1].max() == 1
    # The shade begins where the line is: at 2.5 edges, above 0.7.
    assert shade.get_paths()[0].contains_points([(2.5, 0.71), (2.5, 0.69)]).tolist() == [True, False]


def test_a_method_looks_the_same_in_all_panels_and_unlike_all_others() -> None:
    methods = many_methods(9)
    reversed_methods = dict(reversed(methods.items()))
    panels = [Frontier("one", 100, methods, BOUNDS), Frontier("two", 100, reversed_methods, BOUNDS)]
    figure = frontier(panels, "Frontier")

    def looks(axes: Axes) -> dict[str, Any]:
        return {line.get_label(): (line.get_color(), line.get_linestyle()) for line in axes.get_lines()}

    one, two = map(looks, figure.axes)
    assert one == two
    assert len(set(one.values())) == len(methods) + 1
    (legend,) = figure.legends
    named = [text.get_text() for text in legend.get_texts()]
    assert named == [*methods, PROVED, "proved impossible"]


def test_a_panel_without_some_methods_or_without_any_counterfactual() -> None:
    panels = [Frontier("one", 3, {"A": [1], "B": []}, [1, 1, 2]), Frontier("none", 2, {"B": []}, [None, None])]
    left, right = frontier(panels, "Frontier").axes
    assert share(left, "B", 4) == share(right, "B", 4) == share(right, PROVED, 4) == 0
    assert [line.get_label() for line in right.get_lines()] == [PROVED, "B"]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_texts_do_not_overlap(number: int) -> None:
    title = "A title that takes more than one line " * 4
    assert_apart(frontier([Frontier("BA", 100, many_methods(9) | {"far": [1730]}, BOUNDS)] * number, title))
    assert_apart(size_histograms([Histogram("BA", [1, 700, 1501, 1680], 140, 1500)] * number, title))


def test_text_is_no_mathematics() -> None:
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        file = io.StringIO()
        frontier([Frontier("a $b_c$", 100, many_methods(2), BOUNDS)], "A $title").savefig(file, format="svg")
        size_histograms([Histogram("d $e_f$", [1], 1, 20)], "$x^2$").savefig(file, format="svg")
    for text in ("a $b_c$", "_method $1$ of many", "A $title", "d $e_f$", "$x^2$"):
        assert text in file.getvalue()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Histogram("Trees", [1, 2], 1, 20), "Trees: 2 counterfactuals for 1 targets"),
        (lambda: Histogram("Trees", [0], 1, 20), "size 0"),
        (lambda: Histogram("Trees", [1], 1, float("inf")), "limit is inf"),
        (lambda: Frontier("Trees", 3, {}, [1, 1]), "2 bounds for 3 targets"),
        (lambda: Frontier("Trees", 2, {"A": [1, 1]}, [1, 2]), "Trees, A: better than the bounds allow"),
        (lambda: Frontier("Trees", 2, {"A": [1, 1]}, [1, None]), "better than the bounds allow"),
        (lambda: size_histograms([], "Sizes"), "one panel at least"),
        (lambda: frontier([], "Frontier"), "one panel at least"),
    ],
)
def test_what_cannot_be_is_refused(make: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        make()


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    with pytest.raises(InputError, match=r"butfor\[plot\]"):
        size_histograms([Histogram("Trees", [1], 1, 20)], "Sizes")
