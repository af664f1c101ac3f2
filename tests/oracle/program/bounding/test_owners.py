"""Features that edits set are edits of their node: bounds hold for all kinds of edits together."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from torch_geometric.nn import GAT, GIN, GraphSAGE

import butfor
from butfor.edits.edits import pack
from butfor.oracle.program.oracle import ProgramOracle
from butfor.testing import random_problem

if TYPE_CHECKING:
    from collections.abc import Callable

MODELS: dict[str, Callable[[], torch.nn.Module]] = {
    "mean": lambda: GraphSAGE(3, 6, 2, 3),
    "max": lambda: GraphSAGE(3, 6, 2, 3, aggr="max"),
    "sum": lambda: GIN(3, 6, 2, 3),
    "softmax": lambda: GAT(3, 6, 2, 3, heads=2),
}

SPACES = {
    "all kinds": butfor.EditSpace(add=butfor.Within(2, most=8), features=butfor.Features(values=(-2.0, 2.0))),
    "features": butfor.EditSpace(delete=False, features=butfor.Features(values=(-1.0, 1.0))),
}


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("name", MODELS)
def test_no_set_of_edits_lies_below_its_bound(name: str, space: str) -> None:
    narrow = 0
    for seed in range(2):
        _, data = random_problem(seed, nodes=9)
        torch.manual_seed(seed)
        data.x = torch.randn(9, 3, dtype=torch.float64)
        session = butfor.prepare(MODELS[name]().double().eval(), data, space=SPACES[space])
        for node in (0, 6):
            narrow += families_below(session.problem(node), np.random.default_rng(seed + node))
    assert narrow


def families_below(problem: object, random: np.random.Generator) -> int:
    """Check some families of a problem against the model. Returns how many bounds do better than nothing."""
    oracle, edits = problem.oracle, problem.edits
    assert isinstance(oracle, ProgramOracle)
    pairs = problem.goal.pairs(problem.predictor.num_classes, problem.before)
    bounding = oracle._bounding(edits, pairs, True)
    finite = 0
    for made_first in (0, 1):
        order = random.permutation(np.flatnonzero(oracle.relevant(edits)))
        made, free = order[:made_first], order[made_first : made_first + 7]
        for most in (1, 2, 7):
            sizes = range(min(most, len(free)) + 1)
            sets = pack([(*made, *more) for size in sizes for more in itertools.combinations(free, size)])
            sets = sets[edits.permits(sets)]
            truth = (oracle.general.logits([(edits, sets)])[0].numpy() @ pairs.T).min(axis=1)
            bound = bounding.least_margin(made, free, most)
            assert bound <= truth.min() + 1e-9
            finite += bool(np.isfinite(bound))
    return finite
