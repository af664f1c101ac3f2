"""How a system of fused rings is drawn: as regular polygons, with bridges, or as a cage seen from its best side.

Points are complex numbers here and one bond is one unit long, so that a turn is a product.
"""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csgraph

from butfor.plotting.excerpt import adjacency
from butfor.plotting.layout import majorise, place

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from butfor.plotting.molecules.rings import Ring

    Points = NDArray[np.complex128]

__all__ = ["crossings", "place_rings", "widest_gap"]

# Systems with more atoms than this are no molecules; they are drawn like any other graph.
LARGEST = 200
# With more rings than this bridges are not looked for.
CAGED = 40

# Atoms without a bond between them lie at least so far apart, or the drawing is tried in another way.
CLEAR = 0.7
# An atom beneath a bond, and a bond seen nearly from its end, are as bad.
BESIDE, SHORT = 0.3, 0.7
# The distance of the next atom but one, at a tetrahedral angle and at one of 120 degrees.
TETRAHEDRAL, TRIGONAL = 1.633, 1.732
# From how many sides a cage is looked at.
SIDES = 240


def place_rings(rings: Sequence[Ring], near: Sequence[Sequence[int]]) -> dict[int, complex]:
    """Draw a system of rings: as regular polygons where that can be done, else as the clearest of some tries."""
    atoms = sorted({atom for ring in rings for atom in ring})
    index = {atom: position for position, atom in enumerate(atoms)}
    local = [tuple(index[atom] for atom in ring) for ring in rings]
    pairs = {(min(pair), max(pair)) for ring in local for pair in pairwise((*ring, ring[0]))}
    bonds = np.array(sorted(pairs), dtype=np.int64)
    if len(atoms) > LARGEST:
        flat = place(len(atoms), bonds, 0, np.empty(0, dtype=np.int64))
        points = flat[:, 0] + 1j * flat[:, 1]
    else:
        points = _polygons(local, len(atoms))
        if _strain(points, bonds) > 0:
            # What hangs on the rings needs room too.
            inner = [[index[other] for other in near[atom] if other in index] for atom in atoms]
            hands = [(at, inner[at], len(near[atom]) - len(inner[at])) for at, atom in enumerate(atoms)]
            hands = [hand for hand in hands if hand[2]]
            tries = [points, _spread(points, local, bonds)]
            if len(rings) <= CAGED:
                tries = [points for points in [_bridged(local, len(atoms)), *tries] if not np.isnan(points).any()]
            tries += _views(local, bonds, len(atoms))
            points = min(tries, key=lambda points: round(_strain(*_with_hands(points, bonds, hands)), 6))
    return {atom: complex(point) for atom, point in zip(atoms, points, strict=True)}


def crossings(first: Points, second: Points) -> NDArray[np.bool_]:
    """Which lines of the first rows cross which of the second; a row is the two ends of a line."""
    a, b, c, d = first[:, None, 0], first[:, None, 1], second[None, :, 0], second[None, :, 1]

    def side(p: Points, q: Points, r: Points) -> NDArray[np.float64]:
        return np.asarray(((q - p).conj() * (r - p)).imag)

    apart = (side(a, b, c) * side(a, b, d) < -1e-9) & (side(c, d, a) * side(c, d, b) < -1e-9)
    return np.asarray(apart)


def _polygons(rings: Sequence[Ring], num_atoms: int) -> Points:
    """One regular polygon after another, each on the bonds that it shares with those before.

    Atoms that cannot be reached in this way get no place.
    """
    points = np.full(num_atoms, np.nan, dtype=np.complex128)
    shared = [sum(len({*ring} & {*other}) >= 2 for other in rings) for ring in rings]
    start = rings[max(range(len(rings)), key=lambda index: (shared[index], -abs(len(rings[index]) - 6)))]
    points[list(start)] = _polygon(len(start))
    left = [ring for ring in rings if ring != start]
    while left:
        known = [int((~np.isnan(points[list(ring)])).sum()) for ring in left]
        # A ring that shares one bond is certain to fit; what closes a gap between others comes last.
        ring = left.pop(min(range(len(left)), key=lambda index: (known[index] < 2, known[index])))
        if max(known) < 2:
            break
        for ends, run in _gaps(ring, points):
            points[run] = _arc(points, *ends, len(run))
    return points


