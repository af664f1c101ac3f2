"""Branch and bound over all sets of at most so many deletions, with plain intervals at every branch.

Edits are decided one after the other: each is made first, and excluded after that. Where it is known how much an edit
takes off the margin at most, those that are too weak are excluded at once, and the most promising one comes next; else
their order is given. Before each decision all sets of the branch are bounded together, and if none can reach the goal,
the search backtracks. It stops to ask for a tighter bound of a branch where that is likely to take less time than to
search it. The head of the package has the proof.
"""

from __future__ import annotations

from typing import Any

from butfor.oracle.program.bounding.plain.branches import (
    ANSWER,
    ASKED,
    ASKED_COST,
    ASKS,
    BASE,
    BOUNDED,
    CANDIDATES,
    COST,
    CUT,
    DECIDED,
    DEPTH,
    DONE,
    IS_NEW,
    LEFT,
    LIVE,
    NOTHING,
    NUMBERS_PER_EVALUATION,
    PREFIXES,
    PRUNED,
    SEARCHED,
    SEARCHES,
    SEEN,
    SPENT,
    WORK,
    bounded,
)
from butfor.oracle.program.bounding.plain.entries import FREE, KEPT, MADE
from butfor.oracle.program.bounding.plain.fixing import fix, fix_again, knows_enough, knows_losses, least_margin
from butfor.oracle.program.bounding.plain.limits import find_limits
from butfor.oracle.program.bounding.plain.losses.room import LOOKED_PER_NUMBER
from butfor.oracle.program.kernels.flat import called, jit, kernel

__all__ = ["search"]

# A tighter bound is asked for so often to see whether it pays, for each number of edits that are left, and once more
# after so many branches.
TO_SEE, TO_SEE_AGAIN = 3, 256

# In sets of at most so many edits, the most promising one comes first.
FEW = 8


@called
def _mark_live(p: Any, b: Any) -> None:
    """Mark all rows of reductions that the target still reads, directly or not, without a deleted edge."""
    live, queue, count, done = b.live, b.queue, 0, 0
    for k in range(len(live)):
        live[k] = False
    for k in range(len(p.root)):
        live[p.root[k]] = True
        queue[count] = p.root[k]
        count += 1
    while done < count:
        number = queue[done]
        done += 1
        for k in range(p.reads_from[number], p.reads_from[number + 1]):
            other, edit = p.reads[k], p.reads_by[k]
            if not live[other] and (edit < 0 or b.status[edit] != MADE):
                live[other] = True
                queue[count] = other
                count += 1


@kernel
def _is_live(p: Any, b: Any, edit: int) -> bool:
    """Whether the target still reads a row that the edit deletes an entry of."""
    live = False
    for k in range(p.edit_from[edit], p.edit_from[edit + 1]):
        live |= b.live[p.edit_rows[k]]
    return live


@kernel
def _hand_over(b: Any, length: int) -> None:
    """Hand over the first ``length`` made edits as a prefix; its candidates were put before."""
    number = b.numbers[PREFIXES]
    for k in range(b.prefixes.shape[1]):
        b.prefixes[number, k] = b.picked[k] if k < length else -1
    b.numbers[PREFIXES] += 1
    b.pointers[number + 1] = b.numbers[CANDIDATES]


@kernel
def _put_candidate(b: Any, edit: int) -> None:
    b.candidates[b.numbers[CANDIDATES]] = edit
    b.numbers[CANDIDATES] += 1


@kernel
def _may_follow(p: Any, b: Any, k: int, room: float) -> bool:
    """Whether an edit, by its place in the order, may be made next: undecided, affordable and not cut off."""
    return b.status[b.order[k]] == FREE and b.costs[k] <= room and _is_live(p, b, b.order[k])


@kernel
def _many_may_be_made(b: Any, left: int) -> bool:
    """Whether so many edits may be made that those nearest to the target are decided first: others are then cut off."""
    free = 0
    for k in range(len(b.order)):
        free += b.status[b.order[k]] == FREE
    return b.numbers[DEPTH] + left > FEW and 2 * left >= free


@called
def _follow(p: Any, b: Any, left: int, afford: float) -> int:
    """The place of the edit to decide next, the most promising one that is known; -1 if there is none.

    If only one more edit may be made, all that may be are handed over as candidates instead.
    """
    if b.numbers[LIVE] != 1:
        _mark_live(p, b)
        b.numbers[LIVE] = 1
    nearest_first, chosen, best, near = _many_may_be_made(b, left), -1, -1.0, 1 << 60
    for k in range(len(b.order)):
        if not _may_follow(p, b, k, afford):
            continue
        if left == 1:
            _put_candidate(b, b.order[k])
            continue
        hops, promise = p.hops[b.order[k]] if nearest_first else 0, b.promise[b.order[k]]
        if hops < near or (hops == near and promise > best):
            chosen, best, near = k, promise, hops
    if left == 1:
        _hand_over(b, b.numbers[DEPTH])
    return chosen


