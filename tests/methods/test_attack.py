"""Graph attacks as explainers: every kind of edit, task and model, and what they may not do."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCN, GIN, SimpleConv, global_mean_pool

import butfor
from butfor.errors import InputError
from butfor.methods.attack import GRBCD, INSTEAD, PRBCD, GRBCDAttack, PRBCDAttack
from butfor.problem.budget import Budget
from butfor.session import Session
from butfor.testing import random_problem
from sampling import slow
from truth import random_model
from without_gradients import WithoutGradients

if TYPE_CHECKING:
    from collections.abc import Callable

    from butfor.methods.base import Method
    from butfor.result.counterfactual import Counterfactual

# Everything in one block, and blocks so small that they are drawn anew.
PLAIN = [PRBCD(epochs=2, samples=2), GRBCD()]
SMALL = [PRBCD(block_size=4, epochs=5, lr=1.0, loss="prob_margin", samples=3), GRBCD(block_size=2, loss="tanh_margin")]
METHODS = [*PLAIN, *SMALL]
BY_GREEDY = INSTEAD.format("Greedy")


def balanced(kind: str, seed: int = 0) -> tuple[nn.Module, Data]:
    """A model whose classes are evenly matched, so that there is something to find."""
    data = random_problem(seed)[1]
    return random_model(kind, 6 * seed + 1, 3, data), data


def build(make: Callable[[], nn.Module], seed: int = 0) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make().eval()


def check_against(best: list[Counterfactual], results: list[Counterfactual], most: bool = True) -> None:
    """`Exact` proved its answers, and no result beats them; all but one are found, if most must be."""
    for result, least in zip(results, best, strict=True):
        assert least.status.value in ("optimal", "impossible")
        assert BY_GREEDY not in result.note
        assert result.lower_bound is None or not least.found or result.lower_bound <= least.cost + 1e-9
        if result.found:
            assert least.found
            assert least.cost <= result.cost + 1e-9, f"{result} beats {least}"
    assert any(result.found for result in best)
    assert not most or sum(result.found for result in results) >= max(sum(result.found for result in best) - 1, 1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["GAT", "GraphSAGE", "GCN"])
@pytest.mark.parametrize(
    "space",
    [
        butfor.EditSpace(),
        butfor.EditSpace(
            delete=False, add=butfor.Within(most=5), features=butfor.Features([-2.0, 2.0], columns=[0, 1])
        ),
    ],
    ids=["deletions", "additions and features"],
)
def test_never_beats_exact(kind: str, space: butfor.EditSpace) -> None:
    model, data = balanced(kind, seed=1)
    best = butfor.explain(model, data, range(3), space=space, budget=Budget(None))
    for method in METHODS:
        check_against(best, butfor.explain(model, data, range(3), method, space=space), most=method in PLAIN)


class Links(nn.Module):
    """Scores pairs of nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.convolutions, self.last = GCN(4, 8, 2), nn.Linear(8, 2, bias=False)

    def forward(self, x: Tensor, edge_index: Tensor, edge_label_index: Tensor) -> Tensor:
        x = self.convolutions(x, edge_index)
        return self.last(x[edge_label_index[0]] * x[edge_label_index[1]])


class Whole(nn.Module):
    """Scores whole graphs."""

    def __init__(self) -> None:
        super().__init__()
        self.convolutions, self.last = GIN(4, 8, 2), nn.Linear(8, 3, bias=False)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return self.last(global_mean_pool(self.convolutions(x, edge_index), batch))


@pytest.mark.parametrize("method", PLAIN, ids=repr)
def test_links(method: Method) -> None:
    model, data = build(Links, 2), random_problem(1)[1]
    pairs = [butfor.Pair(0, 1), butfor.Pair(2, 5), butfor.Pair(3, 4)]
    check_against(butfor.explain(model, data, pairs), butfor.explain(model, data, pairs, method))


@pytest.mark.parametrize("method", PLAIN, ids=repr)
def test_whole_graphs(method: Method) -> None:
    model, graphs = build(Whole, 1), [random_problem(seed, nodes=6)[1] for seed in range(4)]
    with torch.no_grad():
        scores = [model(one.x, one.edge_index, torch.zeros(6, dtype=torch.long)) for one in graphs]
        model.last.bias = nn.Parameter(-torch.cat(scores).mean(dim=0))
    check_against(butfor.explain(model, graphs), butfor.explain(model, graphs, method=method))


@pytest.mark.parametrize("method", METHODS, ids=repr)
@pytest.mark.parametrize(
    "space",
    [
        butfor.EditSpace(max_edits=2),
        butfor.EditSpace(keep_connected=True),
        butfor.EditSpace(delete=False, features=butfor.Features([-3.0, 0.0, 3.0], columns=[0, 1])),
    ],
    ids=["max_edits", "keep_connected", "one value a feature"],
)
def test_constraints(method: Method, space: butfor.EditSpace) -> None:
    model, data = balanced("GCN")
    session = Session.of(model, data, space=space)
    for problem in map(session.problem, range(4)):
        for chosen in method.solve(problem.metered(Budget())).candidates:
            assert problem.edits.permits(torch.tensor([chosen]).numpy())[0]
            assert problem.ask([chosen]).reached[0]
    best = butfor.explain(model, data, range(4), space=space, budget=Budget(None))
    check_against(best, butfor.explain(model, data, range(4), method, space=space), most=method in PLAIN)


