"""The contract of a method: every method passes it, and one that breaks it is caught."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch_geometric.data import Data

import butfor.testing
from butfor.methods import Method
from butfor.problem.proposal import Proposal
from butfor.testing import CHECKS, brute_force, check_method, links, predict_without, random_problem
from method_list import ALL, VARIANTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from butfor.problem.problem import Problem

# Gradient steps and many questions: too long for `make test`.
LONG = ("prbcd", "grbcd")
# Of these, and of other settings of a method that keeps the contract, it runs only what is compared with brute force.
LESS = ("remove-subgraph", "descent", "keep-ego", "remove-ego")
AGAINST_TRUTH = (butfor.testing.check_valid, butfor.testing.check_bounds)


def contracts() -> list[Any]:
    """Every check of every method, and of its variants."""
    named = {**ALL, **{repr(method): method for method in VARIANTS}}
    less = {*LESS, *map(repr, VARIANTS)}
    return [
        pytest.param(
            method,
            check,
            marks=[pytest.mark.slow] * (name in LONG or (name in less and check not in AGAINST_TRUTH)),
            id=f"{name}-{check.__name__}",
        )
        for (name, method), check in itertools.product(named.items(), CHECKS)
    ]


@pytest.mark.parametrize(("method", "check"), contracts())
def test_contract(method: Method, check: Callable[[Method], None]) -> None:
    check(method)


@dataclass(frozen=True)
class Quiet(Method):
    """Proposes nothing, which breaks no promise."""

    def solve(self, problem: Problem) -> Proposal:
        return Proposal()


@dataclass(frozen=True)
class Liar(Method):
    """Proposes every single edge that does it, and claims a bound that it did not prove."""

    bound: float = 3.0

    def solve(self, problem: Problem) -> Proposal:
        reached = problem.ask([[edit] for edit in range(len(problem.edits))]).reached
        chosen = tuple((int(edit),) for edit in reached.nonzero()[0])
        return Proposal(chosen, lower_bound=self.bound)


@dataclass(frozen=True)
class Desperate(Method):
    """Gives up at once and calls it a proof."""

    def solve(self, problem: Problem) -> Proposal:
        return Proposal(exhausted=True)


@dataclass
class Unfrozen(Method):
    def solve(self, problem: Problem) -> Proposal:
        return Proposal()


class NoDataclass(Method):
    def __post_init__(self) -> None: ...

    def solve(self, problem: Problem) -> Proposal:
        return Proposal()


@dataclass(frozen=True)
class Spendthrift(Method):
    def solve(self, problem: Problem) -> Proposal:
        problem.ask([[0]] * 30)
        return Proposal()


@dataclass(frozen=True)
class Vandal(Method):
    def solve(self, problem: Problem) -> Proposal:
        problem.predictor.model.eval()
        return Proposal()


@dataclass(frozen=True)
class Meddler(Method):
    def solve(self, problem: Problem) -> Proposal:
        problem.graph.data.x += 1
        return Proposal()


@dataclass(frozen=True)
class Gambler(Method):
    def solve(self, problem: Problem) -> Proposal:
        torch.rand(1)
        return Proposal()


@dataclass(frozen=True)
class Moody(Method):
    """Proposes something else each time."""

    def solve(self, problem: Problem) -> Proposal:
        mood = next(MOODS)
        sets = [edits for edits in itertools.combinations(range(len(problem.edits)), 2) if sum(edits) % 3 == mood % 3]
        return Proposal(tuple(edits for edits in sets if problem.ask([edits]).reached[0]))


MOODS = itertools.count()


@pytest.mark.parametrize(
    ("method", "complaint"),
    [
        (Liar(), "suffice, but"),
        (Desperate(), "edges suffice, but: .* this is proved"),
        (Unfrozen(), "is not frozen"),
        (NoDataclass(), "is not a dataclass"),
        (Spendthrift(), "30 evaluations, 1 allowed"),
        (Vandal(), "the model was changed: .training"),
        (Gambler(), "draws from torch's global generator"),
        (Moody(), "another result"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Method) else None,
)
def test_contract_catches(method: Method, complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        check_method(method)


def test_contract_catches_who_changes_the_data() -> None:
    with pytest.raises(AssertionError, match=r"data\.x was changed"):
        butfor.testing.check_leaves_model_alone(Meddler())


def test_whoever_claims_nothing_breaks_no_promise() -> None:
    check_method(Quiet())


@pytest.mark.parametrize(
    ("check", "forgotten"),
    [
        ("check_respects_space", "space"),
        ("check_reaches_goal", "goal"),
        ("check_budget", "budget"),
        ("check_nothing_to_edit", "space"),
        ("check_repeatable", "seed"),
    ],
)
def test_contract_catches_a_library_that_forgets(check: str, forgotten: str, monkeypatch: pytest.MonkeyPatch) -> None:
    explain = butfor.testing.explain
    seeds = itertools.count()

    def forgetful(*asked, **settings):
        settings.pop(forgotten, None)
        more = {"seed": next(seeds)} if forgotten == "seed" else {}
        return explain(*asked, **settings, **more)

    monkeypatch.setattr(butfor.testing, "explain", forgetful)
    with pytest.raises(AssertionError):
        getattr(butfor.testing, check)(ALL["random"])


def test_contract_catches_a_library_that_does_not_verify(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True)
    class First(Method):
        """The first edge, whatever it does."""

        def solve(self, problem: Problem) -> Proposal:
            return Proposal(((0,),))

    butfor.testing.check_valid(First())
    monkeypatch.setattr("butfor.problem.problem.Problem.reaches", lambda *asked: True)
    with pytest.raises(AssertionError, match="the prediction does not change"):
        butfor.testing.check_valid(First())


@pytest.mark.parametrize("directed", [False, True])
def test_brute_force_tries_every_set(directed: bool) -> None:
    model, data = random_problem(0, nodes=5, directed=directed)
    before = predict_without(model, data, (), directed).argmax(1).tolist()
    best: list[tuple[int | None, set]] = [(None, set()) for _ in before]
    pairs = links(data, directed)
    for numbers in range(1, 2 ** len(pairs)):
        removed = frozenset(pair for i, pair in enumerate(pairs) if numbers >> i & 1)
        after = predict_without(model, data, removed, directed).argmax(1).tolist()
        for node, (least, sets) in enumerate(best):
            if after[node] != before[node] and (least is None or len(removed) <= least):
                best[node] = (len(removed), {removed} if len(removed) != least else sets | {removed})
    assert brute_force(model, data, directed) == best


def test_links_counts_edges_as_a_person_does() -> None:
    data = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1, 0, 2], [1, 0, 1, 2]]))
    assert links(data) == [(0, 1)]
    assert links(data, directed=True) == [(0, 1), (1, 0)]
