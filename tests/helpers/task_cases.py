"""Questions about whole graphs, links and numbers, and models of every form that answers them."""

from __future__ import annotations

import copy
import itertools
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.nn import (
    GATConv,
    GCNConv,
    GINConv,
    SAGEConv,
    SimpleConv,
    global_add_pool,
    global_max_pool,
    global_mean_pool,
)

from butfor.edits.space import EditSpace
from butfor.problem.goal import Goal
from butfor.problem.target import Pair
from hand_edits import Act, Cut, Join, edges_of, edited
from truth import Question
from votes import both

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor


# Models.

POOLS: dict[str, Callable[..., Tensor]] = {"sum": global_add_pool, "mean": global_mean_pool, "max": global_max_pool}


def layer(kind: str, width: int, out: int) -> torch.nn.Module:
    if kind == "GIN":
        return GINConv(torch.nn.Linear(width, out))
    return {"GCN": GCNConv, "SAGE": SAGEConv, "GAT": GATConv}[kind](width, out)


class GraphModel(torch.nn.Module):
    """Two layers, a readout, a linear layer."""

    def __init__(self, kind: str = "SAGE", pool: str = "mean", out: int = 3, probabilities: bool = False) -> None:
        super().__init__()
        self.first, self.second = layer(kind, 3, 6), layer(kind, 6, 6)
        self.head = torch.nn.Linear(6, out)
        self.pool, self.probabilities = pool, probabilities

    def read(self, x, edge_index, batch):
        x = self.second(self.first(x, edge_index).relu(), edge_index).relu()
        out = self.head(POOLS[self.pool](x, batch))
        return out.softmax(-1) if self.probabilities else out

    def forward(self, x, edge_index, batch):
        return self.read(x, edge_index, batch)


class AloneGraphModel(GraphModel):
    """The same for one graph at a time: it cannot be told of several."""

    def forward(self, x, edge_index):
        return self.read(x, edge_index, None)


class EitherGraphModel(GraphModel):
    """The same with a batch if there is one."""

    def forward(self, x, edge_index, batch=None):
        return self.read(x, edge_index, batch)


class LinkModel(torch.nn.Module):
    """An encoder and a decoder, and no forward."""

    def __init__(self, kind: str = "SAGE", out: int = 1, sigmoid: bool = False, flat: bool = True) -> None:
        super().__init__()
        self.layer, self.head = layer(kind, 3, 6), torch.nn.Linear(12, out)
        self.sigmoid, self.flat = sigmoid, flat

    def encode(self, x, edge_index):
        return self.layer(x, edge_index).tanh()

    def decode(self, z, edge_label_index):
        out = self.head(torch.cat([z[edge_label_index[0]], z[edge_label_index[1]]], dim=1))
        out = out.sigmoid() if self.sigmoid else out
        return out.view(-1) if self.flat and out.size(1) == 1 else out


class ForwardLinkModel(LinkModel):
    """The same in one call."""

    def forward(self, x, edge_index, edge_label_index):
        return self.decode(self.encode(x, edge_index), edge_label_index)


class CommonNeighbours(torch.nn.Module):
    """How many neighbours two nodes have in common, by the messages they get, less a half."""

    def __init__(self, sigmoid: bool = False) -> None:
        super().__init__()
        self.layer, self.sigmoid = SimpleConv("sum"), sigmoid

    def encode(self, x, edge_index):
        return self.layer(x, edge_index)

    def decode(self, z, edge_label_index):
        score = (z[edge_label_index[0]] * z[edge_label_index[1]]).sum(-1) - 0.5
        return score.sigmoid() if self.sigmoid else score


class NodeModel(torch.nn.Module):
    """One number for each node."""

    def __init__(self, kind: str = "SAGE", flat: bool = False, sigmoid: bool = False) -> None:
        super().__init__()
        self.first, self.second = layer(kind, 3, 6), layer(kind, 6, 1)
        self.flat, self.sigmoid = flat, sigmoid

    def forward(self, x, edge_index):
        out = self.second(self.first(x, edge_index).relu(), edge_index)
        out = out.sigmoid() if self.sigmoid else out
        return out[:, 0] if self.flat else out


# Questions.


@dataclass(frozen=True, eq=False)
class TaskQuestion(Question):
    """A question about one target: a node, a `Pair`, or None for the whole graph."""

    target: int | Pair | None = None

    @property
    def task(self) -> str:
        return "graph" if self.target is None else "link" if isinstance(self.target, Pair) else "node"

    @property
    def targets(self) -> Sequence[int | Pair | None]:
        return (self.target,)

    def outputs(self, chosen: np.ndarray) -> np.ndarray:
        return outputs(self.model, self.data, self.directed, self.acts, chosen, self.target)


