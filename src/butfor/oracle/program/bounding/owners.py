"""Who owns each row, what is computed for each owner and in which order, and cones; all in flat arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from butfor.oracle.program.layout import Layout, Values
from butfor.oracle.program.steps import Concat, Gather, Reduce, in_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from butfor.oracle.program.steps import Step, Value

    Numbers = NDArray[np.int64]
    Bools = NDArray[np.bool_]

__all__ = ["Changes", "TooLarge", "Units", "lists", "units_of"]

# Pairs of an entry and an edit, of one reduction: limits the memory.
MOST_PAIRS = 40_000_000


class TooLarge(Exception):
    """A program with too many entries and edits for a table of all cones."""


class Changes(NamedTuple):
    """Features that edits set: the edit, the value that the feature is in, its row and column, before and after."""

    edit: Numbers
    value: list[Value]
    row: Numbers
    feature: Numbers
    before: NDArray[np.float64]
    after: NDArray[np.float64]


class Units(NamedTuple):
    """What is computed for each owner. A unit is an owner in a phase (see the head of the package).

    Where each item has a list of its own, this is two arrays: pointers, and the members of all lists.

    Attributes:
        owner: for each row that can change, who owns it; -1 where nobody needs it.
        steps, rows: the rows of each owner in the order in which they are computed; features that edits set are steps
            numbered after all others, one for each value that holds some.
        features: the number of each value that holds features that edits set.
        change_from, changes: for each row that can change, the features that edits set there: numbers of `Changes`.
        exported: for each of the rows in ``rows``, whether other owners read it.
        depends: and whether it depends on rows of other owners.
        unit_owner: the owner of each unit; units are in the order of their phases.
        begin, middle, end: a unit computes the rows from ``begin`` to ``end``; those from ``middle`` on are of its own
            phase, and others read these.
        exact: whether a unit reads no row of another owner that can change.
        reads_from, reads, reads_by: the units that each unit reads, and the edit that adds or deletes the entry through
            which it does; -1 for none.
        units_from, units_of: the units of each owner.
        edits_from, edits: the edits of each owner: those that toggle an entry of its reductions or set a feature of it.
        owners_from, owners: the owners of each edit.
        count_from, count_edits, counts: for each computed row of a reduction, the edits in cones of its entries, and
            in how many of these cones each is.
        edit_of: the edit that toggles each edge column; -1 for none.
        present: whether the column is there before any edit.
        out: where the output begins.
        last: the unit that computes the output.
    """

    owner: Numbers
    steps: Numbers
    rows: Numbers
    features: Numbers
    change_from: Numbers
    changes: Numbers
    exported: NDArray[np.bool_]
    depends: NDArray[np.bool_]
    unit_owner: Numbers
    begin: Numbers
    middle: Numbers
    end: Numbers
    exact: NDArray[np.bool_]
    reads_from: Numbers
    reads: Numbers
    reads_by: Numbers
    units_from: Numbers
    units_of: Numbers
    edits_from: Numbers
    edits: Numbers
    owners_from: Numbers
    owners: Numbers
    count_from: Numbers
    count_edits: Numbers
    counts: Numbers
    edit_of: Numbers
    present: NDArray[np.bool_]
    out: int
    last: int


def units_of(
    out: Value, row: int, present: NDArray[np.bool_], edit_of: Numbers, num_edits: int, changes: Changes
) -> tuple[Layout, Units]:
    """The flat arrays of a program, and its units.

    Raises:
        TooLarge: too many entries depend on too many edits.
    """
    layout = Layout.of(out, row, present)
    return layout, _Builder(out, row, layout, np.append(edit_of, -1), num_edits, changes).units()


class _Builder:
    def __init__(
        self, out: Value, row: int, layout: Layout, edit_of: Numbers, num_edits: int, changes: Changes
    ) -> None:
        self.out, self.row, self.layout, self.edit_of, self.num_edits = out, row, layout, edit_of, num_edits
        self.pairs = in_order(out)
        self.values = Values(self.pairs)
        self.changes = changes
        self.editable = [value for value in self.values.all if value.editable]
        self.owners = self._assigned()
        self.phase, self.crosses, self.read, self.depends = self._phases()

    def first(self, value: Value) -> int:
        return int(self.values.first[self.values.numbers[id(value)]])

    def needed(self, value: Value) -> Numbers:
        """The rows of a value that the target needs."""
        return np.flatnonzero(self.values.part(self.layout.flat.needed, value))

    def owner(self, value: Value) -> Numbers:
        """Who owns each row of a value that can change."""
        return self.values.part(self.owners, value)

    # Owners and phases.

    def _assigned(self) -> Numbers:
        """The owner of each row that can change. Values whose rows stand for the same nodes or edges share owners."""
        of_space: dict[tuple[int, bytes], Numbers] = {}
        count = 0
        changing = [value for value in self.values.all if not value.fixed]
        for value in changing:
            key = _key(value)
            if key not in of_space:
                of_space[key] = np.arange(count, count + value.rows)
                count += value.rows
        for step, value in self.pairs:
            if isinstance(step, Reduce) and not _key(value)[1]:
                # Rows of edges belong to whom the edges lead to.
                mine = of_space[_key(value)]
                for number, one in enumerate(step.inputs):
                    if not one.fixed and _key(one)[1]:
                        entries = step.source if number == 0 else np.arange(len(step.receiver))
                        of_space[_key(one)][entries] = mine[step.receiver]
        owners = np.empty(self.values.num_changing, dtype=np.int64)
        for value in changing:
            self.values.part(owners, value)[:] = of_space[_key(value)]
        return owners

    def _sources(self, step: Step, number: int, rows: Numbers) -> tuple[Numbers, Numbers]:
        """Which rows of an input some rows of a step read: pairs of positions in ``rows`` and rows of the input."""
        places = np.arange(len(rows))
        if isinstance(step, Gather):
            return places, step.source[rows]
        if isinstance(step, Concat):
            begin = sum(one.rows for one in step.inputs[:number])
            inside = (rows >= begin) & (rows < begin + step.inputs[number].rows)
            return places[inside], rows[inside] - begin
        if isinstance(step, Reduce):
            place = np.full(int(step.receiver.max(initial=-1)) + 1, -1)
            known = rows < len(place)
            place[rows[known]] = places[known]
            entries = np.flatnonzero(place[step.receiver] >= 0)
            return place[step.receiver[entries]], step.source[entries] if number == 0 else entries
        return places, rows

    def _phases(self) -> tuple[dict[int, int], NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
        """The phase of each value, by its id, and which steps read rows of other owners.

        Also which rows other owners read, and which depend on rows of other owners.
        """
        phase: dict[int, int] = {}
        crosses = np.zeros(len(self.pairs), dtype=bool)
        read, depends = (np.zeros(self.values.num_changing, dtype=bool) for _ in range(2))
        for at, (step, value) in enumerate(self.pairs):
            rows = self.needed(value)
            mine, latest = self.owner(value)[rows], 0
            for number, one in enumerate(step.inputs):
                if one.fixed:
                    continue
                places, sources = self._sources(step, number, rows)
                other = self.owner(one)[sources] != mine[places]
                others = sources[other]
                self.values.part(read, one)[others] = True
                depending = places[other | self.values.part(depends, one)[sources]]
                self.values.part(depends, value)[rows[depending]] = True
                latest = max(latest, phase.get(id(one), 0) + (len(others) > 0))
                crosses[at] |= len(others) > 0
            phase[id(value)] = latest
        self.values.part(read, self.out)[self.row] = True
        return phase, crosses, read, depends

    # Units.

    def units(self) -> Units:
        order, owner, phase, step, row = self._instructions()
        number = np.unique(owner[order], return_inverse=True)[1]
        compressed = np.full(int(owner.max()) + 1, -1)
        compressed[owner[order]] = number
        owner, phase, step, row = compressed[owner[order]], phase[order], step[order], row[order]
        blocks = np.flatnonzero(np.append(True, (np.diff(owner) != 0) | (np.diff(phase) != 0)))
        ends = np.append(blocks[1:], len(owner))
        by_phase = np.lexsort([owner[blocks], phase[blocks]])
        unit_owner, middle, end = owner[blocks][by_phase], blocks[by_phase], ends[by_phase]
        begin = np.searchsorted(owner, unit_owner)
        crossing = np.append(0, np.cumsum(np.append(self.crosses, np.zeros(len(self.editable), dtype=bool))[step]))
        exact = crossing[end] == crossing[begin]
        self.unit_at = {
            (int(o), int(p)): number
            for number, (o, p) in enumerate(zip(unit_owner, phase[blocks][by_phase], strict=True))
        }
        self.compressed = np.append(compressed, -1)
        everyone = self.compressed[np.where(self.owners < len(compressed), self.owners, -1)]
        count, num_owners = len(unit_owner), int(owner.max()) + 1
        reading = self._reads(everyone)
        pairs = self._owner_edits(everyone)
        counted = self._counts(pairs, everyone, step, row)
        flat, number_out = self.layout.flat, self.values.numbers[id(self.out)]
        out = int(flat.start[number_out] + self.row * flat.width[number_out])
        by_owner = np.argsort(unit_owner, kind="stable")
        reads_from, reads, reads_by = lists(reading[0], count, reading[1], reading[2])
        edits_from, edits = lists(pairs[0], num_owners, pairs[1])
        owners_from, owners = lists(pairs[1], self.num_edits, pairs[0])
        count_from, count_edits, counts = lists(counted[0], len(step), counted[1], counted[2])
        changed = self._changed_rows()
        known = np.flatnonzero(changed >= 0)
        change_from, changes = lists(changed[known], len(self.owners), known)
        features = np.array([self.values.numbers[id(value)] for value in self.editable], dtype=np.int64)
        last = self.unit_at[int(everyone[self.first(self.out) + self.row]), self.phase[id(self.out)]]
        exported, depends = self._flags(step, row, self.read, self.depends)
        return Units(
            everyone, step, row, features, change_from, changes, exported, depends,
            unit_owner, begin, middle, end, exact,
            reads_from, reads, reads_by, np.searchsorted(unit_owner[by_owner], np.arange(num_owners + 1)), by_owner,
            edits_from, edits, owners_from, owners, count_from, count_edits, counts,
            self.edit_of[:-1], self.layout.present, out, last,
        )  # fmt: skip

    def _instructions(self) -> tuple[Numbers, ...]:
        """The rows to compute: their order, owner, phase, step and number."""
        owners, phases, steps, rows = [], [], [], []
        for at, (_, value) in enumerate(self.pairs):
            mine = self.needed(value)
            owners.append(self.owner(value)[mine])
            phases.append(np.full(len(mine), self.phase[id(value)]))
            steps.append(np.full(len(mine), at))
            rows.append(mine)
        for at, value in enumerate(self.editable):
            mine = self.needed(value)
            owners.append(self.owner(value)[mine])
            phases.append(np.zeros_like(mine))
            steps.append(np.full(len(mine), len(self.pairs) + at))
            rows.append(mine)
        owner, phase, step, row = (np.concatenate(parts) for parts in (owners, phases, steps, rows))
        # Features come before all that reads them.
        place = np.where(step < len(self.pairs), step, -1)
        return np.lexsort([row, place, phase, owner]), owner, phase, step, row

    def _flags(self, step: Numbers, row: Numbers, *of_rows: NDArray[np.bool_]) -> list[NDArray[np.bool_]]:
        """What is known of each row that can change, for the rows in the order in which they are computed."""
        first = np.array([self.first(value) for value in (*(value for _, value in self.pairs), *self.editable)])
        return [flags[first[step] + row] for flags in of_rows]

    def _reads(self, everyone: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """Which unit reads which other, and the edit that toggles the entry through which it does; -1 for none."""
        found = [np.zeros((0, 3), dtype=np.int64)]
        for (owner, phase), unit in self.unit_at.items():
            # A unit computes the rows of its owner's earlier phases again, so it reads all that these read.
            earlier = [self.unit_at[owner, p] for p in range(phase) if (owner, p) in self.unit_at]
            found.append(np.array([(unit, other, -1) for other in earlier], dtype=np.int64).reshape(-1, 3))
        numbers = np.full((int(everyone.max()) + 1, 1 + max(phase for _, phase in self.unit_at)), -1)
        for place, unit in self.unit_at.items():
            numbers[place] = unit
        for at, (step, value) in enumerate(self.pairs):
            if not self.crosses[at]:
                continue
            rows = self.needed(value)
            mine = self.values.part(everyone, value)[rows]
            for number, one in enumerate(step.inputs):
                if one.fixed:
                    continue
                places, sources = self._sources(step, number, rows)
                theirs = self.values.part(everyone, one)[sources]
                edits = np.full(len(places), -1)
                if isinstance(step, Reduce):
                    edits = self.edit_of[step.edges[np.isin(step.receiver, rows)]]
                other = theirs != mine[places]
                readers = numbers[mine[places][other], self.phase[id(value)]]
                read = numbers[theirs[other], self.phase.get(id(one), 0)]
                found.append(np.stack([readers, read, edits[other]], axis=1))
        triples = np.unique(np.concatenate(found), axis=0)
        return triples[:, 0], triples[:, 1], triples[:, 2]

    def _owner_edits(self, everyone: Numbers) -> tuple[Numbers, Numbers]:
        """Pairs of an owner and an edit that toggles an entry of a reduction there, or sets a feature there."""
        found = [np.zeros((0, 2), dtype=np.int64)]
        for step, value in self.pairs:
            if isinstance(step, Reduce):
                owner = self.values.part(everyone, value)[step.receiver]
                both = np.stack([owner, self.edit_of[step.edges]], axis=1)
                found.append(both[(both >= 0).all(axis=1)])
        for edit, row in zip(self.changes.edit, self._changed_rows(), strict=True):
            if row >= 0 and everyone[row] >= 0:
                found.append(np.array([[everyone[row], edit]]))
        pairs = np.unique(np.concatenate(found), axis=0)
        return pairs[:, 0], pairs[:, 1]

    def _changed_rows(self) -> Numbers:
        """For each feature that an edit sets, the number of its row among those that can change; -1 for none."""
        known = {id(value) for value in self.editable}
        firsts = [self.first(value) if id(value) in known else -1 for value in self.changes.value]
        return np.array([-1 if one < 0 else one + row for one, row in zip(firsts, self.changes.row, strict=True)], int)

    # Cones.

    def _counts(
        self, owner_edits: tuple[Numbers, Numbers], everyone: Numbers, step_of: Numbers, row_of: Numbers
    ) -> tuple[Numbers, Numbers, Numbers]:
        """For each computed row of a reduction, the edits in cones of its entries, and in how many of these each is."""
        sizes = [len(step.receiver) if isinstance(step, Reduce) else value.rows for step, value in self.pairs]
        if max(sizes) * self.num_edits > MOST_PAIRS:
            raise TooLarge
        # The owner of rows that nobody needs is -1: the last line of this table, which stays empty.
        mine = np.zeros((int(everyone.max()) + 2, self.num_edits), dtype=bool)
        mine[owner_edits] = True
        cones = {id(value): np.zeros((value.rows, self.num_edits), dtype=bool) for value in self.editable}
        found: list[Numbers] = []
        for at, (step, value) in enumerate(self.pairs):
            every = np.arange(value.rows)
            cone = np.zeros((sizes[at], self.num_edits), dtype=bool)
            owner = self.values.part(everyone, value)
            for number, one in enumerate(step.inputs):
                if id(one) not in cones:
                    continue
                if isinstance(step, Reduce):
                    places = np.arange(len(step.receiver))
                    to, sources = owner[step.receiver], step.source if number == 0 else places
                else:
                    places, sources = self._sources(step, number, every)
                    to = owner[places]
                theirs = self.values.part(everyone, one)[sources]
                cone[places] |= cones[id(one)][sources]
                across = theirs != to
                cone[places[across]] |= mine[theirs[across]]
            if isinstance(step, Reduce):
                counts = self._counted(step, value, cone)
                rows, edits = counts.nonzero()
                found.append(np.stack([np.full(len(rows), at), rows, edits, counts[rows, edits]], axis=1))
                cone = counts > 0
            cones[id(value)] = cone
        if not found:
            return tuple(np.zeros(0, dtype=np.int64) for _ in range(3))  # type: ignore[return-value]
        quads = np.concatenate(found)
        # Only rows that are computed count; find the place of each among them.
        key, keys = quads[:, 0] * len(self.owners) + quads[:, 1], step_of * len(self.owners) + row_of
        order = np.argsort(keys)
        place = order[np.minimum(np.searchsorted(keys[order], key), len(keys) - 1)]
        computed = keys[place] == key
        return place[computed], quads[computed, 2], quads[computed, 3]

    def _counted(self, step: Reduce, value: Value, cone: Bools) -> Numbers:
        """For each row and edit, how many cones of the row's entries contain the edit.

        The edit that deletes an entry is not in its cone: an entry that is gone brings nothing, changed or not.
        """
        edits = self.edit_of[step.edges]
        deleted = np.flatnonzero(edits >= 0)
        deleted = deleted[self.layout.present[step.edges[deleted]]]
        cone[deleted, edits[deleted]] = False
        order = np.argsort(step.receiver, kind="stable")
        receivers, starts = np.unique(step.receiver[order], return_index=True)
        counts = np.zeros((value.rows, self.num_edits), dtype=np.int64)
        if len(starts):
            counts[receivers] = np.add.reduceat(cone[order], starts, axis=0, dtype=np.int64)
        return counts


def _key(value: Value) -> tuple[int, bytes]:
    """Values with the same key share owners, row by row; the second part is empty unless rows are edges."""
    assert value.space is not None
    columns = value.space.columns
    return value.rows, b"" if columns is None or (columns < 0).all() else columns.tobytes()


def lists(keys: Numbers, size: int, *members: Numbers) -> tuple[Numbers, ...]:
    """A list of members for each key below ``size``: pointers, and the members of all lists."""
    order = np.argsort(keys, kind="stable")
    return np.searchsorted(keys[order], np.arange(size + 1)), *(one[order] for one in members)
