"""Every layer whose edges can be softened, PyG's and some by hand, and a few of which that is known not to work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch_geometric import nn as pyg
from torch_geometric.utils import softmax

if TYPE_CHECKING:
    from collections.abc import Callable


WIDTH = 6

NODES = 14

HISTOGRAM = torch.tensor([2, 4, 6, 5, 3])

AGGREGATORS = ["mean", "min", "max", "std", "var", "sum"]

SCALERS = ["identity", "amplification", "attenuation", "linear", "inverse_linear"]


class Stack(nn.Module):
    """Two layers of one kind; the first input is kept for layers that look back at it."""

    def __init__(self, layers: list[nn.Module], first: bool = False) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.first = first

    def forward(self, x: Tensor, edge_index: Tensor, **fields: Tensor) -> Tensor:
        start = x
        for layer in self.layers:
            given = (x, start) if self.first else (x,)
            x = layer(*given, edge_index, **fields).tanh()
        return x


class ByHand(nn.Module):
    """Sums without PyG."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        sender, receiver = edge_index
        count = torch.zeros(len(x), dtype=x.dtype).index_add(0, receiver, torch.ones(len(sender), dtype=x.dtype))
        # Infinite at a node without edges, which nobody reads.
        scale = 1 / count
        total = torch.zeros_like(x).index_add_(0, receiver, x[sender] * scale[receiver].view(-1, 1))
        return total.tanh() + x


class Sparse(nn.Module):
    """A sparse adjacency matrix, normalised by rows."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        ones = torch.ones(edge_index.size(1), dtype=x.dtype)
        adjacency = torch.sparse_coo_tensor(edge_index.flip(0), ones, (len(x), len(x)), check_invariants=True)
        total = torch.sparse.mm(adjacency, torch.cat([x, x.new_ones(len(x), 1)], dim=1))
        return (total[:, :-1] / (1 + total[:, -1:])).tanh()


class Dense(nn.Module):
    """A dense adjacency matrix with self-loops, normalised as GCN does: the paper's own code."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        adjacency = torch.zeros(len(x), len(x), dtype=x.dtype)
        adjacency[edge_index[0], edge_index[1]] = 1
        adjacency = adjacency + torch.eye(len(x), dtype=x.dtype)
        scale = adjacency.sum(1).rsqrt()
        return (scale.view(-1, 1) * adjacency * scale) @ x


class Attention(pyg.MessagePassing):
    """A user's own layer, which calls PyG's softmax under a name of its own."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.propagate(edge_index, x=x)

    def message(self, x_i: Tensor, x_j: Tensor, index: Tensor) -> Tensor:
        own_name = softmax
        return own_name((x_i * x_j).sum(1, keepdim=True), index) * x_j


class AttentionByHand(pyg.MessagePassing):
    """A user's own softmax, made of a maximum and two sums."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.propagate(edge_index, x=x)

    def message(self, x_i: Tensor, x_j: Tensor, index: Tensor) -> Tensor:
        score = (x_i * x_j).sum(1)
        highest = torch.zeros(NODES, dtype=x_i.dtype).scatter_reduce(0, index, score, "amax", include_self=False)
        power = (score - highest.detach()[index]).exp()
        total = torch.zeros(NODES, dtype=x_i.dtype).scatter_add(0, index, power) + 1e-16
        return (power / total[index]).view(-1, 1) * x_j


class Transposed(nn.Module):
    """Hands its layer the pairs as rows."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = pyg.SAGEConv(WIDTH, WIDTH)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.layer(x, edge_index.t().contiguous().t())


class Positional(nn.Module):
    """Passes its edge_weight by position."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = pyg.GraphConv(WIDTH, WIDTH, aggr="mean")

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        return self.layer(x, edge_index, edge_weight).tanh()


