"""How many answers `Exact` proves, for how many kinds of GNNs, in how much time: one thread, CPU seconds.

    python -m benchmarks.proofs                                # every table, in an hour or two
    python -m benchmarks.proofs --parts cora models --nodes 10 # some of them, on fewer nodes
    python -m benchmarks.proofs --parts cora models peers --write

- **paper**: the published GCN on the published graphs of ../shared/data/reference (without these, ones made from seed
  0). The gap of a node is (size - lower bound) / size: 0 where something is proved, 1 where nothing was found.
- **cora**: the usual GCN on Cora, 200 test nodes, at most 0.6 s each.
- **trees**: sums over neighbours (GIN, GraphConv), three layers, 20 wide, with default settings.
- **models**: other models on Cora, two layers, 64 wide, 100 test nodes, at most 1 s each.
- **peers**: models of the kind that RobLight verifies, and GCN and GAT of the same size; 30 test nodes, at most 10 s
  each. The search alone begins when the problem is built; the other column is the whole call of `explain`. RobLight's
  figures are of an earlier run on models of the same kind, not on these weights. It ends with its proof; `Exact` goes
  on to the most decisive of the smallest sets, if it may take as long as it likes within the limit, as here.
- **certificates**: proofs that were written down, and whether the checker confirms them (`benchmarks.certificates`).

An answer is *proved* if it is optimal, or if it is proved that there is none. Limits in seconds are wall time, so a
busy machine proves less: compare rows whose share of wall time is alike. Models are trained briefly, from seed 0.
``--write`` draws docs/images/proofs.png from those of cora, models and peers that are run.
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch_geometric.nn import GAT, GCN, SAGEConv

import butfor
from benchmarks.certificates import certificates
from benchmarks.cf_gnn import REFERENCE, load
from benchmarks.engine import MODELS, Stack
from benchmarks.exact import CORA, cora_model
from benchmarks.proof_tables import (
    COUNTS,
    EXACT,
    STATUSES,
    TIMES,
    Asked,
    Clock,
    counts,
    gap,
    head,
    is_proved,
    row,
    trained,
)
from butfor.warm_up import KINDS, compile_kernels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from benchmarks.proof_tables import Results

    # The results of each model, by the title of its part.
    Bars = dict[str, dict[str, Results]]

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "images" / "proofs.png"

# What RobLight proves of 30 nodes, and its median in milliseconds, for a SAGE-like model of so many layers.
ROBLIGHT = {
    "SAGE sum, 2 layers": (29, 0.3), "SAGE sum, 3 layers": (27, 5.5),
    "SAGE mean, 2 layers": (30, 0.5), "SAGE mean, 3 layers": (27, 5.1),
    "SAGE max, 2 layers": (29, 2.0), "SAGE max, 3 layers": (24, 18.0),
}  # fmt: skip


def paper(count: int | None) -> None:
    """The paper's GCN."""
    whose = "published" if REFERENCE.is_dir() else "made from seed 0"
    head(
        f"The paper's GCN, graphs and weights {whose}",
        *("graph", "evaluations a node", "test accuracy", *COUNTS, "mean gap", TIMES),
    )
    long = butfor.Budget(300_000)
    for name, budgets in (
        ("tree_cycles", [butfor.Budget()]),
        ("tree_grid", [butfor.Budget()]),
        ("ba_shapes", [butfor.Budget(), long]),
    ):
        asked = Asked.of(*load(name, None), count)
        for budget in budgets:
            results, seconds = asked.explained(budget)
            row(
                *(name, f"{budget.evaluations:,}", f"{asked.accuracy:.3f}", *counts(results)),
                *(f"{np.mean(list(map(gap, results))):.3f}", seconds),
            )


