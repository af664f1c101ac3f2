"""What exact search branches over: edits in an order, and branches of sets that begin alike."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from butfor.oracle.base import Influence

__all__ = ["Branch", "Ordering", "diverse"]


@dataclass(frozen=True, eq=False)
class Ordering:
    """Edits in the order they are tried, those of one equivalence class side by side.

    Attributes:
        edits: the order.
        costs: what each costs.
        is_first: whether each is the first of its class.
        limits: the largest effect of each, falling; None where nothing is proved.
        total: the largest effect of all together.
    """

    edits: NDArray[np.int64]
    costs: NDArray[np.float64]
    is_first: NDArray[np.bool_]
    limits: NDArray[np.float64] | None = None
    total: float = math.inf

    @classmethod
    def of(
        cls,
        free: NDArray[np.int64],
        costs: NDArray[np.float64],
        classes: NDArray[np.int64],
        promise: NDArray[np.float64],
        influence: Influence | None,
    ) -> Ordering:
        """Order edits by their bounded influence, the largest first; where there are no bounds, by their promise."""
        order = np.lexsort([free, classes, promise if influence is None else -influence.limits])
        is_first = np.append(True, np.diff(classes[order]) != 0)[: len(order)]
        if influence is None:
            return cls(free[order], costs[order], is_first)
        return cls(free[order], costs[order], is_first, influence.limits[order], influence.total)

    @cached_property
    def _firsts(self) -> NDArray[np.int64]:
        """The positions of those that are the first of their class."""
        return np.flatnonzero(self.is_first)

    @cached_property
    def _firsts_before(self) -> NDArray[np.int64]:
        """How many of these come before each position, and in all."""
        return np.append(0, np.cumsum(self.is_first))

    @cached_property
    def _effects(self) -> dict[int, NDArray[np.float64]]:
        return {}

    def largest_effect(self, count: int) -> NDArray[np.float64]:
        """The most that ``count`` edits can do, of those from each position on and of none at all; it falls."""
        if count not in self._effects:
            assert self.limits is not None
            starts = np.arange(len(self.edits) + 1)
            sums = np.append(0.0, np.cumsum(self.limits))
            # Differences of long sums lose digits, and those of infinite ones are no numbers.
            with np.errstate(invalid="ignore"):
                lost = len(self.edits) * np.finfo(float).eps * sums[-1]
                effect = sums[np.minimum(starts + count, len(self.edits))] - sums + lost
            effect = np.minimum(np.where(np.isnan(effect), math.inf, effect), self.total)
            self._effects[count] = np.maximum.accumulate(effect[::-1])[::-1]
        return self._effects[count]

    def candidates(self, count: int, start: int, need: float) -> NDArray[np.int64]:
        """The first of each class from ``start`` on that may be enough as the next of ``count`` edits."""
        # Of the class that the last edit belongs to, the next is the first that is left.
        same = start < len(self.edits) and not self.is_first[start]
        end = len(self.edits)
        if self.limits is not None:
            end = int(np.searchsorted(-self.largest_effect(count)[:-1], -need, side="right"))
        positions = self._firsts[self._firsts_before[start] : self._firsts_before[end]]
        return np.append(start, positions) if same and start < end else positions


@dataclass(frozen=True, eq=False)
class Branch:
    """All sets of these edits and some of those from a position of the ordering on.

    Attributes:
        chosen: edits that are in the set.
        cost: what they cost.
        need: how far the margin still has to fall, less what rounding may hide; only bounds use it.
        ordering: of the edits that may follow.
        start: the first position of these.
    """

    chosen: tuple[int, ...]
    cost: float
    need: float
    ordering: Ordering
    start: int

    def child(self, position: int, need: float) -> Branch:
        """The branch with one more edit."""
        edit = int(self.ordering.edits[position])
        cost = self.cost + float(self.ordering.costs[position])
        return Branch((*self.chosen, edit), cost, need, self.ordering, position + 1)


def diverse(first: tuple[int, ...], sets: list[tuple[int, ...]], count: int) -> list[tuple[int, ...]]:
    """Choose ``count`` sets, each sharing as few edits as can be with the closest of those taken before it."""
    taken: list[tuple[int, ...]] = []
    shared = {edits: len({*edits} & {*first}) for edits in sets}
    while shared and len(taken) < count:
        chosen = min(shared, key=lambda edits: (shared[edits], edits))
        taken.append(chosen)
        del shared[chosen]
        shared = {edits: max(most, len({*edits} & {*chosen})) for edits, most in shared.items()}
    return taken
