"""Collections of graphs with ground truth: BA-2Motifs by seed, Mutagenicity from disk."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch

from butfor.datasets import ba_2motifs, load_graphs, load_mutagenicity
from butfor.errors import GraphError, InputError
from butfor.graph.node_names import OwnIds
from butfor.graph.validate import validate

if TYPE_CHECKING:
    from pathlib import Path

    from torch_geometric.data import Data


def same(one: Data, other: Data) -> bool:
    return one.keys() == other.keys() and all(
        torch.equal(one[key], other[key]) if isinstance(one[key], torch.Tensor) else one[key] == other[key]
        for key in one.keys()  # noqa: SIM118
    )


def with_both_directions(data: Data) -> bool:
    edges = {(u, v): inside for (u, v), inside in zip(data.edge_index.t().tolist(), data.edge_motif.tolist())}  # noqa: B905
    return len(edges) == data.num_edges and all(edges.get((v, u)) == inside for (u, v), inside in edges.items())


# BA-2Motifs ---------------------------------------------------------------------------------------------


def test_ba_2motifs_has_the_published_counts() -> None:
    graphs = ba_2motifs()
    assert len(graphs) == 1000
    assert Counter(int(graph.y) for graph in graphs) == {0: 500, 1: 500}
    assert sum(graph.num_edges for graph in graphs) == 51_000
    for graph in graphs:
        validate(graph)
        assert graph.y.shape == (1,)
        assert torch.equal(graph.x, torch.full((25, 10), 0.1))
        assert graph.class_names == ["cycle", "house"]


@pytest.mark.parametrize("seed", [0, 7])
def test_ba_2motifs_is_a_tree_with_a_motif(seed: int) -> None:
    for graph in ba_2motifs(60, seed):
        assert with_both_directions(graph)
        assert not graph.has_self_loops()
        source, target = graph.edge_index
        base = (source < 20) & (target < 20)
        assert int(base.sum()) == 2 * 19
        assert connected(graph.edge_index[:, base], 20)
        hook = (source < 20) & (target >= 20)
        assert int(hook.sum()) == 1
        assert torch.equal(graph.node_motif, torch.tensor([-1] * 20 + [0] * 5))
        assert torch.equal(graph.edge_motif, (source >= 20) & (target >= 20))
        assert int(graph.edge_motif.sum()) == 2 * graph.motif_size
        inside = graph.edge_index[:, graph.edge_motif] - 20
        assert connected(inside, 5)
        # Five nodes with one cycle more than a tree, or two: these degrees leave only the cycle and the house
        # (or the two triangles at one node, which have a node of degree 4, or K23, which has no triangle).
        degrees = sorted(torch.bincount(inside[0], minlength=5).tolist())
        assert degrees == ([2] * 5 if int(graph.y) == 0 else [2, 2, 2, 3, 3])
        assert triangles(inside) == int(graph.y)


def connected(edge_index: torch.Tensor, nodes: int) -> bool:
    reach = torch.eye(nodes)
    reach[edge_index[0], edge_index[1]] = 1
    return bool((torch.matrix_power(reach, nodes) > 0).all())


def triangles(edge_index: torch.Tensor) -> int:
    adjacency = torch.zeros(5, 5)
    adjacency[edge_index[0], edge_index[1]] = 1
    return int(torch.matrix_power(adjacency, 3).trace()) // 6


def test_motifs_hang_anywhere() -> None:
    hooks = [
        tuple(graph.edge_index[:, (graph.edge_index[0] < 20) & (graph.edge_index[1] >= 20)].flatten().tolist())
        for graph in ba_2motifs(400)
    ]
    assert {base for base, _ in hooks} == set(range(20))
    assert {motif for _, motif in hooks} == set(range(20, 25))


def test_base_prefers_the_rich() -> None:
    largest = [int(torch.bincount(graph.edge_index[0, graph.edge_index[1] < 20]).max()) for graph in ba_2motifs(300)]
    # The largest degree of a uniform random recursive tree of 20 nodes is near 5 on average.
    assert np.mean(largest) > 6


def test_seed_decides_everything_and_fewer_are_the_first_of_more() -> None:
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    one, again, other = ba_2motifs(30, 1), ba_2motifs(20, 1), ba_2motifs(30, 2)
    assert torch.equal(torch_state, torch.get_rng_state())
    assert np.array_equal(numpy_state, np.random.get_state()[1])  # noqa: NPY002
    assert all(map(same, one, again))
    assert not any(map(same, one, other))
    assert not any(same(one[i], one[i + 2]) for i in range(28))
    with pytest.raises(InputError, match="graphs is 0, but"):
        ba_2motifs(0)


# Mutagenicity -------------------------------------------------------------------------------------------

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
    assert all(map(same, load_graphs(tmp_path), load_mutagenicity(tmp_path)))
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
