"""Does the cost of a target follow its neighbourhood or the graph? ``python -m benchmarks.scale --folder /tmp/graphs``

Power-law graphs with the same degrees (`benchmarks.power_law`) of 10^5, 10^6 and 10^7 nodes, ten times as many directed
edges and 32 features; they are written to the folder once (3 GB). Models of two layers are trained on the smallest.

- **disk**: each graph is opened from its folder, in a process of its own that may hold 3 GB (RLIMIT_DATA: mapped files
  do not count, all else does), and random nodes are explained.
- **memory**: the graphs of 10^5 and 10^6 nodes are read into memory, and prepared once.
- **reads**: what has to be read from disk for a target of the largest graph: its edges, and the pages of 4 KB that they
  and the features of its nodes lie on.
- **peak**: how much memory a target takes whose neighbourhood has about as many edges as `max_edges` allows, in a
  random graph with the same degree everywhere, in memory: resident size before the question, and the largest at all.

One thread; CPU seconds of each node after the first. ``--write`` draws docs/images/scale.png.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCN, GraphSAGE

import butfor
from benchmarks.power_law import FEATURES, power_law
from butfor.graph.graph import Graph

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "images" / "scale.png"
MODELS = {"GCN": GCN, "GraphSAGE": GraphSAGE}
SIZES = {"disk": (10**5, 10**6, 10**7), "memory": (10**5, 10**6)}
# Nodes and their degree: a million edges, all within the three hops of GCN, or the two of GraphSAGE.
PEAK = {"GCN": (10**4, 100), "GraphSAGE": (10**3, 1000)}
LIMIT = 3 * 2**30
PAGE = 4096
WIDTH, CLASSES, EPOCHS = 64, 2, 30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("graphs"), help="where the graphs are, or are written to")
    parts = [*SIZES, "reads", "peak"]
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--evaluations", type=int, default=500)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        part, model, nodes = given.measure
        if part == "peak":
            print(json.dumps(peak(model, given.evaluations)))
        else:
            print(json.dumps(measured(given.folder, part, model, int(nodes), given.nodes, given.evaluations)))
        return
    if "peak" in given.parts:
        tell_peak(given)
    if given.parts == ["peak"]:
        return
    given.folder.mkdir(parents=True, exist_ok=True)
    for nodes in SIZES["disk"]:
        if not graph_folder(given.folder, nodes).exists():
            power_law(graph_folder(given.folder, nodes), nodes)
    for name in MODELS:
        train(given.folder, name)
    found: dict[tuple[str, str], dict[int, dict[str, float]]] = {}
    if "reads" in given.parts:
        tell_reads(given.folder, given.nodes)
    for part in [one for one in given.parts if one in SIZES]:
        print(f"\n{part}: {given.nodes} random nodes, Exact with {given.evaluations} evaluations; CPU ms a node")
        print("| model | nodes | opened in | prepared in | median | mean | largest | beside 10^5 (median) | RSS |")
        print("|---|---|---|---|---|---|---|---|---|")
        for name in MODELS:
            rows = found[part, name] = {}
            for nodes in SIZES[part]:
                rows[nodes] = in_a_process(given, part, name, nodes)
                print(told(name, nodes, rows), flush=True)
    if given.write:
        draw(found)


def graph_folder(folder: Path, nodes: int) -> Path:
    return folder / f"power-law-{nodes}"


def weights(folder: Path, name: str) -> Path:
    return folder / f"{name}.pt"


def train(folder: Path, name: str) -> None:
    """Train on the smallest graph."""
    if weights(folder, name).exists():
        return
    data = butfor.open_graph(graph_folder(folder, min(SIZES["disk"]))).clone()
    torch.save(trained(name, data).state_dict(), weights(folder, name))


def trained(name: str, data: Data) -> torch.nn.Module:
    """A model that tells nodes whose neighbours mostly have a positive first feature."""
    torch.manual_seed(0)
    model = MODELS[name](FEATURES, WIDTH, 2, CLASSES)
    source, target = data.edge_index
    sums = torch.zeros(data.num_nodes).index_add(0, target, data.x[source, 0])
    labels = (sums > 0).long()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(EPOCHS):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(data.x, data.edge_index), labels)
        loss.backward()
        optimizer.step()
    accuracy = float((model.eval()(data.x, data.edge_index).argmax(1) == labels).float().mean())
    print(f"{name}: accuracy {accuracy:.2f} after {EPOCHS} epochs on {data.num_nodes} nodes", flush=True)
    return model


def in_a_process(given: argparse.Namespace, part: str, name: str, nodes: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.scale", "--folder", given.folder, "--nodes", given.nodes]
    command += ["--evaluations", given.evaluations, "--measure", part, name, nodes]
    done = subprocess.run([str(one) for one in command], check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def measured(folder: Path, part: str, name: str, nodes: int, count: int, evaluations: int) -> dict[str, float]:
    torch.set_num_threads(1)
    model = MODELS[name](FEATURES, WIDTH, 2, CLASSES).eval()
    model.load_state_dict(torch.load(weights(folder, name), weights_only=True))
    if part == "disk":
        resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))
    begun = time.perf_counter()
    data = butfor.open_graph(graph_folder(folder, nodes))
    opened = time.perf_counter() - begun
    data = data.clone() if part == "memory" else data
    begun = time.perf_counter()
    session = butfor.prepare(model, data)
    prepared = time.perf_counter() - begun
    budget, method = butfor.Budget(evaluations), butfor.Exact(threads=1)
    chosen = np.random.default_rng(0).integers(nodes, size=count + 1).tolist()
    seconds, statuses = [], []
    for node in chosen:
        begun = time.process_time()
        statuses.append(session.explain(node, method, budget=budget).status.value)
        seconds.append(time.process_time() - begun)
    after = 1000 * np.array(seconds[1:])
    return {
        "opened": opened,
        "prepared": prepared,
        "median": float(np.median(after)),
        "mean": float(after.mean()),
        "largest": float(after.max()),
        "rss": resident("VmHWM"),  # `ru_maxrss` would count the process that started this one
        **{status: statuses.count(status) for status in sorted(set(statuses))},
    }


def tell_peak(given: argparse.Namespace) -> None:
    print(f"\npeak: one target, Exact with {given.evaluations} evaluations")
    print("| model | edges of the neighbourhood | status | CPU s | RSS before | largest RSS |")
    print("|---|---|---|---|---|---|")
    for name in MODELS:
        one = in_a_process(given, "peak", name, PEAK[name][0])
        sizes = f"{one['before'] / 1e9:.2f} GB | {one['largest'] / 1e9:.2f} GB"
        print(f"| {name} | {one['edges']:,} | {one['status']} | {one['seconds']:.0f} | {sizes} |", flush=True)


def peak(name: str, evaluations: int) -> dict[str, float]:
    torch.set_num_threads(1)
    nodes, degree = PEAK[name]
    rng = np.random.default_rng(0)
    pairs = rng.integers(nodes, size=(2, nodes * degree // 2))
    pairs = pairs[:, pairs[0] != pairs[1]]
    edge_index = torch.from_numpy(np.concatenate([pairs, pairs[::-1]], axis=1))
    data = Data(x=torch.from_numpy(rng.standard_normal((nodes, FEATURES), dtype=np.float32)), edge_index=edge_index)
    torch.manual_seed(0)
    model = MODELS[name](FEATURES, WIDTH, 2, CLASSES).eval()
    session = butfor.prepare(model, data)
    before = resident("VmRSS")
    begun = time.process_time()
    result = session.explain(1, butfor.Exact(threads=1), budget=butfor.Budget(evaluations))
    seconds = time.process_time() - begun
    return {
        "edges": session.problem(1).edits.neighbourhood.num_columns,
        "status": result.status.value,
        "seconds": seconds,
        "before": before,
        "largest": resident("VmHWM"),
    }


def resident(which: str) -> int:
    """Bytes of memory that the process holds now (VmRSS), or held at most (VmHWM)."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(which))
    return int(line.split()[1]) * 1024


