"""What a program says is what the model says of graphs edited by hand: random graphs, models, edits and tasks."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv
from torch_geometric.nn.aggr import StdAggregation
from torch_geometric.utils import softmax

import butfor
from butfor.edits.edits import pack
from butfor.oracle import registry
from butfor.oracle.general import ModelOracle
from butfor.oracle.program.oracle import ProgramOracle, program_oracle
from gnns import FAMILIES, LOCAL, one_way, quick_ones
from program_cases import BY_HAND, EXACT, POOLS, Hand, HandGraphs, HandLinks, ProgramCase, hand_case, kind_case, sums
from sampling import sampled, split

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import nn

# Models that are written as programs. That others are right is tested too, where they happen to be one.
WRITTEN = (
    "GCN", "GCN, edge_weight", "GraphSAGE, mean", "GraphSAGE, max", "GraphSAGE, sum", "GraphSAGE, product", "GAT",
    "GATv2", "GIN", "GINE, edge_attr", "GraphConv", "GraphConv, edge_weight", "TransformerConv", "SGConv", "TAGConv",
    "APPNP", "EdgeConv", "a layer of one's own", "PointNet, pos", "batch norm",
)  # fmt: skip
NODES = (0, 4, 8)
PAIR = butfor.Pair(1, 5)
KINDS = one_way(first=False)


@pytest.fixture(autouse=True)
def _programs_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other fast oracle answers for stacks of GCN layers."""
    monkeypatch.setattr(registry, "FAST_ORACLES", [program_oracle])


def hand_model(first: str, second: str, target: object, seed: int = 0) -> nn.Module:
    """A model in plain torch that answers for such targets."""
    if target is None:
        return HandGraphs(list(POOLS)[seed % len(POOLS)], first, second, seed=seed)
    return (HandLinks if isinstance(target, butfor.Pair) else Hand)(first, second, seed=seed)


def program_of(case: ProgramCase) -> ProgramOracle | None:
    """The program, if it is what answers."""
    oracle = case.problem.oracle
    return oracle if isinstance(oracle, ProgramOracle) and len(case.edits) else None


@pytest.mark.parametrize(("name", "directed"), split(KINDS, quick_ones(KINDS, FAMILIES[1::2])))
def test_models_of_all_kinds(name: str, directed: bool) -> None:
    seed = 11 * list(LOCAL).index(name) + directed
    right = 0
    for everything in (False, True):
        for node in NODES[seed % 2 :: 2]:
            case = kind_case(LOCAL[name], seed, directed, node, everything)
            oracle = program_of(case)
            if oracle is not None:
                assert case.disagreement(oracle, seed) < EXACT
                right += 1
    assert right or name not in WRITTEN


