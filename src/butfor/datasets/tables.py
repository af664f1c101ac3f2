"""Graphs from an edge list and a node table, in CSV or Parquet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch_geometric.data import Data

from ..errors import GraphError
from .validate import validate

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

__all__ = ["read_tables"]


def read_tables(edges_path: Path, nodes_path: Path) -> Data:
    """Return the graph of an edge list and a node table.

    Edge list: `source`, `target`, perhaps `weight`; other numeric columns become `edge_attr`, in order.
    Node table: `id`, perhaps `label` (or `y`; text labels are numbered in sorted order and kept as
    `class_names`), perhaps `split` (each value gives a mask) or `*_mask` columns; all other numeric
    columns are features, in order. Ids are integers or text, and read as text: 007 is not 7. Nodes are
    numbered in the table's order and `node_ids` keeps their ids. Columns of plain text are left out.

    Raises:
        GraphError: if polars is missing, a file cannot be read, or a column or id does not fit.
    """
    nodes = _read(nodes_path, "id")
    edges = _read(edges_path, "source", "target")
    if nodes.is_empty():
        raise GraphError(f"{nodes_path} has no rows: the graph is empty")
    fields = _node_fields(nodes, nodes_path)
    source, target = _numbered(edges, edges_path, nodes, nodes_path)
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
    """Return a table, its columns of ids as text: numbers would lose zeros in front and overflow."""
    try:
        import polars as pl
    except ImportError as problem:
        raise GraphError("reading CSV and Parquet needs polars: pip install 'butfor[tables]'") from problem
    if not path.is_file():
        raise GraphError(f"there is no file {path}")
    try:
        if path.suffix == ".parquet":
            table = pl.read_parquet(path)
        else:
            table = pl.read_csv(path, infer_schema_length=None, schema_overrides=dict.fromkeys(ids, pl.String))
        _require(table, path, *ids)
        table = table.with_columns(_text(table[column], path) for column in ids)
        _require(table, path, *ids)
        return table
    except GraphError:
        raise
    except (pl.exceptions.PolarsError, OSError, ValueError) as problem:
        raise GraphError(f"{path} cannot be read as {path.suffix[1:]}: {problem}") from problem


def _require(table: pl.DataFrame, path: Path, *columns: str) -> None:
    for column in columns:
        if column not in table.columns:
            raise GraphError(f"{path} has no column {column!r}, only {', '.join(table.columns) or 'none'}")
        if table[column].null_count():
            raise GraphError(f"row {_first(table[column].is_null())} of {path} has no {column}")


def _text(ids: pl.Series, path: Path) -> pl.Series:
    import polars as pl

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


def _numbered(edges: pl.DataFrame, edges_path: Path, nodes: pl.DataFrame, nodes_path: Path) -> list[Any]:
    """Return the edges' ends as positions in the node table."""
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
        for part in nodes["split"].drop_nulls().unique().sort():
            if not str(part).isidentifier():
                raise GraphError(f"{path} has the split {part!r}: use names like train, val and test")
            fields[f"{part}_mask"] = torch.from_numpy((nodes["split"] == part).fill_null(False).to_numpy().copy())
    for column in nodes.columns:
        if column.endswith("_mask"):
            known.add(column)
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
        return {"y": torch.from_numpy(column.to_numpy().astype(np.int64))}
    if column.dtype.is_float():
        raise GraphError(f"column {column.name!r} of {path} has fractions, but labels are classes")
    names, y = np.unique([str(value) for value in column], return_inverse=True)
    return {"y": torch.from_numpy(y), "class_names": names.tolist()}


def _numeric(table: pl.DataFrame, path: Path, known: set[str]) -> torch.Tensor | None:
    columns = [
        _numbers(table[name], path) for name in table.columns if name not in known and not _is_text(table[name], path)
    ]
    return torch.from_numpy(np.stack(columns, axis=1)) if columns else None


def _is_text(column: pl.Series, path: Path) -> bool:
    """Tell a column of names, to be left out, from a column of numbers with a typing error in it."""
    import polars as pl

    if column.dtype.is_numeric() or column.dtype == pl.Boolean:
        return False
    numbers = column.cast(pl.String, strict=False).cast(pl.Float64, strict=False)
    wrong = numbers.is_null() & column.is_not_null()
    if numbers.is_not_null().any() and wrong.any():
        row = _first(wrong)
        raise GraphError(f"row {row} of {path} has {column[row - 1]!r} in column {column.name!r}, not a number")
    return True


def _numbers(column: pl.Series, path: Path) -> Any:
    import polars as pl

    if not (column.dtype.is_numeric() or column.dtype == pl.Boolean):
        raise GraphError(f"column {column.name!r} of {path} must be numbers, but is {column.dtype}")
    if column.null_count():
        raise GraphError(f"row {_first(column.is_null())} of {path} has no value in column {column.name!r}")
    return column.cast(pl.Float32).to_numpy().copy()
