"""Three layers, where rows that others read depend on others in turn: hulls for each number of edits, few and many."""

from __future__ import annotations

import numpy as np
import pytest

from butfor.oracle import registry
from butfor.oracle.program.bounding.rows import MOST_TOLD_APART
from butfor.oracle.program.oracle import program_oracle
from families import bounding_of, check_bounds, margins, missed, sage_stack, sifted, subsets, undirected_case

# A target with three neighbours, a cycle, and two branches: ten edges.
EDGES = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 4), (2, 5), (3, 6), (6, 7), (4, 8), (5, 8)]
LEAVES = [(0, leaf) for leaf in range(1, 7)]


@pytest.fixture(autouse=True)
def _programs_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "FAST_ORACLES", [program_oracle])


@pytest.mark.parametrize("aggregation", ["sum", "mean", "max", "min"])
def test_no_set_lies_below_its_bound(aggregation: str) -> None:
    """Of one, two, three and ten edits: every set is tried."""
    for seed in range(2):
        case = undirected_case(sage_stack(aggregation, 3, seed), EDGES, seed)
        assert check_bounds(case, seed, most_free=len(EDGES)) == 4
    assert len(EDGES) > MOST_TOLD_APART


@pytest.mark.parametrize("aggregation", ["sum", "mean", "max"])
def test_nothing_is_missed_among_sets_of_any_size(aggregation: str) -> None:
    handed = 0
    for seed in range(3):
        case = undirected_case(sage_stack(aggregation, 3, seed), EDGES, seed)
        bounding, pairs, every = bounding_of(case)
        sets = subsets(range(len(EDGES)), range(len(EDGES) + 1))
        truth = dict(zip(map(frozenset, sets), margins(case, sets, pairs, every).tolist(), strict=True))
        needed = float(np.quantile(list(truth.values()), 0.02))
        found = sifted(bounding, np.random.default_rng(seed).permutation(len(EDGES)), len(EDGES), needed, 7)
        assert not missed(truth, found, needed)
        handed += len(found)
    assert handed < 0.5 * 3 * len(sets), "nothing is pruned, so nothing is tested"


@pytest.mark.parametrize("aggregation", ["sum", "mean", "max"])
def test_what_arrives_along_an_edge_counts_with_that_edge(aggregation: str) -> None:
    """A leaf is as it was while its only edge is there, so no bound is below what can be reached."""
    case = undirected_case(sage_stack(aggregation, 2, 0), LEAVES, 0)
    bounding, pairs, every = bounding_of(case)
    free = np.arange(len(LEAVES))
    for most in (1, 2, len(LEAVES)):
        truth = margins(case, subsets(free, range(most + 1)), pairs, every).min()
        room = 1e-3 * np.abs(case.truth(np.full((1, 1), -1))).max()
        assert truth - room <= bounding.least_margin((), free, most) <= truth
