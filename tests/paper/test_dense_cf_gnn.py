"""The paper's algorithm on dense matrices, which the running times are compared with."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import butfor
from butfor.paper.benchmark import Benchmark, load_benchmark
from butfor.paper.dense_cf_gnn import dense_cf_gnn

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.published


@pytest.mark.parametrize("variant", ["paper", "code"])
@pytest.mark.slow
def test_the_dense_algorithm_removes_the_same_edges(variant: str, reference: Path) -> None:
    loaded = load_benchmark(Benchmark("tree-cycles"), reference)
    method = replace(butfor.CFGNN() if variant == "paper" else butfor.CFGNN.published(), epochs=100)
    nodes = loaded.test_nodes[::40]
    results = butfor.explain(loaded.model, loaded.data, nodes, method)
    assert any(result.found for result in results)
    for result in results:
        node = int(result.target)  # type: ignore[arg-type]
        edges = dense_cf_gnn(loaded.model, loaded.data, node, int(loaded.classes[node]), method)
        assert (edges or set()) == set(result.removed_edges)
