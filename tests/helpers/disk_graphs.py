"""What a graph on disk must share with the one in memory that it was written from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from butfor.graph.graph import Graph
from butfor.graph.node_names import OwnIds

if TYPE_CHECKING:
    from torch_geometric.data import Data, HeteroData


def in_order(data: Data | HeteroData) -> Data | HeteroData:
    """The same graph with its edges as a folder has them, by plain sorting."""
    ordered = data.clone()
    for store in ordered.edge_stores:
        source, target = store.edge_index.numpy()
        order = torch.from_numpy(np.lexsort((source, target)))
        for name, value in list(store.items()):
            if name == "edge_index":
                store[name] = value[:, order].long()
            elif name.startswith("edge_") and isinstance(value, torch.Tensor) and not name.startswith("edge_label"):
                store[name] = value[order]
    return ordered


def check_same(opened: Data | HeteroData, data: Data | HeteroData, hops: int = 2) -> None:
    """Fields, names, types, directions, fingerprint and neighbourhoods are those of the sorted graph in memory."""
    ordered = in_order(data)
    found, wanted = Graph.of(opened), Graph.of(ordered)
    assert found.path is not None
    assert found.directed == wanted.directed
    assert found.fingerprint() == wanted.fingerprint()
    assert np.array_equal(found.edge_index, wanted.edge_index)
    for one, other in zip(opened.stores, ordered.stores, strict=True):
        assert {name for name, value in one.items() if value is not None} == set(other.keys()) - {"num_nodes"}
        for name, value in one.items():
            _check_value(name, value, other[name])
    for one, other in zip(opened.node_stores, ordered.node_stores, strict=True):
        ids, known = OwnIds.of(one), OwnIds.of(other)
        assert (ids is None) == (known is None)
        assert ids is None or known is None or [ids[i] for i in range(len(ids))] == [known[i] for i in range(len(ids))]
    for node in range(min(wanted.num_nodes, 40)):
        for flow in ("source_to_target", "target_to_source"):
            one, other = found.neighbourhood(node, hops, flow), wanted.neighbourhood(node, hops, flow)
            for part in ("nodes", "columns", "edge_index", "distance"):
                assert np.array_equal(getattr(one, part), getattr(other, part)), (node, part)


def _check_value(name: str, value: Any, known: Any) -> None:
    if name == "node_ids":
        return
    if isinstance(known, torch.Tensor):
        assert value.dtype == known.dtype, name
        assert torch.equal(value, known), name
    else:
        assert value == known, name