class Sum(nn.Module):
    """Class 1 where the neighbours add up to more than 0; class 2 never."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = SimpleConv("sum")

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        total = self.layer(x, edge_index)
        return torch.cat([-total, total, 0 * total - 99], dim=1)


def star(*values: float) -> Data:
    """Node 0 with this many neighbours."""
    ends = [(0, leaf) for leaf in range(1, len(values) + 1)]
    edge_index = torch.tensor([*ends, *(end[::-1] for end in ends)]).T.contiguous()
    return Data(x=torch.tensor([0.0, *values])[:, None], edge_index=edge_index)


@pytest.mark.parametrize("loss", ["masked", "margin", "prob_margin", "tanh_margin"])
def test_every_loss_reaches_a_wanted_class(loss) -> None:
    for method, goal in itertools.product(
        (PRBCD(epochs=5, loss=loss), GRBCD(loss=loss)), (butfor.Goal(), butfor.Goal(wanted=1, least=0.5))
    ):
        result = butfor.explain(Sum(), star(0.1, 0.2, -0.5), 0, method, goal=goal)
        assert result.removed_edges == ((0, 3),)


def test_costs_steer() -> None:
    """Two edges do the same; the cheap one is taken, wherever it stands."""
    for method, cheap in itertools.product(METHODS, (1, 2)):
        space = butfor.EditSpace(costs={(0, leaf): 1.0 if leaf == cheap else 5.0 for leaf in (1, 2)})
        result = butfor.explain(Sum(), star(1.0, 1.0, -1.5), 0, method, space=space)
        assert result.removed_edges == ((0, cheap),)


def test_the_last_edges_are_pruned_too() -> None:
    """All edits at once are too many for PyG's block; what they do not need is undone."""
    result = butfor.explain(Sum(), star(0.1, 3.0), 0, PRBCD(), goal=butfor.Goal(wanted=0))
    assert result.size == 2
    assert butfor.explain(Sum(), star(3.0), 0, PRBCD()).size == 1


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_limits(method: Method) -> None:
    model, data = balanced("GCN", seed=3)
    for limit in range(1, 30, 7):
        for result in butfor.explain(model, data, range(0, 8, 3), method, budget=Budget(limit)):
            assert result.evaluations <= limit
    problem = Session.of(model, data).problem(0).metered(Budget(None, 1e-9))
    proposal = method.solve(problem)
    assert problem.meter.evaluations == 0
    assert not proposal.candidates


@pytest.mark.parametrize(
    ("kind", "fallback"),
    [
        (PRBCD, butfor.Greedy()),
        (GRBCD, butfor.RemoveEgo()),
        slow((PRBCD, butfor.RemoveEgo())),
        slow((GRBCD, butfor.Greedy())),
    ],
)
def test_the_fallback_searches_where_there_are_no_gradients(kind: type, fallback: Method) -> None:
    model, data = WithoutGradients(), random_problem(0)[1]
    plain = butfor.explain(model, data, range(8), fallback)
    assert any(result.found for result in plain)
    results = butfor.explain(model, data, range(8), kind(fallback=fallback))
    assert all(INSTEAD.format(type(fallback).__name__) in result.note for result in results)
    assert [result.edits for result in results] == [result.edits for result in plain]


class Bare(nn.Module):
    """No self-loops, so no derivative at a node without edges."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = GCN(4, 8, 2, 3, add_self_loops=False)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.inner(x, edge_index)


def test_no_derivative_at_an_isolated_node() -> None:
    model, data = build(Bare), random_problem(3)[1]
    best = butfor.explain(model, data, range(4), budget=Budget(None))
    for method in PLAIN:
        check_against(best, butfor.explain(model, data, range(4), method))


@pytest.mark.parametrize("lr", [1e6, 1e38])
def test_no_learning_rate_breaks_it(lr: float) -> None:
    assert butfor.explain(Sum(), star(0.1, 0.2, -0.5), 0, PRBCD(epochs=3, lr=lr)).size == 1


def test_a_refuted_set_is_not_proposed_again() -> None:
    session = Session.of(*balanced("GCN"))
    for method, node in itertools.product(PLAIN, range(4)):
        problem = session.problem(node)
        first = method.solve(problem.metered(Budget())).candidates
        assert first
        again = method.solve(problem.without(first).metered(Budget())).candidates
        assert not set(first) & set(again)


def test_pyg_is_left_as_it_was() -> None:
    before = dict(PRBCDAttack.coeffs), dict(GRBCDAttack.coeffs)
    model, data = random_problem(0)
    for method in SMALL:
        butfor.explain(model, data, 0, method, budget=Budget(5))
    assert before == (PRBCDAttack.coeffs, GRBCDAttack.coeffs)


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: PRBCD(block_size=0), "block_size is 0"),
        (lambda: PRBCD(block_size=1), "block_size is 1"),
        (lambda: PRBCD(epochs=1.5), "epochs is 1.5"),
        (lambda: PRBCD(samples=0), "samples is 0"),
        (lambda: PRBCD(lr=0.0), "lr is 0.0"),
        (lambda: PRBCD(lr=float("nan")), "lr is nan"),
        (lambda: PRBCD(lr=float("inf")), "lr is inf"),
        (lambda: PRBCD(loss="hinge"), "loss is 'hinge'"),
        (lambda: GRBCD(block_size=-3), "block_size is -3"),
        (lambda: GRBCD(epochs=0), "epochs is 0"),
        (lambda: GRBCD(loss=None), "loss is None"),
    ],
)
def test_senseless_settings_are_refused(make, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        make()
