"""One walk back through a program, from the target to all edits that it hears of."""

from __future__ import annotations

from typing import Any

import numpy as np

from butfor.oracle.program.bounding.plain.entries import FREE, ends
from butfor.oracle.program.bounding.plain.losses.averages import through_mean, through_sum
from butfor.oracle.program.bounding.plain.losses.entries import (
    add_transposed,
    is_extreme,
    number_of,
    pending,
    settle,
    width_of,
)
from butfor.oracle.program.bounding.plain.losses.extremes import through_extreme
from butfor.oracle.program.bounding.plain.losses.functions import find_slopes, slope_range
from butfor.oracle.program.bounding.plain.losses.room import (
    FIRST_PART,
    GIVEN_UP,
    LOOKED,
    PARTS,
    PATH,
    PATHS,
    PENDING,
    SHARED,
    TIME,
)
from butfor.oracle.program.bounding.plain.losses.sorted_extremes import through_sorted
from butfor.oracle.program.bounding.selection import smallest
from butfor.oracle.program.kernels import flat as tables
from butfor.oracle.program.kernels.flat import CONCAT, FOLD, GATHER, LINEAR, MAP, MEAN, PICK, SUM, called, kernel
from butfor.oracle.program.kernels.functions import ADD, LEAKY_RELU, POW, RELU, SUB, WHERE

__all__ = ["find_losses", "find_total", "largest_losses", "most_of_all"]

# Losses of numbers that may take off so many times the largest present number are not known: rounding, which is 1e-16
# of them, has to stay far below the room that is left for it.
MOST_APART = 1e8


@called
def find_losses(
    p: Any, room: Any, q: Any, level: int, left: int, number: int, column: int, sign: float, losses: Any
) -> bool:
    """Find what each edit takes off a number of a row at most, if at most ``left`` are made; False if unknown.

    It is a difference of scores, or another number, times a sign.

    The intervals of level 0 and of ``level`` must be up to date, and as they were when `TIME` was last increased.
    """
    numbers, at = q.numbers, p.at[number] + column
    for e in range(len(losses)):
        losses[e] = 0.0
    largest_number = max(abs(room.low[0, at]), max(abs(room.low[level, at]), abs(room.high[level, at])))
    numbers[PATHS], numbers[SHARED], numbers[PARTS], numbers[GIVEN_UP] = 1, 1, 0, 0
    q.row[0], q.edit[0], q.parent[0], q.uncertain[0], q.loss[0], q.end[0] = number, -1, -1, False, 0, -1
    width = width_of(p, number)
    for c in range(width):
        q.shared_g[0, c] = q.shared_a[0, c] = 0.0
    q.shared_g[0, column] = -sign
    path = 0
    while path < numbers[PATHS] and not numbers[GIVEN_UP]:
        numbers[PATH] = path
        _follow_path(p, room, q, level, left, losses, MOST_APART * largest_number)
        path += 1
    return not numbers[GIVEN_UP]


@called
def find_total(
    p: Any, room: Any, q: Any, b: Any, level: int, left: int, number: int, column: int, sign: float, losses: Any
) -> tuple[bool, float, float]:
    """Find all losses of a number: whether they are known, a price, and what all may take off beyond their prices."""
    if not find_losses(p, room, q, level, left, number, column, sign, losses):
        return False, 0.0, np.inf
    _, price = largest_losses(b, losses, left)
    return True, price, most_of_all(q, losses, price)


@kernel
def largest_losses(b: Any, losses: Any, left: int) -> tuple[float, float]:
    """The sum of the ``left`` largest losses of free edits but for the least, and that; 0 where there are fewer."""
    count = 0
    for k in range(len(b.order)):
        e = b.order[k]
        if b.status[e] == FREE and losses[e] > 0.0:
            b.column[count] = -losses[e]
            count += 1
    smallest(b.column, count, left)
    rest, last = 0.0, np.inf
    for k in range(min(left, count)):
        x = -b.column[k]
        # The least is never added: taken off again, it may be all that is left of much smaller ones.
        rest += max(x, last) if k > 0 else 0.0
        last = min(x, last)
    if count >= left:
        return rest, last
    return (rest + last if count > 0 else 0.0), 0.0


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
def _follow_path(p: Any, room: Any, q: Any, level: int, left: int, losses: Any, most: float) -> None:
    """Turn the loss that a path begins with into losses of all rows of it, the last ones first.

    The walk is given up where a number may take more than ``most`` off: what takes little would be lost in rounding.
    """
    numbers, path = q.numbers, q.numbers[PATH]
    numbers[PENDING], numbers[FIRST_PART] = 1, numbers[PARTS]
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
        if _takes_more(p, room, level, number, q.pending_g[at], q.pending_a[at], most):
            numbers[GIVEN_UP] = 1
            break
        _pass_on(p, room, q, level, left, losses, number, q.pending_g[at], q.pending_a[at])
    settle(q, losses)


