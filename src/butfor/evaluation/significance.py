"""Whether two methods differ: t-tests on all their results, and on the targets that both methods explain."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["ALPHA", "Difference", "paired_difference", "unpaired_difference"]

# The paper's level of significance.
ALPHA = 0.01


@dataclass(frozen=True)
class Difference:
    """The difference between the means of two sets of values, and how likely it is to arise by chance.

    Attributes:
        mean: the mean of the first set minus that of the second.
        p: the p-value of a two-sided t-test; NaN where there are too few values for one.
        counts: the number of values in each set.
    """

    mean: float
    p: float
    counts: tuple[int, int]

    @property
    def significant(self) -> bool:
        """Whether p is below the paper's level of significance."""
        return self.p < ALPHA


def unpaired_difference(first: Sequence[float], second: Sequence[float]) -> Difference:
    """Welch's t-test: the two sets may differ in variance and in the targets they are about."""
    from scipy.stats import ttest_ind

    a, b = np.asarray(first, float), np.asarray(second, float)
    counts = (len(a), len(b))
    if not len(a) or not len(b):
        return Difference(math.nan, math.nan, counts)
    mean = float(a.mean() - b.mean())
    if min(counts) < 2:
        return Difference(mean, math.nan, counts)
    # Where no value varies, scipy has no answer: equal means are no difference, others cannot be chance.
    if np.ptp(a) == 0 and np.ptp(b) == 0:
        return Difference(mean, float(mean == 0), counts)
    return Difference(mean, float(ttest_ind(a, b, equal_var=False).pvalue), counts)


def paired_difference(first: Mapping[int, float], second: Mapping[int, float]) -> Difference:
    """The paired t-test on the targets that have a value in both sets."""
    from scipy.stats import ttest_1samp

    both = sorted(first.keys() & second.keys())
    differences = np.array([first[target] - second[target] for target in both], float)
    counts = (len(both), len(both))
    if not both:
        return Difference(math.nan, math.nan, counts)
    mean = float(differences.mean())
    if len(both) < 2:
        return Difference(mean, math.nan, counts)
    if np.ptp(differences) == 0:
        return Difference(mean, float(mean == 0), counts)
    return Difference(mean, float(ttest_1samp(differences, 0.0).pvalue), counts)
