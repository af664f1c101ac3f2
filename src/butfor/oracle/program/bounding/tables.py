"""All whole numbers of a program and of its search in one array, ``t``, and all floats in another, ``f``.

So compiled functions pass two arrays to each other instead of dozens. A name is a place in ``t``. What stands there is
a single number, or where a list begins: ``t[t[NAME] + k]`` is number ``k`` of a list of whole numbers, and
``f[t[NAME] + k]`` of a list of floats. Lists with several numbers for each step have these side by side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from butfor.oracle.program.kernels import flat
from butfor.oracle.program.kernels.flat import GATHER, NUM_TABLES, kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["Packer", "begin", "beginning", "copied", "place"]

# Single numbers.
NUM_UNITS, NUM_EDITS, NUM_ORDER, OUT_START, OUT_WIDTH, LAST_UNIT, CLOCK = range(7)
# The case that is being computed: how many entries are sure to be there, how many may be, and how many free edits the
# owner has.
SURE_COUNT, MAYBE_COUNT, OPEN_COUNT = range(7, 10)
# Where the search is: how many edits are made, whether the last of them was made just now, and whether all is done.
DEPTH, IS_NEW, DONE = range(10, 13)
# The program, as in `Flat`.
START, WIDTH, STRIDE, FIRST, KIND, OUT, INPUT, ARITY, CODE, COLUMN, ADDED, PLACE, TABLE = range(13, 26)
# Its units, as in `Units`.
OWNER, STEP, ROW, EXPORTED, UNIT_OWNER, BEGIN, MIDDLE, END, EXACT = range(26, 35)
READS_FROM, READS, READS_BY, UNITS_FROM, UNITS, EDITS_FROM, EDITS, OWNERS_FROM, OWNERS = range(35, 44)
COUNT_FROM, COUNT_EDITS, COUNTS, EDIT_OF, PRESENT, DELETES = range(44, 50)
# Features that edits set, for each row that can change: the edit, and which feature.
CHANGE_FROM, CHANGE_EDIT, CHANGE_FEATURE = range(75, 78)
# What changes during a search: the status of each edit; when an owner was last touched; when a unit was last computed,
# and for which budget; how many edits are in so many cones.
STATUS, TOUCHED, COMPUTED, BUDGET, BINS = range(50, 55)
# The case that is being computed: whether each edit is in the subset; the slot of each free edit of the owner, -1 for
# all others; the edit in each slot; the entries that are sure to be there; those that may be; the slots of the subset.
CHOSEN, SLOT, OPEN, SURE, MAYBE, SUBSET = range(55, 61)
# The search: the edits in order; those that are made; at each depth, the position of the first edit that was free
# there, and of the one that is decided next; when a unit was last marked as live; room for a queue of units.
ORDER, PICKED, FREE_FROM, NEXT, LIVE, QUEUE = range(61, 67)
# Floats: of the program; of a case (the effect of each slot on a sum, by how much entries fall, the weights and values
# of a softmax); of the search (the cost of each edit in order, and of the cheapest 0, 1, 2 ... of them).
PARAMETER, MATRIX, EFFECT, FALL, WEIGHT, VALUE, COST, CHEAPEST = range(67, 75)
# What a feature is before and after an edit sets it.
CHANGE_BEFORE, CHANGE_AFTER = range(78, 80)
# For each entry of a reduction, where in `f` it is kept by how much it can fall and rise (-1 for nowhere); and the room
# for that.
KEPT_FALLS, ROOM_FOR_FALLS = range(80, 82)
# The output has differences of scores (`OUT_WIDTH`), and behind them so many scores.
NUM_SCORES = 82
# For each entry of a reduction, where in `f` the hulls of its row are that hold if the entry is there (-1 for nowhere);
# for each computed row, these places for all that read it, and the edit that deletes the entry; and the room for that.
GIVEN, GIVEN_FROM, GIVEN_AT, GIVEN_EDIT, ROOM_FOR_GIVEN = range(83, 88)
# Whether a row depends on rows of other owners.
DEPENDS = 88
# How many subsets of its owner's edits are cases of a unit, at most.
SUBSETS = 89
# How many of the edits of an owner are in so many cones.
OWN_BINS = 90
# Linear bounds: which cases of a unit they are computed for; the effect of each slot on all that a bound is traced back
# to; the largest entries of a maximum, with their values and what they can fall to.
TIGHTENED, ALL_EFFECTS, TOP_ENTRY, TOP_VALUE = range(91, 95)
# By how much maxima fall and rise: where the losses of each row begin; of each loss the column, the entry (-1 if it is
# added), the slot of the edit that deletes or adds it (-1 for none), and the three numbers; for how many there is room.
LOSS_FROM, LOSS_COLUMN, LOSS_ENTRY, LOSS_SLOT, LOST, FALLEN, RISEN, NUM_LOSSES = range(95, 103)
# Whether only the search reads what a unit computes, so that it needs no other level than that of the budget.
ONE_LEVEL = 103
# Whether only lower ends of differences count in the rows of a step.
ONLY_LOWER = 104
# How many numbers were bounded since the search was last entered: what it costs, whatever the machine.
WORKED = 105
# For each entry that is listed, in the same order: where its row begins; in which rows of `work` its ends are, usual
# and wide; where its wide ends are instead, if these are given (-1 if not); the slot of its edit, and if it is added,
# -1 less the slot.
ENTRY_AT, ENTRY_ROWS, ENTRY_GIVEN, ENTRY_SLOT = range(106, 110)
# When the falls of a row's entries were last kept, for each level.
FALLS_KEPT = 110
# How many edits are made for good.
FLOOR = 111
NUM_NAMES = 112

# One more kind of step than `flat` has: features that edits set.
FEATURES = 7


class Packer:
    """Packs lists one behind the other, and remembers where each begins."""

    def __init__(self) -> None:
        self._whole: list[NDArray[np.int64]] = [np.zeros(NUM_NAMES, dtype=np.int64)]
        self._floats: list[NDArray[np.float64]] = []
        self._places: dict[int, int] = {}
        self._sizes = [NUM_NAMES, 0]

    def number(self, name: int, number: int) -> None:
        """A single number."""
        self._places[name] = number

    def whole(self, name: int, numbers: NDArray[Any] | Sequence[int]) -> None:
        """A list of whole numbers or booleans."""
        flat = np.asarray(numbers).ravel().astype(np.int64)
        self._places[name] = self._sizes[0]
        self._sizes[0] += len(flat)
        self._whole.append(flat)

    def floats(self, name: int, numbers: NDArray[np.float64]) -> None:
        """A list of floats."""
        self._places[name] = self._sizes[1]
        self._sizes[1] += numbers.size
        self._floats.append(numbers.ravel())

    def packed(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Both arrays."""
        t, f = np.concatenate(self._whole), np.concatenate(self._floats)
        for name, place in self._places.items():
            t[name] = place
        return t, f