def cora(count: int | None) -> Bars:
    """The usual GCN on Cora."""
    asked = Asked.of(*cora_model(), count or 200)
    title = f"Cora, {len(asked.nodes)} test nodes, at most 0.6 s a node"
    head(title, "model", "test accuracy", *COUNTS, TIMES)
    results, seconds = asked.explained(butfor.Budget(None, 0.6))
    row("GCN, 2 layers, 16 wide", f"{asked.accuracy:.3f}", *counts(results), seconds)
    return {title: {"GCN, 16 wide": results}}


def trees(count: int | None) -> None:
    """Sums on both kinds of trees."""
    head(
        "Trees, three layers, 20 wide, default settings",
        *("model", "graph", "test accuracy", "nodes", *COUNTS, TIMES),
    )
    for name in ("GIN", "GraphConv"):
        for graph in ("tree_cycles", "tree_grid"):
            data = getattr(butfor.datasets, graph)(seed=0)
            asked = Asked.of(trained(MODELS[name], data, 20, 3, epochs=300), data, count)
            results, seconds = asked.explained(butfor.Budget())
            row(name, graph, f"{asked.accuracy:.3f}", len(results), *counts(results), seconds)


def models(count: int | None) -> Bars:
    """All kinds of models on Cora."""
    data = butfor.datasets.load_graph(CORA)
    title = f"Cora, 2 layers, 64 wide, {count or 100} test nodes, at most 1 s a node"
    head(title, "model", "test accuracy", *COUNTS, TIMES)
    found = {}
    for name in ("GraphSAGE", "GraphSAGE-max", "GIN", "GAT", "GATv2", "TransformerConv"):
        label = {"GraphSAGE": "GraphSAGE mean", "GraphSAGE-max": "GraphSAGE max"}.get(name, name)
        asked = Asked.of(trained(MODELS[name], data, 64, 2), data, count or 100)
        found[label], seconds = asked.explained(butfor.Budget(None, 1.0))
        row(label, f"{asked.accuracy:.3f}", *counts(found[label]), seconds)
    return {title: found}


def sage(aggregation: str) -> Callable[..., Stack]:
    """SAGE-like models: a matrix for the node, one for what its neighbours send, a bias, and ReLU between layers."""

    def make(features: int, width: int, depth: int, classes: int) -> Stack:
        widths = [features, *[width] * (depth - 1), classes]
        return Stack(*(SAGEConv(a, b, aggr=aggregation) for a, b in pairwise(widths)))

    return make


def searching(session: butfor.Session, node: int, budget: butfor.Budget) -> float:
    """CPU seconds of the search alone: the problem and its program are there."""
    problem = session.problem(node)
    if problem.reached or not len(problem.edits):
        return 0.0
    clock = Clock()
    EXACT.solve(problem.metered(budget))
    return clock.seconds


def peers(count: int | None) -> Bars:
    """The models that RobLight was measured on, and two that it does not know."""
    data = butfor.datasets.load_graph(CORA)
    budget = butfor.Budget(None, 10.0)
    kinds: dict[str, Callable[..., torch.nn.Module]] = {f"SAGE {name}": sage(name) for name in ("sum", "mean", "max")}
    kinds |= {"GCN": GCN, "GAT": lambda *sizes: GAT(*sizes, heads=4)}
    title = f"Cora, 32 wide, {count or 30} test nodes, at most 10 s a node"
    head(
        title,
        *("model", "test accuracy", *STATUSES, "proved", "RobLight proved", "search: median CPU ms"),
        *("RobLight: median CPU ms", "whole explain: median CPU ms", "share of wall time"),
    )
    found: dict[str, Results] = {}
    for kind, make in kinds.items():
        for depth in (2, 3):
            name = f"{kind}, {depth} layers"
            asked = Asked.of(trained(make, data, 32, depth), data, count or 30)
            search, whole, results, both = [], [], [], Clock()
            for node in asked.nodes:
                search.append(searching(asked.session, node, budget))
                clock = Clock()
                results.append(asked.session.explain(node, EXACT, budget=budget))
                whole.append(clock.seconds)
            share = both.share
            theirs = [f"{ROBLIGHT[name][0]} of 30", str(ROBLIGHT[name][1])] if name in ROBLIGHT else ["–", "–"]
            mine = [f"{1e3 * np.median(seconds):.1f}" for seconds in (search, whole)]
            proved = f"{sum(map(is_proved, results))} of {len(results)}"
            statuses = counts(results)[: len(STATUSES)]
            row(name, f"{asked.accuracy:.3f}", *statuses, proved, theirs[0], mine[0], theirs[1], mine[1], share)
            found[name] = results
    return {title: found}


