"""What tests of exact search share: the claims of `Exact` held against brute force (`truth`)."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

import pytest

import butfor
from butfor.methods.exact import Tuning
from truth import Case, Truth, pairs_of, random_case, solve

if TYPE_CHECKING:
    from collections.abc import Iterable

    from butfor.methods import Method

EVERY = butfor.Exact(all_smallest=True)

# Bounds wherever there are two edits left to choose from, and nowhere.
ALWAYS, NEVER = Tuning(bounding_pays=2, margins_pay=1), Tuning(bounding_pays=10**30, margins_pay=10**30)


@cache
def solved(kind: str, seed: int) -> tuple[Case, list[Truth]]:
    """A random case and the truth about its nodes."""
    case = random_case(kind, seed)
    return case, solve(case)


def without_close(case: Case, truths: Iterable[Truth]) -> tuple[Case, list[Truth]]:
    """The same without nodes that are too close to call."""
    return case, [truth for truth in truths if not truth.close]


def clear(kind: str, seeds: Iterable[int]) -> list[tuple[Case, list[Truth]]]:
    """The cases of these seeds, without nodes that are too close to call."""
    return [without_close(*solved(kind, seed)) for seed in seeds]


def explain(case: Case, truths: Iterable[Truth], method: Method = EVERY, **options) -> list[butfor.Counterfactual]:
    """The results of these nodes."""
    nodes = [truth.node for truth in truths]
    return butfor.explain(case.model, case.data, nodes, method, **case.asked, **options)


def check(case: Case, truth: Truth, result: butfor.Counterfactual, every: bool) -> None:
    """All that a result of `Exact` says is true, where the budget was enough; ``every``: of all smallest sets."""
    where = f"{case.name}, node {truth.node}: {result}"
    assert result.target == truth.node
    assert result.before.label == truth.before, where
    if truth.tenths is None:
        assert result.status.value == "impossible", where
        assert (result.found, result.removed_edges, result.alternatives) == (False, (), ()), where
        assert (result.size, result.lower_bound, result.necessity) == (None, None, None), where
        return
    assert result.status.value == "optimal", f"{truth.cost} is the least: {where}"
    assert result.cost == pytest.approx(truth.cost, rel=1e-9), where
    assert result.lower_bound == pytest.approx(truth.cost, rel=1e-9), where
    assert result.size == len(result.removed_edges), where
    assert result.removed_edges in truth.decisive, f"more decisive: {truth.decisive}: {where}"
    if not every:
        assert (result.alternatives, result.necessity) == ((), None), where
        return
    sets = [result.removed_edges, *map(pairs_of, result.alternatives)]
    assert len(set(sets)) == len(sets), f"the same set twice: {where}"
    assert set(sets) == set(truth.lead), f"all smallest: {sorted(truth.lead)}, not {sorted(sets)}: {where}"
    assert result.necessity is not None, where
    shares = {(edit.source, edit.target): share for edit, share in result.necessity}
    assert list(shares) == sorted(truth.necessity), where
    assert shares == pytest.approx(truth.necessity), where


def compare(
    cases: Iterable[tuple[Case, list[Truth]]], method: butfor.Exact = EVERY, **options
) -> tuple[Counter[str], list[butfor.Counterfactual]]:
    """Check all problems of these cases; what they were, and the results."""
    seen: Counter[str] = Counter()
    results = []
    for case, truths in cases:
        for truth, result in zip(truths, explain(case, truths, method, **options), strict=True):
            check(case, truth, result, method.all_smallest)
            seen.update(case.features)
            seen["problems"] += 1
            seen["impossible" if truth.tenths is None else f"size {min(result.size, 3)}"] += 1
            seen["several smallest"] += len(truth.lead) > 1
            results.append(result)
    return seen, results
