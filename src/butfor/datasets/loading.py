"""Graphs from disk: find the loader for a file or folder, and call it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from butfor.boundary.reading import reading
from butfor.datasets.registry import Loader, registry
from butfor.datasets.wording import expected_files, expected_folders, expected_tables
from butfor.errors import GraphError, InputError
from butfor.graph.stored import stored_of
from butfor.graph.validate import is_of_edges

if TYPE_CHECKING:
    import os

    from torch_geometric.data import Data

__all__ = ["find_loader", "find_marker", "load_graph", "load_graphs", "only_graph"]


def load_graph(
    path: str | os.PathLike[str], *, nodes: str | os.PathLike[str] | None = None, undirected: bool = False
) -> Data:
    r"""Return the only graph of a file or folder. Nothing is written, downloaded or executed.

    | path | what is read |
    |---|---|
    | `.npz` | arrays `edge_index`, `x` and optional ones, none of them pickled |
    | `.csv`, `.parquet` | an edge list (`source`, `target`, …), with the node table `nodes` (`id`, `label`, …) |
    | `.pt` | a PyG `Data` written by `torch.save`, read with `weights_only=True` |
    | a folder | the raw files of a `Planetoid` or `TUDataset`, in it or in its subfolder `raw` |
    | a folder | what `butfor convert` wrote; opened, not read, as `butfor.open_graph` does |

    `register_loader` adds other formats. The columns of tables and the names of arrays are on the page *File formats*
    of the documentation (``docs/reference/formats.md``).

    Args:
        path: the file or folder.
        nodes: the node table that goes with an edge list.
        undirected: give every edge that is there in one direction only the other one too, with the same attributes.
            This is for edge lists that name each edge once.

    Raises:
        InputError: if `nodes` is missing for an edge list, or given for anything else; or if `undirected` is asked of a
            folder that has edges in one direction only.
        GraphError: if the path does not exist, no loader knows it, there are several graphs, or they are damaged,
            unsafe to read or malformed.

    Examples:
        >>> from pathlib import Path
        >>> import butfor
        >>> _ = Path("nodes.csv").write_text("id,age,label\nann,41,human\nbob,23,human\nc3po,112,robot\n")
        >>> _ = Path("edges.csv").write_text("source,target,weight\nann,bob,1.0\nbob,c3po,0.5\n")
        >>> data = butfor.datasets.load_graph("edges.csv", nodes="nodes.csv", undirected=True)
        >>> data.node_ids, data.class_names, data.num_edges
        (['ann', 'bob', 'c3po'], ['human', 'robot'], 4)
    """
    return only_graph(path, load_graphs(path, nodes=nodes, undirected=undirected))


def only_graph(path: str | os.PathLike[str], graphs: list[Data]) -> Data:
    """The graph of a file that must hold no other.

    Raises:
        GraphError: there are several.
    """
    if len(graphs) != 1:
        raise GraphError(f"{path} holds {len(graphs)} graphs: use load_graphs and choose one")
    return graphs[0]


def load_graphs(
    path: str | os.PathLike[str], *, nodes: str | os.PathLike[str] | None = None, undirected: bool = False
) -> list[Data]:
    """Return all graphs of a file or folder, such as the molecules of a TUDataset folder.

    Reads what `load_graph` reads; a `.pt` file may hold a list of `Data`.

    Args:
        path: the file or folder.
        nodes: the node table that goes with an edge list.
        undirected: give every edge that is there in one direction only the other one too, with the same attributes.

    Raises:
        InputError, GraphError: as `load_graph`.

    Examples:
        >>> import torch
        >>> import butfor
        >>> torch.save(butfor.datasets.ba_2motifs(graphs=4), "motifs.pt")
        >>> graphs = butfor.datasets.load_graphs("motifs.pt")
        >>> len(graphs), graphs[0].num_nodes
        (4, 25)
    """
    path = Path(path)
    with reading(path):
        there = path.exists()
    if not there:
        raise GraphError(f"there is no file or folder {path}")
    found = find_loader(path)
    if found is None and path.is_dir():
        raise GraphError(_unmarked(path))
    if nodes is not None and (found is None or not found[0].node_table):
        raise InputError(f"nodes= goes with an edge list in {expected_tables()}, not with {path.name}")
    if found is None:
        raise GraphError(f"{path.name} is of no known kind: expected {expected_files()}")
    loader, file = found
    if loader.node_table and nodes is None:
        raise InputError(f"the edge list {path.name} needs its node table: nodes='nodes.csv' (--node-table nodes.csv)")
    graphs = loader.graphs(file, None if nodes is None else Path(nodes))
    if undirected:
        for graph in graphs:
            stored = stored_of(graph)
            if stored is None:
                _add_missing_directions(graph)
            elif not stored.reversible:
                raise InputError(f"{path} stays as it was written: convert the graph again with --undirected")
    return graphs


def find_loader(path: Path) -> tuple[Loader, Path] | None:
    """Return the loader of this file or folder, and the file that it is to be called with."""
    loaders = registry.loaders[::-1]  # the last one that recognises the path reads it
    if not path.is_dir():
        return next(((one, path) for one in loaders if one.suffix and path.name.endswith(one.suffix)), None)
    for place in (path, path / "raw"):
        for loader in loaders:
            if loader.marker and (file := _only_match(place, loader.marker)) is not None:
                return loader, file
    return None


def find_marker(folder: Path, marker: str) -> Path:
    """Return the one file of this pattern in a folder or in its subfolder `raw`.

    Raises:
        GraphError: if there is none, or several.
    """
    for place in (folder, folder / "raw"):
        if (file := _only_match(place, marker)) is not None:
            return file
    raise GraphError(_unmarked(folder))


def _only_match(place: Path, marker: str) -> Path | None:
    found = sorted(place.glob(marker))
    if len(found) > 1:
        names = ", ".join(file.name for file in found)
        raise GraphError(f"{place} holds more than one dataset: {names}; keep one per folder")
    return found[0] if found else None


def _unmarked(folder: Path) -> str:
    return f"{folder} has no raw files of {expected_folders()}, neither in it nor in its folder raw"


def _add_missing_directions(data: Data) -> None:
    source, target = data.edge_index.long()
    nodes = data.x.size(0)
    one_way = ~torch.isin(target * nodes + source, source * nodes + target)
    for key in data.keys():  # noqa: SIM118 (a Data iterates over pairs)
        value = data[key]
        if is_of_edges(key) and isinstance(value, Tensor):
            data[key] = torch.cat([value, value[one_way]])
    data.edge_index = torch.cat([data.edge_index, data.edge_index.flip(0)[:, one_way]], dim=1)