def _bridged(rings: Sequence[Ring], num_atoms: int) -> Points:
    """As `_polygons`, but two rings with more than a bond in common are one ring with a bridge across it."""
    outlines, bridges = list(rings), []
    while True:
        merged = next(filter(None, (_outline(a, b) for a, b in combinations(outlines, 2))), None)
        if merged is None:
            break
        first, second, outline, bridge = merged
        outlines = [*(ring for ring in outlines if ring not in (first, second)), outline]
        bridges.append(bridge)
    points = _polygons(outlines, num_atoms)
    for bridge in reversed(bridges):
        inside = [atom for atom in bridge[1:-1] if np.isnan(points[atom])]
        if len(inside) < len(bridge) - 2 or np.isnan(points[[bridge[0], bridge[-1]]]).any():
            continue
        start, stop = points[bridge[0]], points[bridge[-1]]
        others = np.delete(points, inside)
        others = others[~np.isnan(others)]
        straight = start + (stop - start) * np.arange(1, len(bridge) - 1) / (len(bridge) - 1)
        aside = 1j * (stop - start) / max(abs(stop - start), 1e-9)
        # A little out of the middle, as if seen from the side.
        tries = [straight + aside * shift for shift in (0.3, -0.3, 0.15, -0.15, 0.0)]
        points[inside] = max(tries, key=lambda run: round(float(np.abs(run[:, None] - others[None, :]).min()), 6))
    return points


def _outline(first: Ring, second: Ring) -> tuple[Ring, Ring, Ring, Ring] | None:
    """The two rings, the ring around both and the path inside it, where they share one path of three atoms or more."""
    shared = {*first} & {*second}
    begins = [at for at, atom in enumerate(first) if atom in shared and first[at - 1] not in shared]
    if len(shared) < 3 or len(begins) != 1:
        return None
    turned = first[begins[0] :] + first[: begins[0]]
    bridge, rest = turned[: len(shared)], turned[len(shared) :]
    at = second.index(bridge[0])
    other = second[at:] + second[:at]
    if other[len(shared) - 1] != bridge[-1]:
        other = (other[0], *other[:0:-1])
    if other[: len(shared)] != bridge:
        return None
    return first, second, (bridge[-1], *rest, bridge[0], *other[: len(shared) - 1 : -1]), bridge


def _polygon(corners: int) -> Points:
    turn = np.arange(corners) * 2 * np.pi / corners + np.pi / 2
    return np.asarray(np.exp(1j * turn) / (2 * np.sin(np.pi / corners)))


def _gaps(ring: Ring, points: Points) -> Iterator[tuple[tuple[int, int], list[int]]]:
    """The runs of atoms that have no place yet, each with the atoms at its two ends that have."""
    placed = [position for position, atom in enumerate(ring) if not np.isnan(points[atom])]
    for first, last in pairwise([*placed, placed[0] + len(ring)]):
        if last - first > 1:
            ends = ring[first], ring[last % len(ring)]
            yield ends, [ring[position % len(ring)] for position in range(first + 1, last)]


def _arc(points: Points, first: int, last: int, count: int) -> Points:
    """So many atoms on a circle from one atom to another, on the side where there is more room."""
    chord, steps = abs(points[last] - points[first]), count + 1
    # The half angle of one step on the circle: the chord is sin(steps * half) / sin(half).
    low, high = 1e-6, np.pi / steps
    for _ in range(60):
        half = (low + high) / 2
        low, high = (half, high) if np.sin(steps * half) > chord * np.sin(half) else (low, half)
    turns = (steps - 1) * low - 2 * low * np.arange(steps)
    along = (points[last] - points[first]) / max(chord, 1e-9)
    others = points[~np.isnan(points)]
    best, least = points[:0], np.inf
    for side in (1, -1):
        run = points[first] + along * np.cumsum(np.exp(1j * side * turns))[:-1] * max(1, chord / steps)
        crowd = float((1 / np.maximum(np.abs(run[:, None] - others[None, :]), 0.1) ** 2).sum())
        if crowd < least - 1e-6:
            best, least = run, crowd
    return best


def _strain(points: Points, bonds: NDArray[np.int64]) -> float:
    """What is wrong with a drawing of rings; zero if every bond is one long and nothing is in the way."""
    length = np.abs(points[bonds[:, 0]] - points[bonds[:, 1]])
    gap = np.abs(points[:, None] - points[None, :])
    gap[bonds[:, 0], bonds[:, 1]] = gap[bonds[:, 1], bonds[:, 0]] = np.inf
    np.fill_diagonal(gap, np.inf)
    close = np.maximum(CLEAR - gap, 0) / CLEAR
    crossed = crossings(points[bonds], points[bonds]).sum() / 2
    bent = np.abs(length - 1)
    short = np.maximum(SHORT - length, 0) / SHORT
    beneath = np.maximum(BESIDE - _off_bonds(points, bonds), 0) / BESIDE
    return float(
        (bent * (bent > 0.02)).sum()
        + 8 * (close**2).sum()
        + 8 * (short**2).sum()
        + 3 * (beneath**2).sum()
        + 1.5 * crossed
    )


