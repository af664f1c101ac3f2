"""The page of a picture: title, legend and caption say everything and keep clear of the drawing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from butfor.plotting.picture import draw
from pictures import WHEEL, assert_everything_is_inside, count, legend, look_of, tangle_with_a_tail, texts

if TYPE_CHECKING:
    from collections.abc import Callable

    from butfor import Counterfactual

    Make = Callable[..., Counterfactual]


def test_nothing_overlaps(real: Counterfactual, result_of: Make) -> None:
    assert_everything_is_inside(real.plot())
    for names in (["a rather long name of a class", "b" * 80], ["word " * 500, "b" * 2000]):
        look = look_of(WHEEL, 9, names=names)
        assert_everything_is_inside(draw(result_of(0, [(0, 1)], look), look))
    look = tangle_with_a_tail()
    assert_everything_is_inside(draw(result_of(0, [(0, 1)], look), look))


def test_class_names_are_text_however_strange(result_of: Make) -> None:
    names = ["_hidden", "$x_1$ \\frac", "a" * 60, "per cent % & more"]
    look = look_of(WHEEL, 9, classes=4, names=names)
    result = result_of(0, [(0, 1)], look)
    figure = draw(result, look)
    figure.canvas.draw()
    assert texts(figure)[0] == str(result)
    assert legend(figure)[:4] == ["_hidden", "$x_1$ \\frac", "a" * 23 + "…", "per cent % & more"]


def test_the_caption_ends_with_the_note(result_of: Make) -> None:
    look = look_of(WHEEL, 9)
    result = result_of(0, [(0, 1)], look, note="The whole graph was searched.")
    assert texts(draw(result, look))[1] == f"{result.verdict} The whole graph was searched."


def test_the_caption_counts_what_is_left_out(result_of: Make) -> None:
    look = tangle_with_a_tail()
    result = result_of(0, [(0, 1), (398, 399)], look)
    figure = draw(result, look, max_nodes=120)
    shown = count(figure, "other-edges") + count(figure, "removed-edges")
    assert (
        f"Showing 120 of 400 nodes and {shown} of {result.edges} edges, nearest the target first." in texts(figure)[1]
    )
    assert "Showing 200 of 400 nodes" in texts(draw(result, look))[1], "unless another number is given"


def test_the_caption_counts_the_edits_that_are_left_out(result_of: Make) -> None:
    look = look_of([(i, 0) for i in range(1, 501)] + [(0, i) for i in range(1, 501)], 501)
    figure = draw(result_of(0, [(0, i) for i in range(1, 501)], look), look)
    assert "199 of 500 edges and 199 of 500 removed edges" in texts(figure)[1]
