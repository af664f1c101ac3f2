"""The entries of a reduction's row, in a case: which are there, and what they bring."""

from __future__ import annotations

from typing import Any, NamedTuple

from butfor.oracle.program.bounding.intervals import product
from butfor.oracle.program.bounding.rows import read
from butfor.oracle.program.bounding.tables import (
    ARITY,
    CHOSEN,
    COLUMN,
    EDIT_OF,
    ENTRY_AT,
    ENTRY_GIVEN,
    ENTRY_ROWS,
    ENTRY_SLOT,
    GIVEN,
    INPUT,
    MAYBE,
    MAYBE_COUNT,
    PRESENT,
    SLOT,
    START,
    STATUS,
    STRIDE,
    SURE,
    SURE_COUNT,
    TABLE,
    WIDTH,
    place,
)
from butfor.oracle.program.kernels.flat import ARRIVAL, ARRIVING, EDGE, SOURCE, VISIT, kernel

__all__ = [
    "FREE",
    "KEPT",
    "MADE",
    "Case",
    "ends",
    "entry_row",
    "factor",
    "given_row",
    "is_there",
    "list_entries",
    "list_rows",
    "listed",
    "usual_ends",
    "wide_ends",
]

# The status of an edit. `KEPT` is an excluded one: what it would change is kept as it is.
FREE, MADE, KEPT = range(3)


class Case(NamedTuple):
    """Which of an owner's free edits are made; if not ``counted``, they are those marked in `CHOSEN`.

    Attributes:
        counted: whether only the number of edits is known, not which they are.
        least, most: the number of edits; both are the same unless the case is a range.
        level: the level at which hulls of other owners' rows are read.
        budget: how many free edits are made in all, at most.
    """

    counted: bool
    least: int
    most: int
    level: int
    budget: int


@kernel
def list_entries(t: Any, step: int, row: int, counted: bool) -> None:
    """List the entries of a row that are sure to be there in this case, and those that may be."""
    table, arriving, arrival = t[t[TABLE] :], place(t, step, ARRIVING), place(t, step, ARRIVAL)
    edges = place(t, step, EDGE)
    sure = maybe = 0
    for k in range(table[arriving + row], table[arriving + row + 1]):
        entry = table[arrival + k]
        column = table[edges + entry]
        there, edit = True, -1
        if column >= 0:
            there, edit = t[t[PRESENT] + column] != 0, t[t[EDIT_OF] + column]
        if edit >= 0:
            if t[t[STATUS] + edit] == FREE and counted:
                t[t[MAYBE] + maybe] = entry
                maybe += 1
                continue
            if t[t[STATUS] + edit] == MADE or (t[t[STATUS] + edit] == FREE and t[t[CHOSEN] + edit] != 0):
                there = not there
        if there:
            t[t[SURE] + sure] = entry
            sure += 1
    t[SURE_COUNT], t[MAYBE_COUNT] = sure, maybe


@kernel
def list_rows(t: Any, step: int, owner: int, wide: bool, level: int) -> None:
    """List where the rows of the entries are, and the slots of their edits: it is found out once for all columns."""
    a, table = t[t[INPUT] + 3 * step], t[t[TABLE] :]
    sources, edges, visit = place(t, step, SOURCE), place(t, step, EDGE), place(t, step, VISIT)
    for k in range(t[SURE_COUNT] + t[MAYBE_COUNT]):
        entry, rows = listed(t, k), t[t[ENTRY_ROWS] + 4 * k :]
        source, given = table[sources + entry], t[t[GIVEN] + visit + entry]
        t[t[ENTRY_AT] + k] = t[t[START] + a] + source * t[t[STRIDE] + a]
        rows[0], rows[1] = read(t, a, source, owner, False, 0)
        rows[2], rows[3] = read(t, a, source, owner, wide, level)
        t[t[ENTRY_GIVEN] + k] = given_row(given, level, t[t[WIDTH] + a]) if wide and given >= 0 else -1
        if k >= t[SURE_COUNT]:
            slot = t[t[SLOT] + t[t[EDIT_OF] + table[edges + entry]]]
            t[t[ENTRY_SLOT] + k] = slot if is_there(t, step, entry) else -1 - slot


