"""Pictures of molecules: labels, bonds and marks as chemists draw them."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest

from butfor.errors import InputError
from butfor.plotting.molecules.drawing import TRUTH, draw_molecule
from butfor.plotting.style import NEW, REMOVED
from molecule_samples import BENZENE, CUBE, NITROANILINE, NITROANILINE_BONDS, Bonds, carbon, chain
from pictures import collection, colour, count, legend, words

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure


def letters(figure: Figure, gid: str = "atom") -> list[str]:
    return sorted(words(figure, gid))


def pixels(figure: Figure) -> bytes:
    figure.canvas.draw()
    return bytes(figure.canvas.buffer_rgba())


def test_hydrogens_are_part_of_labels() -> None:
    figure = draw_molecule(NITROANILINE, NITROANILINE_BONDS)
    assert letters(figure) == ["N", "N", "O", "O"]
    assert letters(figure, "hydrogens") == ["H₂"]
    assert letters(figure, "charge") == ["+", "−"]
    assert legend(figure) == []
    # Six bonds in the ring and six outside it, two of them to hydrogen; four are double.
    assert count(figure, "bonds") == 10 + 4


@pytest.mark.parametrize("mark", ["removed", "truth"])
def test_a_marked_hydrogen_stands_for_itself(mark: str) -> None:
    figure = draw_molecule(NITROANILINE, NITROANILINE_BONDS, **{mark: [(11, 9)]})
    assert letters(figure) == ["H", "N", "N", "O", "O"]
    assert letters(figure, "hydrogens") == ["H"]
    assert count(figure, f"{mark}-bonds") == 1


def test_a_hydrogen_that_gets_a_bond_stands_for_itself() -> None:
    figure = draw_molecule(NITROANILINE, NITROANILINE_BONDS, added=[(10, 7)])
    assert letters(figure) == ["H", "N", "N", "O", "O"]


def test_what_is_marked() -> None:
    figure = draw_molecule(
        NITROANILINE, NITROANILINE_BONDS, removed=[(7, 6), (0, 1)], added=[(1, 4)], truth=[(6, 7), (6, 8)]
    )
    assert legend(figure) == ["removed bond", "added bond", "ground truth"]
    for gid, ink, lines in (("removed-bonds", REMOVED, 3), ("added-bonds", NEW, 1), ("truth-bonds", TRUTH, 2)):
        assert colour(collection(figure, gid)) == ink
        assert count(figure, gid) == lines
    assert collection(figure, "removed-bonds").get_linestyle()[0][1] is not None
    assert {item.get_gid() for item in draw_molecule(NITROANILINE, NITROANILINE_BONDS).axes[0].collections} == {"bonds"}


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
    assert count(figure, "bonds") == count(figure, "aromatic") == 6


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
def test_small_molecules_show_their_atoms(symbols: list[str], bonds: Bonds, seen: list[str]) -> None:
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
@pytest.mark.slow
def test_large_molecules_are_drawn_soon(bonds: Bonds) -> None:
    start = time.process_time()
    draw_molecule(carbon(bonds), bonds)
    assert time.process_time() - start < 5


def test_the_same_molecule_gives_the_same_picture() -> None:
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


@pytest.mark.parametrize(("suffix", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("PDF", b"%PDF")])
def test_a_picture_is_saved_as_its_name_says(tmp_path: Path, suffix: str, magic: bytes) -> None:
    path = tmp_path / f"molecule.{suffix}"
    draw_molecule(NITROANILINE, NITROANILINE_BONDS, removed=[(0, 6)], path=path)
    assert path.read_bytes().startswith(magic)
    assert list(tmp_path.iterdir()) == [path]


def test_other_formats_and_missing_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\.png, \.svg or \.pdf"):
        draw_molecule(["C"], [], path=tmp_path / "molecule.gif")
    with pytest.raises(InputError, match="there is no folder"):
        draw_molecule(["C"], [], path=tmp_path / "missing" / "molecule.png")


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("matplotlib", "matplotlib.figure", "matplotlib.backends.backend_agg"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=r"pip install 'butfor\[plot\]'"):
        draw_molecule(["C"], [])


def test_without_rdkit_symbols_bonds_and_marks_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rdkit", None)
    figure = draw_molecule(NITROANILINE, NITROANILINE_BONDS, removed=[(0, 6)], truth=[(6, 7), (6, 8)])
    assert letters(figure) == ["N", "N", "O", "O"]
    assert letters(figure, "hydrogens") == ["H₂"]
    assert letters(figure, "charge") == ["+", "−"]
    assert legend(figure) == ["removed bond", "ground truth"]
    assert count(figure, "bonds") == 9 + 4
    assert count(figure, "removed-bonds") == 1


def test_added_bonds_do_not_move_atoms() -> None:
    before, after = (
        collection(draw_molecule(["C"] * 6, chain(6), removed=[(2, 3)], added=added), "bonds").get_segments()
        for added in ([(0, 5)], [(0, 3), (1, 4)])
    )
    assert np.array_equal(before, after)


def test_atoms_of_edited_bonds_show_their_names() -> None:
    figure = draw_molecule(NITROANILINE, NITROANILINE_BONDS, removed=[(7, 6)], added=[(1, 4)])
    assert letters(figure, "name") == ["1", "4", "6", "7"]
    names = [f"{symbol}{atom}" for atom, symbol in enumerate(NITROANILINE)]
    figure = draw_molecule(NITROANILINE, NITROANILINE_BONDS, removed=[(7, 6)], added=[(1, 4)], names=names)
    # The letter of an atom that shows it is not repeated.
    assert letters(figure, "name") == ["6", "7", "C1", "C4"]
    assert letters(draw_molecule(NITROANILINE, NITROANILINE_BONDS, names=names), "name") == []


def test_names_of_atoms_cover_no_letter() -> None:
    for removed in ([(7, 6)], [(0, 1)], [(11, 9)]):
        figure = draw_molecule(NITROANILINE, NITROANILINE_BONDS, removed=removed)
        figure.canvas.draw()
        texts = figure.axes[0].texts
        # Letters without the space between lines.
        boxes = {text: text.get_window_extent().padded(-1, -0.2 * text.get_window_extent().height) for text in texts}
        for name in (text for text in texts if text.get_gid() == "name"):
            assert not any(boxes[name].overlaps(boxes[text]) for text in texts if text is not name)
