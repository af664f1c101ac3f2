"""What of a neighbourhood a picture shows: all of it, or what lies nearest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import coo_array, csgraph, csr_array

from butfor.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from butfor.counterfactual import Counterfactual
    from butfor.graph import Flow, Neighbourhood
    from butfor.report.scene import Scene

__all__ = ["View", "adjacency"]


@dataclass(frozen=True, eq=False)
class View:
    """What of a neighbourhood is drawn.

    Attributes:
        nodes: original ids.
        centre: the target's position among them.
        links: positions of the two ends of each edge, without copies, reverses and self-loops.
        removed: which of the links are removed.
        loops: positions of the nodes with a self-loop.
        all_nodes: how many nodes the neighbourhood has.
        all_links: how many edges it has.
    """

    nodes: NDArray[np.int64]
    centre: int
    links: NDArray[np.int64]
    removed: NDArray[np.bool_]
    loops: NDArray[np.int64]
    all_nodes: int
    all_links: int

    @classmethod
    def of(cls, result: Counterfactual, scene: Scene, max_nodes: int) -> View:
        """Choose at most ``max_nodes`` nodes.

        Raises:
            InputError: the graph is not the one the result is about.
        """
        near = _neighbourhood(result, scene)
        centre = int(near.centres[0])
        links = near.edge_index.T if result.directed else np.sort(near.edge_index.T, axis=1)
        loops = np.unique(links[links[:, 0] == links[:, 1], 0])
        # A pair as one number: sorting these is much quicker than sorting rows.
        keys = np.unique(links[links[:, 0] != links[:, 1]] @ [near.num_nodes, 1])
        links = np.stack(np.divmod(keys, near.num_nodes), axis=1)
        pairs = np.searchsorted(near.nodes, np.array(result.removed_edges, dtype=np.int64).reshape(-1, 2))
        pairs = pairs if result.directed else np.sort(pairs, axis=1)
        removed = np.isin(keys, pairs @ [near.num_nodes, 1])

        shown = np.sort(_nearest(near.num_nodes, links, centre, np.unique(pairs), max_nodes))
        position = np.full(near.num_nodes, -1)
        position[shown] = np.arange(len(shown))
        inside = (position[links] >= 0).all(axis=1)
        return cls(
            nodes=near.nodes[shown],
            centre=int(position[centre]),
            links=position[links[inside]],
            removed=removed[inside],
            loops=position[loops][position[loops] >= 0],
            all_nodes=near.num_nodes,
            all_links=len(links),
        )

    @property
    def ends(self) -> NDArray[np.int64]:
        """Positions of the nodes at removed edges."""
        return np.unique(self.links[self.removed])


def adjacency(num_nodes: int, links: NDArray[np.int64]) -> csr_array:
    """Both directions of every link."""
    both = np.concatenate([links, links[:, ::-1]])
    return coo_array((np.ones(len(both)), both.T), shape=(num_nodes, num_nodes)).tocsr()


def _neighbourhood(result: Counterfactual, scene: Scene) -> Neighbourhood:
    """The neighbourhood that was searched, found again by its size; failing that, the whole graph."""
    graph = scene.graph
    graph.check_node(result.target)
    for u, v in result.removed_edges:
        if not (max(u, v) < graph.num_nodes and graph.has_edge(u, v)):
            raise InputError(f"the removed edge {u}–{v} is not in this graph; give the graph that was explained")
    flows: tuple[Flow, ...] = ("source_to_target", "target_to_source")
    for flow in flows if result.nodes < graph.num_nodes else ():
        hops = 0
        near = graph.neighbourhood(result.target, hops, flow)
        while near.num_nodes < result.nodes and hops <= near.distance.max():
            hops += 1
            near = graph.neighbourhood(result.target, hops, flow)
        if near.num_nodes == result.nodes and np.isin(result.removed_edges, near.nodes).all():
            return near
    return graph.neighbourhood(result.target, None)


def _nearest(
    num_nodes: int, links: NDArray[np.int64], centre: int, ends: NDArray[np.int64], count: int
) -> NDArray[np.int64]:
    """The ends of removed edges, what joins them to the centre, and the nodes nearest the centre.

    Where the ends alone are too many, the nearest of them.
    """
    if num_nodes <= count:
        return np.arange(num_nodes)
    joined = adjacency(num_nodes, links)
    hops, parent = csgraph.dijkstra(joined, indices=centre, unweighted=True, return_predecessors=True)
    to_end = np.zeros(num_nodes)
    if len(ends):
        to_end = csgraph.dijkstra(joined, indices=ends, unweighted=True, min_only=True)
    needed = np.zeros(num_nodes, dtype=bool)
    for node in ends:
        while node >= 0 and not needed[node]:
            needed[node] = True
            node = parent[node]
    needed[centre] = True
    first = needed if needed.sum() <= count else np.zeros(num_nodes, dtype=bool)
    order = np.lexsort([np.arange(num_nodes), to_end, hops, ~first])
    return order[:count]
