"""What is known of the edits at each row, case by case; see `bounds.py` for what it is good for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]
    Numbers = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = ["Cases", "Family", "subsets"]

# A row has a case for each subset of its free edits while there are at most so many.
MOST_SUBSETS = 256

# Bounds are computed for at most 0, 1, 2, ... so many edits that are made, and for any number.
LEVELS = 3


@dataclass(frozen=True, eq=False)
class Family:
    """All graphs with the ``made`` edits and at most ``most`` of the ``free`` ones.

    The last place of both arrays is for what no edit changes.
    """

    made: Bools
    free: Bools
    most: int

    @property
    def levels(self) -> Numbers:
        """The numbers of edits that bounds are computed for, ascending; the last is ``most``."""
        return np.unique(np.minimum([*range(LEVELS + 1), self.most], self.most))


@dataclass(frozen=True, eq=False)
class Cases:
    """The cases of all rows, one row's behind the other's.

    Attributes:
        levels: of the family.
        edits: for each row, the free edits that are its own.
        chosen: for each row, which of these are made in each of its cases; None where only their number is known.
        starts: where the cases of each row begin, and behind the last one.
        row_of: the row of each case.
        size: how many edits of the row are made in each case.
    """

    levels: Numbers
    edits: list[Numbers]
    chosen: list[Bools | None]
    starts: Numbers
    row_of: Numbers
    size: Numbers

    @classmethod
    def of(cls, edits: list[Numbers], family: Family) -> Cases:
        """The cases of a family in which at most ``most`` edits are made."""
        chosen = [subsets(len(mine), min(family.most, len(mine))) for mine in edits]
        sizes = [
            np.arange(min(family.most, len(mine)) + 1) if some is None else some.sum(axis=1)
            for mine, some in zip(edits, chosen, strict=True)
        ]
        counts = np.array([len(some) for some in sizes], dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum(counts)])
        row_of = np.repeat(np.arange(len(edits)), counts)
        return cls(family.levels, edits, chosen, starts, row_of, np.concatenate(sizes) if sizes else starts[:0])

    def level(self, edits: Numbers) -> Numbers:
        """The first level that is no less than these numbers of edits, or the last one."""
        return np.minimum(np.searchsorted(self.levels, edits), len(self.levels) - 1)

    def hull(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """From (level, case, column) to (level, row, column): what holds whatever edits of the row are made.

        The levels of what is given count edits that are not the row's own; those of what is returned count all.
        """
        lows, highs = [], []
        every = np.arange(len(self.size))
        for level in self.levels:
            fits = (self.size <= level)[:, None]
            at = self.level(np.maximum(level - self.size, 0))
            lows.append(np.minimum.reduceat(np.where(fits, low[at, every], np.inf), self.starts[:-1]))
            highs.append(np.maximum.reduceat(np.where(fits, high[at, every], -np.inf), self.starts[:-1]))
        return np.stack(lows), np.stack(highs)

    def lifted(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """From (level, row, column) to (level, case, column): what was read of other rows, in each case of a row."""
        at = self.level(self.levels[:, None] + self.size)
        return low[at, self.row_of], high[at, self.row_of]


@cache
def subsets(count: int, most: int) -> Bools | None:
    """All subsets of at most ``most`` of ``count`` things, the empty one first; None where these are too many."""
    if count > MOST_SUBSETS or sum(math.comb(count, size) for size in range(most + 1)) > MOST_SUBSETS:
        return None
    chosen = [subset for size in range(most + 1) for subset in combinations(range(count), size)]
    mask = np.zeros((len(chosen), count), dtype=bool)
    for row, subset in enumerate(chosen):
        mask[row, list(subset)] = True
    return mask
