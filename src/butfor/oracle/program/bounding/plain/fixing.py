"""Exclude the edits of a branch that are too weak to be part of a set that reaches the goal; prune it if all are.

What each edit takes off a difference of scores at most (`losses/`) holds in the whole branch. Once it is known, it
serves while more and more edits are excluded, which costs next to nothing, until it pays to find it anew.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from butfor.oracle.program.bounding.plain.branches import (
    DECIDED,
    DEPTH,
    WORK,
    bring_up_to_date,
    pay,
    rounding,
)
from butfor.oracle.program.bounding.plain.entries import FREE, KEPT
from butfor.oracle.program.bounding.plain.losses.room import LOOKED, LOOKED_PER_NUMBER, TIME
from butfor.oracle.program.bounding.plain.losses.walk import find_total, largest_losses
from butfor.oracle.program.kernels.flat import called, kernel

__all__ = ["fix", "fix_again", "knows_enough", "knows_losses", "least_margin"]

# What is known of a branch is found anew after so many edits of it were decided.
PATIENCE = 4

# What the gap of a difference counts as at least, where edits are compared.
SMALL = 1e-6


@called
def fix(p: Any, room: Any, q: Any, b: Any, left: int, needed: float, differences: int, every: bool) -> bool:
    """Find out what each edit may do, and exclude those that are too weak; whether nothing can reach the goal.

    The intervals for this branch must be up to date.
    """
    numbers, level = b.numbers, b.level_of[min(left, len(b.level_of) - 1)]
    before, depth = numbers[WORK], numbers[DEPTH]
    bring_up_to_date(p, room, b, 0)
    place, o, room_for_rounding = min(depth, len(b.losses) - 1), p.at[p.out], rounding(p, room, level, differences)
    q.numbers[TIME] += 1
    q.numbers[LOOKED] = 0
    for d in range(differences):
        if depth > 0 and b.again[depth] < 0:
            b.open[depth, d] = b.open[depth - 1, d]
        elif b.again[depth] < 0:
            b.open[depth, d] = True
        if every and room.low[level, o + d] - room_for_rounding > needed:
            b.open[depth, d] = False
        if b.open[depth, d]:
            b.gaps[depth, d] = room.low[0, o + d] - room_for_rounding - needed
            b.known[place, d], b.price[depth, d], b.beyond[depth, d] = find_total(
                p, room, q, b, level, left, p.out, d, 1.0, b.losses[place, d]
            )
    b.again[depth] = 0
    numbers[WORK] += q.numbers[LOOKED] // LOOKED_PER_NUMBER
    pay(b, before)
    return _exclude(b, left, every)


@called
def least_margin(p: Any, room: Any, q: Any, b: Any, left: int, differences: int, every: bool) -> float:
    """A lower bound of the margin of this branch by the losses of its edits. The intervals must be up to date."""
    level = b.level_of[min(left, len(b.level_of) - 1)]
    bring_up_to_date(p, room, b, 0)
    q.numbers[TIME] += 1
    o, least = p.at[p.out], np.inf if every else -np.inf
    for d in range(differences):
        losses, bound = b.losses[0, d], room.low[level, o + d]
        b.known[0, d], price, beyond = find_total(p, room, q, b, level, left, p.out, d, 1.0, losses)
        if b.known[0, d]:
            rest, last = largest_losses(b, losses, left)
            bound = max(bound, room.low[0, o + d] - min(left * price + beyond, rest + last))
        least = min(least, bound) if every else max(least, bound)
    least -= rounding(p, room, level, differences)
    return least if least == least else -np.inf


@kernel
def fix_again(b: Any, left: int, every: bool) -> bool:
    """Likewise, by what is known from before."""
    b.again[b.numbers[DEPTH]] += 1
    return _exclude(b, left, every)


@kernel
def knows_enough(b: Any) -> bool:
    """Whether what is known of this branch serves once more."""
    depth = b.numbers[DEPTH]
    return 0 <= b.again[depth] < PATIENCE and depth < len(b.losses) - 1


@kernel
def knows_losses(b: Any) -> bool:
    """Whether all losses are known that this branch depends on."""
    depth = b.numbers[DEPTH]
    place, known = min(depth, len(b.losses) - 1), True
    for d in range(b.open.shape[1]):
        known &= b.known[place, d] or not b.open[depth, d]
    return known


@called
def _exclude(b: Any, left: int, every: bool) -> bool:
    """Exclude all edits that no set that reaches the goal can have; True if there is no such set."""
    numbers, depth = b.numbers, b.numbers[DEPTH]
    place, any_open = min(depth, len(b.losses) - 1), False
    for k in range(len(b.order)):
        b.may[b.order[k]] = 0
        b.promise[b.order[k]] = 0.0
    needs = 1
    for d in range(b.open.shape[1]):
        if not b.open[depth, d]:
            continue
        any_open = True
        if not every:
            needs = b.open.shape[1]
        if not b.known[place, d]:
            for k in range(len(b.order)):
                b.may[b.order[k]] += 1
            continue
        rest, last = largest_losses(b, b.losses[place, d], left)
        gap, price = b.gaps[depth, d], b.price[depth, d]
        other = (left - 1) * price + b.beyond[depth, d]
        if min(rest + last, other + price) < gap:
            if not every:
                return True
            b.open[depth, d] = False
            continue
        for k in range(len(b.order)):
            e = b.order[k]
            loss = max(b.losses[place, d, e], 0.0)
            if min(rest + min(loss, last), other + min(loss, price)) >= gap:
                b.may[e] += 1
                b.promise[e] = max(b.promise[e], loss / max(gap, SMALL))
    if not any_open:
        return True
    pruned = every
    for d in range(b.open.shape[1]):
        pruned &= not b.open[depth, d]
    if pruned:
        return True
    for k in range(len(b.order)):
        e = b.order[k]
        if b.status[e] == FREE and b.may[e] < needs:
            b.stack[numbers[DECIDED]], b.status[e] = k, KEPT
            numbers[DECIDED] += 1
    return False
