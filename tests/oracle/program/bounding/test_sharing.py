"""A search that several threads share misses nothing, and looks at nothing twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from torch_geometric import nn as pyg

import butfor
from butfor.methods import exact, proof
from butfor.methods.exact import Tuning
from butfor.oracle import registry
from butfor.oracle.program.bounding import sharing, tables
from butfor.oracle.program.bounding.plain import branches
from butfor.oracle.program.bounding.plain.sieve import _PlainSearch
from butfor.oracle.program.bounding.sieve import _ProgramSearch
from butfor.oracle.program.oracle import program_oracle
from families import bounding_of, margins, missed, plain_of, sage_stack, sifted, subsets, undirected_case
from program_cases import CLASSES, WIDTH, ProgramCase

if TYPE_CHECKING:
    from collections.abc import Callable

EDGES = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 4), (3, 4), (4, 5), (5, 6), (0, 6), (0, 7), (7, 8)]
SEARCHES = (_PlainSearch, _ProgramSearch)
KINDS = [*(("plain", one) for one in ("sum", "mean", "max")), *(("tight", one) for one in ("sum", "attention"))]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every search may be shared, at every step."""
    monkeypatch.setattr(sharing, "WORTH_A_THREAD", 0)
    monkeypatch.setattr(proof, "FIRST_BOUNDED", 1)
    monkeypatch.setattr(proof, "MOST_BOUNDED", 1)
    monkeypatch.setattr(exact, "HEAD_START", 0)
    monkeypatch.setattr(registry, "FAST_ORACLES", [program_oracle])


@pytest.fixture
def given_away(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many edits were decided in each part that changed hands."""
    places: list[int] = []

    def counted(right: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def give(search: Any) -> Any:
            places.append(search.first_to_exclude)
            return right(search)

        return give

    for one in SEARCHES:
        monkeypatch.setattr(one, "given_away", counted(one.given_away))
    return places


def case_of(layers: str, depth: int, seed: int) -> ProgramCase:
    if layers == "attention":
        model: Any = pyg.GAT(WIDTH, 4, depth, CLASSES, heads=2)
    else:
        model = sage_stack(layers, depth, seed)
    return undirected_case(model, EDGES, seed)


def check(bounds: str, layers: str, threads: int, step: int) -> None:
    for seed in range(4):
        case = case_of(layers, 2 + seed % 2, seed)
        found = (plain_of if bounds == "plain" else bounding_of)(case, (None, 1)[seed % 2])
        bounding, pairs, every = found
        order = np.random.default_rng(seed).permutation(len(case.edits))[:9]
        sets = subsets(order, range(len(order) + 1))
        truth = dict(zip(map(frozenset, sets), margins(case, sets, pairs, every).tolist(), strict=True))
        needed = float(np.quantile(list(truth.values()), 0.05)) + 1e-6
        for size in (2, 4, len(order)):
            inside = {one: margin for one, margin in truth.items() if len(one) <= size}
            assert not missed(inside, sifted(bounding, order, size, needed, step, threads=threads), needed)


@pytest.mark.parametrize("threads", [2, 5])
@pytest.mark.parametrize(("bounds", "layers"), KINDS)
def test_nothing_is_missed(bounds: str, layers: str, threads: int, given_away: list[int]) -> None:
    for step in (1, 7, 100):
        check(bounds, layers, threads, step)
    assert len(given_away) > 20
    assert max(given_away) > 2


def made_by_both(search: Any, mine: Any) -> None:
    """Nobody excludes the edit."""
    if isinstance(search, _PlainSearch):
        b = mine._branches
        b.status[b.order[b.stack[b.numbers[branches.DECIDED] - 1]]] = branches.MADE
    else:
        t = mine._bounding.t
        position = t[t[tables.NEXT] + t[tables.DEPTH]] - 1
        t[t[tables.STATUS] + t[t[tables.ORDER] + position]] = branches.MADE


def looked_at_by_both(search: Any, _: Any) -> None:
    """Who gave a part away looks at it all the same."""
    if isinstance(search, _PlainSearch):
        search._branches.numbers[branches.BASE] = 0
    else:
        search._bounding.t[tables.FLOOR] = 0


def nothing_for_good(_: Any, mine: Any) -> None:
    """Who took a part over looks at what comes before as well."""
    if isinstance(mine, _PlainSearch):
        mine._branches.numbers[branches.BASE] = 0
    else:
        mine._bounding.t[tables.FLOOR] = 0


def looked_at_by_nobody(_: Any, mine: Any) -> None:
    """What was taken over counts as done."""
    if isinstance(mine, _PlainSearch):
        mine._branches.numbers[branches.DONE] = 1
    else:
        mine._bounding.t[tables.DONE] = 1


@pytest.mark.parametrize("wrong", [made_by_both, looked_at_by_both, nothing_for_good, looked_at_by_nobody])
@pytest.mark.parametrize(("bounds", "layers"), [("plain", "sum"), ("tight", "sum")])
def test_parts_that_overlap_or_leave_gaps_are_noticed(
    bounds: str, layers: str, wrong: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    for one in SEARCHES:

        def given_away(search: Any, right: Any = one.given_away) -> Any:
            mine = right(search)
            wrong(search, mine)
            return mine

        monkeypatch.setattr(one, "given_away", given_away)
    with pytest.raises((AssertionError, IndexError)):
        check(bounds, layers, 2, 7)


@pytest.mark.parametrize("layers", ["sum", "mean", "max", "attention"])
def test_the_answer_does_not_depend_on_the_number_of_threads(layers: str, given_away: list[int]) -> None:
    for seed in range(4):
        case = case_of(layers, 3, seed)
        tuning, budget = Tuning(bounding_pays=1), butfor.Budget(None)
        results = [
            butfor.explain(case.fresh(), case.data, 0, butfor.Exact(threads=threads, tuning=tuning), budget=budget)
            for threads in (1, 2, 3)
        ]
        assert len({(one.status, one.edges, one.lower_bound) for one in results}) == 1
    assert given_away


def test_a_budget_of_evaluations_takes_one_thread(given_away: list[int]) -> None:
    case = case_of("sum", 3, 3)
    method = butfor.Exact(threads=3, tuning=Tuning(bounding_pays=1))
    butfor.explain(case.fresh(), case.data, 0, method, budget=butfor.Budget(10_000))
    assert not given_away
    butfor.explain(case.fresh(), case.data, 0, method, budget=butfor.Budget(None))
    assert given_away
