"""Mutagenicity from disk: its molecules and their ground truth."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest
from torch_geometric.data import Batch

from butfor.datasets import load_graphs, load_mutagenicity
from butfor.errors import GraphError
from butfor.graph.node_names import OwnIds
from graphs import same_graph

if TYPE_CHECKING:
    from pathlib import Path


# Two molecules: all kinds of atoms as isolated ones after a nitro group on a carbon; and methylamine's NH2.
NITRO = [(1, 2, 0, 0), (2, 3, 1, 1), (2, 4, 0, 1)]


AMINO = [(1, 2, 0, 0), (2, 3, 0, 1), (2, 4, 0, 1), (1, 5, 2, 0)]


def write(folder: Path, **changes: str | None) -> Path:
    atoms = [0, 4, 1, 1, *range(2, 14)], [0, 4, 3, 3, 3]
    lines = [*NITRO, *((u + 16, v + 16, bond, truth) for u, v, bond, truth in AMINO)]
    files: dict[str, str | None] = {
        "A": "".join(f"{u}, {v}\n{v}, {u}\n" for u, v, _, _ in lines),
        "edge_labels": "".join(f"{bond}\n{bond}\n" for _, _, bond, _ in lines),
        "edge_gt": "".join(f"{truth}\n{truth}\n" for _, _, _, truth in lines),
        "graph_indicator": "1\n" * len(atoms[0]) + "2\n" * len(atoms[1]),
        "graph_labels": "0\n1\n",
        "node_labels": "".join(f"{kind}\n" for part in atoms for kind in part),
    }
    for part, text in {**files, **changes}.items():
        if text is not None:
            (folder / f"Mutagenicity_{part}.txt").write_text(text)
    return folder


def test_molecules(tmp_path: Path) -> None:
    nitro, amino = load_mutagenicity(write(tmp_path))
    assert nitro.atoms[:5] == ["C", "N", "O", "O", "Cl"]
    assert amino.atoms == ["C", "N", "H", "H", "H"]
    assert amino.node_ids == ["C0", "N1", "H2", "H3", "H4"]
    assert [nitro.class_names[int(graph.y)] for graph in (nitro, amino)] == ["mutagen", "nonmutagen"]
    marked = [nitro.edge_index[:, nitro.edge_motif], amino.edge_index[:, amino.edge_motif]]
    assert [part.tolist() for part in marked] == [[[1, 1, 2, 3], [2, 3, 1, 1]]] * 2
    bonds = [nitro.bond_names[kind] for kind in nitro.edge_attr.argmax(dim=1).tolist()]
    by_ends = dict(zip(map(tuple, nitro.edge_index.t().tolist()), bonds, strict=True))
    assert (by_ends[0, 1], by_ends[2, 1], by_ends[3, 1]) == ("single", "double", "single")
    assert str(OwnIds.of(nitro)[4]) == "Cl4"
    assert Batch.from_data_list([nitro, amino]).atoms == [nitro.atoms, amino.atoms]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"edge_gt": None}, r"has no file Mutagenicity_edge_gt\.txt: it comes with PGExplainer's data"),
        ({"edge_gt": "0\n"}, r"Mutagenicity_edge_gt\.txt in .* has 1 lines, but there must be 14"),
        ({"edge_gt": "x\n" * 14}, r"Mutagenicity_edge_gt\.txt cannot be read"),
        ({"edge_gt": "2\n" * 14}, r"line 1 of Mutagenicity_edge_gt\.txt is 2, but must be 0 or 1"),
        ({"edge_labels": None}, r"has no file Mutagenicity_edge_labels\.txt$"),
        ({"graph_labels": None}, r"has no file Mutagenicity_graph_labels\.txt$"),
        ({"graph_labels": "0\n0\n"}, "1 class.*, but Mutagenicity has 2"),
        ({"node_labels": None}, "1 kinds of atoms, but Mutagenicity has 14"),
        ({"edge_labels": "0\n" * 14}, "1 kinds of bonds, but Mutagenicity has 3"),
        ({"graph_indicator": None}, r"has no raw files of"),
        ({"A": None}, r"has no file Mutagenicity_A\.txt"),
    ],
)
def test_bad_mutagenicity(tmp_path: Path, change: dict[str, str | None], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        load_mutagenicity(write(tmp_path, **change))


def test_load_graphs_recognises_mutagenicity(tmp_path: Path) -> None:
    write(tmp_path)
    assert all(map(same_graph, load_graphs(tmp_path), load_mutagenicity(tmp_path)))
    (tmp_path / "Mutagenicity_edge_gt.txt").unlink()
    assert load_graphs(tmp_path)[0].class_names == ["0", "1"]  # as any TUDataset
    write(tmp_path)
    (tmp_path / "AIDS_graph_indicator.txt").touch()
    with pytest.raises(GraphError, match=r"holds more than one dataset: AIDS_graph_ind.*, Mutagenicity_graph_ind"):
        load_graphs(tmp_path)


def test_another_dataset_is_not_mutagenicity(tmp_path: Path) -> None:
    for file in list(write(tmp_path).iterdir()):
        file.rename(tmp_path / file.name.replace("Mutagenicity", "AIDS"))
    assert len(load_graphs(tmp_path)) == 2
    with pytest.raises(GraphError, match="holds AIDS, not Mutagenicity"):
        load_mutagenicity(tmp_path)
    with pytest.raises(GraphError, match="there is no file or folder"):
        load_mutagenicity(tmp_path / "nowhere")


@pytest.mark.published
def test_ground_truth_is_no2_and_nh2(shared: Path) -> None:
    graphs = load_mutagenicity(shared / "data" / "tu" / "Mutagenicity")
    assert Counter(int(graph.y) for graph in graphs) == {0: 2401, 1: 1936}
    assert Counter(int(graph.y) for graph in graphs if bool(graph.edge_motif.any())) == {0: 1015, 1: 341}
    whole = Batch.from_data_list(graphs)
    kind = np.array([symbol for atoms in whole.atoms for symbol in atoms])
    u, v = whole.edge_index.numpy()
    degree = np.bincount(u, minlength=len(kind))

    def neighbours(chosen: np.ndarray) -> np.ndarray:
        return np.bincount(u[chosen[v]], minlength=len(kind))

    hydrogens, oxygens = neighbours(kind == "H"), neighbours(kind == "O")
    # With a third neighbour that is no oxygen: neither nitrates (O-NO2) nor hydroxylamines (O-NH2) are marked.
    thirds = (kind == "N") & (degree == 3)
    amino = thirds & (hydrogens == 2) & (oxygens == 0)
    nitro = thirds & (oxygens == 2) & (neighbours((kind == "O") & (degree == 1)) == 2)
    outward = (amino[u] & (kind[v] == "H")) | (nitro[u] & (kind[v] == "O"))
    inward = (amino[v] & (kind[u] == "H")) | (nitro[v] & (kind[u] == "O"))
    assert np.array_equal(whole.edge_motif.numpy(), outward | inward)
    label = whole.y.numpy()[whole.batch.numpy()]
    assert [np.bincount(label[group]).tolist() for group in (nitro, amino)] == [[770, 115], [657, 296]]
