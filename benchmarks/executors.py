"""Several workers against one, and a run that is killed and continued against one that is not.

    python -m benchmarks.executors                    # everything, in some ten minutes
    python -m benchmarks.executors --parts workers    # or any of workers, ray, killed

- **workers**: 2,000 nodes of BA-Shapes and of Cora by `Exact` (300 evaluations for each, one thread): one process,
  two processes, in turns. Time is counted from the moment when all workers are ready (`start` is how long that took).
  On a machine that is busy with other things two workers do not get two cores; so the ratio of CPU seconds is printed
  too: those of one process to those of the busiest worker.
- **ray**: the same on Ray with two workers.
- **killed**: ``butfor explain`` of 20,000 nodes into a folder, by two processes; killed (SIGKILL) five times and
  continued; beside the same run left in peace. The results must be the same.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

import butfor
from benchmarks.cf_gnn import load
from benchmarks.exact import cora_model
from butfor.datasets import describe
from butfor.executors import Processes, Ray, Serial
from butfor.executors.plan import cut
from butfor.executors.run import run
from butfor.models import save_checkpoint
from butfor.runs.shards import read_shard
from butfor.spread import Search

if TYPE_CHECKING:
    from collections.abc import Sequence

    from butfor.executors import Executor
    from butfor.session import Session

BUDGET = butfor.Budget(300)
KILLED_TARGETS, KILLS = 20_000, 5
PARTS = ("workers", "ray", "killed")


class Clocked:
    """An executor whose workers all make themselves ready before any begins, and that says when."""

    def __init__(self, executor: Executor) -> None:
        self.executor, self.deaths, self.size = executor, executor.deaths, executor.size
        self.ready = 0.0
        self._workers: list = []

    def start(self, luggage: object) -> object:
        """One of the workers; all are started with the first, and explain a node that nobody asked for."""
        if not self._workers:
            self._workers = [self.executor.start(luggage) for _ in range(self.size)]
            for warm in ((), [(0, 0)], [(0, 1), (1, 2), (2, 3)]):
                for future in [worker.submit(warm) for worker in self._workers]:
                    future.result()
            self.ready = time.perf_counter()
        return self._workers.pop()


@dataclass(frozen=True, eq=False)
class Timed:
    """The search, with the process that did a shard and its CPU seconds."""

    search: Search

    def __call__(self, items: Sequence[tuple[int, int]]) -> tuple[int, float, list]:
        """Do a shard."""
        begin = time.process_time()
        found = self.search(items)
        return os.getpid(), time.process_time() - begin, found


@dataclass(frozen=True, eq=False)
class Measured:
    """What was measured of an executor: seconds of the work and until it began, and CPU seconds of each worker."""

    seconds: float
    start: float
    cpu: dict[int, float]
    results: dict[int, butfor.Counterfactual]


def measure(session: Session, nodes: list[int], executor: Executor) -> Measured:
    """Explain these nodes."""
    clocked, cpu, results = Clocked(executor), Counter[int](), {}
    shards = cut(session.costs(nodes), np.array(nodes), executor.size)
    search = Search(session, butfor.Exact(threads=1), BUDGET)
    begin = time.perf_counter()
    for _, (pid, used, found) in run(
        clocked,  # type: ignore[arg-type]
        Timed(search.for_workers() if executor.size > 1 else search),
        [[(position, nodes[position]) for position in shard] for shard in shards],
    ):
        cpu[pid] += used
        results |= dict(found)
    return Measured(time.perf_counter() - clocked.ready, clocked.ready - begin, cpu, results)


def compare(name: str, session: Session, nodes: list[int], executors: dict[str, Executor], rounds: int) -> None:
    """One row for each executor: the best of some rounds, and its ratio to one process."""
    best: dict[str, Measured] = {}
    for _ in range(rounds):
        for label, executor in executors.items():
            now = measure(session, nodes, executor)
            best[label] = min(best.get(label, now), now, key=lambda one: one.seconds)
    one = best["one process"]
    for label, many in best.items():
        busiest = max(many.cpu.values())
        same = "same results" if many.results == one.results else "OTHER RESULTS"
        print(
            f"{name:>10} {label:>14}: {many.seconds:6.1f} s ({one.seconds / many.seconds:4.2f}×), start "
            f"{many.start:4.1f} s; CPU of the busiest {busiest:5.1f} s ({max(one.cpu.values()) / busiest:4.2f}×), "
            f"of all {sum(many.cpu.values()):5.1f} s; {same}",
            flush=True,
        )


def killed(targets: int, kills: int) -> None:
    """A run that is killed again and again, and one that is left in peace."""
    chance = random.Random(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = [sys.executable, "-c", "from butfor.cli import main; raise SystemExit(main())", "explain", "--quiet"]
        command += ["--checkpoint", str(folder / "run"), "--graph", str(copies(folder, targets)), "--jobs", "2"]
        command += ["--nodes", f"0-{targets - 1}", "--method", "greedy", "--out"]
        begin = time.perf_counter()
        subprocess.run([*command, f"{folder}/whole/"], check=True, stdout=subprocess.DEVNULL)
        whole = time.perf_counter() - begin
        for number in range(kills):
            before = len(list(folder.glob("parts/part-*")))
            process = subprocess.Popen([*command, f"{folder}/parts/"], start_new_session=True)
            while process.poll() is None and len(list(folder.glob("parts/part-*"))) == before:
                time.sleep(0.1)
            time.sleep(chance.uniform(0, 0.1) * whole)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            done = len(butfor.load_results(folder / "parts")) if (folder / "parts" / "manifest.json").exists() else 0
            print(f"killed {number + 1} times: {done:,} of {targets:,} nodes are done", flush=True)
        subprocess.run([*command, f"{folder}/parts/"], check=True, stdout=subprocess.DEVNULL)
        peaceful, disturbed = ({one.target: one for one in butfor.load_results(folder / n)} for n in ("whole", "parts"))
        rows = sum(len(list(read_shard(shard))) for shard in (folder / "parts").glob("part-*"))
        same = "the same as" if peaceful == disturbed and rows == targets else "OTHER THAN"
        print(f"{len(disturbed):,} results in {rows:,} rows, {same} those of the run left in peace, {whole:.0f} s")


def copies(folder: Path, nodes: int) -> Path:
    """A checkpoint of a GCN on Tree-Cycles, and so many copies of that graph side by side."""
    data = butfor.datasets.tree_cycles(seed=0)
    model, _ = butfor.models.trained_gcn(data)
    save_checkpoint(folder / "run", model, data_info=describe(data))
    times = -(-nodes // data.num_nodes)
    shifts = torch.arange(times).repeat_interleave(data.num_edges) * data.num_nodes
    edge_index = data.edge_index.repeat(1, times) + shifts
    x, y = data.x.repeat(times, 1), data.y.repeat(times)
    np.savez(folder / "graph.npz", x=x.numpy(), y=y.numpy(), edge_index=edge_index.numpy())
    return folder / "graph.npz"


def main() -> None:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--targets", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    executors: dict[str, Executor] = {"one process": Serial()}
    executors |= {"two processes": Processes(2)} if "workers" in arguments.parts else {}
    executors |= {"Ray, two": Ray(workers=2)} if "ray" in arguments.parts else {}
    if len(executors) > 1:
        for name, (model, data) in (("BA-Shapes", load("ba_shapes", None)), ("Cora", cora_model())):
            nodes = [number % data.num_nodes for number in range(arguments.targets)]
            compare(name, butfor.prepare(model, data), nodes, executors, arguments.rounds)
    if "killed" in arguments.parts:
        killed(KILLED_TARGETS, KILLS)


if __name__ == "__main__":
    main()