class SortedLSTM(nn.Module):
    """An LSTM over the neighbours, which PyG wants sorted by receiver."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = pyg.SAGEConv(WIDTH, WIDTH, aggr="lstm")

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.layer(x, edge_index[:, edge_index[1].argsort(stable=True)])


class Pooled(nn.Module):
    """Passes messages among pairs of nodes: edges of another graph."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = pyg.GraphConv(WIDTH, WIDTH)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.layer(x[::2] + x[1::2], edge_index // 2).repeat_interleave(2, 0)


def mlp(width: int = WIDTH) -> nn.Module:
    return nn.Sequential(nn.Linear(width, WIDTH), nn.Tanh())


@dataclass(frozen=True)
class Layer:
    """A model, the edge fields it is given, and what is true of it.

    ``faithful``: soft weights of 0 and 1 equal deletion. ``smooth``: gradients equal finite differences
    between; not checked where the layer has kinks, or counts in single precision or whole numbers.
    """

    build: Callable[[], nn.Module]
    fields: tuple[str, ...] = ()
    faithful: bool = True
    smooth: bool = True


def two(make: Callable[[], nn.Module], *fields: str, first: bool = False, **true: bool) -> Layer:
    return Layer(lambda: Stack([make(), make()], first=first), fields, **true)


def ready(kind: type[nn.Module], **options: Any) -> Layer:
    return Layer(lambda: kind(WIDTH, 8, num_layers=2, out_channels=3, act="tanh", norm="batch_norm", **options))


W = WIDTH


