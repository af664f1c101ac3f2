"""Any graph neural network is explained, whatever its layers: every answer against every subset of the edges."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric import nn as pyg
from torch_geometric.data import Data

import butfor
from butfor.methods import cf_gnn
from butfor.methods.greedy import NO_GRADIENT
from butfor.result.settle import CONTRADICTS
from butfor.result.status import Status
from butfor.testing import predict_without, random_problem
from claims import check_claims, check_proved
from gnn_models import CLASSES, WIDTH, Stack
from gnns import FAMILIES, FRAGILE, LOCAL, in_use, one_way, question, quick_ones, ring, scores_without, small
from hand_edits import edges_of
from model_state import changed, state
from sampling import split

INSTEAD = cf_gnn.INSTEAD.format("Greedy")

# Each model one way, and one of each family the other way too.
ONE_WAY = one_way(first=False)
OTHER_WAY = [case for case in one_way(first=True) if case[0] in FAMILIES]
SOME = [0, 1, 3, 4]  # nodes of a small graph that are worth asking about


@pytest.mark.parametrize(("name", "directed"), split([*ONE_WAY, *OTHER_WAY], quick_ones(ONE_WAY)))
def test_exact_proves_what_brute_force_finds(name: str, directed: bool) -> None:
    check_some(name, directed)


def check_some(name: str, directed: bool = False) -> list[butfor.Counterfactual]:
    """Ask about some nodes of a small graph; few may be too close to call, and edges must decide of one."""
    asked = question(name, directed)
    truths = [asked.truths[node] for node in SOME if not asked.truths[node].doubtful]
    assert len(truths) >= len(SOME) - 1, "too many near ties to learn anything"
    assert any(truth.tenths for truth in truths), "no edges decide anything, so nothing was tested"
    return check_proved(asked, truths, butfor.Exact(all_smallest=True))


@pytest.mark.parametrize("name", LOCAL)
def test_brute_force_side_by_side_is_one_after_the_other(name: str) -> None:
    asked = question(name)
    for row in (0, 100, len(asked.chosen) - 1):
        assert np.allclose(asked.alone(asked.chosen[row]).numpy(), asked.scores[row], atol=1e-5)


QUICK = butfor.CFGNN(epochs=30, lr=0.5, beta=0.0, optimizer="adam", keep="first")


@pytest.mark.slow
@pytest.mark.parametrize("name", LOCAL)
def test_counterfactuals_of_other_methods_are_verified(name: str) -> None:
    asked = question(name, directed=list(LOCAL).index(name) % 2 == 0)
    model = in_use(asked.kind, asked.data)
    before = state(model)
    easiest = sorted(asked.truths, key=lambda truth: truth.cost)[:2]
    for method, note in ((butfor.Greedy(width=2), NO_GRADIENT), (QUICK, INSTEAD)):
        results = replace(asked, model=model).ask([truth.target for truth in easiest], method)
        assert any(result.found for result in results), "nothing was found, so nothing was tested"
        for truth, result in zip(easiest, results, strict=True):
            check_claims(asked, truth, result)
            assert (note in result.note) == (not asked.kind.relaxed), result.note
    assert not changed(before, state(model))


class Ignoring(nn.Module):
    """Reads no edges at all."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, CLASSES)

    def forward(self, x, edge_index):
        return self.linear(x)


class WithoutGradients(Stack):
    """For predictions only, as people write it."""

    @torch.no_grad()
    def forward(self, x, edge_index):
        return self.run(x, edge_index)


@pytest.mark.parametrize("method", [butfor.Greedy(width=2), butfor.CFGNN(epochs=5)], ids=["Greedy", "CFGNN"])
def test_a_model_that_gives_no_gradients_is_searched_without(method) -> None:
    data = small(False)
    torch.manual_seed(0)
    (result,) = butfor.explain(Ignoring().eval(), data, [0], method)
    assert (NO_GRADIENT if isinstance(method, butfor.Greedy) else INSTEAD) in result.note


@pytest.mark.parametrize("method", [butfor.Greedy(width=2), butfor.CFGNN(epochs=5)], ids=["Greedy", "CFGNN"])
def test_a_model_whose_own_gradients_are_off_has_those_of_its_program(method) -> None:
    data = small(False)
    torch.manual_seed(0)
    model = WithoutGradients(pyg.GCNConv(WIDTH, CLASSES)).eval()
    (result,) = butfor.explain(model, data, [0], method)
    assert "gradient" not in result.note


