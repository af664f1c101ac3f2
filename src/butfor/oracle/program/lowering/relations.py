"""The relation that each edge column is of, and its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Relations"]


class Relations:
    """The relation of each edge column."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._of = np.empty(0, np.int64)

    def add(self, name: str, columns: NDArray[np.int64]) -> None:
        """These columns are edges of a relation."""
        many = int(columns.max(initial=-1)) + 1 - len(self._of)
        self._of = np.concatenate([self._of, np.full(max(many, 0), -1)])
        self._of[columns] = len(self._names)
        self._names.append(name)

    def of(self, columns: NDArray[np.int64]) -> NDArray[np.int64]:
        """A number for each relation; -1 where it is no edge."""
        return np.where(columns < 0, -1, np.append(self._of, -1)[columns])

    def ends_of(self, origin: NDArray[np.int64]) -> NDArray[np.int64]:
        """A number for each end of each relation; -1 where it is no edge."""
        relation = self.of(np.where(origin < 0, -1, origin // 2))
        return np.where(relation < 0, -1, 2 * relation + origin % 2)

    def made_of(self, origin: NDArray[np.int64]) -> dict[str, tuple[Any, ...]]:
        """Which ends of each relation an index has, and how often each edge: in both lines, where these differ."""
        both = origin.reshape(2, -1) if origin.ndim > 1 and len(origin) == 2 else origin.reshape(1, -1)
        found: dict[str, list[tuple[tuple[int, int], ...]]] = {}
        for line in both:
            ends, times = np.unique(line[line >= 0], return_counts=True)
            relation, what = self.ends_of(ends) // 2, np.stack([ends % 2, times], axis=1)
            for number in np.unique(relation):
                some = np.unique(what[relation == number], axis=0)
                name = self.name(2 * int(number)).partition(", end ")[0]
                found.setdefault(name, []).append(tuple((int(end), int(often)) for end, often in some))
        # Two edges in a column are two lines as well, which do not differ.
        return {name: tuple(dict.fromkeys(lines)) for name, lines in found.items()}

    def name(self, end: int) -> str:
        """The name of an end of a relation."""
        return "no edge" if end < 0 else f"{self._names[end // 2]}, end {end % 2}"

    def table(self, columns: NDArray[np.int64], rows: NDArray[np.float64]) -> dict[str, tuple[float, ...]] | None:
        """The row that a table has for all edges of each relation; None where edges of one have different rows."""
        relation = self.of(columns)
        numbers, first, which = np.unique(relation, return_index=True, return_inverse=True)
        if not np.array_equal(rows, rows[first][which.reshape(-1)]):
            return None
        return {
            self.name(2 * int(n) if n >= 0 else -1): tuple(rows[i].tolist())
            for n, i in zip(numbers, first, strict=True)
        }
