"""Positions for the nodes of a picture: distances on paper follow distances in the graph.

Stress majorisation (Gansner, Koren and North, Graph Drawing 2004) on shortest-path distances, starting from rings
around the centre. No random numbers are drawn, so the same graph gives the same picture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csgraph
from scipy.spatial.distance import cdist

from butfor.plotting.excerpt import adjacency

if TYPE_CHECKING:
    from numpy.typing import NDArray


__all__ = ["fit", "majorise", "place"]

# Majorisation stops when no node moves by more than STILL edge lengths, and after ROUNDS rounds at the latest.
STILL = 0.003
ROUNDS = 300

# Distances from the centre have a higher weight, so that it stands out: by a factor of 1 + nodes / FOCUS.
FOCUS = 6
# The distances between highlighted nodes are multiplied by this.
ROOM = 1.4
# Distances are cut off at this many times the square root of the number of nodes.
FAR = 1.6
# Each ring is turned against the one before it by this angle in radians, so that a chain does not start as a line.
TWIST = 0.2

# To fill its box, a drawing may be stretched along one axis by at most this factor.
STRETCH = 1.5

# The most rounds of pushing nodes apart that are too close.
PUSHES = 150


def place(num_nodes: int, edges: NDArray[np.int64], centre: int, highlighted: NDArray[np.int64]) -> NDArray[np.float64]:
    """A position for each node, in units of about one edge.

    Args:
        num_nodes: how many nodes there are.
        edges: one row of two nodes for each edge; direction, duplicates and self-loops do not matter.
        centre: the node that the rings are drawn around.
        highlighted: nodes that get more space between them.
    """
    if num_nodes == 1:
        return np.zeros((1, 2))
    _, component = csgraph.connected_components(adjacency(num_nodes, edges), directed=False)
    # Large distances are cut off: a long chain is rolled up instead of being drawn as a hairline.
    distance = np.minimum(_distances(num_nodes, edges, component), max(4, FAR * np.sqrt(num_nodes)))
    weight = 1 / np.maximum(distance, 1) ** 2
    among = np.ix_(highlighted, highlighted)
    distance[among] *= ROOM
    weight[among] *= 1 + num_nodes / FOCUS / max(1, len(highlighted))
    weight[centre] *= 1 + num_nodes / FOCUS
    weight[:, centre] *= 1 + num_nodes / FOCUS
    return majorise(_rings(num_nodes, edges, component, centre), distance, weight)


def fit(
    points: NDArray[np.float64],
    apart: NDArray[np.float64],
    size: tuple[float, float],
    *,
    margin: NDArray[np.float64],
    free: NDArray[np.int64],
    longest: float,
) -> NDArray[np.float64]:
    """Turn, scale and shift a layout into a box of ``size`` with its corner at the origin.

    Args:
        points: the positions that `place` returned.
        apart: for each pair of nodes, the smallest distance between them; kept where there is enough space.
        size: width and height of the box.
        margin: for each node, how far it stays away from the sides of the box and from the ``free`` edges.
        free: one row of two nodes for each edge that should not run beneath another node.
        longest: the largest length of one unit of ``points``, so that small graphs stay small.
    """
    box = np.array(size)
    centred = points - points.mean(axis=0)
    # The long axis of the drawing lies along the longer side of the box. Signs are fixed, so that rounding errors
    # cannot mirror the picture.
    _, _, axes = np.linalg.svd(centred, full_matrices=False) if len(points) > 1 else (None, None, np.eye(2))
    axes = axes * np.where(axes[np.arange(2), np.abs(axes).argmax(axis=1)] < 0, -1, 1)[:, None]
    turned = centred @ (axes if box[0] >= box[1] else axes[::-1]).T
    turned -= (turned.max(axis=0) + turned.min(axis=0)) / 2
    room = box - 2 * margin.max()
    scale = np.minimum(room / np.maximum(np.ptp(turned, axis=0), 1e-9), longest)
    placed: NDArray[np.float64] = turned * np.minimum(scale, STRETCH * scale.min()) + box / 2
    # Move each node a little in a direction of its own: on a perfect circle or line, pushes would cancel out.
    turn = 2.4 * np.arange(len(placed))
    placed += np.stack([np.cos(turn), np.sin(turn)], axis=1) * (len(placed) > 2)
    low, high = margin[:, None], box - margin[:, None]
    for _ in range(PUSHES):
        push = _from_nodes(placed, apart) + _from_edges(placed, free, margin)
        if np.abs(push).max() < 0.1:
            break
        placed = np.clip(placed + push, low, high)
    return placed


def _distances(num_nodes: int, edges: NDArray[np.int64], component: NDArray[np.int32]) -> NDArray[np.float64]:
    """Hops between all pairs of nodes; components that no path joins get a distance that puts them side by side."""
    hops: NDArray[np.float64] = csgraph.shortest_path(adjacency(num_nodes, edges), unweighted=True)
    joined = np.isfinite(hops)
    reach = np.where(joined, hops, 0).max(axis=1)
    radius = np.full(component.max() + 1, np.inf)
    np.minimum.at(radius, component, reach)
    own = radius[component]
    return np.where(joined, hops, own[:, None] + own[None, :] + 1)


def _rings(num_nodes: int, edges: NDArray[np.int64], component: NDArray[np.int32], centre: int) -> NDArray[np.float64]:
    """Start positions: each node on the ring of its distance in hops, in the sector of the node it was reached from."""
    # Other components are tied to the centre by an extra edge, so that one tree holds everything.
    first = np.unique(component, return_index=True)[1]
    extra = np.array([(centre, node) for node in first if component[node] != component[centre]]).reshape(-1, 2)
    tied = adjacency(num_nodes, np.concatenate([edges, extra.astype(np.int64)]))
    order, parent = csgraph.breadth_first_order(tied, centre, directed=False)
    leaves = np.zeros(num_nodes)
    for node in order[::-1]:
        leaves[node] = max(leaves[node], 1)
        if node != centre:
            leaves[parent[node]] += leaves[node]
    ring, start = np.zeros(num_nodes), np.zeros(num_nodes)
    width, used = np.full(num_nodes, 2 * np.pi), np.zeros(num_nodes)
    for node in order[1:]:
        above = parent[node]
        ring[node] = ring[above] + 1
        width[node] = width[above] * leaves[node] / leaves[above]
        start[node] = start[above] + used[above]
        used[above] += width[node]
    angle = start + width / 2 + TWIST * ring
    return np.stack([ring * np.cos(angle), ring * np.sin(angle)], axis=1)


def majorise(
    points: NDArray[np.float64], distance: NDArray[np.float64], weight: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Minimise the stress, the sum of ``w_ij (|p_i - p_j| - d_ij)^2``, until the nodes stop moving."""
    weight = weight * ~np.eye(len(points), dtype=bool)
    mean = np.full_like(weight, 1 / len(points))
    inverse = np.linalg.inv(np.diag(weight.sum(axis=1)) - weight + mean) - mean
    for _ in range(ROUNDS):
        pull = weight * distance / np.maximum(cdist(points, points), 1e-9)
        moved = inverse @ (pull.sum(axis=1)[:, None] * points - pull @ points)
        done = np.abs(moved - points).max() < STILL
        points = moved
        if done:
            break
    return points


