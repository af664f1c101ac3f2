"""Branch and bound over all sets of at most so many edits: each is pruned, or handed over to be tried.

Edits are decided in a given order: each is made first, and excluded (`KEPT`) after that. Before each decision all sets
of the branch are bounded together, and if none can reach the goal, the search backtracks. It hands over the set of
edits that are made if its own scores may reach the goal, and, where only one more edit may be made, this set with each
free edit. An edit that the made ones cut off from the target is passed over: without it the set has the same scores,
and is smaller. An edit is also passed over if a set of the full size that contains it would cost too much, so smaller
sizes must have been searched before. The head of the package has the proof.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from butfor.oracle.program.bounding.cases import bound, set_status
from butfor.oracle.program.bounding.entries import FREE, KEPT, MADE
from butfor.oracle.program.bounding.rows import BASE, BASE_HIGH, HULL_HIGH, HULL_LOW, LEVELS
from butfor.oracle.program.bounding.tables import (
    CHEAPEST,
    CLOCK,
    COST,
    DELETES,
    DEPTH,
    DONE,
    FLOOR,
    FREE_FROM,
    IS_NEW,
    LAST_UNIT,
    LIVE,
    NEXT,
    NUM_ORDER,
    NUM_SCORES,
    ORDER,
    OUT_START,
    OUT_WIDTH,
    OWNERS,
    OWNERS_FROM,
    PICKED,
    QUEUE,
    READS,
    READS_BY,
    READS_FROM,
    STATUS,
    UNITS,
    UNITS_FROM,
    WORKED,
)
from butfor.oracle.program.kernels.flat import called, jit, kernel

__all__ = ["CANDIDATES", "PREFIXES", "SPENT", "Found", "search"]

# How far scores in single precision may be off, relative to the largest score: generous, but not proved.
ROUNDING = 1e-4

# What `Found.numbers` holds: how many prefixes and candidates there are, and what was spent on bounds.
PREFIXES, CANDIDATES, SPENT = range(3)

# A bound counts as an evaluation, and as one more for so many numbers that it takes: some 20 microseconds of work.
NUMBERS_PER_EVALUATION = 2_000


class Found(NamedTuple):
    """The sets that are to be tried: each prefix together with one of its candidates.

    Attributes:
        prefixes: one a row: its edits, padded with -1.
        pointers: the candidates of prefix ``i`` are those from pointers[i] to pointers[i + 1].
        candidates: edits.
        numbers: counts, in the order of the constants above.
        margins: one number, a lower bound of the margin, where only that is asked for.
    """

    prefixes: Any
    pointers: Any
    candidates: Any
    numbers: Any
    margins: Any


@kernel
def _margin(t: Any, work: Any, low: int, high: int, every: bool) -> float:
    """A lower bound of the margin, less room for rounding; -inf where it is unknown.

    The margin is the least difference of scores if ``every``, else the largest.
    """
    o = t[OUT_START]
    margin, score = work[low, o], 0.0
    for c in range(1, t[OUT_WIDTH]):
        margin = min(margin, work[low, o + c]) if every else max(margin, work[low, o + c])
    for c in range(t[OUT_WIDTH], t[OUT_WIDTH] + t[NUM_SCORES]):
        score = max(score, max(abs(work[low, o + c]), abs(work[high, o + c])))
    margin -= ROUNDING * score
    return margin if margin == margin else -np.inf


@called
def _mark_live(t: Any) -> None:
    """Mark all units that the target still depends on: those that it reads, directly or not, without a deleted edge."""
    t[CLOCK] += 1
    now, queue, live, count, done = t[CLOCK], t[t[QUEUE] :], t[t[LIVE] :], 1, 0
    queue[0] = t[LAST_UNIT]
    live[t[LAST_UNIT]] = now
    while done < count:
        unit = queue[done]
        done += 1
        for k in range(t[t[READS_FROM] + unit], t[t[READS_FROM] + unit + 1]):
            other, edit = t[t[READS] + k], t[t[READS_BY] + k]
            gone = edit >= 0 and t[t[STATUS] + edit] == MADE and t[t[DELETES] + edit] != 0
            if not gone and live[other] != now:
                live[other] = now
                queue[count] = other
                count += 1


@kernel
def _is_live(t: Any, edit: int) -> bool:
    """Whether the target still depends on an owner of the edit."""
    for k in range(t[t[OWNERS_FROM] + edit], t[t[OWNERS_FROM] + edit + 1]):
        owner = t[t[OWNERS] + k]
        for j in range(t[t[UNITS_FROM] + owner], t[t[UNITS_FROM] + owner + 1]):
            if t[t[LIVE] + t[t[UNITS] + j]] == t[CLOCK]:
                return True
    return False


@kernel
def _hand_over(t: Any, found: Any, length: int) -> None:
    """Hand over the first ``length`` made edits as a prefix; its candidates were put before."""
    number = found.numbers[PREFIXES]
    for k in range(found.prefixes.shape[1]):
        found.prefixes[number, k] = t[t[PICKED] + k] if k < length else -1
    found.numbers[PREFIXES] += 1
    found.pointers[number + 1] = found.numbers[CANDIDATES]


@kernel
def _put_candidate(found: Any, edit: int) -> None:
    found.candidates[found.numbers[CANDIDATES]] = edit
    found.numbers[CANDIDATES] += 1


@kernel
def _follow(t: Any, f: Any, found: Any, left: int, room: float) -> int:
    """The position of the edit to decide next; -1 if there is none.

    If only one more edit may be made, all that may be are handed over as candidates instead.
    """
    _mark_live(t)
    depth = t[DEPTH]
    chosen = -1
    for p in range(t[t[NEXT] + depth], t[NUM_ORDER]):
        if f[t[COST] + p] <= room and _is_live(t, t[t[ORDER] + p]):
            if left > 1:
                chosen = p
                break
            _put_candidate(found, t[t[ORDER] + p])
    if left == 1:
        _hand_over(t, found, depth)
    return chosen


@kernel
def _make(t: Any, chosen: int) -> None:
    """Branch: make an edit, and exclude those that were passed over."""
    depth, order = t[DEPTH], t[t[ORDER] :]
    for p in range(t[t[NEXT] + depth], chosen):
        set_status(t, order[p], KEPT)
    t[t[NEXT] + depth], t[t[PICKED] + depth] = chosen, order[chosen]
    set_status(t, order[chosen], MADE)
    t[t[FREE_FROM] + depth + 1] = t[t[NEXT] + depth + 1] = chosen + 1
    t[DEPTH], t[IS_NEW] = depth + 1, 1


@kernel
def _leave(t: Any) -> None:
    """Backtrack: free what was excluded in this branch, and exclude the last edit that was made."""
    depth, order = t[DEPTH], t[t[ORDER] :]
    for p in range(t[t[FREE_FROM] + depth], t[t[NEXT] + depth]):
        set_status(t, order[p], FREE)
    if depth == t[FLOOR]:
        t[DONE] = 1
        return
    set_status(t, order[t[t[NEXT] + depth - 1]], KEPT)
    t[t[NEXT] + depth - 1] += 1
    t[DEPTH] = depth - 1


@jit
def search(
    t: Any, f: Any, work: Any, found: Any, size: int, limit: float, needed: float, every: bool, most: int
) -> None:
    """Search on until all is done, bounds have cost as much as ``most`` evaluations, or ``found`` has no more room.

    If ``most`` is 0, only the margin of the branch is bounded. (A second entry to the compiled code would double the
    time to compile. So would a function of its own between this one and those that compute rows: numba optimises all
    that a function calls once more with it, unless it is inlined before.)
    """
    found.numbers[:] = 0
    t[WORKED] = 0
    bounded = 0
    only_margin = most == 0
    while only_margin or not t[DONE]:
        depth = t[DEPTH]
        full = found.numbers[CANDIDATES] + t[NUM_ORDER] + 1 > len(found.candidates)
        full |= found.numbers[SPENT] >= most or found.numbers[PREFIXES] + 2 >= len(found.prefixes)
        if full and not only_margin:
            return
        left = size - depth
        level = min(left, LEVELS)
        bound(t, f, work, left, size)
        margin = _margin(t, work, HULL_LOW + level, HULL_HIGH + level, every)
        if only_margin:
            found.margins[0] = margin
            return
        bounded += 1
        found.numbers[SPENT] = bounded + t[WORKED] // NUMBERS_PER_EVALUATION
        if t[IS_NEW] and depth and _margin(t, work, BASE, BASE_HIGH, every) <= needed:
            _put_candidate(found, t[t[PICKED] + depth - 1])
            _hand_over(t, found, depth - 1)
        t[IS_NEW] = 0
        chosen = -1
        if not margin > needed:
            cost = 0.0
            for k in range(depth):
                cost += f[t[COST] + t[t[NEXT] + k]]
            chosen = _follow(t, f, found, left, limit - cost - f[t[CHEAPEST] + left - 1])
        if chosen >= 0:
            _make(t, chosen)
        else:
            _leave(t)
