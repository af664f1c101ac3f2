"""The program of a model beside the general oracle, on the same edit sets, in one run, one thread.

    python -m benchmarks.engine                   # Cora, two layers, 64 wide
    python -m benchmarks.engine --models GAT GIN

For each model, briefly trained: the milliseconds (CPU) of one evaluation by the general oracle and by the program, for
every single edit of some test nodes; then what `explain` takes for a node with default settings. Needs
../shared/data/planetoid.
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
from butfor.oracle.program.oracle import ProgramOracle

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

WIDTH, CLASSES = 64, 7


class Two(torch.nn.Module):
    """Two layers with a ReLU between them."""

    def __init__(self, first: torch.nn.Module, second: torch.nn.Module) -> None:
        super().__init__()
        self.first, self.second = first, second

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits of every node."""
        return self.second(self.first(x, edge_index).relu(), edge_index)


MODELS: dict[str, Callable[[int], torch.nn.Module]] = {
    "GCN": lambda features: GCN(features, WIDTH, 2, CLASSES),
    "GraphSAGE": lambda features: GraphSAGE(features, WIDTH, 2, CLASSES),
    "GraphSAGE-max": lambda features: GraphSAGE(features, WIDTH, 2, CLASSES, aggr="max"),
    "GAT": lambda features: GAT(features, WIDTH, 2, CLASSES, heads=4),
    "GATv2": lambda features: GAT(features, WIDTH, 2, CLASSES, heads=4, v2=True),
    "GIN": lambda features: GIN(features, WIDTH, 2, CLASSES),
    "GraphConv": lambda features: Two(GraphConv(features, WIDTH), GraphConv(WIDTH, CLASSES)),
    "TransformerConv": lambda features: Two(TransformerConv(features, 16, heads=4), TransformerConv(WIDTH, CLASSES)),
}


def seconds_each(ask: Callable[[], object], count: int) -> float:
    start = time.process_time()
    ask()
    return (time.process_time() - start) / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--nodes", type=int, default=24)
    arguments = parser.parse_args()
    if not CORA.exists():
        raise SystemExit(f"{CORA} is not there")
    torch.set_num_threads(1)
    data = butfor.datasets.load_graph(CORA)
    nodes = data.test_mask.nonzero().flatten()[: arguments.nodes].tolist()
    print(f"Cora, two layers, {WIDTH} wide, {len(nodes)} test nodes, one thread; milliseconds of one evaluation")
    print(f"{'model':<16} {'general':>8} {'fast':>8} {'ratio':>6}  {'oracle':<14} {'s/node':>7}  status")
    for name in arguments.models:
        torch.manual_seed(0)
        model = fit(MODELS[name](data.num_features), data, 30)
        session = butfor.prepare(model, data)
        session.explain(nodes[:1])  # loads the kernels
        slow, fast = [], []
        for node in nodes[:8]:
            problem = session.problem(node)
            oracle, edits = problem.oracle, problem.edits
            singles = np.arange(len(edits))[:, None]
            nothing, ends = np.zeros((1, 0), dtype=np.int64), np.array([0, len(edits)])
            oracle.extend(edits, nothing, singles[:, 0], ends)  # makes the program ready
            fast.append(seconds_each(lambda: oracle.extend(edits, nothing, singles[:, 0], ends), len(edits)))  # noqa: B023
            general = oracle.general if hasattr(oracle, "general") else oracle
            slow.append(seconds_each(lambda: general.logits([(edits, singles[:16])]), min(16, len(edits))))  # noqa: B023
        start = time.process_time()
        results = session.explain(nodes)
        passed = (time.process_time() - start) / len(nodes)
        kind = "program" if isinstance(oracle, ProgramOracle) else type(oracle).__name__
        ratio = np.mean(slow) / np.mean(fast)
        print(
            f"{name:<16} {1e3 * np.mean(slow):>8.3f} {1e3 * np.mean(fast):>8.4f} {ratio:>5.0f}×  {kind:<14} "
            f"{passed:>7.3f}  {statuses(results)}",
            flush=True,
        )


if __name__ == "__main__":
    main()
