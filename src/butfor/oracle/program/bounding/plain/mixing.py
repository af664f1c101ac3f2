"""Matrices that mix the columns of a reduction: all columns lose the same entries.

Every bound here is of the form Σ w⁺ a + Σ w⁻ b, where w⁺ and w⁻ are the positive and negative parts of a matrix. That
is w times the middle of a and b, less |w| times half of what b exceeds a by; so both ends of a row take two products.

An end of the row that is narrowed may pass the other one by rounding; then it is set to that.
"""

from __future__ import annotations

from typing import Any

import numpy as np

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
from butfor.oracle.program.bounding.selection import smallest
from butfor.oracle.program.kernels import flat as tables
from butfor.oracle.program.kernels.flat import AMIN, MEAN, kernel
from butfor.oracle.program.kernels.vectors import add_multiples, add_products

__all__ = ["mix_extremes", "mix_sums"]

# Rows with more entries are not mixed: each entry takes as long as a matrix product.
MOST_MIXED = 64


@kernel
def mix_extremes(p: Any, room: Any, level: int, budget: int, step: int, row: int, low: Any, high: Any) -> None:
    """Narrow a row of a matrix product with a maximum or minimum."""
    flat = p.flat
    number = flat.first[p.mixes[step, REDUCED]] + row
    count, lost = list_status(p, room, level, budget, number)
    if lost == 0 or lost > MOST_TOPS:
        return
    of, width = p.step_of[number], len(low)
    inner, sign = flat.width[flat.out[of]], -1.0 if flat.code[of] == AMIN else 1.0
    o = p.at[number]
    # Shares are listed column by column, and those of each entry are counted.
    shared = 0
    for k in range(count + 2):
        room.share_from[k] = 0
    for r in range(inner):
        # The ends of the maximum, of which a minimum is one with all signs turned.
        x, y = room.low[level, o + r], room.high[level, o + r]
        if not (np.isfinite(x) and np.isfinite(y)):
            return
        x, y = (-y, -x) if sign < 0.0 else (x, y)
        top = x
        if x != y:
            top = _share(p, room, level, of, r, count, lost, x, sign)
            if not np.isfinite(top):
                return
            for k in range(room.ranked[0]):
                if room.shares[k] > 0.0:
                    room.share_entry[shared], room.share_column[shared] = room.ranked[1 + k], r
                    room.share[shared] = room.shares[k]
                    room.share_from[room.ranked[1 + k] + 2] += 1
                    shared += 1
        room.middle[r], room.radius[r] = 0.5 * sign * (top + y), 0.5 * (y - top)
    begin(p, step, row, room.carried)
    _both_ends(p, room, step, inner, width)
    _add_shares(p, room, step, width, count, shared, sign)
    for turned in (False, True):
        losses = room.rises if turned else room.falls
        for j in range(lost):
            for c in range(width):
                room.tops[j, c] = 0.0
        for k in range(count):
            if room.entries[k] == FREE and room.share_from[k + 1] > room.share_from[k]:
                insert(room.tops, lost, width, losses[k], 0, 1.0, room.row)
        for c in range(width):
            total = 0.0
            for j in range(lost):
                total += room.tops[j, c]
            if turned:
                high[c] = max(min(high[c], room.most[c] + total), low[c])
            else:
                low[c] = min(max(low[c], room.least[c] - total), high[c])


@kernel
def _both_ends(p: Any, room: Any, step: int, inner: int, width: int) -> None:
    """The ends of a product whose input has these middles and radii, plus what stands in ``carried``."""
    matrix = p.flat.tables[step, tables.MATRIX]
    middle, radius = room.products[0], room.products[1]
    add_products(middle, 0, 0, room.carried, 0, 0, room.middle, 0, 0, p.flat.matrices, matrix, inner, width)
    add_products(radius, 0, 0, room.zeros, 0, 0, room.radius, 0, 0, p.sizes, matrix, inner, width)
    for c in range(width):
        room.least[c], room.most[c] = middle[c] - radius[c], middle[c] + radius[c]


