"""Every set of at most so many edits is bounded, or handed over to be tried.

Edits are decided in a given order: made first, then kept. Before anything is decided, all sets that are left are
bounded together; a branch in which none can reach the goal is left. What is handed over is a set whose own scores may
reach the goal, and where one edit is left to choose, all sets that it may complete. An edit that is cut off from the
target by those that are made is passed over: without it the set does the same, and is smaller.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from butfor.oracle.program.bounding.cases import bound, set_status
from butfor.oracle.program.bounding.reductions import FREE, KEPT, MADE
from butfor.oracle.program.bounding.rows import BASE, BASE_HIGH, HULL_HIGH, HULL_LOW, LEVELS
from butfor.oracle.program.bounding.tables import (
    CHEAPEST,
    CLOCK,
    COST,
    DELETES,
    DEPTH,
    DONE,
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
)
from butfor.oracle.program.kernels.flat import called, jit, kernel

__all__ = ["BOUNDED", "CANDIDATES", "PREFIXES", "Found", "search"]

# How far scores of single precision may be off, relative to their size, with room to spare.
ROUNDING = 1e-4

# What `Found.numbers` holds: how many prefixes and candidates there are, and how often something was bounded.
PREFIXES, CANDIDATES, BOUNDED = range(3)


class Found(NamedTuple):
    """What is to be tried: each prefix with each of its candidates.

    Attributes:
        prefixes: edits, and -1 behind them.
        pointers: the candidates of prefix ``i`` are those from pointers[i] to pointers[i + 1].
        candidates: edits.
        numbers: see above.
        margins: one number, what the margin is at least, where only that is asked for.
    """

    prefixes: Any
    pointers: Any
    candidates: Any
    numbers: Any
    margins: Any


@kernel
def _margin(t: Any, work: Any, low: int, high: int, every: bool) -> float:
    """The margin, the least of the differences of scores or the largest, less what rounding of the scores may hide."""
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
    """Mark all units that the target still depends on."""
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
    for k in range(t[t[OWNERS_FROM] + edit], t[t[OWNERS_FROM] + edit + 1]):
        owner = t[t[OWNERS] + k]
        for j in range(t[t[UNITS_FROM] + owner], t[t[UNITS_FROM] + owner + 1]):
            if t[t[LIVE] + t[t[UNITS] + j]] == t[CLOCK]:
                return True
    return False


@kernel
def _hand_over(t: Any, found: Any, length: int) -> None:
    """Close the list of candidates of a prefix."""
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
    """The position of the edit to decide next; -1 where there is none. Where one edit is left, all are handed over."""
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
    """Make an edit, and keep those that were passed over."""
    depth, order = t[DEPTH], t[t[ORDER] :]
    for p in range(t[t[NEXT] + depth], chosen):
        set_status(t, order[p], KEPT)
    t[t[NEXT] + depth], t[t[PICKED] + depth] = chosen, order[chosen]
    set_status(t, order[chosen], MADE)
    t[t[FREE_FROM] + depth + 1] = t[t[NEXT] + depth + 1] = chosen + 1
    t[DEPTH], t[IS_NEW] = depth + 1, 1


@kernel
def _leave(t: Any) -> None:
    """All that begins with the edits that are made is done: the last of them is kept from now on."""
    depth, order = t[DEPTH], t[t[ORDER] :]
    for p in range(t[t[FREE_FROM] + depth], t[t[NEXT] + depth]):
        set_status(t, order[p], FREE)
    if depth == 0:
        t[DONE] = 1
        return
    set_status(t, order[t[t[NEXT] + depth - 1]], KEPT)
    t[t[NEXT] + depth - 1] += 1
    t[DEPTH] = depth - 1


@jit
def search(
    t: Any, f: Any, work: Any, found: Any, size: int, limit: float, needed: float, every: bool, most_bounded: int
) -> None:
    """Go on until all is done, so much was bounded, or there is no room for what is to be tried.

    With nothing to go on for, only the margin is bounded: one entry for all keeps the time to compile short.
    """
    found.numbers[:] = 0
    if most_bounded == 0:
        bound(t, f, work, size, size)
        found.margins[0] = _margin(t, work, HULL_LOW + LEVELS - 1, HULL_HIGH + LEVELS - 1, every)
        return
    while not t[DONE]:
        depth = t[DEPTH]
        full = found.numbers[CANDIDATES] + t[NUM_ORDER] + 1 > len(found.candidates)
        if found.numbers[BOUNDED] >= most_bounded or full or found.numbers[PREFIXES] + 2 >= len(found.prefixes):
            return
        left = size - depth
        bound(t, f, work, left, size)
        found.numbers[BOUNDED] += 1
        if t[IS_NEW] and depth and _margin(t, work, BASE, BASE_HIGH, every) <= needed:
            _put_candidate(found, t[t[PICKED] + depth - 1])
            _hand_over(t, found, depth - 1)
        t[IS_NEW] = 0
        chosen = -1
        if not _margin(t, work, HULL_LOW + LEVELS - 1, HULL_HIGH + LEVELS - 1, every) > needed:
            cost = 0.0
            for k in range(depth):
                cost += f[t[COST] + t[t[NEXT] + k]]
            chosen = _follow(t, f, found, left, limit - cost - f[t[CHEAPEST] + left - 1])
        if chosen >= 0:
            _make(t, chosen)
        else:
            _leave(t)
