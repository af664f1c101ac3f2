"""What surrounds the target of a result: its neighbourhood in the graph, with the edits marked in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

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

__all__ = ["ADD", "OTHER", "REMOVE", "Surroundings"]

# The role of an edge: it stays, is removed or is added.
OTHER, REMOVE, ADD = range(3)


@dataclass(frozen=True, eq=False)
class Surroundings:
    """A neighbourhood with the edits of a result. A node is given by its position in ``near.nodes``.

    Attributes:
        near: the neighbourhood that was searched, except for nodes that only edges which were not added would reach.
        targets: the nodes that are explained: one, the two ends of a link, or none.
        ends: the nodes that edits touch.
        changed: the node of each changed feature, in the order of ``result.changes``.
        pairs: the two nodes of each edge, self-loops and added edges included, without duplicates and without the
            reverse direction of an edge that has both.
        relation: the number of each edge's relation; 0 in a graph of one type.
        role: the role of each edge.
    """

    near: Neighbourhood
    targets: NDArray[np.int64]
    ends: NDArray[np.int64]
    changed: NDArray[np.int64]
    pairs: NDArray[np.int64]
    relation: NDArray[np.int64]
    role: NDArray[np.int64]

    @classmethod
    def of(cls, result: Counterfactual, graph: Graph) -> Surroundings:
        """Find them in the graph.

        Raises:
            InputError: the graph is not the one the result is about.
        """
        targets = _targets(result, graph)
        gone, new = _edit_keys(result, graph)
        changed = np.array([_node(change, graph) for change in result.changes], dtype=np.int64)
        touched = np.unique([*(node for key in (*gone, *new) for node in key[1:]), *changed]).astype(np.int64)
        near = _neighbourhood(result, graph, targets, touched, new)
        size = near.num_nodes
        first, second, relation = graph.edges_of(near)
        # An edge as one number: sorting these is much quicker than sorting rows.
        keys = np.unique(((0 if relation is None else relation) * size + first) * size + second)
        removed, added = _edge_numbers(gone, near), _edge_numbers(new, near)
        role = np.repeat([OTHER, ADD], [len(keys), len(added)])
        role[: len(keys)][np.isin(keys, removed)] = REMOVE
        heads, tails = np.divmod(np.concatenate([keys, added]), size)
        return cls(
            near=near,
            targets=np.searchsorted(near.nodes, np.array(targets, np.int64)),
            ends=np.searchsorted(near.nodes, touched),
            changed=np.searchsorted(near.nodes, changed),
            pairs=np.stack([heads % size, tails], axis=1),
            relation=heads // size,
            role=role,
        )


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
