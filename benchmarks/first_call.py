"""What a first answer costs on a large graph, beside one forward pass of the model, measured in the same run.

    python -m benchmarks.first_call                                   # 10^6 nodes, 10^7 edges: some minutes, 10 GB
    python -m benchmarks.first_call --nodes 100000 --edges 1000000

Random graphs, symmetric and directed, with 16 features; two layers of GCN and of GraphSAGE, 16 wide, and GraphSAGE by
hand. CPU time of one thread: `prepare`, the first `explain` of a node, the median of some more; and how often the model
ran on the whole graph. Then the time to check an edit space with a cost for each of 200,000 edges.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCN, GraphSAGE, SAGEConv

import butfor
from butfor.edits.rules import Rules
from butfor.graph.graph import Graph
from butfor.predict.call import Call
from butfor.warm_up import warm_up

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch import Tensor

    from butfor.predict.inputs import Inputs

WIDTH, CLASSES, PRICED = 16, 4, 200_000


class ByHand(torch.nn.Module):
    """Two layers of GraphSAGE as people write them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = SAGEConv(WIDTH, WIDTH), SAGEConv(WIDTH, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits of every node."""
        return self.second(self.first(x, edge_index).relu(), edge_index)


MODELS: dict[str, Callable[[], torch.nn.Module]] = {
    "GCN": lambda: GCN(WIDTH, WIDTH, 2, CLASSES),
    "GraphSAGE": lambda: GraphSAGE(WIDTH, WIDTH, 2, CLASSES),
    "GraphSAGE by hand": ByHand,
}


class Runs:
    """Counts how often models run on a graph of this many nodes."""

    def __init__(self, nodes: int) -> None:
        self.count = 0
        original = Call.output

        def output(call: Call, inputs: Inputs) -> Tensor:
            self.count += len(inputs.x) == nodes
            return original(call, inputs)

        Call.output = output  # type: ignore[method-assign]


def random_graph(nodes: int, edges: int, symmetric: bool) -> Data:
    """A graph with this many columns of `edge_index`."""
    random = np.random.default_rng(0)
    ends = random.integers(0, nodes, size=(2, edges // 2 if symmetric else edges))
    ends = np.concatenate([ends, ends[::-1]], axis=1) if symmetric else ends
    return Data(x=torch.randn(nodes, WIDTH), edge_index=torch.from_numpy(np.ascontiguousarray(ends)))


def seconds(action: Callable[[], object]) -> float:
    """CPU seconds of an action."""
    start = time.process_time()
    action()
    return time.process_time() - start


def forward_pass(model: torch.nn.Module, data: Data) -> float:
    """Median CPU seconds of three runs; the first of all allocates memory, and does not count."""
    with torch.no_grad():
        return float(np.median([seconds(lambda: model(data.x, data.edge_index)) for _ in range(4)][1:]))


def some_targets(model: torch.nn.Module, data: Data, count: int) -> list[int]:
    """Of a hundred nodes of degree 3 those nearest to another class, so that there is an answer to verify."""
    degree = np.bincount(data.edge_index[1].numpy(), minlength=data.num_nodes)
    nodes = np.flatnonzero(degree == 3)[:100]
    with torch.no_grad():
        best, second = model(data.x, data.edge_index)[nodes].topk(2).values.T
    return nodes[(best - second).argsort()[:count].numpy()].tolist()


def measure(name: str, data: Data, symmetric: bool, runs: Runs, more: int) -> str:
    """One row of the table."""
    torch.manual_seed(0)
    model = MODELS[name]().eval()
    forward = forward_pass(model, data)
    targets = some_targets(model, data, more + 1)
    made: list[butfor.session.Session] = []
    runs.count = 0
    prepared = seconds(lambda: made.append(butfor.prepare(model, data)))
    (session,) = made
    first = seconds(lambda: session.explain(targets[0]))
    count = runs.count
    single = [seconds(lambda node=node: session.explain(node)) for node in targets[1:]]  # type: ignore[misc]
    listed = seconds(lambda: session.explain(targets[1:])) / more
    kind = "symmetric" if symmetric else "directed"
    shown = [f"{value:>7.2f} ({value / forward:4.2f})" for value in (prepared, first, np.median(single), listed)]
    return f"{name:<18} {kind:<10} {forward:>8.2f} {' '.join(shown)} {count:>5} {(prepared + first) / forward:>6.2f}"


def edit_spaces() -> Iterator[str]:
    """One line for each way to give a cost for every edge."""
    data = random_graph(PRICED // 10, PRICED, symmetric=True)
    source, target = data.edge_index
    data.price = 1.0 + (source + target) % 7
    graph = Graph.of(data)
    pairs = [(u, v) for u, v in data.edge_index.T.tolist() if u != v]
    costs = {(u, v): 1.0 + (u + v) % 7 for u, v in pairs}
    for name, given in {"a dictionary": costs, "a tensor": data.price, "an attribute": "price"}.items():
        passed = seconds(lambda given=given: Rules.of(butfor.EditSpace(costs=given), graph))  # type: ignore[misc]
        yield f"{passed:.3f} s to check {PRICED:,} costs as {name}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=10_000_000, help="columns of edge_index")
    parser.add_argument("--more", type=int, default=3, help="targets after the first")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    warm_up()
    runs = Runs(arguments.nodes)
    print(f"{arguments.nodes:,} nodes, {arguments.edges:,} edges; CPU seconds (and forward passes)")
    print(
        f"{'model':<18} {'graph':<10} {'forward':>8} {'prepare':>14} {'first':>14} {'next':>14} {'in a list':>14} "
        f"{'runs':>5} {'in all':>6}"
    )
    for symmetric in (True, False):
        data = random_graph(arguments.nodes, arguments.edges, symmetric)
        for name in arguments.models:
            print(measure(name, data, symmetric, runs, arguments.more), flush=True)
    for line in edit_spaces():
        print(line)


if __name__ == "__main__":
    main()
