"""A picture as a part of an HTML page."""

from __future__ import annotations

import hashlib
import re
from io import BytesIO
from typing import TYPE_CHECKING
from xml.etree import ElementTree

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["inline_svg"]

SVG, XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"
# What matplotlib says of all elements in a style sheet, which in a page would hold for the whole page.
STYLE = "stroke-linejoin: round; stroke-linecap: butt; max-width: 100%; height: auto; border-radius: 6px"


def inline_svg(figure: Figure, name: str) -> str:
    """The figure as an SVG element, which a screen reader reads as ``name``.

    The same picture gives the same text, so that a notebook does not change when it is run again. All ids begin with a
    hash of the picture: those of two pictures in one page do not clash.
    """
    import matplotlib

    file = BytesIO()
    # Letters are drawn as shapes: the widths that everything was placed by are those of matplotlib's own font.
    with matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "path"}):
        figure.savefig(file, format="svg", metadata={"Date": None})
    root = ElementTree.fromstring(file.getvalue())
    for element in list(root.iter()):
        for child in list(element):
            if child.tag in (f"{SVG}metadata", f"{SVG}style"):
                element.remove(child)
        element.tag = element.tag.removeprefix(SVG)
        element.attrib = {key.removeprefix(XLINK): value for key, value in element.attrib.items()}
    # matplotlib's own ids contain addresses in memory, and differ each time.
    _rename(root, "")
    _rename(root, hashlib.sha256(ElementTree.tostring(root)).hexdigest()[:12])
    root.attrib |= {"xmlns": SVG.strip("{}"), "role": "img", "aria-label": name, "style": STYLE}
    return ElementTree.tostring(root, encoding="unicode")


def _rename(root: ElementTree.Element, prefix: str) -> None:
    """Number the ids that are referred to, and leave out the others."""
    text = ElementTree.tostring(root, encoding="unicode")
    referred = dict.fromkeys(one or other for one, other in re.findall(r' href="#([^"]+)"|url\(#([^)]+)\)', text))
    ids = {old: f"{prefix}-{number}" for number, old in enumerate(referred)}
    for element in root.iter():
        if (own := element.attrib.pop("id", None)) in ids:
            element.set("id", ids[own])
        for key, value in element.attrib.items():
            if key == "href":
                element.set(key, f"#{ids[value[1:]]}")
            elif value.startswith("url(#"):
                element.set(key, f"url(#{ids[value[5:-1]]})")
