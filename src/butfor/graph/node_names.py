"""The ids that a graph's nodes have of their own, besides their positions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from torch_geometric.data import Data, HeteroData
    from torch_geometric.data.storage import NodeStorage

__all__ = ["Name", "OwnIds", "names_of"]

# The number of a node and its own id; in a graph of several node types also its type, within which it is numbered.
Name = tuple[int, str] | tuple[int, str, str]


class OwnIds:
    """`data.node_ids` as text, one for each node; looking at one does not touch the others."""

    def __init__(self, ids: Sequence[Any]) -> None:
        self._ids = ids

    @classmethod
    def of(cls, data: Data | NodeStorage) -> OwnIds | None:
        """The ids of a graph's nodes, or of those of one type; None where there are none, or something else."""
        ids: Any = data.get("node_ids")
        is_list = isinstance(ids, (list, tuple)) or getattr(ids, "ndim", None) == 1
        return cls(ids) if is_list and len(ids) == data.num_nodes else None

    def __getitem__(self, node: int) -> str:
        value = self._ids[node]
        return str(value.item() if hasattr(value, "item") else value)

    def __len__(self) -> int:
        return len(self._ids)


def names_of(data: Data | HeteroData, nodes: Iterable[tuple[int, str | None]]) -> tuple[Name, ...]:
    """These nodes, each once and in order, with the ids they have of their own; nothing where they have none.

    In a graph of several node types a node is its number within its type, and that type.
    """
    found: list[Name] = []
    known: dict[str | None, OwnIds | None] = {}
    for node, kind in sorted(set(nodes), key=lambda one: (one[1] or "", one[0])):
        if kind not in known:
            known[kind] = OwnIds.of(data if kind is None else data[kind])
        ids = known[kind]
        if ids is not None:
            found.append((node, ids[node]) if kind is None else (node, ids[node], kind))
    return tuple(found)
