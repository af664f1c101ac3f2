"""The lab: which subjects are looked at, and the folder in which everything about them is kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from butfor.errors import StoreError
from butfor.paper.published import PAPER
from butfor.paper.subjects import Ready, Subject, open_fresh, open_published
from butfor.problem.problem import Budget
from butfor.runs import Run, read_results
from butfor.session import Explainer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from butfor.methods import Method
    from butfor.result.counterfactual import Counterfactual

__all__ = ["Ask", "Lab"]

# Graphs and models made anew; BA-Shapes takes longest.
SEEDS = {"tree-cycles": 5, "tree-grid": 5, "ba-shapes": 3}

# A quick look takes every tenth node.
QUICK = 10


@dataclass(frozen=True)
class Lab:
    """What is to be reproduced, and where.

    Attributes:
        folder: where results, models, tables and figures go.
        reference: the folder of the published graphs and weights; None where there is none.
        datasets: which of the paper's three.
        seeds: how many graphs and models are made anew for each; as many as `SEEDS` says unless given.
        quick: a tenth of the nodes and one seed.
        quiet: no progress bars.
    """

    folder: Path
    reference: Path | None = None
    datasets: tuple[str, ...] = tuple(PAPER)
    seeds: int | None = None
    quick: bool = False
    quiet: bool = False

    def published(self) -> list[Subject]:
        """The published graphs and models, where they are at hand."""
        return [Subject(name) for name in self.datasets] if self.reference else []

    def fresh(self, dataset: str) -> list[Subject]:
        """Graphs and models made by seed."""
        count = self.seeds or (1 if self.quick else SEEDS[dataset])
        return [Subject(dataset, seed) for seed in range(count)]

    def every(self) -> list[Subject]:
        """All subjects."""
        return [*self.published(), *(subject for name in self.datasets for subject in self.fresh(name))]

    def firsts(self) -> list[Subject]:
        """One subject of each dataset: the published one, or that of seed 0."""
        return self.published() or [self.fresh(name)[0] for name in self.datasets]

    def ready(self, subject: Subject) -> Ready:
        """The subject in memory; a model that is not there yet is trained and kept."""
        return _ready(self.folder, self.reference, subject)

    def models(self, subject: Subject) -> Path:
        """Where the model of a fresh subject is kept."""
        return self.folder / "models" / subject.source / subject.dataset

    def nodes(self, subject: Subject) -> list[int]:
        """The test nodes to explain."""
        return self.ready(subject).test_nodes[:: QUICK if self.quick else 1]

    def run(self, subject: Subject, method: Method) -> Run:
        """What all results of a method on a subject have in common."""
        return replace(_any_run(self, subject), method=repr(method))

    def path(self, subject: Subject, label: str) -> Path:
        """Where the results of a method are kept."""
        return self.folder / "results" / subject.source / subject.dataset / f"{label}.jsonl"

    def results(self, subject: Subject, label: str) -> list[Counterfactual]:
        """The results of a method on `nodes`, in their order.

        Raises:
            StoreError: their file is damaged, or some are missing.
        """
        path = self.path(subject, label)
        by_node = {result.target: result for result in read_results(path)}
        missing = [node for node in self.nodes(subject) if node not in by_node]
        if missing:
            raise StoreError(f"{path} has no result of node {missing[0]}: run the same command again")
        return [by_node[node] for node in self.nodes(subject)]

    def said(self, subjects: Sequence[Subject], nodes: bool = True) -> str:
        """Which subjects and, where they matter, nodes, in words."""
        seeds: dict[str, list[int]] = {}
        for subject in subjects:
            if subject.seed is not None:
                seeds.setdefault(subject.dataset, []).append(subject.seed)
        words = ["published graphs and weights"] if any(subject.seed is None for subject in subjects) else []
        for numbers in sorted({tuple(each) for each in seeds.values()}):
            names = [PAPER[name].title for name in seeds if tuple(seeds[name]) == numbers]
            span = f"seed {numbers[0]}" if len(numbers) == 1 else f"seeds {numbers[0]} to {numbers[-1]}"
            words.append(f"{span} ({', '.join(names)})")
        if nodes:
            words.append("every tenth test node" if self.quick else "all test nodes")
        return "; ".join(words)


@dataclass(frozen=True, eq=False)
class Ask:
    """Methods to run on all nodes of a subject, side by side: they may share what they compute.

    Attributes:
        subject: the subject.
        methods: by the label under which the results are kept.
        budget: for each node.
        seconds: roughly, for one node: what takes long is begun first.
    """

    subject: Subject
    methods: dict[str, Method]
    budget: Budget = Budget()  # noqa: RUF009 (frozen)
    seconds: float = 0.01


@cache
def _any_run(lab: Lab, subject: Subject) -> Run:
    ready = lab.ready(subject)
    return Run.of(Explainer.of(ready.model, ready.data))


@cache
def _ready(folder: Path, reference: Path | None, subject: Subject) -> Ready:
    if subject.seed is None:
        assert reference is not None
        return open_published(subject, reference)
    return open_fresh(subject, Lab(folder).models(subject))
