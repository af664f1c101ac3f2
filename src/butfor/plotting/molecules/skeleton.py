"""Where the atoms of a molecule stand: rings as regular polygons, chains as zigzags, nothing on top of each other.

Points are complex numbers and one bond is one unit long. No random numbers: the same molecule gives
the same drawing.
"""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from butfor.plotting.molecules.polycycles import crossings, place_rings, widest_gap
from butfor.plotting.molecules.rings import ring_systems

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from butfor.plotting.molecules.rings import Ring

    Points = NDArray[np.complex128]

__all__ = ["lay_out"]

TURN = np.pi / 3
# Two atoms without a bond between them should not come closer than this.
APART = 0.95
# Bends tried where mirroring does not help, in radians.
BENDS = (np.pi / 12, -np.pi / 12, np.pi / 6, -np.pi / 6, np.pi / 3, -np.pi / 3)
# How often a drawing is gone through, and how many pairs of atoms are compared in all.
ROUNDS = 6
PAIRS = 20_000_000
# Between parts that no bond joins.
ROOM = 1.5


def lay_out(
    near: Sequence[Sequence[int]], rings: Sequence[Ring], straight: Collection[int], aspect: float
) -> NDArray[np.float64]:
    """A position for each atom, in units of one bond.

    Args:
        near: the neighbours of each atom.
        rings: as `smallest_rings` finds them.
        straight: the atoms at which a chain is not bent, as at a triple bond.
        aspect: width over height of the room there is.
    """
    points = np.zeros(len(near), dtype=np.complex128)
    systems = [place_rings(system, near) for system in ring_systems(rings)]
    parts = []
    left = set(range(len(near)))
    while left:
        part = _Part(near, systems, straight, min(left))
        left -= set(part.order)
        part.place()
        part.untangle()
        points[part.order] = _turned(part.points[part.order] / part.grain(), aspect)
        parts.append(part.order)
    _side_by_side(points, sorted(parts, key=lambda part: (-len(part), part[0])), aspect)
    return np.stack([points.real, points.imag], axis=1)


