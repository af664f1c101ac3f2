"""What of a molecule is drawn: atoms and bonds that contradict each other are refused."""

from __future__ import annotations

from typing import Any

import pytest

from butfor.errors import InputError
from butfor.plotting.molecules.sketch import Sketch
from molecule_samples import NITROANILINE, NITROANILINE_BONDS


def test_hydrogens_join_the_atom_that_they_are_bound_to() -> None:
    sketch = Sketch.of(NITROANILINE, NITROANILINE_BONDS)
    assert sketch.symbols == NITROANILINE[:10]
    assert sketch.hydrogens == [0] * 9 + [2]
    assert {sketch.symbols[atom]: charge for atom, charge in enumerate(sketch.charges) if charge} == {"N": 1, "O": -1}
    assert len(sketch.bonds) == 10


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
def test_what_cannot_be_is_refused(more: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Sketch.of(**{"symbols": NITROANILINE, "bonds": NITROANILINE_BONDS, **more})
