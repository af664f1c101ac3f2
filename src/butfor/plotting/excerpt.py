"""The part of a neighbourhood that a picture shows: all of it, or what lies nearest to the target and the edits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import coo_array, csgraph, csr_array

from butfor.edits.addition import Addition
from butfor.edits.deletion import Deletion
from butfor.errors import InputError
from butfor.problem.target import Pair, target_nodes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from butfor.edits.change import Change
    from butfor.graph.csr import Flow
    from butfor.graph.edge_keys import EdgeKey
    from butfor.graph.graph import Graph
    from butfor.graph.neighbourhood import Neighbourhood
    from butfor.result.counterfactual import Counterfactual

__all__ = ["ADD", "OTHER", "PREDICTED", "REMOVE", "Excerpt", "adjacency"]

# The role of a line between two nodes: an edge that stays, is removed or is added, or the link that is explained.
OTHER, REMOVE, ADD, PREDICTED = range(4)

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
        loops: the nodes with a self-loop.
        changed: the nodes with a changed feature.
        notes: for the first few nodes with changed features, what has changed, line by line.
        all_nodes: how many nodes the neighbourhood has.
        all_edges: how many edges it has.
    """

    nodes: NDArray[np.int64]
    targets: NDArray[np.int64]
    centre: int
    pairs: NDArray[np.int64]
    role: NDArray[np.int64]
    relation: NDArray[np.int64]
    arrows: NDArray[np.bool_]
    loops: NDArray[np.int64]
    changed: NDArray[np.int64]
    notes: dict[int, list[str]]
    all_nodes: int
    all_edges: int

    @classmethod
    def of(cls, result: Counterfactual, graph: Graph, max_nodes: int) -> Excerpt:
        """Choose at most ``max_nodes`` nodes.

        Raises:
            InputError: the graph is not the one the result is about.
        """
        targets = _targets(result, graph)
        gone, new = _edit_keys(result, graph)
        changes = [_node(change, graph) for change in result.changes]
        touched = np.unique([*(node for key in (*gone, *new) for node in key[1:]), *changes]).astype(np.int64)
        near = _neighbourhood(result, graph, targets, touched, new)
        size = near.num_nodes

        first, second, relation = graph.edges_of(near)
        loops = np.unique(first[first == second])
        # An edge as one number: sorting these is much quicker than sorting rows.
        kind = 0 if relation is None else relation
        keys = np.unique(((kind * size + first) * size + second)[first != second])
        added, asked, removed = (
            _edge_numbers(some, near) for some in (new, [(0, *targets)] if len(targets) == 2 else [], gone)
        )
        role = np.repeat([OTHER, ADD, PREDICTED], [len(keys), len(added), len(asked)])
        role[: len(keys)][np.isin(keys, removed)] = REMOVE
        heads, tails = np.divmod(np.concatenate([keys, added, asked]), size)
        pairs, relation = np.stack([heads % size, tails], axis=1), heads // size

        ends, centres = np.searchsorted(near.nodes, touched), np.searchsorted(near.nodes, np.array(targets, np.int64))
        shown = np.sort(_nearest(size, pairs, centres, ends, max_nodes))
        position = np.full(size, -1)
        position[shown] = np.arange(len(shown))
        inside = (position[pairs] >= 0).all(axis=1)
        pairs, relation = position[pairs[inside]], relation[inside]
        at = {int(near.nodes[node]): i for i, node in enumerate(shown)}
        marked = position[centres][position[centres] >= 0]
        return cls(
            nodes=near.nodes[shown],
            targets=marked,
            centre=int(marked[0]) if len(marked) else _most_central(len(shown), pairs),
            pairs=pairs,
            role=role[inside],
            relation=relation,
            # A line has two directions if its relation has, except for the link that is explained.
            arrows=np.where(role[inside] == PREDICTED, result.directed, graph.reverse[relation] != relation),
            loops=position[loops][position[loops] >= 0],
            changed=np.unique([at[node] for node in changes if node in at]).astype(np.int64),
            notes=_notes(result, changes, at),
            all_nodes=max(size, result.nodes),
            all_edges=max(len(keys), result.edges),
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


def _targets(result: Counterfactual, graph: Graph) -> tuple[int, ...]:
    if isinstance(result.target, tuple):
        return target_nodes(Pair(*result.target), graph, "link", result.node_type)
    if result.task == "graph":
        return ()
    return target_nodes(result.target, graph, "node", result.node_type)


def _node(change: Change, graph: Graph) -> int:
    """The number in the graph of the node that a change is about."""
    if graph.types is None or change.node_type is None:
        return graph.check_node(change.node)
    return graph.types.number(change.node_type, change.node)


def _edit_keys(result: Counterfactual, graph: Graph) -> tuple[list[EdgeKey], list[EdgeKey]]:
    """The removed and the added edges as the graph numbers them."""
    gone: list[EdgeKey] = []
    new: list[EdgeKey] = []
    for edit in result.edits:
        if not isinstance(edit, (Deletion, Addition)):
            continue
        pair = (edit.source, edit.target)
        try:
            key = graph.edge_key(edit.edge)
            known = graph.has_edge(key)
        except InputError:
            key, known = (0, *pair), False
            if isinstance(edit, Addition):
                raise
        if known == isinstance(edit, Addition):
            what = "added edge {}–{} is in this graph already" if known else "removed edge {}–{} is not in this graph"
            raise InputError(f"the {what.format(*pair)}; give the graph that was explained")
        (new if isinstance(edit, Addition) else gone).append(key)
    return gone, new


def _edge_numbers(keys: list[EdgeKey], near: Neighbourhood) -> NDArray[np.int64]:
    """Edges as numbers that combine their relation and the positions of their nodes in the neighbourhood."""
    rows = np.array(keys, dtype=np.int64).reshape(-1, 3)
    first, second = np.searchsorted(near.nodes, rows[:, 1:]).T
    numbers: NDArray[np.int64] = (rows[:, 0] * near.num_nodes + first) * near.num_nodes + second
    return numbers


def _neighbourhood(
    result: Counterfactual, graph: Graph, targets: tuple[int, ...], touched: NDArray[np.int64], new: list[EdgeKey]
) -> Neighbourhood:
    """The neighbourhood that was searched, except for nodes that only edges which were not added would reach."""
    near: Neighbourhood | None = None
    if targets and result.hops is not None:
        near = graph.neighbourhood(targets, result.hops, result.flow or "source_to_target", new)
    elif targets and result.nodes < graph.num_nodes:
        near = _neighbourhood_by_size(result, graph, targets, touched, new)
    return near if near is not None and _contains(near, touched) else graph.neighbourhood(targets, None)


def _neighbourhood_by_size(
    result: Counterfactual, graph: Graph, targets: tuple[int, ...], touched: NDArray[np.int64], new: list[EdgeKey]
) -> Neighbourhood | None:
    """For a result of schema 2, which does not say how far its neighbourhood reaches: the one with as many nodes.

    If edges could be added, that number does not help, because it includes nodes that only edges which were not added
    would reach. Then the smallest neighbourhood that contains the edits is shown, which is a part of the searched one.
    """
    flows: tuple[Flow, ...] = ("source_to_target", "target_to_source")
    part: Neighbourhood | None = None
    for flow in flows:
        for hops in range(graph.num_nodes + 1):
            near = graph.neighbourhood(targets, hops, flow, new)
            if near.num_nodes == result.nodes and _contains(near, touched):
                return near
            # A search reaches 2 hops at least.
            if part is None and hops >= 2 and near.num_nodes <= result.nodes and _contains(near, touched):
                part = near
            if near.num_nodes >= result.nodes or near.distance.max() < hops:
                break
    return part if result.space_id else None


def _contains(near: Neighbourhood, nodes: NDArray[np.int64]) -> bool:
    return bool(np.isin(nodes, near.nodes).all())


def _nearest(
    num_nodes: int, pairs: NDArray[np.int64], centres: NDArray[np.int64], ends: NDArray[np.int64], count: int
) -> NDArray[np.int64]:
    """At most ``count`` nodes: the ends of edits, the paths from there to the targets, and what is nearest the targets.

    If the ends and paths alone are too many, only the nearest nodes. In a whole graph, the nodes nearest the ends.
    """
    if num_nodes <= count:
        return np.arange(num_nodes)
    joined = adjacency(num_nodes, pairs)
    roots = centres
    if not len(roots):
        roots = ends[:1] if len(ends) else np.array([np.diff(joined.indptr).argmax()])
    hops, parent, _ = csgraph.dijkstra(joined, indices=roots, unweighted=True, return_predecessors=True, min_only=True)
    to_end = np.zeros(num_nodes)
    if len(ends):
        to_end = csgraph.dijkstra(joined, indices=ends, unweighted=True, min_only=True)
    needed = np.zeros(num_nodes, dtype=bool)
    for node in ends:
        while node >= 0 and not needed[node]:
            needed[node] = True
            node = parent[node]
    needed[roots] = True
    first = needed if needed.sum() <= count else np.zeros(num_nodes, dtype=bool)
    near = [to_end, hops] if len(centres) else [hops, to_end]
    order = np.lexsort([np.arange(num_nodes), *near, ~first])
    return order[:count]


def _most_central(num_nodes: int, pairs: NDArray[np.int64]) -> int:
    """The centre of the largest connected component: the node with the smallest distance to the farthest other."""
    hops = csgraph.shortest_path(adjacency(num_nodes, pairs), unweighted=True)
    reached = np.isfinite(hops)
    far = np.where(reached, hops, 0)
    return int(np.lexsort([np.arange(num_nodes), far.sum(axis=1), far.max(axis=1), -reached.sum(axis=1)])[0])


def _notes(result: Counterfactual, changes: list[int], at: dict[int, int]) -> dict[int, list[str]]:
    notes: dict[int, list[str]] = {}
    for change, node in zip(result.changes, changes, strict=True):
        if node in at:
            words = f"feature {change.feature}: {change.before:g} → {change.after:g}"
            notes.setdefault(at[node], []).append(words)
    for node in list(notes)[NOTED:]:
        del notes[node]
    for node, lines in notes.items():
        if len(lines) > LINES:
            notes[node] = [*lines[: LINES - 1], f"and {len(lines) - LINES + 1} more"]
    return notes
