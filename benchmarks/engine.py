"""The program of a model beside the general oracle, on the same edit sets, in one run, one thread.

    python -m benchmarks.engine                   # everything, in about ten minutes
    python -m benchmarks.engine --parts cora --models GAT GIN

For each model, briefly trained: the milliseconds (CPU) of one evaluation by the general oracle and by the program, for
every single edit of some targets; then what `explain` takes for a target with default settings.

- **cora**: two layers, 64 wide. *GCN* beside the others is what has kernels of its own, and *GCN by program* the same
  model without them.
- **motifs**: three layers, 20 wide, on BA-Shapes and both kinds of trees.
- **graphs**: whole graphs, BA-2Motifs and Mutagenicity, with a GIN.
- **links**: pairs of nodes of Cora, by the product of what two layers say of each.

Cora and Mutagenicity need ../shared/data.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch_geometric.nn import GAT, GCN, GIN, GraphConv, GraphSAGE, TransformerConv

import butfor
from benchmarks.exact import CORA, fit, statuses
from benchmarks.molecules import MUTAGENICITY
from butfor.oracle import registry
from butfor.oracle.program.oracle import ProgramOracle, program_oracle

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from butfor.problem.problem import Problem

PARTS = ("cora", "motifs", "graphs", "links")
BY_PROGRAM = "GCN by program"

# How often a question is measured.
TIMES = 5


class Stack(torch.nn.Module):
    """Layers with a ReLU between them."""

    def __init__(self, *layers: torch.nn.Module) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(layers)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits of every node."""
        for layer in self.layers[:-1]:
            x = layer(x, edge_index).relu()
        return self.layers[-1](x, edge_index)


def graph_conv(features: int, width: int, depth: int, classes: int) -> Stack:
    """GraphConv, which PyG has no model of."""
    widths = [features, *[width] * (depth - 1)]
    return Stack(*map(GraphConv, widths, [*widths[1:], classes]))