LAYERS = {
    "GCN": two(lambda: pyg.GCNConv(W, W)),
    "GCN weighted": two(lambda: pyg.GCNConv(W, W), "edge_weight"),
    "GCN improved": two(lambda: pyg.GCNConv(W, W, improved=True), "edge_weight"),
    "GCN no loops": two(lambda: pyg.GCNConv(W, W, add_self_loops=False)),
    "GCN unnormalised": two(lambda: pyg.GCNConv(W, W, normalize=False), "edge_weight"),
    "GCN cached": two(lambda: pyg.GCNConv(W, W, cached=True)),
    "GCN reversed": two(lambda: pyg.GCNConv(W, W, flow="target_to_source")),
    "SAGE mean": two(lambda: pyg.SAGEConv(W, W)),
    "SAGE sum": two(lambda: pyg.SAGEConv(W, W, aggr="sum")),
    "SAGE max": two(lambda: pyg.SAGEConv(W, W, aggr="max")),
    "SAGE min": two(lambda: pyg.SAGEConv(W, W, aggr="min")),
    "SAGE std": two(lambda: pyg.SAGEConv(W, W, aggr="std")),
    "SAGE var": two(lambda: pyg.SAGEConv(W, W, aggr="var")),
    "SAGE mul": two(lambda: pyg.SAGEConv(W, W, aggr="mul")),
    "SAGE softmax": two(lambda: pyg.SAGEConv(W, W, aggr="softmax")),
    "SAGE powermean": two(lambda: pyg.SAGEConv(W, W, aggr="powermean", aggr_kwargs={"p": 2.0}), smooth=False),
    "SAGE many": two(lambda: pyg.SAGEConv(W, W, aggr=AGGREGATORS)),
    "SAGE projected": two(lambda: pyg.SAGEConv(W, W, project=True, normalize=True)),
    "SAGE reversed": two(lambda: pyg.SAGEConv(W, W, flow="target_to_source")),
    "GAT": two(lambda: pyg.GATConv(W, 3, heads=2)),
    "GAT edge_attr": two(lambda: pyg.GATConv(W, 3, heads=2, edge_dim=4, residual=True), "edge_attr"),
    "GAT mean heads": two(lambda: pyg.GATConv(W, W, heads=3, concat=False, add_self_loops=False)),
    "GATv2": two(lambda: pyg.GATv2Conv(W, 3, heads=2, edge_dim=4), "edge_attr"),
    "GATv2 no loops": two(lambda: pyg.GATv2Conv(W, W, add_self_loops=False)),
    "SuperGAT": two(lambda: pyg.SuperGATConv(W, 3, heads=2, attention_type="MX")),
    "Transformer": two(lambda: pyg.TransformerConv(W, 3, heads=2)),
    "Transformer beta": two(lambda: pyg.TransformerConv(W, 3, heads=2, beta=True, edge_dim=4), "edge_attr"),
    "AGNN": two(lambda: pyg.AGNNConv()),
    "RGAT": two(lambda: pyg.RGATConv(W, W, 3, edge_dim=4), "edge_type", "edge_attr"),
    "FeaSt": two(lambda: pyg.FeaStConv(W, W, heads=2)),
    "GIN": two(lambda: pyg.GINConv(mlp(), train_eps=True)),
    "GINE": two(lambda: pyg.GINEConv(mlp(), edge_dim=4), "edge_attr", smooth=False),
    "GraphConv": two(lambda: pyg.GraphConv(W, W)),
    "GraphConv weighted": two(lambda: pyg.GraphConv(W, W), "edge_weight"),
    "GraphConv mean": two(lambda: pyg.GraphConv(W, W, aggr="mean"), "edge_weight"),
    "GraphConv max": two(lambda: pyg.GraphConv(W, W, aggr="max"), "edge_weight"),
    "Cheb": two(lambda: pyg.ChebConv(W, W, K=3)),
    "Cheb weighted": two(lambda: pyg.ChebConv(W, W, K=3), "edge_weight"),
    "SG": two(lambda: pyg.SGConv(W, W, K=2, cached=True)),
    "SSG": two(lambda: pyg.SSGConv(W, W, alpha=0.1, K=2)),
    "TAG": two(lambda: pyg.TAGConv(W, W), "edge_weight"),
    "APPNP": two(lambda: pyg.APPNP(K=3, alpha=0.1, cached=True)),
    "LG": two(lambda: pyg.LGConv()),
    "ARMA": two(lambda: pyg.ARMAConv(W, W, num_stacks=2, num_layers=2, act=nn.Tanh())),
    "MixHop": Layer(lambda: Stack([pyg.MixHopConv(W, 2, powers=[0, 1, 2]), pyg.MixHopConv(W, 2)])),
    "EG": two(lambda: pyg.EGConv(W, W, aggregators=["symnorm", "mean", "max", "std"], num_heads=2)),
    "PNA": two(lambda: pyg.PNAConv(W, W, AGGREGATORS, SCALERS, HISTOGRAM), smooth=False),
    "PNA towers": two(
        lambda: pyg.PNAConv(W, W, ["mean", "max"], SCALERS[:3], HISTOGRAM, edge_dim=4, towers=2),
        "edge_attr",
        smooth=False,
    ),
    "EdgeConv": two(lambda: pyg.EdgeConv(mlp(2 * W))),
    "EdgeConv mean": two(lambda: pyg.EdgeConv(mlp(2 * W), aggr="mean")),
    "GatedGraph": two(lambda: pyg.GatedGraphConv(W, 2)),
    "ResGated": two(lambda: pyg.ResGatedGraphConv(W, W, edge_dim=4), "edge_attr"),
    "FA": two(lambda: pyg.FAConv(W), first=True),
    "GCN2": two(lambda: pyg.GCN2Conv(W, alpha=0.1), first=True),
    "LE": two(lambda: pyg.LEConv(W, W), "edge_weight"),
    "MF": two(lambda: pyg.MFConv(W, W), smooth=False),
    "ClusterGCN": two(lambda: pyg.ClusterGCNConv(W, W, diag_lambda=0.3), smooth=False),
    "GEN": two(lambda: pyg.GENConv(W, W, aggr="softmax", learn_t=True, norm=None), smooth=False),
    "GEN powermean": two(lambda: pyg.GENConv(W, W, aggr="powermean", learn_p=True, norm=None), smooth=False),
    "FiLM": two(lambda: pyg.FiLMConv(W, W, act=nn.Tanh())),
    "General": two(lambda: pyg.GeneralConv(W, W, attention=True, heads=2, l2_normalize=True)),
    "CG": two(lambda: pyg.CGConv(W, dim=4, aggr="mean"), "edge_attr"),
    "NN": two(lambda: pyg.NNConv(W, W, nn.Linear(4, W * W), aggr="mean"), "edge_attr"),
    "GMM": two(lambda: pyg.GMMConv(W, W, dim=4, kernel_size=2), "edge_attr"),
    "PDN": two(lambda: pyg.PDNConv(W, W, edge_dim=4, hidden_channels=5), "edge_attr"),
    "RGCN": two(lambda: pyg.RGCNConv(W, W, 3), "edge_type"),
    "FastRGCN": two(lambda: pyg.FastRGCNConv(W, W, 3), "edge_type"),
    "DirGNN": two(lambda: pyg.DirGNNConv(pyg.SAGEConv(W, W))),
    "DirGNN GCN": two(lambda: pyg.DirGNNConv(pyg.GCNConv(W, W))),
    "AntiSymmetric": two(lambda: pyg.AntiSymmetricConv(W)),
    "Simple": two(lambda: pyg.SimpleConv(aggr="mean", combine_root="sum")),
    "model GCN": ready(pyg.GCN, jk="cat"),
    "model SAGE": ready(pyg.GraphSAGE, jk="max"),
    "model GAT": ready(pyg.GAT, heads=2, v2=True),
    "model GIN": ready(pyg.GIN, jk="lstm"),
    "model PNA": Layer(
        lambda: pyg.PNA(
            W, 8, 2, 3, aggregators=AGGREGATORS, scalers=SCALERS, deg=HISTOGRAM, jk="last", norm="batch_norm"
        ),
        smooth=False,
    ),
    "model EdgeCNN": ready(pyg.EdgeCNN),
    "by hand": Layer(ByHand),
    "by hand, sparse": Layer(Sparse),
    "by hand, dense": Layer(Dense),
    "own attention": Layer(Attention),
    "own attention by hand": Layer(AttentionByHand),
    "transposed": Layer(Transposed),
    "positional": Layer(Positional, ("edge_weight",)),
    # Known not to follow: these are left unweighted, or weighted wrongly, and the caller's comparison says so.
    "SAGE median": two(lambda: pyg.SAGEConv(W, W, aggr="median"), faithful=False),  # sorts its neighbours
    "SAGE lstm": Layer(SortedLSTM, faithful=False),  # reads them in their order
    "pooled": Layer(Pooled, faithful=False),  # numbers its nodes anew
}


