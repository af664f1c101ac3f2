"""What each deletion takes off a score at most, against every set of deletions, in double precision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu
from torch_geometric import nn as pyg
from torch_geometric.data import Data

from butfor.edits.edits import pack
from butfor.oracle.program.bounding.plain import sieve
from families import (
    EXACT,
    hub_case,
    losses_of,
    margins,
    missed,
    plain_of,
    sage_stack,
    sifted,
    subsets,
    undirected_case,
)
from gnn_models import Then
from gnns import LOCAL
from program_cases import CLASSES, WIDTH, ProgramCase, kind_case, sums

if TYPE_CHECKING:
    from collections.abc import Callable

AGGREGATIONS = ("sum", "mean", "max", "min")

# Rings with chords and a tail: edges lie on many paths, some of which lead back to the target.
EDGES = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 4), (3, 4), (4, 5), (0, 5), (0, 6), (6, 7)]


def check(case: ProgramCase, seed: int, most_free: int = 8, is_known: bool = True) -> float:
    """No set takes more off a difference than its edits together. Returns how much of their losses the worst takes.

    ``is_known``: losses are to be known in all branches.
    """
    plain, pairs, _ = plain_of(case)
    assert plain.tables.has_losses
    random, shares = np.random.default_rng(seed), []
    for made_now in range(3):
        order = random.permutation(len(case.edits))
        made, free = order[:made_now], np.sort(order[made_now : made_now + most_free])
        for most in (1, 2, 4, most_free):
            sets = [(*made, *more) for more in subsets(free, range(most + 1))]
            truth = case.truth(pack(sets)) @ pairs.T
            found = losses_of(plain, made.tolist(), free, most)
            assert found is not None or not is_known
            if found is None:
                continue
            now, losses = found
            np.testing.assert_allclose(now, truth[0], atol=EXACT)
            for one, taken in zip(sets, truth[0] - truth, strict=True):
                allowed = losses[:, list(one[made_now:])].sum(axis=1)
                assert (taken <= allowed + EXACT * (1 + np.abs(truth[0]))).all(), (made, one, most, taken, allowed)
                if len(one) == made_now + 1:
                    shares.append((taken / np.maximum(allowed, 1e-9)).max())
    return max(shares, default=0.0)


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_no_set_takes_more_than_its_edits_together(aggregation: str, depth: int) -> None:
    for seed in range(4):
        case = undirected_case(sage_stack(aggregation, depth, seed), EDGES, seed)
        assert check(case, seed) > 0.5, "losses say something"


def test_several_aggregations_in_one_layer() -> None:
    for seed in range(4):
        check(undirected_case(sage_stack(["sum", "mean", "max", "min"], 2, seed), EDGES, seed), seed)


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("between", [nn.Identity, nn.LeakyReLU, lambda: nn.LeakyReLU(0.9)])
def test_other_activations(aggregation: str, between: Callable[[], nn.Module]) -> None:
    for seed in range(2):
        check(undirected_case(sage_stack(aggregation, 3, seed, between), EDGES, seed), seed)


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_a_hub(aggregation: str) -> None:
    """More entries than are told apart at once (`MOST_TOPS`)."""
    for seed in range(2):
        check(hub_case(sage_stack(aggregation, 2, seed), 12, seed), seed, 9)


@pytest.mark.parametrize("shift", [3.0, -3.0])
@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_rows_that_nothing_leads_to(aggregation: str, shift: float) -> None:
    """Numbers of one sign only: the value of an empty row is the least, or the largest."""
    for seed in range(3):
        case = undirected_case(sage_stack(aggregation, 2, seed), EDGES, seed)
        case.data.x += shift
        check(case, seed, 9)


@pytest.mark.parametrize("aggregation", ["max", "min"])
def test_features_that_are_alike(aggregation: str) -> None:
    for seed in range(4):
        case = undirected_case(sage_stack(aggregation, 2 + seed % 2, seed), EDGES, seed)
        case.data.x = (case.data.x > 0).to(case.data.x)
        check(case, seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", LOCAL)
def test_other_kinds(name: str) -> None:
    for seed in range(3):
        case = kind_case(LOCAL[name], seed, bool(seed % 2), seed % 9, False)
        found = plain_of(case)
        if found is not None and found[0].tables.has_losses:
            check(case, seed, is_known=found[0].tables.always_has_losses)


def layers_in_a_row(layer: Callable[[int, int], nn.Module], depth: int, between: Callable[[], nn.Module]) -> nn.Module:
    layers: list[nn.Module] = []
    for number in range(depth):
        layers += [layer(WIDTH, CLASSES if number == depth - 1 else WIDTH), between()]
    return Then(*layers[:-1])


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("between", [nn.ReLU, nn.Tanh, nn.Sigmoid])
def test_gcn(depth: int, between: Callable[[], nn.Module]) -> None:
    """Its degrees are never 0, so losses are known in all branches, and they say something."""
    for seed in range(3):
        torch.manual_seed(seed)
        case = undirected_case(layers_in_a_row(pyg.GCNConv, depth, between), EDGES, seed)
        assert check(case, seed, 9, is_known=False) > 0.5


CONVOLUTIONS: dict[str, Callable[[int, int], nn.Module]] = {
    "GCN without loops": lambda a, b: pyg.GCNConv(a, b, add_self_loops=False),
    "SGConv": lambda a, b: pyg.SGConv(a, b, K=2),
    "TAGConv": lambda a, b: pyg.TAGConv(a, b, K=2),
    "LEConv": pyg.LEConv,
    "PNA": lambda a, b: pyg.PNAConv(
        a, b, ["sum", "mean", "max"], ["identity", "amplification", "attenuation"], torch.tensor([0, 2, 3, 2, 1])
    ),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_other_scales(name: str) -> None:
    """Sums that are multiplied with functions of how many entries they have, or of degrees."""
    known = 0.0
    for seed in range(3):
        torch.manual_seed(seed)
        model = layers_in_a_row(CONVOLUTIONS[name], 2, nn.ReLU)
        known += check(undirected_case(model, EDGES, seed), seed, is_known=False)
    assert known > 0


class Gated(nn.Module):
    """Products, quotients, extremes and powers of numbers that all change."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.first, self.second = pyg.GraphConv(WIDTH, WIDTH), pyg.GraphConv(WIDTH, WIDTH)
        self.last = pyg.GraphConv(5 * WIDTH, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        a, b = self.first(x, edge_index), self.second(x, edge_index)
        c = (1.5 + b.sigmoid()) ** -1.5 + (-a.abs()).exp() + (2 + a.tanh()).log()
        parts = [
            a * b.sigmoid(),
            a / (2 + b.tanh()),
            torch.maximum(a, b) - torch.minimum(a, 0.2 * b),
            c,
            a.clamp(-1, 1),
        ]
        return self.last(torch.cat(parts, dim=1), edge_index) + (a * b).amax(dim=1, keepdim=True).square().sqrt()


def test_functions_of_numbers_that_change() -> None:
    known = 0.0
    for seed in range(8):
        model = Gated(seed).double().eval()
        known += check(undirected_case(model, EDGES, seed), seed, is_known=False)
    assert known > 0


class Capped(nn.Module):
    """Sums that are cut off at what some of them are at present."""

    def __init__(self, least: float | None, most: float | None) -> None:
        super().__init__()
        self.least, self.most, self.last = least, most, nn.Linear(WIDTH, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = sums(x[edge_index[0]], edge_index[1], len(x)).clamp(self.least, self.most)
        return self.last(x + sums(x[edge_index[0]], edge_index[1], len(x)))


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("bound", [0.0, 1.0, 2.0, 3.0, 4.0])
def test_numbers_that_are_cut_off_where_they_are(bound: float, sign: float) -> None:
    for seed in range(3):
        torch.manual_seed(seed)
        bounds = (None, bound) if sign > 0 else (-bound, None)
        case = undirected_case(Capped(*bounds), EDGES, seed)
        case.data.x = sign * torch.ones_like(case.data.x)
        check(case, seed)


class Looped(nn.Module):
    """Means, with loops at some nodes only; what is no number, because nothing leads there, is replaced."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        own = torch.arange(3)
        sender, receiver = torch.cat([edge_index[0], own]), torch.cat([edge_index[1], own])
        h = sums(x[sender], receiver, len(x)) / sums(torch.ones_like(x[sender, :1]), receiver, len(x))
        h = torch.where(h.isnan(), torch.full_like(h, -10.0), h)
        d = sums(h[edge_index[0]], edge_index[1], len(x))[:, :1] + 30
        return torch.cat([d, -d], dim=1)


def test_means_that_nothing_leads_to() -> None:
    x = torch.arange(5).double()[:, None] * 0.5
    data = Data(x=x, edge_index=torch.tensor([[3, 4, 1, 2, 3], [0, 0, 0, 1, 2]]))
    case = ProgramCase(lambda: Looped(), data, True, 0)
    plain, pairs, every = plain_of(case)
    for most in (1, 2, 5):
        truth = margins(case, subsets(range(5), range(most + 1)), pairs, every)
        assert plain.least_margin((), np.arange(5), most) <= truth.min() + EXACT


def test_sums_of_some_columns() -> None:
    """FiLM multiplies and adds parts of a row."""
    for seed in range(3):
        torch.manual_seed(seed)
        model = Then(pyg.SAGEConv(WIDTH, WIDTH), nn.ReLU(), pyg.FiLMConv(WIDTH, WIDTH), nn.Linear(WIDTH, CLASSES))
        check(undirected_case(model, EDGES, seed), seed, is_known=False)


class Doubled(nn.Module):
    """The same row is read through two functions, and what arrives along parallel edges has factors of both signs."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = pyg.GraphConv(WIDTH, WIDTH), pyg.GraphConv(2 * WIDTH, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        h = self.first(x, edge_index, edge_weight)
        return self.second(torch.cat([leaky_relu(h, 0.3), h.relu() - x], dim=1), edge_index, edge_weight)


def doubled_case(seed: int) -> ProgramCase:
    random, index = np.random.default_rng(seed), torch.tensor(EDGES).T
    both = torch.cat([index, index.flip(0), index[:, :3], index[:, :3].flip(0)], dim=1)
    torch.manual_seed(seed)
    data = Data(
        x=torch.from_numpy(random.normal(size=(8, WIDTH))), edge_index=both,
        edge_weight=torch.from_numpy(random.normal(size=both.shape[1])),
    )  # fmt: skip
    model = Doubled().double().eval()
    return ProgramCase(lambda: model, data, True, 0, fields=("edge_weight",))


def test_factors_parallel_edges_and_rows_that_are_read_twice() -> None:
    for seed in range(6):
        check(doubled_case(seed), seed)


class Endless(nn.Module):
    """The largest, or least, of what arrives, and infinite where nothing does; ReLU makes 0 of that."""

    def __init__(self, code: str, layers: int) -> None:
        super().__init__()
        self.code, self.layers = code, nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(layers))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        sign = 1.0 if self.code == "amax" else -1.0
        for layer in self.layers:
            sent = layer(x)[edge_index[0]]
            empty = torch.full_like(x, -sign * torch.inf)
            found = empty.scatter_reduce(0, edge_index[1][:, None].expand_as(sent), sent, self.code, include_self=False)
            x = (sign * found).relu()
        return x[:, :CLASSES] - x[:, 1 : CLASSES + 1]


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("code", ["amax", "amin"])
def test_rows_that_are_infinite_if_nothing_leads_to_them(code: str, layers: int) -> None:
    """Their slopes are unknown; then so is what edits take off, which is not nothing."""
    for seed in range(8):
        torch.manual_seed(seed)
        case = undirected_case(Endless(code, layers), EDGES, seed)
        plain, pairs, every = plain_of(case)
        free = np.random.default_rng(seed).permutation(len(case.edits))[:7]
        for most in (1, 3, 7):
            sets = subsets(free, range(most + 1))
            truth = dict(zip(map(frozenset, sets), margins(case, sets, pairs, every).tolist(), strict=True))
            least = min(truth.values())
            assert plain.least_margin((), free, most) <= least + EXACT * (1 + abs(least))
            needed = float(np.median(list(truth.values())))
            assert not missed(truth, sifted(plain, free, most, needed), needed)


BROKEN: dict[str, Callable[[Any], dict[str, Any]]] = {
    "matrices of another size": lambda q: {"turned": 0.2 * q.turned},
    "no room for changes of both signs": lambda q: {"turned_sizes": 0 * q.turned_sizes},
    "changes of one row in place of another's": lambda q: {"change_at": 0 * q.change_at},
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(tables: Any) -> Any:
        found = sieve_room(tables)
        return found._replace(**BROKEN[name](found))

    sieve_room = sieve.room_for_losses
    monkeypatch.setattr(sieve, "room_for_losses", broken)
    with pytest.raises(AssertionError):
        check_many()


def check_many() -> None:
    for seed in range(6):
        for aggregation in AGGREGATIONS:
            check(undirected_case(sage_stack(aggregation, 3, seed), EDGES, seed), seed)