@kernel
def _takes_more(p: Any, room: Any, level: int, number: int, g: Any, a: Any, most: float) -> bool:
    at, is_more = p.at[number], False
    for c in range(width_of(p, number)):
        size = max(abs(room.low[0, at + c]), max(abs(room.low[level, at + c]), abs(room.high[level, at + c])))
        # Where a number may be infinite, its slopes say whether that matters.
        is_more |= np.isfinite(size) and (abs(g[c]) + a[c]) * size > most
    return is_more


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
        _through_fold(p, room, q, level, step, row, width, g, a)
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
    code, arity = flat.code[step], flat.arity[step]
    is_linear, of_one = code in (ADD, SUB), arity == 1 or code == POW
    if not is_linear:
        _find_slopes(p, room, q, level, step, row, width, of_one)
    place = p.at[flat.first[flat.out[step]] + row]
    for c in range(0 if is_linear else width):
        if (g[c] != 0.0 or a[c] != 0.0) and not (np.isfinite(q.fall[place + c]) and np.isfinite(q.rise[place + c])):
            q.numbers[GIVEN_UP] = 1
            return
    # What is chosen among follows the condition.
    for i in range(1 if code == WHERE else 0, arity):
        source = number_of(p, flat.inputs[step, i], row)
        if source < 0:
            continue
        at, own = pending(p, q, source), flat.columns[step, i]
        into_g, into_a = q.pending_g[at], q.pending_a[at]
        if is_linear:
            sign = -1.0 if code == SUB and i == 1 else 1.0
            for c in range(width):
                x = c if own < 0 else flat.table[own + c]
                into_g[x] += sign * g[c]
                into_a[x] += a[c]
        elif of_one:
            _through_function(flat, q, place, own, width, g, a, into_g, into_a)
        else:
            is_last = i == arity - 1
            middle, half = (q.rise, q.rise_half) if is_last else (q.fall, q.fall_half)
            for c in range(width):
                x, m, r = c if own < 0 else flat.table[own + c], middle[place + c], half[place + c]
                if g[c] != 0.0 or a[c] != 0.0:
                    into_g[x] += m * g[c]
                    into_a[x] += r * abs(g[c]) + (abs(m) + r) * a[c]


@kernel
def _through_function(
    flat: Any, q: Any, place: int, own: int, width: int, g: Any, a: Any, into_g: Any, into_a: Any
) -> None:
    """The loss of a function of single numbers is a loss of these."""
    for c in range(width):
        x, falling, rising = c if own < 0 else flat.table[own + c], min(g[c], 0.0), max(g[c], 0.0)
        if falling == 0.0 and rising == 0.0 and a[c] == 0.0:
            continue
        fall, fall_half, rise, rise_half = (
            q.fall[place + c],
            q.fall_half[place + c],
            q.rise[place + c],
            q.rise_half[place + c],
        )
        into_g[x] += falling * fall + rising * rise
        into_a[x] += a[c] * max(abs(fall) + fall_half, abs(rise) + rise_half) + rising * rise_half - falling * fall_half


@kernel
def _through_fold(p: Any, room: Any, q: Any, level: int, step: int, row: int, width: int, g: Any, a: Any) -> None:
    flat = p.flat
    code, inner, groups = flat.code[step], flat.width[flat.inputs[step, 0]], flat.tables[step, tables.GROUPS]
    low, high = ends(p, room, level, flat.inputs[step, 0], row)
    at = pending(p, q, number_of(p, flat.inputs[step, 0], row))
    for r in range(inner):
        c = flat.table[groups + r]
        middle, half = width / inner if code == 1 else 1.0, 0.0
        if code > 1:
            # An extreme is that number if it lies beyond all others, and it is not if another one lies beyond it.
            is_it, may_be = True, True
            for k in range(inner):
                if k != r and flat.table[groups + k] == c:
                    is_it &= low[r] >= high[k] if code == 2 else high[r] <= low[k]
                    may_be &= high[r] > low[k] if code == 2 else low[r] < high[k]
            middle, half = (1.0, 0.0) if is_it else (0.5, 0.5) if may_be else (0.0, 0.0)
        q.pending_g[at, r] += middle * g[c]
        q.pending_a[at, r] += half * abs(g[c]) + (middle + half) * a[c]


