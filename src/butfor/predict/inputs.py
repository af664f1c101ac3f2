"""Edited graphs as the tensors that a model reads."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from butfor.graph.graph import Graph
    from butfor.graph.typed import Types
    from butfor.predict.batch import EditedBatch

__all__ = ["Inputs", "cloned", "make_inputs", "with_noise"]


@dataclass(frozen=True, eq=False)
class Inputs:
    """What the model is given for some copies: tensors, or dictionaries of them by type.

    Attributes:
        x: the features.
        edge_index: the edges.
        fields: what else it takes of nodes and edges.
        target_rows: the rows of the targets.
        owner: the copy that each row belongs to.
        batch: the graph that each row belongs to; the same unless the graph was of several parts before.
    """

    x: Any
    edge_index: Any
    fields: dict[str, Any]
    target_rows: Tensor
    owner: Tensor
    batch: Tensor


def make_inputs(graph: Graph, edited: EditedBatch, names: Sequence[str]) -> Inputs:
    """What the model reads of an edited batch, with these fields of nodes and edges.

    No tensor shares memory with the graph's own: a model may write into what it is given.
    """
    device = graph.device
    target_rows, owner = (torch.from_numpy(part).to(device) for part in (edited.target_rows, edited.owner))
    if graph.types is not None:
        return _typed_inputs(graph, edited, names, target_rows, owner)
    nodes = None if edited.nodes is None else torch.from_numpy(edited.nodes).to(device)
    x = graph.x.clone() if nodes is None else graph.x[nodes]
    if len(edited.rows):
        at = tuple(torch.from_numpy(part).to(device) for part in (edited.rows, edited.features))
        x[at] = torch.from_numpy(edited.values).to(x)
    of_nodes, of_edges = graph.node_fields(), graph.edge_fields()
    carried = {}
    for name in names:
        if name in of_edges:
            carried[name] = _carried(of_edges[name], name, edited)
        else:
            carried[name] = of_nodes[name].clone() if nodes is None else of_nodes[name][nodes]
    batch = owner
    if isinstance(graph.data.get("batch"), torch.Tensor):
        # Graphs that were joined before keep apart in every copy.
        own = graph.data.batch if nodes is None else graph.data.batch[nodes]
        batch = owner * (int(graph.data.batch.max()) + 1) + own
    return Inputs(
        x, torch.from_numpy(np.ascontiguousarray(edited.edge_index)).to(device), carried, target_rows, owner, batch
    )


def with_noise(inputs: Inputs, edited: EditedBatch, where: NDArray[np.bool_], graph: Graph, far: float) -> Inputs:
    """The same inputs with other features of some rows: shuffled, and so ``far`` from all others if they may be."""
    generator = torch.Generator().manual_seed(0)

    def changed(x: Tensor, rows: NDArray[np.bool_]) -> Tensor:
        at = torch.from_numpy(rows).to(x.device).nonzero().flatten()
        values = x[at][torch.randperm(len(at), generator=generator).to(x.device)]
        if x.is_floating_point() and x.numel():
            noise = torch.randn(values.shape, generator=generator).to(x)
            values = values + far * (1 + x.abs().max()) * noise
        return x.index_put((at,), values)

    if graph.types is None:
        return replace(inputs, x=changed(inputs.x, where))
    kind = _kinds(graph.types, edited)
    return replace(inputs, x={name: changed(x, where[kind == i]) for i, (name, x) in enumerate(inputs.x.items())})


def cloned(inputs: Inputs) -> Inputs:
    """A copy of inputs that are to be used again: a model may write into what it is given."""

    def copied(value: Any) -> Any:
        return {key: copied(one) for key, one in value.items()} if isinstance(value, dict) else value.clone()

    return Inputs(*(copied(getattr(inputs, item.name)) for item in fields(inputs)))


def _kinds(types: Types, edited: EditedBatch) -> NDArray[np.int64]:
    """The number of the type that each row is of."""
    nodes = np.arange(types.node_starts[-1]) if edited.nodes is None else edited.nodes
    return np.searchsorted(types.node_starts, nodes, side="right") - 1


def _typed_inputs(
    graph: Graph, edited: EditedBatch, names: Sequence[str], target_rows: Tensor, owner: Tensor
) -> Inputs:
    device, types = graph.device, graph.types
    assert types is not None
    nodes = np.arange(graph.num_nodes) if edited.nodes is None else edited.nodes
    kind = _kinds(types, edited)
    relation = np.searchsorted(types.edge_starts, edited.columns, side="right") - 1
    # Where each row stands among those of its own type.
    order = np.argsort(kind, kind="stable")
    begins = np.searchsorted(kind[order], np.arange(len(types.node_types)))
    place = np.empty_like(order)
    place[order] = np.arange(len(order)) - begins[kind[order]]
    local = nodes - types.node_starts[kind]
    x = {
        name: graph.data[name].x.detach()[torch.from_numpy(local[kind == number]).to(device)]
        for number, name in enumerate(types.node_types)
    }
    edges: dict[Any, Tensor] = {}
    carried: dict[str, dict[Any, Tensor]] = {name: {} for name in names}
    for number, name in enumerate(types.relations):
        mine = relation == number
        edges[name] = torch.from_numpy(place[edited.edge_index[:, mine]]).to(device)
        columns = torch.from_numpy(edited.columns[mine] - types.edge_starts[number]).to(device)
        for field, values in carried.items():
            stored = graph.data[name].get(field.removesuffix("_dict"))
            if stored is not None:
                values[name] = stored[columns]
    return Inputs(x, edges, carried, torch.from_numpy(place).to(device)[target_rows], owner, owner)


def _carried(values: Tensor, name: str, edited: EditedBatch) -> Tensor:
    """What the edges of some copies carry."""
    columns = torch.from_numpy(edited.columns).to(values.device)
    carried = values[columns.clamp(min=0)] if len(values) else values.new_empty(len(columns), *values.shape[1:])
    if bool((edited.columns < 0).any()):
        carried[columns < 0] = torch.as_tensor(edited.carries.get(name, 1.0)).to(values)
    return carried