def _from_nodes(points: NDArray[np.float64], apart: NDArray[np.float64]) -> NDArray[np.float64]:
    """Steps straight away from the nodes that are closer than they should be."""
    between = points[:, None] - points[None, :]
    gap = np.maximum(np.linalg.norm(between, axis=2), 1e-9)
    lacking = np.maximum(apart - gap, 0)
    np.fill_diagonal(lacking, 0)
    push = 0.4 * (between * (lacking / gap)[:, :, None]).sum(axis=1)
    # A node in a crowd is pushed from all sides at once, so no step may be longer than the largest missing distance.
    step = np.maximum(np.linalg.norm(push, axis=1), 1e-9)
    return np.asarray(push * np.minimum(1, lacking.max(axis=1) / step)[:, None])


def _from_edges(
    points: NDArray[np.float64], edges: NDArray[np.int64], clear: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Steps sideways, away from the edges that run beneath a node."""
    start, along = points[edges[:, 0]], points[edges[:, 1]] - points[edges[:, 0]]
    length = np.maximum(np.linalg.norm(along, axis=1, keepdims=True), 1e-9)
    along = along / length
    across = along[:, ::-1] * [-1, 1]
    # One row for each edge, one column for each node.
    where = along @ points.T - (along * start).sum(axis=1, keepdims=True)
    off = across @ points.T - (across * start).sum(axis=1, keepdims=True)
    lacking = np.where((where > 0) & (where < length), np.maximum(clear - np.abs(off), 0), 0)
    np.put_along_axis(lacking, edges, 0, axis=1)
    return np.asarray(0.4 * (lacking * np.where(off < 0, -1, 1)).T @ across)
