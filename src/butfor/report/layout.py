"""Where the nodes of a picture go: graph distance becomes distance on paper, the same way every time.

Stress majorisation (Gansner, Koren and North, Graph Drawing 2004) on shortest-path distances, begun
from rings around the centre. No random numbers: the same graph gives the same picture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import coo_array, csgraph
from scipy.spatial.distance import cdist

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["fit", "place"]

# Majorisation stops when no node moves by more than this share of an edge, or after so many rounds.
STILL = 0.003
ROUNDS = 300

# The side of a box is used up by stretching the drawing at most so much.
STRETCH = 1.5

# Rounds of pushing apart what lies too close.
PUSHES = 150


def place(num_nodes: int, links: NDArray[np.int64], centre: int) -> NDArray[np.float64]:
    """A position for each node, in units of about one edge.

    Args:
        num_nodes: how many nodes there are.
        links: one row of two nodes for each edge; direction, copies and self-loops do not matter.
        centre: the node the rings are drawn around.
    """
    if num_nodes == 1:
        return np.zeros((1, 2))
    _, part = csgraph.connected_components(_adjacency(num_nodes, links), directed=False)
    distance = _distances(num_nodes, links, part)
    return _majorise(_rings(num_nodes, links, part, centre), distance)


def fit(
    points: NDArray[np.float64],
    apart: NDArray[np.float64],
    size: tuple[float, float],
    *,
    margin: NDArray[np.float64],
    longest: float,
) -> NDArray[np.float64]:
    """Turn, scale and shift a layout into a box of ``size`` with its corner at the origin.

    Args:
        points: what `place` gave.
        apart: for each pair of nodes the least distance between them; kept where there is room.
        size: width and height of the box.
        margin: for each node, how far it stays from the sides.
        longest: what one unit of ``points`` may measure at most, so that small graphs stay small.
    """
    box = np.array(size)
    centred = points - points.mean(axis=0)
    # The long axis lies along the longer side; signs are fixed so that rounding cannot mirror the picture.
    _, _, axes = np.linalg.svd(centred, full_matrices=False) if len(points) > 1 else (None, None, np.eye(2))
    axes = axes * np.where(axes[np.arange(2), np.abs(axes).argmax(axis=1)] < 0, -1, 1)[:, None]
    turned = centred @ (axes if box[0] >= box[1] else axes[::-1]).T
    turned -= (turned.max(axis=0) + turned.min(axis=0)) / 2
    room = box - 2 * margin.max()
    scale = np.minimum(room / np.maximum(np.ptp(turned, axis=0), 1e-9), longest)
    placed = turned * np.minimum(scale, STRETCH * scale.min()) + box / 2
    return _push_apart(placed, apart, margin[:, None], box - margin[:, None])


def _adjacency(num_nodes: int, links: NDArray[np.int64]) -> coo_array:
    both = np.concatenate([links, links[:, ::-1]])
    return coo_array((np.ones(len(both)), both.T), shape=(num_nodes, num_nodes)).tocsr()


def _distances(num_nodes: int, links: NDArray[np.int64], part: NDArray[np.int32]) -> NDArray[np.float64]:
    """Hops between all pairs; parts that no path joins lie side by side, not on top of each other."""
    hops: NDArray[np.float64] = csgraph.shortest_path(_adjacency(num_nodes, links), unweighted=True)
    joined = np.isfinite(hops)
    reach = np.where(joined, hops, 0).max(axis=1)
    radius = np.full(part.max() + 1, np.inf)
    np.minimum.at(radius, part, reach)
    own = radius[part]
    return np.where(joined, hops, own[:, None] + own[None, :] + 1)


def _rings(
    num_nodes: int, links: NDArray[np.int64], part: NDArray[np.int32], centre: int
) -> NDArray[np.float64]:
    """Each node on the ring of its hop distance, in the sector of the node it was reached from."""
    # Other parts hang from the centre by a thread, so that one tree holds everything.
    first = np.unique(part, return_index=True)[1]
    threads = np.array([(centre, node) for node in first if part[node] != part[centre]]).reshape(-1, 2)
    tied = _adjacency(num_nodes, np.concatenate([links, threads.astype(np.int64)]))
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
    angle = start + width / 2
    return np.stack([ring * np.cos(angle), ring * np.sin(angle)], axis=1)


def _majorise(points: NDArray[np.float64], distance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Lower the sum of ``(|p_i - p_j| - d_ij)^2 / d_ij^2`` until the nodes stand still."""
    wanted = np.maximum(distance, 1)
    weight = 1 / wanted**2
    np.fill_diagonal(weight, 0)
    mean = np.full_like(weight, 1 / len(points))
    inverse = np.linalg.inv(np.diag(weight.sum(axis=1)) - weight + mean) - mean
    for _ in range(ROUNDS):
        pull = weight * wanted / np.maximum(cdist(points, points), 1e-9)
        moved = inverse @ (pull.sum(axis=1)[:, None] * points - pull @ points)
        done = np.abs(moved - points).max() < STILL
        points = moved
        if done:
            break
    return points


def _push_apart(
    points: NDArray[np.float64],
    apart: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Move nodes that are closer than they should be straight away from each other, inside the box."""
    for _ in range(PUSHES):
        between = points[:, None] - points[None, :]
        gap = np.maximum(np.sqrt((between**2).sum(axis=2)), 1e-9)
        lacking = np.maximum(apart - gap, 0)
        np.fill_diagonal(lacking, 0)
        if lacking.max(initial=0) < 0.1:
            break
        push = 0.4 * (between * (lacking / gap)[:, :, None]).sum(axis=1)
        # A node in a crowd is pushed from all sides at once: no leap may be longer than the worst gap.
        leap = np.maximum(np.abs(push).max(axis=1, keepdims=True), 1e-9)
        points = np.clip(points + push * np.minimum(1, lacking.max(axis=1, keepdims=True) / leap), low, high)
    return points
