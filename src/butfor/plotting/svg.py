"""A picture as a part of an HTML page."""

from __future__ import annotations

import hashlib
from io import BytesIO
from typing import TYPE_CHECKING
from xml.etree import ElementTree

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["inline_svg"]

SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
# What matplotlib says of all elements in a style sheet, which in a page would hold for the whole page.
STYLE = "stroke-linejoin: round; stroke-linecap: butt; max-width: 100%; height: auto; border-radius: 6px"


def inline_svg(figure: Figure, name: str) -> str:
    """The figure as an SVG element, which a screen reader reads as ``name``.

    The same picture gives the same text, so that a notebook does not change when it is run again. All ids begin with a
    hash of the picture: those of two pictures in one page do not clash.
    """
    import matplotlib

    salt = hashlib.sha256(name.encode()).hexdigest()[:12]
    file = BytesIO()
    # Letters are drawn as shapes: the widths that everything was placed by are those of matplotlib's own font.
    with matplotlib.rc_context({"svg.hashsalt": salt, "svg.fonttype": "path"}):
        figure.savefig(file, format="svg", metadata={"Date": None})
    root = ElementTree.fromstring(file.getvalue())
    _clean(root)
    salt = hashlib.sha256(ElementTree.tostring(root)).hexdigest()[:12]
    _rename(root, salt)
    root.set("role", "img")
    root.set("aria-label", name)
    root.set("style", STYLE)
    ElementTree.register_namespace("", SVG)
    ElementTree.register_namespace("xlink", XLINK)
    return ElementTree.tostring(root, encoding="unicode")


def _clean(root: ElementTree.Element) -> None:
    """Leave out what is about the file and not about the picture."""
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{{{SVG}}}metadata", f"{{{SVG}}}style"):
                parent.remove(child)


def _rename(root: ElementTree.Element, salt: str) -> None:
    for element in root.iter():
        for key, value in element.attrib.items():
            if key == "id":
                element.set(key, f"{salt}-{value}")
            elif key == f"{{{XLINK}}}href" and value.startswith("#"):
                element.set(key, f"#{salt}-{value[1:]}")
            elif "url(#" in value:
                element.set(key, value.replace("url(#", f"url(#{salt}-"))
