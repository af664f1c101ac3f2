"""U of every free edit, by the argument at the head of the package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from butfor.oracle.gcn.curve.ranges import (
    Ranges,
    fill_ranges,
    least_product,
    least_sum,
    most_killed,
    note_lost,
    note_rise,
    on_segments,
)
from butfor.oracle.gcn.family import Family, Scratch, entries_per_edit, fill_family, parallel, worst
from butfor.oracle.gcn.intervals import finite, least
from butfor.oracle.gcn.kernels import jit, kernel, step
from butfor.oracle.gcn.selection import sum_of_largest, sum_of_largest_parts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from butfor.oracle.gcn.curve.shape import Curve, Reading
    from butfor.oracle.gcn.layout import ReceptiveField

    Floats = NDArray[np.float64]

__all__ = ["influence"]


class Near(NamedTuple):
    """The entries into the target, by their sender."""

    weight: Floats  # (node within 1 hop): of all entries from it to the target
    loose: NDArray[np.bool_]  # whether one of them may go
    killed: int  # how many terms of a sum over u→v and v→0 graphs of F lack at most


class Contracted(NamedTuple):
    """α, β, γ and φ of the nodes within one hop for r; behind them, as one more node, those of the target for q_2.

    The six rows of a number are its least and largest β, least and largest γ, and least and largest β of the channels
    that are on for certain.
    """

    entry: Floats  # (6, entry into a node within 1 hop)
    target: Floats  # (6, entry into the target): for q_2
    own: Floats  # (6, node)
    alpha: Floats  # (end, node)
    phi: Floats  # (end, node)
    slope: Floats  # (segment): space for the function of t of one node
    offset: Floats  # (segment)


class Falls(NamedTuple):
    """τ, B and P."""

    tau: Floats  # (end, node within 2 hops): τ, but for the factor s unless it is the target's
    b: Floats  # (node): the least B
    taken: Floats  # (entry): the largest P


@step
def _most(scale_low: float, scale_high: float, value: float) -> Any:
    """The largest product of a scale, which is not negative, and a value."""
    return scale_high * value if value > 0 else scale_low * value


@kernel
def _contract(
    field: ReceptiveField, family: Family, curve: Curve, bias: Floats, vector: Floats, v: int, place: int,
    entry: Floats, ranges: Ranges, into: Contracted, scratch: Scratch,
) -> None:  # fmt: skip
    """Fill in what node ``v`` receives in the second layer, read by a vector."""
    rows, sender, loop, z, g = field.incoming.rows, field.incoming.sender, field.incoming.loop, ranges.z, ranges.g
    slope, offset, own, undecided = into.slope, into.offset, into.own, False
    for j in range(len(bias)):
        undecided |= z[0, v, j] < 0 < z[1, v, j]
    for k in range(len(slope)):
        slope[k] = offset[k] = 0.0
        for j in range(len(bias)):
            if z[0, v, j] >= 0:
                slope[k] += vector[j] * curve.slope[k, j]
                offset[k] += vector[j] * curve.offset[k, j]
    for e in range(rows[v] - 1, rows[v + 1]):
        u = sender[e] if e >= rows[v] else v
        on_segments(
            slope, offset, curve.breaks, ranges.segment[0, u], ranges.segment[1, u], ranges.t[0, u], ranges.t[1, u],
            ranges.found,
        )  # fmt: skip
        out, at = (entry, e) if e >= rows[v] else (own, place)
        for i in range(4):
            out[i, at] = ranges.found[i]
        out[4, at], out[5, at] = ranges.found[0], ranges.found[1]
        for j in range(len(bias) if undecided else 0):
            if z[0, v, j] < 0 < z[1, v, j]:
                for i in range(0, 4, 2):
                    low, high = min(g[i, u, j], 0.0), max(g[i + 1, u, j], 0.0)
                    out[i, at] += vector[j] * (low if vector[j] > 0 else high)
                    out[i + 1, at] += vector[j] * (high if vector[j] > 0 else low)
    for end in range(2):
        sign = 1.0 - 2 * end
        into.alpha[end, place] = sign * least_sum(
            field, family, v, loop[v] * own[end, place], entry[end], sign, scratch
        )
        on = least_product(field, family, v, loop[v] * own[4 + end, place], entry[4 + end], sign, scratch)
        phi = sign * on
        for j in range(len(bias)):
            if z[0, v, j] >= 0:
                phi += vector[j] * bias[j]
            elif z[1, v, j] > 0 and (vector[j] > 0) == (end == 1):
                phi += vector[j] * z[1, v, j]
        into.phi[end, place] = phi


@kernel
def _sent(
    field: ReceptiveField, family: Family, near: Near, u: int, row: int, sign: float, read: Contracted, scratch: Scratch
) -> Any:
    """The least of ``sign`` (Σ_{u→v} c(v) w s(v) x(v, u) + c(u) ω s(u) x(u, u)), x being a row of β or γ."""
    low, high, weight, loop = family.low, family.high, family.weight, field.incoming.loop
    others, found, num_lost, num_moved = 0.0, 0.0, 0, 0
    for o in range(field.sent_rows[u], field.sent_rows[u + 1]):
        e = field.sent_entries[o]
        x = field.receiver[e]
        if x >= len(near.weight):
            break  # the nearest receivers come first
        if weight[e] == 0.0:
            continue
        if x == 0:
            one = least(low[0] ** 3, high[0] ** 3, sign * loop[0] * weight[e] * read.entry[row, e])
            one += least(low[0], high[0], sign * weight[e] * read.target[row, e])
            found += min(one, 0.0) if family.loose[e] else one
        else:
            value, square = sign * near.weight[x] * weight[e] * read.entry[row, e], low[x] * low[x]
            others += square * value
            num_moved = note_rise(-(high[x] * high[x] - square) * value, family, x, num_moved, scratch)
            if family.loose[e] or near.loose[x]:
                num_lost = note_lost(square * value, num_lost, scratch)
    others -= sum_of_largest(scratch.lost, num_lost, near.killed)
    others -= sum_of_largest_parts(scratch.moved, scratch.parts, num_moved, scratch.changed)
    found += least(low[0], high[0], others)
    if u == 0:
        found += least(low[0] ** 3, high[0] ** 3, sign * loop[0] * loop[0] * read.own[row, 0])
        found += least(low[0], high[0], sign * loop[0] * read.own[row, len(near.weight)])
    elif u < len(near.weight):
        one = sign * near.weight[u] * loop[u] * read.own[row, u]
        one = least(low[0] * low[u] ** 2, high[0] * high[u] ** 2, one)
        found += min(one, 0.0) if near.loose[u] else one
    return found


@kernel
def _fill_tau(
    field: ReceptiveField, family: Family, near: Near, slopes: Floats, read: Contracted, falls: Falls, scratch: Scratch
) -> None:
    """τ of all nodes within two hops; ``slopes`` is the interval of q_1's."""
    for u in range(falls.tau.shape[1]):
        for end in range(2):
            sign = 1.0 - 2 * end
            falls.tau[end, u] = sign * _sent(field, family, near, u, 2 + end, sign, read, scratch)
    falls.tau[0, 0] = least(family.low[0], family.high[0], falls.tau[0, 0]) + slopes[0]
    falls.tau[1, 0] = _most(family.low[0], family.high[0], falls.tau[1, 0]) + slopes[1]


