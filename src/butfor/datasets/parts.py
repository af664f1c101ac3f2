"""Tables that are read in parts, and what has to be known of all rows before the first part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from butfor.boundary.reading import check_file, reading
from butfor.datasets.columns import (
    as_numbers,
    check_ids,
    check_names,
    check_schema,
    first_row,
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

__all__ = ["Table"]

# What is read at once if memory allows it: rows, and bytes of a CSV file.
MOST_ROWS, MOST_BYTES = 2**17, 2**23

# Roughly how many bytes a value, and a byte of a CSV file, take meanwhile.
CELL, EXPANSION = 128, 16

# How polars tells integers, numbers and truth values in a CSV file.
SPELLINGS = (
    ("Int64", r"^\s*-?\d+$"),
    ("Float64", r"^\s*[-+]?((\d*\.\d+)([eE][-+]?\d+)?|inf|NaN|\d+([eE][-+]?\d+)?|\d+\.)$"),
    ("Boolean", r"^(?i:true|false)$"),
)


class Table:
    """A CSV or Parquet file, of any size.

    Args:
        path: the file.
        ids: its columns of ids, which are read as text.
        memory: roughly how many bytes may be used for what is read at once.

    Attributes:
        rows: how many rows it has.
        columns: their dtypes by name.

    Raises:
        GraphError: the file cannot be read, or has not these columns.
        InputError: polars is not installed.
    """

    def __init__(self, path: Path, *ids: str, memory: int) -> None:
        pl = import_polars()
        if not path.exists():
            raise GraphError(f"there is no file {path}")
        check_file(path, any_size=True)
        self.path = path
        self._ids = ids
        self._memory = memory
        self._kind = f"as {path.suffix[1:]}"
        self.columns: Mapping[str, Any]
        if path.suffix == ".parquet":
            with reading(path, kind=self._kind), silent():
                scan = pl.scan_parquet(path, glob=False)
                self.columns = scan.collect_schema()
                self.rows: int = scan.select(pl.len()).collect().item()
        else:
            self._look_at_csv()
        check_schema(self.columns, path)
        require(pl.DataFrame(schema=self.columns), path, ids)

    def _look_at_csv(self) -> None:
        """Find out the names and types of the columns, as `polars.read_csv` does, and count the rows."""
        import polars as pl

        block = next(self._blocks(), b"")
        with reading(self.path, kind=self._kind):
            header = pl.read_csv(block, has_header=False, n_rows=1, infer_schema=False)
            names = [name or "" for name in header.row(0)]
        check_names(names, self.path)
        self.columns = dict.fromkeys(names, pl.String())
        others = [name for name in names if name not in self._ids]
        fits = {name: [dtype for dtype, _ in SPELLINGS] for name in others}
        filled = dict.fromkeys(others, False)
        self.rows = 0
        for part in self._read(names):
            self.rows += len(part)
            for name in others:
                filled[name] |= part[name].count() > 0
                spellings = [one for one in SPELLINGS if one[0] in fits[name]]
                fits[name] = [dtype for dtype, spelling in spellings if part[name].str.contains(spelling).all()]
        found = {name: getattr(pl, dtypes[0])() for name, dtypes in fits.items() if dtypes and filled[name]}
        self.columns = {**self.columns, **found}

    def _read(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """These columns, some rows at a time."""
        import polars as pl

        if self.path.suffix == ".parquet":
            size = max(min(MOST_ROWS, self._memory // (CELL * len(columns))), 1)
            batches = iter(pl.scan_parquet(self.path, glob=False).select(columns).collect_batches(chunk_size=size))
            while True:
                with reading(self.path, kind=self._kind), silent():
                    part = next(batches, None)
                if part is None:
                    return
                yield part
        numbers = [number for number, name in enumerate(self.columns) if name in columns]
        for number, block in enumerate(self._blocks()):
            with reading(self.path, kind=self._kind):
                part = pl.read_csv(block, has_header=number == 0, schema=self.columns, columns=numbers).select(columns)
            yield part

    def _blocks(self) -> Iterator[bytes]:
        """The bytes of a CSV file, cut between rows: at the end of a line, but not within quotes."""
        size = max(min(MOST_BYTES, self._memory // EXPANSION), 2**12)
        rest = b""
        with reading(self.path):
            file = self.path.open("rb")
        with file:
            while True:
                with reading(self.path):
                    more = file.read(size)
                block = rest + more
                if not more:
                    if block:
                        yield block
                    return
                end = block.rfind(b"\n") + 1
                while end and block.count(b'"', 0, end) % 2:
                    end = block.rfind(b"\n", 0, end - 1) + 1
                if end:
                    yield block[:end]
                rest = block[end:]

    def parts(self, columns: Collection[str]) -> Iterator[tuple[int, pl.DataFrame]]:
        """These columns and the ids, some rows at a time, and how many rows came before.

        Raises:
            GraphError: an id is missing, or ids are numbers with fractions.
        """
        skipped = 0
        kinds = dict.fromkeys(self._ids, (True, True))
        for part in self._read([*self._ids, *columns]):
            require(part, self.path, self._ids, skipped)
            texts = part.with_columns(stripped(part[name], self.path) for name in self._ids)
            require(texts, self.path, self._ids, skipped)
            for name, (numbers, integers) in kinds.items():
                if numbers:
                    now = spelled(texts[name])
                    kinds[name] = now[0], integers and now[1]
            yield skipped, texts
            skipped += len(part)
        for name, (numbers, integers) in kinds.items():
            check_ids(name, self.columns[name], self.path, numbers, integers)

    def distinct(self, column: str) -> pl.Series:
        """The values of a column, each once, in order."""
        import polars as pl

        values = pl.Series(column, [], self.columns[column])
        for part in self._read([column]):
            values = pl.concat([values, part[column].drop_nulls().unique()]).unique()
        return values.sort()

    def numeric(self, known: Collection[str]) -> list[str]:
        """The other columns of numbers; columns of text are left out.

        Raises:
            GraphError: a column mixes numbers and other values.
        """
        import polars as pl

        rest = [(name, dtype) for name, dtype in self.columns.items() if name not in known]
        text = [name for name, dtype in rest if not (dtype.is_numeric() or dtype == pl.Boolean)]
        for name in text:
            self.check_text(name)
        return [name for name, _ in rest if name not in text]

    def check_text(self, name: str) -> None:
        """Refuse a column of text in which some values are numbers, as `columns.has_text` does.

        Raises:
            GraphError: naming the first value that is none.
        """
        first: tuple[int, Any] | None = None
        some_numbers = some_names = False
        skipped = 0
        for part in self._read([name]):
            numbers = as_numbers(part[name], self.path)
            is_number = numbers.is_finite().fill_null(False)
            wrong = part[name].is_not_null() & ~is_number
            if first is None and wrong.any():
                row = first_row(wrong)
                first = skipped + row, part[name][row - 1]
            some_numbers |= bool(is_number.any())
            some_names |= bool((wrong & numbers.is_null()).any())
            skipped += len(part)
        if first is not None and (some_numbers or not some_names):
            raise GraphError(f"row {first[0]} of {self.path} has {first[1]!r} in column {name!r}, not a number")
