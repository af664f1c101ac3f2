"""A program and its edits in flat arrays, for plain intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from butfor.oracle.program.bounding.owners import lists
from butfor.oracle.program.bounding.plain.connections import (
    IS_EXTREME,
    IS_RELU,
    MOST_OTHERS,
    NUM_MIXES,
    OTHERS,
    REDUCED,
    SUMMED,
    deleted,
    feeds,
    readers,
)
from butfor.oracle.program.bounding.plain.losses.functions import ALWAYS_SLOPED
from butfor.oracle.program.kernels.functions import ATAN2, CODES, REMAINDER
from butfor.oracle.program.layout import Layout, Values, room_for
from butfor.oracle.program.steps import Fold, Linear, Map, Reduce, in_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from butfor.oracle.program.kernels.flat import Flat
    from butfor.oracle.program.steps import Step, Value

    Numbers = NDArray[np.int64]

__all__ = ["Plain", "plain_tables"]

# The reductions that plain intervals know. Those of a softmax say too little.
KNOWN = ("sum", "mean", "amax", "amin")


class Plain(NamedTuple):
    """A program whose rows are numbered through, those that can change; the inputs of a row come before it.

    Where each item has a list of its own, this is two arrays: pointers, and the members of all lists.

    Attributes:
        flat: the program.
        sizes: the absolute values of all matrices.
        base: the numbers that no edit changes.
        step_of: the step that computes each row.
        at: where its numbers begin among those of all rows that the target needs; -1 where it does not.
        rows: the rows that the target needs.
        readers_from, readers: the rows that read each row.
        edit_from, edit_rows: the rows of reductions that each edit deletes an entry of, and those of matrix products
            that mix the columns of such a row.
        edit_of: the edit that deletes each edge column; -1 for none, and in the last place for what is no edge.
        present: whether the column is there before any edit; the last place is for what is no edge.
        sorted_at: for each row of a maximum or minimum of fixed rows, where its part of ``sorted`` begins; else -1.
        sorted: such a part is how many columns can differ from those of an empty row, which these are, and for each
            place from the most extreme one on, which entry of the row is there in each of these columns.
        scale_at: where the scales of each mean begin.
        scales: what sums of 0, 1, 2 … entries are multiplied with, for all means.
        mixes: for each matrix product, which reduction it mixes the columns of, see `connections`.
        at_once: for each row of a reduction, how many of its entries one edit deletes at most.
        root: the rows of reductions that the target reads without any reduction between them.
        reads_from, reads, reads_by: for each row of a reduction, those that it reads in this way, and the edit that
            deletes the entry through which it does; -1 for none.
        hops: how far each edit is from the target: how many rows of reductions are between them.
        out: the row of the target.
        size: how many numbers all rows have that the target needs.
        widest: how many the widest row has.
        mixed: how many the widest row has that mixes the columns of a reduction.
        most_entries: how many entries lead to one row at most.
        limited: the steps whose numbers are limited (`limits.py`).
        has_losses: whether it can be said what each edit takes off a score at most (`losses/`).
        always_has_losses: whether this is so whatever the intervals are.
    """

    flat: Flat
    sizes: NDArray[np.float64]
    base: NDArray[np.float64]
    step_of: Numbers
    at: Numbers
    rows: Numbers
    readers_from: Numbers
    readers: Numbers
    edit_from: Numbers
    edit_rows: Numbers
    edit_of: Numbers
    present: NDArray[np.bool_]
    sorted_at: Numbers
    sorted: Numbers
    scale_at: Numbers
    scales: NDArray[np.float64]
    mixes: Numbers
    at_once: Numbers
    root: Numbers
    reads_from: Numbers
    reads: Numbers
    reads_by: Numbers
    hops: Numbers
    out: int
    size: int
    widest: int
    mixed: int
    most_entries: int
    limited: Numbers
    has_losses: bool
    always_has_losses: bool


def plain_tables(out: Value, row: int, present: NDArray[np.bool_], edit_of: Numbers, num_edits: int) -> Plain | None:
    """The tables of a program; None where plain intervals do not know what it does, or edits do more than delete."""
    pairs = in_order(out)
    if any(isinstance(step, Reduce) and step.code not in KNOWN for step, _ in pairs):
        return None
    if any(one.editable for step, _ in pairs for one in step.inputs) or (edit_of[~present] >= 0).any():
        return None
    return _Builder(out, row, Layout.of(out, row, present), pairs, np.append(edit_of, -1), num_edits).tables()


class _Builder:
    def __init__(
        self, out: Value, row: int, layout: Layout, pairs: list[tuple[Step, Value]], edit_of: Numbers, num_edits: int
    ) -> None:
        self.out, self.row, self.layout, self.pairs, self.edit_of = out, row, layout, pairs, edit_of
        self.num_edits, self.values = num_edits, Values(pairs)
        self.needed = layout.flat.needed

    def tables(self) -> Plain:
        flat, count = self.layout.flat, len(self.needed)
        step_of, width = (np.zeros(count, dtype=np.int64) for _ in range(2))
        for number, (_, value) in enumerate(self.pairs):
            self.values.part(step_of, value)[:] = number
            self.values.part(width, value)[:] = value.width
        sizes = np.where(self.needed, width, 0)
        at = np.where(self.needed, np.cumsum(sizes) - sizes, -1)
        mixes, most_entries, out = self._mixes(), self._most_entries(), self.number(self.out) + self.row
        # A row reads at most two others for each entry, or all that its step reads, and what it mixes.
        room = 2 * most_entries + NUM_MIXES + int(flat.arity.max())
        pairs = readers(flat, mixes, step_of, room)
        readers_from, readers_of = lists(pairs[:, 0], count, pairs[:, 1])
        pairs, at_once = deleted(flat, mixes, step_of, self.edit_of, self.num_edits, room)
        edit_from, edit_rows = lists(pairs[:, 0], self.num_edits, pairs[:, 1])
        root, reads, hops = feeds(flat, step_of, self.edit_of, out, room)
        reads_from, read, reads_by = lists(reads[:, 0], count, reads[:, 1], reads[:, 2])
        hops_of_edit = np.full(self.num_edits, len(self.pairs))
        np.minimum.at(hops_of_edit, pairs[:, 0], hops[pairs[:, 1]])
        sorted_at, by_value = self._sorted()
        scale_at, scales = self._scales()
        mixed = flat.width[flat.out[mixes[:, REDUCED] >= 0]]
        sizes_of = room_for(len(flat.matrices))
        np.abs(flat.matrices, out=sizes_of)
        return Plain(
            flat=flat, sizes=sizes_of, base=self.layout.start, step_of=step_of, at=at, rows=np.flatnonzero(self.needed),
            readers_from=readers_from, readers=readers_of, edit_from=edit_from, edit_rows=edit_rows,
            edit_of=self.edit_of, present=np.append(self.layout.present, True), sorted_at=sorted_at, sorted=by_value,
            scale_at=scale_at, scales=scales,
            mixes=mixes, at_once=at_once, root=root, reads_from=reads_from, reads=read, reads_by=reads_by,
            hops=hops_of_edit, out=out,
            size=int(sizes.sum()), widest=int(flat.width.max()),
            mixed=int(mixed.max(initial=0)), most_entries=most_entries,
            limited=self._limited(),
            has_losses=all(_passes_losses(step, False) for step, _ in self.pairs),
            always_has_losses=all(_passes_losses(step, True) for step, _ in self.pairs),
        )  # fmt: skip

    def number(self, value: Value) -> int:
        """The number of a value's first row."""
        return int(self.values.first[self.values.numbers[id(value)]])

    def rows(self, value: Value) -> Numbers:
        """The rows of a value that the target needs."""
        return np.flatnonzero(self.values.part(self.needed, value))

    def _sorted(self) -> tuple[Numbers, Numbers]:
        """The entries of maxima and minima of fixed rows in order. Which columns differ is known once and for all."""
        at, parts, size = np.full(len(self.needed), -1), [np.zeros(0, dtype=np.int64)], 0
        for step, value in self.pairs:
            if not isinstance(step, Reduce) or step.code not in ("amax", "amin") or not step.inputs[0].fixed:
                continue
            data = step.inputs[0].data
            assert data is not None
            if not np.isfinite(data).all():
                continue
            from_, arriving = lists(step.receiver, value.rows, np.arange(len(step.receiver)))
            for row in self.rows(value).tolist():
                numbers = data[step.source[arriving[from_[row] : from_[row + 1]]]]
                columns = np.flatnonzero((numbers != step.empty).any(axis=0))
                order = np.argsort(numbers[:, columns] * (-1 if step.code == "amax" else 1), axis=0, kind="stable")
                at[self.number(value) + row] = size
                parts += [np.array([len(columns)]), columns, order.ravel()]
                size += 1 + columns.size + order.size
        return at, np.concatenate(parts)

    def _scales(self) -> tuple[Numbers, NDArray[np.float64]]:
        """Where the scales of each step begin, and those of all steps."""
        of_steps = [step.scales if isinstance(step, Reduce) else None for step, _ in self.pairs]
        parts = [np.zeros(0) if scales is None else scales for scales in of_steps]
        sizes = np.array([len(part) for part in parts])
        return np.cumsum(sizes) - sizes, np.concatenate(parts)

    def _limited(self) -> Numbers:
        """The steps that functions read whose slopes depend on an interval; degrees are known well enough."""
        read = [
            _without_fixed(one)
            for step, _ in self.pairs
            if isinstance(step, Map) and _is_sloped(step)
            for one in step.inputs
        ]
        read += [value for step, value in self.pairs if isinstance(step, Reduce) and step.code == "mean"]
        wide = {id(one) for one in read if one.width > 1}
        return np.array([n for n, (_, value) in enumerate(self.pairs) if id(value) in wide], dtype=np.int64)

    def _mixes(self) -> Numbers:
        found = np.full((len(self.pairs), NUM_MIXES), -1)
        for at, (step, _) in enumerate(self.pairs):
            if isinstance(step, Linear):
                found[at] = self._mixed(step.inputs[0])
        return found

    def _mixed(self, value: Value) -> Numbers:
        """What a matrix mixes: a row of ``mixes`` for a product with this value."""
        found, step = np.full(NUM_MIXES, -1), value.step
        if isinstance(step, Reduce) and step.code in ("amax", "amin"):
            found[[REDUCED, IS_EXTREME]] = self.values.numbers[id(value)], 1
            return found
        found[[SUMMED, IS_RELU]] = self.values.numbers[id(value)], 0
        if isinstance(step, Map) and step.code == "relu" and step.columns[0] is None:
            value = step.inputs[0]
            found[[SUMMED, IS_RELU]] = self.values.numbers[id(value)], 1
        others: list[Value] = []
        while isinstance(step := value.step, Map) and step.code == "add" and step.keeps_columns:
            # Of two summands the one that is a sum over edges, or leads to one, is followed.
            leads = [_leads_to_sum(one) for one in step.inputs]
            if leads[0] == leads[1]:
                break
            value, other = step.inputs if leads[0] else step.inputs[::-1]
            others.append(other)
        if not _is_sum(value.step) or len(others) > MOST_OTHERS:
            return np.full(NUM_MIXES, -1)
        found[[REDUCED, IS_EXTREME]] = self.values.numbers[id(value)], 0
        found[OTHERS : OTHERS + len(others)] = [self.values.numbers[id(one)] for one in others]
        return found

    def _most_entries(self) -> int:
        counts = [np.bincount(step.receiver).max(initial=0) for step, _ in self.pairs if isinstance(step, Reduce)]
        return int(max(counts, default=0))


