"""Graphs that are too large for brute force: a star, and a long path whose nodes are far from each other."""

from __future__ import annotations

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCN


def star(seed: int, size: float = 1.0, lift: float = 0.0) -> tuple[GCN, Data]:
    """Node 0 among 40 others, some of them joined; ``lift`` speaks for its class, whatever the edges say."""
    random = np.random.default_rng(seed)
    pairs = [*((0, leaf) for leaf in range(1, 41)), *((leaf, leaf + 1) for leaf in range(1, 40, 8))]
    x = torch.from_numpy(random.normal(size=(41, 4)) * size).float()
    data = Data(x=x, edge_index=torch.tensor([*pairs, *(pair[::-1] for pair in pairs)]).T.contiguous())
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = GCN(4, 8, 1 + seed % 2, 3).eval()
    with torch.no_grad():
        model.convs[-1].bias[model(data.x, data.edge_index)[0].argmax()] += lift
    return model, data


def ladder(nodes: int = 120) -> tuple[GCN, Data]:
    """A path in which every seventh node has a link to the third after it."""
    ends = [(i, i + 1) for i in range(nodes - 1)] + [(i, i + 3) for i in range(0, nodes - 3, 7)]
    edge_index = torch.tensor(ends).T
    x = torch.randn(nodes, 4, generator=torch.Generator().manual_seed(0))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = GCN(4, 8, 2, 3).eval()
    return model, Data(x=x, edge_index=torch.cat([edge_index, edge_index.flip(0)], dim=1))
