"""Results in a notebook: everything is escaped, and nothing sets a colour for text."""

from __future__ import annotations

from xml.etree import ElementTree

from butfor.result.html import card, table

EVIL = "<script>alert(1)</script> & \"quotes\" 'too' \x1b[31m"


def test_everything_is_escaped() -> None:
    pages = [card(EVIL, EVIL, EVIL, EVIL), table(EVIL, [EVIL, EVIL], [[EVIL, EVIL]], EVIL)]
    for page in pages:
        root = ElementTree.fromstring(page)
        assert not list(root.iter("script"))
        said = "".join(root.itertext())
        assert said.count("<script>alert(1)</script> & \"quotes\" 'too' \\x1b[31m") == (4 if page is pages[0] else 6)


def test_a_picture_is_kept_as_it_is() -> None:
    page = card("a sentence", "found", "a verdict", picture='<svg width="3"/>')
    assert ElementTree.fromstring(page).find(".//svg") is not None
    assert "<svg" not in card("a sentence", "found", "a verdict")


def test_the_text_has_the_colour_of_the_notebook() -> None:
    for page in (card("a", "b", "c", "d"), table("a", ["b"], [["c"]], "d")):
        assert "color" not in page
        assert "background" not in page
