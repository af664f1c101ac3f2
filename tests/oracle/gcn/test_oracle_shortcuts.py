"""What the fast oracle lets a search leave out makes no difference to what it finds."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest

import butfor
from butfor.oracle.gcn.oracle import GCNOracle
from butfor.oracle.general import ModelOracle
from butfor.problem.budget import Budget
from butfor.session import Session
from proofs import EVERY, solved
from truth import Case, larger_case, pairs_of, scores_after, subsets

if TYPE_CHECKING:
    from collections.abc import Sequence


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["GCN", "PaperGCN"])
def test_relevant_and_equivalent_edits_are_so_in_every_subset(kind: str) -> None:
    """An edit that is left out changes no score; equivalent edits can be exchanged in any set."""
    irrelevant = equivalent = 0
    for seed in range(60):
        case, truths = solved(kind, seed)
        free = case.free
        number = {pair: i for i, pair in enumerate(free)}
        scores = scores_after(case, free, subsets(len(free)))
        session = Session.of(case.model, case.data, **case.asked)
        rows = np.arange(2 ** len(free))
        for truth in truths:
            problem = session.problem(truth.node)
            assert type(problem.oracle) is GCNOracle
            bits = [1 << number[pairs_of(problem.edits.records([edit]))[0]] for edit in range(len(problem.edits))]
            mine = scores[:, truth.node]
            for edit in np.flatnonzero(~problem.oracle.relevant(problem.edits)):
                np.testing.assert_allclose(mine[rows | bits[edit]], mine[rows & ~bits[edit]], atol=1e-9)
                irrelevant += 1
            classes = problem.oracle.equivalence_classes(problem.edits)
            for one, two in zip(*np.nonzero(np.triu(classes[:, None] == classes, 1)), strict=True):
                neither = rows[(rows & (bits[one] | bits[two])) == 0]
                np.testing.assert_allclose(mine[neither | bits[one]], mine[neither | bits[two]], atol=1e-9)
                assert problem.edits.costs[one] == problem.edits.costs[two]
                equivalent += 1
    # Three layers see nearly all of so small a graph, but not quite.
    assert irrelevant >= 10
    assert equivalent >= 10


def answers(case: Case) -> list[butfor.Counterfactual]:
    nodes = range(0, case.data.num_nodes, 4)
    return butfor.explain(case.model, case.data, nodes, EVERY, **case.asked, budget=Budget(1500))


@pytest.mark.slow
def test_fast_and_general_oracle_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [larger_case(seed) for seed in range(11)]
    fast = [answers(case) for case in cases]
    monkeypatch.setattr("butfor.oracle.registry.FAST_ORACLES", [])
    assert type(Session.of(cases[0].model, cases[0].data).problem(0).oracle) is ModelOracle
    slow = [answers(case) for case in cases]
    seen: Counter[str] = Counter()
    for case, quick, general in zip(cases, fast, slow, strict=True):
        for one, two in zip(quick, general, strict=True):
            where = f"{case.name}: {one} {two}"
            assert one.before.label == two.before.label
            for this, other in ((one, two), (two, one)):
                if this.status.value in ("optimal", "impossible"):
                    assert other.lower_bound is None or other.lower_bound <= (this.lower_bound or np.inf) * (1 + 1e-9)
                    assert not other.found or other.cost >= this.cost * (1 - 1e-9), where
            if two.status.value not in ("optimal", "impossible"):
                continue
            # The general oracle knows of no equivalent edits, and of few that cannot matter, so it has more to try.
            assert (one.status, one.size, one.cost) == (two.status, two.size, two.cost), where
            assert (one.lower_bound or 0) == pytest.approx(two.lower_bound or 0, rel=1e-9), where
            seen["compared"] += 1
            seen[f"size {one.size}"] += 1
            if two.necessity is None:
                continue  # nothing was found, or the budget was not enough for all of the smallest
            assert {one.edits, *one.alternatives} == {two.edits, *two.alternatives}, where
            assert one.necessity == two.necessity, where
            if one.removed_edges != two.removed_edges:
                assert tied(case, one.target, one.removed_edges, two.removed_edges), where
            seen["all smallest"] += 1
    assert seen["compared"] >= 40
    assert seen["all smallest"] >= 30
    assert min(seen["size 1"], seen["size 2"]) >= 10


def tied(case: Case, node: int, *sets: Sequence[tuple[int, int]]) -> bool:
    """Whether these sets lead by the same, but for rounding."""
    links = case.links
    removed = np.array([[False] * len(links), *([pair in edges for pair in links] for edges in sets)])
    scores = scores_after(case, links, removed)[:, node]
    before = scores[0].argmax()
    one, two = np.delete(scores[1:], before, axis=1).max(axis=1) - scores[1:, before]
    return abs(one - two) <= 2e-5 * (1 + abs(one))
