"""Where nodes stand: graph distance becomes distance on paper."""

from __future__ import annotations

import numpy as np

from butfor.plotting.layout import fit, place


def test_distances_are_kept() -> None:
    grid = [(4 * i + j, 4 * i + j + 1) for i in range(4) for j in range(3)]
    grid += [(4 * i + j, 4 * i + j + 4) for i in range(3) for j in range(4)]
    points = place(16, np.array(grid), 5, np.empty(0, dtype=np.int64))
    length = np.linalg.norm(points[[u for u, _ in grid]] - points[[v for _, v in grid]], axis=1)
    assert length.min() > 0.6
    assert length.max() < 1.4
    assert np.linalg.norm(points[0] - points[15]) > 3.5


def test_a_long_chain_is_rolled_up() -> None:
    chain = np.array([(i, i + 1) for i in range(199)])
    points = place(200, chain, 30, np.empty(0, dtype=np.int64))
    assert np.ptp(points, axis=0).max() < 60
    assert np.ptp(points, axis=0).min() > 5


def test_nodes_give_way_to_edges_that_must_stay_visible() -> None:
    points = np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 0.02], [1.0, 2.0]])
    margin = np.full(4, 10.0)
    fitted = fit(points, np.full((4, 4), 20.0), (300.0, 300.0), margin=margin, free=np.array([[0, 1]]), longest=100)
    along = (fitted[1] - fitted[0]) / np.linalg.norm(fitted[1] - fitted[0])
    off = abs(along[0] * (fitted[2] - fitted[0])[1] - along[1] * (fitted[2] - fitted[0])[0])
    assert off > 9
