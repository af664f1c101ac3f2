"""PyG's remote backend: a graph whose features are in a `FeatureStore` and whose edges are in a `GraphStore`."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeGuard

import torch
from torch_geometric.data import Data, FeatureStore, GraphStore, HeteroData

from butfor.errors import GraphError, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["LazyRows", "Stores", "from_stores", "is_stores"]

Stores = tuple[FeatureStore, GraphStore]

# How many rows are fetched at a time where all are needed.
BLOCK = 2**16


@dataclass(frozen=True, eq=False)
class LazyRows:
    """The features of all nodes of a type, fetched row by row: in place of a tensor, where only rows are taken.

    Attributes:
        store: where they are.
        attr: what they are called there.
        shape: that of the tensor.
    """

    store: FeatureStore
    attr: Any
    shape: torch.Size

    def __getitem__(self, rows: torch.Tensor | slice) -> torch.Tensor:
        if isinstance(rows, slice):
            rows = torch.arange(self.shape[0])[rows]
        attr = copy.copy(self.attr)
        attr.index = rows.cpu()
        try:
            found = torch.as_tensor(self.store.get_tensor(attr))
        except Exception as problem:  # whatever a database may raise
            raise GraphError(f"the feature store gave no {_called(self.attr)}: {one_line(problem)}") from problem
        if found.shape != (len(rows), *self.shape[1:]):
            wanted = (len(rows), *self.shape[1:])
            raise GraphError(f"the feature store gave {_called(self.attr)} of shape {tuple(found.shape)}, not {wanted}")
        if found.is_floating_point() and not bool(torch.isfinite(found.sum())):
            bad = (~torch.isfinite(found)).any(dim=1).nonzero()
            if len(bad):
                raise GraphError(f"{_called(self.attr)} of node {int(rows[bad[0, 0]])} is not finite")
        return found.detach()

    def __len__(self) -> int:
        return self.shape[0]

    def blocks(self) -> Iterator[torch.Tensor]:
        """All rows, some at a time."""
        for first in range(0, len(self), BLOCK):
            yield self[torch.arange(first, min(first + BLOCK, len(self)))]

    def clone(self) -> torch.Tensor:
        """All rows as a tensor."""
        return torch.cat(list(self.blocks()))

    def detach(self) -> LazyRows:
        """Itself: what is fetched has no gradient."""
        return self

    def size(self, dim: int) -> int:
        """The length of one side."""
        return self.shape[dim]

    def dim(self) -> int:
        """How many sides it has."""
        return len(self.shape)

    def numel(self) -> int:
        """How many numbers there are."""
        return self.shape.numel()

    def is_floating_point(self) -> bool:
        """Whether features are floating."""
        return self.dtype.is_floating_point

    @cached_property
    def _sample(self) -> torch.Tensor:
        return self[torch.zeros(1, dtype=torch.long)]

    @property
    def dtype(self) -> torch.dtype:
        """That of the first row."""
        return self._sample.dtype

    @property
    def device(self) -> torch.device:
        """Where rows arrive."""
        return self._sample.device


def is_stores(data: object) -> TypeGuard[Stores]:
    """Whether this is the pair by which PyG's loaders take a graph from a database."""
    if not isinstance(data, tuple) or len(data) != 2:
        return False
    return isinstance(data[0], FeatureStore) and isinstance(data[1], GraphStore)


def from_stores(stores: Stores) -> Data | HeteroData:
    """The graph of two stores: all edges in memory, features left where they are.

    Features ``x`` are fetched for the nodes that a question is about; whatever else the store lists (labels, masks,
    what edges carry) is fetched once.

    Raises:
        GraphError: the stores do not give a graph.
    """
    features, graph = stores
    try:
        row, col, perm = graph.coo()
        attrs = list(features.get_all_tensor_attrs())
    except Exception as problem:
        raise GraphError(f"the stores give no graph: {one_line(problem)}") from problem
    typed = isinstance(row, dict)
    data: Any = HeteroData() if typed else Data()
    if typed:
        for kind in row:
            data[kind].edge_index = torch.stack([row[kind], col[kind]])
    else:
        data.edge_index = torch.stack([row, col])
    for attr in attrs:
        group = attr.group_name
        if typed and not isinstance(group, (str, tuple)):
            raise GraphError(f"the feature store does not say of which type {attr.attr_name} is, but edges have types")
        held = data[group] if typed else data
        value = _value(features, attr)
        order = perm.get(group) if typed else None
        if order is not None and isinstance(value, torch.Tensor):
            value = value[order]  # what edges carry, in the order in which the edges came
        held[attr.attr_name] = value
        if attr.attr_name == "x":
            held.num_nodes = len(value)
    return data


def _value(features: FeatureStore, attr: Any) -> LazyRows | torch.Tensor:
    attr = copy.copy(attr)
    if not attr.is_set("group_name"):  # a graph of one type
        attr.group_name = None
    try:
        if attr.attr_name != "x":
            attr.index = None
            return torch.as_tensor(features.get_tensor(attr))
        size = features.get_tensor_size(attr)
    except Exception as problem:
        raise GraphError(f"the feature store gave no {_called(attr)}: {one_line(problem)}") from problem
    if not size:
        raise GraphError(f"the feature store does not say how many rows {_called(attr)} has")
    return LazyRows(features, attr, torch.Size(size))


def _called(attr: Any) -> str:
    return str(attr.attr_name) if attr.group_name is None else f"{attr.attr_name} of {attr.group_name}"
