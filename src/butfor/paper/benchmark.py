"""A benchmark: one of the paper's graphs with a GCN trained on it, either published or made from a seed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

import torch

from butfor.datasets import GENERATORS, describe, load_graph
from butfor.errors import GraphError, ModelError, StoreError
from butfor.models import load_checkpoint, load_published, save_checkpoint, trained_gcn
from butfor.models.gcn import PaperGCN
from butfor.paper.published_numbers import PAPER
from butfor.runs import Run
from butfor.session import Session

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray
    from torch_geometric.data import Data

    from butfor.methods import Method
    from butfor.paper.published_numbers import PaperDataset, PaperRow, Statistics
    from butfor.problem.budget import Budget
    from butfor.result.counterfactual import Counterfactual

__all__ = ["Benchmark", "LoadedBenchmark", "is_trained", "load_benchmark", "load_once", "published_files"]


@dataclass(frozen=True)
class Benchmark:
    """Names a graph of the paper and a model of it.

    Attributes:
        dataset: the name of the dataset, one of `PAPER`.
        seed: the seed of the graph and of the training; None for the graph and weights that the authors published.
    """

    dataset: str
    seed: int | None = None

    @property
    def source(self) -> str:
        """Where it comes from; also the name of its folder."""
        return "published" if self.seed is None else f"seed-{self.seed}"

    @property
    def paper(self) -> PaperDataset:
        """What the paper says about this dataset."""
        return PAPER[self.dataset]

    @property
    def title(self) -> str:
        """The dataset's name in the paper."""
        return self.paper.title

    @property
    def seconds_per_node(self) -> float:
        """Roughly how long a method such as CF-GNN takes for one node."""
        return 0.05 if self.dataset == "ba-shapes" else 0.01

    def paper_row(self, label: str) -> PaperRow | None:
        """The paper's results of the method with this label in its tables."""
        return next((row for row in self.paper.rows if row.label == label), None)


@dataclass(frozen=True, eq=False)
class LoadedBenchmark:
    """A benchmark in memory: its graph and its model."""

    data: Data
    model: PaperGCN

    @cached_property
    def session(self) -> Session:
        """Graph and model, prepared for explaining."""
        return Session.of(self.model, self.data)

    @property
    def classes(self) -> NDArray[np.int64]:
        """The predicted class of every node."""
        return self.session.classes

    @property
    def test_nodes(self) -> list[int]:
        """All test nodes."""
        nodes: list[int] = self.data.test_mask.nonzero().flatten().tolist()
        return nodes

    def is_correct_motif_node(self, target: int | tuple[int, int]) -> bool:
        """Whether the target is a node inside a motif that the model classifies correctly."""
        return isinstance(target, int) and int(self.data.y[target]) == int(self.classes[target]) > 0

    def run(self, method: Method) -> Run:
        """What all results of this method have in common: method, settings, and fingerprints of graph and model."""
        return Run.of(self.session, method)

    def explain(self, nodes: Sequence[int], method: Method, budget: Budget) -> list[Counterfactual]:
        """The results of a method for these nodes, in their order."""
        return self.session.explain(nodes, method, budget=budget)


@cache
def load_once(benchmark: Benchmark, folder: Path) -> LoadedBenchmark:
    """`load_benchmark`, remembered until the process ends.

    The memory belongs to the process because a worker receives its task afresh, by pickling, for every batch of nodes.
    """
    return load_benchmark(benchmark, folder)


def load_benchmark(benchmark: Benchmark, folder: Path) -> LoadedBenchmark:
    """Load a graph and its model; a model that does not exist yet is trained and saved.

    Args:
        benchmark: which one.
        folder: the folder of the published files, or the folder of the model if the benchmark has a seed.

    Raises:
        GraphError: the file of the graph is missing, damaged, or belongs to another dataset.
        ModelError: the file of the weights is.
        StoreError: the folder holds a model of another graph.
    """
    if benchmark.seed is None:
        return _load_published(benchmark, folder)
    data = GENERATORS[benchmark.dataset](benchmark.seed)
    description = describe(data)
    if not is_trained(folder):
        model, result = trained_gcn(data, seed=benchmark.seed)
        save_checkpoint(folder, model, data_info=description, result=result)
        return LoadedBenchmark(data, model)
    saved, info = load_checkpoint(folder)
    if not isinstance(saved, PaperGCN) or info.get("data", {}).get("sha256") != description["sha256"]:
        raise StoreError(f"{folder} holds a model of another graph: choose another folder, or delete that one")
    return LoadedBenchmark(data, saved)


def is_trained(folder: Path) -> bool:
    """Whether this folder holds a trained model."""
    return (folder / "model.json").exists()


def published_files(dataset: str, reference: Path) -> tuple[Path, Path]:
    """The files of the published graph and weights of a dataset."""
    name = dataset.replace("-", "_")
    return reference / f"{name}_graph.npz", reference / f"{name}_gcn_weights.npz"


def _load_published(benchmark: Benchmark, reference: Path) -> LoadedBenchmark:
    graph, weights = published_files(benchmark.dataset, reference)
    data, model, expected = load_graph(graph), load_published(weights), benchmark.paper.statistics
    if data.num_nodes != expected.nodes:
        raise GraphError(f"{graph} has {data.num_nodes} nodes; {benchmark.title} has {expected.nodes}")
    if model.num_classes != expected.classes:
        raise ModelError(
            f"{weights} is of a model with {model.num_classes} classes; {benchmark.title} has {expected.classes}"
        )
    _mark_motifs(data, expected)
    return LoadedBenchmark(data, model)


def _mark_motifs(data: Data, statistics: Statistics) -> None:
    """Mark the nodes and edges of motifs, which the published files do not: motifs are numbered last, one by one.

    A noise edge between two nodes of the same motif is counted as part of it; there is one such edge, in Tree-Grid.
    """
    first = int((data.y > 0).nonzero().min())
    motif = torch.arange(data.num_nodes).sub(first).div(statistics.motif_nodes, rounding_mode="floor")
    data.node_motif = motif.clamp(min=-1)
    source, target = data.node_motif[data.edge_index]
    data.edge_motif = (source == target) & (source >= 0)
    data.motif_size = statistics.motif_edges
