"""How many entries of a reduction can differ from their usual values in a case."""

from __future__ import annotations

from typing import Any

from butfor.oracle.program.bounding.entries import FREE
from butfor.oracle.program.bounding.tables import (
    BINS,
    CHOSEN,
    COUNT_EDITS,
    COUNT_FROM,
    COUNTS,
    OWN_BINS,
    SLOT,
    STATUS,
)
from butfor.oracle.program.kernels.flat import called, kernel

__all__ = ["MOST_CONES", "capacity"]

# Edits are sorted by how many cones they are in; from MOST_CONES - 1 on, all share one bin, with the largest number.
MOST_CONES = 16


@called
def capacity(t: Any, at: int, case: Any) -> int:
    """Q, the capacity of a row: how many edits in cones of its entries are made at most, counted once for each cone."""
    others, own, total, highest = t[t[BINS] :], t[t[OWN_BINS] :], 0, 0
    for k in range(MOST_CONES):
        others[k] = own[k] = 0
    for k in range(t[t[COUNT_FROM] + at], t[t[COUNT_FROM] + at + 1]):
        edit, count = t[t[COUNT_EDITS] + k], t[t[COUNTS] + k]
        if t[t[STATUS] + edit] != FREE:
            continue
        place = min(count, MOST_CONES - 1)
        if t[t[SLOT] + edit] < 0:
            others[place] += 1
        elif case.counted:
            own[place] += 1
        else:
            total += count if t[t[CHOSEN] + edit] != 0 else 0
            continue
        highest = max(highest, count)
    if case.counted:
        # So many of the edits are the owner's; and all together are no more than the budget.
        apart = _most(own, case.most, highest) + _most(others, case.budget - case.least, highest)
        for k in range(MOST_CONES):
            others[k] += own[k]
        return min(apart, _most(others, case.budget, highest))
    return total + _most(others, case.budget - case.most, highest)


@kernel
def _most(bins: Any, left: int, highest: int) -> int:
    """The sum of the ``left`` largest numbers in the bins, at most."""
    total = 0
    for count in range(MOST_CONES - 1, 0, -1):
        taken = min(left, bins[count])
        total += taken * (highest if count == MOST_CONES - 1 else count)
        left -= taken
    return total
