"""The paper's rows are of our methods, and its graphs are recognised."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from butfor.datasets import GENERATORS, load_graph
from butfor.graph.graph import Graph
from butfor.methods import Greedy
from butfor.paper import PAPER, dataset_of, paper_row

if TYPE_CHECKING:
    from pathlib import Path


def test_the_papers_rows_are_of_our_methods() -> None:
    assert list(PAPER) == list(GENERATORS)
    for paper in PAPER.values():
        assert len(paper.rows) == 10
        total = paper.statistics.test_nodes
        for row in paper.rows:
            if row.found is not None:
                # The paper rounds, and cuts off rather than rounds in one place.
                assert row.fidelity == pytest.approx(1 - row.found / total, abs=0.0101)
            for method in row.methods:
                assert paper_row(paper, method.record()) is row
        assert paper_row(paper, Greedy().record()) is None
        assert paper.momentum == (0.9 if paper.name == "ba-shapes" else 0.0)


@pytest.mark.published
def test_published_graphs_are_recognised(reference: Path) -> None:
    for name, paper in PAPER.items():
        data = load_graph(reference / f"{name.replace('-', '_')}_graph.npz")
        assert dataset_of(None, Graph.of(data).fingerprint()) is paper
    assert dataset_of("mine", "ffff") is None
