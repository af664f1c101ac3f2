"""Graph collections in the TUDataset text format, with the ground truth that some of them carry."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch_geometric.data import Data

from butfor.boundary.limits import array_bytes, check_size
from butfor.boundary.reading import read_bytes, reading
from butfor.errors import GraphError
from butfor.graph.validate import validate

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

__all__ = ["read_tu"]


def read_tu(path: Path) -> list[Data]:
    """Return the graphs of the files `<prefix>_*.txt` in their order; `path` is `<prefix>_graph_indicator.txt`.

    Features are the node attributes and then the node labels one-hot (a constant 1 per node if there
    is neither); `edge_attr` likewise. `y` is the graph's class, counted from 0; `class_names` are the
    labels as the file writes them. Self-loops and repeated edges are dropped, as PyG does.
    `<prefix>_edge_gt.txt`, one 0 or 1 per edge, becomes `edge_motif`.

    Raises:
        GraphError: if a file is missing, damaged, or does not fit the others.
    """
    folder, prefix = path.parent, path.name.removesuffix("_graph_indicator.txt")
    indicator = _read(folder, prefix, "graph_indicator", np.int64)[:, 0]
    edges = _read(folder, prefix, "A", np.int64)
    nodes = len(indicator)
    if nodes == 0:
        raise GraphError(f"{folder / prefix}_graph_indicator.txt is empty: there are no nodes")
    if edges.shape[1:] != (2,):
        raise GraphError(f"{folder / prefix}_A.txt must have two columns, source and target")
    sizes = _sizes(folder, prefix, indicator)
    indicator, edges = indicator - 1, np.maximum(edges, 0) - 1
    x = _attributes(folder, prefix, "node", nodes)
    edge_attr = _attributes(folder, prefix, "edge", len(edges))
    truth = _truth(folder, prefix, len(edges))
    labels = _optional(folder, prefix, "graph_labels", np.int64, len(sizes))

    features = np.ones((nodes, 1), np.float32) if x is None else x
    carried = {} if edge_attr is None else {"edge_attr": torch.from_numpy(edge_attr)}
    validate(Data(x=torch.from_numpy(features), edge_index=torch.from_numpy(edges.T), **carried))
    across = indicator[edges[:, 0]] != indicator[edges[:, 1]]
    if across.any():
        line = int(across.argmax())
        (u, v), (graph, other) = edges[line] + 1, indicator[edges[line]] + 1
        raise GraphError(
            f"line {line + 1} of {prefix}_A.txt joins node {u} of graph {graph} to node {v} of graph {other}"
        )

    proper = np.flatnonzero(edges[:, 0] != edges[:, 1])
    _, first, inverse = np.unique(edges[proper] @ np.array([nodes, 1]), return_index=True, return_inverse=True)
    kept = proper[first]  # sorted by source, then target, so the edges of a graph are next to each other
    per_edge: dict[str, npt.NDArray[Any]] = {}
    if edge_attr is not None:
        per_edge["edge_attr"] = edge_attr[kept]
    if truth is not None:
        per_edge["edge_motif"] = np.bincount(inverse, weights=truth[proper, 0], minlength=len(kept)) > 0
    edge_sizes = np.bincount(indicator[edges[kept, 0]], minlength=len(sizes)).tolist()
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    local = edges[kept] - starts[indicator[edges[kept, 0]], None]

    columns: dict[str, Any] = {
        "x": torch.split(torch.from_numpy(features), sizes.tolist()),
        "edge_index": [part.t().contiguous() for part in torch.split(torch.from_numpy(local), edge_sizes)],
        **{key: torch.split(torch.from_numpy(array), edge_sizes) for key, array in per_edge.items()},
    }
    shared: dict[str, Any] = {"name": prefix}
    if labels is not None:
        classes, y = np.unique(labels[:, 0], return_inverse=True)
        columns["y"] = torch.split(torch.from_numpy(y), 1)
        shared["class_names"] = [str(label) for label in classes]
    return [Data(**{key: parts[graph] for key, parts in columns.items()}, **shared) for graph in range(len(sizes))]


def _read(folder: Path, prefix: str, part: str, dtype: type) -> npt.NDArray[Any]:
    path = folder / f"{prefix}_{part}.txt"
    if not path.exists():
        raise GraphError(f"{folder} has no file {path.name}, which a TUDataset folder needs")
    content = read_bytes(path)
    with reading(path), warnings.catch_warnings():
        # numpy only warns when it truncates a fraction.
        warnings.simplefilter("error", DeprecationWarning)
        lines = content.decode().splitlines()
        empty: npt.NDArray[Any] = np.empty((0, 1), dtype)
        return np.loadtxt(lines, dtype=dtype, delimiter=",", ndmin=2) if any(map(str.strip, lines)) else empty


def _optional(folder: Path, prefix: str, part: str, dtype: type, rows: int) -> npt.NDArray[Any] | None:
    if not (folder / f"{prefix}_{part}.txt").exists():
        return None
    array = _read(folder, prefix, part, dtype)
    if len(array) != rows:
        raise GraphError(f"{prefix}_{part}.txt in {folder} has {len(array)} lines, but there must be {rows}")
    return array


def _truth(folder: Path, prefix: str, rows: int) -> npt.NDArray[Any] | None:
    truth = _optional(folder, prefix, "edge_gt", np.int64, rows)
    if truth is not None and (wrong := (truth[:, 0] < 0) | (truth[:, 0] > 1)).any():
        line = int(wrong.argmax())
        raise GraphError(f"line {line + 1} of {prefix}_edge_gt.txt is {truth[line, 0]}, but must be 0 or 1")
    return truth


def _sizes(folder: Path, prefix: str, indicator: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    if indicator[0] != 1 or (indicator[1:] < indicator[:-1]).any():
        raise GraphError(f"{prefix}_graph_indicator.txt in {folder} must count the graphs upwards from 1")
    left_out = np.flatnonzero(indicator[1:] - indicator[:-1] > 1)
    if len(left_out):
        raise GraphError(f"graph {indicator[left_out[0]] + 1} of {folder} is empty: it has no nodes")
    return np.bincount(indicator - 1)


def _attributes(folder: Path, prefix: str, kind: str, rows: int) -> npt.NDArray[np.float32] | None:
    parts = []
    attributes = _optional(folder, prefix, f"{kind}_attributes", np.float32, rows)
    if attributes is not None:
        parts.append(attributes)
    labels = _optional(folder, prefix, f"{kind}_labels", np.int64, rows)
    if labels is not None and rows:
        for column in labels.T:
            lowest, highest = int(column.min()), int(column.max())
            what = f"one column for each of the labels {lowest} to {highest} in {prefix}_{kind}_labels.txt of {folder}"
            check_size(array_bytes((rows, highest - lowest + 1)), what)
            one_hot = np.zeros((rows, highest - lowest + 1), np.float32)
            one_hot[np.arange(rows), column - lowest] = 1
            parts.append(one_hot)
    return np.concatenate(parts, axis=1) if parts else None
