"""Words in a picture, each where it covers the least: names of nodes, labels of edges, notes about changed features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from butfor.boundary.printable import printable
from butfor.plotting.style import DARK, INK, NEW, QUIET, REMOVED, plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from butfor.plotting.appearance import Appearance
    from butfor.plotting.excerpt import Excerpt
    from butfor.plotting.style import Style

__all__ = ["INSIDE", "Lettering", "shortened"]

# An id with more letters than this is written beside its node instead of inside it, and shortened to LONGEST.
INSIDE, LONGEST = 5, 18
# The directions from a node in which a note about it may be placed, the best first.
DIRECTIONS = np.array([(1, 0), (-1, 0), (0, 1), (0, -1), (1, 0.6), (-1, 0.6), (1, -0.6), (-1, -0.6)])
# The same for its name: below it, if that is free.
BELOW_FIRST = np.array([(0, -1), (0, 1), (1, 0), (-1, 0)])
# Where along an edge its label may be placed, the best first, and how far from it.
ALONG = (0.5, 0.38, 0.62, 0.26, 0.74)
ASIDE = 3.0
# The height of a line, for letters of size 1.
HEIGHT = 1.35


def shortened(name: str, most: int = LONGEST) -> str:
    """A long name without its middle: names often differ in their ends."""
    return name if len(name) <= most else f"{name[: most // 2 - 1]}…{name[most // 2 - most :]}"


class Lettering:
    """Writes into axes, and remembers what is covered already. All lengths are in points."""

    def __init__(
        self, axes: Axes, points: NDArray[np.float64], radius: NDArray[np.float64], lines: NDArray[np.float64]
    ) -> None:
        self.axes, self.points, self.radius, self.lines = axes, points, radius, lines
        self.room = np.array([axes.get_xlim()[1], axes.get_ylim()[1]])
        self.boxes = [np.stack([points - radius[:, None], points + radius[:, None]], axis=1)]
        # Lines are represented by dots.
        along = np.linspace(0, 1, 30)[None, :, None]
        self.dots = (lines[:, None, 0] + along * (lines[:, 1] - lines[:, 0])[:, None]).reshape(-1, 2)

    def avoid(self, centres: NDArray[np.float64], half: float) -> None:
        """Keep later words away from these squares."""
        self.boxes.append(np.stack([centres - half, centres + half], axis=1))

    def names(
        self, appearance: Appearance, excerpt: Excerpt, names: Mapping[int, str], styles: Sequence[Style]
    ) -> None:
        """Write short ids inside their nodes and long ones beside, with the type of targets and nodes of edits."""
        targets = set(excerpt.targets.tolist())
        bold = targets | set(excerpt.ends.tolist())
        types = appearance.graph.types
        # The most important first: they get the best places.
        for node in sorted(names, key=lambda node: (node not in targets, node not in bold)):
            inside, beside = (names[node], "") if len(names[node]) <= INSIDE else ("", shortened(names[node]))
            if types is not None and node in bold:
                beside = f"{shortened(printable(types.local(excerpt.nodes[node])[0]))} {beside}".strip()
            look: dict[str, Any] = {"size": 8.5 if node in targets else 7, "zorder": 6}
            look["weight"] = "bold" if node in bold else "normal"
            if inside:
                ink = "white" if styles[node][0] in DARK else INK
                self._write(self.points[node], inside, gid="id", va="center_baseline", **look, **plain(ink))
            if beside:
                spots = self._beside(node, _half([beside], **look), BELOW_FIRST, 2)
                self._placed(spots, [beside], gid="type" if inside else "id", **look, **plain(INK))

    def edges(self, labels: Mapping[int, str], excerpt: Excerpt) -> None:
        """Write beside lines what they are called or carry."""
        edited = excerpt.removed | excerpt.added
        for line, label in labels.items():
            words = [label]
            look: dict[str, Any] = {"size": 7 if edited[line] else 6.5, "style": "italic", "zorder": 5}
            start, stop = self.lines[line]
            spots = [start + share * (stop - start) for share in ALONG]
            if edited[line]:  # the line is too thick to write on
                across = (stop - start)[::-1] * [-1, 1] / max(float(np.linalg.norm(stop - start)), 1e-9)
                aside = across * (np.abs(across) @ _half(words, **look) + ASIDE)
                spots = [spot + side * aside for spot in spots for side in (1, -1)]
            ink = QUIET if not edited[line] else NEW if excerpt.added[line] else REMOVED
            self._placed(spots, words, on_line=not edited[line], gid="edge-label", **look, **plain(ink))

    def notes(self, notes: Mapping[int, Sequence[str]]) -> None:
        """Write beside nodes what has changed there."""
        look: dict[str, Any] = {"size": 7.5, "zorder": 6, "gid": "note", "linespacing": 1.3}
        for node, note in notes.items():
            spots = self._beside(node, _half(note, look["size"]), DIRECTIONS, 5)
            self._placed(spots, note, **look, **plain(NEW))

    def _beside(
        self, node: int, half: NDArray[np.float64], directions: NDArray[np.float64], gap: float
    ) -> list[NDArray[np.float64]]:
        away = self.radius[node] + gap + half
        return [self.points[node] + away * direction for direction in directions]

    def _placed(
        self, spots: Iterable[NDArray[np.float64]], lines: Sequence[str], on_line: bool = False, **look: Any
    ) -> None:
        """Write at the spot where the least is covered; what is written ``on_line`` may cover lines."""
        half = _half(lines, look["size"], look.get("weight"), look.get("style"))
        taken = np.concatenate(self.boxes)

        def covers(spot: NDArray[np.float64]) -> float:
            low, high = spot - half, spot + half
            overlap = np.minimum(high, taken[:, 1]) - np.maximum(low, taken[:, 0])
            area = float(np.prod(np.clip(overlap, 0, None), axis=1).sum())
            out = float(np.clip(-low, 0, None).sum() + np.clip(high - self.room, 0, None).sum())
            dots = 0 if on_line else int(((self.dots > low) & (self.dots < high)).all(axis=1).sum())
            return area + 1000 * out + 4 * dots

        spot = min(spots, key=covers)
        self.boxes.append(np.stack([spot - half, spot + half])[None])
        self._write(spot, "\n".join(lines), va="center", path_effects=_halo(), **look)

    def _write(self, spot: NDArray[np.float64], words: str, **look: Any) -> None:
        self.axes.text(spot[0], spot[1], words, ha="center", **look)


def _half(lines: Sequence[str], size: float, weight: Any = None, style: Any = None, **_: Any) -> NDArray[np.float64]:
    """Half the width and height of some lines of text that look like this."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    font = FontProperties(size=size, weight=weight, style=style)
    width = max(TextToPath().get_text_width_height_descent(line, font, ismath=False)[0] for line in lines)
    return np.array([width, HEIGHT * size * len(lines)]) / 2


def _halo() -> list[Any]:
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=2.5, foreground="white")]