@kernel
def _add_shares(p: Any, room: Any, step: int, width: int, count: int, shared: int, sign: float) -> None:
    """By how much each number of the row falls, and rises, with each entry."""
    matrix = p.flat.tables[step, tables.MATRIX]
    begins = room.share_from
    for k in range(count):
        begins[k + 2] += begins[k + 1]
    for n in range(shared):
        place = begins[room.share_entry[n] + 1]
        begins[room.share_entry[n] + 1] += 1
        room.factors[place], room.columns[place] = room.share[n], room.share_column[n]
    total, size = room.products[0], room.products[1]
    for k in range(count):
        number = begins[k + 1] - begins[k]
        if number == 0:
            continue
        factors, columns = room.factors[begins[k] :], room.columns[begins[k] :]
        add_multiples(total, 0, room.zeros, 0, p.flat.matrices, matrix, factors, columns, number, width)
        add_multiples(size, 0, room.zeros, 0, p.sizes, matrix, factors, columns, number, width)
        falls, rises = room.falls[k], room.rises[k]
        for c in range(width):
            falls[c], rises[c] = 0.5 * (size[c] + sign * total[c]), 0.5 * (size[c] - sign * total[c])


@kernel
def _share(p: Any, room: Any, level: int, step: int, r: int, count: int, lost: int, floor: float, sign: float) -> float:
    """The largest lower end of a column, and by how much it falls with each of the largest entries, to a floor."""
    ranked, values, shares, found = room.ranked, room.values, room.shares, 0
    fixed = p.flat.first[p.flat.inputs[step, 0]] < 0
    # Of a minimum, the upper ends are lower ends with their signs turned.
    numbers = p.base if fixed else (room.high[level] if sign < 0.0 else room.low[level])
    for k in range(count):
        if room.entries[k] == MADE:
            continue
        x = sign * numbers[room.places[k] + r]
        if found > lost and not x > values[found - 1]:
            continue
        n = found if found <= lost else found - 1
        while n > 0 and values[n - 1] < x:
            values[n], ranked[1 + n] = values[n - 1], ranked[n]
            n -= 1
        values[n], ranked[1 + n] = x, k
        found = min(found + 1, lost + 1)
    if found == 0:
        return np.nan
    # Entries are lost one after the other until one is sure to stay, or the floor is reached.
    last = 0
    while last < min(found, lost) and room.entries[ranked[1 + last]] == FREE and values[last] > floor:
        last += 1
    ranked[0] = last
    for n in range(last - 1, -1, -1):
        following = max(values[n + 1], floor) if n + 1 < found else floor
        shares[n] = max(values[n] - following, 0.0) / (n + 1) + (shares[n + 1] if n + 1 < last else 0.0)
    return values[0]


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
        _least(room, count, there, free, lost, width, flat.code[p.step_of[number]] == MEAN, turned)
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
        if not (np.isfinite(first[r]) and np.isfinite(last[r])):
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
                falls[c], rises[c] = x - y, -x - y
    return there, free


@kernel
def _two_products(p: Any, room: Any, matrix: int, one: int, other: int, wide: int, inner: int, width: int) -> None:
    add_products(room.falls, one, other, room.zeros, 0, 0, room.middle, 0, wide, p.flat.matrices, matrix, inner, width)
    add_products(room.rises, one, other, room.zeros, 0, 0, room.radius, 0, wide, p.sizes, matrix, inner, width)


@kernel
def _least(room: Any, count: int, there: int, free: int, lost: int, width: int, is_mean: bool, turned: bool) -> None:
    """Put into ``row`` the least that all entries add to each number, without some of them."""
    losses, bounds, tops = room.rises if turned else room.falls, room.row, room.tops
    for c in range(width):
        bounds[c] = 0.0
    for k in range(count):
        if room.entries[k] != MADE:
            for c in range(width):
                bounds[c] += losses[k, c]
    if lost == free and not is_mean:
        for k in range(count):
            if room.entries[k] == FREE:
                for c in range(width):
                    bounds[c] -= max(losses[k, c], 0.0)
        return
    _find_tops(room, losses, count, lost, width)
    for c in range(width):
        if is_mean:
            mean = least_mean(tops[:, c], there, lost, bounds[c])
            # All entries may be gone, and an empty row is 0.
            bounds[c] = min(mean, 0.0) if there == lost else mean
        else:
            for j in range(lost):
                bounds[c] -= max(tops[j, c], 0.0)


@kernel
def _find_tops(room: Any, losses: Any, count: int, lost: int, width: int) -> None:
    """The ``lost`` largest numbers of each column, of the entries that may go."""
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
        for j in range(lost):
            room.tops[j, c] = -room.column[j]
