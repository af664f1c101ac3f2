"""The look of classes: no two look alike, and none looks like an edit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from butfor.plotting.picture import draw
from butfor.plotting.style import COLOURS, NEW, REMOVED
from pictures import both_ways, legend, look_of, parts

if TYPE_CHECKING:
    from collections.abc import Callable

    from butfor import Counterfactual


def test_no_class_has_the_colour_of_an_edit() -> None:
    assert REMOVED not in COLOURS
    assert NEW not in COLOURS
    assert NEW != REMOVED


@pytest.mark.parametrize("num_classes", [9, 35, 100])
def test_many_classes_look_different(result_of: Callable[..., Counterfactual], num_classes: int) -> None:
    look = look_of(both_ways([(i, (i + 1) % 30) for i in range(30)]), 30, classes=num_classes)
    figure = draw(result_of(29, [(0, 29)], look), look)
    drawn = parts(figure, "nodes")
    looks = {(tuple(item.get_facecolor()[0]), item.get_paths()[0].vertices.tobytes()) for item in drawn}
    assert len(looks) == len(drawn) == min(num_classes, 30)
    names = legend(figure)
    assert look.kind_name(int(look.context.classes[29])) in names
    assert ("and 10 more" in names) == (num_classes > 20)
