"""One row of each kind of step on plain intervals. The proof is at the head of the package.

A row is computed for all graphs on which at most so many of the free edits are made; which edits are free is the same
for all rows of a *level*, which has intervals of its own for all rows that the target needs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from butfor.oracle.program.bounding.intervals import OUTWARDS, image, known, product
from butfor.oracle.program.bounding.plain.connections import IS_EXTREME, REDUCED
from butfor.oracle.program.bounding.plain.entries import (
    FREE,
    KEPT,
    MADE,
    MOST_TOPS,
    begin,
    ends,
    insert,
    least_mean,
    list_status,
)
from butfor.oracle.program.bounding.plain.mixing import mix_extremes, mix_sums
from butfor.oracle.program.bounding.selection import largest, rank, smallest, sort
from butfor.oracle.program.kernels import flat as tables
from butfor.oracle.program.kernels.flat import AMIN, CONCAT, FOLD, GATHER, LINEAR, MAP, MEAN, PICK, SUM, kernel
from butfor.oracle.program.kernels.functions import ADD, RELU
from butfor.oracle.program.kernels.vectors import add_multiples

__all__ = ["compute"]


@kernel
def compute(p: Any, room: Any, level: int, budget: int, number: int, is_first: bool) -> bool:
    """Compute a row for at most ``budget`` edits; whether it differs from what it was, unless it is the first time."""
    flat = p.flat
    if p.sorted_at[number] >= 0:
        return _sorted_extreme(p, room, level, budget, number, is_first)
    step = p.step_of[number]
    value = flat.out[step]
    row, width, kind = number - flat.first[value], flat.width[value], flat.kind[step]
    low, high = room.row_low[:width], room.row_high[:width]
    if kind == MAP:
        _map(p, room, level, step, row, low, high)
    elif kind == LINEAR:
        _linear(p, room, level, step, row, low, high)
        if budget > 0 and p.mixes[step, REDUCED] >= 0:
            if p.mixes[step, IS_EXTREME]:
                mix_extremes(p, room, level, budget, step, row, low, high)
            else:
                mix_sums(p, room, level, budget, step, row, low, high)
    elif kind == PICK:
        _pick(p, room, level, step, row, low, high)
    elif kind == FOLD:
        _fold(p, room, level, step, row, low, high)
    elif kind in (GATHER, CONCAT):
        _copy(p, room, level, step, row, low, high)
    else:
        _reduce(p, room, level, budget, number, step, row, low, high)
    o = p.at[number]
    if budget > 0:
        # Either end may pass the other one by rounding.
        for c in range(width):
            low[c] = max(low[c], min(room.least_of_all[o + c], high[c]))
            high[c] = min(high[c], max(room.most_of_all[o + c], low[c]))
    before_low, before_high = room.low[level, o : o + width], room.high[level, o : o + width]
    differs = False
    for c in range(width):
        differs |= before_low[c] != low[c] or before_high[c] != high[c]
    if differs:
        for c in range(width):
            before_low[c], before_high[c] = low[c], high[c]
    return differs


@kernel
def _map(p: Any, room: Any, level: int, step: int, row: int, low: Any, high: Any) -> None:
    flat = p.flat
    code, arity, width = flat.code[step], flat.arity[step], len(low)
    al, ah = ends(p, room, level, flat.inputs[step, 0], row)
    bl, bh, dl, dh = al, ah, al, ah
    m = n = w = flat.columns[step, 0]
    if arity > 1:
        bl, bh = ends(p, room, level, flat.inputs[step, 1], row)
        n = flat.columns[step, 1]
    if arity > 2:
        dl, dh = ends(p, room, level, flat.inputs[step, 2], row)
        w = flat.columns[step, 2]
    first, second = flat.parameters[step, 0], flat.parameters[step, 1]
    if code == RELU and m < 0:
        for c in range(width):
            x, y = al[c], ah[c]
            unknown = x == -np.inf and y == np.inf
            low[c], high[c] = -np.inf if unknown else max(x, 0.0), max(y, 0.0)
        return
    for c in range(width):
        x, y, z = c if m < 0 else flat.table[m + c], c if n < 0 else flat.table[n + c], c
        if arity > 2 and w >= 0:
            z = flat.table[w + c]
        if code == ADD:
            low[c], high[c] = known(al[x] + bl[y], ah[x] + bh[y])
        elif arity > 2:
            low[c], high[c] = image(code, al[x], ah[x], bl[y], bh[y], dl[z], dh[z], first, second, arity)
        elif arity > 1:
            low[c], high[c] = image(code, al[x], ah[x], bl[y], bh[y], 0.0, 0.0, first, second, arity)
        else:
            low[c], high[c] = image(code, al[x], ah[x], 0.0, 0.0, 0.0, 0.0, first, second, arity)


@kernel
def _linear(p: Any, room: Any, level: int, step: int, row: int, low: Any, high: Any) -> None:
    """The middles times the matrix, plus or minus half the widths times its absolute values."""
    flat, factors, columns = p.flat, room.factors, room.columns
    width, inner, matrix = len(low), flat.width[flat.inputs[step, 0]], flat.tables[step, tables.MATRIX]
    first, last = ends(p, room, level, flat.inputs[step, 0], row)
    begin(p, step, row, low)
    count, finite = 0, True
    for r in range(inner):
        x = 0.5 * (first[r] + last[r])
        finite &= np.isfinite(first[r]) and np.isfinite(last[r])
        if x != 0.0:
            factors[count], columns[count] = x, r
            count += 1
    if not finite:
        for c in range(width):
            low[c], high[c] = -np.inf, np.inf
        return
    add_multiples(low, 0, low, 0, flat.matrices, matrix, factors, columns, count, width)
    count = 0
    for r in range(inner):
        radius = 0.5 * (last[r] - first[r])
        if radius != 0.0:
            factors[count], columns[count] = radius, r
            count += 1
    add_multiples(high, 0, room.zeros, 0, p.sizes, matrix, factors, columns, count, width)
    for c in range(width):
        x, radius = low[c], (1.0 + OUTWARDS) * high[c]
        low[c], high[c] = known(x - radius, x + radius)


@kernel
def _pick(p: Any, room: Any, level: int, step: int, row: int, low: Any, high: Any) -> None:
    flat = p.flat
    which, column = flat.tables[step, tables.WHICH], flat.tables[step, tables.COLUMN]
    inputs = flat.tables[step, tables.INPUTS]
    for c in range(len(low)):
        first, last = ends(p, room, level, flat.table[inputs + flat.table[which + c]], row)
        x = flat.table[column + c]
        low[c], high[c] = first[x], last[x]


@kernel
def _fold(p: Any, room: Any, level: int, step: int, row: int, low: Any, high: Any) -> None:
    flat = p.flat
    code, width, inner = flat.code[step], len(low), flat.width[flat.inputs[step, 0]]
    first, last = ends(p, room, level, flat.inputs[step, 0], row)
    empty = 0.0 if code < 2 else -np.inf if code == 2 else np.inf if code == 3 else 1.0
    for c in range(width):
        low[c] = high[c] = empty
    finite = True
    for r in range(inner):
        c, x, y = flat.table[flat.tables[step, tables.GROUPS] + r], first[r], last[r]
        finite &= np.isfinite(x) and np.isfinite(y)
        if code < 2:
            low[c], high[c] = low[c] + x, high[c] + y
        elif code == 2:
            low[c], high[c] = max(low[c], x), max(high[c], y)
        elif code == 3:
            low[c], high[c] = min(low[c], x), min(high[c], y)
        else:
            low[c], high[c] = product(low[c], high[c], x, y)
    share = width / inner if code == 1 else 1.0
    for c in range(width):
        low[c], high[c] = known(low[c] * share, high[c] * share) if finite else (-np.inf, np.inf)


@kernel
def _copy(p: Any, room: Any, level: int, step: int, row: int, low: Any, high: Any) -> None:
    """Gathers and concatenations: the row is a row of another value."""
    flat = p.flat
    if flat.kind[step] == GATHER:
        value, source = flat.inputs[step, 0], flat.table[flat.tables[step, tables.SOURCE] + row]
    else:
        begins, number = flat.tables[step, tables.BEGINS], 0
        while row >= flat.table[begins + number + 1]:
            number += 1
        value = flat.table[flat.tables[step, tables.INPUTS] + number]
        source = row - flat.table[begins + number]
    first, last = ends(p, room, level, value, source)
    for c in range(len(low)):
        low[c], high[c] = first[c], last[c]


# Reductions.


@kernel
def _reduce(p: Any, room: Any, level: int, budget: int, number: int, step: int, row: int, low: Any, high: Any) -> None:
    """List the entries that are sure to be there, and behind them those that may go; then reduce them."""
    flat = p.flat
    value, source = flat.inputs[step, 0], flat.tables[step, tables.SOURCE]
    fixed = flat.first[value] < 0
    sure, end = 0, len(room.entries)
    for k in range(
        flat.table[flat.tables[step, tables.ARRIVING] + row], flat.table[flat.tables[step, tables.ARRIVING] + row + 1]
    ):
        entry = flat.table[flat.tables[step, tables.ARRIVAL] + k]
        column = flat.table[flat.tables[step, tables.EDGE] + entry]
        edit = p.edit_of[column]
        if edit < 0 or room.status[level, edit] == KEPT:
            if p.present[column]:
                room.entries[sure] = entry
                sure += 1
        elif room.status[level, edit] == FREE:
            end -= 1
            room.entries[end] = entry
    maybe = len(room.entries) - end
    for k in range(maybe):
        room.entries[sure + k] = room.entries[end + k]
    for k in range(sure + maybe):
        other = flat.table[source + room.entries[k]]
        if fixed:
            room.places[k] = flat.start[value] + other * flat.stride[value]
        else:
            room.places[k] = p.at[flat.first[value] + (other if flat.stride[value] > 0 else 0)]
    lost = min(maybe, budget * p.at_once[number])
    if lost == 0:
        # Nothing can go: all that may are as sure as the others.
        sure, maybe = sure + maybe, 0
    begin(p, step, row, low)
    if flat.code[step] == SUM and flat.arity[step] > 1:
        _weighted_sum(p, room, level, step, sure, maybe, lost, low, high)
        return
    first, last = (p.base, p.base) if fixed else (room.low[level], room.high[level])
    if flat.code[step] == SUM:
        _sum(room, first, last, sure, maybe, lost, low, high)
    elif flat.code[step] == MEAN:
        _mean(room, p.scales[p.scale_at[step] :], first, last, sure, maybe, lost, low, high)
    else:
        _extreme(room, first, last, sure, maybe, lost, flat.code[step] == AMIN, low, high)


@kernel
def _largest(room: Any, first: Any, last: Any, sure: int, maybe: int, lost: int, width: int, in_order: bool) -> None:
    """The ``lost`` largest lower ends of those that may go, and smallest upper ends with their signs turned.

    ``in_order``: the largest comes first.
    """
    if lost <= MOST_TOPS:
        for j in range(lost):
            for c in range(width):
                room.tops[j, c] = room.bottoms[j, c] = -np.inf
        for k in range(sure, sure + maybe):
            insert(room.tops, lost, width, first, room.places[k], 1.0, room.carried)
            insert(room.bottoms, lost, width, last, room.places[k], -1.0, room.carried)
        return
    column = room.column[:maybe]
    for c in range(width):
        for k in range(maybe):
            column[k] = -first[room.places[sure + k] + c]
        smallest(column, maybe, lost)
        if in_order:
            sort(column, lost)
        for j in range(lost):
            room.tops[j, c] = -column[j]
        for k in range(maybe):
            column[k] = last[room.places[sure + k] + c]
        smallest(column, maybe, lost)
        if in_order:
            sort(column, lost)
        for j in range(lost):
            room.bottoms[j, c] = -column[j]


@kernel
def _totals(room: Any, first: Any, last: Any, begin: int, end: int, low: Any, high: Any) -> None:
    """Add the rows of some entries."""
    width = len(low)
    for k in range(begin, end):
        i = room.places[k]
        for c in range(width):
            low[c] += first[i + c]
            high[c] += last[i + c]


@kernel
def _sum(room: Any, first: Any, last: Any, sure: int, maybe: int, lost: int, low: Any, high: Any) -> None:
    """All entries, without those whose loss lowers the sum most, or raises it most."""
    width = len(low)
    for c in range(width):
        high[c] = low[c]
    if lost < maybe:
        _totals(room, first, last, 0, sure + maybe, low, high)
        _largest(room, first, last, sure, maybe, lost, width, False)
        for j in range(lost):
            for c in range(width):
                low[c] -= max(room.tops[j, c], 0.0)
                high[c] += max(room.bottoms[j, c], 0.0)
    else:
        _totals(room, first, last, 0, sure, low, high)
        for k in range(sure, sure + maybe):
            i = room.places[k]
            for c in range(width):
                low[c] += min(first[i + c], 0.0)
                high[c] += max(last[i + c], 0.0)
    for c in range(width):
        low[c], high[c] = known(low[c], high[c])


@kernel
def _weighted_sum(
    p: Any, room: Any, level: int, step: int, sure: int, maybe: int, lost: int, low: Any, high: Any
) -> None:
    """Likewise, where each entry has a factor."""
    flat = p.flat
    own, down, up = flat.columns[step, 1], room.column[: sure + maybe], room.column[sure + maybe :]
    for c in range(len(low)):
        high[c] = low[c]
        d = c if own < 0 else flat.table[own + c]
        for k in range(sure + maybe):
            entry = room.entries[k]
            first, last = ends(
                p, room, level, flat.inputs[step, 0], flat.table[flat.tables[step, tables.SOURCE] + entry]
            )
            least, most = ends(p, room, level, flat.inputs[step, 1], entry)
            x, y = product(first[c], last[c], least[d], most[d])
            low[c] += x
            high[c] += y
            if k >= sure:
                # The largest are looked for, with their signs turned.
                down[k - sure], up[k - sure] = -max(x, 0.0), min(y, 0.0)
        low[c], high[c] = known(low[c] - largest(down, maybe, lost), high[c] + largest(up, maybe, lost))


@kernel
def _mean(room: Any, scales: Any, first: Any, last: Any, sure: int, maybe: int, lost: int, low: Any, high: Any) -> None:
    """The mean of all entries, without those whose loss lowers it most, or raises it most."""
    width, count = len(low), sure + maybe
    if count == 0:
        for c in range(width):
            high[c] = low[c]
        return
    _largest(room, first, last, sure, maybe, lost, width, True)
    empty = low[0]
    for c in range(width):
        low[c] = high[c] = 0.0
    _totals(room, first, last, 0, count, low, high)
    for c in range(width):
        finite = np.isfinite(low[c]) and np.isfinite(high[c])
        x = least_mean(room.tops[:, c], scales, count, lost, low[c])
        y = -least_mean(room.bottoms[:, c], scales, count, lost, -high[c])
        if sure == 0 and lost == maybe:
            # All entries may be gone.
            x, y = min(x, empty), max(y, empty)
        low[c], high[c] = known(x, y) if finite else (-np.inf, np.inf)


@kernel
def _extreme(
    room: Any, first: Any, last: Any, sure: int, maybe: int, lost: int, turned: bool, low: Any, high: Any
) -> None:
    """A maximum is at least the largest entry that is sure to be there, and the largest of all but for some.

    A minimum is the maximum with all signs turned.
    """
    width, count, sign = len(low), sure + maybe, -1.0 if turned else 1.0
    least, most, certain, ranked = room.tops[0], room.tops[1], room.tops[2], room.bottoms
    if turned:
        first, last = last, first
    for c in range(width):
        least[c], most[c], certain[c] = np.inf, -np.inf, -np.inf
    for k in range(count):
        i = room.places[k]
        for c in range(width):
            x, y = sign * first[i + c], sign * last[i + c]
            # What is not a number stays: `min` may return the other one.
            least[c], most[c] = x if x < least[c] or x != x else least[c], max(most[c], y)
            certain[c] = max(certain[c], x) if k < sure else certain[c]
    apart = lost < maybe and lost < MOST_TOPS
    if apart:
        # Of the entries that may go, the one that is largest without the `lost` largest.
        for j in range(lost + 1):
            for c in range(width):
                ranked[j, c] = -np.inf
        for k in range(sure, count):
            insert(ranked, lost + 1, width, first, room.places[k], sign, room.carried)
    for c in range(width):
        x, y, empty = certain[c], most[c], sign * low[c]
        if apart:
            x = max(x, ranked[lost, c])
        elif lost < maybe and x < y:
            for k in range(maybe):
                room.column[k] = -sign * first[room.places[sure + k] + c]
            x = max(x, -rank(room.column, maybe, lost + 1))
        finite = np.isfinite(least[c]) and np.isfinite(y)
        if sure == 0 and lost == maybe:
            # All entries may be gone.
            x, y = min(least[c], empty), max(y, empty)
        x, y = known(x, y) if finite or count == 0 else (-np.inf, np.inf)
        low[c], high[c] = (-y, -x) if turned else (x, y)


@kernel
def _sorted_extreme(p: Any, room: Any, level: int, budget: int, number: int, is_first: bool) -> bool:
    """A maximum or minimum of fixed rows, whose entries are sorted: only the first few of each column are looked at."""
    flat = p.flat
    step = p.step_of[number]
    value = flat.out[step]
    empty, o = flat.parameters[step, 0], p.at[number]
    count, lost = list_status(p, room, level, budget, number)
    low, high = room.low[level, o:], room.high[level, o:]
    if is_first:
        for c in range(flat.width[value]):
            low[c] = high[c] = empty
    at, differs = p.sorted_at[number], False
    columns = p.sorted[at]
    for v in range(columns):
        c = p.sorted[at + 1 + v]
        first, last, left, found = np.nan, np.nan, lost, False
        for k in range(count):
            entry = p.sorted[at + 1 + columns + k * columns + v]
            if room.entries[entry] == MADE:
                continue
            x = p.base[room.places[entry] + c]
            last = x
            if not found:
                found, first = True, x
            if room.entries[entry] == KEPT or left == 0:
                left = -1
                break
            left -= 1
        if not found:
            first = last = empty
        elif left >= 0:
            # All entries may be gone.
            low_end, high_end = min(first, last), max(first, last)
            first, last = min(low_end, empty), max(high_end, empty)
        x, y = min(first, last), max(first, last)
        differs |= low[c] != x or high[c] != y
        low[c], high[c] = x, y
    return differs
