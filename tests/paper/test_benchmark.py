"""The paper's graphs, published and made from seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from butfor.paper import PAPER
from butfor.paper.benchmark import Benchmark, load_benchmark

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.published


@pytest.mark.parametrize(("dataset", "edges"), [("tree-cycles", 360), ("tree-grid", 961), ("ba-shapes", 480)])
def test_the_motifs_of_the_published_graphs_are_found(dataset: str, edges: int, reference: Path) -> None:
    paper = PAPER[dataset].statistics
    data = load_benchmark(Benchmark(dataset), reference).data
    assert ((data.node_motif >= 0) == (data.y > 0)).all()
    motifs = torch.bincount(data.node_motif[data.node_motif >= 0])
    assert (motifs == paper.motif_nodes).all()
    assert int(data.edge_motif.sum()) // 2 == edges
    # One noise edge joins two nodes of one grid.
    assert edges - len(motifs) * paper.motif_edges == (dataset == "tree-grid")
