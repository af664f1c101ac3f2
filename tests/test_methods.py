"""Every method passes the contract, and a method that breaks it is caught."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass

import pytest
import torch
from torch_geometric.explain import DummyExplainer

import butfor
from butfor.errors import InputError
from butfor.methods import Method
from butfor.methods.cf_gnn import INSTEAD
from butfor.methods.greedy import NO_GRADIENT
from butfor.problem.budget import Budget
from butfor.problem.proposal import Proposal
from butfor.session import Session
from butfor.testing import CHECKS, check_method, random_problem

METHODS = [
    butfor.Exact(),
    butfor.Exact(all_smallest=True, k=3),
    butfor.Greedy(),
    butfor.Greedy(width=2),
    butfor.CFGNN(epochs=25),
    butfor.CFGNN.published(epochs=25, momentum=0.9),
    butfor.CFGNN(epochs=25, optimizer="adam", degrees="soft", clip=1.0),
    butfor.CFGNN(epochs=25, optimizer="adadelta", lr=1.0, distance_gradient=False),
    butfor.RandomPerturbation(samples=30),
    butfor.KeepEgo(),
    butfor.RemoveEgo(),
    butfor.RemoveSubgraph(size=2, epochs=3),
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_contract(method: Method, check) -> None:
    check(method)


@dataclass(frozen=True)
class Liar(Method):
    """Proposes every single edge as a counterfactual, and claims a bound it did not prove."""

    bound: float = 3.0

    def solve(self, problem, budget):
        reached = problem.ask([[edit] for edit in range(len(problem.edits))]).reached
        chosen = tuple((int(edit),) for edit in reached.nonzero()[0])
        return Proposal(chosen, lower_bound=self.bound)


@dataclass
class Unfrozen(Method):
    def solve(self, problem, budget):
        return Proposal()


@dataclass(frozen=True)
class Spendthrift(Method):
    def solve(self, problem, budget):
        return Proposal(evaluations=1000)


@dataclass(frozen=True)
class Vandal(Method):
    def solve(self, problem, budget):
        problem.predictor.model.eval()
        return Proposal()


@pytest.mark.parametrize(
    ("method", "complaint"),
    [
        (Liar(), "suffice, but"),
        (Unfrozen(), "is not frozen"),
        (Spendthrift(), "evaluations"),
        (Vandal(), "the model was changed: .training"),
    ],
    ids=repr,
)
def test_contract_catches(method: Method, complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        check_method(method)


@dataclass(frozen=True)
class Refuted(Method):
    """Proposes one set that does not hold, then gives up unless it is told so."""

    def solve(self, problem, budget):
        if not problem.refuted:
            return Proposal(((0,), (1,)))
        best = butfor.Greedy().solve(problem.metered(budget))
        assert problem.refuted == {frozenset({0}), frozenset({1})}
        return best


def test_search_goes_on_when_the_whole_graph_refutes_it() -> None:
    for seed in range(30):
        model, data = random_problem(seed)
        for node in range(8):
            truth = butfor.explain(model, data, node)
            singles = {result.removed_edges for result in [truth] if result.size == 1}
            if truth.size is not None and truth.size > 1 and not singles:
                result = butfor.explain(model, data, node, Refuted())
                assert result.found
                assert result.removed_edges == truth.removed_edges
                return
    raise AssertionError("no problem needs more than one edge")


def test_subgraph_takes_any_explainer_and_the_ground_truth_size() -> None:
    data = butfor.datasets.tree_cycles(seed=0)
    model = butfor.models.PaperGCN(10, 2)
    method = butfor.RemoveSubgraph(DummyExplainer(), size="ground-truth")
    results = butfor.explain(model, data, [600, 601, 602], method)
    assert all(result.size in (None, 6) for result in results)
    model, plain = random_problem(0)
    with pytest.raises(InputError, match="ground-truth"):
        butfor.explain(model, plain, 0, method)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: butfor.CFGNN(epochs=0), "epochs is 0"),
        (lambda: butfor.CFGNN(lr=-1), "lr is -1"),
        (lambda: butfor.CFGNN(optimizer="lbfgs"), "optimizer is 'lbfgs'"),
        (lambda: butfor.CFGNN(momentum=1.0), "momentum is 1.0"),
        (lambda: butfor.CFGNN(optimizer="adam", momentum=0.5), "momentum is for optimizer 'sgd'"),
        (lambda: butfor.CFGNN(clip=0.0), "clip is 0.0"),
        (lambda: butfor.Greedy(width=0), "width is 0"),
        (lambda: butfor.Exact(width=0), "width is 0"),
        (lambda: butfor.Exact(k=0), "k is 0"),
        (lambda: butfor.Exact(threads=-1), "threads is -1"),
        (lambda: butfor.RandomPerturbation(samples=0), "samples is 0"),
        (lambda: butfor.RemoveSubgraph(size=0), "size is 0"),
        (lambda: butfor.Budget(evaluations=0), "budget of 0 evaluations"),
    ],
)
def test_senseless_hyper_parameters(make, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


class Counting(torch.nn.Module):
    """A model that counts edges in a way that no weight can follow."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, _ = random_problem(0)

    def forward(self, x, edge_index):
        return self.inner(x, edge_index) + torch.bincount(edge_index[1], minlength=len(x))[:, None] * x[:, :3] / 50


def test_models_without_gradients() -> None:
    model, data = Counting(), random_problem(0)[1]
    blind = butfor.explain(model, data, range(8), butfor.Greedy(width=2))
    assert sum(result.found for result in blind) >= 3
    assert all(NO_GRADIENT in result.note for result in blind)
    assert not any(result.note for result in butfor.explain(model.inner, data, range(8), butfor.Greedy(width=2)))
    instead = butfor.explain(model, data, range(8), butfor.CFGNN())
    assert all(INSTEAD in result.note for result in instead)
    assert [result.removed_edges for result in instead] == [
        result.removed_edges for result in butfor.explain(model, data, range(8), butfor.Greedy())
    ]


@pytest.mark.parametrize("method", [butfor.Greedy(width=4), butfor.Exact(), butfor.Exact(all_smallest=True)])
@pytest.mark.parametrize("bounded", [False, True])
def test_time_may_run_out_at_any_moment(method: Method, bounded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    model, data = random_problem(3, nodes=12)
    problem = Session.of(model, data).builder.build((2,))
    sure = butfor.Exact().solve(problem.metered(Budget(None)))
    for moment in range(60):
        # The clock stands still, and after so many looks at it an hour has passed.
        now = time.monotonic()
        monkeypatch.setattr("butfor.methods.exact.WORTH_A_BOUND", 2 if bounded else 10**9)
        ticks = itertools.chain([now] * moment, itertools.repeat(now + 3600))
        monkeypatch.setattr("butfor.problem.problem.time.monotonic", lambda ticks=ticks: next(ticks))
        proposal = method.solve(problem.metered(Budget(None, seconds=60)))
        monkeypatch.undo()
        assert proposal.lower_bound <= sure.lower_bound
        assert not proposal.exhausted or sure.exhausted