def make(name: str) -> nn.Module:
    torch.manual_seed(0)
    model = LAYERS[name].build()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model.double().eval()


def multigraph(directed: bool) -> tuple[Tensor, Tensor, Tensor, dict[str, Tensor]]:
    """Features, edges with copies, a self-loop and an isolated node, the link of each, and edge fields."""
    random = torch.Generator().manual_seed(3)
    ends = torch.randint(0, NODES - 1, (2, 24), generator=random)
    ends = ends[:, ends[0] != ends[1]]
    loop = torch.tensor([[4], [4]])
    edge_index = torch.cat([ends, ends[:, :2], loop] if directed else [ends, ends.flip(0), loop], dim=1)
    edge_index = edge_index[:, torch.randperm(edge_index.size(1), generator=random)]
    pairs = edge_index if directed else edge_index.sort(0).values
    link = torch.unique(pairs, dim=1, return_inverse=True)[1]
    count = edge_index.size(1)
    fields = {
        "edge_weight": torch.rand(count, generator=random, dtype=torch.float64) + 0.5,
        "edge_attr": torch.randn(count, 4, generator=random, dtype=torch.float64),
        "edge_type": torch.randint(0, 3, (count,), generator=random),
    }
    x = torch.randn(NODES, WIDTH, generator=random, dtype=torch.float64)
    return x, edge_index, link, fields
