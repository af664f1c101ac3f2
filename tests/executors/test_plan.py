"""Shards of about the same cost, and what targets cost."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from butfor.executors.plan import FIXED, MOST, MOST_TOGETHER, PER_WORKER, cut, edges_around
from butfor.graph.graph import Graph


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("together", [False, True])
def test_every_target_is_in_one_shard_and_none_costs_too_much(seed: int, together: bool) -> None:
    random = np.random.default_rng(seed)
    costs = random.pareto(1.2, size=3000) + 1
    places = random.permutation(3000)
    shards = cut(costs, places, 4, together)
    assert sorted(position for shard in shards for position in shard) == list(range(3000))
    limit = costs.sum() / (4 * (1 if together else PER_WORKER))
    assert all(costs[shard].sum() <= 2 * limit for shard in shards if len(shard) > 1)
    assert max(map(len, shards)) <= (MOST_TOGETHER if together else MOST)


def test_heavy_targets_come_early_and_neighbours_stay_together() -> None:
    costs = np.ones(1000)
    costs[[700, 5]] = 50, 80
    first, *rest = cut(costs, np.arange(1000)[::-1].copy(), 2)
    assert rest[:2] == [[5], [700]]
    assert all(np.isin(np.diff(shard), (-1, -2)).all() for shard in [first, *rest])


def test_few_and_no_targets() -> None:
    assert cut(np.ones(0), np.arange(0), 2) == []
    assert sorted(cut(np.ones(3), np.arange(3), 8)) == [[0], [1], [2]]


def test_two_hops_of_a_tree_are_counted() -> None:
    """Node 0 hears from 1, 2, 3; node 1 from 4 and 5; these from nobody."""
    edge_index = torch.tensor([[1, 2, 3, 4, 5], [0, 0, 0, 1, 1]])
    graph = Graph.of(Data(x=torch.ones(6, 1), edge_index=edge_index), directed=True)
    targets = [(0,), (1,), (4,)]
    assert (edges_around(graph, targets, 1, "source_to_target") - FIXED).tolist() == [3, 2, 0]
    assert (edges_around(graph, targets, 2, "source_to_target") - FIXED).tolist() == [5, 2, 0]
    assert (edges_around(graph, [(0, 1)], 2, "source_to_target") - FIXED).tolist() == [7]
    assert (edges_around(graph, targets, None, "source_to_target") - FIXED).tolist() == [5, 5, 5]


def test_the_estimate_ranks_targets_about_as_their_neighbourhoods_do() -> None:
    random = np.random.default_rng(0)
    ends = random.integers(0, 5000, (2, 7000))
    edge_index = torch.from_numpy(np.concatenate([ends, ends[::-1]], axis=1))
    graph = Graph.of(Data(x=torch.ones(5000, 1), edge_index=edge_index), directed=False)
    targets = [(node,) for node in range(300)]
    guess = edges_around(graph, targets, 3, "source_to_target")
    truth = [near.num_columns for near in graph.neighbourhoods(targets, 3, "source_to_target", 10**9)]
    ranks = [np.argsort(np.argsort(values)) for values in (guess, truth)]
    assert np.corrcoef(*ranks)[0, 1] > 0.8
