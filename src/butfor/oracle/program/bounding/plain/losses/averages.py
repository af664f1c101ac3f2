"""Losses of sums and means over edges."""

from __future__ import annotations

from typing import Any

import numpy as np

from butfor.oracle.program.bounding.plain.entries import FREE
from butfor.oracle.program.bounding.plain.losses.entries import (
    add_loss,
    begin_path,
    begin_paths,
    can_change,
    keep_loss,
    list_entries,
)
from butfor.oracle.program.bounding.plain.losses.room import LOOKED, PATHS
from butfor.oracle.program.kernels.flat import kernel

__all__ = ["through_mean", "through_sum"]

# Where deletions can raise the weight of what is left in a mean by more than this factor, they are charged for it.
WORTH_CHARGING = 3.0


@kernel
def through_sum(
    p: Any, room: Any, q: Any, level: int, losses: Any, number: int, step: int, width: int, g: Any, a: Any
) -> None:
    """Whatever an entry brings is lost with it; a change of it is a change of the sum."""
    flat = p.flat
    count, free = list_entries(p, room, q, level, number, step)
    fixed = flat.first[flat.inputs[step, 0]] < 0
    numbers = p.base if fixed else room.low[0]
    is_weighted = flat.arity[step] > 1
    q.numbers[LOOKED] += (count if is_weighted else free) * width
    for k in range(count):
        of_g, of_a = g, a
        if is_weighted:
            _weigh(p, q, step, q.entry[k], width, g, a)
            of_g, of_a = q.weighted_g, q.weighted_a
        if room.entries[k] == FREE:
            i, loss = room.places[k], 0.0
            for c in range(width):
                x = numbers[i + c]
                loss += of_a[c] * abs(x) - of_g[c] * x
            add_loss(q, losses, k, loss)
        if is_weighted and not fixed and can_change(p, room, q, level, q.entry_row[k]):
            begin_path(q, q.entry_row[k], k, keep_loss(q, width, of_g, of_a))
    if not is_weighted:
        begin_paths(p, room, q, level, step, count, width, g, a)


@kernel
def _weigh(p: Any, q: Any, step: int, entry: int, width: int, g: Any, a: Any) -> None:
    """The loss of an entry that has factors, which no edit changes."""
    flat = p.flat
    factors, own = flat.inputs[step, 1], flat.columns[step, 1]
    i = flat.start[factors] + entry * flat.stride[factors]
    for c in range(width):
        factor = p.base[i + (c if own < 0 else flat.table[own + c])]
        q.weighted_g[c], q.weighted_a[c] = factor * g[c], abs(factor) * a[c]


@kernel
def through_mean(
    p: Any, room: Any, q: Any, level: int, left: int, losses: Any, number: int, step: int, width: int, g: Any, a: Any
) -> None:
    """What is left counts more with every deletion, which is charged to the deletions where this may be much."""
    count, free = list_entries(p, room, q, level, number, step)
    if count == 0:
        return
    fixed = p.flat.first[p.flat.inputs[step, 0]] < 0
    numbers = p.base if fixed else room.low[0]
    lost, mean, at = min(free, left * p.at_once[number]), room.low[0], p.at[number]
    scales, all_gone, charge = p.scales[p.scale_at[step] :], 0.0, 0.0
    now, weight, falls, least, most, growth = _scales_of(scales, count, min(lost, count - 1))
    share = weight
    q.numbers[LOOKED] += 2 * free * width
    if share > WORTH_CHARGING * now:
        weight, charge = now, 0.0 if fixed else growth * _most_of_one(p, room, q, level, count, width, g, a)
    if lost == count:
        for c in range(width):
            x = mean[at + c]
            all_gone += a[c] * abs(x) - g[c] * x
        all_gone = max(all_gone, 0.0) / count
    for k in range(count):
        if room.entries[k] == FREE:
            i, loss, other = room.places[k], 0.0, 0.0
            for c in range(width):
                x = least * mean[at + c] - numbers[i + c]
                y = most * mean[at + c] - numbers[i + c]
                loss += a[c] * abs(x) + g[c] * x
                other += a[c] * abs(y) + g[c] * y
            loss = max(loss, other) if other == other else other
            add_loss(q, losses, k, loss if loss != loss else max(max(share * loss, 0.0) + charge, all_gone))
    for c in range(width):
        g[c] *= weight
        a[c] *= weight
    before = q.numbers[PATHS]
    begin_paths(p, room, q, level, step, count, width, g, a)
    if weight != now or falls:
        for path in range(before, q.numbers[PATHS]):
            # By which factor its entries count is not known, so nothing is known of what edits bring.
            q.uncertain[path] = True


@kernel
def _scales_of(scales: Any, count: int, lost: int) -> tuple[float, float, bool, float, float, float]:
    """What the scale of so many entries is now, and can become at most if up to ``lost`` are lost; whether it can fall.

    Where k are lost, their scale s grows by k times a number times s: the least and the largest such number, relative
    to the mean as it is now. At last: by how much the scales of all that is left grow together, for each that is lost.
    """
    now = scales[count]
    highest, falls, least, most, growth = now, False, np.inf, -np.inf, 0.0
    for k in range(1, lost + 1):
        scale = scales[count - k]
        highest = max(highest, scale)
        falls |= scale < now
        share = (scale - now) / (k * scale * now)
        least, most = min(least, share), max(most, share)
        growth = max(growth, (count - k) * (scale - now) / k)
    if lost == 0:
        least = most = 0.0
    return now, highest, falls, least, most, growth


@kernel
def _most_of_one(p: Any, room: Any, q: Any, level: int, count: int, width: int, g: Any, a: Any) -> float:
    """How much the change of one entry may cost at most, by its interval."""
    most = 0.0
    for k in range(count):
        number, loss = q.entry_row[k], 0.0
        if not can_change(p, room, q, level, number):
            continue
        at = p.at[number]
        for c in range(width):
            now = room.low[0, at + c]
            fall, rise = min(room.low[level, at + c] - now, 0.0), max(room.high[level, at + c] - now, 0.0)
            loss += max(g[c] * fall - a[c] * fall, g[c] * rise + a[c] * rise)
        most = max(most, loss) if loss == loss else np.inf
    return most
