"""The ids that nodes have of their own."""

from __future__ import annotations

import numpy as np
import torch
from torch_geometric.data import Data, HeteroData

from butfor.graph.node_names import OwnIds, names_of


def test_names_of_nodes() -> None:
    data = Data(x=torch.ones(3, 1), edge_index=torch.zeros(2, 0, dtype=torch.long))
    assert names_of(data, [(2, None), (0, None)]) == ()
    for ids in (["a", "b", "c"], ("a", "b", "c"), np.array(["a", "b", "c"])):
        data.node_ids = ids
        assert names_of(data, [(2, None), (0, None), (2, None)]) == ((0, "a"), (2, "c"))
    data.node_ids = torch.tensor([70, 5, 8])
    assert names_of(data, [(0, None)]) == ((0, "70"),)
    for ids in (["a"], torch.ones(3, 2), "abc"):
        data.node_ids = ids
        assert names_of(data, [(0, None)]) == ()


def test_names_of_nodes_of_several_types() -> None:
    data = HeteroData()
    data["paper"].x, data["author"].x = torch.ones(2, 1), torch.ones(2, 3)
    assert names_of(data, [(0, "paper")]) == ()
    data["author"].node_ids = ["Ada", "Bob"]
    assert names_of(data, [(1, "author"), (0, "paper"), (0, "author")]) == ((0, "Ada", "author"), (1, "Bob", "author"))


def test_all_ids_by_position() -> None:
    ids = OwnIds.of(Data(x=torch.ones(3, 1), node_ids=np.array([70, 5, 8])))
    assert ids is not None
    assert (len(ids), ids[1]) == (3, "5")
