"""The edits allowed for one target, numbered: what a search chooses sets of."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import coo_array, csgraph

from butfor.edits.addition import Additions
from butfor.edits.change import Changes
from butfor.edits.deletion import Deletions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from butfor.edits.edit import Edit
    from butfor.graph.edge_keys import EdgeKey
    from butfor.graph.graph import Graph
    from butfor.graph.neighbourhood import Neighbourhood

    # One edit set, and many: lists of edit numbers, or an array whose rows are padded with -1.
    EditSet = Sequence[int] | NDArray[np.int64]
    EditSets = Sequence[EditSet] | NDArray[np.int64]

__all__ = ["Edits", "pack"]


@dataclass(frozen=True, eq=False)
class Edits:
    """The edits allowed for one target, numbered from 0.

    An edit deletes the edges, adds the edges and makes the changes that bear its number: usually one of them, several
    where a group of edges is one edit.

    Attributes:
        graph: the whole graph.
        neighbourhood: where they are.
        deleted: the edges that edits delete.
        costs: the cost of each edit.
        edit_of: for each edge column of the neighbourhood the edit that deletes it, or -1.
        num_edges: the edges of the neighbourhood as a person counts them: neither copies, reverses nor self-loops, but
            including those that may not be deleted.
        added: the edges that edits add.
        changes: the features that edits change.
        carries: what an added edge carries: weight, attributes.
        outside: group members outside the neighbourhood: deleted too, but unable to affect the target. Columns of the
            whole graph, and the edit of each.
        deleted_outside: the same edges as a person counts them, by original node ids.
        max_edits: the largest number of edits in a set; None for any.
        keep_connected: whether a set must not take the neighbourhood apart.
    """

    graph: Graph
    neighbourhood: Neighbourhood
    deleted: Deletions
    costs: NDArray[np.float64]
    edit_of: NDArray[np.int64]
    num_edges: int
    added: Additions = field(default_factory=Additions.none)
    changes: Changes = field(default_factory=Changes.none)
    carries: Mapping[str, Any] = field(default_factory=dict)
    outside: tuple[NDArray[np.int64], NDArray[np.int64]] = (np.empty(0, np.int64), np.empty(0, np.int64))
    deleted_outside: Deletions = field(default_factory=Deletions.none)
    max_edits: int | None = None
    keep_connected: bool = False

    def __len__(self) -> int:
        return len(self.costs)

    @property
    def only_deletes(self) -> bool:
        """Whether edits delete edges and do nothing else."""
        return not len(self.added.edit) and not len(self.changes.edit)

    @property
    def constrained(self) -> bool:
        """Whether combinations are restricted: by size, by connectivity, or because values of a feature conflict."""
        return self.max_edits is not None or self.keep_connected or self._exclusive is not None

    @cached_property
    def _grouped(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        columns = np.argsort(self.edit_of, kind="stable")
        columns = columns[np.searchsorted(self.edit_of[columns], 0) :]
        return np.searchsorted(self.edit_of[columns], np.arange(len(self) + 1)), columns

    def columns(self, chosen: EditSet) -> NDArray[np.int64]:
        """The edge columns of the neighbourhood that these edits delete."""
        pointers, columns = self._grouped
        parts = [columns[pointers[edit] : pointers[edit + 1]] for edit in chosen]
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)

    def whole_columns(self, chosen: EditSet) -> NDArray[np.int64]:
        """The edge columns of the whole graph that these edits delete."""
        inside: NDArray[np.int64] = self.neighbourhood.columns[self.columns(chosen)]
        columns, edit = self.outside
        return np.concatenate([inside, columns[np.isin(edit, list(chosen))]]) if len(columns) else inside

    def joined(self, chosen: EditSet) -> list[EdgeKey]:
        """The keys of the edges that these edits add."""
        mine = np.flatnonzero(np.isin(self.added.edit, list(chosen)))
        ends = self.neighbourhood.nodes[self.added.ends[mine]]
        return [(int(r), u, v) for r, (u, v) in zip(self.added.relation[mine], ends.tolist(), strict=True)]

    def chosen(self, sets: NDArray[np.int64]) -> NDArray[np.bool_]:
        """For each packed edit set, which edits are in it; one column more, always False, stands for no edit."""
        # That column takes both the padding (-1) and, when looked up with -1, what has no edit.
        chosen = np.zeros((len(sets), len(self) + 1), dtype=bool)
        np.put_along_axis(chosen, sets % (len(self) + 1), True, axis=1)
        chosen[:, -1] = False
        return chosen

    @cached_property
    def all_ends(self) -> NDArray[np.int64]:
        """The ends of the neighbourhood's edges and, behind them, of the edges that edits may add."""
        if not len(self.added.edit):
            return self.neighbourhood.edge_index
        return np.concatenate([self.neighbourhood.edge_index, self.new_ends.T], axis=1)

    @cached_property
    def all_columns(self) -> NDArray[np.int64]:
        """For each of `all_ends` its column in the whole graph; -1 - r if it is new and of relation number r."""
        return np.concatenate([self.neighbourhood.columns, -1 - self._new[1]])

    @cached_property
    def _new(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The columns of the edges that edits may add: ends, relations, and the edit of each."""
        ends, relation, whose = self.graph.both_ways(self.added.ends, self.added.relation)
        return ends, relation, self.added.edit[whose]

    @property
    def new_ends(self) -> NDArray[np.int64]:
        """The edges that edits may add, in both directions where they have two: positions, one row each."""
        return self._new[0]

    @property
    def new_edit(self) -> NDArray[np.int64]:
        """The edit that adds each of `new_ends`."""
        return self._new[2]

    @cached_property
    def visible(self) -> NDArray[np.bool_]:
        """Which of `all_ends` can matter to the target at all (see `Neighbourhood.visible`).

        In an undirected graph both directions of such an edge: a layer may count the edges that leave a node.
        """
        visible = self.neighbourhood.visible(self.all_ends)
        return visible if self.graph.directed else visible | self.neighbourhood.visible(self.all_ends[::-1])

    def present(self, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which of `all_ends` are there, for each row of chosen edits."""
        kept = ~chosen[:, self.edit_of]
        if not len(self.added.edit):
            return kept
        return np.concatenate([kept, chosen[:, self.new_edit]], axis=1)

    def permits(self, sets: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which packed edit sets are allowed as sets: not too many edits, no feature set twice, nothing cut off."""
        allowed = np.ones(len(sets), dtype=bool)
        if self.max_edits is not None:
            allowed &= (sets >= 0).sum(axis=1) <= self.max_edits
        if self._exclusive is not None:
            slots = np.sort(np.append(self._exclusive, -1)[sets], axis=1)
            allowed &= ~((slots[:, 1:] == slots[:, :-1]) & (slots[:, 1:] >= 0)).any(axis=1)
        if self.keep_connected and allowed.any():
            allowed[allowed] = self._connected(sets[allowed])
        return allowed

    def without_conflicts(self, sets: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Rows of chosen edits without those that would set a feature for the second time."""
        if self._exclusive is None:
            return sets
        kept = sets.copy()
        for row in kept:
            edits = np.flatnonzero(row & (self._exclusive >= 0))
            _, first = np.unique(self._exclusive[edits], return_index=True)
            row[np.delete(edits, first)] = False
        return kept

    @cached_property
    def _exclusive(self) -> NDArray[np.int64] | None:
        """For each edit the feature that it sets, as a number, or -1; None if no two edits set the same one."""
        slots = self.changes.slots
        if slots is None:
            return None
        features = np.full(len(self), -1)
        features[self.changes.edit] = slots
        return features

    def _connected(self, sets: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether nodes that were connected before still are."""
        before, after = self._parts(np.full((1, 1), -1))[0], self._parts(sets)
        # Nothing was taken apart if each component of before lies in one of after: then there are as many pairs of the
        # two as there were components.
        pairs = np.sort(before * (after.max() + 1) + after, axis=1)
        whole: NDArray[np.bool_] = (np.diff(pairs, axis=1) != 0).sum(axis=1) == len(np.unique(before)) - 1
        return whole

    def _parts(self, sets: NDArray[np.int64]) -> NDArray[np.int64]:
        """The number of the component that each node is in, after each set."""
        nodes = self.neighbourhood.num_nodes
        copy, column = np.nonzero(self.present(self.chosen(sets)))
        ends = self.all_ends[:, column] + copy * nodes
        size = len(sets) * nodes
        joined = coo_array((np.ones(len(copy), dtype=bool), tuple(ends)), shape=(size, size))
        labels = csgraph.connected_components(joined, directed=False)[1]
        parts: NDArray[np.int64] = labels.reshape(len(sets), nodes).astype(np.int64)
        return parts

    def sample_sets(self) -> list[NDArray[np.int64]]:
        """Some large and some small sets: all, half, an eighth, those at the target, these but for one, all others."""
        everything = np.flatnonzero(self.without_conflicts(np.ones((1, len(self)), dtype=bool))[0])
        order = np.random.default_rng(0).permutation(everything)
        near = np.zeros(len(self), dtype=bool)
        for edges in (self.deleted, self.added):
            near[edges.edit[np.isin(edges.ends, self.neighbourhood.target_rows).any(axis=1)]] = True
        near[self.changes.edit[np.isin(self.changes.node, self.neighbourhood.target_rows)]] = True
        close = order[near[order]]
        parts = [order[: len(order) // 2 + 1], order[-1 - len(order) // 8 :], close, close[1:], order[~near[order]]]
        return [everything, *(np.sort(part) for part in parts if 0 < len(part) < len(order))] if len(order) else []

    def sets_of_each_size(self, cost: float, most: int) -> list[NDArray[np.int64]]:
        """One set of each size, up to ``most``, of which some set costs less than that: by these sizes, the number of
        edges that are left, a model may decide what it does.
        """
        everything = np.flatnonzero(self.without_conflicts(np.ones((1, len(self)), dtype=bool))[0])
        order = np.random.default_rng(1).permutation(everything)
        largest = min(int((np.cumsum(np.sort(self.costs)) < cost).sum()), most, len(order))
        return [np.sort(order[:size]) for size in range(1, largest + 1)]

    def sets_of_each_relation(self, cost: float, most: int) -> list[NDArray[np.int64]]:
        """Sets of edits of one relation's edges, of each size up to ``most``, all but one and all, that cost less.

        By how many edges of a relation are left, a model may decide what it does.
        """
        if self.graph.types is None:
            return []
        allowed = len(self) if self.max_edits is None else self.max_edits
        found = []
        for edges in (self.deleted, self.added):
            for number in np.unique(edges.relation):
                order = np.random.default_rng(2).permutation(np.unique(edges.edit[edges.relation == number]))
                sizes = {*range(1, most + 1), len(order) - 1, len(order)}
                sets = [np.sort(order[:size]) for size in sorted(sizes) if 0 < size <= min(len(order), allowed)]
                found += [some for some in sets if self.costs[some].sum() < cost]
        return found

    def records(self, chosen: EditSet) -> tuple[Edit, ...]:
        """What these edits do, in the graph's own node numbers, in order."""
        mine = np.zeros(len(self), dtype=bool)
        mine[list(chosen)] = True
        ids = self.neighbourhood.nodes
        deletions = self.deleted.records(self.graph, mine, ids) + self.deleted_outside.records(self.graph, mine, None)
        return (
            *sorted(deletions, key=lambda one: (one.relation or (), one)),
            *sorted(self.added.records(self.graph, mine, ids), key=lambda one: (one.relation or (), one)),
            *sorted(self.changes.records(self.graph, mine, ids), key=lambda one: (one.node_type or "", one)),
        )

    @property
    def deletes(self) -> NDArray[np.bool_]:
        """Which edits delete edges."""
        deletes = np.zeros(len(self), dtype=bool)
        deletes[self.deleted.edit] = True
        return deletes

    def deletes_within(self, nodes: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which edits delete edges among the given positions and no others."""
        inside = self.deletes
        inside[self.deleted.edit[~nodes[self.deleted.ends].all(axis=1)]] = False
        return inside

    def rounding(self, cost: float) -> float:
        """How far sums of the same costs in another order may lie apart: less than any edit costs."""
        return 0.0 if np.isinf(cost) else min(1e-9 * cost, 0.5 * float(self.costs.min(initial=np.inf)))

    def cost(self, chosen: EditSet) -> float:
        """What these edits cost together."""
        return float(self.costs[list(chosen)].sum())


def pack(sets: EditSets) -> NDArray[np.int64]:
    """Edit sets as the rows of one array, padded with -1."""
    if isinstance(sets, np.ndarray) and sets.ndim == 2:
        return sets.astype(np.int64, copy=False)
    width = max((len(chosen) for chosen in sets), default=0)
    packed = np.full((len(sets), width), -1, dtype=np.int64)
    for row, chosen in zip(packed, sets, strict=True):
        row[: len(chosen)] = chosen if isinstance(chosen, np.ndarray) else list(chosen)
    return packed