class _Part:
    """The drawing of one connected part, as it grows."""

    def __init__(
        self,
        near: Sequence[Sequence[int]],
        systems: Sequence[dict[int, complex]],
        straight: Collection[int],
        atom: int,
    ) -> None:
        self.near, self.straight = near, straight
        members = _breadth_first(near, atom)[0]
        mine = [system for system in systems if not system.keys().isdisjoint(members)]
        self.wheels = sorted(mine, key=lambda system: (-len(system), min(system)))
        self.wheels_at: dict[int, list[dict[int, complex]]] = {}
        for system in self.wheels:
            for member in system:
                self.wheels_at.setdefault(member, []).append(system)
        # The largest ring system is the middle of the drawing; without rings, an end of the longest chain is its start.
        if self.wheels:
            self.start = min(self.wheels[0])
        else:
            self.start = _breadth_first(near, members[-1])[0][-1]
        self.order, self.before = _breadth_first(near, self.start)
        self.depth = dict.fromkeys(self.order, 0)
        for atom in reversed(self.order[1:]):
            above = self.before[atom]
            self.depth[above] = max(self.depth[above], self.depth[atom] + 1)
        self.points = np.zeros(len(near), dtype=np.complex128)
        self.placed: set[int] = set()

    def place(self) -> None:
        """Begin in the middle and go outwards."""
        self.placed.add(self.start)
        # The second number says to which side a chain turns next.
        queue = deque([(self.start, 1)])
        if self.wheels:
            largest = self.wheels[0]
            self.points[list(largest)] = list(largest.values())
            self.placed |= largest.keys()
            queue = deque((atom, 1) for atom in largest)
        while queue:
            queue.extend(self._surround(*queue.popleft()))

    def _surround(self, atom: int, side: int) -> list[tuple[int, int]]:
        """Give a place to all neighbours of an atom that have none."""
        here = self.points[atom]
        taken = sorted(float(np.angle(self.points[other] - here)) for other in self.near[atom] if other in self.placed)
        wheels = [wheel for wheel in self.wheels_at.get(atom, []) if not wheel.keys() <= self.placed]
        inside = {member for wheel in self.wheels_at.get(atom, []) for member in wheel}
        chains = sorted(set(self.near[atom]) - self.placed - inside, key=lambda other: (-self.depth[other], other))
        if not wheels and not chains:
            return []
        begin, gap = self._free_side(atom, taken)
        count = len(chains) + len(wheels)
        widths = [_sector(wheel, atom, self.near)[1] for wheel in wheels]
        step = (gap - sum(widths)) / (count + bool(taken))
        if len(taken) <= 1 and count + len(taken) == 2 and not wheels:
            # A chain is bent by 60 degrees, unless two double bonds or a triple bond keep it straight.
            step = np.pi if atom in self.straight else np.pi + side * TURN
        slots = [begin + step * (index + bool(taken)) for index in range(len(chains))]
        if len(taken) == 1 and not wheels:
            # The longest branch goes on with the zigzag; at a cross of four it goes straight on.
            wanted = begin + np.pi + (side * TURN if count < 3 else 0)
            slots.sort(key=lambda slot: round(abs(np.angle(np.exp(1j * (slot - wanted)))), 6))
        following = []
        for other, slot in zip(chains, slots, strict=True):
            self.points[other] = here + np.exp(1j * slot)
            self.placed.add(other)
            turned = np.angle(np.exp(1j * (slot - begin - np.pi))) if len(taken) == 1 else 0.0
            following.append((other, side if abs(turned) < 0.1 else -int(np.sign(turned))))
        angle = begin + step * (len(chains) + bool(taken))
        for wheel, width in zip(wheels, widths, strict=True):
            first = _sector(wheel, atom, self.near)[0]
            for member, point in wheel.items():
                if member not in self.placed:
                    self.points[member] = here + (point - wheel[atom]) * np.exp(1j * (angle - first))
                    following.append((member, 1))
            self.placed |= wheel.keys()
            angle += width + step
        return following

    def _free_side(self, atom: int, taken: Sequence[float]) -> tuple[float, float]:
        """As `widest_gap`; of gaps that are equal the one that leads away from the rest, not into a ring."""
        begin, gap = widest_gap(taken)
        others = self.points[sorted(self.placed - {atom})]
        crowd = np.inf
        for first, last in pairwise([*taken, *(angle + 2 * np.pi for angle in taken[:1])]):
            spot = self.points[atom] + np.exp(1j * (first + last) / 2)
            found = round(float((1 / np.maximum(np.abs(others - spot), 0.1) ** 2).sum()), 6)
            if last - first > gap - 0.2 and found < crowd:
                begin, gap, crowd = first, last - first, found
        return begin, gap

    def untangle(self) -> None:
        """Mirror branches, then bend them, until nothing lies on anything else."""
        atoms = np.array(self.order)
        index = {atom: position for position, atom in enumerate(self.order)}
        points = self.points[atoms]
        pairs = [(index[u], index[v]) for u in self.order for v in self.near[u] if u < v]
        bonds = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        joined = np.eye(len(atoms), dtype=bool)
        joined[bonds[:, 0], bonds[:, 1]] = joined[bonds[:, 1], bonds[:, 0]] = True
        branches = self._branches(index)
        budget = PAIRS // max(1, len(atoms)) ** 2
        for moves in ((np.nan,), (np.nan, *BENDS)):
            for _ in range(ROUNDS):
                moved = False
                busy = _in_the_way(points, bonds, joined) if len(moves) > 1 else None
                for root, ends, below in branches:
                    axis = points[ends].mean() - points[root]
                    if abs(axis) < 1e-6 or (busy is not None and not (busy[below].any() and busy[~below].any())):
                        continue
                    rest = _trouble(points, bonds, joined, below)
                    for move in moves:
                        if budget <= 0:
                            break
                        budget -= 1
                        away = points[below] - points[root]
                        turned = (away / axis).conj() * axis if np.isnan(move) else away * np.exp(1j * move)
                        tried = points.copy()
                        tried[below] = points[root] + turned
                        cost = 0 if np.isnan(move) else 0.15 * (abs(move) / BENDS[0])
                        trouble = _trouble(tried, bonds, joined, below) + cost
                        if trouble < rest - 1e-6:
                            points, rest, moved = tried, trouble - cost, True
                            axis = points[ends].mean() - points[root]
                if not moved:
                    break
        self.points[atoms] = points

    def grain(self) -> complex:
        """The direction of most bonds, up to turns by 30 degrees."""
        bonds = np.array([self.points[v] - self.points[u] for u in self.order for v in self.near[u] if u < v])
        if len(bonds) == 0:
            return 1.0
        # The twelfth power takes a turn by 30 degrees to no turn.
        twelfth = (bonds / np.maximum(np.abs(bonds), 1e-9)) ** 12
        alike = (np.abs(twelfth[:, None] - twelfth[None, :]) < 0.2).sum(axis=1)
        return complex(np.exp(1j * np.angle(twelfth[alike.argmax()]) / 12))

    def _branches(self, index: dict[int, int]) -> list[tuple[int, list[int], NDArray[np.bool_]]]:
        """What can be moved by itself: the atom on which it hangs, its neighbours there, and all its atoms."""
        below = {atom: np.zeros(len(index), dtype=bool) for atom in self.order}
        found = []
        for atom in reversed(self.order[1:]):
            above = self.before[atom]
            below[atom][index[atom]] = True
            below[above] |= below[atom]
            if not any(above in wheel for wheel in self.wheels_at.get(atom, [])):
                found.append((index[above], [index[atom]], below[atom]))
        for wheel in self.wheels[1:]:
            # Rings that hang on an atom of another ring.
            hinge = min(wheel, key=index.__getitem__)
            ends = [index[other] for other in self.near[hinge] if other in wheel]
            beyond = np.logical_or.reduce([below[atom] for atom in wheel if atom != hinge])
            found.append((index[hinge], ends, beyond))
        return found[::-1]


