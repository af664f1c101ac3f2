"""Graphs from lists of edges, and random ones for hypothesis."""

from __future__ import annotations

import torch
from hypothesis import strategies as st
from torch_geometric.data import Data


def data_of(pairs: list[tuple[int, int]], nodes: int, **fields) -> Data:
    """A graph with these edges and features that are all alike."""
    edge_index = torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).T.contiguous()
    return Data(x=torch.ones(nodes, 2), edge_index=edge_index, **fields)


# How many nodes there are, and pairs of them.
edge_lists = st.integers(2, 9).flatmap(
    lambda nodes: st.tuples(
        st.just(nodes),
        st.lists(st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)), max_size=25),
    )
)
