"""The part of a neighbourhood that a picture shows: all of it, or what lies nearest to the target and the edits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import coo_array, csgraph, csr_array

from butfor.result.surroundings import ADD, OTHER, REMOVE, Surroundings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from butfor.graph.graph import Graph
    from butfor.result.counterfactual import Counterfactual

__all__ = ["ADD", "OTHER", "PREDICTED", "REMOVE", "Excerpt", "adjacency"]

# The role of a line that is no edge: the link that is explained.
PREDICTED = 3

# To the edits and their paths to the target, what is nearest is added until there are so many nodes: more than that
# cannot be read.
READABLE = 100

# Changed features are noted beside at most NOTED nodes, in at most LINES lines each.
LINES, NOTED = 3, 6


@dataclass(frozen=True, eq=False)
class Excerpt:
    """The part of a neighbourhood that is drawn. Except in ``nodes``, a node is given by its position in ``nodes``.

    Attributes:
        nodes: the numbers of the nodes in the graph.
        targets: the nodes that are explained: one, the two ends of a link, or none.
        centre: the node that the others are drawn around.
        pairs: the two nodes that each line joins, without duplicates, reverse directions and self-loops.
        role: the role of each line.
        relation: the number of each line's relation; 0 in a graph of one type.
        arrows: which lines have a direction.
        leading: which lines are on a shortest path from an edit to a target.
        loops: the nodes with a self-loop.
        changed: the nodes with a changed feature.
        notes: for the first few nodes with changed features, what has changed, line by line.
        all_nodes: how many nodes the neighbourhood has.
        all_edges: how many edges it has.
        is_cut: whether there are more nodes than can be shown.
    """

    nodes: NDArray[np.int64]
    targets: NDArray[np.int64]
    centre: int
    pairs: NDArray[np.int64]
    role: NDArray[np.int64]
    relation: NDArray[np.int64]
    arrows: NDArray[np.bool_]
    leading: NDArray[np.bool_]
    loops: NDArray[np.int64]
    changed: NDArray[np.int64]
    notes: dict[int, list[str]]
    all_nodes: int
    all_edges: int
    is_cut: bool

    @classmethod
    def of(cls, result: Counterfactual, graph: Graph, max_nodes: int) -> Excerpt:
        """Choose at most ``max_nodes`` nodes.

        Raises:
            InputError: the graph is not the one the result is about.
        """
        around = Surroundings.of(result, graph)
        size = around.near.num_nodes
        is_loop = around.pairs[:, 0] == around.pairs[:, 1]
        pairs, role, relation = around.pairs[~is_loop], around.role[~is_loop], around.relation[~is_loop]
        num_edges = int((role != ADD).sum())
        if len(around.targets) == 2:
            pairs = np.concatenate([pairs, around.targets[None]])
            role, relation = np.append(role, PREDICTED), np.append(relation, 0)

        shown, parent = _chosen(size, pairs, around.targets, around.ends, max_nodes)
        position = np.full(size, -1)
        position[shown] = np.arange(len(shown))
        inside = (position[pairs] >= 0).all(axis=1)
        leading = (parent[pairs[inside]] == pairs[inside][:, ::-1]).any(axis=1)
        pairs, role, relation = position[pairs[inside]], role[inside], relation[inside]
        marked, loops, changed = (
            some[some >= 0]
            for some in (position[around.targets], position[around.pairs[is_loop][:, 0]], position[around.changed])
        )
        return cls(
            nodes=around.near.nodes[shown],
            targets=marked,
            centre=int(marked[0]) if len(marked) else _most_central(len(shown), pairs),
            pairs=pairs,
            role=role,
            relation=relation,
            # A line has two directions if its relation has, except for the link that is explained.
            arrows=np.where(role == PREDICTED, result.directed, graph.reverse[relation] != relation),
            leading=leading,
            loops=np.unique(loops),
            changed=np.unique(changed),
            notes=_notes(result, position[around.changed]),
            all_nodes=max(size, result.nodes),
            all_edges=max(num_edges, result.edges),
            is_cut=len(shown) < size,
        )

    @property
    def removed(self) -> NDArray[np.bool_]:
        """Which of the lines are removed edges."""
        return np.equal(self.role, REMOVE)

    @property
    def added(self) -> NDArray[np.bool_]:
        """Which of the lines are added edges."""
        return np.equal(self.role, ADD)

    @property
    def highlighted(self) -> NDArray[np.bool_]:
        """Which of the lines the reader must see: edits, and the link that is explained."""
        return np.not_equal(self.role, OTHER)

    @property
    def ends(self) -> NDArray[np.int64]:
        """The nodes at removed and added edges, and those with changed features."""
        return np.unique([*self.pairs[self.removed | self.added].ravel(), *self.changed]).astype(np.int64)


def adjacency(num_nodes: int, pairs: NDArray[np.int64]) -> csr_array:
    """The adjacency matrix of these pairs of nodes, in both directions."""
    both = np.concatenate([pairs, pairs[:, ::-1]])
    return coo_array((np.ones(len(both)), both.T), shape=(num_nodes, num_nodes)).tocsr()


def _chosen(
    num_nodes: int, pairs: NDArray[np.int64], targets: NDArray[np.int64], ends: NDArray[np.int64], count: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """At most ``count`` nodes, in order: the ends of edits, paths from there to the targets, and what is nearest.

    What is nearest fills the picture up to `READABLE` nodes. If the ends and paths alone are too many, only the nearest
    nodes. In a whole graph, the nodes nearest the ends.
    Returned with them: for each node on a path to a target the next one, -1 for all others.
    """
    joined = adjacency(num_nodes, pairs)
    roots = targets
    if not len(roots):
        roots = ends[:1] if len(ends) else np.array([np.diff(joined.indptr).argmax()])
    hops, parent, _ = csgraph.dijkstra(joined, indices=roots, unweighted=True, return_predecessors=True, min_only=True)
    next_one = np.full(num_nodes, -1)
    needed = np.zeros(num_nodes, dtype=bool)
    for node in ends:
        while node >= 0 and not needed[node]:
            needed[node], next_one[node] = True, max(parent[node], -1)
            node = parent[node]
    if not len(targets):
        next_one[:] = -1
    needed[roots] = True
    count = min(count, max(READABLE, int(needed.sum())))
    if num_nodes <= count:
        return np.arange(num_nodes), next_one
    to_end = np.zeros(num_nodes)
    if len(ends):
        to_end = csgraph.dijkstra(joined, indices=ends, unweighted=True, min_only=True)
    first = needed if needed.sum() <= count else np.zeros(num_nodes, dtype=bool)
    near = [to_end, hops] if len(targets) else [hops, to_end]
    order = np.lexsort([np.arange(num_nodes), *near, ~first])
    return np.sort(order[:count]), next_one


def _most_central(num_nodes: int, pairs: NDArray[np.int64]) -> int:
    """The centre of the largest connected component: the node with the smallest distance to the farthest other."""
    hops = csgraph.shortest_path(adjacency(num_nodes, pairs), unweighted=True)
    reached = np.isfinite(hops)
    far = np.where(reached, hops, 0)
    return int(np.lexsort([np.arange(num_nodes), far.sum(axis=1), far.max(axis=1), -reached.sum(axis=1)])[0])


def _notes(result: Counterfactual, positions: NDArray[np.int64]) -> dict[int, list[str]]:
    notes: dict[int, list[str]] = {}
    for change, node in zip(result.changes, positions.tolist(), strict=True):
        if node >= 0:
            notes.setdefault(node, []).append(f"feature {change.feature}: {change.before:g} → {change.after:g}")
    for node in list(notes)[NOTED:]:
        del notes[node]
    for node, lines in notes.items():
        if len(lines) > LINES:
            notes[node] = [*lines[: LINES - 1], f"and {len(lines) - LINES + 1} more"]
    return notes
