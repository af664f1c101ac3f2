"""A report of many results: how long it takes to write it, how large it is, and how quick it is in a browser.

    python -m benchmarks.report                     # 10,000 results: some minutes, most of them for explaining
    python -m benchmarks.report --results 1000

A preferential-attachment graph with as many nodes as results, so that there are hubs and most pictures are full; a
two-layer GCN that learnt to tell high degrees from low ones; `Greedy`, so that there are answers that are not proved.
Every node is explained. The page is then opened in Chromium, some times: the first view is complete when all of it has
been painted. A keystroke in the search box and a click on a target count until what they changed has been painted.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import networkx
import torch
from playwright.sync_api import Page, sync_playwright
from torch_geometric.data import Data
from torch_geometric.nn import GCN
from torch_geometric.utils import degree, to_undirected

import butfor

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
OPENED = 5
WORDS = ["n", "no", "node 7", "class 1", "node 77", "–12", "zzz", ""]

# Two frames after now, everything that was changed before is on the screen.
FRAME = "requestAnimationFrame"
PAINTED = f"() => new Promise((done) => {FRAME}(() => {FRAME}(() => done(performance.now()))))"
TYPED = f"""async (word) => {{
  const box = document.querySelector("input[type=search]"), start = performance.now();
  box.value = word;
  box.dispatchEvent(new Event("input"));
  return (await ({PAINTED})()) - start;
}}"""
CLICKED = f"""async (row) => {{
  const start = performance.now();
  document.querySelectorAll(".rows tbody th button")[row].click();
  return (await ({PAINTED})()) - start;
}}"""


def run(nodes: int) -> list[butfor.Counterfactual]:
    """Explain every node."""
    torch.manual_seed(0)
    edges = torch.tensor(list(networkx.barabasi_albert_graph(nodes, 2, seed=0).edges)).T
    edge_index = to_undirected(edges)
    label = torch.bucketize(degree(edge_index[0]), torch.tensor([2.5, 4.5]))
    data = Data(x=torch.randn(nodes, 8), edge_index=edge_index, y=label)
    model = GCN(8, 16, 2, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(60):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(data.x, data.edge_index), data.y).backward()
        optimizer.step()
    return butfor.explain(model.eval(), data, range(nodes), butfor.Greedy(), progress=True)


def spread(name: str, times: list[float]) -> None:
    low, middle, high = min(times), statistics.median(times), max(times)
    print(f"{name:<28} {low:>8.0f} {middle:>8.0f} {high:>8.0f}")


def browse(page: Page, path: Path) -> dict[str, list[float]]:
    """Open the page some times and use it, in milliseconds."""
    first: list[float] = []
    for _ in range(OPENED):
        page.goto("about:blank")
        page.goto(path.as_uri())
        first.append(page.evaluate(PAINTED))
    return {
        "first view": first,
        "keystroke in the search": [page.evaluate(TYPED, word) for word in WORDS],
        "click on a target": [page.evaluate(CLICKED, row) for row in range(1, 25)],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=int, default=10_000)
    parser.add_argument("--out", type=Path, help="keep the page here")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    results = run(arguments.results)
    with tempfile.TemporaryDirectory() as folder:
        path = arguments.out or Path(folder) / "report.html"
        started = time.process_time()
        butfor.report(results, path, title=f"{len(results)} results", replace=True)
        seconds = time.process_time() - started
        found = [result.size or 0 for result in results if result.found]
        print(f"{len(results)} results, {len(found)} with an answer, of {statistics.mean(found):.1f} edits on average")
        print(f"written in {seconds:.1f} s of CPU time: {path.stat().st_size / 1e6:.1f} MB")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
            times = browse(browser.new_page(viewport={"width": 1280, "height": 900}), path)
            browser.close()
    print(f"{'milliseconds':<28} {'least':>8} {'median':>8} {'most':>8}")
    for name, some in times.items():
        spread(name, some)


if __name__ == "__main__":
    main()