def _breadth_first(near: Sequence[Sequence[int]], root: int) -> tuple[list[int], dict[int, int]]:
    order, before = [root], {root: -1}
    for atom in order:
        for other in sorted(near[atom]):
            if other not in before:
                before[other] = atom
                order.append(other)
    return order, before


def _sector(wheel: dict[int, complex], atom: int, near: Sequence[Sequence[int]]) -> tuple[float, float]:
    """What a ring system takes up of the directions at one of its atoms: where that begins and how wide it is."""
    angles = sorted(float(np.angle(wheel[other] - wheel[atom])) for other in near[atom] if other in wheel)
    begin, gap = widest_gap(angles)
    return begin + gap, 2 * np.pi - gap


def _trouble(points: Points, bonds: NDArray[np.int64], joined: NDArray[np.bool_], below: NDArray[np.bool_]) -> float:
    """How much a branch and the rest get into each other's way."""
    gap = np.abs(points[below][:, None] - points[~below][None, :])
    gap[joined[np.ix_(below, ~below)]] = np.inf
    close = np.maximum(APART - gap, 0) / APART
    beyond = below[bonds].all(axis=1)
    crossed = crossings(points[bonds[beyond]], points[bonds[~beyond]]).sum()
    # The last term lets branches lean away from each other where nothing else decides.
    return float(20 * (close**2).sum() + 6 * crossed + 0.02 * (1 / np.maximum(gap, 0.2) ** 2).sum())


def _in_the_way(points: Points, bonds: NDArray[np.int64], joined: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which atoms lie too close to another or at bonds that cross."""
    gap = np.abs(points[:, None] - points[None, :])
    busy: NDArray[np.bool_] = np.asarray(((gap < 0.9 * APART) & ~joined).any(axis=1))
    crossed = crossings(points[bonds], points[bonds]).any(axis=1)
    busy[bonds[crossed]] = True
    return busy


def _turned(points: Points, aspect: float) -> Points:
    """Turned by a multiple of 30 degrees, so that it fills the room best and lies rather than stands."""
    best, least = points, np.inf
    for step in range(12):
        turned = points * np.exp(1j * step * np.pi / 6)
        width, height = np.ptp(turned.real), np.ptp(turned.imag)
        need = round(max(width, height * aspect) + 0.3 * height, 6)
        if need < least:
            best, least = turned, need
    return best


def _side_by_side(points: Points, parts: Sequence[Sequence[int]], aspect: float) -> None:
    """Parts in rows, the largest first."""
    boxes = [np.array([np.ptp(points[part].real), np.ptp(points[part].imag)]) + ROOM for part in map(list, parts)]
    line = max(boxes[0][0], np.sqrt(aspect * sum(box.prod() for box in boxes)) if boxes else 0)
    x = y = tall = 0.0
    for part, (width, height) in zip(parts, boxes, strict=True):
        if x > 0 and x + width > line + 1e-9:
            x, y, tall = 0.0, y - tall, 0.0
        mine = points[list(part)]
        middle = complex(mine.real.min() + mine.real.max(), mine.imag.min() + mine.imag.max()) / 2
        points[list(part)] = mine - middle + complex(x + width / 2, y - height / 2)
        x, tall = x + width, max(tall, height)
