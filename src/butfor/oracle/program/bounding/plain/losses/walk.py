"""One walk back through a program, from the target to all edits that it hears of."""

from __future__ import annotations

from typing import Any

import numpy as np

from butfor.oracle.program.bounding.plain.losses.averages import through_mean, through_sum
from butfor.oracle.program.bounding.plain.losses.entries import add_transposed, is_extreme, number_of, pending, width_of
from butfor.oracle.program.bounding.plain.losses.extremes import through_extreme
from butfor.oracle.program.bounding.plain.losses.room import GIVEN_UP, LOOKED, PARTS, PATH, PATHS, PENDING, SHARED, TIME
from butfor.oracle.program.bounding.plain.losses.sorted_extremes import through_sorted
from butfor.oracle.program.kernels import flat as tables
from butfor.oracle.program.kernels.flat import CONCAT, FOLD, GATHER, LINEAR, MAP, MEAN, PICK, SUM, called, kernel
from butfor.oracle.program.kernels.functions import DIV, LEAKY_RELU, MUL, NEG, RELU, SUB

__all__ = ["find_losses", "most_of_all"]


@called
def find_losses(p: Any, room: Any, q: Any, level: int, left: int, difference: int, losses: Any) -> bool:
    """Find what each edit takes off a difference of scores at most, if at most ``left`` are made; False if unknown.

    The intervals of level 0 and of ``level`` must be up to date, and as they were when `TIME` was last increased.
    """
    numbers = q.numbers
    for e in range(len(losses)):
        losses[e] = 0.0
    numbers[PATHS], numbers[SHARED], numbers[PARTS], numbers[GIVEN_UP] = 1, 1, 0, 0
    q.row[0], q.edit[0], q.parent[0], q.uncertain[0], q.loss[0], q.end[0] = p.out, -1, -1, False, 0, -1
    width = width_of(p, p.out)
    for c in range(width):
        q.shared_g[0, c] = q.shared_a[0, c] = 0.0
    q.shared_g[0, difference] = -1.0
    path = 0
    while path < numbers[PATHS] and not numbers[GIVEN_UP]:
        numbers[PATH] = path
        _follow_path(p, room, q, level, left, losses)
        path += 1
    return not numbers[GIVEN_UP]


@called
def most_of_all(q: Any, losses: Any, price: float) -> float:
    """How much all edits together can take off at most, where each costs a price.

    On each path either the edit that ends it is made, or others are.
    """
    numbers, most = q.numbers, q.most
    for path in range(numbers[PATHS]):
        most[path] = 0.0
    for part in range(numbers[PARTS]):
        loss = losses[q.part_edit[part]]
        # An edit that takes off less than its price, all in all, is not worth it.
        q.part_loss[part] *= 1.0 - price / loss if loss > price else 0.0
        most[q.part_path[part]] += q.part_loss[part]
    for path in range(numbers[PATHS] - 1, 0, -1):
        end, parent = q.end[path], q.parent[path]
        most[parent] += most[path] if end < 0 else max(most[path] - q.part_loss[end], 0.0)
    return most[0]


@kernel
def _follow_path(p: Any, room: Any, q: Any, level: int, left: int, losses: Any) -> None:
    """Turn the loss that a path begins with into losses of all rows of it, the last ones first."""
    numbers, path = q.numbers, q.numbers[PATH]
    numbers[PENDING] = 1
    number, shared = q.row[path], q.loss[path]
    q.pending[0] = number
    for c in range(width_of(p, number)):
        q.pending_g[0, c], q.pending_a[0, c] = q.shared_g[shared, c], q.shared_a[shared, c]
    while not numbers[GIVEN_UP]:
        at = 0
        for k in range(1, numbers[PENDING]):
            if q.pending[k] > q.pending[at]:
                at = k
        number = q.pending[at]
        if number < 0:
            break
        q.pending[at] = -1
        _pass_on(p, room, q, level, left, losses, number, q.pending_g[at], q.pending_a[at])


@kernel
def _pass_on(p: Any, room: Any, q: Any, level: int, left: int, losses: Any, number: int, g: Any, a: Any) -> None:
    """Turn the loss of one row into losses of what it reads."""
    flat = p.flat
    step = p.step_of[number]
    value = flat.out[step]
    row, width, kind = number - flat.first[value], flat.width[value], flat.kind[step]
    q.numbers[LOOKED] += width
    if kind == MAP:
        _through_map(p, room, q, level, step, row, width, g, a)
    elif kind == LINEAR:
        _through_matrix(p, room, q, level, left, losses, step, row, width, g, a)
    elif kind == PICK:
        for c in range(width):
            which = flat.table[flat.tables[step, tables.INPUTS] + flat.table[flat.tables[step, tables.WHICH] + c]]
            source = number_of(p, which, row)
            if source >= 0:
                at = pending(p, q, source)
                x = flat.table[flat.tables[step, tables.COLUMN] + c]
                q.pending_g[at, x] += g[c]
                q.pending_a[at, x] += a[c]
    elif kind == FOLD:
        inner = flat.width[flat.inputs[step, 0]]
        source = number_of(p, flat.inputs[step, 0], row)
        share = width / inner if flat.code[step] == 1 else 1.0
        at = pending(p, q, source)
        for r in range(inner):
            c = flat.table[flat.tables[step, tables.GROUPS] + r]
            q.pending_g[at, r] += share * g[c]
            q.pending_a[at, r] += share * a[c]
    elif kind in (GATHER, CONCAT):
        if kind == GATHER:
            source = number_of(p, flat.inputs[step, 0], flat.table[flat.tables[step, tables.SOURCE] + row])
        else:
            begins, part = flat.tables[step, tables.BEGINS], 0
            while row >= flat.table[begins + part + 1]:
                part += 1
            source = number_of(p, flat.table[flat.tables[step, tables.INPUTS] + part], row - flat.table[begins + part])
        if source >= 0:
            at = pending(p, q, source)
            for c in range(width):
                q.pending_g[at, c] += g[c]
                q.pending_a[at, c] += a[c]
    elif flat.code[step] == SUM:
        through_sum(p, room, q, level, losses, number, step, width, g, a)
    elif flat.code[step] == MEAN:
        through_mean(p, room, q, level, left, losses, number, step, width, g, a)
    else:
        through_extreme(p, room, q, level, left, losses, number, step, width, g, a)


