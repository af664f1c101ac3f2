"""Significance: do the methods differ, over all their answers and on the nodes that both explain?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from butfor.evaluation.metrics import share_kept
from butfor.evaluation.significance import ALPHA, paired_difference, unpaired_difference
from butfor.evaluation.tables import Table
from butfor.paper.compared_methods import TITLES, comparison_jobs
from butfor.paper.formatting import (
    MISSING,
    blank_repeats,
    format_difference,
    format_number,
    format_p_value,
    none_if_nan,
)
from butfor.paper.published_numbers import INSIGNIFICANT, PAPER
from butfor.paper.sections import Section

if TYPE_CHECKING:
    from butfor.evaluation.significance import Difference
    from butfor.evaluation.tables import Value
    from butfor.paper.benchmark import Benchmark
    from butfor.paper.experiment import Experiment
    from butfor.paper.jobs import Job
    from butfor.result.counterfactual import Counterfactual

    # By benchmark and label, then by metric, then by node.
    ValuesByNode = dict[tuple[Benchmark, str], dict[str, dict[int, float]]]

__all__ = ["jobs", "section"]

BASELINES = ("random", "1hop", "rm-1hop")

# The pairs of methods that are tested against each other.
PAIRS = (
    *(("cf-gnn", other) for other in BASELINES),
    *((ours, other) for ours in ("greedy", "exact") for other in (*BASELINES, "cf-gnn")),
    ("exact", "greedy"),
)

METRICS = ("size", "sparsity")


def jobs(experiment: Experiment) -> list[Job]:
    """All methods, on one benchmark of each dataset."""
    return comparison_jobs(experiment.one_per_dataset())


def section(experiment: Experiment) -> Section:
    """One table of tests, and one of sizes on common nodes."""
    values: ValuesByNode = {
        (benchmark, label): {metric: _values(experiment.results(benchmark, label), metric) for metric in METRICS}
        for benchmark in experiment.one_per_dataset()
        for label in TITLES
    }
    tests = _tests(experiment, values)
    text = (
        "Means over different nodes mislead: a method that explains only easy nodes looks good. Hence the paired test, "
        "and the second table.",
        *_compare_with_appendix(experiment, tests),
    )
    settings = experiment.describe(experiment.one_per_dataset())
    return Section("significance", "Significance", settings, text, (tests, _common_nodes(experiment, values)))


def _values(results: list[Counterfactual], metric: str) -> dict[int, float]:
    """The metric of every node that has a counterfactual."""
    found = {int(result.target): result for result in results if result.size is not None}  # type: ignore[arg-type]
    if metric == "size":
        return {node: float(len(result.removed_edges)) for node, result in found.items()}
    return {node: share_kept(result) for node, result in found.items()}


def _tests(experiment: Experiment, values: ValuesByNode) -> Table:
    rows = []
    records: list[dict[str, Value]] = []
    for benchmark in experiment.one_per_dataset():
        for first, second in PAIRS:
            cells: list[str] = []
            for metric in METRICS:
                ours, theirs = values[benchmark, first][metric], values[benchmark, second][metric]
                unpaired = unpaired_difference([*ours.values()], [*theirs.values()])
                paired = paired_difference(ours, theirs)
                cells += [*_cells(unpaired, metric), *_cells(paired, metric)]
                records.append(_record(benchmark, first, second, metric, unpaired, paired))
            common = values[benchmark, first]["size"].keys() & values[benchmark, second]["size"].keys()
            title = f"{TITLES[first]} against {TITLES[second]}"
            rows.append((benchmark.title, title, *cells, str(len(common)), _in_appendix(benchmark, first, second)))
    return Table(
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
        blank_repeats(rows),
        tuple(records),
        (
            "A difference is the first method's mean minus the second's: over all nodes that each explains (Welch's "
            "test), and over the nodes that both explain (paired test), whose number is in the column “nodes”. An "
            f"asterisk marks p < {ALPHA}. The column “paper” is what the appendix says about size and sparsity: "
            "significant or not.",
        ),
        left=2,
    )


def _cells(difference: Difference, metric: str) -> tuple[str, str]:
    digits = 2 if metric == "size" else 3
    asterisk = "*" if difference.significant else ""
    return format_difference(difference.mean, 0.0, digits), format_p_value(difference.p) + asterisk


def _record(
    benchmark: Benchmark, first: str, second: str, metric: str, unpaired: Difference, paired: Difference
) -> dict[str, Value]:
    return {
        "dataset": benchmark.dataset,
        "source": benchmark.source,
        "first": first,
        "second": second,
        "metric": metric,
        "difference": none_if_nan(unpaired.mean),
        "p": none_if_nan(unpaired.p),
        "first_nodes": unpaired.counts[0],
        "second_nodes": unpaired.counts[1],
        "paired_difference": none_if_nan(paired.mean),
        "paired_p": none_if_nan(paired.p),
        "paired_nodes": paired.counts[0],
    }


def _in_appendix(benchmark: Benchmark, first: str, second: str) -> str:
    if first != "cf-gnn":
        return MISSING
    return "not" if (benchmark.dataset, second) in INSIGNIFICANT else "significant"


def _compare_with_appendix(experiment: Experiment, tests: Table) -> list[str]:
    """A sentence if other pairs are insignificant here than in the paper; a quick run has too few nodes to tell."""
    if experiment.quick:
        return []
    insignificant = {
        (str(record["dataset"]), str(record["second"]))
        for record in tests.records
        if record["first"] == "cf-gnn" and record["metric"] == "size" and not _is_significant(record["p"])
    }
    if insignificant == {pair for pair in INSIGNIFICANT if pair[0] in experiment.datasets}:
        return []
    pairs = [f"{TITLES[label]} on {PAPER[dataset].title}" for dataset, label in sorted(insignificant)]
    return [
        "The appendix says that CF-GNN differs from every baseline except RM-1HOP on Tree-Grid. According to the test "
        f"on sizes here, the baselines that it does not differ from are: {' and '.join(pairs) or 'none'}."
    ]


def _is_significant(p: Value) -> bool:
    return p is not None and float(p) < ALPHA


def _common_nodes(experiment: Experiment, values: ValuesByNode) -> Table:
    """The mean size of every method on the nodes that all of them explain."""
    groups = {
        "all methods": tuple(TITLES),
        "all but “as written”": tuple(label for label in TITLES if label != "cf-gnn-paper"),
        "CF-GNN and ours": ("cf-gnn", "greedy", "exact"),
    }
    rows = []
    records: list[dict[str, Value]] = []
    for benchmark in experiment.one_per_dataset():
        for group, labels in groups.items():
            sizes = {label: values[benchmark, label]["size"] for label in labels}
            common = sorted(set.intersection(*(set(each) for each in sizes.values())))
            means = {
                label: float(np.mean([each[node] for node in common])) if common else math.nan
                for label, each in sizes.items()
            }
            cells = [format_number(means.get(label)) for label in TITLES]
            rows.append((benchmark.title, group, str(len(common)), *cells))
            record: dict[str, Value] = {
                "dataset": benchmark.dataset,
                "source": benchmark.source,
                "solved_by": group,
                "nodes": len(common),
            }
            records.append(record | {f"size_{label}": none_if_nan(mean) for label, mean in means.items()})
    return Table(
        "significance-common",
        "Mean size on the nodes that all compared methods explain",
        ("dataset", "explained by", "nodes", *TITLES.values()),
        blank_repeats(rows),
        tuple(records),
        left=2,
    )
