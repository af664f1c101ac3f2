"""Every kind of graph neural network that must be explained, and small graphs for them.

Nothing here is the library's: edges are cut from plain lists, and a model that nobody has run before is run on what
is left.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric import nn as pyg
from torch_geometric.data import Data

from gnn_models import (
    CLASSES,
    WIDTH,
    Attributed,
    Both,
    Counting,
    GraphNormed,
    Jumping,
    LogProbabilities,
    OwnLayer,
    Placed,
    Pooled,
    Probabilities,
    Shared,
    Sorted,
    Stack,
    Then,
    Turned,
    Typed,
    UNet,
    VirtualNode,
    Weighted,
    mlp,
)
from hand_edits import Cut, Pair, edge_of, edges_of, edited
from truth import Question

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

KINDS_OF_EDGES, EDGE_WIDTH = 3, 2
HISTOGRAM = torch.tensor([1, 4, 8, 5, 2])
AGGREGATORS, SCALERS = ["mean", "min", "max", "std"], ["identity", "amplification", "attenuation"]


@dataclass(frozen=True)
class Kind:
    """How to build a model, which fields of the graph it takes, and what is known about it.

    ``relaxed``: soft edges can follow it. ``local``: it sees a neighbourhood and no more. ``fragile``: it fails on
    some graphs, such as one without edges.
    """

    build: Callable[[], nn.Module]
    fields: tuple[str, ...] = ()
    probabilities: bool = False
    relaxed: bool = True
    local: bool = True
    fragile: bool = False

    def make(self, data: Data) -> nn.Module:
        """The same model each time: nobody has run it, so no layer remembers anything."""
        if (self, id(data)) not in MADE:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(2)
                model = self.build()
                with torch.no_grad():
                    for parameter in model.parameters():
                        parameter.add_(0.2 * torch.randn_like(parameter))
            MADE[self, id(data)] = balance(model.eval(), data, self), data
        return copy.deepcopy(MADE[self, id(data)][0])


# What was made for which graph; copies of it are handed out, and it is never run itself.
MADE: dict[tuple[Kind, int], tuple[nn.Module, Data]] = {}


def two(layer: Callable[[int], nn.Module], stack: type[Stack] = Stack, *fields: str, **known: bool) -> Kind:
    """Two layers of one kind."""
    return Kind(lambda: stack(layer(WIDTH), layer(CLASSES)), fields, **known)


def ready(kind: type[nn.Module], *fields: str, **options) -> Kind:
    """A model as PyG ships it."""
    return Kind(lambda: kind(WIDTH, 8, num_layers=2, out_channels=CLASSES, **options), fields)


def normed() -> nn.Module:
    """Batch norm in evaluation mode, with statistics that it has learnt."""
    model = Then(pyg.SAGEConv(WIDTH, WIDTH), pyg.BatchNorm(WIDTH), nn.Tanh(), nn.Dropout(), pyg.SAGEConv(WIDTH, 3))
    inner = model.layers[1].module
    inner.running_mean.normal_()
    inner.running_var.uniform_(0.5, 2)
    return model


W = WIDTH
LOCAL: dict[str, Kind] = {
    "GCN": two(lambda out: pyg.GCNConv(W, out)),
    "GCN, edge_weight": two(lambda out: pyg.GCNConv(W, out), Weighted, "edge_weight"),
    "GCN, cached": two(lambda out: pyg.GCNConv(W, out, cached=True)),
    "GCN, messages backwards": two(lambda out: pyg.GCNConv(W, out, flow="target_to_source")),
    "GraphSAGE, edges turned around": two(lambda out: pyg.SAGEConv(W, out), Turned),
    "GraphSAGE, mean": two(lambda out: pyg.SAGEConv(W, out)),
    "GraphSAGE, max": two(lambda out: pyg.SAGEConv(W, out, aggr="max")),
    "GraphSAGE, sum": two(lambda out: pyg.SAGEConv(W, out, aggr="sum")),
    "GraphSAGE, product": two(lambda out: pyg.SAGEConv(W, out, aggr="mul")),
    "GAT": two(lambda out: pyg.GATConv(W, out, heads=2, concat=False)),
    "GAT, edge_attr": two(
        lambda out: pyg.GATConv(W, out, edge_dim=EDGE_WIDTH, add_self_loops=False), Attributed, "edge_attr"
    ),
    "GATv2": two(lambda out: pyg.GATv2Conv(W, out, heads=2, concat=False)),
    "GATv2, edge_attr": two(lambda out: pyg.GATv2Conv(W, out, edge_dim=EDGE_WIDTH), Attributed, "edge_attr"),
    "GIN": two(lambda out: pyg.GINConv(mlp(out), train_eps=True)),
    "GINE, edge_attr": two(lambda out: pyg.GINEConv(mlp(out), edge_dim=EDGE_WIDTH), Attributed, "edge_attr"),
    "GraphConv": two(lambda out: pyg.GraphConv(W, out)),
    "GraphConv, edge_weight": two(lambda out: pyg.GraphConv(W, out, aggr="mean"), Weighted, "edge_weight"),
    "TransformerConv": two(lambda out: pyg.TransformerConv(W, out, heads=2, concat=False)),
    "TransformerConv, edge_attr": two(
        lambda out: pyg.TransformerConv(W, out, edge_dim=EDGE_WIDTH, beta=True), Attributed, "edge_attr"
    ),
    "ChebConv": two(lambda out: pyg.ChebConv(W, out, K=3)),
    "ChebConv, edge_weight": two(lambda out: pyg.ChebConv(W, out, K=2), Weighted, "edge_weight"),
    "SGConv": Kind(lambda: Stack(pyg.SGConv(W, CLASSES, K=3))),
    "SGConv, cached": two(lambda out: pyg.SGConv(W, out, K=2, cached=True)),
    "TAGConv": two(lambda out: pyg.TAGConv(W, out, K=2)),
    "TAGConv, edge_weight": Kind(lambda: Weighted(pyg.TAGConv(W, CLASSES, K=3)), ("edge_weight",)),
    "APPNP": Kind(lambda: Then(nn.Linear(W, 8), nn.Tanh(), nn.Linear(8, CLASSES), pyg.APPNP(K=5, alpha=0.1))),
    "APPNP, cached": Kind(lambda: Then(nn.Linear(W, CLASSES), pyg.APPNP(K=3, alpha=0.2, cached=True))),
    "ARMAConv": two(lambda out: pyg.ARMAConv(W, out, num_stacks=2, num_layers=2, shared_weights=True)),
    "PNA": two(lambda out: pyg.PNAConv(W, out, AGGREGATORS, SCALERS, HISTOGRAM)),
    "PNA, edge_attr": two(
        lambda out: pyg.PNAConv(W, out, ["mean", "max"], SCALERS, HISTOGRAM, edge_dim=EDGE_WIDTH),
        Attributed,
        "edge_attr",
    ),
    "EdgeConv": two(lambda out: pyg.EdgeConv(mlp(out, 2 * W))),
    "EdgeConv, mean": two(lambda out: pyg.EdgeConv(mlp(out, 2 * W), aggr="mean")),
    "CGConv, edge_attr": Kind(
        lambda: Attributed(pyg.CGConv(W, EDGE_WIDTH), pyg.TransformerConv(W, CLASSES, edge_dim=EDGE_WIDTH)),
        ("edge_attr",),
    ),
    "NNConv, edge_attr": two(
        lambda out: pyg.NNConv(W, out, nn.Linear(EDGE_WIDTH, W * out), aggr="mean"), Attributed, "edge_attr"
    ),
    "a layer of one's own": two(OwnLayer),
    "weights and attributes": Kind(
        lambda: Both(pyg.GCNConv(W, W), pyg.GATv2Conv(W, CLASSES, edge_dim=EDGE_WIDTH)), ("edge_weight", "edge_attr")
    ),
    "RGCN, edge_type": two(lambda out: pyg.RGCNConv(W, out, KINDS_OF_EDGES), Typed, "edge_type"),
    "PointNet, pos": Kind(
        lambda: Placed(pyg.PointNetConv(mlp(W, W + 3)), pyg.PointNetConv(mlp(CLASSES, W + 3), nn.Linear(3, 3))),
        ("pos",),
    ),
    "jumping knowledge, cat": Kind(lambda: Jumping("cat", pyg.GraphConv(W, W), pyg.SAGEConv(W, W))),
    "jumping knowledge, max": Kind(lambda: Jumping("max", pyg.GCNConv(W, W), pyg.GCNConv(W, W))),
    "jumping knowledge, lstm": Kind(lambda: Jumping("lstm", pyg.GATConv(W, W), pyg.GCNConv(W, W))),
    "batch norm": Kind(normed),
    "probabilities": two(lambda out: pyg.SAGEConv(W, out), Probabilities, probabilities=True),
    "log-probabilities": two(lambda out: pyg.SAGEConv(W, out), LogProbabilities),
    "three times the same layer": Kind(Shared),
    "PyG's GCN": ready(pyg.GCN, "edge_weight", jk="cat"),
    "PyG's GCN, batch norm": ready(pyg.GCN, "edge_weight", norm="batch_norm", act="tanh"),
    "PyG's GraphSAGE": ready(pyg.GraphSAGE, jk="max", act="tanh"),
    "PyG's GAT": ready(pyg.GAT, "edge_attr", heads=2, v2=True, edge_dim=EDGE_WIDTH, jk="lstm"),
    "PyG's GIN": ready(pyg.GIN, act="tanh"),
    "PyG's PNA": ready(
        pyg.PNA, "edge_attr", aggregators=AGGREGATORS, scalers=SCALERS, deg=HISTOGRAM, edge_dim=EDGE_WIDTH
    ),
    "PyG's EdgeCNN": ready(pyg.EdgeCNN, act="tanh", jk="cat"),
    # Soft edges cannot follow whole numbers.
    "counts": two(lambda out: pyg.SAGEConv(W, out), Counting),
}

# One of each family of layers, aggregation, field of an edge and way to put layers together: for `make test`, where all
# of them would take too long.
FAMILIES = (
    "GCN, edge_weight", "GCN, messages backwards", "GraphSAGE, mean", "GraphSAGE, max", "GraphSAGE, sum", "GAT",
    "GATv2, edge_attr", "GIN", "TransformerConv", "ChebConv", "SGConv, cached", "APPNP", "PNA", "EdgeConv",
    "NNConv, edge_attr", "RGCN, edge_type", "PointNet, pos", "jumping knowledge, lstm", "batch norm",
    "log-probabilities", "counts",
)  # fmt: skip


def one_way(first: bool) -> list[tuple[str, bool]]:
    """Every model that sees a neighbourhood, on undirected and on directed graphs by turns."""
    return [(name, (number % 2 == 1) != first) for number, name in enumerate(LOCAL)]


def quick_ones(cases: Iterable[tuple[str, bool]], families: Sequence[str] = FAMILIES) -> set[tuple[str, bool]]:
    """Those of one model of each family."""
    return {case for case in cases if case[0] in families}


GLOBAL: dict[str, Kind] = {
    "GraphNorm": Kind(lambda: GraphNormed(pyg.GraphNorm(W)), local=False),
    "PairNorm": Kind(lambda: GraphNormed(pyg.PairNorm()), local=False),
    "LayerNorm of the graph": Kind(lambda: GraphNormed(pyg.LayerNorm(W, mode="graph")), local=False),
    "batch norm without statistics": Kind(
        lambda: GraphNormed(pyg.BatchNorm(W, track_running_stats=False)), local=False
    ),
    "mean of all nodes": Kind(lambda: Pooled(pyg.global_mean_pool), local=False),
    "sum of all nodes": Kind(lambda: Pooled(pyg.global_add_pool), local=False),
    "maximum of all nodes": Kind(lambda: Pooled(pyg.global_max_pool), local=False),
    "virtual node": Kind(VirtualNode, local=False),
    # It keeps nodes by rank, and numbers them anew.
    "GraphUNet": Kind(UNet, relaxed=False, local=False),
}

# PyG's own layers, which fail where there are no edges at all; a median also where the first node has none.
# An LSTM reads as many neighbours as any node of the graph has, and nothing for those that are missing.
FRAGILE: dict[str, Kind] = {
    "median": Kind(lambda: Sorted(pyg.SAGEConv(W, CLASSES, aggr="median")), relaxed=False, local=False, fragile=True),
    "LSTM": Kind(lambda: Sorted(pyg.SAGEConv(W, CLASSES, aggr="lstm")), relaxed=False, local=False, fragile=True),
}


def balance(model: nn.Module, data: Data, kind: Kind) -> nn.Module:
    """Match the classes evenly on this graph, half of the way to its last edge, so that edges decide."""
    given = [kept(data, kind, columns) for columns in (range(data.num_edges), range(0, data.num_edges, 2))]
    caches = [(module, vars(module)["cached"]) for module in model.modules() if "cached" in vars(module)]
    for module, _ in caches:
        module.cached = False
    with torch.no_grad():
        out = torch.cat([model(*one[:2], **one[2]) for one in given])
        middle = (out.log() if kind.probabilities else out).mean(dim=0)
        if isinstance(model, Stack):
            model.shift += middle
        else:
            biases = [one for name, one in model.named_parameters() if name.endswith("bias") and len(one) == CLASSES]
            biases[-1] -= middle
    for module, cached in caches:
        module.cached = cached
    return model


def kept(data: Data, kind: Kind, columns: Iterable[int]) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """What the model is given of a graph with these edges only."""
    columns = torch.tensor(list(columns), dtype=torch.long)
    fields = {name: data[name] if name == "pos" else data[name][columns] for name in kind.fields}
    return data.x, data.edge_index[:, columns], fields


def in_use(kind: Kind, data: Data) -> nn.Module:
    """A model in the middle of its life: run before, so that caches are full, and about to be trained further."""
    model = kind.make(data)
    x, edge_index, fields = kept(data, kind, range(data.num_edges))
    with torch.no_grad():
        model(x, edge_index, **fields)
    return model.train()


def scores_without(kind: Kind, data: Data, removed: Collection[Pair], directed: bool) -> Tensor:
    """The scores of all nodes after these edges are cut from the whole graph, by a model that was never run.

    No numbers where a fragile model fails.
    """
    columns = [
        number for number, pair in enumerate(data.edge_index.T.tolist()) if edge_of(pair, directed) not in removed
    ]
    x, edge_index, fields = kept(data, kind, columns)
    try:
        with torch.no_grad():
            out = kind.make(data)(x, edge_index, **fields)
    except (IndexError, RuntimeError):
        if not kind.fragile:
            raise
        return torch.full((data.num_nodes, CLASSES), torch.nan)
    return out.log() if kind.probabilities else out


@dataclass(frozen=True, eq=False)
class GnnQuestion(Question):
    """Which edges must go for this kind of model to predict another class?"""

    kind: Kind | None = None

    def outputs(self, chosen: np.ndarray) -> np.ndarray:
        """Models that see a neighbourhood get all edited graphs side by side, others one after the other."""
        if not self.kind.local:
            return np.stack([self.alone(row).double().numpy() for row in chosen])
        graph = edited(self.data, self.directed, self.acts, chosen)
        with torch.no_grad():
            model = self.kind.make(self.data).double()
            out = model(graph.x, graph.edge_index, **{name: graph[name] for name in self.kind.fields})
        out = out.log() if self.kind.probabilities else out
        return out.numpy().reshape(len(chosen), self.data.num_nodes, CLASSES)

    def alone(self, row: np.ndarray) -> Tensor:
        """The scores of all nodes after one row of chosen acts, in single precision."""
        removed = [edge for act in np.flatnonzero(row) for edge in self.acts[act].edges]
        return scores_without(self.kind, self.data, removed, self.directed)


@cache
def question(name: str, directed: bool = False) -> GnnQuestion:
    """All edges of a small graph may go; of a tiny one where each set takes a run of its own."""
    kind = (LOCAL | GLOBAL | FRAGILE)[name]
    data = small(directed) if kind.local else tiny()
    acts = tuple(Cut((edge,)) for edge in edges_of(data, directed))
    return GnnQuestion(name, kind.make(data), data, acts, directed, kind=kind)


def graph(pairs: list[Pair], directed: bool, seed: int = 0) -> Data:
    """A graph with all fields that any model takes; the same for both directions of an undirected edge."""
    random = torch.Generator().manual_seed(seed)
    nodes = max(max(pair) for pair in pairs) + 1
    edge_index = torch.tensor(pairs if directed else [*pairs, *(pair[::-1] for pair in pairs)]).T.contiguous()
    twice = 1 if directed else 2
    data = Data(
        x=torch.randn(nodes, WIDTH, generator=random),
        edge_index=edge_index,
        edge_weight=(0.5 + torch.rand(len(pairs), generator=random)).repeat(twice),
        edge_attr=torch.randn(len(pairs), EDGE_WIDTH, generator=random).repeat(twice, 1),
        edge_type=torch.randint(0, KINDS_OF_EDGES, (len(pairs),), generator=random).repeat(twice),
        pos=torch.randn(nodes, 3, generator=random),
    )
    # In no particular order: nothing may depend on both directions being where one expects them.
    order = torch.randperm(data.num_edges, generator=random)
    for name in ("edge_weight", "edge_attr", "edge_type"):
        data[name] = data[name][order]
    data.edge_index = edge_index[:, order]
    return data


@cache
def ring(directed: bool) -> Data:
    """Forty nodes: a ring of thirty, with a few short ways across and ten leaves. No layer's reach spans it."""
    pairs = [(u, (u + 1) % 30) for u in range(30)] + [(1, 3), (11, 13), (20, 23)]
    pairs += [(3 * leaf, 30 + leaf) for leaf in range(10)]
    if directed:
        pairs = [pair[::-1] if number % 5 == 2 or number > 36 else pair for number, pair in enumerate(pairs)]
        pairs += [pair[::-1] for pair in pairs[::7]]
    return graph(pairs, directed)


@cache
def small(directed: bool) -> Data:
    """Six nodes and eight or nine edges."""
    pairs = [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (0, 4), (1, 4), (4, 5)]
    if directed:
        pairs = [(1, 0), (0, 2), (1, 2), (2, 3), (3, 4), (4, 0), (4, 1), (5, 4), (2, 0)]
    return graph(pairs, directed, seed=1)


@cache
def tiny() -> Data:
    """Five nodes and six edges, few enough to try all sets one after the other."""
    return graph([(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (1, 4)], directed=False, seed=2)
