"""Graph attacks as explainers: the contract, every kind of edit, task and model, and what they may not do."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GAT, GCN, GIN, GraphSAGE, SimpleConv, global_mean_pool

import butfor
from butfor.errors import InputError
from butfor.explainer import Explainer
from butfor.methods.attack import GRBCD, INSTEAD, PRBCD, GRBCDAttack, PRBCDAttack
from butfor.problem import Budget
from butfor.testing import CHECKS, random_problem

if TYPE_CHECKING:
    from butfor.methods.base import Method

# Everything in one block, and blocks so small that they are drawn anew.
PLAIN = [PRBCD(epochs=4, samples=3), GRBCD()]
SMALL = [PRBCD(block_size=4, epochs=5, lr=1.0, loss="prob_margin", samples=5), GRBCD(block_size=2, loss="tanh_margin")]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("method", PLAIN, ids=repr)
def test_contract(method: Method, check) -> None:
    check(method)


class Links(nn.Module):
    """Scores pairs of nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.convolutions, self.last = GCN(4, 8, 2), nn.Linear(8, 2)

    def forward(self, x: Tensor, edge_index: Tensor, edge_label_index: Tensor) -> Tensor:
        x = self.convolutions(x, edge_index)
        return self.last(x[edge_label_index[0]] * x[edge_label_index[1]])


class Whole(nn.Module):
    """Scores whole graphs."""

    def __init__(self) -> None:
        super().__init__()
        self.convolutions, self.last = GIN(4, 8, 2), nn.Linear(8, 3)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return self.last(global_mean_pool(self.convolutions(x, edge_index), batch))