# Within a row.


@kernel
def _through_map(p: Any, room: Any, q: Any, level: int, step: int, row: int, width: int, g: Any, a: Any) -> None:
    flat = p.flat
    code = flat.code[step]
    for i in range(flat.arity[step]):
        source = number_of(p, flat.inputs[step, i], row)
        if source < 0:
            continue
        at, own = pending(p, q, source), flat.columns[step, i]
        into_g, into_a = q.pending_g[at], q.pending_a[at]
        if code in (RELU, LEAKY_RELU):
            place = p.at[flat.first[flat.out[step]] + row]
            _find_slopes(p, room, q, level, step, row, width)
            if own < 0:
                for c in range(width):
                    fall, rise = min(g[c], 0.0), max(g[c], 0.0)
                    into_g[c] += fall * q.now[place + c] + rise * q.middle[place + c]
                    into_a[c] += a[c] * q.up[place + c] + rise * q.half[place + c]
            else:
                for c in range(width):
                    x, fall, rise = flat.table[own + c], min(g[c], 0.0), max(g[c], 0.0)
                    into_g[x] += fall * q.now[place + c] + rise * q.middle[place + c]
                    into_a[x] += a[c] * q.up[place + c] + rise * q.half[place + c]
            continue
        other = flat.inputs[step, 1 - i] if code in (MUL, DIV) else 0
        theirs, begin = flat.columns[step, 1 - i] if code in (MUL, DIV) else -1, 0
        if code in (MUL, DIV):
            begin = flat.start[other] + row * flat.stride[other]
        for c in range(width):
            x, factor = c if own < 0 else flat.table[own + c], 1.0
            if code == NEG or (code == SUB and i == 1):
                factor = -1.0
            elif code in (MUL, DIV):
                factor = p.base[begin + (c if theirs < 0 else flat.table[theirs + c])]
                factor = 1.0 / factor if code == DIV else factor
            into_g[x] += factor * g[c]
            into_a[x] += abs(factor) * a[c]


@kernel
def _find_slopes(p: Any, room: Any, q: Any, level: int, step: int, row: int, width: int) -> None:
    """Find the slopes of ReLU at each number of a row.

    ReLU is at least the line through the present value that has its slope, and at most the chords from there to both
    ends. This holds for any function of slope 1 above 0 and another one, from 0 to 1, below.
    """
    flat = p.flat
    number = flat.first[flat.out[step]] + row
    if q.sloped[number] == q.numbers[TIME]:
        return
    q.sloped[number] = q.numbers[TIME]
    place, source = p.at[number], p.at[number_of(p, flat.inputs[step, 0], row)]
    own, leak = flat.columns[step, 0], flat.parameters[step, 0] if flat.code[step] == LEAKY_RELU else 0.0
    for c in range(width):
        i = source + (c if own < 0 else flat.table[own + c])
        x, low, high = room.low[0, i], room.low[level, i], room.high[level, i]
        slope = 1.0 if x > 0.0 else leak
        y, up, down = slope * x, slope, slope
        if not (np.isfinite(low) and np.isfinite(high)):
            # Then the walk is given up where this leads to an edit, or to a maximum.
            slope = up = down = np.nan
        if high > x and x <= 0.0:
            up = max(((high if high > 0.0 else leak * high) - y) / (high - x), slope)
        if low < x and x > 0.0:
            down = min((y - (low if low > 0.0 else leak * low)) / (x - low), slope)
        q.now[place + c], q.up[place + c] = slope, up
        q.middle[place + c], q.half[place + c] = 0.5 * (up + down), 0.5 * (up - down)


@kernel
def _through_matrix(
    p: Any, room: Any, q: Any, level: int, left: int, losses: Any, step: int, row: int, width: int, g: Any, a: Any
) -> None:
    flat = p.flat
    value, matrix = flat.inputs[step, 0], flat.tables[step, tables.MATRIX]
    source = number_of(p, value, row)
    if p.sorted_at[source] >= 0:
        # A maximum of fixed rows: most of its columns cannot change.
        through_sorted(p, room, q, level, left, losses, step, row, width, g, a)
        return
    if is_extreme(p, value) and flat.first[flat.inputs[p.step_of[source], 0]] < 0:
        # Its entries are not sorted because they are not all finite.
        q.numbers[GIVEN_UP] = 1
        return
    at = pending(p, q, source)
    add_transposed(q, matrix, flat.width[value], width, g, a, q.pending_g[at], q.pending_a[at])