def outputs(
    model: torch.nn.Module,
    data: Data,
    directed: bool,
    acts: Sequence[Act],
    chosen: np.ndarray,
    target: int | Pair | None,
) -> np.ndarray:
    """What a copy of the model in double precision says of the target after every row of chosen acts: logits."""
    double, graph = copy.deepcopy(model).double().eval(), edited(data, directed, acts, chosen)
    first = data.num_nodes * torch.arange(len(chosen))
    with torch.no_grad():
        if isinstance(target, Pair):
            pairs = torch.stack([first + target.source, first + target.target])
            out = double.decode(double.encode(graph.x, graph.edge_index), pairs)
        elif target is None:
            # Models of one graph at a time pool over all nodes; here each graph's are told apart.
            out = double.read(graph.x, graph.edge_index, graph.batch)
        else:
            out = double(graph.x, graph.edge_index)[first + target]
    out = out.log() if getattr(model, "probabilities", False) else out
    return out.view(len(chosen), 1, -1).numpy()


def random_graph(seed: int, directed: bool, nodes: int = 5, edges: int = 6) -> tuple[Data, list[tuple[int, int]]]:
    """A small random graph, and the pairs that it does not have."""
    random = np.random.default_rng(seed)
    pairs = list(itertools.permutations(range(nodes), 2) if directed else itertools.combinations(range(nodes), 2))
    pairs = [pairs[i] for i in random.permutation(len(pairs))]
    columns = torch.tensor(pairs[:edges]).T.contiguous() if directed else both(pairs[:edges])
    return Data(x=torch.from_numpy(random.normal(size=(nodes, 3)) * 2).float(), edge_index=columns), pairs[edges:]


MODELS: dict[str, Callable[[], torch.nn.Module]] = {
    "graph GCN sum": lambda: GraphModel("GCN", "sum"),
    "graph SAGE mean alone": lambda: AloneGraphModel("SAGE", "mean"),
    "graph GAT max": lambda: GraphModel("GAT", "max"),
    "graph GIN max alone": lambda: AloneGraphModel("GIN", "max"),
    "graph GIN sum either": lambda: EitherGraphModel("GIN", "sum"),
    "graph SAGE mean probabilities": lambda: GraphModel("SAGE", "mean", probabilities=True),
    "graph regression SAGE sum": lambda: GraphModel("SAGE", "sum", out=1),
    "graph regression GCN mean alone": lambda: AloneGraphModel("GCN", "mean", out=1),
    "link SAGE": lambda: LinkModel("SAGE"),
    "link GCN forward": lambda: ForwardLinkModel("GCN"),
    "link GAT forward sigmoid": lambda: ForwardLinkModel("GAT", sigmoid=True, flat=False),
    "link GIN sigmoid": lambda: LinkModel("GIN", sigmoid=True),
    "link SAGE two classes": lambda: LinkModel("SAGE", out=2),
    "link GCN forward two classes": lambda: ForwardLinkModel("GCN", out=2),
    "node regression GCN": lambda: NodeModel("GCN"),
    "node regression SAGE flat": lambda: NodeModel("SAGE", flat=True),
    "node GAT one logit sigmoid": lambda: NodeModel("GAT", sigmoid=True),
}


@cache
def task_case(kind: str, seed: int) -> TaskQuestion:
    """A question whose answer takes some edits: all edges may go, and two may come."""
    directed = seed % 2 == 1
    data, absent = random_graph(100 * seed + len(kind), directed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(sum(kind.encode()) + seed)
        model = MODELS[kind]().eval()
    target = None if kind.startswith("graph") else (1 if kind.startswith("node") else Pair(0, 3))
    acts = (*(Cut((edge,)) for edge in edges_of(data, directed)), *(Join(ends) for ends in absent[:2]))
    space = EditSpace(add=absent[:2])
    draft = TaskQuestion(f"{kind}, seed {seed}", model, data, acts, directed, Goal(), space, target=target)
    values = draft.scores[:, 0]
    if values.shape[1] > 1:
        if not getattr(model, "probabilities", False):
            with torch.no_grad():
                model.head.bias -= torch.from_numpy(values.mean(axis=0)).float()
        goal = Goal(least=(0.0, 0.0, 0.02)[seed % 3])
    else:
        # A threshold that some edits cross, but not the first best.
        intact, far = values[0, 0], values[np.abs(values[:, 0] - values[0, 0]).argmax(), 0]
        threshold = float(np.float32(intact + (0.35 + 0.15 * (seed % 3)) * (far - intact)))
        goal = Goal(threshold=threshold, least=0.1 * abs(far - intact) * (seed % 3 == 2))
    return replace(draft, goal=goal)
