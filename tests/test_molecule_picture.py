"""Pictures of molecules: rings are regular, no atoms overlap, and marked bonds can be seen, with and without RDKit."""

from __future__ import annotations

import runpy
import sys
import time
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
import pytest

from butfor.datasets import load_graphs
from butfor.errors import InputError
from butfor.plotting.molecules import coordinates
from butfor.plotting.molecules.coordinates import depict
from butfor.plotting.molecules.drawing import TRUTH, draw_molecule
from butfor.plotting.molecules.sketch import Sketch
from butfor.plotting.style import NEW, REMOVED

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

Bonds = list[tuple[int, int, str]]

ELEMENTS = ["C", "O", "Cl", "H", "N", "F", "Br", "S", "P", "I", "Na", "K", "Li", "Ca"]

BENZENE: Bonds = [(i, (i + 1) % 6, "double" if i % 2 else "single") for i in range(6)]
NAPHTHALENE = [*BENZENE, *((u, v, "single") for u, v in pairwise([0, 6, 7, 8, 9, 5]))]
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
    return ["C"] * (1 + max((max(u, v) for u, v, _ in bonds), default=0))


def chain(count: int) -> Bonds:
    return [(i, i + 1, "single") for i in range(count - 1)]


def placed(symbols: list[str], bonds: Bonds) -> np.ndarray[Any, Any]:
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


def collection(figure: Figure, gid: str) -> Any:
    (found,) = [item for item in figure.axes[0].collections if item.get_gid() == gid]
    return found


def gids(figure: Figure) -> set[str]:
    return {item.get_gid() for item in figure.axes[0].collections}


def letters(figure: Figure, gid: str = "atom") -> list[str]:
    return sorted(text.get_text() for text in figure.axes[0].texts if text.get_gid() == gid)


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for item in figure.legends for text in item.get_texts()]


def pixels(figure: Figure) -> bytes:
    figure.canvas.draw()
    return bytes(figure.canvas.buffer_rgba())


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


def test_hydrogens_are_part_of_labels() -> None:
    figure = draw_molecule(NITROANILINE, NITROANILINE_BONDS)
    assert letters(figure) == ["N", "N", "O", "O"]
    assert letters(figure, "hydrogens") == ["H₂"]
    assert letters(figure, "charge") == ["+", "−"]
    assert legend(figure) == []
    # Six bonds in the ring and six outside it, two of them to hydrogen; four are double.
    assert len(collection(figure, "bonds").get_paths()) == 10 + 4


@pytest.mark.parametrize("mark", ["removed", "truth"])
def test_a_marked_hydrogen_stands_for_itself(mark: str) -> None:
    figure = draw_molecule(NITROANILINE, NITROANILINE_BONDS, **{mark: [(11, 9)]})
    assert letters(figure) == ["H", "N", "N", "O", "O"]
    assert letters(figure, "hydrogens") == ["H"]
    assert len(collection(figure, f"{mark}-bonds").get_paths()) == 1


def test_a_hydrogen_that_gets_a_bond_stands_for_itself() -> None:
    figure = draw_molecule(NITROANILINE, NITROANILINE_BONDS, added=[(10, 7)])
    assert letters(figure) == ["H", "N", "N", "O", "O"]


def test_what_is_marked() -> None:
    figure = draw_molecule(
        NITROANILINE, NITROANILINE_BONDS, removed=[(7, 6), (0, 1)], added=[(1, 4)], truth=[(6, 7), (6, 8)]
    )
    assert legend(figure) == ["removed bond", "added bond", "ground truth"]
    for gid, colour, lines in (("removed-bonds", REMOVED, 3), ("added-bonds", NEW, 1), ("truth-bonds", TRUTH, 2)):
        assert matplotlib.colors.to_hex(collection(figure, gid).get_color()[0]) == colour
        assert len(collection(figure, gid).get_paths()) == lines
    assert collection(figure, "removed-bonds").get_linestyle()[0][1] is not None
    assert gids(draw_molecule(NITROANILINE, NITROANILINE_BONDS)) == {"bonds"}


def test_the_second_line_is_inside_the_ring() -> None:
    figure = draw_molecule(["C"] * 6, BENZENE)
    lines = np.array(collection(figure, "bonds").get_segments())
    middles = lines.mean(axis=1)
    away = np.linalg.norm(middles - middles.mean(axis=0), axis=1)
    assert sorted(np.round(away / away.max(), 1)) == [0.8] * 3 + [1.0] * 6


