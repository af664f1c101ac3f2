"""The t-tests behind the significance tables, against scipy's and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import ttest_ind, ttest_rel

from butfor.evaluation.significance import ALPHA, paired_difference, unpaired_difference


def test_unpaired_is_welchs_test() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.normal(1, 1, 30), rng.normal(2, 5, 50)
    difference = unpaired_difference(first.tolist(), second.tolist())
    assert difference.p == pytest.approx(ttest_ind(first, second, equal_var=False).pvalue)
    assert difference.p != pytest.approx(ttest_ind(first, second, equal_var=True).pvalue)
    assert difference.mean == pytest.approx(first.mean() - second.mean())
    assert difference.counts == (30, 50)


def test_welchs_statistic_by_hand() -> None:
    # t = (2 - 5) / sqrt(1/3 + 1/3) with 4 degrees of freedom.
    difference = unpaired_difference([1, 2, 3], [4, 5, 6])
    assert difference.mean == -3
    assert difference.p == pytest.approx(0.02131164, abs=1e-7)
    assert not difference.significant
    assert difference.p > ALPHA


def test_paired_looks_only_at_common_targets() -> None:
    first = {1: 3.0, 2: 5.0, 3: 4.0, 9: 100.0}
    second = {1: 1.0, 2: 2.0, 3: 3.0, 8: -100.0}
    difference = paired_difference(first, second)
    assert difference.counts == (3, 3)
    assert difference.mean == 2
    assert difference.p == pytest.approx(ttest_rel([3, 5, 4], [1, 2, 3]).pvalue)


def test_the_order_of_targets_does_not_matter() -> None:
    first, second = {1: 3.0, 2: 5.0, 3: 4.0}, {3: 3.0, 1: 1.0, 2: 2.0}
    assert paired_difference(first, second) == paired_difference(dict(reversed(first.items())), second)


@pytest.mark.parametrize(
    ("first", "second", "p"),
    [
        ([1, 1, 1], [1, 1], 1.0),  # equal and without spread: no difference
        ([1, 1, 1], [2, 2], 0.0),  # no spread, and not equal: no chance
        ([1], [2, 3], math.nan),  # too few to say
        ([], [2, 3], math.nan),
    ],
)
def test_without_spread_or_without_values(first: list[float], second: list[float], p: float) -> None:
    assert unpaired_difference(first, second).p == pytest.approx(p, nan_ok=True)
    pairs = paired_difference(dict(enumerate(first)), dict(enumerate(second)))
    assert pairs.p == pytest.approx(p, nan_ok=True)
    assert pairs.significant == (p == 0)


def test_paired_without_spread() -> None:
    values = {1: 1.0, 2: 2.0, 3: 3.0}
    assert paired_difference(values, values).p == 1
    assert paired_difference(values, {key: value + 1 for key, value in values.items()}).p == 0
    assert math.isnan(paired_difference(values, {1: 1.0}).p)
    assert math.isnan(paired_difference(values, {}).mean)
