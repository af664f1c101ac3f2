"""Graphs from an edge list and a node table, in CSV or Parquet."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch_geometric.data import Data

from butfor.boundary.json_values import shown
from butfor.boundary.limits import array_bytes, check_size
from butfor.boundary.reading import check_file, reading
from butfor.errors import GraphError
from butfor.graph.validate import check_name, validate

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

__all__ = ["read_tables"]


def read_tables(edges_path: Path, nodes_path: Path) -> Data:
    """Return the graph of an edge list and a node table.

    The edge list has the columns `source` and `target`, and perhaps `weight`; other numeric columns become `edge_attr`,
    in their order. The node table has the column `id`, and perhaps `label` (or `y`; text labels are numbered in sorted
    order and kept as `class_names`), `split` (each value gives a mask) or `*_mask`; all other numeric columns become
    features, in their order. Ids are integers or text, and are read as text: 007 is not 7. Nodes are numbered in the
    order of the table, and `node_ids` keeps their ids. Columns of plain text are left out.

    Raises:
        GraphError: if polars is missing, a file cannot be read, or a column or id does not fit.
    """
    nodes = _read(nodes_path, "id")
    edges = _read(edges_path, "source", "target")
    if nodes.is_empty():
        raise GraphError(f"{nodes_path} has no rows: the graph is empty")
    fields = _node_fields(nodes, nodes_path)
    source, target = _edge_positions(edges, edges_path, nodes, nodes_path)
    fields["edge_index"] = torch.from_numpy(np.stack([source, target]))
    if "weight" in edges.columns:
        fields["edge_weight"] = torch.from_numpy(_numbers(edges["weight"], edges_path))
    attributes = _numeric(edges, edges_path, {"source", "target", "weight"})
    if attributes is not None:
        fields["edge_attr"] = attributes
    data = Data(**fields)
    validate(data)
    return data


def _read(path: Path, *ids: str) -> pl.DataFrame:
    """Return a table, with its columns of ids as text: as numbers they would lose leading zeros, or overflow."""
    try:
        import polars as pl
    except ImportError as problem:
        raise GraphError("reading CSV and Parquet needs polars: pip install 'butfor[tables]'") from problem
    if not path.exists():
        raise GraphError(f"there is no file {path}")
    check_file(path)
    kind = f"as {path.suffix[1:]}"
    if path.suffix == ".parquet":
        # Ask for the number of rows before reading them: compressed, a few bytes can be very many rows.
        with reading(path, kind=kind), _silent():
            scan = pl.scan_parquet(path, glob=False)
            schema = scan.collect_schema()
            rows = scan.select(pl.len()).collect().item()
        check_size(array_bytes((rows, len(schema)), _CELL_BYTES), str(path))
        for name, dtype in schema.items():
            if dtype.is_nested() or dtype in (pl.Binary, pl.Object):
                raise GraphError(f"column {shown(name)} of {path} is {dtype}, neither numbers nor text: leave it out")
        with reading(path, kind=kind), _silent():
            table = scan.collect()
    else:
        with reading(path, kind=kind):
            content = path.read_bytes()
            header = pl.read_csv(content, has_header=False, n_rows=1, infer_schema=False)
            names = [name or "" for name in header.row(0)]
        name, times = Counter(names).most_common(1)[0]
        if times > 1:
            raise GraphError(f"{path} has the column {shown(name)} more than once: give each its own name")
        with reading(path, kind=kind):
            table = pl.read_csv(content, infer_schema_length=None, schema_overrides=dict.fromkeys(ids, pl.String))
    _require(table, path, *ids)
    table = table.with_columns(_text(table[column], path) for column in ids)
    _require(table, path, *ids)
    return table


@contextmanager
def _silent() -> Iterator[None]:
    """Hide what is written to standard error: polars dumps a stack trace of its own there if a file is damaged."""
    try:
        kept = os.dup(2)
    except OSError:  # it is closed
        yield
        return
    try:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


# Roughly how many bytes a value takes while a table is read.
_CELL_BYTES = 16


def _require(table: pl.DataFrame, path: Path, *columns: str) -> None:
    for column in columns:
        if column not in table.columns:
            raise GraphError(f"{path} has no column {column!r}, only {', '.join(table.columns) or 'none'}")
        if table[column].null_count():
            raise GraphError(f"row {_first(table[column].is_null())} of {path} has no {column}")


def _text(ids: pl.Series, path: Path) -> pl.Series:
    import polars as pl

    with reading(path):  # not every type can be converted to text
        text = ids.cast(pl.String).str.strip_chars().replace("", None)
    if ids.dtype.is_float() or (_is_number(text) and not text.str.contains(r"^[+-]?\d+$").all()):
        raise GraphError(f"node ids must be integers or text, but column {ids.name!r} of {path} has fractions")
    return text


def _is_number(text: pl.Series) -> bool:
    import polars as pl

    return bool(text.cast(pl.Float64, strict=False).is_not_null().all())


def _first(flags: pl.Series) -> int:
    index = flags.arg_max()
    return -1 if index is None else index + 1  # people count rows from 1


def _edge_positions(edges: pl.DataFrame, edges_path: Path, nodes: pl.DataFrame, nodes_path: Path) -> list[Any]:
    """Return the sources and targets of the edges as positions in the node table."""
    import polars as pl

    ids = nodes["id"]
    if ids.is_duplicated().any():
        raise GraphError(f"{nodes_path} has the id {ids.filter(ids.is_duplicated())[0]!r} more than once")
    places = pl.DataFrame({"id": ids, "place": np.arange(len(ids))})
    found = []
    for end in (edges["source"], edges["target"]):
        keys = end.rename("id")
        place = keys.to_frame().join(places, on="id", how="left", maintain_order="left")["place"]
        if place.null_count():
            row = _first(place.is_null())
            raise GraphError(
                f"row {row} of {edges_path} has {end.name} {keys[row - 1]!r}, which is no id in {nodes_path}"
            )
        found.append(place.to_numpy().astype(np.int64))
    return found


def _node_fields(nodes: pl.DataFrame, path: Path) -> dict[str, Any]:
    fields: dict[str, Any] = {"node_ids": nodes["id"].to_list()}
    known = {"id"}
    for column in ("label", "y"):
        if column in nodes.columns:
            if "y" in fields:
                raise GraphError(f"{path} has both label and y: keep one of them")
            fields.update(_labels(nodes[column], path))
            known.add(column)
    if "split" in nodes.columns:
        known.add("split")
        parts = nodes["split"].drop_nulls().unique().sort()
        check_size(array_bytes((len(parts), len(nodes))), f"a mask for each value of the column 'split' of {path}")
        for part in parts:
            if not str(part).isidentifier() or str(part).startswith("_"):
                raise GraphError(f"{path} has the split {part!r}: use names like train, val and test")
            fields[f"{part}_mask"] = torch.from_numpy((nodes["split"] == part).fill_null(False).to_numpy().copy())
    for column in nodes.columns:
        if column.endswith("_mask"):
            known.add(column)
            check_name(path, column, "a mask")
            if column in fields:
                raise GraphError(f"{path} has both {column} and the split {column.removesuffix('_mask')!r}: keep one")
            values = _numbers(nodes[column], path)
            if not np.isin(values, (0, 1)).all():
                raise GraphError(f"column {column!r} of {path} is a mask, so it must hold only true/false or 0/1")
            fields[column] = torch.from_numpy(values.astype(bool))
    features = _numeric(nodes, path, known)
    if features is None:
        raise GraphError(f"{path} has no numeric column for features; where there are none, add a column of ones")
    fields["x"] = features
    return fields


def _labels(column: pl.Series, path: Path) -> dict[str, Any]:
    if column.null_count():
        raise GraphError(f"row {_first(column.is_null())} of {path} has no {column.name}")
    if column.dtype.is_integer():
        return {"y": torch.from_numpy(_whole(column, path))}
    if column.dtype.is_float():
        raise GraphError(f"column {column.name!r} of {path} has fractions, but labels are classes")
    numbers = _as_numbers(column, path)
    if not numbers.null_count() and numbers.is_finite().any():
        _is_text(column, path)  # raises if some classes are numbers and others are not
    names, y = np.unique([str(value) for value in column], return_inverse=True)
    return {"y": torch.from_numpy(y), "class_names": names.tolist()}


def _numeric(table: pl.DataFrame, path: Path, known: set[str]) -> torch.Tensor | None:
    columns = [
        _numbers(table[name], path) for name in table.columns if name not in known and not _is_text(table[name], path)
    ]
    return torch.from_numpy(np.stack(columns, axis=1)) if columns else None


def _is_text(column: pl.Series, path: Path) -> bool:
    """Tell whether a column holds text and is left out; refuse a column that mixes numbers and other values."""
    import polars as pl

    if column.dtype.is_numeric() or column.dtype == pl.Boolean:
        return False
    numbers = _as_numbers(column, path)
    is_number = numbers.is_finite().fill_null(False)
    wrong = column.is_not_null() & ~is_number
    # "nan" and "inf", in any spelling, stand for missing numbers, unless the rest of the column is names.
    if wrong.any() and (is_number.any() or bool(numbers.filter(wrong).is_not_null().all())):
        row = _first(wrong)
        raise GraphError(f"row {row} of {path} has {column[row - 1]!r} in column {column.name!r}, not a number")
    return True


def _as_numbers(column: pl.Series, path: Path) -> pl.Series:
    import polars as pl

    with reading(path):  # not every type can be converted to text
        return column.cast(pl.String, strict=False).str.strip_chars().cast(pl.Float64, strict=False)


def _numbers(column: pl.Series, path: Path) -> Any:
    import polars as pl

    if not (column.dtype.is_numeric() or column.dtype == pl.Boolean):
        raise GraphError(f"column {column.name!r} of {path} must be numbers, but is {column.dtype}")
    if column.null_count():
        raise GraphError(f"row {_first(column.is_null())} of {path} has no value in column {column.name!r}")
    numbers = column.cast(pl.Float64).cast(pl.Float32)
    wrong = ~numbers.is_finite()
    if wrong.any():
        row = _first(wrong)
        raise GraphError(f"row {row} of {path} has {column[row - 1]} in column {column.name!r}, not a finite number")
    return numbers.to_numpy().copy()


def _whole(column: pl.Series, path: Path) -> Any:
    import polars as pl

    numbers = column.cast(pl.Int64, strict=False)
    if numbers.null_count():
        row = _first(numbers.is_null())
        raise GraphError(f"row {row} of {path} has {column[row - 1]} in column {column.name!r}, too large a number")
    return numbers.to_numpy().copy()
