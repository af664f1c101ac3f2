"""Positions for the atoms of a molecule: RDKit's, or those of any other graph where RDKit is missing.

RDKit is given atoms and bonds and is never asked whether they make chemical sense, so that every graph can be drawn.
No random numbers are drawn, so the same molecule gives the same coordinates.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csgraph
from scipy.spatial.distance import pdist, squareform

from butfor.plotting.excerpt import adjacency
from butfor.plotting.layout import majorise, place
from butfor.plotting.molecules.sketch import KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from butfor.plotting.molecules.sketch import Pair

    Points = NDArray[np.float64]
    Ring = tuple[int, ...]

__all__ = ["Depiction", "depict"]

# The least distance between atoms and the greatest length of bonds, in bonds: in a drawing that is good as it is, and
# in one that can still be read.
GOOD = (0.75, 1.25)
LEGIBLE = (0.5, 1.6)
# How far apart atoms without a bond between them are pushed. Pairs count by this power of their closeness: a high one
# moves the atoms that are too close and leaves the rest of the drawing as it is.
APART, POWER = 1.0, 4
# RDKit's usual bond length. Its templates for ring systems have about this length and are not scaled to another one.
RDKIT_BOND = 1.5
# The space between parts of a molecule that no bond joins.
MARGIN = 1.5
# RDKit becomes slow where there are more rings. Buckminsterfullerene has 31.
MOST_RINGS = 100


class Depiction(NamedTuple):
    """A molecule in the plane.

    Attributes:
        points: x and y of each atom; one unit is one bond.
        rings: the atoms of each of the smallest rings, in order; none where RDKit is missing.
    """

    points: Points
    rings: list[Ring]


def depict(symbols: Sequence[str], bonds: Mapping[Pair, str], aspect: float = 1.0) -> Depiction:
    """Find coordinates for the atoms of a molecule.

    Args:
        symbols: the element of each atom; unknown ones are allowed.
        bonds: two atoms and the kind of each bond, one of `KINDS`.
        aspect: width over height of the space there is; matters where the molecule has several parts.
    """
    pairs = np.array(list(bonds), dtype=np.int64).reshape(-1, 2)
    count, part_of = csgraph.connected_components(adjacency(len(symbols), pairs), directed=False)
    points, rings, parts = np.zeros((len(symbols), 2)), [], []
    for part in range(count):
        atoms = np.flatnonzero(part_of == part)
        index = {int(atom): position for position, atom in enumerate(atoms)}
        inside = {(index[u], index[v]): kind for (u, v), kind in bonds.items() if u in index}
        points[atoms], found = _depict_part([symbols[atom] for atom in index], inside)
        rings += [tuple(int(atoms[atom]) for atom in ring) for ring in found]
        parts.append(atoms)
    _side_by_side(points, sorted(parts, key=lambda atoms: (-len(atoms), atoms[0])), aspect)
    return Depiction(points, rings)


def _depict_part(symbols: Sequence[str], bonds: Mapping[Pair, str]) -> Depiction:
    """One connected part, drawn by RDKit unless it is missing or cannot draw this part legibly."""
    if not bonds:
        return Depiction(np.zeros((1, 2)), [])
    pairs = np.array(list(bonds), dtype=np.int64)
    rings: list[Ring] = []
    if len(bonds) - len(symbols) < MOST_RINGS:
        try:
            points, rings = _by_rdkit(symbols, bonds)
        except ImportError:
            pass
        else:
            if not _is_spaced(points, pairs, *GOOD):
                points = _pushed_apart(points, pairs)
            if _is_spaced(points, pairs, *LEGIBLE):
                return Depiction(points, rings)
    return Depiction(_as_any_graph(len(symbols), pairs), rings)


def _by_rdkit(symbols: Sequence[str], bonds: Mapping[Pair, str]) -> Depiction:
    """RDKit's drawing.

    Raises:
        ImportError: RDKit is not installed.
    """
    from rdkit import Chem, rdBase
    from rdkit.Chem import rdDepictor

    table = Chem.GetPeriodicTable()
    numbers = {table.GetElementSymbol(number): number for number in range(1, 119)}
    kinds = {
        "single": Chem.BondType.SINGLE,
        "double": Chem.BondType.DOUBLE,
        "triple": Chem.BondType.TRIPLE,
        "aromatic": Chem.BondType.AROMATIC,
    }
    degree, second_lines = Counter[int](), Counter[int]()
    molecule = Chem.RWMol()
    with rdBase.BlockLogs():
        for symbol in symbols:
            molecule.AddAtom(Chem.Atom(numbers.get(symbol, 0)))
        for pair, kind in bonds.items():
            molecule.AddBond(*pair, kinds.get(kind, Chem.BondType.SINGLE))
            for atom in pair:
                degree[atom] += 1
                second_lines[atom] += 0 if kind == "aromatic" else KINDS[kind] - 1
        # A chain is straight at a triple bond and between two double bonds. RDKit would find this out by sanitising
        # the molecule, which fails wherever valences are unusual.
        for atom in molecule.GetAtoms():
            if degree[atom.GetIdx()] == 2 and second_lines[atom.GetIdx()] >= 2:
                atom.SetHybridization(Chem.HybridizationType.SP)
        rings = [tuple(ring) for ring in Chem.GetSymmSSSR(molecule)]
        rdDepictor.Compute2DCoords(molecule, bondLength=RDKIT_BOND, forceRDKit=True, useRingTemplates=True)
        rdDepictor.StraightenDepiction(molecule)
    return Depiction(molecule.GetConformer().GetPositions()[:, :2] / RDKIT_BOND, rings)


def _as_any_graph(num_atoms: int, pairs: NDArray[np.int64]) -> Points:
    """The layout of any graph, turned so that its long side is horizontal."""
    hops = csgraph.shortest_path(adjacency(num_atoms, pairs), unweighted=True)
    middle = int(hops.max(axis=1).argmin())
    points = _pushed_apart(place(num_atoms, pairs, middle, np.empty(0, dtype=np.int64)), pairs)
    centred = points - points.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    # Signs are fixed, so that rounding errors cannot mirror the picture.
    axes *= np.where(axes[np.arange(2), np.abs(axes).argmax(axis=1)] < 0, -1, 1)[:, None]
    return np.asarray(centred @ axes.T)


def _is_spaced(points: Points, pairs: NDArray[np.int64], closest: float, longest: float) -> bool:
    lengths = np.linalg.norm(points[pairs[:, 0]] - points[pairs[:, 1]], axis=1)
    return bool(pdist(points).min() > closest and lengths.max() < longest)


def _pushed_apart(points: Points, pairs: NDArray[np.int64]) -> Points:
    """The same drawing, changed so that atoms keep a distance and bonds have about the same length."""
    distance = np.maximum(squareform(pdist(points)), APART)
    distance[pairs[:, 0], pairs[:, 1]] = distance[pairs[:, 1], pairs[:, 0]] = 1
    return majorise(points, distance, 1 / distance**POWER)


def _side_by_side(points: Points, parts: Sequence[NDArray[np.int64]], aspect: float) -> None:
    """Move the parts next to each other, in rows from the top, the first part first."""
    boxes = [np.ptp(points[part], axis=0) + MARGIN for part in parts]
    line = max(boxes[0][0], np.sqrt(aspect * sum(box.prod() for box in boxes)))
    x = y = row = 0.0
    for part, (width, height) in zip(parts, boxes, strict=True):
        if x > 0 and x + width > line + 1e-9:
            x, y, row = 0.0, y - row, 0.0
        middle = (points[part].min(axis=0) + points[part].max(axis=0)) / 2
        points[part] += np.array([x + width / 2, y - height / 2]) - middle
        x, row = x + width, max(row, height)
