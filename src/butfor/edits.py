"""Edits: what may be changed about a graph, and at what cost."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from butfor.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from butfor.graph import Graph, Neighbourhood

__all__ = ["EditSpace", "Edits", "pack"]

Pair = tuple[int, int]

if TYPE_CHECKING:
    # One edit set, and many: lists of edit numbers, or an array whose rows are padded with -1.
    EditSet = Sequence[int] | NDArray[np.int64]
    EditSets = Sequence[EditSet] | NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Edits:
    """The edits allowed for one target, numbered from 0: here, deletions of edges.

    Edit ``i`` deletes every edge column between the nodes ``ends[i]``: all copies of the edge and, in
    an undirected graph, both directions.

    Attributes:
        neighbourhood: where they are.
        ends: the original ids of the two nodes of each edit, source first in a directed graph.
        costs: the cost of each edit.
        edit_of: for each edge column of the neighbourhood the edit that deletes it, or -1.
        num_links: the edges of the neighbourhood as a person counts them: neither copies, reverses
            nor self-loops, but including those that may not be deleted.
    """

    neighbourhood: Neighbourhood
    ends: NDArray[np.int64]
    costs: NDArray[np.float64]
    edit_of: NDArray[np.int64]
    num_links: int

    def __len__(self) -> int:
        return len(self.ends)

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

    def kept(self, sets: NDArray[np.int64]) -> NDArray[np.bool_]:
        """For each packed edit set, which edge columns of the neighbourhood stay."""
        # One slot more than there are edits takes both the padding (-1) and the columns without an edit.
        removed = np.zeros((len(sets), len(self) + 1), dtype=bool)
        np.put_along_axis(removed, sets % (len(self) + 1), True, axis=1)
        removed[:, -1] = False
        return ~removed[:, self.edit_of]

    def pairs(self, chosen: EditSet) -> tuple[Pair, ...]:
        """The edges that these edits delete, as pairs of the graph's own node ids, in order."""
        return tuple(sorted((int(u), int(v)) for u, v in self.ends[list(chosen)]))

    def cost(self, chosen: EditSet) -> float:
        """What these edits cost together."""
        return float(self.costs[list(chosen)].sum())


@dataclass(frozen=True)
class EditSpace:
    """Which edges may be deleted, and what each deletion costs.

    Pairs are node ids of the graph; in an undirected graph their order does not matter.

    Attributes:
        protected: edges that stay.
        allowed: if given, the only edges that may go.
        costs: what a deletion costs, 1 where nothing is said.
    """

    protected: Collection[Pair] = ()
    allowed: Collection[Pair] | None = None
    costs: Mapping[Pair, float] = field(default_factory=dict)

    @cached_property
    def _rules(self) -> dict[bool, tuple[set[Pair], set[Pair] | None, dict[Pair, float]]]:
        """The rules by pairs written one way, for undirected (False) and directed graphs (True)."""
        return {
            directed: (
                set(_ordered(self.protected, directed)),
                None if self.allowed is None else set(_ordered(self.allowed, directed)),
                dict(zip(_ordered(self.costs, directed), self.costs.values(), strict=True)),
            )
            for directed in (False, True)
        }

    def fingerprint(self, directed: bool) -> str:
        """A short hash of the rules, however they are written down; empty where there are none."""
        if not self.protected and self.allowed is None and not self.costs:
            return ""
        protected, allowed, priced = self._rules[directed]
        rules = repr((sorted(protected), None if allowed is None else sorted(allowed), sorted(priced.items())))
        return hashlib.sha256(rules.encode()).hexdigest()[:16]

    def check(self, graph: Graph) -> None:
        """Refuse what cannot be meant.

        Raises:
            InputError: a pair is no edge of the graph, or a cost is not a positive number.
        """
        for role, pairs in (
            ("protected", self.protected),
            ("allowed", self.allowed or ()),
            ("costs", self.costs),
        ):
            for pair in pairs:
                if not graph.has_edge(*pair):
                    raise InputError(f"{role} names the edge {pair[0]}–{pair[1]}, which is not in this graph")
        for pair, cost in self.costs.items():
            if not (np.isfinite(cost) and cost > 0):
                raise InputError(f"the cost of edge {pair[0]}–{pair[1]} is {cost}; give a positive number")

    def edits(self, neighbourhood: Neighbourhood, directed: bool) -> Edits:
        """The allowed edits of one neighbourhood, in the order of their end nodes' ids."""
        first, second = neighbourhood.edge_index if directed else np.sort(neighbourhood.edge_index, axis=0)
        loops = first == second
        # A pair of positions as one number: sorting these is much quicker than sorting rows.
        keys, link_of = np.unique((first * len(neighbourhood.nodes) + second)[~loops], return_inverse=True)
        links = neighbourhood.nodes[np.stack(np.divmod(keys, len(neighbourhood.nodes)), axis=1)]
        may_go = np.ones(len(links), dtype=bool)
        costs = np.ones(len(links))
        if self.protected or self.allowed is not None or self.costs:
            protected, allowed, priced = self._rules[directed]
            for number, (u, v) in enumerate(links.tolist()):
                may_go[number] = (u, v) not in protected and (allowed is None or (u, v) in allowed)
                costs[number] = priced.get((u, v), 1.0)
        renumbered = np.where(may_go, np.cumsum(may_go) - 1, -1)
        edit_of = np.full(len(first), -1, dtype=np.int64)
        edit_of[~loops] = renumbered[link_of]
        return Edits(neighbourhood, links[may_go], costs[may_go], edit_of, len(links))


def _ordered(pairs: Collection[Pair], directed: bool) -> list[Pair]:
    return list(pairs) if directed else [(min(pair), max(pair)) for pair in pairs]


def pack(sets: EditSets) -> NDArray[np.int64]:
    """Edit sets as the rows of one array, padded with -1."""
    if isinstance(sets, np.ndarray) and sets.ndim == 2:
        return sets.astype(np.int64, copy=False)
    width = max((len(chosen) for chosen in sets), default=0)
    packed = np.full((len(sets), width), -1, dtype=np.int64)
    for row, chosen in zip(packed, sets, strict=True):
        row[: len(chosen)] = chosen if isinstance(chosen, np.ndarray) else list(chosen)
    return packed