@kernel
def _least_b(
    field: ReceptiveField, family: Family, near: Near, x: int, ranges: Ranges, read: Contracted, tau: Floats,
    scratch: Scratch,
) -> Any:  # fmt: skip
    """The least B of a node."""
    low, high, weight, loop = family.low, family.high, family.weight, field.incoming.loop
    b = _sent(field, family, near, x, 0, 1.0, read, scratch)
    if x < tau.shape[1]:
        own = tau[0, x] if x == 0 else least(low[x], high[x], tau[0, x])
        b += least(ranges.total[0, x] + loop[x] * low[x], ranges.total[1, x] + loop[x] * high[x], own)
    num_lost, num_moved = 0, 0
    for o in range(field.sent_rows[x], field.sent_rows[x + 1]):
        e = field.sent_entries[o]
        u = field.receiver[e]
        if u >= tau.shape[1]:
            break
        if weight[e] != 0.0:
            value = weight[e] * tau[0, u]
            factors = (low[u], high[u]) if u == 0 else (low[u] * low[u], high[u] * high[u])
            b += factors[0] * value
            num_moved = note_rise(-(factors[1] - factors[0]) * value, family, u, num_moved, scratch)
            if family.loose[e]:
                num_lost = note_lost(factors[0] * value, num_lost, scratch)
    b -= worst(num_lost, num_moved, scratch)
    if x == 0:
        b += least(low[0] ** 2, high[0] ** 2, loop[0] * read.alpha[0, 0]) + read.alpha[0, len(near.weight)]
        for e in range(field.incoming.rows[0], field.incoming.rows[1]):
            ranges.at[e] = read.phi[0, field.incoming.sender[e]]
        b += least_sum(field, family, 0, loop[0] * read.phi[0, 0], ranges.at, 1.0, scratch)
        b += least(low[0], high[0], loop[0] * read.phi[0, 0])
    elif x < len(near.weight):
        one = least(low[0] * low[x], high[0] * high[x], near.weight[x] * read.alpha[0, x])
        one += least(low[0], high[0], near.weight[x] * read.phi[0, x])
        b += min(one, 0.0) if near.loose[x] else one
    return b


