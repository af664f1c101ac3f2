"""Molecules to draw, as atoms and bonds and as a graph: for the tests of pictures of molecules."""

from __future__ import annotations

from itertools import combinations, pairwise

import torch
from torch_geometric.data import Data

Bonds = list[tuple[int, int, str]]

BENZENE: Bonds = [(i, (i + 1) % 6, "double" if i % 2 else "single") for i in range(6)]
NAPHTHALENE: Bonds = [*BENZENE, *((u, v, "single") for u, v in pairwise([0, 6, 7, 8, 9, 5]))]
# 4-nitroaniline: the ring, a nitro group on atom 0, an amino group on atom 3.
NITROANILINE = ["C"] * 6 + ["N", "O", "O", "N", "H", "H"]
NITROANILINE_BONDS: Bonds = [
    *BENZENE,
    (0, 6, "single"),
    (6, 7, "double"),
    (6, 8, "single"),
    (3, 9, "single"),
    (9, 10, "single"),
    (9, 11, "single"),
]
CUBE: Bonds = [(u, v, "single") for u, v in combinations(range(8), 2) if (u ^ v).bit_count() == 1]
# Norbornane with a chlorine on its bridge.
NORBORNANE: Bonds = [(u, v, "single") for u, v in [*pairwise([0, 1, 2, 3, 4, 5, 0]), (0, 6), (6, 3), (6, 7)]]


def carbon(bonds: Bonds) -> list[str]:
    """The symbols of these bonds' atoms, all carbon."""
    return ["C"] * (1 + max((max(u, v) for u, v, _ in bonds), default=0))


def chain(count: int) -> Bonds:
    """So many atoms in a row."""
    return [(i, i + 1, "single") for i in range(count - 1)]


def nitromethane() -> Data:
    """A graph that says it is a molecule, with its nitro group as ground truth."""
    bonds = [(0, 1, 0), (1, 2, 1), (1, 3, 0), (0, 4, 0), (0, 5, 0), (0, 6, 0)]
    both = bonds + [(v, u, kind) for u, v, kind in bonds]
    pairs, kinds = torch.tensor([pair[:2] for pair in both]).T, torch.tensor([kind for *_, kind in both])
    data = Data(x=torch.randn(7, 4), edge_index=pairs, edge_attr=torch.eye(3)[kinds])
    data.edge_motif = torch.isin(pairs, torch.tensor([1, 2, 3])).all(dim=0)
    data.atoms, data.bond_names = ["C", "N", "O", "O", "H", "H", "H"], ["single", "double", "triple"]
    data.node_ids = [f"{symbol}{number}" for number, symbol in enumerate(data.atoms)]
    return data