def draw(bars: Bars, path: Path) -> None:
    """A bar for each model: which share of its nodes is optimal, impossible, found and unknown."""
    import matplotlib.pyplot as plt

    from butfor.plotting.style import COLOURS, DPI, INK

    looks = {
        "optimal": (COLOURS[2], "optimal: proved smallest", "white"),
        "impossible": (COLOURS[4], "impossible: proved that there is none", "white"),
        "found": (COLOURS[5], "found: a smaller one may exist", INK),
        "unknown": ("#e8e8e8", "unknown", INK),
    }
    rows = [len(found) for found in bars.values()]
    figure, axes = plt.subplots(
        *(len(bars), 1), sharex=True, squeeze=False, layout="constrained",
        figsize=(8.0, 1.0 + 0.6 * len(rows) + 0.3 * sum(rows)), height_ratios=rows,
    )  # fmt: skip
    handles: dict[str, object] = {}
    for axis, (title, found) in zip(axes[:, 0], bars.items(), strict=True):
        places, left = np.arange(len(found)), np.zeros(len(found))
        totals = np.array([len(results) for results in found.values()])
        for status, (colour, label, ink) in looks.items():
            numbers = np.array([sum(one.status.value == status for one in results) for results in found.values()])
            shares = 100 * numbers / totals
            drawn = axis.barh(places, shares, 0.74, left, color=colour, label=label)
            axis.bar_label(drawn, [str(n) if n else "" for n in numbers], label_type="center", fontsize=8, color=ink)
            handles.setdefault(label, drawn)
            left += shares
        theirs = {place: ROBLIGHT[name][0] / 0.3 for place, name in enumerate(found) if name in ROBLIGHT}
        if theirs:
            label = "what RobLight proves for models of the same kind"
            below = [place + 0.4 for place in theirs]
            handles[label] = axis.scatter(list(theirs.values()), below, marker="^", s=26, color=INK, zorder=3)
        axis.set_yticks(places, list(found))
        axis.set_ylim(len(found) - 0.5, -0.5)
        axis.set_title(title, loc="left", fontsize=10)
        axis.spines[["top", "right", "left"]].set_visible(False)
        axis.tick_params(axis="y", length=0)
    axes[-1, 0].set(xlim=(0, 101), xlabel="% of the nodes (numbers of nodes in the bars)")
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=2, frameon=False)
    figure.savefig(path, dpi=DPI)


PARTS: dict[str, Callable[[int | None], Bars | None]] = {
    "paper": paper, "cora": cora, "trees": trees, "models": models, "peers": peers, "certificates": certificates,
}  # fmt: skip


def main(parts: Iterable[str], count: int | None, write: bool) -> None:
    """Print the tables that were asked for, and draw the picture."""
    torch.set_num_threads(1)
    for kind in KINDS:
        compile_kernels(kind)
    bars: Bars = {}
    for part in parts:
        if part in ("cora", "models", "peers") and not CORA.exists():
            print(f"\n{part} is left out: there is no {CORA}")
            continue
        bars |= PARTS[part](count) or {}
    if write and bars:
        draw(bars, PICTURE)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--nodes", type=int, help="so many nodes in each row, rather than those above")
    parser.add_argument("--write", action="store_true", help="draw docs/images/proofs.png")
    options = parser.parse_args()
    main(options.parts, options.nodes, options.write)