def _passes_losses(step: Step, surely: bool) -> bool:
    """Whether it is known what a step makes of a change of what it reads: on some intervals at least, or on all."""
    if isinstance(step, Reduce):
        return len(step.inputs) == 1 or (step.code == "sum" and step.inputs[1].fixed)
    if isinstance(step, Fold):
        return step.code != "prod"
    if not isinstance(step, Map):
        return True
    if step.code == "leaky_relu":
        return 0.0 <= step.parameters[0] <= 1.0
    if not surely:
        return CODES[step.code] not in (ATAN2, REMAINDER)
    if step.code == "div":
        return step.inputs[1].fixed
    return CODES[step.code] in ALWAYS_SLOPED


def _is_sloped(step: Map) -> bool:
    """Whether a function has another slope in another place."""
    return len(step.inputs) == 1 and step.code != "neg"


def _without_fixed(value: Value) -> Value:
    """The value that fixed numbers were added to, if they were."""
    step = value.step
    if isinstance(step, Map) and step.code == "add" and step.keeps_columns:
        for one, other in (step.inputs, step.inputs[::-1]):
            if other.fixed:
                return _without_fixed(one)
    return value


def _is_sum(step: Step | None) -> bool:
    return isinstance(step, Reduce) and step.code in ("sum", "mean") and len(step.inputs) == 1


def _leads_to_sum(value: Value) -> bool:
    """Whether a value is a sum or mean over edges, or such a one with something added."""
    step = value.step
    if isinstance(step, Map) and step.code == "add" and step.keeps_columns:
        return any(map(_leads_to_sum, step.inputs))
    return _is_sum(step)
