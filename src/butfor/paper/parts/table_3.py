"""Table 3: removing the edges that GNNExplainer, and PyG's other explainers, call most important."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from butfor.evaluation.tables import Table
from butfor.methods import RemoveSubgraph
from butfor.models import PaperGCN
from butfor.paper.explainers import explainers_for
from butfor.paper.lab import Ask
from butfor.paper.measured import HEADINGS_BESIDE, Measured, beside
from butfor.paper.parts.table_2 import asks as asks_of_table_2
from butfor.paper.sections import Section

if TYPE_CHECKING:
    from torch_geometric.explain import ExplainerAlgorithm

    from butfor.methods import Method
    from butfor.paper.lab import Lab
    from butfor.paper.subjects import Subject

__all__ = ["asks", "section"]

SIZES: tuple[int | Literal["ground-truth"], ...] = (1, 2, 3, 4, 5, "ground-truth")

# What one node takes, roughly, of those that take long.
SECONDS = {"GNNExp": 0.35, "Integrated gradients": 0.15}

# The rows of Table 2 that stand below, for comparison.
COMPARED = {"cf-gnn": "CF-GNN", "exact": "Exact"}


def asks(lab: Lab) -> list[Ask]:
    """Every explainer at every size on one subject of each dataset, and what it is compared with."""
    subjects = _subjects(lab)
    asked = [ask for ask in asks_of_table_2(lab) if ask.subject in subjects and set(ask.methods) <= set(COMPARED)]
    for subject in subjects:
        asked += [
            Ask(subject, methods, seconds=SECONDS.get(explainer, 0.03))
            for explainer, methods in _methods(lab, subject).items()
        ]
    return asked


def _subjects(lab: Lab) -> list[Subject]:
    """The published subjects, and those of the first seed."""
    return [*lab.published(), *(lab.fresh(name)[0] for name in lab.datasets)]


def _methods(lab: Lab, subject: Subject) -> dict[str, dict[str, Method]]:
    """By the name of the explainer: its methods, one for each size, by their label."""
    algorithms: dict[str, ExplainerAlgorithm | None] = {"GNNExp": None}
    if subject in lab.firsts():
        # All subjects have the paper's model: what suits one suits all, and none need be trained to know.
        algorithms |= explainers_for(PaperGCN(10, subject.paper.statistics.classes))
    return {
        name: {_label(name, size): RemoveSubgraph(algorithm, size=size) for size in SIZES}
        for name, algorithm in algorithms.items()
    }


def _label(name: str, size: int | str) -> str:
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower())
    return f"explainers/{plain}-{_short(size).lower()}"


def _short(size: int | str) -> str:
    return "GT" if size == "ground-truth" else str(size)


def section(lab: Lab) -> Section:
    """One table for the published subjects, one for fresh ones."""
    tables = []
    for name, subjects in (("published", lab.published()), ("fresh", [lab.fresh(each)[0] for each in lab.datasets])):
        if subjects:
            tables.append(_table(lab, name, subjects))
    text = (
        "An explainer of PyG ranks the edges of the neighbourhood, and the S highest are removed; GT is the number of "
        "edges in a motif. Every explainer ranks once for all S; attributions keep their sign, where they have one "
        "(Saliency does not), so that edges which speak against the predicted class come last. The paper's model has "
        "no attention, and one with attention cannot learn these datasets: all features are equal, and so is every "
        "weighted mean of them.",
    )
    return Section("table-3", "Table 3: explainers that rank edges", lab.said(_subjects(lab)), text, tuple(tables))


def _table(lab: Lab, name: str, subjects: list[Subject]) -> Table:
    rows: list[tuple[str, ...]] = []
    records = []
    for subject in subjects:
        titles = {
            label: f"{explainer} S={_short(size)}"
            for explainer, methods in _methods(lab, subject).items()
            for size, label in zip(SIZES, methods, strict=True)
        }
        for position, (label, title) in enumerate((titles | COMPARED).items()):
            one, paper = Measured.of(lab, subject, label), subject.paper_row(title)
            cells = beside(one.cells(), one.means, paper)
            rows.append((subject.paper.title if position == 0 else "", title, one.count, *cells))
            records.append({"title": title, **one.record(paper)})
    kind = "published graphs and weights" if name == "published" else "fresh graphs and models, seed 0"
    return Table(
        f"table-3-{name}",
        f"Table 3, {kind}: the top S edges of an explainer removed",
        ("dataset", "method", "found", *HEADINGS_BESIDE),
        tuple(rows),
        tuple(records),
        (
            "GNNExp is PyG's GNNExplainer (100 epochs, learning rate 0.01). Where a neighbourhood has fewer than S "
            "edges all of them go.",
        ),
        left=2,
    )
