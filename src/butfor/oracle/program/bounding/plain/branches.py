"""The branch that a search is at: what is decided, what is handed over, and intervals for all numbers in it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from butfor.oracle.program.bounding.plain.entries import MADE
from butfor.oracle.program.bounding.plain.rows import compute
from butfor.oracle.program.kernels.flat import called, kernel

__all__ = [
    "ANSWER", "ASKED", "ASKED_COST", "ASKS", "BASE", "BOUNDED", "CANDIDATES", "CLOCK", "COST", "CUT", "DECIDED",
    "DEPTH", "DONE", "IS_NEW", "LEFT", "LIVE", "NOTHING", "NUMBERS_PER_EVALUATION", "NUM_KNOWN", "NUM_NUMBERS", "OPEN",
    "PREFIXES", "PRUNED", "SEARCHED", "SEARCHES", "SEEN", "SPENT", "UNPAID", "WORK", "Branches", "bounded",
    "bring_up_to_date", "pay", "rounding", "width_of",
]  # fmt: skip

# How far scores in single precision may be off, relative to the largest score: generous, but not proved.
ROUNDING = 1e-4

# What `Branches.numbers` holds: how many edits are made; whether this branch is new; whether all is done; how many
# prefixes and candidates are handed over, and what bounds have cost, in evaluations; whether a tighter bound is asked
# for, of how many edits, what it said, and what it cost; the clock; the work and number of all bounds so far; whether
# it is marked what the target still reads; how many edits are decided; work that is not yet among what bounds have
# cost; and how many of the decided edits are so for good.
(
    DEPTH, IS_NEW, DONE, PREFIXES, CANDIDATES, SPENT, ASKS, LEFT, ANSWER, ASKED_COST, CLOCK, WORK, BOUNDED, LIVE,
    DECIDED, UNPAID, BASE,
) = range(17)  # fmt: skip
NUM_NUMBERS = 17

# What a tighter bound may say.
NOTHING, PRUNED, OPEN = range(3)

# A bound counts as an evaluation, and as one more for so many numbers that are computed.
NUMBERS_PER_EVALUATION = 2_000

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
        picked: the edits that are made.
        live: whether the target still reads a row of a reduction.
        queue: room for rows.
        level_of: the level for each number of edits that are left.
        budget_of: the most edits that the intervals of a level hold for.
        ready: whether a level has been computed.
        waiting, counts, stamps: for each step the rows to compute again, how many, and when a row was put there.
        begins: where the rows of each step begin in ``waiting``.
        tight: what tighter bounds cost and bring, see above.
        entered: for each number of made edits, the work before a branch that was left open; -1 for none.
        losses: for each number of made edits, each difference of scores and each edit, how much the edit takes off at
            most; for many made edits, that of the last branch.
        known: whether these are known.
        gaps: for each number of made edits, how far each difference is from the goal.
        price, beyond: a price of an edit, and how much all edits may take off it beyond their prices.
        open: whether it may still reach it.
        again: how often a branch of so many made edits was looked at since its losses were found; negative if they have
            not been.
        may: of how many differences each edit may be needed to reach the goal.
        promise: the largest share of a gap that each edit may close.
        column: room for a number of each edit.
        prefixes, pointers, candidates: the sets to be tried, as `Sieved` has them.
        numbers: see above.
    """

    order: Any
    costs: Any
    cheapest: Any
    status: Any
    stack: Any
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
    tight: Any
    entered: Any
    losses: Any
    known: Any
    gaps: Any
    price: Any
    beyond: Any
    open: Any
    again: Any
    may: Any
    promise: Any
    column: Any
    prefixes: Any
    pointers: Any
    candidates: Any
    numbers: Any


# Bounds.


@kernel
def width_of(p: Any, number: int) -> int:
    """How many numbers a row has."""
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
def bring_up_to_date(p: Any, room: Any, b: Any, level: int) -> None:
    """Compute all rows of a level again that edits may have changed since."""
    budget, status = b.budget_of[level], room.status[level]
    is_first, first = not b.ready[level], len(b.begins)
    b.ready[level] = True
    b.numbers[CLOCK] += 1
    if is_first:
        first = 0
        for e in range(len(status)):
            status[e] = b.status[e]
        for k in range(len(p.rows)):
            _put(p, b, p.rows[k])
    else:
        for k in range(len(b.order)):
            e = b.order[k]
            if status[e] == b.status[e]:
                continue
            # Where none is made, it makes no difference whether it could be.
            differs = budget > 0 or status[e] == MADE or b.status[e] == MADE
            status[e] = b.status[e]
            for j in range(p.edit_from[e], p.edit_from[e + 1] if differs else 0):
                _put(p, b, p.edit_rows[j])
                first = min(first, p.step_of[p.edit_rows[j]])
    for step in range(first, len(b.begins)):
        for k in range(b.counts[step]):
            number = b.waiting[b.begins[step] + k]
            b.numbers[WORK] += width_of(p, number)
            if compute(p, room, level, budget, number, is_first) and not is_first:
                for j in range(p.readers_from[number], p.readers_from[number + 1]):
                    _put(p, b, p.readers[j])
        b.counts[step] = 0


@kernel
def rounding(p: Any, room: Any, level: int, differences: int) -> float:
    """Room for rounding in the scores of a level."""
    o, score = p.at[p.out], 0.0
    for c in range(differences, width_of(p, p.out)):
        score = max(score, max(abs(room.low[level, o + c]), abs(room.high[level, o + c])))
    return ROUNDING * score


@kernel
def margin(p: Any, room: Any, level: int, differences: int, every: bool) -> float:
    """A lower bound of the margin, less room for rounding; -inf where it is unknown.

    The margin is the least difference of scores if ``every``, else the largest.
    """
    low = room.low[level, p.at[p.out] :]
    margin = low[0]
    for c in range(1, differences):
        margin = min(margin, low[c]) if every else max(margin, low[c])
    margin -= rounding(p, room, level, differences)
    return margin if margin == margin else -np.inf


@kernel
def pay(b: Any, before: int) -> None:
    """Add the work that was done since to what bounds have cost."""
    numbers = b.numbers
    numbers[UNPAID] += numbers[WORK] - before
    numbers[SPENT] += numbers[UNPAID] // NUMBERS_PER_EVALUATION
    numbers[UNPAID] %= NUMBERS_PER_EVALUATION


@called
def bounded(p: Any, room: Any, b: Any, left: int, differences: int, every: bool, price: int) -> float:
    """A lower bound of the margin of this branch with so many edits left; its price, and its work, are counted."""
    numbers = b.numbers
    level, before = b.level_of[min(left, len(b.level_of) - 1)], numbers[WORK]
    bring_up_to_date(p, room, b, level)
    numbers[SPENT] += price
    pay(b, before)
    return margin(p, room, level, differences, every)
