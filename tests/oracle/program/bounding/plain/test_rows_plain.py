"""One reduction at a time, where plain intervals are as narrow as can be: what they say is what the model says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu
from torch_geometric.data import Data

from families import EXACT, margins, plain_of, sifted, subsets
from program_cases import ProgramCase

if TYPE_CHECKING:
    from butfor.oracle.program.bounding.plain.sieve import PlainBounding

# More than are found at once.
LEAVES = 11
SHIFT = 50.0


class One(nn.Module):
    """One number that arrives at a node, or that with its sign turned; ``heard`` if it can change before it does."""

    def __init__(self, code: str, sign: float, heard: bool, empty: float) -> None:
        super().__init__()
        self.code, self.sign, self.heard, self.empty = code, sign, heard, empty

    def arriving(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        sender, receiver = edge_index
        # Node 0 does not hear of itself.
        x = leaky_relu(x + torch.zeros_like(x).index_add(0, receiver, x[sender])) if self.heard else x
        bring = x[sender] if edge_weight is None else x[sender] * edge_weight[:, None]
        found = torch.zeros_like(x) + self.empty
        if self.code in ("sum", "mean", "root"):
            found = torch.zeros_like(x).index_add(0, receiver, bring)
        else:
            found = found.scatter_reduce(0, receiver[:, None].expand_as(bring), bring, self.code, include_self=False)
        if self.code in ("mean", "root"):
            count = torch.zeros_like(x[:, :1]).index_add(0, receiver, torch.ones_like(bring[:, :1])).clamp(min=1)
            found = found / count if self.code == "mean" else found * count.pow(-0.5)
        return found

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        score = self.sign * leaky_relu(self.arriving(x, edge_index, edge_weight) + SHIFT) + SHIFT * 3
        return torch.cat([score, 0 * score], dim=1)


def leaves_case(
    code: str, sign: float, heard: bool, copies: int = 1, empty: float = 0.0, weighted: bool = False, shift: float = 0.0
) -> ProgramCase:
    random = np.random.default_rng(1)
    ends = [(leaf, 0) for leaf in range(1, LEAVES + 1)] * copies
    x = torch.from_numpy(shift + random.normal(size=(LEAVES + 1, 1)))
    data, fields = Data(x=x, edge_index=torch.tensor(ends).T.contiguous()), ()
    if weighted:
        data.edge_weight, fields = torch.from_numpy(np.tile(random.normal(size=LEAVES), copies)), ("edge_weight",)
    return ProgramCase(lambda: One(code, sign, heard, empty), data, True, 0, fields=fields)


def check(case: ProgramCase) -> PlainBounding:
    """With all edits free, and with some made or excluded, a bound is what the model says for the budget of its level.

    Less what is taken off for rounding, which is less than 0.1.
    """
    plain, pairs, every = plain_of(case)
    sets = subsets(range(LEAVES), range(LEAVES + 1))
    truth = dict(zip(sets, margins(case, sets, pairs, every).tolist(), strict=True))
    for made, kept in (((), ()), ((), (5,)), ((2, 7), ()), ((0, 1, 10), (3, 4))):
        inside = [one for one in sets if set(made) <= set(one) and not set(kept) & set(one)]
        least = [min(truth[one] for one in inside if len(one) <= most + len(made)) for most in range(LEAVES + 1)]
        for most in range(LEAVES + 1):
            bound = plain.least_margin(made, np.setdiff1d(np.arange(LEAVES), [*made, *kept]), most)
            budget = plain.budget_of[plain.level_of[most]]
            assert least[budget] - 0.1 < bound <= least[most] + EXACT, (made, kept, most)
    return plain


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("code", ["sum", "mean", "root", "amax", "amin"])
def test_rows_that_can_change(code: str, sign: float) -> None:
    for copies, shift in ((1, 0.0), (1, 2.0), (2, -2.0)):
        plain = check(leaves_case(code, sign, True, copies, shift=shift))
        assert plain.tables.at_once.max() == copies


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("code", ["sum", "mean", "root", "amax", "amin"])
def test_rows_that_no_edit_changes(code: str, sign: float) -> None:
    for copies, shift in ((1, 0.0), (2, 2.0), (1, -2.0)):
        check(leaves_case(code, sign, False, copies, shift=shift))


@pytest.mark.parametrize("heard", [False, True])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_factors(sign: float, heard: bool) -> None:
    for copies in (1, 2):
        check(leaves_case("sum", sign, heard, copies, weighted=True))


@pytest.mark.parametrize("heard", [False, True])
@pytest.mark.parametrize("code", ["amax", "amin"])
def test_the_value_of_an_empty_row(code: str, heard: bool) -> None:
    for empty in (-9.0, 9.0):
        for sign in (1.0, -1.0):
            check(leaves_case(code, sign, heard, empty=empty))


class Mixed(nn.Module):
    """Columns that a matrix mixes, after something is added to them, and ReLU or not."""

    def __init__(self, code: str, relu: bool, weights: Tensor, heard: bool = True, empty: float = 0.0) -> None:
        super().__init__()
        self.inner, self.relu, self.weights = One(code, 1.0, heard, empty), relu, weights

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        found = self.inner.arriving(x, edge_index) + x @ self.weights[1:]
        return (found.relu() if self.relu else found) @ torch.cat([self.weights[:1], 0 * self.weights[:1]]).T


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("code", ["sum", "mean", "root", "amax", "amin"])
def test_columns_that_a_matrix_mixes(code: str, relu: bool) -> None:
    for seed in range(12):
        random = np.random.default_rng(seed)
        x = torch.from_numpy((0.0, 2.0, -2.0)[seed % 3] + random.normal(size=(5, 2)))
        weights = torch.from_numpy(random.normal(size=(3, 2)))
        weights[1:] *= seed % 2
        data = Data(x=x, edge_index=torch.tensor([[1, 2, 3, 4, 4], [0, 0, 0, 0, 3]]))
        case = ProgramCase(lambda weights=weights: Mixed(code, relu, weights), data, True, 0)
        plain, pairs, every = plain_of(case)
        for made in range(3):
            for most in range(6 - made):
                sets = [(*range(made), *more) for more in subsets(range(made, 5), range(most + 1))]
                least = margins(case, sets, pairs, every).min()
                assert plain.least_margin(range(made), np.arange(made, 5), most) <= least + EXACT


class Gated(nn.Module):
    """What arrives is multiplied with a factor for each edge, which depends on how many edges lead to both ends."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        sender, receiver = edge_index
        degree = torch.zeros_like(x).index_add(0, receiver, torch.ones_like(x[sender]))
        factor = torch.tanh(degree[sender] - 0.5 * degree[receiver])
        score = torch.zeros_like(x).index_add(0, receiver, factor * x[sender]) + 3
        return torch.cat([score, 0 * score], dim=1)


