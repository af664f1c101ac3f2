"""Between which numbers t, A and Z_2 lie on all graphs of a family; the notation is that of the package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from butfor.oracle.gcn.family import ROUNDING, worst
from butfor.oracle.gcn.intervals import least
from butfor.oracle.gcn.kernels import kernel, step
from butfor.oracle.gcn.selection import sort_falling, sum_of_largest_parts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from butfor.oracle.gcn.curve.shape import Curve
    from butfor.oracle.gcn.family import Family, Scratch
    from butfor.oracle.gcn.layout import ReceptiveField

    Floats = NDArray[np.float64]

__all__ = [
    "Ranges",
    "fill_ranges",
    "least_product",
    "least_sum",
    "most_killed",
    "note_lost",
    "note_rise",
    "on_segments",
]


class Ranges(NamedTuple):
    """Intervals that hold on all of F; end 0 is the lower one, end 1 the upper one."""

    t: Floats  # (end, node within 2 hops)
    total: Floats  # (end, node within 2 hops): A
    segment: NDArray[np.int64]  # (end, node within 2 hops): of the curve, on which t lies
    g: Floats  # (least value, largest value, least slope, largest slope; node within 2 hops; channel)
    z: Floats  # (end, node within 1 hop, channel): Z of the second layer
    at: Floats  # (entry): space for what each entry carries
    found: Floats  # (4): space for what `on_segments` finds


@step
def note_lost(value: float, count: int, scratch: Scratch) -> int:
    """Note what a sum loses with an entry, if it is a loss; returns how many such notes there are."""
    if value > 0.0:
        scratch.lost[count] = value
        return count + 1
    return count


@step
def note_rise(loss: float, family: Family, u: int, count: int, scratch: Scratch) -> int:
    """Note what the largest rise of a convex function of the degree of ``u`` takes from a sum; as `family.rise`."""
    if loss > 0.0 and family.losses[u] > 0:
        parts = family.losses[u] if family.unit[u] > 0.0 else 1
        scratch.moved[count], scratch.parts[count] = loss / parts, parts
        return count + 1
    return count


@kernel
def least_sum(
    field: ReceptiveField, family: Family, v: int, own: float, at: Floats, sign: float, scratch: Scratch
) -> Any:
    """The least of ``sign`` times (own s(v) + Σ_{u→v} w s(u) at[u→v])."""
    low, total, num_lost, num_moved = family.low, least(family.low[v], family.high[v], sign * own), 0, 0
    for e in range(field.incoming.rows[v], field.incoming.rows[v + 1]):
        if family.weight[e] != 0.0:
            u = field.incoming.sender[e]
            value = family.weight[e] * sign * at[e]
            total += low[u] * value
            num_moved = note_rise(-(family.high[u] - low[u]) * value, family, u, num_moved, scratch)
            if family.loose[e]:
                num_lost = note_lost(low[u] * value, num_lost, scratch)
    return total - worst(num_lost, num_moved, scratch)


@kernel
def least_product(
    field: ReceptiveField, family: Family, v: int, own: float, at: Floats, sign: float, scratch: Scratch
) -> Any:
    """The least of ``sign`` times s(v) (own s(v) + Σ_{u→v} w s(u) at[u→v]).

    If the entries that v may lose weigh the same, their number decides s(v), and so many of the sum's terms are gone.
    """
    if family.unit[v] == 0.0:
        total = least_sum(field, family, v, 0.0, at, sign, scratch)
        squares = family.low[v] * family.low[v], family.high[v] * family.high[v]
        return least(squares[0], squares[1], sign * own) + least(family.low[v], family.high[v], total)
    low, total, num_lost, num_moved = family.low, 0.0, 0, 0
    for e in range(field.incoming.rows[v], field.incoming.rows[v + 1]):
        if family.weight[e] != 0.0:
            u = field.incoming.sender[e]
            value = family.weight[e] * sign * at[e]
            total += low[u] * value
            num_moved = note_rise(-(family.high[u] - low[u]) * value, family, u, num_moved, scratch)
            if family.loose[e]:
                scratch.lost[num_lost] = low[u] * value
                num_lost += 1
    total -= sum_of_largest_parts(scratch.moved, scratch.parts, num_moved, scratch.changed)
    sort_falling(scratch.lost, scratch.unused, num_lost)
    found = np.inf
    for i in range(family.losses[v] + 1):
        if i > 0:
            total -= scratch.lost[i - 1]
        degree = max(family.degree[v] * (1 - ROUNDING) - i * family.unit[v], family.least_degree[v])
        scale = min(max(1 / np.sqrt(degree), low[v]), family.high[v])
        found = min(found, scale * (scale * sign * own + total))
    return found


@step
def _segment(breaks: Floats, t: float) -> int:
    """The segment on which t lies: so many breaks lie before it."""
    number = 0
    while number < len(breaks) and breaks[number] < t:
        number += 1
    return number


@kernel
def on_segments(
    slope: Floats, offset: Floats, breaks: Floats, first: int, last: int, low: float, high: float, found: Floats
) -> None:
    """The least and largest value and slope of a function that is linear between breaks, for t in an interval."""
    value = offset[first] + slope[first] * low
    found[0], found[1], found[2], found[3] = value, value, slope[first], slope[first]
    for k in range(first, last + 1):
        value = offset[k] + slope[k] * (breaks[k] if k < last else high)
        found[0], found[1] = min(found[0], value), max(found[1], value)
        found[2], found[3] = min(found[2], slope[k]), max(found[3], slope[k])


@kernel
def fill_ranges(
    field: ReceptiveField, family: Family, curve: Curve, bias: Floats, ranges: Ranges, scratch: Scratch
) -> None:
    """All of `Ranges`, from the scales of the family."""
    loop, rows, sender = field.incoming.loop, field.incoming.rows, field.incoming.sender
    ranges.at[:] = 1.0
    for v in range(ranges.t.shape[1]):
        for end in range(2):
            sign = 1.0 - 2 * end  # the upper end is the lower one when all signs are turned
            ranges.t[end, v] = sign * least_product(field, family, v, loop[v], ranges.at, sign, scratch)
            ranges.total[end, v] = sign * least_sum(field, family, v, loop[v], ranges.at, sign, scratch)
            ranges.segment[end, v] = _segment(curve.breaks, ranges.t[end, v])
        first, last, low, high = ranges.segment[0, v], ranges.segment[1, v], ranges.t[0, v], ranges.t[1, v]
        for j in range(len(bias)):
            on_segments(
                curve.slope[:, j], curve.offset[:, j], curve.breaks, first, last, low, high, ranges.found
            )  # fmt: skip
            for i in range(4):
                ranges.g[i, v, j] = ranges.found[i]
    for v in range(ranges.z.shape[1]):
        for j in range(len(bias)):
            for end in range(2):
                sign, own = 1.0 - 2 * end, loop[v] * ranges.g[end, v, j]
                for e in range(rows[v], rows[v + 1]):
                    ranges.at[e] = ranges.g[end, sender[e], j]
                least_z = least_product(field, family, v, own, ranges.at, sign, scratch)
                ranges.z[end, v, j] = sign * least_z + bias[j]


@kernel
def most_killed(field: ReceptiveField, free: NDArray[np.bool_]) -> int:
    """How many entries u→v of one sender, v not the target, an edit takes or cuts off from it by taking v→0, at most.

    If the sender is the target itself, an edit of 0→v and v→0 takes one. All is times the number of parallel entries.
    """
    sender, receiver = field.incoming.sender, field.receiver
    most = 1
    for edit in range(len(free)):
        if free[edit]:
            mine = field.edit_entries[field.edit_rows[edit] : field.edit_rows[edit + 1]]
            into, elsewhere, around = 0, 0, 0
            for i in range(len(mine)):
                e, sent, first = mine[i], 0, True
                if sender[e] == 0 or receiver[e] == 0:
                    into += receiver[e] == 0
                    for k in range(i):
                        f = mine[k]
                        touches = sender[f] == 0 or receiver[f] == 0
                        first &= not (touches and sender[f] + receiver[f] == sender[e] + receiver[e])
                    around += first
                    continue
                for f in mine:
                    sent += sender[f] == sender[e] and receiver[f] != 0
                elsewhere = max(elsewhere, sent)
            most = max(most, max(into + elsewhere, around))
    return most
