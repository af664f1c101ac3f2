"""A fast oracle is used for the models it recognises and no others, and says what the general one says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from torch_geometric.nn import GCN
from torch_geometric.utils import degree

from butfor.edits.edits import pack
from butfor.models import PaperGCN
from butfor.oracle.gcn.oracle import GCNOracle
from butfor.oracle.general import ModelOracle
from butfor.oracle.program.oracle import ProgramOracle
from butfor.session import Session
from butfor.testing import random_problem
from votes import path

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from butfor.problem.problem import Problem

GCNS = {
    "GCN": lambda: GCN(4, 8, 2, 3),
    "GCN-jk": lambda: GCN(4, 8, 3, 3, jk="cat"),
    "GCN-last": lambda: GCN(4, 8, 2, 3, jk="last"),
    "PaperGCN": lambda: PaperGCN(4, 3),
}


def both_oracles(name: str, weighted: bool = False) -> tuple[list[Problem], GCNOracle, ModelOracle]:
    """The problems of some nodes, and the fast and the general oracle for them."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = GCNS[name]().eval()
    _, data = random_problem(2, nodes=16, density=0.15)
    if weighted:
        data.edge_weight = symmetric_weights(data)
    session = Session.of(model, data, directed=False)
    problems = [session.problem(node) for node in range(8)]
    assert all(isinstance(problem.oracle, GCNOracle) for problem in problems)
    return problems, problems[0].oracle, ModelOracle(session.predictor)


def symmetric_weights(data: Data) -> torch.Tensor:
    low, high = data.edge_index.sort(dim=0).values
    return 0.5 + ((low * 7 + high * 3) % 5) / 4


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", GCNS)
def test_the_fast_oracle_equals_the_general_one(name: str, weighted: bool) -> None:
    problems, fast, general = both_oracles(name, weighted)
    random = np.random.default_rng(1)
    asked = []
    for problem in problems:
        count = len(problem.edits)
        sets = [random.permutation(count)[: random.integers(0, count + 1)] for _ in range(5)]
        asked.append((problem.edits, pack(sets)))
    for one, other in zip(fast.logits(asked), general.logits(asked), strict=True):
        assert torch.allclose(one, other, atol=1e-5)

    edits = [problem.edits for problem in problems]
    relaxed = [oracle.relax(edits) for oracle in (fast, ProgramOracle(general))]
    total = sum(len(each) for each in edits)
    assert relaxed[0].pointers.tolist() == relaxed[1].pointers.tolist()
    soft = torch.from_numpy(random.random(total, dtype=np.float32))
    binary = (soft > 0.3).float()
    pull = torch.from_numpy(random.standard_normal((len(edits), 3)).astype(np.float32))
    for degrees in (None, soft, binary):
        outcomes = []
        for relaxation in relaxed:
            weights = soft.clone().requires_grad_()
            logits = relaxation.logits(weights, degrees)
            (gradient,) = torch.autograd.grad((logits * pull).sum(), weights)
            outcomes.append((logits.detach(), gradient))
        assert torch.allclose(outcomes[0][0], outcomes[1][0], atol=1e-5)
        assert torch.allclose(outcomes[0][1], outcomes[1][1], atol=1e-5)
    weights, counted = soft.clone().requires_grad_(), binary.clone().requires_grad_()
    gradients = [
        torch.autograd.grad((relaxation.logits(weights, counted) * pull).sum(), [weights, counted])
        for relaxation in relaxed
    ]
    assert all(torch.allclose(one, other, atol=1e-5) for one, other in zip(*gradients, strict=True))


@pytest.mark.parametrize("name", ["GCN", "PaperGCN"])
def test_weights_of_zero_and_one_equal_deletion_for_both(name: str) -> None:
    problems, fast, general = both_oracles(name)
    edits = [problem.edits for problem in problems]
    random = np.random.default_rng(3)
    gone = [np.flatnonzero(random.random(len(each)) < 0.4) for each in edits]
    weights = torch.ones(sum(len(each) for each in edits))
    starts = np.concatenate([[0], np.cumsum([len(each) for each in edits])])
    for start, chosen in zip(starts, gone, strict=False):
        weights[start + chosen] = 0.0
    truth = torch.cat(general.logits([(each, chosen[None]) for each, chosen in zip(edits, gone, strict=True)]))
    for oracle in (fast, ProgramOracle(general)):
        assert torch.allclose(oracle.relax(edits).logits(weights), truth, atol=1e-5)


def most_edges(x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
    """Something that a GCN does not read: whether a node has as many edges as any."""
    count = degree(edge_index[1], len(x))
    return (count == count.max()).float()[:, None] * torch.tensor([1.0, 0.0])


def test_a_model_with_hooks_or_another_forward_is_not_taken_for_what_its_class_says() -> None:
    data = path(torch.ones(8, 1))
    torch.manual_seed(0)
    plain, hooked, exchanged = (GCN(1, 4, 2, 2).eval() for _ in range(3))
    hooked.register_forward_hook(lambda module, given, out: out + most_edges(*given))
    forward = exchanged.forward
    exchanged.forward = lambda x, edge_index: forward(x, edge_index) + most_edges(x, edge_index)
    oracles = [Session.of(model, data).problem(3).oracle for model in (plain, hooked, exchanged)]
    assert [isinstance(oracle, GCNOracle) for oracle in oracles] == [True, False, False]
    assert [oracle.knows_layers for oracle in oracles] == [True, False, False]
