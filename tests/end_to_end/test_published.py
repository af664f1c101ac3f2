"""The published graphs and weights give the published results, node by node."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

import butfor
from butfor.session import Session
from sampling import slow

if TYPE_CHECKING:
    from pathlib import Path

    import torch
    from torch_geometric.data import Data

pytestmark = pytest.mark.published

MOMENTUM = {"tree_cycles": 0.0, "tree_grid": 0.0, "ba_shapes": 0.9}


@dataclass(frozen=True)
class Published:
    data: Data
    model: torch.nn.Module
    size: dict[int, int | None]

    @property
    def nodes(self) -> list[int]:
        return list(self.size)

    def explain(self, method) -> list[butfor.Counterfactual]:
        return butfor.explain(self.model, self.data, self.nodes, method)


@pytest.fixture(scope="module")
def published(reference: Path):
    def load(name: str) -> Published:
        results = json.loads((reference / f"{name}_published_results.json").read_text())
        return Published(
            butfor.datasets.load_graph(reference / f"{name}_graph.npz"),
            butfor.models.load_published(reference / f"{name}_gcn_weights.npz"),
            {int(node): size for node, size in results["size"].items()},
        )

    return load


def found(results: list[butfor.Counterfactual]) -> list[int]:
    return [result.size for result in results if result.size is not None]


# Counts and means of the published results, then size ± std, sparsity and accuracy of the paper's Table 2.
@pytest.mark.parametrize(
    ("name", "count", "total", "mean", "table"),
    [
        ("tree_cycles", 139, 174, 2.094, (2.09, 2.21, 0.90, 0.94)),
        slow(("tree_grid", 230, 243, 1.474, (1.47, 0.77, 0.94, 0.96))),
        slow(("ba_shapes", 85, 140, 2.388, (2.39, 1.39, 0.99, 0.96))),
    ],
)
def test_published_code_node_by_node(
    published, name: str, count: int, total: int, mean: float, table: tuple[float, ...]
) -> None:
    case = published(name)
    results = case.explain(butfor.CFGNN.published(epochs=500, lr=0.1, momentum=MOMENTUM[name]))
    assert {result.target: result.size for result in results} == case.size
    assert (len(found(results)), len(results)) == (count, total)
    assert sum(found(results)) / count == pytest.approx(mean, abs=5e-4)
    assert all(result.status.value == "optimal" for result in results if result.size == 1)
    classes = Session.of(case.model, case.data).classes
    metrics = butfor.evaluation.evaluate(results, case.data, classes, motifs=True)
    size, std, sparsity, accuracy = table
    assert metrics.size.mean == pytest.approx(size, abs=0.006)
    assert metrics.size.std == pytest.approx(std, abs=0.006)
    assert metrics.sparsity.mean == pytest.approx(sparsity, abs=0.0101)
    assert metrics.accuracy.mean == pytest.approx(accuracy, abs=0.006)


@pytest.mark.parametrize(
    ("method", "count", "mean"), [(butfor.RemoveEgo(), 110, 10.56), (butfor.KeepEgo(), 56, 504.18)]
)
@pytest.mark.slow
def test_ego_baselines_on_ba_shapes(published, method, count: int, mean: float) -> None:
    sizes = found(published("ba_shapes").explain(method))
    assert len(sizes) == count
    assert sum(sizes) / count == pytest.approx(mean, abs=0.005)


@pytest.mark.parametrize(
    ("name", "most"), [("tree_cycles", 1.30), *map(slow, [("tree_grid", 1.17), ("ba_shapes", 3.1)])]
)
def test_greedy_explains_every_node(published, name: str, most: float) -> None:
    case = published(name)
    sizes = found(case.explain(butfor.Greedy()))
    assert len(sizes) == len(case.nodes)
    assert sum(sizes) / len(sizes) <= most


@pytest.mark.parametrize(
    ("name", "sizes", "mean", "share"),
    [("tree_cycles", {1: 126, 2: 48}, 1.276, 0.935), ("tree_grid", {1: 204, 2: 39}, 1.160, 0.95)],
)
def test_exact_proves_every_node_of_the_trees(
    published, name: str, sizes: dict[int, int], mean: float, share: float
) -> None:
    case = published(name)
    session = Session.of(case.model, case.data)
    results = session.explain(case.nodes, butfor.Exact())
    assert {result.status.value for result in results} == {"optimal"}
    assert all(result.lower_bound == result.size for result in results)
    assert Counter(result.size for result in results) == sizes
    assert butfor.evaluation.explanation_size(results).mean == pytest.approx(mean, abs=5e-4)
    assert butfor.evaluation.fidelity(results) == 0
    assert butfor.evaluation.accuracy(results, session.classes).mean >= share
