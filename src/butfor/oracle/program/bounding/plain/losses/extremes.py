"""Losses of maxima and minima over edges."""

from __future__ import annotations

from typing import Any

import numpy as np

from butfor.oracle.program.bounding.plain.entries import FREE, MOST_TOPS
from butfor.oracle.program.bounding.plain.losses.entries import (
    add_loss,
    begin_path,
    can_change,
    keep_loss,
    list_entries,
)
from butfor.oracle.program.bounding.plain.losses.room import GIVEN_UP, LOOKED
from butfor.oracle.program.kernels.flat import AMIN, kernel

__all__ = ["share_fall", "through_extreme"]


@kernel
def rank_entries(q: Any, count: int, kept: int) -> int:
    """Put the ``kept`` largest of ``column``, of all entries but those that are -inf, into ``ranked``; how many."""
    found = 0
    for k in range(count):
        x = q.column[k]
        if x == -np.inf or (found == kept and not x > q.values[found - 1]):
            continue
        n = found if found < kept else found - 1
        while n > 0 and q.values[n - 1] < x:
            q.values[n], q.ranked[n] = q.values[n - 1], q.ranked[n - 1]
            n -= 1
        q.values[n], q.ranked[n] = x, k
        found = min(found + 1, kept)
    return found


@kernel
def share_fall(room: Any, q: Any, found: int, lost: int, floor: float, weight: float) -> None:
    """Divide the fall of a maximum among those of its largest entries that may go; ``floor`` is the least it can be."""
    last = 0
    while last < found and last < lost and room.entries[q.ranked[last]] == FREE and q.values[last] > floor:
        last += 1
    total = 0.0
    for n in range(last - 1, -1, -1):
        following = max(q.values[n + 1], floor) if n + 1 < found else floor
        total += max(q.values[n] - following, 0.0) / (n + 1)
        q.entry_loss[q.ranked[n]] += weight * total


@kernel
def through_extreme(
    p: Any, room: Any, q: Any, level: int, left: int, losses: Any, number: int, step: int, width: int, g: Any, a: Any
) -> None:
    """A maximum falls with its largest entry, and rises with any; a minimum is a maximum with all signs turned."""
    flat = p.flat
    count, free = list_entries(p, room, q, level, number, step)
    if count == 0:
        return
    fixed = flat.first[flat.inputs[step, 0]] < 0
    lost, at = min(free, left * p.at_once[number]), p.at[number]
    sign = -1.0 if flat.code[step] == AMIN else 1.0
    now = p.base if fixed else room.low[0]
    low, high = (p.base, p.base) if fixed else (room.low[level], room.high[level])
    if sign < 0.0:
        low, high = high, low
    empty = sign * flat.parameters[step, 0]
    q.numbers[LOOKED] += count * width
    for k in range(count):
        q.entry_loss[k], q.has_loss[k] = 0.0, False
    for c in range(width):
        if g[c] == 0.0 and a[c] == 0.0:
            continue
        if not (np.isfinite(g[c]) and np.isfinite(a[c])):
            q.numbers[GIVEN_UP] = 1
            return
        best, top = 0, sign * now[room.places[0] + c]
        for k in range(1, count):
            x = sign * now[room.places[k] + c]
            if x > top or (x == top and room.entries[best] == FREE and room.entries[k] != FREE):
                best, top = k, x
        if not np.isfinite(top):
            q.numbers[GIVEN_UP] = 1
            return
        slope, size = sign * g[c], a[c]
        fall, rise = size + max(-slope, 0.0), size + max(slope, 0.0)
        if fall > 0.0 and room.entries[best] == FREE:
            for k in range(count):
                q.column[k] = top if k == best else min(sign * low[room.places[k] + c], top)
            found = rank_entries(q, count, min(lost, MOST_TOPS) + 1)
            floor = room.low[level, at + c] if sign > 0.0 else -room.high[level, at + c]
            share_fall(room, q, found, lost, floor, fall)
        if rise > 0.0 and lost == count and empty > top:
            for k in range(count):
                q.entry_loss[k] += rise * (empty - top) / count
        if fixed:
            continue
        others = -np.inf
        for k in range(count):
            if k != best:
                others = max(others, sign * high[room.places[k] + c])
        dominates = others <= sign * low[room.places[best] + c]
        _put(q, best, width, c, g[c] if slope < 0.0 or dominates else 0.5 * g[c], size)
        if dominates:
            continue
        if slope > 0.0:
            q.entry_a[best, c] += 0.5 * slope
        if others > top:
            for k in range(count):
                x, most = sign * now[room.places[k] + c], sign * high[room.places[k] + c]
                if k != best and most > top:
                    weight = 0.5 * rise * (most - top) / (most - x)
                    _put(q, k, width, c, sign * weight, weight)
    for k in range(count):
        if room.entries[k] == FREE:
            add_loss(q, losses, k, q.entry_loss[k])
        if q.has_loss[k] and can_change(p, room, q, level, q.entry_row[k]):
            begin_path(q, q.entry_row[k], k, keep_loss(q, width, q.entry_g[k], q.entry_a[k]))


@kernel
def _put(q: Any, k: int, width: int, column: int, g: float, a: float) -> None:
    """Add to the loss of an entry."""
    if not q.has_loss[k]:
        q.has_loss[k] = True
        for c in range(width):
            q.entry_g[k, c] = q.entry_a[k, c] = 0.0
    q.entry_g[k, column] += g
    q.entry_a[k, column] += a
