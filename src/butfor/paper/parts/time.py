"""Time: seconds per node of every method, against Algorithm 1 on dense matrices, in one process on one thread."""

from __future__ import annotations

import json
import platform
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
from tqdm import tqdm

from butfor.api import explain
from butfor.evaluation.tables import Table
from butfor.files.atomic import atomic_write
from butfor.methods import CFGNN, RemoveSubgraph
from butfor.models import PaperGCN
from butfor.models.threads import threads_for
from butfor.paper.cells import number
from butfor.paper.dense import dense_cf_gnn
from butfor.paper.explainers import explainers_for, trained
from butfor.paper.parts.table_2 import LABELS, methods
from butfor.paper.sections import Section
from butfor.session import versions

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

DENSE = "dense"
EXPLAINERS = ("GNNExp", "PGExplainer", "Integrated gradients", "Saliency", "Input × gradient")
TITLES = {DENSE: "CF-GNN, dense", **LABELS, **{name: f"{name}, any S" for name in EXPLAINERS}}


def asks(lab: Lab) -> list[Ask]:  # noqa: ARG001
    """Nothing that others may do meanwhile: the machine must be idle."""
    return []


def section(lab: Lab) -> Section:
    """Measure what is not measured yet, and show it."""
    rows = []
    records: list[dict[str, Value]] = []
    for subject in lab.firsts():
        seconds = _measured(lab, subject)
        for position, (label, title) in enumerate(TITLES.items()):
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
            "One process, one thread, nothing else at work. The dense version is Algorithm 1 with N × N matrices and "
            "the choices of the published code, one node at a time; like that code it always goes through all of its "
            "500 iterations, where ours explains all nodes at once and lets each leave when its answer is final. It "
            f"and the explainers are timed on {_sample(lab)[1]} nodes, in turns with the others, which explain all. "
            "`Exact` and `Greedy` have their default budget; PGExplainer's training is not counted.",
        ),
        left=2,
    )
    return Section("time", "Time", lab.said(lab.firsts()), tables=(table,))


def _measured(lab: Lab, subject: Subject) -> dict[str, float]:
    """Seconds per node, from the lab's folder where they were measured with the same settings."""
    path = lab.folder / "time" / subject.source / f"{subject.dataset}.json"
    run = lab.run(subject, CFGNN.published())  # for the fingerprints of graph and model
    about = {
        "graph": run.graph_id,
        "model": run.model_id,
        "nodes": len(lab.nodes(subject)),
        "rounds and sample": list(_sample(lab)),
        "methods": {label: repr(method) for label, method in _timed(subject).items()},
        "machine": platform.platform(),
        **versions(),
    }
    with suppress(OSError, ValueError, KeyError, TypeError):  # not there, or damaged: measured anew
        kept = json.loads(path.read_text(encoding="utf-8"))
        if kept["about"] == about:
            return {label: float(kept["seconds"][label]) for label in TITLES}
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
    explainers = {name: trained(method, ready.model, ready.data) for name, method in _explainers(subject).items()}
    timed = methods(subject)
    spent = dict.fromkeys(TITLES, 0.0)
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
            spent[DENSE] += (time.perf_counter() - start) / count
            for name, method in explainers.items():
                start = time.perf_counter()
                explain(ready.model, ready.data, some, method)
                spent[name] += (time.perf_counter() - start) / count
    return spent


def _timed(subject: Subject) -> dict[str, Method]:
    return {**methods(subject), **_explainers(subject)}


def _explainers(subject: Subject) -> dict[str, Method]:
    algorithms = {"GNNExp": None, **explainers_for(PaperGCN(10, subject.paper.statistics.classes))}
    return {name: RemoveSubgraph(algorithms[name], size=1) for name in EXPLAINERS}