@kernel
def _make(b: Any, chosen: int) -> None:
    """Branch: make an edit."""
    depth, edit = b.numbers[DEPTH], b.order[chosen]
    b.stack[b.numbers[DECIDED]], b.picked[depth], b.status[edit] = chosen, edit, MADE
    b.numbers[DECIDED] += 1
    b.numbers[DEPTH], b.numbers[IS_NEW], b.numbers[LIVE] = depth + 1, 1, 0
    b.entered[depth + 1] = b.again[depth + 1] = -1


@kernel
def _leave(b: Any, size: int) -> None:
    """Backtrack: free what was excluded in this branch, and exclude the last edit that was made."""
    numbers = b.numbers
    while numbers[DECIDED] > numbers[BASE]:
        edit = b.order[b.stack[numbers[DECIDED] - 1]]
        if b.status[edit] == MADE:
            _close(b, size)
            b.status[edit] = KEPT
            numbers[DEPTH] -= 1
            numbers[LIVE] = 0
            return
        b.status[edit] = FREE
        numbers[DECIDED] -= 1
    _close(b, size)
    numbers[DONE] = 1


@kernel
def _close(b: Any, size: int) -> None:
    """Note what it cost to search a branch that a tighter bound had left open."""
    depth = b.numbers[DEPTH]
    if b.entered[depth] >= 0:
        known = b.tight[min(size - depth, len(b.tight) - 1)]
        known[SEARCHED] += b.numbers[WORK] - b.entered[depth]
        known[SEARCHES] += 1


@kernel
def _tighter_pays(b: Any, left: int) -> bool:
    """Whether a tighter bound of a branch with so many edits left is likely to cost less than to search it."""
    known = b.tight[min(left, len(b.tight) - 1)]
    known[SEEN] += 1
    if known[ASKED] < TO_SEE or known[SEEN] % TO_SEE_AGAIN == 0:
        return True
    if known[SEARCHES] == 0:
        # No such branch has been searched to its end yet.
        return known[CUT] > 0
    return known[CUT] * known[SEARCHED] > known[COST] * known[SEARCHES]


@kernel
def _take_answer(b: Any, left: int) -> bool:
    """Note what a tighter bound said; whether it prunes the branch."""
    numbers = b.numbers
    known, pruned = b.tight[min(left, len(b.tight) - 1)], numbers[ANSWER] == PRUNED
    known[ASKED] += 1
    known[CUT] += pruned
    known[COST] += numbers[ASKED_COST]
    numbers[ANSWER], numbers[ASKS] = NOTHING, 0
    if not pruned and b.entered[numbers[DEPTH]] < 0:
        b.entered[numbers[DEPTH]] = numbers[WORK]
    return pruned


@jit
def search(
    p: Any, room: Any, q: Any, b: Any, size: int, limit: float, needed: float, differences: int, every: bool,
    asks_from: int, most: int,
) -> float:  # fmt: skip
    """Search on until all is done, bounds have cost ``most`` evaluations, there is no more room, or it asks.

    It asks for tighter bounds after ``asks_from`` plain ones. If ``most`` is 0, the margin is bounded, and returned at
    once. If it is negative, hidden numbers are limited for sets of this size, for as many evaluations.
    """
    numbers = b.numbers
    if most < 0:
        find_limits(p, room, q, b, size, -most * NUMBERS_PER_EVALUATION * LOOKED_PER_NUMBER)
        return 0.0
    if most == 0:
        bound = bounded(p, room, b, size, differences, every, 1)
        return max(bound, least_margin(p, room, q, b, size, differences, every)) if p.has_losses and size > 0 else bound
    while not numbers[DONE]:
        depth = numbers[DEPTH]
        left = size - depth
        if numbers[ANSWER] != NOTHING:
            pruned = _take_answer(b, left)
        elif knows_enough(b):
            pruned = fix_again(b, left, every)
        else:
            full = numbers[CANDIDATES] + len(b.order) + 1 > len(b.candidates)
            full |= numbers[SPENT] >= most or numbers[PREFIXES] + 2 >= len(b.prefixes)
            if full:
                return 0.0
            pruned = bounded(p, room, b, left, differences, every, 1) > needed
            numbers[BOUNDED] += 1
            if numbers[IS_NEW]:
                if depth and not bounded(p, room, b, 0, differences, every, 0) > needed:
                    _put_candidate(b, b.picked[depth - 1])
                    _hand_over(b, depth - 1)
                numbers[IS_NEW] = 0
            if not pruned and left > 0 and p.has_losses:
                pruned = fix(p, room, q, b, left, needed, differences, every)
            asks = left > 1 and numbers[BOUNDED] >= asks_from and not (p.has_losses and knows_losses(b))
            if not pruned and asks and _tighter_pays(b, left):
                numbers[ASKS], numbers[LEFT] = 1, left
                return 0.0
            if not pruned and b.entered[depth] < 0:
                b.entered[depth] = numbers[WORK]
        chosen = -1
        if not pruned:
            cost = 0.0
            for k in range(numbers[DECIDED]):
                cost += b.costs[b.stack[k]] if b.status[b.order[b.stack[k]]] == MADE else 0.0
            chosen = _follow(p, b, left, limit - cost - b.cheapest[left - 1])
        if chosen >= 0:
            _make(b, chosen)
        else:
            _leave(b, size)
    return 0.0
