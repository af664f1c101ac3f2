"""The rows that a row reads, and the entries of a reduction, with the status of their edits."""

from __future__ import annotations

from typing import Any, NamedTuple

from butfor.oracle.program.kernels import flat as tables
from butfor.oracle.program.kernels.flat import kernel

__all__ = ["FREE", "KEPT", "MADE", "MOST_TOPS", "Room", "begin", "ends", "insert", "least_mean", "list_status"]

# Up to so many of the largest numbers are found for all columns at once.
MOST_TOPS = 8

# The status of an edit.
FREE, MADE, KEPT = range(3)


class Room(NamedTuple):
    """What is computed, and room for what is computed on the way.

    Attributes:
        low, high: the ends of all numbers that the target needs, one row for each level.
        least_of_all, most_of_all: limits of all numbers in all branches of a search (`limits.py`).
        status: the status of each edit, as the intervals of each level know it.
        row_low, row_high: room for one row.
        entries, places: room for the entries of a row, and for where the row of each begins.
        column: room for two numbers of each entry.
        tops, bottoms, carried: room for the largest numbers of each column, and for one row of them.
        row, least, most, slopes, chords: room for one row.
        middle, radius: room for the middles of two rows, and for half their widths.
        products: room for two products with a matrix.
        zeros: nothing but zeros.
        factors, factors_of_sizes, columns: factors of rows of a matrix and of its absolute values, and which rows these
            are.
        falls, rises: by how much each number of a row falls, and rises, with each entry.
        ranked, values: the entries of a column with the largest lower ends, and these.
        share, gain, share_entry, share_column: by how much the lower end of a column falls with an entry at most, its
            upper end at least, which entry that is, and which column.
        share_from: where those of each entry begin, once they are sorted.
    """

    low: Any
    high: Any
    least_of_all: Any
    most_of_all: Any
    status: Any
    row_low: Any
    row_high: Any
    entries: Any
    places: Any
    column: Any
    tops: Any
    bottoms: Any
    carried: Any
    row: Any
    least: Any
    most: Any
    slopes: Any
    chords: Any
    middle: Any
    radius: Any
    products: Any
    zeros: Any
    factors: Any
    factors_of_sizes: Any
    columns: Any
    falls: Any
    rises: Any
    ranked: Any
    values: Any
    share: Any
    gain: Any
    share_entry: Any
    share_column: Any
    share_from: Any


@kernel
def ends(p: Any, room: Any, level: int, value: int, row: int) -> tuple[Any, Any]:
    """The lower and upper ends of a row of a value, with whatever follows."""
    flat = p.flat
    first = flat.first[value]
    if first < 0:
        i = flat.start[value] + row * flat.stride[value]
        return p.base[i:], p.base[i:]
    i = p.at[first + (row if flat.stride[value] > 0 else 0)]
    return room.low[level, i:], room.high[level, i:]


@kernel
def begin(p: Any, step: int, row: int, out: Any) -> None:
    """Put into ``out`` what a product or reduction begins with: fixed numbers, or the value of an empty row."""
    flat = p.flat
    added, width = flat.added[step], flat.width[flat.out[step]]
    if added < 0:
        for c in range(width):
            out[c] = flat.parameters[step, 0]
        return
    i = flat.start[added] + row * flat.stride[added]
    for c in range(width):
        out[c] = p.base[i + c]


@kernel
def insert(tops: Any, number: int, width: int, rows: Any, at: int, sign: float, carried: Any) -> None:
    """Insert a row of numbers, times ``sign``, into the ``number`` largest of each column, the largest first."""
    for c in range(width):
        carried[c] = sign * rows[at + c]
    for j in range(number):
        top = tops[j]
        for c in range(width):
            x, y = carried[c], top[c]
            top[c], carried[c] = max(x, y), min(x, y)


@kernel
def list_status(p: Any, room: Any, level: int, budget: int, number: int) -> tuple[int, int]:
    """List the status of the edit of each entry of a row, and where the row that it brings begins.

    An entry that no edit deletes counts as excluded. Returns how many entries there are, and how many may go.
    """
    flat = p.flat
    step = p.step_of[number]
    value, row = flat.inputs[step, 0], number - flat.first[flat.out[step]]
    arriving = flat.table[flat.tables[step, tables.ARRIVING] + row]
    count = flat.table[flat.tables[step, tables.ARRIVING] + row + 1] - arriving
    maybe = 0
    for k in range(count):
        entry = flat.table[flat.tables[step, tables.ARRIVAL] + arriving + k]
        column = flat.table[flat.tables[step, tables.EDGE] + entry]
        edit = p.edit_of[column]
        status = KEPT if edit < 0 else room.status[level, edit]
        room.entries[k] = MADE if edit < 0 and not p.present[column] else status
        maybe += status == FREE
        other = flat.table[flat.tables[step, tables.SOURCE] + entry]
        if flat.first[value] < 0:
            room.places[k] = flat.start[value] + other * flat.stride[value]
        else:
            room.places[k] = p.at[flat.first[value] + (other if flat.stride[value] > 0 else 0)]
    return count, min(maybe, budget * p.at_once[number])


@kernel
def least_mean(tops: Any, scales: Any, count: int, lost: int, total: float) -> float:
    """The least that ``count`` numbers without some of ``tops`` add up to, times the scale of how many are left.

    ``tops`` are their largest, the largest of all first; at least one number is left.
    """
    rest, least = total, scales[count] * total
    for j in range(min(lost, count - 1)):
        rest -= tops[j]
        least = min(least, scales[count - 1 - j] * rest)
    return least
