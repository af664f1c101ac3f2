"""Shards: files with the results of some targets, in one of two formats, written completely or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from butfor.boundary.atomic import atomic_write
from butfor.boundary.extras import optional_imports
from butfor.boundary.reading import from_json, reading
from butfor.errors import StoreError
from butfor.result.counterfactual import Counterfactual
from butfor.result.lines import read_lines, reason_of, to_line
from butfor.result.table import frame_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

__all__ = ["FORMATS", "Format", "read_shard", "write_shard"]

Format = Literal["jsonl", "parquet"]
FORMATS: tuple[Format, ...] = get_args(Format)

# In a Parquet file, the whole result, so that nothing is lost.
WHOLE = "json"


def write_shard(path: Path, results: Sequence[Counterfactual]) -> None:
    """Write results to a new file, in the format that its name says.

    Raises:
        StoreError: the file cannot be written.
    """
    try:
        with atomic_write(path) as file:
            if path.suffix == ".jsonl":
                file.writelines(map(to_line, results))
            else:
                with optional_imports():
                    import polars

                whole = polars.Series(WHOLE, [to_line(result).decode().rstrip("\n") for result in results])
                frame_of(results).with_columns(whole).write_parquet(file)
    except OSError as problem:
        raise StoreError(f"cannot write {path}: {reason_of(problem)}") from problem


def read_shard(path: Path) -> Iterator[Counterfactual]:
    """The results of a shard.

    Raises:
        StoreError: the file is damaged or missing.
    """
    if path.suffix == ".jsonl":
        with reading(path, StoreError):
            file = path.open("rb")
        with file:
            for line in read_lines(path, file):
                if line.result is None or not line.complete:
                    raise StoreError(f"{path} is incomplete: delete it to have its targets done again")
                yield line.result
        return
    with optional_imports():
        import polars

    try:
        texts = polars.read_parquet(path, columns=[WHOLE])[WHOLE]
    except (OSError, polars.exceptions.PolarsError) as problem:
        raise StoreError(f"{path} is damaged: delete it to have its targets done again") from problem
    for text in texts:
        with reading(path, StoreError):
            plain = from_json(text.encode())
        yield Counterfactual.from_dict(plain)
