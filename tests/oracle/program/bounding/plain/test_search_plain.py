"""Plain intervals and the search with them against every set of edits, made by hand, in double precision."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data

from butfor.oracle.program.bounding.plain import sieve, tables
from butfor.oracle.program.bounding.plain.sieve import PlainBounding
from families import (
    EXACT,
    bounding_of,
    hub_case,
    margins,
    missed,
    plain_of,
    sage_stack,
    sifted,
    subsets,
    undirected_case,
)
from gnns import LOCAL
from program_cases import WIDTH, ProgramCase, kind_case

if TYPE_CHECKING:
    from collections.abc import Callable

AGGREGATIONS = ("sum", "mean", "max", "min")
STEPS = (1, 3, 10**6)

# Rings with chords and a tail: several ways lead to the target, and some edits cut others off.
EDGES = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 4), (3, 4), (4, 5), (5, 6), (0, 6), (0, 7), (7, 8)]


def rings(aggregation: str, depth: int, seed: int) -> ProgramCase:
    return undirected_case(sage_stack(aggregation, depth, seed), EDGES, seed)


def truth_of(case: ProgramCase, edits: np.ndarray, pairs: np.ndarray, every: bool) -> dict[frozenset[int], float]:
    sets = subsets(edits, range(len(edits) + 1))
    return dict(zip(map(frozenset, sets), margins(case, sets, pairs, every).tolist(), strict=True))


@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_no_set_lies_below_its_bound(aggregation: str, depth: int) -> None:
    for seed in range(3):
        case = rings(aggregation, depth, seed)
        plain, pairs, every = plain_of(case, (None, seed)[seed % 2])
        random = np.random.default_rng(seed)
        truth, count, tight = truth_of(case, np.arange(len(case.edits)), pairs, every), len(case.edits), 0
        for most in (0, 1, 2, 3, 5, count):
            order = random.permutation(count)
            made, free = frozenset(order[: seed + 1].tolist()), order[seed + 1 :]
            inside = [
                one for one in truth if one >= made and len(one - made) <= most and one <= made | set(free.tolist())
            ]
            least = min(truth[one] for one in inside)
            bound = plain.least_margin(sorted(made), free, most)
            assert bound <= least + EXACT * (1 + abs(least))
            tight += bound > least - 1e-3 * (1 + abs(least))
        assert tight > 0, "where no edit is left, a bound is what the model says"


def check_search(case: ProgramCase, seed: int, with_tight: bool) -> tuple[int, int]:
    """Nothing is missed, however often the search is interrupted. Returns how much was handed over, and of how much."""
    found = plain_of(case)
    if found is None:
        return 0, 0
    plain, pairs, every = found
    tight = bounding_of(case)[0] if with_tight else None
    random = np.random.default_rng(seed)
    relevant = np.flatnonzero(case.problem.oracle.relevant(case.edits))
    order = random.permutation(relevant)[:9]
    truth, handed, possible = truth_of(case, order, pairs, every), 0, 0
    for size in (1, 2, 3, len(order)):
        needed = float(np.quantile(list(truth.values()), random.choice([0.0, 0.05, 0.2]))) + 1e-6
        inside = {one: margin for one, margin in truth.items() if len(one) <= size}
        results = [sifted(plain, order, size, needed, step, tight=tight) for step in STEPS]
        assert not missed(inside, results[0], needed)
        assert all(one == results[0] for one in results), "an interruption makes a difference"
        handed, possible = handed + len(results[0]), possible + len(inside) - 1
    return handed, possible


@pytest.mark.parametrize("with_tight", [False, True])
@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_nothing_is_missed(aggregation: str, with_tight: bool) -> None:
    # Losses do not pass through this LeakyReLU, so tight bounds are asked for.
    between = (lambda: nn.LeakyReLU(1.1)) if with_tight else nn.ReLU
    cases = [undirected_case(sage_stack(aggregation, 2 + seed % 2, seed, between), EDGES, seed) for seed in range(4)]
    assert all(plain_of(case)[0].tables.has_losses != with_tight for case in cases)
    counts = [check_search(case, seed, with_tight) for seed, case in enumerate(cases)]
    handed, possible = np.sum(counts, axis=0)
    assert handed < 0.8 * possible, "nothing is pruned, so nothing is tested"


@pytest.mark.slow
@pytest.mark.parametrize("name", LOCAL)
def test_nothing_is_missed_by_any_kind(name: str) -> None:
    for seed in range(3):
        check_search(kind_case(LOCAL[name], seed, bool(seed % 2), seed % 9, False), seed, bool(seed % 2))


def test_a_hub_of_more_entries_than_are_told_apart_at_once() -> None:
    for aggregation in AGGREGATIONS:
        case = hub_case(sage_stack(aggregation, 2, 0), 14)
        plain, pairs, every = plain_of(case)
        order = np.arange(len(case.edits))
        truth = truth_of(case, order[:12], pairs, every)
        for most in (1, 8, 9, 10, 12):
            least = min(margin for one, margin in truth.items() if len(one) <= most)
            assert plain.least_margin((), order[:12], most) <= least + EXACT * (1 + abs(least))


def test_an_edit_that_deletes_several_entries_of_a_row() -> None:
    """Parallel edges are one edit. Two of them take away what four entries bring."""
    model = sage_stack("max", 2, 1)
    ends = [(leaf, 0) for leaf in (1, 1, 2, 2, 3, 3)]
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(4, WIDTH)))
    data = Data(x=x, edge_index=torch.tensor(ends).T.contiguous())
    case = ProgramCase(lambda: copy.deepcopy(model.double().eval()), data, True, 0)
    plain, pairs, every = plain_of(case)
    assert plain.tables.at_once.max() == 2
    edits = np.arange(len(case.edits))
    truth = truth_of(case, edits, pairs, every)
    for most in range(len(edits) + 1):
        least = min(margin for one, margin in truth.items() if len(one) <= most)
        assert plain.least_margin((), edits, most) <= least + EXACT * (1 + abs(least))


def test_searches_one_after_the_other_do_not_know_of_each_other() -> None:
    case = rings("mean", 3, 2)
    plain, pairs, every = plain_of(case)
    order = np.arange(len(case.edits))
    needed = float(np.median(list(truth_of(case, order, pairs, every).values())))
    first = sifted(plain, order, 3, needed)
    sieve.PlainSieve(plain, lambda: None, order[::-1].copy(), np.ones(len(order)), 5, np.inf, needed).next(3)
    plain.least_margin(order[:2], order[2:6], 2)
    sifted(plain, order[3:], 2, needed)
    assert sifted(plain, order, 3, needed) == first


BROKEN: dict[str, Callable[[tables.Plain], dict[str, Any]]] = {
    "rows that are not computed again": lambda p: {"readers_from": 0 * p.readers_from, "readers": p.readers[:0]},
    "edits that change nothing": lambda p: {"edit_from": 0 * p.edit_from, "edit_rows": p.edit_rows[:0]},
    "edits that delete less": lambda p: {"at_once": 0 * p.at_once},
    "edits that are taken to be cut off": lambda p: {"reads_from": 0 * p.reads_from, "reads": p.reads[:0]},
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any) -> Any:
        found = tables.plain_tables(*args)
        return None if found is None else found._replace(**BROKEN[name](found))

    monkeypatch.setattr(sieve, "plain_tables", broken)
    with pytest.raises(AssertionError):
        check_many()


def check_many() -> None:
    for seed in range(8):
        for aggregation in AGGREGATIONS:
            check_search(rings(aggregation, 3, seed), seed, False)


def test_what_plain_intervals_do_not_know() -> None:
    """Attention, and edits that do more than delete, are left to the tight bounds."""
    assert plain_of(kind_case(LOCAL["GAT"], 0, False, 4, False)) is None
    assert isinstance(plain_of(kind_case(LOCAL["GIN"], 0, False, 4, False))[0], PlainBounding)
