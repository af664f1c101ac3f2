"""What is known of a graph that was opened from a folder, so that nothing has to be computed from its arrays again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from butfor.graph.csr import Incoming
    from butfor.graph.typed import Types

__all__ = ["KEY", "Stored", "attributes", "stored_of"]

# Where a Data or HeteroData remembers it: among its own attributes, not among those of the graph.
KEY = "_stored"


@dataclass(frozen=True, eq=False)
class Stored:
    """What the folder of a graph says about it.

    Attributes:
        path: the folder.
        fingerprint: what `graph_fingerprint` would give.
        directed: whether the graph is directed.
        reversible: whether each edge has its reverse, whatever the two carry.
        edge_index: the edges, of a graph of several types by the numbers that `types` gives its nodes.
        incoming: the same by receiver.
        types: the types of nodes and edges, if there are several.
        held: all that the graph had when it was opened, in its order.
    """

    path: Path
    fingerprint: str
    directed: bool
    reversible: bool
    edge_index: NDArray[np.int64]
    incoming: Incoming
    types: Types | None
    held: tuple[object, ...]


def stored_of(data: Any) -> Stored | None:
    """What the folder says of a graph that was opened from one; None if it was not, or was changed since.

    A graph that got other tensors after it was opened is one in memory like any other.
    """
    stored: Stored | None = getattr(data, "__dict__", {}).get(KEY)
    if stored is None:
        return None
    held = attributes(data)
    same = len(held) == len(stored.held) and all(one is other for one, other in zip(held, stored.held, strict=True))
    return stored if same else None


def attributes(data: Any) -> tuple[object, ...]:
    """All that a graph and its types hold, in order."""
    return tuple(value for store in data.stores for value in store.values())
