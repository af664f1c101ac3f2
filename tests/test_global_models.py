"""Models that read the whole graph, against brute force: what is answered and proved holds, alone and in lists."""

from __future__ import annotations

from itertools import combinations

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv
from torch_geometric.utils import degree

import butfor

NODES = 8
PAIRS = [(node, node + 1) for node in range(NODES - 1)]


def without(removed: tuple[tuple[int, int], ...]) -> Tensor:
    left = torch.tensor([pair for pair in PAIRS if pair not in removed], dtype=torch.long).reshape(-1, 2).T
    return torch.cat([left, left.flip(0)], dim=1)


DATA = Data(x=torch.ones(NODES, 1), edge_index=without(()))


def scores(values: Tensor) -> Tensor:
    return torch.stack([torch.full_like(values, 0.5), values], dim=1)


def largest(x: Tensor, edge_index: Tensor) -> Tensor:
    """The two nodes of highest degree, earlier ones first."""
    chosen = torch.zeros(len(x))
    chosen[(degree(edge_index[1], len(x)) - 0.01 * torch.arange(len(x))).topk(2).indices] = 1
    return scores(chosen)


READS = {
    "top 2 by degree": largest,
    "five edges left": lambda x, e: scores(torch.full((len(x),), float(e.size(1) == 10))),
    "lonely among few edges": lambda x, e: scores((degree(e[1], len(x)) == 0).float() * (e.size(1) <= 10)),
    "isolated nodes anywhere": lambda x, e: scores(((degree(e[1], len(x)) == 0).sum() >= 2).float().expand(len(x))),
}


class Reader(nn.Module):
    def __init__(self, read, layer: bool) -> None:
        super().__init__()
        self.read, self.layer = read, SAGEConv(1, 2) if layer else None
        for parameter in self.parameters():
            nn.init.zeros_(parameter)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        out = self.read(x, edge_index)
        return out if self.layer is None else out + self.layer(x, edge_index)


def truth(model: nn.Module) -> list[int | None]:
    """The fewest deletions that change each node's class."""
    before = model(DATA.x, DATA.edge_index).argmax(1)
    fewest: list[int | None] = [None] * NODES
    for size in range(1, len(PAIRS) + 1):
        for removed in combinations(PAIRS, size):
            changed = model(DATA.x, without(removed)).argmax(1) != before
            fewest = [size if old is None and new else old for old, new in zip(fewest, changed.tolist(), strict=True)]
    return fewest


# With a layer in front the neighbourhood is all that shows, unless a sample happens to show more; see certificate.md.
CASES = [(name, layer) for name in READS for layer in (False, True) if (name, layer) != ("five edges left", True)]


@pytest.mark.parametrize(("name", "layer"), CASES)
def test_nothing_false_is_answered_or_proved(name: str, layer: bool) -> None:
    model = Reader(READS[name], layer).eval()
    with torch.no_grad():
        fewest = truth(model)
    alone = [butfor.explain(model, DATA, node) for node in (0, 4)]
    listed = butfor.explain(model, DATA, range(NODES))
    assert [listed[0], listed[4]] == alone
    for result in listed:
        size = fewest[result.target]
        if result.found:
            with torch.no_grad():
                after = model(DATA.x, without(result.removed_edges))[result.target]
            assert int(after.argmax()) == result.after.label != result.before.label
        assert (result.status.value, result.size) == (("impossible", None) if size is None else ("optimal", size))


def test_hooks_and_exchanged_forwards_are_seen() -> None:
    """The class of a model does not say what it computes where somebody changed it afterwards."""
    from torch_geometric.nn import GCN

    from butfor.session import Session

    torch.manual_seed(0)
    plain, hooked, exchanged = (GCN(1, 4, 2, 2).eval() for _ in range(3))
    hooked.register_forward_hook(lambda module, given, out: out + READS["top 2 by degree"](*given))
    forward = exchanged.forward
    exchanged.forward = lambda x, edge_index: forward(x, edge_index) + READS["top 2 by degree"](x, edge_index)
    known = [Session.of(model, DATA).builder.build((3,)).oracle.proves_locality for model in (plain, hooked, exchanged)]
    assert known == [True, False, False]
