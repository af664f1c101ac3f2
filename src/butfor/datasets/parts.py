"""Tables that are read in parts, and what has to be known of all rows before the first part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from butfor.boundary.reading import check_file, reading
from butfor.datasets.columns import (
    check_ids,
    check_names,
    check_schema,
    import_polars,
    require,
    silent,
    spelled,
    stripped,
)
from butfor.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    import polars as pl
    from numpy.typing import NDArray

__all__ = ["Places", "Table"]

# Rows that are read at once if memory allows it, and roughly how many bytes a value takes meanwhile.
MOST_ROWS, CELL = 2**18, 128


class Table:
    """A CSV or Parquet file, of any size.

    Args:
        path: the file.
        ids: its columns of ids, which are read as text.

    Attributes:
        rows: how many rows it has.
        columns: their dtypes by name.

    Raises:
        GraphError: polars is missing, the file cannot be read, or a column is.
    """

    def __init__(self, path: Path, *ids: str) -> None:
        pl = import_polars()
        if not path.exists():
            raise GraphError(f"there is no file {path}")
        check_file(path, any_size=True)
        self.path = path
        self._ids = ids
        self._kind = f"as {path.suffix[1:]}"
        with reading(path, kind=self._kind), silent():
            self._scan = pl.scan_parquet(path, glob=False) if path.suffix == ".parquet" else self._scan_csv()
            self.columns: Mapping[str, Any] = self._scan.collect_schema()
            self.rows: int = self._scan.select(pl.len()).collect().item()
        check_schema(self.columns, path)
        require(pl.DataFrame(schema=self.columns), path, ids)

    def _scan_csv(self) -> pl.LazyFrame:
        import polars as pl

        header = pl.read_csv(self.path, has_header=False, n_rows=1, infer_schema=False, glob=False)
        names = [name or "" for name in header.row(0)]
        check_names(names, self.path)
        as_text = dict.fromkeys(self._ids, pl.String())
        if set(names) <= as_text.keys():  # then there is nothing to be found out about all rows
            return pl.scan_csv(self.path, schema={name: pl.String() for name in names}, glob=False)
        scan = pl.scan_csv(self.path, infer_schema_length=None, schema_overrides=as_text, glob=False)
        return pl.scan_csv(self.path, schema=scan.collect_schema(), glob=False)

    def parts(self, columns: Collection[str], memory: int) -> Iterator[tuple[int, pl.DataFrame]]:
        """These columns and the ids, some rows at a time, and how many rows came before.

        Raises:
            GraphError: an id is missing, or ids are numbers with fractions.
        """
        chosen = [*self._ids, *columns]
        size = max(min(MOST_ROWS, memory // (CELL * len(chosen))), 1)
        skipped = 0
        kinds = dict.fromkeys(self._ids, (True, True))
        batches = iter(self._scan.select(chosen).collect_batches(chunk_size=size))
        while True:
            with reading(self.path, kind=self._kind), silent():
                part = next(batches, None)
            if part is None:
                break
            require(part, self.path, self._ids, skipped)
            part = part.with_columns(stripped(part[name], self.path) for name in self._ids)
            require(part, self.path, self._ids, skipped)
            for name, (numbers, integers) in kinds.items():
                if numbers:
                    now = spelled(part[name])
                    kinds[name] = now[0], integers and now[1]
            yield skipped, part
            skipped += len(part)
        for name, (numbers, integers) in kinds.items():
            check_ids(import_polars().Series(name, [], self.columns[name]), self.path, numbers, integers or not skipped)

    def distinct(self, column: str) -> pl.Series:
        """The values of a column, each once, in order."""
        with reading(self.path, kind=self._kind), silent():
            values: pl.Series = self._scan.select(column).drop_nulls().unique().sort(column).collect()[column]
        return values

    def numeric(self, known: Collection[str]) -> list[str]:
        """The other columns of numbers; columns of text are left out.

        Raises:
            GraphError: a column mixes numbers and other values.
        """
        import polars as pl

        rest = [(name, dtype) for name, dtype in self.columns.items() if name not in known]
        text = [name for name, dtype in rest if not (dtype.is_numeric() or dtype == pl.Boolean)]
        self.check_text(text)
        return [name for name, _ in rest if name not in text]

    def check_text(self, columns: Sequence[str]) -> None:
        """Refuse columns of text in which some values are numbers.

        Raises:
            GraphError: naming the first value that is none.
        """
        import polars as pl

        for name in columns:
            column = pl.col(name)
            numbers = column.cast(pl.String, strict=False).str.strip_chars().cast(pl.Float64, strict=False)
            is_number = numbers.is_finite().fill_null(False)
            wrong = column.is_not_null() & ~is_number
            with reading(self.path, kind=self._kind), silent():
                found = self._scan.select(
                    numbers=is_number.any(), wrong=wrong.any(), names=(wrong & numbers.is_null()).any()
                ).collect()
            # As `has_text` decides it for a column in memory.
            if found["wrong"][0] and (found["numbers"][0] or not found["names"][0]):
                with reading(self.path, kind=self._kind), silent():
                    row, value = self._scan.select(name).with_row_index("row").filter(wrong).head(1).collect().row(0)
                raise GraphError(f"row {row + 1} of {self.path} has {value!r} in column {name!r}, not a number")


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


LONGEST = 1000


def _numbered(first: int, last: int) -> Any:
    import polars as pl

    return pl.Series("id", np.arange(first, last)).cast(pl.String)