def test_edits_that_only_change_factors_are_not_cut_off() -> None:
    x = torch.tensor([[1.0], [2.0], [1.0], [1.0]], dtype=torch.float64)
    data = Data(x=x, edge_index=torch.tensor([[1, 2, 3], [0, 1, 1]]))
    plain, _, _ = plain_of(ProgramCase(Gated, data, True, 0))
    found = sifted(plain, np.arange(3), 2, np.inf)
    edits = {edge: number for number, edge in enumerate([(1, 0), (2, 1), (3, 1)])}
    assert {frozenset([edits[2, 1]]), frozenset([edits[3, 1]]), frozenset([edits[2, 1], edits[3, 1]])} <= found


def mixed_extreme(code: str, x: Tensor, heard: bool, empty: float, seed: int) -> ProgramCase:
    """A product with one maximum or minimum of all leaves, and an edge between two of these."""
    random = np.random.default_rng(seed)
    weights = torch.zeros(x.shape[1] + 1, x.shape[1], dtype=x.dtype)
    weights[0] = torch.from_numpy(random.normal(size=x.shape[1]))
    ends = [*((leaf, 0) for leaf in range(1, LEAVES)), (LEAVES - 1, LEAVES - 2)]
    data = Data(x=x, edge_index=torch.tensor(ends).T.contiguous())
    return ProgramCase(lambda: Mixed(code, False, weights, heard, empty), data, True, 0)


def wrong_by(case: ProgramCase) -> float:
    """By how much bounds fall short of what the model says at most; they are never above it."""
    plain, pairs, every = plain_of(case)
    edits, worst = range(plain.num_edits), 0.0
    sets = subsets(edits, range(len(edits) + 1))
    truth = dict(zip(sets, margins(case, sets, pairs, every).tolist(), strict=True))
    for made, kept in (((), ()), ((), (5,)), ((2, 7), ()), ((0, 1, 9), (3, 4))):
        inside = [one for one in sets if set(made) <= set(one) and not set(kept) & set(one)]
        for most in plain.budget_of[plain.budget_of <= len(edits) - len(made)].tolist():
            least = min(truth[one] for one in inside if len(one) <= most + len(made))
            bound = plain.least_margin(made, np.setdiff1d(edits, [*made, *kept]), most)
            assert bound <= least + EXACT, (made, kept, most)
            worst = max(worst, least - bound)
    return worst


@pytest.mark.parametrize("heard", [False, True])
@pytest.mark.parametrize(("code", "empty"), [("amax", 0.0), ("amax", 3.0), ("amin", 0.0), ("amin", -3.0)])
def test_all_columns_of_an_extreme_lose_the_same_entries(code: str, empty: float, heard: bool) -> None:
    for seed in range(4):
        random = np.random.default_rng(seed)
        # Words that some have in common, and numbers that are all different.
        words = (random.random((LEAVES, 7)) < 0.3).astype(float)
        x = words if seed % 2 == 0 else random.normal(size=words.shape)
        wrong_by(mixed_extreme(code, torch.from_numpy(-x if code == "amin" else x), heard, empty, seed))


@pytest.mark.parametrize("code", ["amax", "amin"])
def test_an_extreme_whose_columns_have_one_entry_each_is_bounded_as_narrowly_as_can_be(code: str) -> None:
    """Less what is taken off for rounding."""
    for seed in range(4):
        words = torch.zeros(LEAVES, 2 * LEAVES, dtype=torch.float64)
        words[torch.arange(LEAVES).repeat(2), torch.arange(2 * LEAVES)] = -1.0 if code == "amin" else 1.0
        assert wrong_by(mixed_extreme(code, words, False, 0.0, seed)) < 0.01
