"""Edits: what is changed about a graph, and the numbered edits of one target."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.sparse import coo_array, csgraph

from butfor.files.json_values import Misfit, items, number, shown, text, whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from butfor.graph.graph import Graph, Neighbourhood

__all__ = ["Addition", "Change", "Changes", "Deletion", "Edit", "Edits", "Links", "Relation", "as_edit", "pack"]

Pair = tuple[int, int]
Relation = tuple[str, str, str]

if TYPE_CHECKING:
    # One edit set, and many: lists of edit numbers, or an array whose rows are padded with -1.
    EditSet = Sequence[int] | NDArray[np.int64]
    EditSets = Sequence[EditSet] | NDArray[np.int64]


@dataclass(frozen=True, order=True)
class Deletion:
    """An edge goes: all copies of it and, in an undirected graph, both directions.

    In a graph of several node types the ends are numbered within their types, which ``relation`` names.
    """

    source: int
    target: int
    relation: Relation | None = None

    kind: ClassVar[str] = "delete"

    @property
    def plain(self) -> list[Any]:
        """Plain data for JSON."""
        named = [] if self.relation is None else [list(self.relation)]
        return [self.kind, self.source, self.target, *named]


@dataclass(frozen=True, order=True)
class Addition:
    """An edge comes; in an undirected graph both directions of it."""

    source: int
    target: int

    kind: ClassVar[str] = "add"

    @property
    def plain(self) -> list[Any]:
        """Plain data for JSON."""
        return [self.kind, self.source, self.target]


@dataclass(frozen=True, order=True)
class Change:
    """A feature of a node has another value."""

    node: int
    feature: int
    before: float
    after: float

    kind: ClassVar[str] = "change"

    @property
    def plain(self) -> list[Any]:
        """Plain data for JSON."""
        return [self.kind, self.node, self.feature, self.before, self.after]


Edit = Deletion | Addition | Change


def as_edit(plain: Sequence[Any]) -> Edit:
    """The edit that `plain` was made from.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(plain, (list, tuple)) or len(plain) not in (3, 4, 5):
        raise Misfit(f"{shown(plain)} is no edit")
    kind, *ends = plain[:3]
    rest = plain[3:]
    first, second = (whole(end, f"a number in the edit {shown(plain)}") for end in ends)
    if kind == Deletion.kind and len(rest) <= 1:
        relation = [text(part, "a relation") for part in items(rest[0], "a relation", 3)] if rest else None
        return Deletion(first, second, None if relation is None else (relation[0], relation[1], relation[2]))
    if kind == Addition.kind and not rest:
        return Addition(first, second)
    if kind == Change.kind and len(rest) == 2:
        before, after = (number(value, f"a value in the edit {shown(plain)}") for value in rest)
        return Change(first, second, before, after)
    raise Misfit(f"{shown(plain)} is no edit")


@dataclass(frozen=True, eq=False)
class Links:
    """Edges that edits delete or add, as a person counts them, by positions in the neighbourhood.

    Attributes:
        ends: one row of two positions for each link, source first where that matters.
        relation: the number of each link's relation; 0 in a graph of one type.
        edit: the edit that each belongs to.
    """

    ends: NDArray[np.int64]
    relation: NDArray[np.int64]
    edit: NDArray[np.int64]

    @classmethod
    def none(cls) -> Links:
        """No links."""
        return cls(np.empty((0, 2), np.int64), np.empty(0, np.int64), np.empty(0, np.int64))


@dataclass(frozen=True, eq=False)
class Changes:
    """Features that edits set: the position of the node, the feature, its values, and the edit of each."""

    node: NDArray[np.int64]
    feature: NDArray[np.int64]
    before: NDArray[np.float64]
    after: NDArray[np.float64]
    edit: NDArray[np.int64]

    @classmethod
    def none(cls) -> Changes:
        """No changes."""
        nothing, values = np.empty(0, np.int64), np.empty(0)
        return cls(nothing, nothing, values, values, nothing)


