"""Edited graphs as the tensors that a model reads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from dataclasses import fields as members
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from butfor.edits.addition import carried

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from butfor.graph.graph import Graph
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
    batch: Any


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
    _set(x, edited.rows, edited.features, edited.values)
    of_nodes, of_edges = graph.node_fields(), graph.edge_fields()
    fields = {}
    for name in names:
        if name in of_edges:
            fields[name] = _carried(of_edges[name], edited.columns, carried(edited.carries, name))
        else:
            fields[name] = of_nodes[name].clone() if nodes is None else of_nodes[name][nodes]
    batch = owner
    if isinstance(graph.data.get("batch"), torch.Tensor):
        # Graphs that were joined before keep apart in every copy.
        own = graph.data.batch if nodes is None else graph.data.batch[nodes]
        batch = owner * (int(graph.data.batch.max()) + 1) + own
    return Inputs(
        x, torch.from_numpy(np.ascontiguousarray(edited.edge_index)).to(device), fields, target_rows, owner, batch
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
    kind = _kinds(graph, edited)
    return replace(inputs, x={name: changed(x, where[kind == i]) for i, (name, x) in enumerate(inputs.x.items())})


def cloned(inputs: Inputs) -> Inputs:
    """A copy of inputs that are to be used again: a model may write into what it is given."""

    def copied(value: Any) -> Any:
        return {key: copied(one) for key, one in value.items()} if isinstance(value, dict) else value.clone()

    return Inputs(*(copied(getattr(inputs, item.name)) for item in members(inputs)))


def _kinds(graph: Graph, edited: EditedBatch) -> NDArray[np.int64]:
    """The number of the type that each row is of."""
    return graph.kinds(np.arange(graph.num_nodes) if edited.nodes is None else edited.nodes)


def _set(x: Tensor, rows: NDArray[np.int64], features: NDArray[np.int64], values: NDArray[np.float64]) -> None:
    """Change features where they are to be changed."""
    if len(rows):
        at = tuple(torch.from_numpy(part).to(x.device) for part in (rows, features))
        x[at] = torch.from_numpy(values).to(x)


def _typed_inputs(
    graph: Graph, edited: EditedBatch, names: Sequence[str], target_rows: Tensor, owner: Tensor
) -> Inputs:
    device, types = graph.device, graph.types
    assert types is not None
    nodes = np.arange(graph.num_nodes) if edited.nodes is None else edited.nodes
    kind = _kinds(graph, edited)
    # Where each row stands among those of its own type.
    order = np.argsort(kind, kind="stable")
    begins = np.searchsorted(kind[order], np.arange(len(types.node_types)))
    place = np.empty_like(order)
    place[order] = np.arange(len(order)) - begins[kind[order]]
    x: dict[str, Tensor] = {}
    batch: dict[str, Tensor] = {}
    fields: dict[str, dict[Any, Tensor]] = {name: {} for name in names}
    parts = _own_batches(graph)
    for number, name in enumerate(types.node_types):
        mine = kind == number
        rows = torch.from_numpy(nodes[mine] - types.node_starts[number]).to(device)
        x[name] = graph.features(number)[rows]
        changed = kind[edited.rows] == number
        _set(x[name], place[edited.rows[changed]], edited.features[changed], edited.values[changed])
        batch[name] = owner[torch.from_numpy(mine).to(device)]
        if parts is not None:
            # Graphs that were joined before keep apart in every copy.
            batch[name] = batch[name] * (max(int(one.max()) for one in parts) + 1) + parts[number][rows]
        for field, values in graph.node_fields(number).items():
            if field in fields:
                fields[field][name] = values[rows]
    relation = types.relations_of(edited.columns)
    edges: dict[Any, Tensor] = {}
    for number, triple in enumerate(types.relations):
        mine = relation == number
        edges[triple] = torch.from_numpy(place[edited.edge_index[:, mine]]).to(device)
        columns = np.maximum(edited.columns[mine] - types.edge_starts[number], -1)
        for field, values in graph.edge_fields(number).items():
            if field in fields:
                fields[field][triple] = _carried(values, columns, carried(edited.carries, field, triple))
    return Inputs(x, edges, dict(fields), torch.from_numpy(place).to(device)[target_rows], owner, batch)


def _own_batches(graph: Graph) -> list[Tensor] | None:
    """The graph that each node of each type belongs to, if the graph is of several that were joined before."""
    assert graph.types is not None
    found = [graph.data[kind].get("batch") for kind in graph.types.node_types]
    return found if all(isinstance(one, torch.Tensor) for one in found) else None


def _carried(values: Tensor, columns: NDArray[np.int64], new: Any) -> Tensor:
    """What edges carry by their columns; ``new`` for those whose column is negative, because they were added."""
    at = torch.from_numpy(columns).to(values.device)
    found = values[at.clamp(min=0)] if len(values) else values.new_empty(len(at), *values.shape[1:])
    if bool((columns < 0).any()):
        found[at < 0] = torch.as_tensor(new).to(values)
    return found
