"""A program in flat arrays, so that compiled code can walk it, and how such code is compiled.

A program (`Flat`) is steps in order, each with few numbers that say where its tables are. The state (`State`) has all
values as they are after the edits made so far, and room for those rows that a further edit changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = ["FOLDS", "REDUCTIONS", "Edited", "Flat", "State", "grows", "inlined", "jit", "kernel", "natural"]

# Kinds of steps, of folds and of reductions.
MAP, PICK, LINEAR, FOLD, GATHER, CONCAT, REDUCE = range(7)
FOLDS = {"sum": 0, "mean": 1, "amax": 2, "amin": 3, "prod": 4}
REDUCTIONS = {"sum": 0, "share": 1, "amax": 2, "amin": 3, "shift": 4, "softmax": 5, "mean": 6}
SUM, SHARE, AMAX, AMIN, SHIFT, SOFTMAX, MEAN = range(7)


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
        parameters: three numbers; of a reduction, what rows have that nothing leads to, whether it counts degrees, and
            what no message falls short of (not a number if unknown).
        added: for a matrix product or a sum, the fixed value that it begins with; -1 where that is nothing.
        tables: where its other tables are: see below.
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
    added: NDArray[np.int64]
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
SECOND = 10  # where the rows begin in `State.second`; -1 for a reduction that has none
NUM_TABLES = 11
# Those of a pick (which input, which column, the inputs), of a concatenation (where the rows of each input begin, the
# inputs), of a fold (groups) and of a linear map (its matrix).
WHICH, COLUMN, INPUTS = 0, 1, 2
BEGINS = 0
GROUPS = 0
MATRIX = 0


class State(NamedTuple):
    """All values after the edits made so far, and what a further edit changes.

    Attributes:
        values: ``base`` and, from the middle on, ``fresh``, so that a row of either is a place in one array.
        base: the numbers of all values.
        fresh: the same places, for rows that were computed anew.
        saved: the rows that were replaced when a prefix was made, in the order of ``log``.
        log: the value and row of each.
        stamp: for each row that can change, when it was last computed anew.
        changed: the rows of each value that changed; the last place is for rows that did not.
        counts: how many these are.
        tally: for rows of a reduction, how many of their entries changed; -1 once they are computed.
        second: for maxima and minima of fixed rows, what each is without the entry that it is of, before any edit.
        touched: for rows of a reduction, the last prefix that changed their entries.
        present: whether each edge column is there.
        toggled: when it was last toggled.
        visited: when each entry of each reduction last changed.
        entries: room for the entries of one reduction that change.
        arrivals, places: room for the entries that lead to one row, and for where the message of each begins.
        columns, factors: room for the columns of one row, and for a number of each.
        clock: the time, and when the prefix was made.
    """

    values: NDArray[np.float64]
    base: NDArray[np.float64]
    fresh: NDArray[np.float64]
    saved: NDArray[np.float64]
    log: NDArray[np.int64]
    stamp: NDArray[np.int64]
    changed: NDArray[np.int64]
    counts: NDArray[np.int64]
    tally: NDArray[np.int64]
    second: NDArray[np.float64]
    touched: NDArray[np.int64]
    present: NDArray[np.bool_]
    toggled: NDArray[np.int64]
    visited: NDArray[np.int64]
    entries: NDArray[np.int64]
    arrivals: NDArray[np.int64]
    places: NDArray[np.int64]
    columns: NDArray[np.int64]
    factors: NDArray[np.float64]
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


# An index of this type is not negative, so numba need not test whether it counts from the end, which takes as long as
# to read a number. For the innermost loops.
natural = np.uint64

# Sums may be reordered so that they use vector instructions; nothing else is relaxed.
FAST = {"reassoc", "contract"}

# What only compiled code calls needs no wrapper for Python, which would take most of the time to compile.
BARE = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def jit(function: Callable[..., Any]) -> Any:
    """Compile what Python calls, keep the result on disk, and let other threads run meanwhile.

    A division by zero is infinite, as in torch. Whoever edits a file of this folder must delete what is kept (`*.nbi`
    and `*.nbc` in ``__pycache__``): numba looks only at the file of the function itself, not at those of what it calls.
    """
    return njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")(function)


def kernel(function: Callable[..., Any]) -> Any:
    """Compile what allocates nothing: numba need not count references there, which would take most of the time."""
    return njit(nogil=True, fastmath=FAST, error_model="numpy", _nrt=False, forceinline=True, **BARE)(function)


def called(function: Callable[..., Any]) -> Any:
    """Compile what allocates nothing and is called rarely enough."""
    return njit(nogil=True, fastmath=FAST, error_model="numpy", _nrt=False, **BARE)(function)


def grows(function: Callable[..., Any]) -> Any:
    """Compile what allocates, and is called by what does too."""
    return njit(nogil=True, **BARE)(function)


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a part of a kernel where it is called: a call with so many arrays costs more than most rows."""
    return njit(nogil=True, fastmath=FAST, error_model="numpy", _nrt=False, inline="always")(function)
