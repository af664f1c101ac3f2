"""Draws the skeletal formula of a molecule: bonds, labels of atoms, and the names of those whose bonds are edited."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from butfor.plotting.molecules.coordinates import depict
from butfor.plotting.molecules.sketch import KINDS
from butfor.plotting.style import DASHES, INK, NEW, QUIET, REMOVED, plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from butfor.plotting.molecules.sketch import Pair, Sketch

__all__ = ["TRUTH", "Pen"]

# Colours of the elements, dark enough to be read on white. Vermilion is kept for what is removed.
ELEMENTS = {
    **dict.fromkeys(["N"], "#1f3fbf"),
    **dict.fromkeys(["O"], "#c1121f"),
    **dict.fromkeys(["S", "Se"], "#8a6d00"),
    **dict.fromkeys(["F", "Cl", "Br", "I"], "#1b7a2f"),
    **dict.fromkeys(["P", "B", "Si"], "#8b4a1c"),
    **dict.fromkeys(["Li", "Na", "K", "Mg", "Ca"], "#6a3d9a"),
    "H": QUIET,
    "C": INK,
}
TRUTH = "#ffe27a"

# The longest that a bond is drawn, in points; small molecules do not fill the page.
LONGEST = 52.0
# The size of letters in bonds, and its limits in points.
LETTER, SMALLEST, LARGEST = 0.38, 4.0, 15.0
# In bonds: how far apart the lines of a double bond are, and by how much the inner one is shorter at each end.
GAP, SHORTER = 0.17, 0.12
# The font that comes with matplotlib; not every font has subscript digits.
FONT = "DejaVu Sans"


class Pen:
    """Draws a sketch into axes. All lengths are in points, and positions are complex numbers."""

    def __init__(self, axes: Axes, sketch: Sketch, size: tuple[float, float]) -> None:
        from matplotlib.font_manager import FontProperties
        from matplotlib.textpath import TextToPath

        self.axes, self.sketch = axes, sketch
        flat, self.rings = depict(sketch.symbols, sketch.bonds, aspect=size[0] / size[1])
        span = np.ptp(flat, axis=0)
        # Labels at the sides stick out by about one bond.
        self.unit = float(min(LONGEST, size[0] / (span[0] + 2.4), size[1] / (span[1] + 1.4)))
        flat = (flat - (flat.max(axis=0) + flat.min(axis=0)) / 2) * self.unit + np.array(size) / 2
        self.points = flat[:, 0] + 1j * flat[:, 1]
        self.letter = float(np.clip(LETTER * self.unit, SMALLEST, LARGEST))
        self.font = FontProperties(family=FONT)
        # Where letters are, and half their width and height.
        self.letters: list[tuple[complex, complex]] = []
        self._measure = TextToPath().get_text_width_height_descent
        # A carbon without bonds has a label: there is no corner to show it.
        self.named = [symbol != "C" or not others for symbol, others in zip(sketch.symbols, sketch.near, strict=True)]

    def draw(self) -> None:
        """Draw highlights, then bonds, then labels."""
        from matplotlib.collections import LineCollection

        thin, thick = float(np.clip(0.038 * self.unit, 0.6, 1.6)), float(np.clip(0.075 * self.unit, 1.4, 3.2))
        lines: dict[str, list[Any]] = {
            name: [] for name in ("bonds", "removed-bonds", "aromatic", "rim", "added-bonds")
        }
        for pair, kind in self.sketch.bonds.items():
            drawn = self._lines(pair, kind)
            if pair in self.sketch.removed:
                lines["removed-bonds"] += drawn
                lines["rim"] += drawn
            else:
                lines["bonds"] += drawn[: 1 if kind == "aromatic" else 3]
                lines["aromatic"] += drawn[1:] if kind == "aromatic" else []
        for pair in self.sketch.added:
            lines["added-bonds"].append(self._curve(pair))
            lines["rim"].append(self._curve(pair))
        lines["truth-bonds"] = [self.points[list(pair)] for pair in self.sketch.truth]
        looks: dict[str, dict[str, Any]] = {
            "truth-bonds": {"color": TRUTH, "linewidth": 0.46 * self.unit, "zorder": 1},
            "bonds": {"color": INK, "linewidth": thin, "zorder": 2},
            "aromatic": {"color": INK, "linewidth": thin, "zorder": 2, "linestyle": (0, (3, 2))},
            "rim": {"color": "white", "linewidth": thick + 2, "zorder": 3, "capstyle": "butt"},
            "removed-bonds": {
                "color": REMOVED,
                "linewidth": thick,
                "zorder": 4,
                "linestyle": DASHES,
                "capstyle": "butt",
            },
            "added-bonds": {"color": NEW, "linewidth": thick, "zorder": 4},
        }
        for name, look in looks.items():
            if lines[name]:
                paths = [np.stack([line.real, line.imag], axis=1) for line in lines[name]]
                self.axes.add_collection(LineCollection(paths, gid=name, **{"capstyle": "round", **look}))
        taken = [
            self._label(atom) if named else [self.points[other] - self.points[atom] for other in self.sketch.near[atom]]
            for atom, named in enumerate(self.named)
        ]
        if not self.sketch.removed and not self.sketch.added:
            return
        share = np.linspace(0, 1, 40)
        every = chain.from_iterable(lines.values())
        dots = np.concatenate([line[:-1, None] + share * np.diff(line)[:, None] for line in every])
        for atom in sorted({atom for pair in (*self.sketch.removed, *self.sketch.added) for atom in pair}):
            self._name(atom, taken[atom], dots.ravel())

    def _lines(self, pair: Pair, kind: str) -> list[NDArray[np.complex128]]:
        """The lines of a bond, which leave space for the labels at its ends."""
        start, stop = self.points[list(pair)]
        along = (stop - start) / abs(stop - start) if abs(stop - start) > 1e-6 else 1 + 0j
        across = 1j * along
        # The lines of removed bonds are thicker.
        gap = GAP * self.unit * (1.25 if pair in self.sketch.removed else 1)
        ends = np.array([start + along * self._clear(pair[0], along), stop - along * self._clear(pair[1], -along)])
        side = self._inner_side(pair, along) if kind in ("double", "aromatic") else 0
        if KINDS[kind] == 1:
            return [ends]
        if KINDS[kind] == 3:
            return [ends, ends + across * gap, ends - across * gap]
        if side == 0:
            return [ends + across * gap / 2, ends - across * gap / 2]
        cut = np.array([0.0 if self.named[atom] or len(self.sketch.near[atom]) == 1 else SHORTER for atom in pair])
        return [ends, ends + across * gap * side + along * cut * [1, -1] * self.unit]

    def _inner_side(self, pair: Pair, along: complex) -> int:
        """The side of a double bond's second line: inside its ring, or where more neighbours are; 0 if on both."""
        here = self.points[list(pair)].mean()
        rings = [ring for ring in self.rings if set(pair) <= set(ring)]
        if rings:
            bonds = self.sketch.bonds

            def doubles(ring: tuple[int, ...]) -> int:
                return sum(KINDS[kind] == 2 for (u, v), kind in bonds.items() if u in ring and v in ring)

            best = max(rings, key=lambda ring: (len(ring) == 6, doubles(ring), -len(ring)))
            return 1 if ((self.points[list(best)].mean() - here) / along).imag > 0 else -1
        others = [[other for other in self.sketch.near[atom] if other not in pair] for atom in pair]
        sides = ((self.points[others[0] + others[1]] - here) / along).imag
        balance = int((sides > 0.1 * self.unit).sum()) - int((sides < -0.1 * self.unit).sum())
        if balance == 0 and not (others[0] and others[1]):
            return 0
        return 1 if balance >= 0 else -1

    def _curve(self, pair: Pair) -> NDArray[np.complex128]:
        """The line of an added bond, bent if a straight one would run over other atoms."""
        start, stop = self.points[list(pair)]
        others = np.delete(self.points, list(pair))
        at = np.linspace(0, 1, 41)
        best, most = np.array([start, stop]), -1.0
        for bend in (0.0, 0.15, -0.15, 0.3, -0.3, 0.5, -0.5):
            curve = start + (stop - start) * (at + 2 * 1j * bend * at * (1 - at))
            room = min(float(np.abs(curve[:, None] - others[None, :]).min(initial=np.inf)), 0.4 * self.unit)
            if room > most + 0.02 * self.unit:
                best, most = curve, room
        inset = [
            self._clear(atom, (other - here) / max(abs(other - here), 1e-9))
            for atom, here, other in ((pair[0], best[0], best[1]), (pair[1], best[-1], best[-2]))
        ]
        kept = (np.abs(best - start) >= inset[0]) & (np.abs(best - stop) >= inset[1])
        return best[kept] if kept.sum() > 1 else best

    def _width(self, words: str, size: float) -> float:
        self.font.set_size(size)
        return float(self._measure(words, self.font, ismath=False)[0])

    def _clear(self, atom: int, along: complex) -> float:
        """How far from the middle of an atom a bond in this direction begins."""
        if not self.named[atom]:
            return 0.0
        half = self._half(self.sketch.symbols[atom], self.letter)
        pad = 0.16 * self.letter + 0.4
        edge = min((half.real + pad) / max(abs(along.real), 1e-9), (half.imag + pad) / max(abs(along.imag), 1e-9))
        return min(edge, 0.42 * self.unit)

    def _name(self, atom: int, taken: list[complex], dots: NDArray[np.complex128]) -> None:
        """Write what an atom is called, small, where it covers no bond (these are given as ``dots``) and no letter.

        Where the element is written there already, only the rest of the name.
        """
        name, symbol = self.sketch.names[atom], self.sketch.symbols[atom]
        if self.named[atom]:
            name = name.removeprefix(symbol) or name
        here, size = self.points[atom], float(np.clip(0.6 * self.letter, 5.0, 8.0))
        half = self._half(name, size)
        letters, halves = np.array([place for place, _ in self.letters] or [np.inf]), [half for _, half in self.letters]

        def covered(spot: complex) -> int:
            on_bonds = _meets(dots - here - spot, half)
            return int(on_bonds.sum() + 100 * _meets(letters - here - spot, half + np.array(halves or [0j])).sum())

        # On ellipses around the atom, the nearest first.
        turns = np.exp(1j * np.pi * np.arange(24) / 12)
        own = self._half(symbol, self.letter) if self.named[atom] else 0j
        reach = [own + half + gap * (1 + 1j) for gap in (2.5, 5.0, 8.0)]
        spots = [complex(far.real * turn.real, far.imag * turn.imag) for far in reach for turn in turns]
        spot = min(spots, key=lambda spot: (covered(spot), -round(self._room(here, spot, taken), 2)))
        look = {"family": FONT, "ha": "center", "va": "center_baseline", **plain(INK)}
        self._write(here + spot, name, size, gid="name", **look)

    def _write(self, place: complex, words: str, size: float, **look: Any) -> None:
        self.axes.text(place.real, place.imag, words, size=size, zorder=6, **look)
        self.letters.append((place, self._half(words, size)))

    def _half(self, words: str, size: float) -> complex:
        """Half the width and the height of some letters."""
        return complex(self._width(words, size), 0.74 * size) / 2

    def _label(self, atom: int) -> list[complex]:
        """Write the symbol of an atom, its hydrogens on a free side, and its charge away from the bonds.

        Returns the directions that are taken by bonds and letters.
        """
        symbol, count = self.sketch.symbols[atom], self.sketch.hydrogens[atom]
        charge = self.sketch.charges[atom]
        here, size = self.points[atom], self.letter
        look = {"family": FONT, "ha": "center", "va": "center_baseline", **plain(ELEMENTS.get(symbol, INK))}
        lines = [self.points[other] - here for other in self.sketch.near[atom]]
        self._write(here, symbol, size, gid="atom", **look)
        if count:
            words = "H" + ("" if count == 1 else "".join(chr(0x2080 + int(digit)) for digit in str(count)))
            beside = (self._width(symbol, size) + self._width(words, size)) / 2
            spots = [complex(beside, 0), complex(-beside, 0), complex(0, -1.05 * size), complex(0, 1.05 * size)]
            if not lines and symbol not in ("C", "N", "P"):
                spots.reverse()  # H₂O, but NH₃
            spot = max(spots, key=lambda spot: (round(self._room(here, spot, lines), 2), -spots.index(spot)))
            lines.append(spot)
            self._write(here + spot, words, size, gid="hydrogens", **look)
        if charge:
            reach = 0.5 * self._width(symbol, size) + 0.36 * size
            spots = [reach * np.exp(1j * np.pi * turn / 4) for turn in (1, 3, -1, -3, 2, -2, 0, 4)]
            spot = max(spots, key=lambda spot: round(min(1.2, *(self._angle(spot, line) for line in lines)), 1))
            lines.append(spot)
            self._write(here + spot, "+" if charge > 0 else "−", 0.72 * size, gid="charge", **look)
        return lines

    def _room(self, here: complex, spot: complex, lines: Sequence[complex]) -> float:
        """How free a spot beside an atom is: the farther from its bonds and from other atoms, the higher."""
        angle = min((self._angle(spot, line) for line in lines), default=np.pi)
        gaps = np.abs(self.points - here - spot)
        nearest = float(gaps[np.abs(self.points - here) > 1e-6].min(initial=np.inf)) / self.unit
        return min(angle, 1.3) + 2 * min(nearest, 0.6) + 0.2 * (abs(spot.imag) < 1e-9)

    @staticmethod
    def _angle(first: complex, second: complex) -> float:
        return float(abs(np.angle(first * second.conjugate())))


def _meets(off: NDArray[np.complex128], half: complex | NDArray[np.complex128]) -> NDArray[np.bool_]:
    """Which of the boxes that are so far apart, of this half width and height together, come close to each other."""
    clear = 1.5
    sides = np.asarray(half)
    width, height = sides.real + clear, sides.imag + clear
    near: NDArray[np.bool_] = (np.abs(off.real) < width) & (np.abs(off.imag) < height)
    return near
