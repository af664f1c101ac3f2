"""The graphs of a batch, which are explained one by one."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from butfor.errors import InputError, ModelError
from butfor.graph.fields import EDGE_FIELDS

__all__ = ["Part", "check_batch"]


@dataclass(frozen=True, eq=False)
class Part:
    """A graph to explain, and the positions of its nodes and edge columns in the data that PyG passed."""

    data: Data | HeteroData
    nodes: Tensor
    columns: Tensor

    @classmethod
    def whole(cls, data: Data | HeteroData) -> Part:
        """All of the data, as one graph."""
        return cls(data, torch.arange(data.num_nodes), torch.arange(data.num_edges))

    @classmethod
    def inside(cls, data: Data, batch: Tensor, number: int) -> Part:
        """One graph of a batch.

        Raises:
            InputError: it has no nodes.
        """
        inside = batch == number
        if not inside.any():
            raise InputError(f"graph {number} of the batch has no nodes, so there is nothing to explain")
        nodes, columns = inside.nonzero().flatten(), inside[data.edge_index].all(0).nonzero().flatten()
        position = inside.cumsum(0) - 1
        part = Data(edge_index=position[data.edge_index[:, columns]])
        for name in data.keys():  # noqa: SIM118 (a Data iterates over pairs)
            if name != "edge_index":
                part[name] = data[name][columns if name in EDGE_FIELDS else nodes]
        return cls(part, nodes, columns)


def check_batch(data: Data, batch: Tensor, rows: int) -> None:
    """Refuse a batch whose graphs cannot be explained one by one.

    Raises:
        InputError: an edge leads from one graph to another.
        ModelError: the model's output does not have one row for each graph.
    """
    graphs = int(batch.max()) + 1
    if rows != graphs:
        raise ModelError(f"the model returns {rows} rows for the {graphs} graphs of the batch; one each is needed")
    ends = batch[data.edge_index]
    crossing = (ends[0] != ends[1]).nonzero().flatten().tolist()
    if crossing:
        (u, v), (first, second) = data.edge_index[:, crossing[0]].tolist(), ends[:, crossing[0]].tolist()
        raise InputError(
            f"edges of the batch cross graphs: the first is ({u}, {v}), from graph {first} to graph {second}; each "
            "graph is explained alone, so no edge may lead from one to another"
        )
