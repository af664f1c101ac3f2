"""How many runs on the whole graph do many targets need? ``python -m benchmarks.sharing``

Random nodes of power-law graphs in memory (`benchmarks.power_law`: hubs of up to 1,000 edges are in most receptive
fields), explained by `Greedy`. Their answers are verified on the whole graph, and targets share runs of the model:

- **apart**: where no edit of one lies in the receptive field of another;
- **edited**: where none lies in what is left of that field after the other's own edits (`butfor.result.verify`).

**a run** is the CPU time of one run on the whole graph. Copies of it side by side in one run would let all targets
share, so what one of these costs is printed beside it.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
from torch_geometric.data import Batch

import butfor
from benchmarks.power_law import power_law
from benchmarks.scale import MODELS, trained
from butfor.result import verify

COPIES = 8


def intact_field(problem, _):
    return problem.edits.neighbourhood.columns[problem.edits.visible]


def seconds_of(model, data) -> float:
    with torch.no_grad():
        model(data.x, data.edge_index)
        begun = time.process_time()
        for _ in range(3):
            model(data.x, data.edge_index)
    return (time.process_time() - begun) / 3


def row(name: str, data, count: int) -> str:
    model = trained(name, data)
    session = butfor.prepare(model, data, verify="whole-graph")
    asked = []
    for node in np.random.default_rng(0).permutation(data.num_nodes)[:count].tolist():
        problem = session.problem(node).metered(butfor.Budget(500))
        asked += [(problem, chosen) for chosen in butfor.Greedy().solve(problem).candidates[:1]]
    with patch.object(verify, "_field", intact_field):
        apart = len(verify._disjoint_groups(asked, verify.RUNS))
    edited = len(verify._disjoint_groups(asked, verify.RUNS))
    hub = int(np.bincount(data.edge_index[1].numpy()).max())
    one, copied = seconds_of(model, data), seconds_of(model, Batch.from_data_list([data] * COPIES)) / COPIES
    cells = [
        name,
        f"{data.num_nodes:,}",
        hub,
        len(asked),
        apart,
        edited,
        f"{1000 * one:.0f} ms",
        f"{1000 * copied:.0f} ms",
    ]
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1_000, 10_000, 100_000], help="of the graphs")
    parser.add_argument("--targets", type=int, default=256)
    given = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for nodes in given.nodes:
        with tempfile.TemporaryDirectory() as folder:
            power_law(Path(folder) / "graph", nodes)
            data = butfor.open_graph(Path(folder) / "graph").clone()
            rows += [row(name, data, given.targets) for name in MODELS]
    print(f"| model | nodes | largest degree | answers | runs, apart | runs, edited | a run | one of {COPIES} copies |")
    print("|---|---|---|---|---|---|---|---|")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