@kernel
def _find_slopes(p: Any, room: Any, q: Any, level: int, step: int, row: int, width: int, of_one: bool) -> None:
    """Find the slopes of a function at each number of a row: of a fall and of a rise, or in its last two arguments.

    They are kept by their middle and half of what they differ by; they are 0 where the number is the same whatever is
    done, and not finite where they are unknown.
    """
    flat = p.flat
    number = flat.first[flat.out[step]] + row
    if q.sloped[number] == q.numbers[TIME]:
        return
    q.sloped[number] = q.numbers[TIME]
    place, code, arity = p.at[number], flat.code[step], flat.arity[step]
    first, second = flat.parameters[step, 0], flat.parameters[step, 1]
    i, j = (1, 2) if code == WHERE else (0, 1 if arity > 1 else 0)
    x_now, _ = ends(p, room, 0, flat.inputs[step, i], row)
    x_low, x_high = ends(p, room, level, flat.inputs[step, i], row)
    y_now, _ = ends(p, room, 0, flat.inputs[step, j], row)
    y_low, y_high = ends(p, room, level, flat.inputs[step, j], row)
    own, others, scale = flat.columns[step, i], flat.columns[step, j], -1
    if width > 1 and flat.width[flat.inputs[step, i]] > 1 and flat.width[flat.inputs[step, j]] == 1:
        scale = 1
    elif width > 1 and flat.width[flat.inputs[step, i]] == 1 and flat.width[flat.inputs[step, j]] > 1:
        scale = 0
    for c in range(width):
        k, m = c if own < 0 else flat.table[own + c], c if others < 0 else flat.table[others + c]
        at = place + c
        q.fall[at] = q.fall_half[at] = q.rise[at] = q.rise_half[at] = 0.0
        if room.low[level, at] == room.high[level, at]:
            continue
        x, low, high = x_now[k], x_low[k], x_high[k]
        if code in (RELU, LEAKY_RELU) and np.isfinite(low) and np.isfinite(high):
            leak = first if code == LEAKY_RELU else 0.0
            slope = 1.0 if x > 0.0 else leak
            y, up, down = slope * x, slope, slope
            if high > x and x <= 0.0:
                up = max(((high if high > 0.0 else leak * high) - y) / (high - x), slope)
            if low < x and x > 0.0:
                down = min((y - (low if low > 0.0 else leak * low)) / (x - low), slope)
            q.fall[at], q.rise[at], q.rise_half[at] = slope, 0.5 * (up + down), 0.5 * (up - down)
        elif of_one:
            power = y_now[m] if arity > 1 and y_low[m] == y_high[m] else np.nan if arity > 1 else 0.0
            least, most, fall, rise = find_slopes(code, x, low, high, first, second, power)
            middle, half = 0.5 * (least + most), 0.5 * (most - least)
            q.fall[at], q.fall_half[at] = (middle, half) if fall != fall else (fall, 0.0)
            q.rise[at], q.rise_half[at] = (middle, half) if rise != rise else (rise, 0.0)
        elif code == WHERE:
            c_low, c_high = ends(p, room, level, flat.inputs[step, 0], row)
            n = c if flat.columns[step, 0] < 0 else flat.table[flat.columns[step, 0] + c]
            if c_low[n] > 0.0 or c_high[n] < 0.0:
                q.fall[at] = 1.0
            elif c_low[n] == 0.0 and c_high[n] == 0.0:
                q.rise[at] = 1.0
            else:
                q.fall[at] = np.nan
        else:
            xs, ys = (x, low, high), (y_now[m], y_low[m], y_high[m])
            least, most = slope_range(code, 0, xs, ys, scale)
            q.fall[at], q.fall_half[at] = 0.5 * (least + most), 0.5 * (most - least)
            least, most = slope_range(code, 1, xs, ys, scale)
            q.rise[at], q.rise_half[at] = 0.5 * (least + most), 0.5 * (most - least)


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
