"""What the published code does differently from the paper, one difference at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from butfor.evaluation.tables import Table
from butfor.methods import CFGNN
from butfor.paper.lab import Ask
from butfor.paper.measured import HEADINGS, Measured
from butfor.paper.sections import Section

if TYPE_CHECKING:
    from butfor.methods import Method
    from butfor.paper.lab import Lab
    from butfor.paper.subjects import Subject

__all__ = ["asks", "methods", "section"]

# Each departure: its name, what it is, and the setting that the code has (or means to have) in place of the paper's.
DEPARTURES: dict[str, tuple[str, dict[str, Any]]] = {
    "distance": ("the distance term has no gradient", {"distance_gradient": False}),
    "degrees": ("degrees of σ(P̂), detached", {"degrees": "detached"}),
    "clip": ("gradient norm clipped at 2", {"clip": 2.0}),
    "first": ("the first counterfactual counts", {"keep": "first"}),
    "start": ("P̂ starts at 1 − 1e-4, as the code means", {"start": 1 - 1e-4}),
}

# The last one is what the code means to do; what it does is what the paper says.
MADE = ("distance", "degrees", "clip", "first")


def methods(subject: Subject) -> dict[str, Method]:
    """The paper's method with each departure alone, and the code's without each."""
    paper = CFGNN(momentum=subject.paper.momentum)
    code = CFGNN.published(momentum=subject.paper.momentum)
    made: dict[str, Method] = {"departures/paper": paper}
    for name, (_, setting) in DEPARTURES.items():
        made[f"departures/paper-with-{name}"] = replace(paper, **setting)
    made["departures/code"] = code
    for name, (_, setting) in DEPARTURES.items():
        undone = {key: getattr(paper, key) for key in setting} if name in MADE else setting
        made[f"departures/code-{'without' if name in MADE else 'with'}-{name}"] = replace(code, **undone)
    return made


def asks(lab: Lab) -> list[Ask]:
    """All of them, on one subject of each dataset."""
    return [
        Ask(subject, {label: method}, seconds=0.05 if subject.dataset == "ba-shapes" else 0.01)
        for subject in lab.firsts()
        for label, method in methods(subject).items()
    ]


def section(lab: Lab) -> Section:
    """One table: a row for each combination, a group for each dataset."""
    rows, records = [], []
    for subject in lab.firsts():
        for position, label in enumerate(methods(subject)):
            one = Measured.of(lab, subject, label)
            first = subject.paper.title if position == 0 else ""
            rows.append((first, _title(label), one.count, *one.cells()))
            records.append(one.record())
    table = Table(
        "departures",
        "CF-GNN as the paper writes it and as its code does it, each departure switched on and off",
        ("dataset", "", "found", *HEADINGS),
        tuple(rows),
        tuple(records),
        (
            "The code means to start P̂ at 1 − 1e-4 but starts it at 1, as the paper says; the row shows what it would "
            "do if it did.",
        ),
        left=2,
    )
    text = (
        "The paper describes one algorithm and its authors' code runs another. They differ in five points; here each "
        "is switched on in the paper's, and off in the code's. docs/departures.md says what to make of it.",
    )
    return Section("departures", "What the published code does differently", lab.said(lab.firsts()), text, (table,))


def _title(label: str) -> str:
    kind, _, rest = label.removeprefix("departures/").partition("-")
    base = {"paper": "as the paper writes it", "code": "as the code does it"}[kind]
    if not rest:
        return base
    switch, _, name = rest.partition("-")
    words, _ = DEPARTURES[name]
    return f"{'+' if switch == 'with' else '−'} {words}"