def transformer(features: int, width: int, depth: int, classes: int) -> Stack:
    """TransformerConv, likewise, with four heads but in the last layer."""
    inner = [TransformerConv(features if not i else width, width // 4, heads=4) for i in range(depth - 1)]
    return Stack(*inner, TransformerConv(width, classes))


MODELS: dict[str, Callable[[int, int, int, int], torch.nn.Module]] = {
    "GCN": GCN,
    BY_PROGRAM: GCN,
    "GraphSAGE": GraphSAGE,
    "GraphSAGE-max": lambda *sizes: GraphSAGE(*sizes, aggr="max"),
    "GAT": lambda *sizes: GAT(*sizes, heads=4),
    "GATv2": lambda *sizes: GAT(*sizes, heads=4, v2=True),
    "GIN": GIN,
    "GraphConv": graph_conv,
    "TransformerConv": transformer,
}


class Links(torch.nn.Module):
    """A score for each pair of nodes: the product of what two layers say of them."""

    def __init__(self, encoder: torch.nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, x: Tensor, edge_index: Tensor, edge_label_index: Tensor) -> Tensor:
        """One number for each pair."""
        first, second = self.encoder(x, edge_index)[edge_label_index]
        return (first * second).sum(-1)


def seconds_each(ask: Callable[[], object], count: int) -> float:
    """CPU seconds for each of so many things that are asked at once; the mean of several times, the first apart."""
    ask()
    start = time.process_time()
    for _ in range(TIMES):
        ask()
    return (time.process_time() - start) / (TIMES * count)


def milliseconds(problems: Sequence[Problem]) -> tuple[float, float, str]:
    """Of one evaluation by the general oracle and by the fast one, and what that is."""
    slow, fast = [], []
    for problem in problems:
        oracle, edits = problem.oracle, problem.edits
        singles, ends = np.arange(len(edits))[:, None], np.array([0, len(edits)])
        nothing = np.zeros((1, 0), dtype=np.int64)
        fast.append(seconds_each(lambda: oracle.extend(edits, nothing, singles[:, 0], ends), len(edits)))  # noqa: B023
        general = oracle.general if hasattr(oracle, "general") else oracle
        slow.append(seconds_each(lambda: general.logits([(edits, singles[:16])]), min(16, len(edits))))  # noqa: B023
    kind = "program" if isinstance(oracle, ProgramOracle) else type(oracle).__name__
    return 1e3 * float(np.mean(slow)), 1e3 * float(np.mean(fast)), kind


def report(name: str, sessions: Sequence[butfor.Session], targets: list[object], first: float | None) -> float:
    """Print one row; returns the milliseconds of an evaluation. ``first`` are those of the model to compare with."""
    problems = [session.problem(target) for session in sessions for target in targets]
    problems = [problem for problem in problems if len(problem.edits)]
    slow, fast, kind = milliseconds(problems[:8])
    results = []
    start = time.process_time()
    for session in sessions:
        results += session.explain_all(targets)
    passed = (time.process_time() - start) / len(results)
    beside = "" if first is None else f"{fast / first:.1f}"
    print(
        f"{name:<16} {slow:>8.3f} {fast:>8.4f} {slow / fast:>5.0f}× {beside:>5}  {kind:<10} {passed:>7.3f}  "
        f"{statuses(results)}",
        flush=True,
    )
    return fast


def head(what: str) -> None:
    """The line above a table."""
    print(f"\n{what}; milliseconds of one evaluation")
    print(f"{'model':<16} {'general':>8} {'fast':>8} {'ratio':>6} {'/GCN':>5}  {'oracle':<10} {'s each':>7}  status")


def nodes_of(what: str, data: object, names: list[str], width: int, depth: int, count: int) -> None:
    """The table of models on one graph."""
    head(f"{what}, {depth} layers, {width} wide, {count} test nodes, one thread")
    targets = data.test_mask.nonzero().flatten()[:count].tolist()
    first = None
    for name in names:
        torch.manual_seed(0)
        model = fit(MODELS[name](data.num_features, width, depth, int(data.y.max()) + 1), data, 30)
        oracles = registry.FAST_ORACLES.copy()
        if name == BY_PROGRAM:
            registry.FAST_ORACLES[:] = [program_oracle]
        session = butfor.prepare(model, data)
        session.explain(targets[:1])  # loads the kernels
        fast = report(name, [session], targets, first)
        registry.FAST_ORACLES[:] = oracles
        first = fast if name == "GCN" else first


def graphs_of(name: str, graphs: list[object], count: int) -> None:
    """A GIN on whole graphs."""
    model, training = butfor.models.trained_graph_classifier(graphs, seed=0, epochs=10)
    head(f"{name}, GIN of three layers, 32 wide, {count} test graphs, one thread")
    sessions = [butfor.prepare(model, graphs[number], task="graph") for number in training.test[:count]]
    sessions[0].explain()
    report("GIN", sessions, [None], None)


def links_of(data: object, names: list[str], count: int) -> None:
    """Pairs of Cora's nodes."""
    head(f"Cora, links, two layers, 64 wide, {count} pairs, one thread")
    ends = data.edge_index[:, data.edge_index[0] < data.edge_index[1]].T[:: data.num_edges // (2 * count)][:count]
    targets = [butfor.Pair(*pair) for pair in ends.tolist()]
    for name in names:
        torch.manual_seed(0)
        model = Links(MODELS[name](data.num_features, 64, 2, 16)).eval()
        with torch.no_grad():
            scores = model(data.x, data.edge_index, ends.T).sort().values
        # Between two scores: at one of them every edit that changes nothing is a tie, which only the model can decide.
        threshold = float(scores[count // 2 - 1 : count // 2 + 1].mean())
        session = butfor.prepare(model, data, task="link", goal=butfor.Goal(threshold=threshold))
        session.explain(targets[:1])
        report(name, [session], targets, None)


def main() -> None:
    """Print the tables that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--nodes", type=int, default=24)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if CORA.exists() and "cora" in options.parts:
        nodes_of("Cora", butfor.datasets.load_graph(CORA), options.models, 64, 2, options.nodes)
    if "motifs" in options.parts:
        for name in ("ba_shapes", "tree_cycles", "tree_grid"):
            nodes_of(name, getattr(butfor.datasets, name)(seed=0), options.models, 20, 3, options.nodes)
    if "graphs" in options.parts:
        graphs_of("BA-2Motifs", butfor.datasets.ba_2motifs(seed=0), options.nodes)
        if MUTAGENICITY.exists():
            graphs_of("Mutagenicity", butfor.datasets.load_mutagenicity(MUTAGENICITY), options.nodes)
    if CORA.exists() and "links" in options.parts:
        names = [name for name in options.models if name != BY_PROGRAM]
        links_of(butfor.datasets.load_graph(CORA), names, options.nodes)


if __name__ == "__main__":
    main()
