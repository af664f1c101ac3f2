"""Running time: seconds per node of every method, against a dense version of Algorithm 1, on a single thread."""

from __future__ import annotations

import json
import platform
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import numpy as np
from tqdm import tqdm

from butfor.api import explain
from butfor.boundary.atomic import atomic_write
from butfor.evaluation.tables import Table
from butfor.methods import CFGNN, RemoveSubgraph
from butfor.models import PaperGCN
from butfor.models.threads import threads_for
from butfor.paper.compared_methods import TITLES as METHOD_TITLES
from butfor.paper.compared_methods import compared_methods
from butfor.paper.dense_cf_gnn import dense_cf_gnn
from butfor.paper.explainers import explainers_for, with_trained_explainer
from butfor.paper.formatting import blank_repeats, format_number
from butfor.paper.sections import Section
from butfor.result.assemble import versions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from butfor.evaluation.tables import Value
    from butfor.methods import Method
    from butfor.paper.benchmark import Benchmark
    from butfor.paper.experiment import Experiment
    from butfor.paper.jobs import Job

__all__ = ["jobs", "section"]

# Slow methods explain only a sample of the nodes. They take turns with the others in several rounds, because the speed
# of a machine changes over time.
ROUNDS, SAMPLE = 3, 24
QUICK_ROUNDS, QUICK_SAMPLE = 1, 3

DENSE = "dense"
EXPLAINERS = ("GNNExp", "PGExplainer", "Integrated gradients", "Saliency", "Input × gradient")
TITLES = {DENSE: "CF-GNN, dense", **METHOD_TITLES, **{name: f"{name}, any S" for name in EXPLAINERS}}


def jobs(experiment: Experiment) -> list[Job]:  # noqa: ARG001
    """None: times are measured while nothing else is running."""
    return []


def section(experiment: Experiment) -> Section:
    """Measure what has not been measured yet, and show it."""
    rows = []
    records: list[dict[str, Value]] = []
    for benchmark in experiment.one_per_dataset():
        seconds = _seconds_per_node(experiment, benchmark)
        for label, title in TITLES.items():
            speedup = seconds[DENSE] / seconds[label]
            milliseconds = format_number(1000 * seconds[label], 2 if seconds[label] < 0.1 else 0)
            rows.append((benchmark.title, title, milliseconds, format_number(speedup, 0 if speedup >= 10 else 1)))
            records.append(
                {
                    "dataset": benchmark.dataset,
                    "source": benchmark.source,
                    "method": label,
                    "seconds_per_node": seconds[label],
                    "ratio": speedup,
                }
            )
    table = Table(
        "time",
        "Milliseconds per node, and how many times as fast as the dense version of the paper's method",
        ("dataset", "method", "ms", "times as fast"),
        blank_repeats(rows),
        tuple(records),
        (
            "One process, one thread, nothing else running. The dense version is Algorithm 1 with N × N matrices and "
            "the choices of the published code, one node at a time. Like that code it always runs all of its 500 "
            "iterations; ours explains all nodes at once and drops each node as soon as its answer is final. The dense "
            f"version and the explainers are timed on {_rounds_and_sample(experiment)[1]} nodes, in turns with the "
            "other methods, which explain all nodes. `Exact` and `Greedy` have their default budget; PGExplainer's "
            "training is not counted.",
        ),
        left=2,
    )
    return Section("time", "Time", experiment.describe(experiment.one_per_dataset()), tables=(table,))


def _seconds_per_node(experiment: Experiment, benchmark: Benchmark) -> dict[str, float]:
    """Seconds per node by label; read from the experiment's folder if they were measured under the same conditions."""
    path = experiment.folder / "time" / benchmark.source / f"{benchmark.dataset}.json"
    run = experiment.load(benchmark).run(CFGNN.published())  # for the fingerprints of graph and model
    methods = {**compared_methods(benchmark), **_explainers(benchmark)}
    conditions = {
        "graph": run.graph_id,
        "model": run.model_id,
        "nodes": len(experiment.nodes(benchmark)),
        "rounds and sample": list(_rounds_and_sample(experiment)),
        "methods": {label: repr(method) for label, method in methods.items()},
        "machine": platform.platform(),
        **versions(),
    }
    with suppress(OSError, ValueError, KeyError, TypeError):  # the file is missing or damaged: measure again
        saved = json.loads(path.read_text(encoding="utf-8"))
        if saved["about"] == conditions:
            return {label: float(saved["seconds"][label]) for label in TITLES}
    seconds = _measure(experiment, benchmark)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(json.dumps({"about": conditions, "seconds": seconds}, indent=2).encode())
    return seconds


def _rounds_and_sample(experiment: Experiment) -> tuple[int, int]:
    """The number of rounds, and of nodes that slow methods explain in all rounds together."""
    return (QUICK_ROUNDS, QUICK_SAMPLE) if experiment.quick else (ROUNDS, SAMPLE)


def _measure(experiment: Experiment, benchmark: Benchmark) -> dict[str, float]:
    loaded = experiment.load(benchmark)
    model, data, classes = loaded.model, loaded.data, loaded.classes
    nodes = experiment.nodes(benchmark)
    rounds, size = _rounds_and_sample(experiment)
    sample = [nodes[i] for i in np.linspace(0, len(nodes) - 1, size).astype(int)]
    dense_settings = CFGNN.published(momentum=benchmark.paper.momentum)
    methods = compared_methods(benchmark)
    explainers = {
        title: with_trained_explainer(method, model, data) for title, method in _explainers(benchmark).items()
    }
    seconds = dict.fromkeys(TITLES, 0.0)

    @contextmanager
    def timed(label: str, explained: int) -> Iterator[None]:
        start = time.perf_counter()
        yield
        seconds[label] += (time.perf_counter() - start) / explained

    with threads_for(data.num_edges):
        for method in methods.values():
            explain(model, data, nodes[:2], method)  # compiles or loads the kernels
        # For tqdm, disable=None means: show the bar only on a terminal.
        bar = tqdm(range(rounds), f"timing {benchmark.title}", leave=False, disable=True if experiment.quiet else None)
        for turn in bar:
            some = sample[turn::rounds]
            for label, method in methods.items():
                with timed(label, len(nodes) * rounds):
                    explain(model, data, nodes, method)
            with timed(DENSE, size):
                for node in some:
                    dense_cf_gnn(model, data, node, int(classes[node]), dense_settings)
            for title, method in explainers.items():
                with timed(title, size):
                    explain(model, data, some, method)
    return seconds


def _explainers(benchmark: Benchmark) -> dict[str, Method]:
    algorithms = {"GNNExp": None, **explainers_for(PaperGCN(10, benchmark.paper.statistics.classes))}
    return {title: RemoveSubgraph(algorithms[title], size=1) for title in EXPLAINERS}
