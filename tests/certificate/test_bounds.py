"""The checker's bounds against every subset of edits, in double precision, on graphs edited by hand."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest

from butfor.certificate import bounds as bounding
from butfor.certificate.bounds import Bounds
from butfor.edits.edits import pack
from butfor.oracle import registry
from butfor.oracle.program.build import differences
from butfor.oracle.program.oracle import ProgramOracle, program_oracle
from gnns import FAMILIES, LOCAL, one_way, quick_ones
from program_cases import BY_HAND, Hand, ProgramCase, hand_case, kind_case
from sampling import sampled, split

if TYPE_CHECKING:
    from numpy.typing import NDArray

# At most so many edits are free at once: all their subsets are tried.
MOST_FREE = 7

KINDS = one_way(first=True)


@pytest.fixture(autouse=True)
def _programs_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "FAST_ORACLES", [program_oracle])


def bounds_of(case: ProgramCase) -> tuple[Bounds, NDArray[np.float64]] | None:
    """The bounds of a case and the combinations of scores that they are of, where it has a program."""
    edits, problem = case.edits, case.problem
    if not len(edits) or not edits.only_deletes or not isinstance(problem.oracle, ProgramOracle):
        return None
    pairs = problem.goal.pairs(problem.predictor.num_classes, problem.before)
    return Bounds(differences(problem.predictor, edits, pairs), edits.edit_of, len(edits)), pairs


def check(case: ProgramCase, seed: int) -> tuple[int, float]:
    """Every set of a family lies above its bound. Returns how many sets there were, and the mean room between."""
    found = bounds_of(case)
    if found is None:
        return 0, 0.0
    bounds, pairs = found
    random = np.random.default_rng(seed)
    count, edits = 0, len(case.edits)
    rooms = []
    for most in (0, 1, 2, 3):
        order = random.permutation(edits)
        gone, free = order[: most % 2], order[most % 2 : most % 2 + MOST_FREE]
        made, open_ = np.zeros(edits + 1, dtype=bool), np.zeros(edits + 1, dtype=bool)
        made[gone], open_[free] = True, True
        sets = [(*gone, *more) for size in range(most + 1) for more in itertools.combinations(free, size)]
        truth = case.truth(pack(sets)) @ pairs.T
        least = bounds.least(made, open_, most)
        assert (least <= truth + 1e-6 * (1 + np.abs(truth))).all()
        if most == 0:
            exactly = bounds.exactly(made)
            assert np.isnan(exactly).all() or np.abs(exactly - truth[0]).max() < 1e-6
        rooms.append(float((truth.min(axis=0) - least).mean()))
        count += len(sets)
    return count, float(np.mean(rooms))


@pytest.mark.parametrize(("name", "directed"), split(KINDS, quick_ones(KINDS, FAMILIES[::2])))
def test_models_of_all_kinds(name: str, directed: bool) -> None:
    seed = 17 * list(LOCAL).index(name) + directed
    for node in (2, 5):
        check(kind_case(LOCAL[name], seed, directed, node, False), seed)


@pytest.mark.parametrize(("directed", "first"), sampled(itertools.product((False, True), BY_HAND), every=2))
def test_layers_in_plain_torch(first: str, directed: bool) -> None:
    seed = 5 * list(BY_HAND).index(first) + directed
    second = list(BY_HAND)[(seed + 2) % len(BY_HAND)]
    checked = 0
    for node in range(4):
        case = hand_case(Hand(first, second, seed=seed), seed + node, directed, node, False)
        checked += check(case, node)[0]
    assert checked


PLAIN = ("GCN", "GraphSAGE, mean", "GraphSAGE, max", "GIN", "GraphConv")


@pytest.mark.parametrize("name", PLAIN)
def test_bounds_are_not_empty_words(name: str) -> None:
    """They are finite, and for a single free deletion close to the truth."""
    rooms = [check(kind_case(LOCAL[name], seed, False, 4, False), seed)[1] for seed in range(4)]
    assert max(rooms) < 60


def check_many(*names: str) -> None:
    for seed in range(20):
        for name in names:
            check(kind_case(LOCAL[name], seed, False, 4, False), seed)


def sums_with(lost: int, changed: int) -> object:
    """A broken sum: it counts fewer losses, or fewer changes, than there can be."""
    original = bounding._Entries._least_sums

    def broken(self: bounding._Entries, usual: object, least: object, most: int) -> object:
        totals = original(self, usual, least, max(most - changed, 0))
        return totals if not lost else np.concatenate([totals[:1], totals[:-1]])

    return broken


@pytest.mark.parametrize(("lost", "changed"), [(1, 0), (0, 1)], ids=["losses", "changes"])
def test_a_broken_sum_is_caught(lost: int, changed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounding._Entries, "_least_sums", sums_with(lost, changed))
    with pytest.raises(AssertionError):
        check_many("GIN", "GraphConv", "GraphSAGE, sum")


def test_a_broken_maximum_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    original = bounding._Entries._maxima

    def broken(self: bounding._Entries, low: NDArray[np.float64], high: NDArray[np.float64], empty: float) -> object:
        least, most = original(self, low, high, empty)
        return np.concatenate([least[:1], least[:-1]]), most

    monkeypatch.setattr(bounding._Entries, "_maxima", broken)
    with pytest.raises(AssertionError):
        check_many("GraphSAGE, max")


def test_forgotten_cones_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bounds, "_most_changed", lambda *_: 0)
    with pytest.raises(AssertionError):
        check_many("GIN", "GCN", "GraphSAGE, mean")
