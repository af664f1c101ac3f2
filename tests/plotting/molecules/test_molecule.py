"""Which graphs are molecules: those whose data say what the atoms are."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from butfor.graph.graph import Graph
from butfor.plotting.molecules.molecule import molecule_of
from molecule_samples import nitromethane


def test_atoms_bonds_and_ground_truth_are_read_from_the_data() -> None:
    found = molecule_of(Graph.of(nitromethane()))
    assert found.symbols == ("C", "N", "O", "O", "H", "H", "H")
    assert found.bonds == (
        (0, 1, "single"),
        (1, 2, "double"),
        (1, 3, "single"),
        (0, 4, "single"),
        (0, 5, "single"),
        (0, 6, "single"),
    )
    assert found.truth == ((1, 2), (1, 3))


@pytest.mark.parametrize("atoms", [None, ["C", "N", "O"], "CNOOHHH", 7])
def test_a_graph_without_a_symbol_for_each_atom_is_no_molecule(atoms: Any) -> None:
    data = nitromethane()
    data.atoms = atoms
    assert molecule_of(Graph.of(data)) is None


def test_a_directed_graph_is_no_molecule() -> None:
    data = nitromethane()
    assert molecule_of(Graph.of(data, directed=True)) is None
    data.edge_index, data.edge_attr, data.edge_motif = data.edge_index[:, :6], data.edge_attr[:6], data.edge_motif[:6]
    assert molecule_of(Graph.of(data)) is None


def test_a_kind_of_bond_that_is_not_known_is_left_out() -> None:
    strange = nitromethane()
    strange.bond_names = ["single", "double", "hydrogen"]
    strange.edge_attr = torch.eye(3)[[2] * strange.edge_index.size(1)]
    del strange.edge_motif
    found = molecule_of(Graph.of(strange))
    assert {kind for *_, kind in found.bonds} == {""}
    assert found.truth == ()
