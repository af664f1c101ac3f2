"""Does every edge have its reverse? Found out block by block in edges that are sorted by receiver, then by sender."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

__all__ = ["blocks", "first_reverse", "symmetry"]


def blocks(pointers: NDArray[np.int64], edges: int) -> Iterator[tuple[int, int]]:
    """Ranges of receivers with at most so many edges each; a receiver that has more is alone."""
    first, nodes = 0, len(pointers) - 1
    while first < nodes:
        last = int(np.searchsorted(pointers, pointers[first] + edges, side="right")) - 1
        last = min(max(last, first + 1), nodes)
        yield first, last
        first = last


def first_reverse(
    edge_index: Sequence[NDArray[np.int64]], pointers: NDArray[np.int64], first: int, last: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Where the first reverse of each of these columns stands, and which columns have one."""
    senders, receivers = edge_index
    sender, receiver = senders[first:last], receivers[first:last]
    low, high = pointers[sender], pointers[sender + 1]
    end = high
    # Binary search for all of them at once: each has its own stretch of senders.
    while (searching := low < high).any():
        middle = (low + high) >> 1
        smaller = senders[np.where(searching, middle, 0)] < receiver
        low = np.where(searching & smaller, middle + 1, low)
        high = np.where(searching & ~smaller, middle, high)
    found = low < end
    found &= senders[np.where(found, low, 0)] == receiver
    return low, found


def symmetry(
    edge_index: NDArray[np.int64],
    pointers: NDArray[np.int64],
    carried: Sequence[NDArray[Any]],
    parts: Iterable[tuple[int, int]],
) -> tuple[bool, bool]:
    """Whether each edge has its reverse, and whether the reverses also carry the same.

    The second is what `graph.symmetry.is_symmetric` says with what edges carry: there must be as many copies of each.

    Args:
        edge_index: the edges.
        pointers: where the edges into each node begin.
        carried: what edges carry, arrays of a row for each.
        parts: ranges of receivers that are looked at together, such as `blocks` gives.
    """
    same = True
    for begin, stop in parts:
        first, last = int(pointers[begin]), int(pointers[stop])
        reverse, found = first_reverse((edge_index[0], edge_index[1]), pointers, first, last)
        if not found.all():
            return False, False
        if carried and same and last > first:
            same = _carry_the_same(edge_index, pointers, carried, first, last, reverse)
    return True, same


def _carry_the_same(
    edge_index: NDArray[np.int64],
    pointers: NDArray[np.int64],
    carried: Sequence[NDArray[Any]],
    first: int,
    last: int,
    reverse: NDArray[np.int64],
) -> bool:
    sender, receiver = edge_index[:, first:last]
    begins = np.append(True, (np.diff(sender) != 0) | (np.diff(receiver) != 0))[: len(sender)]
    group = np.cumsum(begins) - 1
    # The second copy of an edge has the second copy of its reverse as its partner, and so on.
    partner = reverse + np.arange(len(sender)) - np.flatnonzero(begins)[group]
    inside = partner < pointers[sender + 1]
    if not inside.all() or not np.array_equal(edge_index[0, partner], receiver):
        return False
    there, back = (
        np.concatenate([value[at].reshape(len(sender), -1).astype(np.float64) for value in carried], axis=1)
        for at in (slice(first, last), partner)
    )
    if len(begins) != begins.sum():  # copies may come in any order
        there, back = (values[np.lexsort([*values.T, group])] for values in (there, back))
    return np.array_equal(there, back)
