"""Time: seconds per node of every method, against Algorithm 1 on dense matrices, in one process on one thread."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from tqdm import tqdm

from butfor.api import explain
from butfor.datasets.atomic import atomic_write
from butfor.evaluation.tables import Table
from butfor.explainer import versions
from butfor.methods import CFGNN, RemoveSubgraph
from butfor.paper.cells import number
from butfor.paper.dense import dense_cf_gnn
from butfor.paper.parts.table_2 import LABELS, methods
from butfor.paper.sections import Section
from butfor.threads import threads_for

if TYPE_CHECKING:
    from butfor.evaluation.tables import Value
    from butfor.methods import Method
    from butfor.paper.lab import Ask, Lab
    from butfor.paper.subjects import Subject

__all__ = ["asks", "section"]

# The slow ones explain a sample of the nodes, in turns with the others: a machine may be quicker at one time than at
# another.
ROUNDS, SAMPLE = 3, 24
QUICK_ROUNDS, QUICK_SAMPLE = 1, 3

DENSE, SUBGRAPH = "dense", "gnnexp"


def asks(lab: Lab) -> list[Ask]:  # noqa: ARG001
    """Nothing that others may do meanwhile: the machine must be idle."""
    return []


def section(lab: Lab) -> Section:
    """Measure what is not measured yet, and show it."""
    rows = []
    records: list[dict[str, Value]] = []
    for subject in lab.firsts():
        seconds = _measured(lab, subject)
        titles = {DENSE: "CF-GNN, dense", **LABELS, SUBGRAPH: "GNNExp, any S"}
        for position, (label, title) in enumerate(titles.items()):
            ratio = seconds[DENSE] / seconds[label]
            rows.append(
                (
                    subject.paper.title if position == 0 else "",
                    title,
                    number(1000 * seconds[label], 2 if seconds[label] < 0.1 else 0),
                    number(ratio, 0 if ratio >= 10 else 1),
                )
            )
            records.append(
                {
                    "dataset": subject.dataset,
                    "source": subject.source,
                    "method": label,
                    "seconds_per_node": seconds[label],
                    "ratio": ratio,
                }
            )
    table = Table(
        "time",
        "Milliseconds per node, and how many times as fast as the dense version of the paper's method",
        ("dataset", "method", "ms", "times as fast"),
        tuple(rows),
        tuple(records),
        (
            "One process, one thread, nothing else at work. The dense version is Algorithm 1 with N × N matrices, one "
            f"node at a time, K = 500, with the choices of the published code; it and GNNExplainer explain "
            f"{_sample(lab)[1]} nodes, in turns with the others, which explain all. `Exact` "
            "and `Greedy` have their default budget.",
        ),
        left=2,
    )
    return Section("time", "Time", lab.said(lab.firsts()), tables=(table,))


def _measured(lab: Lab, subject: Subject) -> dict[str, float]:
    """Seconds per node, from the lab's folder where they were measured with the same settings."""
    path = lab.folder / "time" / subject.source / f"{subject.dataset}.json"
    about = {"nodes": len(lab.nodes(subject)), "rounds and sample": list(_sample(lab)), **versions()}
    if path.exists():
        try:
            kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            kept = {}  # damaged: measured anew
        if kept.get("about") == about:
            seconds: dict[str, float] = kept["seconds"]
            return seconds
    seconds = _measure(lab, subject)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(json.dumps({"about": about, "seconds": seconds}, indent=2).encode())
    return seconds


def _sample(lab: Lab) -> tuple[int, int]:
    """How many rounds, and how many nodes for the slow ones in all of them."""
    return (QUICK_ROUNDS, QUICK_SAMPLE) if lab.quick else (ROUNDS, SAMPLE)


def _measure(lab: Lab, subject: Subject) -> dict[str, float]:
    ready = lab.ready(subject)
    nodes = lab.nodes(subject)
    turns, count = _sample(lab)
    sample = [nodes[i] for i in np.linspace(0, len(nodes) - 1, count).astype(int)]
    reference = CFGNN.published(momentum=subject.paper.momentum)
    timed: dict[str, Method] = methods(subject)
    spent = dict.fromkeys([DENSE, *timed, SUBGRAPH], 0.0)
    with threads_for(ready.data.num_edges):
        for method in timed.values():
            explain(ready.model, ready.data, nodes[:2], method)  # loads the kernels
        # tqdm's None means: only where the output is a terminal.
        rounds = tqdm(range(turns), f"timing {subject.paper.title}", leave=False, disable=True if lab.quiet else None)
        for turn in rounds:
            some = sample[turn::turns]
            for label, method in timed.items():
                start = time.perf_counter()
                explain(ready.model, ready.data, nodes, method)
                spent[label] += (time.perf_counter() - start) / (len(nodes) * turns)
            start = time.perf_counter()
            for node in some:
                dense_cf_gnn(ready.model, ready.data, node, int(ready.classes[node]), reference)
            middle = time.perf_counter()
            explain(ready.model, ready.data, some, RemoveSubgraph(size=1))
            spent[DENSE] += (middle - start) / count
            spent[SUBGRAPH] += (time.perf_counter() - middle) / count
    return spent
