"""Small random graphs, and models whose classes are evenly matched on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch_geometric.nn import GAT, GCN, GIN, GraphSAGE

from butfor.models import PaperGCN
from hand_edits import Pair, edge_of

if TYPE_CHECKING:
    from torch_geometric.data import Data


def random_model(kind: str, seed: int, classes: int, data: Data) -> torch.nn.Module:
    """A random model whose classes are evenly matched on this graph, half of the way to its last edge."""
    layers = 1 + seed % 3
    build = {
        "GCN": lambda: GCN(data.num_features, 8, layers, classes, jk=(None, "cat", "last")[seed // 3 % 3]),
        "PaperGCN": lambda: PaperGCN(data.num_features, classes, hidden=6),
        "GIN": lambda: GIN(data.num_features, 8, min(layers, 2), classes),
        "GraphSAGE": lambda: GraphSAGE(data.num_features, 8, min(layers, 2), classes),
        "GAT": lambda: GAT(data.num_features, 8, min(layers, 2), classes),
    }[kind]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = build().eval()
    bias = [value for name, value in model.named_parameters() if name.endswith("bias") and len(value) == classes][-1]
    with torch.no_grad():
        both = [model(data.x, data.edge_index), model(data.x, data.edge_index[:, :0])]
        bias -= torch.cat(both).mean(dim=0)
    return model


def random_tree(random: np.random.Generator, nodes: int, extra: int) -> list[Pair]:
    """A tree that grows from its latest nodes, so that it is deep, and some edges more."""
    pairs = {(int(random.integers(max(0, v - 4), v)), v) for v in range(1, nodes)}
    more = [sorted(random.choice(nodes, 2, replace=False).tolist()) for _ in range(extra)]
    return sorted(pairs | {(u, v) for u, v in more})


def random_edges(random: np.random.Generator, nodes: int, directed: bool) -> np.ndarray:
    """The columns of a sparse graph in no order, sometimes with copies, self-loops, or parts that are apart."""
    pairs = random_tree(random, nodes, extra=int(random.integers(0, 7)))
    if random.random() < 0.2:
        pairs = [pair for pair in pairs if random.random() < 0.8]
    if directed:
        pairs = [pair if random.random() < 0.5 else pair[::-1] for pair in pairs]
        pairs += [pair[::-1] for pair in pairs if random.random() < 0.25]
    if pairs and random.random() < 0.2:
        pairs += [pairs[i] for i in random.choice(len(pairs), 2)]
    both = pairs if directed else [*pairs, *(pair[::-1] for pair in pairs)]
    if random.random() < 0.2:
        both += [(node, node) for node in random.choice(nodes, 2).tolist()]
    columns = np.array(both, dtype=np.int64).reshape(-1, 2)
    return random.permutation(columns).T.copy()


def random_weights(random: np.random.Generator, ends: np.ndarray, directed: bool) -> np.ndarray:
    """From few values, so that some edges are alike; the same both ways where there is one edge both ways."""
    values = {edge_of(pair, directed): random.choice([0.5, 1.0, 2.0]) for pair in ends.T.tolist()}
    return np.array([values[edge_of(pair, directed)] for pair in ends.T.tolist()], dtype=np.float64)
