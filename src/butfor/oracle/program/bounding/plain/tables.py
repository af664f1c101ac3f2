"""A program and its edits in flat arrays, for plain intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from butfor.oracle.program.bounding.owners import lists
from butfor.oracle.program.layout import Layout, Values, room_for
from butfor.oracle.program.steps import Concat, Fold, Gather, Linear, Map, Reduce, in_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from butfor.oracle.program.kernels.flat import Flat
    from butfor.oracle.program.steps import Step, Value

    Numbers = NDArray[np.int64]

__all__ = ["IS_EXTREME", "IS_RELU", "NUM_MIXES", "OTHERS", "REDUCED", "SUMMED", "Plain", "plain_tables"]

# The reductions that plain intervals know. Those of a softmax say too little.
KNOWN = ("sum", "mean", "amax", "amin")

# What is known of a matrix product that mixes the columns of a reduction; -1 for nothing. It is applied to a maximum or
# minimum; or to `SUMMED`, which is `REDUCED` plus others, or to the ReLU of it.
REDUCED, IS_EXTREME, SUMMED, IS_RELU, OTHERS = range(5)
MOST_OTHERS = 3
NUM_MIXES = OTHERS + MOST_OTHERS


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
        mixes: for each matrix product, which reduction it mixes the columns of, see above.
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
        has_losses: whether it can be said what each edit takes off a score at most (`losses/`).
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
    has_losses: bool


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
        mixes = self._mixes()
        mixed_rows = [self._mixed_rows(value, mix) for (_, value), mix in zip(self.pairs, mixes, strict=True)]
        pairs = [*(self._read(step, value) for step, value in self.pairs), *(pairs for pairs, _ in mixed_rows)]
        readers = np.unique(np.concatenate(pairs), axis=0)
        readers_from, readers_of = lists(readers[:, 0], count, readers[:, 1])
        edit_from, edit_rows, at_once = self._toggled([looked_at for _, looked_at in mixed_rows])
        root, reads = self._feeds()
        reads_from, read, reads_by = lists(reads[:, 0], count, reads[:, 1], reads[:, 2])
        sorted_at, by_value = self._sorted()
        mixed = flat.width[flat.out[mixes[:, REDUCED] >= 0]]
        sizes_of = room_for(len(flat.matrices))
        np.abs(flat.matrices, out=sizes_of)
        return Plain(
            flat=flat, sizes=sizes_of, base=self.layout.start, step_of=step_of, at=at, rows=np.flatnonzero(self.needed),
            readers_from=readers_from, readers=readers_of, edit_from=edit_from, edit_rows=edit_rows,
            edit_of=self.edit_of, present=np.append(self.layout.present, True), sorted_at=sorted_at, sorted=by_value,
            mixes=mixes, at_once=at_once, root=root, reads_from=reads_from, reads=read, reads_by=reads_by,
            hops=self._hops(root, reads, edit_from, edit_rows), out=self.number(self.out) + self.row,
            size=int(sizes.sum()), widest=int(flat.width.max()),
            mixed=int(mixed.max(initial=0)), most_entries=self._most_entries(),
            has_losses=all(_passes_losses(step) for step, _ in self.pairs),
        )  # fmt: skip

    def number(self, value: Value) -> int:
        """The number of a value's first row."""
        return int(self.values.first[self.values.numbers[id(value)]])

    def rows(self, value: Value) -> Numbers:
        """The rows of a value that the target needs."""
        return np.flatnonzero(self.values.part(self.needed, value))

    def entries(self, step: Reduce, value: Value) -> Numbers:
        """The entries of a reduction that lead to rows which the target needs."""
        return np.flatnonzero(self.values.part(self.needed, value)[step.receiver])

    def _sources(self, step: Step, number: int, value: Value) -> tuple[Numbers, Numbers, Numbers]:
        """Which rows of an input the needed rows of a step read: rows of the output, of the input, and edge columns."""
        one = step.inputs[number]
        if isinstance(step, Reduce):
            entries = self.entries(step, value)
            sources = step.source[entries] if number == 0 else entries
            return step.receiver[entries], sources, step.edges[entries]
        rows = self.rows(value)
        sources = rows
        if isinstance(step, Gather):
            sources = step.source[rows]
        elif isinstance(step, Concat):
            begin = sum(other.rows for other in step.inputs[:number])
            rows = rows[(rows >= begin) & (rows < begin + one.rows)]
            sources = rows - begin
        elif one.space is None:
            sources = np.zeros_like(rows)
        return rows, sources, np.full(len(rows), -1)

    def _read(self, step: Step, value: Value) -> Numbers:
        """Pairs of a row that can change and a row of the step that reads it."""
        found = [np.zeros((0, 2), dtype=np.int64)]
        for number, one in enumerate(step.inputs):
            if not one.fixed:
                rows, sources, _ = self._sources(step, number, value)
                found.append(np.stack([self.number(one) + sources, self.number(value) + rows], axis=1))
        return np.concatenate(found)

    def _mixed_rows(self, value: Value, mix: Numbers) -> tuple[Numbers, Numbers]:
        """What rows of a matrix product read besides their input, as in `_read`, and pairs of an edit and such a row.

        An interval of the input may stay the same though a number changes that it was computed from.
        """
        nothing = np.zeros((0, 2), dtype=np.int64)
        if mix[REDUCED] < 0:
            return nothing, nothing
        reduced = self.values.all[mix[REDUCED]]
        assert isinstance(reduced.step, Reduce)
        mine, into = self.number(value), self.values.part(self.needed, value)
        rows, sources, columns = self._sources(reduced.step, 0, reduced)
        rows, sources, edits = rows[into[rows]], sources[into[rows]], self.edit_of[columns[into[rows]]]
        found, own = [nothing], np.flatnonzero(into)
        if not reduced.step.inputs[0].fixed:
            found.append(np.stack([self.number(reduced.step.inputs[0]) + sources, mine + rows], axis=1))
        for number in mix[[SUMMED, *range(OTHERS, NUM_MIXES)]]:
            if number >= 0 and not (one := self.values.all[number]).fixed:
                theirs = own if one.space is not None else np.zeros_like(own)
                found.append(np.stack([self.number(one) + theirs, mine + own], axis=1))
        return np.concatenate(found), np.stack([edits, mine + rows], axis=1)[edits >= 0]

    def _toggled(self, looked_at: list[Numbers]) -> tuple[Numbers, Numbers, Numbers]:
        """The rows that each edit deletes entries of, and for each row how many one edit deletes at most.

        The former also has the pairs in ``looked_at``.
        """
        found, at_once = [*looked_at], np.zeros(len(self.needed), dtype=np.int64)
        for step, value in self.pairs:
            if isinstance(step, Reduce):
                entries = self.entries(step, value)
                both = np.stack(
                    [self.edit_of[step.edges[entries]], self.number(value) + step.receiver[entries]], axis=1
                )
                both, counts = np.unique(both[both[:, 0] >= 0], axis=0, return_counts=True)
                np.maximum.at(at_once, both[:, 1], counts)
                found.append(both)
        pairs = np.unique(np.concatenate(found), axis=0)
        edit_from, edit_rows = lists(pairs[:, 0], self.num_edits, pairs[:, 1])
        return edit_from, edit_rows, at_once

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
        while isinstance(step := value.step, Map) and step.code == "add" and step.columns == [None, None]:
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

    def _feeds(self) -> tuple[Numbers, Numbers]:
        """The rows of reductions that the target reads at first hand, and those that each of these reads, and by whom.

        A row *feeds* another if there is no reduction between them. The second has three columns: a row of a reduction,
        one that feeds an entry of it, and the edit that deletes this entry.
        """
        feeds: dict[int, tuple[Numbers, Numbers]] = {}
        found = [np.zeros((0, 3), dtype=np.int64)]
        for step, value in self.pairs:
            parts = [np.zeros((0, 3), dtype=np.int64)]
            for number, one in enumerate(step.inputs):
                if id(one) in feeds:
                    parts.append(_joined(*self._sources(step, number, value), *feeds[id(one)]))
            every = np.unique(np.concatenate(parts), axis=0)
            if isinstance(step, Reduce):
                every[:, 0] += self.number(value)
                found.append(np.stack([every[:, 0], every[:, 1], self.edit_of[every[:, 2]]], axis=1))
                rows = self.rows(value)
                every = np.stack([rows, self.number(value) + rows], axis=1)
            feeds[id(value)] = every[:, 0], every[:, 1]
        rows, fed = feeds[id(self.out)]
        return np.unique(fed[rows == self.row]), np.unique(np.concatenate(found), axis=0)

    def _hops(self, root: Numbers, reads: Numbers, edit_from: Numbers, edit_rows: Numbers) -> Numbers:
        far = len(self.pairs)
        of_row, of_edit = np.full(len(self.needed), far), np.full(self.num_edits, far)
        of_row[root] = 0
        for _ in range(far):
            before = of_row.copy()
            np.minimum.at(of_row, reads[:, 1], of_row[reads[:, 0]] + 1)
            if np.array_equal(before, of_row):
                break
        np.minimum.at(of_edit, np.repeat(np.arange(self.num_edits), np.diff(edit_from)), of_row[edit_rows])
        return of_edit

    def _most_entries(self) -> int:
        counts = [np.bincount(step.receiver).max(initial=0) for step, _ in self.pairs if isinstance(step, Reduce)]
        return int(max(counts, default=0))


