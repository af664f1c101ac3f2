"""Vector instructions do what plain NumPy does, and write nowhere else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

from butfor.oracle.program.kernels import vectors
from butfor.oracle.program.kernels.emitting import LANES, VECTORS
from butfor.oracle.program.layout import room_for

# Every way in which a row is cut into vectors: several at once, single ones, and a part of one.
WIDTHS = sorted({whole + rest for whole in (0, 32, 64) for rest in (0, 1, 3, 4, 7, 8, 12, 15, 31)} - {0})


@njit
def multiples(out, o, start, s, matrix, m, factors, rows, count, width):
    vectors.add_multiples(out, o, start, s, matrix, m, factors, rows, count, width)


@njit
def products(out, o, p, start, s, t, x, i, j, matrix, m, wide, width):
    vectors.add_products(out, o, p, start, s, t, x, i, j, matrix, m, wide, width)


@njit
def products_of_relus(out, o, p, start, s, t, x, i, j, matrix, m, wide, width):
    vectors.add_products_of_relus(out, o, p, start, s, t, x, i, j, matrix, m, wide, width)


@njit
def of_rows(which, out, o, start, s, values, places, count, width):
    if which == 0:
        vectors.add_rows(out, o, start, s, values, places, count, width)
    elif which == 1:
        vectors.largest_of_rows(out, o, start, s, values, places, count, width)
    else:
        vectors.smallest_of_rows(out, o, start, s, values, places, count, width)


@njit
def row_by_row(which, out, o, x, i, y, j, width):
    if which == 0:
        vectors.copy_row(out, o, x, i, width)
    elif which == 1:
        vectors.relu_row(out, o, x, i, width)
    elif which == 2:
        vectors.add_row(out, o, x, i, y, j, width)
    elif which == 3:
        vectors.multiply_row(out, o, x, i, y, j, width)
    else:
        vectors.fill_row(out, o, 0.5, width)


@njit
def differ(x, i, y, j, width):
    return vectors.rows_differ(x, i, y, j, width)


def numbers(random: np.random.Generator, size: int) -> np.ndarray:
    """With room behind them, as the arrays of a program have."""
    made = room_for(size)
    made[:] = random.normal(size=size)
    return made


def check(out: np.ndarray, before: np.ndarray, rows: dict[int, np.ndarray]) -> None:
    """Rows that begin at some places are as they should be, and everything else is as it was."""
    truth = before.copy()
    for place, row in rows.items():
        truth[place : place + len(row)] = row
    np.testing.assert_allclose(out, truth, rtol=1e-12, atol=1e-12)
    untouched = np.ones(len(out), dtype=bool)
    for place, row in rows.items():
        untouched[place : place + len(row)] = False
    np.testing.assert_array_equal(out[untouched], before[untouched])


def test_widths_are_cut_in_every_way() -> None:
    assert {width // (LANES * VECTORS) for width in WIDTHS} == {0, 1, 2}
    assert {width % LANES for width in WIDTHS} == {0, 1, 3, 4, 7}


@pytest.mark.parametrize("count", [0, 1, 5, 6])
def test_multiples_of_rows_are_added(count: int) -> None:
    random = np.random.default_rng(count)
    for width in WIDTHS:
        matrix, factors, start = numbers(random, 3 + 9 * width), random.normal(size=6), numbers(random, width + 2)
        rows, before = random.permutation(9)[:6], numbers(random, width + 10)
        out = room_for(len(before))
        out[:] = before
        multiples(out, 5, start, 2, matrix, 3, factors, rows, count, width)
        truth = start[2:] + factors[:count] @ matrix[3:].reshape(9, width)[rows[:count]]
        check(out, before, {5: truth})


@pytest.mark.parametrize(("product", "least"), [(products, -np.inf), (products_of_relus, 0.0)])
@pytest.mark.parametrize("wide", [1, 4, 7, 32])
def test_products_of_two_rows_are_each_what_they_are_alone(product: Any, least: float, wide: int) -> None:
    random = np.random.default_rng(wide)
    for width in WIDTHS:
        matrix, x, start = numbers(random, 3 + wide * width), numbers(random, 2 * wide), numbers(random, 2 * width)
        # Neighbours: what is written behind the end of one row is the beginning of the other.
        before = numbers(random, 1 + 2 * width)
        both, alone = room_for(len(before)), room_for(len(before))
        both[:] = alone[:] = before
        product(both, 1, 1 + width, start, 0, width, x, wide, 0, matrix, 3, wide, width)
        table = matrix[3:].reshape(wide, width)
        x_used = np.maximum(x, least)
        truth = {1: start[:width] + x_used[wide:] @ table, 1 + width: start[width:] + x_used[:wide] @ table}
        check(both, before, truth)
        product(alone, 1 + width, 1 + width, start, width, width, x, 0, 0, matrix, 3, wide, width)
        check(alone, before, {1 + width: truth[1 + width]})
        np.testing.assert_array_equal(alone[1 + width :], both[1 + width :])


@pytest.mark.parametrize("count", [0, 1, 4])
@pytest.mark.parametrize(("which", "join"), [(0, np.add), (1, np.maximum), (2, np.minimum)])
def test_rows_are_joined(which: int, join: np.ufunc, count: int) -> None:
    random = np.random.default_rng(count)
    for width in WIDTHS:
        values, start, before = numbers(random, 7 * width), numbers(random, width), numbers(random, width + 4)
        places = random.permutation(7)[:4] * width
        out = room_for(len(before))
        out[:] = before
        of_rows(which, out, 2, start, 0, values, places, count, width)
        truth = start.copy()
        for place in places[:count]:
            truth = join(truth, values[place : place + width])
        check(out, before, {2: truth})


def test_rows_are_computed_column_by_column() -> None:
    random = np.random.default_rng(0)
    for width in WIDTHS:
        x, y, before = numbers(random, width + 1), numbers(random, width + 2), numbers(random, width + 4)
        left, right = x[1:], y[2:]
        for which, truth in enumerate([left, left.clip(min=0), left + right, left * right, np.full(width, 0.5)]):
            out = room_for(len(before))
            out[:] = before
            row_by_row(which, out, 2, x, 1, y, 2, width)
            check(out, before, {2: truth})


def test_what_is_no_number_stays_so_behind_a_relu() -> None:
    x, out = room_for(3), room_for(3)
    x[:] = np.nan, -1.0, np.inf
    row_by_row(1, out, 0, x, 0, x, 0, 3)
    np.testing.assert_array_equal(out, [np.nan, 0.0, np.inf])


def test_rows_differ_where_one_number_does() -> None:
    for width in WIDTHS:
        x, y = room_for(width + 1), room_for(width + 1)
        x[width] = 1.0  # behind the row
        assert not differ(x, 0, y, 0, width)
        for column in {0, width // 2, width - 1}:
            for other in (1e-300, np.nan):
                y[column] = other
                assert differ(x, 0, y, 0, width)
            y[column] = 0.0
