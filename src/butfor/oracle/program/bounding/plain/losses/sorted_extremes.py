"""Losses of matrix products with maxima and minima of fixed rows, whose entries are sorted."""

from __future__ import annotations

from typing import Any

from butfor.oracle.program.bounding.plain.entries import FREE, KEPT, MADE, MOST_TOPS
from butfor.oracle.program.bounding.plain.losses.entries import add_loss, lies_on_path, number_of
from butfor.oracle.program.bounding.plain.losses.extremes import share_fall
from butfor.oracle.program.bounding.plain.losses.room import LOOKED, TIME
from butfor.oracle.program.kernels import flat as tables
from butfor.oracle.program.kernels.flat import AMIN, kernel

__all__ = ["through_sorted"]


@kernel
def _list_sorted(p: Any, room: Any, q: Any, level: int, number: int, on_path: bool) -> tuple[int, int, int]:
    """List all entries of a row, also those that are gone: how many, how many are there, and how many may go."""
    flat = p.flat
    step = p.step_of[number]
    arriving = flat.tables[step, tables.ARRIVING] + number - flat.first[flat.out[step]]
    value, begin = flat.inputs[step, 0], flat.table[arriving]
    count, there, free = flat.table[arriving + 1] - begin, 0, 0
    for k in range(count):
        entry = flat.table[flat.tables[step, tables.ARRIVAL] + begin + k]
        column = flat.table[flat.tables[step, tables.EDGE] + entry]
        edit = p.edit_of[column]
        status = KEPT if edit < 0 else room.status[level, edit]
        if edit < 0 and not p.present[column]:
            status = MADE
        if on_path and status == FREE and lies_on_path(q, edit):
            status = KEPT
        room.entries[k], q.entry_edit[k], q.entry_part[k] = status, edit, -1
        room.places[k] = flat.start[value] + flat.table[flat.tables[step, tables.SOURCE] + entry] * flat.stride[value]
        free += status == FREE
        there += status != MADE
    return count, there, free


@kernel
def through_sorted(
    p: Any, room: Any, q: Any, level: int, left: int, losses: Any, step: int, row: int, width: int, g: Any, a: Any
) -> None:
    """What the deletion of each entry changes by itself, and what it adds where others are deleted too."""
    flat = p.flat
    product, matrix = flat.first[flat.out[step]] + row, flat.tables[step, tables.MATRIX]
    number = number_of(p, flat.inputs[step, 0], row)
    if q.sloped[product] != q.numbers[TIME]:
        q.sloped[product] = q.numbers[TIME]
        _find_changes(p, room, q, level, left, product, number, matrix, width)
    count, _, free = _list_sorted(p, room, q, level, number, True)
    q.numbers[LOOKED] += free * width
    if free == 0:
        return
    for k in range(count):
        q.entry_loss[k] = 0.0
        if room.entries[k] == FREE:
            i, loss = q.change_at[product] + k * width, 0.0
            for c in range(width):
                x = q.change[i + c]
                loss += g[c] * x + a[c] * abs(x)
            q.entry_loss[k] = loss
    sign, start, last = -1.0 if flat.code[p.step_of[number]] == AMIN else 1.0, 2 * p.sorted_at[number], -1
    fall = rise = 0.0
    for n in range(start, start + q.extras[number]):
        if room.entries[q.extra_entry[n]] != FREE:
            continue
        if q.extra_column[n] != last:
            last, slope, size = q.extra_column[n], 0.0, 0.0
            for c in range(width):
                y = flat.matrices[matrix + last * width + c]
                slope += sign * y * g[c]
                size += abs(y) * a[c]
            fall, rise = size + max(-slope, 0.0), size + max(slope, 0.0)
        more = q.extra[n]
        q.entry_loss[q.extra_entry[n]] += fall * more if more > 0.0 else -rise * more
    for k in range(count):
        if room.entries[k] == FREE:
            loss = q.entry_loss[k]
            # What it brings may be less where others are deleted too.
            add_loss(q, losses, k, loss if loss != loss else max(loss, 0.0))


@kernel
def _find_changes(
    p: Any, room: Any, q: Any, level: int, left: int, product: int, number: int, matrix: int, width: int
) -> None:
    """Find how the product changes where one entry is deleted, and how much farther a column can fall with others.

    A column that rises because nothing is left of it is listed as a fall below 0.
    """
    flat = p.flat
    count, there, free = _list_sorted(p, room, q, level, number, False)
    lost, start, extras = min(free, left * p.at_once[number]), p.sorted_at[number], 0
    step, columns, begin = p.step_of[number], p.sorted[start], q.change_at[product]
    sign = -1.0 if flat.code[step] == AMIN else 1.0
    empty, kept = sign * flat.parameters[step, 0], min(lost, MOST_TOPS) + 1
    q.numbers[LOOKED] += 4 * columns + count * width
    for i in range(begin, begin + count * width):
        q.change[i] = 0.0
    for v in range(columns):
        c, found = p.sorted[start + 1 + v], 0
        for n in range(count):
            k = p.sorted[start + 1 + columns + n * columns + v]
            if room.entries[k] != MADE:
                q.ranked[found], q.values[found] = k, sign * p.base[room.places[k] + c]
                found += 1
                if room.entries[q.ranked[0]] != FREE or (room.entries[k] != FREE or found == kept):
                    break
        if found == 0 or room.entries[q.ranked[0]] != FREE:
            continue
        first, second = q.values[0], q.values[1] if there > 1 else empty
        i, change = begin + q.ranked[0] * width, sign * (second - first)
        if change != 0.0:
            for x in range(width):
                q.change[i + x] += change * flat.matrices[matrix + c * width + x]
        at = p.at[number] + c
        floor = room.low[level, at] if sign > 0.0 else -room.high[level, at]
        for n in range(found):
            q.entry_loss[q.ranked[n]] = 0.0
        share_fall(room, q, found, lost, floor, 1.0)
        for n in range(found):
            more = q.entry_loss[q.ranked[n]] - (max(first - second, 0.0) if n == 0 else 0.0)
            if more > 0.0:
                extras = _put_extra(q, 2 * start, extras, q.ranked[n], c, more)
        if there > 1 and lost == there and empty > second:
            for k in range(count):
                if room.entries[k] == FREE:
                    extras = _put_extra(q, 2 * start, extras, k, c, (second - empty) / there)
    q.extras[number] = extras


@kernel
def _put_extra(q: Any, start: int, extras: int, entry: int, column: int, more: float) -> int:
    n = start + extras
    q.extra_entry[n], q.extra_column[n], q.extra[n] = entry, column, more
    return extras + 1
