"""The checker's bounds against every subset of edits, in double precision, on graphs edited by hand."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

import butfor
from butfor.certificate import bounds as bounding
from butfor.certificate import cases
from butfor.certificate.cases import Cases
from butfor.certificate.entries import Entries
from butfor.certificate.subject import Subject
from butfor.edits.edits import pack
from butfor.oracle import registry
from butfor.oracle.program.oracle import ProgramOracle, program_oracle
from gnns import FAMILIES, LOCAL, one_way, quick_ones
from program_cases import BY_HAND, Hand, HandGraphs, HandLinks, ProgramCase, hand_case, kind_case
from sampling import sampled, split

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from butfor.certificate.bounds import Bounds

# At most so many edits are free at once: all their subsets are tried.
MOST_FREE = 7

KINDS = one_way(first=True)


@pytest.fixture(autouse=True)
def _programs_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "FAST_ORACLES", [program_oracle])


def bounds_of(case: ProgramCase) -> tuple[Bounds, NDArray[np.float64]] | None:
    """The bounds of a case and the combinations of scores that they are of, where it has a program."""
    if not len(case.edits) or not isinstance(case.problem.oracle, ProgramOracle):
        return None
    subject = Subject.of(case.problem, math.inf)
    return None if subject.bounds is None else (subject.bounds, subject.pairs)


def check(case: ProgramCase, seed: int) -> tuple[int, float]:
    """Every set of a family lies within its bounds. Returns how many sets there were, and the mean room below."""
    found = bounds_of(case)
    if found is None:
        return 0, 0.0
    bounds, pairs = found
    random = np.random.default_rng(seed)
    count, edits = 0, len(case.edits)
    rooms = []
    for most in (0, 1, 2, 3, 5):
        order = random.permutation(edits)
        gone, free = order[: most % 2], order[most % 2 : most % 2 + MOST_FREE]
        made, open_ = np.zeros(edits + 1, dtype=bool), np.zeros(edits + 1, dtype=bool)
        made[gone], open_[free] = True, True
        sets = [(*gone, *more) for size in range(most + 1) for more in itertools.combinations(free, size)]
        scores = case.truth(pack(sets))
        truth = np.column_stack([-scores, scores])[:, : len(pairs)] if scores.shape[1] == 1 else scores @ pairs.T
        if scores.shape[1] == 1 and pairs[0, 1] > 0:
            truth = -truth
        low, high = (end[: len(pairs)] for end in bounds.ends(made, open_, most))
        room = 1e-6 * (1 + np.abs(truth))
        assert (low <= truth + room).all()
        assert (high >= truth - room).all()
        if most == 0:
            exactly = bounds.exactly(made)[: len(pairs)]
            assert np.isnan(exactly).all() or np.abs(exactly - truth[0]).max() < 1e-6
        rooms.append(float((truth.min(axis=0) - low).mean()))
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
ADDING = butfor.EditSpace(add=butfor.Within(hops=2, most=8))


@pytest.mark.parametrize("name", PLAIN)
def test_bounds_are_not_empty_words(name: str) -> None:
    """They are finite, and close to the truth."""
    rooms = [check(kind_case(LOCAL[name], seed, False, 4, False), seed)[1] for seed in range(4)]
    assert max(rooms) < 10


@pytest.fixture
def _numbers_only(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Cases say how many edits are made, not which."""
    monkeypatch.setattr(cases, "MOST_SUBSETS", 0)
    cases.subsets.cache_clear()
    yield
    cases.subsets.cache_clear()


@pytest.mark.usefixtures("_numbers_only")
@pytest.mark.parametrize("space", [butfor.EditSpace(), ADDING], ids=["deletions", "additions"])
@pytest.mark.parametrize("name", PLAIN)
def test_where_only_numbers_of_edits_are_known(name: str, space: butfor.EditSpace) -> None:
    checked = [check(replace(kind_case(LOCAL[name], seed, False, 4, False), space=space), seed) for seed in range(4)]
    assert all(count for count, _ in checked)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", PLAIN)
def test_edges_that_may_be_added(name: str, directed: bool) -> None:
    added = 0
    for seed in range(4):
        case = replace(kind_case(LOCAL[name], seed, directed, 4, False), space=ADDING)
        added += len(case.edits.added.edit) if check(case, seed)[0] else 0
    assert added


@pytest.mark.parametrize("pool", ["sum", "mean", "maximum"])
def test_whole_graphs(pool: str) -> None:
    assert all(check(hand_case(HandGraphs(pool, "mean", "largest"), seed, False, None), seed)[0] for seed in range(3))


def test_links() -> None:
    cases_ = [hand_case(HandLinks("mean", "symmetric", seed=seed), seed, False, butfor.Pair(1, 4)) for seed in range(4)]
    assert sum(check(case, seed)[0] for seed, case in enumerate(cases_))


# Bounds that are wrong on purpose.


def check_many(*names: str) -> None:
    for seed in range(20):
        for name in names:
            check(kind_case(LOCAL[name], seed, False, 4, False), seed)


def late(original: Callable[..., NDArray[np.float64]]) -> Callable[..., NDArray[np.float64]]:
    """What holds in each case, said of the next one."""

    def broken(*arguments: object) -> NDArray[np.float64]:
        right = original(*arguments)
        return np.concatenate([right[:1], right[:-1]])

    return broken


def test_a_sum_that_forgets_an_edit_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Entries, "_usual_sums", late(Entries._usual_sums))
    with pytest.raises(AssertionError):
        check_many("GIN", "GraphConv", "GraphSAGE, sum")


@pytest.mark.usefixtures("_numbers_only")
def test_a_number_of_edits_that_is_too_small_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Entries, "_usual_sums", late(Entries._usual_sums))
    with pytest.raises(AssertionError):
        check_many("GIN", "GraphConv", "GraphSAGE, sum")


def test_falls_that_are_forgotten_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Entries, "_falls", lambda *_: 0.0)
    with pytest.raises(AssertionError):
        check_many("GIN", "GCN", "GraphSAGE, mean")


def test_a_capacity_that_is_too_small_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    original = bounding._Pass._capacity
    monkeypatch.setattr(bounding._Pass, "_capacity", lambda *given: np.maximum(original(*given) - 1, 0))
    with pytest.raises(AssertionError):
        check_many("GIN", "GCN", "GraphSAGE, mean")


def test_a_broken_maximum_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    original = Entries._maxima

    def broken(self: Entries, low: NDArray[np.float64], high: NDArray[np.float64], empty: float) -> object:
        least, most = original(self, low, high, empty)
        return np.concatenate([least[:, :1], least[:, :-1]], axis=1), most

    monkeypatch.setattr(Entries, "_maxima", broken)
    with pytest.raises(AssertionError):
        check_many("GraphSAGE, max")


def test_levels_that_are_too_low_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cases, "level", lambda self, edits: np.zeros_like(edits))
    with pytest.raises(AssertionError):
        check_many("GIN", "GCN", "GraphSAGE, mean")