def _passes_losses(step: Step) -> bool:
    """Whether it is known what a step makes of a change of what it reads."""
    if isinstance(step, Reduce):
        return len(step.inputs) == 1 or (step.code == "sum" and step.inputs[1].fixed)
    if isinstance(step, Fold):
        return step.code in ("sum", "mean")
    if not isinstance(step, Map):
        return True
    if step.code == "leaky_relu":
        return 0.0 <= step.parameters[0] <= 1.0
    if step.code == "div":
        return step.inputs[1].fixed
    if step.code == "mul":
        return any(one.fixed for one in step.inputs)
    return step.code in ("add", "sub", "neg", "relu")


def _is_sum(step: Step | None) -> bool:
    return isinstance(step, Reduce) and step.code in ("sum", "mean") and len(step.inputs) == 1


def _leads_to_sum(value: Value) -> bool:
    """Whether a value is a sum or mean over edges, or such a one with something added."""
    step = value.step
    if isinstance(step, Map) and step.code == "add" and step.columns == [None, None]:
        return any(map(_leads_to_sum, step.inputs))
    return _is_sum(step)


def _joined(rows: Numbers, sources: Numbers, columns: Numbers, of: Numbers, fed: Numbers) -> Numbers:
    """For each row and source, all that feeds the source (``of`` is sorted): the row, what feeds it, and the column."""
    begin, end = np.searchsorted(of, sources), np.searchsorted(of, sources, side="right")
    counts = end - begin
    places = np.arange(counts.sum()) + np.repeat(begin - (np.cumsum(counts) - counts), counts)
    return np.stack([np.repeat(rows, counts), fed[places], np.repeat(columns, counts)], axis=1)
