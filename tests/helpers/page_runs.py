"""Runs whose results are shown in pages: nodes, links, molecules and typed graphs, each made once."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import GCNConv, SAGEConv, global_add_pool, to_hetero

import butfor
from butfor import Counterfactual, Prediction, Status
from molecule_samples import nitromethane

if TYPE_CHECKING:
    from pathlib import Path

# What a graph may call its nodes and classes, and no page may be troubled by.
NASTY = [
    "<script>window.hacked = 1</script>",
    "</script><img src=x onerror='window.hacked = 1'>",
    "quotes \" and ' and `",
    "line\u2028separator",
    "-->",
    "emoji 🧪👩‍🔬",
    "a very long name that goes on and on and on, " * 5,
    "${title}",
]


@dataclass(frozen=True)
class Run:
    """Results with what they are of."""

    results: tuple[Counterfactual, ...]
    model: torch.nn.Module
    data: Any


@cache
def trees() -> Run:
    """Test nodes of Tree-Cycles with all smallest sets."""
    data = butfor.datasets.tree_cycles(seed=0)
    model = butfor.models.PaperGCN(data.num_features, 2)
    butfor.models.train(model, data, epochs=100, lr=0.01)
    model.eval()
    return Run(tuple(butfor.explain(model, data, range(600, 630), butfor.Exact(all_smallest=True))), model, data)


class _Layers(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = SAGEConv((-1, -1), 8), SAGEConv((-1, -1), 2)

    def forward(self, x: Any, edge_index: Any) -> Any:
        return self.second(self.first(x, edge_index).relu(), edge_index)


@cache
def library() -> Run:
    """Papers, authors and venues."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        data = HeteroData()
        for kind, number in (("paper", 10), ("author", 6)):
            data[kind].x = torch.randn(number, 4)
        writes = torch.unique(torch.stack([torch.randint(6, (18,)), torch.randint(10, (18,))]), dim=1)
        data["author", "writes", "paper"].edge_index = writes
        data["paper", "rev_writes", "author"].edge_index = writes.flip(0)
        data["paper"].node_ids = [*NASTY, "a", "b"]
        model = to_hetero(_Layers(), data.metadata()).eval()
        with torch.no_grad():
            model(data.x_dict, data.edge_index_dict)
    return Run(tuple(butfor.explain(model, data, range(10), butfor.Exact(), node_type="paper")), model, data)


class _Links(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = GCNConv(3, 8)

    def forward(self, x: Any, edge_index: Any, edge_label_index: Any) -> Any:
        z = self.conv(x, edge_index)
        return (z[edge_label_index[0]] * z[edge_label_index[1]]).sum(-1)


@cache
def links() -> Run:
    """Links of a directed graph."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        data = Data(x=torch.randn(16, 3), edge_index=torch.unique(torch.randint(16, (2, 50)), dim=1))
        model = _Links().eval()
    pairs = [butfor.Pair(node, (5 * node + 3) % 16) for node in range(6)]
    return Run(tuple(butfor.explain(model, data, pairs, goal=butfor.Goal(threshold=0.0))), model, data)


class _Counts(torch.nn.Module):
    """Mutagenic is what has enough bonds to oxygen: its answers are known."""

    def forward(self, x: Any, edge_index: Any, batch: Any = None) -> Any:
        bonds = torch.zeros(len(x), 1).index_add(0, edge_index[1], x[edge_index[0], 2:3] * x[edge_index[1], 1:2])
        number = global_add_pool(bonds, batch)
        return torch.cat([1.5 - number, number - 1.5], dim=1)


@cache
def molecules() -> Run:
    """Nitromethane twice; without one of its bonds from nitrogen to oxygen it is another class."""
    graphs = []
    for _ in range(2):
        data = nitromethane()
        data.x = torch.eye(4)[[0, 1, 2, 2, 3, 3, 3]]
        data.class_names = ["harmless", "mutagen"]
        graphs.append(data)
    model = _Counts().eval()
    return Run(tuple(butfor.explain(model, graphs, method=butfor.Exact(all_smallest=True))), model, graphs)


@cache
def edited() -> Run:
    """A node that is explained by added edges and changed features."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        ring = torch.tensor([(i, (i + 1) % 12) for i in range(12)]).T
        data = Data(x=(torch.rand(12, 4) < 0.5).float(), edge_index=torch.cat([ring, ring.flip(0)], dim=1))
        model = _Nodes().eval()
    space = butfor.EditSpace(add=butfor.Within(hops=3, most=20), features=butfor.Features())
    return Run(tuple(butfor.explain(model, data, range(12), space=space)), model, data)


class _Nodes(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = GCNConv(4, 8), GCNConv(8, 3)

    def forward(self, x: Any, edge_index: Any) -> Any:
        return self.second(self.first(x, edge_index).relu(), edge_index)


def of_every_status() -> list[Counterfactual]:
    """One result of each status; all but the first two are made by hand."""
    found = next(result for result in trees().results if result.found)
    nothing = replace(found, after=None, edits=(), cost=0.0, alternatives=(), necessity=None, verified_on=None)
    return [
        found,
        replace(found, target=601, status=Status.FOUND, lower_bound=0.5 * found.cost),
        replace(nothing, target=602, status=Status.IMPOSSIBLE, lower_bound=None),
        replace(nothing, target=603, status=Status.UNKNOWN, lower_bound=3.0),
        replace(nothing, target=604, status=Status.REACHED, lower_bound=0.0),
        replace(
            nothing,
            target=605,
            status=Status.FAILED,
            lower_bound=0.0,
            before=Prediction.unknown(),
            note="the worker was killed",
        ),
    ]


def reread(results: Any) -> list[Counterfactual]:
    """What comes back from a file: results without their graph."""
    return [Counterfactual.from_dict(json.loads(json.dumps(result.to_dict()))) for result in results]


def content(path: Path) -> Any:
    """The data in a page."""
    (found,) = re.findall(
        r'<script type="application/json" id="data">(.*?)</script>', path.read_text("utf-8"), re.DOTALL
    )
    return json.loads(found)
