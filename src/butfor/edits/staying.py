"""Which edges must stay, by what an edit space says of single edges and of many at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from butfor.edits.per_edge import PerEdge
from butfor.graph.csr import is_among

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from butfor.edits.per_edge import EdgeColumns
    from butfor.edits.space import EditSpace
    from butfor.graph.edge_keys import Edge

__all__ = ["Staying", "apart", "staying"]


@dataclass(frozen=True, eq=False)
class Staying:
    """The edge columns that must stay: these or, if ``others`` is set, all others.

    It takes as much memory as rules name edges, however many there are.
    """

    columns: NDArray[np.int64]
    others: bool = False

    def __getitem__(self, columns: NDArray[np.int64]) -> NDArray[np.bool_]:
        named = is_among(columns, self.columns) if len(self.columns) else np.zeros(len(columns), dtype=bool)
        return named ^ self.others

    def more(self, columns: NDArray[np.int64]) -> Staying:
        """The same, and these columns stay too."""
        combined = np.setdiff1d if self.others else np.union1d
        return Staying(combined(self.columns, columns), self.others)


def staying(space: EditSpace, columns: EdgeColumns) -> Staying:
    """The columns whose edges must stay, groups apart."""
    graph = columns.graph

    def chosen(items: Iterable[Any], role: str) -> NDArray[np.int64]:
        edges, many = apart(items)
        named = columns.named(edges, role)
        return np.unique(np.concatenate([named, *(np.flatnonzero(columns.mask(one, role)) for one in many)]))

    protected = chosen(space.protected, "protected")
    stays = Staying(protected)
    if space.allowed is not None:
        stays = Staying(chosen(space.allowed, "allowed"), True).more(protected)
    if space.relations is not None:
        relations = [graph.relation(one) for one in space.relations]
        every = np.arange(graph.edge_index.shape[1])
        stays = stays.more(every[~np.isin(graph.keys_of_columns(every)[:, 0], relations)])
    return stays if space.delete else Staying(np.empty(0, np.int64), True)


def apart(items: Iterable[Any]) -> tuple[list[Edge], list[PerEdge]]:
    """Single edges, and what chooses many."""
    both = list(items)
    return [one for one in both if not isinstance(one, PerEdge)], [one for one in both if isinstance(one, PerEdge)]
