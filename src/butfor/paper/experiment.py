"""The experiment: which benchmarks are explained, and the folder that keeps everything about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from butfor.errors import StoreError
from butfor.paper.benchmark import Benchmark, LoadedBenchmark, load_once
from butfor.paper.published_numbers import PAPER
from butfor.runs import read_results

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from butfor.result.counterfactual import Counterfactual

__all__ = ["Experiment"]

# How many graphs and models are made for each dataset; BA-Shapes takes longest.
DEFAULT_SEEDS = {"tree-cycles": 5, "tree-grid": 5, "ba-shapes": 3}

# A quick run explains every tenth test node.
QUICK_STEP = 10


@dataclass(frozen=True)
class Experiment:
    """What is to be reproduced, and where its files are.

    Attributes:
        folder: the folder for results, models, tables and figures.
        reference: the folder of the published graphs and weights, or None.
        datasets: which of the paper's three datasets.
        seeds: how many graphs and models to make for each dataset; None stands for `DEFAULT_SEEDS`.
        quick: whether to explain only a tenth of the nodes, with one seed.
        quiet: whether to hide progress bars.
    """

    folder: Path
    reference: Path | None = None
    datasets: tuple[str, ...] = tuple(PAPER)
    seeds: int | None = None
    quick: bool = False
    quiet: bool = False

    def published(self) -> list[Benchmark]:
        """The published graphs and models; none without a reference folder."""
        return [Benchmark(name) for name in self.datasets] if self.reference else []

    def fresh(self, dataset: str) -> list[Benchmark]:
        """The graphs and models of a dataset that are made from seeds."""
        count = self.seeds or (1 if self.quick else DEFAULT_SEEDS[dataset])
        return [Benchmark(dataset, seed) for seed in range(count)]

    def first_seeds(self) -> list[Benchmark]:
        """The graph and model of seed 0, for each dataset."""
        return [self.fresh(name)[0] for name in self.datasets]

    def benchmarks(self) -> list[Benchmark]:
        """All benchmarks, published and fresh."""
        return [*self.published(), *(benchmark for name in self.datasets for benchmark in self.fresh(name))]

    def one_per_dataset(self) -> list[Benchmark]:
        """One benchmark for each dataset: the published one, or that of seed 0."""
        return self.published() or self.first_seeds()

    def load(self, benchmark: Benchmark) -> LoadedBenchmark:
        """The benchmark in memory; a model that does not exist yet is trained and saved."""
        if benchmark.seed is not None:
            return load_once(benchmark, self.model_folder(benchmark))
        assert self.reference is not None
        return load_once(benchmark, self.reference)

    def model_folder(self, benchmark: Benchmark) -> Path:
        """Where the model of a fresh benchmark is saved."""
        return self.folder / "models" / benchmark.source / benchmark.dataset

    def nodes(self, benchmark: Benchmark) -> list[int]:
        """The test nodes to explain."""
        return self.load(benchmark).test_nodes[:: QUICK_STEP if self.quick else 1]

    def results_file(self, benchmark: Benchmark, label: str) -> Path:
        """Where the results of a method are saved."""
        return self.folder / "results" / benchmark.source / benchmark.dataset / f"{label}.jsonl"

    def results(self, benchmark: Benchmark, label: str) -> list[Counterfactual]:
        """The results of a method, in the order of `nodes`.

        Raises:
            StoreError: the file is damaged, or some results are missing.
        """
        path = self.results_file(benchmark, label)
        by_node = {result.target: result for result in read_results(path)}
        missing = [node for node in self.nodes(benchmark) if node not in by_node]
        if missing:
            raise StoreError(f"{path} has no result of node {missing[0]}: run the same command again")
        return [by_node[node] for node in self.nodes(benchmark)]

    def describe(self, benchmarks: Sequence[Benchmark], nodes: bool = True) -> str:
        """A line that says which benchmarks and, if ``nodes`` is set, which nodes a section is about."""
        seeds: dict[str, list[int]] = {}
        for benchmark in benchmarks:
            if benchmark.seed is not None:
                seeds.setdefault(benchmark.dataset, []).append(benchmark.seed)
        phrases = ["published graphs and weights"] if any(one.seed is None for one in benchmarks) else []
        for numbers in sorted({tuple(each) for each in seeds.values()}):
            titles = [PAPER[name].title for name in seeds if tuple(seeds[name]) == numbers]
            span = f"seed {numbers[0]}" if len(numbers) == 1 else f"seeds {numbers[0]} to {numbers[-1]}"
            phrases.append(f"{span} ({', '.join(titles)})")
        if nodes:
            phrases.append("every tenth test node" if self.quick else "all test nodes")
        return "; ".join(phrases)