@kernel
def _most_taken(field: ReceptiveField, family: Family, near: Near, e: int, read: Contracted, tau: Floats) -> Any:
    """The largest P of an entry."""
    low, high, w = family.low, family.high, family.weight[e]
    u, x = field.incoming.sender[e], field.receiver[e]
    if x == 0:
        taken = _most(low[0] * low[u], high[0] * high[u], w * tau[1, 0])
        cubes = low[0] ** 3 * low[u], high[0] ** 3 * high[u]
        taken += _most(cubes[0], cubes[1], w * field.incoming.loop[0] * read.entry[1, e])
        taken += _most(low[0] * low[u], high[0] * high[u], w * read.target[1, e])
        return taken + _most(low[0] * low[u], high[0] * high[u], w * read.phi[1, u])
    taken = _most(low[x] ** 2 * low[u], high[x] ** 2 * high[u], w * tau[1, x])
    if x < len(near.weight):
        one = w * near.weight[x] * read.entry[1, e]
        one = _most(low[0] * low[x] ** 2 * low[u], high[0] * high[x] ** 2 * high[u], one)
        taken += max(one, 0.0) if near.loose[x] else one
    return taken


@kernel
def _raise_limits(field: ReceptiveField, family: Family, free: NDArray[np.bool_], falls: Falls, limits: Floats) -> None:
    """Raise U of every free edit to what it is for this margin."""
    degree, least_degree, weight = family.degree, family.least_degree, family.weight
    for edit in range(len(free)):
        if free[edit]:
            fall = 0.0
            for e in field.edit_entries[field.edit_rows[edit] : field.edit_rows[edit + 1]]:
                if weight[e] != 0.0:
                    v = field.receiver[e]
                    longest = family.high[v] - 1 / np.sqrt(least_degree[v] + weight[e])
                    shortest = 1 / np.sqrt(max(degree[v] - weight[e], least_degree[v])) - family.low[v]
                    shortest = min(max(shortest, 0.0), longest)
                    fall += falls.taken[e] - least(shortest, longest, falls.b[v])
            limits[edit] = max(limits[edit], fall)


