"""How the budget is spent at worst: on edits at the target, on what its senders send, and on scales further out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from butfor.oracle.gcn.kernels import kernel, step
from butfor.oracle.gcn.margins.tables import hull
from butfor.oracle.gcn.selection import sort_falling

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from butfor.oracle.gcn.layout import ReceptiveField
    from butfor.oracle.gcn.margins.workspace import Workspace

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["pair_bound"]


@step
def _fill_steps(kind: int, end: int, most: int, work: Workspace) -> int:
    """Sums of the largest so many increments; returns how many there are."""
    slopes, counts, steps = work.slopes[kind], work.counts[kind], work.steps[kind]
    sort_falling(slopes, counts, end)
    steps[0] = 0.0
    length = 0
    for i in range(end):
        for _ in range(int(counts[i])):
            if length < most:
                steps[length + 1] = steps[length] + slopes[i]
                length += 1
    return length


@step
def _most(steps: Floats, first: int, second: int, senders: int, everyone: int) -> Any:
    """The largest sum of at most ``senders`` increments of the first kind and as many of the second as are left."""
    low, high = 0, min(senders, first)
    # The increments of the one kind fall and those left out of the other grow, so there is one place where they meet.
    while low < high:
        middle = (low + high) // 2
        a = steps[0, middle + 1] - steps[0, middle]
        left = everyone - middle
        b = steps[1, left] - steps[1, left - 1] if 0 < left <= second else 0.0
        if a > b:
            low = middle + 1
        else:
            high = middle
    left = max(min(everyone - low, second), 0)
    return steps[0, low] + steps[1, left]


@kernel
def pair_bound(
    field: ReceptiveField, free: NDArray[np.bool_], more: int, p: int, at_target: int, elsewhere: int, work: Workspace
) -> Any:
    """The least of what the target sums up times its scale, for one pair."""
    near, loop, into, hits = field.incoming.levels[1], field.incoming.loop, work.into, work.hits
    rows, sender, apart, exposed = field.incoming.rows, field.incoming.sender, work.apart, work.exposed
    most_everyone = everyone = senders = 0
    for i in range(min(more, at_target)):
        most_everyone += int(hits[0, i])
    for i in range(min(more, elsewhere)):
        everyone += int(hits[2, i])
        senders += int(hits[3, i])
    most_everyone += everyone
    for x in range(len(loop)):
        exposed[x] = 0.0
    for u in range(near):
        counts = float(loop[0]) if u == 0 else into[u]
        if counts > 0.0 and not apart[u]:
            factor = counts * work.highest[u] * work.highest[u]
            for e in range(rows[u], rows[u + 1]):
                exposed[sender[e]] += factor * work.rate[p, e]
    ends0 = ends1 = 0
    kept = 0.0
    for x in range(1, len(loop)):
        if x < near and into[x] > 0.0:
            table = work.tables[x, 1 if apart[x] else 0, p]
            kept += into[x] * table[0]
            # With every hit it sends less, and its scale counts elsewhere.
            least = table[0]
            work.values[0] = 0.0
            for i in range(1, work.last[x] + 1):
                least = min(least, table[i])
                work.values[i] = into[x] * (table[0] - least) + exposed[x] * work.rise[x, i]
            ends0 = hull(work.values, work.last[x], work.slopes[0], work.counts[0], ends0)
        if exposed[x] > 0.0:
            for i in range(work.piece_rows[x], work.piece_rows[x + 1]):
                work.slopes[1, ends1], work.counts[1, ends1] = exposed[x] * work.piece_slope[i], work.piece_count[i]
                ends1 += 1
    first = _fill_steps(0, ends0, most_everyone, work)
    second = _fill_steps(1, ends1, most_everyone, work)
    # What the edits at the target take from the sum, the largest first.
    for b in range(at_target):
        work.gain[b] = 0.0
    for e in range(rows[0], rows[1]):
        edit = field.edit[e]
        if work.weight[e] != 0.0 and edit >= 0 and free[edit]:
            u = sender[e]
            work.gain[work.target_place[edit]] += work.weight[e] * work.tables[u, 1 if apart[u] else 0, p, 0]
    sort_falling(work.gain, work.unused, at_target)
    worst = np.inf
    taken, heavy, light = 0.0, 0.0, 0.0
    everyone_at = senders_at = 0
    for k in range(min(more, at_target) + 1):
        if k > 0:
            taken += work.gain[k - 1]
            heavy += work.target_weights[k - 1]
            light += work.target_weights[at_target - k]
            everyone_at += int(hits[0, k - 1])
            senders_at += int(hits[1, k - 1])
            if more - k < elsewhere:
                everyone -= int(hits[2, more - k])
                senders -= int(hits[3, more - k])
        high_scale = 1 / np.sqrt(max(work.degree[0] - heavy, float(loop[0])))
        low_scale = 1 / np.sqrt(max(work.degree[0] - light, float(loop[0])))
        total = loop[0] * work.tables[0, 1 if apart[0] else 0, p, k] + kept - taken
        total -= (high_scale - work.scale[0]) * exposed[0]
        total -= _most(work.steps, first, second, senders_at + senders, everyone_at + everyone)
        worst = min(worst, min(low_scale * total, high_scale * total))
    return worst