@pytest.mark.parametrize(("directed", "first"), sampled(itertools.product((False, True), BY_HAND), every=2))
def test_layers_in_plain_torch(first: str, directed: bool) -> None:
    seed = 7 * list(BY_HAND).index(first) + directed
    second = list(BY_HAND)[(seed + 4) % len(BY_HAND)]
    for number, target in enumerate((*NODES, PAIR, None)):
        case = hand_case(hand_model(first, second, target, seed), seed + number, directed, target, number % 2 == 0)
        if len(case.edits):
            oracle = program_of(case)
            # Where no edge leads to the target, nothing is a program.
            assert oracle is not None or number < len(NODES)
            assert oracle is None or case.disagreement(oracle, number) < EXACT


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_many_more_graphs(seed: int) -> None:
    for number, name in enumerate(LOCAL):
        directed, everything = bool((seed + number) % 2), seed % 3 > 0
        case = kind_case(LOCAL[name], 1000 + 60 * seed + number, directed, number % 9, everything)
        oracle = program_of(case)
        assert oracle is None or case.disagreement(oracle, seed) < EXACT, name
    for number, first in enumerate(BY_HAND):
        for target in (number, PAIR, None):
            model = hand_model(first, list(BY_HAND)[(seed + number) % len(BY_HAND)], target, seed)
            case = hand_case(model, 2000 + 20 * seed + number, bool(seed % 2), target, seed % 3 == 0)
            oracle = program_of(case)
            assert oracle is None or case.disagreement(oracle, seed) < EXACT, first


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_edits_that_cannot_matter_do_not(directed: bool) -> None:
    checked = 0
    for seed in range(6):
        first = list(BY_HAND)[seed]
        case = hand_case(Hand(first, seed=seed), seed, directed, seed, everything=True)
        oracle = program_of(case)
        if oracle is None:
            continue
        idle = np.flatnonzero(~oracle.relevant(case.edits))
        busy = np.flatnonzero(oracle.relevant(case.edits))
        sets = case.edits.without_conflicts(np.random.default_rng(seed).random((8, len(case.edits))) < 0.4)
        sets[:, idle] = False
        alone = case.truth(pack([np.flatnonzero(row) for row in sets]))
        for edit in idle:
            more = case.truth(pack([[*np.flatnonzero(row), edit] for row in sets]))
            np.testing.assert_allclose(more, alone, atol=1e-12)
        checked += len(idle)
        assert len(busy)
    assert checked


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["GraphSAGE, mean", "GraphSAGE, max", "GAT", "GIN", "GCN", "by hand", "links", "graphs"]
)
def test_exact_search_gives_the_same_sets(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the program and by the general oracle: status, bound, every smallest set."""
    target = PAIR if name == "links" else None if name == "graphs" else 4
    method, budget = butfor.Exact(all_smallest=True, threads=1), butfor.Budget(evaluations=None)
    found = programs = 0
    for seed in range(4):
        directed, everything = seed > 1, bool(seed % 2)
        if name in LOCAL:
            case = kind_case(LOCAL[name], 30 + seed, directed, target, everything)
        else:
            case = hand_case(hand_model("attention", "mean", target, seed), 30 + seed, directed, target, everything)
        # Larger sets would take the general oracle too long.
        case = replace(case, space=replace(case.space, max_edits=2))
        mine = case.session.explain(target, method, budget=budget)
        programs += program_of(case) is not None
        with monkeypatch.context() as patch:
            patch.setattr(registry, "FAST_ORACLES", [])
            by_model = replace(case)
            assert isinstance(by_model.problem.oracle, ModelOracle)
            truth = by_model.session.explain(target, method, budget=budget)
        assert (mine.status, mine.lower_bound, mine.edits) == (truth.status, truth.lower_bound, truth.edits)
        assert {*mine.alternatives} == {*truth.alternatives}
        found += mine.found
    assert programs >= 3
    assert found


def gradient_cases() -> list[ProgramCase]:
    """Only deletions: these gradients are the program's own."""
    cases = [
        kind_case(LOCAL[name], 50 + number, bool(number % 2), 4, everything=False)
        for number, name in enumerate(("GraphSAGE, mean", "GAT", "GIN", "GCN", "TransformerConv", "SGConv", "GATv2"))
    ]
    for number, first in enumerate(BY_HAND):
        target = (4, PAIR, None)[number % 3]
        cases.append(hand_case(hand_model(first, "mean", target, number), 60 + number, bool(number % 2), target))
    return [case for case in cases if program_of(case) is not None]


def test_weights_of_0_and_1_are_the_true_edits() -> None:
    cases = gradient_cases()
    assert len(cases) > 10
    for case in cases:
        relaxation = case.problem.oracle.relax([case.edits])
        assert relaxation is not None
        sets = case.sets()
        truth = case.truth(sets)
        for chosen, row in zip(sets, truth, strict=True):
            weights = torch.ones(len(case.edits), dtype=torch.float64)
            weights[chosen[chosen >= 0]] = 0.0
            soft = relaxation.logits(weights)[0].numpy()
            np.testing.assert_allclose(scores(soft, len(row)), row, atol=EXACT)


def scores(logits: np.ndarray, width: int) -> np.ndarray:
    """A number above a threshold comes as two scores."""
    return logits if len(logits) == width else logits[1:] - logits[:1]


def test_gradients_are_slopes() -> None:
    """Between 0 and 1 derivatives are compared with differences of the relaxation itself."""
    step = 1e-5
    for number, case in enumerate(gradient_cases()):
        relaxation = case.problem.oracle.relax([case.edits])
        assert relaxation is not None
        random = torch.Generator().manual_seed(number)
        weights = 0.2 + 0.6 * torch.rand(len(case.edits), generator=random, dtype=torch.float64)
        weights.requires_grad_()
        direction = torch.randn(relaxation.logits(weights).shape, generator=random, dtype=torch.float64)
        (slope,) = torch.autograd.grad((relaxation.logits(weights) * direction).sum(), weights)
        for edit in range(len(case.edits)):
            ends = []
            for sign in (1, -1):
                moved = weights.detach().clone()
                moved[edit] += sign * step
                ends.append((relaxation.logits(moved) * direction).sum())
            assert float(slope[edit]) == pytest.approx(float(ends[0] - ends[1]) / (2 * step), abs=1e-5, rel=1e-4)


def test_gradients_of_several_targets_are_those_of_each() -> None:
    model = Hand("attention", "mean")
    case = hand_case(model, 71, False, 4)
    problems = [case.session.problem(node) for node in (4, 5, 6)]
    oracle = program_of(case)
    assert oracle is not None
    together = oracle.relax([problem.edits for problem in problems])
    assert together is not None
    weights = torch.rand(int(together.pointers[-1]), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    rows = together.logits(weights)
    for number, problem in enumerate(problems):
        alone = oracle.relax([problem.edits])
        assert alone is not None
        mine = weights[together.pointers[number] : together.pointers[number + 1]]
        torch.testing.assert_close(rows[number], alone.logits(mine)[0], atol=1e-12, rtol=0)


# Models that were written as wrong programs.


class Apart(torch.nn.Module):
    """What stands between two layers is given as a function."""

    def __init__(self, between: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.first, self.second, self.between = Hand("mean"), Hand("gated", seed=1), between

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return self.second(self.between(self.first.encode(x, edge_index), edge_index), edge_index)


def inverse_degrees(x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
    """A node that loses its last edge divides by zero, and makes up for it afterwards."""
    degree = sums(torch.ones_like(x[edge_index[0], :1]), edge_index[1], len(x))
    inverse = 1 / degree
    return x + inverse.masked_fill(inverse.isinf(), 0.0) * sums(x[edge_index[0]], edge_index[1], len(x))


def spread(x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
    """PyG's standard deviation, which is exactly 0 where there is one neighbour or none."""
    return x + 100 * StdAggregation()(x[edge_index[0]], edge_index[1], dim_size=len(x))


def softmax_of_all_features(x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
    """Each feature has its own attention, and a message is no plain copy of a sender."""
    sender, receiver = edge_index
    share = softmax(x[sender] - x[receiver], receiver, num_nodes=len(x))
    return x + sums(share * (x[sender] + x[receiver]), receiver, len(x))


@pytest.mark.parametrize("between", [inverse_degrees, spread, softmax_of_all_features])
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_models_that_were_wrong_programs(
    between: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], directed: bool
) -> None:
    for seed in (3, 4):
        case = hand_case(Apart(between), seed, directed, 4)
        oracle = program_of(case)
        assert oracle is not None
        assert case.disagreement(oracle) < EXACT


def test_the_standard_deviation_of_one_message_and_of_none() -> None:
    torch.manual_seed(0)
    data = Data(x=torch.randn(7, 2), edge_index=torch.tensor([[1, 2, 3], [0, 0, 0]]))
    space = butfor.EditSpace(add=[(4, 0), (5, 0), (6, 0)])
    problem = butfor.prepare(SAGEConv(2, 2, aggr="std").eval(), data, space=space, directed=True).problem(0)
    oracle, sets = problem.oracle, np.array([[0, 1, 2], [0, 1, -1]])
    assert isinstance(oracle, ProgramOracle)
    mine, truth = (one.logits([(problem.edits, sets)])[0] for one in (oracle, oracle.general))
    torch.testing.assert_close(mine, truth)