@kernel
def beginning(t: Any, f: Any, base: Any, step: int, row: int, c: int) -> float:
    """What a product or reduction begins with in a column."""
    d = t[t[ADDED] + step]
    return f[t[PARAMETER] + 3 * step] if d < 0 else base[t[t[START] + d] + row * t[t[STRIDE] + d] + c]


@kernel
def begin(t: Any, f: Any, base: Any, step: int, row: int, out: Any) -> None:
    """Put into ``out`` what a product or reduction begins with: fixed numbers, or the value of an empty row."""
    d = t[t[ADDED] + step]
    if d < 0:
        for c in range(len(out)):
            out[c] = f[t[PARAMETER] + 3 * step]
        return
    i = t[t[START] + d] + row * t[t[STRIDE] + d]
    for c in range(len(out)):
        out[c] = base[i + c]


@kernel
def place(t: Any, step: int, name: int) -> int:
    """Where one of the tables of a step begins, in ``TABLE``."""
    return t[t[PLACE] + NUM_TABLES * step + name]


@kernel
def copied(t: Any, step: int, row: int) -> tuple[int, int]:
    """The value that a row of a gathering or concatenation is copied from, and its row there."""
    table = t[t[TABLE] :]
    if t[t[KIND] + step] == GATHER:
        return t[t[INPUT] + 3 * step], table[place(t, step, flat.SOURCE) + row]
    begins, n = place(t, step, flat.BEGINS), 0
    while row >= table[begins + n + 1]:
        n += 1
    return table[place(t, step, flat.INPUTS) + n], row - table[begins + n]
