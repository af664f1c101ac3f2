"""Limits of hidden numbers, which hold in all branches of a search: see the head of the package, where the proof is.

It takes a walk for each end of each number, so it is done once in a long search.
"""

from __future__ import annotations

from typing import Any

from butfor.oracle.program.bounding.plain.branches import WORK, bring_up_to_date, pay, width_of
from butfor.oracle.program.bounding.plain.losses.room import LOOKED, LOOKED_PER_NUMBER, TIME
from butfor.oracle.program.bounding.plain.losses.walk import find_total, largest_losses
from butfor.oracle.program.kernels.flat import called, kernel

__all__ = ["find_limits"]


@called
def find_limits(p: Any, room: Any, q: Any, b: Any, size: int, most: int) -> None:
    """Limit all numbers that functions other than sums read, for at most ``size`` edits, one step after the other.

    It ends when ``most`` numbers have been looked at.
    """
    level, flat = b.level_of[min(size, len(b.level_of) - 1)], p.flat
    bring_up_to_date(p, room, b, 0)
    looked = 0
    for n in range(len(p.limited)):
        step = p.limited[n]
        b.ready[level] = False
        bring_up_to_date(p, room, b, level)
        q.numbers[TIME] += 1
        first = flat.first[flat.out[step]]
        for number in range(first, first + flat.rows[flat.out[step]]):
            if p.at[number] < 0 or looked > most:
                continue
            q.numbers[LOOKED] = 0
            _limit_row(p, room, q, b, level, size, number)
            looked += q.numbers[LOOKED]
    for k in range(len(b.ready)):
        b.ready[k] = False
    before = b.numbers[WORK]
    b.numbers[WORK] += looked // LOOKED_PER_NUMBER
    pay(b, before)


@kernel
def _limit_row(p: Any, room: Any, q: Any, b: Any, level: int, size: int, number: int) -> None:
    at, losses = p.at[number], b.losses[0, 0]
    for c in range(width_of(p, number)):
        now = room.low[0, at + c]
        if room.low[level, at + c] == room.high[level, at + c] or room.high[0, at + c] != now:
            continue
        for sign in (1.0, -1.0):
            known, price, beyond = find_total(p, room, q, b, level, size, number, c, sign, losses)
            if not known:
                continue
            rest, last = largest_losses(b, losses, size)
            fall = min(size * price + beyond, rest + last)
            if sign > 0.0:
                room.least_of_all[at + c] = now - fall
            else:
                room.most_of_all[at + c] = now + fall
