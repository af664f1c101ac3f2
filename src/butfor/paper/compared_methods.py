"""The methods that the reproduction compares: the paper's, its baselines, and ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from butfor.methods import CFGNN, Exact, Greedy, KeepEgo, RandomPerturbation, RemoveEgo
from butfor.paper.jobs import Job
from butfor.problem.budget import Budget

if TYPE_CHECKING:
    from collections.abc import Iterable

    from butfor.methods import Method
    from butfor.paper.benchmark import Benchmark

__all__ = ["TITLES", "compared_methods", "comparison_jobs"]

# The titles of the methods in the tables, by the label under which their results are saved.
TITLES = {
    "random": "RANDOM",
    "1hop": "1HOP",
    "rm-1hop": "RM-1HOP",
    "cf-gnn": "CF-GNN",
    "cf-gnn-paper": "CF-GNN, as written",
    "greedy": "Greedy",
    "exact": "Exact",
}

# The budget of Exact: it proves more than eight of ten answers smallest on BA-Shapes. The trees need less for all.
EXACT_EVALUATIONS = 30_000


def compared_methods(benchmark: Benchmark) -> dict[str, Method]:
    """The methods with their settings for this benchmark, by label."""
    momentum = benchmark.paper.momentum
    return {
        "random": RandomPerturbation(),
        "1hop": KeepEgo(),
        "rm-1hop": RemoveEgo(),
        "cf-gnn": CFGNN.published(momentum=momentum),
        "cf-gnn-paper": CFGNN(momentum=momentum),
        "greedy": Greedy(),
        # There are as many processes as cores already. The answer does not depend on the number of threads.
        "exact": Exact(threads=1),
    }


def comparison_jobs(benchmarks: Iterable[Benchmark]) -> list[Job]:
    """Jobs that run every method on every one of these benchmarks."""
    jobs = []
    for benchmark in benchmarks:
        for label, method in compared_methods(benchmark).items():
            seconds, budget = benchmark.seconds_per_node, Budget()
            if label == "exact":
                seconds, budget = 2 * seconds, Budget(EXACT_EVALUATIONS)
            jobs.append(Job(benchmark, {label: method}, budget, seconds))
    return jobs
