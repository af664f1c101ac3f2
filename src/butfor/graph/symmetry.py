"""Is every edge there in both directions? Without sorting: twice grouped by an end, edges are in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from butfor.graph.csr import Incoming

__all__ = ["is_symmetric"]

# How many edges are looked at before all are: in a directed graph, one of them hardly ever has a reverse.
SAMPLE = 64


def is_symmetric(incoming: Incoming, carried: NDArray[Any] | None = None) -> bool:
    """Whether the edges are the same set after all are turned round.

    With what they carry, one row for each column of ``edge_index``, there must also be as many copies of each.
    """
    if not _some_have_reverses(incoming):
        return False
    nodes = incoming.num_nodes
    # Entries of one byte, unless what edges carry has to be found again by their columns.
    edges = len(incoming.senders)
    columns = np.ones(edges, np.int8) if carried is None else incoming.columns_at(np.arange(edges))
    given = csr_array((columns, incoming.senders, incoming.pointers), shape=(nodes, nodes))
    # Grouping keeps the order that it finds: `turned` is in the order of senders, then receivers; `again` of receivers,
    # then senders. So the pairs of both ascend, and in a symmetric graph they are the same.
    turned = given.tocsc()
    again = turned.tocsr()
    same = np.array_equal(turned.indptr, again.indptr) and np.array_equal(turned.indices, again.indices)
    if carried is None:
        return same or np.array_equal(_once(_pairs(turned)), _once(_pairs(again)))
    if not same:
        return False
    pairs = _pairs(turned)
    return np.array_equal(_by_value(pairs, carried[turned.data]), _by_value(pairs, carried[again.data]))


def _some_have_reverses(incoming: Incoming) -> bool:
    edges = len(incoming.senders)
    places = np.unique(np.linspace(0, edges - 1, SAMPLE).astype(np.int64)) if edges else np.empty(0, np.int64)
    receivers = np.searchsorted(incoming.pointers, places, side="right") - 1
    for sender, receiver in zip(incoming.senders[places], receivers, strict=True):
        if receiver not in incoming.senders[incoming.pointers[sender] : incoming.pointers[sender + 1]]:
            return False
    return True


def _pairs(grouped: Any) -> NDArray[np.int64]:
    """Both ends of each edge as one number."""
    nodes = len(grouped.indptr) - 1
    pairs: NDArray[np.int64] = np.repeat(np.arange(nodes) * nodes, np.diff(grouped.indptr)) + grouped.indices
    return pairs


def _once(ascending: NDArray[np.int64]) -> NDArray[np.int64]:
    once: NDArray[np.int64] = ascending[np.append(True, ascending[1:] != ascending[:-1])[: len(ascending)]]
    return once


def _by_value(ascending: NDArray[np.int64], carried: NDArray[Any]) -> NDArray[Any]:
    """What edges carry, with that of copies in ascending order."""
    repeats = ascending[1:] == ascending[:-1]
    if repeats.any():
        copies = np.flatnonzero(np.append(repeats, False) | np.append(False, repeats))
        some = carried[copies]
        carried[copies] = some[np.lexsort([*some.T, ascending[copies]])]
    return carried