class Hardened(nn.Module):
    """No weight of an edge goes through a comparison of what the edges brought."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = GCN(4, 8, num_layers=2, out_channels=3)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        degree = torch.bincount(edge_index[1], minlength=len(x))[:, None]
        return self.inner(x, edge_index) + degree * torch.tensor([-0.5, 0.5, 0.0])


def build(make, seed: int = 0) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make().eval()


MODELS = {
    "GAT": lambda: GAT(4, 8, 2, 3),
    "GraphSAGE": lambda: GraphSAGE(4, 8, 2, 3),
    "GCN": lambda: GCN(4, 8, 2, 3),
}
SPACES = {
    "deletions": butfor.EditSpace(),
    "additions and features": butfor.EditSpace(add=butfor.Within(most=6), features=butfor.Features([-2.0, 2.0])),
}


def compare(results, best) -> int:
    """No result beats `Exact`; how many there are."""
    for result, least in zip(results, best, strict=True):
        assert not result.found or least.found
        assert not result.found or least.cost <= result.cost + 1e-9, f"{result} is better than {least}"
        assert least.status.value in ("optimal", "impossible", "unknown", "found")
        assert result.lower_bound is None or not least.found or result.lower_bound <= least.cost + 1e-9
    return sum(result.found for result in results)


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("name", MODELS)
def test_never_beats_exact(name: str, space: str) -> None:
    model, data = build(MODELS[name], seed=1), random_problem(2)[1]
    asked = {"space": SPACES[space], "seed": 3}
    best = butfor.explain(model, data, range(0, 8, 2), budget=Budget(None), **asked)
    assert all(result.status.value in ("optimal", "impossible") for result in best)
    for method in (*PLAIN, *SMALL):
        results = butfor.explain(model, data, range(0, 8, 2), method, **asked)
        assert not any(INSTEAD in result.note for result in results)
        assert compare(results, best) >= sum(result.found for result in best) - 1


@pytest.mark.parametrize("method", [*PLAIN, *SMALL], ids=repr)
def test_links_and_whole_graphs(method: Method) -> None:
    data = random_problem(1)[1]
    found = 0
    for seed in range(3):
        model = build(Links, seed)
        pairs = [butfor.Pair(0, 1), butfor.Pair(2, 5)]
        found += compare(butfor.explain(model, data, pairs, method), butfor.explain(model, data, pairs))
        model = build(Whole, seed)
        graphs = [random_problem(number, nodes=6)[1] for number in range(2)]
        found += compare(butfor.explain(model, graphs, method=method), butfor.explain(model, graphs))
    assert found > 2


@pytest.mark.parametrize("method", [*PLAIN, *SMALL], ids=repr)
@pytest.mark.parametrize(
    "space",
    [
        butfor.EditSpace(max_edits=1),
        butfor.EditSpace(keep_connected=True),
        butfor.EditSpace(delete=False, features=butfor.Features([-3.0, 0.0, 3.0])),
    ],
    ids=["max_edits", "keep_connected", "one value a feature"],
)
def test_constraints(method: Method, space: butfor.EditSpace) -> None:
    model, data = random_problem(0)
    explainer = Explainer.of(model, data, space=space)
    problems = [explainer.poser.pose((node,)) for node in range(data.num_nodes)]
    found = 0
    for problem in problems:
        proposal = method.solve(problem, Budget())
        for chosen in proposal.candidates:
            found += 1
            assert problem.ask([chosen]).reached[0]
    assert found
    assert compare(
        butfor.explain(model, data, range(8), method, space=space), butfor.explain(model, data, range(8), space=space)
    )


def test_costs_steer() -> None:
    """Two edges do the same; the cheap one is taken, wherever it stands."""
    model, data = random_problem(0)
    singles = {}
    for node, pair in itertools.product(range(8), data.edge_index.T.tolist()):
        result = butfor.explain(model, data, node, space=butfor.EditSpace(allowed=[tuple(pair)]))
        if result.found:
            singles.setdefault(node, set()).add(result.removed_edges[0])
    node, pairs = next((node, sorted(pairs)) for node, pairs in singles.items() if len(pairs) > 1)
    for method, cheap in itertools.product(PLAIN, pairs[:2]):
        space = butfor.EditSpace(allowed=pairs[:2], costs={pair: 1.0 if pair == cheap else 50.0 for pair in pairs[:2]})
        assert butfor.explain(model, data, node, method, space=space).removed_edges == (cheap,)


@pytest.mark.parametrize("method", [*PLAIN, *SMALL], ids=repr)
def test_limits(method: Method) -> None:
    model, data = random_problem(5, nodes=12)
    for limit in range(1, 30, 4):
        for result in butfor.explain(model, data, range(0, 12, 3), method, budget=Budget(limit)):
            assert result.evaluations <= limit
    (result,) = butfor.explain(model, data, [0], method, budget=Budget(None, 1e-9))
    assert result.evaluations == 0
    assert not result.found


def test_greedy_searches_where_there_are_no_gradients() -> None:
    model, data = build(Hardened), random_problem(0)[1]
    plain = butfor.explain(model, data, range(8), butfor.Greedy())
    for method in PLAIN:
        results = butfor.explain(model, data, range(8), method)
        assert all(INSTEAD in result.note for result in results)
        assert [result.edits for result in results] == [result.edits for result in plain]


def test_a_refuted_set_is_not_proposed_again() -> None:
    model, data = random_problem(0)
    for method in PLAIN:
        explainer = Explainer.of(model, data)
        for problem in (explainer.poser.pose((node,)) for node in range(8)):
            first = method.solve(problem, Budget()).candidates
            again = method.solve(problem.without(first), Budget()).candidates
            assert not set(first) & set(again)


def test_pyg_is_left_as_it_was() -> None:
    before = dict(PRBCDAttack.coeffs), dict(GRBCDAttack.coeffs)
    model, data = random_problem(0)
    for method in SMALL:
        butfor.explain(model, data, 0, method, budget=Budget(5))
    assert before == (PRBCDAttack.coeffs, GRBCDAttack.coeffs)


def test_no_derivative_at_an_isolated_node() -> None:
    class Bare(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = GCN(4, 8, 2, 3, add_self_loops=False)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.inner(x, edge_index)

    model = build(Bare)
    data = random_problem(3)[1]
    for method in (*PLAIN, *SMALL):
        assert compare(butfor.explain(model, data, range(8), method), butfor.explain(model, data, range(8)))


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: PRBCD(block_size=0), "block_size is 0"),
        (lambda: PRBCD(epochs=1.5), "epochs is 1.5"),
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


@pytest.mark.parametrize("loss", ["masked", "margin", "prob_margin", "tanh_margin"])
def test_every_loss_reaches_a_wanted_class(loss) -> None:
    data = Data(
        x=torch.tensor([[0.0], [1.0], [2.0], [-5.0]]), edge_index=torch.tensor([[1, 0, 2, 0, 3, 0], [0, 1, 0, 2, 0, 3]])
    )

    class Simple(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = SimpleConv("sum")

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            total = self.conv(x, edge_index)
            return torch.cat([-total, total, 0 * total - 9], dim=1)

    for method in (PRBCD(epochs=5, loss=loss), GRBCD(loss=loss)):
        result = butfor.explain(Simple(), data, 0, method, goal=butfor.Goal(wanted=1, least=0.5))
        assert result.removed_edges == ((0, 3),)
        assert INSTEAD not in result.note
