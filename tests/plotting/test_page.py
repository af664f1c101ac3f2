"""The page of a picture: title, legend and caption say everything and keep clear of the drawing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from butfor.plotting.picture import draw
from pictures import WHEEL, assert_everything_is_inside, both_ways, count, legend, look_of, tangle_with_a_tail, texts

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


@pytest.mark.parametrize("classes", [16, 30])
def test_the_legend_has_as_many_classes_as_there_is_room_for(result_of: Make, classes: int) -> None:
    names = [f"a class with a long name, which is number {label} of {classes}" for label in range(classes)]
    look = look_of(both_ways([(0, i) for i in range(1, 41)]), 41, classes=classes, names=names)
    figure = draw(result_of(0, [(0, 29)], look, note="Something that has to be said at some length. " * 8), look)
    assert_everything_is_inside(figure)
    listed = [entry for entry in legend(figure) if entry.startswith("a class")]
    (rest,) = [entry for entry in legend(figure) if entry.startswith("and ")]
    assert rest == f"and {classes - len(listed)} more"
    assert len(set(listed)) == len(listed) >= 2, "they can be told apart"
    assert legend(figure)[-3:] == ["node 0, the target", "removed edge", "other edge"]
    if classes == 30:
        assert any(f"number 29 of {classes}" in entry.replace("\n", " ") for entry in listed), "that of an edited node"


def test_a_long_target_name_is_shortened_in_its_middle(result_of: Make) -> None:
    look = look_of(WHEEL, 9)
    result = result_of(0, [(0, 1)], look, names=((0, "https://example.org/some/long/path/4711"),))
    figure = draw(result, look)
    assert_everything_is_inside(figure)
    (entry,) = [entry for entry in legend(figure) if entry.endswith("the target")]
    assert entry.startswith("node https")
    assert entry.endswith("path/4711,\nthe target")


def test_class_names_are_text_however_strange(result_of: Make) -> None:
    names = ["_hidden", "$x_1$ \\frac", "a" * 60, "per cent % & more"]
    look = look_of(WHEEL, 9, classes=4, names=names)
    result = result_of(0, [(0, 1)], look)
    figure = draw(result, look)
    figure.canvas.draw()
    assert texts(figure)[0] == str(result)
    assert legend(figure)[:4] == [
        "_hidden",
        "$x_1$ \\frac",
        "a" * 19 + "…" + "a" * 4 + "\n" + "a" * 16,
        "per cent % & more",
    ]


def test_the_caption_ends_with_the_note(result_of: Make) -> None:
    look = look_of(WHEEL, 9)
    result = result_of(0, [(0, 1)], look, note="The whole graph was searched.")
    assert texts(draw(result, look))[1] == f"{result.verdict} The whole graph was searched."


def test_the_caption_counts_what_is_left_out(result_of: Make) -> None:
    look = tangle_with_a_tail()
    result = result_of(0, [(0, 1), (398, 399)], look)
    figure = draw(result, look, max_nodes=90)
    shown = count(figure, "other-edges") + count(figure, "removed-edges")
    left = f"{result.edges - shown} of {result.edges} edges"
    assert f"Not shown: 310 of 400 nodes and {left}, the farthest from the target." in texts(figure)[1]
    assert "Not shown: 300 of 400 nodes" in texts(draw(result, look))[1], "unless another number is given"


def test_the_caption_counts_the_edits_that_are_left_out(result_of: Make) -> None:
    look = look_of([(i, 0) for i in range(1, 501)] + [(0, i) for i in range(1, 501)], 501)
    figure = draw(result_of(0, [(0, i) for i in range(1, 501)], look), look)
    assert "301 of 501 nodes, 301 of 500 edges and 301 of 500 removed edges" in texts(figure)[1]
