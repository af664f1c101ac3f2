"""The ids that a graph's nodes have of their own, besides their positions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch_geometric.data import HeteroData

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from torch_geometric.data import Data

__all__ = ["OwnIds", "names_of"]


class OwnIds:
    """`data.node_ids` as text, one for each node; looking at one does not touch the others."""

    def __init__(self, ids: Sequence[Any]) -> None:
        self._ids = ids

    @classmethod
    def of(cls, data: Data) -> OwnIds | None:
        """The ids of a graph; None where it has none, or something else under that name."""
        ids: Any = data.get("node_ids")
        is_list = isinstance(ids, (list, tuple)) or getattr(ids, "ndim", None) == 1
        return cls(ids) if is_list and len(ids) == data.num_nodes else None

    def __getitem__(self, node: int) -> str:
        value = self._ids[node]
        return str(value.item() if hasattr(value, "item") else value)

    def __len__(self) -> int:
        return len(self._ids)


def names_of(data: Data | HeteroData, nodes: Iterable[int]) -> tuple[tuple[int, str], ...]:
    """These nodes, each once and in order, with the ids they have of their own; nothing where they have none."""
    ids = None if isinstance(data, HeteroData) else OwnIds.of(data)
    return () if ids is None else tuple((node, ids[node]) for node in sorted(set(nodes)))
