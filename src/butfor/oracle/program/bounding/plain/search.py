"""Branch and bound over all sets of at most so many deletions, with plain intervals at every branch.

Edits are decided one after the other: each is made first, and excluded after that. Their order is given. Where
many may be made, the search begins again after some time, in an order that it learns on the way: the edit comes next
that is likely to raise the bound most. Before each decision all sets of the
branch are bounded together, and if none can reach the goal, the search backtracks. It stops to ask for a tighter bound
of a branch where that is likely to take less time than to search it. The head of the package has the proof.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from butfor.oracle.program.bounding.plain.entries import FREE, KEPT, MADE
from butfor.oracle.program.bounding.plain.rows import compute
from butfor.oracle.program.kernels.flat import called, jit, kernel

__all__ = [
    "ANSWER", "ASKED_COST", "ASKS", "CANDIDATES", "DEPTH", "DONE", "LEARNS_FROM", "LEFT", "LOOKED_AT", "OPEN",
    "PREFIXES", "PRUNED", "SPENT", "Branches", "search",
]  # fmt: skip

# How far scores in single precision may be off, relative to the largest score: generous, but not proved.
ROUNDING = 1e-4

# What `Branches.numbers` holds: how many edits are made; whether this branch is new; whether all is done; how many
# prefixes and candidates are handed over, and what bounds have cost, in evaluations; whether a tighter bound is asked
# for, of how many edits, what it said, and what it cost; the clock; the work and number of all bounds so far; whether
# it is marked what the target still reads; how many edits are decided; whether it is learnt which comes next, and after
# how many bounds that begins; how many edits were looked at again, and which was the last; whether the search was
# interrupted where this branch was bounded, and is not pruned; and work that is not yet among what bounds have cost.
(
    DEPTH, IS_NEW, DONE, PREFIXES, CANDIDATES, SPENT, ASKS, LEFT, ANSWER, ASKED_COST, CLOCK, WORK, BOUNDED, LIVE,
    DECIDED, LEARNS, LEARNS_FROM, LOOKS, LOOKED_AT, IS_OPEN, UNPAID,
) = range(21)  # fmt: skip
NUM_NUMBERS = 21

# What a tighter bound may say.
NOTHING, PRUNED, OPEN = range(3)

# A bound counts as an evaluation, and as one more for so many numbers that are computed.
NUMBERS_PER_EVALUATION = 2_000

# A tighter bound is asked for so often to see whether it pays, for each number of edits that are left, and once more
# after so many branches.
TO_SEE, TO_SEE_AGAIN = 3, 256

# Where an order is learnt: with fewer decisions than these, so many edits are looked at again before one is chosen. A
# gain counts at least as this, so that what is known of the other side still counts.
NEAR_ROOT, LOOKS_NEAR_ROOT, SMALL = 8, 8, 1e-6

# No edit was chosen, because bounds have cost enough.
INTERRUPTED = -2

# What is known of tighter bounds, for each number of edits that are left: how many were asked for, how many pruned,
# what they cost; what it cost to search branches that were left open, and how many these are; branches so far.
ASKED, CUT, COST, SEARCHED, SEARCHES, SEEN = range(6)
NUM_KNOWN = 6


class Branches(NamedTuple):
    """The branch that is being searched, and what is handed over.

    Attributes:
        order: the edits in the order in which they are decided.
        costs: what each costs, in this order.
        cheapest: what the cheapest sets cost, by size.
        status: the status of each edit.
        stack: the edits that are decided, by their places in ``order``.
        bounds: the bound before each of these decisions.
        gains: how far the bound is likely to rise if an edit is made, or excluded; negative where nothing is known.
        picked: the edits that are made.
        live: whether the target still reads a row of a reduction.
        queue: room for rows.
        level_of: the level for each number of edits that are left.
        budget_of: the most edits that the intervals of a level hold for.
        ready: whether a level has been computed.
        waiting, counts, stamps: for each step the rows to compute again, how many, and when a row was put there.
        begins: where the rows of each step begin in ``waiting``.
        known: what tighter bounds cost and bring, see above.
        entered: for each number of made edits, the work before a branch that was left open; -1 for none.
        prefixes, pointers, candidates: the sets to be tried, as `Sieved` has them.
        numbers: see above.
    """

    order: Any
    costs: Any
    cheapest: Any
    status: Any
    stack: Any
    bounds: Any
    gains: Any
    picked: Any
    live: Any
    queue: Any
    level_of: Any
    budget_of: Any
    ready: Any
    waiting: Any
    counts: Any
    stamps: Any
    begins: Any
    known: Any
    entered: Any
    prefixes: Any
    pointers: Any
    candidates: Any
    numbers: Any


# Bounds.


@kernel
def _width(p: Any, number: int) -> int:
    return p.flat.width[p.flat.out[p.step_of[number]]]


@kernel
def _put(p: Any, b: Any, number: int) -> None:
    """Mark a row as one to be computed again."""
    if b.stamps[number] != b.numbers[CLOCK] and p.at[number] >= 0:
        b.stamps[number] = b.numbers[CLOCK]
        step = p.step_of[number]
        b.waiting[b.begins[step] + b.counts[step]] = number
        b.counts[step] += 1


@called
def _bring_up_to_date(p: Any, room: Any, b: Any, level: int) -> None:
    """Compute all rows of a level again that edits may have changed since."""
    budget, status = b.budget_of[level], room.status[level]
    if not b.ready[level]:
        b.ready[level] = True
        for e in range(len(status)):
            status[e] = b.status[e]
        for k in range(len(p.rows)):
            compute(p, room, level, budget, p.rows[k], True)
            b.numbers[WORK] += _width(p, p.rows[k])
        return
    b.numbers[CLOCK] += 1
    first = len(b.begins)
    for k in range(len(b.order)):
        e = b.order[k]
        if status[e] != b.status[e]:
            status[e] = b.status[e]
            for j in range(p.edit_from[e], p.edit_from[e + 1]):
                _put(p, b, p.edit_rows[j])
                first = min(first, p.step_of[p.edit_rows[j]])
    for step in range(first, len(b.begins)):
        for k in range(b.counts[step]):
            number = b.waiting[b.begins[step] + k]
            b.numbers[WORK] += _width(p, number)
            if compute(p, room, level, budget, number, False):
                for j in range(p.readers_from[number], p.readers_from[number + 1]):
                    _put(p, b, p.readers[j])
        b.counts[step] = 0


@kernel
def _margin(p: Any, room: Any, level: int, differences: int, every: bool) -> float:
    """A lower bound of the margin, less room for rounding; -inf where it is unknown.

    The margin is the least difference of scores if ``every``, else the largest.
    """
    o, width = p.at[p.out], _width(p, p.out)
    low, high = room.low[level, o : o + width], room.high[level, o : o + width]
    margin, score = low[0], 0.0
    for c in range(1, differences):
        margin = min(margin, low[c]) if every else max(margin, low[c])
    for c in range(differences, width):
        score = max(score, max(abs(low[c]), abs(high[c])))
    margin -= ROUNDING * score
    return margin if margin == margin else -np.inf


@called
def _bounded(p: Any, room: Any, b: Any, left: int, differences: int, every: bool, price: int) -> float:
    """A lower bound of the margin of this branch with so many edits left; its price, and its work, are counted."""
    numbers = b.numbers
    level, before = b.level_of[min(left, len(b.level_of) - 1)], numbers[WORK]
    _bring_up_to_date(p, room, b, level)
    numbers[UNPAID] += numbers[WORK] - before
    numbers[SPENT] += price + numbers[UNPAID] // NUMBERS_PER_EVALUATION
    numbers[UNPAID] %= NUMBERS_PER_EVALUATION
    return _margin(p, room, level, differences, every)


# Branches.


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


@called
def _follow(
    p: Any, room: Any, b: Any, left: int, afford: float, needed: float, differences: int, every: bool, most: int
) -> int:
    """The place of the edit to decide next; -1 if there is none, `INTERRUPTED` if it takes too long to find out.

    If only one more edit may be made, all that may be are handed over as candidates instead.
    """
    if b.numbers[LIVE] != 1:
        _mark_live(p, b)
        b.numbers[LIVE] = 1
    if left > 1 and b.numbers[LEARNS]:
        return _most_telling(p, room, b, left, afford, needed, differences, every, most)
    for k in range(len(b.order)):
        if _may_follow(p, b, k, afford):
            if left > 1:
                return k
            _put_candidate(b, b.order[k])
    if left == 1:
        _hand_over(b, b.numbers[DEPTH])
    return -1


@called
def _most_telling(
    p: Any, room: Any, b: Any, left: int, afford: float, needed: float, differences: int, every: bool, most: int
) -> int:
    """The edit that is likely to raise the bound most, both if it is made and if it is excluded.

    What an edit is likely to do is what it did before. Those of which nothing is known are looked at, and near the
    root, where a choice matters most, the best ones again; which may be interrupted.
    """
    numbers, looks = b.numbers, LOOKS_NEAR_ROOT if b.numbers[DECIDED] < NEAR_ROOT else 0
    for k in range(len(b.order)):
        if b.gains[k, MADE] < 0.0 and _may_follow(p, b, k, afford):
            if numbers[SPENT] >= most:
                return INTERRUPTED
            _look(p, room, b, k, left, needed, differences, every)
    while True:
        chosen, best = -1, -1.0
        for k in range(len(b.order)):
            if _may_follow(p, b, k, afford) and _score(b, k) > best:
                chosen, best = k, _score(b, k)
        if chosen < 0 or numbers[LOOKS] >= looks or chosen == numbers[LOOKED_AT]:
            numbers[LOOKS], numbers[LOOKED_AT] = 0, -1
            return chosen
        if numbers[SPENT] >= most:
            return INTERRUPTED
        _look(p, room, b, chosen, left, needed, differences, every)
        numbers[LOOKS], numbers[LOOKED_AT] = numbers[LOOKS] + 1, chosen


@kernel
def _score(b: Any, k: int) -> float:
    return max(b.gains[k, MADE], SMALL) * max(b.gains[k, KEPT], SMALL)


@called
def _look(p: Any, room: Any, b: Any, k: int, left: int, needed: float, differences: int, every: bool) -> None:
    """See how the bound rises if an edit is made, and if it is excluded."""
    e, before = b.order[k], b.bounds[b.numbers[DECIDED]]
    for status in (MADE, KEPT):
        b.status[e] = status
        bound = _bounded(p, room, b, left - (status == MADE), differences, every, 1)
        b.gains[k, status] = _gain(before, bound, needed)
    b.status[e] = FREE


@kernel
def _gain(before: float, bound: float, needed: float) -> float:
    """How much a bound has risen, as far as that is of use; never negative, which means that nothing is known."""
    gain = min(bound, needed) - before
    return gain if np.isfinite(gain) and gain > 0.0 else 0.0


@kernel
def _learn(b: Any, bound: float, needed: float) -> None:
    """Note how the bound has risen with the last decision."""
    decided = b.numbers[DECIDED]
    if decided > 0:
        k = b.stack[decided - 1]
        status = b.status[b.order[k]]
        gain = _gain(b.bounds[decided - 1], bound, needed)
        b.gains[k, status] = gain if b.gains[k, status] < 0.0 else 0.5 * (gain + b.gains[k, status])


@kernel
def _make(b: Any, chosen: int) -> None:
    """Branch: make an edit."""
    depth, edit = b.numbers[DEPTH], b.order[chosen]
    b.stack[b.numbers[DECIDED]], b.picked[depth], b.status[edit] = chosen, edit, MADE
    b.numbers[DECIDED] += 1
    b.numbers[DEPTH], b.numbers[IS_NEW], b.numbers[LIVE], b.entered[depth + 1] = depth + 1, 1, 0, -1


@kernel
def _leave(b: Any, size: int) -> None:
    """Backtrack: free what was excluded in this branch, and exclude the last edit that was made."""
    numbers = b.numbers
    while numbers[DECIDED] > 0:
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
def _begin_again(b: Any) -> None:
    """Free all edits, and decide them anew in the order that is learnt."""
    numbers = b.numbers
    for k in range(numbers[DECIDED]):
        b.status[b.order[b.stack[k]]] = FREE
    for k in range(numbers[DEPTH] + 1):
        b.entered[k] = -1
    numbers[DECIDED] = numbers[DEPTH] = numbers[IS_NEW] = numbers[LIVE] = 0
    numbers[LEARNS] = 1


@kernel
def _close(b: Any, size: int) -> None:
    """Note what it cost to search a branch that a tighter bound had left open."""
    depth = b.numbers[DEPTH]
    if b.entered[depth] >= 0:
        known = b.known[min(size - depth, len(b.known) - 1)]
        known[SEARCHED] += b.numbers[WORK] - b.entered[depth]
        known[SEARCHES] += 1


@kernel
def _tighter_pays(b: Any, left: int) -> bool:
    """Whether a tighter bound of a branch with so many edits left is likely to cost less than to search it."""
    known = b.known[min(left, len(b.known) - 1)]
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
    known, pruned = b.known[min(left, len(b.known) - 1)], numbers[ANSWER] == PRUNED
    known[ASKED] += 1
    known[CUT] += pruned
    known[COST] += numbers[ASKED_COST]
    numbers[ANSWER], numbers[ASKS] = NOTHING, 0
    if not pruned and b.entered[numbers[DEPTH]] < 0:
        b.entered[numbers[DEPTH]] = numbers[WORK]
    return pruned


@jit
def search(
    p: Any, room: Any, b: Any, size: int, limit: float, needed: float, differences: int, every: bool,
    asks_from: int, most: int,
) -> float:  # fmt: skip
    """Search on until all is done, bounds have cost ``most`` evaluations, there is no more room, or it asks.

    It asks for tighter bounds after ``asks_from`` plain ones. If ``most`` is 0, the margin is bounded, and returned at
    once.
    """
    numbers = b.numbers
    if most == 0:
        return _bounded(p, room, b, size, differences, every, 1)
    while not numbers[DONE]:
        if not numbers[LEARNS] and numbers[BOUNDED] >= numbers[LEARNS_FROM] and numbers[ANSWER] == NOTHING:
            _begin_again(b)
        depth = numbers[DEPTH]
        left = size - depth
        if numbers[ANSWER] != NOTHING:
            pruned = _take_answer(b, left)
        elif numbers[IS_OPEN]:
            pruned, numbers[IS_OPEN] = False, 0
        else:
            full = numbers[CANDIDATES] + len(b.order) + 1 > len(b.candidates)
            full |= numbers[SPENT] >= most or numbers[PREFIXES] + 2 >= len(b.prefixes)
            if full:
                return 0.0
            bound = _bounded(p, room, b, left, differences, every, 1)
            pruned = bound > needed
            _learn(b, bound, needed)
            b.bounds[numbers[DECIDED]] = bound
            numbers[BOUNDED] += 1
            if numbers[IS_NEW]:
                if depth and not _bounded(p, room, b, 0, differences, every, 0) > needed:
                    _put_candidate(b, b.picked[depth - 1])
                    _hand_over(b, depth - 1)
                numbers[IS_NEW] = 0
            if not pruned and left > 1 and numbers[BOUNDED] >= asks_from and _tighter_pays(b, left):
                numbers[ASKS], numbers[LEFT] = 1, left
                return 0.0
            if not pruned and b.entered[depth] < 0:
                b.entered[depth] = numbers[WORK]
        chosen = -1
        if not pruned:
            cost = 0.0
            for k in range(numbers[DECIDED]):
                cost += b.costs[b.stack[k]] if b.status[b.order[b.stack[k]]] == MADE else 0.0
            afford = limit - cost - b.cheapest[left - 1]
            chosen = _follow(p, room, b, left, afford, needed, differences, every, most)
        if chosen == INTERRUPTED:
            numbers[IS_OPEN] = 1
            return 0.0
        if chosen >= 0:
            _make(b, chosen)
        else:
            _leave(b, size)
    return 0.0