def tell_reads(folder: Path, count: int) -> None:
    nodes = max(SIZES["disk"])
    graph = Graph.of(butfor.open_graph(graph_folder(folder, nodes)))
    pointers = np.load(graph_folder(folder, nodes) / "pointers.npy", mmap_mode="r")
    print(f"\nreads: {count} random nodes of 10^{round(np.log10(nodes))}")
    print("| model | hops | nodes (median) | edges (median) | pages (median) | pages (mean) |")
    print("|---|---|---|---|---|---|")
    for name, hops in (("GCN", 3), ("GraphSAGE", 2)):
        rows = []
        for node in np.random.default_rng(0).integers(nodes, size=count).tolist():
            near = graph.neighbourhood(node, hops, rim=False)
            inner = near.nodes[near.distance < hops]
            pages = {("x", page) for page in (near.nodes * 4 * FEATURES // PAGE).tolist()}
            pages |= {("pointers", page) for page in (near.nodes * 8 // PAGE).tolist()}
            for first, last in zip(pointers[inner] * 8 // PAGE, pointers[inner + 1] * 8 // PAGE, strict=True):
                pages |= {("edges", page) for page in range(first, last + 1)}
            rows.append((near.num_nodes, near.num_columns, len(pages)))
        few, edges, pages_read = np.median(rows, axis=0)
        mean = np.mean(rows, axis=0)[2] * PAGE / 1e6
        told_pages = f"{pages_read * PAGE / 1e6:.1f} MB | {mean:.1f} MB"
        print(f"| {name} | {hops} | {few:.0f} | {edges:.0f} | {told_pages} |", flush=True)


def told(name: str, nodes: int, rows: dict[int, dict[str, float]]) -> str:
    one = rows[nodes]
    ratio = one["median"] / rows[min(rows)]["median"]
    cells = [name, f"10^{round(np.log10(nodes))}", f"{one['opened']:.2f} s", f"{one['prepared']:.2f} s"]
    cells += [f"{one[key]:.1f}" for key in ("median", "mean", "largest")]
    cells += [f"{ratio:.2f}", f"{one['rss'] / 1e9:.1f} GB"]
    return f"| {' | '.join(cells)} |"


def draw(found: dict[tuple[str, str], dict[int, dict[str, float]]]) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
    for (part, name), rows in found.items():
        style = "-" if part == "disk" else "--"
        color = "C0" if name == "GCN" else "C1"
        axes.plot(list(rows), [one["median"] for one in rows.values()], style, color=color, marker="o",
                  label=f"{name}, {'on disk' if part == 'disk' else 'in memory'}")  # fmt: skip
    axes.set(xscale="log", ylim=(0, None), xlabel="nodes of the graph (ten times as many directed edges)",
             ylabel="CPU ms a node (median)")  # fmt: skip
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(PICTURE, dpi=150)
    print(f"written: {PICTURE}")


if __name__ == "__main__":
    main()
