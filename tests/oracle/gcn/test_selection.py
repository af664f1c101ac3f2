"""The largest of many numbers, as numpy's sort has them; bounds rest on these sums."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from butfor.oracle.gcn import selection


# What only compiled code calls has no wrapper for Python.
@njit
def sort_falling(values, other, count):
    selection.sort_falling(values, other, count)


@njit
def sum_of_largest(values, count, most):
    return selection.sum_of_largest(values, count, most)


@njit
def sum_of_largest_parts(values, parts, count, most):
    return selection.sum_of_largest_parts(values, parts, count, most)


@pytest.mark.parametrize("ties", [False, True])
def test_largest_numbers_are_found(ties: bool) -> None:
    """Few and many, of few and of many: these are found in different ways."""
    random = np.random.default_rng(0)
    for size in (1, 2, 7, 8, 9, 10, 25, 60):
        for count in {0, 1, size // 2, size}:
            values = random.integers(-2, 3, size).astype(float) if ties else random.normal(size=size)
            falling = -np.sort(-values[:count])
            for most in {0, 1, 2, count // 2, max(count - 1, 0), count, count + 3}:
                assert sum_of_largest(values.copy(), count, most) == pytest.approx(falling[:most].sum(), abs=1e-12)
            kept, other = values.copy(), np.arange(size, dtype=float)
            sort_falling(kept, other, count)
            np.testing.assert_array_equal(kept[:count], falling)
            np.testing.assert_array_equal(values[other.astype(int)], kept)


@pytest.mark.parametrize("ties", [False, True])
def test_largest_parts_are_found(ties: bool) -> None:
    random = np.random.default_rng(1)
    for count in (0, 1, 2, 7, 8, 9, 10, 25, 60):
        sizes = random.integers(1, 4, count).astype(float) if ties else random.random(count) + 1e-3
        parts = random.integers(1, 5, count)
        falling = -np.sort(-np.repeat(sizes, parts))
        for most in {0, 1, 7, 8, 9, 12, len(falling) // 2, len(falling), len(falling) + 5}:
            found = sum_of_largest_parts(sizes.copy(), parts.astype(float), count, most)
            assert found == pytest.approx(falling[:most].sum(), abs=1e-12)
