"""A graph as a molecule, if its data say what the atoms are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from butfor.boundary.printable import printable
from butfor.plotting.molecules.sketch import KINDS

if TYPE_CHECKING:
    from butfor.graph.graph import Graph

__all__ = ["Molecule", "molecule_of"]

Pair = tuple[int, int]


@dataclass(frozen=True)
class Molecule:
    """The element of each atom, the bonds with their kinds, and the bonds known to matter."""

    symbols: tuple[str, ...]
    bonds: tuple[tuple[int, int, str], ...]
    truth: tuple[Pair, ...]


def molecule_of(graph: Graph) -> Molecule | None:
    """The molecule that ``data.atoms`` makes of a graph (see `butfor.datasets.load_mutagenicity`); None without it."""
    if graph.types is not None or graph.directed:
        return None
    atoms = graph.data.get("atoms")
    if not isinstance(atoms, (list, tuple)) or len(atoms) != graph.num_nodes:
        return None
    marks = graph.data.get("edge_motif")
    marked = np.zeros(graph.edge_index.shape[1]) if marks is None else marks.flatten().cpu().numpy()
    bonds: dict[Pair, str] = {}
    truth: set[Pair] = set()
    for (u, v), kind, mark in zip(graph.edge_index.T.tolist(), _bond_kinds(graph), marked, strict=True):
        if u != v:
            pair = min(u, v), max(u, v)
            bonds.setdefault(pair, kind)
            truth.update([pair] if mark else [])
    return Molecule(
        symbols=tuple(printable(str(atom)) for atom in atoms),
        bonds=tuple((*pair, kind) for pair, kind in bonds.items()),
        truth=tuple(sorted(truth)),
    )


def _bond_kinds(graph: Graph) -> list[str]:
    """The kind of each bond: ``edge_attr`` has it one-hot, and ``bond_names`` names the columns; "" if unknown."""
    attributes, names = graph.data.get("edge_attr"), graph.data.get("bond_names")
    if attributes is None or names is None or attributes.dim() != 2 or attributes.size(1) != len(names):
        return [""] * graph.edge_index.shape[1]
    known = [str(name) if str(name) in KINDS else "" for name in names]
    return [known[kind] for kind in attributes.argmax(dim=1).tolist()]
