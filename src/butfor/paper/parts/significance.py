"""Significance: do the methods differ, over all their answers and on the nodes that both solve?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from butfor.evaluation.metrics import share_kept
from butfor.evaluation.significance import ALPHA, paired_difference, unpaired_difference
from butfor.evaluation.tables import Table
from butfor.paper.cells import NOTHING, number, p_value
from butfor.paper.cells import difference as signed
from butfor.paper.measured import known
from butfor.paper.parts.table_2 import LABELS
from butfor.paper.parts.table_2 import asks_of_firsts as asks
from butfor.paper.published import INSIGNIFICANT, PAPER
from butfor.paper.sections import Section

if TYPE_CHECKING:
    from butfor.evaluation.significance import Difference
    from butfor.evaluation.tables import Value
    from butfor.paper.lab import Lab
    from butfor.paper.subjects import Subject
    from butfor.result.counterfactual import Counterfactual

__all__ = ["asks", "section"]

BASELINES = ("random", "1hop", "rm-1hop")

# Who is tested against whom.
PAIRS = (
    *(("cf-gnn", other) for other in BASELINES),
    *((ours, other) for ours in ("greedy", "exact") for other in (*BASELINES, "cf-gnn")),
    ("exact", "greedy"),
)

METRICS = ("size", "sparsity")


def section(lab: Lab) -> Section:
    """One table of tests, and one of sizes on common nodes."""
    values = {
        (subject, label): {metric: _values(lab.results(subject, label), metric) for metric in METRICS}
        for subject in lab.firsts()
        for label in LABELS
    }
    rows = []
    records: list[dict[str, Value]] = []
    for subject in lab.firsts():
        for position, (ours, other) in enumerate(PAIRS):
            cells: list[str] = []
            for metric in METRICS:
                first, second = values[subject, ours][metric], values[subject, other][metric]
                every = unpaired_difference([*first.values()], [*second.values()])
                both = paired_difference(first, second)
                cells += [*_told(every, metric), *_told(both, metric)]
                records.append(_record(subject, ours, other, metric, every, both))
            common = len(values[subject, ours]["size"].keys() & values[subject, other]["size"].keys())
            cells.append(str(common))
            title = f"{LABELS[ours]} against {LABELS[other]}"
            rows.append((subject.paper.title if position == 0 else "", title, *cells, _paper(subject, ours, other)))
    tests = Table(
        "significance",
        f"Differences in size and sparsity, and p of two-sided t-tests (α = {ALPHA})",
        (
            "dataset",
            "",
            *("size", "p", "size, both", "p, both"),
            *("spars.", "p", "spars., both", "p, both"),
            "nodes",
            "paper",
        ),
        tuple(rows),
        tuple(records),
        (
            "A difference is the first method's mean less the second's: over all that each solves (Welch's test), "
            "and on the nodes that both solve (paired test), of which “nodes” is the number. An asterisk marks p < "
            f"{ALPHA}. “paper” is what its appendix says of size and sparsity: significant or not.",
        ),
        left=2,
    )
    text = (
        "Means over different nodes mislead: a method that solves only easy nodes looks good. Hence the paired test, "
        "and the second table.",
        *_about_the_exception(lab, records),
    )
    return Section("significance", "Significance", lab.said(lab.firsts()), text, (tests, _common(lab, values)))


def _values(results: list[Counterfactual], metric: str) -> dict[int, float]:
    """By node, where there is a counterfactual."""
    found = {int(result.target): result for result in results if result.size is not None}  # type: ignore[arg-type]
    if metric == "size":
        return {node: float(len(result.removed_edges)) for node, result in found.items()}
    return {node: share_kept(result) for node, result in found.items()}


def _told(difference: Difference, metric: str) -> tuple[str, str]:
    digits = 2 if metric == "size" else 3
    return signed(difference.mean, 0.0, digits), p_value(difference.p) + ("*" if difference.significant else "")


def _record(
    subject: Subject, ours: str, other: str, metric: str, every: Difference, both: Difference
) -> dict[str, Value]:
    return {
        "dataset": subject.dataset,
        "source": subject.source,
        "first": ours,
        "second": other,
        "metric": metric,
        "difference": known(every.mean),
        "p": known(every.p),
        "first_nodes": every.counts[0],
        "second_nodes": every.counts[1],
        "paired_difference": known(both.mean),
        "paired_p": known(both.p),
        "paired_nodes": both.counts[0],
    }


def _paper(subject: Subject, ours: str, other: str) -> str:
    if ours != "cf-gnn":
        return NOTHING
    return "not" if (subject.dataset, other) in INSIGNIFICANT else "significant"


def _is_small(p: Value) -> bool:
    return p is not None and float(p) < ALPHA


def _about_the_exception(lab: Lab, records: list[dict[str, Value]]) -> list[str]:
    """Whether the one pair that the paper calls not significant is the one that we find, of all nodes."""
    if lab.quick:
        return []
    ours = {
        (str(record["dataset"]), str(record["second"]))
        for record in records
        if record["first"] == "cf-gnn" and record["metric"] == "size" and not _is_small(record["p"])
    }
    if ours == {pair for pair in INSIGNIFICANT if pair[0] in lab.datasets}:
        return []
    told = " and ".join(f"{LABELS[label]} on {PAPER[dataset].title}" for dataset, label in sorted(ours)) or "none"
    return [
        "The appendix says that CF-GNN differs from every baseline but RM-1HOP on Tree-Grid. By the test on sizes "
        f"here, the baselines that it does not differ from are: {told}."
    ]


def _common(lab: Lab, values: dict[tuple[Subject, str], dict[str, dict[int, float]]]) -> Table:
    """Every method's size on nodes that all solve."""
    groups = {
        "all methods": tuple(LABELS),
        "all but “as written”": tuple(label for label in LABELS if label != "cf-gnn-paper"),
        "CF-GNN and ours": ("cf-gnn", "greedy", "exact"),
    }
    rows = []
    records: list[dict[str, Value]] = []
    for subject in lab.firsts():
        for position, (group, labels) in enumerate(groups.items()):
            solved = [values[subject, label]["size"] for label in labels]
            common = sorted(set.intersection(*(set(each) for each in solved)))
            sizes = {
                label: float(np.mean([values[subject, label]["size"][node] for node in common])) if common else math.nan
                for label in labels
            }
            cells = [number(sizes.get(label)) for label in LABELS]
            rows.append((subject.paper.title if position == 0 else "", group, str(len(common)), *cells))
            told: dict[str, Value] = {f"size_{label}": known(size) for label, size in sizes.items()}
            records.append(
                {"dataset": subject.dataset, "source": subject.source, "solved_by": group, "nodes": len(common), **told}
            )
    return Table(
        "significance-common",
        "Mean size on the nodes that all compared methods solve",
        ("dataset", "solved by", "nodes", *LABELS.values()),
        tuple(rows),
        tuple(records),
        left=2,
    )