def test_the_bonds_of_benzene_are_equally_long() -> None:
    figure = draw_molecule(["C"] * 6, [(u, v, "aromatic") for u, v, _ in BENZENE])
    ends = np.array(collection(figure, "bonds").get_segments())
    lengths = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)
    assert len(lengths) == 6
    assert np.allclose(lengths, lengths[0], rtol=1e-6)


def test_the_second_line_is_inside_a_ring_with_branches_on_both_ends() -> None:
    # Six carbons and a fluorine on each: what is inside cannot be told from the neighbours of a bond.
    figure = draw_molecule(["C"] * 6 + ["F"] * 6, [*BENZENE, *((i, i + 6, "single") for i in range(6))])
    middles = np.array(collection(figure, "bonds").get_segments()).mean(axis=1)
    away = np.linalg.norm(middles - middles.mean(axis=0), axis=1)
    assert sorted(np.round(away / np.sort(away)[3], 1))[:9] == [0.8] * 3 + [1.0] * 6


def test_aromatic_bonds_have_a_dashed_line() -> None:
    figure = draw_molecule(["C"] * 6, [(u, v, "aromatic") for u, v, _ in BENZENE])
    assert len(collection(figure, "bonds").get_paths()) == len(collection(figure, "aromatic").get_paths()) == 6


@pytest.mark.parametrize(
    ("symbols", "bonds", "seen"),
    [
        (["C"], [], ["C"]),
        (["H"], [], ["H"]),
        (["H", "H"], [(0, 1, "single")], ["H", "H"]),
        (["Na", "Cl"], [], ["Cl", "Na"]),
        (["C", "C"], [(0, 1, "")], []),
        (["C"] * 30, [], ["C"] * 30),
        (["$x_1$", "_"], [(0, 1, "single")], ["$x_1$", "_"]),
    ],
)
def test_small_ones(symbols: list[str], bonds: Bonds, seen: list[str]) -> None:
    figure = draw_molecule(symbols, bonds)
    figure.canvas.draw()
    assert letters(figure) == seen


def test_lone_molecules_are_written_as_usual() -> None:
    def order(symbol: str, count: int) -> list[str]:
        figure = draw_molecule([symbol, *["H"] * count], [(0, i + 1, "single") for i in range(count)])
        return [text.get_text() for text in sorted(figure.axes[0].texts, key=lambda text: text.get_position()[0])]

    assert order("C", 4) == ["C", "H₄"]
    assert order("N", 3) == ["N", "H₃"]
    assert order("O", 2) == ["H₂", "O"]
    assert order("Br", 1) == ["H", "Br"]


def test_many_loose_atoms_are_counted_not_drawn() -> None:
    symbols, bonds = ["C", "O", "Na"] + ["H"] * 66, [(0, 1, "double")]
    figure = draw_molecule(symbols, bonds, caption="Found.")
    assert letters(figure) == ["Na", "O"]
    assert [text.get_text() for text in figure.texts] == ["Found. Atoms without bonds, not drawn: 66 H."]
    assert len(letters(draw_molecule(symbols, bonds, added=[(1, 3)]))) == 3


def lattice(side: int) -> Bonds:
    across = [(side * i + j, side * i + j + 1, "single") for i in range(side) for j in range(side - 1)]
    return across + [(side * i + j, side * i + j + side, "single") for i in range(side - 1) for j in range(side)]


def tangle(count: int, num_bonds: int) -> Bonds:
    draws = np.sort(np.random.default_rng(0).integers(0, count, (num_bonds, 2)), axis=1)
    return [(u, v, "single") for u, v in sorted({tuple(row) for row in draws.tolist()}) if u != v]


