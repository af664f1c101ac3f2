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
    """What is left counts more with every deletion: at most as much as it can, or the deletions are charged for it."""
    count, free = list_entries(p, room, q, level, number, step)
    if count == 0:
        return
    fixed = p.flat.first[p.flat.inputs[step, 0]] < 0
    numbers = p.base if fixed else room.low[0]
    lost, mean, at = min(free, left * p.at_once[number]), room.low[0], p.at[number]
    now, highest, falls, least, most = _scales_of(p.scales[p.scale_at[step] :], count, min(lost, count - 1))
    weight, charge, all_gone = highest, 0.0, 0.0
    is_charged = False
    if not fixed and highest > now:
        # A mean is larger by these shares of itself than it would be with its present scale.
        charge = _charge(p, room, level, number, now * least, now * most, width, g, a)
        beyond = charge - _charge(p, room, 0, number, now * least, now * most, width, g, a)
        too_much = (highest - now) * _most_of_entries(p, room, q, level, count, width, g, a)
        is_charged = min(lost, count - 1) * beyond < too_much
    if is_charged:
        weight = now
    q.numbers[LOOKED] += 2 * free * width
    if lost == count:
        for c in range(width):
            x = mean[at + c]
            all_gone += a[c] * abs(x) - g[c] * x
        all_gone = max(all_gone, 0.0) / count
    for k in range(count):
        if room.entries[k] != FREE:
            continue
        i, loss, other = room.places[k], charge if is_charged else 0.0, 0.0
        for c in range(width):
            x = -now * numbers[i + c] if is_charged else least * mean[at + c] - numbers[i + c]
            y = most * mean[at + c] - numbers[i + c]
            loss += a[c] * abs(x) + g[c] * x
            other += a[c] * abs(y) + g[c] * y
        if not is_charged:
            loss = highest * max(max(loss, other), 0.0) if other == other else other
        if lost == count and loss == loss:
            loss = max(loss, all_gone)
        add_loss(q, losses, k, loss)
    for c in range(width):
        g[c] *= weight
        a[c] *= weight
    before = q.numbers[PATHS]
    begin_paths(p, room, q, level, step, count, width, g, a)
    if not is_charged and (highest != now or falls):
        for path in range(before, q.numbers[PATHS]):
            # By which factor its entries count is not known, so nothing is known of what edits bring.
            q.uncertain[path] = True


@kernel
def _charge(p: Any, room: Any, level: int, number: int, least: float, most: float, width: int, g: Any, a: Any) -> float:
    """What is taken off at most by a share, the least or the most or between, of any mean of an interval."""
    at, charge = p.at[number], -np.inf
    for which in range(2):
        share, total = most if which else least, 0.0
        for c in range(width):
            x, y = share * room.low[level, at + c], share * room.high[level, at + c]
            total += max(g[c] * x + a[c] * abs(x), g[c] * y + a[c] * abs(y))
        charge = max(charge, total) if total == total else total
    return charge


@kernel
def _most_of_entries(p: Any, room: Any, q: Any, level: int, count: int, width: int, g: Any, a: Any) -> float:
    """What all changes of entries take off at most, by their intervals."""
    most = 0.0
    for k in range(count):
        other = q.entry_row[k]
        if not can_change(p, room, q, level, other):
            continue
        at = p.at[other]
        for c in range(width):
            now = room.low[0, at + c]
            fall, rise = min(room.low[level, at + c] - now, 0.0), max(room.high[level, at + c] - now, 0.0)
            most += max(g[c] * fall - a[c] * fall, g[c] * rise + a[c] * rise)
    return most


@kernel
def _scales_of(scales: Any, count: int, lost: int) -> tuple[float, float, bool, float, float]:
    """What the scale of so many entries is now, and can become at most if up to ``lost`` are lost; whether it can fall.

    Where k are lost, their scale s grows by k times a number times s: the least and the largest such number, relative
    to the mean as it is now.
    """
    now = scales[count]
    highest, falls, least, most = now, False, np.inf, -np.inf
    for k in range(1, lost + 1):
        scale = scales[count - k]
        highest = max(highest, scale)
        falls |= scale < now
        share = (scale - now) / (k * scale * now)
        least, most = min(least, share), max(most, share)
    if lost == 0:
        least = most = 0.0
    return now, highest, falls, least, most
