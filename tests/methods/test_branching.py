"""Orderings of edits, and sets that differ."""

from __future__ import annotations

import numpy as np
import pytest

from butfor.methods.branching import Ordering, diverse


@pytest.mark.parametrize("large", [1e17, 1e300, np.inf])
def test_a_large_limit_does_not_swallow_the_small_ones(large: float) -> None:
    """Sums of what few edits can do are differences of long sums, and these lose digits."""
    limits = np.array([large, 1.0, 1.0])
    ordering = Ordering(np.arange(3), np.ones(3), np.ones(3, dtype=bool), limits)
    assert (ordering.largest_effect(1)[:3] >= limits).all()
    assert ordering.largest_effect(2)[1] >= 2


def test_sets_are_chosen_that_share_least_with_those_taken_before() -> None:
    sets = [(0, 1, 3), (0, 2, 4), (3, 4, 5), (4, 5, 6)]
    assert diverse((0, 1, 2), sets, 2) == [(3, 4, 5), (0, 1, 3)]
    assert diverse((0, 1, 2), sets, 9) == [(3, 4, 5), (0, 1, 3), (0, 2, 4), (4, 5, 6)]
    assert diverse((0, 1, 2), [], 3) == []
