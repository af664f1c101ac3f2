"""Pictures as parts of a page: nothing leaks out of them, and two do not clash."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from butfor.plotting.picture import draw
from butfor.plotting.svg import inline_svg
from pictures import WHEEL, look_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from butfor import Counterfactual

    Make = Callable[..., Counterfactual]


def drawn(result_of: Make, removed: tuple[int, int]) -> str:
    look = look_of(WHEEL, 9)
    return inline_svg(draw(result_of(0, [removed], look), look, has_words=False), "a <name> & more")


def ids(svg: str) -> set[str]:
    return set(re.findall(r'\bid="([^"]+)"', svg))


def test_the_same_picture_gives_the_same_text(result_of: Make) -> None:
    assert drawn(result_of, (0, 1)) == drawn(result_of, (0, 1))


def test_ids_of_two_pictures_are_different_and_every_reference_holds(result_of: Make) -> None:
    first, second = drawn(result_of, (0, 1)), drawn(result_of, (0, 2))
    assert ids(first)
    assert not ids(first) & ids(second)
    for svg in (first, second):
        referred = set(re.findall(r'href="#([^"]+)"', svg)) | set(re.findall(r"url\(#([^)]+)\)", svg))
        assert referred
        assert referred <= ids(svg)


def test_it_is_one_element_without_styles_for_others(result_of: Make) -> None:
    svg = drawn(result_of, (0, 1))
    root = ElementTree.fromstring(svg)
    assert root.tag.endswith("svg")
    assert root.get("role") == "img"
    assert root.get("aria-label") == "a <name> & more"
    assert not {"style", "metadata", "script"} & {element.tag.split("}")[1] for element in root.iter()}
    assert svg.startswith("<svg")