@pytest.mark.parametrize("name", split(FRAGILE, ["median"]))
def test_edits_on_which_the_model_fails_are_no_counterfactuals(name: str) -> None:
    asked = question(name)
    assert np.isnan(asked.scores[-1]).all(), "it does not fail without edges, so nothing was tested"
    check_some(name)
    for method in (butfor.Greedy(), butfor.CFGNN(epochs=5)):
        for node, result in zip(SOME, asked.ask(SOME, method), strict=True):
            check_claims(asked, asked.truths[node], result)


@pytest.mark.slow
def test_a_model_that_fails_on_a_neighbourhood_does_not_fail_on_the_graph() -> None:
    kind, data = FRAGILE["median"], ring(False)
    for node, size in {26: 2, 32: 1, 37: 1}.items():
        own = [pair for pair in edges_of(data, False) if node in pair]
        intact = scores_without(kind, data, (), False)[node]
        sets = [chosen for count in range(1, size + 1) for chosen in itertools.combinations(own, count)]
        changed = [
            chosen
            for chosen in sets
            if int(scores_without(kind, data, chosen, False)[node].argmax()) != int(intact.argmax())
        ]
        assert min(map(len, changed)) == size
        result = butfor.explain(kind.make(data), data, node)
        assert (result.status.value, result.size) == ("optimal", size)


def test_a_model_that_breaks_down_after_a_deletion() -> None:
    # Without the edge 1 → 0 the degree of node 0 is 1 - 2 = -1, and its root is no number.
    edges, weights = torch.tensor([[1, 2], [0, 0]]), torch.tensor([1.5, -2.0])
    broken = 0
    for seed in range(20):
        model, data = random_problem(seed)
        data = Data(x=data.x[:3], edge_index=edges, edge_weight=weights)
        with torch.no_grad():
            before, after = (model(data.x, edges[:, kept], weights[kept])[0] for kept in ([0, 1], [1]))
        assert after.isnan().all()
        # argmax calls no number class 0, so only another class before makes it look like a change.
        if int(before.argmax()) != 0:
            broken += 1
            for method in (butfor.Exact(), butfor.Greedy(), butfor.RandomPerturbation(samples=50)):
                result = butfor.explain(model, data, 0, method)
                assert (1, 0) not in result.removed_edges or (2, 0) in result.removed_edges
    assert broken >= 5


class Weighted(torch.nn.Module):
    def __init__(self, *layers) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(layers)

    def forward(self, x, edge_index, edge_weight=None):
        for layer in self.layers:
            x = layer(x, edge_index, edge_weight)
        return x


@pytest.mark.slow
@pytest.mark.parametrize(
    "layers",
    [
        lambda: (pyg.GraphConv(4, 8), pyg.GraphConv(8, 3)),
        lambda: (pyg.GraphConv(4, 8), pyg.GCNConv(8, 3)),
        lambda: (pyg.SGConv(4, 3, K=2),),
        lambda: (pyg.GCNConv(4, 3, normalize=False),),
        lambda: (pyg.GCNConv(4, 8, add_self_loops=False), pyg.GCNConv(8, 3, add_self_loops=False)),
    ],
    ids=["GraphConv", "mixed", "SGConv", "unnormalised", "no-loops"],
)
@pytest.mark.parametrize("method", [butfor.CFGNN(epochs=60, lr=1.0), butfor.CFGNN.published(epochs=60, lr=1.0)])
def test_cf_gnn_on_other_layers_that_take_weights(layers, method) -> None:
    torch.manual_seed(3)
    model, (_, data) = Weighted(*layers()).eval(), random_problem(3, nodes=12, density=0.2)
    for result in butfor.explain(model, data, range(12), method):
        if result.after is not None:
            after = predict_without(model, data, result.removed_edges).argmax(1)[result.target]
            assert int(after) == result.after.label != result.before.label


class Moody(torch.nn.Module):
    """Answers differently every time once it was asked often enough."""

    def __init__(self, patience: int) -> None:
        super().__init__()
        self.inner, self.left = random_problem(3)[0], patience

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        self.left -= 1
        out = self.inner(x, edge_index)
        return out if self.left > 0 else out + 0.01 * (-self.left) * torch.tensor([1.0, -1.0, 0.5])


@pytest.mark.slow
def test_a_model_that_contradicts_itself_proves_nothing() -> None:
    _, data = random_problem(3)
    calm = butfor.explain(Moody(10**9), data, 0)
    assert calm.status in (Status.OPTIMAL, Status.IMPOSSIBLE)
    doubted = 0
    for patience in range(3, 60, 3):
        try:
            result = butfor.explain(Moody(patience), data, 0)
        except butfor.ButforError:
            continue  # it was noticed before the search
        if CONTRADICTS in result.note:
            doubted += 1
            assert result.status in (Status.FOUND, Status.UNKNOWN)
            assert result.lower_bound == 0
    assert doubted
