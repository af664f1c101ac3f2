"""Matrices that mix the columns of a reduction: all columns lose the same entries.

Every bound here is of the form Σ w⁺ a + Σ w⁻ b, where w⁺ and w⁻ are the positive and negative parts of a matrix. That
is w times the middle of a and b, less |w| times half of what b exceeds a by; so both ends of a row take two products.

An end of the row that is narrowed may pass the other one by rounding; then it is set to that.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from butfor.oracle.program.bounding.intervals import OUTWARDS
from butfor.oracle.program.bounding.plain.connections import IS_RELU, NUM_MIXES, OTHERS, REDUCED, SUMMED
from butfor.oracle.program.bounding.plain.entries import (
    FREE,
    MADE,
    MOST_TOPS,
    begin,
    ends,
    insert,
    least_mean,
    list_status,
)
from butfor.oracle.program.bounding.selection import smallest, sort
from butfor.oracle.program.kernels import flat as tables
from butfor.oracle.program.kernels.flat import AMIN, MEAN, kernel
from butfor.oracle.program.kernels.vectors import add_multiples, add_products

__all__ = ["mix_extremes", "mix_sums"]

# Rows with more entries are not mixed: each entry takes as long as a matrix product.
MOST_MIXED = 256

# Nor are rows with larger numbers: what cancels in a product would be lost in rounding.
MOST_EXACT = 1e12


@kernel
def mix_extremes(p: Any, room: Any, level: int, budget: int, step: int, row: int, low: Any, high: Any) -> None:
    """Narrow a row of a matrix product with a maximum or minimum."""
    flat = p.flat
    number = flat.first[p.mixes[step, REDUCED]] + row
    count, lost = list_status(p, room, level, budget, number)
    if lost == 0:
        return
    of, width = p.step_of[number], len(low)
    inner, sign = flat.width[flat.out[of]], -1.0 if flat.code[of] == AMIN else 1.0
    o, there, free, empty, listed = p.at[number], 0, 0, -np.inf, 0
    # Shares are listed column by column, and those of each entry are counted.
    room.share_from[0] = room.share_from[1] = 0
    for k in range(count):
        room.share_from[k + 2] = 0
        there += room.entries[k] != MADE
        free += room.entries[k] == FREE
    if lost == there:
        empty = sign * flat.parameters[of, 0]
    sorted_column = 0
    for r in range(inner):
        # The ends of the maximum, of which a minimum is one with all signs turned.
        x, y = room.low[level, o + r], room.high[level, o + r]
        if not (abs(x) < MOST_EXACT and abs(y) < MOST_EXACT):
            return
        x, y = (-y, -x) if sign < 0.0 else (x, y)
        top = x
        if x != y:
            while p.sorted_at[number] >= 0 and p.sorted[p.sorted_at[number] + 1 + sorted_column] != r:
                sorted_column += 1
            found, largest, second = _rank(p, room, level, number, r, sorted_column, count, min(lost, MOST_TOPS), sign)
            top = room.values[0]
            if not abs(top) < MOST_EXACT:
                return
            listed = _list_shares(room, listed, r, found, lost, x)
            if room.entries[largest] == FREE:
                listed = _list_gain(room, listed, r, largest, y - max(second, empty))
        room.middle[r], room.radius[r] = 0.5 * sign * (top + y), 0.5 * (y - top)
    begin(p, step, row, room.carried)
    _both_ends(p, room, step, inner, width)
    _add_shares(p, room, step, width, count, listed, sign)
    for turned in (False, True):
        losses, bounds = room.rises if turned else room.falls, room.row
        for c in range(width):
            bounds[c] = 0.0
        _lose(room, losses, count, free, lost, width)
        for c in range(width):
            if turned:
                high[c] = max(min(high[c], room.most[c] - bounds[c]), low[c])
            else:
                low[c] = min(max(low[c], room.least[c] + bounds[c]), high[c])


@kernel
def _both_ends(p: Any, room: Any, step: int, inner: int, width: int) -> None:
    """The ends of a product whose input has these middles and radii, plus what stands in ``carried``."""
    matrix = p.flat.tables[step, tables.MATRIX]
    middle, radius = room.products[0], room.products[1]
    add_products(middle, 0, 0, room.carried, 0, 0, room.middle, 0, 0, p.flat.matrices, matrix, inner, width)
    add_products(radius, 0, 0, room.zeros, 0, 0, room.radius, 0, 0, p.sizes, matrix, inner, width)
    for c in range(width):
        outwards = OUTWARDS * (abs(middle[c]) + abs(radius[c]))
        room.least[c], room.most[c] = middle[c] - radius[c] - outwards, middle[c] + radius[c] + outwards


@kernel
def _rank(
    p: Any, room: Any, level: int, number: int, column: int, place: int, count: int, lost: int, sign: float
) -> tuple[int, int, float]:
    """Rank the largest lower ends of a column, one more than can be ``lost``; how many these are.

    Also the entry with the largest upper end, and the largest one of the others. ``place`` is that of the column among
    those that are sorted.
    """
    ranked, values, at, found = room.ranked, room.values, p.sorted_at[number], 0
    values[0], values[1] = np.nan, -np.inf
    if at >= 0:
        columns = p.sorted[at]
        for n in range(count):
            k = p.sorted[at + 1 + columns + n * columns + place]
            if room.entries[k] != MADE:
                ranked[found], values[found] = k, sign * p.base[room.places[k] + column]
                found += 1
                if found > lost:
                    break
        return found, ranked[0], values[1]
    fixed = p.flat.first[p.flat.inputs[p.step_of[number], 0]] < 0
    first = p.base if fixed else room.low[level]
    last = p.base if fixed else room.high[level]
    if sign < 0.0:
        # Of a minimum, the upper ends are lower ends with their signs turned.
        first, last = last, first
    largest, most, second = 0, -np.inf, -np.inf
    for k in range(count):
        if room.entries[k] == MADE:
            continue
        x, y = sign * first[room.places[k] + column], sign * last[room.places[k] + column]
        if y > most:
            largest, most, second = k, y, most
        else:
            second = max(second, y)
        if found > lost and not x > values[found - 1]:
            continue
        n = found if found <= lost else found - 1
        while n > 0 and values[n - 1] < x:
            values[n], ranked[n] = values[n - 1], ranked[n - 1]
            n -= 1
        values[n], ranked[n] = x, k
        found = min(found + 1, lost + 1)
    return found, largest, second


@kernel
def _list_shares(room: Any, listed: int, column: int, found: int, lost: int, floor: float) -> int:
    """List by how much a column falls with each of its largest entries, to a floor."""
    ranked, values, last, total = room.ranked, room.values, 0, 0.0
    # Entries are lost one after the other until one is sure to stay, or the floor is reached.
    while last < min(found, lost) and room.entries[ranked[last]] == FREE and values[last] > floor:
        last += 1
    for n in range(last - 1, -1, -1):
        following = max(values[n + 1], floor) if n + 1 < found else floor
        total += max(values[n] - following, 0.0) / (n + 1)
        if total > 0.0:
            room.share_entry[listed], room.share_column[listed] = ranked[n], column
            room.share[listed], room.gain[listed] = total, 0.0
            room.share_from[ranked[n] + 2] += 1
            listed += 1
    return listed


@kernel
def _list_gain(room: Any, listed: int, column: int, entry: int, gain: float) -> int:
    """List by how much the upper end of a column falls with the entry that has the largest."""
    if not gain > 0.0:
        return listed
    if listed > 0 and room.share_entry[listed - 1] == entry and room.share_column[listed - 1] == column:
        room.gain[listed - 1] = gain
        return listed
    room.share_entry[listed], room.share_column[listed] = entry, column
    room.share[listed], room.gain[listed] = 0.0, gain
    room.share_from[entry + 2] += 1
    return listed + 1


@kernel
def _add_shares(p: Any, room: Any, step: int, width: int, count: int, listed: int, sign: float) -> None:
    """By how much each number of the row falls, and rises, with each entry."""
    matrix, begins = p.flat.tables[step, tables.MATRIX], room.share_from
    for k in range(count):
        begins[k + 2] += begins[k + 1]
    for n in range(listed):
        place = begins[room.share_entry[n] + 1]
        begins[room.share_entry[n] + 1] += 1
        room.columns[place] = room.share_column[n]
        room.factors[place] = 0.5 * (room.share[n] + room.gain[n])
        room.factors_of_sizes[place] = 0.5 * (room.share[n] - room.gain[n])
    total, size = room.products[0], room.products[1]
    for k in range(count):
        number, falls, rises = begins[k + 1] - begins[k], room.falls[k], room.rises[k]
        if number == 0:
            for c in range(width):
                falls[c] = rises[c] = 0.0
            continue
        columns, factors, factors_of_sizes = (
            room.columns[begins[k] :],
            room.factors[begins[k] :],
            room.factors_of_sizes[begins[k] :],
        )
        add_multiples(total, 0, room.zeros, 0, p.flat.matrices, matrix, factors, columns, number, width)
        add_multiples(size, 0, room.zeros, 0, p.sizes, matrix, factors_of_sizes, columns, number, width)
        for c in range(width):
            outwards = OUTWARDS * (abs(size[c]) + abs(total[c]))
            falls[c], rises[c] = size[c] + sign * total[c] + outwards, size[c] - sign * total[c] + outwards


@kernel
def _lose(room: Any, losses: Any, count: int, free: int, lost: int, width: int) -> None:
    """Take from each number of ``row`` the ``lost`` largest losses of entries that may go, where they are positive."""
    bounds = room.row
    if lost == free:
        for k in range(count):
            if room.entries[k] == FREE:
                for c in range(width):
                    bounds[c] -= max(losses[k, c], 0.0)
        return
    _find_tops(room, losses, count, lost, width, False)
    for j in range(lost):
        for c in range(width):
            bounds[c] -= max(room.tops[j, c], 0.0)


# Sums and means.


@kernel
def mix_sums(p: Any, room: Any, level: int, budget: int, step: int, row: int, low: Any, high: Any) -> None:
    """Narrow a row of a matrix product with a sum or mean, other summands, and ReLU."""
    flat, mixes = p.flat, p.mixes[step]
    number = flat.first[mixes[REDUCED]] + row
    count, lost = list_status(p, room, level, budget, number)
    width, inner = len(low), flat.width[mixes[SUMMED]]
    if lost == 0 or count > MOST_MIXED or not _slopes(p, room, level, step, number, row, inner):
        return
    begin(p, step, row, room.carried)
    _both_ends(p, room, step, inner, width)
    there, free = _products(p, room, level, step, number, count, inner, width)
    for turned in (False, True):
        _least(p, room, p.step_of[number], count, there, free, lost, width, turned)
        bounds = room.row
        for c in range(width):
            if turned:
                bound = room.most[c] - bounds[c]
                if np.isfinite(bound):
                    high[c] = max(min(high[c], bound), low[c])
            else:
                bound = room.least[c] + bounds[c]
                if np.isfinite(bound):
                    low[c] = min(max(low[c], bound), high[c])


@kernel
def _slopes(p: Any, room: Any, level: int, step: int, number: int, row: int, inner: int) -> bool:
    """Slopes for both ends of each column of the input, and what it is without the reduction; False if unknown.

    ReLU is at least 0, and at least what it is of; it is at most the chord through both ends.
    """
    mixes = p.mixes[step]
    first, last = ends(p, room, level, mixes[SUMMED], row)
    least, most = room.least[:inner], room.most[:inner]
    begin(p, p.step_of[number], row, least)
    for r in range(inner):
        if not (abs(first[r]) < MOST_EXACT and abs(last[r]) < MOST_EXACT):
            return False
        most[r] = least[r]
    for k in range(OTHERS, NUM_MIXES):
        if mixes[k] >= 0:
            low_end, high_end = ends(p, room, level, mixes[k], row)
            for r in range(inner):
                least[r] += low_end[r]
                most[r] += high_end[r]
    relu = mixes[IS_RELU] == 1
    for r in range(inner):
        x, y, down, up, shift = first[r], last[r], 1.0, 1.0, 0.0
        if relu and y <= 0.0:
            down = up = 0.0
        elif relu and x < 0.0:
            down, up, shift = 1.0 if y > -x else 0.0, y / (y - x), x
        a, b = down * least[r], up * (most[r] - shift)
        room.slopes[r], room.chords[r] = down, up
        room.middle[r], room.radius[r] = 0.5 * (a + b), 0.5 * (b - a)
    return True


@kernel
def _products(
    p: Any, room: Any, level: int, step: int, number: int, count: int, inner: int, width: int
) -> tuple[int, int]:
    """What each entry adds to each number of the row, at least, and at most with its sign turned.

    Two entries are multiplied at a time. Returns how many entries there are, and how many may go.
    """
    flat, value = p.flat, p.flat.inputs[p.step_of[number], 0]
    matrix, fixed = flat.tables[step, tables.MATRIX], flat.first[value] < 0
    there = free = begun = 0
    wide, place, other = len(room.middle) // 2, 0, room.falls.shape[1]
    for k in range(count):
        if room.entries[k] == MADE:
            continue
        i, at = room.places[k], begun * wide
        if fixed:
            for r in range(inner):
                x = 0.5 * p.base[i + r]
                room.middle[at + r] = (room.slopes[r] + room.chords[r]) * x
                room.radius[at + r] = (room.chords[r] - room.slopes[r]) * x
        else:
            for r in range(inner):
                a, b = 0.5 * room.slopes[r] * room.low[level, i + r], 0.5 * room.chords[r] * room.high[level, i + r]
                room.middle[at + r], room.radius[at + r] = a + b, b - a
        there += 1
        free += room.entries[k] == FREE
        begun += 1
        if begun == 2:
            _two_products(p, room, matrix, place, k * other, wide, inner, width)
            begun = 0
        place = k * other
    if begun == 1:
        _two_products(p, room, matrix, place, place, 0, inner, width)
    for k in range(count):
        if room.entries[k] != MADE:
            falls, rises = room.falls[k], room.rises[k]
            for c in range(width):
                x, y = falls[c], rises[c]
                outwards = OUTWARDS * (abs(x) + abs(y))
                falls[c], rises[c] = x - y - outwards, -x - y - outwards
    return there, free


@kernel
def _two_products(p: Any, room: Any, matrix: int, one: int, other: int, wide: int, inner: int, width: int) -> None:
    add_products(room.falls, one, other, room.zeros, 0, 0, room.middle, 0, wide, p.flat.matrices, matrix, inner, width)
    add_products(room.rises, one, other, room.zeros, 0, 0, room.radius, 0, wide, p.sizes, matrix, inner, width)


@kernel
def _least(p: Any, room: Any, of: int, count: int, there: int, free: int, lost: int, width: int, turned: bool) -> None:
    """Put into ``row`` the least that all entries add to each number, without some of them."""
    losses, bounds = room.rises if turned else room.falls, room.row
    for c in range(width):
        bounds[c] = 0.0
    for k in range(count):
        if room.entries[k] != MADE:
            for c in range(width):
                bounds[c] += losses[k, c]
    if p.flat.code[of] != MEAN:
        _lose(room, losses, count, free, lost, width)
        return
    _find_tops(room, losses, count, lost, width, True)
    scales = p.scales[p.scale_at[of] :]
    for c in range(width):
        mean = least_mean(room.tops[:, c], scales, there, lost, bounds[c])
        # All entries may be gone, and an empty row is 0.
        bounds[c] = min(mean, 0.0) if there == lost else mean


@kernel
def _find_tops(room: Any, losses: Any, count: int, lost: int, width: int, in_order: bool) -> None:
    """The ``lost`` largest numbers of each column, of the entries that may go; ``in_order`` with the largest first."""
    if lost <= MOST_TOPS:
        for j in range(lost):
            for c in range(width):
                room.tops[j, c] = -np.inf
        for k in range(count):
            if room.entries[k] == FREE:
                insert(room.tops, lost, width, losses[k], 0, 1.0, room.carried)
        return
    for c in range(width):
        number = 0
        for k in range(count):
            if room.entries[k] == FREE:
                room.column[number] = -losses[k, c]
                number += 1
        smallest(room.column, number, lost)
        if in_order:
            sort(room.column, lost)
        for j in range(lost):
            room.tops[j, c] = -room.column[j]
