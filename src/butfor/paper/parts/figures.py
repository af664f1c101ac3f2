"""Figures 2 to 5, and the frontier: how many nodes can be explained with how few edges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from butfor.evaluation.figures import Frontier, Histogram, frontier, size_histograms
from butfor.paper.parts.table_2 import LABELS
from butfor.paper.parts.table_2 import asks_of_firsts as asks
from butfor.paper.sections import Picture, Section

if TYPE_CHECKING:
    from butfor.paper.lab import Lab

__all__ = ["asks", "section"]

# The paper's number of each histogram; those of ours come after its last.
NUMBERS = {"random": "2", "1hop": "3", "rm-1hop": "4", "cf-gnn": "5", "greedy": "ours-greedy", "exact": "ours-exact"}

# The paper's axes: it names those of BA-Shapes. The trees have one for all methods, so that these can be compared.
TREES = 70.0
BA_SHAPES = {"random": 1500.0, "1hop": 1500.0}


def section(lab: Lab) -> Section:
    """Draw them."""
    folder = lab.folder / "figures"
    pictures = []
    for label, name in NUMBERS.items():
        panels = []
        for subject in lab.firsts():
            results = lab.results(subject, label)
            limit = BA_SHAPES.get(label, TREES) if subject.dataset == "ba-shapes" else TREES
            sizes = [result.size for result in results if result.size is not None]
            panels.append(Histogram(subject.paper.title, sizes, len(results), limit))
        numbered = f"Figure {name}. " if name.isdigit() else ""
        words = f"{numbered}Explanation sizes of {LABELS[label]}"
        pictures.append(Picture.of(size_histograms(panels, words), folder, f"figure-{name}", f"{words}."))
    pictures.append(_frontier(lab))
    text = (
        "The share of counterfactuals of each size. The paper says how far its axes go for BA-Shapes (1500, 1500, 70 "
        "and 70); sizes beyond an axis are counted in the panel.",
        "The last figure is not in the paper. A point on a curve says which share of all test nodes a method explains "
        "with so many edges or fewer, so nodes without a counterfactual count too. No method can reach the grey area: "
        "`Exact` has proved that those nodes need more edges.",
    )
    return Section(
        "figures", "Figures 2 to 5, and the frontier", lab.said(lab.firsts()), text, pictures=tuple(pictures)
    )


def _frontier(lab: Lab) -> Picture:
    panels = []
    for subject in lab.firsts():
        sizes = {
            title: [result.size for result in lab.results(subject, label) if result.size is not None]
            for label, title in LABELS.items()
        }
        proved = lab.results(subject, "exact")
        panels.append(Frontier(subject.paper.title, len(proved), sizes, [result.lower_bound for result in proved]))
    words = "Nodes explained with at most so many edges, and what no method can reach"
    return Picture.of(frontier(panels, words), lab.folder / "figures", "figure-frontier", f"{words}.")
