"""The search over all sets of a size against every set, made by hand: what it does not hand over misses the goal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from butfor.oracle import registry
from butfor.oracle.program.bounding import sieve
from butfor.oracle.program.oracle import program_oracle
from families import bounding_of, hub_case, margins, missed, sifted, subsets
from gnns import LOCAL
from program_cases import Hand, ProgramCase, hand_case, kind_case

if TYPE_CHECKING:
    from butfor.oracle.program.bounding.sieve import Bounding

STEPS = (1, 2, 7, 10**6)
MOST = 8


@pytest.fixture(autouse=True)
def _programs_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "FAST_ORACLES", [program_oracle])


def asked(
    case: ProgramCase, seed: int
) -> tuple[Bounding, np.ndarray, dict[frozenset[int], float], np.random.Generator] | None:
    """Some of the edits in any order, and the margins of all their subsets."""
    found = bounding_of(case)
    if found is None:
        return None
    bounding, pairs, every = found
    random = np.random.default_rng(seed)
    relevant = np.flatnonzero(case.problem.oracle.relevant(case.edits))
    order = random.permutation(relevant)[:MOST]
    sets = subsets(order, range(len(order) + 1))
    truth = dict(zip(map(frozenset, sets), margins(case, sets, pairs, every).tolist(), strict=True))
    return bounding, order, truth, random


def check_search(case: ProgramCase, seed: int) -> tuple[int, int]:
    """Nothing is missed, however often the search is interrupted. Returns how much was handed over, and of how much."""
    question = asked(case, seed)
    if question is None:
        return 0, 0
    bounding, order, truth, random = question
    handed = possible = 0
    for size in range(1, min(len(order), 5) + 1):
        needed = float(np.quantile(list(truth.values()), random.choice([0.0, 0.05, 0.2]))) + 1e-6
        inside = {one: margin for one, margin in truth.items() if len(one) <= size}
        found = [sifted(bounding, order, size, needed, step) for step in (*STEPS[size % 3 :], 10**6)]
        assert not missed(inside, found[0], needed)
        assert all(one == found[0] for one in found), "an interruption makes a difference"
        handed, possible = handed + len(found[0]), possible + len(inside) - 1
    return handed, possible


@pytest.mark.parametrize(
    "name", ["GCN", "GraphSAGE, mean", "GraphSAGE, max", "GIN", "GAT", "three times the same layer"]
)
def test_nothing_is_missed(name: str) -> None:
    counts = [check_search(kind_case(LOCAL[name], seed, bool(seed % 2), 4, False), seed) for seed in range(4)]
    handed, possible = np.sum(counts, axis=0)
    assert handed < 0.8 * possible, "nothing is pruned, so nothing is tested"


@pytest.mark.slow
@pytest.mark.parametrize("name", LOCAL)
def test_nothing_is_missed_by_any_kind(name: str) -> None:
    for seed in range(3):
        check_search(kind_case(LOCAL[name], seed, bool(seed % 2), seed % 9, False), seed)


def test_nothing_is_missed_at_a_hub() -> None:
    for first in ("mean", "largest", "attention"):
        check_search(hub_case(Hand(first, "gated"), 10), 0)


def test_no_set_of_a_size_that_costs_as_little_is_missed() -> None:
    """Smaller sets were tried before, so that there must be room for as many edits as are asked for."""
    for seed in range(6):
        case = hand_case(Hand("mean", "gated", seed=seed), seed, False, 2)
        question = asked(case, seed)
        if question is None or len(question[1]) < 3:
            continue
        bounding, order, truth, random = question
        costs = random.choice([0.3, 0.5, 1.0, 1.3, 2.0], len(order))
        cost = dict(zip(order.tolist(), costs, strict=True))
        for size in (2, 3):
            limit = float(np.sort(costs)[:size].sum() * random.choice([1.0, 1.4, 2.0])) + 1e-9
            needed = float(np.median(list(truth.values())))
            found = sifted(bounding, order, size, needed, int(random.choice(STEPS)), costs, limit)
            left = missed(truth, found, needed)
            assert not [one for one in left if len(one) == size and sum(cost[edit] for edit in one) <= limit]


def test_two_searches_one_after_the_other() -> None:
    """What was known in a search that ended early is not taken for known in the next."""
    bounding, order, truth, _ = asked(kind_case(LOCAL["GIN"], 2, False, 4, False), 2)
    needed = float(np.median(list(truth.values())))
    first = sifted(bounding, order, 3, needed)
    sieve.ProgramSieve(bounding, order[::-1].copy(), np.ones(len(order)), 4, np.inf, needed).next(3)
    bounding.least_margin(order[:2], order[2:], 2)
    assert sifted(bounding, order, 3, needed) == first


def check_many(*names: str) -> None:
    for seed in range(12):
        for name in names:
            check_search(kind_case(LOCAL[name], seed, False, 4, False), seed)


BROKEN = {
    "stale units": lambda units: {
        "reads_from": 0 * units.reads_from,
        "reads": units.reads[:0],
        "reads_by": units.reads_by[:0],
    },
    "stale owners": lambda units: {"owners_from": 0 * units.owners_from, "owners": units.owners[:0]},
    "no cones": lambda units: {"counts": 0 * units.counts},
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    original = sieve.units_of

    def broken(*given: Any) -> Any:
        layout, units = original(*given)
        return layout, units._replace(**BROKEN[name](units))

    monkeypatch.setattr(sieve, "units_of", broken)
    with pytest.raises(AssertionError):
        check_many("GIN", "GraphSAGE, sum")
