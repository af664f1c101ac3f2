"""Figures 2 to 5, and a figure of how many nodes each method explains with how few edges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from butfor.evaluation.figures import Frontier, Histogram, frontier, size_histograms
from butfor.paper.compared_methods import TITLES, comparison_jobs
from butfor.paper.sections import Picture, Section

if TYPE_CHECKING:
    from butfor.paper.experiment import Experiment
    from butfor.paper.jobs import Job

__all__ = ["jobs", "section"]

# The number of each method's histogram in the paper; our own methods have none and come last.
NUMBERS = {"random": "2", "1hop": "3", "rm-1hop": "4", "cf-gnn": "5", "greedy": "ours-greedy", "exact": "ours-exact"}

# How far the axes reach. The paper gives the limits of BA-Shapes; on the trees all methods share one, for comparison.
LIMIT = 70.0
LIMITS_ON_BA_SHAPES = {"random": 1500.0, "1hop": 1500.0}


def jobs(experiment: Experiment) -> list[Job]:
    """All methods, on one benchmark of each dataset."""
    return comparison_jobs(experiment.one_per_dataset())


def section(experiment: Experiment) -> Section:
    """Draw the figures."""
    pictures = [*(_histograms(experiment, label) for label in NUMBERS), _frontier(experiment)]
    text = (
        "The share of counterfactuals of each size. The paper says how far its axes reach for BA-Shapes (1500, 1500, "
        "70 and 70); a panel says how many sizes lie beyond its axis.",
        "The last figure is not in the paper. Each curve shows the share of all test nodes that a method explains with "
        "at most that number of edges, so nodes without a counterfactual count too. No method can reach the grey area: "
        "`Exact` has proved that those nodes need more edges.",
    )
    settings = experiment.describe(experiment.one_per_dataset())
    return Section("figures", "Figures 2 to 5, and the frontier", settings, text, pictures=tuple(pictures))


def _histograms(experiment: Experiment, label: str) -> Picture:
    """The sizes of one method's counterfactuals, with one panel for each dataset."""
    panels = []
    for benchmark in experiment.one_per_dataset():
        results = experiment.results(benchmark, label)
        limit = LIMITS_ON_BA_SHAPES.get(label, LIMIT) if benchmark.dataset == "ba-shapes" else LIMIT
        sizes = [result.size for result in results if result.size is not None]
        panels.append(Histogram(benchmark.title, sizes, len(results), limit))
    number = NUMBERS[label]
    title = f"Explanation sizes of {TITLES[label]}"
    if number.isdigit():
        title = f"Figure {number}. {title}"
    return Picture.of(size_histograms(panels, title), experiment.folder / "figures", f"figure-{number}", f"{title}.")


def _frontier(experiment: Experiment) -> Picture:
    """How many nodes each method explains with at most a given number of edges."""
    panels = []
    for benchmark in experiment.one_per_dataset():
        sizes = {
            title: [result.size for result in experiment.results(benchmark, label) if result.size is not None]
            for label, title in TITLES.items()
        }
        exact = experiment.results(benchmark, "exact")
        panels.append(Frontier(benchmark.title, len(exact), sizes, [result.lower_bound for result in exact]))
    title = "Nodes explained with at most a given number of edges, and what no method can reach"
    return Picture.of(frontier(panels, title), experiment.folder / "figures", "figure-frontier", f"{title}.")
