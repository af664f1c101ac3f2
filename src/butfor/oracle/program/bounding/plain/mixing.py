"""A matrix that mixes the columns of a maximum: all columns lose the same entries."""

from __future__ import annotations

from typing import Any

import numpy as np

from butfor.oracle.program.bounding.plain.entries import FREE, MADE, MOST_TOPS, insert, list_status
from butfor.oracle.program.kernels import flat as tables
from butfor.oracle.program.kernels.flat import AMIN, called, kernel

__all__ = ["mix"]


@called
def mix(p: Any, room: Any, level: int, budget: int, number: int, step: int, row: int, low: Any, high: Any) -> None:
    """Narrow the row of a matrix product, where the maximum or minimum is the row with this ``number``."""
    flat = p.flat
    count, lost = list_status(p, room, level, budget, number)
    if lost == 0 or lost > MOST_TOPS:
        return
    of, width = p.step_of[number], len(low)
    inner, sign = flat.width[flat.out[of]], -1.0 if flat.code[of] == AMIN else 1.0
    o, matrix = p.at[number], flat.tables[step, tables.MATRIX]
    least, most = room.least[:width], room.most[:width]
    added = flat.added[step]
    for c in range(width):
        least[c] = flat.parameters[step, 0] if added < 0 else p.base[flat.start[added] + row * flat.stride[added] + c]
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
                high[c] = min(high[c], most[c] + total)
            else:
                low[c] = max(low[c], least[c] - total)


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
