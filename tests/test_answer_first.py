"""An answer first, then the proof: `Exact` has an answer wherever `Greedy` has one at the same budget."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric import nn as gnn
from torch_geometric.data import Data

import butfor
from butfor.methods.greedy import Greedy
from butfor.session import Session


def undirected(pairs: list[tuple[int, int]], x: Tensor) -> Data:
    ends = torch.tensor(pairs).T
    return Data(x=x, edge_index=torch.cat([ends, ends.flip(0)], dim=1))


class Crowd(nn.Module):
    """Class 0 while a node has more than four neighbours."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        count = torch.zeros(len(x)).index_add(0, edge_index[1], torch.ones(edge_index.size(1))) - 4.5
        return torch.stack([count, -count], dim=1)


@pytest.mark.parametrize(
    "leaves", [12, 15, 25, *(pytest.param(n, marks=pytest.mark.slow) for n in (13, 14, 17, 18, 30, 70))]
)
def test_a_star_that_greedy_solves(leaves: int) -> None:
    data = undirected([(0, leaf) for leaf in range(1, leaves + 1)], torch.ones(leaves + 1, 1))
    exact = butfor.explain(Crowd(), data, 0)
    assert exact.size == leaves - 4
    assert exact.evaluations <= 3000
    assert exact.lower_bound >= butfor.explain(Crowd(), data, 0, butfor.Greedy()).lower_bound


MODELS = {
    "GCN": lambda: gnn.GCN(3, 8, 2, 2),
    "SAGE": lambda: gnn.GraphSAGE(3, 8, 2, 2),
    "GAT": lambda: gnn.GAT(3, 8, 2, 2),
    "GIN": lambda: gnn.GIN(3, 8, 2, 2),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("budget", [60, pytest.param(400, marks=pytest.mark.slow)])
def test_exact_has_an_answer_wherever_greedy_has_one(name: str, budget: int) -> None:
    solved = 0
    for seed in range(3):
        random = np.random.default_rng(seed)
        torch.manual_seed(seed)
        nodes, edges = 14, (18, 30, 60)[seed]
        pairs = np.argwhere(np.triu(np.ones((nodes, nodes)), 1))
        chosen = random.permutation(pairs)[:edges].tolist()
        data = undirected([tuple(pair) for pair in chosen], torch.randn(nodes, 3))
        model = MODELS[name]().eval()
        for width in (4, 64):
            for node in (0, 5):
                found = [
                    butfor.explain(model, data, node, method, budget=butfor.Budget(budget))
                    for method in (butfor.Greedy(width), butfor.Exact(width=width))
                ]
                assert found[1].found >= found[0].found, f"seed {seed}, node {node}, width {width}"
                assert found[1].evaluations <= budget
                if found[0].found:
                    solved += 1
                    assert found[1].cost <= found[0].cost
    assert solved


def test_what_greedy_spends_at_most_is_no_underestimate() -> None:
    for leaves in (5, 9, 30):
        data = undirected([(0, leaf) for leaf in range(1, leaves + 1)], torch.ones(leaves + 1, 1))
        for width in (None, 1, 3, 64):
            problem = Session.of(Crowd(), data, goal=butfor.Goal(wanted=1, least=100.0)).builder.build((0,))
            hopeless = Greedy(width).solve(problem.metered(butfor.Budget(None)))
            assert not hopeless.candidates
            easy = Session.of(Crowd(), data).builder.build((0,))
            solved = Greedy(width).solve(easy.metered(butfor.Budget(None)))
            most = Greedy(width).most_evaluations(leaves)
            assert max(hopeless.evaluations, solved.evaluations) <= most


def test_where_the_budget_is_spent_bounds_still_say_what_they_can() -> None:
    """Greedy takes everything; that no few deletions do it is known without asking the model."""
    torch.manual_seed(0)
    leaves = 80
    data = undirected([(0, leaf) for leaf in range(1, leaves + 1)], torch.randn(leaves + 1, 3))
    model = gnn.GCN(3, 8, 2, 2).eval()
    model.convs[-1].bias.data += torch.tensor([50.0, 0.0])
    result = butfor.explain(model, data, 0, budget=butfor.Budget(50))
    assert (result.status.value, result.evaluations) == ("unknown", 50)
    assert result.lower_bound > 10
    random = np.random.default_rng(0)
    problem = Session.of(model, data).builder.build((0,))
    sets = [random.permutation(leaves)[: int(result.lower_bound) - 1] for _ in range(2000)]
    assert not problem.ask(sets).reached.any()