@kernel
def _bound(
    field: ReceptiveField, curve: Curve, reading: Reading, family: Family, near: Near, free: NDArray[np.bool_],
    ranges: Ranges, read: Contracted, falls: Falls, scratch: Scratch, slopes: Floats, limits: Floats,
) -> bool:  # fmt: skip
    """U of every free edit for all pairs; False where numbers are too large to tell."""
    one_hop, two_hops = len(near.weight), ranges.t.shape[1]
    for pair in range(len(reading.first)):
        through, second = reading.second[pair, 0], reading.second[pair, 1]
        for v in range(one_hop):
            _contract(field, family, curve, reading.bias, through, v, v, read.entry, ranges, read, scratch)
        _contract(field, family, curve, reading.bias, second, 0, one_hop, read.target, ranges, read, scratch)
        for k in range(ranges.segment[0, 0], ranges.segment[1, 0] + 1):
            value = 0.0
            for j in range(reading.first.shape[1]):
                value += reading.first[pair, j] * curve.hidden_slope[k, j]
            begins = k == ranges.segment[0, 0]
            slopes[0] = value if begins else min(slopes[0], value)
            slopes[1] = value if begins else max(slopes[1], value)
        _fill_tau(field, family, near, slopes, read, falls, scratch)
        for x in range(len(falls.b)):
            falls.b[x] = _least_b(field, family, near, x, ranges, read, falls.tau, scratch)
        for e in range(field.incoming.rows[two_hops]):
            falls.taken[e] = _most_taken(field, family, near, e, read, falls.tau)
        if not (finite(falls.b) and finite(falls.taken)):
            return False
        _raise_limits(field, family, free, falls, limits)
    return True


@jit
def influence(
    field: ReceptiveField,
    curve: Curve,
    reading: Reading,
    removed: NDArray[np.int64],
    free: NDArray[np.bool_],
    more: int,
    limits: Floats,
) -> None:
    """U of every free edit into ``limits``, infinite where numbers are too large to tell."""
    one_hop, two_hops = field.incoming.levels[1], field.incoming.levels[2]
    nodes, entries, segments, wide = len(field.incoming.loop), len(field.base), len(curve.slope), len(reading.bias)
    at_node, in_all = entries_per_edit(field, free)
    twins = parallel(field)
    space = nodes + 1
    for v in range(nodes):
        received = field.incoming.rows[v + 1] - field.incoming.rows[v]
        space = max(space, max(received, field.sent_rows[v + 1] - field.sent_rows[v]) + 1)
    scratch = Scratch(
        more * at_node, more * in_all * twins, np.zeros(space), np.zeros(space), np.zeros(space), np.zeros(space),
        np.zeros(space), np.zeros((2, 1)),
    )  # fmt: skip
    family = Family(
        field.base.astype(np.float64), np.zeros(entries, np.bool_), np.zeros(nodes), np.zeros(nodes), np.zeros(nodes),
        np.zeros(nodes), np.zeros(nodes, np.int64), np.zeros(nodes),
    )  # fmt: skip
    fill_family(field, removed, free, family, scratch)
    near = Near(np.zeros(one_hop), np.zeros(one_hop, np.bool_), more * most_killed(field, free) * twins)
    for e in range(field.incoming.rows[0], field.incoming.rows[1]):
        near.weight[field.incoming.sender[e]] += family.weight[e]
        near.loose[field.incoming.sender[e]] |= family.loose[e]
    ranges = Ranges(
        np.zeros((2, two_hops)), np.zeros((2, two_hops)), np.zeros((2, two_hops), np.int64),
        np.zeros((4, two_hops, wide)), np.zeros((2, one_hop, wide)), np.zeros(entries), np.zeros(4),
    )  # fmt: skip
    read = Contracted(
        np.zeros((6, entries)), np.zeros((6, entries)), np.zeros((6, one_hop + 1)), np.zeros((2, one_hop + 1)),
        np.zeros((2, one_hop + 1)), np.zeros(segments), np.zeros(segments),
    )  # fmt: skip
    falls = Falls(np.zeros((2, two_hops)), np.zeros(nodes), np.zeros(entries))
    fill_ranges(field, family, curve, reading.bias, ranges, scratch)
    limits[:] = 0.0
    sound = finite(ranges.t) and finite(ranges.z) and finite(family.high)
    if not (
        sound
        and _bound(field, curve, reading, family, near, free, ranges, read, falls, scratch, np.zeros(2), limits)
    ):  # fmt: skip
        limits[:] = np.inf
