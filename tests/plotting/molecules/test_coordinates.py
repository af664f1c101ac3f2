"""Where atoms stand: rings are regular, chains zigzag, and no atoms overlap, with and without RDKit."""

from __future__ import annotations

import runpy
import sys
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from butfor.datasets import load_graphs
from butfor.plotting.molecules import coordinates
from butfor.plotting.molecules.coordinates import depict
from butfor.plotting.molecules.drawing import draw_molecule
from butfor.plotting.molecules.sketch import Sketch
from molecule_samples import BENZENE, CUBE, NAPHTHALENE, NORBORNANE, Bonds, carbon, chain
from pictures import words

if TYPE_CHECKING:
    from pathlib import Path

ELEMENTS = ["C", "O", "Cl", "H", "N", "F", "Br", "S", "P", "I", "Na", "K", "Li", "Ca"]


def placed(symbols: list[str], bonds: Bonds) -> np.ndarray[Any, Any]:
    """The atoms as complex numbers."""
    sketch = Sketch.of(symbols, bonds)
    return depict(sketch.symbols, sketch.bonds).points @ [1, 1j]


def gaps(points: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    gap = np.abs(points[:, None] - points[None, :])
    np.fill_diagonal(gap, np.inf)
    return gap


def is_regular(corners: np.ndarray[Any, Any]) -> bool:
    """All sides are one bond long, all corners are equally far from the middle."""
    sides = np.abs(corners - np.roll(corners, 1))
    radius = np.abs(corners - corners.mean())
    return bool(np.allclose(sides, 1, atol=1e-6) and np.allclose(radius, radius[0], atol=1e-6))


@pytest.fixture
def without_rdkit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rdkit", None)


@pytest.mark.parametrize("corners", [3, 4, 5, 6, 7, 8])
def test_a_ring_is_a_regular_polygon(corners: int) -> None:
    bonds: Bonds = [(i, (i + 1) % corners, "single") for i in range(corners)]
    assert is_regular(placed(["C"] * corners, bonds))


def test_fused_rings_are_regular_polygons() -> None:
    points = placed(["C"] * 10, NAPHTHALENE)
    assert is_regular(points[:6])
    assert is_regular(points[[0, 6, 7, 8, 9, 5]])
    assert gaps(points).min() > 0.99


def test_a_ring_within_rings() -> None:
    # Coronene: six rings around one, which all must close.
    inner, outer = list(range(6)), list(range(6, 24))
    bonds = [(u, v, "aromatic") for u, v in pairwise([*inner, 0])] + [
        (u, v, "aromatic") for u, v in pairwise([*outer, 6])
    ]
    bonds += [(i, 6 + 3 * i, "aromatic") for i in inner]
    flat, rings = depict(["C"] * 24, {(u, v): kind for u, v, kind in bonds})
    points = flat @ [1, 1j]
    assert sorted(map(len, rings)) == [6] * 7
    assert all(is_regular(points[list(ring)]) for ring in rings)


def test_a_chain_is_a_zigzag() -> None:
    points = placed(["C"] * 12, chain(12))
    steps = np.diff(points)
    assert np.allclose(np.abs(steps), 1)
    turns = np.degrees(np.angle(steps[1:] / steps[:-1]))
    assert np.allclose(np.abs(turns), 60)
    assert (turns[1:] * turns[:-1] < 0).all()


@pytest.mark.parametrize("kinds", [("single", "triple"), ("double", "double")])
def test_a_triple_bond_is_straight(kinds: tuple[str, str]) -> None:
    points = placed(["C", "C", "N"], [(0, 1, kinds[0]), (1, 2, kinds[1])])
    assert abs(points[2] - points[0]) == pytest.approx(2)


def test_three_branches_stand_at_equal_angles() -> None:
    points = placed(["C"] * 4, [(0, i, "single") for i in (1, 2, 3)])
    assert np.allclose(gaps(points)[1:, 1:][~np.eye(3, dtype=bool)], np.sqrt(3))


def test_branches_point_out_of_rings() -> None:
    bonds = [*NAPHTHALENE, (0, 10, "single"), (2, 11, "single"), (8, 12, "single"), (8, 13, "single")]
    points = placed(["C"] * 14, bonds)
    assert gaps(points).min() > 0.9
    for ring in ([0, 1, 2, 3, 4, 5], [0, 6, 7, 8, 9, 5]):
        outside = np.abs(points[10:] - points[ring].mean())
        assert outside.min() > 1.2


@pytest.mark.parametrize("bonds", [CUBE, NORBORNANE], ids=["cubane", "norbornane"])
def test_cages_can_be_made_out(bonds: Bonds) -> None:
    points = placed(carbon(bonds), bonds)
    length = np.abs([points[u] - points[v] for u, v, _ in bonds])
    assert length.min() > 0.5
    assert length.max() < 1.5
    assert gaps(points).min() > 0.3


def test_parts_stand_side_by_side() -> None:
    bonds = [*BENZENE, *((u + 6, v + 6, kind) for u, v, kind in BENZENE), (12, 13, "single")]
    points = placed(["C"] * 14 + ["Na", "Cl"], bonds)
    parts = [points[:6], points[6:12], points[12:14], points[14:15], points[15:]]
    assert is_regular(parts[0])
    assert is_regular(parts[1])
    for first, second in combinations(parts, 2):
        assert np.abs(first[:, None] - second[None, :]).min() > 1


def test_without_rdkit_the_layout_is_that_of_a_graph(without_rdkit: None) -> None:
    assert depict(["C"] * 6, {(u, v): kind for u, v, kind in BENZENE}).rings == []
    for bonds in (BENZENE, NAPHTHALENE, chain(12), CUBE, NORBORNANE):
        points = placed(carbon(bonds), bonds)
        assert gaps(points).min() > 0.5
        assert all(0.5 < abs(points[u] - points[v]) < 1.6 for u, v, _ in bonds)


def test_rdkit_is_imported_only_for_drawing(without_rdkit: None) -> None:
    module = runpy.run_path(str(coordinates.__file__))
    assert module["depict"](["C", "O"], {(0, 1): "double"}).points.shape == (2, 2)


@pytest.mark.parametrize(
    ("symbols", "bonds"),
    [
        (["C"] * 8, [(0, i, "triple") for i in range(1, 8)]),
        (["H", "H", "H"], [(0, 1, "aromatic"), (1, 2, "double"), (0, 2, "")]),
        (["?", "", "Xx", "C"], [(0, 1, "aromatic"), (2, 3, "triple")]),
        (["F"] * 6, [(u, v, "double") for u, v in combinations(range(6), 2)]),
    ],
    ids=["fourteen bonds too many", "a ring of hydrogen", "unknown elements", "all with all"],
)
def test_chemistry_is_not_checked(
    symbols: list[str], bonds: Bonds, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    draw_molecule(symbols, bonds, path=tmp_path / "odd.png")
    assert gaps(placed(symbols, bonds)).min() > 0.5
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("rdkit", [True, False], ids=["with RDKit", "without RDKit"])
def test_real_molecules_have_no_overlaps(shared: Path, rdkit: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not rdkit:
        monkeypatch.setitem(sys.modules, "rdkit", None)
    graphs = load_graphs(shared / "data" / "tu" / "Mutagenicity")[::140]
    assert len(graphs) > 30
    for graph in graphs:
        symbols = [ELEMENTS[label] for label in graph.x.argmax(1).tolist()]
        kinds = [("single", "double", "triple")[kind] for kind in graph.edge_attr.argmax(1).tolist()]
        pairs = graph.edge_index.t().tolist()
        bonds = [(u, v, kind) for (u, v), kind in zip(pairs, kinds, strict=True)]
        truth = [(u, v) for (u, v), inside in zip(pairs, graph.edge_motif.tolist(), strict=True) if inside]
        sketch = Sketch.of(symbols, bonds, truth=truth)
        points = depict(sketch.symbols, sketch.bonds, 1.2).points @ [1, 1j]
        assert gaps(points).min(initial=np.inf) > 0.5
        assert all(0.5 < abs(points[u] - points[v]) < 1.5 for u, v in sketch.bonds)
        figure = draw_molecule(symbols, bonds, truth=truth)
        drawn = [
            symbol for symbol, others in zip(sketch.symbols, sketch.near, strict=True) if symbol != "C" or not others
        ]
        assert sorted(words(figure, "atom")) == sorted(drawn)
