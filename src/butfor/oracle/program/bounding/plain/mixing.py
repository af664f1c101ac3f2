"""Matrices that mix the columns of a reduction: all columns lose the same entries.

An end of the row that is narrowed may pass the other one by rounding; then it is set to that.
"""

from __future__ import annotations

from typing import Any

import numpy as np

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
from butfor.oracle.program.bounding.plain.tables import IS_RELU, NUM_MIXES, OTHERS, REDUCED, SUMMED
from butfor.oracle.program.bounding.selection import largest, smallest
from butfor.oracle.program.kernels import flat as tables
from butfor.oracle.program.kernels.flat import AMIN, MEAN, called, kernel

__all__ = ["mix_extremes", "mix_sums"]


# For a row with more entries times numbers than this, it takes too long to look at each pair of them.
MOST_PRODUCTS = 600


@called
def mix_extremes(p: Any, room: Any, level: int, budget: int, step: int, row: int, low: Any, high: Any) -> None:
    """Narrow a row of a matrix product with a maximum or minimum."""
    flat = p.flat
    number = flat.first[p.mixes[step, REDUCED]] + row
    count, lost = list_status(p, room, level, budget, number)
    if lost == 0 or lost > MOST_TOPS:
        return
    of, width = p.step_of[number], len(low)
    inner, sign = flat.width[flat.out[of]], -1.0 if flat.code[of] == AMIN else 1.0
    o, matrix = p.at[number], flat.tables[step, tables.MATRIX]
    least, most = room.least[:width], room.most[:width]
    begin(p, step, row, least)
    for c in range(width):
        most[c] = least[c]
    for k in range(count):
        for c in range(width):
            room.falls[k, c] = room.rises[k, c] = 0.0
    for r in range(inner):
        # The ends of the maximum, of which a minimum is one with all signs turned.
        x, y = room.low[level, o + r], room.high[level, o + r]
        if not (np.isfinite(x) and np.isfinite(y)):
            return
        weights = flat.matrices[matrix + r * width : matrix + (r + 1) * width]
        if x == y:
            if x != 0.0:
                for c in range(width):
                    least[c] += x * weights[c]
                    most[c] += x * weights[c]
            continue
        x, y = (-y, -x) if sign < 0.0 else (x, y)
        top = _share(p, room, level, of, r, count, lost, x, sign)
        if not np.isfinite(top):
            return
        for c in range(width):
            w = sign * weights[c]
            least[c] += w * (top if w > 0.0 else y)
            most[c] += w * (y if w > 0.0 else top)
        for k in range(room.ranked[0]):
            share, entry = room.shares[k], room.ranked[1 + k]
            if share > 0.0:
                for c in range(width):
                    w = sign * weights[c]
                    room.falls[entry, c] += share * max(w, 0.0)
                    room.rises[entry, c] += share * max(-w, 0.0)
    for turned in (False, True):
        losses = room.rises if turned else room.falls
        for j in range(lost):
            for c in range(width):
                room.tops[j, c] = 0.0
        for k in range(count):
            if room.entries[k] == FREE:
                insert(room.tops, lost, width, losses[k], 0, 1.0, room.carried)
        for c in range(width):
            total = 0.0
            for j in range(lost):
                total += room.tops[j, c]
            if turned:
                high[c] = max(min(high[c], most[c] + total), low[c])
            else:
                low[c] = min(max(low[c], least[c] - total), high[c])


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


@called
def mix_sums(p: Any, room: Any, level: int, budget: int, step: int, row: int, low: Any, high: Any) -> None:
    """Narrow a row of a matrix product with a sum or mean, other summands, and ReLU."""
    flat, mixes = p.flat, p.mixes[step]
    number = flat.first[mixes[REDUCED]] + row
    count, lost = list_status(p, room, level, budget, number)
    width, inner = len(low), flat.width[mixes[SUMMED]]
    if lost == 0 or count * width > MOST_PRODUCTS:
        return
    first, last = ends(p, room, level, mixes[SUMMED], row)
    least, most = room.least[:inner], room.most[:inner]
    begin(p, p.step_of[number], row, least)
    for r in range(inner):
        if not (np.isfinite(first[r]) and np.isfinite(last[r])):
            return
        most[r] = least[r]
    for k in range(OTHERS, NUM_MIXES):
        if mixes[k] >= 0:
            low_end, high_end = ends(p, room, level, mixes[k], row)
            for r in range(inner):
                least[r] += low_end[r]
                most[r] += high_end[r]
    begin(p, step, row, room.carried)
    for turned in (False, True):
        for c in range(width):
            constant = _slopes(p, room, step, c, turned, first, last, inner)
            bound = constant + _least(p, room, level, number, count, lost, inner)
            if not np.isfinite(bound):
                continue
            if turned:
                high[c] = max(min(high[c], -bound), low[c])
            else:
                low[c] = min(max(low[c], bound), high[c])


@kernel
def _slopes(p: Any, room: Any, step: int, c: int, turned: bool, first: Any, last: Any, inner: int) -> float:
    """What one number of the product is at least: a constant, which is returned, plus slopes times the reduction."""
    flat, sign = p.flat, -1.0 if turned else 1.0
    matrix, width, relu = flat.tables[step, tables.MATRIX], flat.width[flat.out[step]], p.mixes[step, IS_RELU] == 1
    constant = sign * room.carried[c]
    for r in range(inner):
        weight, x, y = sign * flat.matrices[matrix + r * width + c], first[r], last[r]
        if relu and y <= 0.0:
            weight = 0.0
        elif relu and x < 0.0:
            if weight >= 0.0:
                # ReLU is at least 0, and at least what it is of.
                weight = weight if y > -x else 0.0
            else:
                # It is at most the chord through both ends.
                weight *= y / (y - x)
                constant -= weight * x
        room.slopes[r] = weight
        constant += weight * (room.least[r] if weight > 0.0 else room.most[r])
    return constant


@kernel
def _least(p: Any, room: Any, level: int, number: int, count: int, lost: int, inner: int) -> float:
    """The least of slopes times a sum or mean: of slopes times each entry, without some of them."""
    flat, slopes, column, there, free, total = p.flat, room.slopes, room.column, 0, 0, 0.0
    step = p.step_of[number]
    fixed = flat.first[flat.inputs[step, 0]] < 0
    for k in range(count):
        if room.entries[k] == MADE:
            continue
        i, brought = room.places[k], 0.0
        if fixed:
            for r in range(inner):
                brought += slopes[r] * p.base[i + r]
        else:
            for r in range(inner):
                brought += max(slopes[r], 0.0) * room.low[level, i + r] + min(slopes[r], 0.0) * room.high[level, i + r]
        total += brought
        there += 1
        if room.entries[k] == FREE:
            column[free] = -brought
            free += 1
    if flat.code[step] != MEAN:
        for k in range(free):
            column[k] = min(column[k], 0.0)
        return total - largest(column, free, lost)
    smallest(column, free, lost)
    for k in range(lost):
        column[k] = -column[k]
    mean = least_mean(column, there, lost, total)
    # All entries may be gone, and an empty row is 0.
    return min(mean, 0.0) if there == lost else mean