@kernel
def listed(t: Any, k: int) -> int:
    """Entry number ``k``: first those that are sure to be there, then those that may be."""
    return t[t[SURE] + k] if k < t[SURE_COUNT] else t[t[MAYBE] + k - t[SURE_COUNT]]


@kernel
def usual_ends(work: Any, at: Any, rows: Any, k: int, c: int) -> tuple[float, float]:
    """The usual interval of what entry number ``k`` brings in a column, without a factor, from the lists of all."""
    return work[rows[4 * k], at[k] + c], work[rows[4 * k + 1], at[k] + c]


@kernel
def wide_ends(f: Any, work: Any, at: Any, rows: Any, given: Any, k: int, c: int, width: int) -> tuple[float, float]:
    """The same interval, wide."""
    if given[k] >= 0:
        return f[given[k] + c], f[given[k] + width + c]
    return work[rows[4 * k + 2], at[k] + c], work[rows[4 * k + 3], at[k] + c]


@kernel
def is_there(t: Any, step: int, entry: int) -> bool:
    """Whether an entry that an edit toggles is there before any edit."""
    return t[t[PRESENT] + t[t[TABLE] + place(t, step, EDGE) + entry]] != 0


@kernel
def ends(
    t: Any, f: Any, work: Any, step: int, entry: int, c: int, owner: int, wide: bool, level: int
) -> tuple[float, float]:
    """The interval of what an entry brings in a column, if it is there."""
    a, table = t[t[INPUT] + 3 * step], t[t[TABLE] :]
    given = t[t[GIVEN] + place(t, step, VISIT) + entry]
    if wide and given >= 0:
        at, width = given_row(given, level, t[t[WIDTH] + a]) + c, t[t[WIDTH] + a]
        return f[at], f[at + width]
    source = table[place(t, step, SOURCE) + entry]
    low, high = read(t, a, source, owner, wide, level)
    i = t[t[START] + a] + source * t[t[STRIDE] + a] + c
    if t[t[ARITY] + step] == 1:
        return work[low, i], work[high, i]
    first, last = factor(t, work, step, entry, c, owner, wide, level)
    return product(work[low, i], work[high, i], first, last)


@kernel
def entry_row(
    t: Any, f: Any, work: Any, step: int, entry: int, owner: int, wide: bool, level: int, width: int
) -> tuple[Any, Any]:
    """The lower and upper ends of what an entry brings in all columns, without a factor."""
    given = t[t[GIVEN] + place(t, step, VISIT) + entry]
    if wide and given >= 0:
        at = given_row(given, level, width)
        return f[at : at + width], f[at + width : at + 2 * width]
    a, source = t[t[INPUT] + 3 * step], t[t[TABLE] + place(t, step, SOURCE) + entry]
    low, high = read(t, a, source, owner, wide, level)
    i = t[t[START] + a] + source * t[t[STRIDE] + a]
    return work[low, i : i + width], work[high, i : i + width]


@kernel
def given_row(given: int, level: int, width: int) -> int:
    """Where the lower ends of a hull begin that holds if the entry is there; the upper ends are behind them."""
    return given + 2 * (level - 1) * width


@kernel
def factor(t: Any, work: Any, step: int, entry: int, c: int, owner: int, wide: bool, level: int) -> tuple[float, float]:
    """The interval of an entry's factor in a sum, or of its score in a softmax."""
    b, m = t[t[INPUT] + 3 * step + 1], t[t[COLUMN] + 3 * step + 1]
    low, high = read(t, b, entry, owner, wide, level)
    j = t[t[START] + b] + entry * t[t[STRIDE] + b] + (c if m < 0 else t[t[TABLE] + m + c])
    return work[low, j], work[high, j]