@dataclass(frozen=True, eq=False)
class Edits:
    """The edits allowed for one target, numbered from 0.

    An edit deletes the links, adds the links and makes the changes that bear its number; usually that is
    one of them, and a group of links is one edit.

    Attributes:
        graph: the whole graph.
        neighbourhood: where they are.
        deleted: the links that edits delete.
        costs: the cost of each edit.
        edit_of: for each edge column of the neighbourhood the edit that deletes it, or -1.
        num_links: the edges of the neighbourhood as a person counts them: neither copies, reverses
            nor self-loops, but including those that may not be deleted.
        added: the links that edits add.
        changes: the features that edits change.
        carries: what an added edge carries: weight, attributes.
        beyond: links of a group that lie outside the neighbourhood: they go with the group, and matter not to the
            target. Columns of the whole graph, and the edit of each.
        beyond_links: the same as a person counts them: original ids, relation, edit.
        max_edits: how many edits a set may have at most.
        keep_connected: whether a set must not take the neighbourhood apart.
    """

    graph: Graph
    neighbourhood: Neighbourhood
    deleted: Links
    costs: NDArray[np.float64]
    edit_of: NDArray[np.int64]
    num_links: int
    added: Links = field(default_factory=Links.none)
    changes: Changes = field(default_factory=Changes.none)
    carries: Mapping[str, Any] = field(default_factory=dict)
    beyond: tuple[NDArray[np.int64], NDArray[np.int64]] = (np.empty(0, np.int64), np.empty(0, np.int64))
    beyond_links: Links = field(default_factory=Links.none)
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
        """Whether some sets of allowed edits are not allowed."""
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
        inside: NDArray[np.int64] = self.neighbourhood.edges[self.columns(chosen)]
        columns, edit = self.beyond
        return np.concatenate([inside, columns[np.isin(edit, list(chosen))]]) if len(columns) else inside

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
    def new_ends(self) -> NDArray[np.int64]:
        """The edges that edits may add, in an undirected graph in both directions: positions, one row each."""
        return self.both_ways(self.added.ends)

    @cached_property
    def heard(self) -> NDArray[np.bool_]:
        """Which of `all_ends` can matter to the target at all (see `Neighbourhood.heard`)."""
        return self.neighbourhood.heard(self.all_ends)

    def both_ways(self, ends: NDArray[np.int64]) -> NDArray[np.int64]:
        """Links as directed edges, those of the other direction behind."""
        return ends if self.graph.directed else np.concatenate([ends, ends[:, ::-1]])

    def present(self, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which of `all_ends` are there, for each row of chosen edits."""
        kept = ~chosen[:, self.edit_of]
        if not len(self.added.edit):
            return kept
        new = chosen[:, np.resize(self.added.edit, len(self.new_ends))]
        return np.concatenate([kept, new], axis=1)

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

    def tidy(self, sets: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Rows of chosen edits without those that would set a feature a second time."""
        if self._exclusive is None:
            return sets
        tidied = sets.copy()
        for row in tidied:
            edits = np.flatnonzero(row & (self._exclusive >= 0))
            _, first = np.unique(self._exclusive[edits], return_index=True)
            row[np.delete(edits, first)] = False
        return tidied

    @cached_property
    def _exclusive(self) -> NDArray[np.int64] | None:
        """A number for each edit that sets a feature, the same for all that set the same one; None if none do."""
        if not len(self.changes.edit):
            return None
        slots = self.changes.node * (self.changes.feature.max() + 1) + self.changes.feature
        if len(np.unique(slots)) == len(slots):
            return None
        numbers = np.full(len(self), -1)
        numbers[self.changes.edit] = slots
        return numbers

    def _connected(self, sets: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether nodes that hung together before still do."""
        before, after = self._parts(np.full((1, 1), -1))[0], self._parts(sets)
        # Each part of before lies in one part of after: as many pairs of the two as there were parts.
        pairs = np.sort(before * (after.max() + 1) + after, axis=1)
        whole: NDArray[np.bool_] = (np.diff(pairs, axis=1) != 0).sum(axis=1) == len(np.unique(before)) - 1
        return whole

    def _parts(self, sets: NDArray[np.int64]) -> NDArray[np.int64]:
        """The number of the part that each node is in, after each set."""
        nodes = self.neighbourhood.num_nodes
        copy, column = np.nonzero(self.present(self.chosen(sets)))
        ends = self.all_ends[:, column] + copy * nodes
        size = len(sets) * nodes
        joined = coo_array((np.ones(len(copy), dtype=bool), tuple(ends)), shape=(size, size))
        labels = csgraph.connected_components(joined, directed=False)[1]
        parts: NDArray[np.int64] = labels.reshape(len(sets), nodes).astype(np.int64)
        return parts

    def samples(self) -> list[NDArray[np.int64]]:
        """Sets to try things out with: all edits, half of them, an eighth, those at the target, all others."""
        everything = np.flatnonzero(self.tidy(np.ones((1, len(self)), dtype=bool))[0])
        order = np.random.default_rng(0).permutation(everything)
        near = np.zeros(len(self), dtype=bool)
        for links in (self.deleted, self.added):
            near[links.edit[np.isin(links.ends, self.neighbourhood.centres).any(axis=1)]] = True
        near[self.changes.edit[np.isin(self.changes.node, self.neighbourhood.centres)]] = True
        parts = [order[: len(order) // 2 + 1], order[-1 - len(order) // 8 :], order[near[order]], order[~near[order]]]
        return [everything, *(np.sort(part) for part in parts if 0 < len(part) < len(order))] if len(order) else []

    def records(self, chosen: EditSet) -> tuple[Edit, ...]:
        """What these edits do, in the graph's own node numbers, in order."""
        mine = np.zeros(len(self), dtype=bool)
        mine[list(chosen)] = True
        nodes = self.neighbourhood.nodes
        if self.only_deletes and self.graph.types is None and not len(self.beyond_links.edit):
            pairs = nodes[self.deleted.ends[mine[self.deleted.edit]]].tolist()
            return tuple(sorted(Deletion(u, v) for u, v in pairs))
        found: list[Deletion] = []
        for links, ids in ((self.deleted, nodes), (self.beyond_links, None)):
            at = mine[links.edit]
            pairs = links.ends[at] if ids is None else ids[links.ends[at]]
            found += [self.graph.deletion(u, v, r) for (u, v), r in zip(pairs, links.relation[at], strict=True)]
        new = nodes[self.added.ends[mine[self.added.edit]]]
        what = self.changes
        at = np.flatnonzero(mine[what.edit])
        values = zip(nodes[what.node[at]], what.feature[at], what.before[at], what.after[at], strict=True)
        return (
            *sorted(found, key=lambda one: (one.relation or (), one.source, one.target)),
            *sorted(Addition(int(u), int(v)) for u, v in new),
            *sorted(Change(int(node), int(feature), float(old), float(value)) for node, feature, old, value in values),
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
