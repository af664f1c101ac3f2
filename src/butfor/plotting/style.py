"""The look of all pictures: sizes, colours, and how classes and node types are told apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "COLOURS",
    "DARK",
    "DASHES",
    "DOTS",
    "DPI",
    "EDGE_OF_PAGE",
    "FAINT",
    "INK",
    "NEW",
    "QUIET",
    "REMOVED",
    "RING",
    "SHAPES",
    "SIZE",
    "STAR",
    "Style",
    "plain",
    "plain_style",
    "styles_of",
    "styles_of_classes_of_a_type",
    "styles_of_types",
]

# The size of a picture in inches, and dots per inch. All other lengths, and the coordinates of the axes, are in points
# (1/72 inch).
SIZE = (8.0, 6.0)
DPI = 150
EDGE_OF_PAGE = 16.0
# The room for the ring around the target.
RING = 5.0

INK, QUIET, FAINT = "#222222", "#555555", "#a9a9a9"

# Okabe and Ito's colours, safe for the colour-blind. Vermilion is reserved for what is removed. If there are more
# classes than colours, they are told apart by shape. Each shape comes with the factor that makes it look as large as
# the circle.
REMOVED = "#d55e00"
DASHES = (0, (2.2, 0.9))
COLOURS = ("#56b4e9", "#f0e442", "#009e73", "#cc79a7", "#0072b2", "#e69f00", "#b3b3b3")
DARK = ("#009e73", "#0072b2")
SHAPES = (("o", 1.0), ("s", 0.88), ("D", 0.78), ("h", 1.08), ("^", 1.15))

# What is new has a colour that no class has. An added edge is a solid line, a removed edge is dashed, and the link that
# is explained is dotted, so that the three differ even without colours. A changed feature is a star.
NEW = "#6a3d9a"
DOTS = (0, (1, 1.5))
STAR = "*"

# The look of a class: its colour, its shape, and the factor of the shape.
Style = tuple[str, str, float]

# A node without a predicted class.
NO_CLASS: Style = ("#e8e8e8", "o", 1.0)


def styles_of(classes: NDArray[np.int64], num_classes: int) -> dict[int, Style]:
    """A style for each class that occurs. It depends on the class's number, so that all pictures of a model agree."""
    present = [int(label) for label in np.unique(classes) if label >= 0]
    nothing = {-1: NO_CLASS} if (classes < 0).any() else {}
    every = len(COLOURS) * len(SHAPES)
    looks = present if num_classes <= every else range(len(present))
    return nothing | {
        label: (COLOURS[look % len(COLOURS)], *SHAPES[look // len(COLOURS) % len(SHAPES)])
        for label, look in zip(present, looks, strict=True)
    }


def styles_of_types(types: NDArray[np.int64]) -> dict[int, Style]:
    """A style for each node type that occurs: there are few, so both colour and shape tell them apart."""
    return {int(kind): (COLOURS[kind % len(COLOURS)], *SHAPES[kind % len(SHAPES)]) for kind in np.unique(types)}


def plain_style(kind: int, blank: bool = False) -> Style:
    """The look of a type where colours are for classes: its shape, grey, or white to stand for any class."""
    return ("white" if blank else NO_CLASS[0], *SHAPES[kind % len(SHAPES)])


def styles_of_classes_of_a_type(classes: NDArray[np.int64], kind: int, num_classes: int) -> dict[int, Style]:
    """A style for each class that occurs, in the shape of the type: colours, and the same lighter if there are many."""
    colours = [*COLOURS, *map(_lighter, COLOURS)]
    looks = classes if num_classes <= len(colours) else range(len(classes))
    return {
        int(label): (colours[look % len(colours)], *SHAPES[kind % len(SHAPES)])
        for label, look in zip(classes, looks, strict=True)
    }


def _lighter(colour: str) -> str:
    """A colour mixed with white."""
    return "#" + "".join(f"{(int(colour[at : at + 2], 16) + 255) // 2:02x}" for at in (1, 3, 5))


def plain(colour: str) -> dict[str, Any]:
    """The style of text that is not to be read as mathematics: a class may be called "$5_to_10$"."""
    return {"color": colour, "parse_math": False, "usetex": False}