def _off_bonds(points: Points, bonds: NDArray[np.int64]) -> NDArray[np.float64]:
    """How far each atom lies from each bond that is not its own."""
    start, stop = points[bonds[:, 0]], points[bonds[:, 1]]
    along = np.where(start == stop, 1, stop - start)
    where = (points[:, None] - start) / along
    off = np.abs(where - np.clip(where.real, 0, 1)) * np.abs(along)
    np.put_along_axis(off, bonds.T, np.inf, axis=0)
    return np.asarray(off)


def _distances(
    rings: Sequence[Ring], bonds: NDArray[np.int64], num_atoms: int, next_but_one: float
) -> NDArray[np.float64]:
    """How far apart atoms should lie: on a ring as on a regular polygon, else as on a stretched chain."""
    hops: NDArray[np.float64] = csgraph.shortest_path(adjacency(num_atoms, bonds), unweighted=True)
    distance = np.where(hops <= 1, hops, hops * next_but_one / 2)
    for ring in rings:
        chord = np.abs(_polygon(len(ring))[:, None] - _polygon(len(ring))[None, :])
        among = np.ix_(ring, ring)
        distance[among] = np.minimum(distance[among], chord)
    return distance


def _spread(points: Points, rings: Sequence[Ring], bonds: NDArray[np.int64]) -> Points:
    """The same drawing after its stress was lowered."""
    distance = _distances(rings, bonds, len(points), TRIGONAL)
    flat = majorise(np.stack([points.real, points.imag], axis=1), distance, 1 / np.maximum(distance, 0.5) ** 3)
    return np.asarray(flat[:, 0] + 1j * flat[:, 1])


def _views(rings: Sequence[Ring], bonds: NDArray[np.int64], num_atoms: int) -> Iterator[Points]:
    """In space, seen from many sides: how chemists draw what is not flat."""
    distance = _distances(rings, bonds, num_atoms, TETRAHEDRAL)
    middle = np.eye(num_atoms) - 1 / num_atoms
    values, vectors = np.linalg.eigh(-0.5 * middle @ distance**2 @ middle)
    begin = vectors[:, -3:] * np.sqrt(np.maximum(values[-3:], 0.01))
    solid = majorise(begin, distance, 1 / np.maximum(distance, 0.5) ** 3)
    # To compare all bonds of a large cage takes long.
    sides = max(10, int(SIDES * min(1, (80 / len(bonds)) ** 2)))
    for step in range(sides):
        # Directions spread over a half sphere (Fibonacci's lattice).
        height, turn = (step + 0.5) / sides, 2.399963 * step
        view = np.array([np.sqrt(1 - height**2) * np.cos(turn), np.sqrt(1 - height**2) * np.sin(turn), height])
        across = np.cross(view, [1, 0, 0] if abs(view[0]) < 0.9 else [0, 1, 0])
        across /= np.linalg.norm(across)
        seen = solid @ across + 1j * (solid @ np.cross(view, across))
        yield seen / np.abs(seen[bonds[:, 0]] - seen[bonds[:, 1]]).mean()


def widest_gap(angles: Sequence[float]) -> tuple[float, float]:
    """Where the widest gap between some directions begins, and how wide it is; the directions ascend."""
    if not angles:
        return -np.pi / 6, 2 * np.pi
    gaps = [last - first for first, last in pairwise([*angles, angles[0] + 2 * np.pi])]
    # Rounding must not decide between gaps that are equal.
    widest = max(range(len(gaps)), key=lambda index: round(gaps[index], 6))
    return angles[widest], gaps[widest]


def _with_hands(
    points: Points, bonds: NDArray[np.int64], hands: Sequence[tuple[int, Sequence[int], int]]
) -> tuple[Points, NDArray[np.int64]]:
    """Points and bonds, and with them the first atoms of what hangs on the rings."""
    more: list[complex] = []
    links: list[tuple[int, int]] = []
    for atom, inner, count in hands:
        begin, gap = widest_gap(sorted(np.angle(points[inner] - points[atom]).tolist()))
        for step in range(1, count + 1):
            links.append((atom, len(points) + len(more)))
            more.append(points[atom] + np.exp(1j * (begin + gap * step / (count + 1))))
    if not more:
        return points, bonds
    return np.concatenate([points, more]), np.concatenate([bonds, links])
