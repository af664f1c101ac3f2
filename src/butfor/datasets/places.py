"""Ids of nodes and the numbers that nodes have in a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from butfor.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import polars as pl
    from numpy.typing import NDArray

__all__ = ["Places"]

# An id as long as this is something else; every id takes the room of the longest.
LONGEST = 1000


class Places:
    """Which node has which id.

    Ids that are just the numbers of the nodes take no memory. Others are found by a hash of each, in order.

    Args:
        path: the node table, for messages.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._held: list[Any] | None = None
        self._count = 0
        self._ids: Any = None

    def add(self, ids: pl.Series) -> None:
        """The ids of the next nodes, as text."""
        import polars as pl

        if self._held is None and not (ids == _numbered(self._count, self._count + len(ids))).all():
            self._held = [_numbered(0, self._count)]
        if self._held is not None:
            self._held.append(ids.rename("id"))
            if len(self._held) > 64:
                self._held = [pl.concat(self._held)]
        self._count += len(ids)

    def settle(self) -> None:
        """All ids have been added.

        Raises:
            GraphError: one of them is there twice.
        """
        import polars as pl

        if self._held is None:
            return
        self._ids, self._held = pl.concat(self._held), None
        for seed in range(100):  # two ids have the same hash once in ages
            hashes = self._ids.hash(seed).to_numpy()
            self._order = np.argsort(hashes, kind="stable")
            self._hashes, self._seed = hashes[self._order], seed
            same = np.flatnonzero(self._hashes[1:] == self._hashes[:-1])
            if not len(same):
                return
            first, second = self._ids.gather(self._order[same]), self._ids.gather(self._order[same + 1])
            if (twice := first.filter(first == second)).len():
                raise GraphError(f"{self._path} has the id {twice[0]!r} more than once")

    def of(self, ids: pl.Series) -> NDArray[np.int64]:
        """The numbers of the nodes with these ids; -1 where there is none."""
        import polars as pl

        if self._ids is None:
            number = ids.cast(pl.Int64, strict=False).fill_null(-1)
            known = (number.cast(pl.String) == ids) & (number >= 0) & (number < self._count)
            return np.where(known.to_numpy(), number.to_numpy(), -1)
        at = np.searchsorted(self._hashes, ids.hash(self._seed).to_numpy())
        place = self._order[np.minimum(at, self._count - 1)]
        return np.where((self._ids.gather(place) == ids).to_numpy(), place, -1)

    def names(self, size: int) -> Iterator[NDArray[Any]]:
        """The ids, so many at a time: as numbers where all are spelled like numbers, else as text."""
        import polars as pl

        if self._ids is None:
            for first in range(0, self._count, size):
                yield np.arange(first, min(first + size, self._count))
            return
        number = self._ids.cast(pl.Int64, strict=False)
        dtype = np.dtype(np.int64)
        if number.null_count() or not (number.cast(pl.String) == self._ids).all():
            number, width = self._ids, int(self._ids.str.len_chars().max())
            if width > LONGEST:
                raise GraphError(f"{self._path} has an id of {width} letters: use at most {LONGEST}")
            dtype = np.dtype(f"U{width}")
        for first in range(0, self._count, size):
            yield number[first : first + size].to_numpy().astype(dtype)


def _numbered(first: int, last: int) -> Any:
    import polars as pl

    return pl.Series("id", np.arange(first, last)).cast(pl.String)
