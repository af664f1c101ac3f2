"""Graphs from an edge list and a node table, in CSV or Parquet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch_geometric.data import Data

from butfor.boundary.limits import array_bytes, check_size
from butfor.boundary.reading import check_file, reading
from butfor.datasets.columns import (
    as_numbers,
    check_names,
    check_schema,
    finite_numbers,
    first_row,
    has_text,
    ids_as_text,
    import_polars,
    require,
    silent,
    whole_numbers,
)
from butfor.errors import GraphError
from butfor.graph.validate import check_name, validate

if TYPE_CHECKING:
    from pathlib import Path

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
        GraphError: a file cannot be read, or a column or id does not fit.
        InputError: polars is not installed.
    """
    nodes = _read(nodes_path, "id")
    edges = _read(edges_path, "source", "target")
    if nodes.is_empty():
        raise GraphError(f"{nodes_path} has no rows: the graph is empty")
    fields = _node_fields(nodes, nodes_path)
    source, target = _edge_positions(edges, edges_path, nodes, nodes_path)
    fields["edge_index"] = torch.from_numpy(np.stack([source, target]))
    if "weight" in edges.columns:
        fields["edge_weight"] = torch.from_numpy(finite_numbers(edges["weight"], edges_path))
    attributes = _numeric(edges, edges_path, {"source", "target", "weight"})
    if attributes is not None:
        fields["edge_attr"] = attributes
    data = Data(**fields)
    validate(data)
    return data


def _read(path: Path, *ids: str) -> pl.DataFrame:
    """Return a table, with its columns of ids as text: as numbers they would lose leading zeros, or overflow."""
    import_polars()
    import polars as pl

    if not path.exists():
        raise GraphError(f"there is no file {path}")
    check_file(path)
    kind = f"as {path.suffix[1:]}"
    if path.suffix == ".parquet":
        # Ask for the number of rows before reading them: compressed, a few bytes can be very many rows.
        with reading(path, kind=kind), silent():
            scan = pl.scan_parquet(path, glob=False)
            schema = scan.collect_schema()
            rows = scan.select(pl.len()).collect().item()
        check_size(array_bytes((rows, len(schema)), _CELL_BYTES), str(path))
        check_schema(schema, path)
        with reading(path, kind=kind), silent():
            table = scan.collect()
    else:
        with reading(path, kind=kind):
            content = path.read_bytes()
            header = pl.read_csv(content, has_header=False, n_rows=1, infer_schema=False)
            names = [name or "" for name in header.row(0)]
        check_names(names, path)
        with reading(path, kind=kind):
            table = pl.read_csv(content, infer_schema_length=None, schema_overrides=dict.fromkeys(ids, pl.String))
    require(table, path, ids)
    table = table.with_columns(ids_as_text(table[column], path) for column in ids)
    require(table, path, ids)
    return table


# Roughly how many bytes a value takes while a table is read.
_CELL_BYTES = 16


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
            row = first_row(place.is_null())
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
            values = finite_numbers(nodes[column], path)
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
        raise GraphError(f"row {first_row(column.is_null())} of {path} has no {column.name}")
    if column.dtype.is_integer():
        return {"y": torch.from_numpy(whole_numbers(column, path))}
    if column.dtype.is_float():
        raise GraphError(f"column {column.name!r} of {path} has fractions, but labels are classes")
    numbers = as_numbers(column, path)
    if not numbers.null_count() and numbers.is_finite().any():
        has_text(column, path)  # raises if some classes are numbers and others are not
    names, y = np.unique([str(value) for value in column], return_inverse=True)
    return {"y": torch.from_numpy(y), "class_names": names.tolist()}


def _numeric(table: pl.DataFrame, path: Path, known: set[str]) -> torch.Tensor | None:
    columns = [
        finite_numbers(table[name], path)
        for name in table.columns
        if name not in known and not has_text(table[name], path)
    ]
    return torch.from_numpy(np.stack(columns, axis=1)) if columns else None
