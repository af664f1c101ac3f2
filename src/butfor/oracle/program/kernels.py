"""Compiled reading of a program: values after edits, where only rows that an edit changes are computed anew.

A program stands in flat arrays (`Flat`), so that compiled code can walk it: steps in order, each with few numbers that
say where its tables are. The state (`State`) has all values as they are after the edits made so far, and room for those
rows that a further edit changes. `extend` makes the edits of a prefix for good, tries each candidate, and undoes the
prefix.

An edit toggles edge columns and sets features. What changes is followed step by step: a step is computed anew in rows
in which an input changed, and only in rows that the target needs. Sums and matrix products are linear, so only the
difference is added.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = ["CODES", "FOLDS", "REDUCTIONS", "Edited", "Flat", "State", "compute", "evaluate", "extend", "jit", "kernel"]

# Sums may be reordered so that they use vector instructions; nothing else is relaxed.
FAST = {"reassoc", "contract"}

MAP, PICK, LINEAR, FOLD, GATHER, CONCAT, REDUCE = range(7)

CODES = {
    name: code
    for code, name in enumerate(
        (
            "add", "sub", "mul", "div", "maximum", "minimum", "pow", "eq", "ne", "lt", "le", "gt", "ge", "logical_and",
            "logical_or", "where", "relu", "leaky_relu", "exp", "log", "log1p", "expm1", "sqrt", "rsqrt", "reciprocal",
            "neg", "abs", "sigmoid", "tanh", "erf", "sign", "isinf", "isnan", "logical_not", "sin", "cos", "floor",
            "clamp", "square", "isfinite", "atan2",
            "remainder",
        )
    )
}  # fmt: skip
CODES |= {f"bitwise_{word}": CODES[f"logical_{word}"] for word in ("and", "or", "not")}
ADD, MULTIPLY, RELU, EXP = (CODES[name] for name in ("add", "mul", "relu", "exp"))

FOLDS = {"sum": 0, "mean": 1, "amax": 2, "amin": 3, "prod": 4}
REDUCTIONS = {"sum": 0, "share": 1, "amax": 2, "amin": 3, "shift": 4}
SUM, SHARE, MAXIMUM, MINIMUM, SHIFT = range(5)


class Flat(NamedTuple):
    """A program. Values and steps are numbered; "where" means a position in ``table``, or in ``matrices``.

    Attributes:
        start: where the numbers of each value begin in the state.
        width: how many numbers a row of it has.
        stride: how far its rows are apart; 0 where one row serves all.
        first: where its rows begin in arrays that have a place for each row that can change; -1 if no edit changes it.
        rows: how many rows it has.
        kind: of each step.
        out: the value that it computes.
        inputs: the values that it reads, up to three.
        arity: how many these are.
        code: which function, fold or reduction it is.
        columns: where the column is that each output column reads, for each input; -1 where it is the same column.
        parameters: two numbers.
        tables: where its other tables are: see `layout`.
        table: whole numbers.
        matrices: of linear maps.
        needed: whether the target needs a row.
    """

    start: NDArray[np.int64]
    width: NDArray[np.int64]
    stride: NDArray[np.int64]
    first: NDArray[np.int64]
    rows: NDArray[np.int64]
    kind: NDArray[np.int64]
    out: NDArray[np.int64]
    inputs: NDArray[np.int64]
    arity: NDArray[np.int64]
    code: NDArray[np.int64]
    columns: NDArray[np.int64]
    parameters: NDArray[np.float64]
    tables: NDArray[np.int64]
    table: NDArray[np.int64]
    matrices: NDArray[np.float64]
    needed: NDArray[np.bool_]


# The tables of a gather and of a reduction. Entries of a reduction are numbered; a list of rows or entries for each
# something is two tables, pointers and numbers.
SOURCE = 0  # the row that each row, or entry, reads
READERS, READER = 1, 2  # the rows, or entries, that read each row of the input
ARRIVING, ARRIVAL = 3, 4  # the entries that lead to each row
RECEIVER = 5  # the row that each entry leads to
EDGE = 6  # the edge column of each entry
OF_EDGE, ENTRY = 7, 8  # the entries of each edge column
VISIT = 9  # where the entries begin in `State.visited`
NUM_TABLES = 10
# Those of a pick (which input, which column, the inputs), of a concatenation (where the rows of each input begin, the
# inputs), of a fold (groups) and of a linear map (its matrix).
WHICH, COLUMN, INPUTS = 0, 1, 2
BEGINS = 0
GROUPS = 0
MATRIX = 0


class State(NamedTuple):
    """All values after the edits made so far, and what a further edit changes.

    Attributes:
        base: the numbers of all values.
        fresh: the same places, for rows that were computed anew.
        saved: the rows that were replaced when a prefix was made, in the order of ``log``.
        log: the value and row of each.
        stamp: for each row that can change, when it was last computed anew.
        changed: the rows of each value that changed.
        counts: how many these are.
        tally: for rows of a reduction, how many of their entries changed; -1 if all were added up again.
        present: whether each edge column is there.
        toggled: when it was last toggled.
        visited: when each entry of each reduction last changed.
        entries: room for the entries of one reduction that change.
        columns: room for the columns of one row.
        clock: one number, the time.
    """

    base: NDArray[np.float64]
    fresh: NDArray[np.float64]
    saved: NDArray[np.float64]
    log: NDArray[np.int64]
    stamp: NDArray[np.int64]
    changed: NDArray[np.int64]
    counts: NDArray[np.int64]
    tally: NDArray[np.int64]
    present: NDArray[np.bool_]
    toggled: NDArray[np.int64]
    visited: NDArray[np.int64]
    entries: NDArray[np.int64]
    columns: NDArray[np.int64]
    clock: NDArray[np.int64]


class Edited(NamedTuple):
    """What each edit does: the edge columns that it toggles, and the features that it sets.

    Attributes:
        pointers, columns: the edge columns of edit ``e`` are ``columns[pointers[e]:pointers[e + 1]]``.
        change_pointers, of, rows, features, values: likewise the features, and the value that each is in.
        editable: all values that features are in.
    """

    pointers: NDArray[np.int64]
    columns: NDArray[np.int64]
    change_pointers: NDArray[np.int64]
    of: NDArray[np.int64]
    rows: NDArray[np.int64]
    features: NDArray[np.int64]
    values: NDArray[np.float64]
    editable: NDArray[np.int64]


def jit(function: Callable[..., Any]) -> Any:
    """Compile what Python calls, keep the result on disk, and let other threads run meanwhile.

    A division by zero is infinite, as in torch.
    """
    return njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")(function)


def kernel(function: Callable[..., Any]) -> Any:
    """Compile what allocates nothing: numba need not count references there, which would take most of the time."""
    return njit(nogil=True, fastmath=FAST, error_model="numpy", _nrt=False)(function)


@kernel
def _function(code: int, x: float, y: float, z: float, p: float, q: float) -> float:
    """One number from up to three, by the order of `CODES`."""
    if code == 0:
        return x + y
    if code == 1:
        return x - y
    if code == 2:
        return x * y
    if code == 3:
        return x / y
    if code == 4:
        return max(x, y)
    if code == 5:
        return min(x, y)
    if code == 6:
        return float(x**y)
    if code == 7:
        return 1.0 if x == y else 0.0
    if code == 8:
        return 1.0 if x != y else 0.0
    if code == 9:
        return 1.0 if x < y else 0.0
    if code == 10:
        return 1.0 if x <= y else 0.0
    if code == 11:
        return 1.0 if x > y else 0.0
    if code == 12:
        return 1.0 if x >= y else 0.0
    if code == 13:
        return 1.0 if x != 0 and y != 0 else 0.0
    if code == 14:
        return 1.0 if x != 0 or y != 0 else 0.0
    if code == 15:
        return y if x != 0 else z
    if code == 16:
        return max(x, 0.0)
    if code == 17:
        return x if x > 0 else p * x
    if code == 18:
        return float(np.exp(x))
    if code == 19:
        return float(np.log(x))
    if code == 20:
        return float(np.log1p(x))
    if code == 21:
        return float(np.expm1(x))
    if code == 22:
        return float(np.sqrt(x))
    if code == 23:
        return float(1 / np.sqrt(x))
    if code == 24:
        return 1 / x
    if code == 25:
        return -x
    if code == 26:
        return abs(x)
    if code == 27:
        return float(1 / (1 + np.exp(-x)))
    if code == 28:
        return float(np.tanh(x))
    if code == 29:
        return math.erf(x)
    if code == 30:
        return float(np.sign(x))
    if code == 31:
        return 1.0 if np.isinf(x) else 0.0
    if code == 32:
        return 1.0 if np.isnan(x) else 0.0
    if code == 33:
        return 1.0 if x == 0 else 0.0
    if code == 34:
        return float(np.sin(x))
    if code == 35:
        return float(np.cos(x))
    if code == 36:
        return float(np.floor(x))
    if code == 37:
        return min(max(x, p), q)
    if code == 38:
        return x * x
    if code == 39:
        return 1.0 if np.isfinite(x) else 0.0
    if code == 40:
        return math.atan2(x, y)
    return float(x - y * np.floor(x / y))


# Steps. Each takes a list of rows, because a call with so many arrays costs more than most rows.


@kernel
def _map(flat: Any, state: Any, step: int, rows: Any, now: int, out: Any) -> None:
    base, fresh, stamp, table = state.base, state.fresh, state.stamp, flat.table
    value, arity = flat.out[step], flat.arity[step]
    width, code, p, q = flat.width[value], flat.code[step], flat.parameters[step, 0], flat.parameters[step, 1]
    a, b, d = flat.inputs[step, 0], flat.inputs[step, 1], flat.inputs[step, 2]
    m, n, k = flat.columns[step, 0], flat.columns[step, 1], flat.columns[step, 2]
    first_a, first_b, first_d = flat.first[a], flat.first[b], flat.first[d]
    plain = m < 0 and (n < 0 or arity < 2)
    for row in rows:
        o = flat.start[value] + row * width
        x = fresh if first_a >= 0 and stamp[first_a + row] == now else base
        y = fresh if first_b >= 0 and stamp[first_b + row] == now else base
        i, j = flat.start[a] + row * flat.stride[a], flat.start[b] + row * flat.stride[b]
        if plain and code == ADD:
            for c in range(width):
                out[o + c] = x[i + c] + y[j + c]
        elif plain and code == MULTIPLY:
            for c in range(width):
                out[o + c] = x[i + c] * y[j + c]
        elif plain and code == RELU:
            for c in range(width):
                out[o + c] = max(x[i + c], 0.0)
        elif arity == 1:
            for c in range(width):
                out[o + c] = _function(code, x[i + (c if m < 0 else table[m + c])], 0.0, 0.0, p, q)
        elif arity == 2:
            for c in range(width):
                left, right = x[i + (c if m < 0 else table[m + c])], y[j + (c if n < 0 else table[n + c])]
                out[o + c] = _function(code, left, right, 0.0, p, q)
        else:
            z = fresh if first_d >= 0 and stamp[first_d + row] == now else base
            third = flat.start[d] + row * flat.stride[d]
            for c in range(width):
                left, right = x[i + (c if m < 0 else table[m + c])], y[j + (c if n < 0 else table[n + c])]
                out[o + c] = _function(code, left, right, z[third + (c if k < 0 else table[k + c])], p, q)


@kernel
def _pick(flat: Any, state: Any, step: int, rows: Any, now: int, out: Any) -> None:
    base, fresh, stamp, table = state.base, state.fresh, state.stamp, flat.table
    value = flat.out[step]
    which, column, inputs = flat.tables[step, WHICH], flat.tables[step, COLUMN], flat.tables[step, INPUTS]
    for row in rows:
        o = flat.start[value] + row * flat.width[value]
        for c in range(flat.width[value]):
            a = table[inputs + table[which + c]]
            x = fresh if flat.first[a] >= 0 and stamp[flat.first[a] + row] == now else base
            out[o + c] = x[flat.start[a] + row * flat.stride[a] + table[column + c]]


@kernel
def _linear(flat: Any, state: Any, step: int, rows: Any, now: int, out: Any) -> None:
    """The product; of a row that was computed anew only the difference is multiplied."""
    base, fresh, matrices = state.base, state.fresh, flat.matrices
    value, a = flat.out[step], flat.inputs[step, 0]
    width, wide, m = flat.width[value], flat.width[a], flat.tables[step, MATRIX]
    for row in rows:
        o, i = flat.start[value] + row * width, flat.start[a] + row * wide
        again = flat.first[a] >= 0 and state.stamp[flat.first[a] + row] == now
        for c in range(width):
            out[o + c] = base[o + c] if again else 0.0
        for r in range(wide):
            difference = fresh[i + r] - base[i + r] if again else base[i + r]
            if difference != 0.0:
                at = m + r * width
                for c in range(width):
                    out[o + c] += difference * matrices[at + c]


@kernel
def _fold(flat: Any, state: Any, step: int, rows: Any, now: int, out: Any) -> None:
    base, fresh, table = state.base, state.fresh, flat.table
    value, a, code = flat.out[step], flat.inputs[step, 0], flat.code[step]
    width, wide, groups = flat.width[value], flat.width[a], flat.tables[step, GROUPS]
    for row in rows:
        o, i = flat.start[value] + row * width, flat.start[a] + row * flat.stride[a]
        x = fresh if flat.first[a] >= 0 and state.stamp[flat.first[a] + row] == now else base
        for c in range(width):
            out[o + c] = 0.0 if code < 2 else -np.inf if code == 2 else np.inf if code == 3 else 1.0
        for c in range(wide):
            at = o + table[groups + c]
            if code < 2:
                out[at] += x[i + c]
            elif code == 2:
                out[at] = max(out[at], x[i + c])
            elif code == 3:
                out[at] = min(out[at], x[i + c])
            else:
                out[at] *= x[i + c]
        if code == 1:
            for c in range(width):
                out[o + c] *= width / wide


@kernel
def _reduce(flat: Any, state: Any, step: int, rows: Any, now: int, out: Any) -> None:
    """All that leads to each row."""
    base, fresh, stamp, table = state.base, state.fresh, state.stamp, flat.table
    present, toggled = state.present, state.toggled
    value, a, b, code = flat.out[step], flat.inputs[step, 0], flat.inputs[step, 1], flat.code[step]
    width, m, factors = flat.width[value], flat.columns[step, 1], flat.arity[step] == 2
    arriving, arrival = flat.tables[step, ARRIVING], flat.tables[step, ARRIVAL]
    sources, edges = flat.tables[step, SOURCE], flat.tables[step, EDGE]
    first_a, first_b = flat.first[a], flat.first[b]
    for row in rows:
        o = flat.start[value] + row * width
        for c in range(width):
            out[o + c] = flat.parameters[step, 0]
        nothing = True
        for k in range(table[arriving + row], table[arriving + row + 1]):
            entry = table[arrival + k]
            column = table[edges + entry]
            if column >= 0 and present[column] == (toggled[column] == now):
                continue
            source = table[sources + entry]
            x = fresh if first_a >= 0 and stamp[first_a + source] == now else base
            i = flat.start[a] + source * flat.stride[a]
            if factors:
                y = fresh if first_b >= 0 and stamp[first_b + entry] == now else base
                _add_product(out, o, x, i, y, flat.start[b] + entry * flat.stride[b], table, m, 1.0, width)
            elif code <= SHARE:
                for c in range(width):
                    out[o + c] += x[i + c]
            else:
                for c in range(width):
                    better = nothing or (x[i + c] < out[o + c] if code == MINIMUM else x[i + c] > out[o + c])
                    out[o + c] = x[i + c] if better else out[o + c]
            nothing = False


@kernel
def _add_product(out: Any, o: int, x: Any, i: int, y: Any, j: int, table: Any, m: int, sign: float, width: int) -> None:
    """Add the product of a row and its factors."""
    if m < 0:
        for c in range(width):
            out[o + c] += sign * x[i + c] * y[j + c]
    else:
        for c in range(width):
            out[o + c] += sign * x[i + c] * y[j + table[m + c]]


@kernel
def copied(flat: Any, step: int, row: int) -> tuple[int, int]:
    """The value that a row of a gathering or concatenation is copied from, and where it begins."""
    if flat.kind[step] == GATHER:
        a = flat.inputs[step, 0]
        return a, flat.start[a] + flat.table[flat.tables[step, SOURCE] + row] * flat.stride[a]
    begins, n = flat.tables[step, BEGINS], 0
    while row >= flat.table[begins + n + 1]:
        n += 1
    a = flat.table[flat.tables[step, INPUTS] + n]
    return a, flat.start[a] + (row - flat.table[begins + n]) * flat.stride[a]


@kernel
def _copy(flat: Any, state: Any, step: int, rows: Any, out: Any) -> None:
    """Rows of other values; only where all rows are computed, what changes is followed from the other side."""
    value = flat.out[step]
    width = flat.width[value]
    for row in rows:
        o = flat.start[value] + row * width
        _, i = copied(flat, step, row)
        for c in range(width):
            out[o + c] = state.base[i + c]


@kernel
def compute(flat: Any, state: Any, step: int, rows: Any, now: int, out: Any) -> None:
    """Rows of a step that works row by row."""
    kind = flat.kind[step]
    if kind == MAP:
        _map(flat, state, step, rows, now, out)
    elif kind == PICK:
        _pick(flat, state, step, rows, now, out)
    elif kind == LINEAR:
        _linear(flat, state, step, rows, now, out)
    elif kind == FOLD:
        _fold(flat, state, step, rows, now, out)
    elif kind != REDUCE:
        _copy(flat, state, step, rows, out)
    else:
        _reduce(flat, state, step, rows, now, out)


@jit
def needed_rows(flat: Any, value: int) -> Any:
    """The rows of a value that the target needs."""
    first = flat.first[value]
    return np.flatnonzero(flat.needed[first : first + flat.rows[value]])


@jit
def evaluate(flat: Any, state: Any) -> None:
    """All rows that the target needs, as the edges and features are."""
    for step in range(len(flat.kind)):
        compute(flat, state, step, needed_rows(flat, flat.out[step]), -1, state.base)


# Changes.


@kernel
def _propagate_reduce(flat: Any, state: Any, step: int, columns: Any, now: int) -> None:
    """Receivers of rows that changed and of edges that came or went."""
    table, changed, counts = flat.table, state.changed, state.counts
    a, b = flat.inputs[step, 0], flat.inputs[step, 1]
    entries = state.entries
    count = 0
    if flat.first[a] >= 0:
        readers, reader = flat.tables[step, READERS], flat.tables[step, READER]
        for k in range(counts[a]):
            row = changed[flat.first[a] + k]
            for j in range(table[readers + row], table[readers + row + 1]):
                entries[count] = table[reader + j]
                count += 1
    if flat.arity[step] == 2 and flat.first[b] >= 0:
        for k in range(counts[b]):
            entries[count] = changed[flat.first[b] + k]
            count += 1
    of_edge, edge_entries = flat.tables[step, OF_EDGE], flat.tables[step, ENTRY]
    for column in columns:
        for j in range(table[of_edge + column], table[of_edge + column + 1]):
            entries[count] = table[edge_entries + j]
            count += 1
    kept = _receivers_of(flat, state, step, entries[:count], now) if count else 0
    if kept and flat.code[step] <= SHARE:
        _sum_anew(flat, state, step, entries[:kept], now)
    elif kept:
        _extreme_anew(flat, state, step, entries[:kept], now)
        _drop_unchanged(flat, state, flat.out[step])


@kernel
def _receivers_of(flat: Any, state: Any, step: int, entries: Any, now: int) -> int:
    """Keep each entry once, if the target needs its receiver; note the receivers, and how many entries each has."""
    table, stamp, visited = flat.table, state.stamp, state.visited
    value = flat.out[step]
    first = flat.first[value]
    receivers, visits = flat.tables[step, RECEIVER], flat.tables[step, VISIT]
    kept = 0
    for entry in entries:
        row = table[receivers + entry]
        if not flat.needed[first + row] or visited[visits + entry] == now:
            continue
        visited[visits + entry] = now
        entries[kept] = entry
        kept += 1
        if stamp[first + row] != now:
            stamp[first + row] = now
            state.changed[first + state.counts[value]] = row
            state.counts[value] += 1
            state.tally[first + row] = 0
        state.tally[first + row] += 1
    return kept


@kernel
def _sum_anew(flat: Any, state: Any, step: int, entries: Any, now: int) -> None:
    """Sums at receivers: the differences of entries that changed; all entries where most of them did.

    That is as quick, and exact where nearly everything goes: a difference of large sums is rounding.
    """
    base, fresh, table = state.base, state.fresh, flat.table
    value = flat.out[step]
    first, width = flat.first[value], flat.width[value]
    arriving = flat.tables[step, ARRIVING]
    rows = state.changed[first : first + state.counts[value]]
    for k in range(len(rows)):
        row = rows[k]
        if 2 * state.tally[first + row] >= table[arriving + row + 1] - table[arriving + row]:
            state.tally[first + row] = -1
            _reduce(flat, state, step, rows[k : k + 1], now, fresh)
        else:
            o = flat.start[value] + row * width
            for c in range(width):
                fresh[o + c] = base[o + c]
    _add_differences(flat, state, step, entries, now)


@kernel
def _extreme_anew(flat: Any, state: Any, step: int, entries: Any, now: int) -> None:
    """Maxima or minima at receivers: an entry that comes or goes matters only in columns where it is the extreme.

    A column whose extreme is gone is looked for among all entries; until then it is marked by not being a number.
    """
    base, fresh, stamp, table = state.base, state.fresh, state.stamp, flat.table
    value, a, sign = flat.out[step], flat.inputs[step, 0], -1.0 if flat.code[step] == MINIMUM else 1.0
    first, width, first_a = flat.first[value], flat.width[value], flat.first[a]
    sources, edges, receivers = flat.tables[step, SOURCE], flat.tables[step, EDGE], flat.tables[step, RECEIVER]
    rows = state.changed[first : first + state.counts[value]]
    for k in range(len(rows)):
        o = flat.start[value] + rows[k] * width
        anew = _mostly_changed(flat, state, step, rows[k])
        if anew:
            state.tally[first + rows[k]] = -1
        for c in range(width):
            fresh[o + c] = np.nan if anew else base[o + c]
    for entry in entries:
        row, column, source = table[receivers + entry], table[edges + entry], table[sources + entry]
        if column < 0 or state.present[column]:
            o, i = flat.start[value] + row * width, flat.start[a] + source * flat.stride[a]
            for c in range(width):
                if base[i + c] == base[o + c]:
                    fresh[o + c] = np.nan
    # What reaches the old extreme is the new one, unless another goes further.
    for entry in entries:
        row, column, source = table[receivers + entry], table[edges + entry], table[sources + entry]
        if state.tally[first + row] < 0 or (column >= 0 and state.present[column] == (state.toggled[column] == now)):
            continue
        o, i = flat.start[value] + row * width, flat.start[a] + source * flat.stride[a]
        x = fresh if first_a >= 0 and stamp[first_a + source] == now else base
        for c in range(width):
            if sign * x[i + c] >= sign * base[o + c] and not sign * x[i + c] <= sign * fresh[o + c]:
                fresh[o + c] = x[i + c]
    for k in range(len(rows)):
        _search_anew(flat, state, step, rows[k], now)


@kernel
def _mostly_changed(flat: Any, state: Any, step: int, row: int) -> bool:
    """Whether half of the entries changed, or none was there before."""
    table, arriving = flat.table, flat.tables[step, ARRIVING]
    start, end = table[arriving + row], table[arriving + row + 1]
    if 2 * state.tally[flat.first[flat.out[step]] + row] >= end - start:
        return True
    for k in range(start, end):
        column = table[flat.tables[step, EDGE] + table[flat.tables[step, ARRIVAL] + k]]
        if column < 0 or state.present[column]:
            return False
    return True


@kernel
def _search_anew(flat: Any, state: Any, step: int, row: int, now: int) -> None:
    """The extremes of marked columns, among all entries that lead to a row.

    Unless the whole row is marked, none of them goes beyond the old extreme: the first that reaches it is enough.
    """
    fresh, base, table, value, a = state.fresh, state.base, flat.table, flat.out[step], flat.inputs[step, 0]
    width, sign, first_a = flat.width[value], -1.0 if flat.code[step] == MINIMUM else 1.0, flat.first[a]
    o, marked, columns = flat.start[value] + row * width, 0, state.columns
    bounded = state.tally[flat.first[value] + row] >= 0
    for c in range(width):
        if fresh[o + c] != fresh[o + c]:
            columns[marked] = c
            marked += 1
    arriving, arrival = flat.tables[step, ARRIVING], flat.tables[step, ARRIVAL]
    for k in range(table[arriving + row], table[arriving + row + 1]):
        if not marked:
            break
        entry = table[arrival + k]
        column = table[flat.tables[step, EDGE] + entry]
        if column >= 0 and state.present[column] == (state.toggled[column] == now):
            continue
        source = table[flat.tables[step, SOURCE] + entry]
        x = fresh if first_a >= 0 and state.stamp[first_a + source] == now else base
        i = flat.start[a] + source * flat.stride[a]
        left = 0
        for n in range(marked):
            c = columns[n]
            if not sign * x[i + c] <= sign * fresh[o + c]:
                fresh[o + c] = x[i + c]
            if not (bounded and x[i + c] == base[o + c]):
                columns[left] = c
                left += 1
        marked = left
    for n in range(marked):
        if fresh[o + columns[n]] != fresh[o + columns[n]]:
            fresh[o + columns[n]] = flat.parameters[step, 0]


@kernel
def _add_differences(flat: Any, state: Any, step: int, entries: Any, now: int) -> None:
    base, fresh, stamp, table = state.base, state.fresh, state.stamp, flat.table
    value, a, b = flat.out[step], flat.inputs[step, 0], flat.inputs[step, 1]
    width, first, m = flat.width[value], flat.first[value], flat.columns[step, 1]
    sources, edges, receivers = flat.tables[step, SOURCE], flat.tables[step, EDGE], flat.tables[step, RECEIVER]
    first_a, first_b, factors = flat.first[a], flat.first[b], flat.arity[step] == 2
    for entry in entries:
        row = table[receivers + entry]
        if state.tally[first + row] < 0:
            continue
        o = flat.start[value] + row * width
        column, source = table[edges + entry], table[sources + entry]
        i = flat.start[a] + source * flat.stride[a]
        before = column < 0 or state.present[column]
        after = before != (column >= 0 and state.toggled[column] == now)
        x = fresh if first_a >= 0 and stamp[first_a + source] == now else base
        if factors:
            j = flat.start[b] + entry * flat.stride[b]
            y = fresh if first_b >= 0 and stamp[first_b + entry] == now else base
            if before:
                _add_product(fresh, o, base, i, base, j, table, m, -1.0, width)
            if after:
                _add_product(fresh, o, x, i, y, j, table, m, 1.0, width)
        elif before and after:
            for c in range(width):
                fresh[o + c] += x[i + c] - base[i + c]
        elif after:
            for c in range(width):
                fresh[o + c] += x[i + c]
        elif before:
            for c in range(width):
                fresh[o + c] -= base[i + c]


@kernel
def _propagate_gather(flat: Any, state: Any, step: int, now: int) -> None:
    table, value, a = flat.table, flat.out[step], flat.inputs[step, 0]
    readers, reader = flat.tables[step, READERS], flat.tables[step, READER]
    for k in range(state.counts[a]):
        source = state.changed[flat.first[a] + k]
        i = flat.start[a] + source * flat.width[a]
        for j in range(table[readers + source], table[readers + source + 1]):
            _put(flat, state, value, table[reader + j], i, now)


@kernel
def _propagate_concat(flat: Any, state: Any, step: int, now: int) -> None:
    table = flat.table
    begins, inputs = flat.tables[step, BEGINS], flat.tables[step, INPUTS]
    for n in range(flat.arity[step]):
        a = table[inputs + n]
        if flat.first[a] < 0:
            continue
        for k in range(state.counts[a]):
            row = state.changed[flat.first[a] + k]
            _put(flat, state, flat.out[step], table[begins + n] + row, flat.start[a] + row * flat.width[a], now)


@kernel
def _put(flat: Any, state: Any, value: int, row: int, i: int, now: int) -> None:
    """A row that is a copy of one that changed."""
    first, width = flat.first[value], flat.width[value]
    if flat.needed[first + row]:
        o = flat.start[value] + row * width
        for c in range(width):
            state.fresh[o + c] = state.fresh[i + c]
        state.stamp[first + row] = now
        state.changed[first + state.counts[value]] = row
        state.counts[value] += 1


@kernel
def _propagate_rows(flat: Any, state: Any, step: int, now: int) -> None:
    """Rows in which an input changed."""
    stamp, changed = state.stamp, state.changed
    value, arity = flat.out[step], flat.arity[step]
    first, count = flat.first[value], 0
    rows = changed[first:]
    for n in range(arity):
        a = flat.inputs[step, n]
        if flat.kind[step] == PICK:
            a = flat.table[flat.tables[step, INPUTS] + n]
        if flat.first[a] < 0:
            continue
        for k in range(state.counts[a]):
            row = changed[flat.first[a] + k]
            if flat.needed[first + row] and stamp[first + row] != now:
                stamp[first + row] = now
                rows[count] = row
                count += 1
    state.counts[value] = count
    if count:
        compute(flat, state, step, rows[:count], now, state.fresh)
        _drop_unchanged(flat, state, value)


@kernel
def _drop_unchanged(flat: Any, state: Any, value: int) -> None:
    """What came out the same has not changed."""
    base, fresh, first, width = state.base, state.fresh, flat.first[value], flat.width[value]
    rows, kept = state.changed[first : first + state.counts[value]], 0
    for k in range(len(rows)):
        row = rows[k]
        o = flat.start[value] + row * width
        differs = False
        for c in range(width):
            if fresh[o + c] != base[o + c]:
                differs = True
                break
        if differs:
            rows[kept] = row
            kept += 1
        else:
            state.stamp[first + row] = 0
    state.counts[value] = kept


@kernel
def _make(flat: Any, state: Any, edited: Any, edits: Any, columns: Any) -> int:
    """Compute what these edits change; the edge columns that they toggle are written down. Returns how many."""
    state.clock[0] += 1
    now = state.clock[0]
    count = 0
    for value in edited.editable:
        state.counts[value] = 0
    for edit in edits:
        if edit < 0:
            continue
        for k in range(edited.pointers[edit], edited.pointers[edit + 1]):
            columns[count] = edited.columns[k]
            state.toggled[edited.columns[k]] = now
            count += 1
        for k in range(edited.change_pointers[edit], edited.change_pointers[edit + 1]):
            x, row = edited.of[k], edited.rows[k]
            first, i = flat.first[x], flat.start[x] + row * flat.width[x]
            if state.stamp[first + row] != now:
                state.stamp[first + row] = now
                state.changed[first + state.counts[x]] = row
                state.counts[x] += 1
                for c in range(flat.width[x]):
                    state.fresh[i + c] = state.base[i + c]
            state.fresh[i + edited.features[k]] = edited.values[k]
    for step in range(len(flat.kind)):
        kind, value = flat.kind[step], flat.out[step]
        state.counts[value] = 0
        if kind == REDUCE:
            _propagate_reduce(flat, state, step, columns[:count], now)
        elif kind == GATHER:
            if state.counts[flat.inputs[step, 0]]:
                _propagate_gather(flat, state, step, now)
        elif kind == CONCAT:
            _propagate_concat(flat, state, step, now)
        else:
            _propagate_rows(flat, state, step, now)
    return count


@kernel
def _keep(flat: Any, state: Any, columns: Any) -> int:
    """Let all rows that were computed anew replace the old ones, which are saved. Returns how many."""
    saved = at = 0
    for value in range(len(flat.first)):
        if flat.first[value] < 0:
            continue
        width = flat.width[value]
        for k in range(state.counts[value]):
            row = state.changed[flat.first[value] + k]
            o = flat.start[value] + row * width
            for c in range(width):
                state.saved[at + c] = state.base[o + c]
                state.base[o + c] = state.fresh[o + c]
            state.log[saved, 0], state.log[saved, 1] = value, row
            saved += 1
            at += width
    for column in columns:
        state.present[column] = not state.present[column]
    return saved


@kernel
def _undo(flat: Any, state: Any, columns: Any, saved: int) -> None:
    at = 0
    for k in range(saved):
        value, row = state.log[k, 0], state.log[k, 1]
        width = flat.width[value]
        o = flat.start[value] + row * width
        for c in range(width):
            state.base[o + c] = state.saved[at + c]
        at += width
    for column in columns:
        state.present[column] = not state.present[column]


@jit
def extend(
    flat: Any, state: Any, edited: Any, output: int, row: int, prefixes: Any, candidates: Any, pointers: Any, out: Any
) -> None:
    """The output after prefix ``i`` and candidate ``j``, for j from pointers[i] to pointers[i + 1]."""
    made, tried = np.empty(len(state.present), np.int64), np.empty(len(state.present), np.int64)
    width, first = flat.width[output], flat.first[output]
    o = flat.start[output] + row * width
    for i in range(len(prefixes)):
        count = _make(flat, state, edited, prefixes[i], made)
        saved = _keep(flat, state, made[:count])
        for j in range(pointers[i], pointers[i + 1]):
            if candidates[j] >= 0:
                _make(flat, state, edited, candidates[j : j + 1], tried)
            anew = candidates[j] >= 0 and state.stamp[first + row] == state.clock[0]
            for c in range(width):
                out[j, c] = state.fresh[o + c] if anew else state.base[o + c]
        _undo(flat, state, made[:count], saved)
