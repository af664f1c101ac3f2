"""The differences between the published code and the paper, one at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from butfor.evaluation.tables import Table
from butfor.methods import CFGNN
from butfor.paper.formatting import blank_repeats
from butfor.paper.jobs import Job
from butfor.paper.method_metrics import HEADINGS, MethodMetrics
from butfor.paper.sections import Section

if TYPE_CHECKING:
    from butfor.methods import Method
    from butfor.paper.benchmark import Benchmark
    from butfor.paper.experiment import Experiment

__all__ = ["jobs", "section", "variants"]

# Each departure by name: what it is, and the setting of the published code that replaces the paper's.
DEPARTURES: dict[str, tuple[str, dict[str, Any]]] = {
    "distance": ("the distance term has no gradient", {"distance_gradient": False}),
    "degrees": ("degrees of σ(P̂), detached", {"degrees": "detached"}),
    "clip": ("gradient norm clipped at 2", {"clip": 2.0}),
    "first": ("the first counterfactual counts", {"keep": "first"}),
    "start": ("P̂ starts at 1 − 1e-4, as the code intends", {"start": 1 - 1e-4}),
}

# The code intends the last departure, but a mistake in it does what the paper says.
IN_EFFECT = ("distance", "degrees", "clip", "first")


def variants(benchmark: Benchmark) -> dict[str, Method]:
    """The paper's method with each departure added, and the code's method with each one undone, by label."""
    paper = CFGNN(momentum=benchmark.paper.momentum)
    code = CFGNN.published(momentum=benchmark.paper.momentum)
    methods: dict[str, Method] = {"departures/paper": paper}
    for name, (_, setting) in DEPARTURES.items():
        methods[f"departures/paper-with-{name}"] = replace(paper, **setting)
    methods["departures/code"] = code
    for name, (_, setting) in DEPARTURES.items():
        if name in IN_EFFECT:
            undone = {key: getattr(paper, key) for key in setting}
            methods[f"departures/code-without-{name}"] = replace(code, **undone)
        else:
            methods[f"departures/code-with-{name}"] = replace(code, **setting)
    return methods


def jobs(experiment: Experiment) -> list[Job]:
    """All variants, on one benchmark of each dataset."""
    return [
        Job(benchmark, {label: method}, seconds_per_node=benchmark.seconds_per_node)
        for benchmark in experiment.one_per_dataset()
        for label, method in variants(benchmark).items()
    ]


def section(experiment: Experiment) -> Section:
    """One table with a row for each variant, in groups by dataset."""
    rows, records = [], []
    for benchmark in experiment.one_per_dataset():
        for label in variants(benchmark):
            metrics = MethodMetrics.of(experiment, benchmark, label)
            rows.append((benchmark.title, _title(label), metrics.count, *metrics.cells()))
            records.append(metrics.record())
    table = Table(
        "departures",
        "CF-GNN as the paper writes it and as its code does it, each departure switched on and off",
        ("dataset", "", "found", *HEADINGS),
        blank_repeats(rows),
        tuple(records),
        (
            "The code intends to start P̂ at 1 − 1e-4 but starts it at 1, as the paper says; the row shows what would "
            "happen if it did as intended.",
        ),
        left=2,
    )
    text = (
        "The paper describes one algorithm and its authors' code runs another. They differ in five points; here each "
        "is switched on in the paper's algorithm, and off in the code's. docs/results/departures.md discusses the "
        "result.",
    )
    settings = experiment.describe(experiment.one_per_dataset())
    return Section("departures", "What the published code does differently", settings, text, (table,))


def _title(label: str) -> str:
    kind, _, rest = label.removeprefix("departures/").partition("-")
    base = {"paper": "as the paper writes it", "code": "as the code does it"}[kind]
    if not rest:
        return base
    switch, _, name = rest.partition("-")
    description, _ = DEPARTURES[name]
    return f"{'+' if switch == 'with' else '−'} {description}"
