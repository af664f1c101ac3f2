"""Shards: files with the results of some targets, in one of two formats, written completely or not at all."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, get_args

from butfor.boundary.atomic import atomic_write
from butfor.boundary.reading import from_json, reading
from butfor.errors import StoreError
from butfor.result.counterfactual import Counterfactual
from butfor.result.status import Status
from butfor.runs.lines import read_lines, reason_of, to_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from polars import DataFrame

__all__ = ["COLUMNS", "FORMATS", "Format", "frame_of", "read_shard", "write_shard"]

Format = Literal["jsonl", "parquet"]
FORMATS: tuple[Format, ...] = get_args(Format)

# The columns of a table of results, and their types in polars.
COLUMNS = {
    "task": "String",
    "source": "Int64",  # the first node of a link; null for anything else
    "target": "Int64",
    "name": "String",
    "status": "String",
    "before": "String",
    "before_probability": "Float64",
    "after": "String",
    "after_probability": "Float64",
    "size": "Int64",
    "cost": "Float64",
    "lower_bound": "Float64",
    "edits": "String",  # as JSON
    "nodes": "Int64",
    "edges": "Int64",
    "evaluations": "Int64",
    "seconds": "Float64",
    "note": "String",
}
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
    import polars

    try:
        texts = polars.read_parquet(path, columns=[WHOLE])[WHOLE]
    except (OSError, polars.exceptions.PolarsError) as problem:
        raise StoreError(f"{path} is damaged: delete it to have its targets done again") from problem
    for text in texts:
        with reading(path, StoreError):
            plain = from_json(text.encode())
        yield Counterfactual.from_dict(plain)


def frame_of(results: Iterable[Counterfactual]) -> DataFrame:
    """Results as a polars table with `COLUMNS`."""
    import polars

    types = {name: getattr(polars, kind) for name, kind in COLUMNS.items()}
    return polars.DataFrame(list(map(_row, results)), schema=types, orient="row")


def _row(result: Counterfactual) -> tuple[Any, ...]:
    source, target = result.target if isinstance(result.target, tuple) else (None, result.target)
    before = None if result.status is Status.FAILED or result.before.label < 0 else result.before
    row = {
        "task": result.task,
        "source": source,
        "target": target,
        "name": result.target_name,
        "status": result.status.value,
        "before": None if before is None else before.name,
        "before_probability": None if before is None else before.probability,
        "after": None if result.after is None else result.after.name,
        "after_probability": None if result.after is None else result.after.probability,
        "size": result.size,
        "cost": result.cost if result.found else None,
        "lower_bound": result.lower_bound,
        "edits": json.dumps([edit.plain for edit in result.edits]),
        "nodes": result.nodes,
        "edges": result.edges,
        "evaluations": result.evaluations,
        "seconds": result.seconds,
        "note": result.note,
    }
    return tuple(row[name] for name in COLUMNS)
