"""The rings of a molecule: a smallest set of smallest ones, and which of them hang together."""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Ring", "ring_systems", "smallest_rings"]

# The atoms of a ring, in order around it.
Ring = tuple[int, ...]

# Every closed path is looked at only where the rings have so many atoms together.
THOROUGH = 130


def smallest_rings(near: Sequence[Sequence[int]]) -> list[Ring]:
    """A smallest set of smallest rings, short ones first; ``near`` lists the neighbours of each atom."""
    bonds = {(u, v): 1 << index for index, (u, v) in enumerate(_bonds(near))}
    parts = sum(1 for _ in _parts(near))
    missing = len(bonds) - len(near) + parts
    chosen: list[Ring] = []
    # Rings are added like vectors of bonds modulo two; one that is a sum of others is none of its own.
    basis: dict[int, int] = {}
    for candidates in (_shortest_through_bonds, _closed_paths):
        if missing == 0:
            break
        for ring in sorted(set(candidates(near)), key=lambda ring: (len(ring), ring)):
            vector = sum(bonds[min(pair), max(pair)] for pair in pairwise((*ring, ring[0])))
            while vector and vector.bit_length() in basis:
                vector ^= basis[vector.bit_length()]
            if vector:
                basis[vector.bit_length()] = vector
                chosen.append(ring)
                missing -= 1
            if missing == 0:
                break
    return sorted(chosen, key=lambda ring: (len(ring), ring))


def ring_systems(rings: Sequence[Ring]) -> list[list[Ring]]:
    """Rings that share bonds, directly or through others, together."""
    systems: list[tuple[set[frozenset[int]], list[Ring]]] = []
    for ring in rings:
        bonds, mine = {frozenset(pair) for pair in pairwise((*ring, ring[0]))}, [ring]
        touching = [system for system in systems if system[0] & bonds]
        for system in touching:
            bonds, mine = bonds | system[0], [*system[1], *mine]
            systems.remove(system)
        systems.append((bonds, mine))
    return [mine for _, mine in systems]


def _bonds(near: Sequence[Sequence[int]]) -> Iterator[tuple[int, int]]:
    return ((u, v) for u, others in enumerate(near) for v in sorted(others) if u < v)


def _parts(near: Sequence[Sequence[int]]) -> Iterator[int]:
    """One atom of each connected part."""
    seen: set[int] = set()
    for atom in range(len(near)):
        if atom not in seen:
            yield atom
            seen.update(_tree(near, atom))


def _tree(near: Sequence[Sequence[int]], root: int, without: int = -1) -> dict[int, int]:
    """For each atom the one before it on a shortest path from the root that does not begin with ``without``."""
    before, queue = {root: -1}, deque([root])
    while queue:
        atom = queue.popleft()
        for other in near[atom]:
            if other not in before and not (atom == root and other == without):
                before[other] = atom
                queue.append(other)
    return before


def _path(before: dict[int, int], atom: int) -> list[int]:
    path = [atom]
    while before[path[-1]] >= 0:
        path.append(before[path[-1]])
    return path


def _in_order(ring: list[int]) -> Ring:
    """From the lowest atom towards its lower neighbour, so that a ring is written in one way only."""
    first = ring.index(min(ring))
    turned = ring[first:] + ring[:first]
    return tuple(turned if turned[1] < turned[-1] else [turned[0], *turned[:0:-1]])


def _shortest_through_bonds(near: Sequence[Sequence[int]]) -> Iterator[Ring]:
    for u, v in _bonds(near):
        before = _tree(near, u, without=v)
        if v in before:
            yield _in_order(_path(before, v))


def _closed_paths(near: Sequence[Sequence[int]]) -> Iterator[Ring]:
    """Two shortest paths from an atom and the bond between their ends (Horton, SIAM J. Comput. 16, 1987)."""
    inside = sorted({atom for ring in _shortest_through_bonds(near) for atom in ring})
    if len(inside) > THOROUGH:
        return
    for root in inside:
        before = _tree(near, root)
        paths = {atom: _path(before, atom) for atom in inside if atom in before}
        for u, v in _bonds(near):
            if u in paths and v in paths and set(paths[u]) & set(paths[v]) == {root} and root not in (u, v):
                yield _in_order([*paths[u], *paths[v][-2::-1]])
