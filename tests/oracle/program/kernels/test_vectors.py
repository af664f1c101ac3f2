"""Vector instructions add up what a plain matrix product does, and write nowhere else."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from butfor.oracle.program.kernels.vectors import BLOCKS, add_multiples


@njit
def added(out, o, matrix, m, factors, rows, count, width):
    add_multiples(out, o, matrix, m, factors, rows, count, width)


# Every way in which a row is cut into blocks: none, some or several of each size.
WIDTHS = sorted({whole + rest for whole in (0, 32, 64) for rest in (0, 1, 3, 4, 7, 8, 12, 15, 31)} - {0})


@pytest.mark.parametrize("count", [0, 1, 5])
def test_multiples_of_rows_are_added(count: int) -> None:
    assert [lanes * vectors for lanes, vectors in BLOCKS] == [32, 8, 4, 1]
    random = np.random.default_rng(count)
    for width in WIDTHS:
        matrix, factors = random.normal(size=3 + 9 * width), random.normal(size=6)
        rows, before = random.permutation(9)[:6], random.normal(size=width + 10)
        out = before.copy()
        added(out, 5, matrix, 3, factors, rows, count, width)
        truth = before.copy()
        truth[5 : 5 + width] += factors[:count] @ matrix[3:].reshape(9, width)[rows[:count]]
        np.testing.assert_allclose(out, truth, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(out[:5], before[:5])
        np.testing.assert_array_equal(out[5 + width :], before[5 + width :])
