"""Edits made by hand, in plain torch: the edited graphs laid side by side, and what a model says of them.

Shares no code with the library; the truth that tests compare with is built on it (`truth`).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch_geometric.data import Data

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# What edges and nodes may carry besides features.
EDGE_FIELDS = ("edge_weight", "edge_attr", "edge_type")
NODE_FIELDS = ("pos",)

Pair = tuple[int, int]


@dataclass(frozen=True)
class Cut:
    """All these edges go; in a graph of several types each is (relation, source, target)."""

    edges: tuple[Any, ...]
    tenths: int = 10


@dataclass(frozen=True)
class Join:
    """This edge comes."""

    ends: Pair
    tenths: int = 10


@dataclass(frozen=True)
class Put:
    """This feature gets this value."""

    node: int
    feature: int
    value: float
    tenths: int = 10


Act = Cut | Join | Put


def subsets(count: int) -> np.ndarray:
    """All subsets of so many things, one a row; row number r holds thing i where bit i of r is set."""
    return (np.arange(2**count)[:, None] >> np.arange(count)) & 1 == 1


def edge_of(pair: Sequence[int], directed: bool) -> Pair:
    """An edge as a person names it, whichever of its directions this is."""
    u, v = pair
    return (u, v) if directed else (min(u, v), max(u, v))


def edges_of(data: Data, directed: bool) -> list[Pair]:
    """The edges as a person counts them: neither copies nor self-loops, and each direction only where it matters."""
    return sorted({edge_of(pair, directed) for pair in data.edge_index.T.tolist() if pair[0] != pair[1]})


def edited(
    data: Data, directed: bool, acts: Sequence[Act], chosen: np.ndarray, carries: Mapping[str, Any] | None = None
) -> Data:
    """The graph after every row of chosen acts, in double precision, side by side; ``batch`` tells them apart."""
    taken, nodes, count = torch.from_numpy(chosen), data.num_nodes, len(chosen)
    old = [edge_of(pair, directed) for pair in data.edge_index.T.tolist()]
    present = torch.ones(count, len(old), dtype=torch.bool)
    x = data.x.double().repeat(count, 1).view(count, nodes, -1)
    ends, added = data.edge_index, []
    for number, act in enumerate(acts):
        if isinstance(act, Cut):
            gone = torch.tensor([edge in act.edges for edge in old], dtype=torch.bool)
            present &= ~(taken[:, number, None] & gone)
        elif isinstance(act, Join):
            ways = [act.ends] if directed else [act.ends, act.ends[::-1]]
            ends = torch.cat([ends, torch.tensor(ways).T], dim=1)
            added += [taken[:, number, None]] * len(ways)
        else:
            x[taken[:, number], act.node, act.feature] = act.value
    copies, column = torch.cat([present, *added], dim=1).nonzero(as_tuple=True)
    graph = Data(x=x.view(count * nodes, -1), edge_index=ends[:, column] + copies * nodes)
    graph.batch = torch.arange(count).repeat_interleave(nodes)
    for name in EDGE_FIELDS:
        if name in data:
            new = torch.as_tensor((carries or {}).get(name, 1.0)).to(data[name])
            values = torch.cat([data[name], new.expand(len(added), *data[name].shape[1:])])[column]
            graph[name] = values.double() if values.is_floating_point() else values
    for name in NODE_FIELDS:
        if name in data:
            graph[name] = data[name].double().repeat(count, 1)
    return graph


def node_scores(
    model: torch.nn.Module,
    data: Data,
    directed: bool,
    acts: Sequence[Act],
    chosen: np.ndarray,
    carries: Mapping[str, Any] | None = None,
) -> np.ndarray:
    """The scores of every node after every row of chosen acts: (rows, nodes, classes)."""
    graph = edited(data, directed, acts, chosen, carries)
    fields = {name: graph[name] for name in EDGE_FIELDS if name in graph}
    double = copy.deepcopy(model).double().eval()
    with torch.no_grad():
        out = double(graph.x, graph.edge_index, **fields)
    return out.numpy().reshape(len(chosen), data.num_nodes, -1)