@pytest.mark.parametrize(
    "bonds",
    [chain(400), [(i // 2, i, "single") for i in range(1, 400)], lattice(20), tangle(400, 1000), tangle(150, 350)],
    ids=["chain", "tree", "lattice", "tangle", "small tangle"],
)
def test_large_ones_do_not_hang(bonds: Bonds) -> None:
    start = time.process_time()
    draw_molecule(carbon(bonds), bonds)
    assert time.process_time() - start < 5


def test_the_same_every_time() -> None:
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    first, second = (
        pixels(draw_molecule(carbon(CUBE), CUBE, removed=[(0, 1)], title="A cube", caption="twice")) for _ in range(2)
    )
    assert first == second
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


def test_the_direction_and_number_of_bonds_do_not_matter() -> None:
    both = [*NITROANILINE_BONDS, *((v, u, kind) for u, v, kind in NITROANILINE_BONDS)]
    once = pixels(draw_molecule(NITROANILINE, NITROANILINE_BONDS, removed=[(0, 6)]))
    assert pixels(draw_molecule(NITROANILINE, both, removed=[(6, 0), (0, 6)])) == once


def test_words_keep_clear_of_the_molecule() -> None:
    words = "The molecule is predicted 'mutagen' (0.91). " * 8
    figure = draw_molecule(NITROANILINE, NITROANILINE_BONDS, truth=[(6, 7)], title=words, caption=words)
    figure.canvas.draw()
    title, caption = (text.get_window_extent() for text in figure.texts)
    axes, key = figure.axes[0].get_window_extent(), figure.legends[0].get_window_extent()
    assert title.y1 <= figure.bbox.y1
    assert title.x1 <= figure.bbox.x1
    assert title.y0 > axes.y1 > axes.y0 > caption.y1 > 0
    assert axes.x1 < key.x0 < key.x1 <= figure.bbox.x1
    for text in figure.axes[0].texts:
        box = text.get_window_extent()
        assert axes.x0 <= box.x0 < box.x1 <= axes.x1
        assert axes.y0 <= box.y0 < box.y1 <= axes.y1


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"bonds": [(0, 12, "single")]}, "atom 12 is not in this molecule"),
        ({"bonds": [(-1, 2, "single")]}, "atom -1 is not in this molecule"),
        ({"bonds": [(2, 2, "single")]}, "2–2 joins an atom to itself"),
        ({"bonds": [(0, 1, "quadruple")]}, "'quadruple'"),
        ({"bonds": [(0, 1, "single"), (1, 0, "double")]}, "1–0 is given twice, as 'single' and as 'double'"),
        ({"symbols": [], "bonds": []}, "no atoms"),
        ({"removed": [(0, 3)]}, "the removed bond 0–3 is not among the bonds"),
        ({"removed": [(0, 40)]}, "the removed bond 0–40: atom 40 is not"),
        ({"truth": [(7, 8)]}, "the ground-truth bond 7–8 is not among the bonds"),
        ({"added": [(1, 0)]}, "the added bond 1–0 is there already"),
    ],
)
def test_what_cannot_be(more: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        draw_molecule(**{"symbols": NITROANILINE, "bonds": NITROANILINE_BONDS, **more})


@pytest.mark.parametrize(("suffix", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("PDF", b"%PDF")])
def test_saving(tmp_path: Path, suffix: str, magic: bytes) -> None:
    path = tmp_path / f"molecule.{suffix}"
    draw_molecule(NITROANILINE, NITROANILINE_BONDS, removed=[(0, 6)], path=path)
    assert path.read_bytes().startswith(magic)
    assert list(tmp_path.iterdir()) == [path]


def test_saving_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\.png, \.svg or \.pdf"):
        draw_molecule(["C"], [], path=tmp_path / "molecule.gif")
    with pytest.raises(InputError, match="there is no folder"):
        draw_molecule(["C"], [], path=tmp_path / "missing" / "molecule.png")


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("matplotlib", "matplotlib.figure", "matplotlib.backends.backend_agg"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=r"pip install 'butfor\[plot\]'"):
        draw_molecule(["C"], [])


def test_without_rdkit_symbols_bonds_and_marks_are_drawn(without_rdkit: None) -> None:
    figure = draw_molecule(NITROANILINE, NITROANILINE_BONDS, removed=[(0, 6)], truth=[(6, 7), (6, 8)])
    assert letters(figure) == ["N", "N", "O", "O"]
    assert letters(figure, "hydrogens") == ["H₂"]
    assert letters(figure, "charge") == ["+", "−"]
    assert legend(figure) == ["removed bond", "ground truth"]
    assert len(collection(figure, "bonds").get_paths()) == 9 + 4
    assert len(collection(figure, "removed-bonds").get_paths()) == 1


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


def test_added_bonds_do_not_move_atoms() -> None:
    before, after = (
        collection(draw_molecule(["C"] * 6, chain(6), removed=[(2, 3)], added=added), "bonds").get_segments()
        for added in ([(0, 5)], [(0, 3), (1, 4)])
    )
    assert np.array_equal(before, after)


def test_parts_stand_side_by_side() -> None:
    bonds = [*BENZENE, *((u + 6, v + 6, kind) for u, v, kind in BENZENE), (12, 13, "single")]
    points = placed(["C"] * 14 + ["Na", "Cl"], bonds)
    parts = [points[:6], points[6:12], points[12:14], points[14:15], points[15:]]
    assert is_regular(parts[0])
    assert is_regular(parts[1])
    for first, second in combinations(parts, 2):
        assert np.abs(first[:, None] - second[None, :]).min() > 1


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
        assert letters(figure) == sorted(drawn)
