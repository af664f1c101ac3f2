"""How much each deletion can lower a margin at most, beside any others: one walk back through the program.

The proof is at the head of the package. A *loss* is written as Σ g Δ + a |Δ|, where Δ is by how much the numbers of a
row change. The walk begins at the target's row, and turns a loss of a row into losses of the rows that it reads. Where
a reduction reads rows of other nodes, each of them begins a *path* of its own, on which the edges that lead there are
there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from butfor.oracle.program.bounding.plain.entries import FREE, KEPT, MADE, MOST_TOPS
from butfor.oracle.program.kernels import flat as tables
from butfor.oracle.program.kernels.flat import (
    AMAX,
    AMIN,
    CONCAT,
    FOLD,
    GATHER,
    LINEAR,
    MAP,
    MEAN,
    PICK,
    REDUCE,
    SUM,
    called,
    kernel,
)
from butfor.oracle.program.kernels.functions import DIV, LEAKY_RELU, MUL, NEG, RELU, SUB
from butfor.oracle.program.kernels.vectors import add_multiples, rows_differ

__all__ = ["LOOKED", "MOST_PATHS", "MOST_PENDING", "MOST_SHARED", "NUM_NUMBERS", "TIME", "Losses", "find_losses"]

# Room for so many paths, so many losses that several paths begin with, and so many rows of one path. A walk that needs
# more is given up.
MOST_PATHS, MOST_SHARED, MOST_PENDING = 16_384, 2_048, 64

# What `Losses.numbers` holds: how many paths, shared losses and pending rows there are; whether the walk was given up;
# the path that is followed; how many numbers were looked at; and how often intervals were looked at.
PATHS, SHARED, PENDING, GIVEN_UP, PATH, LOOKED, TIME = range(7)
NUM_NUMBERS = 7


class Losses(NamedTuple):
    """Room for the walk.

    Attributes:
        turned, turned_sizes: all matrices, and their absolute values, with rows and columns exchanged.
        row, edit, parent: of each path, the row that it begins with, the edit that would end it (-1 for none), and the
            path that it came from.
        uncertain: whether an edit may end it.
        loss: the shared loss that it begins with.
        shared_g, shared_a: shared losses.
        pending, pending_g, pending_a: rows of a path, and their losses; -1 for a row that is done.
        entry_edit, entry_row: of each entry of a reduction the edit and the row that it brings; -1 for none.
        entry_g, entry_a: a loss for each entry.
        entry_loss: what its deletion costs.
        has_loss: whether it has a loss.
        ranked, values: room for the largest entries of a column.
        column: room for a number of each entry.
        into_g, into_a: room for one loss.
        factors, columns: the numbers of a row that are not 0, and where they are.
        sloped: for each row, when the slopes of its numbers were found.
        now, middle, half, up: these slopes.
        looked: for each row, twice the time when it was found out whether it can change, and 1 more if it can.
        numbers: see above.
    """

    turned: Any
    turned_sizes: Any
    row: Any
    edit: Any
    parent: Any
    uncertain: Any
    loss: Any
    shared_g: Any
    shared_a: Any
    pending: Any
    pending_g: Any
    pending_a: Any
    entry_edit: Any
    entry_row: Any
    entry_g: Any
    entry_a: Any
    entry_loss: Any
    has_loss: Any
    ranked: Any
    values: Any
    column: Any
    into_g: Any
    into_a: Any
    factors: Any
    columns: Any
    sloped: Any
    now: Any
    middle: Any
    half: Any
    up: Any
    looked: Any
    numbers: Any


@called
def find_losses(p: Any, room: Any, q: Any, level: int, left: int, difference: int, losses: Any) -> bool:
    """Find what each edit takes off a difference of scores at most, if at most ``left`` are made; False if unknown.

    The intervals of level 0 and of ``level`` must be up to date, and as they were when `TIME` was last increased.
    """
    numbers = q.numbers
    for e in range(len(losses)):
        losses[e] = 0.0
    numbers[PATHS], numbers[SHARED], numbers[GIVEN_UP] = 1, 1, 0
    q.row[0], q.edit[0], q.parent[0], q.uncertain[0], q.loss[0] = p.out, -1, -1, False, 0
    width = _width(p, p.out)
    for c in range(width):
        q.shared_g[0, c] = q.shared_a[0, c] = 0.0
    q.shared_g[0, difference] = -1.0
    path = 0
    while path < numbers[PATHS] and not numbers[GIVEN_UP]:
        numbers[PATH] = path
        _follow_path(p, room, q, level, left, losses)
        path += 1
    return not numbers[GIVEN_UP]


@kernel
def _width(p: Any, number: int) -> int:
    return p.flat.width[p.flat.out[p.step_of[number]]]


@kernel
def _number(p: Any, value: int, row: int) -> int:
    """The number of a row of a value; -1 where no edit changes it."""
    first = p.flat.first[value]
    return -1 if first < 0 else first + (row if p.flat.stride[value] > 0 else 0)


@kernel
def _follow_path(p: Any, room: Any, q: Any, level: int, left: int, losses: Any) -> None:
    """Turn the loss that a path begins with into losses of all rows of it, the last ones first."""
    numbers, path = q.numbers, q.numbers[PATH]
    numbers[PENDING] = 1
    number, shared = q.row[path], q.loss[path]
    q.pending[0] = number
    for c in range(_width(p, number)):
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
            source = _number(p, which, row)
            if source >= 0:
                at = _pending(p, q, source)
                x = flat.table[flat.tables[step, tables.COLUMN] + c]
                q.pending_g[at, x] += g[c]
                q.pending_a[at, x] += a[c]
    elif kind == FOLD:
        inner = flat.width[flat.inputs[step, 0]]
        source = _number(p, flat.inputs[step, 0], row)
        share = width / inner if flat.code[step] == 1 else 1.0
        at = _pending(p, q, source)
        for r in range(inner):
            c = flat.table[flat.tables[step, tables.GROUPS] + r]
            q.pending_g[at, r] += share * g[c]
            q.pending_a[at, r] += share * a[c]
    elif kind in (GATHER, CONCAT):
        if kind == GATHER:
            source = _number(p, flat.inputs[step, 0], flat.table[flat.tables[step, tables.SOURCE] + row])
        else:
            begins, part = flat.tables[step, tables.BEGINS], 0
            while row >= flat.table[begins + part + 1]:
                part += 1
            source = _number(p, flat.table[flat.tables[step, tables.INPUTS] + part], row - flat.table[begins + part])
        if source >= 0:
            at = _pending(p, q, source)
            for c in range(width):
                q.pending_g[at, c] += g[c]
                q.pending_a[at, c] += a[c]
    elif flat.code[step] == SUM:
        _through_sum(p, room, q, level, losses, number, step, width, g, a)
    elif flat.code[step] == MEAN:
        _through_mean(p, room, q, level, left, losses, number, step, width, g, a)
    else:
        _through_extreme(p, room, q, level, left, losses, number, step, width, g, a)


@kernel
def _pending(p: Any, q: Any, number: int) -> int:
    """Where the loss of a row is gathered."""
    count = q.numbers[PENDING]
    for k in range(count):
        if q.pending[k] == number:
            return k
    if count == MOST_PENDING:
        q.numbers[GIVEN_UP] = 1
        return 0
    q.pending[count] = number
    q.numbers[PENDING] += 1
    for c in range(_width(p, number)):
        q.pending_g[count, c] = q.pending_a[count, c] = 0.0
    return count


# Within a row.


@kernel
def _through_map(p: Any, room: Any, q: Any, level: int, step: int, row: int, width: int, g: Any, a: Any) -> None:
    flat = p.flat
    code = flat.code[step]
    for i in range(flat.arity[step]):
        source = _number(p, flat.inputs[step, i], row)
        if source < 0:
            continue
        at, own = _pending(p, q, source), flat.columns[step, i]
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
    place, source = p.at[number], p.at[_number(p, flat.inputs[step, 0], row)]
    own, leak = flat.columns[step, 0], flat.parameters[step, 0] if flat.code[step] == LEAKY_RELU else 0.0
    for c in range(width):
        i = source + (c if own < 0 else flat.table[own + c])
        x, low, high = room.low[0, i], room.low[level, i], room.high[level, i]
        slope = 1.0 if x > 0.0 else leak
        y, up, down = slope * x, slope, slope
        if not (np.isfinite(low) and np.isfinite(high)):
            # Then the walk is given up where this leads to an edit.
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
    source = _number(p, value, row)
    if p.sorted_at[source] >= 0:
        # A maximum of fixed rows: most of its columns cannot change.
        _through_sorted(p, room, q, level, left, losses, source, matrix, width, g, a)
        return
    at = _pending(p, q, source)
    _times(q, matrix, flat.width[value], width, g, a, q.pending_g[at], q.pending_a[at])


@kernel
def _times(q: Any, matrix: int, inner: int, width: int, g: Any, a: Any, into_g: Any, into_a: Any) -> None:
    """Add the loss of the input of a matrix product."""
    _add_product(q, q.turned, matrix, inner, width, g, into_g)
    _add_product(q, q.turned_sizes, matrix, inner, width, a, into_a)


@kernel
def _add_product(q: Any, turned: Any, matrix: int, inner: int, width: int, numbers: Any, into: Any) -> None:
    factors, columns, count = q.factors, q.columns, 0
    for c in range(width):
        factors[count], columns[count] = numbers[c], c
        count += numbers[c] != 0.0
    add_multiples(into, 0, into, 0, turned, matrix, factors, columns, count, inner)


# Reductions.


@kernel
def _lies_on_path(q: Any, edit: int) -> bool:
    """Whether the path that is followed ends where an edit is made."""
    path = q.numbers[PATH]
    while path > 0:
        if q.edit[path] == edit:
            return True
        path = q.parent[path]
    return False


@kernel
def _list(p: Any, room: Any, q: Any, level: int, number: int, step: int) -> tuple[int, int]:
    """List the entries of a row that are there: status, edit, row, and where its numbers begin. How many, and may go.

    On this path, edits that would end it are not made.
    """
    flat = p.flat
    value, row = flat.inputs[step, 0], number - flat.first[flat.out[step]]
    arriving = flat.table[flat.tables[step, tables.ARRIVING] + row]
    count, free = 0, 0
    for k in range(flat.table[flat.tables[step, tables.ARRIVING] + row + 1] - arriving):
        entry = flat.table[flat.tables[step, tables.ARRIVAL] + arriving + k]
        column = flat.table[flat.tables[step, tables.EDGE] + entry]
        edit = p.edit_of[column]
        status = KEPT if edit < 0 else room.status[level, edit]
        if status == MADE or (edit < 0 and not p.present[column]):
            continue
        if status == FREE and _lies_on_path(q, edit):
            status = KEPT
        other = flat.table[flat.tables[step, tables.SOURCE] + entry]
        room.entries[count] = status
        q.entry_edit[count] = edit if status == FREE else -1
        source = _number(p, value, other)
        q.entry_row[count] = source
        room.places[count] = flat.start[value] + other * flat.stride[value] if source < 0 else p.at[source]
        free += status == FREE
        count += 1
    return count, free


@kernel
def _can_change(p: Any, room: Any, q: Any, level: int, number: int) -> bool:
    """Whether edits can change a row."""
    known, time = q.looked[number], q.numbers[TIME]
    if known >> 1 == time:
        return (known & 1) == 1
    at = p.at[number]
    differs = rows_differ(room.low[level], at, room.high[level], at, _width(p, number))
    q.looked[number] = 2 * time + differs
    return differs


@kernel
def _begin_path(q: Any, number: int, entry: int, shared: int) -> None:
    """Put a path that begins with an entry of the reduction that the present one has come to."""
    numbers = q.numbers
    path = numbers[PATHS]
    if path == len(q.row):
        numbers[GIVEN_UP] = 1
        return
    numbers[PATHS] += 1
    q.row[path], q.edit[path], q.parent[path], q.loss[path] = number, q.entry_edit[entry], numbers[PATH], shared
    q.uncertain[path] = q.uncertain[numbers[PATH]] or q.entry_edit[entry] >= 0


@kernel
def _share_loss(p: Any, q: Any, value: int, width: int, g: Any, a: Any) -> tuple[int, bool]:
    """Keep a loss that all entries of a reduction have; where these are products with one matrix, that of its input.

    Returns its number, and whether it is that of the input.
    """
    flat, numbers = p.flat, q.numbers
    shared = numbers[SHARED]
    if shared == len(q.shared_g):
        numbers[GIVEN_UP] = 1
        return 0, False
    numbers[SHARED] += 1
    into_g, into_a = q.shared_g[shared], q.shared_a[shared]
    step = p.step_of[flat.first[value]]
    before = flat.inputs[step, 0]
    is_product = flat.kind[step] == LINEAR and flat.stride[value] > 0 and flat.stride[before] > 0
    if is_product and not _is_extreme(p, before):
        inner = flat.width[before]
        for r in range(inner):
            into_g[r] = into_a[r] = 0.0
        _times(q, flat.tables[step, tables.MATRIX], inner, width, g, a, into_g, into_a)
        return shared, True
    for c in range(width):
        into_g[c], into_a[c] = g[c], a[c]
    return shared, False


@kernel
def _is_extreme(p: Any, value: int) -> bool:
    flat = p.flat
    step = p.step_of[flat.first[value]]
    return flat.kind[step] == REDUCE and AMAX <= flat.code[step] <= AMIN


@kernel
def _add(q: Any, losses: Any, edit: int, loss: float, is_certain: bool) -> None:
    """Add what an edit takes off. What it would bring counts only where nothing else can end the path."""
    if not np.isfinite(loss):
        q.numbers[GIVEN_UP] = 1
    elif loss > 0.0 or is_certain:
        losses[edit] += loss


@kernel
def _begin_paths(p: Any, room: Any, q: Any, level: int, step: int, count: int, width: int, g: Any, a: Any) -> None:
    """Begin a path with each entry that can change, all with the same loss."""
    value = p.flat.inputs[step, 0]
    if p.flat.first[value] < 0:
        return
    shared, of_input = -1, False
    for k in range(count):
        number = q.entry_row[k]
        if not _can_change(p, room, q, level, number):
            continue
        if shared < 0:
            shared, of_input = _share_loss(p, q, value, width, g, a)
        if of_input:
            before = p.flat.inputs[p.step_of[number], 0]
            number = p.flat.first[before] + number - p.flat.first[value]
        _begin_path(q, number, k, shared)


@kernel
def _through_sum(
    p: Any, room: Any, q: Any, level: int, losses: Any, number: int, step: int, width: int, g: Any, a: Any
) -> None:
    count, free = _list(p, room, q, level, number, step)
    fixed = p.flat.first[p.flat.inputs[step, 0]] < 0
    numbers = p.base if fixed else room.low[0]
    is_certain = not q.uncertain[q.numbers[PATH]]
    q.numbers[LOOKED] += free * width
    for k in range(count):
        if room.entries[k] == FREE:
            i, loss = room.places[k], 0.0
            for c in range(width):
                x = numbers[i + c]
                loss += a[c] * abs(x) - g[c] * x
            _add(q, losses, q.entry_edit[k], loss, is_certain)
    _begin_paths(p, room, q, level, step, count, width, g, a)


@kernel
def _through_mean(
    p: Any, room: Any, q: Any, level: int, left: int, losses: Any, number: int, step: int, width: int, g: Any, a: Any
) -> None:
    count, free = _list(p, room, q, level, number, step)
    if count == 0:
        return
    numbers = p.base if p.flat.first[p.flat.inputs[step, 0]] < 0 else room.low[0]
    lost, mean, at = min(free, left * p.at_once[number]), room.low[0], p.at[number]
    share, all_gone = 1.0 / (count - min(lost, count - 1)), 0.0
    q.numbers[LOOKED] += free * width
    if lost == count:
        for c in range(width):
            x = mean[at + c]
            all_gone += a[c] * abs(x) - g[c] * x
        all_gone = max(all_gone, 0.0) / count
    for k in range(count):
        if room.entries[k] == FREE:
            i, loss = room.places[k], 0.0
            for c in range(width):
                x = mean[at + c] - numbers[i + c]
                loss += a[c] * abs(x) + g[c] * x
            _add(q, losses, q.entry_edit[k], loss if loss != loss else max(share * loss, all_gone), False)
    for c in range(width):
        g[c] *= share
        a[c] *= share
    before = q.numbers[PATHS]
    _begin_paths(p, room, q, level, step, count, width, g, a)
    for path in range(before, q.numbers[PATHS]):
        # By which factor its entries count is not known, so nothing is known of what edits bring.
        q.uncertain[path] = True


@kernel
def _rank(q: Any, count: int, kept: int) -> int:
    """Put the ``kept`` largest of ``column``, of all entries but those that are -inf, into ``ranked``; how many."""
    found = 0
    for k in range(count):
        x = q.column[k]
        if x == -np.inf or (found == kept and not x > q.values[found - 1]):
            continue
        n = found if found < kept else found - 1
        while n > 0 and q.values[n - 1] < x:
            q.values[n], q.ranked[n] = q.values[n - 1], q.ranked[n - 1]
            n -= 1
        q.values[n], q.ranked[n] = x, k
        found = min(found + 1, kept)
    return found


@kernel
def _share_fall(room: Any, q: Any, found: int, lost: int, floor: float, weight: float) -> None:
    """Divide the fall of a maximum among those of its largest entries that may go; ``floor`` is the least it can be."""
    last = 0
    while last < found and last < lost and room.entries[q.ranked[last]] == FREE and q.values[last] > floor:
        last += 1
    total = 0.0
    for n in range(last - 1, -1, -1):
        following = max(q.values[n + 1], floor) if n + 1 < found else floor
        total += max(q.values[n] - following, 0.0) / (n + 1)
        q.entry_loss[q.ranked[n]] += weight * total


@kernel
def _through_extreme(
    p: Any, room: Any, q: Any, level: int, left: int, losses: Any, number: int, step: int, width: int, g: Any, a: Any
) -> None:
    """A maximum falls with its largest entry, and rises with any; a minimum is a maximum with all signs turned."""
    flat = p.flat
    count, free = _list(p, room, q, level, number, step)
    if count == 0:
        return
    fixed = flat.first[flat.inputs[step, 0]] < 0
    lost, at = min(free, left * p.at_once[number]), p.at[number]
    sign = -1.0 if flat.code[step] == AMIN else 1.0
    now = p.base if fixed else room.low[0]
    low, high = (p.base, p.base) if fixed else (room.low[level], room.high[level])
    if sign < 0.0:
        low, high = high, low
    empty = sign * flat.parameters[step, 0]
    q.numbers[LOOKED] += count * width
    for k in range(count):
        q.entry_loss[k], q.has_loss[k] = 0.0, False
    for c in range(width):
        if g[c] == 0.0 and a[c] == 0.0:
            continue
        best, top = 0, sign * now[room.places[0] + c]
        for k in range(1, count):
            x = sign * now[room.places[k] + c]
            if x > top or (x == top and room.entries[best] == FREE and room.entries[k] != FREE):
                best, top = k, x
        if not np.isfinite(top):
            q.numbers[GIVEN_UP] = 1
            return
        slope, size = sign * g[c], a[c]
        fall, rise = size + max(-slope, 0.0), size + max(slope, 0.0)
        if fall > 0.0 and room.entries[best] == FREE:
            for k in range(count):
                q.column[k] = top if k == best else min(sign * low[room.places[k] + c], top)
            found = _rank(q, count, min(lost, MOST_TOPS) + 1)
            floor = room.low[level, at + c] if sign > 0.0 else -room.high[level, at + c]
            _share_fall(room, q, found, lost, floor, fall)
        if rise > 0.0 and lost == count and empty > top:
            for k in range(count):
                q.entry_loss[k] += rise * (empty - top) / count
        if fixed:
            continue
        others = -np.inf
        for k in range(count):
            if k != best:
                others = max(others, sign * high[room.places[k] + c])
        dominates = others <= sign * low[room.places[best] + c]
        _put(q, best, width, c, g[c] if slope < 0.0 or dominates else 0.5 * g[c], size)
        if dominates:
            continue
        if slope > 0.0:
            q.entry_a[best, c] += 0.5 * slope
        if others > top:
            for k in range(count):
                x, most = sign * now[room.places[k] + c], sign * high[room.places[k] + c]
                if k != best and most > top:
                    weight = 0.5 * rise * (most - top) / (most - x)
                    _put(q, k, width, c, sign * weight, weight)
    for k in range(count):
        if room.entries[k] == FREE:
            _add(q, losses, q.entry_edit[k], q.entry_loss[k], False)
        if q.has_loss[k] and _can_change(p, room, q, level, q.entry_row[k]):
            shared = q.numbers[SHARED]
            if shared == len(q.shared_g):
                q.numbers[GIVEN_UP] = 1
                return
            q.numbers[SHARED] += 1
            for c in range(width):
                q.shared_g[shared, c], q.shared_a[shared, c] = q.entry_g[k, c], q.entry_a[k, c]
            _begin_path(q, q.entry_row[k], k, shared)


@kernel
def _put(q: Any, k: int, width: int, column: int, g: float, a: float) -> None:
    """Add to the loss of an entry."""
    if not q.has_loss[k]:
        q.has_loss[k] = True
        for c in range(width):
            q.entry_g[k, c] = q.entry_a[k, c] = 0.0
    q.entry_g[k, column] += g
    q.entry_a[k, column] += a


@kernel
def _through_sorted(
    p: Any, room: Any, q: Any, level: int, left: int, losses: Any, number: int, matrix: int, width: int, g: Any, a: Any
) -> None:
    """A matrix product with a maximum of fixed rows, whose entries are sorted."""
    flat = p.flat
    step = p.step_of[number]
    row = number - flat.first[flat.out[step]]
    arriving, value = flat.tables[step, tables.ARRIVING] + row, flat.inputs[step, 0]
    begin, free, there = flat.table[arriving], 0, 0
    count = flat.table[arriving + 1] - begin
    for k in range(count):
        entry = flat.table[flat.tables[step, tables.ARRIVAL] + begin + k]
        column = flat.table[flat.tables[step, tables.EDGE] + entry]
        edit = p.edit_of[column]
        status = KEPT if edit < 0 else room.status[level, edit]
        if edit < 0 and not p.present[column]:
            status = MADE
        if status == FREE and _lies_on_path(q, edit):
            status = KEPT
        room.entries[k], q.entry_edit[k], q.entry_loss[k] = status, edit, 0.0
        room.places[k] = flat.start[value] + flat.table[flat.tables[step, tables.SOURCE] + entry] * flat.stride[value]
        free += status == FREE
        there += status != MADE
    if free == 0:
        return
    lost = min(free, left * p.at_once[number])
    sign = -1.0 if flat.code[step] == AMIN else 1.0
    empty, start = sign * flat.parameters[step, 0], p.sorted_at[number]
    columns, inner = p.sorted[start], flat.width[flat.out[step]]
    q.numbers[LOOKED] += 4 * columns + inner
    for c in range(inner):
        q.into_g[c] = q.into_a[c] = 0.0
    _times(q, matrix, inner, width, g, a, q.into_g, q.into_a)
    for v in range(columns):
        c, first = p.sorted[start + 1 + v], 0
        while first < count and room.entries[p.sorted[start + 1 + columns + first * columns + v]] == MADE:
            first += 1
        if first == count or room.entries[p.sorted[start + 1 + columns + first * columns + v]] != FREE:
            continue
        slope, size = sign * q.into_g[c], q.into_a[c]
        fall, rise = size + max(-slope, 0.0), size + max(slope, 0.0)
        if fall > 0.0 or empty > sign * p.base[room.places[p.sorted[start + 1 + columns + first * columns + v]] + c]:
            found = 0
            for n in range(first, count):
                k = p.sorted[start + 1 + columns + n * columns + v]
                if room.entries[k] != MADE:
                    q.ranked[found], q.values[found] = k, sign * p.base[room.places[k] + c]
                    found += 1
                    if room.entries[k] != FREE or found > min(lost, MOST_TOPS):
                        break
            at = p.at[number] + c
            floor = room.low[level, at] if sign > 0.0 else -room.high[level, at]
            _share_fall(room, q, found, lost, floor, fall)
            if lost == there and empty > q.values[0]:
                for k in range(count):
                    q.entry_loss[k] += rise * (empty - q.values[0]) / there
    for k in range(count):
        if room.entries[k] == FREE:
            _add(q, losses, q.entry_edit[k], q.entry_loss[k], False)
