"""Any graph as a folder on disk: tables part by part, other files as their loaders read them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from tqdm import tqdm

from butfor.datasets.columns import as_numbers, finite_numbers, first_row, whole_numbers
from butfor.datasets.loading import find_loader, load_graph, only_graph
from butfor.datasets.npz import read_npz
from butfor.datasets.parts import Table
from butfor.datasets.places import Places
from butfor.datasets.pt import read_pt
from butfor.datasets.scratch import Scratch
from butfor.datasets.wording import expected_tables
from butfor.errors import GraphError, InputError
from butfor.graph.disk.partial import PartialFolder
from butfor.graph.disk.write import write_graph
from butfor.graph.disk.writer import MEMORY, GraphWriter
from butfor.graph.validate import check_name

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    import polars as pl
    from numpy.typing import NDArray
    from torch_geometric.data import Data

__all__ = ["convert_graph"]


def convert_graph(
    source: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    nodes: str | os.PathLike[str] | None = None,
    undirected: bool = False,
    memory: int = MEMORY,
    force: bool = False,
    progress: bool = False,
) -> None:
    """Write the graph of a file to a folder, from which `butfor.open_graph` opens it without reading it.

    Edge lists and node tables in CSV and Parquet are read in parts and sorted outside memory, so they may be larger
    than that; of their nodes only the ids are held, and not even these if they are 0, 1, 2 and so on. Arrays of `.npz`
    and `.pt` files are mapped, not held. All other files are read as `load_graph` reads them.

    Args:
        source: what `load_graph` takes.
        folder: where to write the graph; it appears when all is written, and after an error or Ctrl-C there is nothing.
        nodes: the node table of an edge list.
        undirected: add the other direction of every edge that is there in one direction only.
        memory: roughly how many bytes may be used for rows and edges at a time; by default 1 GiB.
        force: replace a graph that is there already; nothing else is ever replaced.
        progress: show progress bars on standard error, where that is a terminal.

    Raises:
        InputError: the folder exists, or the node table is missing or not wanted.
        GraphError: the graph cannot be read, is malformed or cannot be written.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> butfor.datasets.save_graph(data, "graph.npz")
        >>> butfor.datasets.convert_graph("graph.npz", "trees")
        >>> print(butfor.explain(model, butfor.open_graph("trees"), 597))
        Node 597 is predicted 'motif' (0.85). But for this 1 of its 14 edges it would be 'base' (0.54): 596–597.
    """
    source = Path(source)
    found = find_loader(source) if source.exists() else None
    mapped = None if found is None or nodes is not None else _MAPPED.get(found[0].reader)
    if mapped is not None:
        with PartialFolder(folder, force=force) as partial:
            data = mapped(source, partial.scratch)
            write_graph(data, partial, undirected=undirected, memory=memory, progress=progress)
        return
    if found is None or not found[0].node_table or nodes is None:
        data = load_graph(source, nodes=nodes, undirected=undirected)
        write_graph(data, folder, memory=memory, force=force, progress=progress)
        return
    if source.suffix not in (".csv", ".parquet"):
        raise InputError(f"{source.name} is converted as a whole or not at all: use {expected_tables()}")
    table, edges = Table(Path(nodes), "id", memory=memory), Table(source, "source", "target", memory=memory)
    if not table.rows:
        raise GraphError(f"{nodes} has no rows: the graph is empty")
    options: dict[str, Any] = {"undirected": undirected, "memory": memory, "force": force, "progress": progress}
    with GraphWriter(folder, table.rows, **options) as writer:
        places, values = _write_nodes(writer, table, progress)
        _write_edges(writer, edges, places, table.path, progress)
        del places
        writer.finish(**values)


# Readers that need not hold a whole file, in place of those of the registry; they get a folder for what they copy.
_MAPPED: dict[Any, Callable[[Path, Path], Data]] = {
    "butfor.datasets.npz:read_npz": lambda path, scratch: read_npz(path, Scratch(scratch)),
    "butfor.datasets.pt:read_pt": lambda path, _: only_graph(path, read_pt(path, mapped=True)),
}


def _write_nodes(writer: GraphWriter, table: Table, progress: bool) -> tuple[Places, dict[str, Any]]:
    """What `read_tables` makes of a node table, in parts."""
    columns, values = _labels(table)
    columns |= _masks(table, columns)
    features = table.numeric({"id", "label", "y", "split", *(name for name in table.columns if name.endswith("_mask"))})
    if not features:
        raise GraphError(f"{table.path} has no numeric column for features; where there are none, add a column of ones")
    used = [name for name in table.columns if name in ("label", "y", "split") or name.endswith("_mask")]
    places = Places(table.path)
    with _bar(table.rows, "reading nodes", progress) as bar:
        for skipped, part in table.parts([*used, *features]):
            places.add(part["id"])
            numbers = [finite_numbers(part[name], table.path, skipped) for name in features]
            writer.nodes("x", np.stack(numbers, axis=1))
            for name, column in columns.items():
                writer.nodes(name, column(part, skipped))
            bar.update(len(part))
    places.settle()
    for names in places.names(2**16):
        writer.nodes("node_ids", names)
    return places, values


def _labels(table: Table) -> tuple[dict[str, Any], dict[str, Any]]:
    """How labels are read, and the names of the classes."""
    found = [name for name in ("label", "y") if name in table.columns]
    if not found:
        return {}, {}
    if len(found) > 1:
        raise GraphError(f"{table.path} has both label and y: keep one of them")
    name, dtype = found[0], table.columns[found[0]]
    if dtype.is_float():
        raise GraphError(f"column {name!r} of {table.path} has fractions, but labels are classes")

    def complete(part: pl.DataFrame, skipped: int) -> pl.Series:
        column = part[name]
        if column.null_count():
            raise GraphError(f"row {skipped + first_row(column.is_null())} of {table.path} has no {name}")
        return column

    if dtype.is_integer():
        return {"y": lambda part, skipped: whole_numbers(complete(part, skipped), table.path, skipped)}, {}
    classes = table.distinct(name)
    numbers = as_numbers(classes, table.path)
    if not numbers.null_count() and numbers.is_finite().any():
        table.check_text(name)
    names = sorted({str(value) for value in classes})
    codes = [names.index(str(value)) for value in classes]

    def coded(part: pl.DataFrame, skipped: int) -> NDArray[Any]:
        return complete(part, skipped).replace_strict(classes, codes).to_numpy().astype(np.int64)

    return {"y": coded}, {"class_names": names}


def _masks(table: Table, known: dict[str, Any]) -> dict[str, Any]:
    """How masks are read: one for each value of `split`, and one for each column that is called so."""
    masks: dict[str, Any] = {}
    if "split" in table.columns:
        for value in table.distinct("split"):
            if not str(value).isidentifier() or str(value).startswith("_"):
                raise GraphError(f"{table.path} has the split {value!r}: use names like train, val and test")
            masks[f"{value}_mask"] = _is(value)
    for name in table.columns:
        if name.endswith("_mask"):
            check_name(table.path, name, "a mask")
            if name in masks:
                split = name.removesuffix("_mask")
                raise GraphError(f"{table.path} has both {name} and the split {split!r}: keep one")
            masks[name] = _flags(name, table.path)
    return {name: mask for name, mask in masks.items() if name not in known}


def _is(value: Any) -> Any:
    return lambda part, _: (part["split"] == value).fill_null(False).to_numpy()


def _flags(name: str, path: Path) -> Any:
    def read(part: pl.DataFrame, skipped: int) -> NDArray[Any]:
        values = finite_numbers(part[name], path, skipped)
        if not np.isin(values, (0, 1)).all():
            raise GraphError(f"column {name!r} of {path} is a mask, so it must hold only true/false or 0/1")
        return np.asarray(values.astype(bool))

    return read


def _write_edges(writer: GraphWriter, edges: Table, places: Places, nodes: Path, progress: bool) -> None:
    """What `read_tables` makes of an edge list, in parts."""
    weighted = ["weight"] if "weight" in edges.columns else []
    attributes = edges.numeric({"source", "target", "weight"})
    with _bar(edges.rows, "reading edges", progress) as bar:
        for skipped, part in edges.parts([*weighted, *attributes]):
            ends = []
            for name in ("source", "target"):
                place = places.of(part[name])
                if (unknown := place < 0).any():
                    row = int(unknown.argmax())
                    raise GraphError(
                        f"row {skipped + row + 1} of {edges.path} has {name} {part[name][row]!r}, "
                        f"which is no id in {nodes}"
                    )
                ends.append(place)
            carried = {}
            if weighted:
                carried["edge_weight"] = finite_numbers(part["weight"], edges.path, skipped)
            if attributes:
                numbers = [finite_numbers(part[name], edges.path, skipped) for name in attributes]
                carried["edge_attr"] = np.stack(numbers, axis=1)
            writer.edges(*ends, **carried)
            bar.update(len(part))


def _bar(total: int, label: str, progress: bool) -> tqdm[Any]:
    # tqdm's None means: only where the output is a terminal.
    return tqdm(total=total, desc=label, leave=False, unit=" rows", disable=None if progress else True)
