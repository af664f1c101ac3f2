"""How numbers and rows are written in the tables."""

from __future__ import annotations

import math

import pytest

from butfor.paper.formatting import blank_repeats, format_difference, format_mean, format_number, format_p_value


def test_numbers_in_cells() -> None:
    assert format_number(1.005, 1) == "1.0"
    assert format_number(None) == format_number(math.nan) == "–"
    assert format_mean(2.094, 2.212) == "2.09 ± 2.21"
    assert format_mean(2.094, None) == "2.09"
    assert format_mean(math.nan, math.nan) == "–"
    assert format_difference(0.8, 1.0) == "−0.20"
    assert format_difference(1.0, 0.8) == "+0.20"
    assert format_difference(2.094, 2.09) == "0.00"
    assert format_difference(2.086, 2.09) == "0.00"
    assert format_difference(math.nan, 1.0) == format_difference(1.0, None) == "–"


@pytest.mark.parametrize(("p", "told"), [(0.5, "0.5000"), (0.00001, "< 0.0001"), (math.nan, "–")])
def test_probabilities_in_cells(p: float, told: str) -> None:
    assert format_p_value(p) == told


def test_a_first_cell_that_repeats_the_one_above_is_blank() -> None:
    rows = [("a", "a"), ("a", "b"), ("b", "b"), ("a", "b")]
    assert blank_repeats(rows) == (("a", "a"), ("", "b"), ("b", "b"), ("a", "b"))
    assert blank_repeats([]) == ()
