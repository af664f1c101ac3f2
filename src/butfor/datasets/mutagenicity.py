"""Mutagenicity: 4337 molecules, with the groups that make many of them mutagens marked as ground truth.

From Riesen and Bunke's IAM graph database (2008), in the TUDataset format, with the file
`Mutagenicity_edge_gt.txt` that PGExplainer's authors added to it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from butfor.boundary.reading import reading
from butfor.datasets.loading import find_marker
from butfor.datasets.tu import read_tu
from butfor.errors import GraphError

if TYPE_CHECKING:
    import os

    from torch_geometric.data import Data

__all__ = ["load_mutagenicity", "read_mutagenicity"]

# In the order of the labels in the files, as Mutagenicity_label_readme.txt has them.
_ATOMS = ("C", "O", "Cl", "H", "N", "F", "Br", "S", "P", "I", "Na", "K", "Li", "Ca")
_BONDS = ("single", "double", "triple")
_CLASSES = ("mutagen", "nonmutagen")


def read_mutagenicity(path: Path) -> list[Data]:
    """Return what `load_mutagenicity` returns, given the path of `Mutagenicity_edge_gt.txt`.

    Raises:
        GraphError: as `load_mutagenicity`.
    """
    return load_mutagenicity(path.parent)


def load_mutagenicity(folder: str | os.PathLike[str]) -> list[Data]:
    """Return the molecules of a folder with the files `Mutagenicity_*.txt`, in it or in its subfolder `raw`.

    `load_graphs` returns the same for such a folder. Hydrogen is explicit. Every bond is there in both directions. Each
    molecule has

    | attribute | what it is |
    |---|---|
    | `x` | the kind of each atom, one-hot |
    | `edge_index`, `edge_attr` | the bonds, and the kind of each, one-hot |
    | `y` | 0 for a mutagen, 1 for a nonmutagen, in shape [1] |
    | `edge_motif` | whether this bond is the N-O of a nitro group (NO2) or the N-H of an amino group (NH2) |
    | `atoms` | the symbol of each atom, such as `"Cl"` |
    | `node_ids` | the same with the atom's position, such as `"Cl7"` |
    | `bond_names` | what the columns of `edge_attr` are called: single, double, triple |
    | `class_names` | mutagen, nonmutagen |

    The bond that ties a group to the molecule is not marked. Groups are marked in both classes, in 1015 of
    the 2401 mutagens and in 341 of the 1936 nonmutagens; studies of ground truth often use the mutagens only.

    Args:
        folder: where the files are. They are not part of this package, and nothing is downloaded.

    Raises:
        GraphError: if a file is missing or damaged, or the folder holds another dataset.

    Examples:
        >>> import butfor
        >>> molecules = butfor.datasets.load_mutagenicity("data/Mutagenicity")  # doctest: +SKIP
        >>> model, training = butfor.models.trained_graph_classifier(molecules)  # doctest: +SKIP
        >>> print(butfor.explain(model, molecules[:1])[0])  # doctest: +SKIP
    """
    folder = Path(folder)
    with reading(folder):
        there = folder.exists()
    if not there:
        raise GraphError(f"there is no file or folder {folder}")
    graphs = read_tu(find_marker(folder, "*_graph_indicator.txt"))
    first = graphs[0]
    if first.name != "Mutagenicity":
        raise GraphError(f"{folder} holds {first.name}, not Mutagenicity")
    for key, part in (("y", "graph_labels"), ("edge_attr", "edge_labels"), ("edge_motif", "edge_gt")):
        if key not in first:
            source = ": it comes with PGExplainer's data, not with TUDataset's own" if part == "edge_gt" else ""
            raise GraphError(f"{folder} has no file Mutagenicity_{part}.txt{source}")
    for what, found, known in (
        ("kinds of atoms", first.x.size(1), len(_ATOMS)),
        ("kinds of bonds", first.edge_attr.size(1), len(_BONDS)),
        ("classes", len(first.class_names), len(_CLASSES)),
    ):
        if found != known:
            raise GraphError(f"the files in {folder} have {found} {what}, but Mutagenicity has {known}")
    for graph in graphs:
        graph.atoms = [_ATOMS[kind] for kind in graph.x.argmax(dim=1).tolist()]
        graph.node_ids = [f"{symbol}{node}" for node, symbol in enumerate(graph.atoms)]
        graph.bond_names = list(_BONDS)
        graph.class_names = list(_CLASSES)
    return graphs
